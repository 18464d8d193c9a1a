// Whether the end of an access is known, and the bytes that it moved.
#pragma once

#include <cstdint>

#include "iosig/trace/trace.h"

namespace iosig::observe {

/// Whether its end is known: it had returned when the trace ended, and not by longjmp(3).
[[nodiscard]] inline bool has_ended(const trace::Access& access) {
  return !access.is_in_flight && (access.flags & trace::abandoned) == 0;
}

/// Bytes that it read or wrote; 0 if it failed, or has no end.
[[nodiscard]] inline std::uint64_t moved_bytes(const trace::Access& access) {
  return has_ended(access) && access.result > 0 && trace::moves_of(access.call) != trace::Moves::nothing
             ? static_cast<std::uint64_t>(access.result)
             : 0;
}

}  // namespace iosig::observe
