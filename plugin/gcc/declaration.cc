#include "declaration.h"

#include "iosig/check/source_tokens.h"

namespace iosig::gcc {
namespace {

constexpr int max_lines = 100;

/// Returns the text between two places of a file, or nothing if the file cannot be read.
std::optional<std::string> text_between(const expanded_location& from, const expanded_location& to) {
  std::string text;
  for (int number = from.line; number <= to.line; ++number) {
    const char_span line = source_line(from.file, number);
    if (!line) return std::nullopt;
    const std::size_t begin = number == from.line ? from.column - 1 : 0;
    const std::size_t end = number == to.line ? to.column - 1 : line.length();
    if (begin > line.length() || end > line.length() || begin > end) return std::nullopt;
    text.append(line.get_buffer() + begin, end - begin);
    text += '\n';
  }
  return text;
}

SourceTokens tokens_of(std::string text) {
  return read_tokens("", std::move(text), {.is_cxx = true, .include_directories = {}, .definitions = {}},
                     [](const std::string&) { return std::nullopt; });
}

/// Whether the text contains the end of a declaration, or ends inside of brackets.
bool is_interrupted(std::string text) {
  const SourceTokens source = tokens_of(std::move(text));
  int depth = 0;
  bool after_block = false;  // after a block: the end of a function or class, unless an initialiser continues
  for (const SourceToken& token : source.tokens) {
    const auto is_one_of = [&](std::string_view brackets) {
      return token.kind == SourceToken::Kind::punctuation && token.text.size() == 1 &&
             brackets.find(token.text.front()) != std::string_view::npos;
    };
    if (after_block && !is_one_of(",(.=")) return true;
    after_block = false;
    if (is_one_of("([{")) ++depth;
    if (is_one_of(")]}")) after_block = --depth == 0 && token.text == "}";
    if (depth < 0 || (depth == 0 && is_one_of(";"))) return true;
  }
  return after_block || depth != 0;
}

/// Whether a line of the text is a condition of the preprocessor.
bool has_conditions(std::string_view text) {
  for (std::size_t at = text.find('#'); at != std::string_view::npos; at = text.find('#', at + 1)) {
    const std::string_view line = text.substr(0, at);
    const std::size_t last = line.find_last_not_of(" \t");
    if (last != std::string_view::npos && line[last] != '\n') continue;
    std::string_view word = text.substr(at + 1);
    word.remove_prefix(std::min(word.find_first_not_of(" \t"), word.size()));
    for (const std::string_view condition : {"if", "el", "endif"})
      if (word.starts_with(condition)) return true;
  }
  return false;
}

/// Whether a statement ends in the text, which begins with a pragma and the statement after it. A control statement
/// ends where no `else`, `while` or `catch` continues it.
bool has_end_of_statement(std::string text) {
  const SourceTokens source = tokens_of(std::move(text));
  std::string_view first;
  int depth = 0;
  bool after_end = false;  // after `;` or a block
  for (const SourceToken& token : source.tokens) {
    if (token.kind == SourceToken::Kind::pragma) continue;
    if (after_end && token.text != "else" && token.text != "catch" && !(first == "do" && token.text == "while"))
      return true;
    after_end = false;
    if (first.empty()) first = token.text;
    if (token.kind != SourceToken::Kind::punctuation) continue;
    if (token.text == "(" || token.text == "[" || token.text == "{") ++depth;
    if (token.text == ")" || token.text == "]" || token.text == "}") --depth;
    if (depth < 0) return false;  // this is not the text of the pragma
    const bool is_block = first == "{" || first == "if" || first == "while" || first == "for" || first == "switch" ||
                          first == "do" || first == "try";
    after_end = depth == 0 && (token.text == ";" || (token.text == "}" && is_block));
  }
  return after_end;
}

}  // namespace

bool is_statement_between(location_t pragma, location_t to) {
  expanded_location first = expand_location(pragma);
  expanded_location last = expand_location(to);
  if (first.file == nullptr || last.file == nullptr || strcmp(first.file, last.file) != 0) return false;
  if (last.line < first.line || last.line - first.line > max_lines) return false;
  const char_span line = source_line(first.file, first.line);
  if (!line || first.column <= 0) return false;
  const std::string_view spelled(line.get_buffer(), line.length());
  const std::size_t begin = std::min(spelled.find_first_not_of(" \t"), spelled.size());
  const bool is_directive = spelled.substr(begin).starts_with('#');
  if (is_directive)
    first.column = 1;
  else if (!linemap_location_from_macro_expansion_p(line_table, pragma) && spelled.find("_Pragma") == spelled.npos)
    return false;  // #line names another text
  // Columns of preprocessed text are not those of the source.
  if (cpp_get_options(parse_in)->preprocessed) last.column = 1;
  auto text = text_between(first, last);
  if (!text || has_conditions(*text)) return false;  // whether the compiler has seen it is unknown
  return has_end_of_statement(*std::move(text));
}

bool in_one_declaration(location_t from, location_t to) {
  const expanded_location first = expand_location(from);
  const expanded_location last = expand_location(to);
  if (first.file == nullptr || last.file == nullptr || strcmp(first.file, last.file) != 0) return false;
  if (last.line < first.line || last.line - first.line > max_lines) return false;
  static std::map<std::pair<location_t, location_t>, bool> answers;
  const auto [known, is_new] = answers.try_emplace({from, to}, false);
  if (is_new) {
    const auto text = text_between(first, last);
    known->second = text ? !is_interrupted(*text) : last.line - first.line <= 1;
  }
  return known->second;
}

}  // namespace iosig::gcc
