#include "iosig/storage/measure.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/base/room.h"
#include "iosig/base/units.h"
#include "iosig/storage/block_size.h"
#include "iosig/storage/confidence.h"
#include "iosig/storage/fit.h"
#include "iosig/storage/scratch.h"

namespace iosig {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Memory that O_DIRECT accepts, filled with incompressible bytes.
class Buffer {
 public:
  explicit Buffer(std::size_t size) : size_(size), data_(static_cast<std::byte*>(std::aligned_alloc(alignment, size))) {
    std::minstd_rand random(1);
    for (std::size_t i = 0; i + 4 <= size; i += 4) {
      const auto word = static_cast<std::uint32_t>(random());
      std::memcpy(data_.get() + i, &word, sizeof word);
    }
  }
  static constexpr std::size_t alignment = 64 * KiB;
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::byte* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::size_t size_;
  std::unique_ptr<std::byte[], Free> data_;
};

/// The times of one chunk size: the mean of each pass, and some single ones.
struct Series {
  std::uint64_t bytes = 0;
  std::vector<double> seconds, single_s = {};
};

double median_of(std::vector<double> samples) {
  const auto middle = samples.begin() + std::ssize(samples) / 2;
  std::ranges::nth_element(samples, middle);
  return *middle;
}

std::vector<Series> sizes_between(std::uint64_t smallest, std::uint64_t largest) {
  std::vector<Series> series;
  for (std::uint64_t bytes = smallest; bytes <= largest; bytes *= 4) series.push_back({bytes, {}});
  return series;
}

/// How long passes are, and when they end at the latest.
struct Effort {
  double pass_s = 0, limit_s = 0;
  std::uint64_t max_pass_bytes = std::uint64_t{1} << 60;  ///< flash wears out
};

/// Fills `series` with the mean time of a chunk in each pass, in rounds over all sizes; a change of the machine's load
/// thus affects every size alike. Repeats the passes of each size until its mean is settled, there are `max_passes`, or
/// `limit_s` have passed. Calls `start()` before each pass; `transfer(bytes)` moves one chunk and returns its seconds.
/// Drops sizes that take too long on a slow device; at least two remain.
template <class Start, class Transfer>
Result<void> run_passes(std::vector<Series>& series, const Effort& effort, const Start& start,
                        const Transfer& transfer) {
  constexpr std::size_t max_passes = 20, max_single = 1 << 14;
  constexpr double max_share = 1.0 / 8;  // of the time limit, for the first pass of one size
  const Clock::time_point begin = Clock::now();
  const auto is_late = [&] { return seconds_since(begin) > effort.limit_s; };
  for (std::size_t pass = 0; pass < max_passes; ++pass)
    for (std::size_t i = 0; i < series.size(); ++i) {
      Series& each = series[i];
      if (!each.seconds.empty() && (is_late() || settled(each.seconds))) continue;
      if (const auto started = start(); !started) return pass_on(started.error());
      double spent_s = 0;
      std::uint64_t chunks = 0;
      do {
        const auto took = transfer(each.bytes);
        if (!took) return pass_on(took.error());
        spent_s += *took;
        ++chunks;
        if (each.single_s.size() < max_single) each.single_s.push_back(*took);
      } while (spent_s < effort.pass_s && (chunks + 1) * each.bytes <= effort.max_pass_bytes && !is_late());
      each.seconds.push_back(spent_s / static_cast<double>(chunks));
      if (pass == 0 && i > 0 && spent_s > max_share * effort.limit_s) series.resize(i + 1);
    }
  return {};
}

/// As above, for operations that need no start.
template <class Transfer>
Result<void> run_passes(std::vector<Series>& series, const Effort& effort, const Transfer& transfer) {
  return run_passes(
      series, effort, []() -> Result<void> { return {}; }, transfer);
}

/// Fits latency and bandwidth to the means of all series; their intervals are as wide, relatively, as those of the
/// smallest and the largest chunks.
void fit(const std::vector<Series>& series, Estimate& latency_s, Estimate& bytes_per_s) {
  std::vector<TimedSize> means;
  for (const Series& each : series) means.push_back({each.bytes, estimate_of(each.seconds).mean});
  const Estimate small = estimate_of(series.front().seconds), large = estimate_of(series.back().seconds);
  const auto line =
      fit_service_time(means).value_or(ServiceTime{small.mean, static_cast<double>(series.back().bytes) / large.mean});
  latency_s = {line.latency_s, line.latency_s * small.low / small.mean, line.latency_s * small.high / small.mean,
               small.passes, small.settled};
  constexpr double tiny = 1e-3;  // of the mean: an interval that reaches down to 0 has no upper rate
  bytes_per_s = {line.bytes_per_s, line.bytes_per_s * large.mean / large.high,
                 line.bytes_per_s * large.mean / std::max(large.low, tiny * large.mean), large.passes, large.settled};
}

/// One measurement: a scratch file that grows up to `limit_bytes`, and the operations on it.
class Scratch {
 public:
  Scratch(Fd fd, std::string directory, std::uint64_t block_bytes, std::uint64_t limit_bytes)
      : fd_(std::move(fd)),
        directory_(std::move(directory)),
        block_bytes_(block_bytes),
        limit_bytes_(limit_bytes),
        buffer_(largest_chunk(limit_bytes)) {}

  static std::uint64_t largest_chunk(std::uint64_t limit_bytes) {
    std::uint64_t bytes = 16 * MiB;
    while (bytes > limit_bytes / 4) bytes /= 2;
    return bytes;
  }

  /// Appends and waits until the data are stored; restarts at the beginning when the space is used up.
  Result<double> append(std::uint64_t bytes) {
    if (const auto room = make_room(bytes); !room) return pass_on(room.error());
    const Clock::time_point start = Clock::now();
    if (!put(bytes, size_) || ::fdatasync(fd_.get()) != 0) return refused("write");
    const double took = seconds_since(start);
    size_ += bytes;
    return took;
  }

  /// Grows the file for reading, up to its limit or for about `limit_s`.
  Result<void> fill(double limit_s) {
    return grow(limit_bytes_, buffer_.size(), limit_s, [&](std::uint64_t bytes) { return append(bytes); });
  }

  /// The same without waiting, by `chunk` bytes at a time, up to `bytes`.
  Result<void> fill_cache(std::uint64_t bytes, std::uint64_t chunk, double limit_s) {
    return grow(std::min(bytes, limit_bytes_), chunk, limit_s,
                [&](std::uint64_t each) { return append_to_cache(each); });
  }

  /// Returns whether a file that grows by truncation has no blocks yet. FAT and its kin store zeros instead.
  Result<bool> has_holes() {
    if (const auto emptied = empty(); !emptied) return pass_on(emptied.error());
    struct stat status {};
    constexpr std::uint64_t stat_block_bytes = 512;
    const std::uint64_t bytes = std::min<std::uint64_t>(limit_bytes_, MiB);
    if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0 || ::fsync(fd_.get()) != 0) return refused("grow");
    if (::fstat(fd_.get(), &status) != 0) return true;  // FUSE, of a file without a name; it has what lies behind
    return static_cast<std::uint64_t>(status.st_blocks) * stat_block_bytes < bytes / 2;
  }

  /// Makes the file a hole of all the space that may be used, with a new order of its blocks for write_new_block().
  Result<void> make_sparse() {
    if (auto emptied = empty(); !emptied) return emptied;
    constexpr std::uint64_t max_blocks = 1 << 18;
    const std::uint64_t blocks = std::min(limit_bytes_ / block_bytes_, max_blocks);
    size_ = blocks * block_bytes_;
    if (::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0 || ::fsync(fd_.get()) != 0) return refused("grow");
    new_blocks_.resize(blocks);
    std::iota(new_blocks_.begin(), new_blocks_.end(), std::uint64_t{0});
    std::ranges::shuffle(new_blocks_, random_);
    return {};
  }

  /// Writes one random block that was never written, and waits until it is stored: the file system also allocates the
  /// block and stores that, as it does for a job that fills a new file in random order.
  Result<double> write_new_block() {
    if (new_blocks_.empty())
      if (const auto made = make_sparse(); !made) return pass_on(made.error());
    const std::uint64_t at = new_blocks_.back() * block_bytes_;
    new_blocks_.pop_back();
    const Clock::time_point start = Clock::now();
    if (!put(block_bytes_, at) || ::fdatasync(fd_.get()) != 0) return refused("write");
    return seconds_since(start);
  }

  /// Overwrites one random block and waits until it is stored.
  Result<double> overwrite_anywhere() {
    const Clock::time_point start = Clock::now();
    if (!put(block_bytes_, random_block(random_) * block_bytes_) || ::fdatasync(fd_.get()) != 0)
      return refused("overwrite");
    return seconds_since(start);
  }

  /// Appends without waiting. Truncates a full file; its cached data are never stored.
  Result<double> append_to_cache(std::uint64_t bytes) {
    if (const auto room = make_room(bytes); !room) return pass_on(room.error());
    const Clock::time_point start = Clock::now();
    if (!put(bytes, size_)) return refused("write");
    const double took = seconds_since(start);
    size_ += bytes;
    return took;
  }

  /// Appends without waiting and returns the time in which the data are then stored.
  Result<double> flush(std::uint64_t bytes) {
    if (const auto room = make_room(bytes); !room) return pass_on(room.error());
    for (std::uint64_t done = 0; done < bytes; done += buffer_.size())
      if (!put(std::min<std::uint64_t>(bytes - done, buffer_.size()), size_ + done)) return refused("write");
    size_ += bytes;
    const Clock::time_point start = Clock::now();
    if (const auto stored = store(); !stored) return pass_on(stored.error());
    return seconds_since(start);
  }

  /// Overwrites on from the end of the last transfer, without waiting; from the beginning after the end.
  Result<double> overwrite_on(std::uint64_t bytes) {
    const std::uint64_t at = next(bytes);
    const Clock::time_point start = Clock::now();
    if (!put(bytes, at)) return refused("overwrite");
    return seconds_since(start);
  }

  /// Reads on likewise; what the page cache holds stays there.
  Result<double> reread_on(std::uint64_t bytes) { return get(bytes, next(bytes)); }

  /// Overwrites bytes in the middle of one random block, without waiting. The kernel may have to read the block first.
  Result<double> rewrite_anywhere(std::uint64_t bytes) {
    const std::uint64_t at = random_block(random_) * block_bytes_ + (block_bytes_ - bytes) / 2;
    const Clock::time_point start = Clock::now();
    if (!put(bytes, at)) return refused("overwrite");
    return seconds_since(start);
  }

  /// Truncates the file.
  Result<void> empty() {
    size_ = cursor_ = 0;
    if (::ftruncate(fd_.get(), 0) != 0 || ::fsync(fd_.get()) != 0) return refused("truncate");
    return {};
  }

  /// Makes all further reads miss the page cache. Returns whether O_DIRECT does that; otherwise forget() does.
  bool bypass_cache() {
    direct_ = ::fcntl(fd_.get(), F_SETFL, O_DIRECT) == 0 && ::pread(fd_.get(), buffer_.data(), block_bytes_, 0) >= 0;
    if (!direct_) {
      (void)::fcntl(fd_.get(), F_SETFL, 0);
      (void)::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_RANDOM);  // no read-ahead
    }
    forget();
    return direct_;
  }

  /// Drops the file from the page cache and restarts at its beginning.
  void forget() {
    cursor_ = 0;
    if (!direct_) (void)::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED);
  }

  /// Flushes the file: the page cache does not drop dirty pages.
  Result<void> store() {
    if (::fdatasync(fd_.get()) != 0) return refused("sync");
    return {};
  }

  /// Reads on from the end of the last read.
  Result<double> read_on(std::uint64_t bytes) {
    if (cursor_ + bytes > size_) forget();
    auto took = get(bytes, cursor_);
    cursor_ += bytes;
    return took;
  }

  Result<double> read_anywhere(std::uint64_t bytes) { return get(bytes, random_block(random_) * block_bytes_); }

  /// Returns how many blocks per second `threads` transfer together at random places within `limit_s`.
  double iops(bool write, unsigned threads, double limit_s) {
    std::atomic<std::uint64_t> done{0};
    const Clock::time_point start = Clock::now();
    const auto work = [&](unsigned seed) {
      const Buffer block(Buffer::alignment);
      std::minstd_rand random(seed);
      do {
        const auto at = static_cast<off_t>(random_block(random) * block_bytes_);
        const ssize_t moved = write ? ::pwrite(fd_.get(), block.data(), block_bytes_, at)
                                    : ::pread(fd_.get(), block.data(), block_bytes_, at);
        if (moved != static_cast<ssize_t>(block_bytes_) || (write && ::fdatasync(fd_.get()) != 0)) return;
        ++done;
      } while (seconds_since(start) < limit_s);
    };
    std::vector<std::thread> workers;
    for (unsigned i = 1; i <= threads; ++i) workers.emplace_back(work, i);
    for (std::thread& worker : workers) worker.join();
    return static_cast<double>(done) / seconds_since(start);
  }

 private:
  /// Appends chunks until the file has `bytes`, or for about `limit_s`; two at least, however slow the device is.
  template <class Append>
  Result<void> grow(std::uint64_t bytes, std::uint64_t chunk, double limit_s, const Append& append_chunk) {
    const Clock::time_point start = Clock::now();
    while (size_ + chunk <= bytes && (seconds_since(start) < limit_s || size_ < 2 * chunk))
      if (const auto took = append_chunk(chunk); !took) return pass_on(took.error());
    return {};
  }

  /// Returns where the next transfer of `bytes` begins, and moves on.
  std::uint64_t next(std::uint64_t bytes) {
    if (cursor_ + bytes > size_) cursor_ = 0;
    return std::exchange(cursor_, cursor_ + bytes);
  }

  /// Truncates the file if `bytes` more do not fit.
  Result<void> make_room(std::uint64_t bytes) {
    if (size_ + bytes > limit_bytes_) return empty();
    return {};
  }
  [[nodiscard]] tl::unexpected<Error> refused(std::string_view doing) const {
    return system_failure(fmt::format("{} a scratch file in", doing), directory_);
  }

  bool put(std::uint64_t bytes, std::uint64_t at) {
    for (std::uint64_t done = 0; done < bytes;) {
      const ssize_t put = ::pwrite(fd_.get(), buffer_.data() + done, bytes - done, static_cast<off_t>(at + done));
      if (put < 0 && errno != EINTR) return false;
      if (put > 0) done += static_cast<std::uint64_t>(put);
    }
    return true;
  }

  Result<double> get(std::uint64_t bytes, std::uint64_t at) {
    const Clock::time_point start = Clock::now();
    for (std::uint64_t done = 0; done < bytes;) {
      const ssize_t got = ::pread(fd_.get(), buffer_.data() + done, bytes - done, static_cast<off_t>(at + done));
      if (got == 0) return fail(ErrorKind::system, "a scratch file in '{}' is shorter than written", directory_);
      if (got < 0 && errno != EINTR) return refused("read");
      if (got > 0) done += static_cast<std::uint64_t>(got);
    }
    return seconds_since(start);
  }

  std::uint64_t random_block(std::minstd_rand& random) const {
    return std::uniform_int_distribution<std::uint64_t>(0, size_ / block_bytes_ - 1)(random);
  }

  Fd fd_;
  std::string directory_;
  std::uint64_t block_bytes_, limit_bytes_;
  Buffer buffer_;
  std::uint64_t size_ = 0, cursor_ = 0;
  bool direct_ = false;
  std::vector<std::uint64_t> new_blocks_;  ///< of a sparse file, in random order
  std::minstd_rand random_{1};
};

/// Overwrites blocks at random places without waiting, then waits until they are stored. The number of blocks doubles
/// until a pass is long, because the disk sorts a larger number better; passes of this size are the samples.
Result<void> measure_drain(Scratch& scratch, std::uint64_t block_bytes, double limit_s, Measurement& result) {
  constexpr std::uint64_t fewest_blocks = 64, most_blocks = 1 << 16;
  constexpr double long_share = 0.1;  // of the time limit
  constexpr std::size_t max_passes = 10;
  std::vector<double> latencies_s, block_s;
  const Clock::time_point start = Clock::now();
  for (std::uint64_t blocks = fewest_blocks;;) {
    scratch.forget();
    double writing_s = 0;
    const Clock::time_point pass = Clock::now();
    for (std::uint64_t i = 0; i < blocks; ++i) {
      const auto took = scratch.rewrite_anywhere(block_bytes);
      if (!took) return pass_on(took.error());
      writing_s += *took;
    }
    if (auto stored = scratch.store(); !stored) return stored;
    const double pass_s = seconds_since(pass);
    latencies_s.push_back(writing_s / static_cast<double>(blocks));
    block_s.push_back(pass_s / static_cast<double>(blocks));
    if (seconds_since(start) > limit_s || block_s.size() >= max_passes) break;
    if (pass_s < long_share * limit_s && blocks < most_blocks) {
      blocks *= 2;
      latencies_s.clear();
      block_s.clear();
    } else if (settled(latencies_s) && settled(block_s)) {
      break;
    }
  }
  result.buffered_random_write_latency_s = estimate_of(latencies_s);
  const Estimate each = estimate_of(block_s);
  const auto block = static_cast<double>(block_bytes);
  result.random_drain_bytes_per_s = {block / each.mean, block / each.high, block / std::max(each.low, 1e-3 * each.mean),
                                     each.passes, each.settled};
  return {};
}

/// Returns the least time of each of `block_size_steps`, without those that were not timed: other work only adds to
/// what the blocks take.
std::vector<TimedSize> least_of(const std::vector<std::vector<double>>& times) {
  std::vector<TimedSize> least;
  for (std::size_t i = 0; i < times.size(); ++i)
    if (!times[i].empty()) least.push_back({block_size_steps[i], std::ranges::min(times[i])});
  return least;
}

/// Returns the scratch space to use: 5 % of the room.
Result<std::uint64_t> usable_bytes(const std::string& directory, std::uint64_t wanted) {
  const auto room = room_at(directory).map([](const Room& each) { return each.bytes; });
  if (!room) return pass_on(room.error());
  const std::uint64_t usable = std::min(wanted, *room / 20);
  if (usable < MiB)
    return fail(ErrorKind::infeasible,
                "'{}' has only {} free; a probe uses at most 5 % of that and needs at least 1 MB", directory,
                about_bytes(static_cast<double>(*room)));
  return usable;
}

}  // namespace

Result<Measurement> measure(const std::string& directory, std::uint64_t block_bytes, const MeasureLimits& limits,
                            const MeasureProgress& progress, const MeasurePause& pause) {
  const auto usable = usable_bytes(directory, limits.bytes);
  if (!usable) return pass_on(usable.error());
  auto fd = open_scratch_file(directory);
  if (!fd) return pass_on(fd.error());
  const std::uint64_t block = std::max<std::uint64_t>(block_bytes, 4 * KiB);
  Scratch scratch(std::move(*fd), directory, block, *usable);
  const std::uint64_t largest = Scratch::largest_chunk(*usable);
  Measurement result;

  const auto effort = [&](double share) { return Effort{.pass_s = limits.pass_s, .limit_s = share * limits.seconds}; };
  const auto empty = [&] { return scratch.empty(); };
  constexpr std::uint64_t largest_flush = 64 * MiB;

  progress("buffered writes");
  constexpr std::uint64_t parts = 8;  // of a block, for small writes
  const std::uint64_t many_blocks = std::max(2 * block, std::min(largest, MiB));
  const auto append_to_cache = [&](std::uint64_t bytes) { return scratch.append_to_cache(bytes); };
  std::vector<Series> copies{{block, {}}, {many_blocks, {}}};
  auto done = run_passes(copies, effort(0.1), empty, append_to_cache);
  if (!done) return pass_on(done.error());
  fit(copies, result.buffered_write_latency_s, result.buffered_write_bytes_per_s);
  std::vector<Series> small{{block / parts, {}}};
  done = run_passes(small, effort(0.04), empty, append_to_cache);
  if (!done) return pass_on(done.error());
  const Estimate part = estimate_of(small.front().seconds), first = estimate_of(copies.front().seconds);
  const auto within = [&](double part_s) { return std::max(0.0, (part_s - first.mean / parts) / (1 - 1.0 / parts)); };
  result.buffered_small_write_latency_s = {within(part.mean), within(part.low), within(part.high), part.passes,
                                           part.settled && first.settled};
  if (done = scratch.empty(); !done) return pass_on(done.error());
  pause();

  progress("cached data");
  constexpr std::uint64_t cached_bytes = 128 * MiB;  // more than the caches of most processors hold
  if (done = scratch.fill_cache(cached_bytes, many_blocks, 0.04 * limits.seconds); !done) return pass_on(done.error());
  std::vector<Series> again{{block, {}}, {many_blocks, {}}}, back = again;
  done = run_passes(again, effort(0.04), [&](std::uint64_t bytes) { return scratch.overwrite_on(bytes); });
  if (!done) return pass_on(done.error());
  fit(again, result.cached_write_latency_s, result.cached_write_bytes_per_s);
  done = run_passes(back, effort(0.04), [&](std::uint64_t bytes) { return scratch.reread_on(bytes); });
  if (!done) return pass_on(done.error());
  fit(back, result.cached_read_latency_s, result.cached_read_bytes_per_s);
  if (done = scratch.empty(); !done) return pass_on(done.error());
  pause();

  progress("synchronised writes");
  Effort synced = effort(0.22);
  synced.max_pass_bytes = largest;
  auto writes = sizes_between(block, largest);
  done = run_passes(writes, synced, [&](std::uint64_t bytes) { return scratch.append(bytes); });
  if (!done) return pass_on(done.error());
  fit(writes, result.operation_latency_s, result.write_bytes_per_s);
  if (done = scratch.empty(); !done) return pass_on(done.error());
  pause();

  progress("flushes");
  Effort flushed = effort(0.15);
  flushed.max_pass_bytes = largest_flush;
  auto flushes = sizes_between(std::min(largest, MiB), std::min(largest_flush, *usable));
  done = run_passes(flushes, flushed, [&](std::uint64_t bytes) { return scratch.flush(bytes); });
  if (!done) return pass_on(done.error());
  fit(flushes, result.drain_latency_s, result.drain_bytes_per_s);
  if (done = scratch.empty(); !done) return pass_on(done.error());
  pause();

  progress("random writes of new blocks");
  const auto has_holes = scratch.has_holes();
  if (!has_holes) return pass_on(has_holes.error());
  if (*has_holes) {
    if (done = scratch.make_sparse(); !done) return pass_on(done.error());
    std::vector<Series> news{{block, {}}};
    done = run_passes(news, effort(0.06), [&](std::uint64_t) { return scratch.write_new_block(); });
    if (!done) return pass_on(done.error());
    result.random_new_write_latency_s = estimate_of(news.front().seconds);
  }
  if (done = scratch.empty(); !done) return pass_on(done.error());
  pause();

  progress("random writes");
  if (done = scratch.fill(0.06 * limits.seconds); !done) return pass_on(done.error());
  std::vector<Series> overwrites{{block, {}}};
  done = run_passes(overwrites, effort(0.06), [&](std::uint64_t) { return scratch.overwrite_anywhere(); });
  if (!done) return pass_on(done.error());
  result.random_write_latency_s = estimate_of(overwrites.front().seconds);
  if (!*has_holes) result.random_new_write_latency_s = result.random_write_latency_s;
  pause();

  progress("random buffered writes");
  if (done = measure_drain(scratch, block, 0.15 * limits.seconds, result); !done) return pass_on(done.error());
  pause();

  progress("writes of parts of blocks");
  std::vector<Series> rewrites{{block / 2, {}}};
  done = run_passes(
      rewrites, effort(0.05),
      [&] {
        auto stored = scratch.store();
        scratch.forget();
        return stored;
      },
      [&](std::uint64_t bytes) { return scratch.rewrite_anywhere(bytes); });
  if (!done) return pass_on(done.error());
  result.rewrite_latency_s = estimate_of(rewrites.front().seconds);
  if (done = scratch.store(); !done) return pass_on(done.error());
  pause();

  const auto read_on = [&](std::uint64_t bytes) { return scratch.read_on(bytes); };
  progress("buffered reads");
  scratch.forget();
  std::vector<Series> ahead{{block / parts, {}}, {many_blocks, {}}};
  done = run_passes(ahead, effort(0.1), read_on);  // a restart before each pass would wait for the read-ahead
  if (!done) return pass_on(done.error());
  fit(ahead, result.buffered_read_latency_s, result.buffered_read_bytes_per_s);
  pause();

  progress("reads past the cache");
  result.direct_reads = scratch.bypass_cache();
  auto reads = sizes_between(block, largest);
  done = run_passes(reads, effort(0.12), read_on);
  if (!done) return pass_on(done.error());
  fit(reads, result.read_operation_latency_s, result.read_bytes_per_s);
  pause();

  progress("random reads");
  std::vector<Series> random{{block, {}}};
  done = run_passes(random, effort(0.05), [&](std::uint64_t bytes) { return scratch.read_anywhere(bytes); });
  if (!done) return pass_on(done.error());
  result.random_read_latency_s = estimate_of(random.front().seconds);
  result.seek_s = std::max(0.0, median_of(random.front().single_s) - median_of(reads.front().single_s));

  progress("operations per second");
  constexpr unsigned threads = 4;
  const double share_s = 10 * limits.pass_s;
  result.max_iops = std::max({scratch.iops(false, threads, share_s), scratch.iops(true, threads, share_s),
                              1 / result.operation_latency_s.mean, 1 / result.read_operation_latency_s.mean,
                              1 / result.random_write_latency_s.mean, 1 / result.random_read_latency_s.mean});
  pause();
  return result;
}

Result<std::uint64_t> measure_block_bytes(const std::string& directory, std::uint64_t reported,
                                          const MeasureLimits& limits, const MeasureProgress& progress) {
  const auto usable = usable_bytes(directory, limits.bytes);
  if (!usable) return pass_on(usable.error());
  auto fd = open_scratch_file(directory);
  if (!fd) return pass_on(fd.error());
  progress("block size");
  Scratch scratch(std::move(*fd), directory, std::max<std::uint64_t>(reported, 4 * KiB), *usable);
  // Rounds over all sizes, each at the beginning of an empty file, where blocks begin, too.
  constexpr std::size_t max_rounds = 40;
  constexpr double share = 0.2;
  std::vector<std::vector<double>> times(block_size_steps.size());
  const Clock::time_point begin = Clock::now();
  for (std::size_t round = 0; round < max_rounds; ++round)
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (seconds_since(begin) > share * limits.seconds) return closest_block_bytes(least_of(times), reported);
      if (const auto emptied = scratch.empty(); !emptied) return pass_on(emptied.error());
      const auto took = scratch.append(block_size_steps[i]);
      if (!took) return pass_on(took.error());
      times[i].push_back(*took);
    }
  return closest_block_bytes(least_of(times), reported);
}

}  // namespace iosig
