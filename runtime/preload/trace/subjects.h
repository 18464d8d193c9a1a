// How the calls are recorded, by what they take: the rows of hooks/calls.txt name these functions (`trace=`). Each
// makes the call, `make`, and returns its result; errno is the call's.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>

#include "preload/files/open_file.h"
#include "preload/trace/names.h"
#include "preload/trace/recorder.h"
#include "preload/trace/thread_part.h"

namespace iosig::preload::trace {

/// The offset of a call that uses the file offset.
inline constexpr std::int64_t here = iosig::trace::no_offset;

[[nodiscard]] inline Subject subject_of(int fd, std::int64_t offset = iosig::trace::no_offset,
                                        std::int64_t length = iosig::trace::no_length) {
  Description* const description = description_of(fd);
  return {.fd = fd,
          .offset = offset,
          .length = length,
          .file = description->file,
          .description = description,
          .is_left_out = description == &left_out};
}

/// A call on a descriptor.
template <Call call, class Make>
[[nodiscard]] auto on(int fd, const Make& make) {
  return record<call>(subject_of(fd), make);
}
template <Call call, class Make>
[[nodiscard]] auto on(int fd, std::int64_t offset, std::uint64_t length, const Make& make) {
  return record<call>(subject_of(fd, offset, static_cast<std::int64_t>(length)), make);
}

/// The same, of a function that returns an error number.
template <Call call, class Make>
[[nodiscard]] int status(int fd, std::int64_t offset, std::int64_t length, const Make& make) {
  const Subject subject = subject_of(fd, offset, length);
  if (subject.is_left_out || uses[static_cast<std::uint16_t>(call)] != Use::record) return make();
  Recording recording(call, subject);
  const int failure = make();
  recording.end(-std::int64_t{failure});
  return failure;
}

/// A read into, or a write from, several pieces of memory. The program's array is read after the call has succeeded:
/// before that nobody knows whether its address is valid.
template <Call call, class Make>
[[nodiscard]] ssize_t pieces(int fd, std::int64_t offset, const iovec* parts, int count, const Make& make) {
  const Subject subject = subject_of(fd, offset);
  if (subject.is_left_out || uses[static_cast<std::uint16_t>(call)] != Use::record) return record<call>(subject, make);
  Recording recording(call, subject);
  const ssize_t result = make();
  const std::int64_t recorded = as_result(result);
  const bool is_at_file_offset = moves_offset(call) || offset == -1;
  const std::int64_t found = is_at_file_offset ? subject.description->moved_by(fd, recorded) : offset;
  recording.change([&](Slot& slot) {
    slot.offset = found;
    slot.flags = is_at_file_offset ? iosig::trace::derived_offset : 0;
    if (result >= 0) {
      slot.length = 0;
      for (int n = 0; n < count; ++n) slot.length += static_cast<std::int64_t>(parts[n].iov_len);
    }
  });
  recording.end(recorded);
  return result;
}

/// A call on a path, which is read after the call, when it is known to be valid. `length`: what else there is to say.
template <Call call, class Make>
[[nodiscard]] auto at(int directory, const char* path, std::int64_t length, const Make& make) {
  if (uses[static_cast<std::uint16_t>(call)] != Use::record) return make();
  Recording recording(call, {.length = length});
  const auto result = make();
  const std::int64_t recorded = as_result(result);
  if (!recording.is_open()) return result;
  if (!is_readable(path, recorded)) {
    recording.end(recorded);
    return result;
  }
  const std::uint32_t id = path_at(directory, path);
  if (id == left_out_path) {
    recording.cancel();
    return result;
  }
  recording.change([&](Slot& slot) { slot.path = id; });
  recording.end(recorded);
  return result;
}
template <Call call, class Make>
[[nodiscard]] auto at(int directory, const char* path, const Make& make) {
  return at<call>(directory, path, iosig::trace::no_length, make);
}
template <Call call, class Make>
[[nodiscard]] auto at(const char* path, const Make& make) {
  return at<call>(AT_FDCWD, path, iosig::trace::no_length, make);
}

/// A call on two paths: the second one's id, `second_path()`, is the slot's length.
template <Call call, class Make, class Find>
[[nodiscard]] int two_names(int directory, const char* path, const char* other, const Find& second_path,
                            const Make& make) {
  if (uses[static_cast<std::uint16_t>(call)] != Use::record) return make();
  Recording recording(call, {});
  const int result = make();
  const std::int64_t recorded = as_result(result);
  if (recording.is_open() && are_readable(path, other, recorded)) {
    const std::uint32_t first = path_at(directory, path), second = second_path();
    if (first == left_out_path && second == left_out_path) {
      recording.cancel();
      return result;
    }
    recording.change([&](Slot& slot) {
      slot.path = first == left_out_path ? 0 : first;
      slot.length = second == left_out_path ? iosig::trace::no_length : second;
    });
  }
  recording.end(recorded);
  return result;
}
template <Call call, class Make>
[[nodiscard]] int two(int from, const char* path, int to, const char* name, const Make& make) {
  return two_names<call>(
      from, path, name, [&] { return path_at(to, name); }, make);
}
/// symlink(2): the second path is what the program says.
template <Call call, class Make>
[[nodiscard]] int new_link(int directory, const char* path, const char* to, const Make& make) {
  return two_names<call>(
      directory, path, to, [&] { return path_as_said(to); }, make);
}

/// One side of a copy between descriptors. `offset`: null if it is the file offset.
struct CopySide {
  Subject subject;
  const off_t* offset;

  /// Returns where `done` bytes were moved, after the call.
  [[nodiscard]] std::int64_t moved(std::int64_t done) const {
    if (offset == nullptr) return subject.description->moved_by(subject.fd, done);
    return done >= 0 ? *offset - done : iosig::trace::no_offset;
  }
};

/// Records one side. `is_made`: the call was made before, and has its duration already. Keeps errno.
template <Call call, bool is_made = false, class Make>
[[nodiscard]] ssize_t copying(const CopySide& side, const Make& make) {
  if (side.subject.is_left_out) return make();
  if (uses[static_cast<std::uint16_t>(call)] != Use::record) {
    const ssize_t result = make();
    (void)side.moved(as_result(result));
    return result;
  }
  Recording recording(call, side.subject);
  const ssize_t result = make();
  const std::int64_t done = as_result(result);
  const std::int64_t offset = side.moved(done);
  recording.change([&](Slot& slot) {
    slot.offset = offset;
    if (side.offset == nullptr) slot.flags = iosig::trace::derived_offset;
  });
  if constexpr (is_made)
    recording.end_at_once(done);
  else
    recording.end(done);
  return result;
}

/// A call that moves bytes between two descriptors is recorded at the one that is written. What it read from the other
/// one follows as a record that takes no time; without a traced target, that is all there is.
template <Call call, class Make>
[[nodiscard]] ssize_t between(int from, const off_t* from_offset, int to, const off_t* to_offset, std::size_t count,
                              const Make& make) {
  const auto length = static_cast<std::int64_t>(count);
  const CopySide source{subject_of(from, iosig::trace::no_offset, length), from_offset};
  const CopySide target{subject_of(to, iosig::trace::no_offset, length), to_offset};
  constexpr Call source_call = iosig::trace::source_of(call);
  if (target.subject.is_left_out) return copying<source_call>(source, make);
  const ssize_t result = copying<call>(target, make);
  if (result >= 0) (void)copying<source_call, true>(source, [&] { return result; });
  return result;
}

/// close(2) and fclose(3): the descriptor may have another meaning as soon as the call is made.
template <Call call, class Make>
[[nodiscard]] int closing(int fd, const Make& make) {
  if (!is_known(fd)) return make();
  const Subject subject = subject_of(fd);
  const bool is_own = !is_in_memory_of_parent();
  const bool may_be_asked_again = this_part->limit == 0 && is_stray_child();  // file_behind()
  if (is_own) closed(fd);
  const int result = record<call>(subject, make);
  if (is_own && may_be_asked_again) closed(fd);
  return result;
}

/// A call on a stream of libc. `length`: bytes asked for. Its result is `result(returned)`.
template <Call call, class Make, class Convert>
[[nodiscard]] auto stream(FILE* stream, std::int64_t length, const Make& make, const Convert& convert) {
  const int fd = stream == nullptr ? -1 : ::fileno_unlocked(stream);
  const Subject subject = fd < 0 ? Subject{.is_left_out = true} : subject_of(fd, iosig::trace::no_offset, length);
  if (subject.is_left_out || uses[static_cast<std::uint16_t>(call)] != Use::record) return make();
  Recording recording(call, subject);
  const auto result = make();
  recording.end(convert(result));
  return result;
}

}  // namespace iosig::preload::trace
