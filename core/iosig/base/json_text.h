// Reads and writes JSON in one place: a parser in every file would cost seconds of compile time each.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace iosig {

/// Returns the maximum nesting depth of arrays and objects, provided `text` is JSON.
[[nodiscard]] int json_depth(std::string_view text);

/// Parses a document. The result is_discarded() if `text` is not one document or deeper than `max_depth`, since code
/// that recurses over a value needs stack for each level.
[[nodiscard]] nlohmann::ordered_json parse_json(std::string_view text, int max_depth);

/// Returns the document on one line. This and the following functions replace invalid UTF-8 by U+FFFD.
[[nodiscard]] std::string json_line(const nlohmann::ordered_json& document);
/// Returns the document on one line in pure ASCII.
[[nodiscard]] std::string json_ascii_line(const nlohmann::ordered_json& document);
/// Returns the document indented by two spaces, for users and files.
[[nodiscard]] std::string json_page(const nlohmann::ordered_json& document);

}  // namespace iosig
