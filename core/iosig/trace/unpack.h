// Reads a block of packed calls (pack.h). For any bytes: a fault is a refusal, and memory stays below 100 KB a block.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "iosig/trace/part_layout.h"

namespace iosig::trace {

/// Returns the header of a block chunk's payload; nothing if it is too short or impossible.
[[nodiscard]] std::optional<BlockHeader> block_header(std::span<const std::byte> payload);

/// Returns the calls of a block chunk's payload (without padding) in the order of the block, exactly as they were
/// packed. Nothing if the payload is no block, has bytes beyond its columns, or a header that contradicts the calls.
[[nodiscard]] std::optional<std::vector<Slot>> unpack(std::span<const std::byte> payload);

/// Returns the 64-bit form of a call's or parent's id in a block (or in slots) whose least id is `first_id`.
[[nodiscard]] inline std::uint64_t full_id(std::uint32_t id, std::uint64_t first_id) {
  return first_id + static_cast<std::uint32_t>(id - static_cast<std::uint32_t>(first_id));
}

}  // namespace iosig::trace
