// Files that verbs read part after part: "-" is standard input, pipes will do, and nothing is kept that need not be.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "iosig/base/result.h"
#include "iosig/base/units.h"
#include "iosig/model/pattern.h"

namespace iosig::cli {

inline constexpr std::uint64_t max_description_bytes = 4 * GiB;

/// For messages.
[[nodiscard]] std::string shown_name(const std::string& file);

/// What takes the parts of a file, and fails to stop.
using TakePart = std::function<Result<void>(std::string_view)>;

/// Gives the bytes of `file` to `take`, part after part, and an empty part at the end.
[[nodiscard]] Result<void> for_each_part(const std::string& file, const TakePart& take);

/// Cuts the parts that it is given into lines for `take`; the empty part ends the last line.
class LineCutter {
 public:
  explicit LineCutter(TakePart take) : take_(std::move(take)) {}
  [[nodiscard]] Result<void> operator()(std::string_view part);

 private:
  TakePart take_;
  std::string begun_;  ///< of a line
};

/// All of `file`; refuses more than max_description_bytes.
[[nodiscard]] Result<std::string> whole_input(const std::string& file);

/// Whether `text` begins as a description of patterns does, in either form.
[[nodiscard]] bool is_description(std::string_view text);
/// A description in either form, from `source`.
[[nodiscard]] Result<Pattern> pattern_from_text(std::string_view text, std::string_view source);

}  // namespace iosig::cli
