/* What `iosig generate --level hdf5` makes of flash.c, by hand: each array as a data set, by collective writes;
   by_hand.h has the rest. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "by_hand.h"
#include "flash_state.h"

static hid_t file;

static hid_t check(hid_t result) {
  if (result < 0) MPI_Abort(MPI_COMM_WORLD, 1);
  return result;
}

static void create(const char* path, const char* ending) {
  const hid_t access = check(H5Pcreate(H5P_FILE_ACCESS)), creation = check(H5Pcreate(H5P_FILE_CREATE));
  check(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
  check(H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST));
  check(H5Pset_obj_track_times(creation, 0));
  if (!is_naive) {
    check(H5Pset_all_coll_metadata_ops(access, 1));
    check(H5Pset_coll_metadata_write(access, 1));
  }
  file = check(H5Fcreate(name_of(path, ending), H5F_ACC_TRUNC, creation, access));
  check(H5Pclose(creation));
  check(H5Pclose(access));
}

static void write_attribute(const char* name, hid_t in_file, hid_t in_memory, const void* value) {
  const hid_t space = check(H5Screate(H5S_SCALAR));
  const hid_t attribute = check(H5Acreate2(file, name, in_file, space, H5P_DEFAULT, H5P_DEFAULT));
  check(H5Awrite(attribute, in_memory, value));
  check(H5Aclose(attribute));
  check(H5Sclose(space));
}

/* Moves this rank's blocks to or from the elements of `array` that `in_memory` selects; `shape` is that of the data
   set, whose first axis is that of the blocks. */
static void move(const char* name, hid_t in_file, hid_t type, int axes, const hsize_t* shape, hid_t in_memory,
                 void* array) {
  hsize_t start[4] = {(hsize_t)first_block, 0, 0, 0}, count[4] = {(hsize_t)blocks, 0, 0, 0};
  for (int i = 1; i < axes; i++) count[i] = shape[i];
  const hid_t space = check(H5Screate_simple(axes, shape, NULL));
  const hid_t properties = check(H5Pcreate(H5P_DATASET_CREATE)), transfer = check(H5Pcreate(H5P_DATASET_XFER));
  check(H5Pset_obj_track_times(properties, 0));
  check(H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER));
  check(H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY));
  if (!is_naive) check(H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE));
  const hid_t dataset = check(reads ? H5Dopen2(file, name, H5P_DEFAULT)
                                    : H5Dcreate2(file, name, in_file, space, H5P_DEFAULT, properties, H5P_DEFAULT));
  check(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
  if (reads)
    check(H5Dread(dataset, type, in_memory, space, transfer, array));
  else
    check(H5Dwrite(dataset, type, in_memory, space, transfer, array));
  check(H5Dclose(dataset));
  check(H5Pclose(transfer));
  check(H5Pclose(properties));
  check(H5Sclose(space));
}

/* An array of the mesh, of which memory has `blocks` elements of the first axis. */
static void move_rows(const char* name, hid_t in_file, hid_t type, int axes, hsize_t second, void* array) {
  const hsize_t shape[3] = {(hsize_t)all_blocks, second, 2}, local[3] = {(hsize_t)blocks, second, 2};
  const hid_t in_memory = check(H5Screate_simple(axes, local, NULL));
  move(name, in_file, type, axes, shape, in_memory, array);
  check(H5Sclose(in_memory));
}

static const char* const names[NVAR] = {"dens", "velx", "vely", "velz", "pres", "ener", "temp", "gamc",
                                        "game", "enuc", "gpot", "f1",   "f2",   "f3",   "f4",   "f5",
                                        "f6",   "f7",   "f8",   "f9",   "f10",  "f11",  "f12",  "f13"};

static void move_checkpoint(void) {
  const hsize_t n = (hsize_t)edge, whole = n + 2 * GUARD, shape[4] = {(hsize_t)all_blocks, n, n, n};
  move_rows("lrefine", H5T_STD_I32LE, H5T_NATIVE_INT, 1, 1, lrefine);
  move_rows("nodetype", H5T_STD_I32LE, H5T_NATIVE_INT, 1, 1, nodetype);
  move_rows("gid", H5T_STD_I32LE, H5T_NATIVE_INT, 2, NEIGHBOURS, gid);
  move_rows("coord", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, 3, coord);
  move_rows("size", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, 3, size);
  move_rows("bnd_box", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 3, 3, bnd_box);
  const hsize_t sizes[5] = {ROOM, whole, whole, whole, NVAR}, count[5] = {(hsize_t)blocks, n, n, n, 1};
  const hid_t in_memory = check(H5Screate_simple(5, sizes, NULL));
  for (int v = 0; v < NVAR; v++) {
    const hsize_t start[5] = {0, GUARD, GUARD, GUARD, (hsize_t)v};
    check(H5Sselect_hyperslab(in_memory, H5S_SELECT_SET, start, NULL, count, NULL));
    move(names[v], H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 4, shape, in_memory, unk);
  }
  check(H5Sclose(in_memory));
}

static void write_checkpoint(const char* path) {
  const char title[] = "FLASH-like checkpoint";
  const int step = 42;
  const double now = 0.5;
  create(path, "checkpoint");
  const hid_t text = check(H5Tcopy(H5T_C_S1));
  check(H5Tset_size(text, strlen(title)));
  write_attribute("title", text, text, title);
  check(H5Tclose(text));
  write_attribute("step", H5T_STD_I32LE, H5T_NATIVE_INT, &step);
  write_attribute("time", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &now);
  move_checkpoint();
  check(H5Fclose(file));
}

/* Collective transfers convert nothing: `floats` has the four variables, each with `room` elements. */
static void write_plot(const char* path, const char* ending, int points, float* floats, size_t room) {
  const hsize_t n = (hsize_t)points, shape[4] = {(hsize_t)all_blocks, n, n, n}, local[4] = {(hsize_t)blocks, n, n, n};
  create(path, ending);
  const hid_t in_memory = check(H5Screate_simple(4, local, NULL));
  for (int v = 0; v < PLOTTED; v++)
    move(names[plotted[v]], H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 4, shape, in_memory, floats + v * room);
  check(H5Sclose(in_memory));
  check(H5Fclose(file));
}

static void write_files(const char* path) {
  const size_t cells = (size_t)blocks * edge * edge * edge;
  const size_t points = (size_t)ROOM * (edge + 1) * (edge + 1) * (edge + 1);
  float *const buffer = (float*)malloc(PLOTTED * cells * sizeof(float)), *next = buffer;
  if (buffer == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  write_checkpoint(path);
  for (int v = 0; v < PLOTTED; v++)
    for (int b = 0; b < blocks; b++)
      for (int k = 0; k < edge; k++)
        for (int j = 0; j < edge; j++)
          for (int i = 0; i < edge; i++) *next++ = (float)*cell(b, k, j, i, plotted[v]);
  write_plot(path, "centers", edge, buffer, cells);
  write_plot(path, "corners", edge + 1, corners, points);
  free(buffer);
}

static void read_files(const char* path) {
  const hid_t access = check(H5Pcreate(H5P_FILE_ACCESS));
  check(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
  file = check(H5Fopen(name_of(path, "checkpoint"), H5F_ACC_RDONLY, access));
  check(H5Pclose(access));
  move_checkpoint();
  check(H5Fclose(file));
}
