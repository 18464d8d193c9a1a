// A pattern <-> the JSON document "iosig.pattern/1" (docs/formats/pattern.md).
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "iosig/model/pattern.h"

namespace iosig {

inline constexpr std::string_view pattern_schema = "iosig.pattern/1";

/// Returns the document without its "schema" member. `bytes` is the size of the binary form.
[[nodiscard]] nlohmann::ordered_json pattern_json(const Pattern& pattern);

/// Reads the pattern of a whole document. Fails with `bad_input`, "source: /place/in/it: what was expected". Skips
/// unknown members; refuses another schema and counts that differ from the description.
[[nodiscard]] Result<Pattern> pattern_from_json(std::string_view text, std::string_view source);

}  // namespace iosig
