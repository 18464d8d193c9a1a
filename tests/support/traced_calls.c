// Makes random calls on files in the working directory, and prints each one that returned:
//     call path offset length result
// For a trace to be compared with. Arguments: seed, number of calls.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static char bytes[70000];
static struct {
  int fd;
  const char* path;
} files[6];

static void say(const char* call, const char* path, long long offset, long long length, long long result) {
  printf("%s %s %lld %lld %lld\n", call, path, offset, length, result < 0 ? -(long long)errno : result);
}

static void make_call(int at) {
  const int fd = files[at].fd;
  const char* const path = files[at].path;
  const long long length = rand() % (rand() % 4 == 0 ? 70000 : 100), offset = rand() % 300000;
  const off_t before = lseek(fd, 0, SEEK_CUR);
  say("lseek", path, 0, SEEK_CUR, before);
  const int half = (int)length / 2;
  struct iovec parts[2] = {{bytes, (size_t)half}, {bytes, (size_t)length - (size_t)half}};
  struct stat status;
  switch (rand() % 13) {
    case 0: say("read", path, before, length, read(fd, bytes, (size_t)length)); break;
    case 1: say("write", path, before, length, write(fd, bytes, (size_t)length)); break;
    case 2: say("pread", path, offset, length, pread(fd, bytes, (size_t)length, offset)); break;
    case 3: say("pwrite", path, offset, length, pwrite(fd, bytes, (size_t)length, offset)); break;
    case 4: say("readv", path, before, length, readv(fd, parts, 2)); break;
    case 5: say("writev", path, before, length, writev(fd, parts, 2)); break;
    case 6: say("preadv", path, offset, length, preadv(fd, parts, 2, offset)); break;
    case 7: say("pwritev", path, offset, length, pwritev(fd, parts, 2, offset)); break;
    case 8: say("lseek", path, offset, SEEK_SET, lseek(fd, offset, SEEK_SET)); break;
    case 9: say("ftruncate", path, LLONG_MIN, offset, ftruncate(fd, offset)); break;
    case 10: say("fsync", path, LLONG_MIN, LLONG_MIN, fsync(fd)); break;
    case 11: say("fstat", path, LLONG_MIN, LLONG_MIN, fstat(fd, &status)); break;
    case 12: say("pread", path, -1, length, pread(fd, bytes, (size_t)length, -1)); break;
  }
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  srand((unsigned)atoi(argv[1]));
  static const char* const names[] = {"a", "b", "c"};
  for (int n = 0; n < 3; ++n) files[n].fd = open(files[n].path = names[n], O_RDWR | O_CREAT, 0666);
  files[3].fd = dup(files[0].fd);  // shares the file offset
  files[3].path = "a";
  files[4].fd = open(files[4].path = "log", O_WRONLY | O_CREAT | O_APPEND, 0666);
  files[5].fd = open(files[5].path = "c", O_RDONLY);
  for (int n = atoi(argv[2]); n > 0; --n) {
    const int at = rand() % 6;
    if (at != 4) {
      make_call(at);
      continue;
    }
    struct stat status;
    if (fstat(files[4].fd, &status) != 0) return 1;
    say("fstat", "log", LLONG_MIN, LLONG_MIN, 0);
    const long long length = rand() % 100;
    say("write", "log", status.st_size, length, write(files[4].fd, bytes, (size_t)length));
  }
  return 0;
}
