// Vectors without structure as bytes: blocks of up to 256, column by column, each predicted by what is cheapest there.
//
// What is left after the prediction is packed into as few bits as the widest needs, so a column that is constant, grows
// steadily or is the running sum of another one takes a few bytes for each block. Columns of noise take what they must:
// 40-bit offsets 5 bytes each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace iosig {

inline constexpr std::size_t block_vectors = 256;

/// A block, by columns in order: how many vectors (LEB128), then for each column one byte for what predicts a value
/// (0 nothing, 1 the value before, 2 that and the step before it, 3 + s the value before and column s there), one for
/// the bits of a residual, the values that a prediction needs (none, the first, the first two, the first; zigzag
/// LEB128), the least residual (zigzag LEB128), and the residuals above it, lowest bits first. Arithmetic is modulo
/// 2^64.
///
/// Appends 1 to block_vectors vectors of `columns` to `bytes`. Equal vectors give equal bytes.
void append_block(std::span<const std::int64_t> vectors, std::uint32_t columns, std::vector<std::uint8_t>& bytes);

/// Reads the block at the beginning of `bytes`; returns how many bytes it took. Nothing when they are no block. `out`
/// is replaced; it grows to at most block_vectors vectors.
[[nodiscard]] std::optional<std::size_t> read_block(std::span<const std::uint8_t> bytes, std::uint32_t columns,
                                                    std::vector<std::int64_t>& out);

// LEB128 and zigzag, also for format/pattern_binary.
void append_varint(std::uint64_t value, std::vector<std::uint8_t>& bytes);
/// Nothing for bytes that end too early or say more than 64 bits. Advances `at` past the number.
[[nodiscard]] std::optional<std::uint64_t> read_varint(std::span<const std::uint8_t> bytes, std::size_t& at);
[[nodiscard]] constexpr std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
[[nodiscard]] constexpr std::int64_t unzigzag(std::uint64_t code) {
  return static_cast<std::int64_t>((code >> 1) ^ (0 - (code & 1)));
}

}  // namespace iosig
