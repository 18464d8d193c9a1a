// A write map: which rank writes which bytes of one file, in which order. It keeps one pattern for each rank, so
// regular jobs need no memory for each write.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "iosig/analyze/detect.h"
#include "iosig/analyze/merge.h"
#include "iosig/base/result.h"
#include "iosig/model/pattern.h"

namespace iosig {

/// The writes of one rank.
struct RankWrites {
  std::int64_t rank = 0;
  /// In the rank's order, with the columns of IndexColumn: logical offset, length, physical offset (bytes that the rank
  /// wrote before), sequence number (number of earlier writes of all ranks).
  Pattern writes;
};

struct WriteMap {
  std::vector<RankWrites> ranks;  ///< sorted by rank
  std::uint64_t writes = 0;
  std::int64_t bytes = 0;      ///< sum of all writes
  std::int64_t size = 0;       ///< greatest end of a non-empty write
  std::int64_t longest = 0;    ///< length of the longest write
  std::uint64_t left_out = 0;  ///< truncations, and writes of ranks that were excluded
};

inline constexpr std::size_t max_mapped_ranks = 8192;
inline constexpr std::int64_t max_write_bytes = std::int64_t{1} << 30;

class WriteMapBuilder {
 public:
  /// Leaves out the writes of ranks from `end_rank` on.
  explicit WriteMapBuilder(std::int64_t end_rank = INT64_MAX) : end_rank_(end_rank) {}

  /// Adds the next write of the job; leaves it out if the rank is negative. Fails as `bad_input` if it ends after byte
  /// 2^63 - 1, for more than 2^63 - 1 bytes in all, for more than max_write_bytes in one write, and for more than
  /// max_mapped_ranks.
  [[nodiscard]] Result<void> add(std::int64_t rank, std::int64_t offset, std::int64_t length);
  /// Returns the map and leaves the builder empty.
  [[nodiscard]] WriteMap finish();

 private:
  struct Rank {
    Rank();
    Detector detector;
    std::int64_t bytes = 0;
  };
  std::int64_t end_rank_;
  std::unordered_map<std::int64_t, std::unique_ptr<Rank>> ranks_;
  WriteMap map_;
};

/// Adds the vectors of a description, in order. Columns: those named logical and length, and optionally id; if no
/// column is named, logical, length, physical, id, or the first two or three of these. Without ids, all writes belong
/// to rank 0. Fails like add(), with `source` and the vector's position.
[[nodiscard]] Result<void> add_pattern(WriteMapBuilder& builder, const Pattern& pattern, const std::string& source);

/// Adds the writes in the container at `path`, in an order that their sequence numbers allow.
[[nodiscard]] Result<void> add_container(WriteMapBuilder& builder, const std::string& path);

/// Returns all writes as one pattern, with overlapping ones in the order of the map. Fails like merge_patterns().
[[nodiscard]] Result<MergedPattern> merged_writes(const WriteMap& map);

}  // namespace iosig
