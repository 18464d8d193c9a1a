#include "iosig/trace/access_streams.h"

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>

#include "iosig/analyze/detect.h"
#include "iosig/analyze/nest_folder.h"

namespace iosig::trace {
namespace {

constexpr std::uint32_t columns = 3;  ///< logical, length, id
constexpr DetectOptions detection{.columns = columns, .unsigned_columns = 2};
constexpr std::size_t max_detectors = 256;
constexpr std::size_t max_few = 48;  ///< accesses of a process that are kept without a detector

/// The accesses of one process to one file, until they are folded.
struct Sequence {
  std::vector<std::int64_t> few;       ///< vectors that no detector has yet
  std::unique_ptr<Detector> detector;  ///< null: none yet, or it made room for another one
  std::vector<Pattern> parts;          ///< of former detectors
  std::list<Sequence*>::iterator used;
};

/// Finds the patterns of any number of sequences with a limited number of detectors. The one that was not used for the
/// longest time makes room; its sequence goes on in another part.
class Detectors {
 public:
  void push(Sequence& sequence, const std::array<std::int64_t, columns>& access) {
    if (!sequence.detector) {
      sequence.few.insert(sequence.few.end(), access.begin(), access.end());
      if (sequence.few.size() < max_few * columns) return;
      if (by_use_.size() == max_detectors) end(*by_use_.front());
      sequence.detector = std::make_unique<Detector>(detection);
      sequence.used = by_use_.insert(by_use_.end(), &sequence);
      for (std::size_t at = 0; at < sequence.few.size(); at += columns)
        sequence.detector->push(std::span(sequence.few).subspan(at, columns));
      sequence.few = {};
      return;
    }
    if (&sequence != by_use_.back()) by_use_.splice(by_use_.end(), by_use_, sequence.used);
    sequence.detector->push(access);
  }

  /// Appends the sequence to what `folder` has.
  void fold(Sequence& sequence, NestFolder& folder) {
    if (sequence.detector) end(sequence);
    for (const Pattern& part : sequence.parts) folder.push_pattern(part);
    if (!sequence.few.empty()) folder.push_pattern(detect(sequence.few, detection));
    sequence = {};
  }

 private:
  void end(Sequence& sequence) {
    sequence.parts.push_back(sequence.detector->finish());
    sequence.detector.reset();
    by_use_.erase(sequence.used);
  }

  std::list<Sequence*> by_use_;  ///< with a detector; the least recently used first
};

using Numbers = std::unordered_map<const Process*, std::int64_t>;

/// Gives each process of the trace its id.
Numbers numbered(const Trace& trace) {
  std::vector<const Process*> processes;
  std::set<std::int64_t> ranks;
  bool are_distinct = true;
  for (const auto& [key, process] : trace.processes()) {
    processes.push_back(&process);
    if (process.rank) are_distinct = ranks.insert(*process.rank).second && are_distinct;
  }
  std::ranges::sort(processes, {}, [](const Process* each) { return std::tuple(each->host, each->pid, each->key); });
  Numbers ids;
  std::int64_t next = are_distinct && !ranks.empty() ? *ranks.rbegin() + 1 : 0;
  for (const Process* process : processes) ids[process] = are_distinct && process->rank ? *process->rank : next++;
  return ids;
}

/// Numbers the threads of each process.
class Threads {
 public:
  std::int64_t number_of(const Access& access) {
    auto& known = numbers_[access.process];
    return known.try_emplace(access.tid, std::ssize(known)).first->second;
  }

 private:
  std::unordered_map<const Process*, std::unordered_map<std::int32_t, std::int64_t>> numbers_;
};

struct Found {
  std::map<std::int64_t, Sequence> sequences;  ///< by the process's id
  std::uint64_t bytes = 0;
};

}  // namespace

Result<AccessStreams> access_streams(const Trace& trace, const Selection& selection, Moves only,
                                     std::vector<Error>& faults, InOrderOf order) {
  constexpr std::int64_t max_threads = 1 << 20;
  AccessStreams all;
  Threads threads;
  const Numbers ids = numbered(trace);
  for (const auto& [process, id] : ids) all.processes.emplace_back(id, process);
  std::ranges::sort(all.processes);
  Detectors detectors;
  std::map<std::pair<std::string, Moves>, Found, std::less<>> found;
  auto done = trace.for_each(
      [&](const Access& access) -> Result<void> {
        const Moves moves = moves_of(access.call);
        if (moves == Moves::nothing || (only != Moves::nothing && only != moves)) return {};
        if (access.is_in_flight || access.result < 0 || access.offset < 0 || access.length < 0 ||
            access.length > INT64_MAX - access.offset) {
          ++all.left_out;
          return {};
        }
        std::int64_t id = ids.at(access.process);
        if (order == InOrderOf::threads) id = id * max_threads + std::min(threads.number_of(access), max_threads - 1);
        Found& stream = found[{std::string(access.path), moves}];
        stream.bytes += static_cast<std::uint64_t>(access.result);
        detectors.push(stream.sequences[id], {access.offset, access.length, id});
        return {};
      },
      selection, faults);
  if (!done) return pass_on(done.error());
  for (auto& [key, stream] : found) {
    AccessStream made{.path = key.first, .moves = key.second, .bytes = stream.bytes};
    NestFolder folder(columns);
    for (auto& [id, sequence] : stream.sequences) {
      made.ids.push_back(id);
      detectors.fold(sequence, folder);
    }
    made.pattern = folder.finish();
    made.pattern.kinds = {Column::logical, Column::length, Column::id};
    all.streams.push_back(std::move(made));
  }
  std::ranges::stable_sort(all.streams, std::greater(), &AccessStream::bytes);
  return all;
}

}  // namespace iosig::trace
