// Merges the indices of all writers of a container into one, in one of three forms: a pattern; a packed table, where
// the writes have no pattern (container/read/irregular_index); a map of pieces (traditional index). Pure functions.
#pragma once

#include <vector>

#include "iosig/base/result.h"
#include "iosig/container/read/content.h"
#include "iosig/container/read/piece_map.h"
#include "iosig/model/pattern.h"

namespace iosig {

inline constexpr std::int64_t hole_id = -1;  ///< the writer id of holes that truncations and punches made

/// Returns the bytes that marks turn into holes, as writes of hole_id, sorted by sequence number.
[[nodiscard]] std::vector<IndexEntry> holes_of(const ContainerContent& content);

/// Returns a pattern of all writes, as (logical offset, length, physical offset, id). Overlapping writes are in the
/// order of their sequence numbers. Marks that make holes are writes of hole_id; a truncation's reaches to 2^63 - 1.
/// Fails as merge_patterns() does, and with `bad_input` for entries of a traditional index.
[[nodiscard]] Result<Pattern> merge_indices(const ContainerContent& content);

enum class MergedForm {
  pattern,
  pattern_or_table,  ///< a table if most writes have no pattern
};
/// Returns the merged index, without the state of a snapshot. Fails as merge_indices().
[[nodiscard]] Result<IndexSnapshot> merged_index(const ContainerDirectory& directory, const ContainerContent& content,
                                                 MergedForm form = MergedForm::pattern_or_table);

/// Returns a map of all writes, each put on top of those with smaller sequence numbers, as PLFS 2.x does. Fails with
/// `infeasible` above 2^28 writes.
[[nodiscard]] Result<PieceMap> piece_map_of(const ContainerContent& content);

}  // namespace iosig
