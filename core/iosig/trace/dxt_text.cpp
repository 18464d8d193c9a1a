#include "iosig/trace/dxt_text.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include "iosig/base/files.h"
#include "iosig/base/text.h"

namespace iosig::trace {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::size_t piece_bytes = 1 << 16;

struct DxtSegment {
  std::int64_t offset, length, start_ns, end_ns;
};

struct DxtRecord {
  std::uint64_t writes = 0, reads = 0;  ///< counted in the first pass
  std::uint64_t first = 0;              ///< its first segment
  std::uint64_t placed_writes = 0, placed_reads = 0;
};

/// Segments in a file that is mapped.
class SegmentStore {
 public:
  static Result<SegmentStore> make(const std::string& directory, std::uint64_t count) {
    SegmentStore store;
    if (count == 0) return store;
    Fd file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!file) {
      std::string name = directory + "/.iosig-export.XXXXXX";
      file = Fd(::mkostemp(name.data(), O_CLOEXEC));
      if (!file) return system_failure("make a temporary file in", directory);
      ::unlink(name.c_str());
    }
    const std::uint64_t bytes = count * sizeof(DxtSegment);
    if (const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)); error != 0)
      return system_failure(fmt::format("put {} bytes into a temporary file in", bytes), directory, error);
    void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (mapped == MAP_FAILED) return system_failure("map a temporary file in", directory);
    store.segments_ = std::span(static_cast<DxtSegment*>(mapped), count);
    return store;
  }
  SegmentStore(SegmentStore&& other) noexcept : segments_(std::exchange(other.segments_, {})) {}
  SegmentStore& operator=(SegmentStore&&) = delete;
  SegmentStore(const SegmentStore&) = delete;
  SegmentStore& operator=(const SegmentStore&) = delete;
  ~SegmentStore() {
    if (!segments_.empty()) ::munmap(segments_.data(), segments_.size_bytes());
  }
  DxtSegment& operator[](std::uint64_t number) { return segments_[number]; }

 private:
  SegmentStore() = default;
  std::span<DxtSegment> segments_;
};

std::optional<std::int64_t> job_start_in(std::string_view text) {
  const auto parsed = parse_count<std::uint64_t>(text);
  return parsed && *parsed <= INT64_MAX ? std::optional(static_cast<std::int64_t>(*parsed)) : std::nullopt;
}

class DxtText {
 public:
  DxtText(const Trace& trace, const Selection& selection, const std::function<Result<void>(std::string_view)>& put)
      : trace_(trace), selection_(selection), put_(put) {
    for (const auto& [key, process] : trace.processes()) processes_.push_back(&process);
    std::ranges::sort(processes_, {}, [](const Process* each) {
      return std::tuple(each->rank.value_or(INT64_MAX), each->host, each->pid, each->key);
    });
    left_out_.has_numbers =
        processes_.size() > 1 && std::ranges::any_of(processes_, [](const Process* each) { return !each->rank; });
    for (std::size_t n = 0; n < processes_.size(); ++n) numbers_[processes_[n]] = n;
    origin_ns_ = trace.started_ns() / second_ns * second_ns;
    for (const Process* const process : processes_)
      for (const auto& [key, value] : process->variables)
        if (key == job_start_key) origin_ns_ = job_start_in(value).value_or(origin_ns_);
  }

  Result<DxtLeftOut> write(const std::string& directory, std::vector<Error>& faults) {
    if (auto done =
            trace_.for_each([&](const Access& access) { return count(access), Result<void>{}; }, selection_, faults);
        !done)
      return pass_on(done.error());
    std::uint64_t total = 0;
    for (auto& [key, record] : records_) {
      record.first = total;
      total += record.writes + record.reads;
    }
    auto store = SegmentStore::make(directory, total);
    if (!store) return pass_on(store.error());
    std::vector<Error> same_faults;
    if (auto done = trace_.for_each([&](const Access& access) { return place(access, *store), Result<void>{}; },
                                    selection_, same_faults);
        !done)
      return pass_on(done.error());
    append_header();
    for (const bool is_mpi : {false, true})
      if (auto done = append_module(is_mpi, *store); !done) return pass_on(done.error());
    if (records_.empty()) text_ += "\n# no DXT module data available for this Darshan log.\n";
    if (auto done = flush(0); !done) return pass_on(done.error());
    return left_out_;
  }

 private:
  /// Layer (POSIX first, as in Darshan), number of the process, path.
  using Key = std::tuple<bool, std::size_t, std::string_view>;

  /// Whether DXT has the access.
  bool is_segment(const Access& access) {
    if (moves_of(access.call) == Moves::nothing || layer_of(access.call) == Layer::stdio) return false;
    return !access.is_in_flight && (access.flags & abandoned) == 0 && access.result >= 0 && !access.path.empty();
  }
  Key key_of(const Access& access) {
    return {layer_of(access.call) == Layer::mpi_io, numbers_.at(access.process), access.path};
  }

  void count(const Access& access) {
    latest_ns_ = std::max({latest_ns_, access.start_ns, access.is_in_flight ? 0 : access.end_ns});
    if (is_segment(access)) {
      DxtRecord& record = records_[key_of(access)];
      ++(moves_of(access.call) == Moves::writes ? record.writes : record.reads);
    } else if (moves_of(access.call) != Moves::nothing) {
      const bool has_no_end = access.is_in_flight || (access.flags & abandoned) != 0;
      if (layer_of(access.call) == Layer::stdio)
        ++left_out_.stdio;
      else if (has_no_end)
        ++left_out_.unfinished;
      else if (access.result >= 0)
        ++left_out_.unnamed;
    }
  }

  void place(const Access& access, SegmentStore& store) {
    if (!is_segment(access)) return;
    const auto known = records_.find(key_of(access));
    if (known == records_.end()) return;  // the trace grows
    DxtRecord& record = known->second;
    const bool is_write = moves_of(access.call) == Moves::writes;
    std::uint64_t& placed = is_write ? record.placed_writes : record.placed_reads;
    if (placed == (is_write ? record.writes : record.reads)) return;
    store[record.first + (is_write ? 0 : record.writes) + placed++] = {access.offset, access.result, access.start_ns,
                                                                       access.end_ns};
  }

  [[nodiscard]] double since_start(std::int64_t time_ns) const {
    return static_cast<double>(trace_.started_ns() + time_ns - origin_ns_) / 1e9;
  }

  void append_header() {
    std::vector<std::string> command;
    std::int64_t ranks = 0;
    for (const Process* const process : processes_) {
      if (command.empty())
        for (const std::string& word : process->arguments) command.push_back(printable(word));
      if (command.empty() && !process->program.empty()) command.push_back(printable(process->program));
      ranks = std::max(ranks, process->ranks.value_or(0));
    }
    const std::time_t start = origin_ns_ / second_ns, end = (trace_.started_ns() + latest_ns_) / second_ns;
    text_ += "# darshan log version: 3.21\n# compression method: NONE\n";
    text_ += fmt::format("# exe: {}\n", fmt::join(command, " "));
    text_ += fmt::format("# start_time: {}\n# start_time_asci: {:%a %b %e %H:%M:%S %Y}\n", start, fmt::gmtime(start));
    text_ += fmt::format("# end_time: {}\n# end_time_asci: {:%a %b %e %H:%M:%S %Y}\n", end, fmt::gmtime(end));
    text_ += fmt::format("# nprocs: {}\n# run time: {}\n",
                         ranks > 0 && !left_out_.has_numbers ? ranks : static_cast<std::int64_t>(processes_.size()),
                         end - start + 1);
    text_ += "# metadata: made_by = iosig export\n";
  }

  Result<void> append_module(bool is_mpi, SegmentStore& store) {
    bool is_first = true;
    for (const auto& [key, record] : records_) {
      if (std::get<0>(key) != is_mpi) continue;
      if (std::exchange(is_first, false))
        text_ += fmt::format(
            "\n# ***************************************************\n# {} module data\n"
            "# ***************************************************\n",
            is_mpi ? "DXT_MPIIO" : "DXT_POSIX");
      if (auto done = append_record(key, record, store); !done) return done;
    }
    return {};
  }

  Result<void> append_record(const Key& key, const DxtRecord& record, SegmentStore& store) {
    const auto& [is_mpi, number, path] = key;
    const Process& process = *processes_[number];
    const std::int64_t rank = left_out_.has_numbers ? static_cast<std::int64_t>(number) : process.rank.value_or(0);
    text_ += fmt::format(
        "\n# DXT, file_id: {}, file_name: {}\n# DXT, rank: {}, hostname: {}\n# DXT, write_count: {}, read_count: {}\n"
        "# DXT, mnt_pt: UNKNOWN, fs_type: UNKNOWN\n"
        "# Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)\n",
        fnv1a(path), printable(path), rank, process.host.empty() ? "unknown" : printable(process.host),
        record.placed_writes, record.placed_reads);
    for (const bool is_write : {true, false}) {
      const std::uint64_t first = record.first + (is_write ? 0 : record.writes);
      for (std::uint64_t n = 0; n < (is_write ? record.placed_writes : record.placed_reads); ++n) {
        const DxtSegment& each = store[first + n];
        text_ +=
            fmt::format("{:>8}{:>8}{:>7}{:>9}{:>16}{:>16}{:>12.4f}{:>12.4f}\n", is_mpi ? "X_MPIIO" : "X_POSIX", rank,
                        is_write ? "write" : "read", n, each.offset < 0 ? "N/A" : fmt::format("{}", each.offset),
                        each.length, since_start(each.start_ns), since_start(each.end_ns));
        if (auto done = flush(piece_bytes); !done) return done;
      }
    }
    return flush(piece_bytes);
  }

  Result<void> flush(std::size_t from_bytes) {
    if (text_.size() < from_bytes) return {};
    auto done = put_(text_);
    text_.clear();
    return done;
  }

  const Trace& trace_;
  const Selection& selection_;
  const std::function<Result<void>(std::string_view)>& put_;
  std::vector<const Process*> processes_;
  std::unordered_map<const Process*, std::size_t> numbers_;
  std::map<Key, DxtRecord> records_;
  std::int64_t origin_ns_ = 0, latest_ns_ = 0;
  DxtLeftOut left_out_;
  std::string text_;
};

}  // namespace

Result<DxtLeftOut> write_dxt_text(const Trace& trace, const Selection& selection, const std::string& directory,
                                  const std::function<Result<void>(std::string_view)>& put,
                                  std::vector<Error>& faults) {
  return DxtText(trace, selection, put).write(directory, faults);
}

}  // namespace iosig::trace
