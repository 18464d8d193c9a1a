// Looks for a part of a message.
#pragma once

#include <string_view>

namespace iosig::testing {

inline bool has(std::string_view message, std::string_view part) {
  return message.find(part) != std::string_view::npos;
}

}  // namespace iosig::testing
