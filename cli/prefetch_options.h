// The options of prefetching, for `iosig run` and `iosig mount`.
#pragma once

#include <string>
#include <vector>

#include "iosig/base/result.h"
#include "program.h"
#include "verb.h"

namespace iosig::cli {

struct PrefetchOptions {
  std::string predictor;  ///< empty: --prefetch is not given
  std::string report, memory;
};

void add_prefetch_options(const Verb& verb, PrefetchOptions& options);

/// Checks the options and makes what they name absolute and plain: `memory` becomes a number of bytes.
[[nodiscard]] Result<PrefetchOptions> checked(const PrefetchOptions& options);

/// Adds the environment variables for libiosig-preload (runtime/preload/prefetch/settings.cpp); none without
/// --prefetch.
[[nodiscard]] Result<void> add_prefetch_settings(const PrefetchOptions& options, std::vector<Setting>& settings);

}  // namespace iosig::cli
