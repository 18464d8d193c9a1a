/* Calls that change a file's size: fallocate(2), posix_fallocate(3), ftruncate(2), truncate(2). */
#include "say.h"

static void note_size(int fd) {
  struct stat status;
  note("size", fstat(fd, &status) == 0 ? (long long)status.st_size : -1);
}

int main(void) {
  const int fd = open("file", O_RDWR | O_CREAT, 0644), reader = open("file", O_RDONLY);
  say("fallocate", "file", 0, 100, fallocate(fd, 0, 0, 100));
  note_size(fd);
  say("fallocate", "file", 50, 100, posix_fallocate(fd, 50, 100));
  note_size(fd);
  say("fallocate", "file", -1, 100, fallocate(fd, 0, -1, 100));
  say("fallocate", "file", 0, 100, fallocate(reader, 0, 0, 100));
  say("ftruncate", "file", none, 20, ftruncate(fd, 20));
  note_size(fd);
  say("ftruncate", "file", none, 20, ftruncate(reader, 20));
  say("truncate", "file", none, 10, truncate("file", 10));
  say("truncate", "absent", none, 10, truncate("absent", 10));
  note_size(fd);
  return close(reader) | close(fd);
}
