#include "iosig/trace/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "iosig/base/text.h"
#include "iosig/trace/protobuf.h"

namespace iosig::trace {
namespace {

using protobuf::append_bytes;
using protobuf::append_fixed64;
using protobuf::append_number;
using protobuf::append_signed;

/// Numbers of the fields, by message (protos/perfetto/trace in Perfetto's repository).
namespace trace_fields {
constexpr std::uint32_t packet = 1;
}
namespace packet_fields {
constexpr std::uint32_t clock_snapshot = 6, timestamp = 8, sequence = 10, track_event = 11, interned_data = 12,
                        sequence_flags = 13, track_descriptor = 60;
}
namespace snapshot_fields {
constexpr std::uint32_t clock = 1, primary_clock = 2, clock_id = 1, clock_timestamp = 2;
}
namespace descriptor_fields {
constexpr std::uint32_t uuid = 1, name = 2, process = 3, thread = 4, parent = 5, sibling_order = 12;
}
namespace process_fields {
constexpr std::uint32_t pid = 1, command_line = 2, name = 6;
}
namespace thread_fields {
constexpr std::uint32_t pid = 1, tid = 2, name = 5;
}
namespace event_fields {
constexpr std::uint32_t argument = 4, type = 9, name_number = 10, track = 11, flow = 47, last_flow = 48;
}
namespace argument_fields {
constexpr std::uint32_t name_number = 1, signed_number = 4, text_number = 17;
}
namespace interned_fields {
constexpr std::uint32_t number = 1, text = 2;
}

enum EventType : std::uint8_t { slice_begin = 1, slice_end = 2, instant = 3 };
enum ClockNumber : std::uint8_t { realtime = 1, boot_time = 6 };  ///< the latter is that of packets unless they say

constexpr std::uint64_t incremental_state_cleared = 1, needs_incremental_state = 2;
constexpr std::uint64_t sequence_number = 1;
constexpr std::int32_t first_free_id = 1 << 22;  ///< the greatest PID_MAX_LIMIT

/// Perfetto takes texts for UTF-8.
std::string utf8_of(std::string_view bytes) { return printable(bytes); }

bool has_no_end(const Access& access) { return access.is_in_flight; }
bool is_abandoned(const Access& access) { return (access.flags & abandoned) != 0; }

bool is_open_at(const Access& access, std::int64_t time_ns) { return has_no_end(access) || access.end_ns > time_ns; }

/// Whether a slice of `inner` may lie in one of `outer`, which has begun before.
bool contains(const Access& outer, const Access& inner) {
  return inner.parent == outer.id && (has_no_end(outer) || (!has_no_end(inner) && inner.end_ns <= outer.end_ns));
}

std::string process_name(const Process& process) {
  std::string name = process.rank ? fmt::format("rank {}", *process.rank) : fmt::format("process {}", process.pid);
  const std::size_t slash = process.program.find_last_of('/');
  if (!process.program.empty()) name += ", " + process.program.substr(slash == std::string::npos ? 0 : slash + 1);
  if (!process.host.empty()) name += ", " + process.host;
  return utf8_of(name);
}

}  // namespace

PerfettoWriter::PerfettoWriter(std::int64_t started_ns, std::string& bytes)
    : bytes_(bytes), next_free_id_(first_free_id) {
  write_clocks(started_ns);
}

void PerfettoWriter::write_packet(std::string_view packet) { append_bytes(trace_fields::packet, packet, bytes_); }

void PerfettoWriter::write_clocks(std::int64_t started_ns) {
  std::string snapshot;
  for (const auto& [clock, time] : {std::pair{boot_time, std::int64_t{0}}, {realtime, started_ns}}) {
    std::string reading;
    append_number(snapshot_fields::clock_id, clock, reading);
    append_signed(snapshot_fields::clock_timestamp, time, reading);
    append_bytes(snapshot_fields::clock, reading, snapshot);
  }
  append_number(snapshot_fields::primary_clock, boot_time, snapshot);
  std::string packet;
  append_number(packet_fields::sequence, sequence_number, packet);
  append_bytes(packet_fields::clock_snapshot, snapshot, packet);
  write_packet(packet);
}

std::uint64_t PerfettoWriter::process_track(const Process& process) {
  const auto [known, is_new] = processes_.try_emplace(&process);
  ProcessTrack& made = known->second;
  if (!is_new) return made.track;
  made.track = ++latest_track_;
  made.pid = process.pid > 0 && pids_.insert(process.pid).second ? process.pid : next_free_id_++;
  std::string descriptor, told, packet;
  append_signed(process_fields::pid, made.pid, told);
  for (const std::string& each : process.arguments) append_bytes(process_fields::command_line, utf8_of(each), told);
  append_bytes(process_fields::name, process_name(process), told);
  append_number(descriptor_fields::uuid, made.track, descriptor);
  append_bytes(descriptor_fields::process, told, descriptor);
  append_number(packet_fields::sequence, sequence_number, packet);
  append_bytes(packet_fields::track_descriptor, descriptor, packet);
  write_packet(packet);
  return made.track;
}

PerfettoWriter::Thread& PerfettoWriter::thread_of(const Access& access) {
  const auto [known, is_new] = threads_.try_emplace({access.process, access.tid});
  Thread& thread = known->second;
  if (!is_new) return thread;
  const std::uint64_t parent = process_track(*access.process);
  thread.track = ++latest_track_;
  const std::int32_t tid = access.tid > 0 && tids_.insert(access.tid).second ? access.tid : next_free_id_++;
  std::string descriptor, told, packet;
  append_signed(thread_fields::pid, processes_.at(access.process).pid, told);
  append_signed(thread_fields::tid, tid, told);
  append_bytes(thread_fields::name, fmt::format("thread {}", access.tid), told);
  append_number(descriptor_fields::uuid, thread.track, descriptor);
  append_number(descriptor_fields::parent, parent, descriptor);
  append_bytes(descriptor_fields::thread, told, descriptor);
  append_number(packet_fields::sequence, sequence_number, packet);
  append_bytes(packet_fields::track_descriptor, descriptor, packet);
  write_packet(packet);
  return thread;
}

PerfettoWriter::Lane& PerfettoWriter::made_lane(Thread& thread, Layer layer) {
  std::vector<Lane>& lanes = thread.lanes[static_cast<std::size_t>(layer)];
  lanes.push_back({.track = ++latest_track_, .open = {}});
  const std::string_view name = layer_names[static_cast<std::size_t>(layer)];
  std::string descriptor, packet;
  append_number(descriptor_fields::uuid, latest_track_, descriptor);
  append_number(descriptor_fields::parent, thread.track, descriptor);
  append_bytes(descriptor_fields::name,
               lanes.size() == 1 ? std::string(name) : fmt::format("{} {}", name, lanes.size()), descriptor);
  append_number(descriptor_fields::sibling_order, static_cast<std::uint64_t>(layer), descriptor);
  append_number(packet_fields::sequence, sequence_number, packet);
  append_bytes(packet_fields::track_descriptor, descriptor, packet);
  write_packet(packet);
  return lanes.back();
}

/// The first one on which the slice of the access nests.
PerfettoWriter::Lane& PerfettoWriter::lane_of(Thread& thread, const Access& access) {
  const Layer layer = layer_of(access.call);
  for (Lane& lane : thread.lanes[static_cast<std::size_t>(layer)])
    if (lane.open.empty() || contains(lane.open.back().access, access)) return lane;
  return made_lane(thread, layer);
}

std::uint64_t PerfettoWriter::number_of(Interned& interned, std::string_view text) {
  const auto [known, is_new] = interned.numbers.try_emplace(text, interned.numbers.size() + 1);
  if (!is_new) return known->second;
  std::string entry, data, packet;
  append_number(interned_fields::number, known->second, entry);
  append_bytes(interned_fields::text, utf8_of(text), entry);
  append_bytes(interned.field, entry, data);
  append_number(packet_fields::sequence, sequence_number, packet);
  append_number(packet_fields::sequence_flags,
                has_begun_ ? needs_incremental_state : incremental_state_cleared | needs_incremental_state, packet);
  has_begun_ = true;
  append_bytes(packet_fields::interned_data, data, packet);
  write_packet(packet);
  return known->second;
}

void PerfettoWriter::append_arguments(const Access& access, std::string& event) {
  const auto append = [&](std::string_view name, std::uint32_t field, std::uint64_t value) {
    std::string argument;
    append_number(argument_fields::name_number, number_of(argument_names_, name), argument);
    append_number(field, value, argument);
    append_bytes(event_fields::argument, argument, event);
  };
  const auto append_text = [&](std::string_view name, std::string_view text) {
    if (!text.empty()) append(name, argument_fields::text_number, number_of(argument_texts_, text));
  };
  const auto append_signed_number = [&](std::string_view name, std::int64_t number) {
    append(name, argument_fields::signed_number, static_cast<std::uint64_t>(number));
  };
  append_text("path", access.path);
  append_text("second_path", access.second_path);
  if (access.fd >= 0) append_signed_number("fd", access.fd);
  if (access.offset != no_offset) append_signed_number("offset", access.offset);
  if (access.length != no_length) append_signed_number("length", access.length);
  if (!access.is_in_flight && !is_abandoned(access)) append_signed_number("result", access.result);
}

void PerfettoWriter::write_event(std::int64_t time_ns, const std::string& event) {
  std::string packet;
  append_number(packet_fields::timestamp, static_cast<std::uint64_t>(std::max<std::int64_t>(time_ns, 0)), packet);
  append_number(packet_fields::sequence, sequence_number, packet);
  append_number(packet_fields::sequence_flags, needs_incremental_state, packet);
  append_bytes(packet_fields::track_event, event, packet);
  write_packet(packet);
}

void PerfettoWriter::write_begin(const Lane& lane, Frame& frame) {
  if (frame.is_written) return;
  frame.is_written = true;
  const Access& access = frame.access;
  std::string event;
  append_number(event_fields::type, is_abandoned(access) ? instant : slice_begin, event);
  append_number(event_fields::track, lane.track, event);
  append_number(event_fields::name_number, number_of(event_names_, name_of(access.call)), event);
  append_arguments(access, event);
  for (const std::uint64_t id : frame.arrows) append_fixed64(event_fields::flow, id, event);
  if (frame.has_arrow) append_fixed64(event_fields::last_flow, access.id, event);
  write_event(access.start_ns, event);
}

void PerfettoWriter::close_innermost(Lane& lane) {
  Frame& frame = lane.open.back();
  write_begin(lane, frame);
  if (!has_no_end(frame.access) && !is_abandoned(frame.access)) {
    std::string event;
    append_number(event_fields::type, slice_end, event);
    append_number(event_fields::track, lane.track, event);
    write_event(frame.access.end_ns, event);
  }
  lane.open.pop_back();
}

void PerfettoWriter::close_ended(Lane& lane, std::int64_t until_ns) {
  while (!lane.open.empty() && !is_open_at(lane.open.back().access, until_ns)) close_innermost(lane);
}

/// Returns whether an arrow leads to the access from the call above, which is on another track.
bool PerfettoWriter::add_arrow(Thread& thread, const Lane& lane, const Access& access) {
  for (auto& lanes : thread.lanes)
    for (Lane& other : lanes) {
      const auto above = std::ranges::find(other.open, access.parent, [](const Frame& each) { return each.access.id; });
      if (above == other.open.end()) continue;
      if (&other == &lane || above->is_written || above->arrows.size() == max_arrows) return false;
      above->arrows.push_back(access.id);
      return true;
    }
  return false;
}

void PerfettoWriter::add(const Access& access) {
  Thread& thread = thread_of(access);
  for (auto& lanes : thread.lanes)
    for (Lane& lane : lanes) close_ended(lane, access.start_ns);
  Lane& lane = lane_of(thread, access);
  // What begins at the same time must come first in the file.
  if (!lane.open.empty()) write_begin(lane, lane.open.back());
  Frame frame{.access = access, .arrows = {}};
  frame.has_arrow = access.parent != 0 && add_arrow(thread, lane, access);
  lane.open.push_back(std::move(frame));
}

void PerfettoWriter::finish() {
  for (auto& [key, thread] : threads_)
    for (auto& lanes : thread.lanes)
      for (Lane& lane : lanes)
        while (!lane.open.empty()) close_innermost(lane);
}

}  // namespace iosig::trace
