#include "query_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "iosig/base/units.h"

namespace iosig::cli {
namespace {

using observe::Row;

constexpr std::size_t max_label = 40;
constexpr int levels = 8;
constexpr std::array<std::string_view, levels + 1> utf8_heights{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, levels + 1> ascii_heights{" ", ".", ":", "-", "=", "+", "*", "#", "@"};
constexpr std::array<std::string_view, levels> utf8_ends{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};

/// The number of characters.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string padded(std::string text, std::size_t width) {
  text.append(width - std::min(width, width_of(text)), ' ');
  return text;
}

std::string label_of(const Row& row, const std::vector<AnswerColumn>& columns, std::size_t key_columns) {
  std::string label;
  for (std::size_t n = 0; n < key_columns; ++n) {
    std::string part = columns[n].text(row);
    if (part.empty()) part = "-";
    label += (n == 0 ? "" : " ") + part;
  }
  if (width_of(label) <= max_label) return label;
  std::size_t start = label.size() - max_label + 3;  // the end of a path tells most
  while (start < label.size() && (static_cast<unsigned char>(label[start]) & 0xC0U) == 0x80U) ++start;
  return "..." + label.substr(start);
}

struct Labels {
  std::vector<std::string> texts;
  std::size_t width = 0;
};
Labels labels_of(const std::vector<Row>& rows, std::size_t count, const std::vector<AnswerColumn>& columns,
                 std::size_t key_columns) {
  Labels labels;
  for (std::size_t n = 0; n < count; ++n) {
    labels.texts.push_back(label_of(rows[n], columns, key_columns));
    labels.width = std::max(labels.width, width_of(labels.texts.back()));
  }
  return labels;
}

/// Calls by the power of two that their duration is below.
using Bins = std::array<std::uint64_t, 65>;

Bins bins_of(const Row& row) {
  Bins bins{};
  for (const auto& [middle, count] : row.values.buckets())
    bins.at(static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(middle)))) += count;
  return bins;
}

std::string histograms(const std::vector<Row>& rows, std::size_t count, const Labels& labels, const TextStyle& style) {
  std::vector<Bins> all;
  std::size_t first = std::tuple_size_v<Bins>, last = 0;
  for (std::size_t n = 0; n < count; ++n) {
    all.push_back(bins_of(rows[n]));
    for (std::size_t bin = 0; bin < all.back().size(); ++bin)
      if (all.back().at(bin) > 0) first = std::min(first, bin), last = std::max(last, bin);
  }
  if (first > last) return "no call has ended\n";
  const std::size_t wide =
      std::clamp<std::size_t>((style.columns - std::min(style.columns, labels.width + 20)) / (last - first + 1), 1, 4);
  const auto& heights = style.is_utf8 ? utf8_heights : ascii_heights;
  std::string text;
  for (std::size_t n = 0; n < count; ++n) {
    const std::uint64_t most = std::ranges::max(all[n]);
    text += padded(labels.texts[n], labels.width) + " |";
    for (std::size_t bin = first; bin <= last; ++bin) {
      const std::uint64_t calls = all[n].at(bin);
      const auto height =
          calls == 0
              ? 0
              : std::max(1, static_cast<int>(std::lround(static_cast<double>(levels) * static_cast<double>(calls) /
                                                         static_cast<double>(most))));
      for (std::size_t each = 0; each < wide; ++each) text += heights.at(static_cast<std::size_t>(height));
    }
    text += fmt::format("| {}\n", rows[n].values.count());
  }
  const auto edge = [](std::size_t bin) { return about_seconds(std::ldexp(1e-9, static_cast<int>(bin))); };
  const std::string low = first == 0 ? "0 s" : edge(first - 1), high = edge(last);
  const std::size_t width = wide * (last - first + 1);
  text += std::string(labels.width + 2, ' ') +
          (width_of(low) + width_of(high) < width ? padded(low, width - width_of(high)) + high
                                                  : fmt::format("{} to {}", low, high)) +
          "\n";
  return text;
}

std::string bars(const std::vector<Row>& rows, std::size_t count, const Labels& labels, const AnswerColumn& drawn,
                 const TextStyle& style) {
  std::vector<double> numbers;
  double greatest = 0;
  for (std::size_t n = 0; n < count; ++n) {
    const auto value = drawn.json(rows[n]);
    numbers.push_back(value.is_number() ? value.get<double>() : NAN);
    greatest = std::max(greatest, std::isnan(numbers.back()) ? 0 : numbers.back());
  }
  constexpr std::size_t for_number = 14, least_width = 10;
  const std::size_t taken = labels.width + for_number;
  const std::size_t width = style.columns > taken + least_width ? style.columns - taken : least_width;
  std::string text;
  for (std::size_t n = 0; n < count; ++n) {
    text += padded(labels.texts[n], labels.width) + " |";
    if (greatest > 0 && !std::isnan(numbers[n])) {
      const std::size_t parts = style.is_utf8 ? levels : 1;
      const auto length =
          static_cast<std::size_t>(std::lround(numbers[n] / greatest * static_cast<double>(width * parts)));
      for (std::size_t each = 0; each < length / parts; ++each) text += style.is_utf8 ? "█" : "#";
      if (style.is_utf8) text += utf8_ends.at(length % parts);
    }
    const std::string shown = drawn.text(rows[n]);
    text += " " + (shown.empty() ? "-" : shown) + "\n";
  }
  return text;
}

}  // namespace

std::string_view drawn_column(std::string_view question) {
  static constexpr std::pair<std::string_view, std::string_view> drawn[] = {{"latency", "inclusive_s"},
                                                                            {"throughput", "wall_bytes_per_s"},
                                                                            {"calls", "calls"},
                                                                            {"concurrency", "mean_in_flight"},
                                                                            {"power", "energy_j"}};
  const auto* const found = std::ranges::find(drawn, question, &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(drawn) ? std::string_view{} : found->second;
}

std::string query_picture(std::string_view question, const std::vector<Row>& rows,
                          const std::vector<AnswerColumn>& columns, std::size_t key_columns, std::size_t max_rows,
                          const TextStyle& style) {
  if (rows.empty()) return "no call was recorded, or is selected";
  const std::size_t count = max_rows == 0 ? rows.size() : std::min(max_rows, rows.size());
  const Labels labels = labels_of(rows, count, columns, key_columns);
  std::string text;
  if (question == "latency") {
    text = histograms(rows, count, labels, style);
  } else {
    const auto drawn = std::ranges::find(columns, drawn_column(question), &AnswerColumn::name);
    text = bars(rows, count, labels, *drawn, style);
  }
  if (count < rows.size()) return text + fmt::format("and {} more; --top 0 shows all", rows.size() - count);
  text.pop_back();
  return text;
}

std::int64_t window_for(std::int64_t wall_ns) {
  constexpr std::int64_t most_windows = 50;
  for (std::int64_t power = 1; power <= std::numeric_limits<std::int64_t>::max() / 100; power *= 10)
    for (const std::int64_t factor : {1, 2, 5})
      if (wall_ns / (power * factor) < most_windows) return power * factor;
  return std::numeric_limits<std::int64_t>::max() / 2;
}

}  // namespace iosig::cli
