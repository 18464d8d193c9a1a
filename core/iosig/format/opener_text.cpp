#include "iosig/format/opener_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace iosig {
namespace {

constexpr int max_arguments = 99;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// Reads left to right and stops at the first mistake.
class OpenerReader {
 public:
  explicit OpenerReader(std::string_view text) : text_(text) {}

  ParsedOpener read() {
    opener_.interface = OpenInterface::unknown;
    if (read_name() && read_arguments()) return {std::move(opener_), {}};
    return {Opener{}, {std::move(mistake_)}};
  }

 private:
  bool read_name() {
    skip_blanks();
    const std::size_t begin = at_;
    do {
      skip_blanks();
      if (at_ == text_.size() || !is_letter(text_[at_]))
        return fail(begin, "expected a function and the number of its argument with the path, e.g. my_open(1)");
      while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) opener_.name += text_[at_++];
      skip_blanks();
      if (!take("::")) return true;
      opener_.name += "::";
    } while (true);
  }

  bool read_arguments() {
    const std::size_t opening = at_;
    const bool in_parentheses = take("(");
    if (!in_parentheses && !take(":"))
      return fail(at_, fmt::format("expected the number of the argument with the path, e.g. {}(1)", opener_.name));
    skip_blanks();
    const std::size_t path_at = at_;
    if (!read_number("path", opener_.path)) return false;
    const Span path{path_at, at_};
    skip_blanks();
    if (take(in_parentheses ? "," : ":")) {
      skip_blanks();
      const std::size_t mode_at = at_;
      if (!read_number("mode", opener_.mode)) return false;
      if (opener_.mode == opener_.path) {
        fail(mode_at, "path and mode are not the same argument");
        mistake_.other = path;
        mistake_.other_message = "the path";
        return false;
      }
      skip_blanks();
    }
    if (in_parentheses && !take(")")) {
      if (at_ == text_.size()) {
        at_ = opening + 1;
        return fail(opening, "'(' is not closed");
      }
      return fail(at_, "expected ')'");
    }
    skip_blanks();
    return at_ == text_.size() || fail(at_, "expected nothing more after the function and its arguments");
  }

  bool read_number(std::string_view what, int& index) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    if (at_ == begin)
      return fail(begin, fmt::format("expected the number of the argument with the {}, e.g. {}({})", what, opener_.name,
                                     what == "path" ? "1" : "1, 2"));
    int number = 0;
    const auto parsed = std::from_chars(text_.data() + begin, text_.data() + at_, number);
    if (parsed.ec != std::errc() || number < 1 || number > max_arguments)
      return fail(begin, fmt::format("arguments are counted from 1 to {}", max_arguments));
    index = number - 1;
    return true;
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  /// Records a mistake from `begin` to the current position, at least one byte long.
  bool fail(std::size_t begin, std::string message) {
    mistake_.at = {begin, std::max(at_, begin + 1)};
    mistake_.message = std::move(message);
    return false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Opener opener_;
  Diagnostic mistake_;
};

}  // namespace

ParsedOpener parse_sigopen(std::string_view text) { return OpenerReader(text).read(); }

Result<Opener> parse_callee(std::string_view text, std::string_view source) {
  ParsedOpener parsed = parse_sigopen(text);
  if (parsed.ok()) return std::move(parsed.opener);
  return iosig::fail(ErrorKind::usage, "{}", diagnostic_text(parsed.diagnostics.front(), text, source));
}

}  // namespace iosig
