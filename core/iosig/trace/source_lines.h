// Lines of source code, as `iosig trace --source FILE:30-500` names them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "iosig/base/result.h"

namespace iosig::trace {

struct SourceLines {
  std::string file;  ///< "io.c", "src/io.c", "/home/u/src/io.c"
  std::uint32_t first = 1, last = UINT32_MAX;
};

/// Reads FILE, FILE:LINE or FILE:FIRST-LAST. Fails (`usage`) if FILE is empty or has a comma, a control character or a
/// component "..", and if the lines are none.
[[nodiscard]] Result<SourceLines> parse_source_lines(std::string_view text);
/// Returns the text that parse_source_lines() reads.
[[nodiscard]] std::string source_lines_text(const SourceLines& lines);
/// Returns the lines alone: "30-500", "30", or "" for all.
[[nodiscard]] std::string line_range_text(const SourceLines& lines);

/// Whether `path` is the file: it is equal, or ends with '/' and the file. "./" and "DIR/.." in `path` do not count.
[[nodiscard]] bool is_source_file(const SourceLines& lines, std::string_view path);

}  // namespace iosig::trace
