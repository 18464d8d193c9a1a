// Destination of a pragma's file, chosen at compile time. Independent of the compiler.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "iosig/model/signature.h"
#include "iosig/model/storage.h"

namespace iosig {

/// Position of a pragma in the source.
struct SourcePlace {
  std::string file;
  int line = 0, column = 0;
};

/// Why no destination was found: one sentence, and one more for each mount point.
struct NoDestination {
  std::string summary;
  std::vector<std::string> reasons;
};

struct Destination {
  std::string path;
  std::string warning;  ///< the chosen mount point may fill up where others have room; "" if not
};

/// Path of the one file that `site` may redirect: named after the source file, in a directory named by a hash of the
/// position, inside this user's directory on the best mount point. Equal inputs give equal paths; different positions
/// give different ones.
///
/// The path that the program will open is unknown here, so the data may stay where they are written. Fails too if
/// $IOSIG_POLICY has a wrong value.
/// Creates only the user's directory if it is missing; the program creates the one below. Fails if no mount point is
/// admissible, or if the directory on the chosen one does not belong to this user.
[[nodiscard]] tl::expected<Destination, NoDestination> choose_destination(const Signature& wanted,
                                                                          const Storage& storage,
                                                                          const SourcePlace& site);

}  // namespace iosig
