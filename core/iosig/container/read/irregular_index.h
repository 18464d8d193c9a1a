// The merged index of writes without a pattern: a packed table of pieces instead of a pattern of literals.
#pragma once

#include <optional>

#include "iosig/analyze/piece_table.h"
#include "iosig/container/read/content.h"

namespace iosig {

/// Whether most of the writes, and not just a few, are literals of their patterns. A pattern of them would be larger
/// than a table, and a lookup in it slower.
[[nodiscard]] bool is_irregular(const ContainerContent& content);

/// Returns the bytes of the file that are not holes, each from the last write to it in the order of the sequence
/// numbers; of equal numbers the greater id's, or the writer's later one. O(n log m) for n writes of which m lie over
/// each other. Nothing if a write has a negative offset or ends behind byte 2^63 - 1.
[[nodiscard]] std::optional<PieceTable> piece_table_of(const ContainerContent& content);

}  // namespace iosig
