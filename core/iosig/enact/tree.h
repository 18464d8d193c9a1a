// A directory with all that is in it: what it occupies, and its removal.
#pragma once

#include <cstdint>
#include <string>

#include "iosig/base/files.h"

namespace iosig {

/// Bytes of the files in a tree, and when anything in it last changed.
struct Extent {
  std::uint64_t data_bytes = 0;
  std::int64_t changed_unix_s = 0;
};

/// Of `name` in `parent` and all below it. Follows no link; entries that cannot be inspected count nothing.
[[nodiscard]] Extent extent_of(const Fd& parent, const std::string& name);

/// **Deletes** `name` in `parent` and all below it; a name that is not there is fine. Follows no link. Fails as
/// `infeasible` where another file system is mounted below, and as `system`; what was deleted until then stays deleted.
/// Messages call it `shown`.
[[nodiscard]] Result<void> remove_tree(const Fd& parent, const std::string& name, const std::string& shown);

}  // namespace iosig
