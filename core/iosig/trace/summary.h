// What is in a trace, in numbers: `iosig trace info`.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "iosig/trace/trace.h"

namespace iosig::trace {

struct CallTotals {
  std::uint64_t calls = 0, failed = 0, in_flight = 0;
  std::uint64_t read_bytes = 0, written_bytes = 0;
  std::int64_t inclusive_ns = 0;  ///< from start to end
  std::int64_t exclusive_ns = 0;  ///< without the calls of the same thread below it

  void add(const CallTotals& other);
};

/// Bytes by layer: what several layers move are the same bytes.
struct LayerBytes {
  std::array<std::uint64_t, std::size(layer_names)> read{}, written{};

  void add(Layer layer, const CallTotals& call);
  /// Of the lowest layer that moved any.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> read_and_written() const;
};

struct FileTotals {
  std::uint64_t calls = 0, read_bytes = 0, written_bytes = 0;
  LayerBytes bytes = {};
};

struct ProcessSummary {
  const Process* process = nullptr;
  std::set<std::int32_t> threads;
  CallTotals totals;  ///< times of calls without a parent, bytes of the lowest layer
  LayerBytes bytes = {};
  std::uint64_t lost_calls = 0;
  bool is_closed = true;  ///< all of its parts are
};

struct Summary {
  std::int64_t span_ns = 0;  ///< from the first start to the last known time
  std::map<Call, CallTotals> calls;
  std::array<CallTotals, std::size(layer_names)> layers;
  std::map<std::string, FileTotals, std::less<>> files;  ///< by path; bytes of the lowest layer
  std::vector<ProcessSummary> processes;                 ///< by host and pid
  std::uint64_t threads = 0, lost_calls = 0, packed_bytes = 0, packed_calls = 0;
  std::vector<Error> faults;  ///< of blocks
};

[[nodiscard]] Result<Summary> summary_of(const Trace& trace, const Selection& selection = {});

}  // namespace iosig::trace
