#include "query_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "iosig/base/text.h"
#include "iosig/base/units.h"

namespace iosig::cli {
namespace {

using observe::Key;

constexpr double max_query_s = 9e9;  ///< nanoseconds since then fit into 63 bits

/// Parses "1.5" (seconds), "20ms".
Result<std::int64_t> time_of(std::string_view option, const std::string& text) {
  double seconds = -1;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (failure != std::errc{} || end != text.data() + text.size()) {
    const auto parsed = parse_seconds(text);
    seconds = parsed ? *parsed : -1;
  }
  if (!(seconds >= 0 && seconds <= max_query_s))
    return fail(ErrorKind::usage, "{}: '{}': expected seconds, or a time with a unit, e.g. 1.5 or 20ms", option,
                printable(text));
  return static_cast<std::int64_t>(std::llround(seconds * 1e9));
}

Result<void> set_keys(std::string_view names, observe::Query& query) {
  for (const std::string_view name : split(names, ',')) {
    const std::size_t equals = std::min(name.find('='), name.size());
    const auto* const key = std::ranges::find(observe::key_names, name.substr(0, equals));
    const bool is_window = key != std::end(observe::key_names) && *key == "window";
    if (key == std::end(observe::key_names) || (equals < name.size() && !is_window))
      return fail(ErrorKind::usage, "--by: '{}': expected some of {}, separated by commas; window=SECONDS{}",
                  printable(name), fmt::join(observe::key_names, ", "),
                  did_you_mean(name.substr(0, equals), observe::key_names));
    if (equals < name.size()) {
      const auto window = time_of("--by window", std::string(name.substr(equals + 1)));
      if (!window) return pass_on(window.error());
      if (*window == 0) return fail(ErrorKind::usage, "--by window: expected a time of at least 1 ns");
      query.window_ns = *window;
    }
    const auto made = static_cast<Key>(key - std::begin(observe::key_names));
    if (std::ranges::find(query.by, made) == query.by.end()) query.by.push_back(made);
  }
  return {};
}

Result<void> set_calls(const std::string& names, std::vector<trace::Call>& calls) {
  if (names.empty()) return {};
  for (const std::string_view name : split(names, ',')) {
    const trace::Call call = trace::call_of(name);
    if (call == trace::Call::none)
      return fail(ErrorKind::usage,
                  "--call: '{}' is no call that a trace knows; expected names such as pread, fopen, "
                  "MPI_File_write_at_all, separated by commas",
                  printable(name));
    calls.push_back(call);
  }
  return {};
}

}  // namespace

Result<void> set_ranks(const std::string& text, std::vector<std::pair<std::int64_t, std::int64_t>>& ranks) {
  if (text.empty()) return {};
  for (const std::string_view each : split(text, ',')) {
    const std::size_t dash = std::min(each.find('-'), each.size());
    const auto first = parse_count(each.substr(0, dash));
    const auto last = dash == each.size() ? first : parse_count(each.substr(dash + 1));
    if (!first || !last || *first > *last)
      return fail(ErrorKind::usage, "--rank: '{}': expected ranks such as 0-3,7", printable(each));
    ranks.emplace_back(*first, *last);
  }
  return {};
}

namespace {

Result<void> set_layer(const std::string& name, observe::Query& query) {
  if (name != "all") {
    const auto* const layer = std::ranges::find(trace::layer_names, name);
    if (!name.empty() && layer == std::end(trace::layer_names))
      return fail(ErrorKind::usage, "--layer: '{}': expected one of {}, all", printable(name),
                  fmt::join(trace::layer_names, ", "));
    if (!name.empty())
      query.filter.layer = static_cast<trace::Layer>(layer - std::begin(trace::layer_names));
    else if (std::ranges::find(query.by, Key::layer) == query.by.end())
      query.by.insert(query.by.begin(), Key::layer);
  }
  return {};
}

}  // namespace

void add_query_options(Verb verb, QueryOptions& options, std::string_view by) {
  verb.add_option("TRACE", options.traces, "directories that 'iosig trace -o' made; several are one trace")
      .type_name("DIR")
      .required();
  verb.add_option("--by", options.by,
                  fmt::format("what the calls of a row have in common, separated by commas: {}; window=SECONDS [{}]",
                              fmt::join(observe::key_names, ", "), by))
      .type_name("KEYS");
  verb.add_option("--layer", options.layer,
                  "only calls of this layer: mpi-io, stdio or posix. all: rows are not divided by layer")
      .type_name("NAME");
  verb.add_option("--call", options.calls, "only these calls, e.g. pread,pwrite").type_name("LIST");
  verb.add_option("--files", options.files, "only calls on files whose name (or path, if GLOB has a slash) matches")
      .type_name("GLOB");
  verb.add_option("--rank", options.ranks, "only calls of these ranks, e.g. 0-3,7").type_name("LIST");
  verb.add_option("--host", options.hosts, "only calls of these nodes").type_name("LIST");
  verb.add_option("--pid", options.pids, "only calls of these processes").type_name("LIST");
  verb.add_option("--from", options.from, "only calls that begin so long after the first one, or later")
      .type_name("SECONDS");
  verb.add_option("--to", options.to, "only calls that begin before").type_name("SECONDS");
  verb.add_option("--min-bytes", options.min_bytes, "only calls that moved so many bytes or more, e.g. 1MB")
      .type_name("SIZE");
  verb.add_option("--max-bytes", options.max_bytes, "only calls that moved so many bytes or fewer").type_name("SIZE");
  const Option reads = verb.add_flag("--reads", options.reads, "only reads");
  verb.add_flag("--writes", options.writes, "only writes").excludes(reads);
}

Result<observe::Query> query_of(const QueryOptions& options, std::string_view by) {
  observe::Query query;
  observe::Filter& filter = query.filter;
  if (auto set = set_keys(options.by.empty() ? by : options.by, query); !set) return pass_on(set.error());
  if (auto set = set_layer(options.layer, query); !set) return pass_on(set.error());
  if (auto set = set_calls(options.calls, filter.calls); !set) return pass_on(set.error());
  if (auto set = set_ranks(options.ranks, filter.ranks); !set) return pass_on(set.error());
  filter.files = options.files;
  if (!options.hosts.empty())
    for (const std::string_view host : split(options.hosts, ',')) filter.nodes.emplace_back(host);
  if (!options.pids.empty())
    for (const std::string_view each : split(options.pids, ',')) {
      const auto pid = parse_count(each);
      if (!pid) return fail(ErrorKind::usage, "--pid: '{}': expected process ids such as 812,813", printable(each));
      filter.pids.push_back(*pid);
    }
  for (const auto& [option, text, time] :
       {std::tuple("--from", &options.from, &filter.from_ns), std::tuple("--to", &options.to, &filter.to_ns)}) {
    if (text->empty()) continue;
    const auto parsed = time_of(option, *text);
    if (!parsed) return pass_on(parsed.error());
    *time = *parsed;
  }
  if (filter.from_ns >= filter.to_ns)
    return fail(ErrorKind::usage, "--from {}, --to {}: expected an earlier time first", options.from, options.to);
  for (const auto& [option, text, limit] : {std::tuple("--min-bytes", &options.min_bytes, &filter.min_bytes),
                                            std::tuple("--max-bytes", &options.max_bytes, &filter.max_bytes)}) {
    if (text->empty()) continue;
    const auto bytes = parse_bytes(*text);
    if (!bytes) return fail(ErrorKind::usage, "{}: {}", option, bytes.error().message);
    *limit = *bytes;
  }
  if (options.reads) filter.moves = trace::Moves::reads;
  if (options.writes) filter.moves = trace::Moves::writes;
  return query;
}

}  // namespace iosig::cli
