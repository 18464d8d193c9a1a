// A write map: who writes which bytes of one file, in which order, kept as a pattern for each rank, so that regular
// jobs take no memory for their writes.
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

/// What one rank writes.
struct RankWrites {
  std::int64_t rank = 0;
  /// In the rank's order, IndexColumn's columns: logical offset, length, physical offset (the bytes that the rank wrote
  /// before), sequence number (how many writes of any rank come before).
  Pattern writes;
};

struct WriteMap {
  std::vector<RankWrites> ranks;  ///< by rank
  std::uint64_t writes = 0;
  std::int64_t bytes = 0;      ///< that are written
  std::int64_t size = 0;       ///< of the file in the end
  std::int64_t longest = 0;    ///< write
  std::uint64_t left_out = 0;  ///< writes of ranks that were not wanted, and truncations
};

inline constexpr std::size_t max_mapped_ranks = 8192;
inline constexpr std::int64_t max_write_bytes = std::int64_t{1} << 30;

class WriteMapBuilder {
 public:
  /// Writes of ranks from `end_rank` on are left out.
  explicit WriteMapBuilder(std::int64_t end_rank = INT64_MAX) : end_rank_(end_rank) {}

  /// The next write of the job. Below rank 0 it is nobody's and left out. Fails as `bad_input` for what ends after byte
  /// 2^63 - 1, also added up, for more than max_write_bytes in one write, and for more than max_mapped_ranks.
  [[nodiscard]] Result<void> add(std::int64_t rank, std::int64_t offset, std::int64_t length);
  /// What was added. Leaves the builder empty.
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

/// The vectors of a description in their order: with columns named logical and length and perhaps id, or, where none is
/// named, logical, length, physical, id or the first two or three of these. Without ids all is rank 0's. Fails as
/// add(), with `source` and the vector's position.
[[nodiscard]] Result<void> add_pattern(WriteMapBuilder& builder, const Pattern& pattern, const std::string& source);

/// What the writers of the container at `path` have written, in an order that their numbers allow.
[[nodiscard]] Result<void> add_container(WriteMapBuilder& builder, const std::string& path);

/// All writes as one pattern; those that overlap in the order of the map. Fails as merge_patterns().
[[nodiscard]] Result<MergedPattern> merged_writes(const WriteMap& map);

}  // namespace iosig
