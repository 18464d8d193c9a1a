// How MPI-IO calls are recorded (hooks/calls.txt, `trace=`). What the MPI library does for them appears as calls of
// their own below them. The recorded result is the number of bytes that were asked for, or the negative MPI error
// class.
#pragma once

#include "preload/hooks/libc_types.h"
#include "preload/trace/open_places.h"
#include "preload/trace/subjects.h"

namespace iosig::preload::trace {

/// Returns the trace's id of an open MPI file; 0: unknown or left out.
[[nodiscard]] std::uint32_t id_of_file(MpiHandle file);
/// Called after a file was opened. Returns its id.
std::uint32_t file_opened(MpiHandle file);
/// Called before a file is closed.
void file_closed(MpiHandle file);
/// Returns the class of an error code; 0 of success.
[[nodiscard]] int class_of(int failure);
/// Returns how many processes the communicator has.
[[nodiscard]] std::int64_t processes_of(MpiHandle communicator);
/// Returns the bytes of `count` elements of a datatype.
[[nodiscard]] std::int64_t bytes_of(long long count, MpiHandle type);

/// Makes the call and records it, unless it is the MPI library's own way to do the same call (MPI_NAME to PMPI_NAME).
template <Call call, class Make>
[[nodiscard]] int on_subject(const Subject& subject, const Make& make) {
  if (subject.is_left_out || uses[static_cast<std::uint16_t>(call)] != Use::record || innermost_call() == call)
    return make();
  Recording recording(call, subject);
  const int failure = make();
  recording.end(failure != 0 ? -std::int64_t{class_of(failure)} : subject.length > 0 ? subject.length : 0);
  return failure;
}

template <Call call, class Make>
[[nodiscard]] int on_file(MpiHandle file, std::int64_t offset, const Make& make) {
  const std::uint32_t id = id_of_file(file);
  return on_subject<call>({.offset = offset, .file = id, .is_left_out = id == 0}, make);
}

/// A read or write of `count` elements of the datatype.
template <Call call, class Make>
[[nodiscard]] int transfer(MpiHandle file, std::int64_t offset, long long count, MpiHandle type, const Make& make) {
  const std::uint32_t id = id_of_file(file);
  if (id == 0) return make();
  return on_subject<call>({.offset = offset, .length = bytes_of(count, type), .file = id}, make);
}

template <Call call, class Make>
[[nodiscard]] int opening(const char* path, int mode, const MpiHandle* file, const Make& make) {
  if (innermost_call() == call) return make();
  const std::uint32_t id = path_at(AT_FDCWD, path);
  if (id == left_out_path) return make();
  const bool is_recorded = uses[static_cast<std::uint16_t>(call)] == Use::record && is_selected();
  Recording recording(call, {.length = mode, .path = id}, is_recorded);
  const int failure = make();
  if (failure == 0) {
    const std::uint32_t made = file_opened(*file);
    recording.change([&](Slot& slot) {
      slot.file = made;
      // The file's later calls may be recorded: they need its name.
      if (!is_recorded) slot.call = Call::inherited;
    });
  } else if (!is_recorded) {
    recording.cancel();
  }
  recording.end(-std::int64_t{class_of(failure)});
  if (failure == 0) note_open_place(id);
  return failure;
}

template <Call call, class Make>
[[nodiscard]] int closing_file(const MpiHandle* file, const Make& make) {
  const MpiHandle closed = *file;
  const int failure = on_file<call>(closed, iosig::trace::no_offset, make);
  if (innermost_call() != call) file_closed(closed);
  return failure;
}

/// A call in which processes wait for each other: its length is their number. Those of the MPI library's own, during a
/// call on a file, are not recorded.
template <Call call, class Make>
[[nodiscard]] int waiting(MpiHandle communicator, const Make& make) {
  if (uses[static_cast<std::uint16_t>(call)] != Use::record || is_in_mpi_call()) return make();
  Recording recording(call, {});
  const int failure = make();
  if (failure == 0) {
    const std::int64_t processes = processes_of(communicator);
    recording.change([&](Slot& slot) { slot.length = processes; });
  }
  recording.end(-std::int64_t{class_of(failure)});
  return failure;
}

template <Call call, class Make>
[[nodiscard]] int at_path(const char* path, const Make& make) {
  const std::uint32_t id = path_at(AT_FDCWD, path);
  return on_subject<call>({.path = id, .is_left_out = id == left_out_path}, make);
}

}  // namespace iosig::preload::trace
