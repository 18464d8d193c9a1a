// Four threads write a file strided, each by descriptors of its own that it closes and opens again all the time; with a
// second argument, children that write and end come by meanwhile. Says how many bytes' places were wrong.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { threads = 4, each = 2000, children = 30 };
static const char* path;

static long value(long who, long n) { return who * 100000 + n; }
static off_t place(long who, long n) { return (off_t)((n * threads + who) * (long)sizeof(long)); }

static void* write_as(void* argument) {
  const long who = (long)argument;
  int fd = open(path, O_RDWR);
  for (long n = 0; n < each; ++n) {
    const long number = value(who, n);
    if (pwrite(fd, &number, sizeof number, place(who, n)) != sizeof number) perror("pwrite");
    if (n % 50 != 0) continue;
    close(fd);
    fd = open(path, O_RDWR);
    if (fd < 0) perror("open");
  }
  close(fd);
  return NULL;
}

static void write_as_child(int n) {
  const int fd = open(path, O_RDWR);
  const char byte = (char)n;
  if (pwrite(fd, &byte, 1, 500000 + n) != 1 || fsync(fd) != 0) _exit(1);
  _exit(close(fd));
}

int main(int argc, char** argv) {
  pthread_t all[threads];
  path = argv[1];
  close(open(path, O_RDWR | O_CREAT | O_TRUNC, 0644));
  for (long who = 0; who < threads; ++who) pthread_create(&all[who], NULL, write_as, (void*)who);
  for (int n = 0; argc > 2 && n < children; ++n) {
    if (fork() == 0) write_as_child(n);
    int status = 0;
    wait(&status);
    if (status != 0) printf("a child ended with %d\n", status);
  }
  for (int who = 0; who < threads; ++who) pthread_join(all[who], NULL);
  int wrong = 0;
  const int fd = open(path, O_RDONLY);
  for (long n = 0; n < each; ++n)
    for (long who = 0; who < threads; ++who) {
      long number = -1;
      wrong += pread(fd, &number, sizeof number, place(who, n)) != sizeof number || number != value(who, n);
    }
  printf("%d wrong\n", wrong);
  return 0;
}
