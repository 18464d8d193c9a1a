#include "iosig/container/read/irregular_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "iosig/base/parallel.h"
#include "iosig/container/read/merge_indices.h"
#include "iosig/container/read/narrow_writes.h"
#include "iosig/container/read/sweep.h"
#include "iosig/container/read/unset_vector.h"
#include "iosig/model/pattern_cursor.h"

namespace iosig {
namespace {

constexpr std::uint64_t min_literals = 4096, max_table_writes = 1u << 27;
constexpr std::uint64_t max_regular_share = 4;  ///< writes for each literal

/// A write or a hole. Its place in the list decides between equal sequence numbers.
struct Write {
  std::int64_t logical, end, physical, sequence, id;
};

/// Common properties of the logical offsets of some writes.
struct Offsets {
  std::int64_t least = INT64_MAX, greatest = 0;
  std::uint64_t bits = 0;  ///< that are set in one or more
  bool has_empty = false;  ///< a write has no bytes

  void add(const Write& write) {
    least = std::min(least, write.logical);
    greatest = std::max(greatest, write.logical);
    bits |= static_cast<std::uint64_t>(write.logical);
    has_empty |= write.end == write.logical;
  }
  void add(const Offsets& other) {
    least = std::min(least, other.least);
    greatest = std::max(greatest, other.greatest);
    bits |= other.bits;
    has_empty |= other.has_empty;
  }
};

struct Writes {
  UnsetVector<Write> list;
  Offsets offsets;
};

/// Stores the writes of a frame to `out`, which has room for all. Nothing: one is impossible.
std::optional<Offsets> take_writes(const IndexedWrites& frame, std::int64_t id, Write* out) {
  Offsets offsets;
  std::array<std::int64_t, max_columns> v{};
  for (PatternCursor cursor(frame.pattern); cursor.next(v); ++out) {
    const std::int64_t logical = v[logical_offset], length = v[write_length], physical = v[physical_offset];
    if (length < 0 || (length > 0 && (logical < 0 || physical < 0 || length > INT64_MAX - std::max(logical, physical))))
      return {};
    *out = {logical, length == 0 ? logical : logical + length, physical, v[write_sequence], id};
    offsets.add(*out);
  }
  return offsets;
}

constexpr std::uint64_t many_writes = 1 << 16;  ///< with fewer, starting threads costs more than it saves

/// Returns all writes and holes, or nothing if one is impossible.
std::optional<Writes> writes_of(const ContainerContent& content) {
  struct Frame {
    const IndexedWrites* writes;
    std::int64_t id;
    std::size_t at;  ///< of the first one in the result
  };
  Writes writes;
  for (const IndexEntry& hole : holes_of(content)) {
    writes.list.push_back({hole.logical, hole.logical + hole.length, 0, hole.sequence, hole_id});
    writes.offsets.add(writes.list.back());
  }
  std::vector<Frame> frames;
  std::size_t count = writes.list.size();
  for (const WriterContent& writer : content.writers)
    for (const IndexedWrites& each : writer.writes) {
      frames.push_back({&each, writer.id, count});
      count += each.count();
    }
  writes.list.resize(count);
  std::vector<std::optional<Offsets>> found(frames.size());
  for_each_in_parallel(frames.size(), count < many_writes ? 1 : 0, [&](std::size_t n) {
    found[n] = take_writes(*frames[n].writes, frames[n].id, writes.list.data() + frames[n].at);
  });
  for (const auto& offsets : found) {
    if (!offsets) return {};
    writes.offsets.add(*offsets);
  }
  if (writes.offsets.has_empty) std::erase_if(writes.list, [](const Write& each) { return each.end == each.logical; });
  return writes;
}

/// Returns the numbers of the writes, sorted by logical offset; equal ones keep their order. A radix sort where the
/// offsets, as in most files, have few different bits.
UnsetVector<std::uint32_t> sorted_by_offset(const Writes& writes) {
  constexpr unsigned digit_bits = 11;
  constexpr std::size_t digits = std::size_t{1} << digit_bits, part = 1 << 16;
  const UnsetVector<Write>& list = writes.list;
  UnsetVector<std::uint32_t> order(list.size());
  if (list.empty()) return order;
  const std::int64_t least = writes.offsets.least;
  const int zeros = writes.offsets.bits == 0 ? 0 : std::countr_zero(writes.offsets.bits),
            bits =
                static_cast<int>(std::bit_width(static_cast<std::uint64_t>(writes.offsets.greatest - least) >> zeros));
  if (least < 0 || bits > 32) {
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t n) { return list[n].logical; });
    return order;
  }
  struct Keyed {
    std::uint32_t key, number;
  };
  UnsetVector<Keyed> keyed(list.size()), sorted(list.size());
  for_each_in_parallel((list.size() + part - 1) / part, list.size() < many_writes ? 1 : 0, [&](std::size_t each) {
    for (std::size_t n = each * part; n < std::min(list.size(), (each + 1) * part); ++n)
      keyed[n] = {static_cast<std::uint32_t>(static_cast<std::uint64_t>(list[n].logical - least) >> zeros),
                  static_cast<std::uint32_t>(n)};
  });
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

/// The writes in the order of `order`.
struct SortedWrites {
  const UnsetVector<Write>& writes;
  const UnsetVector<std::uint32_t>& order;

  [[nodiscard]] const Write& at(std::uint32_t n) const { return writes[order[n]]; }
  [[nodiscard]] std::size_t size() const { return order.size(); }
  [[nodiscard]] std::int64_t begin_of(std::uint32_t n) const { return at(n).logical; }
  [[nodiscard]] std::int64_t end_of(std::uint32_t n) const { return at(n).end; }
  [[nodiscard]] bool is_hole(std::uint32_t n) const { return at(n).id == hole_id; }
  [[nodiscard]] bool is_older(std::uint32_t one, std::uint32_t other) const {
    return std::tuple(at(one).sequence, order[one]) < std::tuple(at(other).sequence, order[other]);
  }
  [[nodiscard]] Extent extent(std::uint32_t n, std::int64_t from, std::int64_t to) const {
    return {from, to - from, at(n).id, at(n).physical + (from - at(n).logical)};
  }
  void fetch_soon(std::uint32_t n) const {  // the writes lie anywhere in memory
    constexpr std::size_t ahead = 24;
    if (n + ahead < order.size()) __builtin_prefetch(&writes[order[n + ahead]]);
  }
};

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
  if (auto table = table_of_narrow_writes(content)) return table;
  const auto writes = writes_of(content);
  if (!writes) return {};
  const UnsetVector<std::uint32_t> order = sorted_by_offset(*writes);
  PieceTableBuilder table;
  sweep(SortedWrites{writes->list, order}, table);
  return table.finish();
}

}  // namespace iosig
