// What a device is predicted to deliver for a stream: Eq. 3 of the IOSIG paper, and its extension to reads and
// mixtures.
#pragma once

#include <cstdint>

#include "iosig/model/choice.h"
#include "iosig/model/signature.h"
#include "iosig/model/storage.h"

namespace iosig {

/// paper: Eq. 3 as printed, every operation a write. mixed: reads cost no read-modify-write (ours; see predict).
enum class CostModel { mixed, paper };

struct Workload {
  std::uint64_t bytes_per_io = 0;  ///< ds, > 0
  bool random = false;
  double read_share = 0;  ///< share of the operations that read, 0 to 1
};

struct Prediction {
  double throughput_bytes_per_s = 0;  ///< t
  double operation_s = 0;             ///< bytes_per_io / throughput
  Limit limit = Limit::bandwidth;     ///< the largest term of the cost
};

/// Page size of the memory that I/O goes through: ps of Eq. 3.
inline constexpr std::uint64_t page_bytes = 4096;

/// Predicts `workload` on `device` behind a file system with `block_bytes`.
///
/// Source: docs/references.md#iosig section 5, Eq. 3, with ds = `bytes_per_io`, bs = `block_bytes`, ps = page_bytes,
/// l = `operation_latency_s` (+ `seek_latency_s` if random and the device seeks), rbw, wbw = `read/write_bytes_per_s`.
/// Deviation: the text's "Otherwise, ds = 1" is read as d = 1.
/// A read costs l + ceil(ds/cs) cs / rbw and counts once against max_iops; a mixture is the mean time per operation.
[[nodiscard]] Prediction predict(const Workload& workload, const Device& device, std::uint64_t block_bytes,
                                 CostModel model = CostModel::mixed);

/// Whether random access pays the device's seek latency: not on ram, nvram and ssd (section 5).
[[nodiscard]] bool seeks(const Device& device);

}  // namespace iosig
