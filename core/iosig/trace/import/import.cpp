#include "iosig/trace/import/import.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "iosig/base/text.h"
#include "iosig/trace/import/csv.h"
#include "iosig/trace/import/darshan.h"
#include "iosig/trace/import/darshan_log.h"
#include "iosig/trace/import/dftracer.h"
#include "iosig/trace/import/line_input.h"
#include "iosig/trace/import/recorder.h"
#include "iosig/trace/import/recorder_log.h"
#include "iosig/trace/import/strace.h"
#include "iosig/trace/import/strace_line.h"

namespace iosig::trace {
namespace {

constexpr std::size_t max_remarks = 100;
constexpr std::size_t small_buffer = std::size_t{1} << 14;  ///< of many files at once

struct Input {
  std::string path;
  bool is_named = true;      ///< by the user; else found in a directory
  bool is_recorder = false;  ///< a directory
};

/// Refuses a log that is among the inputs twice: its calls would count twice.
Result<void> check_each_once(const std::vector<Input>& inputs) {
  std::map<std::pair<dev_t, ino_t>, std::string_view> seen;
  for (const Input& each : inputs) {
    struct stat status {};
    if (each.path == "-" || ::stat(each.path.c_str(), &status) != 0) continue;
    if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) continue;
    const auto [known, is_new] = seen.try_emplace({status.st_dev, status.st_ino}, each.path);
    if (!is_new)
      return fail(ErrorKind::usage, "'{}' and '{}' are one log; expected each log once", printable(known->second),
                  printable(each.path));
  }
  return {};
}

Result<std::vector<Input>> files_of(const std::vector<std::string>& inputs) {
  std::vector<Input> found;
  for (const std::string& each : inputs) {
    struct stat status {};
    if (each == "-" || ::stat(each.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
      found.push_back({each, true, false});
      continue;
    }
    if (is_recorder_directory(each)) {
      found.push_back({each, true, true});
      continue;
    }
    const Fd directory(::open(each.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory) return system_failure("open", each);
    auto names = names_in(directory);
    if (!names) return pass_on(names.error());
    std::ranges::sort(*names);
    for (const std::string& name : *names)
      if (::fstatat(directory.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode))
        found.push_back({fmt::format("{}/{}", without_trailing_slashes(each), name), false, false});
  }
  return found;
}

/// Returns the format of a file that begins with `text`.
std::optional<ImportFormat> format_of(std::string_view text) {
  if (is_darshan(text)) return ImportFormat::darshan;
  std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
  if (strace_line(line) || line.starts_with("strace: ")) return ImportFormat::strace;
  if (is_dftracer_line(line)) return ImportFormat::dftracer;
  if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
  if (line.ends_with('\r')) line.remove_suffix(1);
  const auto names = split(line, ',');
  if (names.size() > 1 && std::ranges::find(names, "call") != names.end()) return ImportFormat::csv;
  return std::nullopt;
}

/// "trace" and 123 of "trace.123" or "trace.123.gz": strace -ff names its files so.
std::pair<std::string, std::optional<std::int32_t>> name_and_pid(std::string path) {
  for (const std::string_view compressed : {".gz", ".bz2"})
    if (path.ends_with(compressed)) path.erase(path.rfind(compressed));
  const std::size_t dot = path.rfind('.');
  if (dot == std::string::npos) return {path, std::nullopt};
  const auto pid = parse_count<std::uint32_t>(std::string_view(path).substr(dot + 1));
  if (!pid || *pid > INT32_MAX) return {path, std::nullopt};
  return {path.substr(0, dot), static_cast<std::int32_t>(*pid)};
}

/// Files that are read together.
struct Group {
  ImportFormat format{};
  std::vector<std::string> paths;
};

/// Sorts the inputs into groups: all files of a strace -ff are one, and all logs of DFTracer.
Result<std::vector<Group>> groups_of(const std::vector<Input>& inputs, std::optional<ImportFormat> forced,
                                     ImportNotes& notes) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t> by_name;
  for (const auto& [path, is_named, is_recorder] : inputs) {
    if (is_recorder != (forced.value_or(ImportFormat::recorder) == ImportFormat::recorder) && (is_recorder || forced))
      return fail(ErrorKind::bad_input, "{}: {}", printable(path),
                  is_recorder ? "a directory of Recorder; --format names another format"
                              : "no directory of Recorder: it has neither recorder.mt nor recorder.dat");
    if (is_recorder) {
      groups.push_back({ImportFormat::recorder, {path}});
      continue;
    }
    std::optional<ImportFormat> format = forced;
    bool names_pids = true;
    struct stat status {};
    const bool is_pipe = path == "-" || (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode));
    if (!is_pipe) {
      auto input = LineInput::open(path, small_buffer);
      if (!input) return pass_on(input.error());
      const auto start = input->peek();
      if (!start) return pass_on(start.error());
      const auto line = strace_line(start->substr(0, start->find('\n')));
      names_pids = !line || line->pid.has_value();
      if (!format) format = format_of(*start);
      if (!format && start->empty()) {  // DFTracer leaves such files
        notes.remark(fmt::format("{}: empty; left out", input->shown()));
        continue;
      }
      if (!format && !is_named) {
        notes.remark(fmt::format("{}: no format that is known; left out", input->shown()));
        continue;
      }
    }
    if (!format && is_pipe)
      return fail(ErrorKind::usage, "{} is read once: --format must say what it is ({})",
                  path == "-" ? "standard input" : printable(path), fmt::join(import_formats, ", "));
    if (!format)
      return fail(ErrorKind::bad_input,
                  "{}:1: no format that is known; expected the CSV of 'iosig export', what strace -f -ttt -T -y "
                  "-o FILE writes, a log of DFTracer or Darshan, or a directory of Recorder",
                  printable(path));
    const auto [name, pid] = name_and_pid(path);
    const bool is_of_many = *format == ImportFormat::strace && pid && !names_pids;
    if (is_of_many || *format == ImportFormat::dftracer) {
      const auto [known, is_new] = by_name.try_emplace(is_of_many ? name : std::string(), groups.size());
      if (!is_new) {
        groups[known->second].paths.push_back(path);
        continue;
      }
    }
    groups.push_back({*format, {path}});
  }
  return groups;
}

Result<void> read_strace(const std::vector<std::string>& paths, TraceWriter& writer, ImportNotes& notes) {
  std::vector<StraceFile> files;
  for (const std::string& path : paths) {
    auto input = LineInput::open(path, paths.size() > 1 ? small_buffer : std::size_t{1} << 20, &notes);
    if (!input) return pass_on(input.error());
    files.push_back({std::move(*input), name_and_pid(path).second});
  }
  return import_strace(std::move(files), writer, notes);
}

Result<void> read_group(const Group& group, TraceWriter& writer, ImportNotes& notes) {
  if (group.format == ImportFormat::strace) return read_strace(group.paths, writer, notes);
  if (group.format == ImportFormat::darshan) {
    writer.set_selected_calls("reads and writes that DXT records");
    return import_darshan(group.paths.front(), writer, notes);
  }
  if (group.format == ImportFormat::recorder) return import_recorder(group.paths.front(), writer, notes);
  DftracerImport dftracer(writer, notes);
  for (const std::string& path : group.paths) {
    auto input = LineInput::open(path, std::size_t{1} << 20, &notes);
    if (!input) return pass_on(input.error());
    auto done = group.format == ImportFormat::csv ? import_csv(*input, writer, notes) : dftracer.read(*input);
    if (!done) return done;
  }
  return {};
}

}  // namespace

void ImportNotes::leave_out(std::string_view reason, std::uint64_t calls) {
  const auto known = left_out.find(reason);
  if (known == left_out.end())
    left_out.emplace(reason, calls);
  else
    known->second += calls;
}

void ImportNotes::remark(std::string text) {
  if (remarks.size() < max_remarks)
    remarks.push_back(std::move(text));
  else
    ++further_remarks;
}

Result<Imported> import_traces(const std::vector<std::string>& inputs, std::string_view format,
                               const std::string& output, std::function<bool()> is_interrupted) {
  std::optional<ImportFormat> forced;
  if (!format.empty()) {
    const auto* const known = std::ranges::find(import_formats, format);
    if (known == std::end(import_formats)) return fail(ErrorKind::usage, "no format '{}'", printable(format));
    forced = static_cast<ImportFormat>(known - std::begin(import_formats));
  }
  Imported imported;
  const auto files = files_of(inputs);
  if (!files) return pass_on(files.error());
  if (const auto once = check_each_once(*files); !once) return pass_on(once.error());
  const auto groups = groups_of(*files, forced, imported.notes);
  if (!groups) return pass_on(groups.error());
  if (groups->empty())
    return fail(ErrorKind::bad_input, "{}: no file of a format that is known",
                printable(fmt::format("{}", fmt::join(inputs, ", "))));
  auto writer = TraceWriter::make(output);
  if (!writer) return pass_on(writer.error());
  writer->stop_if(std::move(is_interrupted));
  for (const Group& group : *groups) {
    const std::string_view name = import_formats[static_cast<std::size_t>(group.format)];
    if (std::ranges::find(imported.formats, name) == imported.formats.end()) imported.formats.push_back(name);
    if (auto done = read_group(group, *writer, imported.notes); !done) return pass_on(done.error());
  }
  // A later interruption comes too late: the trace is there.
  auto totals = writer->finish(fmt::format("{}", fmt::join(imported.formats, ",")));
  if (!totals) return pass_on(totals.error());
  imported.totals = *totals;
  return imported;
}

}  // namespace iosig::trace
