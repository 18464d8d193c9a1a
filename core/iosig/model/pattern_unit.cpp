#include "iosig/model/pattern_unit.h"

#include <fmt/ranges.h>

#include <numeric>

#include "iosig/model/literals.h"
#include "iosig/model/nest.h"
#include "iosig/model/pattern_builder.h"

namespace iosig {
namespace {

constexpr std::array<std::int8_t, max_columns> follows_none = {-1, -1, -1, -1, -1, -1, -1, -1};

std::int64_t wrapping_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t wrapping_difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

}  // namespace

std::string unit_text(const PatternUnit& unit) {
  return fmt::format("[{},({})^{}]", unit.first, fmt::join(unit.deltas, ", "), unit.repetitions);
}

Result<Pattern> pattern_of(std::span<const PatternUnit> units) {
  PatternBuilder builder(1, follows_none);
  const auto refuse = [](const PatternUnit& unit) {
    return fail(ErrorKind::bad_input, "{}: its numbers do not fit 64 bits", unit_text(unit));
  };
  for (const PatternUnit& unit : units) {
    if (unit.deltas.empty()) return fail(ErrorKind::bad_input, "a pattern unit without deltas");
    if (unit.repetitions == 0) continue;
    std::vector<std::int64_t> values(1, unit.first);
    for (const std::int64_t delta : unit.deltas)
      if (__builtin_add_overflow(values.back(), delta, &values.emplace_back())) {
        if (unit.repetitions > 1 || values.size() <= unit.deltas.size()) return refuse(unit);
      }
    std::int64_t stride = 0;
    const auto size = static_cast<std::uint32_t>(unit.deltas.size());
    if (unit.repetitions == 1) {
      for (std::uint32_t n = 0; n < size; ++n) builder.add_literal(&values[n]);
      continue;
    }
    std::uint64_t count = 0;
    if (__builtin_sub_overflow(values.back(), unit.first, &stride) || unit.repetitions > max_elements ||
        __builtin_mul_overflow(unit.repetitions, std::uint64_t{size}, &count) || count > max_elements - builder.count())
      return refuse(unit);
    std::vector<Node> nodes(1, {true, size + 1, 0});
    std::vector<std::int64_t> numbers(1, static_cast<std::int64_t>(unit.repetitions));
    for (std::uint32_t n = 0; n < size; ++n) {
      nodes.push_back({false, n + 2, static_cast<std::uint32_t>(numbers.size())});
      numbers.insert(numbers.end(), {values[n], stride});
    }
    if (!fault_of({nodes.data(), numbers.data(), 1}, 0).empty()) return refuse(unit);
    builder.add_nest(nodes, numbers, count);
  }
  return builder.finish();
}

std::optional<std::vector<PatternUnit>> units_of(const Pattern& pattern) {
  if (pattern.columns != 1 || pattern.follows_any() || !pattern.exception_positions.empty()) return std::nullopt;
  std::vector<PatternUnit> units;
  std::vector<std::int64_t> values;
  for (const Term& term : pattern.terms) {
    if (!term.is_nest) {
      (void)read_block(std::span(pattern.literals).subspan(term.at), 1, values);
      for (std::size_t n = 0; n < values.size(); ++n)
        units.push_back({values[n], {n + 1 < values.size() ? wrapping_difference(values[n + 1], values[n]) : 0}, 1});
      continue;
    }
    const Node& root = pattern.nodes[term.at];
    values.clear();
    const std::int64_t stride = pattern.numbers[pattern.nodes[term.at + 1].numbers + 1];
    for (std::uint64_t leaf = term.at + 1; leaf < root.end; ++leaf) {
      const Node& it = pattern.nodes[leaf];
      if (it.is_loop || pattern.numbers[it.numbers + 1] != stride) return std::nullopt;
      values.push_back(pattern.numbers[it.numbers]);
    }
    values.push_back(wrapping_sum(values.front(), stride));
    PatternUnit& unit = units.emplace_back();
    unit.first = values.front();
    unit.repetitions = static_cast<std::uint64_t>(pattern.numbers[root.numbers]);
    for (std::size_t n = 1; n < values.size(); ++n)
      unit.deltas.push_back(wrapping_difference(values[n], values[n - 1]));
  }
  return units;
}

std::vector<PatternUnit> from_closed(const PatternUnit& closed) {
  std::uint64_t stride = 0;
  for (const std::int64_t delta : closed.deltas) stride += static_cast<std::uint64_t>(delta);
  const auto last = static_cast<std::int64_t>(static_cast<std::uint64_t>(closed.first) + stride * closed.repetitions);
  if (closed.deltas.size() == 1) return {{closed.first, closed.deltas, closed.repetitions + 1}};
  std::vector<PatternUnit> units;
  if (closed.repetitions > 0) units.push_back(closed);
  units.push_back({last, {0}, 1});
  return units;
}

std::vector<PatternUnit> to_closed(const PatternUnit& unit) {
  if (unit.repetitions == 0) return {};
  if (unit.deltas.size() == 1) return {{unit.first, unit.deltas, unit.repetitions - 1}};
  std::vector<PatternUnit> units;
  std::uint64_t stride = 0;
  for (const std::int64_t delta : unit.deltas) stride += static_cast<std::uint64_t>(delta);
  const std::vector<std::int64_t> rest(unit.deltas.begin(), unit.deltas.end() - 1);
  if (unit.repetitions == 1) return {{unit.first, rest, 1}};
  units.push_back({unit.first, unit.deltas, unit.repetitions - 1});  // includes the first number of the last repetition
  const auto last = static_cast<std::uint64_t>(unit.first) + stride * (unit.repetitions - 1) +
                    static_cast<std::uint64_t>(unit.deltas.front());
  const std::vector<std::int64_t> others(unit.deltas.begin() + 1, unit.deltas.end() - 1);
  if (others.empty())
    units.push_back({static_cast<std::int64_t>(last), {0}, 0});
  else
    units.push_back({static_cast<std::int64_t>(last), others, 1});
  return units;
}

}  // namespace iosig
