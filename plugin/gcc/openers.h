// The calls that open files: which functions they are, and where their arguments stand.
//
// A new opener that takes a path and flags is one more row of the table in openers.cc.
#pragma once

#include <optional>

#include "gcc.h"

namespace iosig::gcc {

/// How the mode argument is written, and with it which hint of iosig.h fits.
enum class Interface { open, fopen, fstream };

/// Arguments are counted from 0, `this` included; -1: there is none.
struct Opener {
  const char* name;
  Interface interface;
  int path;
  int mode;                     ///< open's flags, fopen's mode, or std::ios_base::openmode
  int mode_bits = 0;            ///< always set, beside what the argument says
  int dirfd = -1;               ///< openat's folder
  int permissions = -1;         ///< of a file that is created; absent: 0666
  bool path_is_object = false;  ///< a std::string or filesystem::path by reference; its first word is the char*
};

/// What `function` is if it opens files; nothing for any other function and for NULL_TREE.
[[nodiscard]] std::optional<Opener> opener_of(tree function);

/// Whether an open with this mode creates a missing file, and may go through a link when it does.
[[nodiscard]] bool flags_create(int flags);
[[nodiscard]] bool fopen_mode_creates(const char* mode);
[[nodiscard]] bool openmode_creates(int openmode);

/// Bits of open's flags that decide flags_create, and their value when it is true.
extern const int deciding_flags, creating_flags;
/// openmode_creates as a table: bit `m` for openmode `m` below 64; it is false from there on.
extern const unsigned long long creating_openmodes;

}  // namespace iosig::gcc
