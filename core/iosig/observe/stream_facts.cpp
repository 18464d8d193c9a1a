#include "iosig/observe/stream_facts.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace iosig::observe {
namespace {

using trace::Access;
using trace::Call;
using trace::CallKind;
using trace::Moves;

constexpr std::int64_t least_pause_ns = 10'000'000;
constexpr std::int64_t block_bytes = 4096;
constexpr std::size_t max_found = 100'000;

/// Whether the call makes data durable; sync_file_range(2) does not.
bool is_sync(Call call) {
  const CallKind kind = call_kind_of(call);
  return kind == CallKind::sync || kind == CallKind::begin_sync || call == Call::syncfs || call == Call::msync;
}

/// How large a call makes a file; 0: it does not.
std::int64_t allocated_by(const Access& access) {
  const CallKind kind = call_kind_of(access.call);
  if (kind == CallKind::truncate) return access.length;
  if (kind != CallKind::allocate || access.offset < 0 || access.length > INT64_MAX - access.offset) return 0;
  return access.offset + access.length;
}

bool has(const auto& files, const Access& access) {
  const auto of_process = files.find(access.process);
  return of_process != files.end() && of_process->second.contains(access.file);
}

/// Calls after whose success something has the name.
bool finds(Call call) {
  return call_kind_of(call) == CallKind::look_up || call == Call::getxattr || call == Call::symlink;
}

}  // namespace

const Transfers* StreamFacts::transfers() const {
  const auto lowest = std::find_if(layers.rbegin(), layers.rend(), [](const auto& layer) { return layer != nullptr; });
  return lowest == layers.rend() ? nullptr : lowest->get();
}

std::size_t FactGatherer::KeyHash::operator()(const LastKey& key) const {
  std::size_t hash = std::hash<const void*>{}(key.process);
  for (const std::size_t part : {key.stream, static_cast<std::size_t>(key.tid), static_cast<std::size_t>(key.way)})
    hash = (hash ^ part) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 32;
}

std::size_t FactGatherer::number_of(std::string_view path) {
  if (const auto known = numbers_.find(path); known != numbers_.end()) return known->second;
  const std::size_t number = streams_.size();
  streams_.emplace_back().path = path;
  numbers_.emplace(path, number);
  return number;
}

void FactGatherer::add(const Access& access) {
  // The kernel's name for a file that has none any more.
  if (access.path.empty() || access.path.ends_with(" (deleted)")) return;
  if (access.is_in_flight || access.result < 0 || has(nameless_files_, access)) return;
  const Moves moves = moves_of(access.call);
  if (moves != Moves::nothing) return add_transfer(access, moves);
  const CallKind kind = call_kind_of(access.call);
  if (kind == CallKind::open && layer_of(access.call) != trace::Layer::mpi_io) return add_open(access);
  if (kind == CallKind::unlink) return add_removal(access.path);
  if (kind == CallKind::rename) return add_rename(access.path, access.second_path);
  if (kind == CallKind::link) return add_link(access.path, access.second_path);
  if (const std::int64_t end = allocated_by(access); end > 0) {
    StreamFacts& stream = streams_[number_of(access.path)];
    stream.allocated_end = std::max(stream.allocated_end, end);
  }
  if (is_sync(access.call)) ++streams_[number_of(access.path)].syncs;
  if (kind == CallKind::map && access.length > 0)
    streams_[number_of(access.path)].mapped_bytes += static_cast<std::uint64_t>(access.length);
  if (finds(access.call) && found_.size() < max_found && !named_.contains(access.path)) found_.emplace(access.path);
}

void FactGatherer::add_transfer(const Access& access, Moves moves) {
  StreamFacts& stream = streams_[number_of(access.path)];
  if (access.result == 0) {
    stream.has_read_end = stream.has_read_end || moves == Moves::reads;
    return;
  }
  auto& layer = stream.layers[static_cast<std::size_t>(layer_of(access.call))];
  if (layer == nullptr) layer = std::make_unique<Transfers>();
  Transfers& all = *layer;
  const bool reads = moves == Moves::reads;
  const auto bytes = static_cast<std::uint64_t>(access.result);
  (reads ? all.reads : all.writes) += 1;
  (reads ? all.read_bytes : all.written_bytes) += bytes;
  (reads ? all.readers : all.writers).insert(access.process->key);
  if (!all.hosts.contains(access.process->host)) all.hosts.insert(access.process->host);
  all.sizes.add(bytes);
  if (has(waiting_files_, access)) ++all.waited;
  if (all.busy_until_ns != 0 && access.start_ns - all.busy_until_ns >= least_pause_ns)
    all.think_ns += access.start_ns - all.busy_until_ns;
  all.busy_until_ns = std::max(all.busy_until_ns, access.end_ns);
  if (access.offset < 0 || access.result > INT64_MAX - access.offset) return;

  const std::int64_t end = access.offset + access.result;
  all.end = std::max(all.end, end);
  if (access.offset % block_bytes == 0 && access.result % block_bytes == 0) ++all.aligned;
  const auto way = static_cast<std::uint16_t>(static_cast<int>(layer_of(access.call)) * 2 + (reads ? 1 : 0));
  const auto [known, is_new] = last_.try_emplace({.stream = static_cast<std::size_t>(&stream - streams_.data()),
                                                  .process = access.process,
                                                  .tid = access.tid,
                                                  .way = way},
                                                 Last{});
  Last& last = known->second;
  const std::int64_t distance = access.offset - last.end;
  // Files that are opened for each record go on.
  const bool is_start = is_new || (access.file != last.file && distance != 0);
  if (is_start) {
    ++all.sequences;
  } else {
    ++all.followed;
    if (distance == 0) {
      ++all.contiguous;
    } else if (distance > 0) {
      ++all.forward;
      if (last.is_first)
        ++all.first_jumps;
      else if (distance == last.distance)
        ++all.same_stride;
    }
  }
  last = {.end = end, .distance = is_start ? 0 : distance, .file = access.file, .is_first = is_start};
}

void FactGatherer::add_open(const Access& access) {
  const auto flags = static_cast<int>(access.length);
  if ((flags & O_PATH) != 0) return;  // not opened
  if ((flags & __O_TMPFILE) == __O_TMPFILE) {
    nameless_files_[access.process].insert(access.file);
    return;
  }
  const std::size_t number = number_of(access.path);
  StreamFacts& stream = streams_[number];
  const bool is_known = named_.contains(access.path);
  if ((flags & O_CREAT) != 0 && !is_known) {
    stream.is_created_exclusively = stream.is_created_exclusively || (flags & O_EXCL) != 0;
    if ((flags & O_EXCL) == 0 && found_.contains(std::string(access.path))) stream.was_there = true;
    stream.is_created = stream.is_created || !stream.was_there;
  } else if (!is_known) {
    stream.was_there = true;
  }
  stream.is_emptied = stream.is_emptied || (flags & O_TRUNC) != 0;
  stream.is_refused_as_link = stream.is_refused_as_link || (flags & O_NOFOLLOW) != 0;
  found_.erase(std::string(access.path));
  auto& named = named_[stream.path];
  if (std::ranges::find(named, number) == named.end()) named.push_back(number);
  if ((flags & (O_SYNC | O_DSYNC | O_DIRECT)) != 0) waiting_files_[access.process].insert(access.file);
}

std::vector<std::size_t> FactGatherer::take_named(std::string_view path) {
  const auto named = named_.find(path);
  if (named == named_.end()) return {};
  std::vector<std::size_t> streams = std::move(named->second);
  named_.erase(named);
  return streams;
}

void FactGatherer::add_removal(std::string_view path) {
  for (const std::size_t number : take_named(path)) streams_[number].is_removed = true;
  found_.erase(std::string(path));
}

void FactGatherer::add_rename(std::string_view from, std::string_view to) {
  std::vector<std::size_t> moved = take_named(from);
  if (to.empty()) {
    for (const std::size_t number : moved) streams_[number].may_remain = true;
    return;
  }
  for (const std::size_t number : take_named(to)) streams_[number].may_remain = true;
  for (const std::size_t number : moved) streams_[number].renamed_to = to;
  if (!moved.empty()) named_[std::string(to)] = std::move(moved);
  move_directory(from, to);
}

/// Files below a directory that is renamed have another name from now on.
void FactGatherer::move_directory(std::string_view from, std::string_view to) {
  const std::string below = std::string(from) + "/";
  std::vector<std::pair<std::string, std::vector<std::size_t>>> moved;
  for (auto at = named_.lower_bound(below); at != named_.end() && at->first.starts_with(below); at = named_.erase(at))
    moved.emplace_back(fmt::format("{}/{}", to, at->first.substr(below.size())), std::move(at->second));
  for (auto& [name, streams] : moved) {
    for (const std::size_t number : streams) streams_[number].renamed_to = name;
    named_[name] = std::move(streams);
  }
}

void FactGatherer::add_link(std::string_view from, std::string_view to) {
  const auto named = named_.find(from);
  if (named == named_.end()) return;
  const std::vector<std::size_t> streams = named->second;
  if (!to.empty()) named_[std::string(to)] = streams;
  for (const std::size_t number : streams) streams_[number].may_remain = streams_[number].may_remain || to.empty();
}

std::vector<StreamFacts> FactGatherer::finish() {
  for (const auto& [name, numbers] : named_)
    for (const std::size_t number : numbers) streams_[number].is_removed = false;
  std::ranges::sort(streams_, {}, &StreamFacts::path);
  return std::move(streams_);
}

}  // namespace iosig::observe
