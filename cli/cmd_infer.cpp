// `iosig infer`: signatures of streams that nobody declared, from traces of runs.

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "commands.h"
#include "iosig/base/files.h"
#include "iosig/base/json_text.h"
#include "iosig/base/text.h"
#include "iosig/base/trust.h"
#include "iosig/base/units.h"
#include "iosig/format/rules_toml.h"
#include "iosig/observe/counted_files.h"
#include "iosig/observe/infer.h"
#include "open_lines.h"
#include "trace_source.h"
#include "traced_run.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;
using observe::InferredStream;
using observe::TracedRun;

constexpr const char* infer_schema = "iosig.infer/1";
/// Files that are only read, and less of them, are configuration and code.
constexpr std::uint64_t least_read_bytes = MiB;

struct InferArguments {
  std::vector<std::string> directories;
  std::string files, output, least_bytes = "0";
  double least_confidence = 0.6;
  bool why = false, pragmas = false, all = false, force = false;
};

/// The processes of all traces so far.
using Known = std::map<std::uint64_t, std::string>;

/// Gathered from all traces, besides their runs.
struct Gathered {
  Known known;
  std::size_t left_out = 0;       ///< streams in the system's directories
  std::set<std::string> sources;  ///< of `iosig trace --source`
  OpenLines lines;
};

/// Reads one trace.
Result<TracedRun> read_run(const std::string& directory, const InferArguments& options, Gathered& gathered,
                           const Console& console) {
  const auto opened = trace::Trace::open(directory);
  if (!opened) return pass_on(opened.error());
  note_faults(*opened, console);
  for (const auto& [key, process] : opened->processes())
    if (const auto [other, is_new] = gathered.known.emplace(key, directory); !is_new)
      return fail(ErrorKind::usage, "'{}' and '{}' are traces of one run; each trace counts as another run",
                  printable(other->second), printable(directory));
  const ordered_json manifest = parse_json(opened->manifest(), 8);
  if (manifest.is_object() && manifest.contains("sources") && manifest["sources"].is_array())
    for (const auto& source : manifest["sources"])
      if (source.is_string()) gathered.sources.insert(printable(source.get<std::string>()));
  if (options.pragmas || console.json) add_open_lines(*opened, gathered.lines, console);
  TracedRun run{.name = directory};
  add_trace(*opened, run);
  observe::FactGatherer gatherer;
  std::vector<Error> faults;
  std::int64_t end_ns = 0;
  auto done = opened->for_each(
      [&](const trace::Access& access) -> Result<void> {
        end_ns = std::max(end_ns, access.end_ns);
        gatherer.add(access);
        return {};
      },
      {}, faults);
  if (!done) return pass_on(done.error());
  note_faults(faults, console);
  run.is_complete = run.is_complete && faults.empty();
  set_times(opened->started_ns(), end_ns, run);
  run.facts = gatherer.finish();
  observe::add_counters(opened->counters(), run.facts);
  // Not before: a rename or an unlink of another name may be that of a selected file.
  if (!options.files.empty())
    std::erase_if(run.facts,
                  [&](const observe::StreamFacts& facts) { return !trace::matches_file(options.files, facts.path); });
  if (!options.all)
    gathered.left_out +=
        std::erase_if(run.facts, [](const observe::StreamFacts& facts) { return is_of_system(facts.path); });
  return run;
}

std::string files_text(const InferredStream& stream) {
  std::string text = stream.paths.size() == 1 ? "1 file" : fmt::format("{} files", stream.paths.size());
  if (stream.written_bytes > 0)
    text += fmt::format(", {} written", about_bytes(static_cast<double>(stream.written_bytes)));
  if (stream.read_bytes > 0) text += fmt::format(", {} read", about_bytes(static_cast<double>(stream.read_bytes)));
  if (stream.processes > 1) text += fmt::format(", by {} processes ({})", stream.processes, stream.sharing);
  return text;
}

/// Adds a comment line for each reason.
void add_reasons(const InferredStream& stream, double least_confidence, std::string& text) {
  std::size_t width = 0;
  for (const auto& finding : stream.findings) width = std::max(width, finding.word.size());
  for (const auto& finding : stream.findings)
    text += fmt::format("# {:<{}}  {:.2f}{}  {}\n", finding.word, width, finding.confidence,
                        finding.confidence < least_confidence ? " (left out)" : "", finding.why);
  if (!stream.glob_why.empty()) text += fmt::format("# path: {}\n", stream.glob_why);
  for (const std::string& remark : stream.remarks) text += fmt::format("# {}\n", remark);
}

/// The rules file. TOML is UTF-8: other paths get a note instead of a rule.
std::string rules_text(const std::vector<InferredStream>& streams, const InferArguments& options,
                       const Console& console) {
  std::string text(rules_head);
  for (const InferredStream& stream : streams) {
    const std::string shown = printable(stream.glob);
    text += fmt::format("\n# {}\n", files_text(stream));
    if (options.why) add_reasons(stream, options.least_confidence, text);
    if (!stream.link_refusal.empty()) text += fmt::format("# not for 'iosig prepare': {}\n", stream.link_refusal);
    if (shown != stream.glob) {
      const std::string left_out =
          fmt::format("no rule for {}: its name has control characters or is not UTF-8", shown);
      console.note(left_out);
      text += fmt::format("# {}\n", left_out);  // else the lines above would seem to be about the next rule
      continue;
    }
    const std::string signature = stream.signature_text(options.least_confidence);
    if (signature.empty())
      text += fmt::format("# no rule for {}: no word is sure enough\n", shown);
    else
      text += rule_text(shown, signature);
  }
  return text;
}

/// Returns the comment before the pragmas: how to find the opens if the trace does not know their lines.
std::string places_text(const Gathered& gathered) {
  if (!gathered.lines.empty()) return {};
  if (!gathered.sources.empty())
    return fmt::format("// Accessed by code of {} ('iosig trace --source').\n", fmt::join(gathered.sources, ", "));
  return "// The trace does not say which lines open these files (programs compiled with -g tell): put each pragma\n"
         "// before the open of its file.\n";
}

std::string pragmas_text(const std::vector<InferredStream>& streams, const InferArguments& options,
                         const Gathered& gathered) {
  std::string text = places_text(gathered);
  for (const InferredStream& stream : streams) {
    text += fmt::format("\n// {}: {}\n", printable(stream.glob), files_text(stream));
    if (options.why) {
      std::string reasons;
      add_reasons(stream, options.least_confidence, reasons);
      for (const std::string_view line : split(trimmed(reasons), '\n')) text += fmt::format("//{}\n", line.substr(1));
    }
    if (!stream.link_refusal.empty()) text += fmt::format("// no link in its place: {}\n", stream.link_refusal);
    for (const OpenLine& line : open_lines_of(stream.paths, gathered.lines))
      text += fmt::format("// opened at {}\n", printable(open_line_text(line)));
    const std::string signature = stream.signature_text(options.least_confidence);
    text += signature.empty() ? "// no pragma: no word is sure enough\n" : fmt::format("#pragma sig {}\n", signature);
  }
  return std::string(text.starts_with('\n') ? text.substr(1) : text);
}

ordered_json json_of(const std::vector<InferredStream>& streams, const InferArguments& options,
                     const OpenLines& lines) {
  ordered_json all = ordered_json::array();
  for (const InferredStream& stream : streams) {
    ordered_json words = ordered_json::array();
    for (const auto& finding : stream.findings)
      words.push_back({{"word", finding.word}, {"confidence", finding.confidence}, {"why", finding.why}});
    ordered_json aligned = nullptr;
    if (stream.aligned_share) aligned = *stream.aligned_share;
    all.push_back({{"glob", stream.glob},
                   {"glob_why", stream.glob_why},
                   {"paths", stream.paths},
                   {"opened_at", open_lines_of(stream.paths, lines)},
                   {"signature", stream.signature_text(options.least_confidence)},
                   {"words", std::move(words)},
                   {"order", stream.order.empty() ? ordered_json(nullptr) : ordered_json(stream.order)},
                   {"sharing", stream.sharing},
                   {"processes", stream.processes},
                   {"reads", stream.reads},
                   {"writes", stream.writes},
                   {"read_bytes", stream.read_bytes},
                   {"written_bytes", stream.written_bytes},
                   {"size_p10", stream.least_size},
                   {"size_p90", stream.greatest_size},
                   {"aligned_share", std::move(aligned)},
                   {"link_refusal", stream.link_refusal},
                   {"remarks", stream.remarks}});
  }
  return all;
}

/// Writes the text to the file that the user named, or to standard output. Without --force a file is new: it may be
/// edited rules that another run of this command has written.
Result<void> write_result(const std::string& text, const InferArguments& options, const Console& console) {
  const std::string& path = options.output;
  if (path.empty() || path == "-") {
    console.say(trimmed(text));
    return {};
  }
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file) {
    auto written = write_all(file.get(), text, path);
    if (!written) ::unlink(path.c_str());
    return written;
  }
  if (errno != EEXIST) return system_failure("write", path);
  struct stat there {};
  if (!options.force && ::stat(path.c_str(), &there) == 0 && S_ISREG(there.st_mode))
    return fail(ErrorKind::usage, "'{}' exists; --force replaces it", printable(path));
  return write_output(path, text);
}

void note_left_out(std::size_t count, std::string_view why, const Console& console) {
  if (count > 0) console.note(fmt::format("left out: {} file{} {}", count, count == 1 ? "" : "s", why));
}

int run_infer(const InferArguments& options, Console& console) {
  const auto least_bytes = parse_bytes(options.least_bytes);
  if (!least_bytes)
    return console.fail({ErrorKind::usage, fmt::format("--min-bytes: {}", least_bytes.error().message)});
  std::vector<TracedRun> runs;
  Gathered gathered;
  for (const std::string& directory : options.directories) {
    auto run = read_run(directory, options, gathered, console);
    if (!run) return console.fail(run.error());
    runs.push_back(std::move(*run));
  }
  std::vector<InferredStream> streams = observe::infer(runs);
  const auto erase = [&](const auto& is_out) {
    std::size_t files = 0;
    std::erase_if(streams, [&](const InferredStream& stream) {
      if (!is_out(stream)) return false;
      files += stream.paths.size();
      return true;
    });
    return files;
  };
  if (!options.all)
    gathered.left_out +=
        erase([](const InferredStream& stream) { return stream.writes == 0 && stream.read_bytes < least_read_bytes; });
  note_left_out(gathered.left_out, "of the system, or only read and small; --all has them", console);
  note_left_out(
      erase([&](const InferredStream& stream) { return stream.read_bytes + stream.written_bytes < *least_bytes; }),
      "with fewer bytes than --min-bytes", console);
  if (console.json) {
    console.say_json(infer_schema,
                     {{"traces", options.directories}, {"streams", json_of(streams, options, gathered.lines)}});
    return streams.empty() ? no : yes;
  }
  if (streams.empty()) {
    console.note("no read or write of such a file is in the trace");
    return no;
  }
  const std::string text =
      options.pragmas ? pragmas_text(streams, options, gathered) : rules_text(streams, options, console);
  if (text.size() > largest_configuration_bytes)
    console.note(fmt::format("these rules are {}, and IOSIG reads files of at most {}; --min-bytes and --files select",
                             about_bytes(static_cast<double>(text.size())), about_bytes(largest_configuration_bytes)));
  if (auto written = write_result(text, options, console); !written) return console.fail(written.error());
  return yes;
}

}  // namespace

void add_infer(Verb app, Action& action) {
  const Verb verb = app.add_verb("infer", "Find the signature of each file that a traced program used");
  const auto options = std::make_shared<InferArguments>();
  verb.add_option("TRACE", options->directories, "directories that 'iosig trace -o' made: runs of one program")
      .type_name("DIR")
      .required();
  verb.add_option("-o,--output", options->output, "file to write; standard output unless given").type_name("FILE");
  verb.add_flag("--force", options->force, "replace the output file if it exists");
  verb.add_flag("--pragmas", options->pragmas, "lines for the source, not a rules file");
  verb.add_flag("--why", options->why, "give the evidence and the confidence of each word");
  verb.add_option("--min-confidence", options->least_confidence, "leave out words that are less sure")
      .check(between(0, 1))
      .type_name("SHARE")
      .shows_default();
  verb.add_option("--min-bytes", options->least_bytes, "leave out streams that transfer less")
      .type_name("SIZE")
      .shows_default();
  verb.add_option("--files", options->files, "only files whose name matches").type_name("GLOB");
  verb.add_flag("--all", options->all,
                "also files in /usr, /etc and the like, and those of which less than 1 MB is read");
  verb.footer(
      "Several traces: what differs in the names of files becomes a wildcard; what differs in how they are used is\n"
      "less sure.\n"
      "Example: iosig trace -o job.trace -- ./solver && iosig infer job.trace -o solver.toml");
  verb.when_chosen(action, infer_schema, [options](Console& console) { return run_infer(*options, console); });
}

}  // namespace iosig::cli
