// An order of batches that preserves the order within each process and between batches that overlap.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace iosig {

/// Order constraints. Batches are numbered process by process, within each process in its order.
struct OrderConstraints {
  std::vector<std::int64_t> processes;                          ///< of each batch, ascending
  std::vector<std::pair<std::uint32_t, std::uint32_t>> before;  ///< first before second
  std::vector<std::pair<std::uint32_t, std::uint32_t>> mixed;   ///< to be ordered access by access
};

/// Groups of batches, sorted by number. Most groups have one member. The others consist of mixed batches and of batches
/// that would have to come both before and after such a group.
struct OrderGroups {
  std::vector<std::vector<std::uint32_t>> members;
  std::vector<std::vector<std::uint32_t>> after;  ///< of each group: groups that must come later; may repeat
};
[[nodiscard]] OrderGroups groups_of(const OrderConstraints& constraints);

/// Returns the groups in an order that `groups.after` permits: of the groups that may be next, always the one with the
/// lowest priority value. Priorities must be distinct.
[[nodiscard]] std::vector<std::uint32_t> ordered(const OrderGroups& groups, std::span<const std::uint64_t> priorities);

}  // namespace iosig
