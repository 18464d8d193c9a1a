// Packs vectors without structure into bytes: blocks of up to 256 vectors, column by column, each with its cheapest
// predictor.
//
// The residuals are packed with as many bits as the widest needs. A column that is constant, grows steadily or is the
// running sum of another one thus takes a few bytes per block; columns of noise take their full width: 40-bit offsets 5
// bytes each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace iosig {

inline constexpr std::size_t block_vectors = 256;

/// A block consists of the number of vectors (LEB128), then for each column in order: one byte for the predictor (0
/// nothing, 1 the previous value, 2 that plus the step before it, 3 + s the previous value plus column s there), one
/// byte for the bits of a residual, the values that the predictor needs (none, the first, the first two, the first;
/// zigzag LEB128), the least residual (zigzag LEB128), and the residuals relative to it, lowest bits first. Arithmetic
/// is modulo 2^64.
///
/// Appends 1 to block_vectors vectors of `columns` numbers to `bytes`. Equal vectors give equal bytes.
void append_block(std::span<const std::int64_t> vectors, std::uint32_t columns, std::vector<std::uint8_t>& bytes);

struct BlockSize {
  std::size_t vectors = 0, bytes = 0;
};
/// Returns the size of the block at the beginning of `bytes`; nothing if they are not a block. Does not decode it.
[[nodiscard]] std::optional<BlockSize> size_of_block(std::span<const std::uint8_t> bytes, std::uint32_t columns);

/// Reads the block at the beginning of `bytes` and returns its size in bytes; nothing if they are not a block. Replaces
/// `out`, which grows to at most block_vectors vectors.
[[nodiscard]] std::optional<std::size_t> read_block(std::span<const std::uint8_t> bytes, std::uint32_t columns,
                                                    std::vector<std::int64_t>& out);

// LEB128 and zigzag, also for format/pattern_binary.
void append_varint(std::uint64_t value, std::vector<std::uint8_t>& bytes);
[[nodiscard]] std::optional<std::uint64_t> read_long_varint(std::span<const std::uint8_t> bytes, std::size_t& at);
/// Reads a number and advances `at` past it. Returns nothing for truncated input or more than 64 bits.
[[nodiscard]] inline std::optional<std::uint64_t> read_varint(std::span<const std::uint8_t> bytes, std::size_t& at) {
  if (at < bytes.size() && bytes[at] < 0x80) return bytes[at++];
  return read_long_varint(bytes, at);
}
[[nodiscard]] constexpr std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
[[nodiscard]] constexpr std::int64_t unzigzag(std::uint64_t code) {
  return static_cast<std::int64_t>((code >> 1) ^ (0 - (code & 1)));
}

}  // namespace iosig
