// How operations of io_uring are recorded: those that the program submits through liburing's functions.
//
// Each is recorded as one call, from its submission until its completion was first seen. Requests are read from the
// submission ring before the program submits them. Completions are read from the completion ring whenever the program
// calls a function of liburing that is no inline function: those that it has consumed by itself in the meantime are
// still in the ring's memory, unless the kernel has needed their places. The file offset, iovecs and registered files
// are resolved when an operation is submitted.
#pragma once

#include "preload/hooks/libc_types.h"
#include "preload/trace/recorder.h"

namespace iosig::preload::trace {

/// Notes the operations that the next call submits. Preserves errno.
void note_submissions(io_uring* ring);
/// Records the operations that have completed. Preserves errno.
void record_completions(io_uring* ring);
/// Forgets the ring. Operations that have not completed are recorded as they are. Preserves errno.
void forget_ring(io_uring* ring);
/// Called after `count` descriptors were registered in the ring, from the place `first` on; null: all were
/// unregistered.
void note_registered(io_uring* ring, unsigned first, const int* files, unsigned count);
/// Records what is left in all rings, when the process ends.
void end_rings();

template <Call, class Make>
[[nodiscard]] auto submitting(io_uring* ring, const Make& make) {
  record_completions(ring);
  note_submissions(ring);
  const auto result = make();
  record_completions(ring);
  return result;
}

template <Call, class Make>
[[nodiscard]] auto reaping(io_uring* ring, const Make& make) {
  record_completions(ring);
  const auto result = make();
  record_completions(ring);
  return result;
}

template <Call, class Make>
void closing_ring(io_uring* ring, const Make& make) {
  forget_ring(ring);
  make();
}

template <Call, class Make>
[[nodiscard]] int registering(io_uring* ring, unsigned first, const int* files, unsigned count, const Make& make) {
  const int result = make();
  if (result >= 0) note_registered(ring, first, files, count);
  return result;
}

}  // namespace iosig::preload::trace
