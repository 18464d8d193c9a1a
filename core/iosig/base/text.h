// Small text helpers without domain knowledge.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace iosig {

/// `text` without white space at both ends; refers to `text`'s memory.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// A path without the slashes that shells put behind directories; "/" stays.
[[nodiscard]] std::string_view without_trailing_slashes(std::string_view path);

/// The parts of `text` between each `at`, empty ones too; refer to `text`'s memory. One more than there are `at`s.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char at);
/// The parts of `text` between blanks, tabs and line ends, none of them empty; refer to `text`'s memory.
[[nodiscard]] std::vector<std::string_view> words_of(std::string_view text);

/// All of `text`, decimal digits only, as a number; nothing when it is none or too large.
template <std::unsigned_integral Number = std::uint32_t>
[[nodiscard]] std::optional<Number> parse_count(std::string_view text) {
  Number count = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return count;
}

/// The entry of `known` that a typist most likely meant, or "" when none is near (at most a third of it, but at least
/// one letter, may be wrong). Distance: Damerau-Levenshtein (optimal string alignment), blind to case. Ties go to the
/// earlier entry.
[[nodiscard]] std::string_view nearest_name(std::string_view typed, std::span<const std::string_view> known);

/// "; did you mean 'x'?" for the nearest name, or "".
[[nodiscard]] std::string did_you_mean(std::string_view typed, std::span<const std::string_view> known);

/// `text` with what would break a line, a terminal or a reader of UTF-8 written as \xNN: control characters (C1 too)
/// and bytes that are not UTF-8. For paths in messages.
[[nodiscard]] std::string printable(std::string_view text);

/// Bytes as text for files that we read again: every byte but printable ASCII as %XX, as in a file: URL.
/// percent_decoded(percent_encoded(b)) == b; nothing for text that no percent_encoded wrote.
[[nodiscard]] std::string percent_encoded(std::string_view bytes);
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view text);

/// The first `max_bytes` of `text`, fewer rather than ending within a UTF-8 character: some file systems check.
[[nodiscard]] std::string_view cut_to(std::string_view text, std::size_t max_bytes);

/// Whether `path` is `directory` or below it, by name.
[[nodiscard]] bool is_below(std::string_view path, std::string_view directory);

/// FNV-1a, 64 bits: the same on every machine. Each step is a bijection, so one changed byte always shows; against
/// malice it is no help.
[[nodiscard]] std::uint64_t fnv1a(std::string_view bytes);

}  // namespace iosig
