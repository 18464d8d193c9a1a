// Writes a file until BYTES are written, in one of several ways; what the kernel refuses ends it with status 1.
//
//   fill HOW PATH BYTES [PAUSE]
//
// The byte at offset N is N / 4096 + N, modulo 256. HOW: write, append, pwrite, writev, fallocate, stdio, dup, or what
// makes the file one that cannot be moved unseen: mapped, locked, reopened, shared (a child has it). `threads`: another
// thread overwrites the first 4096 bytes with ever greater numbers and prints the last one that the kernel accepted; it
// pauses for PAUSE microseconds after each.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { piece_bytes = 65536 };
static char piece[piece_bytes];
static int fd;
static atomic_int is_over;
static long accepted, pause_us;

static void make_piece(long at) {
  for (long n = 0; n < piece_bytes; ++n) piece[n] = (char)((at + n) / 4096 + at + n);
}

static void* count_up(void* none) {
  static long numbers[512];
  for (long n = 1; !is_over; ++n) {
    for (int k = 0; k < 512; ++k) numbers[k] = n;
    if (pwrite(fd, numbers, sizeof numbers, 0) == (ssize_t)sizeof numbers) accepted = n;
    if (pause_us > 0) usleep((unsigned)pause_us);
  }
  return none;
}

static int write_all(const char* how, long at) {
  for (long put = 0; put < piece_bytes;) {
    const char* rest = piece + put;
    size_t count = (size_t)(piece_bytes - put);
    struct iovec parts[2] = {{(void*)rest, count / 2}, {(void*)(rest + count / 2), count - count / 2}};
    ssize_t done = !strcmp(how, "pwrite")   ? pwrite(fd, rest, count, at + put)
                   : !strcmp(how, "writev") ? writev(fd, parts, 2)
                                            : write(fd, rest, count);
    if (done < 0) return perror(how), 1;
    put += done;
  }
  return 0;
}

int main(int argc, char** argv) {
  const char *how = argv[1], *path = argv[2];
  long bytes = argc > 3 ? atol(argv[3]) : 0;
  pause_us = argc > 4 ? atol(argv[4]) : 0;
  if (!strcmp(how, "stdio")) {
    FILE* file = fopen(path, "w");
    for (long at = 0; at < bytes; at += piece_bytes) {
      make_piece(at);
      if (fwrite(piece, piece_bytes, 1, file) != 1) return perror(how), 1;
    }
    return fclose(file) == 0 ? 0 : (perror(how), 1);
  }
  fd = open(path, O_CREAT | O_RDWR | O_TRUNC | (strcmp(how, "append") ? 0 : O_APPEND), 0640);
  if (fd < 0) return perror(path), 1;
  if (!strcmp(how, "dup")) fd = dup(fd);
  if (!strcmp(how, "reopened") && open(path, O_RDONLY) < 0) return 1;
  if (!strcmp(how, "locked") && lockf(fd, F_LOCK, 0) != 0) return 1;
  if (!strcmp(how, "mapped") && mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED) return 1;
  int ends[2];
  pid_t child = 0;
  if (!strcmp(how, "shared") && pipe(ends) == 0 && (child = fork()) == 0) {
    char end;
    close(ends[1]);
    _exit(read(ends[0], &end, 1) != 0);
  }
  pthread_t other;
  if (!strcmp(how, "threads")) {
    make_piece(0);
    if (write_all(how, 0) != 0) return 1;
    pthread_create(&other, NULL, count_up, NULL);
  }
  if (!strcmp(how, "fallocate")) {
    int failure = posix_fallocate(fd, 0, bytes);
    if (failure != 0) return errno = failure, perror(how), 1;
  }
  int status = 0;
  for (long at = strcmp(how, "threads") ? 0 : piece_bytes; at < bytes && status == 0; at += piece_bytes) {
    make_piece(at);
    status = write_all(how, at);
  }
  is_over = 1;
  if (!strcmp(how, "threads") && pthread_join(other, NULL) == 0) printf("%ld\n", accepted);
  if (child != 0) {
    close(ends[1]);
    waitpid(child, NULL, 0);
  }
  return status;
}
