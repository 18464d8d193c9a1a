// Answers questions about the calls of traces: how many there are, how long they take, how many bytes they move, how
// many are in flight. Each row of an answer is about the calls that have something in common.
//
// Questions about sums are answered from the sums that the blocks have, if no call was made during another one
// (answer_from_sums.h). Else, one pass over the calls in the order of their starts, which is that of all threads and
// traces. Memory: what the open traces need (trace::Trace), a block for each active thread, and for each row some
// 450 bytes, at most 60 KB for percentiles, and 16 bytes for each call that is in flight at the same time. It does not
// grow with the number of calls.
//
// Nothing counts twice: a call that another call of the same row has caused, in the same thread, adds neither time nor
// bytes to that row's sums, nor is it in flight beside it. Where a row has calls of several layers, its bytes are those
// of the layer posix.
//
// Source: docs/references.md#doe sections 1 and 2 (latency inclusive and exclusive, throughput, by layer and client).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "iosig/base/distribution.h"
#include "iosig/base/result.h"
#include "iosig/observe/busy_time.h"
#include "iosig/observe/device_power.h"
#include "iosig/trace/trace.h"

namespace iosig::observe {

/// A property that all calls of a row share.
enum class Key : std::uint8_t { layer, call, rank, file, node, process, thread, window, source };
inline constexpr std::string_view key_names[] = {"layer",   "call",   "rank",   "file",  "node",
                                                 "process", "thread", "window", "source"};

/// The place in the source that opens a file, by the file's path.
using Sources = std::map<std::string, std::string, std::less<>>;

/// The number that a call adds to Row::values.
enum class Value : std::uint8_t {
  none,
  duration,  ///< nanoseconds
  own_time,  ///< nanoseconds without the calls of the same thread below it; needs Query::has_own_time
  bytes,     ///< that it moved; calls that move none add nothing
  rate,      ///< bytes that it moved, a second of its duration; calls without either add nothing
  energy,    ///< nanojoules that its devices draw while it is in flight; calls of unknown power add nothing
};

/// The calls that count. All conditions must hold.
struct Filter {
  std::optional<trace::Layer> layer = {};
  std::vector<trace::Call> calls = {};                            ///< empty: all but Call::inherited, which is none
  std::string files = {};                                         ///< as trace::Selection::files
  std::vector<std::pair<std::int64_t, std::int64_t>> ranks = {};  ///< from, to (inclusive); empty: all
  std::vector<std::string> nodes = {};                            ///< empty: all
  std::vector<std::int64_t> pids = {};                            ///< empty: all
  std::int64_t from_ns = 0, to_ns = INT64_MAX;  ///< it began at `from_ns` or later, and before `to_ns`
  std::uint64_t min_bytes = 0;                  ///< it moved as many or more
  std::uint64_t max_bytes = UINT64_MAX;         ///< it moved as many or fewer
  bool only_moving = false;                     ///< it is of a kind that moves bytes
  trace::Moves moves = trace::Moves::nothing;   ///< it moves them this way
};

struct Query {
  Filter filter = {};
  std::vector<Key> by = {};
  std::int64_t window_ns = 1'000'000'000;  ///< > 0
  Value value = Value::none;
  bool has_own_time = false;  ///< Row::own_ns is wanted
  bool has_order = false;     ///< Row::order is wanted
  bool has_intervals = true;  ///< Row::in_flight, first_ns and last_ns are wanted
  /// A call in several windows is divided among them: its time and, evenly over its duration, its bytes. Else it
  /// belongs to the window in which it began.
  bool divides_calls = false;
  /// Values of so many calls and more may be counted in the blocks' bins: percentiles are within 6.25 % then, instead
  /// of 0.8 %.
  std::uint64_t coarse_from = UINT64_MAX;
  /// Row::devices is wanted; must outlive the answer. Calls of unknown power count as calls, and have no time.
  const DevicePowers* powers = nullptr;
  /// For Key::source; must outlive the answer. Null: no place is known.
  const Sources* sources = nullptr;
  std::size_t list = 0;  ///< the number of calls in Answer::list, those with the greatest values; needs a value
};

/// How the accesses of a process to a file follow each other, reads and writes apart.
struct Order {
  std::uint64_t first = 0;        ///< no access before it
  std::uint64_t consecutive = 0;  ///< at the byte behind the one before
  std::uint64_t forward = 0, backward = 0;
  std::uint64_t unknown = 0;  ///< without an offset in this layer
};

/// The energy of a device from the start of a row's first call to the end of the last one (Row::wall_ns). Rows that use
/// the same device each count its idle power.
/// Source: ours. docs/references.md#doe section 1 names the question, not the formula.
struct DeviceEnergy {
  const PowerUnit* unit = nullptr;
  std::string_view host = {};  ///< empty: all nodes share it
  std::int64_t busy_ns = 0;    ///< any of the row's calls was in flight on it
  double active_j = 0;         ///< active_power_w x busy time
  double idle_j = 0;           ///< idle_power_w x (wall time - busy time)
};

struct Row {
  // The keys; those that the query does not name have no meaning.
  trace::Layer layer{};
  trace::Call call{};
  const trace::Process* process = nullptr;  ///< also of node and rank: any process with it
  std::optional<std::int64_t> rank = {};
  std::int32_t tid = 0;
  std::string_view file = {};    ///< empty: none, or not known
  std::string_view source = {};  ///< of Query::sources; empty: not known
  std::int64_t window_ns = 0;    ///< its start

  std::uint64_t calls = 0, failed = 0;
  std::uint64_t unfinished = 0;                     ///< have no end: in flight when the trace ended, or never returned
  std::uint64_t read_bytes = 0, written_bytes = 0;  ///< nothing twice
  std::int64_t time_ns = 0;                         ///< from start to end, nothing twice
  std::int64_t own_ns = 0;                          ///< without the calls of the same thread below
  /// The first start and the last end of finished calls; of a window that has parts of calls, its own.
  std::int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
  BusyTime in_flight = {};
  std::map<std::uint32_t, BusyTime> on_devices = {};  ///< its calls in flight on each device
  std::vector<DeviceEnergy> devices = {};             ///< that its calls have used; empty: none of known power
  std::uint64_t unknown_calls = 0;                    ///< of unknown power
  Distribution values = {};
  Order order = {};

  [[nodiscard]] std::int64_t wall_ns() const { return last_ns > first_ns ? last_ns - first_ns : 0; }
};

struct ListedCall {
  trace::Access access;
  std::int64_t own_ns = 0;  ///< if the query has own time
  std::uint64_t value = 0;
};

struct Answer {
  std::vector<Row> rows;               ///< in the order of their keys
  std::vector<ListedCall> list;        ///< greatest value first, then in the order of starts
  std::int64_t started_ns = 0;         ///< nanoseconds since 1970, from which all times count
  std::vector<Error> faults;           ///< blocks that could not be read
  std::uint64_t impossible_calls = 0;  ///< end before they begin: left out
  std::string first_impossible;
  std::map<std::string, std::uint64_t, std::less<>> unknown_calls;  ///< of unknown power: how many, by the reason
  bool is_coarse = false;                                           ///< percentiles are within 6.25 %
  bool compares_clocks = false;  ///< some row has calls of several nodes, whose clocks could not be aligned
};

/// More rows than these are refused, as they would not fit into memory.
inline constexpr std::size_t max_rows = 1'000'000;

/// The answer refers to `traces`. Times count from the earliest start of them all. Fails with `usage` if two traces
/// have a process in common, or if there would be more than max_rows rows.
[[nodiscard]] Result<Answer> answer(std::span<const trace::Trace> traces, const Query& query);

}  // namespace iosig::observe
