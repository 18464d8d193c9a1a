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

/// Whether the text contains the end of a declaration, or ends inside of brackets.
bool is_interrupted(std::string text) {
  const SourceTokens source =
      read_tokens("", std::move(text), {.is_cxx = true, .include_directories = {}, .definitions = {}},
                  [](const std::string&) { return std::nullopt; });
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

}  // namespace

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
