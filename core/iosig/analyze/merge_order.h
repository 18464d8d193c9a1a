// An order of batches that keeps each process's own and that of batches which overlap.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace iosig {

/// Batches are numbered process after process, in each process in its order.
struct OrderConstraints {
  std::vector<std::int64_t> processes;                          ///< of each batch, rising
  std::vector<std::pair<std::uint32_t, std::uint32_t>> before;  ///< first before second
  std::vector<std::pair<std::uint32_t, std::uint32_t>> mixed;   ///< to be put in order access by access
};

/// Groups of batches, each in order of number. Most have one member; the others are those that are mixed, and those
/// that would have to come both before and after such a group.
struct OrderGroups {
  std::vector<std::vector<std::uint32_t>> members;
  std::vector<std::vector<std::uint32_t>> after;  ///< of each group: groups that must come later; some twice
};
[[nodiscard]] OrderGroups groups_of(const OrderConstraints& constraints);

/// The groups in an order that `groups.after` allows: always the one with the least priority of those that may be next.
/// Priorities are unlike each other.
[[nodiscard]] std::vector<std::uint32_t> ordered(const OrderGroups& groups, std::span<const std::uint64_t> priorities);

}  // namespace iosig
