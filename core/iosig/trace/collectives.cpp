#include "iosig/trace/collectives.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "iosig/trace/accesses.h"

namespace iosig::trace {
namespace {

constexpr std::uint64_t bit_of(Call call) { return std::uint64_t{1} << static_cast<unsigned>(call) % 64; }
constexpr std::uint64_t waiting_set = [] {
  std::uint64_t set = 0;
  for (unsigned number = 0; number < call_limit; ++number)
    if (call_manners[number] == CallManner::waits_for_all) set |= bit_of(static_cast<Call>(number));
  return set;
}();

bool waits_for_all(const Access& access) {
  if (call_manner_of(access.call) != CallManner::waits_for_all) return false;
  return access.call != Call::MPI_Barrier || !access.process->ranks || access.length == *access.process->ranks;
}

/// Processes whose n-th call may be another one than the n-th in the trace.
std::unordered_set<std::uint64_t> incomplete_processes(const Trace& trace) {
  std::unordered_set<std::uint64_t> found;
  for (const Part& part : trace.parts())
    if (part.header.lost_calls > 0 || (part.fault && !part.fault->is_cut)) found.insert(part.header.process);
  return found;
}

/// Processes of which a part was not closed: they may have died before a barrier that others made.
std::unordered_set<std::uint64_t> unended_processes(const Trace& trace) {
  std::unordered_set<std::uint64_t> found;
  for (const Part& part : trace.parts())
    if (part.header.is_closed == 0) found.insert(part.header.process);
  return found;
}

/// Numbers the runs of MPI programs: processes of one program, each of another rank.
class Runs {
 public:
  std::uint32_t run_of(const Process& process) {
    const auto [known, is_new] = runs_.try_emplace(&process, 0);
    if (!is_new) return known->second;
    const std::uint32_t earlier = of_rank_[{process.program, process.ranks.value_or(0), *process.rank}]++;
    known->second = numbers_
                        .try_emplace({process.program, process.ranks.value_or(0), earlier},
                                     static_cast<std::uint32_t>(numbers_.size()))
                        .first->second;
    return known->second;
  }

 private:
  std::unordered_map<const Process*, std::uint32_t> runs_;
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, std::uint32_t> of_rank_;  ///< processes so far
  std::map<std::tuple<std::string, std::int64_t, std::uint32_t>, std::uint32_t> numbers_;
};

}  // namespace

bool CollectiveCall::is_barrier() const {
  return std::ranges::all_of(members, [&](const CollectiveMember& each) { return each.end_ns >= complete_ns(); });
}

std::vector<CollectiveCall> collective_calls(std::span<const Trace> traces, std::vector<Error>& faults) {
  Runs runs;
  std::map<std::tuple<std::uint32_t, Call, std::string_view>, std::vector<std::size_t>> numbers;  ///< of found calls
  std::map<std::tuple<const Process*, Call, std::string_view>, std::size_t> made;
  std::vector<CollectiveCall> found;
  std::unordered_set<const Process*> unended;
  for (const Trace& trace : traces) {
    const auto unended_here = unended_processes(trace);
    const auto incomplete = incomplete_processes(trace);
    Selection selection{.layer = Layer::mpi_io};
    selection.processes = [&](const Process& process) { return process.rank && !incomplete.contains(process.key); };
    selection.call_set = waiting_set;
    selection.naming_set = bit_of(Call::MPI_File_open);
    const std::int64_t shift_ns = trace.started_ns() - traces.front().started_ns();
    Accesses accesses(trace, selection, faults);
    while (const Access* access = accesses.next()) {
      if (!waits_for_all(*access)) continue;
      if (unended_here.contains(access->process->key)) unended.insert(access->process);
      auto& same = numbers[{runs.run_of(*access->process), access->call, access->path}];
      const std::size_t number = made[{access->process, access->call, access->path}]++;
      if (access->is_in_flight) continue;
      if (number == same.size()) {
        same.push_back(found.size());
        found.push_back({.call = access->call, .path = access->path, .members = {}});
      }
      if (number < same.size())
        found[same[number]].members.push_back(
            {access->process, access->tid, access->start_ns + shift_ns, access->end_ns + shift_ns});
    }
  }
  std::unordered_set<const Process*> uneven;
  for (const auto& [what, calls] : made) {
    const auto& [process, call, path] = what;
    if (call == Call::MPI_Barrier && !unended.contains(process) &&
        calls < numbers[{runs.run_of(*process), call, path}].size())
      uneven.insert(process);
  }
  for (CollectiveCall& each : found)
    for (CollectiveMember& member : each.members) member.may_be_another = uneven.contains(member.process);
  std::erase_if(found, [](const CollectiveCall& each) { return each.members.size() < 2; });
  if (traces.size() > 1)
    for (CollectiveCall& each : found) std::ranges::stable_sort(each.members, {}, &CollectiveMember::start_ns);
  return found;
}

}  // namespace iosig::trace
