#include "iosig/observe/path_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace iosig::observe {
namespace {

constexpr std::string_view number_glob = "[0-9]*";
constexpr std::size_t random_letters = 6;         ///< mkstemp(3)'s
constexpr std::size_t python_random_letters = 8;  ///< of Python's tempfile, after "tmp"
constexpr char number_mark = '\1';                ///< stands for a number in the skeleton of a path

bool is_digit(char each) { return each >= '0' && each <= '9'; }
bool is_lower(char each) { return each >= 'a' && each <= 'z'; }
bool is_upper(char each) { return each >= 'A' && each <= 'Z'; }
bool is_letter(char each) { return is_lower(each) || is_upper(each); }

/// A path as text between numbers: texts.size() is numbers.size() + 1.
struct SplitPath {
  std::vector<std::string> texts, numbers;
};

SplitPath split_at_numbers(std::string_view path) {
  SplitPath parts;
  parts.texts.emplace_back();
  bool is_number = false;
  for (const char each : path) {
    if (is_digit(each) && !is_number) parts.numbers.emplace_back();
    if (!is_digit(each) && is_number) parts.texts.emplace_back();
    is_number = is_digit(each);
    (is_number ? parts.numbers : parts.texts).back() += each;
  }
  if (is_number) parts.texts.emplace_back();
  return parts;
}

std::tm date_of(std::int64_t unix_s, const RunNumbers& run) {
  const std::time_t local = unix_s + run.seconds_east;
  std::tm parts{};
  ::gmtime_r(&local, &parts);
  return parts;
}

/// Marks the numbers of a path that are a date, a time or an id of the run; returns what they are, or "".
std::string mark_run_numbers(const SplitPath& path, const RunNumbers& run, std::vector<bool>& is_open) {
  std::string what;
  const auto mark = [&](std::size_t first, std::size_t count, std::string_view name) {
    for (std::size_t n = first; n < first + count; ++n) is_open[n] = true;
    if (what.find(name) == std::string::npos) what += what.empty() ? std::string(name) : fmt::format(" and {}", name);
  };
  const std::size_t count = path.numbers.size();
  for (std::size_t n = 0; n < count; ++n)
    if (path.numbers[n].size() >= 2 && run.words.contains(path.numbers[n]))
      mark(n, 1, "the id of a process or job of the run");
  if (run.started_s == 0) return what;
  for (const std::int64_t moment : {run.started_s, run.ended_s}) {
    const std::tm date = date_of(moment, run);
    const std::string year = fmt::format("{:04}", date.tm_year + 1900), month = fmt::format("{:02}", date.tm_mon + 1),
                      day = fmt::format("{:02}", date.tm_mday);
    for (std::size_t n = 0; n < count; ++n) {
      const std::string& number = path.numbers[n];
      if (number.starts_with(year + month + day)) mark(n, 1, "the date of the run");
      if (n + 2 < count && number == year && path.numbers[n + 1] == month && path.numbers[n + 2] == day)
        mark(n, 3, "the date of the run");
    }
  }
  const bool has_date = what.find("date") != std::string::npos;
  for (std::size_t n = 0; n < count; ++n) {
    const std::string& number = path.numbers[n];
    if (number.size() == 10 && number >= fmt::format("{}", run.started_s - 1) &&
        number <= fmt::format("{}", run.ended_s + 1))
      mark(n, 1, "the time of the run");
    // The time of day counts only beside the date: six digits may be anything.
    if (has_date && !is_open[n] && n > 0 && is_open[n - 1] && (number.size() == 6 || number.size() == 4))
      mark(n, 1, "the time of the run");
  }
  return what;
}

std::string glob_of(const SplitPath& path, const std::vector<bool>& is_open) {
  std::string glob = escaped_glob(path.texts.front());
  for (std::size_t n = 0; n < path.numbers.size(); ++n) {
    glob += is_open[n] ? std::string(number_glob) : path.numbers[n];
    glob += escaped_glob(path.texts[n + 1]);
  }
  return glob;
}

/// Where the random letters of a name that mkstemp(3) or Python may have made begin and end; nothing: it does not look
/// random.
std::optional<std::pair<std::size_t, std::size_t>> random_letters_of(std::string_view path) {
  const std::size_t name = path.rfind('/') + 1;
  const std::size_t dot = path.find_first_of('.', name + 1);
  const auto looks_random = [&](std::size_t begin, std::size_t end) {
    std::size_t digits = 0, lower = 0, upper = 0;
    for (const char each : path.substr(begin, end - begin)) {
      if (!is_digit(each) && !is_letter(each) && each != '_') return false;
      digits += is_digit(each) ? 1 : 0;
      lower += is_lower(each) ? 1 : 0;
      upper += is_upper(each) ? 1 : 0;
    }
    return (digits > 0 && lower + upper > 0) || (lower > 0 && upper > 1) || (upper > 0 && lower > 1);
  };
  const auto at_end_of = [&](std::size_t end) -> std::optional<std::pair<std::size_t, std::size_t>> {
    if (path.substr(name).starts_with("tmp") && end == name + 3 + python_random_letters)
      return std::pair(name + 3, end);
    if (end < name + random_letters || !looks_random(end - random_letters, end)) return std::nullopt;
    return std::pair(end - random_letters, end);
  };
  if (const auto found = at_end_of(path.size())) return found;           // scratch.aB3xYz
  return dot == std::string_view::npos ? std::nullopt : at_end_of(dot);  // ccaB3xYz.s
}

/// Takes paths with random letters out of `left`.
void take_random(std::span<const PathUse> paths, std::vector<std::size_t>& left, std::vector<PathFamily>& families) {
  std::map<std::pair<int, std::string>, PathFamily> found;
  std::erase_if(left, [&](std::size_t number) {
    const PathUse& use = paths[number];
    if (!use.may_be_random) return false;
    const auto place = random_letters_of(use.path);
    if (!place) return false;
    const std::string_view path = use.path;
    const std::string glob =
        fmt::format("{}{}{}", escaped_glob(path.substr(0, place->first)),
                    std::string(place->second - place->first, '?'), escaped_glob(path.substr(place->second)));
    PathFamily& family = found[{use.kind, glob}];
    family.glob = glob;
    family.why = "its letters are random, as mkstemp(3) makes names";
    family.members.push_back(number);
    return true;
  });
  for (auto& [key, family] : found) families.push_back(std::move(family));
}

}  // namespace

std::string escaped_glob(std::string_view path) {
  std::string glob;
  for (const char each : path) {
    if (each == '*' || each == '?' || each == '[' || each == '\\') glob += '\\';
    glob += each;
  }
  return glob;
}

std::vector<PathFamily> families_of(std::span<const PathUse> paths) {
  std::vector<PathFamily> families;
  std::vector<std::size_t> left(paths.size());
  for (std::size_t n = 0; n < paths.size(); ++n) left[n] = n;
  take_random(paths, left, families);

  std::vector<SplitPath> split(paths.size());
  std::map<std::pair<int, std::string>, std::vector<std::size_t>> alike;  // by kind and skeleton
  for (const std::size_t number : left) {
    split[number] = split_at_numbers(paths[number].path);
    std::string skeleton;
    for (const std::string& text : split[number].texts) skeleton += text + number_mark;
    alike[{paths[number].kind, skeleton}].push_back(number);
  }
  std::map<std::string, PathFamily> by_glob;
  for (const auto& [key, members] : alike) {
    const SplitPath& first = split[members.front()];
    std::vector<bool> varies(first.numbers.size());
    for (const std::size_t number : members)
      for (std::size_t n = 0; n < varies.size(); ++n)
        varies[n] = varies[n] || split[number].numbers[n] != first.numbers[n];
    const bool is_numbered = std::ranges::find(varies, true) != varies.end();
    for (const std::size_t number : members) {
      std::vector<bool> is_open = varies;
      std::string why = is_numbered ? fmt::format("the number varies in {} names", members.size()) : "";
      if (paths[number].run != nullptr)
        if (const std::string of_run = mark_run_numbers(split[number], *paths[number].run, is_open); !of_run.empty())
          why += why.empty() ? fmt::format("the number is {}", of_run) : fmt::format(", or is {}", of_run);
      const std::string glob = glob_of(split[number], is_open);
      // Two kinds of files whose numbers vary have one glob: it serves the kind with more files, the others are named.
      PathFamily& family = by_glob[fmt::format("{}\n{}", glob, key.first)];
      family.glob = glob;
      if (family.why.size() < why.size()) family.why = why;
      family.members.push_back(number);
    }
  }
  std::map<std::string, std::size_t> largest;
  for (const auto& [key, family] : by_glob)
    largest[family.glob] = std::max(largest[family.glob], family.members.size());
  for (auto& [key, family] : by_glob) {
    std::size_t& most = largest[family.glob];
    if (family.why.empty() || family.members.size() == most) {
      if (!family.why.empty()) most = SIZE_MAX;  // the next of this size is named
      families.push_back(std::move(family));
      continue;
    }
    for (const std::size_t number : family.members)
      families.push_back({.glob = escaped_glob(paths[number].path), .members = {number}});
  }
  for (PathFamily& family : families) std::ranges::sort(family.members);
  std::ranges::stable_sort(families, [](const PathFamily& a, const PathFamily& b) {
    return std::pair(!a.why.empty(), a.glob) < std::pair(!b.why.empty(), b.glob);
  });
  return families;
}

}  // namespace iosig::observe
