// Threads that write without end. Each counts in a shared file, `counts`, the writes that have returned. For a trace of
// a process that is killed. Argument: number of threads.
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile uint64_t* counts;

static void* write_on(void* number) {
  const int own = (int)(intptr_t)number;
  char name[20];
  snprintf(name, sizeof name, "data.%d", own);
  const int fd = open(name, O_WRONLY | O_CREAT, 0666);
  for (uint64_t n = 0;; ++n) {
    if (pwrite(fd, name, 8, (off_t)(n % 1000 * 8)) != 8) abort();
    counts[own] = n + 1;
  }
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int threads = atoi(argv[1]), fd = open("counts", O_RDWR | O_CREAT, 0666);
  if (ftruncate(fd, 4096) != 0) return 1;
  counts = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  pthread_t thread;
  for (intptr_t n = 0; n < threads; ++n) pthread_create(&thread, 0, write_on, (void*)n);
  pause();
  return 0;
}
