// Parses the text of a write map, one write after the other. The format is docs/formats/write-map.md.
//
// Pure. A line is either "rank offset length" or the output of PLFS's plfs_map; the first line decides for all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "iosig/base/result.h"

namespace iosig {

/// A write of `length` bytes at `offset` by `rank`, which ends at 2^63 - 1 at the latest. No number is negative.
struct MappedWrite {
  std::int64_t rank = 0, offset = 0, length = 0;
  double begin_s = 0;  ///< start of the write if the map has it, else 0

  bool operator==(const MappedWrite&) const = default;
};

/// Reads the lines of one map and counts them. Skips blank lines and those that begin with #.
class WriteMapLines {
 public:
  /// `source`: name of the map in messages.
  explicit WriteMapLines(std::string source) : source_(std::move(source)) {}

  /// Sets `out` to the write in the line. Returns false, and leaves `out` unchanged, for a skipped line. Fails with
  /// `bad_input`, "source:line: what was expected".
  [[nodiscard]] Result<bool> read(std::string_view line, MappedWrite& out);

  /// Whether the lines are those of plfs_map: sorted by logical offset, with the time of each write, without
  /// overwritten bytes.
  [[nodiscard]] bool is_plfs() const { return form_ == Form::plfs; }

 private:
  enum class Form : std::uint8_t { unknown, list, plfs };
  std::string source_;
  std::uint64_t line_ = 0;
  Form form_ = Form::unknown;
};

}  // namespace iosig
