// Writes that fail because the mount point that IOSIG chose is full, although the program's own place has room: the
// file is moved home (enact/move_on.h) and the write repeated. Ordinary descriptors only; a call that succeeds pays one
// comparison.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstdio>

#include "preload/hooks/real.h"

namespace iosig::preload {

constexpr off_t at_own_offset = -1;  ///< write(2)

[[nodiscard]] inline bool is_full(int failure) { return failure == ENOSPC || failure == EDQUOT; }

/// Called after write(2) or pwrite(2) has returned `done`, fewer than `count`, with its errno: writes the rest if that
/// is possible elsewhere. Returns what the program gets.
[[nodiscard, gnu::cold, gnu::noinline]] ssize_t write_rest(int fd, const void* bytes, size_t count, off_t offset,
                                                           ssize_t done);

/// Whether a call on `fd` that failed with `failure` is to be repeated, because the file has been moved. Keeps errno.
[[nodiscard, gnu::cold, gnu::noinline]] bool has_moved(int fd, int failure, off_t more_bytes);

/// Returns the result of `call`, which is repeated once if the file behind `fd` was full and has been moved.
template <class Call>
[[nodiscard]] auto unless_full(int fd, off_t more_bytes, Call call) {
  const auto done = call();
  if (done >= 0) [[likely]]
    return done;
  return has_moved(fd, errno, more_bytes) ? call() : done;
}

/// Lets libc's streams follow, too, if this descriptor leads to a redirected file. Call it when a
/// stream is made, or gets another descriptor. Keeps errno.
void watch_stream(int fd);

}  // namespace iosig::preload
