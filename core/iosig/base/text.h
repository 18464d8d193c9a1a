// Small text helpers without domain knowledge.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace iosig {

/// Returns `text` without leading and trailing white space; refers to `text`'s memory.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// Returns the path without trailing slashes, as shells append to directories; "/" remains.
[[nodiscard]] std::string_view without_trailing_slashes(std::string_view path);

/// Splits `text` at each `at`, keeping empty parts; they refer to `text`'s memory.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char at);
/// Splits `text` at blanks, tabs and line ends, without empty parts; they refer to `text`'s memory.
[[nodiscard]] std::vector<std::string_view> words_of(std::string_view text);

/// Parses all of `text` as a decimal number; nothing if it is none or too large.
template <std::unsigned_integral Number = std::uint32_t>
[[nodiscard]] std::optional<Number> parse_count(std::string_view text) {
  Number count = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return count;
}

/// Returns the entry of `known` that the user most likely meant, or "" if none is close (at most a third of its
/// letters, but at least one, may differ). Distance: Damerau-Levenshtein (optimal string alignment), ignoring case. The
/// earlier entry wins ties.
[[nodiscard]] std::string_view nearest_name(std::string_view typed, std::span<const std::string_view> known);

/// Returns "; did you mean 'x'?" for the nearest name, or "".
[[nodiscard]] std::string did_you_mean(std::string_view typed, std::span<const std::string_view> known);

/// Escapes control characters (including C1 and those that change the direction of text) and bytes that are not UTF-8
/// as \xNN. For paths in messages.
[[nodiscard]] std::string printable(std::string_view text);

/// Encodes bytes as text for files that we read again: every byte except printable ASCII becomes %XX, as in a file:
/// URL. percent_decoded(percent_encoded(b)) == b; nothing for text that percent_encoded cannot produce.
[[nodiscard]] std::string percent_encoded(std::string_view bytes);
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view text);

/// Returns the first `max_bytes` of `text`, or fewer to avoid splitting a UTF-8 character, which some file systems
/// reject.
[[nodiscard]] std::string_view cut_to(std::string_view text, std::size_t max_bytes);

/// Returns whether `path` is `directory` or below it, by name only.
[[nodiscard]] bool is_below(std::string_view path, std::string_view directory);

/// Returns which of [begin, end) names the last components of `path`, the one with the longest name if several do ("a"
/// ends "b/a", too); `end` if none does. `name_of`: the name of an element, without a leading slash.
template <std::forward_iterator Each, class NameOf>
[[nodiscard]] Each longest_path_end(Each begin, Each end, std::string_view path, const NameOf& name_of) {
  static_assert(!std::is_same_v<decltype(name_of(*begin)), std::string>,
                "the name would be gone before it is compared");
  Each longest = end;
  std::size_t length = 0;
  for (Each each = begin; each != end; ++each) {
    const std::string_view name = name_of(*each);
    const std::size_t before = path.size() - name.size();  // wraps for a longer name
    if (name.size() <= length || !path.ends_with(name) || (before > 0 && path[before - 1] != '/')) continue;
    longest = each;
    length = name.size();
  }
  return longest;
}

/// FNV-1a, 64 bits: the same on every machine. Each step is a bijection; a single changed byte is always detected. No
/// protection against tampering.
[[nodiscard]] std::uint64_t fnv1a(std::string_view bytes);

}  // namespace iosig
