// Where the verbs get their rules from.
#pragma once

#include <string>

#include "console.h"
#include "iosig/base/result.h"
#include "iosig/format/rules_toml.h"

namespace iosig::cli {

/// The rules file that the user named; a note for each rule that never counts, since an earlier one matches the same.
[[nodiscard]] Result<Rules> read_rules(const std::string& file, const Console& console);

}  // namespace iosig::cli
