#include "pattern_ids.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

#include "iosig/base/text.h"

namespace iosig::cli {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// A file name, split into numbers and the text between them.
struct NameParts {
  std::vector<std::string_view> between, numbers;
};

NameParts parts_of(std::string_view name) {
  NameParts parts;
  while (true) {
    const auto first = std::ranges::find_if(name, is_digit);
    parts.between.push_back(name.substr(0, static_cast<std::size_t>(first - name.begin())));
    name.remove_prefix(parts.between.back().size());
    if (name.empty()) return parts;
    const auto end = std::ranges::find_if_not(name, is_digit);
    parts.numbers.push_back(name.substr(0, static_cast<std::size_t>(end - name.begin())));
    name.remove_prefix(parts.numbers.back().size());
  }
}

/// Returns, for each name, the one number in which the names differ. Returns nothing if they differ elsewhere or not at
/// all, or if a number is too large.
std::optional<std::vector<std::int64_t>> numbers_that_differ(std::span<const std::string> files) {
  std::vector<NameParts> names;
  for (const std::string& file : files) names.push_back(parts_of(file));
  std::optional<std::size_t> place;
  for (const NameParts& name : names) {
    if (name.between != names.front().between) return std::nullopt;
    for (std::size_t n = 0; n < name.numbers.size(); ++n) {
      if (name.numbers[n] == names.front().numbers[n]) continue;
      if (place.value_or(n) != n) return std::nullopt;
      place = n;
    }
  }
  if (!place) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const NameParts& name : names) {
    const auto number = parse_count<std::uint64_t>(name.numbers[*place]);
    if (!number || *number > INT64_MAX) return std::nullopt;
    numbers.push_back(static_cast<std::int64_t>(*number));
  }
  return numbers;
}

Result<std::vector<std::int64_t>> told_ids(std::string_view told, std::size_t files) {
  std::vector<std::int64_t> ids;
  for (const std::string_view part : split(told, ',')) {
    const std::string_view word = trimmed(part);
    std::int64_t id = 0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (failure != std::errc{} || end != word.data() + word.size())
      return fail(ErrorKind::usage, "--ids: '{}' is not an integer; expected N,N,... with commas between",
                  printable(word));
    ids.push_back(id);
  }
  if (ids.size() != files) return fail(ErrorKind::usage, "--ids: {} ids for {} descriptions", ids.size(), files);
  return ids;
}

}  // namespace

Result<ProcessIds> process_ids(const std::string& told, std::span<const std::string> files) {
  if (!told.empty())
    return told_ids(told, files.size()).map([](std::vector<std::int64_t> ids) { return ProcessIds{std::move(ids)}; });
  ProcessIds known;
  known.ids.resize(files.size());
  std::iota(known.ids.begin(), known.ids.end(), 0);
  if (auto numbers = numbers_that_differ(files); numbers && *numbers != known.ids) {
    for (std::size_t n = 0; n < files.size(); ++n)
      if (const auto first = std::ranges::find(*numbers, (*numbers)[n]) - numbers->begin();
          first != static_cast<std::ptrdiff_t>(n))
        return fail(ErrorKind::usage, "'{}' and '{}' would both be process {}; number them with --ids",
                    printable(files[static_cast<std::size_t>(first)]), printable(files[n]), (*numbers)[n]);
    return ProcessIds{std::move(*numbers), true};
  }
  return known;
}

std::string ids_text(const ProcessIds& known, std::span<const std::string> files) {
  constexpr std::size_t shown = 3;
  std::vector<std::string> words;
  for (std::size_t n = 0; n < std::min(shown, files.size()); ++n)
    words.push_back(fmt::format("{} is {}", printable(files[n]), known.ids[n]));
  return fmt::format("{}{}", fmt::join(words, ", "), files.size() > shown ? ", ..." : "");
}

}  // namespace iosig::cli
