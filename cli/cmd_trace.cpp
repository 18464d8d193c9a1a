// `iosig trace`: runs an unmodified program and records its operations on files (runtime/preload/trace).

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "iosig/base/files.h"
#include "iosig/base/machine.h"
#include "iosig/base/text.h"
#include "iosig/trace/calls.h"
#include "iosig/trace/source_lines.h"
#include "parts.h"
#include "program.h"
#include "trace_directory.h"

namespace iosig::cli {
namespace {

using trace::Call;

struct TraceArguments {
  std::string directory, calls;
  std::vector<std::string> files, sources, command;
  bool paused = false, microseconds = false, dry_run = false, no_open_lines = false;
};

constexpr std::size_t max_glob_bytes = 255;  ///< as the recorder keeps them
/// Ranks of one job that has no name of its own start within this time.
constexpr std::int64_t max_start_spread_ns = 60'000'000'000;

/// Whether this process is one of several ranks.
bool is_rank() {
  return std::ranges::any_of(std::initializer_list<const char*>{"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK",
                                                                "SLURM_PROCID", "FLUX_TASK_RANK"},
                             [](const char* variable) { return std::getenv(variable) != nullptr; });
}

/// Whether the time stamp counter is the same clock on all processors, whatever they do.
bool has_tsc_clock() {
#if defined(__x86_64__)
  const auto clock = read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  if (clock && clock->starts_with("tsc")) return true;
  const auto processors = read_file("/proc/cpuinfo");
  return processors && clock && (clock->starts_with("kvm-clock") || clock->starts_with("hyperv")) &&
         processors->find(" constant_tsc") != std::string::npos &&
         processors->find(" nonstop_tsc") != std::string::npos;
#else
  return false;
#endif
}

/// Whether the trace that has begun in the directory is this job's: another rank was first.
Result<void> check_manifest(const TraceDirectory& trace, const std::string& given) {
  const std::string shown = fmt::format("{}/{}", given, trace_manifest_name);
  const auto text = read_file_in(trace.fd, trace_manifest_name, shown, 1u << 20);
  if (!text) return pass_on(text.error());
  const auto manifest = nlohmann::json::parse(*text, nullptr, false);
  if (manifest.is_object() && is_rank() && manifest.value("job", "") == job_name() &&
      (!job_name().empty() || unix_ns() - manifest.value("started_ns", std::int64_t{0}) < max_start_spread_ns))
    return {};
  return another_trace(given, "-o");
}

/// Makes the trace's directory, or joins that of the job's other ranks. Returns its absolute path.
Result<std::string> begin_trace(const TraceArguments& options, const Console& console) {
  auto trace = make_trace_directory(options.directory, {.command = options.command,
                                                        .calls = options.calls,
                                                        .files = options.files,
                                                        .sources = options.sources,
                                                        .has_tsc_clock = has_tsc_clock()});
  if (!trace) return pass_on(trace.error());
  if (trace->is_new)
    console.note(fmt::format("tracing into '{0}'; afterwards: iosig trace info '{0}'", printable(options.directory)));
  else if (auto joined = check_manifest(*trace, options.directory); !joined)
    return pass_on(joined.error());
  return std::move(trace->path);
}

/// Refuses names that are neither calls nor layers.
Result<void> check_calls(std::string_view names) {
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(','), names.size());
    const std::string_view name = names.substr(0, end);
    if (trace::call_of(name) == Call::none &&
        std::ranges::find(trace::layer_names, name) == std::end(trace::layer_names))
      return fail(ErrorKind::usage,
                  "--ops: '{}' is no call that a trace knows; expected layers ({}) or calls (pread, fopen, "
                  "MPI_File_write_at_all, ...), separated by commas",
                  printable(name), fmt::join(trace::layer_names, ", "));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return {};
}

/// Checks --source and writes each in its plain form. Returns the program that finds the code of lines.
Result<std::string> find_sources(std::vector<std::string>& sources) {
  for (std::string& source : sources) {
    const auto lines = trace::parse_source_lines(source);
    if (!lines) return fail(ErrorKind::usage, "--source {}", lines.error().message);
    source = trace::source_lines_text(*lines);
  }
  return find_line_reader();
}

int trace_command(TraceArguments& options, Console& console) {
  if (options.command.empty())
    return console.fail({ErrorKind::usage, "expected a command, e.g. iosig trace -o job.trace -- ./solver input.txt"});
  if (auto known = check_calls(options.calls); !known) return console.fail(known.error());
  for (const std::string& glob : options.files)
    if (glob.empty() || glob.find(':') != std::string::npos || glob.size() > max_glob_bytes)
      return console.fail(
          {ErrorKind::usage, fmt::format("--files '{}': expected a glob of at most {} bytes without colons",
                                         printable(glob), max_glob_bytes)});
  std::string line_reader;
  if (!options.sources.empty()) {
    auto found = find_sources(options.sources);
    if (!found) return console.fail(found.error());
    line_reader = *std::move(found);
  }
  if (options.directory.empty())
    options.directory = std::filesystem::path(options.command.front()).filename().string() + ".trace";
  auto preloaded = preload_setting();
  if (!preloaded) return console.fail(preloaded.error());
  std::string path = std::filesystem::absolute(options.directory).lexically_normal().string();
  if (!options.dry_run) {
    auto begun = begin_trace(options, console);
    if (!begun) return console.fail(begun.error());
  }
  std::vector<Setting> settings{std::move(*preloaded), program_setting(), {"IOSIG_TRACE", std::move(path)}};
  if (!options.calls.empty()) settings.push_back({"IOSIG_TRACE_OPS", options.calls});
  if (!options.files.empty())
    settings.push_back({"IOSIG_TRACE_FILES", fmt::format("{}", fmt::join(options.files, ":"))});
  if (!options.sources.empty()) {
    settings.push_back({"IOSIG_TRACE_SOURCES", fmt::format("{}", fmt::join(options.sources, ","))});
    settings.push_back({"IOSIG_TRACE_LINES", std::move(line_reader)});
  }
  if (options.microseconds) settings.push_back({"IOSIG_TRACE_TIMES", "us"});
  if (options.no_open_lines) settings.push_back({"IOSIG_TRACE_PLACES", "no"});
  if (options.paused) settings.push_back({"IOSIG_TRACE_PAUSED", "1"});
  if (has_tsc_clock()) settings.push_back({"IOSIG_TRACE_CLOCK", "tsc"});
  settings.push_back(sanitizer_setting());
  std::ranges::move(settings_of_tracing_alone(), std::back_inserter(settings));
  return become_program(options.command, settings, options.dry_run, console);
}

}  // namespace

void add_trace(Verb app, Action& action) {
  const Verb verb = app.add_verb("trace", "Record every operation of an unmodified program on files");
  const auto options = std::make_shared<TraceArguments>();
  verb.add_option("COMMAND", options->command, "after --: a program and its arguments");
  verb.add_option("-o,--output", options->directory, "directory of the trace, new [PROGRAM.trace]").type_name("DIR");
  verb.add_option("--ops", options->calls, "record these calls or layers only, e.g. mpi-io,pread,pwrite")
      .type_name("LIST");
  verb.add_option("--files", options->files, "record only files whose name (or path, if GLOB has a slash) matches")
      .type_name("GLOB")
      .repeatable();
  verb.add_option("--source", options->sources,
                  "record only calls from these lines of source code, e.g. io.c:30-500, also through libraries")
      .type_name("FILE[:LINES]")
      .repeatable();
  verb.add_flag("--paused", options->paused, "record nothing until the program calls iosig_trace_start() (iosig.h)");
  verb.add_flag("--no-open-lines", options->no_open_lines, "do not note from which lines the program opens files");
  verb.add_flag("--microseconds", options->microseconds, "keep times as whole microseconds, in fewer bytes");
  verb.add_flag("--dry-run", options->dry_run, "print the environment and the command; run nothing");
  verb.footer(
      "The command replaces the iosig process. The program and those that it starts are recorded, each thread in a "
      "file\n"
      "of the directory; all ranks of an MPI job share one directory.\n"
      "Exit status: the program's; 126 it cannot be executed, 127 it is not found; 2, 3, 4 iosig itself failed.\n"
      "Example: iosig trace -o job.trace -- ./solver input.txt\n"
      "         mpirun -n 4 iosig trace -o job.trace -- ./solver");
  verb.when_chosen(action, "", [options](Console& console) { return trace_command(*options, console); });
  add_trace_info(verb, action);
}

}  // namespace iosig::cli
