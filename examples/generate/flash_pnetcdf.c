/* What `iosig generate --level pnetcdf` makes of flash.c, by hand: variables posted without waiting, then written
   together; by_hand.h has the rest. */
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "by_hand.h"
#include "flash_state.h"

enum { MAX_VARIABLES = 6 + NVAR };

static int nc, count, variables[MAX_VARIABLES], requests[MAX_VARIABLES], statuses[MAX_VARIABLES];

static void check(int code) {
  if (code == NC_NOERR) return;
  fprintf(stderr, "%s\n", ncmpi_strerror(code));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void create(const char* path, const char* ending) {
  check(ncmpi_create(MPI_COMM_WORLD, name_of(path, ending), NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &nc));
  count = 0;
}

static void define(const char* name, nc_type type, int axes, const int* dims) {
  check(ncmpi_def_var(nc, name, type, axes, dims, &variables[count++]));
}

/* Writes an array, or posts it. */
static void put(int number, const MPI_Offset* start, const MPI_Offset* elements, const void* array, MPI_Datatype type) {
  if (is_naive)
    check(ncmpi_put_vara_all(nc, variables[number], start, elements, array, 1, type));
  else
    check(ncmpi_iput_vara(nc, variables[number], start, elements, array, 1, type, &requests[number]));
}

static void put_rows(int number, const void* array, MPI_Datatype element, int columns) {
  const MPI_Offset start[3] = {first_block, 0, 0}, elements[3] = {blocks, columns == 6 ? 3 : columns, 2};
  MPI_Datatype rows;
  MPI_Type_contiguous(blocks * columns, element, &rows);
  MPI_Type_commit(&rows);
  put(number, start, elements, array, rows);
  MPI_Type_free(&rows);
}

static void put_cells(int number, const void* array, int points, MPI_Datatype in_memory) {
  const MPI_Offset start[4] = {first_block, 0, 0, 0}, elements[4] = {blocks, points, points, points};
  put(number, start, elements, array, in_memory);
}

static void finish(void) {
  if (!is_naive) check(ncmpi_wait_all(nc, count, requests, statuses));
  for (int i = 0; !is_naive && i < count; i++) check(statuses[i]);
  check(ncmpi_close(nc));
}

/* One of the variables of `unk`, without guard cells. */
static MPI_Datatype new_inner_cells(void) {
  const int whole = edge + 2 * GUARD;
  const int sizes[5] = {ROOM, whole, whole, whole, NVAR}, local[5] = {blocks, edge, edge, edge, 1};
  const int starts[5] = {0, GUARD, GUARD, GUARD, 0};
  MPI_Datatype type;
  MPI_Type_create_subarray(5, sizes, local, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  return type;
}

static void write_checkpoint(const char* path) {
  static const char* const names[NVAR] = {"dens", "velx", "vely", "velz", "pres", "ener", "temp", "gamc",
                                          "game", "enuc", "gpot", "f1",   "f2",   "f3",   "f4",   "f5",
                                          "f6",   "f7",   "f8",   "f9",   "f10",  "f11",  "f12",  "f13"};
  const char title[] = "FLASH-like checkpoint";
  const int step = 42;
  const double now = 0.5;
  int blk, z, y, x, d, side, neighbour;
  create(path, "checkpoint");
  check(ncmpi_def_dim(nc, "blk", all_blocks, &blk));
  check(ncmpi_def_dim(nc, "z", edge, &z));
  check(ncmpi_def_dim(nc, "y", edge, &y));
  check(ncmpi_def_dim(nc, "x", edge, &x));
  check(ncmpi_def_dim(nc, "d", 3, &d));
  check(ncmpi_def_dim(nc, "side", 2, &side));
  check(ncmpi_def_dim(nc, "neighbour", NEIGHBOURS, &neighbour));
  check(ncmpi_put_att_text(nc, NC_GLOBAL, "title", (MPI_Offset)strlen(title), title));
  check(ncmpi_put_att_int(nc, NC_GLOBAL, "step", NC_INT, 1, &step));
  check(ncmpi_put_att_double(nc, NC_GLOBAL, "time", NC_DOUBLE, 1, &now));
  const int neighbours[2] = {blk, neighbour}, box[3] = {blk, d, side}, cells[4] = {blk, z, y, x};
  define("lrefine", NC_INT, 1, box);
  define("nodetype", NC_INT, 1, box);
  define("gid", NC_INT, 2, neighbours);
  define("coord", NC_DOUBLE, 2, box);
  define("size", NC_DOUBLE, 2, box);
  define("bnd_box", NC_DOUBLE, 3, box);
  for (int v = 0; v < NVAR; v++) define(names[v], NC_DOUBLE, 4, cells);
  check(ncmpi_enddef(nc));
  put_rows(0, lrefine, MPI_INT, 1);
  put_rows(1, nodetype, MPI_INT, 1);
  put_rows(2, gid, MPI_INT, NEIGHBOURS);
  put_rows(3, coord, MPI_DOUBLE, 3);
  put_rows(4, size, MPI_DOUBLE, 3);
  put_rows(5, bnd_box, MPI_DOUBLE, 6);
  MPI_Datatype inner = new_inner_cells();
  for (int v = 0; v < NVAR; v++) put_cells(6 + v, unk + v, edge, inner);
  MPI_Type_free(&inner);
  finish();
}

static void write_plot(const char* path, const char* ending, int points) {
  static const char* const names[PLOTTED] = {"dens", "pres", "ener", "temp"};
  int cells[4];
  create(path, ending);
  check(ncmpi_def_dim(nc, "blk", all_blocks, &cells[0]));
  check(ncmpi_def_dim(nc, "z", points, &cells[1]));
  check(ncmpi_def_dim(nc, "y", points, &cells[2]));
  check(ncmpi_def_dim(nc, "x", points, &cells[3]));
  for (int v = 0; v < PLOTTED; v++) define(names[v], NC_FLOAT, 4, cells);
  check(ncmpi_enddef(nc));
  MPI_Datatype in_memory;
  const size_t all = (size_t)points * points * points;
  if (points == edge) {
    in_memory = new_inner_cells();
    for (int v = 0; v < PLOTTED; v++) put_cells(v, unk + plotted[v], points, in_memory);
  } else {
    MPI_Type_contiguous((int)(blocks * all), MPI_FLOAT, &in_memory);
    MPI_Type_commit(&in_memory);
    for (int v = 0; v < PLOTTED; v++) put_cells(v, corners + v * ROOM * all, points, in_memory);
  }
  MPI_Type_free(&in_memory);
  finish();
}

static void write_files(const char* path) {
  write_checkpoint(path);
  write_plot(path, "centers", edge);
  write_plot(path, "corners", edge + 1);
}
