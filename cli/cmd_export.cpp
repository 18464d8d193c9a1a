// `iosig export`: the accesses of a trace as text, one line for each; as Parquet by the Python package.

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "external.h"
#include "interruption.h"
#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/trace/export.h"
#include "iosig/trace/trace.h"
#include "trace_source.h"

namespace iosig::cli {
namespace {

struct ExportArguments {
  std::vector<std::string> directories;
  std::string format = "csv", output, layer, files;
};

/// The file that is written, or standard output. A file appears at its path when it is complete, and an older one stays
/// until then; a pipe, a device or a link is written in place.
class Output {
 public:
  Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() {
    if (!draft_.empty()) ::unlink(draft_.c_str());
  }

  Result<void> open(const std::string& path) {
    path_ = path;
    if (path.empty() || path == "-") return {};
    struct stat there {};
    const bool is_there = ::lstat(path.c_str(), &there) == 0;
    if (!is_there || (S_ISREG(there.st_mode) && ::access(path.c_str(), W_OK) == 0)) {
      const std::size_t name = path.rfind('/') + 1;
      draft_ = fmt::format("{}.{}.{}", path.substr(0, name), path.substr(name, 200), ::getpid());
    }
    const std::string& written = draft_.empty() ? path_ : draft_;
    file_ = Fd(::open(written.c_str(), O_WRONLY | O_CREAT | (draft_.empty() ? O_TRUNC : O_EXCL) | O_CLOEXEC, 0666));
    if (!file_) {
      draft_.clear();
      return system_failure("write", path);
    }
    if (is_there && !draft_.empty()) (void)::fchmod(file_.get(), there.st_mode & 0777);
    return {};
  }
  Result<void> write(std::string_view text) {
    return file_ ? write_all(file_.get(), text, path_) : write_all(STDOUT_FILENO, text, "standard output");
  }
  [[nodiscard]] bool has_draft() const { return !draft_.empty(); }
  /// The file is complete.
  Result<void> keep() {
    if (draft_.empty()) return {};
    if (::rename(draft_.c_str(), path_.c_str()) != 0) return system_failure("write", path_);
    draft_.clear();
    return {};
  }

 private:
  std::string path_, draft_;
  Fd file_;
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

int run_export(const ExportArguments& options, Console& console) {
  auto selection = selection_of(options.layer, options.files);
  if (!selection) return console.fail(selection.error());
  if (options.format == "parquet") return export_parquet(options, console);
  if (options.directories.size() > 1)
    return console.fail({ErrorKind::usage, "expected one TRACE; only --format parquet takes several"});
  const auto opened = trace::Trace::open(options.directories.front());
  if (!opened) return console.fail(opened.error());
  note_faults(*opened, console);
  Output output;
  if (auto done = output.open(options.output); !done) return console.fail(done.error());
  std::string text(trace::csv_header);
  const auto flush = [&]() -> Result<void> {
    auto written = output.write(text);
    text.clear();
    return written;
  };
  std::optional<NoticeSignals> noticing;  // an interruption must remove the draft
  if (output.has_draft()) noticing.emplace();
  std::vector<Error> faults;
  auto done = opened->for_each(
      [&](const trace::Access& access) -> Result<void> {
        if (noticing && interruption() != 0) return fail(ErrorKind::system, "interrupted");
        trace::append_csv(access, text);
        return text.size() < (1 << 16) ? Result<void>{} : flush();
      },
      *selection, faults);
  if (noticing && interruption() != 0) {
    console.note(fmt::format("interrupted; {} is not made", printable(options.output)));
    return interrupted_status + interruption();
  }
  if (!done) return console.fail(done.error());
  if (auto flushed = flush(); !flushed) return console.fail(flushed.error());
  if (auto kept = output.keep(); !kept) return console.fail(kept.error());
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
  verb.add_option("--format", options->format, "csv, which is the default; parquet, a partition for each trace")
      .check(one_of({"csv", "parquet"}))
      .type_name("NAME");
  verb.add_option("-o,--output", options->output,
                  "file to write, standard output unless given; of parquet, the directory to make")
      .type_name("FILE");
  add_selection_options(verb, options->layer, options->files);
  verb.footer(
      "Fields: id,parent,host,pid,tid,rank,layer,call,path,fd,offset,length,start_ns,end_ns,result,second_path\n"
      "Example: iosig export --format csv job.trace > job.csv");
  verb.when_chosen(action, "", [options](Console& console) { return run_export(*options, console); });
}

}  // namespace iosig::cli
