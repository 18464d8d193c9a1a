#include "iosig/format/pragma_text.h"

#include "iosig/format/signature_text.h"

namespace iosig {
namespace {

/// Returns the position of the name outside of values and before a comment; npos: none.
std::size_t position_of_parameter(std::string_view text, std::string_view name) {
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; };
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("//") || text.substr(i).starts_with("/*")) break;
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    const std::size_t end = i + name.size();
    if (depth == 0 && text.substr(i).starts_with(name) && (i == 0 || !is_part(text[i - 1])) &&
        (end == text.size() || !is_part(text[end])))
      return i;
  }
  return std::string_view::npos;
}

}  // namespace

std::optional<LostParameter> find_lost_parameter(std::string_view spelled, std::string_view read) {
  for (const ParameterInfo& parameter : signature_parameters()) {
    const std::size_t at = position_of_parameter(spelled, parameter.name);
    if (at != std::string_view::npos && position_of_parameter(read, parameter.name) == std::string_view::npos)
      return LostParameter{parameter.name, at};
  }
  return std::nullopt;
}

}  // namespace iosig
