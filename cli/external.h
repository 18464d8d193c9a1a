// Verbs that other programs provide, as git has them: `iosig x` runs `iosig-x`. The Python package brings `repro` and
// `plot` this way.
#pragma once

#include <string>
#include <string_view>

namespace iosig::cli {

/// The heading in the help over what the Python package provides.
inline constexpr const char* python_group = "Commands of the Python package";

/// What to tell who wants such a verb where there is none.
std::string python_package_missing(std::string_view verb);

/// The program `iosig-VERB` beside this one or in a directory of $PATH (absolute ones only); "" if there is none, or
/// `verb` is no name of a verb (lower-case letters, digits and hyphens).
std::string external_verb(std::string_view verb);

/// Becomes that program with the arguments after the verb (`argv[1]`); it learns by $IOSIG_COMMAND which `iosig`
/// started it. Returns only if there is none.
void run_external_verb(std::string_view verb, char** argv);

}  // namespace iosig::cli
