// The next definitions of the functions that this library intercepts: those of libc, or of another library that is
// preloaded after this one.
#pragma once

#include <atomic>

#include "preload/hooks/libc_types.h"

namespace iosig::preload {

/// A pointer for each row of calls.txt that has `next`, with the function's name.
struct Real {
#include "real.inc"
};

extern constinit Real found_functions;
extern constinit std::atomic<bool> are_functions_found;
void find_functions();

/// Looks the functions up at the first call, which may happen before this library's constructors run.
[[nodiscard]] inline const Real& real() {
  if (!are_functions_found.load(std::memory_order_acquire)) [[unlikely]]
    find_functions();
  return found_functions;
}

}  // namespace iosig::preload
