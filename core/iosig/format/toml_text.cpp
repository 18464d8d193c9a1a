#include "iosig/format/toml_text.h"

#include <algorithm>

namespace iosig {
namespace {

/// Dots in a line of keys: each makes a table within a table.
constexpr std::size_t most_dots = 64;

/// Dots outside quotes and comments.
std::size_t dots_in(std::string_view line) {
  std::size_t dots = 0;
  char quote = '\0';
  for (const char c : line) {
    if (quote != '\0')
      quote = c == quote ? '\0' : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else if (c == '#')
      break;
    else
      dots += c == '.' ? 1 : 0;
  }
  return dots;
}

}  // namespace

Result<toml::table> parse_toml(std::string_view text, std::string_view source) {
  // toml++ has no limit for `a.b.c = 1`, and would overflow the stack.
  std::size_t number = 1;
  for (std::string_view rest = text; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1);
    if (dots_in(rest.substr(0, end + 1)) > most_dots)
      return fail(ErrorKind::bad_input, "{}:{}:1: more than {} dots in one line: nested too deep", source, number,
                  most_dots);
    rest.remove_prefix(end + 1);
  }
  toml::parse_result parsed = toml::parse(text, source);
  if (parsed) return std::move(parsed).table();
  const toml::parse_error& error = parsed.error();
  return fail(ErrorKind::bad_input, "{}:{}:{}: {}", source, error.source().begin.line, error.source().begin.column,
              error.description());
}

}  // namespace iosig
