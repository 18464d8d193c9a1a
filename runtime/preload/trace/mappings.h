// Which files are mapped where, for msync(2) and munmap(2), whose arguments are addresses. Never waits: a mapping that
// finds no place, or a table in use, is not known, and its calls are not recorded.
#pragma once

#include <cstddef>
#include <cstdint>

#include "preload/trace/subjects.h"

namespace iosig::preload::trace {

/// Called after `length` bytes from `offset` of the file of `subject` were mapped at `at`.
void mapped(const void* at, std::size_t length, const Subject& subject, std::int64_t offset);
/// Called before the addresses are unmapped, since another thread's mmap(2) may get them in the moment in which they
/// are free; and after they were mapped to something else.
void unmapped(const void* at, std::size_t length);
/// Whether munmap(2) accepts the arguments. It then fails only where the process has too many mappings; the file's
/// mapping is forgotten all the same.
[[nodiscard]] inline bool can_unmap(const void* at, std::size_t length) {
  return reinterpret_cast<std::uintptr_t>(at) % iosig::trace::page_bytes == 0 && length != 0;
}
/// Returns what a call on these addresses is about: of the part that lies in the first mapping met. `is_left_out` if
/// none is known.
[[nodiscard]] Subject subject_at(const void* at, std::size_t length);
/// Forgets all: in a child, whose trace is one of its own.
void forget_mappings();

/// A call on mapped memory.
template <Call call, class Make>
[[nodiscard]] int mapping(const void* at, std::size_t length, const Make& make) {
  const Subject subject = subject_at(at, length);
  if constexpr (call == Call::munmap)
    if (!subject.is_left_out && can_unmap(at, length)) unmapped(at, length);
  return record<call>(subject, make);
}

}  // namespace iosig::preload::trace
