// `iosig replay`: replays a write map onto a container or an ordinary file, times it and verifies every byte. Traces
// are replayed by cmd_replay_trace.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "cmd_replay_trace.h"
#include "commands.h"
#include "input.h"
#include "interruption.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/replay/replay.h"
#include "iosig/replay/replay_check.h"
#include "iosig/replay/worker_group.h"
#include "iosig/replay/write_map_text.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::chrono::milliseconds settling{50};
constexpr double short_s = 1;  ///< seconds before progress is shown

struct ReplayArguments {
  std::string map;
  TraceReplayArguments trace;
  ReplayTarget target;
  ReplayOptions replay;
  std::int64_t ranks = 0;
  std::uint32_t readers = 0;
  bool container = false, traditional = false, plain = false, check = false, read = false, dry_run = false;
};

// ---- the map --------------------------------------------------------------------------------------------------------

/// Adds the writes of one input: text, a pattern description, or output of plfs_map, whose writes are sorted by time.
Result<void> add_file(WriteMapBuilder& builder, const std::string& file, bool& is_plfs) {
  WriteMapLines lines(shown_name(file));
  std::vector<MappedWrite> timed;
  MappedWrite write;
  std::uint64_t line_number = 0;
  LineCutter cutter([&](std::string_view line) -> Result<void> {
    ++line_number;
    const auto found = lines.read(line, write);
    if (!found) return pass_on(found.error());
    if (!*found) return {};
    if (lines.is_plfs()) {
      timed.push_back(write);
      return {};
    }
    auto added = builder.add(write.rank, write.offset, write.length);
    if (!added) return fail(added.error().kind, "{}:{}: {}", shown_name(file), line_number, added.error().message);
    return added;
  });
  std::optional<std::string> description;
  bool is_first = true;
  auto read = for_each_part(file, [&](std::string_view part) -> Result<void> {
    if (std::exchange(is_first, false) && is_description(part)) description.emplace();
    if (!description) return cutter(part);
    description->append(part);
    if (description->size() <= max_description_bytes) return {};
    return fail(ErrorKind::bad_input, "{}: more than {}", shown_name(file), bytes_text(max_description_bytes));
  });
  if (!read) return read;
  if (description) {
    const auto pattern = pattern_from_text(*description, shown_name(file));
    if (!pattern) return pass_on(pattern.error());
    return add_pattern(builder, *pattern, shown_name(file));
  }
  is_plfs = lines.is_plfs();
  std::ranges::stable_sort(timed, {}, &MappedWrite::begin_s);
  for (const MappedWrite& one : timed)
    if (auto added = builder.add(one.rank, one.offset, one.length); !added)
      return fail(added.error().kind, "{}: {}", shown_name(file), added.error().message);
  return {};
}

Result<WriteMap> read_map(const ReplayArguments& options, Console& console) {
  WriteMapBuilder builder(options.ranks > 0 ? options.ranks : INT64_MAX);
  bool is_plfs = false;
  const bool is_directory = is_container(options.map);
  auto added = is_directory ? add_container(builder, options.map) : add_file(builder, options.map, is_plfs);
  if (!added) return pass_on(std::move(added.error()));
  WriteMap map = builder.finish();
  if (map.writes == 0)
    return fail(ErrorKind::bad_input, "{}: no write is in it{}", shown_name(options.map),
                options.ranks > 0 ? fmt::format(" by ranks 0 to {}", options.ranks - 1) : "");
  if (is_plfs)
    console.note("what plfs_map prints lacks the bytes that were written over: an extent of one write may be several");
  if (is_directory && map.left_out > 0 && options.ranks == 0)
    console.note(fmt::format("{} truncations and holes are left out", map.left_out));
  return map;
}

// ---- showing --------------------------------------------------------------------------------------------------------

ordered_json json_of(const WriteMap& map) {
  return {{"ranks", map.ranks.size()},
          {"writes", map.writes},
          {"bytes", map.bytes},
          {"size", map.size},
          {"longest_bytes", map.longest}};
}

double rate_of(std::int64_t bytes, double seconds) { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
double each_of(double seconds, std::uint64_t count) {
  return count > 0 ? 1e9 * seconds / static_cast<double>(count) : 0;
}

ordered_json json_of(const WriteMetrics& write, const WriteMap& map) {
  return {{"processes", write.processes},
          {"open_s", write.open_s},
          {"open_mean_s", write.open_mean_s},
          {"write_s", write.write_s},
          {"bytes_per_s", rate_of(map.bytes, write.write_s)},
          {"cpu_ns_per_write", each_of(write.cpu_s, map.writes)},
          {"sync_s", write.sync_s},
          {"close_s", write.close_s},
          {"close_mean_s", write.close_mean_s}};
}

ordered_json json_of(const ReadMetrics& read) {
  return {{"processes", read.processes},
          {"open_s", read.open_s},
          {"open_mean_s", read.open_mean_s},
          {"memory_bytes", read.memory_bytes},
          {"read_s", read.read_s},
          {"reads", read.reads},
          {"bytes", read.bytes},
          {"bytes_per_s", rate_of(read.bytes, read.read_s)},
          {"cpu_ns_per_read", each_of(read.cpu_s, read.reads)}};
}

ordered_json json_of(const CheckMetrics& check) {
  return {{"read_s", check.read_s},
          {"bytes", check.read_bytes},
          {"bytes_per_s", rate_of(check.read_bytes, check.read_s)},
          {"shared_bytes", check.shared_bytes},
          {"wrong_bytes", check.wrong_bytes},
          {"first_wrong", check.first_wrong < 0 ? ordered_json() : ordered_json(check.first_wrong)}};
}

std::string text_of(const WriteMap& map) {
  return fmt::format("{} writes by {} rank{}, {}; the file ends at {}", map.writes, map.ranks.size(),
                     map.ranks.size() == 1 ? "" : "s", about_bytes(static_cast<double>(map.bytes)), map.size);
}

std::string text_of(const WriteMetrics& write, const WriteMap& map) {
  return fmt::format(
      "written: {} by {} process{}, {}; {:.0f} ns of processors for each write; opened in {}{}, closed in {}",
      about_seconds(write.write_s), write.processes, write.processes == 1 ? "" : "es",
      about_rate(rate_of(map.bytes, write.write_s)), each_of(write.cpu_s, map.writes), about_seconds(write.open_s),
      write.sync_s > 0 ? fmt::format(", synced in {}", about_seconds(write.sync_s)) : "", about_seconds(write.close_s));
}

std::string text_of(std::string_view what, const ReadMetrics& read) {
  return fmt::format("{}: {} by {} process{}, {}; {:.0f} ns of processors for each of {} reads; opened in {}", what,
                     about_seconds(read.read_s), read.processes, read.processes == 1 ? "" : "es",
                     about_rate(rate_of(read.bytes, read.read_s)), each_of(read.cpu_s, read.reads), read.reads,
                     about_seconds(read.open_s));
}

// ---- running --------------------------------------------------------------------------------------------------------

/// **Removes the target** unless all writes were completed.
class Unfinished {
 public:
  explicit Unfinished(const ReplayTarget& target) : target_(&target) {}
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  void finish() { target_ = nullptr; }
  ~Unfinished() {
    if (target_ != nullptr) (void)remove_target(*target_);
  }

 private:
  const ReplayTarget* target_;
};

class Replay {
 public:
  Replay(const ReplayArguments& options, const WriteMap& map, Console& console)
      : options_(options), map_(map), console_(console) {}

  Result<int> run() {
    ordered_json document = {{"map", json_of(map_)},
                             {"target", printable(options_.target.path)},
                             {"form", name_of(options_.target.form)},
                             {"in_turn", options_.replay.in_turn},
                             {"dry_run", options_.dry_run}};
    if (!console_.json) console_.say(text_of(map_));
    int status = yes;
    if (!options_.dry_run) {
      auto done = perform(document, status);
      console_.end_progress();
      if (!done && is_written_)
        console_.note(fmt::format("'{}' is written whole, and stays", printable(options_.target.path)));
      if (!done) return pass_on(std::move(done.error()));
    }
    if (console_.json) console_.say_json("iosig.replay/1", document);
    return status;
  }

 private:
  Result<void> perform(ordered_json& document, int& status) {
    if (auto made = make_target(options_.target); !made) return made;
    Unfinished unfinished(options_.target);
    const auto write = replay_writes(map_, options_.target, options_.replay,
                                     watching("writing", static_cast<double>(map_.writes), "writes"));
    if (!write) return pass_on(write.error());
    unfinished.finish();
    is_written_ = true;
    document["write"] = json_of(*write, map_);
    say(text_of(*write, map_));
    if (auto looked = look_at_index(document); !looked) return looked;
    if (options_.read) {
      const auto read = replay_reads(map_, options_.target, options_.replay.processes,
                                     watching("reading", static_cast<double>(map_.writes), "writes"));
      if (!read) return pass_on(read.error());
      document["read"] = json_of(*read);
      say(text_of("read as it was written", *read));
    }
    if (options_.readers > 0) {
      const std::int64_t block = std::max<std::int64_t>(1, map_.longest);
      const auto read = read_blocks(
          options_.target, options_.readers, block,
          watching("reading blocks", static_cast<double>(map_.size) / static_cast<double>(block), "blocks"));
      if (!read) return pass_on(read.error());
      document["read_blocks"] = json_of(*read);
      say(text_of("read in blocks", *read));
    }
    return options_.check ? check(document, status) : Result<void>{};
  }

  /// Measures how long opening a container for reading takes: for the first reader, and for a later one.
  Result<void> look_at_index(ordered_json& document) {
    if (options_.target.form == ReplayForm::plain) return {};
    const auto opened_in = [&](ContainerView::Source from, double& seconds) {
      const double begin = steady_s();
      auto source = ReplaySource::open(options_.target, from);
      seconds = steady_s() - begin;
      return source;
    };
    double open_s = 0, again_s = 0;
    const auto source = opened_in(ContainerView::Source::droppings, open_s);
    if (!source) return pass_on(source.error());
    // A reader saves the index snapshot only if the last change of the container's directories is old enough.
    std::this_thread::sleep_for(settling);
    for (int n = 0; n < 2; ++n)
      if (const auto again = opened_in(ContainerView::Source::snapshot, again_s); !again) return pass_on(again.error());
    std::int64_t index_bytes = 0;
    for (const WriterContent& writer : source->view()->content().writers) index_bytes += writer.index_bytes;
    const std::size_t memory = source->view()->memory_bytes();
    document["index"] = {
        {"bytes", index_bytes}, {"open_s", open_s}, {"open_again_s", again_s}, {"memory_bytes", memory}};
    say(fmt::format("index: {} bytes; opened to read in {}, by later readers in {}, with {} bytes of memory",
                    index_bytes, about_seconds(open_s), about_seconds(again_s), memory));
    return {};
  }

  Result<void> check(ordered_json& document, int& status) {
    const auto found = check_replay(map_, options_.target, options_.replay.in_turn,
                                    watching("checking", static_cast<double>(map_.size)));
    if (!found) return pass_on(found.error());
    document["check"] = json_of(*found);
    say(fmt::format("read from the first byte to the last: {}, {}", about_seconds(found->read_s),
                    about_rate(rate_of(found->read_bytes, found->read_s))));
    if (found->shared_bytes > 0 && !options_.replay.in_turn)
      console_.note(
          fmt::format("{} bytes were written by several ranks: what any of them wrote there last counts as "
                      "right; --in-turn keeps the map's order",
                      found->shared_bytes));
    say(fmt::format("wrong bytes: {}{}", found->wrong_bytes,
                    found->wrong_bytes > 0 ? fmt::format(", the first at {}", found->first_wrong) : ""));
    if (found->wrong_bytes > 0) status = no;
    return {};
  }

  void say(const std::string& text) {
    console_.end_progress();
    if (!console_.json) console_.say(text);
  }

  ReplayWatch watching(const char* what, double all, std::string_view unit = {}) {
    return [=, this, begin = steady_s()](std::uint64_t done) {
      if (steady_s() - begin > short_s) console_.progress({what, static_cast<double>(done), all, unit});
      return interruption() == 0;
    };
  }

  const ReplayArguments& options_;
  const WriteMap& map_;
  Console& console_;
  bool is_written_ = false;
};

/// Whether the input is a directory that is no container.
bool names_trace(const std::string& input) {
  struct stat at {};
  return ::stat(input.c_str(), &at) == 0 && S_ISDIR(at.st_mode) && !is_container(input);
}

/// Options of which a trace or a map has no use.
Result<void> check_options(const ReplayArguments& options, bool is_trace) {
  const bool has_map_options = options.container || options.traditional || options.plain || options.ranks > 0 ||
                               options.readers > 0 || options.read || options.replay.in_turn ||
                               options.replay.opens_in_turn || options.replay.syncs || !options.target.targets.empty();
  if (is_trace && !options.target.path.empty())
    return fail(ErrorKind::usage, "a trace is replayed onto a directory: --onto '{}'", printable(options.target.path));
  if (is_trace && has_map_options)
    return fail(ErrorKind::usage, "'{}' is a trace; that option is for write maps", printable(options.map));
  if (options.map != "-" && ::access(options.map.c_str(), F_OK) != 0) return system_failure("open", options.map);
  if (!is_trace && options.trace.has_options())
    return fail(ErrorKind::usage, "'{}' is no trace; that option is for traces", shown_name(options.map));
  if (!is_trace && options.target.path.empty()) return fail(ErrorKind::usage, "TARGET is required");
  return {};
}

int run_replay(ReplayArguments& options, Console& console) {
  const bool is_trace = names_trace(options.map);
  if (auto checked = check_options(options, is_trace); !checked) return console.fail(checked.error());
  if (is_trace) {
    options.trace.directory = options.map;
    options.trace.processes = options.replay.processes;
    options.trace.verify = options.check;
    options.trace.dry_run = options.dry_run;
    return run_trace_replay(options.trace, console);
  }
  if (options.traditional) options.target.form = ReplayForm::traditional;
  if (options.plain) options.target.form = ReplayForm::plain;
  if (options.plain && !options.target.targets.empty())
    return console.fail({ErrorKind::usage, "--plain makes one ordinary file; --target is for containers"});
  options.replay.is_marked = options.check;
  const auto map = read_map(options, console);
  if (!map) return console.fail(map.error());
  const NoticeSignals noticing;  // from here on an interruption must clean up
  const auto status = Replay(options, *map, console).run();
  if (status) return *status;
  const int failed = console.fail(status.error());
  if (interruption() != 0) return interrupted_status + interruption();
  return failed;
}

}  // namespace

void add_replay(Verb app, Action& action) {
  const Verb verb = app.add_verb("replay", "Replay a trace or a write map; time and verify it");
  const auto options = std::make_shared<ReplayArguments>();
  verb.add_option("INPUT", options->map,
                  "a directory of 'iosig trace'; or lines of rank, offset, length; plfs_map's; a description of "
                  "patterns; or a container; - for standard input")
      .required();
  verb.add_option("TARGET", options->target.path, "of a map: the file to create; it must not exist");
  add_trace_replay_options(verb, options->trace);
  const Option container =
      verb.add_flag("--container", options->container, "a container with an index of patterns (default)");
  const Option traditional =
      verb.add_flag("--traditional", options->traditional, "a container with one index entry per write");
  const Option plain = verb.add_flag("--plain", options->plain, "one ordinary file, shared by all ranks");
  container.excludes(traditional).excludes(plain);
  traditional.excludes(plain);
  verb.add_option("--target", options->target.targets, "a directory to put the container's data into; absolute")
      .repeatable()
      .type_name("DIRECTORY");
  verb.add_option("--ranks", options->ranks, "ranks 0 to N - 1 only").check(count_between(1, INT64_MAX)).type_name("N");
  verb.add_option("--processes", options->replay.processes,
                  "number of processes, which share the ranks or threads (default: one for each)")
      .check(count_between(1, max_replay_processes))
      .type_name("N");
  verb.add_flag("--in-turn", options->replay.in_turn, "start each write after the previous one in MAP has ended");
  verb.add_flag("--open-in-turn", options->replay.opens_in_turn,
                "open in the order of ranks, so that writers' ids follow it");
  verb.add_flag("--sync", options->replay.syncs, "sync each rank's writes before it closes");
  verb.add_flag("--check,--verify", options->check, "write distinct bytes with each write and verify them");
  verb.add_flag("--read", options->read, "each rank reads what it wrote");
  verb.add_option("--readers", options->readers, "read the file back by N processes, in blocks of the writes' length")
      .check(count_between(1, max_replay_processes))
      .type_name("N");
  verb.add_flag("--dry-run", options->dry_run, "show what would be done; write nothing");
  verb.footer(
      "An unfinished TARGET is removed after a failure or ^C; so are all files of a trace.\n"
      "Ranks of a trace wait for each other at its MPI barriers and collective calls, as they did.\n"
      "Exit status: 0 done, 1 bytes are wrong, 2 wrong usage, 3 bad input, 4 the system refused.\n"
      "Example: iosig replay job.trace --onto /mnt/fast/again --think 0.5");
  verb.when_chosen(action, "iosig.replay/1", [options](Console& console) { return run_replay(*options, console); });
}

}  // namespace iosig::cli
