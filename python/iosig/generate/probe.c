/* A template for `iosig generate --measure`: writes and reads blocks of a shape, one data set in a file and eight.

     probe FILE REPEATS SECONDS LEAST Z,Y,X,ROOM,NV,SPLIT...

   A rank has Z x Y x X doubles of each data set, in an array with ROOM elements along x and NV numbers for each. Ranks
   share the axis z (SPLIT 0) or x (1). Prints the MPI library, then shape, number of data sets, access and time of each
   output and input, of the slowest rank. After SECONDS no further shape is begun, but LEAST are measured. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

/* Prints the time of another turn. Returns whether there is to be one more: at most REPEATS, and half a second. The
   next output makes a new file: to empty a file that was just written takes as long as the device is busy with it. */
static int goes_on(double seconds, int repeats, const char* path, const char* shape, const char* what) {
  static int turn;
  static double sum;
  double slowest = 0;
  int more;
  MPI_Allreduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) printf("%s %s %.7f\n", shape, what, slowest);
  fflush(stdout);
  sum += slowest;
  more = ++turn < repeats && sum < 0.5;
  if (!more) turn = 0;
  if (!more) sum = 0;
  if (more && rank == 0 && strstr(what, "write") != NULL) remove(path);
  MPI_Barrier(MPI_COMM_WORLD);
  return more;
}

/* The same on every rank. */
static int is_over(double end) {
  int over = MPI_Wtime() > end;
  MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return over;
}

int main(int argc, char** argv) {
  char library[MPI_MAX_LIBRARY_VERSION_STRING];
  int length, repeats, i;
  double seconds, end;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Get_library_version(library, &length);
  if (argc < 6) MPI_Abort(MPI_COMM_WORLD, 2);
  if (rank == 0) printf("%.8s\n", library);
  repeats = atoi(argv[2]);
  end = MPI_Wtime() + atof(argv[3]);
  for (i = 5; i < argc && (i < 5 + atoi(argv[4]) || !is_over(end)); i++) {
    int nz, ny, nx, room, nv, split;
    double* cells;
    if (sscanf(argv[i], "%d,%d,%d,%d,%d,%d", &nz, &ny, &nx, &room, &nv, &split) != 6) MPI_Abort(MPI_COMM_WORLD, 2);
    const int all_z = split == 0 ? nz * ranks : nz, all_x = split == 0 ? nx : nx * ranks;
    const int first_z = split == 0 ? nz * rank : 0, first_x = split == 0 ? 0 : nx * rank;
    cells = (double*)calloc((size_t)nz * ny * room * nv, sizeof *cells);
// clang-format off
#pragma sigio file one path(argv[1]) level(mpiio) comm(MPI_COMM_WORLD)
#pragma sigio dims one z(all_z) y(ny) x(all_x)
#pragma sigio decomp blk block(z: first_z, nz; x: first_x, nx)
#pragma sigio dataset one.d type(double) dims(z, y, x) decomp(blk) data(cells) memory(z, y, x: room, v: nv) component(v: 0)
#pragma sigio file many path(argv[1]) level(mpiio) comm(MPI_COMM_WORLD)
#pragma sigio dims many z(all_z) y(ny) x(all_x)
#pragma sigio dataset many.d1 type(double) dims(z, y, x) decomp(blk) data(cells) memory(z, y, x: room, v: nv) component(v: 0)
#pragma sigio dataset many.d2 type(double) dims(z, y, x) decomp(blk) data(cells) memory(z, y, x: room, v: nv) component(v: 0)
#pragma sigio dataset many.d3 type(double) dims(z, y, x) decomp(blk) data(cells) memory(z, y, x: room, v: nv) component(v: 0)
#pragma sigio dataset many.d4 type(double) dims(z, y, x) decomp(blk) data(cells) memory(z, y, x: room, v: nv) component(v: 0)
#pragma sigio dataset many.d5 type(double) dims(z, y, x) decomp(blk) data(cells) memory(z, y, x: room, v: nv) component(v: 0)
#pragma sigio dataset many.d6 type(double) dims(z, y, x) decomp(blk) data(cells) memory(z, y, x: room, v: nv) component(v: 0)
#pragma sigio dataset many.d7 type(double) dims(z, y, x) decomp(blk) data(cells) memory(z, y, x: room, v: nv) component(v: 0)
#pragma sigio dataset many.d8 type(double) dims(z, y, x) decomp(blk) data(cells) memory(z, y, x: room, v: nv) component(v: 0)
    // clang-format on
    do {
      seconds = -MPI_Wtime();
#pragma sigio output one
      seconds += MPI_Wtime();
    } while (goes_on(seconds, repeats, argv[1], argv[i], "1 write"));
    do {
      seconds = -MPI_Wtime();
#pragma sigio input one
      seconds += MPI_Wtime();
    } while (goes_on(seconds, repeats, argv[1], argv[i], "1 read"));
    do {
      seconds = -MPI_Wtime();
#pragma sigio output many
      seconds += MPI_Wtime();
    } while (goes_on(seconds, repeats, argv[1], argv[i], "8 write"));
    do {
      seconds = -MPI_Wtime();
#pragma sigio input many
      seconds += MPI_Wtime();
    } while (goes_on(seconds, repeats, argv[1], argv[i], "8 read"));
    free(cells);
  }
  MPI_Finalize();
  return 0;
}
