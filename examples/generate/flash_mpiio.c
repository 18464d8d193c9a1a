/* What `iosig generate --level mpiio` makes of flash.c, by hand: each array as it is in a file, by collective writes;
   by_hand.h has the rest. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "by_hand.h"
#include "flash_state.h"

static MPI_File file;
static MPI_Offset at; /* where the next array begins */

static void check(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  if (code == MPI_SUCCESS) return;
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "%s\n", text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void create(const char* path, const char* ending) {
  const int mode = MPI_MODE_CREATE | MPI_MODE_WRONLY;
  check(MPI_File_open(MPI_COMM_WORLD, name_of(path, ending), mode, MPI_INFO_NULL, &file));
  check(MPI_File_set_size(file, 0));
  at = 0;
}

/* Moves an array of which each block has `bytes` in the file, in the order of the blocks. */
static void move(void* array, int elements, MPI_Datatype type, MPI_Offset bytes) {
  const MPI_Offset begin = at + first_block * bytes;
  if (is_naive)
    check(MPI_File_write_at(file, begin, array, elements, type, MPI_STATUS_IGNORE));
  else if (reads)
    check(MPI_File_read_at_all(file, begin, array, elements, type, MPI_STATUS_IGNORE));
  else
    check(MPI_File_write_at_all(file, begin, array, elements, type, MPI_STATUS_IGNORE));
  at += all_blocks * bytes;
}

static void move_checkpoint(void) {
  const int whole = edge + 2 * GUARD;
  const int sizes[5] = {ROOM, whole, whole, whole, NVAR}, local[5] = {blocks, edge, edge, edge, 1};
  const int starts[5] = {0, GUARD, GUARD, GUARD, 0};
  MPI_Datatype inner;
  move(lrefine, blocks, MPI_INT, 4);
  move(nodetype, blocks, MPI_INT, 4);
  move(gid, blocks * NEIGHBOURS, MPI_INT, 4 * NEIGHBOURS);
  move(coord, blocks * 3, MPI_DOUBLE, 8 * 3);
  move(size, blocks * 3, MPI_DOUBLE, 8 * 3);
  move(bnd_box, blocks * 6, MPI_DOUBLE, 8 * 6);
  MPI_Type_create_subarray(5, sizes, local, starts, MPI_ORDER_C, MPI_DOUBLE, &inner);
  MPI_Type_commit(&inner);
  for (int v = 0; v < NVAR; v++) move(unk + v, 1, inner, (MPI_Offset)8 * edge * edge * edge);
  MPI_Type_free(&inner);
}

static void write_checkpoint(const char* path) {
  create(path, "checkpoint");
  move_checkpoint();
  check(MPI_File_close(&file));
}

/* MPI-IO converts nothing: the doubles become floats in a buffer. */
static void write_centers(const char* path) {
  const int elements = blocks * edge * edge * edge;
  float* const buffer = (float*)malloc(sizeof(float) * elements);
  if (buffer == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  create(path, "centers");
  for (int v = 0; v < PLOTTED; v++) {
    float* next = buffer;
    for (int b = 0; b < blocks; b++)
      for (int k = 0; k < edge; k++)
        for (int j = 0; j < edge; j++)
          for (int i = 0; i < edge; i++) *next++ = (float)*cell(b, k, j, i, plotted[v]);
    move(buffer, elements, MPI_FLOAT, (MPI_Offset)4 * edge * edge * edge);
  }
  check(MPI_File_close(&file));
  free(buffer);
}

static void write_corners(const char* path) {
  const int points = (edge + 1) * (edge + 1) * (edge + 1);
  create(path, "corners");
  for (int v = 0; v < PLOTTED; v++)
    move(corners + (size_t)v * ROOM * points, blocks * points, MPI_FLOAT, (MPI_Offset)4 * points);
  check(MPI_File_close(&file));
}

static void write_files(const char* path) {
  write_checkpoint(path);
  write_centers(path);
  write_corners(path);
}

static void read_files(const char* path) {
  check(MPI_File_open(MPI_COMM_WORLD, name_of(path, "checkpoint"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  move_checkpoint();
  check(MPI_File_close(&file));
}
