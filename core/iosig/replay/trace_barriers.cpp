#include "iosig/replay/trace_barriers.h"

#include <algorithm>

namespace iosig {
namespace {

constexpr std::uint64_t max_passages = 4'000'000;

}  // namespace

TraceBarriers::TraceBarriers(std::span<const trace::CollectiveCall> calls, TracePlan& plan) : plan_(plan) {
  for (const trace::CollectiveCall& call : calls) {
    if (!call.is_barrier()) continue;
    const auto number = static_cast<std::uint32_t>(plan.barriers.size());
    plan.barriers.emplace_back();
    for (const trace::CollectiveMember& each : call.members)
      threads_[{each.process, each.tid}].passages.push_back({each.start_ns, call.complete_ns(), number});
  }
  for (auto& [key, thread] : threads_) std::ranges::stable_sort(thread.passages, {}, &Passage::entered_ns);
}

void TraceBarriers::add(std::uint32_t stream, std::uint64_t op, const trace::Access& access) {
  const auto known = threads_.find({access.process, access.tid});
  if (known == threads_.end()) return;
  Thread& thread = known->second;
  thread.stream = stream;
  thread.ops = op + 1;
  const auto is_at = [&](std::size_t passage) { return passage < thread.passages.size(); };
  while (is_at(thread.entered) && thread.passages[thread.entered].entered_ns <= access.start_ns) enter(thread, op);
  while (is_at(thread.passed) && thread.passages[thread.passed].complete_ns <= access.start_ns)
    wait(stream, op, thread.passages[thread.passed++].barrier);
}

/// The stream enters its next barrier after its first `ops` operations.
void TraceBarriers::enter(Thread& thread, std::uint64_t ops) {
  const std::uint32_t barrier = thread.passages[thread.entered++].barrier;
  if (ops == 0) return;
  if (++kept_ > max_passages)
    plan_.lacks_waits = true;
  else
    plan_.barriers[barrier].push_back({.stream = thread.stream, .op = ops - 1});
}

void TraceBarriers::wait(std::uint32_t stream, std::uint64_t op, std::uint32_t barrier) {
  if (++kept_ > max_passages)
    plan_.lacks_waits = true;
  else
    plan_.streams[stream].barriers.emplace_back(op, barrier);
}

void TraceBarriers::finish() {
  for (auto& [key, thread] : threads_)
    while (thread.stream != UINT32_MAX && thread.entered < thread.passages.size()) enter(thread, thread.ops);
}

}  // namespace iosig
