// `iosig query`: questions about the calls of traces (core/iosig/observe), one verb for each.
//
// An answer has a row for all calls that share the keys of --by.

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "commands.h"
#include "iosig/base/text.h"
#include "iosig/config/storage_file.h"
#include "iosig/observe/condition.h"
#include "iosig/trace/notes.h"
#include "open_lines.h"
#include "picture_file.h"
#include "query_answers.h"
#include "query_options.h"
#include "query_picture.h"
#include "storage_source.h"
#include "trace_source.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;
using observe::Answer;
using observe::Key;
using observe::Query;
using observe::Row;
using observe::Value;
using trace::Trace;

/// Percentiles of more calls come from the blocks' bins, unless --exact says otherwise.
constexpr std::uint64_t exact_calls = 5'000'000;
constexpr std::size_t question_rows = 60;  ///< of a picture, unless --top says otherwise
constexpr std::uint64_t listed_calls = 20, max_listed_calls = 1'000'000;

struct QueryArguments {
  QueryOptions calls;
  std::string stats, sort, storage;
  std::optional<std::uint32_t> top;
  bool exclusive = false, exact = false;
  PlotOptions plot;
};

/// Options of one question.
struct Question {
  const char* name;
  const char* help;
  const char* by;     ///< the keys unless given
  const char* stats;  ///< the statistics unless given
  Value value;        ///< what they are of; none: the question has none
  const char* main;   ///< the column by which the greatest rows come first
  const char* footer;
};

constexpr Question questions[] = {
    {"latency", "How long calls take, with and without the calls below them", "call", "min,mean,p50,p90,p99,max",
     Value::duration, "inclusive_s",
     "TIME is from start to end, OWN TIME without the calls of the same thread below. A call that\n"
     "another one of the same row has caused adds nothing to TIME. Percentiles are within 0.8 %.\n"
     "Example: iosig query latency job.trace --by rank,call --stat mean,p99.9,max"},
    {"throughput", "How many bytes calls move, in which time", "layer", "", Value::rate, "moved_bytes",
     "Of calls that move bytes. BUSY is the time in which any of them was in flight, WALL the time\n"
     "from the first start to the last end. Statistics are those of each call's own rate.\n"
     "Example: iosig query throughput job.trace --layer posix --by window=0.1"},
    {"calls", "How many calls there are, and how many bytes they move", "call", "", Value::bytes, "calls",
     "Statistics are those of the bytes that a call moves.\n"
     "Example: iosig query calls job.trace --by rank,call --stat p50,max"},
    {"pattern", "Whether accesses go through files in order", "file", "", Value::bytes, "calls",
     "An access is compared with the one before it, of the same process to the same file, reads and\n"
     "writes apart. 'iosig pattern trace' gives the exact order.\n"
     "Example: iosig query pattern job.trace --by file,rank --writes"},
    {"concurrency", "How many calls are in flight at the same time", "layer", "", Value::none, "busy_s",
     "BUSY is the time in which any call was in flight; MEAN and MOST are the numbers in that time.\n"
     "Example: iosig query concurrency job.trace --by file --writes"},
    {"power", "How much energy the devices draw for the calls", "layer", "mean,max", Value::energy, "energy_j",
     "ACTIVE is active_power of a device times the time in which any call was in flight on it, IDLE\n"
     "idle_power times the rest of WALL, ENERGY their sum; statistics are those of each call's own\n"
     "energy. Both keys are set by hand in the storage description.\n"
     "Example: iosig query power job.trace --storage storage.toml --layer posix --by rank"},
    {"touched", "Which ranks access which files, and the reverse", "file", "", Value::none, "calls",
     "Processes without a rank are shown by host and process id.\n"
     "Example: iosig query touched job.trace --by rank --files '*.h5'"}};

bool is(const Question& question, std::string_view name) { return question.name == name; }

/// Parses "min,p99.9,list"; `has_list`: whether list is among them.
Result<std::vector<Statistic>> statistics_of(std::string_view names, bool& has_list) {
  std::vector<Statistic> statistics;
  if (names.empty()) return statistics;
  for (const std::string_view name : split(names, ',')) {
    if (name == "list") {
      has_list = true;
      continue;
    }
    double percent = -1;
    if (name.starts_with('p')) {
      const auto [end, failure] = std::from_chars(name.data() + 1, name.data() + name.size(), percent);
      if (failure != std::errc{} || end != name.data() + name.size()) percent = -1;
    }
    if (!(percent >= 0 && percent <= 100) && name != "min" && name != "max" && name != "mean")
      return fail(ErrorKind::usage,
                  "--stat: '{}': expected some of min, mean, max, p50 and other percentiles, list, separated by commas",
                  printable(name));
    statistics.push_back({std::string(name), percent});
  }
  return statistics;
}

/// Puts the rows with the greatest numbers in the column first. Those without a number come last.
void sort_rows(std::vector<Row>& rows, const AnswerColumn& column) {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t n = 0; n < rows.size(); ++n) {
    const ordered_json value = column.json(rows[n]);
    order.emplace_back(value.is_number() ? -value.get<double>() : INFINITY, n);
  }
  std::ranges::sort(order);
  std::vector<Row> sorted;
  sorted.reserve(rows.size());
  for (const auto& [number, n] : order) sorted.push_back(std::move(rows[n]));
  rows = std::move(sorted);
}

/// Sorts the rows as --sort, --top and the keys say.
Result<void> order_rows(const QueryArguments& arguments, const Question& question, const Query& query,
                        const std::vector<AnswerColumn>& columns, std::vector<Row>& rows) {
  const auto has = [&](Key key) { return std::ranges::find(query.by, key) != query.by.end(); };
  std::string name = arguments.sort;
  if (name.empty() && (arguments.top || has(Key::file)) && !has(Key::window)) name = question.main;
  if (name.empty() || name == "keys") return {};
  const auto column = std::ranges::find(columns, name, &AnswerColumn::name);
  if (column == columns.end()) {
    std::vector<std::string> names{"keys"};
    for (const AnswerColumn& each : columns) names.push_back(each.name);
    return fail(ErrorKind::usage, "--sort: '{}': expected one of {}", printable(name), fmt::join(names, ", "));
  }
  sort_rows(rows, *column);
  return {};
}

Result<std::vector<Trace>> opened_traces(const std::vector<std::string>& directories, const Console& console) {
  auto traces = trace::open_traces(directories);
  if (traces)
    for (const Trace& each : *traces)  // note_clocks() says which answers depend on clocks that are not aligned
      for (const std::string& note : trace::notes_on(each, trace::NamedClocks::shifted)) console.note(note);
  return traces;
}

/// Of the description that applies. Fails with `usage` if there is none.
Result<observe::DevicePowers> powers_of(const std::string& option) {
  const auto applied = read_applied_storage(option);
  if (!applied) return pass_on(applied.error());
  if (!*applied)
    return fail(ErrorKind::usage,
                "there is no storage description, which says what devices draw: make one with 'iosig storage probe', "
                "then add idle_power and active_power to its devices; or name one with --storage");
  return observe::DevicePowers((*applied)->storage);
}

/// Whether calls of several nodes are selected whose clocks are not aligned.
bool has_several_nodes(const std::vector<Trace>& traces, const observe::Filter& filter) {
  const observe::Condition condition(filter);
  const std::uint64_t* first = nullptr;
  for (const Trace& each : traces)
    for (const auto& [key, process] : each.processes()) {
      if (!condition.is_process(process)) continue;
      if (first != nullptr && *first != process.clock) return true;
      first = &process.clock;
    }
  return false;
}

/// Notes that an answer compares times of several nodes.
void note_clocks(const Question& question, const Query& query, const Answer& answer, const std::vector<Trace>& traces,
                 const Console& console) {
  if (answer.compares_clocks && (is(question, "throughput") || is(question, "concurrency") || is(question, "power"))) {
    console.note(
        "calls of several nodes are compared by the nodes' clocks, which could not be aligned: busy time, wall time "
        "and the "
        "number in flight are as exact as these agree; --by node keeps the nodes apart");
    return;
  }
  const bool has_times = std::ranges::find(query.by, Key::window) != query.by.end() || query.list > 0 ||
                         query.filter.from_ns != 0 || query.filter.to_ns != INT64_MAX;
  if (has_times && has_several_nodes(traces, query.filter))
    console.note(
        "calls of several nodes have the times of the nodes' clocks, which could not be aligned: windows, --from, --to "
        "and "
        "starts are as exact as these agree; --host NAME selects a node");
}

void note_limits(const Question& question, const Query& query, const Answer& answer, const Console& console) {
  note_faults(answer.faults, console);
  if (answer.impossible_calls > 0)
    console.note(fmt::format("{} call{} before {}; left out (the first: {})", answer.impossible_calls,
                             answer.impossible_calls == 1 ? " ends" : "s end",
                             answer.impossible_calls == 1 ? "it begins" : "they begin", answer.first_impossible));
  if (answer.is_coarse && query.coarse_from > 0)
    console.note("percentiles are within 6.25 %, from the bins of the trace's blocks; --exact reads every call");
  std::uint64_t unfinished = 0;
  for (const Row& row : answer.rows) unfinished += row.unfinished;
  for (const auto& [reason, calls] : answer.unknown_calls)
    console.note(fmt::format("{}: the energy of {} call{} is unknown, and not in the sums", reason, calls,
                             calls == 1 ? "" : "s"));
  if (unfinished > 0 && !is(question, "pattern") && !is(question, "touched"))
    console.note(fmt::format("{} call{} no end, as the program ended, was killed or still runs: counted, without time",
                             unfinished, unfinished == 1 ? " has" : "s have"));
}

/// Draws the rows here, or has a file drawn: the exit status then. Nothing: they are drawn.
std::optional<int> draw_rows(const QueryArguments& arguments, const Question& question, const Query& query,
                             const Answer& answer, const std::vector<AnswerColumn>& columns, const Console& console) {
  if (!arguments.plot.picture.empty()) {
    if (console.json) show_rows(arguments.top, question.name, query, answer, columns, console);
    const std::string document =
        rows_document(arguments.top, question.name, query, answer, columns, is(question, "latency")).dump();
    return draw_picture_file(arguments.plot, "query", document, {}, console);
  }
  const Screen screen = screen_of(STDOUT_FILENO);
  constexpr std::size_t plain_columns = 80;
  const TextStyle style{.columns = screen.columns == SIZE_MAX ? plain_columns : screen.columns,
                        .is_utf8 = screen.is_utf8};
  const auto first_number = std::ranges::find(columns, "calls", &AnswerColumn::name);
  console.say(query_picture(question.name, answer.rows, columns,
                            static_cast<std::size_t>(first_number - columns.begin()),
                            arguments.top.value_or(question_rows), style));
  return std::nullopt;
}

/// Throughput over time, in as many windows as a picture shows, unless --by says otherwise.
Result<void> set_windows(const std::vector<Trace>& traces, Query& query) {
  const auto whole = observe::answer(traces, query);
  if (!whole) return pass_on(whole.error());
  std::int64_t last_ns = 0;
  for (const Row& row : whole->rows) last_ns = std::max(last_ns, row.last_ns);
  query.by.push_back(Key::window);
  query.window_ns = window_for(last_ns);
  return {};
}

/// Where the files of the traces are opened: of a file that is opened at several places, all.
observe::Sources sources_of(const std::vector<Trace>& traces, const Console& console) {
  OpenLines lines;
  for (const Trace& each : traces) add_open_lines(each, lines, console);
  if (lines.empty())
    console.note("the traces do not say where files are opened: programs compiled with -g tell (docs/cli/infer.md)");
  observe::Sources sources;
  for (const auto& [path, places] : lines) {
    std::vector<std::string> texts;
    for (const OpenLine& place : places) texts.push_back(open_line_text(place));
    sources.emplace(path, fmt::format("{}", fmt::join(texts, "; ")));
  }
  return sources;
}

int run_query(const QueryArguments& arguments, const Question& question, Console& console) {
  const bool is_touched = is(question, "touched");
  bool is_by_file = true;
  QueryOptions calls = arguments.calls;
  if (is_touched) {
    if (!calls.by.empty() && calls.by != "file" && calls.by != "rank")
      return console.fail({ErrorKind::usage, fmt::format("--by: '{}': expected file or rank", printable(calls.by))});
    is_by_file = calls.by != "rank";
    calls.by = is_by_file ? "file,process" : "process,file";
  }
  auto query = query_of(calls, question.by);
  if (!query) return console.fail(query.error());
  if (auto can = check_picture(arguments.plot, console.json); !can) return console.fail(can.error());
  bool has_list = false;
  const auto statistics = statistics_of(arguments.stats.empty() ? question.stats : arguments.stats, has_list);
  if (!statistics) return console.fail(statistics.error());
  if (has_list || !statistics->empty()) query->value = arguments.exclusive ? Value::own_time : question.value;
  query->has_own_time = is(question, "latency");
  const bool has_percentiles =
      std::ranges::any_of(*statistics, [](const Statistic& each) { return each.percent >= 0; });
  query->coarse_from = arguments.exact ? UINT64_MAX : has_percentiles ? exact_calls + 1 : 0;
  query->has_order = is(question, "pattern");
  query->divides_calls = is(question, "throughput") || is(question, "concurrency") || is(question, "power");
  query->has_intervals = query->divides_calls;
  query->filter.only_moving = is(question, "throughput") || is(question, "pattern");
  if (has_list) {
    query->list = arguments.top.value_or(listed_calls);
    if (query->list == 0 || query->list > max_listed_calls)
      return console.fail(
          {ErrorKind::usage, fmt::format("--stat list: --top {}: expected 1 to {}; 'iosig export' prints every call",
                                         query->list, max_listed_calls)});
  }
  if (has_list && arguments.plot.is_wanted)
    return console.fail({ErrorKind::usage, "--stat list is no picture; leave out list or --plot"});
  const bool needs_windows = arguments.plot.is_wanted && is(question, "throughput") && calls.by.empty();
  std::vector<AnswerColumn> columns = columns_of(question.name, *query, *statistics);
  std::vector<Row> none;
  if (auto known = order_rows(arguments, question, *query, columns, none); !known) return console.fail(known.error());
  std::optional<observe::DevicePowers> powers;
  if (is(question, "power")) {
    auto read = powers_of(arguments.storage);
    if (!read) return console.fail(read.error());
    query->powers = &powers.emplace(std::move(*read));
  }
  const auto traces = opened_traces(calls.traces, console);
  if (!traces) return console.fail(traces.error());
  observe::Sources sources;
  if (std::ranges::find(query->by, Key::source) != query->by.end()) {
    sources = sources_of(*traces, console);
    query->sources = &sources;
  }
  if (needs_windows) {
    if (auto set = set_windows(*traces, *query); !set) return console.fail(set.error());
    columns = columns_of(question.name, *query, *statistics);
  }
  auto answer = observe::answer(*traces, *query);
  if (!answer) return console.fail(answer.error());
  note_limits(question, *query, *answer, console);
  note_clocks(question, *query, *answer, *traces, console);
  if (has_list) {
    show_list(question.name, *query, *answer, console);
  } else if (is_touched) {
    show_touched(arguments.top, question.name, *query, *answer, is_by_file, console);
  } else {
    (void)order_rows(arguments, question, *query, columns, answer->rows);
    if (arguments.plot.is_wanted)
      return draw_rows(arguments, question, *query, *answer, columns, console).value_or(yes);
    show_rows(arguments.top, question.name, *query, *answer, columns, console);
  }
  return yes;
}

}  // namespace

void add_query(Verb app, Action& action) {
  const Verb query = app.add_verb("query", "Ask how long, how fast, how many and by which the calls of traces are");
  query.require_verb();
  query.footer("Example: iosig query latency job.trace");
  for (const Question& question : questions) {
    const Verb verb = query.add_verb(question.name, question.help);
    const auto options = std::make_shared<QueryArguments>();
    add_query_options(verb, options->calls, question.by);
    if (question.value != Value::none)
      verb.add_option("--stat", options->stats,
                      fmt::format("min, mean, max, p50 and other percentiles; or list, the calls with the greatest{}",
                                  *question.stats == '\0' ? "" : fmt::format(" [{}]", question.stats)))
          .type_name("LIST");
    if (is(question, "power")) add_storage_option(verb, options->storage);
    if (is(question, "latency"))
      verb.add_flag("--exact", options->exact,
                    fmt::format("read every call for percentiles within 0.8 %, also of more than {} million calls",
                                exact_calls / 1'000'000));
    if (is(question, "latency"))
      verb.add_flag("--exclusive", options->exclusive, "statistics of the calls without the calls below them");
    verb.add_option("--top", options->top,
                    is(question, "touched") ? "print so many rows only; 0: all"
                                            : "print so many rows only, those with the greatest numbers; 0: all")
        .type_name("N");
    if (!is(question, "touched"))
      verb.add_option("--sort", options->sort,
                      "greatest first in this column, by its name in JSON; keys: in their order")
          .type_name("COLUMN");
    if (!drawn_column(question.name).empty())
      add_plot_option(verb, options->plot,
                      is(question, "latency") ? "draw how long the calls of each row take"
                      : is(question, "throughput")
                          ? "draw the bytes a second of each row; over time unless --by is given"
                          : "draw a bar for each row");
    verb.footer(question.footer);
    verb.when_chosen(action, query_schema,
                     [options, &question](Console& console) { return run_query(*options, question, console); });
  }
  add_query_sql(query);
}

}  // namespace iosig::cli
