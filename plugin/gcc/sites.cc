#include "sites.h"

namespace iosig::gcc {
namespace {

constexpr char marker_text[] = "#iosig ";

}  // namespace

tree build_marker(std::size_t site, location_t at) {
  const std::string text = marker_text + std::to_string(site);
  const tree string = build_string(text.size() + 1, text.c_str());
  TREE_TYPE(string) = build_array_type_nelts(char_type_node, text.size() + 1);
  const tree marker = build5(ASM_EXPR, void_type_node, string, NULL_TREE, NULL_TREE, NULL_TREE, NULL_TREE);
  ASM_VOLATILE_P(marker) = 1;
  TREE_SIDE_EFFECTS(marker) = 1;
  SET_EXPR_LOCATION(marker, at);
  return marker;
}

int marked_site(const char* assembler_text) {
  const std::string_view text(assembler_text);
  if (!text.starts_with(marker_text)) return -1;
  const int site = atoi(assembler_text + sizeof marker_text - 1);
  return static_cast<std::size_t>(site) < sites.size() ? site : -1;
}

bool is_before(location_t a, location_t b) {
  const expanded_location first = expand_location(a);
  const expanded_location second = expand_location(b);
  return first.line != second.line ? first.line < second.line : first.column < second.column;
}

}  // namespace iosig::gcc
