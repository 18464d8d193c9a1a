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

int index_of(const std::vector<std::string>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

}  // namespace

Result<std::vector<std::string>> parse_columns(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string_view part : split(text, ',')) {
    const std::string_view name = trimmed(part);
    if (std::ranges::find(known_columns, name) == known_columns.end())
      return fail(ErrorKind::usage, "'{}' is no column; expected some of {}{}", printable(name),
                  fmt::join(known_columns, ", "), did_you_mean(name, known_columns));
    if (index_of(names, name) >= 0) return fail(ErrorKind::usage, "column '{}' comes twice", name);
    names.emplace_back(name);
  }
  return names;
}

VectorLines::VectorLines(std::vector<std::string> columns, std::string source)
    : names_(std::move(columns)),
      source_(std::move(source)),
      columns_(names_.empty() ? 1 : static_cast<std::uint32_t>(names_.size())),
      logical_(index_of(names_, logical_column)),
      length_(index_of(names_, length_column)),
      physical_(index_of(names_, physical_column)) {}

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
    if (at == end) break;
    std::int64_t value = 0;
    const auto [after, failure] = std::from_chars(at, end, value);
    if (failure == std::errc::result_out_of_range || failure == std::errc::invalid_argument ||
        (after < end && !is_blank(*after))) {
      const char* word = at;
      while (word < end && !is_blank(*word)) ++word;
      const std::string shown = printable(cut_to({at, static_cast<std::size_t>(word - at)}, 40));
      return failure == std::errc::result_out_of_range
                 ? refuse(fmt::format("'{}' does not fit 64 bits; expected integers from -2^63 to 2^63 - 1", shown))
                 : refuse(fmt::format("'{}' is no integer; expected white-space-separated decimal integers", shown));
    }
    if (found < columns_) out[found] = value;
    ++found;
    at = after;
  }
  if (found == 0) return false;
  if (found != columns_)
    return refuse(
        fmt::format("{} integer{}; expected {}{}", found, found == 1 ? "" : "s", columns_,
                    names_.empty() ? ", or name the columns" : fmt::format(" ({})", fmt::join(names_, ", "))));
  if (auto sound = check(out.first(columns_)); !sound) return pass_on(std::move(sound.error()));
  return true;
}

Result<void> VectorLines::check(std::span<const std::int64_t> vector) const {
  for (const int column : {logical_, length_, physical_})
    if (column >= 0 && vector[static_cast<std::size_t>(column)] < 0)
      return fail(ErrorKind::bad_input, "{}:{}: {} {} is negative; expected 0 to 2^63 - 1", source_, line_,
                  names_[static_cast<std::size_t>(column)], vector[static_cast<std::size_t>(column)]);
  for (const int column : {logical_, physical_}) {
    if (column < 0 || length_ < 0) continue;
    const std::int64_t offset = vector[static_cast<std::size_t>(column)],
                       length = vector[static_cast<std::size_t>(length_)];
    if (offset > INT64_MAX - length)
      return fail(ErrorKind::bad_input, "{}:{}: {} {} and length {} end past 2^63 - 1", source_, line_,
                  names_[static_cast<std::size_t>(column)], offset, length);
  }
  return {};
}

}  // namespace iosig
