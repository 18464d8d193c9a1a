// Directory trees: the space that they occupy, and their removal.
#pragma once

#include <cstdint>
#include <string>

#include "iosig/base/files.h"

namespace iosig {

/// The bytes of the files in a tree, and the time of the latest change in it.
struct Extent {
  std::uint64_t data_bytes = 0;
  std::int64_t changed_unix_s = 0;
};

/// Returns the extent of `name` in `parent` and everything below it. Follows no link. Skips entries that cannot be
/// inspected.
[[nodiscard]] Extent extent_of(const Fd& parent, const std::string& name);

/// **Deletes** `name` in `parent` and everything below it. Succeeds if it does not exist. Follows no link. Fails as
/// `infeasible` where another file system is mounted below, else as `system`; what was deleted until then stays
/// deleted. Messages call it `shown`.
[[nodiscard]] Result<void> remove_tree(const Fd& parent, const std::string& name, const std::string& shown);

}  // namespace iosig
