// How `iosig check` shows what it found: as GCC does, as JSON, and as SARIF for code scanning.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "iosig/check/source_text.h"

namespace iosig::cli {

/// "file:line:column: error: message", the line with a caret below, the correction, and notes alike. Columns are as on
/// the screen, where tabs reach to the next multiple of 8. Ends without a line end.
[[nodiscard]] std::string finding_text(const SourceFinding& finding);

/// Members of `iosig.check/1`'s findings.
[[nodiscard]] nlohmann::ordered_json finding_json(const SourceFinding& finding);

/// One run, SARIF 2.1.0. Columns count characters.
[[nodiscard]] nlohmann::ordered_json sarif(std::span<const SourceFinding> findings);

}  // namespace iosig::cli
