// Which open file (open file description) each descriptor refers to, for the recorder: its id in the trace, and the
// file offset, which read(2) and write(2) do not say.
//
// Kept by following open, dup, close and lseek. A descriptor that the recorder has not seen opened (inherited, or
// opened by calls that cannot be intercepted) is asked about when it is first used. Lock-free: a signal handler may
// open files.
#pragma once

#include <sys/single_threaded.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "preload/engine/engine_fds.h"

namespace iosig::preload::trace {

struct Description {
  std::atomic<std::uint32_t> references{0};  ///< descriptors that refer to it; 0: unused
  std::uint32_t file = 0;                    ///< id in the trace
  std::atomic<std::int64_t> position{0};     ///< the file offset
  bool asks_kernel = false;  ///< the kernel knows the offset alone: O_APPEND, or another process shares the description

  /// Called after a read or write of `moved` bytes (or -errno); returns the offset at which it took place.
  [[nodiscard]] std::int64_t moved_by(int fd, std::int64_t moved) {
    if (asks_kernel) [[unlikely]]
      return ask(fd, moved);
    if (moved <= 0) return position.load(std::memory_order_relaxed);
    if (__libc_single_threaded != 0) {
      const std::int64_t before = position.load(std::memory_order_relaxed);
      position.store(before + moved, std::memory_order_relaxed);
      return before;
    }
    return position.fetch_add(moved, std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] static std::int64_t ask(int fd, std::int64_t moved);
};

/// By descriptor. Null: not known yet. `left_out`: none of its calls is recorded.
extern constinit std::array<std::atomic<Description*>, max_fds> descriptions;
extern constinit Description left_out;

/// Returns the description of a descriptor; asks the kernel if it is not known, and then records that. `left_out` if
/// there is none, or if it is not to be traced. Preserves errno.
[[nodiscard]] Description* ask_description(int fd);

/// Whether the recorder has met the descriptor.
[[nodiscard]] inline bool is_known(int fd) {
  return static_cast<unsigned>(fd) < max_fds &&
         descriptions[static_cast<unsigned>(fd)].load(std::memory_order_relaxed) != nullptr;
}

[[nodiscard]] inline Description* description_of(int fd) {
  if (static_cast<unsigned>(fd) >= max_fds) return &left_out;
  Description* const known = descriptions[static_cast<unsigned>(fd)].load(std::memory_order_relaxed);
  if (known != nullptr) [[likely]]
    return known;
  return ask_description(fd);
}

/// Returns the id of the open file behind `fd`, of which `known` was the description before this thread had a part: in
/// a child of a bare clone(2) that was its parent's, and is forgotten by now.
[[nodiscard]] std::uint32_t file_behind(int fd, const Description& known);

/// Called after `fd` was opened. `is_traced`: false leaves its calls out. Returns the file's id, 0 if it is left out.
std::uint32_t opened(int fd, int flags, bool is_traced);
/// Called after `fd` became a duplicate of `of`.
void duplicated(int fd, int of);
/// Called before a descriptor is closed.
void closed(int fd);
/// Called before the descriptors from `first` to `last` are closed.
void closed_range(unsigned first, unsigned last);
/// Called before the process gets a child, which shares its open files and may move their offsets: they are asked for
/// from now on.
void share_descriptions();
/// Forgets all: in a child, whose trace is one of its own.
void forget_descriptions();

}  // namespace iosig::preload::trace
