// Leaves calls in every way but by their return: a signal handler writes while a read waits, another jumps out of the
// read, a thread is cancelled in one. Prints the number of writes that returned, and those that the handler made.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

static int fd, made;
static volatile sig_atomic_t by_handler, jumps;
static sigjmp_buf back;

static void write_in_handler(int signal) {
  (void)signal;
  if (pwrite(fd, "handler", 7, 4096) == 7) ++by_handler;
}
static void jump(int signal) {
  (void)signal;
  siglongjmp(back, 1);
}
static void tick(void (*handler)(int), int microseconds, int flags) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  sigaction(SIGALRM, &action, 0);
  setitimer(ITIMER_REAL, &(struct itimerval){{0, microseconds}, {0, microseconds}}, 0);
}
static void* read_forever(void* from) {
  char byte;
  (void)!read(*(int*)from, &byte, 1);
  return 0;
}

int main(void) {
  fd = open("jumps", O_RDWR | O_CREAT, 0666);
  if (mkfifo("fifo", 0666) != 0) return 1;
  int fifo = open("fifo", O_RDWR);
  tick(write_in_handler, 500, SA_RESTART);
  for (int n = 0; n < 20000; ++n) made += pwrite(fd, "main", 4, n % 100 * 8) == 4;
  if (sigsetjmp(back, 1) == 0) tick(jump, 2000, SA_NODEFER);  // the first may come before the loop begins
  while (jumps < 100) {
    char byte;
    if (sigsetjmp(back, 1) != 0) {
      ++jumps;
      continue;
    }
    (void)!read(fifo, &byte, 1);
  }
  setitimer(ITIMER_REAL, &(struct itimerval){0}, 0);
  for (int n = 0; n < 20; ++n) {
    pthread_t thread;
    pthread_create(&thread, 0, read_forever, &fifo);
    usleep(1000);
    pthread_cancel(thread);
    pthread_join(thread, 0);
  }
  for (int n = 0; n < 100; ++n) made += pwrite(fd, "main", 4, n % 100 * 8) == 4;
  printf("%d %d %d\n", made, (int)by_handler, (int)jumps);
  return 0;
}
