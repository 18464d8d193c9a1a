#include "iosig/format/vectors_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "iosig/base/text.h"

namespace iosig {
namespace {

constexpr std::array known_columns = {logical_column, length_column, physical_column, id_column, sequence_name};

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

/// Returns a hint for `word`, which is not an integer, and its line; "" if there is none.
std::string advice(std::string_view word, std::uint64_t line) {
  if (word.starts_with("\xef\xbb\xbf")) return "; the file begins with a byte order mark (BOM): remove it";
  if (word.find('\0') != std::string_view::npos || printable(word) != word) return "; is this a text file?";
  if (word.starts_with('{') || word.starts_with("IOP"))
    return "; if this is a description already: iosig pattern expand, lookup and merge read it";
  for (const char separator : {',', ';'})
    if (word.find(separator) != std::string_view::npos) return fmt::format("; try tr '{}' ' ' first", separator);
  const bool is_name = (word[0] >= 'a' && word[0] <= 'z') || (word[0] >= 'A' && word[0] <= 'Z');
  return line == 1 && is_name ? "; is this a header? put # before it" : "";
}

}  // namespace

Result<std::vector<std::string>> parse_columns(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string_view part : split(text, ',')) {
    const std::string_view name = trimmed(part);
    if (std::ranges::find(known_columns, name) == known_columns.end())
      return fail(ErrorKind::usage, "'{}' is not a column; expected some of {}{}", printable(name),
                  fmt::join(known_columns, ", "), did_you_mean(name, known_columns));
    if (std::ranges::find(names, name) != names.end()) return fail(ErrorKind::usage, "column '{}' comes twice", name);
    names.emplace_back(name);
  }
  return names;
}

AccessCheck::AccessCheck(std::vector<std::string> names) : names_(std::move(names)), columns_(access_columns(names_)) {}

std::string AccessCheck::fault(std::span<const std::int64_t> vector) const {
  for (const int column : {columns_.logical, columns_.length, columns_.physical})
    if (column >= 0 && vector[static_cast<std::size_t>(column)] < 0)
      return fmt::format("{} {} is negative; expected 0 to 2^63 - 1", names_[static_cast<std::size_t>(column)],
                         vector[static_cast<std::size_t>(column)]);
  for (const int column : {columns_.logical, columns_.physical}) {
    if (column < 0 || columns_.length < 0) continue;
    const std::int64_t offset = vector[static_cast<std::size_t>(column)],
                       length = vector[static_cast<std::size_t>(columns_.length)];
    if (offset > INT64_MAX - length)
      return fmt::format("{} {} and length {} end past 2^63 - 1", names_[static_cast<std::size_t>(column)], offset,
                         length);
  }
  return {};
}

VectorLines::VectorLines(std::vector<std::string> columns, std::string source, std::uint32_t unnamed)
    : check_(std::move(columns)),
      source_(std::move(source)),
      columns_(check_.names().empty() ? unnamed : static_cast<std::uint32_t>(check_.names().size())) {}

Result<bool> VectorLines::read(std::string_view line, std::span<std::int64_t> out) {
  ++line_;
  const auto refuse = [&](std::string_view what) {
    return fail(ErrorKind::bad_input, "{}:{}: {}", source_, line_, what);
  };
  const char* at = line.data();
  const char* const end = at + line.size();
  std::uint32_t found = 0;
  for (;;) {
    while (at < end && is_blank(*at)) ++at;
    if (at == end || (found == 0 && *at == '#')) break;
    std::int64_t value = 0;
    const auto [after, failure] = std::from_chars(at, end, value);
    if (failure == std::errc::result_out_of_range || failure == std::errc::invalid_argument ||
        (after < end && !is_blank(*after))) {
      const char* word = at;
      while (word < end && !is_blank(*word)) ++word;
      const std::string_view typed = cut_to({at, static_cast<std::size_t>(word - at)}, 40);
      const std::string shown = printable(typed);
      return failure == std::errc::result_out_of_range
                 ? refuse(fmt::format("'{}' does not fit 64 bits; expected integers from -2^63 to 2^63 - 1", shown))
                 : refuse(fmt::format("'{}' is not an integer; expected white-space-separated decimal integers{}",
                                      shown, advice(typed, line_)));
    }
    if (found < columns_) out[found] = value;
    ++found;
    at = after;
  }
  if (found == 0) return false;
  const std::vector<std::string>& names = check_.names();
  if (found != columns_)
    return refuse(fmt::format(
        "{} integer{}; expected {}{}", found, found == 1 ? "" : "s", columns_,
        names.empty() ? "; --columns may say another number, or names" : fmt::format(" ({})", fmt::join(names, ", "))));
  if (const std::string fault = check_.fault(out.first(columns_)); !fault.empty()) return refuse(fault);
  return true;
}

}  // namespace iosig
