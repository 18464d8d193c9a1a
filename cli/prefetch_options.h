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
  std::string model;  ///< a file of `iosig pattern trace --model`; empty: none
};

/// Whether anything is prefetched.
[[nodiscard]] inline bool is_on(const PrefetchOptions& options) {
  return !options.predictor.empty() || !options.model.empty();
}

void add_prefetch_options(const Verb& verb, PrefetchOptions& options);

/// Checks the options and makes what they name absolute and plain: `memory` becomes a number of bytes. A model that
/// cannot be used is noted and left out: programs run without it.
[[nodiscard]] Result<PrefetchOptions> checked(const PrefetchOptions& options, const Console& console);

/// Adds the environment variables for libiosig-preload (runtime/preload/prefetch/settings.cpp); none without
/// --prefetch and --prefetch-model.
[[nodiscard]] Result<void> add_prefetch_settings(const PrefetchOptions& options, std::vector<Setting>& settings,
                                                 const Console& console);

}  // namespace iosig::cli
