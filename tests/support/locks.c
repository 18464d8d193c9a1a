// Locks a file from several processes by fcntl(2), of processes and of open files, lockf(3) and flock(2), and counts in
// it under each; says on stdout what each call gave. On files that behave alike, it says the same.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char* call, int value) {
  printf("%s %d %s\n", call, value, value == -1 ? strerrorname_np(errno) : "");
  (void)fflush(stdout);
}

static int lock(int fd, int command, short type, off_t start, off_t length) {
  struct flock wanted = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
  return fcntl(fd, command, &wanted);
}

static void ask(const char* name, int fd, int command, off_t start, off_t length) {
  struct flock wanted = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
  const int done = fcntl(fd, command, &wanted);
  printf("%s: %d, type %d from %ld, %ld bytes\n", name, done, wanted.l_type, (long)wanted.l_start, (long)wanted.l_len);
  (void)fflush(stdout);
}

// What a child does, after which this goes on.
#define IN_CHILD(...)       \
  do {                      \
    (void)fflush(stdout);   \
    if (fork() == 0) {      \
      __VA_ARGS__;          \
      (void)fflush(stdout); \
      _exit(0);             \
    }                       \
    (void)wait(NULL);       \
  } while (0)

static void use_locks_of_processes(void) {
  const int fd = open("file", O_RDWR);
  say("one locks", lock(fd, F_SETLK, F_WRLCK, 10, 10));
  IN_CHILD({
    say("its child, the same open file", lock(fd, F_SETLK, F_WRLCK, 15, 1));
    say("beside it", lock(fd, F_SETLK, F_WRLCK, 20, 5));
    ask("who has it", fd, F_GETLK, 0, 0);
    const int own = open("file", O_RDWR);
    say("its own open file", lock(own, F_SETLK, F_RDLCK, 19, 1));
    say("unlocks what it has not", lock(own, F_SETLK, F_UNLCK, 0, 0));
    say("still", lock(own, F_SETLK, F_RDLCK, 19, 1));
  });
  const int other = open("file", O_RDWR);
  say("itself once more", lock(other, F_SETLK, F_RDLCK, 10, 5));
  IN_CHILD({
    say("reads too", lock(fd, F_SETLK, F_RDLCK, 10, 5));
    say("does not write", lock(fd, F_SETLK, F_WRLCK, 10, 5));
    say("as before", lock(fd, F_SETLK, F_RDLCK, 10, 6));
  });
  (void)close(other);  // lets go all that this process has
  IN_CHILD(say("free", lock(fd, F_SETLK, F_WRLCK, 0, 0)));
  (void)lseek(fd, 100, SEEK_SET);
  say("lockf", lockf(fd, F_TLOCK, 10));
  IN_CHILD({
    (void)lseek(fd, 105, SEEK_SET);
    say("lockf", lockf(fd, F_TLOCK, 1));
    say("lockf", lockf(fd, F_TEST, 1));
    (void)lseek(fd, 110, SEEK_SET);
    say("lockf", lockf(fd, F_TEST, 1));
  });
  say("wrong type", lock(fd, F_SETLK, 77, 0, 0));
  say("wrong start", lock(fd, F_SETLK, F_WRLCK, -1, 0));
  say("close", close(fd));
  const int reads = open("file", O_RDONLY), writes = open("file", O_WRONLY);
  say("for writing, by a reader", lock(reads, F_SETLK, F_WRLCK, 0, 0));
  say("for reading, by a writer", lock(writes, F_SETLK, F_RDLCK, 0, 0));
  say("for reading, by a reader", lock(reads, F_SETLK, F_RDLCK, 0, 0));
  (void)close(reads);
  (void)close(writes);
}

static void use_locks_of_open_files(void) {
  const int fd = open("file", O_RDWR), other = open("file", O_RDWR), same = dup(fd);
  say("one locks", lock(fd, F_OFD_SETLK, F_WRLCK, 10, 10));
  say("the other", lock(other, F_OFD_SETLK, F_WRLCK, 10, 1));
  ask("who has it", other, F_OFD_GETLK, 0, 0);
  say("the same", lock(same, F_OFD_SETLK, F_WRLCK, 10, 1));
  IN_CHILD({
    say("a child, the same", lock(fd, F_OFD_SETLK, F_WRLCK, 12, 1));
    say("a child, the other", lock(other, F_OFD_SETLK, F_WRLCK, 12, 1));
    say("a lock of a process", lock(fd, F_SETLK, F_WRLCK, 12, 1));
    say("unlocks", lock(fd, F_OFD_SETLK, F_UNLCK, 12, 1));
  });
  say("the other", lock(other, F_OFD_SETLK, F_WRLCK, 12, 1));
  (void)close(fd);
  say("the same has it still", lock(other, F_OFD_SETLK, F_WRLCK, 10, 1));
  (void)close(same);
  say("nobody", lock(other, F_OFD_SETLK, F_WRLCK, 0, 0));
  (void)close(other);
}

static void use_flock(void) {
  const int fd = open("file", O_RDWR), other = open("file", O_RDONLY);
  say("flock", flock(fd, LOCK_EX));
  say("the other", flock(other, LOCK_SH | LOCK_NB));
  IN_CHILD({
    say("a child, the same", flock(fd, LOCK_EX | LOCK_NB));
    say("the other", flock(other, LOCK_EX | LOCK_NB));
    say("less", flock(fd, LOCK_SH | LOCK_NB));
    say("the other", flock(other, LOCK_SH | LOCK_NB));
    say("unlock", flock(other, LOCK_UN));
    say("unlock", flock(fd, LOCK_UN));
  });
  say("the other", flock(other, LOCK_EX | LOCK_NB));
  say("flock", flock(fd, LOCK_SH | LOCK_NB));
  (void)close(other);
  say("flock", flock(fd, LOCK_SH | LOCK_NB));
  say("wrong", flock(fd, 99));
  (void)close(fd);
}

// Each of four children adds one, many times.
static void count(const char* name, int how, int opens) {
  enum { children = 4, rounds = 60 };
  int fd = open("count", O_RDWR | O_CREAT | O_TRUNC, 0600), number = 0;
  (void)pwrite(fd, &number, sizeof number, 0);
  (void)fflush(stdout);
  for (int child = 0; child < children; ++child) {
    if (fork() != 0) continue;
    if (opens) fd = open("count", O_RDWR);
    for (int round = 0; round < rounds; ++round) {
      (void)(how == 0   ? lock(fd, F_SETLKW, F_WRLCK, 0, 0)
             : how == 1 ? lock(fd, F_OFD_SETLKW, F_WRLCK, 0, 0)
                        : flock(fd, LOCK_EX));
      (void)pread(fd, &number, sizeof number, 0);
      ++number;
      (void)pwrite(fd, &number, sizeof number, 0);
      (void)(how == 0   ? lock(fd, F_SETLKW, F_UNLCK, 0, 0)
             : how == 1 ? lock(fd, F_OFD_SETLKW, F_UNLCK, 0, 0)
                        : flock(fd, LOCK_UN));
    }
    _exit(0);
  }
  while (wait(NULL) > 0) {
  }
  (void)pread(fd, &number, sizeof number, 0);
  say(name, number);
  (void)close(fd);
}

int main(void) {
  (void)close(open("file", O_RDWR | O_CREAT, 0600));
  use_locks_of_processes();
  use_locks_of_open_files();
  use_flock();
  count("counted under locks of processes", 0, 1);
  count("counted under locks of processes, one open file", 0, 0);
  count("counted under locks of open files", 1, 1);
  count("counted under flock", 2, 1);
  return 0;
}
