// Measures the storage of a directory: bounded in time and space, past the page cache, leaving nothing behind.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "iosig/base/result.h"
#include "iosig/storage/confidence.h"

namespace iosig {

struct MeasureLimits {
  double seconds = 15;                 ///< at most, approximately; a slow device gets at least one pass of each kind
  double pass_s = 0.05;                ///< a pass repeats its operation for this long; its mean is one sample
  std::uint64_t bytes = 256ull << 20;  ///< scratch space; never more than 5 % of the free space
};
inline constexpr MeasureLimits quick_limits{.seconds = 3, .pass_s = 0.01, .bytes = 64ull << 20};

/// The times of a program that writes and then waits for its data to be stored (fdatasync), as the paper's experiments
/// do; `buffered`: of a program that writes to the page cache only.
struct Measurement {
  Estimate write_bytes_per_s, operation_latency_s;      ///< t = latency + bytes / bandwidth, appending, 4 KB to 16 MB
  Estimate read_bytes_per_s, read_operation_latency_s;  ///< the same for sequential reads that miss the page cache
  Estimate random_read_latency_s;                       ///< of reading one random block of the scratch file
  Estimate random_write_latency_s;                      ///< of overwriting one block there, with fdatasync
  Estimate random_new_write_latency_s;                  ///< of writing one block of a sparse file, with fdatasync
  Estimate buffered_random_write_latency_s;             ///< of overwriting one block there, without waiting: means
  Estimate drain_latency_s, drain_bytes_per_s;          ///< of fdatasync after appending 1 MB and more without waiting
  Estimate random_drain_bytes_per_s;                    ///< of storing many such blocks
  Estimate rewrite_latency_s;  ///< of overwriting part of such a block, uncached, without waiting
  Estimate buffered_write_bytes_per_s, buffered_write_latency_s;  ///< appending without waiting, means
  Estimate buffered_small_write_latency_s;                        ///< the same for bytes within an existing block
  Estimate buffered_read_bytes_per_s, buffered_read_latency_s;    ///< sequential, uncached, with read-ahead: means
  Estimate cached_write_bytes_per_s, cached_write_latency_s;      ///< overwriting in order what the cache holds: means
  Estimate cached_read_bytes_per_s, cached_read_latency_s;        ///< reading it in order
  double seek_s = 0;    ///< median random read of a block less the median sequential one: robust on a busy machine
  double max_iops = 0;  ///< the best of blocks by several threads and of one thread's latency
  bool direct_reads = false;  ///< by O_DIRECT; false: the kernel was asked to drop the file from its cache
};

/// Called with a few words on what is being measured.
using MeasureProgress = std::function<void(std::string_view)>;
/// Called between two kinds of work, when the measurement has no I/O in flight and nothing left to store.
using MeasurePause = std::function<void()>;

/// Measures the file system of `directory`, which has `block_bytes`, in one unnamed file.
///
/// Each value is a mean over passes, which are repeated until the mean is settled (storage/confidence), at most 20
/// times. Means, because a few operations that wait long take part of a job's time; a median would miss them. tmpfs and
/// ramfs have no storage below the cache, so memory is measured. Caches below the operating system (of a disk or a
/// hypervisor) cannot be bypassed. Fails with `system` if the file system refuses an operation, with `infeasible` if
/// less than 1 MB is usable.
[[nodiscard]] Result<Measurement> measure(const std::string& directory, std::uint64_t block_bytes,
                                          const MeasureLimits& limits, const MeasureProgress& progress,
                                          const MeasurePause& pause);

/// Returns the block size that the times of appended writes match, waiting for the storage after each
/// (storage/block_size); `reported` if none matches better. For devices whose block size the file system does not know:
/// network file systems and composites. Takes at most a fifth of `limits.seconds`. Fails as measure() does.
[[nodiscard]] Result<std::uint64_t> measure_block_bytes(const std::string& directory, std::uint64_t reported,
                                                        const MeasureLimits& limits, const MeasureProgress& progress);

}  // namespace iosig
