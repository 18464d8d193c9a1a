/* What `iosig generate --level hdf5` makes of s3d.c, by hand: each array as a data set, by collective writes; by_hand.h
 * has the rest. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "by_hand.h"
#include "s3d_state.h"

static hid_t check(hid_t result) {
  if (result < 0) MPI_Abort(MPI_COMM_WORLD, 1);
  return result;
}

static void write_attribute(hid_t owner, const char* name, hid_t in_file, hid_t in_memory, const void* value) {
  const hid_t space = check(H5Screate(H5S_SCALAR));
  const hid_t attribute = check(H5Acreate2(owner, name, in_file, space, H5P_DEFAULT, H5P_DEFAULT));
  check(H5Awrite(attribute, in_memory, value));
  check(H5Aclose(attribute));
  check(H5Sclose(space));
}

static void write_text(hid_t owner, const char* name, const char* text) {
  const hid_t type = check(H5Tcopy(H5T_C_S1));
  check(H5Tset_size(type, strlen(text)));
  write_attribute(owner, name, type, type, text);
  check(H5Tclose(type));
}

static void move_array(hid_t file, const char* name, double* array, int components, const char* units) {
  const hsize_t n = (hsize_t)edge, whole_edge = n + 2 * GHOST, all = (hsize_t)components;
  const hsize_t shape[4] = {all, n * blocks[0], n * blocks[1], n * blocks[2]};
  const hsize_t start[4] = {0, n * mine[0], n * mine[1], n * mine[2]}, count[4] = {all, n, n, n};
  const hsize_t whole[4] = {all, whole_edge, whole_edge, whole_edge}, inner[4] = {0, GHOST, GHOST, GHOST};
  const int skip = components == 1; /* an array of one component has three axes */
  const hid_t in_file = check(H5Screate_simple(4 - skip, shape + skip, NULL));
  const hid_t in_memory = check(H5Screate_simple(4 - skip, whole + skip, NULL));
  const hid_t properties = check(H5Pcreate(H5P_DATASET_CREATE)), transfer = check(H5Pcreate(H5P_DATASET_XFER));
  check(H5Pset_obj_track_times(properties, 0));
  check(H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER));
  check(H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY));
  if (!is_naive) check(H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE));
  const hid_t dataset =
      check(reads ? H5Dopen2(file, name, H5P_DEFAULT)
                  : H5Dcreate2(file, name, H5T_IEEE_F64LE, in_file, H5P_DEFAULT, properties, H5P_DEFAULT));
  if (!reads) write_text(dataset, "units", units);
  check(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start + skip, NULL, count + skip, NULL));
  check(H5Sselect_hyperslab(in_memory, H5S_SELECT_SET, inner + skip, NULL, count + skip, NULL));
  if (reads)
    check(H5Dread(dataset, H5T_NATIVE_DOUBLE, in_memory, in_file, transfer, array));
  else
    check(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, in_memory, in_file, transfer, array));
  check(H5Dclose(dataset));
  check(H5Pclose(transfer));
  check(H5Pclose(properties));
  check(H5Sclose(in_memory));
  check(H5Sclose(in_file));
}

static void move_arrays(hid_t file) {
  move_array(file, "yspecies", yspecies, SPECIES, "1");
  move_array(file, "temp", temp, 1, "K");
  move_array(file, "pressure", pressure, 1, "Pa");
  move_array(file, "u", u, 3, "m/s");
}

static void write_files(const char* path) {
  const int version = 3;
  const hid_t access = check(H5Pcreate(H5P_FILE_ACCESS));
  check(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
  check(H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST));
  if (!is_naive) {
    check(H5Pset_all_coll_metadata_ops(access, 1));
    check(H5Pset_coll_metadata_write(access, 1));
  }
  const hid_t creation = check(H5Pcreate(H5P_FILE_CREATE));
  check(H5Pset_obj_track_times(creation, 0));
  const hid_t file = check(H5Fcreate(path, H5F_ACC_TRUNC, creation, access));
  check(H5Pclose(creation));
  check(H5Pclose(access));
  write_text(file, "title", "S3D-like checkpoint");
  write_attribute(file, "version", H5T_STD_I32LE, H5T_NATIVE_INT, &version);
  move_arrays(file);
  check(H5Fclose(file));
}

static void read_files(const char* path) {
  const hid_t access = check(H5Pcreate(H5P_FILE_ACCESS));
  check(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
  const hid_t file = check(H5Fopen(path, H5F_ACC_RDONLY, access));
  check(H5Pclose(access));
  move_arrays(file);
  check(H5Fclose(file));
}
