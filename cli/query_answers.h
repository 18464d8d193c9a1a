// Prints the answers of `iosig query`, as a table or as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "console.h"
#include "iosig/observe/query.h"
#include "query_columns.h"

namespace iosig::cli {

inline constexpr const char* query_schema = "iosig.query/1";

/// The answer as `--json` prints it. A row of `latency` also has `histogram`, for pictures: middles of buckets in
/// seconds, and the calls in each.
[[nodiscard]] nlohmann::ordered_json rows_document(std::optional<std::uint32_t> top, std::string_view question,
                                                   const observe::Query& query, const observe::Answer& answer,
                                                   const std::vector<AnswerColumn>& columns, bool has_histograms);

/// `top`: the most rows; 0: all; nothing: 40 in a table, all in JSON.
void show_rows(std::optional<std::uint32_t> top, std::string_view question, const observe::Query& query,
               const observe::Answer& answer, const std::vector<AnswerColumn>& columns, const Console& console);

/// The calls with the greatest values.
void show_list(std::string_view question, const observe::Query& query, const observe::Answer& answer,
               const Console& console);

/// `iosig query touched`: an answer by file and process, seen from the side of the files or of the processes.
void show_touched(std::optional<std::uint32_t> top, std::string_view question, const observe::Query& query,
                  const observe::Answer& answer, bool is_by_file, const Console& console);

}  // namespace iosig::cli
