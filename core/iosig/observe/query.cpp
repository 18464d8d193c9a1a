#include "iosig/observe/query.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>

#include "iosig/base/text.h"
#include "iosig/observe/answer_from_counters.h"
#include "iosig/observe/answer_from_sums.h"
#include "iosig/observe/answer_rows.h"
#include "iosig/observe/condition.h"
#include "iosig/observe/device_uses.h"
#include "iosig/observe/ended_access.h"
#include "iosig/observe/merged_accesses.h"
#include "iosig/trace/accesses.h"

namespace iosig::observe {
namespace {

using trace::Access;
using trace::Moves;
using trace::Process;
using trace::Trace;

/// The list of the calls with the greatest values.
class Greatest {
 public:
  explicit Greatest(std::size_t most) : most_(most) {}

  void add(const ListedCall& call) {
    if (most_ == 0 || (calls_.size() == most_ && !is_before(call, calls_.front()))) return;
    if (calls_.size() == most_) {
      std::ranges::pop_heap(calls_, is_before);
      calls_.pop_back();
    }
    calls_.push_back(call);
    std::ranges::push_heap(calls_, is_before);
  }
  std::vector<ListedCall> sorted() && {
    std::ranges::sort(calls_, is_before);
    return std::move(calls_);
  }

 private:
  static bool is_before(const ListedCall& a, const ListedCall& b) {
    const auto key = [](const ListedCall& call) {
      return std::tuple(UINT64_MAX - call.value, call.access.start_ns, call.access.id);
    };
    return key(a) < key(b);
  }

  std::size_t most_;
  std::vector<ListedCall> calls_;  ///< a heap, the last of the list first
};

/// Returns `number` (>= 0) without its fraction; the greatest of 64 bits if it is greater.
std::uint64_t whole_number(double number) { return number < 0x1p64 ? static_cast<std::uint64_t>(number) : UINT64_MAX; }

class Run {
 public:
  Run(std::span<const Trace> traces, const Query& query)
      : query_(query), condition_(query.filter), greatest_(query.list), rows_(query), uses_(query.powers) {
    std::size_t parts = 0;
    for (const Trace& each : traces) {
      first_part_.push_back(parts);
      parts += each.parts().size();
    }
    threads_.resize(parts);
    selection_.processes = [this](const Process& process) { return condition_.is_process(process); };
    if (!query.has_own_time) selection_.call_set = condition_.call_set();
  }

  Result<Answer> answer(std::span<const Trace> traces) {
    MergedAccesses accesses(traces, selection_, query_.filter.from_ns, answer_.faults);
    answer_.started_ns = accesses.started_ns();
    while (const Access* const access = accesses.next()) {
      // Own times need the calls below, to the end of the latest call that counts.
      if (access->start_ns >= query_.filter.to_ns && (!query_.has_own_time || access->start_ns >= counted_until_))
        break;
      if (auto taken = take(*access, first_part_[accesses.trace()]); !taken) return pass_on(taken.error());
    }
    for (std::vector<Frame>& thread : threads_)
      for (const Frame& frame : thread) leave(frame);
    if (query_.divides_calls && rows_.has(Key::window))
      for (Row& row : rows_.all()) {
        row.first_ns = row.window_ns;
        row.last_ns = row.window_ns + query_.window_ns;
      }
    for (Row& row : rows_.all()) uses_.add_energy(row);
    answer_.rows = std::move(rows_).sorted();
    answer_.list = std::move(greatest_).sorted();
    return std::move(answer_);
  }

 private:
  /// A call of a thread that has begun, and may be the parent of the next one.
  struct Frame {
    Access access;
    bool counts = false;
    std::uint64_t group = 0;                    ///< of its keys without the window; 0: it does not count
    std::uint32_t row = no_row;                 ///< of its begin
    std::int64_t below_ns = 0, below_until_ns;  ///< spent in calls below; the end of the last of them
  };

  Result<void> take(const Access& access, std::size_t first_part) {
    if (has_ended(access) && access.end_ns < access.start_ns) {
      if (answer_.impossible_calls++ == 0)
        answer_.first_impossible = fmt::format("{} of process {} on {}", trace::name_of(access.call),
                                               access.process->pid, printable(access.process->host));
      return {};
    }
    std::vector<Frame>& thread = threads_[first_part + (access.id >> trace::call_id_bits)];
    while (!thread.empty() && !is_above(thread.back(), access)) {
      leave(thread.back());
      thread.pop_back();
    }
    if (!thread.empty() && query_.has_own_time) add_below(thread.back(), access);
    Frame frame{.access = access, .below_until_ns = access.start_ns};
    if (condition_(access)) {
      if (query_.powers != nullptr) uses_.set(access);
      KeyNumbers numbers = rows_.numbers_of(access);
      frame.counts = true;
      frame.group = uses_.are_known() ? rows_.group_of(numbers) : 0;
      const bool is_outermost = std::ranges::none_of(
          thread, [&](const Frame& above) { return above.group == frame.group && has_ended(above.access); });
      if (rows_.has(Key::window))
        numbers[window_place] = static_cast<std::uint64_t>(access.start_ns / query_.window_ns);
      auto row = rows_.row_of(numbers, access);
      if (!row) return pass_on(row.error());
      frame.row = *row;
      count(rows_[*row], access, frame.group);
      if (has_ended(access) && uses_.are_known()) {
        counted_until_ = std::max(counted_until_, access.end_ns);
        // All layers move the same bytes: those that reach the file system count.
        const bool moves = rows_.mixes_layers() ? trace::layer_of(access.call) == trace::Layer::posix : is_outermost;
        if (is_outermost || moves)
          if (auto added = add_interval(numbers, *row, access, is_outermost, moves ? moved_bytes(access) : 0); !added)
            return added;
      }
    }
    thread.push_back(frame);
    return {};
  }

  /// Whether `frame` is of a call during which `access` was made. If the calls between them are not read, the time
  /// tells.
  static bool is_above(const Frame& frame, const Access& access) {
    if (access.parent == 0) return false;
    return frame.access.id == access.parent ||
           (frame.access.id < access.parent && has_ended(frame.access) && frame.access.end_ns > access.start_ns);
  }

  static void add_below(Frame& parent, const Access& access) {
    if (parent.access.id != access.parent || !has_ended(parent.access) || !has_ended(access)) return;
    // Rounded times (iosig trace --microseconds) may overlap a little.
    const std::int64_t from = std::max(access.start_ns, parent.below_until_ns);
    const std::int64_t to = std::min(access.end_ns, parent.access.end_ns);
    if (to <= from) return;
    parent.below_ns += to - from;
    parent.below_until_ns = to;
  }

  void count(Row& row, const Access& access, std::uint64_t group) {
    ++row.calls;
    if (!uses_.are_known()) {
      ++row.unknown_calls;
      ++answer_.unknown_calls[uses_.why_unknown()];
    }
    if (row.process->clock != access.process->clock) answer_.compares_clocks = true;
    if (query_.has_order) add_order(row, access, group);
    if (!has_ended(access)) {
      ++row.unfinished;
      return;
    }
    if (access.result < 0) ++row.failed;
    if (!uses_.are_known()) return;
    if (!query_.has_own_time) add_value(row, access, 0);
  }

  void add_value(Row& row, const Access& access, std::int64_t own_ns) {
    const std::int64_t duration_ns = access.end_ns - access.start_ns;
    const std::uint64_t bytes = moved_bytes(access);
    std::uint64_t value = 0;
    switch (query_.value) {
      case Value::none: return;
      case Value::duration: value = static_cast<std::uint64_t>(duration_ns); break;
      case Value::own_time: value = static_cast<std::uint64_t>(own_ns); break;
      case Value::bytes:
        if (bytes == 0) return;
        value = bytes;
        break;
      case Value::rate:
        if (bytes == 0 || duration_ns == 0) return;
        value = whole_number(static_cast<double>(bytes) * 1e9 / static_cast<double>(duration_ns));
        break;
      case Value::energy:
        value = whole_number(std::round(static_cast<double>(duration_ns) * uses_.active_power_w()));
        break;
    }
    row.values.add(value);
    greatest_.add({access, own_ns, value});
  }

  /// All calls below are known.
  void leave(const Frame& frame) {
    if (!frame.counts || !query_.has_own_time || !has_ended(frame.access)) return;
    Row& row = rows_[frame.row];
    const std::int64_t own_ns = frame.access.end_ns - frame.access.start_ns - frame.below_ns;
    add_duration(row.own_ns, own_ns);
    add_value(row, frame.access, own_ns);
  }

  void add_order(Row& row, const Access& access, std::uint64_t group) {
    const Moves moves = trace::moves_of(access.call);
    if (moves == Moves::nothing || (has_ended(access) && access.result < 0)) return;
    if (access.offset < 0) {
      ++row.order.unknown;
      return;
    }
    const auto [latest, is_first] = stream_ends_.try_emplace(rows_.stream_of(group, access), 0);
    const std::uint64_t offset = static_cast<std::uint64_t>(access.offset);
    std::uint64_t& kind = is_first                   ? row.order.first
                          : offset == latest->second ? row.order.consecutive
                          : offset > latest->second  ? row.order.forward
                                                     : row.order.backward;
    ++kind;
    latest->second = offset + moved_bytes(access);
  }

  /// Adds bytes, and unless another call of its group has caused it the time, of a call that has ended.
  Result<void> add_interval(KeyNumbers& numbers, std::uint32_t row, const Access& access, bool is_timed,
                            std::uint64_t bytes) {
    if (!query_.divides_calls || !rows_.has(Key::window)) {
      add_piece(rows_[row], access, access.start_ns, access.end_ns, bytes, is_timed);
      return {};
    }
    const auto bytes_until = [&](std::int64_t time) {
      if (time == access.end_ns) return bytes;
      return static_cast<std::uint64_t>(static_cast<long double>(bytes) *
                                        static_cast<long double>(time - access.start_ns) /
                                        static_cast<long double>(access.end_ns - access.start_ns));
    };
    std::int64_t from = access.start_ns;
    for (std::int64_t window = from / query_.window_ns;; ++window) {
      numbers[window_place] = static_cast<std::uint64_t>(window);
      const auto into = rows_.row_of(numbers, access);
      if (!into) return pass_on(into.error());
      // The last window may end beyond the range of time.
      const bool is_last = (access.end_ns - 1) / query_.window_ns <= window;
      const std::int64_t to = is_last ? access.end_ns : (window + 1) * query_.window_ns;
      add_piece(rows_[*into], access, from, to, bytes_until(to) - (from == access.start_ns ? 0 : bytes_until(from)),
                is_timed);
      if (to == access.end_ns) return {};
      from = to;
    }
  }

  void add_piece(Row& row, const Access& access, std::int64_t from, std::int64_t to, std::uint64_t bytes,
                 bool is_timed) {
    (trace::moves_of(access.call) == Moves::reads ? row.read_bytes : row.written_bytes) += bytes;
    if (!is_timed) return;
    add_duration(row.time_ns, to - from);
    row.first_ns = std::min(row.first_ns, from);
    row.last_ns = std::max(row.last_ns, to);
    row.in_flight.add(from, to);
    for (const std::uint32_t device : uses_.devices()) row.on_devices[device].add(from, to);
  }

  const Query& query_;
  Condition condition_;
  Greatest greatest_;
  trace::Selection selection_;
  std::vector<std::size_t> first_part_;      ///< of each trace: the number of its first thread
  std::vector<std::vector<Frame>> threads_;  ///< of each part: the calls that have begun, the innermost one last
  std::int64_t counted_until_ = INT64_MIN;   ///< the latest end of calls that count
  AnswerRows rows_;
  DeviceUses uses_;  ///< of the call that is being taken
  std::unordered_map<KeyNumbers, std::uint64_t, HashKeys> stream_ends_;
  Answer answer_;
};

}  // namespace

Result<Answer> answer(std::span<const Trace> traces, const Query& query) {
  if (auto distinct = check_distinct(traces); !distinct) return pass_on(distinct.error());
  auto from_sums = answer_from_sums(traces, query);
  if (!from_sums) return pass_on(from_sums.error());
  Result<Answer> made = *from_sums ? std::move(**from_sums) : Run(traces, query).answer(traces);
  if (made) add_counted_rows(traces, query, made->rows);
  return made;
}

}  // namespace iosig::observe
