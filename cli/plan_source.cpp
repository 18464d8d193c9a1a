#include "plan_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "input.h"
#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/decide/trial.h"
#include "iosig/model/access_columns.h"
#include "iosig/trace/trace.h"
#include "plan_csv.h"
#include "trace_source.h"

namespace iosig::cli {
namespace {

/// The processes that made requests. If some have a rank, only these are the run: a launcher such as mpirun is not.
class Processes {
 public:
  /// Returns the number of the process, from 0 on.
  std::uint32_t add(const std::string& process, const std::string& host, bool has_rank) {
    Set& set = has_rank ? ranked_ : others_;
    if (!host.empty()) set.hosts.insert(host);
    return set.processes.try_emplace(process, next_).second ? next_++ : set.processes.at(process);
  }
  void set(PlanDemand& demand) const {
    const Set& set = ranked_.processes.empty() ? others_ : ranked_;
    const std::size_t count = std::max<std::size_t>(1, set.processes.size());
    const std::size_t hosts =
        set.hosts.empty() ? count : std::min(set.hosts.size(), count);  // unknown: a node for each
    demand.processes = static_cast<std::uint32_t>(count);
    demand.processes_per_node = static_cast<std::uint32_t>((count + hosts - 1) / hosts);
  }

 private:
  struct Set {
    std::map<std::string, std::uint32_t> processes;
    std::set<std::string> hosts;
  };
  Set ranked_, others_;
  std::uint32_t next_ = 0;
};

bool is_wanted(const PlanSource& source, bool is_write) { return is_write ? !source.reads : !source.writes; }

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// The requests of each process of a trace.
using RequestCounts = std::map<const trace::Process*, std::uint64_t>;

/// Returns the name of the program with most requests, of those with a rank if there are any; the first name at a tie.
std::string application_of(const RequestCounts& counts) {
  std::map<std::pair<bool, std::string>, std::uint64_t> requests;
  for (const auto& [process, count] : counts)
    requests[{!process->rank.has_value(), base_name(process->program)}] += count;
  const bool has_no_rank = !requests.empty() && requests.begin()->first.first;
  std::string name;
  std::uint64_t most = 0;
  for (const auto& [program, count] : requests)
    if (program.first == has_no_rank && count > most) {
      name = program.second;
      most = count;
    }
  return name;
}

/// Puts the moments with which layouts are tried, and all requests if they are wanted.
void put_requests(const PlanCollector& collector, const PlanSource& source, PlanDemand& demand) {
  auto requests = collector.requests_of(demand.input);
  for (const std::vector<RegionRequest>& window : requests) demand.input.moments.push_back(requests_at_moments(window));
  if (source.keeps_requests) demand.requests = std::move(requests);
}

Result<PlanDemand> from_trace(const PlanSource& source, const PlanGranularity& granularity, const Console& console) {
  const auto selection = selection_of(source.layer, source.files);
  if (!selection) return pass_on(selection.error());
  const auto opened = trace::Trace::open(source.trace);
  if (!opened) return pass_on(opened.error());
  note_faults(*opened, console);
  PlanCollector collector;
  RequestCounts requests;
  Processes processes;
  std::map<const trace::Process*, std::uint32_t> numbers;
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
    const trace::Process& process = *access.process;
    ++requests[&process];
    const auto [number, is_new] = numbers.try_emplace(&process, 0);
    if (is_new)
      number->second = processes.add(process.rank ? fmt::format("{}", *process.rank) : fmt::format("{}", process.key),
                                     process.host, process.rank.has_value());
    return collector.add(
        access.path, {static_cast<std::uint64_t>(access.offset), static_cast<std::uint64_t>(access.result), is_write,
                      static_cast<double>(access.start_ns) / 1e9, number->second});
  };
  if (const auto read = opened->for_each(take, *selection, faults); !read) return pass_on(read.error());
  note_faults(faults, console);
  if (left_out > 0)
    console.note(fmt::format(
        "left out: {} read{} or write{} that failed, had not returned, or whose offset or file is not known", left_out,
        left_out == 1 ? "" : "s", left_out == 1 ? "" : "s"));
  auto input = collector.finish(granularity);
  if (!input) return fail(input.error().kind, "{}: {}", shown_name(source.trace), input.error().message);
  PlanDemand demand;
  demand.application = application_of(requests);
  demand.input = *std::move(input);
  put_requests(collector, source, demand);
  processes.set(demand);
  return demand;
}

Result<PlanDemand> from_pattern(const PlanSource& source, const PlanGranularity& granularity, const std::string& text) {
  auto pattern = pattern_from_text(text, shown_name(source.trace));
  if (!pattern) return pass_on(pattern.error());
  auto input = plan_input(base_name(source.trace), *pattern, source.writes, granularity);
  if (!input) return fail(input.error().kind, "{}: {}", shown_name(source.trace), input.error().message);
  return PlanDemand{*std::move(input)};
}

/// The bytes of a file that is a pattern, or lines of accesses: its beginning says which. It is read once, since a pipe
/// cannot be read again.
class PatternOrLines {
 public:
  explicit PatternOrLines(TakePart take_line) : cutter_(std::move(take_line)) {}

  [[nodiscard]] Result<void> operator()(std::string_view part) {
    constexpr std::size_t enough = 64;
    if (is_decided_) return give(part);
    text_.append(part);
    if (!part.empty() && text_.size() < enough) return {};
    is_decided_ = true;
    is_pattern_ = is_description(text_);
    if (is_pattern_ || text_.empty()) return {};
    if (auto given = give(std::exchange(text_, {})); !given || !part.empty()) return given;
    return give(part);
  }
  /// Returns the whole text of a pattern; nothing if it was lines.
  [[nodiscard]] const std::string* pattern() const { return is_pattern_ ? &text_ : nullptr; }

 private:
  [[nodiscard]] Result<void> give(std::string_view part) {
    if (!is_pattern_) return cutter_(part);
    text_.append(part);
    if (text_.size() <= max_description_bytes) return {};
    return fail(ErrorKind::bad_input, "a pattern of more than {}", bytes_text(max_description_bytes));
  }

  LineCutter cutter_;
  std::string text_;  ///< the beginning, or all of a pattern
  bool is_decided_ = false, is_pattern_ = false;
};

Result<PlanDemand> from_file(const PlanSource& source, const PlanGranularity& granularity) {
  PlanCollector collector;
  Processes processes;
  RequestLines lines(shown_name(source.trace), source.writes);
  const std::string unnamed = base_name(source.trace);
  PatternOrLines parts([&](std::string_view text) -> Result<void> {
    RequestLine line;
    const auto is_request = lines.read(text, line);
    if (!is_request) return pass_on(is_request.error());
    if (!*is_request || !is_wanted(source, line.request.is_write)) return {};
    if (is_of_system(line.path) || (!line.layer.empty() && line.layer != source.layer)) return {};
    if (line.path.empty()) line.path = unnamed;
    if (!source.files.empty() && !trace::matches_file(source.files, line.path)) return {};
    line.request.process = processes.add(line.process, line.host, line.has_rank);
    const auto added = collector.add(line.path, line.request);
    return added ? Result<void>{} : lines.wrong(added.error().message);
  });
  if (const auto read = for_each_part(source.trace, std::ref(parts)); !read) return pass_on(read.error());
  if (parts.pattern() != nullptr) return from_pattern(source, granularity, *parts.pattern());
  auto input = collector.finish(granularity);
  if (!input) return fail(input.error().kind, "{}: {}", shown_name(source.trace), input.error().message);
  PlanDemand demand;
  demand.input = *std::move(input);
  put_requests(collector, source, demand);
  processes.set(demand);
  return demand;
}

}  // namespace

Result<PlanDemand> plan_demand(const PlanSource& source, const PlanGranularity& granularity, const Console& console) {
  struct stat status {};
  if (source.trace != "-" && ::stat(source.trace.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    return from_trace(source, granularity, console);
  return from_file(source, granularity);
}

}  // namespace iosig::cli
