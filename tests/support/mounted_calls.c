// Random operations on one file in a mount, said on stdout as the mount's trace should have them: call, name, offset,
// length, result. Linked statically: no preloaded library sees them. Arguments: seed, count.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char data[200000];

static void say(const char* call, const char* name, const char* offset, const char* length, long result) {
  printf("%s %s %s %s %ld\n", call, name, offset, length, result < 0 ? (long)-errno : result);
}

static const char* text(char* room, long number) {
  sprintf(room, "%ld", number);
  return room;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  srandom((unsigned)atoi(argv[1]));
  char a[32], b[32];
  const int flags[] = {O_RDWR, O_RDWR, O_WRONLY | O_APPEND, O_RDONLY};
  int fds[4];
  for (int n = 0; n < 4; ++n) {
    fds[n] = open("file", flags[n] | (n == 0 ? O_CREAT : 0), 0644);
    say("open", "file", "-", "-", fds[n] < 0 ? -1 : 0);
  }
  for (int n = 0; n < atoi(argv[2]); ++n) {
    const long offset = random() % 100000, length = 1 + random() % (random() % 10 == 0 ? 150000 : 3000);
    const int kind = (int)(random() % 20), fd = fds[kind % 2];
    if (kind < 8)
      say("write", "file", text(a, offset), text(b, length), pwrite(fd, data, (size_t)length, offset));
    else if (kind < 14)
      say("read", "file", text(a, offset), text(b, length), pread(fds[kind % 2 * 3], data, (size_t)length, offset));
    else if (kind == 14) {
      struct stat status;
      if (fstat(fds[2], &status) != 0) abort();  // the append takes place there: no other process writes
      say("write", "file", text(a, status.st_size), text(b, length), write(fds[2], data, (size_t)length));
    } else if (kind == 15)
      say("ftruncate", "file", "-", text(b, offset), ftruncate(fd, offset));
    else if (kind == 16)
      say("fallocate", "file", text(a, offset), text(b, length), fallocate(fd, 0, offset, length));
    else if (kind == 17)
      say(offset % 2 == 0 ? "fsync" : "fdatasync", "file", "-", "-", offset % 2 == 0 ? fsync(fd) : fdatasync(fd));
    else if (kind == 18) {
      const int again = dup(fd);
      say("close", "file", "-", "-", close(again));
    } else {
      say("mkdir", "there", "-", "-", mkdir("there", 0755));
      say("rename", "there", "-", "-", rename("there", "gone"));
      say("rmdir", "gone", "-", "-", rmdir("gone"));
    }
  }
  for (int n = 0; n < 4; ++n) say("close", "file", "-", "-", close(fds[n]));
  return 0;
}
