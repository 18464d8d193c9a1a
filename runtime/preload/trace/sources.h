// `iosig trace --source`: which calls come from given lines of source code, directly or through libraries.
//
// A call does if a return address on its stack lies in the code of these lines. iosig-lines (runtime/lines) says which
// code that is; it runs when the first call is made, and again when a library is met that was loaded since. A call
// through a chain of callers that is known costs a comparison for each frame; for any other the unwinder walks the
// stack.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace iosig::preload::trace {

/// Whether calls are selected by where they come from.
extern constinit bool has_sources;

/// Selects calls from `lines` (as IOSIG_TRACE_SOURCES has them) by the program `reader`, an absolute path. Both live as
/// long as the process. Called when the library is loaded.
void set_sources(std::string_view reader, std::string_view lines);

/// Whether a return address on this thread's stack lies in the code of the lines. Preserves errno.
[[nodiscard]] bool is_called_from_sources();

/// A stack whose answer is known: the words that make it this one, from the innermost frame to the one that decides, or
/// to the outermost.
struct Chain {
  const void* frame;    ///< of is_called_from_sources(); null: unused
  std::uint32_t words;  ///< noted; more than fit: the answer cannot be kept
  bool is_selected;
  std::array<const std::uintptr_t*, 128> places;
  std::array<std::uintptr_t, 128> values;  ///< that they hold

  void note(const std::uintptr_t* place, std::uintptr_t value) {
    if (words < places.size()) {
      places[words] = place;
      values[words] = value;
    }
    ++words;
  }
};

/// Call chains that a thread has seen. In its part's memory, zero at first.
struct ChainCache {
  static constexpr std::size_t sets = 64, ways = 4;
  std::array<std::array<Chain, ways>, sets> chains;
  std::array<std::uint32_t, sets> next;  ///< that is replaced
  Chain walked;
  bool is_walking;        ///< a signal handler may interrupt a walk
  std::uint32_t changes;  ///< of `chains`
};

}  // namespace iosig::preload::trace
