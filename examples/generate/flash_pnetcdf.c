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

/* Posts an array that is written, or reads it. */
static void move(int number, const MPI_Offset* start, const MPI_Offset* elements, void* array, MPI_Datatype type) {
  if (is_naive)
    check(ncmpi_put_vara_all(nc, variables[number], start, elements, array, 1, type));
  else if (reads)
    check(ncmpi_get_vara_all(nc, variables[number], start, elements, array, 1, type));
  else
    check(ncmpi_iput_vara(nc, variables[number], start, elements, array, 1, type, &requests[number]));
}

static void move_rows(int number, void* array, MPI_Datatype element, int columns) {
  const MPI_Offset start[3] = {first_block, 0, 0}, elements[3] = {blocks, columns == 6 ? 3 : columns, 2};
  MPI_Datatype rows;
  MPI_Type_contiguous(blocks * columns, element, &rows);
  MPI_Type_commit(&rows);
  move(number, start, elements, array, rows);
  MPI_Type_free(&rows);
}

static void move_cells(int number, void* array, int points, MPI_Datatype in_memory) {
  const MPI_Offset start[4] = {first_block, 0, 0, 0}, elements[4] = {blocks, points, points, points};
  move(number, start, elements, array, in_memory);
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

static const char* const names[NVAR] = {"dens", "velx", "vely", "velz", "pres", "ener", "temp", "gamc",
                                        "game", "enuc", "gpot", "f1",   "f2",   "f3",   "f4",   "f5",
                                        "f6",   "f7",   "f8",   "f9",   "f10",  "f11",  "f12",  "f13"};
static const char* const mesh[6] = {"lrefine", "nodetype", "gid", "coord", "size", "bnd_box"};

static void move_checkpoint(void) {
  move_rows(0, lrefine, MPI_INT, 1);
  move_rows(1, nodetype, MPI_INT, 1);
  move_rows(2, gid, MPI_INT, NEIGHBOURS);
  move_rows(3, coord, MPI_DOUBLE, 3);
  move_rows(4, size, MPI_DOUBLE, 3);
  move_rows(5, bnd_box, MPI_DOUBLE, 6);
  MPI_Datatype inner = new_inner_cells();
  for (int v = 0; v < NVAR; v++) move_cells(6 + v, unk + v, edge, inner);
  MPI_Type_free(&inner);
}

static void write_checkpoint(const char* path) {
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
  define(mesh[0], NC_INT, 1, box);
  define(mesh[1], NC_INT, 1, box);
  define(mesh[2], NC_INT, 2, neighbours);
  define(mesh[3], NC_DOUBLE, 2, box);
  define(mesh[4], NC_DOUBLE, 2, box);
  define(mesh[5], NC_DOUBLE, 3, box);
  for (int v = 0; v < NVAR; v++) define(names[v], NC_DOUBLE, 4, cells);
  check(ncmpi_enddef(nc));
  move_checkpoint();
  finish();
}

static void write_plot(const char* path, const char* ending, int points) {
  int cells[4];
  create(path, ending);
  check(ncmpi_def_dim(nc, "blk", all_blocks, &cells[0]));
  check(ncmpi_def_dim(nc, "z", points, &cells[1]));
  check(ncmpi_def_dim(nc, "y", points, &cells[2]));
  check(ncmpi_def_dim(nc, "x", points, &cells[3]));
  for (int v = 0; v < PLOTTED; v++) define(names[plotted[v]], NC_FLOAT, 4, cells);
  check(ncmpi_enddef(nc));
  MPI_Datatype in_memory;
  const size_t all = (size_t)points * points * points;
  if (points == edge) {
    in_memory = new_inner_cells();
    for (int v = 0; v < PLOTTED; v++) move_cells(v, unk + plotted[v], points, in_memory);
  } else {
    MPI_Type_contiguous((int)(blocks * all), MPI_FLOAT, &in_memory);
    MPI_Type_commit(&in_memory);
    for (int v = 0; v < PLOTTED; v++) move_cells(v, corners + v * ROOM * all, points, in_memory);
  }
  MPI_Type_free(&in_memory);
  finish();
}

static void write_files(const char* path) {
  write_checkpoint(path);
  write_plot(path, "centers", edge);
  write_plot(path, "corners", edge + 1);
}

static void read_files(const char* path) {
  check(ncmpi_open(MPI_COMM_WORLD, name_of(path, "checkpoint"), NC_NOWRITE, MPI_INFO_NULL, &nc));
  for (int i = 0; i < MAX_VARIABLES; i++) check(ncmpi_inq_varid(nc, i < 6 ? mesh[i] : names[i - 6], &variables[i]));
  move_checkpoint();
  check(ncmpi_close(nc));
}
