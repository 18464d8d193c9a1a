// Process ids of the descriptions that `iosig pattern merge` combines.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "iosig/base/result.h"

namespace iosig::cli {

struct ProcessIds {
  std::vector<std::int64_t> ids;  ///< in the order of the files
  bool from_names = false;        ///< taken from the file names, not from the order of the files
};

/// `told` is the value of --ids, e.g. "0,1,7". If it is empty and the file names differ in exactly one number
/// (rank2.pattern, rank10.pattern), those numbers are the ids; else 0, 1, 2, ... Fails with `usage` if `told` is not
/// one integer for each file, or if two names give the same id (rank1, rank01).
[[nodiscard]] Result<ProcessIds> process_ids(const std::string& told, std::span<const std::string> files);

/// The first few ids as text: "rank2.pattern is 2, rank10.pattern is 10".
[[nodiscard]] std::string ids_text(const ProcessIds& known, std::span<const std::string> files);

}  // namespace iosig::cli
