/* A template for `iosig generate`: writes a checkpoint, or restarts from one with any number of ranks that divides the
   same box. It has no I/O calls of its own; docs/cli/generate.md explains the directives.

     s3d write|restart FILE CELLS [REPEATS] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "s3d_state.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 4) MPI_Abort(MPI_COMM_WORLD, 2);
  const char* const path = argv[2];
  const int repeats = argc > 4 ? atoi(argv[4]) : 1;
  make_arrays(atoi(argv[3]));
// clang-format off
#pragma sigio file ckpt path(path) level(pnetcdf) comm(MPI_COMM_WORLD) decomp(blk)
#pragma sigio dims ckpt s(SPECIES) d(3) z(edge * blocks[0]) y(edge * blocks[1]) x(edge * blocks[2])
#pragma sigio attr ckpt title("S3D-like checkpoint") version(3)
#pragma sigio decomp blk block(z: mine[0] * edge, edge; y: mine[1] * edge, edge; x: mine[2] * edge, edge)
#pragma sigio dataset ckpt.yspecies type(double) dims(s, z, y, x) data(yspecies) ghost(GHOST) attr(units="1")
#pragma sigio dataset ckpt.temp type(double) dims(z, y, x) data(temp) ghost(GHOST) attr(units="K")
#pragma sigio dataset ckpt.pressure type(double) dims(z, y, x) data(pressure) ghost(GHOST) attr(units="Pa")
#pragma sigio dataset ckpt.u type(double) dims(d, z, y, x) data(u) ghost(GHOST) attr(units="m/s")
  // clang-format on
  if (argv[1][0] == 'w') {
    visit_cells(1);
    for (int repeat = 0; repeat < repeats; repeat++) {
      remove_files(path);
      MPI_Barrier(MPI_COMM_WORLD);
      double seconds = -MPI_Wtime();
#pragma sigio output ckpt
      seconds += MPI_Wtime();
      printf("%.6f\n", seconds);
    }
  } else {
#pragma sigio input ckpt
    printf("%ld cells differ\n", visit_cells(0));
  }
  MPI_Finalize();
  return 0;
}
