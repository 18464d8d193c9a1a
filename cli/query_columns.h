// The columns of an answer of `iosig query`, the same in the table and in JSON: the keys, then the numbers of a
// question.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/observe/query.h"

namespace iosig::cli {

struct AnswerColumn {
  std::string name;     ///< in JSON
  std::string heading;  ///< in the table; empty: not shown there
  std::function<nlohmann::ordered_json(const observe::Row&)> json;
  std::function<std::string(const observe::Row&)> text;
};

/// A statistic of Row::values.
struct Statistic {
  std::string name;
  double percent = 0;
};

[[nodiscard]] std::vector<AnswerColumn> columns_of(std::string_view question, const observe::Query& query,
                                                   const std::vector<Statistic>& statistics);

/// Returns the rank, or "host:pid" of a process without one.
[[nodiscard]] std::string process_name(const trace::Process& process);

[[nodiscard]] inline double in_seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

}  // namespace iosig::cli
