/* A template whose blocks are the caller's: rows START,COUNT of each rank, of an array of ROWS rows and 3 columns, with
   ghost cells around. `head` is the same on every rank. Each rank prints its status, and what it has read.

     blocks write|read FILE ROWS START,COUNT... */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 3
#define GHOST 2

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, failed = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc < 5 + rank) MPI_Abort(MPI_COMM_WORLD, 2);
  const char* path = argv[2];
  long long rows = atoll(argv[3]), start = 0, count = 0;
  sscanf(argv[4 + rank], "%lld,%lld", &start, &count);
  const long long whole = count < 0 || count > 1000000 ? 1 : count;
  const int line = WIDTH + 2 * GHOST;
  int* grid = (int*)malloc(sizeof(int) * (size_t)((whole + 2 * GHOST) * line));
  double head[WIDTH] = {0.5, 1.5, 2.5};
  const int writes = strcmp(argv[1], "write") == 0;
  for (long long i = 0; i < (whole + 2 * GHOST) * line; i++) grid[i] = -7;
  for (long long z = 0; writes && z < whole; z++)
    for (int x = 0; x < WIDTH; x++) grid[(z + GHOST) * line + x + GHOST] = (int)(10 * (start + z) + x);
  if (!writes) memset(head, 0, sizeof head);
#pragma sigio file f path(path) level(mpiio) comm(MPI_COMM_WORLD) \
    hint(access_style = "write_once", romio_cb_write = "enable")
#pragma sigio dims f z(rows) x(WIDTH)
#pragma sigio attr f step(int : 7 * 6) time(double : head[1]) name("blo\"cks") /* a comment */
#pragma sigio decomp rows_of block(z : start, count)
#pragma sigio dataset f.head type(double) dims(x) data(head)
#pragma sigio dataset f.grid type(int) dims(z, x) decomp(rows_of) data(grid) ghost(z          \
                                                                                   : GHOST, x \
                                                                                   : GHOST) attr(scale = 0.5)
  if (writes) {
#pragma sigio output f status(failed)
  } else {
#pragma sigio input f status(failed)
  }
  long long wrong = 0, changed = 0;
  for (long long z = -GHOST; z < whole + GHOST; z++)
    for (int x = -GHOST; x < WIDTH + GHOST; x++) {
      const int value = grid[(z + GHOST) * line + x + GHOST];
      const int is_inner = z >= 0 && z < count && x >= 0 && x < WIDTH;
      if (is_inner) wrong += value != (int)(10 * (start + z) + x);
      if (!is_inner) changed += value != -7 && !writes;
    }
  printf("%d: failed %d, wrong %lld, changed %lld, head %g %g %g, line %d\n", rank, failed, wrong, changed, head[0],
         head[1], head[2], __LINE__);
  free(grid);
  MPI_Finalize();
  return 0;
}
