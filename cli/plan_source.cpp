#include "plan_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "input.h"
#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/model/access_columns.h"
#include "iosig/trace/trace.h"
#include "plan_csv.h"
#include "trace_source.h"

namespace iosig::cli {
namespace {

constexpr double ns_per_s = 1e9;

/// The processes that made requests.
class Processes {
 public:
  void add(const std::string& process, const std::string& host) {
    processes_.insert(process);
    if (!host.empty()) hosts_.insert(host);
  }
  void set(PlanDemand& demand) const {
    const std::size_t count = std::max<std::size_t>(1, processes_.size());
    const std::size_t hosts = hosts_.empty() ? count : std::min(hosts_.size(), count);  // unknown: a node for each
    demand.processes = static_cast<std::uint32_t>(count);
    demand.processes_per_node = static_cast<std::uint32_t>((count + hosts - 1) / hosts);
  }

 private:
  std::set<std::string> processes_, hosts_;
};

bool is_wanted(const PlanSource& source, bool is_write) { return is_write ? !source.reads : !source.writes; }

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Result<PlanDemand> from_trace(const PlanSource& source, const PlanGranularity& granularity, const Console& console) {
  const auto selection = selection_of(source.layer, source.files);
  if (!selection) return pass_on(selection.error());
  const auto opened = trace::Trace::open(source.trace);
  if (!opened) return pass_on(opened.error());
  note_faults(*opened, console);
  PlanCollector collector;
  std::set<const trace::Process*> seen;
  std::vector<Error> faults;
  std::uint64_t left_out = 0;
  const auto take = [&](const trace::Access& access) -> Result<void> {
    const auto moves = trace::moves_of(access.call);
    const bool is_write = moves == trace::Moves::writes;
    if (moves == trace::Moves::nothing || !is_wanted(source, is_write) || is_of_system(access.path)) return {};
    if (access.is_in_flight || access.result < 0 || access.offset < 0 || access.path.empty()) {
      ++left_out;
      return {};
    }
    seen.insert(access.process);
    return collector.add(
        access.path, {static_cast<std::uint64_t>(access.offset), static_cast<std::uint64_t>(access.result), is_write,
                      static_cast<double>(access.start_ns) / ns_per_s});
  };
  if (const auto read = opened->for_each(take, *selection, faults); !read) return pass_on(read.error());
  note_faults(faults, console);
  if (left_out > 0)
    console.note(fmt::format("left out: {} read{} or write{} that failed, had not returned, or have no offset",
                             left_out, left_out == 1 ? "" : "s", left_out == 1 ? "" : "s"));
  PlanDemand demand;
  Processes processes;
  for (const trace::Process* each : seen) {
    processes.add(fmt::format("{}", each->key), each->host);
    if (demand.application.empty()) demand.application = base_name(each->program);
  }
  auto input = collector.finish(granularity);
  if (!input) return pass_on(input.error());
  demand.input = *std::move(input);
  processes.set(demand);
  return demand;
}

Result<PlanDemand> from_pattern(const PlanSource& source, const PlanGranularity& granularity, const std::string& text) {
  auto pattern = pattern_from_text(text, shown_name(source.trace));
  if (!pattern) return pass_on(pattern.error());
  if (granularity.is_adaptive)
    return fail(ErrorKind::usage, "--regions adaptive: a pattern tells only regions of fixed size; use a trace");
  auto input = plan_input(base_name(source.trace), *pattern, source.writes, granularity.region_bytes);
  if (!input) return fail(input.error().kind, "{}: {}", shown_name(source.trace), input.error().message);
  return PlanDemand{*std::move(input)};
}

Result<PlanDemand> from_lines(const PlanSource& source, const PlanGranularity& granularity) {
  PlanCollector collector;
  Processes processes;
  RequestLines lines(shown_name(source.trace), source.writes);
  const std::string unnamed = base_name(source.trace);
  LineCutter cutter([&](std::string_view text) -> Result<void> {
    RequestLine line;
    const auto is_request = lines.read(text, line);
    if (!is_request) return pass_on(is_request.error());
    if (!*is_request || !is_wanted(source, line.request.is_write)) return {};
    if (!line.layer.empty() && line.layer != source.layer) return {};
    if (line.path.empty()) line.path = unnamed;
    if (!source.files.empty() && !trace::matches_file(source.files, line.path)) return {};
    processes.add(line.process, line.host);
    return collector.add(line.path, line.request);
  });
  if (const auto read = for_each_part(source.trace, cutter); !read) return pass_on(read.error());
  auto input = collector.finish(granularity);
  if (!input) return fail(input.error().kind, "{}: {}", shown_name(source.trace), input.error().message);
  PlanDemand demand{*std::move(input)};
  processes.set(demand);
  return demand;
}

/// The first bytes of a file; "" of standard input and of what cannot be read.
std::string beginning_of(const std::string& file) {
  constexpr std::size_t enough = 64;
  std::string bytes(enough, '\0');
  const Fd opened(file == "-" ? -1 : ::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t got = opened ? ::read(opened.get(), bytes.data(), bytes.size()) : 0;
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

}  // namespace

Result<PlanDemand> plan_demand(const PlanSource& source, const PlanGranularity& granularity, const Console& console) {
  struct stat status {};
  if (source.trace != "-" && ::stat(source.trace.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    return from_trace(source, granularity, console);
  if (!is_description(beginning_of(source.trace))) return from_lines(source, granularity);
  const auto text = whole_input(source.trace);
  if (!text) return pass_on(text.error());
  return from_pattern(source, granularity, *text);
}

}  // namespace iosig::cli
