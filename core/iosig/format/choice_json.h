// Writes a choice as the JSON document "iosig.choice/2" (docs/formats/choice.md).
#pragma once

#include <nlohmann/json.hpp>

#include "iosig/model/choice.h"

namespace iosig {

/// Returns the document without its "schema" member. Numbers are finite; `total_s` is null if no totalsize is declared.
[[nodiscard]] nlohmann::ordered_json choice_json(const Choice& choice);

}  // namespace iosig
