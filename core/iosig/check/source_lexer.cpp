#include "iosig/check/source_lexer.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace iosig {
namespace {

using Kind = SourceToken::Kind;

bool is_word_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || (static_cast<unsigned char>(c) & 0x80);
}
bool is_word_character(char c) { return is_word_start(c) || std::isdigit(static_cast<unsigned char>(c)); }

class Lexer {
 public:
  Lexer(std::string_view text, std::uint32_t file, std::deque<std::string>& spellings, SourceWork& work)
      : text_(text), file_(file), spellings_(spellings), work_(work) {}

  std::vector<SourceToken> all() {
    std::vector<SourceToken> tokens;
    for (skip_blanks(); at_ < text_.size() && work_.spend(SourceWork::token); skip_blanks()) {
      SourceToken token;
      token.starts_line = starts_line_;
      token.after_blank = after_blank_;
      const std::size_t begin = at_;
      token.kind = take();
      token.at = token.use = {file_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(at_)};
      token.text = spelling(begin);
      tokens.push_back(token);
      starts_line_ = after_blank_ = false;
    }
    return tokens;
  }

 private:
  /// Skips backslash-newline, which joins lines.
  void join_lines() {
    while (at_ + 1 < text_.size() && text_[at_] == '\\') {
      const std::size_t line_end = text_[at_ + 1] == '\r' ? at_ + 2 : at_ + 1;
      if (line_end >= text_.size() || text_[line_end] != '\n') return;
      at_ = line_end + 1;
      is_joined_ = true;
    }
  }
  char peek() {
    join_lines();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  /// Returns the character after the next one.
  char peek_second() {
    join_lines();
    const std::size_t here = at_;
    const bool joined = is_joined_;
    if (at_ < text_.size()) ++at_;
    const char second = peek();
    at_ = here;
    is_joined_ = joined;
    return second;
  }
  void step() {
    join_lines();
    if (at_ < text_.size()) ++at_;
  }

  std::string_view spelling(std::size_t begin) {
    const std::string_view raw = text_.substr(begin, at_ - begin);
    if (!is_joined_) return raw;
    is_joined_ = false;
    std::string& joined = spellings_.emplace_back();
    for (std::size_t i = 0; i < raw.size(); ++i) {
      const std::size_t line_end = raw.substr(i + 1).starts_with('\r') ? i + 2 : i + 1;
      if (raw[i] == '\\' && line_end < raw.size() && raw[line_end] == '\n')
        i = line_end;
      else
        joined += raw[i];
    }
    return joined;
  }

  void skip_blanks() {
    for (; at_ < text_.size();) {
      const char c = peek();
      if (c == '\n') {
        starts_line_ = after_blank_ = true;
        ++at_;
      } else if (std::isspace(static_cast<unsigned char>(c)) || (c == '\0' && at_ < text_.size())) {
        after_blank_ = true;
        ++at_;
      } else if (c == '/' && peek_second() == '/') {
        while (at_ < text_.size() && peek() != '\n') step();
      } else if (c == '/' && peek_second() == '*') {
        const std::size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
        after_blank_ = true;
      } else {
        break;
      }
    }
    is_joined_ = false;
  }

  Kind take() {
    const char c = peek();
    if (std::isdigit(static_cast<unsigned char>(c)) ||
        (c == '.' && std::isdigit(static_cast<unsigned char>(peek_second())))) {
      take_number();
      return Kind::number;
    }
    if (c == '"' || c == '\'') return take_quoted(c);
    if (is_word_start(c)) {
      const std::size_t begin = at_;
      while (is_word_character(peek())) step();
      const std::string_view word = text_.substr(begin, at_ - begin);
      const char next = at_ < text_.size() ? text_[at_] : '\0';
      constexpr std::array<std::string_view, 9> prefixes = {"L", "u", "U", "u8", "R", "LR", "uR", "UR", "u8R"};
      if ((next != '"' && next != '\'') || std::ranges::find(prefixes, word) == prefixes.end()) return Kind::word;
      if (next == '"' && word.ends_with('R')) return take_raw();
      return take_quoted(next);
    }
    step();
    take_rest_of_operator(c);
    return Kind::punctuation;
  }

  void take_number() {
    for (char last = '\0';; last = peek(), step()) {
      const char c = peek();
      const bool exponent = last == 'e' || last == 'E' || last == 'p' || last == 'P';
      const bool separator = c == '\'' && is_word_character(peek_second());
      if (!is_word_character(c) && c != '.' && !separator && !((c == '+' || c == '-') && exponent)) return;
    }
  }

  Kind take_quoted(char quote) {
    step();
    for (char c = peek(); at_ < text_.size() && c != quote && c != '\n'; c = peek()) {
      if (c == '\\') step();
      step();
    }
    if (at_ < text_.size() && peek() == quote) step();
    return quote == '"' ? Kind::string : Kind::character;
  }

  /// Reads R"x(...)x", in which nothing is joined or escaped.
  Kind take_raw() {
    constexpr std::size_t longest_delimiter = 16;
    const std::size_t length = text_.substr(at_ + 1, longest_delimiter + 1).find('(');
    if (length == std::string_view::npos) return take_quoted('"');
    const std::string end = ")" + std::string(text_.substr(at_ + 1, length)) + "\"";
    const std::size_t close = text_.find(end, at_ + 1 + length);
    at_ = close == std::string_view::npos ? text_.size() : close + end.size();
    return Kind::string;
  }

  /// Reads only those operators whose parts would have another meaning.
  void take_rest_of_operator(char c) {
    const char next = peek();
    constexpr std::array<std::string_view, 13> pairs = {
        "::", "->", "##", "==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "++", "--"};
    const std::array<char, 2> both = {c, next};
    if (std::ranges::find(pairs, std::string_view(both.data(), 2)) != pairs.end()) step();
  }

  std::string_view text_;
  std::uint32_t file_;
  std::deque<std::string>& spellings_;
  SourceWork& work_;
  std::size_t at_ = 0;
  bool starts_line_ = true, after_blank_ = false, is_joined_ = false;
};

}  // namespace

std::vector<SourceToken> lex(std::string_view text, std::uint32_t file, std::deque<std::string>& spellings,
                             SourceWork& work) {
  return Lexer(text, file, spellings, work).all();
}

}  // namespace iosig
