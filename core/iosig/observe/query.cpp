#include "iosig/observe/query.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>

#include "iosig/base/text.h"
#include "iosig/observe/ended_access.h"
#include "iosig/observe/merged_accesses.h"
#include "iosig/observe/text_numbers.h"
#include "iosig/trace/accesses.h"

namespace iosig::observe {
namespace {

using trace::Access;
using trace::Moves;
using trace::Process;
using trace::Trace;

constexpr std::uint32_t no_row = UINT32_MAX;

/// A number for each key that a query names, and 0 for the others: equal ones belong to one row.
using KeyNumbers = std::array<std::uint64_t, std::size(key_names)>;
struct HashKeys {
  std::size_t operator()(const KeyNumbers& numbers) const {
    std::uint64_t hash = 0;
    for (const std::uint64_t number : numbers) hash = (hash ^ number) * 0x9e3779b97f4a7c15u + (hash >> 29);
    return hash ^ hash >> 32;
  }
};

/// Whether accesses satisfy a filter.
class Condition {
 public:
  explicit Condition(const Filter& filter) : filter_(filter), calls_(trace::call_limit, filter.calls.empty()) {
    for (const trace::Call call : filter.calls) calls_[static_cast<std::uint16_t>(call)] = true;
    for (std::uint16_t number = 0; number < trace::call_limit; ++number) {
      const auto call = static_cast<trace::Call>(number);
      if (trace::name_of(call).empty()) continue;
      if (call == trace::Call::inherited && filter.calls.empty()) calls_[number] = false;  // no call: names a file
      const Moves moves = trace::moves_of(call);
      if ((filter.layer && trace::layer_of(call) != *filter.layer) || (filter.only_moving && moves == Moves::nothing) ||
          (filter.moves != Moves::nothing && moves != filter.moves))
        calls_[number] = false;
    }
  }

  [[nodiscard]] bool operator()(const Access& access) {
    return calls_[static_cast<std::uint16_t>(access.call)] && access.start_ns >= filter_.from_ns &&
           access.start_ns < filter_.to_ns && (filter_.min_bytes == 0 || moved_bytes(access) >= filter_.min_bytes) &&
           (filter_.max_bytes == UINT64_MAX || moved_bytes(access) <= filter_.max_bytes) &&
           (filter_.files.empty() || is_file(access.path));
  }

  [[nodiscard]] bool is_process(const Process& process) const {
    const auto has_rank = [&](const auto& range) {
      return process.rank && *process.rank >= range.first && *process.rank <= range.second;
    };
    return (filter_.ranks.empty() || std::ranges::any_of(filter_.ranks, has_rank)) &&
           (filter_.nodes.empty() || std::ranges::find(filter_.nodes, process.host) != filter_.nodes.end()) &&
           (filter_.pids.empty() || std::ranges::find(filter_.pids, process.pid) != filter_.pids.end());
  }

  /// Blocks without one of these calls (bit: number % 64) have none that counts.
  [[nodiscard]] std::uint64_t call_set() const {
    std::uint64_t set = 0;
    for (unsigned number = 0; number < trace::call_limit; ++number)
      if (calls_[number]) set |= std::uint64_t{1} << number % 64;
    return set;
  }

 private:
  bool is_file(std::string_view path) {
    const auto [known, is_new] = files_.try_emplace(path.data(), false);
    if (is_new) known->second = trace::matches_file(filter_.files, path);
    return known->second;
  }

  const Filter& filter_;
  std::vector<bool> calls_;
  std::unordered_map<const char*, bool> files_;
};

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

class Run {
 public:
  Run(std::span<const Trace> traces, const Query& query)
      : query_(query), condition_(query.filter), greatest_(query.list) {
    for (const Key key : query.by) has_key_[static_cast<std::size_t>(key)] = true;
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
    if (query_.divides_calls && has(Key::window))
      for (Row& row : answer_.rows) {
        row.first_ns = row.window_ns;
        row.last_ns = row.window_ns + query_.window_ns;
      }
    std::vector<std::pair<SortKey, std::size_t>> order;
    for (std::size_t n = 0; n < answer_.rows.size(); ++n) order.emplace_back(sort_key(answer_.rows[n]), n);
    std::ranges::sort(order);
    std::vector<Row> rows;
    rows.reserve(order.size());
    for (const auto& [key, n] : order) rows.push_back(std::move(answer_.rows[n]));
    answer_.rows = std::move(rows);
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
      KeyNumbers numbers = numbers_of(access);
      frame.counts = true;
      frame.group = group_of(numbers);
      const bool is_outermost = std::ranges::none_of(
          thread, [&](const Frame& above) { return above.group == frame.group && has_ended(above.access); });
      if (has(Key::window)) numbers[window_place] = static_cast<std::uint64_t>(access.start_ns / query_.window_ns);
      auto row = row_of(numbers, access);
      if (!row) return pass_on(row.error());
      frame.row = *row;
      count(answer_.rows[*row], access, frame.group);
      if (has_ended(access)) {
        counted_until_ = std::max(counted_until_, access.end_ns);
        // All layers move the same bytes: those that reach the file system count.
        const bool moves = mixes_layers() ? trace::layer_of(access.call) == trace::Layer::posix : is_outermost;
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
    if (row.process->host != access.process->host) answer_.compares_clocks = true;
    if (query_.has_order) add_order(row, access, group);
    if (!has_ended(access)) {
      ++row.unfinished;
      return;
    }
    if (access.result < 0) ++row.failed;
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
        value = static_cast<std::uint64_t>(static_cast<double>(bytes) * 1e9 / static_cast<double>(duration_ns));
        break;
    }
    row.values.add(value);
    greatest_.add({access, own_ns, value});
  }

  /// All calls below are known.
  void leave(const Frame& frame) {
    if (!frame.counts || !query_.has_own_time || !has_ended(frame.access)) return;
    Row& row = answer_.rows[frame.row];
    const std::int64_t own_ns = frame.access.end_ns - frame.access.start_ns - frame.below_ns;
    row.own_ns += own_ns;
    add_value(row, frame.access, own_ns);
  }

  void add_order(Row& row, const Access& access, std::uint64_t group) {
    const Moves moves = trace::moves_of(access.call);
    if (moves == Moves::nothing || (has_ended(access) && access.result < 0)) return;
    if (access.offset < 0) {
      ++row.order.unknown;
      return;
    }
    const KeyNumbers stream{group, reinterpret_cast<std::uintptr_t>(access.process), files_.of(access.path),
                            access.path.empty() ? access.file : 0, static_cast<std::uint64_t>(moves)};
    const auto [latest, is_first] = stream_ends_.try_emplace(stream, 0);
    const std::uint64_t offset = static_cast<std::uint64_t>(access.offset);
    std::uint64_t& kind = is_first                   ? row.order.first
                          : offset == latest->second ? row.order.consecutive
                          : offset > latest->second  ? row.order.forward
                                                     : row.order.backward;
    ++kind;
    latest->second = offset + moved_bytes(access);
  }

  /// Whether a row may have calls of several layers.
  [[nodiscard]] bool mixes_layers() const {
    return !query_.filter.layer && !has(Key::layer) && !has(Key::call) && query_.filter.calls.size() != 1;
  }

  /// Adds bytes, and unless another call of its group has caused it the time, of a call that has ended.
  Result<void> add_interval(KeyNumbers& numbers, std::uint32_t row, const Access& access, bool is_timed,
                            std::uint64_t bytes) {
    if (!query_.divides_calls || !has(Key::window)) {
      add_piece(answer_.rows[row], access, access.start_ns, access.end_ns, bytes, is_timed);
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
      const auto into = row_of(numbers, access);
      if (!into) return pass_on(into.error());
      // The last window may end beyond the range of time.
      const bool is_last = (access.end_ns - 1) / query_.window_ns <= window;
      const std::int64_t to = is_last ? access.end_ns : (window + 1) * query_.window_ns;
      add_piece(answer_.rows[*into], access, from, to,
                bytes_until(to) - (from == access.start_ns ? 0 : bytes_until(from)), is_timed);
      if (to == access.end_ns) return {};
      from = to;
    }
  }

  static void add_piece(Row& row, const Access& access, std::int64_t from, std::int64_t to, std::uint64_t bytes,
                        bool is_timed) {
    (trace::moves_of(access.call) == Moves::reads ? row.read_bytes : row.written_bytes) += bytes;
    if (!is_timed) return;
    row.time_ns += to - from;
    row.first_ns = std::min(row.first_ns, from);
    row.last_ns = std::max(row.last_ns, to);
    row.in_flight.add(from, to);
  }

  [[nodiscard]] bool has(Key key) const { return has_key_[static_cast<std::size_t>(key)]; }

  /// Without the window.
  KeyNumbers numbers_of(const Access& access) {
    KeyNumbers numbers{};
    const auto set = [&](Key key, auto number) {
      if (has(key)) numbers[static_cast<std::size_t>(key)] = number();
    };
    set(Key::layer, [&] { return static_cast<std::uint64_t>(trace::layer_of(access.call)); });
    set(Key::call, [&] { return static_cast<std::uint64_t>(access.call); });
    set(Key::rank, [&] { return access.process->rank ? static_cast<std::uint64_t>(*access.process->rank) + 1 : 0; });
    set(Key::file, [&] { return access.path.empty() ? 0 : files_.of(access.path); });
    set(Key::node, [&] { return nodes_.of(access.process->host); });
    set(Key::process, [&] { return reinterpret_cast<std::uintptr_t>(access.process); });
    if (has(Key::thread)) {
      numbers[static_cast<std::size_t>(Key::process)] = reinterpret_cast<std::uintptr_t>(access.process);
      numbers[static_cast<std::size_t>(Key::thread)] = static_cast<std::uint32_t>(access.tid);
    }
    return numbers;
  }

  /// From 1.
  std::uint64_t group_of(const KeyNumbers& numbers) {
    if (latest_group_ != 0 && numbers == latest_group_numbers_) return latest_group_;
    latest_group_numbers_ = numbers;
    return latest_group_ = groups_.try_emplace(numbers, groups_.size() + 1).first->second;
  }

  Result<std::uint32_t> row_of(const KeyNumbers& numbers, const Access& access) {
    if (!answer_.rows.empty() && numbers == latest_row_numbers_) return latest_row_;
    const auto [known, is_new] = rows_.try_emplace(numbers, static_cast<std::uint32_t>(answer_.rows.size()));
    if (is_new) {
      if (answer_.rows.size() == max_rows)
        return fail(ErrorKind::usage, "the answer has more than {} rows; select fewer calls, or a longer window",
                    max_rows);
      answer_.rows.push_back({.layer = trace::layer_of(access.call),
                              .call = access.call,
                              .process = access.process,
                              .rank = access.process->rank,
                              .tid = access.tid,
                              .file = access.path,
                              .window_ns = static_cast<std::int64_t>(numbers[window_place]) * query_.window_ns});
    }
    latest_row_numbers_ = numbers;
    return latest_row_ = known->second;
  }

  /// Orders rows by the keys of the query, as it names them.
  using SortKey = std::vector<std::tuple<std::int64_t, std::string_view>>;
  [[nodiscard]] SortKey sort_key(const Row& row) const {
    SortKey parts;
    const auto add = [&](std::int64_t number, std::string_view text = {}) { parts.emplace_back(number, text); };
    for (const Key key : query_.by) switch (key) {
        case Key::layer: add(static_cast<std::int64_t>(row.layer)); break;
        case Key::call: add(static_cast<std::int64_t>(row.layer), trace::name_of(row.call)); break;
        case Key::rank: add(row.rank.value_or(INT64_MAX)); break;
        case Key::file: add(0, row.file); break;
        case Key::node: add(0, row.process->host); break;
        case Key::thread:
        case Key::process:
          add(row.rank.value_or(INT64_MAX), row.process->host);
          add(row.process->pid);
          add(static_cast<std::int64_t>(row.process->key >> 1));
          if (key == Key::thread) add(row.tid);
          break;
        case Key::window: add(row.window_ns); break;
      }
    return parts;
  }

  static constexpr auto window_place = static_cast<std::size_t>(Key::window);

  const Query& query_;
  Condition condition_;
  Greatest greatest_;
  trace::Selection selection_;
  std::array<bool, std::size(key_names)> has_key_{};
  std::vector<std::size_t> first_part_;      ///< of each trace: the number of its first thread
  std::vector<std::vector<Frame>> threads_;  ///< of each part: the calls that have begun, the innermost one last
  std::int64_t counted_until_ = INT64_MIN;   ///< the latest end of calls that count
  TextNumbers files_, nodes_;
  std::unordered_map<KeyNumbers, std::uint64_t, HashKeys> groups_;
  std::unordered_map<KeyNumbers, std::uint32_t, HashKeys> rows_;
  KeyNumbers latest_group_numbers_{}, latest_row_numbers_{};
  std::uint64_t latest_group_ = 0;
  std::uint32_t latest_row_ = no_row;
  std::unordered_map<KeyNumbers, std::uint64_t, HashKeys> stream_ends_;
  Answer answer_;
};

}  // namespace

Result<Answer> answer(std::span<const Trace> traces, const Query& query) {
  if (auto distinct = check_distinct(traces); !distinct) return pass_on(distinct.error());
  return Run(traces, query).answer(traces);
}

}  // namespace iosig::observe
