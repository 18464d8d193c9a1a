// Keeps errno for the caller of code that runs inside another program's call.
#pragma once

#include <cerrno>

namespace iosig {

struct ErrnoKept {
  const int before = errno;
  ~ErrnoKept() { errno = before; }
};

}  // namespace iosig
