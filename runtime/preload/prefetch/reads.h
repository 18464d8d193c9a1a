// Prefetching (`iosig run --prefetch`): tells the engine (core/iosig/prefetch) what the program reads from ordinary
// files. The rows of hooks/calls.txt name these functions (`prefetch=`). The entries call them around the recorder and
// the behaviour, where the recorder's table says that the call is used (trace/recorder.h, `Use::pass`): in a program
// that does not prefetch they cost nothing. Of a container it is told what is read from the data droppings, which
// are ordinary files (engine/engine_calls.cpp).
#pragma once

#include <cstdint>

#include "iosig/prefetch/observer.h"
#include "iosig/trace/part_layout.h"
#include "preload/engine/engine_fds.h"
#include "preload/files/open_file.h"

namespace iosig::preload::prefetch {

using iosig::prefetch::Observer;

extern constinit bool is_on;
extern constinit Observer observer;

/// The length of a read into several pieces of memory: their array may be looked at only when the call has succeeded.
inline constexpr std::int64_t unknown = Observer::unknown_length;

/// Whether a call is one of those that are observed.
[[nodiscard]] constexpr bool is_observed(iosig::trace::Call call) {
  using iosig::trace::Call;
  return call == Call::read || call == Call::pread || call == Call::readv || call == Call::preadv ||
         call == Call::lseek || call == Call::close;
}

/// A read. `offset`: also the recorder's `here`.
template <class Make>
[[nodiscard]] auto reads(int fd, std::int64_t offset, std::uint64_t length, const Make& make) {
  if (offset == iosig::trace::no_offset) offset = Observer::at_file_offset;
  if (!is_on || offset < Observer::at_file_offset) return make();
  if (is_ours(fd)) {
    const auto result = make();
    observer.start_waiting_planner();  // the read itself has signals blocked
    return result;
  }
  Observer::Reading reading = observer.begin(fd, offset, static_cast<std::int64_t>(length));
  const auto result = make();
  observer.end(reading, result);
  return result;
}

/// A read of the container engine from a file of its own; `length` may be `unknown`.
template <class Make>
[[nodiscard]] ssize_t engine_reads(int fd, std::int64_t offset, std::int64_t length, const Make& make) {
  if (!is_on || has_own_descriptors || offset < 0 || !engine_fds.has(fd)) [[likely]]
    return make();
  Observer::Reading reading = observer.begin(fd, offset, length);
  const auto result = make();
  observer.end(reading, result);
  return result;
}
/// Called before the container engine closes a descriptor.
inline void engine_closes(int fd) {
  if (is_on && !has_own_descriptors && engine_fds.has(fd) && !is_stray_child()) observer.closed(fd);
}

/// lseek(2).
template <class Make>
[[nodiscard]] auto moves(int fd, const Make& make) {
  const auto position = make();
  if (is_on && position >= 0 && !is_ours(fd)) observer.moved_to(fd, position);
  return position;
}

/// close(2). Ignored in a child of vfork(): the parent, whose memory this is, still has the file open.
template <class Make>
[[nodiscard]] int closes(int fd, const Make& make) {
  if (is_on && !is_stray_child()) observer.closed(fd);
  return make();
}

/// Called before `fd` becomes a duplicate of `of`.
inline void replaced(int fd, int of) {
  if (is_on && fd != of && !is_stray_child()) observer.closed(fd);
}
/// Called before the descriptors from `first` to `last` are closed.
inline void closed_range(unsigned first, unsigned last) {
  if (is_on && !is_stray_child()) observer.closed_range(first, last);
}

/// Writes the report that the user asked for, when the process ends or becomes another program.
void say_report();

}  // namespace iosig::preload::prefetch
