// The answer of `choose`: where a stream should live, and why not elsewhere.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace iosig {

/// Which term of the cost bounds the throughput.
enum class Limit { bandwidth, latency, seek, iops, read_modify_write };

struct Candidate {
  std::string mount_point;
  bool admissible = false;
  std::vector<std::string> reasons;  ///< excluded: each constraint that fails, with the numbers; else: what limits it
  double throughput_bytes_per_s = 0;
  double stored_bytes_per_s = 0;  ///< the same for a stream that waits for the storage
  double operation_s = 0;         ///< predicted time of one operation of size-per-IO
  Limit limit = Limit::bandwidth;
  std::optional<double> mttdl_s;  ///< of totalsize here; absent: not asked for (explain_reliability), or not reliable
  std::optional<double> total_s;  ///< predicted time for totalsize, if that is declared
};

struct Choice {
  std::optional<std::string> chosen;     ///< path of the best admissible mount point
  std::vector<Candidate> candidates;     ///< every mount point: admissible ones first, each group best first
  std::vector<std::string> assumptions;  ///< what the signature left open and the cost had to assume
};

[[nodiscard]] constexpr const char* name_of(Limit limit) {
  switch (limit) {
    case Limit::bandwidth: return "bandwidth";
    case Limit::latency: return "operation latency";
    case Limit::seek: return "seek latency";
    case Limit::iops: return "IOPS";
    case Limit::read_modify_write: return "read-modify-write";
  }
  return "";
}

}  // namespace iosig
