// The result of `choose`: where a stream should live, and why not elsewhere.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace iosig {

/// The term of the cost that bounds the throughput.
enum class Limit { bandwidth, latency, seek, iops, read_modify_write };

struct Candidate {
  std::string mount_point;
  bool admissible = false;
  std::vector<std::string> reasons;  ///< excluded: each failed constraint with the numbers; otherwise: the limit
  double throughput_bytes_per_s = 0;
  double stored_bytes_per_s = 0;  ///< throughput of a stream that waits for the storage
  double operation_s = 0;         ///< predicted time of one operation of size-per-IO
  Limit limit = Limit::bandwidth;
  std::optional<double> mttdl_s;  ///< of totalsize here; absent: not requested (explain_reliability), or not reliable
  std::optional<double> total_s;  ///< predicted time for totalsize, if declared
};

struct Choice {
  std::optional<std::string> chosen;     ///< path of the best admissible mount point
  std::vector<Candidate> candidates;     ///< every mount point: admissible ones first, both groups best first
  std::vector<std::string> assumptions;  ///< values that the signature omits and the cost assumes
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
