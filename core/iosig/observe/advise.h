// Advises how a traced run could spend less time in its I/O: what costs time without need, and what would help.
//
// Each piece of advice has the time of the accesses behind it, which are in the trace, and a predicted gain: their time
// times the share that the cost model saves, so it is never more than that time. Calls that could not change anything
// are saved whole. Nothing is advised that makes data less durable than the program asked for.
//
// Source: ours. The cost model is cost/throughput.h; whether another mount point is better is decide's to say, which
// the caller asks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/model/choice.h"
#include "iosig/model/storage.h"
#include "iosig/observe/infer.h"
#include "iosig/observe/stream_costs.h"

namespace iosig::observe {

/// A kind of cost.
enum class Topic : std::uint8_t {
  small_writes,
  small_reads,
  shared_file,     ///< several processes write one file, without collective calls
  random_rereads,  ///< a file is read several times, in random order
  repeated_opens,
  repeated_stats,
  sync_storm,  ///< a sync for every few writes
  idle_syncs,  ///< a sync when nothing has changed
  many_files,  ///< many small files, whose opens take more time than their bytes
  imbalance,   ///< of the ranks
  slow_place,  ///< another mount point would be faster
};
inline constexpr std::string_view topic_names[] = {"small-writes",   "small-reads",    "shared-file", "random-rereads",
                                                   "repeated-opens", "repeated-stats", "sync-storm",  "idle-syncs",
                                                   "many-files",     "imbalance",      "slow-place"};

/// The accesses behind a piece of advice.
struct Behind {
  std::uint64_t count = 0;
  std::string command = {};  ///< for a shell: lists them. Empty: a name has control characters
};

struct Help {
  std::string text = {};
  std::string command = {};  ///< for a shell. Empty: only the program can be changed
  std::string caution = {};  ///< when not to follow it; may be empty
};

struct Gain {
  std::optional<double> seconds = {};  ///< absent: unknown
  /// Of the time of all accesses; of `imbalance`, of the time of the slowest rank.
  double share = 0;
  std::string why = {};       ///< the numbers behind it; or why it is unknown
  bool is_predicted = false;  ///< by the cost model; else counted in the trace
};

struct Advice {
  Topic topic{};
  std::string glob = {};  ///< of the stream, as InferredStream's; empty: of all streams
  std::vector<std::string> paths = {};
  std::string what = {};  ///< a sentence about the accesses
  double time_s = 0;      ///< of the accesses behind it
  double time_share = 0;  ///< of the time of all accesses
  Behind behind = {};
  Help help = {};
  Gain gain = {};
};

/// The storage at a path, as the description has it.
struct Storing {
  const Device* device = nullptr;
  std::uint64_t block_bytes = 0;
};

/// The run and the machine, as the caller knows them.
struct Surroundings {
  std::vector<std::string> traces = {};       ///< as they are named in commands
  std::vector<std::string> command = {};      ///< of the run; empty: not known
  std::optional<std::int64_t> launched = {};  ///< a launcher outside the command made so many ranks
  std::string storage = {};                   ///< file that commands name with --storage; empty: they need not
  /// Nothing: not known, and no_gain says why.
  std::function<std::optional<Storing>(const std::string& path)> storing = {};
  /// The choice for a file with this signature whose home is `path`; nothing: not known.
  std::function<std::optional<Choice>(const std::string& path, const std::string& signature)> choose = {};
  std::string no_gain = {};
};

struct RunAdvice {
  std::vector<Advice> advice;   ///< greatest gain first; of unknown gains, greatest time
  std::size_t left_out = 0;     ///< whose gain is too small
  double io_s = 0, wall_s = 0;  ///< time of all accesses, summed up over the threads; of the run
};

/// Advice with a gain, or if that is unknown a time, of less than `min_gain` (a share), or less than 10 ms, is left
/// out.
[[nodiscard]] RunAdvice advise(const TracedRun& run, const RunCosts& costs, const Surroundings& surroundings,
                               double min_gain);

}  // namespace iosig::observe
