// A column of a block: a number per call (or per kind of call), in few bits.
//
// Patched frame of reference: a value is base + granule * q, with q in a fixed number of bits; values that need more
// bits, or are no such multiple, are exceptions, stored beside. The granule finds the alignment of offsets and the step
// of time stamp counters, which is more than a nanosecond on many processors; exceptions absorb the jumps of its phase.
// Arithmetic is modulo 2^64. Layout: docs/formats/trace.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "iosig/trace/part_layout.h"

namespace iosig::trace {

/// How a column is stored: the low 4 bits of its first byte. The upper 4 are the caller's.
enum class ColumnKind : std::uint8_t {
  zeros = 0,     ///< all values are 0
  constant = 1,  ///< all values are the number that follows
  packed = 2,    ///< base, granule, bits and exceptions
  sparse = 3,    ///< a bit per value; those whose bit is set are packed, the others are 0
};

/// More than a column takes beyond its values' own bits.
inline constexpr std::size_t max_column_overhead = 32;

/// Appends to memory that is large enough.
struct ByteWriter {
  std::byte* at;

  void byte(unsigned value) { *at++ = static_cast<std::byte>(value); }
  void number(std::uint64_t value) {  // LEB128
    for (; value >= 0x80; value >>= 7) byte(static_cast<unsigned>(value & 0x7f) | 0x80);
    byte(static_cast<unsigned>(value));
  }
  void signed_number(std::uint64_t value) {  // zigzag: 0, -1, 1, -2, ...
    number((value << 1) ^ (0 - (value >> 63)));
  }
};

/// Reads what ByteWriter wrote; never beyond the end. `sound` turns false at the first fault, and stays so.
struct ByteReader {
  std::span<const std::byte> bytes;
  bool sound = true;

  std::uint8_t byte() {
    if (bytes.empty()) return sound = false, std::uint8_t{0};
    const auto value = static_cast<std::uint8_t>(bytes.front());
    bytes = bytes.subspan(1);
    return value;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t next = byte();
      if (shift == 63 && next > 1) break;
      value |= std::uint64_t{next & 0x7fU} << shift;
      if ((next & 0x80) == 0) return value;
    }
    sound = false;
    return 0;
  }
  std::uint64_t signed_number() {
    const std::uint64_t value = number();
    return (value >> 1) ^ (0 - (value & 1));
  }
};

/// How a column is best stored.
struct ColumnPlan {
  std::uint32_t count = 0, others = 0;  ///< values, and those that are not 0
  bool is_constant = false;
  std::uint64_t least = 0;  ///< the least value, signed
  unsigned plain_bits = 0;  ///< of each value above the least
  std::uint64_t base = 0, granule = 1;
  unsigned bits = 0;            ///< of each value's quotient
  std::uint64_t cost_bits = 0;  ///< about what the column takes in all

  /// Whether nearly all values are 0.
  [[nodiscard]] bool is_good() const { return others <= count / 32; }
};

/// Looks at the values (1 to max_slots); says how to store them.
[[nodiscard]] ColumnPlan plan_column(std::span<const std::uint64_t> values) noexcept;

/// Writes `values` as a column. `mode` (0 to 15) is kept in its first byte. `scratch`: 2 * max_slots numbers. Takes at
/// most max_column_overhead bytes more than values of the same width each; see pack.h for what it refrains from.
void write_column(std::span<const std::uint64_t> values, const ColumnPlan& plan, unsigned mode, std::uint64_t* scratch,
                  ByteWriter& out) noexcept;

/// Reads a column of `values.size()` values; returns its mode. `in.sound` says whether it was one.
unsigned read_column(ByteReader& in, std::span<std::uint64_t> values);

}  // namespace iosig::trace
