/* To be preloaded: a signal comes while libiosig-preload.so prepares the C library's streams, and its handler, which
   this library's constructor has set before, opens a file. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void handle(int number) {
  (void)number;
  const int fd = open("early.dat", O_RDWR | O_CREAT, 0644);
  if (write(fd, "early", 5) != 5 || close(fd) != 0) _exit(1);
}
__attribute__((constructor)) static void begin(void) { signal(SIGUSR1, handle); }
int mprotect(void* at, size_t bytes, int protection) {
  static int calls = 0;
  if (calls++ == 0) raise(SIGUSR1);
  return (int)syscall(SYS_mprotect, at, bytes, protection);
}
