// `iosig pattern trace`: the patterns of the reads and writes of each file in a trace.

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "commands.h"
#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/format/pattern_binary.h"
#include "iosig/format/pattern_json.h"
#include "iosig/format/pattern_text.h"
#include "iosig/model/access_columns.h"
#include "iosig/trace/access_streams.h"
#include "pattern_plot.h"
#include "prefetch_model.h"
#include "trace_source.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;
using trace::AccessStream;
using trace::AccessStreams;
using trace::Moves;

constexpr const char* streams_schema = "iosig.trace.patterns/1";
constexpr std::size_t shown_streams = 20;

struct PatternTraceArguments {
  std::string directory, layer = "posix", files, output;
  bool reads = false, writes = false;
  PlotOptions plot;
  ModelOptions model;
};

const char* direction(const AccessStream& stream) { return stream.moves == Moves::reads ? "read" : "written"; }

/// Returns "processes 0 to 3", "process 7", "processes 0, 2 and 4 others".
std::string processes_text(std::span<const std::int64_t> ids) {
  if (ids.size() == 1) return fmt::format("process {}", ids[0]);
  if (ids.back() - ids.front() == static_cast<std::int64_t>(ids.size()) - 1)
    return fmt::format("processes {} to {}", ids.front(), ids.back());
  if (ids.size() <= 8) return fmt::format("processes {}", fmt::join(ids, ", "));
  return fmt::format("processes {} and {} others", fmt::join(ids.first(4), ", "), ids.size() - 4);
}

std::string indented(std::string_view text) {
  std::string lines = "  ";
  for (const char each : text) {
    lines += each;
    if (each == '\n') lines += "  ";
  }
  return lines;
}

void show_text(const AccessStreams& found, const Console& console) {
  const std::size_t shown = std::min(found.streams.size(), shown_streams);
  for (const AccessStream& stream : std::span(found.streams).first(shown)) {
    const std::uint64_t count = stream.pattern.count();
    console.say(fmt::format("{}: {} by {}, {} access{}, {}: {} bytes as a pattern",
                            stream.path.empty() ? "(a file without a known name)" : printable(stream.path),
                            direction(stream), processes_text(stream.ids), count, count == 1 ? "" : "es",
                            about_bytes(static_cast<double>(stream.bytes)), pattern_bytes(stream.pattern).size()));
    console.say(indented(pattern_text(stream.pattern, column_names(stream.pattern))));
  }
  if (shown < found.streams.size())
    console.say(fmt::format("and {} more streams; --files selects, --json has all", found.streams.size() - shown));
}

void show_json(const AccessStreams& found, const Console& console) {
  ordered_json processes = ordered_json::array(), streams = ordered_json::array();
  for (const auto& [id, process] : found.processes)
    processes.push_back({{"id", id},
                         {"host", process->host},
                         {"pid", process->pid},
                         {"rank", process->rank ? ordered_json(*process->rank) : ordered_json(nullptr)},
                         {"program", process->program}});
  for (const AccessStream& stream : found.streams) {
    ordered_json pattern{{"schema", pattern_schema}};
    pattern.update(pattern_json(stream.pattern));
    streams.push_back({{"path", stream.path},
                       {"direction", stream.moves == Moves::reads ? "read" : "write"},
                       {"processes", stream.ids},
                       {"transferred_bytes", stream.bytes},
                       {"pattern", std::move(pattern)}});
  }
  console.say_json(
      streams_schema,
      {{"processes", std::move(processes)}, {"left_out", found.left_out}, {"streams", std::move(streams)}});
}

/// Returns the only stream, which --output and --plot are about.
Result<const AccessStream*> only_stream(const AccessStreams& found, std::string_view option) {
  if (found.streams.size() == 1) return &found.streams.front();
  if (found.streams.empty()) return fail(ErrorKind::bad_input, "there is no such access in the trace");
  return fail(ErrorKind::usage, "{} is about one stream, and these are {}; select one with --files, --reads, --writes",
              option, found.streams.size());
}

int run_trace(PatternTraceArguments& options, Console& console) {
  if (const auto sound = check_plot(options.plot, options.directory, "trace", console.json); !sound)
    return console.fail(sound.error());
  if (const auto sound = checked(options.model); !sound) return console.fail(sound.error());
  const auto selection = selection_of(options.layer, options.files);
  if (!selection) return console.fail(selection.error());
  const auto opened = trace::Trace::open(options.directory);
  if (!opened) return console.fail(opened.error());
  note_faults(*opened, console);
  const Moves only = options.reads ? Moves::reads : options.writes ? Moves::writes : Moves::nothing;
  std::vector<Error> faults;
  const auto found = trace::access_streams(*opened, *selection, only, faults);
  if (!found) return console.fail(found.error());
  note_faults(faults, console);
  if (found->left_out > 0)
    console.note(fmt::format("left out: {} access{} that failed, had not returned, or {} no offset in this layer",
                             found->left_out, found->left_out == 1 ? "" : "es", found->left_out == 1 ? "has" : "have"));
  if (!options.output.empty()) {
    const auto stream = only_stream(*found, "--output");
    if (!stream) return console.fail(stream.error());
    const std::vector<std::uint8_t> bytes = pattern_bytes((*stream)->pattern);
    if (auto written = write_output(options.output, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        !written)
      return console.fail(written.error());
  }
  if (!options.model.file.empty())
    if (const auto written = write_model(*opened, *selection, options.model, console); !written)
      return console.fail(written.error());
  if (console.json)
    show_json(*found, console);
  else
    show_text(*found, console);
  if (!options.plot.is_wanted) return yes;
  const auto stream = only_stream(*found, "--plot");
  if (!stream) return console.fail(stream.error());
  return draw_plot(options.plot, (*stream)->pattern, column_names((*stream)->pattern), console);
}

}  // namespace

void add_pattern_trace(Verb pattern, Action& action) {
  const Verb verb = pattern.add_verb("trace", "Describe the reads and the writes of each file in a trace");
  const auto options = std::make_shared<PatternTraceArguments>();
  verb.add_option("TRACE", options->directory, "the directory that 'iosig trace -o' made").type_name("DIR");
  add_selection_options(verb, options->layer, options->files);
  const Option reads = verb.add_flag("--reads", options->reads, "only reads");
  const Option writes = verb.add_flag("--writes", options->writes, "only writes").excludes(reads);
  verb.add_option("--output", options->output, "also write the binary form of the only stream").type_name("FILE");
  verb.add_option("--model", options->model.file,
                  "also write what was read of each file, for --prefetch-model of 'iosig run' and 'iosig mount'")
      .type_name("FILE")
      .excludes(writes);
  verb.add_flag_with_value("--markov", options->model.block_bytes, "8KiB",
                           "the model has no patterns, but which block of this size follows which (default 8KiB)");
  add_plot_option(verb, options->plot);
  verb.footer(
      "Columns: the offset in the file, the length that was asked for, and the id of the process, its rank if it has\n"
      "one. Processes that access a file in the same way, each at places of its own, become one nest.\n"
      "Example: iosig pattern trace job.trace --files '*.chk' --writes\n"
      "         iosig pattern trace job.trace --model job.reads");
  verb.when_chosen(action, streams_schema, [options](Console& console) { return run_trace(*options, console); });
}

}  // namespace iosig::cli
