// Predefined signatures, known by name wherever a signature is written, without a sigdef.
//
// The first seven are the streams of data management systems in the IOSIG paper, section 8; docs/formats/presets.md
// gives the rationale of each and marks ours. A user's definition of the same name takes precedence.
#pragma once

#include <span>
#include <string_view>

namespace iosig {

struct Preset {
  std::string_view name;
  std::string_view signature;  ///< canonical text, without other names
  std::string_view meaning;
};

/// Returns the presets in the order of the documentation.
[[nodiscard]] std::span<const Preset> presets();

/// Returns nullptr if there is no preset of this name.
[[nodiscard]] const Preset* find_preset(std::string_view name);

}  // namespace iosig
