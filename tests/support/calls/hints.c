/* Calls that announce accesses, or start storing: posix_fadvise(2), readahead(2), sync_file_range(2). */
#include "say.h"

int main(void) {
  const int fd = open("file", O_RDWR | O_CREAT, 0644);
  note("write", write(fd, "0123456789", 10));
  say("posix_fadvise", "file", 0, 10, posix_fadvise(fd, 0, 10, POSIX_FADV_WILLNEED));
  say("posix_fadvise", "file", 2, 3, posix_fadvise(fd, 2, 3, POSIX_FADV_RANDOM));
  say("posix_fadvise", "file", 2, 3, -posix_fadvise(fd, 2, 3, 99));
  say("posix_fadvise", "file", 2, -3, -posix_fadvise(fd, 2, -3, POSIX_FADV_RANDOM));
  say("readahead", "file", 0, 10, readahead(fd, 0, 10));
  const int written = open("file", O_WRONLY);
  say("readahead", "file", 0, 10, readahead(written, 0, 10));
  say("sync_file_range", "file", 0, 10, sync_file_range(fd, 0, 10, SYNC_FILE_RANGE_WRITE));
  say("fdatasync", "file", none, none, fdatasync(fd));
  return close(written) + close(fd);
}
