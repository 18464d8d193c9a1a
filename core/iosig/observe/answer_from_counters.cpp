#include "iosig/observe/answer_from_counters.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "iosig/observe/answer_rows.h"

namespace iosig::observe {
namespace {

using trace::Call;
using trace::FileCounters;
using trace::Moves;
using trace::WayCounters;

/// The keys of a row; those that the query does not name are empty.
using CountedKeys = std::tuple<std::string_view, std::string_view, std::int64_t, std::string_view>;

bool is_about_counters(const Query& query) {
  const Filter& filter = query.filter;
  const auto is_known = [](Key key) {
    return key == Key::layer || key == Key::call || key == Key::rank || key == Key::file;
  };
  return std::ranges::all_of(query.by, is_known) && !AnswerRows(query).mixes_layers() && query.value == Value::none &&
         query.list == 0 && !query.has_own_time && !query.has_intervals && filter.nodes.empty() &&
         filter.pids.empty() && filter.from_ns <= 0 && filter.to_ns == INT64_MAX && filter.min_bytes == 0 &&
         filter.max_bytes == UINT64_MAX;
}

class CountedRows {
 public:
  CountedRows(const Query& query, std::vector<Row>& rows) : query_(query), rows_(rows) {
    for (std::size_t number = 0; number < rows.size(); ++number)
      numbers_.emplace(keys_of(rows[number].layer, rows[number].call, rows[number].rank, rows[number].file), number);
  }

  void add(const FileCounters& file) {
    if (!query_.filter.files.empty() && !trace::matches_file(query_.filter.files, file.path)) return;
    const auto has_rank = [&](const auto& range) {
      return file.rank && *file.rank >= range.first && *file.rank <= range.second;
    };
    if (!query_.filter.ranks.empty() && std::ranges::none_of(query_.filter.ranks, has_rank)) return;
    add_way(file, file.reads, file.read_call);
    add_way(file, file.writes, file.write_call);
  }

  void sort() {
    std::ranges::stable_sort(rows_, [&](const Row& a, const Row& b) { return place_of(a) < place_of(b); });
  }

 private:
  [[nodiscard]] bool has(Key key) const { return std::ranges::find(query_.by, key) != query_.by.end(); }

  [[nodiscard]] CountedKeys keys_of(trace::Layer layer, Call call, std::optional<std::int64_t> rank,
                                    std::string_view path) const {
    return {has(Key::layer) ? trace::layer_names[static_cast<std::size_t>(layer)] : std::string_view(),
            has(Key::call) ? trace::name_of(call) : std::string_view(), has(Key::rank) ? rank.value_or(-1) : 0,
            has(Key::file) ? path : std::string_view()};
  }

  /// In the order of answer_rows.cpp: keys as the query names them; no rank comes last.
  [[nodiscard]] std::vector<std::tuple<std::uint64_t, std::string_view>> place_of(const Row& row) const {
    std::vector<std::tuple<std::uint64_t, std::string_view>> place;
    for (const Key key : query_.by) switch (key) {
        case Key::layer: place.emplace_back(static_cast<std::uint64_t>(row.layer), ""); break;
        case Key::call: place.emplace_back(static_cast<std::uint64_t>(row.layer), trace::name_of(row.call)); break;
        case Key::rank: place.emplace_back(row.rank ? static_cast<std::uint64_t>(*row.rank) : UINT64_MAX, ""); break;
        default: place.emplace_back(0, row.file); break;
      }
    return place;
  }

  void add_way(const FileCounters& file, const WayCounters& way, Call call) {
    const Filter& filter = query_.filter;
    const Moves moves = trace::moves_of(call);
    if (way.calls == 0 || (filter.layer && *filter.layer != file.layer) ||
        (filter.moves != Moves::nothing && filter.moves != moves) ||
        (!filter.calls.empty() && std::ranges::find(filter.calls, call) == filter.calls.end()))
      return;
    const auto [known, is_new] = numbers_.try_emplace(keys_of(file.layer, call, file.rank, file.path), rows_.size());
    if (is_new) {
      Row& made = rows_.emplace_back();
      made.layer = file.layer, made.call = call, made.rank = file.rank, made.file = file.path;
    }
    Row& row = rows_[known->second];
    row.calls += way.calls;
    (moves == Moves::reads ? row.read_bytes : row.written_bytes) += way.bytes;
    if (!file.has_order) {
      row.order.unknown += way.calls;
      return;
    }
    row.order.consecutive += way.consecutive;
    row.order.forward += way.forward;
    const std::uint64_t others = way.calls - way.consecutive - way.forward;
    if (!file.rank && file.processes > 1) {
      row.order.unknown += others;  // how many processes made a first one is not known
      return;
    }
    const std::uint64_t first = std::min<std::uint64_t>(others, 1);
    row.order.first += first;
    row.order.backward += others - first;
  }

  const Query& query_;
  std::vector<Row>& rows_;
  std::map<CountedKeys, std::size_t> numbers_;
};

}  // namespace

void add_counted_rows(std::span<const trace::Trace> traces, const Query& query, std::vector<Row>& rows) {
  if (!is_about_counters(query) ||
      std::ranges::all_of(traces, [](const auto& each) { return each.counters().empty(); }))
    return;
  CountedRows counted(query, rows);
  for (const trace::Trace& each : traces)
    for (const FileCounters& file : each.counters()) counted.add(file);
  counted.sort();
}

}  // namespace iosig::observe
