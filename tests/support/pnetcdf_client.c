// A PnetCDF program: a fixed variable, and record variables that grow, written collectively, independently and without
// waiting.
//
//   pnetcdf_client FILE write|read
//
// Exit status 1, and a line, if other numbers come back than were written.
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { records = 6, cells = 50 };  // cells of each rank

static int rank, ranks;

static void did(int status, const char* what) {
  if (status == NC_NOERR) return;
  fprintf(stderr, "rank %d of %d: %s: %s\n", rank, ranks, what, ncmpi_strerror(status));
  MPI_Abort(MPI_COMM_WORLD, 2);
}
#define DO(call) did(call, #call)

/// What this rank writes into a variable, record by record.
static void fill(int* numbers, int salt) {
  for (int n = 0; n < records * cells; ++n) numbers[n] = (n * 7919 + rank * 104729) ^ salt;
}

static void put(const char* path, int (*numbers)[records * cells]) {
  int file, dimensions[2], variables[3], requests[records];
  const char* names[3] = {"collective", "independent", "nonblocking"};
  DO(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
  DO(ncmpi_def_dim(file, "record", NC_UNLIMITED, &dimensions[0]));
  DO(ncmpi_def_dim(file, "cell", (MPI_Offset)cells * ranks, &dimensions[1]));
  for (int n = 0; n < 3; ++n) DO(ncmpi_def_var(file, names[n], NC_INT, 2, dimensions, &variables[n]));
  DO(ncmpi_put_att_text(file, NC_GLOBAL, "title", 7, "records"));
  DO(ncmpi_enddef(file));
  // Cells in turns: a stride in the innermost dimension.
  const MPI_Offset start[2] = {0, rank}, count[2] = {records, cells}, stride[2] = {1, ranks};
  DO(ncmpi_put_vars_int_all(file, variables[0], start, count, stride, numbers[0]));
  DO(ncmpi_begin_indep_data(file));
  for (int n = 0; n < records; ++n) {
    const MPI_Offset at[2] = {n, (MPI_Offset)rank * cells}, one[2] = {1, cells};
    DO(ncmpi_put_vara_int(file, variables[1], at, one, numbers[1] + n * cells));
  }
  DO(ncmpi_end_indep_data(file));
  for (int n = 0; n < records; ++n) {
    const MPI_Offset at[2] = {n, (MPI_Offset)rank * cells}, one[2] = {1, cells};
    DO(ncmpi_iput_vara_int(file, variables[2], at, one, numbers[2] + n * cells, &requests[n]));
  }
  DO(ncmpi_wait_all(file, records, requests, NULL));
  DO(ncmpi_close(file));
}

static int get(const char* path, int (*numbers)[records * cells]) {
  int file, wrong = 0, back[records * cells];
  DO(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &file));
  for (int n = 0; n < 3; ++n) {
    const MPI_Offset start[2] = {0, n == 0 ? rank : (MPI_Offset)rank * cells}, count[2] = {records, cells};
    const MPI_Offset stride[2] = {1, n == 0 ? ranks : 1};
    memset(back, 0, sizeof back);
    DO(ncmpi_get_vars_int_all(file, n, start, count, stride, back));
    if (memcmp(back, numbers[n], sizeof back) == 0) continue;
    fprintf(stderr, "rank %d of %d: other numbers in variable %d\n", rank, ranks, n);
    wrong = 1;
  }
  DO(ncmpi_close(file));
  return wrong;
}

int main(int count, char** words) {
  int numbers[3][records * cells], wrong, all;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int n = 0; n < 3; ++n) fill(numbers[n], n + 1);
  if (strcmp(words[2], "write") == 0) put(words[1], numbers);
  wrong = get(words[1], numbers);
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all != 0;
}
