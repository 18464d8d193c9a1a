// `iosig trace info`: what is in a trace, by process, layer and call, and what is missing.

#include <algorithm>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "commands.h"
#include "iosig/base/json_text.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/trace/summary.h"
#include "trace_source.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;
using trace::CallTotals;
using trace::Summary;
using trace::Trace;

constexpr const char* info_schema = "iosig.trace.info/1";
constexpr std::string_view not_seen =
    "not seen: programs that are statically linked, setuid, or started with an environment of their own (env -i), "
    "system calls that are made without the C library, io_uring without liburing, loads and stores in mapped files";
constexpr std::string_view not_seen_in_mount =
    "not seen: what the kernel answered from its cache (names, attributes, and the pages of files, unless the mount is "
    "--uncached), and files outside the mount";
constexpr std::string_view not_seen_in_import = "imported: it has what the other tool recorded";
constexpr std::size_t shown_files = 20, shown_processes = 40;

struct InfoArguments {
  std::string directory, layer, files;
};

double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string utc_text(std::int64_t unix_ns) {
  const std::time_t whole = unix_ns / 1'000'000'000;
  std::tm parts{};
  ::gmtime_r(&whole, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

ordered_json totals_json(const CallTotals& totals) {
  return {{"calls", totals.calls},
          {"failed", totals.failed},
          {"in_flight", totals.in_flight},
          {"read_bytes", totals.read_bytes},
          {"written_bytes", totals.written_bytes},
          {"inclusive_s", seconds(totals.inclusive_ns)},
          {"exclusive_s", seconds(totals.exclusive_ns)}};
}

/// The command of the manifest, or that of the first process.
std::string command_text(const Trace& opened, const Summary& summary) {
  const ordered_json manifest = parse_json(opened.manifest(), 8);
  std::string text;
  if (manifest.is_object() && manifest.contains("command") && manifest["command"].is_array())
    for (const auto& word : manifest["command"])
      if (word.is_string()) text += (text.empty() ? "" : " ") + word.get<std::string>();
  if (text.empty() && !summary.processes.empty())
    for (const std::string& word : summary.processes.front().process->arguments)
      text += (text.empty() ? "" : " ") + word;
  return text;
}

/// Returns the kinds of calls that such a trace cannot contain.
std::string_view not_seen_in(const Trace& opened) {
  const ordered_json manifest = parse_json(opened.manifest(), 8);
  if (!manifest.is_object()) return not_seen;
  if (manifest.contains("imported_from")) return not_seen_in_import;
  return manifest.contains("mount") ? not_seen_in_mount : not_seen;
}

/// The code that the trace's `--source` options selected.
struct SourceReport {
  std::vector<std::string> sources;       ///< as in the manifest
  std::vector<trace::SelectedCode> code;  ///< of all processes, each once
  std::set<std::string> without_lines;    ///< programs
  std::set<std::string> replaced_code;    ///< libraries that were not searched
};

SourceReport source_report(const Trace& opened) {
  SourceReport report;
  const ordered_json manifest = parse_json(opened.manifest(), 8);
  if (manifest.is_object() && manifest.contains("sources") && manifest["sources"].is_array())
    for (const auto& source : manifest["sources"])
      if (source.is_string()) report.sources.push_back(source.get<std::string>());
  for (const auto& [key, process] : opened.processes()) {
    if (process.has_no_lines) report.without_lines.insert(process.program);
    report.replaced_code.insert(process.replaced_code.begin(), process.replaced_code.end());
    for (const trace::SelectedCode& each : process.selected_code)
      if (std::ranges::none_of(report.code, [&](const trace::SelectedCode& known) {
            return known.source == each.source && known.object == each.object;
          }))
        report.code.push_back(each);
  }
  std::ranges::sort(report.code, {}, &trace::SelectedCode::object);
  return report;
}

ordered_json sources_json(const SourceReport& report) {
  ordered_json sources = ordered_json::array();
  for (const std::string& source : report.sources) {
    ordered_json code = ordered_json::array();
    for (const trace::SelectedCode& each : report.code)
      if (each.source == source)
        code.push_back({{"object", each.object}, {"lines", each.lines}, {"bytes", each.code_bytes}});
    sources.push_back({{"source", source}, {"code", std::move(code)}});
  }
  return sources;
}

void show_sources(const SourceReport& report, const Console& console) {
  bool has_all = true;
  for (const std::string& source : report.sources) {
    bool is_found = false;
    for (const trace::SelectedCode& each : report.code)
      if (each.source == source) {
        console.say(fmt::format("source {}: {} line{} with code in {}", printable(source), each.lines,
                                each.lines == 1 ? "" : "s", printable(each.object)));
        is_found = true;
      }
    if (!is_found) console.say(fmt::format("source {}: no traced program has code from it", printable(source)));
    has_all = has_all && is_found;
  }
  if (!has_all && !report.without_lines.empty())
    console.say(fmt::format("without line information (compile with -g): {}",
                            printable(fmt::format("{}", fmt::join(report.without_lines, ", ")))));
  if (!report.replaced_code.empty())
    console.say(fmt::format("not searched, because another file was put in its place: {}",
                            printable(fmt::format("{}", fmt::join(report.replaced_code, ", ")))));
}

std::uint64_t lost_names(const Trace& opened) {
  std::uint64_t names = 0;
  for (const trace::Part& part : opened.parts()) names += part.header.lost_names;
  return names;
}

/// Whether everything is there that is known to have been done.
bool has_everything(const Trace& opened, const Summary& summary) {
  return opened.unreadable().empty() && summary.lost_calls == 0 && lost_names(opened) == 0 &&
         opened.missing_parts() == 0 && opened.unrecorded_processes() == 0;
}

/// Paths of the files with the most bytes, then calls.
std::vector<std::string_view> greatest_files(const Summary& summary) {
  std::vector<std::string_view> paths;
  for (const auto& [path, totals] : summary.files) paths.push_back(path);
  const auto bytes = [&](std::string_view path) {
    const trace::FileTotals& file = summary.files.find(path)->second;
    return std::pair(file.read_bytes + file.written_bytes, file.calls);
  };
  const std::size_t count = std::min(shown_files, paths.size());
  std::ranges::partial_sort(paths, paths.begin() + static_cast<std::ptrdiff_t>(count),
                            [&](std::string_view a, std::string_view b) { return bytes(a) > bytes(b); });
  paths.resize(count);
  return paths;
}

/// Returns the counters of selected files, those with the most bytes first.
std::vector<const trace::FileCounters*> counted_files(const Trace& opened, const InfoArguments& options) {
  std::vector<const trace::FileCounters*> found;
  for (const trace::FileCounters& each : opened.counters()) {
    const bool is_layer = options.layer.empty() || options.layer == "all" ||
                          options.layer == trace::layer_names[static_cast<std::size_t>(each.layer)];
    if (is_layer && (options.files.empty() || trace::matches_file(options.files, each.path))) found.push_back(&each);
  }
  std::ranges::stable_sort(found, std::ranges::greater{},
                           [](const trace::FileCounters* each) { return each->reads.bytes + each->writes.bytes; });
  return found;
}

ordered_json counters_json(std::span<const trace::FileCounters* const> counted) {
  const auto way = [](const trace::WayCounters& counters) -> ordered_json {
    return {{"calls", counters.calls},
            {"bytes", counters.bytes},
            {"consecutive", counters.consecutive},
            {"forward", counters.forward}};
  };
  ordered_json files = ordered_json::array();
  for (const trace::FileCounters* each : counted)
    files.push_back({{"path", each->path},
                     {"layer", trace::layer_names[static_cast<std::size_t>(each->layer)]},
                     {"rank", each->rank ? ordered_json(*each->rank) : ordered_json(nullptr)},
                     {"processes", each->processes},
                     {"reads", way(each->reads)},
                     {"writes", way(each->writes)},
                     {"syncs", each->syncs},
                     {"mapped", each->mapped},
                     {"end", each->end}});
  return files;
}

void show_counters(std::span<const trace::FileCounters* const> counted, const Console& console) {
  if (counted.empty()) return;
  console.say("");
  console.say("counters, without single calls:");
  const auto cell = [](std::uint64_t number) { return number > 0 ? fmt::format("{}", number) : std::string(); };
  const auto bytes = [](std::uint64_t number) {
    return number > 0 ? about_bytes(static_cast<double>(number)) : std::string();
  };
  Table table({"FILE", "LAYER", "RANK", "READS", "READ", "WRITES", "WRITTEN", "SYNCS"});
  for (const trace::FileCounters* each : counted.first(std::min(shown_files, counted.size())))
    table.add({printable(each->path), std::string(trace::layer_names[static_cast<std::size_t>(each->layer)]),
               each->rank ? fmt::format("{}", *each->rank) : "all", cell(each->reads.calls), bytes(each->reads.bytes),
               cell(each->writes.calls), bytes(each->writes.bytes), cell(each->syncs)});
  console.say(table);
  if (counted.size() > shown_files)
    console.say(fmt::format("and {} more; --json has all", counted.size() - shown_files));
}

constexpr std::string_view clock_states[] = {"reference", "alone", "contradictory", "close", "ahead"};

ordered_json clocks_json(const Trace& opened) {
  ordered_json clocks = ordered_json::array();
  for (const auto& [name, reference, found] : opened.host_clocks())
    clocks.push_back({{"name", name},
                      {"state", clock_states[static_cast<std::size_t>(found.state)]},
                      {"ahead_ns", found.ahead_ns},
                      {"at_least_ns", found.at_least_ns},
                      {"at_most_ns", found.at_most_ns},
                      {"calls", found.calls},
                      {"agreeing", found.agreeing}});
  return clocks;
}

ordered_json part_json(const trace::Part& part) {
  ordered_json shown{{"part", part.name},
                     {"pid", part.header.pid},
                     {"state", part.fault && !part.fault->is_cut ? "damaged"
                               : part.header.is_closed == 1      ? "complete"
                                                                 : "open"}};
  if (part.fault) shown["fault"] = {{"byte", part.fault->at}, {"what", part.fault->what}};
  return shown;
}

void show_json(const Trace& opened, const Summary& summary, std::span<const trace::FileCounters* const> counted,
               const Console& console) {
  ordered_json layers = ordered_json::object(), calls = ordered_json::object();
  for (std::size_t n = 0; n < summary.layers.size(); ++n)
    layers[std::string(trace::layer_names[n])] = totals_json(summary.layers[n]);
  for (const auto& [call, totals] : summary.calls) calls[std::string(trace::name_of(call))] = totals_json(totals);
  ordered_json processes = ordered_json::array(), files = ordered_json::array(), parts = ordered_json::array();
  for (const trace::ProcessSummary& each : summary.processes) {
    ordered_json shown{
        {"host", each.process->host}, {"pid", each.process->pid}, {"parent_pid", each.process->parent_pid}};
    shown["rank"] = each.process->rank ? ordered_json(*each.process->rank) : ordered_json(nullptr);
    shown["ranks"] = each.process->ranks ? ordered_json(*each.process->ranks) : ordered_json(nullptr);
    shown["program"] = each.process->program;
    shown["arguments"] = each.process->arguments;
    shown["directory"] = each.process->directory;
    shown["variables"] = ordered_json::object();
    for (const auto& [key, value] : each.process->variables) shown["variables"][key] = value;
    shown["threads"] = each.threads.size();
    shown["complete"] = each.is_closed;
    shown["lost_calls"] = each.lost_calls;
    shown["calls"] = each.totals.calls;
    shown["in_flight"] = each.totals.in_flight;
    shown["read_bytes"] = each.totals.read_bytes;
    shown["written_bytes"] = each.totals.written_bytes;
    shown["io_s"] = seconds(each.totals.inclusive_ns);
    processes.push_back(std::move(shown));
  }
  for (const std::string_view path : greatest_files(summary)) {
    const trace::FileTotals& file = summary.files.find(path)->second;
    files.push_back({{"path", path},
                     {"calls", file.calls},
                     {"read_bytes", file.read_bytes},
                     {"written_bytes", file.written_bytes}});
  }
  for (const trace::Part& part : opened.parts()) parts.push_back(part_json(part));
  for (const trace::UnreadablePart& part : opened.unreadable())
    parts.push_back({{"part", part.name}, {"state", "unreadable"}, {"fault", {{"what", part.error.message}}}});
  const SourceReport selected = source_report(opened);
  console.say_json(info_schema, {{"command", command_text(opened, summary)},
                                 {"sources", sources_json(selected)},
                                 {"without_lines", selected.without_lines},
                                 {"replaced_code", selected.replaced_code},
                                 {"started_ns", opened.started_ns()},
                                 {"span_s", seconds(summary.span_ns)},
                                 {"threads", summary.threads},
                                 {"lost_calls", summary.lost_calls},
                                 {"lost_names", lost_names(opened)},
                                 {"missing_parts", opened.missing_parts()},
                                 {"unrecorded_processes", opened.unrecorded_processes()},
                                 {"unrecorded_calls", opened.unrecorded_calls()},
                                 {"clocks", clocks_json(opened)},
                                 {"packed_calls", summary.packed_calls},
                                 {"packed_bytes", summary.packed_bytes},
                                 {"layers", std::move(layers)},
                                 {"calls", std::move(calls)},
                                 {"processes", std::move(processes)},
                                 {"file_count", summary.files.size()},
                                 {"files", std::move(files)},
                                 {"counters", counters_json(counted)},
                                 {"parts", std::move(parts)}});
}

std::vector<std::string> totals_row(std::string name, const CallTotals& totals) {
  return {std::move(name),
          fmt::format("{}", totals.calls),
          totals.failed > 0 ? fmt::format("{}", totals.failed) : "",
          totals.in_flight > 0 ? fmt::format("{}", totals.in_flight) : "",
          totals.read_bytes > 0 ? about_bytes(static_cast<double>(totals.read_bytes)) : "",
          totals.written_bytes > 0 ? about_bytes(static_cast<double>(totals.written_bytes)) : "",
          about_seconds(seconds(totals.inclusive_ns)),
          about_seconds(seconds(totals.exclusive_ns))};
}

void show_text(const Trace& opened, const Summary& summary, std::span<const trace::FileCounters* const> counted,
               const Console& console) {
  const auto plural = [](std::uint64_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : what.ends_with('s') ? "es" : "s");
  };
  std::uint64_t calls = 0, in_flight = 0;
  for (const CallTotals& layer : summary.layers) {
    calls += layer.calls;
    in_flight += layer.in_flight;
  }
  console.say(fmt::format("{}", printable(command_text(opened, summary))));
  show_sources(source_report(opened), console);
  if (calls == 0) {
    console.say("no call was recorded, or is selected");
    show_counters(counted, console);
    console.say(not_seen_in(opened));
    return;
  }
  console.say(fmt::format("began {}, {}; {}, {}, {}, {}", utc_text(opened.started_ns()),
                          about_seconds(seconds(summary.span_ns)), plural(summary.processes.size(), "process"),
                          plural(summary.threads, "thread"), plural(calls, "call"),
                          plural(summary.files.size(), "file")));
  const auto open = std::ranges::count_if(summary.processes, [](const auto& each) { return !each.is_closed; });
  if (open == 0 && has_everything(opened, summary))
    console.say("complete");
  else if (open > 0)
    console.say(fmt::format("{} not end: still running, or killed; {} in flight",
                            open == 1 ? "1 process did" : fmt::format("{} processes did", open),
                            plural(in_flight, "call")));
  if (summary.packed_calls > 0)
    console.say(fmt::format("{} packed in {}: {:.2f} bytes a call", plural(summary.packed_calls, "call"),
                            about_bytes(static_cast<double>(summary.packed_bytes)),
                            static_cast<double>(summary.packed_bytes) / static_cast<double>(summary.packed_calls)));

  console.say("");
  Table by_call({"LAYER OR CALL", "CALLS", "FAILED", "IN FLIGHT", "READ", "WRITTEN", "TIME", "OWN TIME"});
  for (std::size_t n = 0; n < summary.layers.size(); ++n) {
    if (summary.layers[n].calls == 0) continue;
    by_call.add(totals_row(std::string(trace::layer_names[n]), summary.layers[n]));
    for (const auto& [call, totals] : summary.calls)
      if (static_cast<std::size_t>(trace::layer_of(call)) == n)
        by_call.add(totals_row(fmt::format("  {}", trace::name_of(call)), totals));
  }
  console.say(by_call);

  console.say("");
  Table by_process({"HOST", "PID", "RANK", "THREADS", "CALLS", "READ", "WRITTEN", "TIME", "STATE", "PROGRAM"});
  const std::size_t shown = std::min(summary.processes.size(), shown_processes);
  for (const trace::ProcessSummary& each : std::span(summary.processes).first(shown))
    by_process.add(
        {printable(each.process->host), fmt::format("{}", each.process->pid),
         each.process->rank ? fmt::format("{}", *each.process->rank) : "", fmt::format("{}", each.threads.size()),
         fmt::format("{}", each.totals.calls), about_bytes(static_cast<double>(each.totals.read_bytes)),
         about_bytes(static_cast<double>(each.totals.written_bytes)), about_seconds(seconds(each.totals.inclusive_ns)),
         each.is_closed ? "complete" : "open", printable(each.process->program)});
  console.say(by_process);
  if (shown < summary.processes.size())
    console.say(fmt::format("and {}; --json has all", plural(summary.processes.size() - shown, "process")));

  if (!summary.files.empty()) {
    console.say("");
    Table by_file({"FILE", "CALLS", "READ", "WRITTEN"});
    for (const std::string_view path : greatest_files(summary)) {
      const trace::FileTotals& file = summary.files.find(path)->second;
      by_file.add({printable(path), fmt::format("{}", file.calls), about_bytes(static_cast<double>(file.read_bytes)),
                   about_bytes(static_cast<double>(file.written_bytes))});
    }
    console.say(by_file);
    if (summary.files.size() > shown_files)
      console.say(fmt::format("and {} more", plural(summary.files.size() - shown_files, "file")));
  }
  show_counters(counted, console);
  console.say("");
  console.say(not_seen_in(opened));
}

int run_info(const InfoArguments& options, Console& console) {
  const auto selection = selection_of(options.layer, options.files);
  if (!selection) return console.fail(selection.error());
  const auto opened = Trace::open(options.directory);
  if (!opened) return console.fail(opened.error());
  note_faults(*opened, console);
  const auto summary = trace::summary_of(*opened, *selection);
  if (!summary) return console.fail(summary.error());
  note_faults(summary->faults, console);
  const auto counted = counted_files(*opened, options);
  if (console.json)
    show_json(*opened, *summary, counted, console);
  else
    show_text(*opened, *summary, counted, console);
  return yes;
}

}  // namespace

void add_trace_info(Verb trace, Action& action) {
  const Verb info = trace.add_verb("info", "Say what is in a trace: processes, calls, bytes, times, files");
  const auto options = std::make_shared<InfoArguments>();
  info.add_option("TRACE", options->directory, "the directory that 'iosig trace' or 'iosig mount --trace' made")
      .type_name("DIR")
      .required();
  add_selection_options(info, options->layer, options->files);
  info.footer("Example: iosig trace info job.trace");
  info.when_chosen(action, info_schema, [options](Console& console) { return run_info(*options, console); });
}

}  // namespace iosig::cli
