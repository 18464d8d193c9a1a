#include "iosig/container/read/irregular_index.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "iosig/base/parallel.h"
#include "iosig/container/read/merge_indices.h"
#include "iosig/model/pattern_cursor.h"

namespace iosig {
namespace {

constexpr std::uint64_t min_literals = 4096, max_table_writes = 1u << 27;
constexpr std::uint64_t max_regular_share = 4;  ///< writes for each literal

/// A write or a hole. Its place in the list decides between equal sequence numbers.
struct Write {
  std::int64_t logical = 0, end = 0, physical = 0, sequence = 0, id = 0;
};

/// Stores the writes of a frame to `out`, which has room for all. false: one is impossible.
bool take_writes(const IndexedWrites& frame, std::int64_t id, Write* out) {
  std::array<std::int64_t, max_columns> v{};
  for (PatternCursor cursor(frame.pattern); cursor.next(v);) {
    const std::int64_t logical = v[logical_offset], length = v[write_length], physical = v[physical_offset];
    if (length < 0 || (length > 0 && (logical < 0 || physical < 0 || length > INT64_MAX - std::max(logical, physical))))
      return false;
    *out++ = {logical, length == 0 ? logical : logical + length, physical, v[write_sequence], id};
  }
  return true;
}

/// Returns all writes and holes, or nothing if one is impossible.
std::optional<std::vector<Write>> writes_of(const ContainerContent& content) {
  constexpr std::uint64_t many_writes = 1 << 16;  ///< with fewer, starting threads costs more than it saves
  struct Frame {
    const IndexedWrites* writes;
    std::int64_t id;
    std::size_t at;  ///< of the first one in the result
  };
  std::vector<Write> writes;
  for (const IndexEntry& hole : holes_of(content))
    writes.push_back({hole.logical, hole.logical + hole.length, 0, hole.sequence, hole_id});
  std::vector<Frame> frames;
  std::size_t count = writes.size();
  for (const WriterContent& writer : content.writers)
    for (const IndexedWrites& each : writer.writes) {
      frames.push_back({&each, writer.id, count});
      count += each.count();
    }
  writes.resize(count);
  std::atomic<bool> are_possible = true;
  for_each_in_parallel(frames.size(), count < many_writes ? 1 : 0, [&](std::size_t n) {
    if (!take_writes(*frames[n].writes, frames[n].id, writes.data() + frames[n].at)) are_possible = false;
  });
  if (!are_possible) return {};
  std::erase_if(writes, [](const Write& write) { return write.end == write.logical; });
  return writes;
}

/// Returns the numbers of the writes, sorted by logical offset; equal ones keep their order. A radix sort where the
/// offsets, as in most files, have few different bits.
std::vector<std::uint32_t> sorted_by_offset(const std::vector<Write>& writes) {
  constexpr unsigned digit_bits = 11;
  constexpr std::size_t digits = std::size_t{1} << digit_bits;
  std::vector<std::uint32_t> order(writes.size());
  std::iota(order.begin(), order.end(), 0);
  if (writes.empty()) return order;
  const std::int64_t least = std::ranges::min(writes, {}, &Write::logical).logical;
  std::uint64_t all = 0;
  for (const Write& write : writes) all |= static_cast<std::uint64_t>(write.logical - least);
  const int zeros = all == 0 ? 0 : std::countr_zero(all), bits = static_cast<int>(std::bit_width(all >> zeros));
  if (bits > 32) {
    std::ranges::stable_sort(order, {}, [&](std::uint32_t n) { return writes[n].logical; });
    return order;
  }
  struct Keyed {
    std::uint32_t key, number;
  };
  std::vector<Keyed> keyed(writes.size()), sorted(writes.size());
  for (std::uint32_t n = 0; n < writes.size(); ++n)
    keyed[n] = {static_cast<std::uint32_t>(static_cast<std::uint64_t>(writes[n].logical - least) >> zeros), n};
  for (int shift = 0; shift < bits; shift += digit_bits) {
    std::array<std::uint32_t, digits + 1> begins{};
    for (const Keyed& each : keyed) ++begins[(each.key >> shift) % digits + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    for (const Keyed& each : keyed) sorted[begins[(each.key >> shift) % digits]++] = each;
    keyed.swap(sorted);
  }
  std::ranges::transform(keyed, order.begin(), &Keyed::number);
  return order;
}

/// Sweeps over the file. A heap holds the writes over the current byte, the latest on top, and ended ones below it.
///
/// Example: write 0 of [0, 100), write 1 of [50, 60). At 0 the heap is {0}: [0, 50) is of 0. At 50 it is {1, 0}: [50,
/// 60) is of 1. Then 1 has ended: [60, 100) is of 0.
PieceTable swept(const std::vector<Write>& writes, const std::vector<std::uint32_t>& order) {
  PieceTableBuilder table;
  const auto add = [&](const Write& write, std::int64_t begin, std::int64_t end) {
    if (write.id != hole_id) table.add({begin, end - begin, write.id, write.physical + (begin - write.logical)});
  };
  std::vector<std::uint32_t> over;
  const auto is_older = [&](std::uint32_t one, std::uint32_t other) {
    return std::tuple(writes[one].sequence, one) < std::tuple(writes[other].sequence, other);
  };
  std::int64_t at = 0;
  constexpr std::size_t ahead = 24;  ///< writes that memory fetches meanwhile: they lie anywhere
  for (std::size_t next = 0; next < order.size() || !over.empty();) {
    if (next + ahead < order.size()) __builtin_prefetch(&writes[order[next + ahead]]);
    if (over.empty()) {
      const Write& write = writes[order[next]];
      if (next + 1 == order.size() || writes[order[next + 1]].logical >= write.end) {  // nothing lies over it
        add(write, write.logical, write.end);
        ++next;
        continue;
      }
      at = write.logical;
    }
    for (; next < order.size() && writes[order[next]].logical == at; ++next) {
      over.push_back(order[next]);
      std::ranges::push_heap(over, is_older);
    }
    while (!over.empty() && writes[over.front()].end <= at) {
      std::ranges::pop_heap(over, is_older);
      over.pop_back();
    }
    if (over.empty()) continue;
    const Write& latest = writes[over.front()];
    const std::int64_t end = next < order.size() ? std::min(latest.end, writes[order[next]].logical) : latest.end;
    add(latest, at, end);
    at = end;
  }
  return table.finish();
}

}  // namespace

bool is_irregular(const ContainerContent& content) {
  std::uint64_t count = 0, literals = 0;
  for (const WriterContent& writer : content.writers)
    for (const IndexedWrites& writes : writer.writes) {
      if (!writes.entries.empty() || writes.pattern.count() > max_table_writes - count) return false;
      count += writes.pattern.count();
      for (const Term& term : writes.pattern.terms)
        if (!term.is_nest) literals += term.count;
    }
  return literals >= min_literals && count / max_regular_share <= literals;
}

std::optional<PieceTable> piece_table_of(const ContainerContent& content) {
  auto writes = writes_of(content);
  if (!writes) return {};
  return swept(*writes, sorted_by_offset(*writes));
}

}  // namespace iosig
