#include "iosig/trace/import/recorder.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "iosig/base/text.h"
#include "iosig/trace/import/recorder_calls.h"
#include "iosig/trace/import/recorder_log.h"

namespace iosig::trace {
namespace {

constexpr int max_failed = 16;
constexpr double max_run_seconds = 4e9;
constexpr std::uint32_t least_backward = 0xf0000000;  ///< ticks from here on are a step back: another thread's call

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// Reads "8192", or "4096*r+512": 4096 times the rank, and 512.
std::optional<std::int64_t> offset_in(std::string_view text, std::int32_t rank) {
  const std::size_t of_rank = text.find("*r+");
  if (of_rank == std::string_view::npos) return number_in(text);
  const auto step = number_in(text.substr(0, of_rank)), first = number_in(text.substr(of_rank + 3));
  std::int64_t offset = 0;
  if (!step || !first || __builtin_mul_overflow(*step, std::int64_t{rank}, &offset) ||
      __builtin_add_overflow(offset, *first, &offset))
    return std::nullopt;
  return offset;
}

/// How many calls each rule stands for; nothing: a rule is missing, contains itself, or the number is too large.
class RuleSizes {
 public:
  explicit RuleSizes(const RecorderGrammar& grammar) : grammar_(grammar) {}

  std::optional<std::uint64_t> of(std::int32_t rule, std::size_t depth = 0) {
    constexpr std::size_t max_depth = 4096;  // a grammar of n calls has rules some log2(n) deep
    if (const auto known = sizes_.find(rule); known != sizes_.end()) return known->second;
    const auto symbols = grammar_.rules.find(rule);
    if (symbols == grammar_.rules.end() || depth > max_depth) return std::nullopt;
    std::uint64_t size = 0;
    for (const auto& [symbol, times] : symbols->second) {
      std::uint64_t each = 1;
      if (symbol < 0) {
        const auto of_rule = symbol == rule ? std::nullopt : of(symbol, depth + 1);
        if (!of_rule) return std::nullopt;
        each = *of_rule;
      }
      if (__builtin_mul_overflow(each, static_cast<std::uint64_t>(times), &each) ||
          __builtin_add_overflow(size, each, &size))
        return std::nullopt;
    }
    return sizes_.emplace(rule, size).first->second;
  }

 private:
  const RecorderGrammar& grammar_;
  std::unordered_map<std::int32_t, std::uint64_t> sizes_;
};

class RecorderImport {
 public:
  RecorderImport(RecorderLog& log, TraceWriter& writer, ImportNotes& notes)
      : log_(log), writer_(writer), notes_(notes) {}

  Result<void> run() {
    int failed = 0;  // one after another
    for (rank_ = 0; rank_ < log_.ranks(); ++rank_) {
      auto done = read_rank();
      if (!done && (rank_ == 0 || done.error().kind != ErrorKind::bad_input)) return done;
      failed = done ? 0 : failed + 1;
      if (!done && failed < max_failed) remark("{}; calls of rank {} are missing", done.error().message, rank_);
      if (failed == max_failed) {
        remark("{}; calls of the {} ranks from there on are missing", done.error().message, log_.ranks() - rank_);
        break;
      }
    }
    if (log_.ranks() > 1)
      remark(
          "Recorder keeps when rank 0 began alone: the times of other ranks count from their own begin, and differ "
          "from those of rank 0 by what their starts differed");
    if (assumed_ > 0)
      remark(
          "Recorder keeps no results: {} reads and writes count as having moved what they asked for, other calls as "
          "done",
          assumed_);
    if (derived_ > 0)
      remark("the offsets of {} calls follow from the sizes that the calls before them asked for", derived_);
    if (unsized_ > 0)
      remark("{} calls of MPI-IO are of types whose size is not known: their bytes are missing", unsized_);
    if (log_.has_relative_offsets()) remark("offsets are missing: Recorder kept differences alone");
    return {};
  }

 private:
  struct Thread {
    TraceWriter::ThreadNumber number = 0;
    std::uint64_t calls = 0;
    struct Above {
      std::uint64_t id, start, end;
    };
    std::vector<Above> above;  ///< by depth
  };
  struct OpenPath {
    std::uint32_t number = 0;
    int opens = 0;
    std::int64_t position = no_offset;
  };

  template <class... Args>
  void remark(fmt::format_string<Args...> text, Args&&... args) {
    notes_.remark(fmt::format("{}: {}", log_.shown(), fmt::format(text, std::forward<Args>(args)...)));
  }

  Result<void> read_rank() {
    if (rank_ == 0 || !log_.has_shared_signatures()) {
      auto signatures = log_.signatures(rank_);
      if (!signatures) return pass_on(signatures.error());
      signatures_ = std::move(*signatures);
      functions_.clear();
      for (const RecorderSignature& each : signatures_)
        functions_.push_back(recorder_function(log_.function(each.function)));
    }
    const auto grammar = log_.grammar(rank_);
    if (!grammar) return pass_on(grammar.error());
    std::string damage;
    const auto times = log_.times(rank_, damage);
    if (!times) return pass_on(times.error());
    RuleSizes sizes(*grammar);
    const auto count = sizes.of(first_rule);
    if (!count)
      return fail(ErrorKind::bad_input, "{}: the grammar of rank {} misses a rule, or a rule contains itself",
                  log_.shown(), rank_);
    threads_.clear(), files_.clear(), mpi_paths_.clear();
    now_ticks_ = 0;
    times_ = *times;
    next_ = 0;
    process_.reset();
    if (auto done = expand(*grammar, sizes, first_rule); !done) return done;
    if (next_ < *count)
      remark("{} of {} calls of rank {} have no times, and are missing{}{}", *count - next_, *count, rank_,
             damage.empty() ? "" : ": ", damage);
    return {};
  }

  /// Takes the calls of a rule, while there are times. Rules without calls cost nothing.
  Result<void> expand(const RecorderGrammar& grammar, RuleSizes& sizes, std::int32_t rule) {
    for (const auto& [symbol, times] : grammar.rules.at(rule)) {
      if (symbol < 0 && sizes.of(symbol).value_or(0) == 0) continue;
      for (std::int32_t time = 0; time < times && next_ < times_.size(); ++time) {
        auto done = symbol < 0 ? expand(grammar, sizes, symbol) : take(symbol);
        if (!done) return done;
      }
    }
    return {};
  }

  Result<void> take(std::int32_t symbol) {
    const RecorderTimes each = times_[next_++];
    now_ticks_ += each.start >= least_backward ? static_cast<std::int64_t>(each.start) - (std::int64_t{1} << 32)
                                               : static_cast<std::int64_t>(each.start);
    // Both ticks count from the start of the call before; a duration of less than 2^32 ticks is exact.
    const std::uint32_t duration = each.end - each.start;
    if (static_cast<std::size_t>(symbol) >= signatures_.size() ||
        signatures_[static_cast<std::size_t>(symbol)].function < 0) {
      notes_.leave_out("without a signature");
      return {};
    }
    const RecorderSignature& signature = signatures_[static_cast<std::size_t>(symbol)];
    const RecorderFunction* const function = functions_[static_cast<std::size_t>(symbol)];
    const double last_s = static_cast<double>(now_ticks_ + duration) * log_.tick_s();
    if (last_s > max_run_seconds || last_s < -max_run_seconds) {
      notes_.leave_out("with times that cannot be");
      return {};
    }
    if (function == nullptr) {
      notes_.leave_out("that are no calls on files, or that IOSIG does not know");
      return {};
    }
    Slot slot{};
    slot.call = function->call;
    slot.start = time_of(now_ticks_), slot.end = time_of(now_ticks_ + duration);
    slot.fd = -1;
    return add(signature, *function, slot);
  }

  Result<void> add(const RecorderSignature& signature, const RecorderFunction& function, Slot& slot) {
    const auto argument = [&](int number) {
      return number < 0 || static_cast<std::size_t>(number) >= signature.arguments.size()
                 ? std::string_view()
                 : std::string_view(signature.arguments[static_cast<std::size_t>(number)]);
    };
    std::string_view path = argument(function.path);
    if (layer_of(function.call) == Layer::mpi_io) {
      if (function.file >= 0)
        mpi_paths_[std::string(argument(function.file))] = path;
      else if (const auto known = mpi_paths_.find(std::string(path)); known != mpi_paths_.end())
        path = known->second;
      else
        path = {};
    }
    if (path == "???") path = {};
    slot.length = no_length;
    if (function.size >= 0) slot.length = number_in(argument(function.size)).value_or(no_length);
    if (slot.call == Call::fopen) slot.length = flags_of_mode(argument(function.size));
    if (function.name.starts_with("creat")) slot.length = O_CREAT | O_WRONLY | O_TRUNC;
    if (slot.length != no_length && slot.length < 0 && moves_of(slot.call) != Moves::nothing) {
      notes_.leave_out("with a size that cannot be");
      return {};
    }
    if (function.factor >= 0 && slot.length != no_length) {
      const std::string_view by = argument(function.factor);
      const auto factor = layer_of(slot.call) == Layer::mpi_io ? bytes_of_mpi_type(by) : number_in(by);
      if (!factor) ++unsized_;
      if (!factor || *factor < 0 || __builtin_mul_overflow(slot.length, *factor, &slot.length)) slot.length = no_length;
    }
    slot.offset = no_offset;
    if (function.offset >= 0 && !log_.has_relative_offsets())
      slot.offset = offset_in(argument(function.offset), rank_).value_or(no_offset);
    if (moves_of(slot.call) != Moves::nothing) {
      ++assumed_;
      slot.result = slot.length == no_length ? 0 : slot.length;
      if (slot.offset != no_offset && slot.result > INT64_MAX - std::max<std::int64_t>(slot.offset, 0)) {
        notes_.leave_out("with a size that cannot be");
        return {};
      }
    }
    set_file(slot, path);
    Thread& thread = thread_of(signature.tid);
    ++thread.calls;
    set_parent(thread, signature.depth, slot);
    const std::string_view second = has_second_path(slot.call) ? argument(function.second) : std::string_view();
    return writer_.add(thread.number, slot, path, second);
  }

  /// Numbers the open file and derives the offset.
  void set_file(Slot& slot, std::string_view path) {
    const bool is_open = call_kind_of(slot.call) == CallKind::open;
    const std::string key = fmt::format("{} {}", static_cast<int>(layer_of(slot.call)), path);
    const auto known = is_open ? files_.try_emplace(key).first : files_.find(key);
    if (known == files_.end()) return;
    OpenPath& file = known->second;
    if (is_open) {
      file.number = ++last_file_;
      const bool appends = slot.length != no_length && (slot.length & O_APPEND) != 0;
      file.position = ++file.opens == 1 && !appends && slot.call == Call::open ? 0 : no_offset;
    }
    slot.file = file.number;
    if (call_kind_of(slot.call) == CallKind::close) {
      if (--file.opens <= 0) files_.erase(known);
      return;
    }
    if (slot.call == Call::lseek) {
      const bool is_known = slot.length == SEEK_SET || (slot.length == SEEK_CUR && file.position != no_offset);
      std::int64_t position = slot.length == SEEK_CUR ? file.position : 0;
      if (!is_known || file.opens != 1 || slot.offset == no_offset ||
          __builtin_add_overflow(position, slot.offset, &position) || position < 0)
        position = no_offset;
      file.position = position;
      slot.result = std::max<std::int64_t>(position, 0);
      return;
    }
    const bool is_sequential = call_manner_of(slot.call) == CallManner::at_file_offset;
    if (!is_sequential || file.opens != 1 || file.position == no_offset) return;
    ++derived_;
    slot.offset = file.position;
    slot.flags = derived_offset;
    file.position = slot.result > INT64_MAX - file.position ? no_offset : file.position + slot.result;
  }

  Thread& thread_of(std::uint64_t tid) {
    if (!process_) {
      process_ = writer_.add_process("unknown", 0);
      if (log_.ranks() > 1) {
        writer_.add_fact(*process_, "rank", std::to_string(rank_));
        writer_.add_fact(*process_, "size", std::to_string(log_.ranks()));
      }
    }
    const auto [known, is_new] = threads_.try_emplace(tid);
    if (is_new) known->second.number = writer_.add_thread(*process_, static_cast<std::int32_t>(tid & INT32_MAX));
    return known->second;
  }

  /// Nanoseconds since 1970.
  [[nodiscard]] std::uint64_t time_of(std::int64_t ticks) const {
    const double started_ns = log_.started_s() * 1e9;
    return static_cast<std::uint64_t>(std::max<std::int64_t>(
        std::llround(started_ns) + std::llround(static_cast<double>(ticks) * log_.tick_s() * 1e9), 1));
  }

  /// The call above has a smaller depth, and lasts as long: without numbers of threads, it may be another thread's.
  void set_parent(Thread& thread, unsigned depth, Slot& slot) {
    auto& above = thread.above;
    const auto tick_ns = static_cast<std::uint64_t>(log_.tick_s() * 1e9) + 1;
    while (!above.empty() && (above.size() > depth || above.back().end + 2 * tick_ns < slot.end)) above.pop_back();
    if (!above.empty() && above.back().start <= slot.start && thread.calls - above.back().id < UINT32_MAX / 2)
      slot.parent = static_cast<std::uint32_t>(above.back().id);
    above.push_back({thread.calls, slot.start, slot.end});
  }

  static constexpr std::int32_t first_rule = -1;

  RecorderLog& log_;
  TraceWriter& writer_;
  ImportNotes& notes_;
  std::uint64_t assumed_ = 0, derived_ = 0, unsized_ = 0;
  std::uint32_t last_file_ = 0;

  // Of the rank that is being read.
  std::int32_t rank_ = 0;
  std::vector<RecorderSignature> signatures_;
  std::vector<const RecorderFunction*> functions_;  ///< of signatures_
  std::vector<RecorderTimes> times_;
  std::size_t next_ = 0;        ///< of times_
  std::int64_t now_ticks_ = 0;  ///< the start of the call before, since the rank's begin
  std::optional<TraceWriter::ProcessNumber> process_;
  std::map<std::uint64_t, Thread> threads_;
  std::unordered_map<std::string, OpenPath> files_;
  std::unordered_map<std::string, std::string> mpi_paths_;  ///< by the file's id
};

}  // namespace

Result<void> import_recorder(const std::string& path, TraceWriter& writer, ImportNotes& notes) {
  auto log = RecorderLog::open(path);
  if (!log) return pass_on(log.error());
  return RecorderImport(*log, writer, notes).run();
}

}  // namespace iosig::trace
