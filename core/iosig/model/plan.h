// A plan: where each region of files lies in each window over servers of unlike speed, what moves between, and why.
//
// Plain data and its invariants. The file format is docs/formats/plan.md. decide/plan makes plans.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/servers.h"
#include "iosig/model/striping.h"

namespace iosig {

enum class PlanAlgorithm { paper, ours };

struct PlannedFile {
  std::string path;
  std::uint64_t bytes = 0;  ///< up to the end of its last access

  bool operator==(const PlannedFile&) const = default;
};

struct PlannedRegion {
  std::uint32_t file = 0;    ///< in Plan::files
  std::uint32_t number = 0;  ///< in its file, from 0
  std::uint64_t offset_bytes = 0, length_bytes = 0;

  bool operator==(const PlannedRegion&) const = default;
};

/// One region in one window.
struct RegionPlacement {
  Stripes stripe_bytes;            ///< one for each class
  std::uint64_t requests = 0;      ///< in this window
  double seconds = 0, home_s = 0;  ///< predicted for them: as placed, and on the home class alone

  bool operator==(const RegionPlacement&) const = default;
};

struct PlannedMove {
  std::uint32_t region = 0;  ///< in Plan::regions
  Stripes from, to;

  bool operator==(const PlannedMove&) const = default;
};

struct PlannedWindow {
  double start_s = 0, end_s = 0;
  double seconds = 0,
         home_s = 0;  ///< predicted for all its requests: as placed, and with all regions on the home class
  double move_s = 0;  ///< predicted for its moves
  std::vector<RegionPlacement> placements;  ///< one for each of Plan::regions
  std::vector<PlannedMove> moves;           ///< before the window, in this order

  bool operator==(const PlannedWindow&) const = default;
};

struct Plan {
  PlanAlgorithm algorithm = PlanAlgorithm::ours;
  std::string application;                             ///< for the region map; may be empty
  Servers servers;                                     ///< `processes` and `processes_per_node` are those of the run
  std::vector<std::vector<std::string>> server_names;  ///< of each class, in the order of their numbers
  std::uint32_t home = 0;                              ///< the class that regions live on by default
  double window_s = 0;                                 ///< 0: one window of unknown length
  std::vector<PlannedFile> files;                      ///< each path once
  std::vector<PlannedRegion> regions;                  ///< by file, then by number; at least one
  std::vector<PlannedWindow> windows;                  ///< at least one

  bool operator==(const Plan&) const = default;
};

/// Returns nothing, or `bad_input` with the place: a number that is out of range, lists of unequal length, a path
/// of two files, no region, regions that overlap or are not in order, stripes without any server, windows that overlap,
/// a time that is no number.
[[nodiscard]] Result<void> checked(const Plan& plan);

/// Requests of a window.
[[nodiscard]] std::uint64_t requests_of(const PlannedWindow& window);

}  // namespace iosig
