// Plans where the regions of files lie over servers of unlike speed, window by window.
//
// Pure: touches no disk; equal inputs give equal plans, with any number of threads. Source: docs/references.md#h2dp.
// paper: Algorithm 1 (with its constraint imposed) and the benefit ranking for each window by itself, Algorithm 2 for
// the moves. ours: decide/selection and decide/migration over all windows; where the order of the requests is known,
// decide/trial has the last word.
#pragma once

#include <optional>
#include <string>

#include "iosig/base/result.h"
#include "iosig/cost/striping.h"
#include "iosig/decide/migration.h"
#include "iosig/decide/plan_input.h"
#include "iosig/model/described_servers.h"
#include "iosig/model/plan.h"

namespace iosig {

struct PlanOptions {
  PlanAlgorithm algorithm = PlanAlgorithm::ours;
  /// Of ours. None: layouts for both, for requests that meet, and even ones are tried with PlanInput::moments; without
  /// these: spread.
  std::optional<Contention> contention = std::nullopt;
  MigrationOptions migration = {};  ///< of ours
  std::string application = {};
  unsigned threads = 0;  ///< 0: as many as processors
};

/// How the layout of a plan was chosen among several (decide/trial).
struct PlanTrial {
  enum class Chosen { spread, together, meeting, even } chosen = Chosen::spread;
  std::size_t layouts = 0;           ///< that were tried
  double seconds = 0, spread_s = 0;  ///< simulated for all requests and moves: as chosen, and as for `spread`
};

struct TriedPlan {
  Plan plan;
  std::optional<PlanTrial> trial;  ///< none: nothing was to choose from
};

/// Fails with `infeasible` if not even the home class has room for all regions, and with `usage` if the paper's
/// algorithm has not exactly two classes of servers, the slow one first.
[[nodiscard]] Result<TriedPlan> make_plan(const PlanInput& input, const DescribedServers& servers,
                                          const PlanOptions& options);

}  // namespace iosig
