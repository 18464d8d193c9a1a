/* The reader of bench/prefetch.py: reads places of a file, computes between the reads, and prints how long it waited.
 *
 *     prefetch_reader FILE LENGTH COMPUTE_US WAY < places (one offset a line)
 *
 * WAY: plain (pread); hints (posix_fadvise(POSIX_FADV_WILLNEED) 16 reads ahead, then pread); uring (the reads
 * themselves are submitted 16 ahead, into memory of the program). Prints: seconds in reads with all that they need; the
 * 99th percentile of a read in microseconds; microseconds of processor time for each read, of all threads, without the
 * computing; KiB of anonymous memory. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 16, MOST = 1 << 16 };

static long long now_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int by_size(const void* one, const void* other) {
  const long long a = *(const long long*)one, b = *(const long long*)other;
  return (a > b) - (a < b);
}

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static long anonymous_kib(void) {
  FILE* status = fopen("/proc/self/status", "r");
  char line[256];
  long kib = 0;
  while (status != NULL && fgets(line, sizeof line, status) != NULL) (void)sscanf(line, "RssAnon: %ld kB", &kib);
  return kib;
}

static void submit(struct io_uring* ring, int fd, char* buffers, int length, long long place, int n) {
  struct io_uring_sqe* entry = io_uring_get_sqe(ring);
  io_uring_prep_read(entry, fd, buffers + (size_t)(n % DEPTH) * length, length, place);
  io_uring_sqe_set_data64(entry, n);
}

int main(int argc, char** argv) {
  static long long places[MOST], took_ns[MOST];
  static char is_done[MOST];
  int count = 0;
  if (argc != 5) return 2;
  while (count < MOST && scanf("%lld", &places[count]) == 1) ++count;
  const int fd = open(argv[1], O_RDONLY), length = atoi(argv[2]);
  const long long compute_ns = atoll(argv[3]) * 1000;
  const int has_hints = strcmp(argv[4], "hints") == 0, has_ring = strcmp(argv[4], "uring") == 0;
  char* const buffers = malloc((size_t)DEPTH * length);
  struct io_uring ring;
  if (fd < 0 || buffers == NULL) fail(argv[1]);
  if (has_ring && io_uring_queue_init(DEPTH, &ring, 0) != 0) fail("io_uring");
  long long in_reads_ns = 0, computing_ns = 0;
  const long long cpu_before_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
  for (int n = 0; n < count; ++n) {
    const long long begin = now_ns(CLOCK_MONOTONIC);
    for (int ahead = n == 0 ? 0 : n + DEPTH - 1; ahead < n + DEPTH && ahead < count; ++ahead) {
      if (has_hints) (void)posix_fadvise(fd, places[ahead], length, POSIX_FADV_WILLNEED);
      if (has_ring) submit(&ring, fd, buffers, length, places[ahead], ahead);
    }
    if (has_ring) {
      if (io_uring_submit(&ring) < 0) fail("submit");
      while (!is_done[n]) {
        struct io_uring_cqe* done;
        if (io_uring_wait_cqe(&ring, &done) != 0 || done->res < 0) fail("read");
        is_done[io_uring_cqe_get_data64(done)] = 1;
        io_uring_cqe_seen(&ring, done);
      }
    } else if (pread(fd, buffers, length, places[n]) < 0) {
      fail("pread");
    }
    const long long end = now_ns(CLOCK_MONOTONIC), cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
    took_ns[n] = end - begin;
    in_reads_ns += end - begin;
    if (compute_ns == 0) continue;
    while (now_ns(CLOCK_MONOTONIC) < end + compute_ns) {
    }
    computing_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
  }
  const long long cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_before_ns - computing_ns;
  qsort(took_ns, count, sizeof *took_ns, by_size);
  printf("%.6f %.1f %.2f %ld\n", in_reads_ns / 1e9, took_ns[count * 99 / 100] / 1e3, cpu_ns / 1e3 / count,
         anonymous_kib());
  return 0;
}
