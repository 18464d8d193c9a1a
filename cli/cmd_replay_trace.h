// Replays of traces, for `iosig replay`.
#pragma once

#include <cstdint>
#include <string>

#include "console.h"
#include "verb.h"

namespace iosig::cli {

struct TraceReplayArguments {
  std::string directory, onto, think, compute, files, prefetch;
  std::uint32_t processes = 0;
  bool no_think = false, prepare_only = false, keep = false, drop_caches = false, all = false;
  bool verify = false, dry_run = false;

  /// Whether an option is set that only traces have.
  [[nodiscard]] bool has_options() const {
    return !onto.empty() || !think.empty() || !compute.empty() || !files.empty() || !prefetch.empty() || no_think ||
           prepare_only || keep || drop_caches || all;
  }
};

/// Adds the options that only traces have.
void add_trace_replay_options(Verb verb, TraceReplayArguments& options);
/// Returns the exit status.
int run_trace_replay(const TraceReplayArguments& options, Console& console);

}  // namespace iosig::cli
