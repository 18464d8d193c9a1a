// Vectors as text: white-space-separated integers, one vector a line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"

namespace iosig {

/// The columns that an access has. Offsets and lengths are bytes, never negative, and end at most at 2^63 - 1.
inline constexpr std::string_view logical_column = "logical", length_column = "length", physical_column = "physical",
                                  id_column = "id", sequence_name = "sequence";

/// "logical,length" -> names. Fails as `usage` for names that are none of these or come twice.
[[nodiscard]] Result<std::vector<std::string>> parse_columns(std::string_view text);

/// Reads line after line, and knows which it is. Lines of white space alone are skipped.
class VectorLines {
 public:
  /// `columns`: names from parse_columns; none: one column of any integers. `source`: for messages.
  VectorLines(std::vector<std::string> columns, std::string source);

  /// The number of columns, one value each, in `out`; false for an empty line. Fails with `bad_input`,
  /// "source:line: what was expected", for what is no vector of that many integers from -2^63 to 2^63 - 1.
  [[nodiscard]] Result<bool> read(std::string_view line, std::span<std::int64_t> out);

  [[nodiscard]] std::uint32_t columns() const { return columns_; }

 private:
  [[nodiscard]] Result<void> check(std::span<const std::int64_t> vector) const;

  std::vector<std::string> names_;
  std::string source_;
  std::uint32_t columns_;
  int logical_ = -1, length_ = -1, physical_ = -1;  ///< which column; -1: none
  std::uint64_t line_ = 0;
};

}  // namespace iosig
