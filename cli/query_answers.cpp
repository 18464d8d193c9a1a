#include "query_answers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "iosig/base/text.h"
#include "iosig/base/units.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;
using observe::Answer;
using observe::Key;
using observe::Query;
using observe::Row;
using observe::Value;

constexpr std::uint64_t shown_rows = 40;

ordered_json heading_json(std::string_view question, const Query& query, const Answer& answer) {
  ordered_json by = ordered_json::array();
  for (const Key key : query.by) by.push_back(observe::key_names[static_cast<std::size_t>(key)]);
  ordered_json made{{"question", question}, {"started_ns", answer.started_ns}, {"by", std::move(by)}};
  if (std::ranges::find(query.by, Key::window) != query.by.end()) made["window_s"] = in_seconds(query.window_ns);
  return made;
}

/// Returns "0-3,7": the ranks, or names of processes without one.
std::string ranks_text(const std::vector<const Row*>& rows, std::uint64_t Row::*bytes) {
  std::set<std::int64_t> ranks;
  std::set<std::string> others;
  for (const Row* const row : rows) {
    if (row->*bytes == 0) continue;
    if (row->rank)
      ranks.insert(*row->rank);
    else
      others.insert(process_name(*row->process));
  }
  std::vector<std::string> parts;
  for (auto rank = ranks.begin(); rank != ranks.end();) {
    const std::int64_t first = *rank;
    std::int64_t last = first;
    while (++rank != ranks.end() && *rank == last + 1) last = *rank;
    parts.push_back(first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last));
  }
  constexpr std::size_t max_others = 3;
  for (const std::string& other : others) {
    if (parts.size() >= max_others && others.size() > max_others) break;
    parts.push_back(other);
  }
  if (others.size() > max_others) parts.push_back(fmt::format("{} processes in all", others.size()));
  return fmt::format("{}", fmt::join(parts, ","));
}

ordered_json touched_json(const Row& row) {
  return {{"calls", row.calls}, {"read_bytes", row.read_bytes}, {"written_bytes", row.written_bytes}};
}

}  // namespace

nlohmann::ordered_json rows_document(std::optional<std::uint32_t> top, std::string_view question, const Query& query,
                                     const Answer& answer, const std::vector<AnswerColumn>& columns,
                                     bool has_histograms) {
  ordered_json document = heading_json(question, query, answer), shown = ordered_json::array();
  const std::size_t most = top.value_or(0) == 0 ? answer.rows.size() : *top;
  for (const Row& row : std::span(answer.rows).first(std::min(answer.rows.size(), most))) {
    ordered_json made = ordered_json::object();
    for (const AnswerColumn& column : columns) made[column.name] = column.json(row);
    if (has_histograms) {
      ordered_json histogram = ordered_json::array();
      for (const auto& [middle, count] : row.values.buckets()) histogram.push_back({middle / 1e9, count});
      made["histogram"] = std::move(histogram);
    }
    shown.push_back(std::move(made));
  }
  document["row_count"] = answer.rows.size();
  document["rows"] = std::move(shown);
  return document;
}

void show_rows(std::optional<std::uint32_t> top, std::string_view question, const Query& query, const Answer& answer,
               const std::vector<AnswerColumn>& columns, const Console& console) {
  const std::uint64_t all = answer.rows.size();
  const std::uint64_t most = top.value_or(shown_rows);
  const auto rows = std::span(answer.rows).first(most == 0 ? all : std::min(all, most));
  if (console.json) {
    console.say_json(query_schema, rows_document(top, question, query, answer, columns, false));
    return;
  }
  if (all == 0) {
    console.say("no call was recorded, or is selected");
    return;
  }
  std::vector<std::string> header;
  for (const AnswerColumn& column : columns)
    if (!column.heading.empty()) header.push_back(column.heading);
  Table table(std::move(header));
  for (const Row& row : rows) {
    std::vector<std::string> cells;
    for (const AnswerColumn& column : columns)
      if (!column.heading.empty()) cells.push_back(column.text(row));
    table.add(std::move(cells));
  }
  console.say(table);
  if (rows.size() < all) console.say(fmt::format("and {} more; --top 0 shows all", all - rows.size()));
}

void show_list(std::string_view question, const Query& query, const Answer& answer, const Console& console) {
  const auto duration_s = [](const observe::ListedCall& call) {
    return in_seconds(call.access.end_ns - call.access.start_ns);
  };
  std::vector<std::string> header{"START", "LAYER", "CALL", "PROCESS", "TID", "OFFSET", "RESULT", "TIME"};
  if (query.has_own_time) header.push_back("OWN TIME");
  if (query.value == Value::rate) header.push_back("RATE");
  if (query.value == Value::energy) header.push_back("ENERGY");
  header.push_back("FILE");
  ordered_json calls = ordered_json::array();
  Table table(std::move(header));
  for (const observe::ListedCall& each : answer.list) {
    const trace::Access& access = each.access;
    const auto layer = trace::layer_names[static_cast<std::size_t>(trace::layer_of(access.call))];
    const bool has_offset = access.offset != trace::no_offset;
    if (console.json) {
      ordered_json made{{"start_s", in_seconds(access.start_ns)},
                        {"layer", layer},
                        {"call", trace::name_of(access.call)},
                        {"host", access.process->host},
                        {"pid", access.process->pid},
                        {"rank", access.process->rank ? ordered_json(*access.process->rank) : ordered_json(nullptr)},
                        {"tid", access.tid},
                        {"file", access.path.empty() ? ordered_json(nullptr) : ordered_json(access.path)},
                        {"offset", has_offset ? ordered_json(access.offset) : ordered_json(nullptr)},
                        {"result", access.result},
                        {"inclusive_s", duration_s(each)}};
      if (query.has_own_time) made["exclusive_s"] = in_seconds(each.own_ns);
      if (query.value == Value::rate) made["bytes_per_s"] = each.value;
      if (query.value == Value::energy) made["active_j"] = static_cast<double>(each.value) / 1e9;
      calls.push_back(std::move(made));
      continue;
    }
    std::vector<std::string> row{fmt::format("{:.6f} s", in_seconds(access.start_ns)),
                                 std::string(layer),
                                 std::string(trace::name_of(access.call)),
                                 process_name(*access.process),
                                 fmt::format("{}", access.tid),
                                 has_offset ? fmt::format("{}", access.offset) : "",
                                 fmt::format("{}", access.result),
                                 about_seconds(duration_s(each))};
    if (query.has_own_time) row.push_back(about_seconds(in_seconds(each.own_ns)));
    if (query.value == Value::rate) row.push_back(about_rate(static_cast<double>(each.value)));
    if (query.value == Value::energy) row.push_back(about_joules(static_cast<double>(each.value) / 1e9));
    row.push_back(printable(access.path));
    table.add(std::move(row));
  }
  if (console.json) {
    ordered_json document = heading_json(question, query, answer);
    document["list"] = std::move(calls);
    console.say_json(query_schema, document);
  } else if (answer.list.empty()) {
    console.say("no call was recorded, or is selected");
  } else {
    console.say(table);
  }
}

void show_touched(std::optional<std::uint32_t> top, std::string_view question, const Query& query, const Answer& answer,
                  bool is_by_file, const Console& console) {
  // Of each file, or of each rank or process without one.
  std::map<std::tuple<std::size_t, std::int64_t, std::string>, std::vector<const Row*>> sides;
  for (const Row& row : answer.rows) {
    const auto layer = query.by.front() == Key::layer ? static_cast<std::size_t>(row.layer) : 0;
    if (is_by_file)
      sides[{layer, 0, std::string(row.file)}].push_back(&row);
    else
      sides[{layer, row.rank.value_or(INT64_MAX), row.rank ? "" : process_name(*row.process)}].push_back(&row);
  }
  const std::uint64_t most = top.value_or(console.json ? 0 : shown_rows);
  ordered_json shown = ordered_json::array();
  Table table(is_by_file
                  ? std::vector<std::string>{"LAYER", "CALLS", "READ", "WRITTEN", "READ BY", "WRITTEN BY", "FILE"}
                  : std::vector<std::string>{"LAYER", "PROCESS", "CALLS", "READ", "WRITTEN", "FILE"});
  const auto amount = [](std::uint64_t bytes) { return bytes == 0 ? "" : about_bytes(static_cast<double>(bytes)); };
  const auto file_json = [](const Row& row) {
    return row.file.empty() ? ordered_json(nullptr) : ordered_json(row.file);
  };
  const auto process_json = [](const Row& row) {
    return ordered_json{{"rank", row.rank ? ordered_json(*row.rank) : ordered_json(nullptr)},
                        {"host", row.process->host},
                        {"pid", row.process->pid}};
  };
  std::uint64_t lines = 0, left_out = 0;
  for (const auto& [side, rows] : sides) {
    const bool is_one_layer = query.filter.layer || query.by.front() == Key::layer;
    const std::string layer(is_one_layer ? trace::layer_names[static_cast<std::size_t>(rows.front()->layer)] : "all");
    if (console.json) {
      if (most != 0 && shown.size() == most) break;
      ordered_json others = ordered_json::array();
      for (const Row* const row : rows) {
        ordered_json other = is_by_file ? process_json(*row) : ordered_json{{"file", file_json(*row)}};
        other.update(touched_json(*row));
        others.push_back(std::move(other));
      }
      ordered_json made{{"layer", layer}};
      if (is_by_file)
        made["file"] = file_json(*rows.front());
      else
        made.update(process_json(*rows.front()));
      made[is_by_file ? "processes" : "files"] = std::move(others);
      shown.push_back(std::move(made));
    } else if (is_by_file) {
      if (most != 0 && lines++ >= most) {
        ++left_out;
        continue;
      }
      std::uint64_t calls = 0, read = 0, written = 0;
      for (const Row* const row : rows) {
        calls += row->calls;
        read += row->read_bytes;
        written += row->written_bytes;
      }
      table.add({layer, fmt::format("{}", calls), amount(read), amount(written), ranks_text(rows, &Row::read_bytes),
                 ranks_text(rows, &Row::written_bytes), printable(rows.front()->file)});
    } else {
      for (const Row* const row : rows) {
        if (most != 0 && lines++ >= most) {
          ++left_out;
          continue;
        }
        table.add({layer, process_name(*row->process), fmt::format("{}", row->calls), amount(row->read_bytes),
                   amount(row->written_bytes), printable(row->file)});
      }
    }
  }
  if (console.json) {
    ordered_json document = heading_json(question, query, answer);
    document["by"] = is_by_file ? "file" : "rank";
    document["row_count"] = sides.size();
    document["rows"] = std::move(shown);
    console.say_json(query_schema, document);
  } else if (sides.empty()) {
    console.say("no call was recorded, or is selected");
  } else {
    console.say(table);
    if (left_out > 0) console.say(fmt::format("and {} more; --top 0 shows all", left_out));
  }
}

}  // namespace iosig::cli
