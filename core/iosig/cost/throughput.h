// Predicts the throughput of a device for a stream: Eq. 3 of the IOSIG paper, extended to reads and mixtures.
#pragma once

#include <cstdint>

#include "iosig/model/choice.h"
#include "iosig/model/signature.h"
#include "iosig/model/storage.h"

namespace iosig {

/// paper: Eq. 3 as printed, every operation is a synchronous write. mixed: ours, see predict.
enum class CostModel { mixed, paper };

struct Workload {
  std::uint64_t bytes_per_io = 0;  ///< ds, > 0
  bool random = false;
  double read_share = 0;  ///< share of the operations that read, 0 to 1
  bool sync = true;       ///< operations wait for the storage, not only for the page cache
  double new_share = 0;   ///< share of the random writes to places where the file has no block yet, 0 to 1
};

struct Prediction {
  double throughput_bytes_per_s = 0;  ///< t
  double operation_s = 0;             ///< bytes_per_io / throughput
  Limit limit = Limit::bandwidth;     ///< the largest term of the cost
  double latency_s = 0, seek_s = 0;   ///< terms of the cost, averaged over reads and writes
  double bandwidth_bytes_per_s = 0;   ///< average bandwidth of the data transfer
};

/// The memory page size of I/O: ps of Eq. 3.
inline constexpr std::uint64_t page_bytes = 4096;

/// Predicts `workload` on `device` behind a file system with `block_bytes`.
///
/// Source: docs/references.md#iosig section 5, Eq. 3, with ds = `bytes_per_io`, bs = `block_bytes`, ps = page_bytes,
/// l = `operation_latency_s` (+ `seek_latency_s` if random and the device seeks), rbw, wbw = `read/write_bytes_per_s`.
/// Deviation: the text's "Otherwise, ds = 1" is read as d = 1.
///
/// Ours, with CostModel::mixed: a read costs l + ceil(ds/cs) cs / rbw and counts once against max_iops; a mixture costs
/// the mean time per operation. If the device has the value named below, Eq. 3 is corrected for the page cache:
/// - random_read_latency, random_write_latency replace l for random operations: an overwrite in place does not have to
///   store a new file size as an append does, and devices that do not seek benefit from read-ahead.
/// - random_read_latency: sequential reads share blocks, each of which is waited for once. Of smaller reads, the share
///   w = ds/cs waits, and the others find their block in memory: w l + (1 - w) buffered_read_latency + ds / rbw.
/// - random_write_latency: an unaligned append reads nothing (its block is still in the page cache). An unaligned
///   random write reads each block that it covers partly, one after the other: p = min(2, 1 + ds/cs) blocks on average.
///   They are close to each other and to the write, whose latency includes the seek: each costs n, a sequential read of
///   one block, or rewrite_latency if that is less. A write that does not wait includes no seek: rewrite_latency
///   (without it: a random read) + (p - 1) n.
/// - random_new_write_latency: of the random writes that wait, the share new_share costs this instead of
///   random_write_latency, since the file system also allocates a block and stores that; they read nothing.
/// - buffered_write_bandwidth, if not `sync`: a write is a copy, l + ds / buffered_write_bandwidth. For an overwrite, l
///   is buffered_random_write_latency (copy-on-write file systems reserve space for it); the share new_share costs at
///   least buffered_write_latency. For an append, l is w buffered_write_latency + (1 - w) buffered_small_write_latency,
///   where the share w = ds/cs, at most 1, takes a new block. This holds however far the device lags behind (up to
///   vm.dirty_ratio of memory; beyond, use sync). Reads as above.
/// - buffered_read_bandwidth, if not `sync`: the kernel reads ahead, so a sequential read costs buffered_read_latency +
///   ds / buffered_read_bandwidth, and a random one l + ceil(ds/cs) cs / buffered_read_bandwidth.
[[nodiscard]] Prediction predict(const Workload& workload, const Device& device, std::uint64_t block_bytes,
                                 CostModel model = CostModel::mixed);

/// Returns whether random access costs the device's seek latency: not on ram, nvram and ssd (section 5).
[[nodiscard]] bool seeks(const Device& device);

}  // namespace iosig
