#include "iosig/replay/trace_plan.h"

#include <algorithm>

#include "iosig/base/mix.h"
#include "iosig/base/text.h"
#include "iosig/replay/replay.h"
#include "iosig/replay/trace_survey.h"
#include "iosig/trace/accesses.h"
#include "iosig/trace/collectives.h"

namespace iosig {
namespace {

/// Counts what is performed, once it is known which paths are replayed.
class PlanTotals {
 public:
  PlanTotals(TracePlan& plan, const ThinkTime& think) : plan_(plan), think_(think), workers_(plan.workers) {}

  void add(const trace::Access& access) {
    const ReplayOp op = replay_op_of(access, plan_.layer);
    if (!is_performed(op)) return;
    const PlannedPath* path = plan_.replayed(access, op, plan_.path_of(access.path));
    if (path == nullptr) return;
    PlannedStream& stream = plan_.streams[plan_.stream_of(access.process, access.tid)];
    if (plan_.performed++ == 0) plan_.started_ns = access.start_ns;
    ++stream.performed;
    ended_ns_ = std::max(ended_ns_, access.end_ns);
    if (op == ReplayOp::read) plan_.read_bytes = byte_sum(plan_.read_bytes, moved_bytes(access));
    if (op == ReplayOp::write) plan_.written_bytes = byte_sum(plan_.written_bytes, moved_bytes(access));
    if (stream.worker == UINT32_MAX) return;
    WorkerTime& worker = workers_[stream.worker];
    if (!worker.has_begun) worker.ended_ns = plan_.started_ns;
    worker.has_begun = true;
    const std::int64_t think_ns = think_.of(std::max<std::int64_t>(0, access.start_ns - worker.ended_ns));
    plan_.think_s += 1e-9 * static_cast<double>(think_ns);
    const std::int64_t call_ns = std::max<std::int64_t>(0, access.end_ns - access.start_ns);
    worker.sum_s += 1e-9 * (static_cast<double>(think_ns) + static_cast<double>(call_ns));
    worker.ended_ns = std::max(worker.ended_ns, access.end_ns);
  }

  void finish() {
    plan_.original_s = 1e-9 * static_cast<double>(ended_ns_ - plan_.started_ns);
    for (const WorkerTime& worker : workers_) plan_.expected_s = std::max(plan_.expected_s, worker.sum_s);
  }

 private:
  struct WorkerTime {
    std::int64_t ended_ns = 0;
    double sum_s = 0;
    bool has_begun = false;
  };
  TracePlan& plan_;
  const ThinkTime& think_;
  std::vector<WorkerTime> workers_;
  std::int64_t ended_ns_ = 0;
};

/// Counts the performed operations of each stream.
void count_streams(const trace::Trace& trace, TracePlan& plan, std::vector<Error>& faults) {
  trace::Accesses accesses(trace, {}, faults);
  while (const trace::Access* access = accesses.next()) {
    const ReplayOp op = replay_op_of(*access, plan.layer);
    if (is_performed(op) && plan.replayed(*access, op, plan.path_of(access->path)) != nullptr)
      ++plan.streams[plan.stream_of(access->process, access->tid)].performed;
  }
}

Result<void> assign_workers(TracePlan& plan, std::uint32_t processes) {
  std::uint32_t count = 0;
  for (const PlannedStream& stream : plan.streams) count += stream.performed > 0 ? 1 : 0;
  const std::uint32_t allowed = processes == 0 ? max_replay_processes : processes;
  if (processes == 0 && count > allowed)
    return fail(ErrorKind::usage, "{} threads have accesses, and at most {} processes replay them: --processes {}",
                count, allowed, allowed);
  plan.workers = std::min(count, allowed);
  std::uint32_t next = 0;
  for (PlannedStream& stream : plan.streams)
    if (stream.performed > 0) stream.worker = next++ % plan.workers;
  return {};
}

std::uint64_t identity_of(const TracePlan& plan) {
  std::uint64_t identity = 0;
  for (const PlannedStream& stream : plan.streams)
    identity = mixed(identity ^ stream.process->key ^ static_cast<std::uint64_t>(stream.tid));
  for (const PlannedPath& path : plan.paths)
    identity = mixed(identity ^ fnv1a(path.name) ^ static_cast<std::uint64_t>(path.initial_size));
  return identity;
}

}  // namespace

std::uint32_t TracePlan::stream_of(const trace::Process* process, std::int32_t tid) const {
  const auto known = threads.find(process);
  if (known == threads.end()) return UINT32_MAX;
  const auto thread = std::ranges::find(known->second, tid, &std::pair<std::int32_t, std::uint32_t>::first);
  return thread == known->second.end() ? UINT32_MAX : thread->second;
}

std::uint32_t TracePlan::path_of(std::string_view path) const {
  const auto known = numbers.find(path);
  return known == numbers.end() ? UINT32_MAX : known->second;
}

const PlannedPath* TracePlan::replayed(const trace::Access& access, ReplayOp op, std::uint32_t number) const {
  if (number == UINT32_MAX || paths[number].name.empty()) return nullptr;
  const bool takes_directory = is_by_name(op) && op != ReplayOp::link;
  const bool takes_file = op != ReplayOp::make_directory && op != ReplayOp::remove_directory;
  if (paths[number].is_directory ? !takes_directory : !takes_file) return nullptr;
  if (op != ReplayOp::rename && op != ReplayOp::link) return &paths[number];
  const std::uint32_t to = path_of(access.second_path);
  return to == UINT32_MAX || paths[to].name.empty() ? nullptr : &paths[number];
}

Result<TracePlan> plan_trace_replay(const trace::Trace& trace, const TracePlanOptions& options,
                                    std::vector<Error>& faults) {
  std::vector<Error> same_faults;
  const std::vector<trace::CollectiveCall> collectives = trace::collective_calls(std::span(&trace, 1), same_faults);
  TracePlan plan;
  for (const trace::Layer layer : {trace::Layer::posix, trace::Layer::stdio, trace::Layer::mpi_io}) {
    plan = {};
    plan.layer = layer;
    faults.clear();
    TraceSurvey survey(options, collectives, plan);
    trace::Accesses accesses(trace, {}, faults);
    while (const trace::Access* access = accesses.next()) survey.add(*access);
    survey.finish();
    count_streams(trace, plan, same_faults);
    if (auto assigned = assign_workers(plan, options.processes); !assigned) return pass_on(assigned.error());
    if (plan.workers > 0) break;
  }
  if (plan.workers == 0)
    return fail(ErrorKind::infeasible, "nothing of it can be replayed: it has no access to a selected file{}",
                plan.left_out_files > 0 ? fmt::format(" ({} are left out)", plan.left_out_files) : "");
  for (PlannedStream& stream : plan.streams) stream.performed = 0;
  PlanTotals totals(plan, options.think);
  trace::Accesses accesses(trace, {}, same_faults);
  while (const trace::Access* access = accesses.next()) totals.add(*access);
  totals.finish();
  plan.identity = identity_of(plan);
  return plan;
}

}  // namespace iosig
