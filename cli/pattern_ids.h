// Who the processes are whose descriptions `iosig pattern merge` folds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "iosig/base/result.h"

namespace iosig::cli {

struct ProcessIds {
  std::vector<std::int64_t> ids;  ///< in order of the files
  bool from_names = false;        ///< they are the numbers in the files' names, and no positions
};

/// `told`: what --ids says, "0,1,7"; empty: the numbers of the files' names, if these differ in one number alone
/// (rank2.pattern, rank10.pattern), else 0, 1, 2, ... Fails as `usage` for what is no list of as many integers as
/// files, and for names that make two processes one (rank1, rank01).
[[nodiscard]] Result<ProcessIds> process_ids(const std::string& told, std::span<const std::string> files);

/// "rank2.pattern is 2, rank10.pattern is 10": the first few.
[[nodiscard]] std::string ids_text(const ProcessIds& known, std::span<const std::string> files);

}  // namespace iosig::cli
