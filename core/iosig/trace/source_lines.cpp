#include "iosig/trace/source_lines.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "iosig/base/text.h"

namespace iosig::trace {
namespace {

Error bad_lines(std::string_view text, std::string_view why) {
  return {ErrorKind::usage, fmt::format("'{}': {}; expected FILE, FILE:LINE or FILE:FIRST-LAST, e.g. src/io.c:30-500",
                                        printable(text), why)};
}

}  // namespace

Result<SourceLines> parse_source_lines(std::string_view text) {
  SourceLines lines;
  std::string_view file = text;
  if (const std::size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    file = text.substr(0, colon);
    const std::string_view range = text.substr(colon + 1);
    const std::size_t dash = std::min(range.find('-'), range.size());
    const auto first = parse_count<std::uint32_t>(range.substr(0, dash));
    const auto last = dash == range.size() ? first : parse_count<std::uint32_t>(range.substr(dash + 1));
    if (!first || !last) return tl::unexpected(bad_lines(text, "what follows the colon is no line number"));
    if (*first == 0) return tl::unexpected(bad_lines(text, "lines count from 1"));
    if (*last < *first) return tl::unexpected(bad_lines(text, "the last line is before the first"));
    lines.first = *first;
    lines.last = *last;
  }
  if (std::ranges::any_of(file, [](unsigned char each) { return each < ' ' || each == ','; }))
    return tl::unexpected(bad_lines(text, "a file's name has a comma or a control character"));
  lines.file = std::filesystem::path(file).lexically_normal().string();
  if (lines.file.empty() || lines.file == "." || lines.file.ends_with('/'))
    return tl::unexpected(bad_lines(text, "there is no file's name"));
  if (lines.file.starts_with("../")) return tl::unexpected(bad_lines(text, "'..' is in no debug information"));
  return lines;
}

std::string line_range_text(const SourceLines& lines) {
  if (lines.first == 1 && lines.last == UINT32_MAX) return {};
  if (lines.first == lines.last) return fmt::format("{}", lines.first);
  return fmt::format("{}-{}", lines.first, lines.last);
}

std::string source_lines_text(const SourceLines& lines) {
  const std::string range = line_range_text(lines);
  return range.empty() ? lines.file : fmt::format("{}:{}", lines.file, range);
}

bool is_source_file(const SourceLines& lines, std::string_view path) {
  const std::string whole = std::filesystem::path(path).lexically_normal().string();
  if (!whole.ends_with(lines.file)) return false;
  if (whole.size() == lines.file.size()) return true;
  return lines.file.front() != '/' && whole[whole.size() - lines.file.size() - 1] == '/';
}

}  // namespace iosig::trace
