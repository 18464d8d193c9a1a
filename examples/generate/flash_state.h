/* The arrays of an adaptive mesh code like FLASH: blocks of cells, of which each rank has some and room for more. A
   cell has 24 variables, which lie side by side; a block has guard cells around it. Values follow from the places of
   cells and blocks. A checkpoint has the mesh and all variables; plot files have four of them as floats, one at the
   cells' centers, one at their corners. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define NVAR 24
#define GUARD 4
#define PLOTTED 4
#define BLOCKS 80 /* of a rank; its number modulo 3 more */
#define ROOM (BLOCKS + 2)
#define NEIGHBOURS 15 /* six faces, the parent, eight children */

static int edge; /* cells of a block along each axis */
static int blocks, first_block, all_blocks;
static double* unk;    /* [ROOM][edge + 2 GUARD][edge + 2 GUARD][edge + 2 GUARD][NVAR] */
static float* corners; /* [PLOTTED][ROOM][edge + 1][edge + 1][edge + 1] */
static int lrefine[ROOM], nodetype[ROOM], gid[ROOM][NEIGHBOURS];
static double coord[ROOM][3], size[ROOM][3], bnd_box[ROOM][3][2];
static const int plotted[PLOTTED] = {0, 4, 5, 6}; /* density, pressure, energy, temperature */

static double expected(int block, int k, int j, int i, int variable) {
  return ((((double)(first_block + block) * 64 + k + GUARD) * 64 + j + GUARD) * 64 + i + GUARD) * 32 + variable;
}

/* Guard cells have negative indices, or such beyond the edge. */
static double* cell(int block, int k, int j, int i, int variable) {
  const size_t whole = (size_t)edge + 2 * GUARD;
  return &unk[(((block * whole + k + GUARD) * whole + j + GUARD) * whole + i + GUARD) * NVAR + variable];
}

static void make_arrays(int cells) {
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  edge = cells;
  for (int each = 0; each < ranks; each++) {
    if (each == rank) first_block = all_blocks;
    all_blocks += BLOCKS + each % 3;
  }
  blocks = BLOCKS + rank % 3;
  const size_t whole = (size_t)edge + 2 * GUARD, points = (size_t)edge + 1;
  unk = (double*)calloc(ROOM * whole * whole * whole * NVAR, sizeof *unk);
  corners = (float*)calloc(PLOTTED * ROOM * points * points * points, sizeof *corners);
  if (unk == NULL || corners == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
}

static void make_mesh(void) {
  for (int b = 0; b < blocks; b++) {
    const int number = first_block + b;
    lrefine[b] = 1 + number % 5;
    nodetype[b] = 1 + number % 2;
    for (int i = 0; i < NEIGHBOURS; i++) gid[b][i] = (number + i + 1) % all_blocks;
    for (int d = 0; d < 3; d++) {
      size[b][d] = 1.0 / (1 << lrefine[b]);
      coord[b][d] = number + 0.25 * d;
      bnd_box[b][d][0] = coord[b][d] - size[b][d] / 2;
      bnd_box[b][d][1] = coord[b][d] + size[b][d] / 2;
    }
  }
}

/* A corner has the mean of the eight cells around it. */
static void make_corners(void) {
  float* corner = corners;
  for (int v = 0; v < PLOTTED; v++) {
    for (int b = 0; b < blocks; b++)
      for (int k = 0; k <= edge; k++)
        for (int j = 0; j <= edge; j++)
          for (int i = 0; i <= edge; i++) {
            double sum = 0;
            for (int near = 0; near < 8; near++)
              sum += *cell(b, k - near / 4, j - near / 2 % 2, i - near % 2, plotted[v]);
            *corner++ = (float)(sum / 8);
          }
    corner += (size_t)(ROOM - blocks) * (edge + 1) * (edge + 1) * (edge + 1);
  }
}

/* Fills the arrays, or returns how many cells have another value; guard cells are only filled. */
static long visit_cells(int fills) {
  const int outside = fills ? GUARD : 0;
  long wrong = 0;
  for (int b = 0; b < blocks; b++)
    for (int k = -outside; k < edge + outside; k++)
      for (int j = -outside; j < edge + outside; j++)
        for (int i = -outside; i < edge + outside; i++)
          for (int v = 0; v < NVAR; v++) {
            if (fills) *cell(b, k, j, i, v) = expected(b, k, j, i, v);
            wrong += *cell(b, k, j, i, v) != expected(b, k, j, i, v);
          }
  if (fills) make_mesh();
  if (fills) make_corners();
  return wrong;
}

/* The names of the three files: PATH.checkpoint, PATH.centers, PATH.corners. */
static const char* name_of(const char* path, const char* ending) {
  static char names[3][512];
  static int next;
  char* const name = names[next++ % 3];
  snprintf(name, sizeof names[0], "%s.%s", path, ending);
  return name;
}

/* Each output makes new files, as it does in a simulation that numbers its files. */
static void remove_files(const char* path) {
  if (first_block > 0) return;
  remove(name_of(path, "checkpoint"));
  remove(name_of(path, "centers"));
  remove(name_of(path, "corners"));
}
