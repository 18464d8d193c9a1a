#include "cmd_replay_trace.h"

#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "interruption.h"
#include "iosig/base/room.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/replay/trace_replay.h"
#include "iosig/replay/worker_group.h"
#include "trace_source.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* trace_replay_schema = "iosig.replay.trace/1";
constexpr std::size_t shown_rows = 20;
constexpr double shows_progress_after_s = 1;

Result<ThinkTime> think_time(const TraceReplayArguments& options) {
  ThinkTime think;
  if (options.no_think) think.scale = 0;
  if (!options.think.empty()) {
    const char* const begin = options.think.c_str();
    char* end = nullptr;
    think.scale = std::strtod(begin, &end);
    if (end == begin || *end != '\0' || !(think.scale >= 0 && think.scale <= 1e6))
      return fail(ErrorKind::usage, "--think: '{}': expected a factor from 0 to 1000000, as 0.5",
                  printable(options.think));
  }
  if (!options.compute.empty()) {
    const auto seconds = parse_seconds(options.compute);
    if (!seconds) return fail(ErrorKind::usage, "--compute: {}", seconds.error().message);
    if (*seconds > 86400) return fail(ErrorKind::usage, "--compute: '{}': at most 24h", printable(options.compute));
    think.fixed_ns = static_cast<std::int64_t>(1e9 * *seconds);
  }
  return think;
}

double sum_s(const Distribution& ns) { return 1e-9 * ns.mean() * static_cast<double>(ns.count()); }

std::string count_text(std::uint64_t count, std::string_view noun, std::string_view plural_ending = "s") {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : plural_ending);
}

// ---- the plan -------------------------------------------------------------------------------------------------------

ordered_json json_of(const TracePlan& plan) {
  ordered_json files = ordered_json::array();
  for (const PlannedPath& path : plan.paths)
    if (!path.name.empty() && !path.is_directory)
      files.push_back({{"path", printable(path.path)},
                       {"name", printable(path.name)},
                       {"initial_bytes", path.initial_size < 0 ? ordered_json() : ordered_json(path.initial_size)}});
  ordered_json left_out = ordered_json::object();
  for (const auto& [call, count] : plan.left_out) left_out[call] = count;
  return {{"layer", trace::layer_names[static_cast<std::size_t>(plan.layer)]},
          {"directory", printable(plan.common)},
          {"processes", plan.workers},
          {"operations", plan.performed},
          {"read_bytes", plan.read_bytes},
          {"written_bytes", plan.written_bytes},
          {"initial_files", plan.initial_files},
          {"initial_bytes", plan.initial_bytes},
          {"room_bytes", plan.room_bytes},
          {"original_s", plan.original_s},
          {"think_s", plan.think_s},
          {"expected_s", plan.expected_s},
          {"barriers", plan.barriers.size()},
          {"mapped", plan.mapped},
          {"asynchronous", plan.asynchronous},
          {"failed", plan.failed},
          {"left_out", std::move(left_out)},
          {"left_out_files", plan.left_out_files},
          {"files", std::move(files)}};
}

std::string text_of(const TracePlan& plan) {
  const std::size_t barriers = plan.barriers.size();
  return fmt::format("{} on {} below '{}' by {}{}: {} read, {} written\n{} made beforehand, {}; {} of room needed",
                     count_text(plan.performed, "operation"), count_text(plan.files, "file"), printable(plan.common),
                     count_text(plan.workers, "process", "es"),
                     barriers > 0 ? fmt::format(" with {}", count_text(barriers, "barrier")) : "",
                     about_bytes(static_cast<double>(plan.read_bytes)),
                     about_bytes(static_cast<double>(plan.written_bytes)), count_text(plan.initial_files, "file"),
                     about_bytes(static_cast<double>(plan.initial_bytes)),
                     about_bytes(static_cast<double>(plan.room_bytes)));
}

/// Says what a replay cannot repeat.
void note_replay_limits(const TracePlan& plan, const Console& console) {
  if (plan.mapped > 0)
    console.note(fmt::format("{} mapped: loads and stores in mapped files are not in the trace, and not replayed",
                             count_text(plan.mapped, "range")));
  if (plan.asynchronous > 0)
    console.note(
        fmt::format("{}: replayed one after the other", count_text(plan.asynchronous, "asynchronous operation")));
  if (plan.unnamed > 0)
    console.note(fmt::format("left out: {} of files without a name", count_text(plan.unnamed, "access", "es")));
  if (plan.left_out_files > 0)
    console.note(fmt::format("left out: {} of the system, or not selected; --all has those of the system",
                             count_text(plan.left_out_files, "path")));
  if (plan.lacks_waits)
    console.note("streams depend on each other too often: the order between them is kept for the first part alone");
}

// ---- the target -----------------------------------------------------------------------------------------------------

Result<void> check_room(const TracePlan& plan, const std::string& onto) {
  std::string existing(without_trailing_slashes(onto));
  struct stat at {};
  while (::stat(existing.c_str(), &at) != 0) {
    const std::size_t slash = existing.rfind('/');
    existing = slash == std::string::npos ? "." : slash == 0 ? "/" : existing.substr(0, slash);
    if (existing == "." || existing == "/") break;
  }
  const auto room = room_at(existing);
  if (!room) return pass_on(room.error());
  if (room->bytes >= static_cast<std::uint64_t>(plan.room_bytes)) return {};
  return fail(ErrorKind::infeasible, "'{}' has room for {}, and the replay needs {}; --files selects fewer files",
              printable(existing), about_bytes(static_cast<double>(room->bytes)),
              about_bytes(static_cast<double>(plan.room_bytes)));
}

std::string prepared_mark(const TracePlan& plan, const TraceReplayArguments& options) {
  return fmt::format("iosig.replay.prepared/1 {:016x} {}\n", plan.identity, options.verify ? "marked" : "plain");
}

/// **Deletes** what the replay made in the target, unless kept.
class TargetCleaner {
 public:
  TargetCleaner(TargetTree& tree, const TracePlan& plan, const Console& console)
      : tree_(tree), plan_(plan), console_(console) {}
  TargetCleaner(const TargetCleaner&) = delete;
  TargetCleaner& operator=(const TargetCleaner&) = delete;
  void keep() { is_kept_ = true; }
  ~TargetCleaner() {
    if (is_kept_) return;
    std::vector<std::string> files;
    for (const PlannedPath& path : plan_.paths)
      if (!path.name.empty() && !path.is_directory) files.push_back(path.name);
    if (!tree_.remove_all(files, plan_.directories))
      console_.note(
          fmt::format("'{}' has something that another program put there; it stays", printable(tree_.path())));
  }

 private:
  TargetTree& tree_;
  const TracePlan& plan_;
  const Console& console_;
  bool is_kept_ = false;
};

// ---- results --------------------------------------------------------------------------------------------------------

/// The times of one side of a stream.
ordered_json json_of(const Distribution& ns, std::int64_t bytes) {
  const double total_s = sum_s(ns);
  return {{"count", ns.count()},
          {"bytes", bytes},
          {"total_s", total_s},
          {"median_s", 1e-9 * ns.percentile(50)},
          {"p99_s", 1e-9 * ns.percentile(99)},
          {"bytes_per_s", total_s > 0 && bytes > 0 ? ordered_json(static_cast<double>(bytes) / total_s) : nullptr}};
}

ordered_json ratio_of(const StreamMetrics& stream) {
  const double original_s = sum_s(stream.original_ns), replayed_s = sum_s(stream.replayed_ns);
  return original_s > 0 && replayed_s > 0 ? ordered_json(original_s / replayed_s) : nullptr;
}

void merge(const Distribution& from, Distribution& into) {
  std::string bytes;
  from.append_to(bytes);
  std::string_view left = bytes;
  (void)into.merge(left);
}

/// The operations of each kind on all files; kinds of which there are none are left out.
std::vector<StreamMetrics> totals_of(const TraceReplayMetrics& metrics) {
  std::vector<StreamMetrics> totals(stream_kinds);
  for (const StreamMetrics& each : metrics.streams) {
    StreamMetrics& total = totals[static_cast<std::size_t>(each.kind)];
    total.kind = each.kind;
    total.original_bytes += each.original_bytes, total.replayed_bytes += each.replayed_bytes;
    merge(each.original_ns, total.original_ns), merge(each.replayed_ns, total.replayed_ns);
  }
  std::erase_if(totals, [](const StreamMetrics& each) { return each.replayed_ns.count() == 0; });
  return totals;
}

ordered_json json_of(const TraceReplayMetrics& metrics, const TracePlan& plan) {
  ordered_json streams = ordered_json::array();
  for (const StreamMetrics& stream : metrics.streams)
    streams.push_back({{"path", printable(plan.paths[stream.path].path)},
                       {"name", printable(plan.paths[stream.path].name)},
                       {"kind", stream_kind_names[static_cast<std::size_t>(stream.kind)]},
                       {"original", json_of(stream.original_ns, stream.original_bytes)},
                       {"replayed", json_of(stream.replayed_ns, stream.replayed_bytes)},
                       {"ratio", ratio_of(stream)}});
  ordered_json totals = ordered_json::array();
  for (const StreamMetrics& total : totals_of(metrics))
    totals.push_back({{"kind", stream_kind_names[static_cast<std::size_t>(total.kind)]},
                      {"original", json_of(total.original_ns, total.original_bytes)},
                      {"replayed", json_of(total.replayed_ns, total.replayed_bytes)},
                      {"ratio", ratio_of(total)}});
  return {{"elapsed_s", metrics.elapsed_s},
          {"original_elapsed_s", plan.original_s},
          {"io_s", metrics.io_s},
          {"original_io_s", metrics.original_io_s},
          {"think_s", metrics.think_s},
          {"waited_s", metrics.waited_s},
          {"delay",
           {{"median_s", 1e-9 * metrics.delay_ns.percentile(50)},
            {"p99_s", 1e-9 * metrics.delay_ns.percentile(99)},
            {"max_s", 1e-9 * static_cast<double>(metrics.delay_ns.greatest())}}},
          {"operations", metrics.performed},
          {"failed", metrics.failed},
          {"short_reads", metrics.short_reads},
          {"made_at_need", metrics.made_at_need},
          {"streams", std::move(streams)},
          {"totals", std::move(totals)}};
}

std::string time_cell(const Distribution& ns, double percent) {
  return ns.count() == 0 ? "-" : about_seconds(1e-9 * ns.percentile(percent));
}

std::string rate_cell(const Distribution& ns, std::int64_t bytes) {
  const double total_s = sum_s(ns);
  return total_s > 0 && bytes > 0 ? about_rate(static_cast<double>(bytes) / total_s) : "-";
}

void add_row(std::string name, const StreamMetrics& stream, Table& table) {
  const ordered_json ratio = ratio_of(stream);
  table.add({std::move(name), std::string(stream_kind_names[static_cast<std::size_t>(stream.kind)]),
             fmt::format("{}", stream.replayed_ns.count()), time_cell(stream.original_ns, 50),
             time_cell(stream.replayed_ns, 50), time_cell(stream.original_ns, 99), time_cell(stream.replayed_ns, 99),
             rate_cell(stream.original_ns, stream.original_bytes), rate_cell(stream.replayed_ns, stream.replayed_bytes),
             ratio.is_null() ? "-" : fmt::format("{:.2f}", ratio.get<double>())});
}

Table stream_table(const TraceReplayMetrics& metrics, const TracePlan& plan) {
  Table table({"FILE", "KIND", "COUNT", "MEDIAN", "REPLAYED", "P99", "REPLAYED", "RATE", "REPLAYED", "RATIO"});
  for (std::size_t n = 0; n < std::min(shown_rows, metrics.streams.size()); ++n)
    add_row(printable(plan.paths[metrics.streams[n].path].name), metrics.streams[n], table);
  if (plan.files > 1)
    for (const StreamMetrics& total : totals_of(metrics)) add_row("all files", total, table);
  return table;
}

std::string text_of(const TraceReplayMetrics& metrics, const TracePlan& plan) {
  return fmt::format(
      "took {} (originally {}): {} in calls ({}), {} between them ({} asked for{})\n"
      "dispatched {} late (median), {} (99 %), {} at most",
      about_seconds(metrics.elapsed_s), about_seconds(plan.original_s), about_seconds(metrics.io_s),
      about_seconds(metrics.original_io_s), about_seconds(metrics.think_s), about_seconds(plan.think_s),
      metrics.waited_s < 0.0005 ? "" : fmt::format(", {} for other streams", about_seconds(metrics.waited_s)),
      about_seconds(1e-9 * metrics.delay_ns.percentile(50)), about_seconds(1e-9 * metrics.delay_ns.percentile(99)),
      about_seconds(1e-9 * static_cast<double>(metrics.delay_ns.greatest())));
}

std::string prefetch_words(const prefetch::Counts& counts) {
  const auto bytes = [](std::uint64_t number) { return about_bytes(static_cast<double>(number)); };
  return fmt::format("prefetched: {} in time, {} late, {} in vain; {} were in memory", bytes(counts.useful_bytes),
                     bytes(counts.late_bytes), bytes(counts.wasted_bytes), bytes(counts.cached_bytes));
}

void note_differences(const TraceReplayMetrics& metrics, const Console& console) {
  if (metrics.failed > 0)
    console.note(fmt::format("{} failed that succeeded in the trace; the first: {}",
                             count_text(metrics.failed, "operation"), metrics.first_failure));
  if (metrics.short_reads > 0)
    console.note(fmt::format("{} returned less than in the trace", count_text(metrics.short_reads, "read")));
  if (metrics.made_at_need > 0)
    console.note(fmt::format("made at first use, without an earlier operation that makes it: {}",
                             count_text(metrics.made_at_need, "path")));
}

// ---- running --------------------------------------------------------------------------------------------------------

class TraceReplay {
 public:
  TraceReplay(const TraceReplayArguments& options, const ThinkTime& think, const trace::Trace& trace,
              const TracePlan& plan, Console& console)
      : options_(options), think_(think), trace_(trace), plan_(plan), console_(console) {}

  Result<int> run() {
    document_ = {{"trace", printable(options_.directory)},
                 {"onto", options_.onto.empty() ? ordered_json() : ordered_json(printable(options_.onto))},
                 {"dry_run", options_.dry_run},
                 {"plan", json_of(plan_)}};
    say(text_of(plan_));
    int status = yes;
    if (options_.dry_run)
      say(fmt::format("at the original's speed it takes {}", about_seconds(plan_.expected_s)));
    else if (auto done = perform(status); !done)
      return pass_on(std::move(done.error()));
    if (console_.json) console_.say_json(trace_replay_schema, document_);
    return status;
  }

 private:
  Result<TargetTree> target(bool& is_prepared) {
    auto marked = TargetTree::open_marked(options_.onto, prepared_mark(plan_, options_), plan_.paths.size());
    if (!marked) return pass_on(std::move(marked.error()));
    is_prepared = marked->has_value();
    if (is_prepared) {
      for (const PlannedPath& path : plan_.paths)
        if (path.initial_size >= 0 && !path.name.empty() && !path.is_directory &&
            !(*marked)->adopt(path.name, path.initial_size)) {
          (void)(*marked)->save_mark(prepared_mark(plan_, options_));
          return fail(ErrorKind::usage, "'{}/{}' is not as --prepare-only made it; prepare another directory",
                      printable(options_.onto), printable(path.name));
        }
      return *std::move(*marked);
    }
    if (auto checked = check_room(plan_, options_.onto); !checked) return pass_on(std::move(checked.error()));
    return TargetTree::make(options_.onto, plan_.paths.size());
  }

  Result<void> perform(int& status) {
    bool is_prepared = false;
    auto tree = target(is_prepared);
    if (!tree) return pass_on(std::move(tree.error()));
    console_.talk(fmt::format("iosig: all files are made in '{}'", printable(options_.onto)));
    TargetCleaner cleaner(*tree, plan_, console_);
    if (!is_prepared) {
      auto made = prepare_trace_replay(plan_, *tree, options_.verify,
                                       watching("making files", static_cast<double>(plan_.initial_bytes)));
      console_.end_progress();
      if (!made) return made;
    }
    if (options_.prepare_only) {
      auto marked = tree->save_mark(prepared_mark(plan_, options_));
      if (marked) cleaner.keep();
      return marked;
    }
    if (options_.drop_caches)
      if (auto dropped = drop_cached_pages(plan_, *tree); !dropped) return dropped;
    auto done = replay(*tree, status);
    console_.end_progress();
    if (done && options_.keep) cleaner.keep();
    return done;
  }

  Result<void> replay(TargetTree& tree, int& status) {
    const auto prefetch = predictor_kind_of(options_.prefetch).value_or(PredictorKind::kernel);
    const auto metrics =
        replay_trace(trace_, plan_, tree, {.prefetch = prefetch, .think = think_, .is_marked = options_.verify},
                     watching("replaying", static_cast<double>(plan_.performed), "operations"));
    console_.end_progress();
    if (!metrics) return pass_on(metrics.error());
    document_["replay"] = json_of(*metrics, plan_);
    if (!console_.json) {
      console_.say(stream_table(*metrics, plan_));
      if (metrics->streams.size() > shown_rows)
        console_.note(fmt::format("{} more; --json has all", count_text(metrics->streams.size() - shown_rows, "row")));
    }
    say(text_of(*metrics, plan_));
    if (!options_.prefetch.empty()) {
      const prefetch::Counts& counts = metrics->prefetched;
      document_["prefetch"] = {{"predictor", options_.prefetch},      {"read_bytes", counts.read_bytes},
                               {"useful_bytes", counts.useful_bytes}, {"late_bytes", counts.late_bytes},
                               {"wasted_bytes", counts.wasted_bytes}, {"cached_bytes", counts.cached_bytes}};
      say(prefetch_words(counts));
    }
    note_differences(*metrics, console_);
    return options_.verify ? verify(tree, *metrics, status) : Result<void>{};
  }

  Result<void> verify(TargetTree& tree, const TraceReplayMetrics& metrics, int& status) {
    const auto found = check_trace_replay(plan_, tree, watching("checking", 0));
    if (!found) return pass_on(found.error());
    document_["check"] = {{"files", found->files},
                          {"unchecked_files", found->unchecked_files},
                          {"bytes", found->bytes},
                          {"wrong_sizes", found->wrong_sizes},
                          {"wrong_bytes", found->wrong.count},
                          {"wrong_bytes_read", metrics.wrong.count}};
    say(fmt::format("checked: {} with {}; wrong sizes: {}, wrong bytes: {}, wrong bytes in reads: {}",
                    count_text(found->files, "file"), about_bytes(static_cast<double>(found->bytes)),
                    found->wrong_sizes, found->wrong.count, metrics.wrong.count));
    if (found->unchecked_files > 0)
      console_.note(fmt::format("{} not checked: several streams appended, or too many ranges were written",
                                count_text(found->unchecked_files, "file")));
    if (!found->first_fault.empty()) console_.note(found->first_fault);
    if (metrics.wrong.count > 0)
      console_.note(fmt::format("'{}': the first wrong byte that was read is at {}", printable(metrics.wrong_file),
                                metrics.wrong.first));
    if (found->wrong_sizes > 0 || found->wrong.count > 0 || metrics.wrong.count > 0) status = no;
    return {};
  }

  void say(const std::string& text) const {
    if (!console_.json) console_.say(text);
  }

  ReplayWatch watching(const char* what, double all, std::string_view unit = {}) {
    return [=, this, begin = steady_s()](std::uint64_t done) {
      if (steady_s() - begin > shows_progress_after_s) console_.progress({what, static_cast<double>(done), all, unit});
      return interruption() == 0;
    };
  }

  const TraceReplayArguments& options_;
  const ThinkTime& think_;
  const trace::Trace& trace_;
  const TracePlan& plan_;
  Console& console_;
  ordered_json document_;
};

}  // namespace

int run_trace_replay(const TraceReplayArguments& options, Console& console) {
  const auto think = think_time(options);
  if (!think) return console.fail(think.error());
  if (options.onto.empty() && !options.dry_run)
    return console.fail({ErrorKind::usage, "--onto is required: a new directory for the trace's files"});
  const auto trace = trace::Trace::open(options.directory);
  if (!trace) return console.fail(trace.error());
  note_faults(*trace, console);
  TracePlanOptions planned{
      .files = options.files, .think = *think, .processes = options.processes, .keeps_owners = options.verify};
  if (!options.all) planned.is_wanted = [](std::string_view path) { return !is_of_system(path); };
  std::vector<Error> faults;
  const auto plan = plan_trace_replay(*trace, planned, faults);
  note_faults(faults, console);
  if (!plan) return console.fail(plan.error());
  note_replay_limits(*plan, console);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit of file sizes fails
  const NoticeSignals noticing;   // from here on an interruption must clean up
  const auto status = TraceReplay(options, *think, *trace, *plan, console).run();
  if (status) return *status;
  console.end_progress();
  const int failed = console.fail(status.error());
  return interruption() != 0 ? interrupted_status + interruption() : failed;
}

void add_trace_replay_options(Verb verb, TraceReplayArguments& options) {
  verb.add_option("--onto", options.onto, "of a trace: a new or empty directory in which its files are made")
      .type_name("DIR");
  const Option think =
      verb.add_option("--think", options.think, "multiply the trace's think time (1 unless given)").type_name("FACTOR");
  const Option no_think = verb.add_flag("--no-think", options.no_think, "start each access after the previous one");
  const Option compute =
      verb.add_option("--compute", options.compute, "a fixed think time before each access").type_name("TIME");
  think.excludes(no_think).excludes(compute);
  no_think.excludes(compute);
  verb.add_option("--files", options.files, "only files whose name (or path, if GLOB has a slash) matches")
      .type_name("GLOB");
  verb.add_flag("--all", options.all, "also files in /usr, /etc and the like");
  const Option prepare = verb.add_flag("--prepare-only", options.prepare_only,
                                       "make the files that there must be; a later replay uses them");
  const Option keep = verb.add_flag("--keep", options.keep, "keep DIR and the files in it");
  prepare.excludes(keep);
  verb.add_option("--prefetch", options.prefetch,
                  "read ahead: none (not even the kernel), kernel (default), pattern, paper; markov, remembered and "
                  "perfect know the trace, as if they had seen it in an earlier run")
      .type_name("PREDICTOR")
      .check(one_of({predictor_names.begin(), predictor_names.end()}));
  verb.add_flag("--drop-caches", options.drop_caches, "read the files that were made from the storage");
}

}  // namespace iosig::cli
