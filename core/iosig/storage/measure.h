// Measures the storage of a directory: bounded in time and space, past the page cache, leaving nothing behind.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "iosig/base/result.h"

namespace iosig {

struct MeasureLimits {
  double seconds = 10;                 ///< approximate; a slow device gets at least one sample of each kind
  std::uint64_t bytes = 256ull << 20;  ///< scratch space; never more than 5 % of the free space
};
inline constexpr MeasureLimits quick_limits{.seconds = 2, .bytes = 64ull << 20};

/// A measured value with the first and the last decile of its samples.
struct Spread {
  double median = 0, low = 0, high = 0;
};

/// The times of a program that writes and then waits for its data to be stored (fdatasync), as the paper's experiments
/// do; `buffered`: of a program that writes to the page cache only.
struct Measurement {
  Spread write_bytes_per_s, operation_latency_s;      ///< t = latency + bytes / bandwidth, appending, 4 KB to 16 MB
  Spread read_bytes_per_s, read_operation_latency_s;  ///< the same for sequential reads that miss the page cache
  Spread random_read_latency_s;                       ///< of reading one random block of the scratch file
  Spread random_write_latency_s;                      ///< of overwriting one block there, with fdatasync
  Spread buffered_random_write_latency_s;             ///< of overwriting one block there, without waiting: means
  Spread random_drain_bytes_per_s;                    ///< of storing many such blocks
  Spread rewrite_latency_s;  ///< of overwriting part of such a block, uncached, without waiting
  Spread buffered_write_bytes_per_s, buffered_write_latency_s;  ///< appending without waiting, means
  Spread buffered_small_write_latency_s;                        ///< the same for bytes within an existing block
  Spread buffered_read_bytes_per_s, buffered_read_latency_s;    ///< sequential, uncached, with read-ahead: means
  double max_iops = 0;        ///< the best of blocks by several threads and of one thread's latency
  bool direct_reads = false;  ///< by O_DIRECT; false: the kernel was asked to drop the file from its cache
};

/// Called with a few words on what is being measured.
using MeasureProgress = std::function<void(std::string_view)>;

/// Measures the file system of `directory`, which has `block_bytes`, in one unnamed file.
///
/// Uses medians, since virtual disks are noisy. tmpfs and ramfs have no storage below the cache, so memory is measured.
/// Caches below the operating system (of a disk or a hypervisor) cannot be bypassed. Fails with `system` if the file
/// system refuses an operation, with `infeasible` if less than 1 MB is usable.
[[nodiscard]] Result<Measurement> measure(const std::string& directory, std::uint64_t block_bytes,
                                          const MeasureLimits& limits, const MeasureProgress& progress);

}  // namespace iosig
