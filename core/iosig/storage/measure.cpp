#include "iosig/storage/measure.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/base/room.h"
#include "iosig/base/units.h"
#include "iosig/storage/fit.h"
#include "iosig/storage/scratch.h"

namespace iosig {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Returns the value below which `share` of the samples lie. `samples` must not be empty.
double quantile(std::vector<double> samples, double share) {
  const auto nth = samples.begin() + std::lround(share * static_cast<double>(samples.size() - 1));
  std::ranges::nth_element(samples, nth);
  return *nth;
}

Spread spread_of(const std::vector<double>& samples) {
  return {quantile(samples, 0.5), quantile(samples, 0.1), quantile(samples, 0.9)};
}

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

/// The times of one chunk size.
struct Series {
  std::uint64_t bytes = 0;
  std::vector<double> seconds;
};

std::vector<Series> sizes_between(std::uint64_t smallest, std::uint64_t largest) {
  std::vector<Series> series;
  for (std::uint64_t bytes = smallest; bytes <= largest; bytes *= 4) series.push_back({bytes, {}});
  return series;
}

/// Fills `series` in rounds over all sizes for about `limit_s`; a change of the machine's load thus affects every size
/// alike. Repeats small chunks, which are noisier, within a round. `transfer(bytes)` moves one chunk and returns its
/// seconds.
template <class Transfer>
Result<void> sample(std::vector<Series>& series, double limit_s, const Transfer& transfer) {
  constexpr std::size_t max_rounds = 40;  // enough for a fast device, and flash wears out
  const Clock::time_point start = Clock::now();
  for (std::size_t round = 0; round < max_rounds && seconds_since(start) < limit_s; ++round)
    for (Series& each : series) {
      const std::uint64_t repeats = std::clamp<std::uint64_t>(MiB / each.bytes, 1, 8);
      for (std::uint64_t i = 0; i < repeats; ++i) {
        if (seconds_since(start) > limit_s && !each.seconds.empty()) break;
        const auto took = transfer(each.bytes);
        if (!took) return pass_on(took.error());
        each.seconds.push_back(*took);
      }
      // On a slow device larger sizes would take too long.
      if (round == 0 && each.seconds.back() > limit_s / 4) break;
    }
  std::erase_if(series, [](const Series& each) { return each.seconds.empty(); });
  return {};
}

/// Fills `series` with the mean time of a chunk in each of ten passes over all sizes, in about `limit_s`. For work that
/// the kernel does for many chunks at once, such as read-ahead, which a median would miss. Calls `start()` before each
/// size of each pass, `transfer(bytes)` as in sample().
template <class Start, class Transfer>
Result<void> average(std::vector<Series>& series, double limit_s, const Start& start, const Transfer& transfer) {
  constexpr int passes = 10;
  const double share_s = limit_s / passes / static_cast<double>(series.size());
  for (int pass = 0; pass < passes; ++pass)
    for (Series& each : series) {
      if (const auto started = start(); !started) return pass_on(started.error());
      double spent = 0;
      std::uint64_t chunks = 0;
      for (; chunks == 0 || spent < share_s; ++chunks) {
        const auto took = transfer(each.bytes);
        if (!took) return pass_on(took.error());
        spent += *took;
      }
      each.seconds.push_back(spent / static_cast<double>(chunks));
    }
  return {};
}

/// Returns `value` with the relative spread of samples.
Spread around(double value, double low_share, double high_share) {
  return {value, value * low_share, value * high_share};
}

/// Fits latency and bandwidth to all series; the spreads are those of the smallest and the largest chunks.
void fit(const std::vector<Series>& series, Spread& latency_s, Spread& bytes_per_s) {
  std::vector<TimedSize> medians;
  for (const Series& each : series) medians.push_back({each.bytes, spread_of(each.seconds).median});
  const Spread small = spread_of(series.front().seconds), large = spread_of(series.back().seconds);
  const auto line = fit_service_time(medians).value_or(
      ServiceTime{small.median, static_cast<double>(series.back().bytes) / large.median});
  latency_s = around(line.latency_s, small.low / small.median, small.high / small.median);
  bytes_per_s = around(line.bytes_per_s, large.median / large.high, large.median / large.low);
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
    const Clock::time_point start = Clock::now();
    while (size_ + buffer_.size() <= limit_bytes_ && (seconds_since(start) < limit_s || size_ < 2 * buffer_.size()))
      if (const auto took = append(buffer_.size()); !took) return pass_on(took.error());
    return {};
  }

  /// Overwrites one random block and waits until it is stored.
  Result<double> overwrite_anywhere(std::uint64_t) {
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
  std::minstd_rand random_{1};
};

/// Overwrites blocks at random places without waiting, then waits until they are stored, in passes of twice as many
/// blocks each, for about `limit_s`. Means, because a copy-on-write file system makes few writes wait long; of the last
/// pass, because the disk sorts a larger number of blocks better.
Result<void> measure_drain(Scratch& scratch, std::uint64_t block_bytes, double limit_s, Measurement& result) {
  constexpr std::uint64_t fewest_blocks = 64, most_blocks = 1 << 16;
  std::vector<double> latencies_s, rates;
  const Clock::time_point start = Clock::now();
  for (std::uint64_t blocks = fewest_blocks; blocks <= most_blocks; blocks *= 2) {
    scratch.forget();
    double writing_s = 0;
    const Clock::time_point pass = Clock::now();
    for (std::uint64_t i = 0; i < blocks; ++i) {
      const auto took = scratch.rewrite_anywhere(block_bytes);
      if (!took) return pass_on(took.error());
      writing_s += *took;
    }
    if (auto stored = scratch.store(); !stored) return stored;
    latencies_s.push_back(writing_s / static_cast<double>(blocks));
    rates.push_back(static_cast<double>(blocks * block_bytes) / seconds_since(pass));
    if (seconds_since(start) + 2 * seconds_since(pass) > limit_s) break;
  }
  const auto last = [](const std::vector<double>& passes) {
    const std::vector<double> recent(passes.end() - std::min<std::ptrdiff_t>(3, std::ssize(passes)), passes.end());
    return Spread{passes.back(), quantile(recent, 0), quantile(recent, 1)};
  };
  result.buffered_random_write_latency_s = last(latencies_s);
  result.random_drain_bytes_per_s = last(rates);
  return {};
}

/// Returns the scratch space to use: 5 % of the room.
Result<std::uint64_t> usable_bytes(const std::string& directory, std::uint64_t wanted) {
  const auto room = room_bytes_at(directory);
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
                            const MeasureProgress& progress) {
  const auto usable = usable_bytes(directory, limits.bytes);
  if (!usable) return pass_on(usable.error());
  auto fd = open_scratch_file(directory);
  if (!fd) return pass_on(fd.error());
  const std::uint64_t block = std::max<std::uint64_t>(block_bytes, 4 * KiB);
  Scratch scratch(std::move(*fd), directory, block, *usable);
  const std::uint64_t largest = Scratch::largest_chunk(*usable);
  Measurement result;

  progress("buffered writes");
  constexpr std::uint64_t parts = 8;  // of a block, for small writes
  const std::uint64_t many_blocks = std::max(2 * block, std::min(largest, MiB));
  std::vector<Series> copies{{block, {}}, {many_blocks, {}}};
  auto done = average(
      copies, 0.1 * limits.seconds, [&] { return scratch.empty(); },
      [&](std::uint64_t bytes) { return scratch.append_to_cache(bytes); });
  if (!done) return pass_on(done.error());
  fit(copies, result.buffered_write_latency_s, result.buffered_write_bytes_per_s);
  std::vector<Series> small{{block / parts, {}}};
  done = average(
      small, 0.02 * limits.seconds, [&] { return scratch.empty(); },
      [&](std::uint64_t bytes) { return scratch.append_to_cache(bytes); });
  if (!done) return pass_on(done.error());
  const auto within = [&](double part_s, double block_s) {
    return std::max(0.0, (part_s - block_s / parts) / (1 - 1.0 / parts));
  };
  const Spread part = spread_of(small.front().seconds), first = spread_of(copies.front().seconds);
  result.buffered_small_write_latency_s = {within(part.median, first.median), within(part.low, first.median),
                                           within(part.high, first.median)};
  if (done = scratch.empty(); !done) return pass_on(done.error());

  progress("synchronised writes");
  auto writes = sizes_between(block, largest);
  done = sample(writes, 0.25 * limits.seconds, [&](std::uint64_t bytes) { return scratch.append(bytes); });
  if (!done) return pass_on(done.error());
  fit(writes, result.operation_latency_s, result.write_bytes_per_s);

  progress("random writes");
  if (done = scratch.fill(0.1 * limits.seconds); !done) return pass_on(done.error());
  std::vector<Series> overwrites{{block, {}}};
  done =
      sample(overwrites, 0.1 * limits.seconds, [&](std::uint64_t bytes) { return scratch.overwrite_anywhere(bytes); });
  if (!done) return pass_on(done.error());
  result.random_write_latency_s = spread_of(overwrites.front().seconds);

  progress("random buffered writes");
  if (done = measure_drain(scratch, block, 0.15 * limits.seconds, result); !done) return pass_on(done.error());
  const auto rewrite = [&](std::uint64_t bytes, Spread& latency_s) -> Result<void> {
    scratch.forget();
    std::vector<Series> rewrites{{bytes, {}}};
    auto sampled =
        sample(rewrites, 0.05 * limits.seconds, [&](std::uint64_t size) { return scratch.rewrite_anywhere(size); });
    if (!sampled) return sampled;
    latency_s = spread_of(rewrites.front().seconds);
    return scratch.store();
  };
  progress("writes of parts of blocks");
  if (done = rewrite(block / 2, result.rewrite_latency_s); !done) return pass_on(done.error());

  progress("buffered reads");
  std::vector<Series> ahead{{block / parts, {}}, {many_blocks, {}}};
  done = average(
      ahead, 0.1 * limits.seconds, []() -> Result<void> { return {}; },  // a restart would wait for the read-ahead
      [&](std::uint64_t bytes) { return scratch.read_on(bytes); });
  if (!done) return pass_on(done.error());
  fit(ahead, result.buffered_read_latency_s, result.buffered_read_bytes_per_s);

  progress("reads past the cache");
  result.direct_reads = scratch.bypass_cache();
  auto reads = sizes_between(block, largest);
  done = sample(reads, 0.15 * limits.seconds, [&](std::uint64_t bytes) { return scratch.read_on(bytes); });
  if (!done) return pass_on(done.error());
  fit(reads, result.read_operation_latency_s, result.read_bytes_per_s);

  progress("random reads");
  std::vector<Series> random{{block, {}}};
  done = sample(random, 0.05 * limits.seconds, [&](std::uint64_t bytes) { return scratch.read_anywhere(bytes); });
  if (!done) return pass_on(done.error());
  result.random_read_latency_s = spread_of(random.front().seconds);

  progress("operations per second");
  constexpr unsigned threads = 4;
  const double share_s = 0.05 * limits.seconds;
  result.max_iops = std::max({scratch.iops(false, threads, share_s), scratch.iops(true, threads, share_s),
                              1 / result.operation_latency_s.median, 1 / result.read_operation_latency_s.median,
                              1 / result.random_write_latency_s.median, 1 / result.random_read_latency_s.median});
  return result;
}

}  // namespace iosig
