// Decides which opens may be redirected: those that create the file and follow a symbolic link while doing so.
//
// The link leads to a file that does not exist yet, so only such an open can pass through it. The same rules serve the
// runtime, which knows the mode, and compilers, which may have to leave the decision to run time.
#pragma once

#include <fcntl.h>

#include <cstring>

namespace iosig {

/// The flags that decide whether open(2) creates a file through a link. O_TMPFILE includes O_DIRECTORY.
inline constexpr int deciding_flags = O_CREAT | O_EXCL | O_NOFOLLOW | O_DIRECTORY | O_PATH;
inline constexpr int creating_flags = O_CREAT;
constexpr bool flags_create(int flags) { return (flags & deciding_flags) == creating_flags; }

/// Whether fopen with this mode creates the file; null: no. glibc ignores the letters from a comma on (",ccs=...").
inline bool fopen_mode_creates(const char* mode) {
  if (mode == nullptr || (mode[0] != 'w' && mode[0] != 'a')) return false;
  return std::memchr(mode, 'x', std::strcspn(mode, ",")) == nullptr;
}

/// Whether libstdc++'s std::ios_base::openmode creates the file; the bits are the same for every C++ standard. False
/// for combinations that open refuses, and for noreplace.
constexpr bool openmode_creates(int openmode) {
  constexpr int app = 1, in = 8, out = 16, trunc = 32, noreplace = 64;
  if (openmode < 0 || openmode >= noreplace) return false;
  if ((openmode & app) != 0) return (openmode & trunc) == 0;
  return (openmode & out) != 0 && (openmode & (in | trunc)) != in;
}

}  // namespace iosig
