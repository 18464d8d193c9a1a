#include "iosig/replay/write_map_text.h"

#include <array>
#include <charconv>
#include <cmath>

#include "iosig/base/text.h"

namespace iosig {
namespace {

constexpr std::array number_names = {"rank", "offset", "length"};
constexpr std::string_view list_line = "rank offset length, integers from 0 to 2^63 - 1";
constexpr std::string_view plfs_line = "ID w OFFSET LENGTH BEGIN END ..., as plfs_map prints them";
/// The words that are read; the last offset and the offset in the dropping follow.
constexpr std::size_t plfs_words = 6;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string shown(std::string_view word) { return printable(cut_to(word, 40)); }

/// Parses `word` as a number of bytes or a rank. Returns the error, or "".
std::string fault_of(std::string_view word, const char* name, std::int64_t& number) {
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (failure == std::errc::result_out_of_range) return fmt::format("{} '{}' does not fit 64 bits", name, shown(word));
  if (failure != std::errc{} || end != word.data() + word.size())
    return fmt::format("{} '{}' is not an integer", name, shown(word));
  if (number < 0) return fmt::format("{} {} is negative", name, number);
  return {};
}

bool parse_time(std::string_view word, double& seconds) {
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), seconds);
  return failure == std::errc{} && end == word.data() + word.size() && std::isfinite(seconds);
}

}  // namespace

Result<bool> WriteMapLines::read(std::string_view line, MappedWrite& out) {
  ++line_;
  const std::vector<std::string_view> words = words_of(line);
  if (words.empty() || words[0].starts_with('#')) return false;
  const auto refuse = [&](const std::string& what) {
    return fail(ErrorKind::bad_input, "{}:{}: {}", source_, line_, what);
  };
  if (form_ == Form::unknown) form_ = words.size() > 1 && words[1] == "w" ? Form::plfs : Form::list;
  const bool has_times = form_ == Form::plfs;
  if (has_times ? words.size() < plfs_words || words[1] != "w" : words.size() != number_names.size())
    return refuse(
        fmt::format("'{}' is not a write; expected {}{}", shown(trimmed(line)), has_times ? plfs_line : list_line,
                    line_ == 1 && !has_times && !is_digit(words[0][0]) ? "; is this a header? put # before it" : ""));
  MappedWrite write;
  const std::array<std::int64_t*, 3> numbers = {&write.rank, &write.offset, &write.length};
  for (std::size_t n = 0; n < numbers.size(); ++n)
    if (const std::string fault = fault_of(words[n == 0 || !has_times ? n : n + 1], number_names[n], *numbers[n]);
        !fault.empty())
      return refuse(fmt::format("{}; expected {}", fault, has_times ? plfs_line : list_line));
  if (write.offset > INT64_MAX - write.length)
    return refuse(fmt::format("{} bytes at offset {} end after byte 2^63 - 1", write.length, write.offset));
  if (has_times && !parse_time(words[4], write.begin_s))
    return refuse(fmt::format("'{}' is not a time in seconds; expected {}", shown(words[4]), plfs_line));
  out = write;
  return true;
}

}  // namespace iosig
