// Verbs that other programs provide, as in git: `iosig x` runs `iosig-x`, `iosig x y` of the Python package
// `iosig-x-y`. It provides `repro`, `report`, `plot`, `query sql`, and `export --format parquet`
// (`iosig-export-parquet`) this way.
#pragma once

#include <string>
#include <string_view>

namespace iosig::cli {

/// Help heading for the verbs of the Python package.
inline constexpr const char* python_group = "Commands of the Python package";

/// The error message for a verb whose program is not installed.
std::string python_package_missing(std::string_view verb);

/// Path of `iosig-VERB` beside this program or in an absolute directory of $PATH; "" if there is none, or if `verb` has
/// other characters than lower-case letters, digits and hyphens.
std::string external_verb(std::string_view verb);

/// Executes that program in place of this one, with the arguments after `argv[1]`, the verb's last word; $IOSIG_COMMAND
/// names this `iosig`. Returns only if there is none or exec fails.
void run_external_verb(std::string_view verb, char** argv);

}  // namespace iosig::cli
