#include "iosig/observe/answer_from_sums.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "iosig/observe/answer_rows.h"
#include "iosig/observe/condition.h"
#include "iosig/observe/merged_accesses.h"
#include "iosig/trace/block_sums.h"

namespace iosig::observe {
namespace {

using trace::BlockSums;
using trace::CallSums;
using trace::Part;
using trace::Process;
using trace::StreamSums;
using trace::Trace;

bool is_about_sums(const Query& query, const AnswerRows& rows) {
  const Filter& filter = query.filter;
  const bool has_all_times = filter.from_ns <= 0 && filter.to_ns == INT64_MAX;
  const bool has_known_value =
      query.value == Value::none || query.value == Value::duration || query.value == Value::own_time;
  const bool has_known_order =
      !query.has_order || (!rows.has(Key::call) && !rows.has(Key::thread) && filter.calls.empty());
  return !query.has_intervals && query.list == 0 && !rows.has(Key::window) && !query.divides_calls && has_all_times &&
         filter.min_bytes == 0 && filter.max_bytes == UINT64_MAX && has_known_value && has_known_order &&
         !rows.mixes_layers();
}

std::uint64_t calls_in(std::span<const Trace> traces) {
  std::uint64_t calls = 0;
  for (const Trace& each : traces)
    for (const Part& part : each.parts()) {
      calls += part.loose.size();
      for (const trace::BlockPlace& block : part.blocks) calls += block.calls;
    }
  return calls;
}

/// Durations of a row's calls in one part, in ticks.
struct PartDurations {
  std::uint64_t count = 0, least = UINT64_MAX, greatest = 0;
  double ticks = 0;
  std::array<std::uint64_t, trace::duration_bins> bins{};

  void add(const CallSums& kind) {
    count += kind.finished();
    least = std::min(least, kind.least);
    greatest = std::max(greatest, kind.greatest);
    ticks += static_cast<double>(kind.ticks);
    for (unsigned bin = trace::duration_bin(kind.least); bin <= trace::duration_bin(kind.greatest); ++bin)
      bins[bin] += kind.bins[bin];
  }
};

/// A block's accesses in one stream.
struct Stretch {
  std::int64_t start_ns, end_ns;
  std::uint64_t first_offset, last_end;
};
struct Stream {
  std::uint32_t row;
  std::vector<Stretch> stretches;
};

class SumsRun {
 public:
  SumsRun(std::span<const Trace> traces, const Query& query, bool is_coarse)
      : traces_(traces), query_(query), is_coarse_(is_coarse), condition_(query.filter), rows_(query) {}

  Result<std::optional<Answer>> answer() {
    started_ns_ = started_ns_of(traces_);
    for (const Trace& each : traces_) {
      trace_ = &each;
      for (part_ = 0; part_ < each.parts().size(); ++part_) {
        const auto added = add_part();
        if (!added) return pass_on(added.error());
        if (!*added) return std::optional<Answer>();
      }
    }
    if (!set_order()) return std::optional<Answer>();
    Answer answer;
    answer.started_ns = started_ns_;
    answer.is_coarse = is_coarse_;
    answer.rows = std::move(rows_).sorted();
    return std::optional(std::move(answer));
  }

 private:
  /// false, here and below: sums do not tell the answer.
  Result<bool> add_part() {
    const Part& part = trace_->parts()[part_];
    process_ = &trace_->process_of(part);
    if (!condition_.is_process(*process_)) return true;
    const std::uint64_t wanted = condition_.call_set();
    durations_.clear();
    for (std::size_t block = 0; block < part.blocks.size(); ++block) {
      const trace::BlockPlace& place = part.blocks[block];
      if ((place.call_set & wanted) == 0) continue;
      if (place.sums_bytes == 0) {
        const auto calls = trace_->calls_of(part_, block);
        if (!calls || !sum(*calls)) return false;
      } else if (!trace::read_sums(std::span(part.sums).subspan(place.sums_at, place.sums_bytes), *sums_)) {
        return false;
      }
      if (auto added = add_block(place.tid, place.least_start, place.greatest_end); !added || !*added) return added;
    }
    if (auto added = add_loose(part); !added || !*added) return added;
    add_durations();
    return true;
  }

  bool sum(const std::vector<trace::PartCall>& calls) {
    slots_.clear();
    for (const trace::PartCall& call : calls) slots_.push_back(call.slot);
    const trace::BlockTraits traits = trace::take_apart(slots_, trace::Rounder(1), *fields_);
    return trace::sum_calls(slots_, *fields_, traits, *sums_);
  }

  /// Calls in slots. Those in flight count as calls that never returned.
  Result<bool> add_loose(const Part& part) {
    if (part.loose.empty()) return true;
    std::uint64_t least = UINT64_MAX, greatest = 0;
    std::vector<trace::PartCall> calls = part.loose;
    for (trace::PartCall& call : calls) {
      if (call.slot.end == 0) {
        call.slot.end = call.slot.start;
        call.slot.flags |= trace::abandoned;
      }
      least = std::min(least, call.slot.start);
      greatest = std::max(greatest, call.slot.end);
    }
    std::ranges::stable_sort(calls, {}, [](const trace::PartCall& call) { return call.slot.start; });
    if (!sum(calls)) return false;
    return add_block(part.header.tid, least, greatest);
  }

  Result<bool> add_block(std::int32_t tid, std::uint64_t least_start, std::uint64_t greatest_end) {
    if (sums_->has_parents) return false;
    trace::Access access;
    access.process = process_;
    access.tid = tid;
    for (const CallSums& kind : std::span(sums_->of_calls).first(sums_->kinds)) {
      access.call = kind.call;
      if (!set_file(access, kind.file, kind.path)) return false;
      if (!condition_(access)) continue;
      const auto row = rows_.row_of(rows_.numbers_of(access), access);
      if (!row) return pass_on(row.error());
      add_kind(*row, kind);
    }
    return !query_.has_order || add_streams(access, least_start, greatest_end);
  }

  void add_kind(std::uint32_t number, const CallSums& kind) {
    Row& row = rows_[number];
    row.calls += kind.calls;
    row.unfinished += kind.unfinished;
    row.failed += kind.failed;
    (trace::moves_of(kind.call) == trace::Moves::reads ? row.read_bytes : row.written_bytes) += kind.bytes;
    if (kind.finished() > 0) durations_[number].add(kind);
  }

  /// Adds what the part's calls took to the rows.
  void add_durations() {
    const double ns_per_tick = trace_->ns_per_tick(part_);
    const auto in_ns = [&](double ticks) { return ticks * ns_per_tick; };
    const auto whole_ns = [&](double ticks) { return static_cast<std::uint64_t>(std::llround(in_ns(ticks))); };
    std::vector<std::pair<double, std::uint64_t>> buckets;
    for (const auto& [number, durations] : durations_) {
      Row& row = rows_[number];
      const double total = in_ns(durations.ticks);
      row.time_ns += std::llround(total);
      row.own_ns += std::llround(total);  // no call has one below
      if (query_.value == Value::none) continue;
      buckets.clear();
      for (unsigned bin = 0; bin < trace::duration_bins; ++bin)
        if (durations.bins[bin] > 0)
          buckets.emplace_back(in_ns(trace::middle_of_duration_bin(bin)), durations.bins[bin]);
      row.values.add_counted(whole_ns(static_cast<double>(durations.least)),
                             whole_ns(static_cast<double>(durations.greatest)), total, buckets);
    }
  }

  bool add_streams(trace::Access& access, std::uint64_t least_start, std::uint64_t greatest_end) {
    if (!sums_->is_ordered) return false;
    for (const StreamSums& stream : std::span(sums_->of_streams).first(sums_->streams)) {
      // Any call of the stream leads to its row: its call is no key.
      const auto kinds = std::span(sums_->of_calls).first(sums_->kinds);
      const auto kind = std::ranges::find_if(kinds, [&](const CallSums& each) {
        return each.file == stream.file && trace::moves_of(each.call) == stream.moves &&
               trace::layer_of(each.call) == stream.layer;
      });
      if (kind == kinds.end()) return false;
      access.call = kind->call;
      if (!set_file(access, stream.file, 0)) return false;
      if (!condition_(access)) continue;
      const KeyNumbers numbers = rows_.numbers_of(access);
      const auto number = rows_.row_of(numbers, access);
      if (!number) return false;
      Order& order = rows_[*number].order;
      order.unknown += stream.unknown;
      if (!stream.has_offsets) continue;
      order.consecutive += stream.consecutive;
      order.forward += stream.forward;
      order.backward += stream.backward;
      auto& into =
          streams_.try_emplace(rows_.stream_of(rows_.group_of(numbers), access), Stream{*number, {}}).first->second;
      const std::int64_t shift = trace_->started_ns() - started_ns_;
      into.stretches.push_back({trace_->time_of(part_, least_start) + shift,
                                trace_->time_of(part_, greatest_end) + shift, stream.first_offset, stream.last_end});
    }
    return true;
  }

  /// Compares the first access of each stretch with the one before it.
  bool set_order() {
    for (auto& [key, stream] : streams_) {
      std::ranges::stable_sort(stream.stretches, {}, &Stretch::start_ns);
      Order& order = rows_[stream.row].order;
      const Stretch* before = nullptr;
      for (const Stretch& each : stream.stretches) {
        if (before != nullptr && each.start_ns < before->end_ns) return false;
        ++(before == nullptr                       ? order.first
           : each.first_offset == before->last_end ? order.consecutive
           : each.first_offset > before->last_end  ? order.forward
                                                   : order.backward);
        before = &each;
      }
    }
    return true;
  }

  /// Sets file and path of an access, if the query needs the path.
  bool set_file(trace::Access& access, std::uint32_t file, std::uint32_t path) {
    access.file = file;
    access.path = {};
    if (!rows_.has(Key::file) && !rows_.has(Key::source) && query_.filter.files.empty() && !query_.has_order)
      return true;
    if (path == 0 && file != 0) {
      const auto* const paths = paths_of_process();
      if (paths == nullptr) return false;
      if (const auto known = paths->find(file); known != paths->end()) path = known->second;
    }
    if (const auto known = process_->names.find(path); known != process_->names.end()) access.path = known->second;
    return true;
  }

  /// The paths of the process's open files; nullptr: some file has two, or a block cannot be read.
  const std::unordered_map<std::uint32_t, std::uint32_t>* paths_of_process() {
    const auto [known, is_new] = paths_.try_emplace(process_);
    auto& paths = known->second;
    if (!is_new) return paths.are_sound ? &paths.by_file : nullptr;
    const auto add = [&](const std::vector<trace::PartCall>& calls) {
      for (const trace::PartCall& call : calls)
        if (call.slot.file != 0 && call.slot.path != 0 &&
            paths.by_file.try_emplace(call.slot.file, call.slot.path).first->second != call.slot.path)
          paths.are_sound = false;
    };
    for (std::size_t number = 0; number < trace_->parts().size(); ++number) {
      const Part& part = trace_->parts()[number];
      if (&trace_->process_of(part) != process_) continue;
      add(part.loose);
      for (std::size_t block = 0; block < part.blocks.size(); ++block) {
        if ((part.blocks[block].call_set & trace::naming_calls) == 0) continue;
        const auto calls = trace_->calls_of(number, block);
        if (!calls) return paths.are_sound = false, nullptr;
        add(*calls);
      }
    }
    return paths.are_sound ? &paths.by_file : nullptr;
  }

  struct Paths {
    std::unordered_map<std::uint32_t, std::uint32_t> by_file;
    bool are_sound = true;
  };

  std::span<const Trace> traces_;
  const Query& query_;
  bool is_coarse_;
  Condition condition_;
  AnswerRows rows_;
  std::int64_t started_ns_ = 0;
  std::unordered_map<const Process*, Paths> paths_;
  std::unordered_map<KeyNumbers, Stream, HashKeys> streams_;

  // The part that is being added.
  const Trace* trace_ = nullptr;
  std::size_t part_ = 0;
  const Process* process_ = nullptr;
  std::unordered_map<std::uint32_t, PartDurations> durations_;  ///< by row
  std::unique_ptr<BlockSums> sums_ = std::make_unique<BlockSums>();
  std::unique_ptr<trace::BlockFields> fields_ = std::make_unique<trace::BlockFields>();
  std::vector<trace::Slot> slots_;
};

}  // namespace

Result<std::optional<Answer>> answer_from_sums(std::span<const Trace> traces, const Query& query) {
  const bool has_values = query.value != Value::none;
  if (!is_about_sums(query, AnswerRows(query)) || (has_values && calls_in(traces) < query.coarse_from))
    return std::optional<Answer>();
  return SumsRun(traces, query, has_values).answer();
}

}  // namespace iosig::observe
