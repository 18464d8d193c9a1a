// Says what of a container is lost, and brings its droppings in order: everything sound stays where it is, the rest is
// quarantined. Bytes that are lost stay lost, and are said to be.
#pragma once

#include <string>
#include <vector>

#include "iosig/container/read/content.h"

namespace iosig {

/// Bytes of the logical file that cannot be read: a dropping that should hold them is missing, or was cut.
struct LostRange {
  std::int64_t offset = 0, length = 0;
};

struct ContainerCheck {
  std::int64_t size = 0;
  std::vector<ContainerProblem> problems;
  std::vector<LostRange> lost;  ///< the first ones, in order
  std::int64_t lost_bytes = 0;  ///< of the logical file, in all; what lost its index is not among them
};

/// Reads the indices and looks at the droppings' sizes; of the data nothing is read.
[[nodiscard]] Result<ContainerCheck> check_container(const std::shared_ptr<const ContainerDirectory>& directory);

struct RepairStep {
  std::string done;  ///< what was, or would be, done
};

/// Notes what dead writers had not put into their indices, rewrites indices without what is unsound, and quarantines
/// (into a directory `.iosig-aside-<time>` of the container) whatever belongs to no sound writer, and what it replaces.
/// Lost writes are given up: what is there is read from then on, as if they had never been, and check goes on to name
/// them. Writers that live are left alone. Nothing is deleted but tails whose writes stand in an index then.
struct RepairOptions {
  bool dry_run = false;  ///< say what would be done
  bool claim = false;    ///< a copy takes the data on the targets from the container that they belong to
};
[[nodiscard]] Result<std::vector<RepairStep>> repair_container(
    const std::shared_ptr<const ContainerDirectory>& directory, const RepairOptions& options = {});

}  // namespace iosig
