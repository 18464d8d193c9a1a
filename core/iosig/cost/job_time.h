// Predicts how long a stream keeps its job, and the time after it, until the data are where they must be.
//
// Ours; the IOSIG paper (section 5) ranks by the throughput of one operation (cost/throughput.h), which these times are
// made of. Units are seconds and bytes.
#pragma once

#include "iosig/base/page_cache.h"
#include "iosig/cost/throughput.h"

namespace iosig {

/// All transfers of one stream: `passes` times `data_bytes`, in operations of `workload.bytes_per_io`.
struct Transfers {
  Workload workload;
  double data_bytes = 0;  ///< of the file, > 0
  double passes = 1;
  double think_s = 0;      ///< time that the program computes between its transfers
  bool is_memory = false;  ///< the data lie in memory (tmpfs): nothing is stored behind the page cache
};

struct TransferTime {
  double transfer_s = 0;  ///< the program waits for its operations
  double flush_s = 0;     ///< storing what the page cache still holds when the program ends
};

/// Predicts the time of all transfers on `device`.
///
/// Operations that wait for the storage take bytes / predict(...). Writes that do not wait have phases:
///
///   memory    up to `cache.unthrottled_bytes` are dirty: a write is a copy
///   drain     beyond it, the program is as slow as the storage. Other transfers and think time hide as much of it as
///             the storage can take meanwhile
///   flush     what is dirty in the end, and the latency of a flush. The kernel stores nothing before
///             `cache.background_bytes` are dirty or data are `dirty_expires_s` old. If all data are dirty then, it
///             stores them in the order of the file, also those that were written at random
///
/// Reads that do not wait are served by the page cache if `cache.cached_bytes` hold the data and the stream has written
/// or read them before, and what it writes once more is overwritten there: both at the device's cached_... rates, or as
/// new data are written if it has none. In memory likewise. A stream whose writes wait reads them back from the page
/// cache, too, if the device has a cached_read_bandwidth. A device without buffered_write_bandwidth is predicted as
/// if every operation waited.
[[nodiscard]] TransferTime predict_transfers(const Transfers& transfers, const Device& device,
                                             std::uint64_t block_bytes, const PageCache& cache,
                                             CostModel model = CostModel::mixed);

/// Predicts at which rate the storage takes writes of this workload from the page cache, in bytes per second.
/// Sequential data: drain_bandwidth, without that key write_bandwidth, since the kernel stores neighbouring pages
/// together. Random data: random_drain_bandwidth for operations of one block; larger ones save the latency that it
/// implies. Without that key: each operation costs what max_iops or random_write_latency say.
[[nodiscard]] double drain_bytes_per_s(const Workload& workload, const Device& device, std::uint64_t block_bytes);

/// One end of a copy. `cached`: the page cache has the data.
struct CopySource {
  const Device& device;
  bool is_memory = false, cached = false;
};
struct CopyTarget {
  const Device& device;
  bool is_memory = false;
};

/// Predicts a sequential copy of `bytes` that ends when the data are stored. Reading and storing overlap unless both
/// ends are one device. Includes what finalize waits for with each file: the flushes of the copy and of directories.
[[nodiscard]] double predict_copy_s(double bytes, const CopySource& from, const CopyTarget& to);

}  // namespace iosig
