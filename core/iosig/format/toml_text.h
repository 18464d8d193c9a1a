// TOML text -> table, for the formats that people edit. Inside format/ only.
#pragma once

#define TOML_EXCEPTIONS 0
#define TOML_ASSERT(what) static_assert(true)  // they fail on text such as "[\x1d", which it refuses well without them
#define TOML_MAX_NESTED_VALUES 16              // toml++ recurses, perhaps on the small stack of a guest's thread
#include <toml++/toml.h>

#include <string_view>

#include "iosig/base/result.h"

namespace iosig {

/// Fails with `bad_input`: "source:line:column: what is wrong". Text that nests absurdly deep is no TOML of ours.
[[nodiscard]] Result<toml::table> parse_toml(std::string_view text, std::string_view source);

}  // namespace iosig
