// Measures the network between the nodes of a job, for `mpirun iosig storage probe --network`.
//
// Needs no MPI library: the processes that a launcher started find each other by a file in a directory that all of them
// see, and talk by TCP. Rank 0 leads. One process of each node takes part; the others only say that they came. Pairs
// are measured one after the other, so they do not disturb each other. Source: docs/references.md#h2dp section 4.1
// ("several pairs of nodes", "thousands of times").
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/storage.h"
#include "iosig/storage/confidence.h"

namespace iosig {

/// The group of processes, as the launcher's variables tell it (trace/part_bytes.h has their names).
struct NetworkGroup {
  std::uint32_t rank = 0, size = 0;  ///< size >= 2
  std::string job;                   ///< tells apart jobs that use one directory at the same time; may be empty
  std::string directory = ".";       ///< all processes see it
};

struct NetworkProbeOptions {
  std::uint32_t repeats = 1000;  ///< round trips, and transfers of 256 KB, for each pair of nodes
  std::uint32_t max_pairs = 8;
  double timeout_s = 60;   ///< for all processes to come, and for any answer
  double measured_s = 10;  ///< of each pair, each of the two measurements ends after this time
  /// Asked by rank 0 every fraction of a second: whether to stop, and leave nothing behind.
  std::function<bool()> is_interrupted = {};
};

struct MeasuredPair {
  std::string from, to;  ///< hosts
  Estimate startup_s;    ///< of a byte and its answer over an open connection
  Estimate s_per_byte;   ///< of long transfers in one direction
};

struct NetworkProbe {
  std::vector<MeasuredPair> pairs;
  Estimate startup_s, s_per_byte;  ///< the mean over the pairs
  std::uint32_t nodes = 0;         ///< 1: the pair is of two processes of one node, and says nothing about a network
};

/// Measures. Returns a result on rank 0, and nothing on the other ranks, which wait until rank 0 is done.
///
/// Start-up: the time of one byte and its answer. Transfer: 256 KB blocks, one after the other, until the last one is
/// acknowledged, less a start-up, but at least half of that time. 20 passes of each, at least min_passes. With n nodes,
/// each sends to the next one. Fails with `system` if the directory does not exist, if a process does not come in time,
/// naming the missing ranks, ends before the others, naming it, or if it is interrupted; and with `usage` if processes
/// disagree on the size of the group. No failure of a peer keeps a process waiting for longer than the timeouts allow.
[[nodiscard]] Result<std::optional<NetworkProbe>> probe_network(
    const NetworkGroup& group, const NetworkProbeOptions& options,
    const std::function<void(std::string_view)>& progress = {});

/// The description of the network that was measured, with its provenance.
[[nodiscard]] Network network_of(const NetworkProbe& probe);

}  // namespace iosig
