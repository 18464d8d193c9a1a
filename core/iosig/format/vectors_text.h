// Vectors as text: one vector of white-space-separated integers per line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/access_columns.h"

namespace iosig {

/// Parses "logical,length" to names. Fails with `usage` for unknown names and duplicates.
[[nodiscard]] Result<std::vector<std::string>> parse_columns(std::string_view text);

/// Checks the values of vectors with these columns.
class AccessCheck {
 public:
  /// `names`: from parse_columns; empty: any integers.
  explicit AccessCheck(std::vector<std::string> names);

  /// Returns what is wrong with `vector`, which has a value for each name, or "".
  [[nodiscard]] std::string fault(std::span<const std::int64_t> vector) const;
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  AccessColumns columns_;
};

/// Parses line by line and counts the lines. Skips blank lines and those that begin with #.
class VectorLines {
 public:
  /// `columns`: names from parse_columns; empty: `unnamed` columns of any integers. `source`: for messages.
  VectorLines(std::vector<std::string> columns, std::string source, std::uint32_t unnamed = 1);

  /// Stores one value per column to `out`; returns false for a skipped line. Fails with `bad_input`, "source:line: what
  /// was expected", unless the line has that many integers from -2^63 to 2^63 - 1.
  [[nodiscard]] Result<bool> read(std::string_view line, std::span<std::int64_t> out);

  [[nodiscard]] std::uint32_t columns() const { return columns_; }

 private:
  AccessCheck check_;
  std::string source_;
  std::uint32_t columns_;
  std::uint64_t line_ = 0;
};

}  // namespace iosig
