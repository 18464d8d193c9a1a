// The MPI-IO calls that parallel programs make, each part on a file of its own in DIRECTORY:
//
//   mpi_client DIRECTORY write|read [PART...]
//
// `write` makes the files and reads them back while they are open; `read` opens them again, with as many ranks. The
// bytes of each file are the same for every file system, MPI library and order of events, so that files can be
// compared. `killed` is done only when it is named. Exit status 1, and a line for what was not as MPI says, if anything
// was not.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, wrong;
static const char* part;

static void check(int is_right, const char* what, long at) {
  if (is_right) return;
  if (++wrong <= 5) fprintf(stderr, "%s, rank %d of %d: %s, at %ld\n", part, rank, ranks, what, at);
}

static void did(int status, const char* what) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  if (status == MPI_SUCCESS) return;
  MPI_Error_string(status, text, &length);
  fprintf(stderr, "%s, rank %d of %d: %s: %s\n", part, rank, ranks, what, text);
  MPI_Abort(MPI_COMM_WORLD, 2);
}
#define DO(call) did(call, #call)

/// The n-th byte that `writer` writes.
static unsigned char byte_of(int writer, long n) {
  return (unsigned char)((n * 2654435761u) >> 13 ^ (writer * 37 + 1));
}

static unsigned char* data_of(int writer, long bytes) {
  unsigned char* data = malloc(bytes > 0 ? bytes : 1);
  for (long n = 0; n < bytes; ++n) data[n] = byte_of(writer, n);
  return data;
}

static void check_data(const unsigned char* data, int writer, long first, long bytes) {
  for (long n = 0; n < bytes; ++n)
    if (data[n] != byte_of(writer, first + n)) {
      check(0, "other bytes than were written", first + n);
      return;
    }
}

static MPI_File opened(const char* path, int writes) {
  MPI_File file;
  DO(MPI_File_open(MPI_COMM_WORLD, path, writes ? MPI_MODE_CREATE | MPI_MODE_RDWR : MPI_MODE_RDONLY, MPI_INFO_NULL,
                   &file));
  return file;
}

/// All ranks go on together, so that a file is not opened again while another rank still closes it.
static void closed(MPI_File* file) {
  DO(MPI_File_close(file));
  MPI_Barrier(MPI_COMM_WORLD);
}

/// What every rank has written, every rank reads from here on.
static void agree(MPI_File file) {
  DO(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  DO(MPI_File_sync(file));
}

/// N-1 strided, small and large blocks; each rank reads its own and another's.
static void independent(const char* path, int writes) {
  enum { small = 64, count = 200, large = 100001 };
  MPI_File file = opened(path, writes);
  const MPI_Offset base = (MPI_Offset)small * count * ranks;
  unsigned char* data = data_of(rank, large);
  if (writes) {
    for (int n = 0; n < count; ++n)
      DO(MPI_File_write_at(file, ((MPI_Offset)n * ranks + rank) * small, data + n * small, small, MPI_BYTE,
                           MPI_STATUS_IGNORE));
    DO(MPI_File_write_at(file, base + (MPI_Offset)rank * large, data, large, MPI_BYTE, MPI_STATUS_IGNORE));
    agree(file);
  }
  for (int of = rank; of <= rank + 1; ++of) {
    const int writer = of % ranks;
    for (int n = 0; n < count; ++n) {
      DO(MPI_File_read_at(file, ((MPI_Offset)n * ranks + writer) * small, data, small, MPI_BYTE, MPI_STATUS_IGNORE));
      check_data(data, writer, n * small, small);
    }
    DO(MPI_File_read_at(file, base + (MPI_Offset)writer * large, data, large, MPI_BYTE, MPI_STATUS_IGNORE));
    check_data(data, writer, 0, large);
  }
  free(data);
  closed(&file);
}

/// Through a view of `type`, `times` times its `count` ints: collectively, or each rank when it likes. The file gets
/// its size before: ROMIO fills gaps behind the end with whatever its buffer holds.
static void through_view(const char* path, int writes, MPI_Datatype type, int count, int times, int collective) {
  const long bytes = (long)count * sizeof(int);
  MPI_File file = opened(path, writes);
  MPI_Aint lower, extent;
  DO(MPI_Type_commit(&type));
  DO(MPI_Type_get_extent(type, &lower, &extent));
  if (writes) DO(MPI_File_set_size(file, 96 + times * extent));
  DO(MPI_File_set_view(file, 96, MPI_INT, type, "native", MPI_INFO_NULL));
  unsigned char* data = data_of(rank, bytes * times);
  for (int n = 0; writes && n < times; ++n)
    if (collective)
      DO(MPI_File_write_all(file, data + n * bytes, count, MPI_INT, MPI_STATUS_IGNORE));
    else
      DO(MPI_File_write(file, data + n * bytes, count, MPI_INT, MPI_STATUS_IGNORE));
  if (writes) agree(file);
  DO(MPI_File_seek(file, 0, MPI_SEEK_SET));
  for (int n = 0; n < times; ++n) {
    memset(data, 0, bytes);
    if (collective)
      DO(MPI_File_read_all(file, data, count, MPI_INT, MPI_STATUS_IGNORE));
    else
      DO(MPI_File_read(file, data, count, MPI_INT, MPI_STATUS_IGNORE));
    check_data(data, rank, n * bytes, bytes);
  }
  free(data);
  MPI_Type_free(&type);
  closed(&file);
}

static MPI_Datatype every_third_of_ranks(void) {
  MPI_Datatype blocks, shifted, type;
  const MPI_Aint at = (MPI_Aint)rank * 3 * sizeof(int);
  const int one = 1;
  MPI_Type_vector(50, 3, 3 * ranks, MPI_INT, &blocks);
  MPI_Type_create_hindexed(1, &one, &at, blocks, &shifted);
  MPI_Type_create_resized(shifted, 0, (MPI_Aint)50 * 3 * ranks * sizeof(int), &type);
  MPI_Type_free(&blocks);
  MPI_Type_free(&shifted);
  return type;
}
static void vector_all(const char* path, int writes) { through_view(path, writes, every_third_of_ranks(), 150, 4, 1); }
/// Where the MPI library reads, changes and writes back what lies between (data sieving), under a lock.
static void vector_each(const char* path, int writes) { through_view(path, writes, every_third_of_ranks(), 150, 4, 0); }

static void subarray(const char* path, int writes) {
  int grid[2] = {0, 0};
  MPI_Datatype type;
  MPI_Dims_create(ranks, 2, grid);
  const int whole[3] = {grid[0] * 6, grid[1] * 5, 7}, mine[3] = {6, 5, 7};
  const int start[3] = {rank / grid[1] * 6, rank % grid[1] * 5, 0};
  MPI_Type_create_subarray(3, whole, mine, start, MPI_ORDER_C, MPI_INT, &type);
  through_view(path, writes, type, 6 * 5 * 7, 3, 1);
}

static void darray(const char* path, int writes) {
  int grid[2] = {0, 0}, bytes;
  const int whole[2] = {37, 41}, how[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
  const int with[2] = {2, MPI_DISTRIBUTE_DFLT_DARG};
  MPI_Datatype type;
  MPI_Dims_create(ranks, 2, grid);
  MPI_Type_create_darray(ranks, rank, 2, whole, how, with, grid, MPI_ORDER_C, MPI_INT, &type);
  MPI_Type_size(type, &bytes);
  through_view(path, writes, type, bytes / (int)sizeof(int), 2, 1);
}

/// Places without a rule, apart from each other and from other ranks'.
static void indexed(const char* path, int writes) {
  enum { count = 300 };
  int places[count], at = 0;
  MPI_Datatype blocks, type;
  for (int n = 0; n < count; ++n) {
    places[n] = (at * ranks + rank) * 2;
    at += 1 + n * 7919 % 5;
  }
  MPI_Type_create_indexed_block(count, 2, places, MPI_INT, &blocks);
  MPI_Type_create_resized(blocks, 0, (MPI_Aint)at * ranks * 2 * sizeof(int), &type);
  MPI_Type_free(&blocks);
  through_view(path, writes, type, count * 2, 2, 1);
}

static void nonblocking(const char* path, int writes) {
  enum { count = 16, block = 3000 };
  MPI_Request requests[count];
  MPI_File file = opened(path, writes);
  unsigned char *data = data_of(rank, (long)count * block), *back = calloc(count, block);
  const MPI_Offset round = (MPI_Offset)ranks * block;
  for (int n = 0; writes && n < count; ++n)
    DO(MPI_File_iwrite_at(file, n * round + rank * block, data + n * block, block, MPI_BYTE, &requests[n]));
  if (writes) MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  if (writes) {
    DO(MPI_File_write_at_all_begin(file, count * round + rank * block, data, block, MPI_BYTE));
    DO(MPI_File_write_at_all_end(file, data, MPI_STATUS_IGNORE));
    // Not MPI_File_iwrite_at_all: the ROMIO of Open MPI 4.1 crashes in it.
    DO(MPI_File_write_at_all(file, (count + 1) * round + rank * block, data, block, MPI_BYTE, MPI_STATUS_IGNORE));
    agree(file);
  }
  for (int n = 0; n < count; ++n)
    DO(MPI_File_iread_at(file, n * round + rank * block, back + n * block, block, MPI_BYTE, &requests[n]));
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  check_data(back, rank, 0, (long)count * block);
  DO(MPI_File_read_at_all(file, (count + 1) * round + rank * block, back, block, MPI_BYTE, MPI_STATUS_IGNORE));
  check_data(back, rank, 0, block);
  free(data);
  free(back);
  closed(&file);
}

/// The file pointer that all ranks share: no record is lost; in order of ranks if it is asked for.
static void shared_pointer(const char* path, int writes) {
  enum { count = 20, block = 512 };
  MPI_File file = opened(path, writes);
  unsigned char *common = data_of(-1, block), *mine = data_of(rank, block);
  MPI_Offset size;
  if (writes) {
    for (int n = 0; n < count; ++n) DO(MPI_File_write_shared(file, common, block, MPI_BYTE, MPI_STATUS_IGNORE));
    agree(file);
    DO(MPI_File_write_ordered(file, mine, block, MPI_BYTE, MPI_STATUS_IGNORE));
    agree(file);
  }
  DO(MPI_File_get_size(file, &size));
  check(size == (MPI_Offset)ranks * (count + 1) * block, "size", (long)size);
  DO(MPI_File_seek_shared(file, (MPI_Offset)ranks * count * block, MPI_SEEK_SET));
  DO(MPI_File_read_ordered(file, mine, block, MPI_BYTE, MPI_STATUS_IGNORE));
  check_data(mine, rank, 0, block);
  free(common);
  free(mine);
  closed(&file);
}

/// In atomic mode a read gets all of one rank's write, or nothing of it.
static void atomic_mode(const char* path, int writes) {
  enum { bytes = 20000, times = 15 };
  MPI_File file = opened(path, writes);
  unsigned char* data = malloc(bytes);
  if (writes) {
    DO(MPI_File_set_atomicity(file, 1));
    for (int n = 0; n < times; ++n) {
      memset(data, 1 + rank, bytes);
      DO(MPI_File_write_at(file, 100, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
      memset(data, 0, bytes);
      DO(MPI_File_read_at(file, 100, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
      for (long at = 0; at < bytes; ++at) check(data[at] == data[0] && data[0] != 0, "bytes of two writes", at);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    memset(data, 200, bytes);
    if (rank == 0) DO(MPI_File_write_at(file, 100, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  DO(MPI_File_read_at(file, 100, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  for (long at = 0; at < bytes; ++at) check(data[at] == 200, "not the last write", at);
  free(data);
  closed(&file);
}

/// The ranks write the same bytes one after the other, sync-barrier-sync between them.
static void overlapping(const char* path, int writes) {
  enum { bytes = 5000 };
  MPI_File file = opened(path, writes);
  unsigned char* data = data_of(rank, bytes);
  for (int turn = 0; writes && turn < 2 * ranks; ++turn) {
    const int writer = turn % ranks;
    unsigned char* back = calloc(1, bytes);
    if (rank == writer) DO(MPI_File_write_at(file, 10 * turn, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    agree(file);
    DO(MPI_File_read_at(file, 10 * turn, back, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    check_data(back, writer, 0, bytes);
    agree(file);
    free(back);
  }
  DO(MPI_File_read_at_all(file, 10 * (2 * ranks - 1), data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  check_data(data, ranks - 1, 0, bytes);
  free(data);
  closed(&file);
}

static void sizes(const char* path, int writes) {
  MPI_File file = opened(path, writes);
  MPI_Offset size;
  if (writes) {
    unsigned char* data = data_of(rank, 1000);
    DO(MPI_File_set_size(file, 300000));
    DO(MPI_File_get_size(file, &size));
    check(size == 300000, "size after it was set", (long)size);
    MPI_Barrier(MPI_COMM_WORLD);  // OMPIO's collectives let the first of them go on
    DO(MPI_File_write_at_all(file, 150000 + rank * 1000, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    DO(MPI_File_set_size(file, 150500));
    DO(MPI_File_set_size(file, 200000));
    DO(MPI_File_set_size(file, 250000));
    closed(&file);
    DO(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_APPEND, MPI_INFO_NULL, &file));
    DO(MPI_File_get_position(file, &size));
    check(size == 250000, "position of who appends", (long)size);
    if (rank == 0) DO(MPI_File_write(file, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE));
    agree(file);
    free(data);
  }
  unsigned char* back = malloc(300000);
  MPI_Status status;
  int got;
  DO(MPI_File_get_size(file, &size));
  check(size == 251000, "size", (long)size);
  DO(MPI_File_read_at(file, 0, back, 300000, MPI_BYTE, &status));  // MPICH 4.0 tells a wrong count of a collective one
  MPI_Get_count(&status, MPI_BYTE, &got);
  check(got == 251000, "bytes up to the end", got);
  for (long at = 0; at < 250000; ++at)
    if (at < 150000 || at >= 150500) check(back[at] == 0, "no zero in a hole", at);
  check_data(back + 150000, 0, 0, 500);
  check_data(back + 250000, 0, 0, 1000);
  free(back);
  closed(&file);
}

/// Room before it is written; what is there stays. (OMPIO 4.1 then mixes up the collective calls that follow.)
static void preallocate(const char* path, int writes) {
  MPI_File file = opened(path, writes);
  MPI_Offset size;
  unsigned char* data = data_of(rank, 1000);
  if (writes) DO(MPI_File_write_at_all(file, rank * 1000, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE));
  if (writes) DO(MPI_File_preallocate(file, 50000));
  DO(MPI_File_get_size(file, &size));
  check(size == 50000, "size", (long)size);
  DO(MPI_File_read_at_all(file, rank * 1000, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE));
  check_data(data, rank, 0, 1000);
  free(data);
  closed(&file);
}

/// Names: what is not there, what is there already, and what is to go. (Not every rank of OMPIO 4.1 learns why not.)
static void names(const char* path, int writes) {
  char other[4096];
  MPI_File file;
  if (!writes) return;
  snprintf(other, sizeof other, "%s.other", path);
  int status = MPI_File_open(MPI_COMM_WORLD, other, MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  check(status != MPI_SUCCESS, "opened what is not there", 0);
  MPI_Barrier(MPI_COMM_WORLD);
  const int once = MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR;
  DO(MPI_File_open(MPI_COMM_WORLD, path, once, MPI_INFO_NULL, &file));
  closed(&file);
  status = MPI_File_open(MPI_COMM_WORLD, path, once, MPI_INFO_NULL, &file);
  check(status != MPI_SUCCESS, "made what is there", 0);
  MPI_Barrier(MPI_COMM_WORLD);
  DO(MPI_File_open(MPI_COMM_WORLD, other, once | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
  DO(MPI_File_write_at(file, rank, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE));
  closed(&file);
  status = MPI_File_delete(other, MPI_INFO_NULL);
  check(status != MPI_SUCCESS, "deleted what was to go on close", 0);
  MPI_Barrier(MPI_COMM_WORLD);
  DO(MPI_File_open(MPI_COMM_WORLD, other, once, MPI_INFO_NULL, &file));
  closed(&file);
  if (rank == 0) DO(MPI_File_delete(other, MPI_INFO_NULL));
}

/// Each rank opens the common file for itself.
static void alone(const char* path, int writes) {
  MPI_File file;
  MPI_Barrier(MPI_COMM_WORLD);
  DO(MPI_File_open(MPI_COMM_SELF, path, writes ? MPI_MODE_CREATE | MPI_MODE_RDWR : MPI_MODE_RDONLY, MPI_INFO_NULL,
                   &file));
  unsigned char* data = data_of(rank, 700);
  if (writes) DO(MPI_File_write_at(file, rank * 700, data, 700, MPI_BYTE, MPI_STATUS_IGNORE));
  memset(data, 0, 700);
  DO(MPI_File_read_at(file, rank * 700, data, 700, MPI_BYTE, MPI_STATUS_IGNORE));
  check_data(data, rank, 0, 700);
  free(data);
  closed(&file);
}

/// MPI 4's calls with large counts.
static void large_counts(const char* path, int writes) {
#if MPI_VERSION >= 4
  enum { bytes = 70000 };
  MPI_File file = opened(path, writes);
  MPI_Datatype blocks, type;
  unsigned char* data = data_of(rank, bytes);
  if (writes) DO(MPI_File_write_at_c(file, (MPI_Offset)rank * bytes, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  MPI_Type_vector(bytes / 100, 100, 100 * ranks, MPI_BYTE, &blocks);  // MPICH 4.0 takes none of MPI_Type_vector_c
  MPI_Type_create_resized(blocks, 0, (MPI_Aint)bytes * ranks, &type);
  MPI_Type_commit(&type);
  const MPI_Offset begin = (MPI_Offset)ranks * bytes;
  DO(MPI_File_set_view(file, begin + rank * 100, MPI_BYTE, type, "native", MPI_INFO_NULL));
  if (writes) {
    DO(MPI_File_write_all_c(file, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_Request request;
    DO(MPI_File_iwrite_at_all_c(file, bytes, data, bytes, MPI_BYTE, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (writes) agree(file);
  memset(data, 0, bytes);
  DO(MPI_File_read_at_all_c(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  check_data(data, rank, 0, bytes);
  DO(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  const int other = (rank + 1) % ranks;
  DO(MPI_File_read_at_c(file, (MPI_Offset)other * bytes, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  check_data(data, other, 0, bytes);
  MPI_Type_free(&type);
  MPI_Type_free(&blocks);
  free(data);
  closed(&file);
#else
  (void)path;
  (void)writes;
#endif
}

/// Everything is written and synced when the last rank is killed; the launcher kills the others.
static void killed(const char* path, int writes) {
  enum { small = 64, count = 1000 };
  MPI_File file = opened(path, writes);
  unsigned char* data = data_of(rank, small * count);
  for (int n = 0; n < count; ++n)
    DO(MPI_File_write_at(file, ((MPI_Offset)n * ranks + rank) * small, data + n * small, small, MPI_BYTE,
                         MPI_STATUS_IGNORE));
  agree(file);
  if (rank == ranks - 1) raise(SIGKILL);
  MPI_Barrier(MPI_COMM_WORLD);
}

static const struct {
  const char* name;
  void (*run)(const char* path, int writes);
} parts[] = {
    {"independent", independent},
    {"vector_all", vector_all},
    {"vector_each", vector_each},
    {"subarray", subarray},
    {"darray", darray},
    {"indexed", indexed},
    {"nonblocking", nonblocking},
    {"shared_pointer", shared_pointer},
    {"atomic_mode", atomic_mode},
    {"overlapping", overlapping},
    {"sizes", sizes},
    {"names", names},
    {"killed", killed},
    {"alone", alone},
    {"large_counts", large_counts},
};

int main(int count, char** words) {
  int all;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (size_t n = 0; n < sizeof parts / sizeof *parts; ++n) {
    char path[4096];
    int is_wanted = count <= 3 && parts[n].run != killed;
    for (int word = 3; word < count; ++word) is_wanted |= strcmp(words[word], parts[n].name) == 0;
    if (!is_wanted) continue;
    part = parts[n].name;
    snprintf(path, sizeof path, "%s/%s.dat", words[1], part);
    parts[n].run(path, strcmp(words[2], "write") == 0);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all != 0;
}
