// Finds and measures this machine's storage: what `iosig storage probe` writes down.
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
      directories;                ///< taken before the usual ones on their file systems (those in the user's file)
  std::vector<std::string> only;  ///< measure just these directories; empty: all that discover() finds
};

struct Probe {
  Storage storage;  ///< each value of a probe with its origin and, if measured, its spread
  std::vector<Skipped> skipped;
  std::vector<std::string> notes;  ///< what the user should know about how something was measured
};

/// discover(), then measure() on each file system in turn; `progress` is told "PATH: what".
///
/// Measured values have three significant digits: more would be noise. A mount point that cannot be measured, or is
/// gone before it is, is skipped with the reason. Fails as discover() does, and with `infeasible` when one of `only` is
/// no destination.
[[nodiscard]] Result<Probe> probe_storage(const ProbeOptions& options, const MeasureProgress& progress);

}  // namespace iosig
