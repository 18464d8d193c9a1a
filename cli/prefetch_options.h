// The options of prefetching, for `iosig run` and `iosig mount`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "iosig/base/result.h"
#include "program.h"
#include "verb.h"

namespace iosig::cli {

struct PrefetchOptions {
  std::optional<std::string> predictor;  ///< empty: the option is given without a value
  std::string report, memory;
};

void add_prefetch_options(const Verb& verb, PrefetchOptions& options);

/// Adds the environment variables for libiosig-preload (runtime/preload/prefetch/settings.cpp); none without
/// --prefetch.
[[nodiscard]] Result<void> add_prefetch_settings(const PrefetchOptions& options, std::vector<Setting>& settings);

}  // namespace iosig::cli
