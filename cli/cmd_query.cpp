// `iosig query`: questions about the calls of traces (core/iosig/observe), one verb for each.
//
// An answer has a row for all calls that have the keys of --by in common. Its columns, of which the first ones are the
// keys, are the same in the table and in JSON.

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>

#include "commands.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "query_options.h"
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

constexpr const char* query_schema = "iosig.query/1";
constexpr std::uint64_t shown_rows = 40, listed_calls = 20, max_listed_calls = 1'000'000;

struct QueryArguments {
  QueryOptions calls;
  std::string stats, sort;
  std::optional<std::uint32_t> top;
  bool exclusive = false;
};

/// A column of an answer, in the table and in JSON.
struct AnswerColumn {
  std::string name;     ///< in JSON
  std::string heading;  ///< in the table; empty: not shown there
  std::function<ordered_json(const Row&)> json;
  std::function<std::string(const Row&)> text;
};

/// A statistic of Row::values.
struct Statistic {
  std::string name;
  double percent = 0;
};

/// What a question asks for.
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
     "writes apart. What the order is exactly, 'iosig pattern trace' says.\n"
     "Example: iosig query pattern job.trace --by file,rank --writes"},
    {"concurrency", "How many calls are in flight at the same time", "layer", "", Value::none, "busy_s",
     "BUSY is the time in which any call was in flight; MEAN and MOST are the numbers in that time.\n"
     "Example: iosig query concurrency job.trace --by file --writes"},
    {"touched", "Which ranks access which files, and the reverse", "file", "", Value::none, "calls",
     "Processes without a rank are shown by host and process id.\n"
     "Example: iosig query touched job.trace --by rank --files '*.h5'"}};

bool is(const Question& question, std::string_view name) { return question.name == name; }

double in_seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string process_name(const trace::Process& process) {
  return process.rank ? fmt::format("{}", *process.rank) : fmt::format("{}:{}", printable(process.host), process.pid);
}

AnswerColumn count_column(std::string name, std::string heading, std::function<std::uint64_t(const Row&)> number) {
  return {std::move(name), std::move(heading), [=](const Row& row) { return ordered_json(number(row)); },
          [=](const Row& row) { return fmt::format("{}", number(row)); }};
}
AnswerColumn bytes_column(std::string name, std::string heading, std::function<std::uint64_t(const Row&)> number) {
  return {std::move(name), std::move(heading), [=](const Row& row) { return ordered_json(number(row)); },
          [=](const Row& row) { return number(row) == 0 ? "" : about_bytes(static_cast<double>(number(row))); }};
}
/// NaN: there is no such number.
AnswerColumn number_column(std::string name, std::string heading, std::string (*shown)(double),
                           std::function<double(const Row&)> number) {
  return {std::move(name), std::move(heading),
          [=](const Row& row) { return std::isnan(number(row)) ? ordered_json(nullptr) : ordered_json(number(row)); },
          [=](const Row& row) { return std::isnan(number(row)) ? "" : shown(number(row)); }};
}
AnswerColumn text_column(std::string name, std::string heading, std::function<std::string(const Row&)> text) {
  return {std::move(name), std::move(heading),
          [=](const Row& row) { return text(row).empty() ? ordered_json(nullptr) : ordered_json(text(row)); },
          [=](const Row& row) { return printable(text(row)); }};
}
AnswerColumn rank_column() {
  return {"rank", "RANK", [](const Row& row) { return row.rank ? ordered_json(*row.rank) : ordered_json(nullptr); },
          [](const Row& row) { return row.rank ? fmt::format("{}", *row.rank) : "-"; }};
}

std::string plain_number(double number) { return fmt::format("{:.2f}", number); }

void add_key_columns(Key key, std::vector<AnswerColumn>& columns) {
  const auto host = [](const Row& row) { return row.process->host; };
  switch (key) {
    case Key::layer:
      columns.push_back(text_column("layer", "LAYER", [](const Row& row) {
        return std::string(trace::layer_names[static_cast<std::size_t>(row.layer)]);
      }));
      break;
    case Key::call:
      columns.push_back(
          text_column("call", "CALL", [](const Row& row) { return std::string(trace::name_of(row.call)); }));
      break;
    case Key::rank: columns.push_back(rank_column()); break;
    case Key::file:
      columns.push_back(text_column("file", "FILE", [](const Row& row) { return std::string(row.file); }));
      break;
    case Key::node: columns.push_back(text_column("host", "HOST", host)); break;
    case Key::process:
    case Key::thread:
      columns.push_back(text_column("host", "HOST", host));
      columns.push_back({"pid", "PID", [](const Row& row) { return ordered_json(row.process->pid); },
                         [](const Row& row) { return fmt::format("{}", row.process->pid); }});
      columns.push_back(rank_column());
      if (key == Key::thread)
        columns.push_back({"tid", "TID", [](const Row& row) { return ordered_json(row.tid); },
                           [](const Row& row) { return fmt::format("{}", row.tid); }});
      break;
    case Key::window:
      columns.push_back({"window_start_s", "FROM",
                         [](const Row& row) { return ordered_json(in_seconds(row.window_ns)); },
                         [](const Row& row) { return seconds_text(in_seconds(row.window_ns)); }});
      break;
  }
}

/// Returns the unit of a value in names, and how it is shown.
std::pair<std::string, std::string (*)(double)> unit_of(Value value) {
  switch (value) {
    case Value::bytes: return {"bytes", about_bytes};
    case Value::rate: return {"bytes_per_s", about_rate};
    default: return {"s", about_seconds};
  }
}

double statistic_of(const Statistic& wanted, const Row& row, double scale) {
  const observe::Distribution& values = row.values;
  if (values.count() == 0) return NAN;
  if (wanted.name == "min") return static_cast<double>(values.least()) * scale;
  if (wanted.name == "max") return static_cast<double>(values.greatest()) * scale;
  if (wanted.name == "mean") return values.mean() * scale;
  return values.percentile(wanted.percent) * scale;
}

std::vector<AnswerColumn> columns_of(const Question& question, const Query& query,
                                     const std::vector<Statistic>& statistics) {
  std::vector<AnswerColumn> columns;
  for (const Key key : query.by) add_key_columns(key, columns);
  columns.push_back(count_column("calls", "CALLS", [](const Row& row) { return row.calls; }));
  const bool is_calls = is(question, "calls");
  if (is_calls || is(question, "latency")) {
    columns.push_back(count_column("failed", is_calls ? "FAILED" : "", [](const Row& row) { return row.failed; }));
    columns.push_back(
        count_column("unfinished", is_calls ? "UNFINISHED" : "", [](const Row& row) { return row.unfinished; }));
  }
  const auto add_statistics = [&] {
    const auto [unit, shown] = unit_of(query.value);
    const double scale = query.value == Value::duration || query.value == Value::own_time ? 1e-9 : 1;
    for (const Statistic& each : statistics) {
      std::string heading = each.name;
      std::ranges::transform(heading, heading.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
      columns.push_back(number_column(fmt::format("{}_{}", each.name, unit), heading, shown,
                                      [=](const Row& row) { return statistic_of(each, row, scale); }));
    }
  };
  const auto rate_column = [&](std::string name, std::string heading, auto time_ns) {
    columns.push_back(number_column(std::move(name), std::move(heading), about_rate, [=](const Row& row) {
      const double time_s = in_seconds(time_ns(row));
      return time_s > 0 ? static_cast<double>(row.read_bytes + row.written_bytes) / time_s : NAN;
    }));
  };
  const auto busy_ns = [](const Row& row) { return row.in_flight.busy(); };
  const auto wall_ns = [](const Row& row) { return row.wall_ns(); };
  const auto add_times = [&] {
    columns.push_back(
        number_column("busy_s", "BUSY", about_seconds, [=](const Row& row) { return in_seconds(busy_ns(row)); }));
    columns.push_back(
        number_column("wall_s", "WALL", about_seconds, [=](const Row& row) { return in_seconds(wall_ns(row)); }));
  };
  if (is(question, "latency")) {
    add_statistics();
    columns.push_back(
        number_column("inclusive_s", "TIME", about_seconds, [](const Row& row) { return in_seconds(row.time_ns); }));
    columns.push_back(
        number_column("exclusive_s", "OWN TIME", about_seconds, [](const Row& row) { return in_seconds(row.own_ns); }));
    return columns;
  }
  if (is(question, "pattern")) {
    columns.push_back(count_column("first", "FIRST", [](const Row& row) { return row.order.first; }));
    columns.push_back(count_column("consecutive", "CONSECUTIVE", [](const Row& row) { return row.order.consecutive; }));
    columns.push_back(count_column("forward", "FORWARD", [](const Row& row) { return row.order.forward; }));
    columns.push_back(count_column("backward", "BACKWARD", [](const Row& row) { return row.order.backward; }));
    columns.push_back(count_column("unknown", "UNKNOWN", [](const Row& row) { return row.order.unknown; }));
  }
  if (is(question, "concurrency")) {
    add_times();
    columns.push_back(number_column("mean_in_flight", "MEAN", plain_number, [](const Row& row) {
      return row.in_flight.busy() > 0
                 ? static_cast<double>(row.in_flight.total()) / static_cast<double>(row.in_flight.busy())
                 : NAN;
    }));
    columns.push_back(count_column("max_in_flight", "MOST", [](const Row& row) { return row.in_flight.most(); }));
    return columns;
  }
  columns.push_back(bytes_column("read_bytes", "READ", [](const Row& row) { return row.read_bytes; }));
  columns.push_back(bytes_column("written_bytes", "WRITTEN", [](const Row& row) { return row.written_bytes; }));
  if (is(question, "throughput")) {
    columns.push_back(
        count_column("moved_bytes", "", [](const Row& row) { return row.read_bytes + row.written_bytes; }));
    add_times();
    rate_column("busy_bytes_per_s", "WHILE BUSY", busy_ns);
    rate_column("wall_bytes_per_s", "OVER WALL", wall_ns);
  }
  add_statistics();
  return columns;
}

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

ordered_json heading_json(const Question& question, const Query& query, const Answer& answer) {
  ordered_json by = ordered_json::array();
  for (const Key key : query.by) by.push_back(observe::key_names[static_cast<std::size_t>(key)]);
  ordered_json made{{"question", question.name}, {"started_ns", answer.started_ns}, {"by", std::move(by)}};
  if (std::ranges::find(query.by, Key::window) != query.by.end()) made["window_s"] = in_seconds(query.window_ns);
  return made;
}

void show_rows(const QueryArguments& arguments, const Question& question, const Query& query, const Answer& answer,
               const std::vector<AnswerColumn>& columns, const Console& console) {
  const std::uint64_t all = answer.rows.size();
  const std::uint64_t most = arguments.top.value_or(console.json ? 0 : shown_rows);
  const auto rows = std::span(answer.rows).first(most == 0 ? all : std::min(all, most));
  if (console.json) {
    ordered_json document = heading_json(question, query, answer), shown = ordered_json::array();
    for (const Row& row : rows) {
      ordered_json made = ordered_json::object();
      for (const AnswerColumn& column : columns) made[column.name] = column.json(row);
      shown.push_back(std::move(made));
    }
    document["row_count"] = all;
    document["rows"] = std::move(shown);
    console.say_json(query_schema, document);
    return;
  }
  if (all == 0) {
    console.say("no call was recorded, or is selected");
    return;
  }
  std::vector<std::string> header;
  for (const AnswerColumn& column : columns)
    if (!column.heading.empty()) header.push_back(column.heading);
  Table table(std::move(header));
  for (const Row& row : rows) {
    std::vector<std::string> cells;
    for (const AnswerColumn& column : columns)
      if (!column.heading.empty()) cells.push_back(column.text(row));
    table.add(std::move(cells));
  }
  console.say(table);
  if (rows.size() < all) console.say(fmt::format("and {} more; --top 0 shows all", all - rows.size()));
}

void show_list(const Question& question, const Query& query, const Answer& answer, const Console& console) {
  const auto duration_s = [](const observe::ListedCall& call) {
    return in_seconds(call.access.end_ns - call.access.start_ns);
  };
  std::vector<std::string> header{"START", "LAYER", "CALL", "PROCESS", "TID", "OFFSET", "RESULT", "TIME"};
  if (query.has_own_time) header.push_back("OWN TIME");
  if (query.value == Value::rate) header.push_back("RATE");
  header.push_back("FILE");
  ordered_json calls = ordered_json::array();
  Table table(std::move(header));
  for (const observe::ListedCall& each : answer.list) {
    const trace::Access& access = each.access;
    const auto layer = trace::layer_names[static_cast<std::size_t>(trace::layer_of(access.call))];
    const bool has_offset = access.offset != trace::no_offset;
    if (console.json) {
      ordered_json made{{"start_s", in_seconds(access.start_ns)},
                        {"layer", layer},
                        {"call", trace::name_of(access.call)},
                        {"host", access.process->host},
                        {"pid", access.process->pid},
                        {"rank", access.process->rank ? ordered_json(*access.process->rank) : ordered_json(nullptr)},
                        {"tid", access.tid},
                        {"file", access.path.empty() ? ordered_json(nullptr) : ordered_json(access.path)},
                        {"offset", has_offset ? ordered_json(access.offset) : ordered_json(nullptr)},
                        {"result", access.result},
                        {"inclusive_s", duration_s(each)}};
      if (query.has_own_time) made["exclusive_s"] = in_seconds(each.own_ns);
      if (query.value == Value::rate) made["bytes_per_s"] = each.value;
      calls.push_back(std::move(made));
      continue;
    }
    std::vector<std::string> row{fmt::format("{:.6f} s", in_seconds(access.start_ns)),
                                 std::string(layer),
                                 std::string(trace::name_of(access.call)),
                                 process_name(*access.process),
                                 fmt::format("{}", access.tid),
                                 has_offset ? fmt::format("{}", access.offset) : "",
                                 fmt::format("{}", access.result),
                                 about_seconds(duration_s(each))};
    if (query.has_own_time) row.push_back(about_seconds(in_seconds(each.own_ns)));
    if (query.value == Value::rate) row.push_back(about_rate(static_cast<double>(each.value)));
    row.push_back(printable(access.path));
    table.add(std::move(row));
  }
  if (console.json) {
    ordered_json document = heading_json(question, query, answer);
    document["list"] = std::move(calls);
    console.say_json(query_schema, document);
  } else if (answer.list.empty()) {
    console.say("no call was recorded, or is selected");
  } else {
    console.say(table);
  }
}

/// Returns "0-3,7": the ranks, or names of processes without one.
std::string ranks_text(const std::vector<const Row*>& rows, std::uint64_t Row::*bytes) {
  std::set<std::int64_t> ranks;
  std::set<std::string> others;
  for (const Row* const row : rows) {
    if (row->*bytes == 0) continue;
    if (row->rank)
      ranks.insert(*row->rank);
    else
      others.insert(process_name(*row->process));
  }
  std::vector<std::string> parts;
  for (auto rank = ranks.begin(); rank != ranks.end();) {
    const std::int64_t first = *rank;
    std::int64_t last = first;
    while (++rank != ranks.end() && *rank == last + 1) last = *rank;
    parts.push_back(first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last));
  }
  constexpr std::size_t max_others = 3;
  for (const std::string& other : others) {
    if (parts.size() >= max_others && others.size() > max_others) break;
    parts.push_back(other);
  }
  if (others.size() > max_others) parts.push_back(fmt::format("{} processes in all", others.size()));
  return fmt::format("{}", fmt::join(parts, ","));
}

ordered_json touched_json(const Row& row) {
  return {{"calls", row.calls}, {"read_bytes", row.read_bytes}, {"written_bytes", row.written_bytes}};
}

/// `iosig query touched`: the answer by file and process, seen from the side of one of them.
void show_touched(const QueryArguments& arguments, const Question& question, const Query& query, const Answer& answer,
                  bool is_by_file, const Console& console) {
  // Of each file, or of each rank or process without one.
  std::map<std::tuple<std::size_t, std::int64_t, std::string>, std::vector<const Row*>> sides;
  for (const Row& row : answer.rows) {
    const auto layer = query.by.front() == Key::layer ? static_cast<std::size_t>(row.layer) : 0;
    if (is_by_file)
      sides[{layer, 0, std::string(row.file)}].push_back(&row);
    else
      sides[{layer, row.rank.value_or(INT64_MAX), row.rank ? "" : process_name(*row.process)}].push_back(&row);
  }
  const std::uint64_t most = arguments.top.value_or(console.json ? 0 : shown_rows);
  ordered_json shown = ordered_json::array();
  Table table(is_by_file
                  ? std::vector<std::string>{"LAYER", "CALLS", "READ", "WRITTEN", "READ BY", "WRITTEN BY", "FILE"}
                  : std::vector<std::string>{"LAYER", "PROCESS", "CALLS", "READ", "WRITTEN", "FILE"});
  const auto amount = [](std::uint64_t bytes) { return bytes == 0 ? "" : about_bytes(static_cast<double>(bytes)); };
  const auto file_json = [](const Row& row) {
    return row.file.empty() ? ordered_json(nullptr) : ordered_json(row.file);
  };
  const auto process_json = [](const Row& row) {
    return ordered_json{{"rank", row.rank ? ordered_json(*row.rank) : ordered_json(nullptr)},
                        {"host", row.process->host},
                        {"pid", row.process->pid}};
  };
  std::uint64_t lines = 0, left_out = 0;
  for (const auto& [side, rows] : sides) {
    const bool is_one_layer = query.filter.layer || query.by.front() == Key::layer;
    const std::string layer(is_one_layer ? trace::layer_names[static_cast<std::size_t>(rows.front()->layer)] : "all");
    if (console.json) {
      if (most != 0 && shown.size() == most) break;
      ordered_json others = ordered_json::array();
      for (const Row* const row : rows) {
        ordered_json other = is_by_file ? process_json(*row) : ordered_json{{"file", file_json(*row)}};
        other.update(touched_json(*row));
        others.push_back(std::move(other));
      }
      ordered_json made{{"layer", layer}};
      if (is_by_file)
        made["file"] = file_json(*rows.front());
      else
        made.update(process_json(*rows.front()));
      made[is_by_file ? "processes" : "files"] = std::move(others);
      shown.push_back(std::move(made));
    } else if (is_by_file) {
      if (most != 0 && lines++ >= most) {
        ++left_out;
        continue;
      }
      std::uint64_t calls = 0, read = 0, written = 0;
      for (const Row* const row : rows) {
        calls += row->calls;
        read += row->read_bytes;
        written += row->written_bytes;
      }
      table.add({layer, fmt::format("{}", calls), amount(read), amount(written), ranks_text(rows, &Row::read_bytes),
                 ranks_text(rows, &Row::written_bytes), printable(rows.front()->file)});
    } else {
      for (const Row* const row : rows) {
        if (most != 0 && lines++ >= most) {
          ++left_out;
          continue;
        }
        table.add({layer, process_name(*row->process), fmt::format("{}", row->calls), amount(row->read_bytes),
                   amount(row->written_bytes), printable(row->file)});
      }
    }
  }
  if (console.json) {
    ordered_json document = heading_json(question, query, answer);
    document["by"] = is_by_file ? "file" : "rank";
    document["row_count"] = sides.size();
    document["rows"] = std::move(shown);
    console.say_json(query_schema, document);
  } else if (sides.empty()) {
    console.say("no call was recorded, or is selected");
  } else {
    console.say(table);
    if (left_out > 0) console.say(fmt::format("and {} more; --top 0 shows all", left_out));
  }
}

Result<std::vector<Trace>> opened_traces(const std::vector<std::string>& directories, const Console& console) {
  std::vector<Trace> traces;
  for (const std::string& each : directories) {
    auto opened = Trace::open(each);
    if (!opened) return pass_on(opened.error());
    note_faults(*opened, console);
    traces.push_back(std::move(*opened));
  }
  return traces;
}

void note_limits(const Question& question, const Answer& answer, const Console& console) {
  note_faults(answer.faults, console);
  if (answer.impossible_calls > 0)
    console.note(fmt::format("{} call{} before {}; left out (the first: {})", answer.impossible_calls,
                             answer.impossible_calls == 1 ? " ends" : "s end",
                             answer.impossible_calls == 1 ? "it begins" : "they begin", answer.first_impossible));
  std::uint64_t unfinished = 0;
  for (const Row& row : answer.rows) unfinished += row.unfinished;
  if (unfinished > 0 && !is(question, "pattern") && !is(question, "touched"))
    console.note(fmt::format("{} call{} no end, as the program ended, was killed or still runs: counted, without time",
                             unfinished, unfinished == 1 ? " has" : "s have"));
  if (answer.compares_clocks && (is(question, "throughput") || is(question, "concurrency")))
    console.note(
        "calls of several nodes are compared by the nodes' clocks, which are not aligned: busy time, wall time and the "
        "number in flight are as exact as these agree; --by node keeps the nodes apart");
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
  bool has_list = false;
  const auto statistics = statistics_of(arguments.stats.empty() ? question.stats : arguments.stats, has_list);
  if (!statistics) return console.fail(statistics.error());
  if (has_list || !statistics->empty()) query->value = arguments.exclusive ? Value::own_time : question.value;
  query->has_own_time = is(question, "latency");
  query->has_order = is(question, "pattern");
  query->divides_calls = is(question, "throughput") || is(question, "concurrency");
  query->filter.only_moving = is(question, "throughput") || is(question, "pattern");
  if (has_list) {
    query->list = arguments.top.value_or(listed_calls);
    if (query->list == 0 || query->list > max_listed_calls)
      return console.fail(
          {ErrorKind::usage, fmt::format("--stat list: --top {}: expected 1 to {}; 'iosig export' prints every call",
                                         query->list, max_listed_calls)});
  }
  const std::vector<AnswerColumn> columns = columns_of(question, *query, *statistics);
  std::vector<Row> none;
  if (auto known = order_rows(arguments, question, *query, columns, none); !known) return console.fail(known.error());
  const auto traces = opened_traces(calls.traces, console);
  if (!traces) return console.fail(traces.error());
  auto answer = observe::answer(*traces, *query);
  if (!answer) return console.fail(answer.error());
  note_limits(question, *answer, console);
  if (has_list) {
    show_list(question, *query, *answer, console);
  } else if (is_touched) {
    show_touched(arguments, question, *query, *answer, is_by_file, console);
  } else {
    (void)order_rows(arguments, question, *query, columns, answer->rows);
    show_rows(arguments, question, *query, *answer, columns, console);
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
    verb.footer(question.footer);
    verb.when_chosen(action, query_schema,
                     [options, &question](Console& console) { return run_query(*options, question, console); });
  }
}

}  // namespace iosig::cli
