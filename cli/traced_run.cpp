#include "traced_run.h"

#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "iosig/base/json_text.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;

void add_numbers(const trace::Trace& opened, observe::RunNumbers& numbers) {
  for (const auto& [key, process] : opened.processes()) {
    numbers.words.insert(fmt::format("{}", process.pid));
    for (const auto& [name, value] : process.variables)
      if (name.ends_with("JOB_ID") || name.ends_with("JOBID"))
        numbers.words.insert(value.substr(0, value.find_first_not_of("0123456789")));
  }
}

/// Whether all calls were recorded; else `iosig trace --ops` or `--source` selected some.
bool has_all_calls(const trace::Trace& opened) {
  const ordered_json manifest = parse_json(opened.manifest(), 8);
  if (!manifest.is_object()) return true;
  const bool has_calls = manifest.value("calls", ordered_json("")) != ordered_json("");
  const bool has_sources = manifest.contains("sources") && !manifest["sources"].empty();
  return !has_calls && !has_sources;
}

}  // namespace

void add_trace(const trace::Trace& opened, observe::TracedRun& run) {
  add_numbers(opened, run.numbers);
  run.has_all_calls = run.has_all_calls && has_all_calls(opened);
  for (const trace::Part& part : opened.parts()) {
    run.is_complete = run.is_complete && part.header.lost_calls == 0 && (!part.fault.has_value() || part.fault->is_cut);
    run.is_killed = run.is_killed || part.header.is_closed == 0;
  }
  run.is_complete = run.is_complete && opened.unreadable().empty();
}

void set_times(std::int64_t started_ns, std::int64_t end_ns, observe::TracedRun& run) {
  run.numbers.started_s = started_ns / 1'000'000'000;
  run.numbers.ended_s = (started_ns + end_ns) / 1'000'000'000;
  const std::time_t started = run.numbers.started_s;
  std::tm local{};
  if (::localtime_r(&started, &local) != nullptr) run.numbers.seconds_east = local.tm_gmtoff;
}

}  // namespace iosig::cli
