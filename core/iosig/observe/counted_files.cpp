#include "iosig/observe/counted_files.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace iosig::observe {
namespace {

using trace::FileCounters;
using trace::WayCounters;

constexpr double mostly = 0.6;  ///< as infer.cpp: from this share on accesses are sequential

/// How many accesses have another one of their process before them: one of a process has none. Of a sum over all
/// processes, it is not known how many made any; nothing, if both extremes do not lead to the same order.
std::optional<std::uint64_t> followed_of(const WayCounters& way, std::uint64_t processes) {
  const std::uint64_t most = way.calls - 1;
  const std::uint64_t least =
      std::max(way.calls - std::min(way.calls, processes), std::min(way.consecutive + way.forward, most));
  const auto share_of = [&](std::uint64_t followed) {
    return followed == 0 ? 0 : static_cast<double>(way.consecutive) / static_cast<double>(followed);
  };
  if (least == most || share_of(most) >= mostly) return most;
  if (share_of(least) <= 1 - mostly) return least;
  return std::nullopt;
}

std::size_t range_of(std::uint64_t size) {
  return static_cast<std::size_t>(std::ranges::lower_bound(trace::size_range_ends, size) -
                                  trace::size_range_ends.begin());
}

/// Adds the frequent sizes, and for the other accesses of each range one size: their mean, where they are of one range;
/// else the middle of the range.
void add_sizes(const FileCounters& file, SizeCounts& sizes) {
  std::array<std::uint64_t, trace::size_range_ends.size() + 1> others{};
  for (std::size_t range = 0; range < others.size(); ++range)
    others.at(range) = file.reads.ranges.at(range) + file.writes.ranges.at(range);
  std::uint64_t other_bytes = file.reads.bytes + file.writes.bytes;
  for (const auto& [size, count] : file.sizes) {
    // Darshan's tables of frequent sizes are small: with many sizes, some counts are those of later occurrences alone.
    std::uint64_t& of_range = others.at(range_of(size));
    const std::uint64_t times = std::min(count, of_range);
    if (times == 0) continue;
    sizes.add(size, times);
    of_range -= times;
    other_bytes -= std::min(other_bytes, size > UINT64_MAX / times ? UINT64_MAX : size * times);
  }
  const auto is_used = [](std::uint64_t count) { return count > 0; };
  const bool is_one_range = std::ranges::count_if(others, is_used) == 1;
  for (std::size_t range = 0; range < others.size(); ++range) {
    const std::uint64_t count = others.at(range);
    if (count == 0) continue;
    const std::uint64_t from = range == 0 ? 1 : trace::size_range_ends.at(range - 1) + 1;
    const std::uint64_t to = range < trace::size_range_ends.size() ? trace::size_range_ends.at(range) : 4 * from;
    const auto middle = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(from) * static_cast<double>(to)));
    sizes.add(is_one_range ? std::clamp(other_bytes / count, from, to) : middle, count);
  }
}

void add_file(const FileCounters& file, Transfers& all) {
  all.is_counted = true;
  all.reads += file.reads.calls, all.writes += file.writes.calls;
  all.read_bytes += file.reads.bytes, all.written_bytes += file.writes.bytes;
  all.end = std::max(all.end, static_cast<std::int64_t>(file.end));
  if (file.has_sizes)
    add_sizes(file, all.sizes);
  else if (file.calls() > 0)
    all.sizes.add((file.reads.bytes + file.writes.bytes) / file.calls(), file.calls());
  all.has_unknown_sizes = all.has_unknown_sizes || !file.has_sizes;
  all.has_unknown_order = all.has_unknown_order || !file.has_order;
  for (const WayCounters* const way : {&file.reads, &file.writes}) {
    if (!file.has_order || way->calls == 0) continue;
    const std::optional<std::uint64_t> followed = followed_of(*way, file.processes);
    if (!followed) {
      all.has_unknown_order = true;
      continue;
    }
    const std::uint64_t contiguous = std::min(way->consecutive, *followed);
    all.followed += *followed;
    all.sequences += way->calls - *followed;
    all.contiguous += contiguous;
    all.forward += std::min(way->forward, *followed - contiguous);
  }
  if (file.alignment > 0) {
    all.aligned += file.calls() - file.unaligned;
    all.counted_alignment = file.alignment;
  }
  if (!file.rank) {
    all.shared_by = std::max(all.shared_by, std::min(file.processes, file.calls()));
    return;
  }
  if (file.reads.calls > 0) all.readers.insert(static_cast<std::uint64_t>(*file.rank));
  if (file.writes.calls > 0) all.writers.insert(static_cast<std::uint64_t>(*file.rank));
}

}  // namespace

void add_counters(std::span<const FileCounters> counters, std::vector<StreamFacts>& facts) {
  if (counters.empty()) return;
  std::unordered_map<std::string_view, std::size_t> known;
  // Its strings are those of `counters`, or of `facts`, which must not move meanwhile.
  facts.reserve(facts.size() + counters.size());
  for (std::size_t number = 0; number < facts.size(); ++number) known.emplace(facts[number].path, number);
  for (const FileCounters& file : counters) {
    if (file.calls() == 0) continue;
    const auto [at, is_new] = known.try_emplace(file.path, facts.size());
    if (is_new) facts.emplace_back().path = file.path;
    StreamFacts& stream = facts[at->second];
    auto& layer = stream.layers.at(static_cast<std::size_t>(file.layer));
    if (layer != nullptr && !layer->is_counted) continue;
    if (layer == nullptr) layer = std::make_unique<Transfers>();
    add_file(file, *layer);
    stream.syncs += file.syncs;
    if (file.mapped > 0) stream.mapped_bytes += 1;  // how many is not known
  }
  std::ranges::sort(facts, {}, &StreamFacts::path);
}

}  // namespace iosig::observe
