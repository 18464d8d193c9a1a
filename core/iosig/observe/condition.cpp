#include "iosig/observe/condition.h"

#include <algorithm>

#include "iosig/observe/ended_access.h"

namespace iosig::observe {

using trace::Moves;

Condition::Condition(const Filter& filter) : filter_(filter), calls_(trace::call_limit, filter.calls.empty()) {
  for (const trace::Call call : filter.calls) calls_[static_cast<std::uint16_t>(call)] = true;
  for (std::uint16_t number = 0; number < trace::call_limit; ++number) {
    const auto call = static_cast<trace::Call>(number);
    if (trace::name_of(call).empty()) continue;
    if (call == trace::Call::inherited && filter.calls.empty()) calls_[number] = false;  // no call: names a file
    const Moves moves = trace::moves_of(call);
    if ((filter.layer && trace::layer_of(call) != *filter.layer) || (filter.only_moving && moves == Moves::nothing) ||
        (filter.moves != Moves::nothing && moves != filter.moves))
      calls_[number] = false;
  }
}

bool Condition::operator()(const trace::Access& access) {
  return calls_[static_cast<std::uint16_t>(access.call)] && access.start_ns >= filter_.from_ns &&
         access.start_ns < filter_.to_ns && (filter_.min_bytes == 0 || moved_bytes(access) >= filter_.min_bytes) &&
         (filter_.max_bytes == UINT64_MAX || moved_bytes(access) <= filter_.max_bytes) &&
         (filter_.files.empty() || is_file(access.path));
}

bool Condition::is_process(const trace::Process& process) const {
  const auto has_rank = [&](const auto& range) {
    return process.rank && *process.rank >= range.first && *process.rank <= range.second;
  };
  return (filter_.ranks.empty() || std::ranges::any_of(filter_.ranks, has_rank)) &&
         (filter_.nodes.empty() || std::ranges::find(filter_.nodes, process.host) != filter_.nodes.end()) &&
         (filter_.pids.empty() || std::ranges::find(filter_.pids, process.pid) != filter_.pids.end());
}

std::uint64_t Condition::call_set() const {
  std::uint64_t set = 0;
  for (unsigned number = 0; number < trace::call_limit; ++number)
    if (calls_[number]) set |= std::uint64_t{1} << number % 64;
  return set;
}

bool Condition::is_file(std::string_view path) {
  const auto [known, is_new] = files_.try_emplace(path.data(), false);
  if (is_new) known->second = trace::matches_file(filter_.files, path);
  return known->second;
}

}  // namespace iosig::observe
