// A pattern <-> the JSON document "iosig.pattern/1" (docs/formats/pattern.md).
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "iosig/model/pattern.h"

namespace iosig {

inline constexpr std::string_view pattern_schema = "iosig.pattern/1";

/// Without its "schema" member. `bytes` is the size of the binary form.
[[nodiscard]] nlohmann::ordered_json pattern_json(const Pattern& pattern);

/// The pattern of a whole document. Fails with `bad_input`, "source: /place/in/it: what was expected". A member that it
/// does not know is skipped; another schema, and counts that are not those of the description, are refused.
[[nodiscard]] Result<Pattern> pattern_from_json(std::string_view text, std::string_view source);

}  // namespace iosig
