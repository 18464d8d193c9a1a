// Measures a directory's storage: bounded in time and space, past the page cache, nothing left behind.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "iosig/base/result.h"

namespace iosig {

struct MeasureLimits {
  double seconds = 10;                 ///< about; a slow device gets at least one sample of each kind
  std::uint64_t bytes = 256ull << 20;  ///< scratch space; never more than 5 % of what is free
};
inline constexpr MeasureLimits quick_limits{.seconds = 2, .bytes = 64ull << 20};

/// A measured value with the first and the last decile of its samples.
struct Spread {
  double median = 0, low = 0, high = 0;
};

/// What a program sees that writes and then waits for its data to be stored (fdatasync), as the paper's experiments do;
/// `buffered`: of one that leaves that to the page cache.
struct Measurement {
  Spread write_bytes_per_s, operation_latency_s;      ///< t = latency + bytes / bandwidth, appending, 4 KB to 16 MB
  Spread read_bytes_per_s, read_operation_latency_s;  ///< the same for reads that miss the page cache, in sequence
  Spread random_read_latency_s;                       ///< of one block anywhere in the scratch file
  Spread random_write_latency_s;                      ///< of one block that is overwritten there, and waited for
  Spread buffered_random_write_latency_s;             ///< of one block that is overwritten there, not waited for
  Spread rewrite_latency_s;                           ///< of bytes within such a block, not cached, not waited for
  Spread buffered_write_bytes_per_s, buffered_write_latency_s;  ///< appending without waiting, means
  Spread buffered_small_write_latency_s;                        ///< the same of bytes within a block that is there
  Spread buffered_read_bytes_per_s, buffered_read_latency_s;    ///< in sequence, not cached, read ahead: means
  double max_iops = 0;        ///< best of several threads' blocks and of one thread's latency
  bool direct_reads = false;  ///< by O_DIRECT; false: the cache was told to drop the file
};

/// Told what is being measured, in a few words.
using MeasureProgress = std::function<void(std::string_view)>;

/// Measures the file system of `directory`, which has `block_bytes`, in one file without a name.
///
/// Medians throughout, since virtual disks are noisy. On tmpfs and ramfs there is no cache to get past: what is
/// measured is memory. What lies below the operating system (a disk's own or a hypervisor's cache) cannot be excluded.
/// Fails with `system` when the file system refuses, `infeasible` when there is less than 1 MB to use.
[[nodiscard]] Result<Measurement> measure(const std::string& directory, std::uint64_t block_bytes,
                                          const MeasureLimits& limits, const MeasureProgress& progress);

}  // namespace iosig
