// The plugin's options (-fplugin-arg-iosig-...).
#pragma once

#include <optional>
#include <string>

#include "iosig/model/signature.h"

namespace iosig::gcc {

enum class Resolve {
  run,      ///< the running program asks libiosig for the destination (default)
  compile,  ///< the destination is fixed at compile time: IOSIG paper, section 6.1 and Fig. 5
};

struct Options {
  Resolve resolve = Resolve::run;
  std::string storage;           ///< storage description for `compile`; empty: the usual search
  std::optional<Policy> policy;  ///< of signatures that have none
  bool verbose = false;          ///< report the signature of every call
};

inline Options options;

}  // namespace iosig::gcc
