// Streaming input: files are read in parts, "-" is standard input, and pipes work.
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

/// The name of an input for messages.
[[nodiscard]] std::string shown_name(const std::string& file);

/// Consumes one part of a file; an error stops the reading.
using TakePart = std::function<Result<void>(std::string_view)>;

/// Passes the bytes of `file` to `take` part by part, then an empty part at the end.
[[nodiscard]] Result<void> for_each_part(const std::string& file, const TakePart& take);

/// Splits the parts into lines for `take`; the empty part ends the last line.
class LineCutter {
 public:
  explicit LineCutter(TakePart take) : take_(std::move(take)) {}
  [[nodiscard]] Result<void> operator()(std::string_view part);

 private:
  TakePart take_;
  std::string begun_;  ///< an incomplete line
};

/// Reads all of `file`; refuses more than max_description_bytes.
[[nodiscard]] Result<std::string> whole_input(const std::string& file);

/// Whether `text` starts like a pattern description, binary or JSON.
[[nodiscard]] bool is_description(std::string_view text);
/// Parses a description in either form; `source` names it in messages.
[[nodiscard]] Result<Pattern> pattern_from_text(std::string_view text, std::string_view source);

}  // namespace iosig::cli
