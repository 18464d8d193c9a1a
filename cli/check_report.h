// Output formats of `iosig check`: text in GCC's style, JSON, and SARIF for code scanning.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "iosig/check/source_text.h"

namespace iosig::cli {

/// "file:line:column: error: message", the source line with a caret below, the correction, then each note in the same
/// form. Columns are screen columns, with a tab stop every 8. No newline at the end.
[[nodiscard]] std::string finding_text(const SourceFinding& finding);

/// One element of `findings` in `iosig.check/1`.
[[nodiscard]] nlohmann::ordered_json finding_json(const SourceFinding& finding);

/// A SARIF 2.1.0 document with one run. Columns count characters.
[[nodiscard]] nlohmann::ordered_json sarif(std::span<const SourceFinding> findings);

}  // namespace iosig::cli
