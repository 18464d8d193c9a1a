// Reads rules files for the verbs.
#pragma once

#include <string>

#include "console.h"
#include "iosig/base/result.h"
#include "iosig/format/rules_toml.h"

namespace iosig::cli {

/// Reads the rules file that the user named. Notes each rule that an earlier one hides completely.
[[nodiscard]] Result<Rules> read_rules(const std::string& file, const Console& console);

}  // namespace iosig::cli
