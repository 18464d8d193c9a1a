// Where the file of one pragma goes when that is decided while the program is compiled. Independent of the compiler.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "iosig/model/signature.h"
#include "iosig/model/storage.h"

namespace iosig {

/// Where a pragma stands in the source.
struct SourcePlace {
  std::string file;
  int line = 0, column = 0;
};

/// Why there is no destination: one sentence, and one more for each mount point.
struct NoDestination {
  std::string summary;
  std::vector<std::string> reasons;
};

/// Path of the one file that `site` may redirect: named after the source file, in a directory named by a hash of the
/// place, in this user's directory on the best mount point. Equal inputs give equal paths, different places different
/// ones.
///
/// Makes the user's directory when it is missing, and nothing else: the program makes the directory. Fails when no
/// mount point is admissible, or when the directory on the chosen one is not this user's.
[[nodiscard]] tl::expected<std::string, NoDestination> choose_destination(const Signature& wanted,
                                                                          const Storage& storage,
                                                                          const SourcePlace& site);

}  // namespace iosig
