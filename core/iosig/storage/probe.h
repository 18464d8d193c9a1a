// Finds and measures this machine's storage, for `iosig storage probe`.
#pragma once

#include <string>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/storage.h"
#include "iosig/storage/discover.h"
#include "iosig/storage/measure.h"

namespace iosig {

struct ProbeOptions {
  MeasureLimits limits;
  std::vector<std::string>
      directories;  ///< take precedence over the usual ones on their file systems (those in the user's file)
  std::vector<std::string> only;  ///< measure only these directories; empty: all that discover() finds
};

struct Probe {
  Storage storage;  ///< each probed value has its origin and, if measured, its spread
  std::vector<Skipped> skipped;
  std::vector<std::string> notes;  ///< for the user, on how something was measured
};

/// Calls discover(), then measure() on each file system in turn; calls `progress` with "PATH: what".
///
/// Measured values have three significant digits; more would be noise. A mount point that cannot be measured, or
/// disappears before, is skipped with the reason. Fails as discover() does, and with `infeasible` if one of `only` is
/// not a destination.
[[nodiscard]] Result<Probe> probe_storage(const ProbeOptions& options, const MeasureProgress& progress);

}  // namespace iosig
