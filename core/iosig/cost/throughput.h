// What a device is predicted to deliver for a stream: Eq. 3 of the IOSIG paper, and its extension to reads and
// mixtures.
#pragma once

#include <cstdint>

#include "iosig/model/choice.h"
#include "iosig/model/signature.h"
#include "iosig/model/storage.h"

namespace iosig {

/// paper: Eq. 3 as printed, every operation a write that is waited for. mixed: ours, see predict.
enum class CostModel { mixed, paper };

struct Workload {
  std::uint64_t bytes_per_io = 0;  ///< ds, > 0
  bool random = false;
  double read_share = 0;  ///< share of the operations that read, 0 to 1
  bool sync = true;       ///< operations wait for the storage, not only for the page cache
};

struct Prediction {
  double throughput_bytes_per_s = 0;  ///< t
  double operation_s = 0;             ///< bytes_per_io / throughput
  Limit limit = Limit::bandwidth;     ///< the largest term of the cost
  double latency_s = 0, seek_s = 0;   ///< terms of the cost, mean of reads and writes
  double bandwidth_bytes_per_s = 0;   ///< that data move with, on average
};

/// Page size of the memory that I/O goes through: ps of Eq. 3.
inline constexpr std::uint64_t page_bytes = 4096;

/// Predicts `workload` on `device` behind a file system with `block_bytes`.
///
/// Source: docs/references.md#iosig section 5, Eq. 3, with ds = `bytes_per_io`, bs = `block_bytes`, ps = page_bytes,
/// l = `operation_latency_s` (+ `seek_latency_s` if random and the device seeks), rbw, wbw = `read/write_bytes_per_s`.
/// Deviation: the text's "Otherwise, ds = 1" is read as d = 1.
///
/// Ours, with CostModel::mixed: a read costs l + ceil(ds/cs) cs / rbw and counts once against max_iops; a mixture is
/// the mean time per operation. Where the device has the value that is named, Eq. 3 is corrected for what a page cache
/// does:
/// - random_read_latency, random_write_latency stand for l of random operations: an overwrite in place is no append,
///   whose new size is stored too, and a device that does not seek reads ahead all the same.
/// - random_read_latency: reads in sequence share blocks, each of which is waited for once. Of reads that are smaller,
///   the share w = ds/cs waits, and the others find their block in memory:
///   w l + (1 - w) buffered_read_latency + ds / rbw.
/// - random_write_latency: an unaligned write reads nothing if it appends (its block is still in the page cache), and
///   at random each block that it covers in part, one after the other: p = min(2, 1 + ds/cs) of them on average. They
///   are near to each other and to the write, whose seek is in its latency: each costs n, a read of one block in
///   sequence, or rewrite_latency if that is less. Nobody else has sought for a write that does not wait:
///   rewrite_latency (without it: a random read) + (p - 1) n.
/// - buffered_write_bandwidth, if not `sync`: a write is a copy, l + ds / buffered_write_bandwidth, where l is
///   buffered_random_write_latency of an overwrite (file systems that copy on write reserve room for it), and of an
///   append w buffered_write_latency + (1 - w) buffered_small_write_latency: the share w = ds/cs, at most 1, takes a
///   new block. However far the device is behind (up to vm.dirty_ratio of memory; beyond, count with sync). Reads as
///   above.
/// - buffered_read_bandwidth, if not `sync`: the kernel reads ahead, so a read in sequence costs
///   buffered_read_latency + ds / buffered_read_bandwidth, and a random one l + ceil(ds/cs) cs /
///   buffered_read_bandwidth.
[[nodiscard]] Prediction predict(const Workload& workload, const Device& device, std::uint64_t block_bytes,
                                 CostModel model = CostModel::mixed);

/// Whether random access pays the device's seek latency: not on ram, nvram and ssd (section 5).
[[nodiscard]] bool seeks(const Device& device);

}  // namespace iosig
