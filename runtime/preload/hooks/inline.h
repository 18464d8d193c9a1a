// The behaviours of read(2), write(2), pread(2) and pwrite(2), for the recorder to contain: rows of calls.txt with
// `inline`. hook::read() and so on (calls_data.cpp) are the same for everything else.
//
// After a system call the processor predicts returns wrongly, so each function between the program and the C library
// that has to return costs some 8 ns a call.
#pragma once

#include <cerrno>
#include <span>

#include "preload/files/data.h"
#include "preload/files/open_file.h"
#include "preload/hooks/full.h"
#include "preload/hooks/real.h"

namespace iosig::preload::hook_inline {

/// Whether `offset` is valid as an explicit offset; sets errno if not.
[[nodiscard]] inline bool is_place(off_t offset) {
  if (offset < 0) errno = EINVAL;
  return offset >= 0;
}

inline ssize_t read(int fd, void* bytes, size_t count) {
  if (!is_ours(fd)) [[likely]]
    return real().read(fd, bytes, count);
  return read_from(fd, {static_cast<std::byte*>(bytes), count}, at_file_offset);
}
inline ssize_t write(int fd, const void* bytes, size_t count) {
  if (is_ours(fd)) [[unlikely]]
    return write_to(fd, {static_cast<const std::byte*>(bytes), count}, at_file_offset);
  const ssize_t done = real().write(fd, bytes, count);
  if (done == static_cast<ssize_t>(count)) [[likely]]
    return done;
  return write_rest(fd, bytes, count, at_own_offset, done);
}
inline ssize_t pread(int fd, void* bytes, size_t count, off_t offset) {
  if (!is_ours(fd)) [[likely]]
    return real().pread(fd, bytes, count, offset);
  return is_place(offset) ? read_from(fd, {static_cast<std::byte*>(bytes), count}, offset) : -1;
}
inline ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  if (is_ours(fd)) [[unlikely]]
    return is_place(offset) ? write_to(fd, {static_cast<const std::byte*>(bytes), count}, offset) : -1;
  const ssize_t done = real().pwrite(fd, bytes, count, offset);
  if (done == static_cast<ssize_t>(count)) [[likely]]
    return done;
  return offset < 0 ? done : write_rest(fd, bytes, count, offset, done);
}

}  // namespace iosig::preload::hook_inline
