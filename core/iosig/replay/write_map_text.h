// A write map as text -> one write after the other. The format is docs/formats/write-map.md.
//
// Pure. A line is either "rank offset length" or what PLFS's plfs_map prints; the first one decides for all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "iosig/base/result.h"

namespace iosig {

/// `length` bytes from `offset` on, which end at 2^63 - 1 at the latest, written by `rank`; none is negative.
struct MappedWrite {
  std::int64_t rank = 0, offset = 0, length = 0;
  double begin_s = 0;  ///< when it began, where the map says so, else 0

  bool operator==(const MappedWrite&) const = default;
};

/// Reads line after line, and knows which it is. Lines of white space alone, or that begin with #, are skipped.
class WriteMapLines {
 public:
  /// `source`: for messages.
  explicit WriteMapLines(std::string source) : source_(std::move(source)) {}

  /// The write in `out`; false for a line that is skipped, which leaves `out` alone. Fails with `bad_input`,
  /// "source:line: what was expected".
  [[nodiscard]] Result<bool> read(std::string_view line, MappedWrite& out);

  /// The lines that were read are those of plfs_map: by logical offset, with the time of each write, without the bytes
  /// that were written over.
  [[nodiscard]] bool is_plfs() const { return form_ == Form::plfs; }

 private:
  enum class Form : std::uint8_t { unknown, list, plfs };
  std::string source_;
  std::uint64_t line_ = 0;
  Form form_ = Form::unknown;
};

}  // namespace iosig
