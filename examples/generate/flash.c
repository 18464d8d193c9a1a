/* A template for `iosig generate`: writes a checkpoint and two plot files, or reads the checkpoint. It has no I/O calls
   of its own; docs/cli/generate.md explains the directives.

     flash write|restart FILE CELLS [REPEATS] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "flash_state.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 4) MPI_Abort(MPI_COMM_WORLD, 2);
  const int repeats = argc > 4 ? atoi(argv[4]) : 1;
  make_arrays(atoi(argv[3]));
// clang-format off
#pragma sigio file ckpt path(name_of(argv[2], "checkpoint")) level(pnetcdf) comm(MPI_COMM_WORLD) decomp(mine)
#pragma sigio dims ckpt blk(all_blocks) z(edge) y(edge) x(edge) d(3) side(2) neighbour(NEIGHBOURS)
#pragma sigio decomp mine block(blk: first_block, blocks)
#pragma sigio attr ckpt title("FLASH-like checkpoint") step(42) time(double: 0.5)
#pragma sigio dataset ckpt type(int) dims(blk) data(lrefine, nodetype)
#pragma sigio dataset ckpt.gid type(int) dims(blk, neighbour) data(gid)
#pragma sigio dataset ckpt type(double) dims(blk, d) data(coord, size)
#pragma sigio dataset ckpt.bnd_box type(double) dims(blk, d, side) data(bnd_box)
#pragma sigio dataset ckpt type(double) dims(blk, z, y, x) data(unk) ghost(z: GUARD, y: GUARD, x: GUARD) \
    memory(blk: ROOM, z, y, x, var: NVAR) each(var: dens, velx, vely, velz, pres, ener, temp, gamc, game, enuc, gpot, \
    f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13)
#pragma sigio file centers path(name_of(argv[2], "centers")) level(pnetcdf) comm(MPI_COMM_WORLD) access(write) decomp(mine)
#pragma sigio dims centers blk(all_blocks) z(edge) y(edge) x(edge)
#pragma sigio dataset centers type(double) as(float) dims(blk, z, y, x) data(unk) \
    memory(blk: ROOM, z, y, x, var: NVAR) each(var: dens, pres=4, ener, temp) ghost(z: GUARD, y: GUARD, x: GUARD)
#pragma sigio file corners path(name_of(argv[2], "corners")) level(pnetcdf) comm(MPI_COMM_WORLD) access(write) decomp(mine)
#pragma sigio dims corners blk(all_blocks) z(edge + 1) y(edge + 1) x(edge + 1)
#pragma sigio dataset corners type(float) dims(blk, z, y, x) data(corners) \
    memory(var: PLOTTED, blk: ROOM, z, y, x) each(var: dens, pres, ener, temp)
  // clang-format on
  if (argv[1][0] == 'w') {
    visit_cells(1);
    for (int repeat = 0; repeat < repeats; repeat++) {
      remove_files(argv[2]);
      MPI_Barrier(MPI_COMM_WORLD);
      double seconds = -MPI_Wtime();
#pragma sigio output ckpt centers corners
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
