// A packed table of pieces, for writes without a pattern: a lookup in it takes two or three cache lines of memory, and
// a piece 3 to 8 bytes.
//
// The pieces, sorted by offset, are cut into parts of up to 4096. A part divides its range into buckets for about 6
// pieces each, and packs the fields of its pieces with as many bits as the part needs. Ours; docs/references.md has no
// source for it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "iosig/analyze/lookup.h"
#include "iosig/base/result.h"

namespace iosig {

/// Bytes of one id that are contiguous in both the logical and the physical file.
struct Extent {
  std::int64_t logical = 0, length = 0, id = 0, physical = 0;

  bool operator==(const Extent&) const = default;
};

class PieceTable {
 public:
  /// Reads bytes(). Fails with `bad_input`, "source: ...", for others. Of bytes that were made to deceive, it finds
  /// wrong pieces, but reads no memory but theirs, and every piece has a byte.
  static Result<PieceTable> read(std::span<const std::uint8_t> bytes, std::string_view source);

  /// Returns the piece from `offset` >= 0 on. A hole ends at the next piece, or at byte 2^63 - 1.
  [[nodiscard]] Piece piece_at(std::int64_t offset) const;
  /// Adds the pieces of a table that begins behind the last piece of this one.
  void append(const PieceTable& next);
  /// The table as in a file (docs/formats/container.md, Index snapshot).
  [[nodiscard]] std::vector<std::uint8_t> bytes() const;
  void append_bytes(std::vector<std::uint8_t>& to) const;
  [[nodiscard]] std::size_t memory_bytes() const {
    return parts_.size() * sizeof(Part) + firsts_.size() * sizeof(std::uint64_t) + body_.size();
  }

  bool operator==(const PieceTable&) const = default;

 private:
  /// 64 bytes, in a file as in memory. A field of a piece is its difference to the least one of its kind.
  struct Part {
    std::uint64_t logical = 0, length = 0, id = 0, physical = 0;  ///< the least ones
    std::uint64_t last = 0;                                       ///< the greatest logical field
    std::uint64_t at = 0;                                         ///< the part's bytes in body_: buckets, then pieces
    std::uint16_t count = 0;                                      ///< of pieces
    std::uint16_t buckets = 0;
    std::uint8_t logical_shift = 0, physical_shift = 0;  ///< trailing zeros of all fields, left out
    std::uint8_t bucket_bits = 0;                        ///< of a logical field within its bucket
    std::uint8_t length_bits = 0, id_bits = 0, physical_bits = 0;
    std::uint8_t none[6] = {};

    [[nodiscard]] std::uint64_t piece_bits() const {
      return std::uint64_t{bucket_bits} + length_bits + id_bits + physical_bits;
    }
    [[nodiscard]] std::uint64_t bucket_bytes() const { return 2 * (std::uint64_t{buckets} + 1); }
    [[nodiscard]] std::uint64_t bytes() const { return bucket_bytes() + (count * piece_bits() + 7) / 8; }
    bool operator==(const Part&) const = default;
  };
  static_assert(sizeof(Part) == 64);

  friend class PieceTableBuilder;
  void append_part(std::span<const Extent> extents);
  [[nodiscard]] std::uint64_t first_in(const Part& part, std::uint64_t bucket) const;
  [[nodiscard]] std::uint64_t logical_of(const Part& part, std::uint64_t piece, std::uint64_t bucket) const;

  std::vector<std::uint64_t> firsts_;  ///< logical offset of each part
  std::vector<Part> parts_;
  std::vector<std::uint8_t> body_;  ///< ends with unused bytes, because fields are read by words
};

/// Makes a table of extents that come in the order of the logical file.
class PieceTableBuilder {
 public:
  /// `extent`: behind all others, of at least one byte, ending at byte 2^63 - 1 at most in both files; physical offset
  /// and id >= 0.
  /// One that continues the last one in both files and has the same id becomes a part of it.
  void add(const Extent& extent);
  /// The builder is empty afterwards.
  [[nodiscard]] PieceTable finish();

 private:
  PieceTable table_;
  std::vector<Extent> pending_;
};

}  // namespace iosig
