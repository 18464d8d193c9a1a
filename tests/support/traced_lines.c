// Writes one byte at a time, each through a random chain of its functions and from a random line; prints the offsets of
// those that lines marked SELECTED made. For `iosig trace --source`. Arguments: seed, writes of each thread.
#define _GNU_SOURCE
#include <alloca.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int file, count;
static unsigned seed;
static __thread int handled;

static void put(long offset) {
  if (pwrite(file, "x", 1, offset) != 1) abort();
}
static inline __attribute__((always_inline)) void put_inlined(long offset) {
  if (pwrite(file, "y", 1, offset) != 1) abort();
}
static void handle(int number) {
  (void)number;
  put(handled);
}
static int compare(const void* one, const void* other) {
  put(*(const int*)one);
  return *(const int*)one - *(const int*)other;
}

static __attribute__((noinline)) int descend(int depth, unsigned way, long offset) {
  char* const room = alloca(way % 5 * 16 + 1);  // frames of different sizes
  memset(room, (int)offset, way % 5 * 16 + 1);
  int is_selected = 0;
  if (depth > 0) {
    if (way >> depth & 1)
      is_selected = descend(depth - 1, way, offset);
    else
      is_selected = descend(depth - 1, way, offset), is_selected = 1;  // SELECTED
  } else {
    switch (way % 7) {
      case 0: put(offset); break;
      case 1: put(offset), is_selected = 1; break;  // SELECTED
      case 2: put_inlined(offset); break;
      case 3: put_inlined(offset), is_selected = 1; break;  // SELECTED
      case 4: handled = (int)offset, raise(SIGUSR1); break;
      case 5: handled = (int)offset, raise(SIGUSR1), is_selected = 1; break;  // SELECTED
      default: {
        int numbers[2] = {(int)offset, (int)offset};
        qsort(numbers, 2, sizeof *numbers, compare), is_selected = 1;  // SELECTED
      }
    }
  }
  __asm__ volatile("" : : "r"(room) : "memory");
  return is_selected;
}

static void* run(void* argument) {
  const long first = (long)argument * 100000;
  unsigned state = seed + (unsigned)first;
  for (long n = 0; n < count; ++n) {
    const int depth = (int)(rand_r(&state) % 4);
    // Most bits are set, so that most chains have no selected line.
    const unsigned way = (unsigned)rand_r(&state) | (rand_r(&state) % 4 != 0 ? 0xfffffffcU : 0);
    if (descend(depth, way, first + n)) printf("%ld\n", first + n);
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  seed = (unsigned)atoi(argv[1]);
  count = atoi(argv[2]);
  signal(SIGUSR1, handle);
  file = open("data", O_CREAT | O_RDWR, 0666);
  pthread_t made[2];
  for (long n = 0; n < 2; ++n) pthread_create(&made[n], NULL, run, (void*)(n + 1));
  run(NULL);
  for (int n = 0; n < 2; ++n) pthread_join(made[n], NULL);
  return 0;
}
