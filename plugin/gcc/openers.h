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

}  // namespace iosig::gcc
