// `iosig import`: makes a trace of what other tools recorded.

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "commands.h"
#include "interruption.h"
#include "iosig/base/text.h"
#include "iosig/trace/import/import.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* import_schema = "iosig.import/1";

struct ImportArguments {
  std::vector<std::string> inputs;
  std::string output, format;
};

ordered_json import_json(const trace::Imported& imported, const std::string& output) {
  ordered_json left_out = ordered_json::array();
  for (const auto& [reason, calls] : imported.notes.left_out)
    left_out.push_back({{"reason", reason}, {"calls", calls}});
  return {{"trace", printable(output)},
          {"formats", imported.formats},
          {"processes", imported.totals.processes},
          {"threads", imported.totals.threads},
          {"calls", imported.totals.calls},
          {"files", imported.totals.files},
          {"counters", imported.totals.counters},
          {"left_out", left_out},
          {"remarks", imported.notes.remarks},
          {"further_remarks", imported.notes.further_remarks}};
}

int run_import(const ImportArguments& options, Console& console) {
  if (options.output.empty())
    return console.fail({ErrorKind::usage, "-o TRACE is missing: the directory to make, e.g. -o job.trace"});
  const NoticeSignals noticing;  // an interruption must remove the draft
  const auto imported =
      trace::import_traces(options.inputs, options.format, options.output, [] { return interruption() != 0; });
  if (!imported && interruption() != 0) {
    console.note(fmt::format("interrupted; {} is not made", printable(options.output)));
    return interrupted_status + interruption();
  }
  if (!imported) return console.fail(imported.error());
  for (const std::string& remark : imported->notes.remarks) console.note(remark);
  if (const std::uint64_t more = imported->notes.further_remarks; more > 0)
    console.note(fmt::format("{} more notes", more));
  if (console.json) {
    console.say_json(import_schema, import_json(*imported, options.output));
    return yes;
  }
  const trace::TraceWriter::Totals& totals = imported->totals;
  const auto counted = [](std::uint64_t count, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
  };
  console.say(fmt::format("{}: {} by {} in {}, on {}", printable(options.output),
                          counted(totals.calls, "call", "calls"), counted(totals.threads, "thread", "threads"),
                          counted(totals.processes, "process", "processes"), counted(totals.files, "path", "paths")));
  if (totals.counters > 0) console.say(fmt::format("counters alone, of files and processes: {}", totals.counters));
  for (const auto& [reason, calls] : imported->notes.left_out)
    console.say(fmt::format("left out: {} {}", counted(calls, "call", "calls"), reason));
  return yes;
}

}  // namespace

void add_import(Verb app, Action& action) {
  const Verb verb =
      app.add_verb("import", "Make a trace of what other tools recorded: Darshan, Recorder, strace, DFTracer, CSV");
  const auto options = std::make_shared<ImportArguments>();
  verb.add_option("FILE", options->inputs, "files, directories of files, or - for standard input").required();
  verb.add_option("-o,--output", options->output, "directory of the trace, new").type_name("TRACE");
  verb.add_option("--format", options->format, "what the files are, if their content does not tell")
      .check(one_of({std::begin(trace::import_formats), std::end(trace::import_formats)}))
      .type_name("NAME");
  verb.footer(
      "strace must run with -ttt; best: strace -f -ttt -T -y -o solver.strace ./solver input.txt\n"
      "Example: iosig import solver.strace -o solver.trace");
  verb.when_chosen(action, import_schema, [options](Console& console) { return run_import(*options, console); });
}

}  // namespace iosig::cli
