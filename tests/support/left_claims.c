/* A signal handler jumps out of a read at every instruction of it: a trap after each one calls the handler. Each
 * instruction has a process of its own, whose thread makes many reads afterwards, by functions that lie deeper in the
 * stack. Prints the number of instructions, and how many reads each process made that returned. x86-64 alone. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trap_flag.h"

enum { before = 10, after = 3000 };
static int fd;
static volatile long steps, wanted;
static sigjmp_buf back;

static void read_some(int count) {
  char bytes[16];
  for (int n = 0; n < count; ++n)
    if (pread(fd, bytes, sizeof bytes, n % 32) != sizeof bytes) _exit(2);
}
static void step(int number) {
  (void)number;
  if (++steps == wanted) siglongjmp(back, 1);
}
static void* work(void* unused) {
  char bytes[64];
  read_some(before);
  if (sigsetjmp(back, 1) == 0) {
    set_trap();
    (void)!pread(fd, bytes, sizeof bytes, 0);
    clear_trap();
  }
  read_some(after);
  return unused;
}

int main(void) {
  char bytes[64] = {0};
  fd = open("data", O_RDWR | O_CREAT, 0644);
  if (write(fd, bytes, sizeof bytes) != sizeof bytes) return 1;
  for (wanted = 1;; ++wanted) {
    const pid_t child = fork();
    if (child == 0) {
      pthread_t thread;
      signal(SIGTRAP, step);
      if (pthread_create(&thread, NULL, work, NULL) != 0) _exit(3);
      pthread_join(thread, NULL);
      _exit(steps < wanted ? 4 : 0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 1;
    if (WEXITSTATUS(status) == 4) break; /* the read has fewer instructions */
    if (WEXITSTATUS(status) != 0) return 1;
  }
  printf("%ld %d\n", wanted, before + after);
  return 0;
}
