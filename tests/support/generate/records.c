/* A template with records: step S is record S of `time`, one number, and of `grid`, 6 rows of 3 columns, which the
   ranks share by rows, with ghost cells around. `mesh` has no records. Reading checks each element.

     records write|read FILE FIRST LAST */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 6
#define WIDTH 3
#define LINE (WIDTH + 2)

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks, failed = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 5) MPI_Abort(MPI_COMM_WORLD, 2);
  const char* path = argv[2];
  const int writes = strcmp(argv[1], "write") == 0;
  const int first_row = rank * ROWS / ranks, rows = (rank + 1) * ROWS / ranks - first_row;
  int* grid = (int*)malloc(sizeof(int) * (size_t)((rows + 2) * LINE));
  float mesh[WIDTH] = {0.25F, 0.5F, 0.75F};
  double time = 0;
  long wrong = 0;
#pragma sigio file f path(path) level(pnetcdf) comm(MPI_COMM_WORLD)
#pragma sigio dims f t(unlimited) y(ROWS) x(WIDTH)
#pragma sigio attr f title("records")
#pragma sigio decomp rows block(y : first_row, rows)
#pragma sigio dataset f.mesh type(float) dims(x) data(mesh)
#pragma sigio dataset f.time type(double) dims(t) data(&time) attr(units = "s")
#pragma sigio dataset f.grid type(int) dims(t, y, x) decomp(rows) data(grid) ghost(y : 1, x : 1)
  for (long step = atol(argv[3]); step <= atol(argv[4]) && !failed; step++) {
    time = writes ? 0.5 * (double)step : 0;
    memset(grid, 0, sizeof(int) * (size_t)((rows + 2) * LINE));
    for (int y = 0; y < rows && writes; y++)
      for (int x = 0; x < WIDTH; x++) grid[(y + 1) * LINE + x + 1] = (int)(100 * step + 10 * (first_row + y) + x);
    if (writes) {
#pragma sigio output f record(step) status(failed)
    } else {
#pragma sigio input f record(step) status(failed)
    }
    wrong += time != 0.5 * (double)step || mesh[1] != 0.5F;
    for (int y = -1; y <= rows; y++)
      for (int x = -1; x <= WIDTH; x++) {
        const int is_inner = y >= 0 && y < rows && x >= 0 && x < WIDTH;
        const int value = is_inner ? (int)(100 * step + 10 * (first_row + y) + x) : 0;
        wrong += grid[(y + 1) * LINE + x + 1] != value;
      }
  }
  printf("%d: failed %d, wrong %ld\n", rank, failed, wrong);
  free(grid);
  MPI_Finalize();
  return 0;
}
