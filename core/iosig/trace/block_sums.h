// The sums over the calls of a block. Questions about sums are answered from it, without unpacking the calls: some 100
// bytes instead of some 500 calls.
//
// A block has sums if its calls are of few kinds and no call ends before it begins; see docs/formats/trace.md, "Sums".
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "iosig/trace/block_fields.h"
#include "iosig/trace/calls.h"
#include "iosig/trace/column.h"
#include "iosig/trace/part_layout.h"

namespace iosig::trace {

/// Bins of durations: one for each number below 16; above, 8 for each power of two, so that a bin's middle is within
/// 6.25 % of its numbers.
inline constexpr unsigned duration_bins = 61 * 8 + 8;
[[nodiscard]] constexpr unsigned duration_bin(std::uint64_t ticks) {
  if (ticks < 16) return static_cast<unsigned>(ticks);
  const auto shift = static_cast<unsigned>(std::bit_width(ticks)) - 4;
  return shift * 8 + static_cast<unsigned>(ticks >> shift);
}
/// The middle of a bin's numbers.
[[nodiscard]] constexpr double middle_of_duration_bin(unsigned bin) {
  if (bin < 16) return bin;
  const unsigned shift = bin / 8 - 1;
  const std::uint64_t width = std::uint64_t{1} << shift;
  return static_cast<double>(std::uint64_t{8 + bin % 8} << shift) + static_cast<double>(width - 1) / 2;
}

/// The calls of a block with the same call, file and path.
struct CallSums {
  Call call;
  std::uint32_t file, path;  ///< as in Slot
  std::uint32_t calls;
  std::uint32_t unfinished;  ///< that never returned
  std::uint32_t failed;
  std::uint64_t bytes;  ///< that they moved
  // Durations of the calls that returned.
  std::uint64_t ticks, least, greatest;
  std::array<std::uint16_t, duration_bins> bins;

  [[nodiscard]] std::uint32_t finished() const { return calls - unfinished; }
};

/// How the reads, or the writes, of a file in one layer follow each other.
struct StreamSums {
  Layer layer;
  Moves moves;
  std::uint32_t file;
  std::uint32_t unknown;                         ///< accesses without an offset
  std::uint32_t consecutive, forward, backward;  ///< compared with the byte behind the access before it in the block
  bool has_offsets;                              ///< some access has one
  std::uint64_t first_offset, last_end;          ///< of the first access with one; behind the last
};

struct BlockSums {
  static constexpr std::uint32_t max_kinds = 8;

  bool has_parents;  ///< some call was made during another one
  bool is_ordered;   ///< the calls are in the order of their starts; else there are no streams
  std::uint32_t kinds, streams;
  std::array<CallSums, max_kinds> of_calls;
  std::array<StreamSums, max_kinds> of_streams;
};

/// Fewer calls have no sums in a part: they would be longer than the calls.
inline constexpr std::size_t min_summed_calls = 64;
/// More than the sums of a block take.
inline constexpr std::size_t max_sums_bytes = std::size_t{4} * 1024;

/// Adds up the calls of a block, in its order, from what take_apart() made of them. false: it has no sums. As safe in
/// traced programs as pack().
bool sum_calls(std::span<const Slot> slots, const BlockFields& fields, const BlockTraits& traits,
               BlockSums& sums) noexcept;

/// Writes sums of a block as the payload of a chunk.
void write_sums(const BlockSums& sums, ByteWriter& out) noexcept;

/// Reads what write_sums() wrote. false: the bytes are no sums.
[[nodiscard]] bool read_sums(std::span<const std::byte> payload, BlockSums& sums);

}  // namespace iosig::trace
