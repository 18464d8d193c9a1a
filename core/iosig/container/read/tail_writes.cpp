#include "iosig/container/read/tail_writes.h"

#include <algorithm>
#include <array>

#include "iosig/model/pattern_builder.h"

namespace iosig {
namespace {

constexpr std::int64_t min_trips = 3;  ///< shorter loops are written as literals
constexpr std::array<std::int8_t, max_columns> physical_follows = {-1, -1, write_length, -1, -1, -1, -1, -1};

}  // namespace

IndexedWrites writes_in_tail(const std::vector<TailRecord>& records, std::int64_t known, std::int64_t data_bytes) {
  IndexedWrites writes;
  PatternBuilder builder(index_columns, physical_follows);
  std::int64_t end = known;
  for (const TailRecord& record : records) {
    const auto total = static_cast<std::int64_t>(record.count);
    const std::int64_t skipped =
        end <= record.physical ? 0 : std::min(total, (end - record.physical - 1) / record.length + 1);
    const std::int64_t there = record.has_sure_count()
                                   ? total
                                   : std::clamp<std::int64_t>((data_bytes - record.physical) / record.length, 0, total);
    if (there <= skipped) continue;
    const std::int64_t logical = record.logical + skipped * record.stride, count = there - skipped;
    const std::int64_t physical = record.physical + skipped * record.length;
    if (builder.count() == 0) {
      writes.opened = record.sequence;
      writes.physical = physical;
    }
    // The first physical offset of a pattern is stored explicitly, so the first write cannot be part of a nest.
    const std::int64_t alone = count <= min_trips ? count : 1;
    for (std::int64_t n = 0; n < alone; ++n)
      builder.add_literal(
          std::array{logical + n * record.stride, record.length, builder.count() == 0 ? physical : 0, record.sequence}
              .data());
    if (count > alone) {
      builder.end_block();
      const Node nodes[] = {{true, 2, 0}, {false, 2, 1}};
      const std::int64_t numbers[] = {
          count - alone, logical + alone * record.stride, record.stride, record.length, 0, 0, 0, record.sequence, 0};
      builder.add_nest(nodes, numbers, static_cast<std::uint64_t>(count - alone));
    }
    const std::int64_t last = logical + (count - 1) * record.stride;
    writes.logical_end = std::max({writes.logical_end, logical + record.length, last + record.length});
    writes.opened = std::min(writes.opened, record.sequence);
    writes.closed = std::max(writes.closed, record.sequence);
    end = writes.physical_end = physical + count * record.length;
  }
  writes.pattern = builder.finish();
  return writes;
}

}  // namespace iosig
