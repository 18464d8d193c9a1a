/* A template whose arrays have other axes in memory than in the file: rows START,COUNT of each rank, of ROWS rows.

     cells    (r, y, x, v), ghost cells along y and x: two of its components are data sets, one of them as floats
     turned   (x, y, r) of ints, with place for MAX_ROWS rows
     halves   (y, r) of shorts

   After `read` every element of the arrays is compared: those of the block have their values, all others are -7.

     orders write|read FILE ROWS START,COUNT... */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NY 2
#define NX 3
#define NV 3
#define GHOST 1
#define MAX_ROWS 9

static double cells[MAX_ROWS][NY + 2 * GHOST][NX + 2 * GHOST][NV];
static int turned[NX][NY][MAX_ROWS];
static short halves[NY * (MAX_ROWS + 1)]; /* also of a rank with too many rows */
static long long start, count;
static int wrong, changed;

static double value(long long r, int y, int x, int v) { return 100.0 * (double)r + 10 * y + x + 1000 * v + 0.25; }

/* Fills an element, or compares it; `expected` is that of the block, or -7. */
static double visit(double found, double expected, int fills) {
  if (fills) return expected;
  if (found != expected) *(expected == -7 ? &changed : &wrong) += 1;
  return found;
}

static void visit_all(int fills, int has_values) {
  for (int r = 0; r < MAX_ROWS; r++)
    for (int y = 0; y < NY + 2 * GHOST; y++)
      for (int x = 0; x < NX + 2 * GHOST; x++)
        for (int v = 0; v < NV; v++) {
          const int inner = r < count && y >= GHOST && y < NY + GHOST && x >= GHOST && x < NX + GHOST && v != 1;
          double* const cell = &cells[r][y][x][v];
          *cell = visit(*cell, inner && has_values ? value(start + r, y - GHOST, x - GHOST, v) : -7, fills);
        }
  for (int r = 0; r < MAX_ROWS; r++)
    for (int y = 0; y < NY; y++) {
      for (int x = 0; x < NX; x++)
        turned[x][y][r] =
            (int)visit(turned[x][y][r], r < count && has_values ? (double)(10 * (start + r) + 2 * y + x) : -7, fills);
      if (r < count) {
        short* const half = &halves[y * count + r];
        *half = (short)visit(*half, has_values ? (double)(start + r + 100 * y) : -7, fills);
      }
    }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, failed = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc < 5 + rank) MPI_Abort(MPI_COMM_WORLD, 2);
  const char* path = argv[2];
  const long long rows = atoll(argv[3]);
  sscanf(argv[4 + rank], "%lld,%lld", &start, &count);
  const int writes = strcmp(argv[1], "write") == 0;
  visit_all(1, writes);
// clang-format off
#pragma sigio file f path(path) level(mpiio) comm(MPI_COMM_WORLD)
#pragma sigio dims f r(rows) y(NY) x(NX)
#pragma sigio decomp mine block(r: start, count)
#pragma sigio dataset f.first type(double) dims(r, y, x) decomp(mine) data(cells) memory(r: MAX_ROWS, y, x, v: NV) component(v: 0) ghost(y: GHOST, x: GHOST)
#pragma sigio dataset f.last type(double) as(float) dims(r, y, x) decomp(mine) data(cells) memory(r: MAX_ROWS, y, x, v: NV) component(v: NV - 1) ghost(y: GHOST, x: GHOST)
#pragma sigio dataset f.turned type(int) dims(r, y, x) decomp(mine) data(turned) memory(x, y, r: MAX_ROWS)
#pragma sigio dataset f.halves type(short) dims(r, y) decomp(mine) data(halves) memory(y, r)
  // clang-format on
  if (writes) {
#pragma sigio output f status(failed)
  } else {
#pragma sigio input f status(failed)
    visit_all(0, 1);
  }
  printf("%d: failed %d, wrong %d, changed %d, line %d\n", rank, failed, wrong, changed, __LINE__);
  MPI_Finalize();
  return 0;
}
