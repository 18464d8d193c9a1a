// Vectors as text: white-space-separated integers, one vector a line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/access_columns.h"

namespace iosig {

/// "logical,length" -> names. Fails as `usage` for names that are none of these or come twice.
[[nodiscard]] Result<std::vector<std::string>> parse_columns(std::string_view text);

/// What vectors with these columns may hold.
class AccessCheck {
 public:
  /// `names`: from parse_columns; none: any integers.
  explicit AccessCheck(std::vector<std::string> names);

  /// What is wrong with `vector`, which has a value for each name, or "".
  [[nodiscard]] std::string fault(std::span<const std::int64_t> vector) const;
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  AccessColumns columns_;
};

/// Reads line after line, and knows which it is. Lines of white space alone, or that begin with #, are skipped.
class VectorLines {
 public:
  /// `columns`: names from parse_columns; none: `unnamed` columns of any integers. `source`: for messages.
  VectorLines(std::vector<std::string> columns, std::string source, std::uint32_t unnamed = 1);

  /// The number of columns, one value each, in `out`; false for a line that is skipped. Fails with `bad_input`,
  /// "source:line: what was expected", for what is no vector of that many integers from -2^63 to 2^63 - 1.
  [[nodiscard]] Result<bool> read(std::string_view line, std::span<std::int64_t> out);

  [[nodiscard]] std::uint32_t columns() const { return columns_; }

 private:
  AccessCheck check_;
  std::string source_;
  std::uint32_t columns_;
  std::uint64_t line_ = 0;
};

}  // namespace iosig
