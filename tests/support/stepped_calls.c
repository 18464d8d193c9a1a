/* A signal handler at every instruction of a read: a trap after each one calls the handler, which makes as many reads
 * as the argument says at one of them. Each instruction has a process of its own. Prints the number of instructions,
 * and of reads in all. x86-64 alone. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "trap_flag.h"

enum { before = 10, after = 5 };
static int fd, in_handler;
static volatile long steps, wanted;

static void read_some(int count) {
  char bytes[16];
  for (int n = 0; n < count; ++n)
    if (pread(fd, bytes, sizeof bytes, n % 32) != sizeof bytes) _exit(2);
}
static void step(int number, siginfo_t* unused, void* context) {
  (void)number, (void)unused;
  if (++steps != wanted) return;
  read_some(in_handler);
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_EFL] &= ~trap_flag;
}

int main(int argc, char** argv) {
  char bytes[64] = {0};
  long reads = 0;
  in_handler = argc > 1 ? atoi(argv[1]) : 0;
  fd = open("data", O_RDWR | O_CREAT, 0644);
  if (write(fd, bytes, sizeof bytes) != sizeof bytes) return 1;
  for (wanted = 1;; ++wanted) {
    const pid_t child = fork();
    if (child == 0) {
      const struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
      sigaction(SIGTRAP, &action, NULL);
      read_some(before);
      set_trap();
      const ssize_t got = pread(fd, bytes, sizeof bytes, 0);
      clear_trap();
      read_some(after);
      _exit(got != sizeof bytes ? 3 : steps < wanted ? 4 : 0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 1;
    reads += before + 1 + after;
    if (WEXITSTATUS(status) == 4) break; /* the read has fewer instructions */
    if (WEXITSTATUS(status) != 0) return 1;
    reads += in_handler;
  }
  printf("%ld %ld\n", wanted, reads);
  return 0;
}
