/* What `iosig generate --level pnetcdf` makes of s3d.c, by hand: variables posted without waiting, then written
   together; by_hand.h has the rest. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "by_hand.h"
#include "s3d_state.h"

static void check(int code) {
  if (code == NC_NOERR) return;
  fprintf(stderr, "%s\n", ncmpi_strerror(code));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int define(int nc, const char* name, int axes, const int* dims, const char* units) {
  int variable;
  check(ncmpi_def_var(nc, name, NC_DOUBLE, axes, dims, &variable));
  check(ncmpi_put_att_text(nc, variable, "units", (MPI_Offset)strlen(units), units));
  return variable;
}

/* Posts an array that is written, or reads it. */
static void move(int nc, int variable, double* array, int components, int* request) {
  const MPI_Offset start[4] = {0, mine[0] * edge, mine[1] * edge, mine[2] * edge},
                   count[4] = {components, edge, edge, edge};
  const int skip = components == 1; /* an array of one component has three axes */
  const int whole = edge + 2 * GHOST;
  const int sizes[4] = {components, whole, whole, whole}, local[4] = {components, edge, edge, edge};
  const int inner[4] = {0, GHOST, GHOST, GHOST};
  MPI_Datatype in_memory;
  MPI_Type_create_subarray(4, sizes, local, inner, MPI_ORDER_C, MPI_DOUBLE, &in_memory);
  MPI_Type_commit(&in_memory);
  if (is_naive)
    check(ncmpi_put_vara_all(nc, variable, start + skip, count + skip, array, 1, in_memory));
  else if (reads)
    check(ncmpi_get_vara_all(nc, variable, start + skip, count + skip, array, 1, in_memory));
  else
    check(ncmpi_iput_vara(nc, variable, start + skip, count + skip, array, 1, in_memory, request));
  MPI_Type_free(&in_memory);
}

static void write_files(const char* path) {
  int nc, s, d, z, y, x, variables[4], requests[4], statuses[4];
  const int version = 3;
  const char title[] = "S3D-like checkpoint";
  check(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &nc));
  check(ncmpi_def_dim(nc, "s", SPECIES, &s));
  check(ncmpi_def_dim(nc, "d", 3, &d));
  check(ncmpi_def_dim(nc, "z", (MPI_Offset)edge * blocks[0], &z));
  check(ncmpi_def_dim(nc, "y", (MPI_Offset)edge * blocks[1], &y));
  check(ncmpi_def_dim(nc, "x", (MPI_Offset)edge * blocks[2], &x));
  check(ncmpi_put_att_text(nc, NC_GLOBAL, "title", (MPI_Offset)strlen(title), title));
  check(ncmpi_put_att_int(nc, NC_GLOBAL, "version", NC_INT, 1, &version));
  const int species_axes[4] = {s, z, y, x}, velocity_axes[4] = {d, z, y, x};
  variables[0] = define(nc, "yspecies", 4, species_axes, "1");
  variables[1] = define(nc, "temp", 3, species_axes + 1, "K");
  variables[2] = define(nc, "pressure", 3, species_axes + 1, "Pa");
  variables[3] = define(nc, "u", 4, velocity_axes, "m/s");
  check(ncmpi_enddef(nc));
  move(nc, variables[0], yspecies, SPECIES, &requests[0]);
  move(nc, variables[1], temp, 1, &requests[1]);
  move(nc, variables[2], pressure, 1, &requests[2]);
  move(nc, variables[3], u, 3, &requests[3]);
  if (!is_naive) check(ncmpi_wait_all(nc, 4, requests, statuses));
  for (int i = 0; !is_naive && i < 4; i++) check(statuses[i]);
  check(ncmpi_close(nc));
}

static void read_array(int nc, const char* name, double* array, int components) {
  int variable;
  check(ncmpi_inq_varid(nc, name, &variable));
  move(nc, variable, array, components, NULL);
}

static void read_files(const char* path) {
  int nc;
  check(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &nc));
  read_array(nc, "yspecies", yspecies, SPECIES);
  read_array(nc, "temp", temp, 1);
  read_array(nc, "pressure", pressure, 1);
  read_array(nc, "u", u, 3);
  check(ncmpi_close(nc));
}
