// The result of `choose`: where a stream should live, and why not elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "iosig/model/signature.h"

namespace iosig {

/// The term of the cost that bounds the throughput.
enum class Limit { bandwidth, latency, seek, iops, read_modify_write };

/// The predicted time until the data of a stream are where they must be, by its parts (cost/job_time).
struct JobTime {
  double redirect_s = 0;   ///< making the link and, if the data come home, the command for that; 0 at home
  double stage_in_s = 0;   ///< copying what the stream reads to this mount point
  double transfer_s = 0;   ///< the program waits for its operations
  double flush_s = 0;      ///< storing what the page cache still holds when the program ends
  double stage_out_s = 0;  ///< bringing the data home
  [[nodiscard]] double total_s() const { return redirect_s + stage_in_s + transfer_s + flush_s + stage_out_s; }
};

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
  JobTime job;                    ///< of totalsize, or of assumed_total_bytes (decide/placement.h)
  bool is_home = false;           ///< the path that the program asked for lies here
};

/// When another mount point would be better than the chosen home.
struct BreakEven {
  std::string mount_point;
  std::optional<std::uint64_t> passes = {};  ///< from so many passes over the data; absent: never
  bool as_temp = false;                      ///< if the data need not be kept
};

struct Choice {
  Policy policy = Policy::job;
  std::optional<std::string> chosen;     ///< path of the best admissible mount point
  std::vector<Candidate> candidates;     ///< every mount point: admissible ones first, both groups best first
  std::vector<BreakEven> break_even;     ///< only of a choice to stay at home (explain_break_even)
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
