/* A template for elements that are dealt to ranks in turn, or listed. `grid` has 5 planes of 4 rows of 6 columns, with
   ghost cells around; `plain` has the columns alone. Rank R is number R / NY mod NZ of NZ along z, and R mod NY of NY
   along y; ZSIZE planes and YSIZE rows are dealt at a time. Its columns are listed, as 5,0,3, or - for none.

     parts write|read FILE NZ,NY ZSIZE,YSIZE COLUMNS... */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLANES 5
#define ROWS 4
#define COLUMNS 6

static int dealt(int all, int number, int of, int size, int n) { /* the n-th element that `number` gets; -1: none */
  for (int i = 0; i < all; i++)
    if (i / size % of == number && n-- == 0) return i;
  return -1;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, failed = -1, nz, ny, zsize, ysize, n = 0, planes = 0, rows = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc < 6 + rank) MPI_Abort(MPI_COMM_WORLD, 2);
  const char* path = argv[2];
  const int writes = strcmp(argv[1], "write") == 0;
  sscanf(argv[3], "%d,%d", &nz, &ny);
  sscanf(argv[4], "%d,%d", &zsize, &ysize);
  const int z = rank / ny % nz, y = rank % ny;
  int columns[COLUMNS + 2];
  for (char* word = strtok(argv[5 + rank], ","); word != NULL && n < COLUMNS + 2; word = strtok(NULL, ","))
    if (word[0] != '-' || word[1] != '\0') columns[n++] = atoi(word);
  while (zsize > 0 && dealt(PLANES, z, nz, zsize, planes) >= 0) planes++;
  while (ysize > 0 && dealt(ROWS, y, ny, ysize, rows) >= 0) rows++;
  const int line = n + 2, plane = (rows + 2) * line;
  short* grid = (short*)calloc((size_t)((planes + 2) * plane), sizeof(short));
  double* plain = (double*)calloc((size_t)n + 1, sizeof(double));
  long wrong = 0;
#pragma sigio file f path(path) level(mpiio) comm(MPI_COMM_WORLD)
#pragma sigio dims f z(PLANES) y(ROWS) x(COLUMNS)
#pragma sigio decomp grid cyclic(z : z, nz, zsize; y : y, ny, ysize) list(x : columns, n)
#pragma sigio decomp plain list(x : columns, rank < argc - 5 && y == 0 && z == 0 ? n : 0)
#pragma sigio dataset f.plain type(double) dims(x) decomp(plain) data(plain)
#pragma sigio dataset f.grid type(short) dims(z, y, x) decomp(grid) data(grid) ghost(z : 1, y : 1, x : 1)
  for (int pass = !writes; pass < 2; pass++) { /* 0: fill, 1: compare after the transfer */
    if (pass == 1 && writes) {
#pragma sigio output f status(failed)
    } else if (pass == 1) {
#pragma sigio input f status(failed)
    }
    for (int i = 0; i < planes; i++)
      for (int j = 0; j < rows; j++)
        for (int k = 0; k < n; k++) {
          const short value =
              (short)(100 * dealt(PLANES, z, nz, zsize, i) + 10 * dealt(ROWS, y, ny, ysize, j) + columns[k]);
          short* const at = &grid[(i + 1) * plane + (j + 1) * line + k + 1];
          if (pass == 0) *at = value;
          wrong += *at != value;
        }
    for (int k = 0; k < n && y == 0 && z == 0; k++) {
      if (pass == 0) plain[k] = 0.5 * columns[k];
      wrong += plain[k] != 0.5 * columns[k];
    }
  }
  for (int i = 0; i < (planes + 2) * plane; i++) {
    const int a = i / plane, b = i / line % (rows + 2), c = i % line;
    const int is_inner = a > 0 && a <= planes && b > 0 && b <= rows && c > 0 && c <= n;
    wrong += !is_inner && grid[i] != 0;
  }
  printf("%d: failed %d, wrong %ld\n", rank, failed, wrong);
  free(plain);
  free(grid);
  MPI_Finalize();
  return 0;
}
