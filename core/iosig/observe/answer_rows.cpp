#include "iosig/observe/answer_rows.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

namespace iosig::observe {
namespace {

using SortKey = std::vector<std::tuple<std::int64_t, std::string_view>>;

SortKey sort_key(const Row& row, const std::vector<Key>& by) {
  SortKey parts;
  const auto add = [&](std::int64_t number, std::string_view text = {}) { parts.emplace_back(number, text); };
  for (const Key key : by) switch (key) {
      case Key::layer: add(static_cast<std::int64_t>(row.layer)); break;
      case Key::call: add(static_cast<std::int64_t>(row.layer), trace::name_of(row.call)); break;
      case Key::rank: add(row.rank.value_or(INT64_MAX)); break;
      case Key::file: add(0, row.file); break;
      case Key::source: add(0, row.source); break;
      case Key::node: add(0, row.process->host); break;
      case Key::thread:
      case Key::process:
        add(row.rank.value_or(INT64_MAX), row.process->host);
        add(row.process->pid);
        add(static_cast<std::int64_t>(row.process->key >> 1));
        if (key == Key::thread) add(row.tid);
        break;
      case Key::window: add(row.window_ns); break;
    }
  return parts;
}

}  // namespace

AnswerRows::AnswerRows(const Query& query) : query_(query) {
  for (const Key key : query.by) has_key_[static_cast<std::size_t>(key)] = true;
}

bool AnswerRows::mixes_layers() const {
  return !query_.filter.layer && !has(Key::layer) && !has(Key::call) && query_.filter.calls.size() != 1;
}

std::string_view AnswerRows::source_of(std::string_view path) {
  if (query_.sources == nullptr || path.empty()) return {};
  const auto [known, is_new] = source_of_path_.try_emplace(path.data());
  if (is_new)
    if (const auto found = query_.sources->find(path); found != query_.sources->end()) known->second = found->second;
  return known->second;
}

KeyNumbers AnswerRows::numbers_of(const trace::Access& access) {
  KeyNumbers numbers{};
  const auto set = [&](Key key, auto number) {
    if (has(key)) numbers[static_cast<std::size_t>(key)] = number();
  };
  set(Key::layer, [&] { return static_cast<std::uint64_t>(trace::layer_of(access.call)); });
  set(Key::call, [&] { return static_cast<std::uint64_t>(access.call); });
  set(Key::rank, [&] { return access.process->rank ? static_cast<std::uint64_t>(*access.process->rank) + 1 : 0; });
  set(Key::file, [&] { return access.path.empty() ? 0 : files_.of(access.path); });
  set(Key::source, [&] {
    const std::string_view source = source_of(access.path);
    return source.empty() ? 0 : sources_.of(source);
  });
  set(Key::node, [&] { return nodes_.of(access.process->host); });
  set(Key::process, [&] { return reinterpret_cast<std::uintptr_t>(access.process); });
  if (has(Key::thread)) {
    numbers[static_cast<std::size_t>(Key::process)] = reinterpret_cast<std::uintptr_t>(access.process);
    numbers[static_cast<std::size_t>(Key::thread)] = static_cast<std::uint32_t>(access.tid);
  }
  return numbers;
}

std::uint64_t AnswerRows::group_of(const KeyNumbers& numbers) {
  if (latest_group_ != 0 && numbers == latest_group_numbers_) return latest_group_;
  latest_group_numbers_ = numbers;
  return latest_group_ = groups_.try_emplace(numbers, groups_.size() + 1).first->second;
}

Result<std::uint32_t> AnswerRows::row_of(const KeyNumbers& numbers, const trace::Access& access) {
  if (!rows_.empty() && numbers == latest_row_numbers_) return latest_row_;
  const auto [known, is_new] = numbers_.try_emplace(numbers, static_cast<std::uint32_t>(rows_.size()));
  if (is_new) {
    if (rows_.size() == max_rows)
      return fail(ErrorKind::usage, "the answer has more than {} rows; select fewer calls, or a longer window",
                  max_rows);
    rows_.push_back({.layer = trace::layer_of(access.call),
                     .call = access.call,
                     .process = access.process,
                     .rank = access.process->rank,
                     .tid = access.tid,
                     .file = access.path,
                     .source = has(Key::source) ? source_of(access.path) : std::string_view(),
                     .window_ns = static_cast<std::int64_t>(numbers[window_place]) * query_.window_ns});
  }
  latest_row_numbers_ = numbers;
  return latest_row_ = known->second;
}

KeyNumbers AnswerRows::stream_of(std::uint64_t group, const trace::Access& access) {
  return {group, reinterpret_cast<std::uintptr_t>(access.process), files_.of(access.path),
          access.path.empty() ? access.file : 0, static_cast<std::uint64_t>(trace::moves_of(access.call))};
}

std::vector<Row> AnswerRows::sorted() && {
  std::vector<std::pair<SortKey, std::size_t>> order;
  for (std::size_t n = 0; n < rows_.size(); ++n) order.emplace_back(sort_key(rows_[n], query_.by), n);
  std::ranges::sort(order);
  std::vector<Row> rows;
  rows.reserve(order.size());
  for (const auto& [key, n] : order) rows.push_back(std::move(rows_[n]));
  return rows;
}

}  // namespace iosig::observe
