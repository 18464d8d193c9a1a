// Signatures that everybody needs, known by name wherever a signature is written, without a sigdef.
//
// The first seven are the streams of data management systems in the IOSIG paper, section 8; docs/formats/presets.md
// gives the reason of each, and says what is ours. A definition of the user's by the same name wins.
#pragma once

#include <span>
#include <string_view>

namespace iosig {

struct Preset {
  std::string_view name;
  std::string_view signature;  ///< canonical text, free of other names
  std::string_view meaning;
};

/// In the order of the page.
[[nodiscard]] std::span<const Preset> presets();

/// nullptr: there is none of this name.
[[nodiscard]] const Preset* find_preset(std::string_view name);

}  // namespace iosig
