// Verbs that other programs provide, as git has them: `iosig x` runs `iosig-x`. The Python package brings `repro` and
// `plot` this way.
#pragma once

#include <array>
#include <string_view>

namespace iosig::cli {

/// What the Python package provides: offered to who mistypes a verb, and explained where the package is not installed.
inline constexpr std::array<std::string_view, 2> python_verbs{"plot", "repro"};

/// Becomes `iosig-VERB` with the arguments after the verb (`argv[1]`), if there is such a program beside this one or in
/// a folder of $PATH (absolute ones only); it learns by $IOSIG_COMMAND which `iosig` started it. Returns only if there
/// is none, or `verb` is no name of a verb (lower-case letters, digits and hyphens).
void run_external_verb(std::string_view verb, char** argv);

}  // namespace iosig::cli
