#include "iosig/analyze/nest_forms.h"

#include <algorithm>

namespace iosig {

NestForms::NestForms(const PatternIndex& index, std::uint32_t term, std::span<const int> columns)
    : pattern_(index.pattern()),
      index_(index),
      root_(static_cast<std::uint32_t>(pattern_.terms[term].at)),
      is_constant_(is_constant(root_, 0)) {
  if (!is_constant_) return;
  turn_count_.resize(pattern_.nodes[root_].end - root_);
  count_turns(root_);
  const Term& nest = pattern_.terms[term];
  const auto exception = std::ranges::lower_bound(pattern_.exception_positions, nest.first);
  if (exception != pattern_.exception_positions.end() && *exception < nest.first + nest.count) return;
  for (const int column : columns) {
    if (column < 0 || pattern_.follows[static_cast<std::size_t>(column)] < 0) continue;
    auto& sums = turn_sums_[static_cast<std::size_t>(column)];
    sums.resize(turn_count_.size());
    if (!sum(root_, 0, column, sums)) sums.clear();
  }
}

std::uint64_t NestForms::count(std::uint32_t node) const {
  return pattern_.nodes[node].is_loop ? turn_count(node) * static_cast<std::uint64_t>(numbers(node)[0]) : 1;
}

bool NestForms::is_constant(std::uint32_t loop, std::size_t depth) const {
  for (std::size_t d = 0; d < depth; ++d)
    if (numbers(loop)[d + 1] != 0) return false;
  for (std::uint32_t child = loop + 1; child < pattern_.nodes[loop].end; child = pattern_.nodes[child].end)
    if (pattern_.nodes[child].is_loop && !is_constant(child, depth + 1)) return false;
  return true;
}

/// Counts the elements of a turn of `loop` and of each loop in it.
std::uint64_t NestForms::count_turns(std::uint32_t loop) {
  std::uint64_t elements = 0;
  for (std::uint32_t child = loop + 1; child < pattern_.nodes[loop].end; child = pattern_.nodes[child].end)
    elements += pattern_.nodes[child].is_loop ? count_turns(child) : 1;
  turn_count_[loop - root_] = elements;
  return elements * static_cast<std::uint64_t>(numbers(loop)[0]);
}

/// Returns what all turns of `node` add to `column`, which follows another one, and stores the sum per turn of each
/// loop. Returns nothing unless each leaf adds a constant.
std::optional<std::uint64_t> NestForms::sum(std::uint32_t node, std::size_t depth, int column,
                                            std::vector<std::uint64_t>& sums) {
  std::uint64_t total = 0;
  if (!pattern_.nodes[node].is_loop) {
    for (const int added : {column, static_cast<int>(pattern_.follows[static_cast<std::size_t>(column)])}) {
      const std::int64_t* form = numbers(node) + static_cast<std::size_t>(added) * (depth + 1);
      if (std::any_of(form + 1, form + 1 + depth, [](std::int64_t slope) { return slope != 0; })) return std::nullopt;
      total += static_cast<std::uint64_t>(form[0]);
    }
    return total;
  }
  for (std::uint32_t child = node + 1; child < pattern_.nodes[node].end; child = pattern_.nodes[child].end) {
    const auto more = sum(child, depth + 1, column, sums);
    if (!more) return std::nullopt;
    total += *more;
  }
  sums[node - root_] = total;
  return total * static_cast<std::uint64_t>(numbers(node)[0]);
}

std::optional<AffineForm> NestForms::form(int column, std::uint32_t leaf, std::span<const std::uint32_t> path,
                                          std::uint64_t first_position) const {
  AffineForm form;
  if (column < 0) return form;
  if (pattern_.follows[static_cast<std::size_t>(column)] < 0) {
    const std::int64_t* found = numbers(leaf) + static_cast<std::size_t>(column) * (path.size() + 1);
    form.base = found[0];
    std::copy_n(found + 1, path.size(), form.of.begin());
    return form;
  }
  const auto& sums = turn_sums_[static_cast<std::size_t>(column)];
  if (sums.empty()) return std::nullopt;
  for (std::size_t d = 0; d < path.size(); ++d) form.of[d] = static_cast<std::int64_t>(sums[path[d] - root_]);
  std::array<std::int64_t, max_columns> first{};
  index_.element(first_position, first);
  form.base = first[static_cast<std::size_t>(column)];
  return form;
}

}  // namespace iosig
