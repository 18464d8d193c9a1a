#include "iosig/replay/trace_replay.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <map>
#include <new>

#include "iosig/base/text.h"
#include "iosig/replay/trace_worker.h"

namespace iosig {
namespace {

constexpr std::size_t written_at_once = 1u << 20;

/// Counters that the processes share.
class SharedProgress {
 public:
  explicit SharedProgress(std::size_t streams) : bytes_(streams * sizeof(StreamProgress)), streams_(streams) {
    at_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  }
  SharedProgress(const SharedProgress&) = delete;
  SharedProgress& operator=(const SharedProgress&) = delete;
  ~SharedProgress() {
    if (at_ != MAP_FAILED) ::munmap(at_, bytes_);
  }
  [[nodiscard]] bool is_made() const { return at_ != MAP_FAILED; }
  [[nodiscard]] std::span<StreamProgress> streams() const { return {static_cast<StreamProgress*>(at_), streams_}; }

 private:
  std::size_t bytes_, streams_;
  void* at_;
};

std::int64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

/// Reads what TraceWorker::append_metrics() wrote.
class MetricsReader {
 public:
  explicit MetricsReader(std::string_view bytes) : bytes_(bytes) {}
  template <class Value>
  Value next() {
    Value value{};
    if (bytes_.size() < sizeof value) {
      is_sound_ = false;
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const std::string_view found = bytes_.substr(0, next<std::size_t>());
    std::string text(bytes_.substr(0, found.size()));
    bytes_.remove_prefix(text.size());
    return text;
  }
  void merge_into(Distribution& distribution) { is_sound_ = distribution.merge(bytes_) && is_sound_; }
  [[nodiscard]] bool is_sound() const { return is_sound_; }

 private:
  std::string_view bytes_;
  bool is_sound_ = true;
};

/// Adds what one worker has measured.
bool add_metrics(std::string_view bytes, TraceReplayMetrics& sums, std::map<std::uint64_t, StreamMetrics>& streams) {
  MetricsReader from(bytes);
  for (double* seconds : {&sums.io_s, &sums.original_io_s, &sums.think_s, &sums.waited_s})
    *seconds += from.next<double>();
  for (std::uint64_t* count : {&sums.performed, &sums.failed, &sums.short_reads, &sums.made_at_need, &sums.wrong.count})
    *count += from.next<std::uint64_t>();
  sums.prefetched += from.next<prefetch::Counts>();
  const auto first_wrong = from.next<std::int64_t>();
  const std::string failure = from.text(), wrong_file = from.text();
  if (sums.first_failure.empty()) sums.first_failure = failure;
  if (sums.wrong_file.empty()) {
    sums.wrong_file = wrong_file;
    sums.wrong.first = first_wrong;
  }
  from.merge_into(sums.delay_ns);
  for (auto count = from.next<std::size_t>(); count > 0 && from.is_sound(); --count) {
    const auto key = from.next<std::uint64_t>();
    StreamMetrics& stream = streams[key];
    stream.path = static_cast<std::uint32_t>(key >> 2);
    stream.kind = static_cast<StreamKind>(key & 3);
    stream.original_bytes += from.next<std::int64_t>();
    stream.replayed_bytes += from.next<std::int64_t>();
    from.merge_into(stream.original_ns);
    from.merge_into(stream.replayed_ns);
  }
  return from.is_sound();
}

Result<std::string> content_of(const Fd& file) {
  std::string content;
  struct stat at {};
  if (::fstat(file.get(), &at) != 0) return system_failure("read", "results of a process");
  content.resize(static_cast<std::size_t>(at.st_size));
  const ssize_t got = ::pread(file.get(), content.data(), content.size(), 0);
  if (got != at.st_size) return system_failure("read", "results of a process");
  return content;
}

Result<void> make_initial_file(const PlannedPath& path, std::uint32_t number, TargetTree& tree, bool is_marked,
                               const ReplayWatch& watch, std::uint64_t& done) {
  const std::string shown = fmt::format("{}/{}", tree.path(), path.name);
  if (const int made = tree.make_parents(path.name); made != 0) return write_failure("make", shown, -made);
  const int opened = tree.open_file(path.name, O_WRONLY | O_CREAT | O_EXCL);
  if (opened < 0) return write_failure("make", shown, -opened);
  const Fd file(opened);
  std::string bytes(std::min<std::size_t>(written_at_once, static_cast<std::size_t>(path.initial_size)), '\0');
  if (!is_marked) fill(std::as_writable_bytes(std::span(bytes)), {UINT64_MAX, number}, 0);
  for (std::int64_t at = 0; at < path.initial_size;) {
    const auto part = std::min<std::size_t>(bytes.size(), static_cast<std::size_t>(path.initial_size - at));
    if (is_marked)
      fill(std::as_writable_bytes(std::span(bytes).first(part)), initial_origin(number),
           static_cast<std::uint64_t>(at));
    if (auto written = write_all(file.get(), std::string_view(bytes).substr(0, part), shown); !written) return written;
    at += static_cast<std::int64_t>(part);
    done += part;
    if (!watch(done)) return fail(ErrorKind::system, "interrupted");
  }
  if (::fdatasync(file.get()) != 0) return write_failure("store", shown, errno);
  return {};
}

}  // namespace

Result<void> prepare_trace_replay(const TracePlan& plan, TargetTree& tree, bool is_marked, const ReplayWatch& watch) {
  for (const std::string& name : plan.initial_directories)
    if (const int made = tree.make_directory(name); made != 0 && made != -EEXIST)
      return write_failure("make", fmt::format("{}/{}", tree.path(), name), -made);
  std::uint64_t done = 0;
  for (std::uint32_t number = 0; number < plan.paths.size(); ++number) {
    const PlannedPath& path = plan.paths[number];
    if (path.initial_size < 0 || path.name.empty() || path.is_directory) continue;
    if (auto made = make_initial_file(path, number, tree, is_marked, watch, done); !made) return made;
  }
  return {};
}

Result<void> drop_cached_pages(const TracePlan& plan, TargetTree& tree) {
  for (const PlannedPath& path : plan.paths) {
    if (path.initial_size <= 0 || path.name.empty() || path.is_directory) continue;
    const int opened = tree.open_file(path.name, O_RDONLY);
    const std::string shown = fmt::format("{}/{}", tree.path(), path.name);
    if (opened < 0) return system_failure("open", shown, -opened);
    const Fd file(opened);
    if (::fdatasync(file.get()) != 0) return write_failure("store", shown, errno);
    if (const int failed = ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED); failed != 0)
      return system_failure("drop cached pages of", shown, failed);
  }
  return {};
}

Result<TraceReplayMetrics> replay_trace(const trace::Trace& trace, const TracePlan& plan, const TargetTree& target,
                                        const TraceReplayOptions& options, const ReplayWatch& watch) {
  const SharedProgress progress(plan.streams.size());
  if (!progress.is_made()) return system_failure("share memory among", fmt::format("{} processes", plan.workers));
  std::vector<Fd> results;
  for (std::uint32_t worker = 0; worker < plan.workers; ++worker) {
    results.emplace_back(::memfd_create("iosig-replay", MFD_CLOEXEC));
    if (!results.back()) return system_failure("make", "memory for results");
  }
  const auto work = [&](Worker& worker) -> Result<void> {
    auto tree = target.again();
    if (!tree) return pass_on(std::move(tree.error()));
    TraceWorker replaying(trace, plan, std::move(*tree), options, progress.streams(), worker.number());
    worker.barrier();
    auto done = replaying.run(worker, monotonic_ns());
    if (!done) return done;
    std::string bytes;
    replaying.append_metrics(bytes);
    return write_all(results[worker.number()].get(), bytes, "memory for results");
  };
  const auto group = run_worker_group(plan.workers, work, watch);
  if (!group) return pass_on(group.error());
  TraceReplayMetrics metrics;
  for (const WorkerMetrics& each : *group) metrics.elapsed_s = std::max(metrics.elapsed_s, each[0]);
  std::map<std::uint64_t, StreamMetrics> streams;
  for (const Fd& result : results) {
    const auto content = content_of(result);
    if (!content) return pass_on(content.error());
    if (!add_metrics(*content, metrics, streams)) return fail(ErrorKind::system, "a process has no sound results");
  }
  for (auto& [key, stream] : streams) metrics.streams.push_back(std::move(stream));
  std::ranges::stable_sort(metrics.streams, std::greater<>(), &StreamMetrics::original_bytes);
  return metrics;
}

}  // namespace iosig
