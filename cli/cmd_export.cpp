// `iosig export`: the accesses of a trace for other programs: CSV, Perfetto's protobuf, the text of darshan-dxt-parser;
// as Parquet by the Python package.

#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands.h"
#include "draft_file.h"
#include "external.h"
#include "interruption.h"
#include "iosig/base/text.h"
#include "iosig/trace/dxt_text.h"
#include "iosig/trace/export.h"
#include "iosig/trace/perfetto.h"
#include "iosig/trace/trace.h"
#include "trace_source.h"

namespace iosig::cli {
namespace {

struct ExportArguments {
  std::vector<std::string> directories;
  std::string format = "csv", output, layer, files;
};

/// Executes the Python package's program in place of this one; returns only if that fails.
int export_parquet(const ExportArguments& options, Console& console) {
  if (options.output.empty())
    return console.fail({ErrorKind::usage, "-o is required with --format parquet: the directory to make"});
  std::vector<std::string> words{"iosig", "export-parquet", "--output=" + options.output};
  if (!options.layer.empty()) words.push_back("--layer=" + options.layer);
  if (!options.files.empty()) words.push_back("--files=" + options.files);
  words.emplace_back("--");
  words.insert(words.end(), options.directories.begin(), options.directories.end());
  std::vector<char*> arguments;
  for (std::string& each : words) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  run_external_verb("export-parquet", arguments.data());
  return console.fail({ErrorKind::usage, python_package_missing("export-parquet")});
}

using Put = std::function<Result<void>(std::string_view)>;

constexpr std::size_t piece_bytes = 1 << 16;

Result<void> export_csv(const trace::Trace& from, const trace::Selection& selection, const Put& put,
                        std::vector<Error>& faults) {
  std::string text(trace::csv_header);
  const auto flush = [&]() -> Result<void> {
    auto written = put(text);
    text.clear();
    return written;
  };
  auto done = from.for_each(
      [&](const trace::Access& access) -> Result<void> {
        trace::append_csv(access, text);
        return text.size() < piece_bytes ? Result<void>{} : flush();
      },
      selection, faults);
  return done ? flush() : done;
}

Result<void> export_perfetto(const trace::Trace& from, const trace::Selection& selection, const Put& put,
                             std::vector<Error>& faults) {
  std::string bytes;
  trace::PerfettoWriter writer(from.started_ns(), bytes);
  const auto flush = [&]() -> Result<void> {
    auto written = put(bytes);
    bytes.clear();
    return written;
  };
  auto done = from.for_each(
      [&](const trace::Access& access) -> Result<void> {
        writer.add(access);
        return bytes.size() < piece_bytes ? Result<void>{} : flush();
      },
      selection, faults);
  if (!done) return done;
  writer.finish();
  return flush();
}

Result<void> export_dxt_text(const trace::Trace& from, const trace::Selection& selection, const std::string& directory,
                             const Put& put, std::vector<Error>& faults, const Console& console) {
  const auto left_out = trace::write_dxt_text(from, selection, directory, put, faults);
  if (!left_out) return pass_on(left_out.error());
  const auto note = [&](std::uint64_t calls, std::string_view why) {
    if (calls > 0)
      console.note(
          fmt::format("{} read{} or write{} left out: {}", calls, calls == 1 ? "" : "s", calls == 1 ? "" : "s", why));
  };
  note(left_out->stdio, "DXT has no stdio");
  note(left_out->unfinished, "without an end");
  note(left_out->unnamed, "of files whose path is not known");
  if (left_out->has_numbers)
    console.note("some processes have no rank: RANK is the number of the process, in the order of rank, host and pid");
  return {};
}

int run_export(const ExportArguments& options, Console& console) {
  auto selection = selection_of(options.layer, options.files);
  if (!selection) return console.fail(selection.error());
  if (options.format == "parquet") return export_parquet(options, console);
  if (options.directories.size() > 1)
    return console.fail({ErrorKind::usage, "expected one TRACE; only --format parquet takes several"});
  const bool to_output = options.output.empty() || options.output == "-";
  if (options.format == "perfetto" && to_output && ::isatty(STDOUT_FILENO) == 1)
    return console.fail({ErrorKind::usage, "--format perfetto is no text: name a file with -o, or redirect"});
  const auto opened = trace::Trace::open(options.directories.front());
  if (!opened) return console.fail(opened.error());
  note_faults(*opened, console);
  std::optional<NoticeSignals> noticing;
  if (!to_output) noticing.emplace();  // an interruption must delete the draft
  auto output = DraftFile::open(options.output);
  if (!output) return console.fail(output.error());
  const Put put = [&](std::string_view bytes) -> Result<void> {
    if (interruption() != 0) return fail(ErrorKind::system, "interrupted");
    return output->write(bytes);
  };
  std::vector<Error> faults;
  auto done = options.format == "perfetto" ? export_perfetto(*opened, *selection, put, faults)
              : options.format == "dxt-text"
                  ? export_dxt_text(*opened, *selection, output->directory(), put, faults, console)
                  : export_csv(*opened, *selection, put, faults);
  if (done && interruption() == 0) done = output->finish();
  if (interruption() != 0) {
    console.note(fmt::format("interrupted; {} is not written", printable(options.output)));
    return interrupted_status + interruption();
  }
  if (!done) return console.fail(done.error());
  note_faults(faults, console);
  return yes;
}

}  // namespace

void add_export(Verb app, Action& action) {
  const Verb verb = app.add_verb("export", "Print every access of a trace, for other programs");
  const auto options = std::make_shared<ExportArguments>();
  verb.add_option("TRACE", options->directories, "the directory that 'iosig trace -o' made; of parquet, several")
      .type_name("DIR")
      .required();
  verb.add_option(
          "--format", options->format,
          "csv, which is the default; perfetto, for ui.perfetto.dev; dxt-text, as darshan-dxt-parser prints; parquet, "
          "a partition for each trace")
      .check(one_of({"csv", "perfetto", "dxt-text", "parquet"}))
      .type_name("NAME");
  verb.add_option("-o,--output", options->output,
                  "file to write, standard output unless given; of parquet, the directory to make")
      .type_name("FILE");
  add_selection_options(verb, options->layer, options->files);
  verb.footer(
      "Fields of csv: id,parent,host,pid,tid,rank,layer,call,path,fd,offset,length,start_ns,end_ns,result,second_path\n"
      "Example: iosig export --format perfetto job.trace -o job.perfetto-trace");
  verb.when_chosen(action, "", [options](Console& console) { return run_export(*options, console); });
}

}  // namespace iosig::cli
