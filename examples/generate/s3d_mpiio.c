/* What `iosig generate --level mpiio` makes of s3d.c, by hand: each array as it is in one file, by collective writes;
   by_hand.h has the rest. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "by_hand.h"
#include "s3d_state.h"

static void check(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  if (code == MPI_SUCCESS) return;
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "%s\n", text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static MPI_Offset move_array(MPI_File file, MPI_Offset at, double* array, int components) {
  int sizes[4], local[4], starts[4], whole[4], inner[4];
  MPI_Datatype in_file, in_memory;
  for (int i = 1; i < 4; i++) {
    sizes[i] = edge * blocks[i - 1];
    local[i] = edge;
    starts[i] = mine[i - 1] * edge;
    whole[i] = edge + 2 * GHOST;
    inner[i] = GHOST;
  }
  sizes[0] = local[0] = whole[0] = components;
  starts[0] = inner[0] = 0;
  MPI_Type_create_subarray(4, sizes, local, starts, MPI_ORDER_C, MPI_DOUBLE, &in_file);
  MPI_Type_create_subarray(4, whole, local, inner, MPI_ORDER_C, MPI_DOUBLE, &in_memory);
  MPI_Type_commit(&in_file);
  MPI_Type_commit(&in_memory);
  check(MPI_File_set_view(file, at, MPI_DOUBLE, in_file, "native", MPI_INFO_NULL));
  if (is_naive)
    check(MPI_File_write(file, array, 1, in_memory, MPI_STATUS_IGNORE));
  else if (reads)
    check(MPI_File_read_all(file, array, 1, in_memory, MPI_STATUS_IGNORE));
  else
    check(MPI_File_write_all(file, array, 1, in_memory, MPI_STATUS_IGNORE));
  MPI_Type_free(&in_file);
  MPI_Type_free(&in_memory);
  return at + (MPI_Offset)sizeof(double) * sizes[0] * sizes[1] * sizes[2] * sizes[3];
}

static void move_arrays(MPI_File file) {
  MPI_Offset at = move_array(file, 0, yspecies, SPECIES);
  at = move_array(file, at, temp, 1);
  at = move_array(file, at, pressure, 1);
  move_array(file, at, u, 3);
}

static void write_files(const char* path) {
  MPI_File file;
  check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
  check(MPI_File_set_size(file, 0));
  move_arrays(file);
  check(MPI_File_close(&file));
}

static void read_files(const char* path) {
  MPI_File file;
  check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  move_arrays(file);
  check(MPI_File_close(&file));
}
