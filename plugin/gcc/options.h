// What -fplugin-arg-iosig-... asks for.
#pragma once

#include <string>

namespace iosig::gcc {

enum class Resolve {
  run,      ///< the running program asks libiosig where the file should live (default)
  compile,  ///< the destination is fixed while compiling: IOSIG paper, section 6.1 and Fig. 5
};

struct Options {
  Resolve resolve = Resolve::run;
  std::string storage;   ///< storage description for `compile`; empty: the usual search
  bool verbose = false;  ///< tell at every call which signature it got
};

inline Options options;

}  // namespace iosig::gcc
