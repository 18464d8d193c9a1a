// Messages for usage errors: the invalid word, the expected one, and the command that shows help.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "iosig/base/result.h"

namespace iosig::cli {

/// The verbs listed in the help of `app`.
[[nodiscard]] std::vector<const CLI::App*> shown_verbs(const CLI::App& app);

/// The usage error for a command line that `root` could not parse. For a request for help the message is empty, unless
/// the verb is unknown.
[[nodiscard]] Error wrong_call(const CLI::App& root, const CLI::ParseError& error);

/// Refuses empty option values: `--storage "$UNSET"` would act as if the option were absent. Options with an optional
/// value (--plot) are not checked.
[[nodiscard]] Result<void> check_values(const CLI::App& root);

}  // namespace iosig::cli
