// Packs completed calls as a block: about 1 to 3 bytes a call instead of 64, without loss. The recorder does it inside
// the traced program.
//
// See docs/formats/trace.md for the layout, column.h for the packing of numbers, predict.h for what is left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "iosig/trace/block_sums.h"
#include "iosig/trace/part_layout.h"
#include "iosig/trace/predict.h"

namespace iosig::trace {

/// Room that pack() needs for its result in the worst case.
inline constexpr std::size_t max_packed_bytes = std::size_t{40} * 1024 + max_sums_bytes;

struct PackOptions {
  /// Times are kept in multiples of so many ticks; 0 and 1: exactly. A start is rounded down, a duration to the
  /// nearest.
  std::uint64_t quantum_ticks = 0;
  /// A chunk with the sums of the block (block_sums.h) follows it, if it has any.
  bool has_sums = false;
};

/// Working memory of pack(), too large for a stack. Nothing in it outlives a call.
struct PackMemory {
  PredictMemory predict;
  std::uint16_t by_key[1024];  ///< hash table of kinds
  BlockFields fields;
  std::uint64_t column[5][max_slots];  ///< the last two are scratch
  BlockSums sums;
};

/// Packs completed slots (1 to max_slots, best in the order of begins or of ends) as a whole chunk: ChunkHeader,
/// BlockHeader, columns, padding. Returns the bytes of `out` used: a multiple of 8, at most max_packed_bytes.
///
/// `first_id_base`: a 64-bit id that is not greater than that of any slot, and less than 2^32 below each; 0 is right
/// until ids exceed 32 bits.
/// For traced programs: uses no allocation, lock, system call, errno, exception or floating-point number, and at most
/// 4 KB of the stack; may be interrupted by a signal handler that packs with other memory.
/// Ends of calls are not before their starts; otherwise any values are kept (also such ones, if times are exact).
std::size_t pack(std::span<const Slot> slots, std::int32_t tid, std::uint64_t first_id_base, ClockPair now,
                 const PackOptions& options, PackMemory& memory, std::span<std::byte> out) noexcept;

}  // namespace iosig::trace
