#include "iosig/observe/stream_costs.h"

#include <fcntl.h>

#include <algorithm>

#include "iosig/base/text.h"

namespace iosig::observe {
namespace {

using trace::Access;
using trace::Call;
using trace::CallKind;
using trace::CallManner;
using trace::Moves;

/// No storage is behind these names.
bool is_no_storage(std::string_view path) {
  if (!path.starts_with('/') || path.ends_with(" (deleted)")) return true;
  if (is_below(path, "/dev/shm")) return false;
  return is_below(path, "/dev") || is_below(path, "/proc") || is_below(path, "/sys");
}

/// Whether the call changes a file or its attributes, besides those that move bytes, and open.
bool changes_file(CallKind kind) {
  return kind == CallKind::truncate || kind == CallKind::allocate || kind == CallKind::begin_write ||
         kind == CallKind::set_attribute || kind == CallKind::link;
}

/// Whether the call gives or takes names, which changes the directory.
bool changes_names(CallKind kind) {
  switch (kind) {
    case CallKind::unlink:
    case CallKind::rename:
    case CallKind::make_directory:
    case CallKind::remove_directory:
    case CallKind::make_name: return true;
    default: return false;
  }
}

bool writes_unseen(CallKind kind) { return kind == CallKind::begin_write || kind == CallKind::begin_list; }

bool is_collective_transfer(Call call) {
  const CallManner manner = call_manner_of(call);
  return moves_of(call) != Moves::nothing && (manner == CallManner::collective || manner == CallManner::waits_for_all);
}

bool is_over(const Access& access) { return !access.is_in_flight && (access.flags & trace::abandoned) == 0; }

/// Seen's form of a number.
std::uint32_t seen(std::uint32_t number) { return number + 1; }

}  // namespace

void TransferCosts::add(const TransferCosts& other) {
  all.add(other.all), small.add(other.small), below_block.add(other.below_block);
  small_unaligned += other.small_unaligned, below_block_unaligned += other.below_block_unaligned;
}

void StreamCosts::add(const StreamCosts& other) {
  for (std::size_t n = 0; n < layers.size(); ++n) {
    layers[n].reads.add(other.layers[n].reads);
    layers[n].writes.add(other.layers[n].writes);
  }
  opens.add(other.opens), repeated_opens.add(other.repeated_opens);
  stats.add(other.stats), repeated_stats.add(other.repeated_stats);
  syncs.add(other.syncs), idle_syncs.add(other.idle_syncs);
  is_mapped = is_mapped || other.is_mapped;
  independent_mpi_writes += other.independent_mpi_writes, collective_mpi_writes += other.collective_mpi_writes;
}

trace::Layer StreamCosts::lowest_layer() const {
  for (std::size_t n = layers.size(); n-- > 0;)
    if (layers[n].reads.all.calls + layers[n].writes.all.calls > 0) return static_cast<trace::Layer>(n);
  return trace::Layer::posix;
}

std::size_t CostGatherer::HashThread::operator()(const Thread& thread) const {
  return std::hash<const void*>{}(thread.process) ^ static_cast<std::size_t>(thread.tid) * 0x9e3779b97f4a7c15u;
}

std::size_t CostGatherer::number_of(std::string_view path) {
  const std::size_t number = numbers_.of(path) - 1;
  if (number == streams_.size()) {
    streams_.emplace_back().path = path;
    states_.push_back({.is_left_out = is_no_storage(path)});
  }
  return number;
}

CostGatherer::Seen& CostGatherer::seen_by(const trace::Process& process, std::size_t number) {
  return seen_[&process][number];
}

void CostGatherer::add(const Access& access) {
  if (access.call == Call::inherited) return;
  const CallKind kind = call_kind_of(access.call);
  if (writes_unseen(kind)) run_.has_unseen_writes = true;
  if (access.path.empty()) return;
  const std::size_t number = number_of(access.path);
  if (states_[number].is_left_out) return;
  const bool may_change = kind == CallKind::write || changes_file(kind) || changes_names(kind);
  if (!is_over(access)) {
    if (may_change) add_change(number, INT64_MAX);
    return;
  }
  add_time(access);
  if (is_collective_transfer(access.call)) collective_calls_[{access.process, access.tid}] = access.id;
  if (moves_of(access.call) != Moves::nothing) add_transfer(access, streams_[number]);
  if (may_change) add_change(number, access.end_ns);
  if (changes_names(kind)) add_change_of_directory(access);
  switch (kind) {
    case CallKind::open:
      if (layer_of(access.call) != trace::Layer::mpi_io) add_open(access, number);
      return;
    case CallKind::look_up: return add_stat(access, number);
    case CallKind::sync: return add_sync(access, number);
    case CallKind::map: streams_[number].is_mapped = true; return;
    case CallKind::rename: {
      const auto to = access.process->names.find(static_cast<std::uint32_t>(access.length));
      if (to == access.process->names.end()) return;
      const std::size_t target = number_of(to->second);
      add_change(target, access.end_ns);
      ++states_[target].names;
      [[fallthrough]];
    }
    case CallKind::unlink: ++states_[number].names; return;
    default: return;
  }
}

/// The calls of a thread come one after the other or are nested: a call adds what the earlier ones have not covered.
void CostGatherer::add_time(const Access& access) {
  run_.wall_ns = std::max(run_.wall_ns, access.end_ns);
  std::int64_t& covered = covered_until_.try_emplace({access.process, access.tid}, INT64_MIN).first->second;
  if (access.end_ns <= covered) return;
  run_.io_ns += access.end_ns - std::max(access.start_ns, covered);
  covered = access.end_ns;
}

void CostGatherer::add_transfer(const Access& access, StreamCosts& stream) {
  if (access.result <= 0) return;
  const bool reads = trace::moves_of(access.call) == Moves::reads;
  const trace::Layer layer = trace::layer_of(access.call);
  LayerCosts& costs = stream.layers[static_cast<std::size_t>(layer)];
  TransferCosts& into = reads ? costs.reads : costs.writes;
  const std::int64_t ns = std::max<std::int64_t>(0, access.end_ns - access.start_ns);
  const auto bytes = static_cast<std::uint64_t>(access.result);
  into.all.add(ns, bytes);
  const bool is_unaligned = access.offset % io_block_bytes != 0 || access.result % io_block_bytes != 0;
  if (access.result < small_bytes) {
    into.small.add(ns, bytes);
    if (is_unaligned) ++into.small_unaligned;
  }
  if (access.result < io_block_bytes) {
    into.below_block.add(ns, bytes);
    if (is_unaligned) ++into.below_block_unaligned;
  }
  if (layer == trace::Layer::mpi_io && !reads)
    ++(is_collective_transfer(access.call) ? stream.collective_mpi_writes : stream.independent_mpi_writes);
  if (layer != trace::Layer::posix || !access.process->rank) return;
  RankCosts& rank = run_.ranks[*access.process->rank];
  rank.spent.add(ns);
  (reads ? rank.read_bytes : rank.written_bytes) += bytes;
  if (access.parent == 0) return;
  const auto above = collective_calls_.find({access.process, access.tid});
  if (above != collective_calls_.end() && above->second == access.parent) rank.collective_bytes += bytes;
}

void CostGatherer::add_change(std::size_t number, std::int64_t end_ns) {
  State& state = states_[number];
  ++state.changes;
  state.changed_until_ns = std::max(state.changed_until_ns, end_ns);
}

void CostGatherer::add_change_of_directory(const Access& access) {
  const std::size_t slash = access.path.rfind('/');
  if (const std::uint64_t known = numbers_.find(access.path.substr(0, std::max<std::size_t>(slash, 1))); known != 0)
    add_change(known - 1, access.end_ns);
}

void CostGatherer::add_open(const Access& access, std::size_t number) {
  const auto flags = static_cast<int>(access.length);
  StreamCosts& stream = streams_[number];
  const std::int64_t ns = access.end_ns - access.start_ns;
  stream.opens.add(ns);
  if (access.result < 0 || (flags & (O_PATH | O_DIRECTORY)) != 0) return;
  if ((flags & O_CREAT) != 0) add_change_of_directory(access);
  if ((flags & (O_CREAT | O_TRUNC)) != 0) add_change(number, access.end_ns);
  Seen& before = seen_by(*access.process, number);
  const std::uint32_t now = seen(states_[number].names);
  if (before.opened == now && (flags & (O_TRUNC | O_EXCL)) == 0) stream.repeated_opens.add(ns);
  before.opened = now;
}

void CostGatherer::add_stat(const Access& access, std::size_t number) {
  const std::int64_t ns = access.end_ns - access.start_ns;
  streams_[number].stats.add(ns);
  if (access.result < 0) return;  // it may wait for a file of others
  Seen& before = seen_by(*access.process, number);
  const std::uint32_t now = seen(states_[number].changes);
  if (before.asked == now && !streams_[number].is_mapped) streams_[number].repeated_stats.add(ns);
  before.asked = now;
}

void CostGatherer::add_sync(const Access& access, std::size_t number) {
  State& state = states_[number];
  const std::int64_t ns = access.end_ns - access.start_ns;
  streams_[number].syncs.add(ns);
  if (access.result < 0) return;
  if (state.synced == state.changes && access.start_ns >= state.synced_until_ns)
    streams_[number].idle_syncs.add(ns);
  else
    state.synced_until_ns = access.end_ns;
  // A change that was under way may have come too late for this sync.
  state.synced = access.start_ns >= state.changed_until_ns ? state.changes : 0;
}

RunCosts CostGatherer::finish() && {
  for (std::size_t n = 0; n < streams_.size(); ++n)
    if (!states_[n].is_left_out) run_.streams.push_back(std::move(streams_[n]));
  std::ranges::sort(run_.streams, {}, &StreamCosts::path);
  return std::move(run_);
}

}  // namespace iosig::observe
