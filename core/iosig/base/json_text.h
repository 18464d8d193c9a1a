// JSON texts, read and written in one place: each file that had a parser of its own would compile for seconds longer.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace iosig {

/// How many arrays and objects are in each other at most, should `text` be JSON.
[[nodiscard]] int json_depth(std::string_view text);

/// The document, or one that is_discarded() where `text` is not one document, or deeper than `max_depth`: what handles
/// a value level by level needs stack for each.
[[nodiscard]] nlohmann::ordered_json parse_json(std::string_view text, int max_depth);

/// On one line. In all three, bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string json_line(const nlohmann::ordered_json& document);
/// On one line, and in ASCII alone.
[[nodiscard]] std::string json_ascii_line(const nlohmann::ordered_json& document);
/// Indented by two blanks, for people and for files.
[[nodiscard]] std::string json_page(const nlohmann::ordered_json& document);

}  // namespace iosig
