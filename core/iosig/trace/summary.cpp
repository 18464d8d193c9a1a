#include "iosig/trace/summary.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "iosig/trace/accesses.h"

namespace iosig::trace {

void CallTotals::add(const CallTotals& other) {
  calls += other.calls;
  failed += other.failed;
  in_flight += other.in_flight;
  read_bytes += other.read_bytes;
  written_bytes += other.written_bytes;
  inclusive_ns += other.inclusive_ns;
  exclusive_ns += other.exclusive_ns;
}

namespace {

CallTotals totals_of(const Access& access) {
  CallTotals one;
  one.calls = 1;
  if (access.is_in_flight) {
    one.in_flight = 1;
    return one;
  }
  one.failed = access.result < 0 ? 1 : 0;
  one.inclusive_ns = one.exclusive_ns = access.end_ns - access.start_ns;
  if (access.result > 0) {
    const Moves moves = moves_of(access.call);
    if (moves == Moves::reads) one.read_bytes = static_cast<std::uint64_t>(access.result);
    if (moves == Moves::writes) one.written_bytes = static_cast<std::uint64_t>(access.result);
  }
  return one;
}

}  // namespace

void LayerBytes::add(Layer layer, const CallTotals& call) {
  read[static_cast<std::size_t>(layer)] += call.read_bytes;
  written[static_cast<std::size_t>(layer)] += call.written_bytes;
}

std::pair<std::uint64_t, std::uint64_t> LayerBytes::read_and_written() const {
  for (std::size_t layer = read.size(); layer-- > 0;)  // the lowest is the last
    if (read[layer] + written[layer] > 0) return {read[layer], written[layer]};
  return {0, 0};
}

Result<Summary> summary_of(const Trace& trace, const Selection& selection) {
  Summary summary;
  std::unordered_map<const Process*, ProcessSummary> processes;
  for (const Part& part : trace.parts()) {
    ProcessSummary& process = processes[&trace.process_of(part)];
    process.process = &trace.process_of(part);
    process.lost_calls += part.header.lost_calls;
    process.is_closed = process.is_closed && part.header.is_closed == 1;
    summary.lost_calls += part.header.lost_calls;
    for (const BlockPlace& block : part.blocks) {
      summary.packed_bytes += sizeof(ChunkHeader) + block.bytes;
      summary.packed_calls += block.calls;
    }
  }
  // The calls of each part that may still have children: a child starts before its parent ends.
  struct Active {
    std::uint64_t id;
    std::int64_t end_ns;
    Call call;
  };
  std::unordered_map<std::uint64_t, std::vector<Active>> active;  // by the part in the id
  auto done = trace.for_each(
      [&](const Access& access) -> Result<void> {
        const CallTotals one = totals_of(access);
        summary.calls[access.call].add(one);
        summary.layers[static_cast<std::size_t>(layer_of(access.call))].add(one);
        summary.span_ns = std::max({summary.span_ns, access.start_ns, access.end_ns});
        ProcessSummary& process = processes[access.process];
        process.threads.insert(access.tid);
        process.totals.calls += 1;
        process.totals.failed += one.failed;
        process.totals.in_flight += one.in_flight;

        std::vector<Active>& stack = active[access.id >> call_id_bits];
        std::erase_if(stack, [&](const Active& each) { return each.end_ns < access.start_ns; });
        const auto parent = std::ranges::find(stack, access.parent, &Active::id);
        const bool is_inner = access.parent != 0 && parent != stack.end();
        if (is_inner) {
          summary.calls[parent->call].exclusive_ns -= one.inclusive_ns;
          summary.layers[static_cast<std::size_t>(layer_of(parent->call))].exclusive_ns -= one.inclusive_ns;
        } else {
          process.totals.inclusive_ns += one.inclusive_ns;
        }
        process.bytes.add(layer_of(access.call), one);
        // The end of a call in flight is not known, nor is its duration: its children are not subtracted.
        if (!access.is_in_flight) stack.push_back({access.id, access.end_ns, access.call});
        if (!access.path.empty()) {
          auto file = summary.files.find(access.path);
          if (file == summary.files.end()) file = summary.files.emplace(std::string(access.path), FileTotals{}).first;
          file->second.calls += 1;
          file->second.bytes.add(layer_of(access.call), one);
        }
        return {};
      },
      selection, summary.faults);
  if (!done) return pass_on(done.error());
  for (auto& [path, file] : summary.files)
    std::tie(file.read_bytes, file.written_bytes) = file.bytes.read_and_written();
  for (auto& [process, each] : processes) {
    std::tie(each.totals.read_bytes, each.totals.written_bytes) = each.bytes.read_and_written();
    summary.threads += each.threads.size();
    summary.processes.push_back(std::move(each));
  }
  std::ranges::sort(summary.processes, {}, [](const ProcessSummary& each) {
    return std::tuple(each.process->host, each.process->rank.value_or(INT64_MAX), each.process->pid, each.process->key);
  });
  return summary;
}

}  // namespace iosig::trace
