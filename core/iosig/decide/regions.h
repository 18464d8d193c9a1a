// Divides files into regions, and the requests into groups that are alike.
//
// A request that crosses regions becomes one request in each. Empty requests are dropped. Pure.
// Source: docs/references.md#h2dp section 3.3 (fixed regions of 64 MB). Ours: groups, whole patterns at once, adaptive
// regions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/decide/request_places.h"
#include "iosig/model/pattern.h"
#include "iosig/model/striping.h"

namespace iosig {

/// Byte ranges of one file that follow each other: range n ends where n + 1 begins; the first begins at 0.
struct RegionBounds {
  std::vector<std::uint64_t> ends;  ///< ascending
};

/// Returns regions of `region_bytes` > 0 up to the end of `file_bytes`; the last may be shorter. Fails with `usage` if
/// there would be more than 2^24 of them.
[[nodiscard]] Result<RegionBounds> fixed_regions(std::uint64_t file_bytes,
                                                 std::uint64_t region_bytes = default_region_bytes);

/// Returns for each region the first region with equal length and groups: what is computed for that one holds for both.
[[nodiscard]] std::vector<std::size_t> first_equal_regions(std::span<const Region> regions);

struct AdaptiveOptions {
  std::uint64_t max_region_bytes = default_region_bytes;
  double ratio = 1.5;  ///< > 1: units are alike while their requests, and the lengths of these, differ by less
};

inline constexpr std::uint64_t default_unit_bytes = std::uint64_t{1} << 20U;

/// Cuts a file where its use changes. `units`: equally long regions of one file, with the groups of all windows (from a
/// RegionCollector over fixed_regions(file_bytes, default_unit_bytes), or smaller). Neighbouring units form one region
/// while their number of requests is alike (by `ratio`, or within three standard deviations of chance), the mean
/// lengths of requests are, and the region is at most max_region_bytes long.
[[nodiscard]] RegionBounds adaptive_regions(std::span<const Region> units, const AdaptiveOptions& options = {});

/// Collects requests and patterns of one file and one window into regions with their groups.
///
/// Requests of a region with the same length and kind form groups: one progression, if their places are evenly spaced;
/// one for each place, if these are few (decide/request_places); otherwise scattered ones over the parts of the region
/// that are unlike in hotness. After 64 lengths and kinds in a region, further lengths count as the next power of two.
class RegionCollector {
 public:
  explicit RegionCollector(const RegionBounds& bounds, std::uint32_t file = 0);

  /// Fails with `bad_input` if a request ends after 2^63 - 1. Parts after the last region are only counted: outside().
  [[nodiscard]] Result<void> add(std::span<const Request> requests);
  /// `count` requests of `length` bytes at offset, offset + stride, ...: closed form over the regions.
  [[nodiscard]] Result<void> add(const RequestGroup& progression);
  /// The accesses of a pattern with the columns logical and length, all of one kind. Time: proportional to the loops'
  /// turns outside of the one loop around each leaf that gives a region most requests, not to the number of accesses;
  /// literals and exceptions are added one by one. A progression with an exception counts as scattered.
  [[nodiscard]] Result<void> add(const Pattern& accesses, bool is_write);

  [[nodiscard]] std::uint64_t outside() const { return outside_; }
  /// Where the last of all requests ends, also of those that an exception of a pattern replaces.
  [[nodiscard]] std::uint64_t end_bytes() const { return end_bytes_; }
  /// Returns all regions in the order of their offsets, also those without requests.
  [[nodiscard]] std::vector<Region> regions() const;

 private:
  [[nodiscard]] std::size_t region_at(std::uint64_t offset) const;
  void put(std::size_t region, const RequestGroup& group);
  void drop(std::size_t region, const RequestGroup& one);
  /// Calls put or drop for the part of a request in each region.
  void split(std::uint64_t offset, std::uint64_t length, bool is_write, bool is_added = true);

  std::vector<std::uint64_t> ends_;
  std::uint32_t file_;
  std::uint64_t outside_ = 0, end_bytes_ = 0;
  std::vector<std::vector<RequestPlaces>> places_;  ///< of each region, for each length and kind
};

}  // namespace iosig
