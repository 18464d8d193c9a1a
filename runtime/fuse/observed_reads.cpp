// The daemon's reads and closes, told to the prefetch engine: of ordinary files, and those that core/iosig/container
// makes of data droppings. The linker calls these functions instead of libc's, and libc's by the names that begin with
// __real_. data.cpp tells of the bytes that it splices into a reply.
#include <sys/uio.h>
#include <unistd.h>

#include "prefetching.h"

using iosig::fuse::prefetcher;
using Reading = iosig::prefetch::Observer::Reading;

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the linker's names
extern "C" {

ssize_t __real_pread(int fd, void* bytes, size_t count, off_t offset);
ssize_t __wrap_pread(int fd, void* bytes, size_t count, off_t offset);
ssize_t __wrap_pread(int fd, void* bytes, size_t count, off_t offset) {
  Reading reading = prefetcher().begin(fd, offset, static_cast<std::int64_t>(count));
  const ssize_t got = __real_pread(fd, bytes, count, offset);
  prefetcher().end(reading, got);
  return got;
}

ssize_t __real_preadv(int fd, const iovec* parts, int count, off_t offset);
ssize_t __wrap_preadv(int fd, const iovec* parts, int count, off_t offset);
ssize_t __wrap_preadv(int fd, const iovec* parts, int count, off_t offset) {
  Reading reading = prefetcher().begin(fd, offset, iosig::prefetch::Observer::unknown_length);
  const ssize_t got = __real_preadv(fd, parts, count, offset);
  prefetcher().end(reading, got);
  return got;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd) {
  prefetcher().closed(fd);
  return __real_close(fd);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
