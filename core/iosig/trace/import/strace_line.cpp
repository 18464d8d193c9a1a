#include "iosig/trace/import/strace_line.h"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <unordered_map>

#include "iosig/base/text.h"

namespace iosig::trace {
namespace {

constexpr std::string_view blanks = " \t";
constexpr std::int64_t max_strace_seconds = 4'000'000'000;  ///< a time and a duration can be added
constexpr std::string_view unfinished_mark = "<unfinished ...>";

bool is_digit(char each) { return each >= '0' && each <= '9'; }

void skip_blanks(std::string_view& text) { text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size())); }

/// Takes digits from the start of `text`; nothing if there are none or too many.
std::optional<std::int64_t> take_digits(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || text.empty() || !is_digit(text.front())) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// Takes "1700000000.123456" as nanoseconds.
std::optional<std::int64_t> take_seconds(std::string_view& text) {
  const auto whole = take_digits(text);
  if (!whole || *whole > max_strace_seconds || text.size() < 2 || text[0] != '.' || !is_digit(text[1]))
    return std::nullopt;
  text.remove_prefix(1);
  std::int64_t ns = 0;
  int digits = 0;
  for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1))
    if (digits < 9) {
      ns = ns * 10 + (text.front() - '0');
      ++digits;
    }
  for (; digits < 9; ++digits) ns *= 10;
  return *whole * 1'000'000'000 + ns;
}

/// Returns the place behind the annotation that begins with '<' at `at`; npos: it does not end. "->" is part of it.
std::size_t behind_annotation(std::string_view text, std::size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '<') ++depth;
    if (text[at] == '>' && text[at - 1] != '-' && --depth == 0) return at + 1;
  }
  return std::string_view::npos;
}

std::size_t behind_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\')
      ++at;
    else if (text[at] == '"')
      return at + 1;
  }
  return std::string_view::npos;
}

/// Whether '<' at `at` begins what -y tells of a descriptor, as in 3</tmp/a> or AT_FDCWD</tmp>.
bool is_annotation(std::string_view text, std::size_t at) {
  return at > 0 && at + 1 < text.size() && (is_digit(text[at - 1]) || text[at - 1] == 'D') && text[at + 1] != '<' &&
         text[at + 1] != ' ';
}

/// Returns the place behind the token that begins at `at`: a text, an annotation, a comment, or one character.
std::size_t behind_token(std::string_view text, std::size_t at) {
  if (text[at] == '"') return behind_string(text, at);
  if (text[at] == '<' && is_annotation(text, at)) return behind_annotation(text, at);
  if (text.substr(at).starts_with("/*")) {
    const std::size_t end = text.find("*/", at + 2);
    return end == std::string_view::npos ? end : end + 2;
  }
  return at + 1;
}

/// Splits at commas of the outermost level, up to a closing bracket that was not opened. Returns its place, or the end
/// of the text; npos: a text or bracket does not end.
std::size_t split_list(std::string_view text, std::vector<std::string_view>& parts) {
  int depth = 0;
  std::size_t begin = 0;
  const auto end_part = [&](std::size_t at) {
    if (const std::string_view part = trimmed(text.substr(begin, at - begin)); !part.empty()) parts.push_back(part);
    begin = at + 1;
  };
  for (std::size_t at = 0; at < text.size();) {
    const char each = text[at];
    if (each == '(' || each == '[' || each == '{') ++depth;
    if ((each == ')' || each == ']' || each == '}') && --depth < 0) {
      end_part(at);
      return at;
    }
    if (each == ',' && depth == 0) end_part(at);
    at = behind_token(text, at);
    if (at > text.size()) return std::string_view::npos;
  }
  end_part(text.size());
  return depth == 0 ? text.size() : std::string_view::npos;
}

/// Error numbers by name. The kernel's ERESTART... are EINTR: strace sees them before the call is made again.
int errno_of(std::string_view name) {
  static const auto known = [] {
    std::unordered_map<std::string_view, int> numbers;
    for (int number = 1; number < 4096; ++number)
      if (const char* const each = ::strerrorname_np(number); each != nullptr) numbers.emplace(each, number);
    numbers.emplace("EWOULDBLOCK", EAGAIN);
    return numbers;
  }();
  if (name.starts_with("ERESTART")) return EINTR;
  const auto found = known.find(name);
  return found == known.end() ? 0 : found->second;
}

int hex_digit(char each) {
  if (is_digit(each)) return each - '0';
  return each >= 'a' && each <= 'f' ? each - 'a' + 10 : -1;
}

}  // namespace

std::optional<StraceLine> strace_line(std::string_view line) {
  StraceLine found;
  if (line.starts_with("[pid ")) {
    line.remove_prefix(5);
    skip_blanks(line);
    const auto pid = take_digits(line);
    if (!pid || *pid > INT32_MAX || !line.starts_with(']')) return std::nullopt;
    found.pid = static_cast<std::int32_t>(*pid);
    line.remove_prefix(1);
  } else if (const std::size_t digits = line.find_first_not_of("0123456789");
             digits != std::string_view::npos && blanks.find(line[digits]) != std::string_view::npos) {
    const auto pid = take_digits(line);
    if (!pid || *pid > INT32_MAX) return std::nullopt;
    found.pid = static_cast<std::int32_t>(*pid);
  }
  skip_blanks(line);
  const auto time = take_seconds(line);
  if (!time || *time == 0 || !line.starts_with(' ')) return std::nullopt;
  found.time_ns = *time;
  skip_blanks(line);
  if (line.starts_with("--- ")) return found;
  if (line.starts_with("+++ ")) {
    if (line.starts_with("+++ exited") || line.starts_with("+++ killed")) found.event = StraceEvent::exit;
    return found;
  }
  if (line.starts_with("<... ")) {
    line.remove_prefix(5);
    const std::size_t end = line.find(" resumed>");
    if (end == std::string_view::npos) return std::nullopt;
    found.event = StraceEvent::resumed;
    found.name = line.substr(0, end);
    found.rest = line.substr(end + 9);
    return found;
  }
  const std::size_t bracket = line.find('(');
  if (bracket == std::string_view::npos || bracket == 0) return std::nullopt;
  found.name = line.substr(0, bracket);
  if (found.name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") !=
      std::string_view::npos)
    return std::nullopt;
  found.rest = line.substr(bracket + 1);
  found.event = StraceEvent::call;
  if (found.rest.ends_with(unfinished_mark)) {
    found.rest.remove_suffix(unfinished_mark.size());
    found.event = StraceEvent::unfinished;
  }
  return found;
}

std::optional<StraceCall> strace_call(std::string_view rest) {
  StraceCall call;
  const std::size_t end = split_list(rest, call.arguments);
  if (end >= rest.size() || rest[end] != ')') return std::nullopt;
  rest.remove_prefix(end + 1);
  skip_blanks(rest);
  if (!rest.starts_with("= ")) return std::nullopt;
  rest.remove_prefix(2);
  const std::size_t digits = std::min(rest.find_first_of(" \t<"), rest.size());
  const std::string_view number = rest.substr(0, digits);
  rest.remove_prefix(digits);
  if (number != "?") {
    call.result = strace_number(number);
    if (!call.result) return std::nullopt;
  }
  if (rest.starts_with('<')) {
    const std::size_t behind = behind_annotation(rest, 0);
    if (behind == std::string_view::npos) return std::nullopt;
    call.result_path = rest.substr(1, behind - 2);
    rest.remove_prefix(behind);
  }
  skip_blanks(rest);
  if (rest.starts_with('E')) {
    const int number_of_error = errno_of(rest.substr(0, std::min(rest.find_first_of(" \t"), rest.size())));
    if (number_of_error == 0) return std::nullopt;
    call.result = -std::int64_t{number_of_error};
  }
  if (const std::size_t open = rest.rfind('<'); open != std::string_view::npos && rest.ends_with('>')) {
    std::string_view duration = rest.substr(open + 1);
    call.duration_ns = take_seconds(duration);
    if (!call.duration_ns || duration != ">") return std::nullopt;
  }
  return call;
}

std::optional<std::int64_t> strace_number(std::string_view text) {
  const bool is_hex = text.starts_with("0x");
  if (is_hex) text.remove_prefix(2);
  std::int64_t number = 0;
  std::uint64_t bits = 0;
  const auto [end, failure] = is_hex ? std::from_chars(text.data(), text.data() + text.size(), bits, 16)
                                     : std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return is_hex ? static_cast<std::int64_t>(bits) : number;
}

std::string strace_unescaped(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\' || at + 1 == text.size()) {
      bytes += text[at];
      continue;
    }
    const char escape = text[++at];
    constexpr std::string_view letters = "tnvfra", values = "\t\n\v\f\r\a";
    if (escape == 'x') {
      int value = 0, digits = 0;
      for (; digits < 2 && at + 1 < text.size() && hex_digit(text[at + 1]) >= 0; ++digits)
        value = value * 16 + hex_digit(text[++at]);
      bytes += static_cast<char>(value);
    } else if (escape >= '0' && escape <= '7') {
      int value = escape - '0';
      for (int digits = 1; digits < 3 && at + 1 < text.size() && text[at + 1] >= '0' && text[at + 1] <= '7'; ++digits)
        value = value * 8 + (text[++at] - '0');
      bytes += static_cast<char>(value);
    } else if (const std::size_t letter = letters.find(escape); letter != std::string_view::npos) {
      bytes += values[letter];
    } else {
      bytes += escape;
    }
  }
  return bytes;
}

std::optional<std::string> strace_string(std::string_view quoted) {
  if (!quoted.starts_with('"') || behind_string(quoted, 0) != quoted.size()) return std::nullopt;
  return strace_unescaped(quoted.substr(1, quoted.size() - 2));
}

std::optional<StraceDescriptor> strace_descriptor(std::string_view text) {
  StraceDescriptor found;
  const std::size_t open = std::min(text.find('<'), text.size());
  const std::string_view number = text.substr(0, open);
  if (number == "AT_FDCWD") {
    found.number = AT_FDCWD;
  } else {
    const auto value = strace_number(number);
    if (!value || *value < 0 || *value > INT32_MAX) return std::nullopt;
    found.number = static_cast<std::int32_t>(*value);
  }
  std::string_view path = text.substr(open);
  if (path.starts_with("</")) {
    path.remove_prefix(1);
    found.path = strace_unescaped(path.substr(0, std::min(path.find_first_of("<>"), path.size())));
  }
  return found;
}

std::optional<std::vector<std::string_view>> strace_list(std::string_view text) {
  std::vector<std::string_view> parts;
  if (text.size() < 2 || text.front() != '[' || text.back() != ']' ||
      split_list(text.substr(1, text.size() - 2), parts) != text.size() - 2)
    return std::nullopt;
  return parts;
}

std::string_view strace_field(std::string_view structure, std::string_view field) {
  if (!structure.starts_with('{') || !structure.ends_with('}')) return {};
  std::vector<std::string_view> parts;
  if (split_list(structure.substr(1, structure.size() - 2), parts) == std::string_view::npos) return {};
  for (const std::string_view part : parts)
    if (part.size() > field.size() && part.starts_with(field) && part[field.size()] == '=')
      return part.substr(field.size() + 1);
  return {};
}

}  // namespace iosig::trace
