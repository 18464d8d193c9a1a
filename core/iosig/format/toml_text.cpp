#include "iosig/format/toml_text.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace iosig {
namespace {

/// Dots in a line of keys: each creates a nested table.
constexpr std::size_t max_dots = 64;

/// Rejects text that toml++ cannot handle: a deep `a.b.c = 1` would overflow its stack, and its behaviour is undefined
/// on some non-ASCII characters outside quotes, in an escape or at the continuation of joined lines.
class Guard {
 public:
  Guard(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  Result<void> check() {
    if (constexpr std::string_view byte_order_mark = "\xef\xbb\xbf"; text_.starts_with(byte_order_mark))
      text_.remove_prefix(byte_order_mark.size());
    if (const auto control = std::ranges::find_if(text_, is_forbidden); control != text_.end()) {
      const auto before = static_cast<std::size_t>(control - text_.begin());
      for (; at_ < before; ++at_)
        if (text_[at_] == '\n') next_line();
      return refuse("a control character, which TOML allows nowhere");
    }
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        // toml++ takes the word and the quote for one value; the only legal text lost is a dotted key of quoted parts
        if (at_ > 0 && std::string_view(" \t\r\n=[,{").find(text_[at_ - 1]) == std::string_view::npos)
          return refuse("a quote in the middle of a word");
        if (auto sound = skip_string(c); !sound) return sound;
        continue;
      }
      if (c == '#') at_ = std::min(text_.find('\n', at_), text_.size() - 1);
      if (text_[at_] == '\n') {
        next_line();
      } else if (static_cast<unsigned char>(c) >= 0x80) {
        return refuse("a letter beyond ASCII stands outside quotes; expected it in \"...\"");
      } else if (c == '.' && ++dots_ > max_dots) {
        return refuse(fmt::format("more than {} dots in one line: nested too deep", max_dots));
      }
      ++at_;
    }
    return {};
  }

 private:
  static bool is_forbidden(char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
  }

  /// Skips "...", '...', """...""" or '''...'''; an unclosed one ends with its line.
  Result<void> skip_string(char quote) {
    const std::string delimiter(3, quote);
    const bool is_long = text_.substr(at_).starts_with(delimiter);
    at_ += is_long ? 3 : 1;
    bool is_joining = false;  // blanks and newlines after a line's trailing backslash
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (is_joining && static_cast<unsigned char>(c) >= 0x80)
        return refuse("a letter beyond ASCII begins what follows a joined line; write it as \\uXXXX");
      is_joining = is_joining && std::isspace(static_cast<unsigned char>(c)) != 0;
      if (c == '\n') {
        if (!is_long) return {};
        next_line();
      } else if (c == '\\' && quote == '"') {
        const auto length = escape_length(text_.substr(at_ + 1), is_long);
        if (!length) return refuse("a backslash that begins no escape of TOML; a backslash itself is written \\\\");
        is_joining = std::isspace(static_cast<unsigned char>(text_[at_ + 1])) != 0;
        at_ += *length;
      } else if (c == quote && (!is_long || text_.substr(at_).starts_with(delimiter))) {
        at_ += is_long ? 3 : 1;
        for (int more = 0; is_long && more < 2 && at_ < text_.size() && text_[at_] == quote; ++more) ++at_;
        return {};
      }
    }
    return {};
  }

  /// Returns the length of the escape after a backslash; for a line continuation, the characters before the newline.
  /// Nothing if it is not an escape.
  static std::optional<std::size_t> escape_length(std::string_view text, bool is_long) {
    if (text.empty()) return std::nullopt;
    if (std::string_view("btnfr\"\\").find(text.front()) != std::string_view::npos) return 1;
    if (text.front() == 'u' || text.front() == 'U') {
      const std::size_t digits = text.front() == 'u' ? 4 : 8;
      const std::string_view number = text.substr(1, digits);
      if (number.size() == digits && std::ranges::all_of(number, is_hexadecimal_digit)) return 1 + digits;
      return std::nullopt;
    }
    const std::size_t line_end = text.find_first_not_of(" \t\r");
    if (is_long && line_end != std::string_view::npos && text[line_end] == '\n') return line_end;
    return std::nullopt;
  }
  static bool is_hexadecimal_digit(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

  void next_line() {
    ++line_;
    line_begin_ = at_ + 1;
    dots_ = 0;
  }
  Result<void> refuse(std::string_view why) const {
    return fail(ErrorKind::bad_input, "{}:{}:{}: {}", source_, line_, at_ - line_begin_ + 1, why);
  }

  std::string_view text_, source_;
  std::size_t at_ = 0, line_ = 1, line_begin_ = 0, dots_ = 0;
};

}  // namespace

Result<toml::table> parse_toml(std::string_view text, std::string_view source) {
  if (auto fit = Guard(text, source).check(); !fit) return pass_on(fit.error());
  try {
    return toml::parse(text);  // without `source`: toml++ copies it where exceptions are not allowed
  } catch (const toml::parse_error& error) {
    return fail(ErrorKind::bad_input, "{}:{}:{}: {}", source, error.source().begin.line, error.source().begin.column,
                error.description());
  }
}

std::string toml_string(std::string_view text) {
  std::string shown = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      (shown += '\\') += c;
    else if (byte < 0x20 || byte == 0x7f)
      shown += fmt::format("\\u{:04x}", byte);
    else
      shown += c;
  }
  return shown + '"';
}

}  // namespace iosig
