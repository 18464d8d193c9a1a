// Finds and measures this machine's storage, for `iosig storage probe`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/storage.h"
#include "iosig/storage/activity.h"
#include "iosig/storage/discover.h"
#include "iosig/storage/measure.h"

namespace iosig {

struct ProbeOptions {
  MeasureLimits limits;
  std::vector<std::string>
      directories;  ///< take precedence over the usual ones on their file systems (those in the user's file)
  std::vector<std::string> only;  ///< measure only these directories; empty: all that discover() finds
  /// Returns why a directory must not be measured (an administrator forbids it), or "". Not set: all may be.
  std::function<std::string(const std::string& path)> refusal;
  /// Called with a first look at what other programs do, before anything is measured; a failure ends the probe. Not
  /// set: the look, which takes half a second, is left out.
  std::function<Result<void>(const std::vector<SeenActivity>&)> first_look;
};

struct Probe {
  Storage storage;                     ///< each probed value has its origin and, if measured, its confidence interval
  std::vector<SeenActivity> activity;  ///< of other programs, while each device was measured
  std::vector<Skipped> skipped;
  std::vector<std::string> notes;  ///< for the user, on how something was measured
};

/// Calls discover(), then measure() on each file system in turn; calls `progress` with "PATH: what".
///
/// Watches other programs in pauses of the measurement and records the share of time that they use (`busy_share`).
/// Measured values have three significant digits; more would be noise. A mount point that cannot be measured, or
/// disappears before, is skipped with the reason. Fails as discover() does, and with `infeasible` if one of `only` is
/// not a destination.
[[nodiscard]] Result<Probe> probe_storage(const ProbeOptions& options, const MeasureProgress& progress);

}  // namespace iosig
