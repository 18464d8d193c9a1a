#include "iosig/replay/replay.h"

#include <algorithm>

#include "iosig/replay/replay_turns.h"
#include "iosig/replay/worker_group.h"

namespace iosig {
namespace {

constexpr std::size_t batch_writes = 64;  ///< writes between two readings of the clock
constexpr std::int64_t batch_bytes = 1 << 20;

enum Metric : std::uint8_t {
  open_begin,
  open_end,
  work_begin,
  work_end,
  cpu,
  sync_begin,
  sync_end,
  close_begin,
  close_end,
  count_done,
  bytes_done,
};
/// Used by readers, which do not sync.
constexpr Metric memory = sync_begin;

std::uint32_t processes_for(const WriteMap& map, std::uint32_t wanted) {
  const auto ranks = static_cast<std::uint32_t>(std::max<std::size_t>(1, map.ranks.size()));
  return std::min(wanted == 0 ? max_replay_processes : wanted, ranks);
}

double span_of(const std::vector<WorkerMetrics>& workers, Metric begin, Metric end) {
  double first = workers.front()[begin], last = workers.front()[end];
  for (const WorkerMetrics& metrics : workers) {
    first = std::min(first, metrics[begin]);
    last = std::max(last, metrics[end]);
  }
  return last - first;
}
double sum_of(const std::vector<WorkerMetrics>& workers, Metric which) {
  double sum = 0;
  for (const WorkerMetrics& metrics : workers) sum += metrics[which];
  return sum;
}

/// Performs the writes of one process of a replay.
class Writing {
 public:
  Writing(const WriteMap& map, const ReplayTarget& target, const ReplayOptions& options, std::uint32_t processes,
          Worker& member)
      : target_(target),
        options_(options),
        member_(member),
        turns_(map, member.number(), processes, options.in_turn),
        processes_(processes),
        openings_(options.opens_in_turn ? map.ranks.size() : 0),
        buffer_(static_cast<std::size_t>(options.is_marked ? std::max(map.longest, batch_bytes) : map.longest),
                std::byte{'x'}) {}

  Result<void> run() {
    allow_many_descriptors();
    member_.barrier();
    member_.figure(open_begin) = steady_s();
    for (std::size_t n = 0; n < turns_.local_ranks(); ++n) {
      const std::uint64_t turn = member_.number() + n * processes_;
      if (openings_ > 0) member_.wait_for_turn(turn);
      auto sink = ReplaySink::open(target_);
      if (!sink) return pass_on(std::move(sink.error()));
      if (openings_ > 0) member_.end_turn(turn);
      sinks_.push_back(*std::move(sink));
    }
    member_.figure(open_end) = steady_s();
    member_.barrier();
    member_.figure(work_begin) = steady_s();
    if (auto written = options_.in_turn ? write_in_turn() : write_in_batches(); !written) return written;
    member_.figure(work_end) = steady_s();
    member_.barrier();
    member_.figure(sync_begin) = steady_s();
    for (ReplaySink& sink : sinks_)
      if (options_.syncs)
        if (auto synced = sink.sync(); !synced) return synced;
    member_.figure(sync_end) = steady_s();
    member_.barrier();
    member_.figure(close_begin) = steady_s();
    for (ReplaySink& sink : sinks_)
      if (auto closed = sink.close(); !closed) return closed;
    member_.figure(close_end) = steady_s();
    return {};
  }

 private:
  [[nodiscard]] std::span<std::byte> bytes_at(std::int64_t at, std::int64_t length) {
    return std::span(buffer_).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(length));
  }
  void mark(const Turn& turn, std::int64_t at) {
    fill(bytes_at(at, turn.length), origin_of(turns_.rank(turn.local_rank), turn.offset, turn.physical),
         static_cast<std::uint64_t>(turn.offset));
  }

  Result<void> write_in_turn() {
    for (Turn turn; turns_.next(turn);) {
      if (options_.is_marked) mark(turn, 0);
      member_.wait_for_turn(openings_ + turn.sequence);
      const double begin = process_cpu_s();
      if (auto written = sinks_[turn.local_rank].write(turn.offset, bytes_at(0, turn.length)); !written) return written;
      member_.figure(cpu) += process_cpu_s() - begin;
      member_.end_turn(openings_ + turn.sequence);
      member_.add_done(1);
    }
    return {};
  }

  Result<void> write_in_batches() {
    std::vector<Turn> batch;
    std::vector<std::int64_t> places;  ///< offsets in the buffer
    Turn turn;
    for (bool has_one = turns_.next(turn); has_one;) {
      batch.clear();
      places.clear();
      std::int64_t used = 0;
      do {
        if (options_.is_marked) mark(turn, used);
        batch.push_back(turn);
        places.push_back(options_.is_marked ? used : 0);
        used += turn.length;
        has_one = turns_.next(turn);
      } while (has_one && batch.size() < batch_writes && (!options_.is_marked || used + turn.length <= batch_bytes));
      const double begin = process_cpu_s();
      for (std::size_t n = 0; n < batch.size(); ++n)
        if (auto written = sinks_[batch[n].local_rank].write(batch[n].offset, bytes_at(places[n], batch[n].length));
            !written)
          return written;
      member_.figure(cpu) += process_cpu_s() - begin;
      member_.add_done(batch.size());
    }
    return {};
  }

  const ReplayTarget& target_;
  const ReplayOptions& options_;
  Worker& member_;
  RankTurns turns_;
  std::uint32_t processes_;
  std::uint64_t openings_;  ///< number of turns used for opening
  std::vector<ReplaySink> sinks_;
  std::vector<std::byte> buffer_;
};

/// Opens the target in `processes` processes, runs `work` in each with a function read(offset, length), and counts what
/// it reads.
template <class Work>
Result<ReadMetrics> read_by_workers(const ReplayTarget& target, std::uint32_t processes, const ReplayWatch& watch,
                                    std::int64_t longest, const Work& work) {
  const auto workers = run_worker_group(
      processes,
      [&](Worker& member) -> Result<void> {
        std::vector<std::byte> buffer(static_cast<std::size_t>(longest));
        member.barrier();
        member.figure(open_begin) = steady_s();
        auto source = ReplaySource::open(target);
        if (!source) return pass_on(std::move(source.error()));
        member.figure(open_end) = steady_s();
        if (source->view() != nullptr) member.figure(memory) = static_cast<double>(source->view()->memory_bytes());
        member.barrier();
        member.figure(work_begin) = steady_s();
        const double begin = process_cpu_s();
        std::uint64_t unreported = 0;
        auto read = work(member, *source, [&](std::int64_t offset, std::int64_t length) -> Result<void> {
          const auto got = source->read(offset, std::span(buffer).first(static_cast<std::size_t>(length)));
          if (!got) return pass_on(got.error());
          member.figure(count_done) += 1;
          member.figure(bytes_done) += static_cast<double>(*got);
          if (++unreported == batch_writes) member.add_done(std::exchange(unreported, 0));
          return {};
        });
        member.figure(cpu) = process_cpu_s() - begin;
        member.figure(work_end) = steady_s();
        return read;
      },
      watch);
  if (!workers) return pass_on(workers.error());
  ReadMetrics metrics;
  metrics.processes = processes;
  metrics.open_s = span_of(*workers, open_begin, open_end);
  metrics.open_mean_s = (sum_of(*workers, open_end) - sum_of(*workers, open_begin)) / processes;
  metrics.read_s = span_of(*workers, work_begin, work_end);
  metrics.cpu_s = sum_of(*workers, cpu);
  metrics.reads = static_cast<std::uint64_t>(sum_of(*workers, count_done));
  metrics.bytes = static_cast<std::int64_t>(sum_of(*workers, bytes_done));
  metrics.memory_bytes = static_cast<std::int64_t>(workers->front()[memory]);
  return metrics;
}

}  // namespace

Result<WriteMetrics> replay_writes(const WriteMap& map, const ReplayTarget& target, const ReplayOptions& options,
                                   const ReplayWatch& watch) {
  const std::uint32_t processes = processes_for(map, options.processes);
  const auto workers = run_worker_group(
      processes, [&](Worker& member) { return Writing(map, target, options, processes, member).run(); }, watch);
  if (!workers) return pass_on(workers.error());
  const auto ranks = static_cast<double>(std::max<std::size_t>(1, map.ranks.size()));
  WriteMetrics metrics;
  metrics.processes = processes;
  metrics.open_s = span_of(*workers, open_begin, open_end);
  metrics.open_mean_s = (sum_of(*workers, open_end) - sum_of(*workers, open_begin)) / ranks;
  metrics.write_s = span_of(*workers, work_begin, work_end);
  metrics.cpu_s = sum_of(*workers, cpu);
  metrics.sync_s = options.syncs ? span_of(*workers, sync_begin, sync_end) : 0;
  metrics.close_s = span_of(*workers, close_begin, close_end);
  metrics.close_mean_s = (sum_of(*workers, close_end) - sum_of(*workers, close_begin)) / ranks;
  return metrics;
}

Result<ReadMetrics> replay_reads(const WriteMap& map, const ReplayTarget& target, std::uint32_t processes,
                                 const ReplayWatch& watch) {
  processes = processes_for(map, processes);
  return read_by_workers(target, processes, watch, map.longest,
                         [&](Worker& member, ReplaySource&, const auto& read) -> Result<void> {
                           RankTurns turns(map, member.number(), processes, false);
                           for (Turn turn; turns.next(turn);)
                             if (auto done = read(turn.offset, turn.length); !done) return done;
                           return {};
                         });
}

Result<ReadMetrics> read_blocks(const ReplayTarget& target, std::uint32_t readers, std::int64_t block,
                                const ReplayWatch& watch) {
  return read_by_workers(target, readers, watch, block,
                         [&](Worker& member, ReplaySource& source, const auto& read) -> Result<void> {
                           const std::int64_t blocks = source.size() / block + (source.size() % block != 0);
                           for (std::int64_t n = member.number(); n < blocks; n += readers)
                             if (auto done = read(n * block, block); !done) return done;
                           return {};
                         });
}

}  // namespace iosig
