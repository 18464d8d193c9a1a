#include "iosig/trace/import/darshan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "iosig/base/text.h"
#include "iosig/trace/dxt_text.h"
#include "iosig/trace/import/darshan_counters.h"
#include "iosig/trace/import/darshan_log.h"

namespace iosig::trace {
namespace {

constexpr std::size_t record_bytes = 104;  ///< id, rank, shared, host (64 bytes), writes, reads
constexpr std::size_t plain_segment = 32;  ///< offset, length, start, end
constexpr double max_job_seconds = 4e9;    ///< since the job began
constexpr std::int64_t max_segments = INT64_MAX / 64;
constexpr std::size_t segments_at_once = 1024;
constexpr std::int64_t no_rank = -1;
constexpr DarshanModule counted_modules[] = {DarshanModule::posix, DarshanModule::mpi_io, DarshanModule::stdio};

struct Segment {
  double start = 0, end = 0;  ///< seconds since the job began
  std::int64_t offset = no_offset, length = 0;
  std::uint64_t record = 0;
  std::uint32_t thread = 0;  ///< number of the thread in its rank, from 1; 0: not known
  bool is_write = false, is_mpi = false;

  [[nodiscard]] bool covers(const Segment& other) const {
    return start <= other.start && other.end <= end && record == other.record && thread == other.thread;
  }
};

/// Sums of one module on one file, over all ranks.
struct FileSums {
  std::int64_t accesses = 0;  ///< reads and writes
  std::int64_t segments = 0;  ///< of DXT
};

void add_to(std::int64_t& sum, std::int64_t count) { sum = sum > INT64_MAX - count ? INT64_MAX : sum + count; }

class DarshanImport {
 public:
  DarshanImport(const DarshanLog& log, TraceWriter& writer, ImportNotes& notes)
      : log_(log), writer_(writer), notes_(notes) {}

  Result<void> run() {
    if (!log_.damage().empty()) remark("{}; names of files are missing", log_.damage());
    for (const DarshanModule module : counted_modules)
      if (auto done = read_counters(module); !done) return done;
    if (auto done = read_segments(DarshanModule::dxt_mpi_io); !done) return done;
    if (auto done = read_segments(DarshanModule::dxt_posix); !done) return done;
    while (!mpi_segments_.empty())
      if (auto done = write_rank(mpi_segments_.begin()->first); !done) return done;
    note_what_is_missing();
    writer_.set_job_start(static_cast<std::uint64_t>(log_.started_ns()));
    for (const DarshanModule module : counted_modules)
      if (auto done = for_each_record(module, [&](const DarshanCounters& each) { keep_counters(module, each); }); !done)
        return done;
    if (ranks_.empty() && kept_counters_ == 0)
      return fail(ErrorKind::bad_input, "{}: has neither DXT segments nor counters of reads and writes", log_.shown());
    if (unnamed_counters_ > 0)
      remark("{} accesses that have counters alone are on files whose name is not in the log; left out",
             unnamed_counters_);
    return {};
  }

 private:
  struct RankState {
    TraceWriter::ProcessNumber process = 0;
    std::map<std::uint32_t, TraceWriter::ThreadNumber> threads;
    std::unordered_map<std::uint64_t, std::uint32_t> threads_by_id, files;
  };

  template <class... Args>
  void remark(fmt::format_string<Args...> text, Args&&... args) {
    notes_.remark(fmt::format("{}: {}", log_.shown(), fmt::format(text, std::forward<Args>(args)...)));
  }
  [[nodiscard]] std::string shown_name(std::uint64_t record) const {
    const std::string* const name = log_.name_of(record);
    return name == nullptr ? fmt::format("record {}", record) : printable(*name);
  }

  /// Sums the accesses of each file; says what cannot be used.
  Result<void> read_counters(DarshanModule module) {
    const DarshanRegion& region = log_.region(module);
    if (region.bytes == 0) return {};
    if (region.is_partial) remark("{}: Darshan did not keep the counters of all files", region.name);
    if (counter_layout(region, module) == nullptr) {
      remark("byte {}: records of {}, version {}, are not known: what is lost cannot be told", region.offset,
             region.name, region.version);
      return {};
    }
    std::string damage;
    auto done = for_each_record(
        module,
        [&](const DarshanCounters& each) {
          if (!each.fault.empty())
            return remark("{}: the record of {} {}; not used", region.name, shown_name(each.record), each.fault);
          add_to(counters_.at(static_cast<std::size_t>(module))[each.record].accesses,
                 static_cast<std::int64_t>(each.file.calls()));
          if (module != DarshanModule::mpi_io) return;
          mpi_kinds_[{each.record, each.rank, false}] = each.reads;
          mpi_kinds_[{each.record, each.rank, true}] = each.writes;
        },
        &damage);
    if (!damage.empty()) remark("{}: counters of {} are missing", damage, region.name);
    return done;
  }

  Result<void> for_each_record(DarshanModule module, const std::function<void(const DarshanCounters&)>& take,
                               std::string* damage = nullptr) {
    const DarshanRegion& region = log_.region(module);
    const CounterLayout* const layout = counter_layout(region, module);
    if (region.bytes == 0 || layout == nullptr) return {};
    DarshanStream stream(log_, region);
    std::string record(layout->bytes, '\0');
    for (;;) {
      const auto got = stream.read(record);
      if (!got) return pass_on(got.error());
      if (*got < record.size()) break;
      take(darshan_counters(*layout, log_.numbers(), record.data(), log_.processes()));
    }
    if (damage != nullptr) *damage = stream.damage();
    return {};
  }

  /// Keeps the counters of a file of whose accesses in the module there is no segment.
  void keep_counters(DarshanModule module, const DarshanCounters& counters) {
    const FileSums& sums = counters_.at(static_cast<std::size_t>(module))[counters.record];
    if (!counters.fault.empty() || counters.file.calls() == 0 || sums.segments > 0) return;
    const std::string* const path = log_.name_of(counters.record);
    if (path == nullptr) return void(unnamed_counters_ += counters.file.calls());
    if (module == DarshanModule::stdio && path->starts_with("<STD"))  // <STDIN>, <STDOUT>, <STDERR>
      return notes_.leave_out("on standard input, output and error", counters.file.calls());
    ++kept_counters_;
    FileCounters file = counters.file;
    file.path = *path;
    writer_.add_counters(std::move(file));
  }

  MpiKind mpi_kind(std::uint64_t record, std::int64_t rank, bool is_write) {
    for (const std::int64_t of :
         {rank, no_rank})  // counters of a file that all ranks opened are one record, of rank -1
      if (const auto known = mpi_kinds_.find({record, of, is_write}); known != mpi_kinds_.end()) return known->second;
    return MpiKind::independent;
  }

  Result<void> read_segments(DarshanModule module) {
    const DarshanRegion& region = log_.region(module);
    if (region.bytes == 0) return {};
    const bool is_mpi = module == DarshanModule::dxt_mpi_io;
    if (region.version == 0 || region.version > (is_mpi ? 3U : 2U))
      return fail(ErrorKind::bad_input, "{}: byte {}: segments of {}, version {}; expected 1 to {}", log_.shown(),
                  region.offset, region.name, region.version, is_mpi ? 3 : 2);
    if (region.is_partial) remark("{}: Darshan did not keep all files", region.name);
    DarshanStream stream(log_, region);
    std::string record(record_bytes, '\0');
    for (;;) {
      const auto got = stream.read(record);
      if (!got) return pass_on(got.error());
      const bool is_cut = *got < record_bytes;
      if (is_cut && (*got > 0 || !stream.damage().empty()))
        remark("{}: segments of {} are missing", stream.damage().empty() ? "a record is cut" : stream.damage(),
               region.name);
      if (is_cut) break;
      const auto is_whole = read_record(stream, region, is_mpi, record.data());
      if (!is_whole) return pass_on(is_whole.error());
      if (!*is_whole) break;
    }
    return is_mpi ? Result<void>{} : write_rank(rank_);
  }

  /// Reads a file's segments in one rank. False: what follows cannot be read.
  Result<bool> read_record(DarshanStream& stream, const DarshanRegion& region, bool is_mpi, const char* record) {
    const DarshanNumbers number = log_.numbers();
    const auto id = number.at<std::uint64_t>(record);
    const auto rank = number.at<std::int64_t>(record + 8);
    const auto writes = number.at<std::int64_t>(record + 88), reads = number.at<std::int64_t>(record + 96);
    if (writes < 0 || reads < 0 || writes > max_segments || reads > max_segments) {
      remark("{}: {} writes and {} reads of rank {} on {}, which cannot be; the segments from there are missing",
             region.name, writes, reads, rank, shown_name(id));
      return false;
    }
    const bool is_known_rank = rank >= 0 && rank < log_.processes();
    if (!is_known_rank)
      remark("{}: rank {} of a job with {} ranks; its segments are left out", region.name, rank, log_.processes());
    if (is_known_rank && !is_mpi && rank != rank_) {
      if (auto done = write_rank(rank_); !done) return pass_on(done.error());
      rank_ = rank;
    }
    if (is_known_rank) set_host(rank, record + 24);
    std::vector<Segment>& segments = is_mpi ? mpi_segments_[is_known_rank ? rank : 0] : segments_;
    const std::int64_t count = writes + reads;
    const std::size_t bytes = plain_segment + (region.version > (is_mpi ? 2U : 1U) ? 8 : 0);
    const bool has_offsets = !is_mpi || region.version > 1;
    for (std::int64_t done = 0; done < count;) {
      buffer_.resize(bytes * static_cast<std::size_t>(std::min<std::int64_t>(count - done, segments_at_once)));
      const auto got = stream.read(buffer_);
      if (!got) return pass_on(got.error());
      for (std::size_t at = 0; at + bytes <= *got; at += bytes, ++done) {
        Segment segment = segment_at(buffer_.data() + at, has_offsets);
        segment.record = id;
        segment.is_mpi = is_mpi;
        segment.is_write = done < writes;
        if (is_known_rank && bytes > plain_segment)
          segment.thread = thread_of(rank, number.at<std::uint64_t>(buffer_.data() + at + plain_segment));
        if (!is_known_rank)
          notes_.leave_out("of a rank that the job does not have");
        else if (can_be(segment, rank))
          segments.push_back(segment);
      }
      if (*got < buffer_.size()) {
        remark("{}: {} of {} segments of rank {} on {}, and those after them, are missing",
               stream.damage().empty() ? "the region ends" : stream.damage(), count - done, count, rank,
               shown_name(id));
        return false;
      }
    }
    add_to(counters_.at(is_mpi ? 1 : 0)[id].segments, count);
    return true;
  }

  [[nodiscard]] Segment segment_at(const char* bytes, bool has_offset) const {
    const DarshanNumbers number = log_.numbers();
    const auto offset = number.at<std::int64_t>(bytes);
    return {.start = number.at<double>(bytes + 16),
            .end = number.at<double>(bytes + 24),
            .offset = has_offset && offset >= 0 ? offset : no_offset,
            .length = number.at<std::int64_t>(bytes + 8)};
  }

  bool can_be(const Segment& segment, std::int64_t rank) {
    const bool has_times = std::isfinite(segment.start) && std::isfinite(segment.end) && segment.start >= 0 &&
                           segment.end >= segment.start && segment.end < max_job_seconds;
    const bool has_length =
        segment.length >= 0 && (segment.offset == no_offset || segment.length <= INT64_MAX - segment.offset);
    if (has_times && has_length) return true;
    if (has_times)
      remark("an access of {} bytes by rank {} on {}, which cannot be; left out", segment.length, rank,
             shown_name(segment.record));
    else
      remark("an access from {} s to {} s by rank {} on {}, which cannot be; left out", segment.start, segment.end,
             rank, shown_name(segment.record));
    notes_.leave_out(has_times ? "with a size that cannot be" : "with times that cannot be");
    return false;
  }

  RankState& set_host(std::int64_t rank, const char* host) {
    const auto [known, is_new] = ranks_.try_emplace(rank);
    if (!is_new) return known->second;
    const std::string_view name(host, ::strnlen(host, 63));
    RankState& state = known->second;
    state.process = writer_.add_process(name.empty() ? "unknown" : std::string(name), 0);
    if (log_.processes() > 1) {
      writer_.add_fact(state.process, "rank", std::to_string(rank));
      writer_.add_fact(state.process, "size", std::to_string(log_.processes()));
    }
    writer_.add_fact(state.process, job_start_key, std::to_string(log_.started_ns()));
    const auto words = words_of(log_.command());
    if (!words.empty()) writer_.add_fact(state.process, "program", std::string(words.front()));
    for (const std::string_view word : words) writer_.add_fact(state.process, "argument", std::string(word));
    return state;
  }

  std::uint32_t thread_of(std::int64_t rank, std::uint64_t id) {
    auto& threads = ranks_[rank].threads_by_id;
    return threads.try_emplace(id, static_cast<std::uint32_t>(threads.size() + 1)).first->second;
  }

  /// Writes the segments of a rank that are there, in the order of their starts, and forgets them.
  Result<void> write_rank(std::int64_t rank) {
    if (rank < 0) return {};
    if (const auto mpi = mpi_segments_.find(rank); mpi != mpi_segments_.end()) {
      segments_.insert(segments_.end(), mpi->second.begin(), mpi->second.end());
      mpi_segments_.erase(mpi);
    }
    std::ranges::sort(segments_, [](const Segment& a, const Segment& b) {
      return std::tuple(a.thread, a.start, !a.is_mpi, -a.end) < std::tuple(b.thread, b.start, !b.is_mpi, -b.end);
    });
    std::vector<std::pair<const Segment*, std::uint64_t>> open;  ///< MPI-IO accesses, with their ids
    std::uint64_t id = 0;
    std::uint32_t thread = UINT32_MAX;
    for (const Segment& segment : segments_) {
      if (segment.thread != std::exchange(thread, segment.thread)) {
        open.clear();
        id = 0;
      }
      std::erase_if(open, [&](const auto& each) { return each.first->end < segment.start; });
      Slot slot = slot_of(segment, rank);
      ++id;
      if (segment.is_mpi)
        open.emplace_back(&segment, id);
      else
        for (const auto& [above, its_id] : open)
          if (above->covers(segment) && id - its_id < UINT32_MAX / 2) slot.parent = static_cast<std::uint32_t>(its_id);
      if (auto done = add(ranks_[rank], segment, slot); !done) return done;
    }
    segments_.clear();
    ranks_[rank].threads.clear();  // ids begin again, in parts of their own, if the log has more of this rank
    return {};
  }

  Slot slot_of(const Segment& segment, std::int64_t rank) {
    const auto time = [&](double seconds) {
      return static_cast<std::uint64_t>(log_.started_ns() + std::llround(seconds * 1e9));
    };
    Slot slot{};
    slot.call = segment.is_mpi     ? mpi_call(mpi_kind(segment.record, rank, segment.is_write), segment.is_write)
                : segment.is_write ? Call::write
                                   : Call::read;
    slot.start = time(segment.start);
    slot.end = time(segment.end);
    slot.offset = segment.offset;
    slot.length = slot.result = segment.length;
    slot.fd = -1;
    if (slot.offset != no_offset) slot.flags = derived_offset;
    return slot;
  }

  Result<void> add(RankState& rank, const Segment& segment, Slot& slot) {
    const std::string* const path = log_.name_of(segment.record);
    if (path == nullptr) ++unnamed_;
    slot.file = rank.files.try_emplace(segment.record, static_cast<std::uint32_t>(rank.files.size() + 1)).first->second;
    const auto [thread, is_new] = rank.threads.try_emplace(segment.thread, 0);
    if (is_new) thread->second = writer_.add_thread(rank.process, static_cast<std::int32_t>(segment.thread));
    return writer_.add(thread->second, slot, path == nullptr ? std::string_view() : *path);
  }

  void note_what_is_missing() {
    std::int64_t dropped = 0, accesses = 0;
    std::array<std::size_t, 3> without{};  ///< files with counters and no segments
    for (const DarshanModule module : counted_modules) {
      const auto which = static_cast<std::size_t>(module);
      for (const auto& [id, file] : counters_.at(which)) {
        if (module != DarshanModule::stdio) {
          add_to(accesses, file.accesses);
          add_to(dropped, std::max<std::int64_t>(file.accesses - file.segments, 0));
        }
        if (file.accesses > 0 && file.segments == 0) ++without.at(which);
      }
    }
    if (dropped > 0 && !ranks_.empty()) {
      writer_.count_lost(ranks_.begin()->second.process, static_cast<std::uint64_t>(dropped));
      remark("DXT did not keep {} of {} accesses that the counters have; on {} files it has none", dropped, accesses,
             without[0] + without[1]);
    }
    if (unnamed_ > 0) remark("{} accesses are on files whose name is not in the log", unnamed_);
  }

  const DarshanLog& log_;
  TraceWriter& writer_;
  ImportNotes& notes_;
  std::array<std::unordered_map<std::uint64_t, FileSums>, 3> counters_;  ///< by module, then record
  std::map<std::tuple<std::uint64_t, std::int64_t, bool>, MpiKind> mpi_kinds_;
  std::map<std::int64_t, RankState> ranks_;
  std::map<std::int64_t, std::vector<Segment>> mpi_segments_;  ///< by rank
  std::vector<Segment> segments_;                              ///< of POSIX, of rank_
  std::int64_t rank_ = no_rank;
  std::string buffer_;
  std::uint64_t unnamed_ = 0, kept_counters_ = 0, unnamed_counters_ = 0;
};

}  // namespace

Result<void> import_darshan(const std::string& path, TraceWriter& writer, ImportNotes& notes) {
  const auto log = DarshanLog::open(path);
  if (!log) return pass_on(log.error());
  return DarshanImport(*log, writer, notes).run();
}

}  // namespace iosig::trace
