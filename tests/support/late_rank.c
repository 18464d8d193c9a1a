/* A preloaded library: the rank LATE_RANK of an Open MPI program begins each write of at least 8 KB late, so that other
   ranks have then taken the room that a small disk has. The file system does not say beforehand how much that is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

static void come_late(size_t bytes) {
  const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *late = getenv("LATE_RANK");
  if (bytes >= 8192 && rank != NULL && late != NULL && strcmp(rank, late) == 0) usleep(500000);
}

int fstatfs(int fd, struct statfs* system) {
  (void)fd, (void)system;
  return -1;
}

int fstatvfs(int fd, struct statvfs* space) {
  (void)fd, (void)space;
  return -1;
}

static size_t sum(const struct iovec* parts, int count) {
  size_t bytes = 0;
  int n;
  for (n = 0; n < count; n++) bytes += parts[n].iov_len;
  return bytes;
}

ssize_t write(int fd, const void* bytes, size_t count) {
  ssize_t (*const next)(int, const void*, size_t) = (ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  come_late(count);
  return next(fd, bytes, count);
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
  ssize_t (*const next)(int, const struct iovec*, int) =
      (ssize_t(*)(int, const struct iovec*, int))dlsym(RTLD_NEXT, "writev");
  come_late(sum(parts, count));
  return next(fd, parts, count);
}

ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  ssize_t (*const next)(int, const void*, size_t, off_t) =
      (ssize_t(*)(int, const void*, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
  come_late(count);
  return next(fd, bytes, count, offset);
}

ssize_t pwritev(int fd, const struct iovec* parts, int count, off_t offset) {
  ssize_t (*const next)(int, const struct iovec*, int, off_t) =
      (ssize_t(*)(int, const struct iovec*, int, off_t))dlsym(RTLD_NEXT, "pwritev");
  come_late(sum(parts, count));
  return next(fd, parts, count, offset);
}
