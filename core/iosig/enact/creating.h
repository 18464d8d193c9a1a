// Which opens may be redirected: those that create the file, and follow a link while doing so.
//
// A link leads to a file that does not exist yet, so only such an open can pass through it. One set of rules for the
// runtime, which knows the mode, and for compilers, which may have to leave the question to the program.
#pragma once

#include <fcntl.h>

#include <cstring>

namespace iosig {

/// O_TMPFILE brings O_DIRECTORY along. `open` decides by these bits of its flags alone.
inline constexpr int deciding_flags = O_CREAT | O_EXCL | O_NOFOLLOW | O_DIRECTORY | O_PATH;
inline constexpr int creating_flags = O_CREAT;
constexpr bool flags_create(int flags) { return (flags & deciding_flags) == creating_flags; }

/// fopen's mode; null: no. glibc ends the letters at a comma (",ccs=...").
inline bool fopen_mode_creates(const char* mode) {
  if (mode == nullptr || (mode[0] != 'w' && mode[0] != 'a')) return false;
  return std::memchr(mode, 'x', std::strcspn(mode, ",")) == nullptr;
}

/// libstdc++'s bits of std::ios_base::openmode, which are the same for every C++ standard; false for combinations that
/// open refuses, and for noreplace.
constexpr bool openmode_creates(int openmode) {
  constexpr int app = 1, in = 8, out = 16, trunc = 32, noreplace = 64;
  if (openmode < 0 || openmode >= noreplace) return false;
  if ((openmode & app) != 0) return (openmode & trunc) == 0;
  return (openmode & out) != 0 && (openmode & (in | trunc)) != in;
}

}  // namespace iosig
