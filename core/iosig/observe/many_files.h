// Finds a directory in which a run opens many small files: each open takes about as long as many accesses, so the names
// cost more time than the bytes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "iosig/observe/stream_costs.h"
#include "iosig/observe/stream_facts.h"

namespace iosig::observe {

struct ManyFiles {
  std::string directory = {};           ///< the deepest one that has nearly all of the small files
  std::vector<std::string> paths = {};  ///< below it, ascending
  std::int64_t bytes = 0;               ///< sizes of these files
  Spent opens = {};                     ///< of these files, the first by each process: repeated ones are another matter
  Spent transfers = {};                 ///< what reached the file system
};

/// Takes the files that the run writes, or those that it only reads. A file is small if it ends before `small_bytes`.
/// Nothing: there are fewer than 256 of them in one directory.
/// Both lists are by path, ascending, as FactGatherer and CostGatherer give them.
[[nodiscard]] std::optional<ManyFiles> find_many_files(std::span<const StreamFacts> facts,
                                                       std::span<const StreamCosts> costs, bool written);

}  // namespace iosig::observe
