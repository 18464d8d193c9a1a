#include "iosig/observe/merged_accesses.h"

#include <algorithm>
#include <unordered_set>

#include "iosig/base/text.h"

namespace iosig::observe {

Result<void> check_distinct(std::span<const trace::Trace> traces) {
  std::unordered_set<std::uint64_t> processes;
  for (const trace::Trace& each : traces)
    for (const auto& [key, process] : each.processes())
      if (!processes.insert(key).second)
        return fail(ErrorKind::usage, "process {} on {} is in two of the traces; expected each trace once", process.pid,
                    printable(process.host));
  return {};
}

std::int64_t started_ns_of(std::span<const trace::Trace> traces) {
  std::int64_t started_ns = 0;
  for (const trace::Trace& each : traces)
    if (each.started_ns() != 0)
      started_ns = started_ns == 0 ? each.started_ns() : std::min(started_ns, each.started_ns());
  return started_ns;
}

MergedAccesses::MergedAccesses(std::span<const trace::Trace> traces, const trace::Selection& selection,
                               std::int64_t ended_since_ns, std::vector<Error>& faults) {
  started_ns_ = started_ns_of(traces);
  for (const trace::Trace& each : traces)
    sources_.push_back(
        {.selection = selection, .shift_ns = each.started_ns() == 0 ? 0 : each.started_ns() - started_ns_});
  for (std::size_t n = 0; n < sources_.size(); ++n) {  // the selections stay where they are from here on
    Source& source = sources_[n];
    source.selection.ended_since_ns = ended_since_ns - source.shift_ns;
    source.accesses = std::make_unique<trace::Accesses>(traces[n], source.selection, faults);
    advance(source);
  }
}

void MergedAccesses::advance(Source& source) {
  const trace::Access* const next = source.accesses->next();
  source.has_ended = next == nullptr;
  if (next == nullptr) return;
  source.access = *next;
  source.access.start_ns += source.shift_ns;
  if (!source.access.is_in_flight) source.access.end_ns += source.shift_ns;
}

const trace::Access* MergedAccesses::next() {
  if (has_begun_) advance(sources_[current_]);
  has_begun_ = true;
  const Source* first = nullptr;
  for (std::size_t n = 0; n < sources_.size(); ++n) {
    const Source& source = sources_[n];
    if (source.has_ended || (first != nullptr && source.access.start_ns >= first->access.start_ns)) continue;
    first = &source;
    current_ = n;
  }
  return first == nullptr ? nullptr : &first->access;
}

}  // namespace iosig::observe
