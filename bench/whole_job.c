// The job of bench/whole_job.py: passes over a file, of which every second one reads; a random pass visits each block
// once. After each pass it thinks, so that it does for THINK_SECONDS in all. It prints the seconds that this took,
// without those in which it makes the bytes to write and the order of the blocks: that is no I/O.
// whole_job PATH TOTAL_BYTES BYTES_PER_IO sequential|random sync|nosync PASSES THINK_SECONDS
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t next_random(uint64_t* state) {  // xorshift64*: Vigna, ACM TOMS 42 (2016), 30
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 2685821657736338717u;
}

static void stop(const char* what) {
  fprintf(stderr, "whole_job: %s: %s\n", what, strerror(errno));
  exit(1);
}

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void shuffle(uint64_t* order, uint64_t blocks, int random, uint64_t* state) {
  for (uint64_t i = 0; i < blocks; ++i) order[i] = i;
  for (uint64_t i = blocks; random && i > 1; --i) {
    const uint64_t other = next_random(state) % i, held = order[i - 1];
    order[i - 1] = order[other];
    order[other] = held;
  }
}

int main(int count, char** words) {
  if (count != 8) return 2;
  const uint64_t total = strtoull(words[2], NULL, 10), size = strtoull(words[3], NULL, 10), blocks = total / size;
  const int random = strcmp(words[4], "random") == 0, sync = strcmp(words[5], "sync") == 0, passes = atoi(words[6]);
  const useconds_t think_us = (useconds_t)(1e6 * atof(words[7]) / passes);
  char* const data = malloc(size);
  uint64_t* const order = malloc(blocks * sizeof *order);
  if (!data || !order) stop("memory");
  uint64_t state = 88172645463325252u;
  for (uint64_t i = 0; i < size; ++i) data[i] = (char)next_random(&state);
  shuffle(order, blocks, random, &state);
  const double begin_s = now_s();
  double shuffling_s = 0;
  const int fd = open(words[1], O_CREAT | O_RDWR, 0644);
  if (fd < 0) stop("open");
  if (random && ftruncate(fd, (off_t)total) != 0) stop("ftruncate");
  for (int pass = 0; pass < passes; ++pass) {
    if (pass > 0) {
      const double shuffle_begin_s = now_s();
      shuffle(order, blocks, random, &state);
      shuffling_s += now_s() - shuffle_begin_s;
    }
    for (uint64_t i = 0; i < blocks; ++i) {
      const off_t at = (off_t)(order[i] * size);
      const ssize_t moved = pass % 2 ? pread(fd, data, size, at) : pwrite(fd, data, size, at);
      if (moved != (ssize_t)size) stop(pass % 2 ? "pread" : "pwrite");
      if (pass % 2 == 0 && sync && fdatasync(fd) != 0) stop("fdatasync");
    }
    usleep(think_us);
  }
  if (close(fd) != 0) stop("close");
  printf("%.9f\n", now_s() - begin_s - shuffling_s);
  return 0;
}
