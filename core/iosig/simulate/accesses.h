// Runs given accesses, such as those of a trace or of bench/workloads, on regions that are placed in a given way.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/simulate/engine.h"

namespace iosig::simulate {

struct Access {
  std::uint32_t process = 0;
  std::uint64_t offset = 0, bytes = 0;  ///< in the file; 0 bytes: passed over
  bool is_write = false;
};

/// A file in regions of equal length; the last one has what is left.
struct PlacedFile {
  std::uint64_t region_bytes = 64ULL << 20;
  std::vector<Layout> layouts;
  std::vector<std::uint32_t> layout_of;  ///< of each region, its number in `layouts`
};

/// Each process sends its accesses in their order, one at a time; an access of several regions is a request for each,
/// one after the other. A node has `processes_per_node` processes, in the order of their numbers. `hardware`: its
/// servers, its latency, and the link of its node 0.
///
/// Fails with `usage` as the engine does; for a region of 0 bytes, no access, or 0 processes on a node; and for an
/// access past the last region, naming it.
[[nodiscard]] Result<Totals> run(const System& hardware, std::span<const Access> accesses, const PlacedFile& file,
                                 std::uint32_t processes_per_node = 1);

}  // namespace iosig::simulate
