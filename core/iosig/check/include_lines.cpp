#include "iosig/check/include_lines.h"

#include <algorithm>

#include "iosig/check/source_lexer.h"

namespace iosig {

std::size_t last_include_line(std::string_view text) {
  SourceWork work(text.size() + text.size() * SourceWork::token);
  std::deque<std::string> spellings;
  const std::vector<SourceToken> tokens = lex(text, 0, spellings, work);
  std::size_t line = 0;
  int conditionals = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool is_directive = tokens[i].starts_line && tokens[i].is("#") && i + 1 < tokens.size();
    if (!is_directive) {
      if (tokens[i].is("{")) break;
      continue;
    }
    const std::string_view name = tokens[i + 1].text;
    if (name.starts_with("if")) ++conditionals;
    if (name == "endif") --conditionals;
    std::size_t last = i + 1;
    while (last + 1 < tokens.size() && !tokens[last + 1].starts_line) ++last;
    if (name == "include" && conditionals == 0)
      line = static_cast<std::size_t>(std::ranges::count(text.substr(0, tokens[last].at.end), '\n')) + 1;
    i = last;
  }
  return line;
}

}  // namespace iosig
