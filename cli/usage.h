// Wrong calls in plain sentences: what was not understood, what was expected, and where the help is.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "iosig/base/result.h"

namespace iosig::cli {

/// The verbs that are listed in the help of `app`.
[[nodiscard]] std::vector<const CLI::App*> shown_verbs(const CLI::App& app);

/// Why `root` could not parse the command line. For a request for help there is a reason only if its verb is unknown;
/// otherwise the message is empty.
[[nodiscard]] Error wrong_call(const CLI::App& root, const CLI::ParseError& error);

/// `--storage "$UNSET"` would be as if the option were not there, and the verb would work on something else. Options
/// whose value may be left out (--plot) are not checked.
[[nodiscard]] Result<void> check_values(const CLI::App& root);

}  // namespace iosig::cli
