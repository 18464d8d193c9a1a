// Where a program opens its files: the return addresses on the stack of an open, as facts of the process
// (docs/formats/trace.md). `iosig infer --pragmas` finds their lines.
//
// Only programs that have line tables of their own (compiled with -g) are asked; of others, this costs one look at the
// program's file. The stack is walked by the unwinder: 2 us, and 0.25 us for each function.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace iosig::preload::trace {

/// A walk over the stack of an open.
struct OpenWalk {
  std::uint32_t walks;  ///< of this thread so far
  int walked;           ///< functions
  std::size_t count;    ///< of those, in the program or in its own libraries
  std::uint64_t hash;
  std::array<std::uintptr_t, 12> addresses;  ///< theirs, innermost first
};

/// The places that a thread has written, and memory for more. In its part's memory, zero at first.
struct PlaceCache {
  static constexpr std::size_t fact_bytes = 4400;
  std::array<std::uint64_t, 512>
      noted;  ///< places and paths that were written: OpenWalk::hash and the path's id, mixed
  std::array<std::uintptr_t, 32> objects;  ///< programs and libraries that were written, by where they are loaded
  std::uint32_t next_object;
  OpenWalk walk;
  std::array<char, fact_bytes> text;
  std::array<char, 8192> section_headers;          ///< of the program: 128
  alignas(16) std::array<std::byte, 16384> stack;  ///< of the unwinder
};

/// Whether places are noted. Called when the library is loaded.
void set_open_places(bool are_noted);

/// Called after a file was opened whose path has this id: notes from where. Preserves errno.
void note_open_place(std::uint32_t path);

}  // namespace iosig::preload::trace
