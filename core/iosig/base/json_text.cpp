#include "iosig/base/json_text.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

namespace iosig {

using nlohmann::ordered_json;

int json_depth(std::string_view text) {
  int depth = 0, most = 0;
  bool is_in_string = false;
  for (std::size_t n = 0; n < text.size(); ++n) {
    const char c = text[n];
    if (is_in_string && c == '\\')
      ++n;
    else if (c == '"')
      is_in_string = !is_in_string;
    else if (!is_in_string && (c == '[' || c == '{'))
      most = std::max(most, ++depth);
    else if (!is_in_string && (c == ']' || c == '}'))
      --depth;
  }
  return most;
}

ordered_json parse_json(std::string_view text, int max_depth) {
  // Not with a parser callback: it rescans all values parsed so far whenever an object ends.
  if (json_depth(text) > max_depth) return ordered_json(ordered_json::value_t::discarded);
  return ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
}

namespace {
std::string text_of(const ordered_json& document, int indent, bool ascii) {
  return document.dump(indent, ' ', ascii, ordered_json::error_handler_t::replace);
}
}  // namespace

std::string json_line(const ordered_json& document) { return text_of(document, -1, false); }
std::string json_ascii_line(const ordered_json& document) { return text_of(document, -1, true); }
std::string json_page(const ordered_json& document) { return text_of(document, 2, false); }

}  // namespace iosig
