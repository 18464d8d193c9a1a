// A parallel HDF5 program: a contiguous dataset that every rank writes its rows of, and a chunked one whose columns the
// ranks write in turns, both collectively and independently.
//
//   hdf5_client FILE write|read
//
// Exit status 1, and a line, if other numbers come back than were written.
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { rows = 12, columns = 40 };  // of each rank

static int rank, ranks;

static void check(long long is_right, const char* what) {
  if (is_right >= 0) return;
  fprintf(stderr, "rank %d of %d: %s\n", rank, ranks, what);
  MPI_Abort(MPI_COMM_WORLD, 2);
}
#define DO(call) check((long long)(call), #call)

static int number(hsize_t row, hsize_t column, int salt) { return (int)(row * 100003 + column * 17) ^ salt; }

/// Rank's part of the dataset `name` of `rows * ranks` times `columns * ranks`: its rows, or every ranks-th column.
static int part(hid_t file, const char* name, int writes, int by_columns, int collective, int salt) {
  const hsize_t whole[2] = {(hsize_t)rows * ranks, (hsize_t)columns * ranks}, chunk[2] = {5, 16};
  const hsize_t start[2] = {by_columns ? 0 : (hsize_t)rank * rows, by_columns ? (hsize_t)rank : 0};
  const hsize_t stride[2] = {1, by_columns ? (hsize_t)ranks : 1};
  const hsize_t count[2] = {by_columns ? whole[0] : rows, by_columns ? columns : whole[1]};
  const size_t numbers = (size_t)(count[0] * count[1]);
  hid_t in_file = H5Screate_simple(2, whole, NULL), in_memory = H5Screate_simple(2, count, NULL);
  hid_t making = H5Pcreate(H5P_DATASET_CREATE), transfer = H5Pcreate(H5P_DATASET_XFER), data;
  int *mine = malloc(numbers * sizeof(int)), *back = calloc(numbers, sizeof(int));
  for (hsize_t row = 0; row < count[0]; ++row)
    for (hsize_t column = 0; column < count[1]; ++column)
      mine[row * count[1] + column] = number(start[0] + row, start[1] + column * stride[1], salt);
  DO(H5Pset_obj_track_times(making, 0));  // the same bytes every time
  if (by_columns) DO(H5Pset_chunk(making, 2, chunk));
  DO(H5Pset_dxpl_mpio(transfer, collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT));
  DO(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, stride, count, NULL));
  if (writes) {
    DO(data = H5Dcreate2(file, name, H5T_STD_I32LE, in_file, H5P_DEFAULT, making, H5P_DEFAULT));
    DO(H5Dwrite(data, H5T_NATIVE_INT, in_memory, in_file, transfer, mine));
    DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
    MPI_Barrier(MPI_COMM_WORLD);
  } else {
    DO(data = H5Dopen2(file, name, H5P_DEFAULT));
  }
  DO(H5Dread(data, H5T_NATIVE_INT, in_memory, in_file, transfer, back));
  const int is_wrong = memcmp(mine, back, numbers * sizeof(int)) != 0;
  if (is_wrong) fprintf(stderr, "rank %d of %d: other numbers in %s\n", rank, ranks, name);
  DO(H5Dclose(data));
  DO(H5Sclose(in_file));
  DO(H5Sclose(in_memory));
  DO(H5Pclose(making));
  DO(H5Pclose(transfer));
  free(mine);
  free(back);
  return is_wrong;
}

int main(int count, char** words) {
  hid_t access, file;
  int wrong = 0, all;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int writes = strcmp(words[2], "write") == 0;
  DO(access = H5Pcreate(H5P_FILE_ACCESS));
  DO(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
  DO(file =
         writes ? H5Fcreate(words[1], H5F_ACC_TRUNC, H5P_DEFAULT, access) : H5Fopen(words[1], H5F_ACC_RDONLY, access));
  wrong |= part(file, "contiguous", writes, 0, 1, 1);
  wrong |= part(file, "contiguous_independent", writes, 0, 0, 2);
  wrong |= part(file, "chunked", writes, 1, 1, 3);
  wrong |= part(file, "chunked_independent", writes, 1, 0, 4);
  DO(H5Pclose(access));
  DO(H5Fclose(file));
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all != 0;
}
