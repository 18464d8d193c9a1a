// The options of `iosig query`: which calls count, and what divides them into rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "iosig/observe/query.h"
#include "verb.h"

namespace iosig::cli {

struct QueryOptions {
  std::vector<std::string> traces;
  std::string by, layer, calls, files, ranks, hosts, pids, from, to, min_bytes, max_bytes;
  bool reads = false, writes = false;
};

/// Parses "0-3,7" of --rank.
[[nodiscard]] Result<void> set_ranks(const std::string& text,
                                     std::vector<std::pair<std::int64_t, std::int64_t>>& ranks);

/// Adds TRACE and the options. `by`: the keys unless given.
void add_query_options(Verb verb, QueryOptions& options, std::string_view by);

/// Returns the query that the options mean, without its value; the first `usage` error otherwise. Unless calls of one
/// layer, or of all layers together, are selected, the layer is the first key.
[[nodiscard]] Result<observe::Query> query_of(const QueryOptions& options, std::string_view by);

}  // namespace iosig::cli
