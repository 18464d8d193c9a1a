/* The arrays of a combustion code like S3D: a box of cells, shared by blocks in three dimensions, each block with ghost
   cells around it. The values follow from the cells' places, so that any number of ranks makes the same file. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define GHOST 2
#define SPECIES 11

static int edge;               /* cells of a rank along each axis */
static int blocks[3], mine[3]; /* ranks along z, y, x; which of them this is */
static double *yspecies, *temp, *pressure, *u;

static double expected(int array, int component, int k, int j, int i) {
  const double z = (double)mine[0] * edge + k, y = (double)mine[1] * edge + j, x = (double)mine[2] * edge + i;
  return ((z * blocks[1] * edge + y) * blocks[2] * edge + x) * 64 + 16 * array + component;
}

static double* cell(double* array, int component, int k, int j, int i) {
  const size_t whole = (size_t)edge + 2 * GHOST;
  return &array[((component * whole + k + GHOST) * whole + j + GHOST) * whole + i + GHOST];
}

static double* new_array(int components) {
  const size_t whole = (size_t)edge + 2 * GHOST;
  double* array = (double*)calloc(components * whole * whole * whole, sizeof *array);
  if (array == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  return array;
}

static void make_arrays(int cells) {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 3, blocks);
  mine[0] = rank / (blocks[1] * blocks[2]);
  mine[1] = rank / blocks[2] % blocks[1];
  mine[2] = rank % blocks[2];
  edge = cells;
  yspecies = new_array(SPECIES);
  temp = new_array(1);
  pressure = new_array(1);
  u = new_array(3);
}

/* Each output makes a new file, as it does in a simulation that numbers its files. */
static void remove_files(const char* path) {
  if (mine[0] + mine[1] + mine[2] == 0) remove(path);
}

/* Fills the arrays, or returns how many cells of them have another value. */
static long visit_cells(int fills) {
  double* const arrays[] = {yspecies, temp, pressure, u};
  const int components[] = {SPECIES, 1, 1, 3};
  long wrong = 0;
  for (int a = 0; a < 4; a++)
    for (int c = 0; c < components[a]; c++)
      for (int k = 0; k < edge; k++)
        for (int j = 0; j < edge; j++)
          for (int i = 0; i < edge; i++) {
            if (fills) *cell(arrays[a], c, k, j, i) = expected(a, c, k, j, i);
            wrong += *cell(arrays[a], c, k, j, i) != expected(a, c, k, j, i);
          }
  return wrong;
}
