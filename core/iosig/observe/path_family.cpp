#include "iosig/observe/path_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <string_view>
#include <utility>

#include "iosig/format/container_globs.h"

namespace iosig::observe {
namespace {

constexpr std::string_view digit_glob = "[0-9]", letter_glob = "[A-Za-z0-9_]";
constexpr std::string_view number_glob = "[0-9]*";  ///< a digit, then anything: fnmatch(3) cannot say more
constexpr std::string_view hex_glob = "[0-9a-f]";
constexpr std::size_t hex_width = 2;              ///< of directories that spread files by a hash, as git's objects/a7
constexpr std::size_t random_letters = 6;         ///< mkstemp(3)'s
constexpr std::size_t python_random_letters = 8;  ///< of Python's tempfile, after "tmp"
constexpr std::size_t mktemp_letters = 10;        ///< mktemp(1)'s, after "tmp."
constexpr char number_mark = '\1';                ///< stands for a number in the skeleton of a path

bool is_digit(char each) { return each >= '0' && each <= '9'; }
bool is_lower(char each) { return each >= 'a' && each <= 'z'; }
bool is_upper(char each) { return each >= 'A' && each <= 'Z'; }
bool is_letter(char each) { return is_lower(each) || is_upper(each); }

/// A path as text between numbers: texts.size() is numbers.size() + 1.
struct SplitPath {
  std::vector<std::string> texts, numbers;

  /// What it has in common with paths that differ in numbers only.
  [[nodiscard]] std::string skeleton() const {
    std::string all;
    for (const std::string& text : texts) all += text + number_mark;
    return all;
  }
};

/// Whether a directory in the path, at this place, has a name of two hexadecimal digits.
bool is_hex_directory(std::string_view path, std::size_t at) {
  const auto is_hex = [](char each) { return is_digit(each) || (each >= 'a' && each <= 'f'); };
  return at > 0 && path[at - 1] == '/' && at + hex_width < path.size() && path[at + hex_width] == '/' &&
         std::ranges::all_of(path.substr(at, hex_width), is_hex);
}

SplitPath split_at_numbers(std::string_view path, bool also_hex_directories = false) {
  SplitPath parts;
  parts.texts.emplace_back();
  bool is_number = false;
  std::size_t hex_left = 0;
  for (std::size_t at = 0; at < path.size(); ++at) {
    const char each = path[at];
    if (also_hex_directories && is_hex_directory(path, at)) hex_left = hex_width;
    if (hex_left > 0) {
      if (hex_left-- == hex_width) parts.numbers.emplace_back();
      parts.numbers.back() += each;
      is_number = true;
      continue;
    }
    if (is_digit(each) && !is_number) parts.numbers.emplace_back();
    if (!is_digit(each) && is_number) parts.texts.emplace_back();
    is_number = is_digit(each);
    (is_number ? parts.numbers : parts.texts).back() += each;
  }
  if (is_number) parts.texts.emplace_back();
  return parts;
}

std::string times(std::string_view glob, std::size_t count) {
  std::string all;
  for (std::size_t n = 0; n < count; ++n) all += glob;
  return all;
}

/// For each number of a path the glob that stands for it; empty: the number stays.
using NumberGlobs = std::vector<std::string>;

/// Returns what stands for the numbers that vary between names, of which each has as many.
NumberGlobs varying_globs(std::span<const std::vector<std::string>* const> names) {
  const std::vector<std::string>& first = *names.front();
  NumberGlobs globs(first.size());
  for (std::size_t n = 0; n < first.size(); ++n) {
    const auto any = [&](auto is_true) {
      return std::ranges::any_of(names, [&](const std::vector<std::string>* each) { return is_true((*each)[n]); });
    };
    if (!any([&](const std::string& number) { return number != first[n]; })) continue;
    if (any([](const std::string& number) { return std::ranges::any_of(number, is_letter); })) {
      globs[n] = times(hex_glob, hex_width);
      continue;
    }
    // Numbers that are filled with zeros keep their width.
    const bool is_filled = first[n].size() > 1 &&
                           !any([&](const std::string& number) { return number.size() != first[n].size(); }) &&
                           any([](const std::string& number) { return number.front() == '0'; });
    globs[n] = is_filled ? times(digit_glob, first[n].size()) : std::string(number_glob);
  }
  return globs;
}

/// Finds the numbers of a path that are true of one run only.
class RunNumberFinder {
 public:
  RunNumberFinder(const SplitPath& path, const RunNumbers& run, NumberGlobs& globs)
      : numbers_(path.numbers), run_(run), globs_(globs) {}

  /// Sets the globs; returns what the numbers are, or "".
  std::string find() {
    for (std::size_t n = 0; n < numbers_.size(); ++n)
      if (numbers_[n].size() >= 2 && run_.words.contains(numbers_[n])) {
        globs_[n] = number_glob;
        say("the id of a process or job of the run");
      }
    if (run_.started_s == 0) return what_;
    for (std::size_t n = 0; n < numbers_.size(); ++n) {
      for (const std::int64_t moment : {run_.started_s, run_.ended_s}) find_date(n, moment);
      find_time(n);
    }
    return what_;
  }

 private:
  void say(std::string_view what) {
    if (what_.find(what) == std::string::npos) what_ += fmt::format("{}{}", what_.empty() ? "" : " and ", what);
  }
  void mark(std::size_t first, std::size_t count, std::string_view what) {
    for (std::size_t n = first; n < first + count; ++n) globs_[n] = times(digit_glob, numbers_[n].size());
    say(what);
  }
  [[nodiscard]] std::tm local(std::int64_t unix_s) const {
    const std::time_t time = unix_s + run_.seconds_east;
    std::tm parts{};
    ::gmtime_r(&time, &parts);
    return parts;
  }
  /// 20261126, 261126, 2026-11-26; digits behind a date are its time of day.
  void find_date(std::size_t n, std::int64_t moment) {
    const std::tm date = local(moment);
    const std::string year = fmt::format("{:04}", date.tm_year + 1900);
    const std::string rest = fmt::format("{:02}{:02}", date.tm_mon + 1, date.tm_mday);
    const std::string& number = numbers_[n];
    std::size_t count = 0;
    if (number.starts_with(year + rest) || number == year.substr(2) + rest)
      count = 1;
    else if (n + 2 < numbers_.size() && number == year && numbers_[n + 1] + numbers_[n + 2] == rest)
      count = 3;
    if (count == 0) return;
    mark(n, count, "the date of the run");
    date_end_ = n + count;
  }
  /// Seconds since 1970 and their fractions; hours, minutes and seconds, together or apart, if the run was then; hours
  /// and minutes directly behind the date.
  void find_time(std::size_t n) {
    constexpr std::int64_t slack_s = 2;
    const std::string& number = numbers_[n];
    if (number.size() >= 10 && number.size() <= 19) {
      const std::string_view seconds = std::string_view(number).substr(0, 10);
      if (seconds >= fmt::format("{}", run_.started_s - slack_s) &&
          seconds <= fmt::format("{}", run_.ended_s + slack_s))
        mark(n, 1, "the time of the run");
      return;
    }
    std::string digits;
    std::size_t count = 0;
    while (n + count < numbers_.size() && digits.size() < 6 &&
           (numbers_[n + count].size() == 2 || numbers_[n + count].size() == 4 || numbers_[n + count].size() == 6))
      digits += numbers_[n + count++];
    if (digits.size() != 6 && digits.size() != 4) return;
    const bool is_behind_date = date_end_ == n && n > 0;
    if (digits.size() == 4 && !is_behind_date) return;
    const auto two = [&](std::size_t at) { return (digits[at] - '0') * 10 + digits[at + 1] - '0'; };
    const std::int64_t of_day = two(0) * 3600 + two(2) * 60 + (digits.size() == 6 ? two(4) : 0);
    const std::tm start = local(run_.started_s);
    const std::int64_t start_of_day = start.tm_hour * 3600 + start.tm_min * 60 + start.tm_sec;
    const std::int64_t width = digits.size() == 6 ? slack_s : 60;
    const std::int64_t since = ((of_day - start_of_day + width) % 86400 + 86400) % 86400;
    if (since <= run_.ended_s - run_.started_s + 2 * width) mark(n, count, "the time of the run");
  }

  const std::vector<std::string>& numbers_;
  const RunNumbers& run_;
  NumberGlobs& globs_;
  std::string what_;
  std::size_t date_end_ = 0;  ///< the number behind the date that was found last
};

std::string glob_of(const SplitPath& path, const NumberGlobs& globs) {
  std::string glob = escaped_glob(path.texts.front());
  for (std::size_t n = 0; n < path.numbers.size(); ++n) {
    glob += globs[n].empty() ? path.numbers[n] : globs[n];
    glob += escaped_glob(path.texts[n + 1]);
  }
  return glob;
}

/// Whether letters follow each other as a generator draws them: between lower case, upper case and digits at least
/// three times. A third of random names do not; names such as part01, Mesh02 and v2beta must not.
bool looks_random(std::string_view letters) {
  constexpr std::size_t least_changes = 3;
  const auto kind_of = [](char each) { return is_digit(each) ? 0 : is_lower(each) ? 1 : is_upper(each) ? 2 : 3; };
  std::size_t changes = 0;
  char last = '_';
  for (const char each : letters) {
    if (each == '_') continue;
    if (last != '_' && kind_of(last) != kind_of(each)) ++changes;
    last = each;
  }
  return changes >= least_changes;
}

/// A place in a name where mkstemp(3), mktemp(1) or Python may have put random letters.
struct LettersPlace {
  std::size_t begin, end;
  bool is_sure;
};

/// Returns the places in a path: at its end, and before the extension.
std::vector<LettersPlace> letters_places(std::string_view path) {
  constexpr std::pair<std::string_view, std::size_t> known_makers[] = {{"tmp.", mktemp_letters},
                                                                       {"tmp", python_random_letters}};
  const std::size_t name = path.rfind('/') + 1;
  std::vector<LettersPlace> places;
  for (const std::size_t end : {path.size(), path.find('.', name + 1)}) {
    if (end == std::string_view::npos) continue;
    std::size_t begin = end < name + random_letters ? end : end - random_letters;
    bool is_sure = looks_random(path.substr(begin, end - begin));
    for (const auto& [prefix, letters] : known_makers)
      if (path.substr(name).starts_with(prefix) && end == name + prefix.size() + letters) {
        begin = name + prefix.size();
        is_sure = true;
      }
    const auto is_drawn = [](char each) { return is_digit(each) || is_letter(each) || each == '_'; };
    if (begin < end && std::ranges::all_of(path.substr(begin, end - begin), is_drawn))
      places.push_back({begin, end, is_sure});
  }
  return places;
}

/// A name with random letters, and what is around them.
struct RandomName {
  std::size_t number = 0;  ///< of the path
  SplitPath before, behind;
  std::size_t letters = 0;

  [[nodiscard]] std::string skeleton() const {
    return fmt::format("{}{}\n{}", before.skeleton(), letters, behind.skeleton());
  }
};

PathFamily random_family(const std::vector<RandomName>& names) {
  std::vector<const std::vector<std::string>*> before, behind;
  for (const RandomName& each : names) before.push_back(&each.before.numbers), behind.push_back(&each.behind.numbers);
  const RandomName& first = names.front();
  PathFamily family{.glob = glob_of(first.before, varying_globs(before)) + times(letter_glob, first.letters) +
                            glob_of(first.behind, varying_globs(behind)),
                    .has_open_end = true,
                    .why = "its letters are random, as mkstemp(3) makes names"};
  for (const RandomName& each : names) family.members.push_back(each.number);
  return family;
}

/// Takes paths with random letters out of `left`. Names that do not look random belong to those that do and are
/// otherwise equal, but for numbers and directories of hashes.
void take_random(std::span<const PathUse> paths, std::vector<std::size_t>& left, std::vector<PathFamily>& families) {
  std::map<std::pair<int, std::string>, std::vector<RandomName>> found;
  for (const bool must_look_random : {true, false})
    std::erase_if(left, [&](std::size_t number) {
      const PathUse& use = paths[number];
      if (!use.may_be_random) return false;
      const std::string_view path = use.path;
      for (const LettersPlace& place : letters_places(path)) {
        if (must_look_random && !place.is_sure) continue;
        RandomName name{.number = number,
                        .before = split_at_numbers(path.substr(0, place.begin), true),
                        .behind = split_at_numbers(path.substr(place.end)),
                        .letters = place.end - place.begin};
        const std::pair key{use.kind, name.skeleton()};
        if (!must_look_random && !found.contains(key)) continue;
        found[key].push_back(std::move(name));
        return true;
      }
      return false;
    });
  for (const auto& [key, names] : found) families.push_back(random_family(names));
}

}  // namespace

std::vector<PathFamily> families_of(std::span<const PathUse> paths) {
  std::vector<PathFamily> families;
  std::vector<std::size_t> left(paths.size());
  for (std::size_t n = 0; n < paths.size(); ++n) left[n] = n;
  take_random(paths, left, families);

  std::vector<SplitPath> split(paths.size());
  std::map<std::pair<int, std::string>, std::vector<std::size_t>> alike;  // by kind and skeleton
  for (const std::size_t number : left) {
    split[number] = split_at_numbers(paths[number].path);
    alike[{paths[number].kind, split[number].skeleton()}].push_back(number);
  }
  std::map<std::string, PathFamily> by_glob;
  for (const auto& [key, members] : alike) {
    std::vector<const std::vector<std::string>*> names;
    for (const std::size_t number : members) names.push_back(&split[number].numbers);
    const NumberGlobs varying = varying_globs(names);
    const bool is_numbered = std::ranges::any_of(varying, [](const std::string& glob) { return !glob.empty(); });
    for (const std::size_t number : members) {
      NumberGlobs globs = varying;
      std::string why = is_numbered ? fmt::format("the number varies in {} names", members.size()) : "";
      if (paths[number].run != nullptr)
        if (const std::string of_run = RunNumberFinder(split[number], *paths[number].run, globs).find();
            !of_run.empty())
          why += why.empty() ? fmt::format("the number is {}", of_run) : fmt::format(", or is {}", of_run);
      const std::string glob = glob_of(split[number], globs);
      // Two kinds of files whose numbers vary have one glob: it serves the kind with more files, the others are named.
      PathFamily& family = by_glob[fmt::format("{}\n{}", glob, key.first)];
      family.glob = glob;
      family.has_open_end = std::ranges::find(globs, number_glob) != globs.end();
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
