// The options of verbs that decide: --policy and --min-gain.
#pragma once

#include <string>

#include "iosig/base/result.h"
#include "iosig/enact/circumstances.h"
#include "iosig/model/choice.h"
#include "verb.h"

namespace iosig::cli {

struct PolicyOptions {
  std::string policy, min_gain;  ///< empty: not given
};

/// Adds the options. `options` must outlive the parsing.
void add_policy_options(Verb verb, PolicyOptions& options);

/// Returns what the options ask for. Fails with `usage` for a share outside 0 to 1.
[[nodiscard]] Result<Asked> asked_by(const PolicyOptions& options, Residence residence);

/// Returns the place of `path`; of a file in it, if it is a directory.
[[nodiscard]] Result<Place> home_at(const std::string& path);

/// Returns a line for each mount point that would win over home if the signature were another one, each behind
/// `separator`; "" if none would.
[[nodiscard]] std::string break_even_text(const Choice& choice, std::string_view separator = "\n");

}  // namespace iosig::cli
