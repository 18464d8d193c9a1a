#include "iosig/model/pattern.h"

#include <algorithm>

#include "iosig/model/literals.h"
#include "iosig/model/nest.h"

namespace iosig {
namespace {

/// Checks one term after the other against what earlier terms have used.
class TermChecker {
 public:
  explicit TermChecker(const Pattern& pattern) : pattern_(pattern) {}

  std::string fault() {
    for (const Term& term : pattern_.terms) {
      if (term.first != count_ || term.count == 0) return place(term, "does not begin where the one before ends");
      std::string found = term.is_nest ? nest_fault(term) : literals_fault(term);
      if (!found.empty()) return place(term, found);
      if (term.count > max_elements - count_) return place(term, "more than 2^63 - 1 elements");
      count_ += term.count;
    }
    if (node_ != pattern_.nodes.size() || number_ != pattern_.numbers.size() || byte_ != pattern_.literals.size())
      return "nodes, numbers or literals that no term uses";
    return "";
  }

 private:
  std::string place(const Term& term, std::string_view what) {
    return fmt::format("term {}: {}", &term - pattern_.terms.data() + 1, what);
  }

  std::string nest_fault(const Term& term) {
    if (term.at != node_ || node_ >= pattern_.nodes.size()) return "its nodes are not where they should be";
    if (std::string found = layout_fault(); !found.empty()) return found;
    const auto root = static_cast<std::uint32_t>(term.at);
    if (std::string found = fault_of(view_of(pattern_), root); !found.empty()) return found;
    if (count_of(view_of(pattern_), root, {}) != term.count) return "its count is not that of its nest";
    return "";
  }

  /// Checks the nodes of the nest at node_: each lies within its parent, and its numbers follow those before.
  std::string layout_fault() {
    const std::uint32_t end = pattern_.nodes[node_].end;
    std::vector<std::uint32_t> around;
    do {
      const Node& node = pattern_.nodes[node_];
      while (!around.empty() && around.back() == node_) around.pop_back();
      const std::uint32_t limit = around.empty() ? end : around.back();
      if (node.end <= node_ || node.end > limit || node.end > pattern_.nodes.size() ||
          (!node.is_loop && node.end != node_ + 1))
        return "nodes that are not within each other";
      if (around.size() > max_nest_depth) return fmt::format("more than {} loops in each other", max_nest_depth);
      const std::size_t numbers = (around.size() + 1) * (node.is_loop ? 1 : pattern_.columns);
      if (node.numbers != number_ || numbers > pattern_.numbers.size() - number_)
        return "its numbers are not where they should be";
      number_ += numbers;
      if (node.is_loop) around.push_back(node.end);
      ++node_;
    } while (node_ < end);
    return "";
  }

  std::string literals_fault(const Term& term) {
    if (term.at != byte_) return "its literals are not where they should be";
    const auto size = size_of_block(std::span(pattern_.literals).subspan(byte_), pattern_.columns);
    if (!size) return "its literals are not a block";
    if (size->vectors != term.count) return "its count is not that of its literals";
    byte_ += size->bytes;
    return "";
  }

  const Pattern& pattern_;
  std::uint64_t count_ = 0;
  std::uint32_t node_ = 0;
  std::size_t number_ = 0, byte_ = 0;
};

std::string exceptions_fault(const Pattern& pattern) {
  if (pattern.exception_values.size() != pattern.exception_positions.size() * pattern.columns)
    return "exceptions need one vector for each position";
  auto term = pattern.terms.begin();
  for (std::size_t n = 0; n < pattern.exception_positions.size(); ++n) {
    const std::uint64_t position = pattern.exception_positions[n];
    if (n > 0 && position <= pattern.exception_positions[n - 1]) return "exceptions that are not in order";
    while (term != pattern.terms.end() && position - term->first >= term->count) ++term;
    if (term == pattern.terms.end() || !term->is_nest) return "an exception outside the nests";
  }
  return "";
}

}  // namespace

bool Pattern::follows_any() const {
  return std::any_of(follows.begin(), follows.begin() + columns, [](std::int8_t source) { return source >= 0; });
}

Result<void> checked(const Pattern& pattern) {
  const auto refuse = [](std::string_view what) { return fail(ErrorKind::bad_input, "{}", what); };
  if (pattern.columns < 1 || pattern.columns > max_columns)
    return fail(ErrorKind::bad_input, "{} columns; expected 1 to {}", pattern.columns, max_columns);
  for (std::uint32_t column = 0; column < max_columns; ++column) {
    const std::int8_t source = pattern.follows[column];
    if (source == -1) continue;
    if (column >= pattern.columns || source < 0 || source >= static_cast<int>(pattern.columns) ||
        pattern.follows[static_cast<std::uint8_t>(source)] != -1)
      return fail(ErrorKind::bad_input, "column {} cannot follow column {}; expected a column that follows none",
                  column + 1, source + 1);
  }
  for (std::uint32_t column = 0; column < max_columns; ++column) {
    const Column kind = pattern.kinds[column];
    if (kind == Column::any) continue;
    if (column >= pattern.columns || static_cast<std::uint8_t>(kind) >= column_kinds)
      return refuse("a name for a column that is not there");
    if (std::count(pattern.kinds.begin(), pattern.kinds.end(), kind) > 1) return refuse("two columns of one name");
  }
  if (std::string found = TermChecker(pattern).fault(); !found.empty()) return refuse(found);
  if (std::string found = exceptions_fault(pattern); !found.empty()) return refuse(found);
  return {};
}

std::uint64_t count_before(const Pattern& pattern, std::uint32_t node, std::span<const std::int64_t> outer,
                           std::int64_t index) {
  return count_before(view_of(pattern), node, outer, index);
}

PatternIndex::PatternIndex(const Pattern& pattern) : pattern_(&pattern) {
  if (!pattern.follows_any()) return;
  const std::uint32_t columns = pattern.columns;
  std::vector<std::int64_t> block;
  Sums sums;
  before_term_.reserve(pattern.terms.size());
  for (const Term& term : pattern.terms) {
    before_term_.push_back(sums);
    if (term.is_nest) {
      const auto more = sums_of(view_of(pattern), static_cast<std::uint32_t>(term.at), term.count);
      for (std::uint32_t column = 0; column < columns; ++column) sums.of[column] += more[column];
    } else if (read_block(std::span(pattern.literals).subspan(term.at), columns, block)) {
      for (std::size_t n = 0; n < block.size(); ++n) sums.of[n % columns] += static_cast<std::uint64_t>(block[n]);
    }
  }
  sums = {};
  before_exception_.reserve(pattern.exception_positions.size() + 1);
  for (std::size_t n = 0; n < pattern.exception_positions.size(); ++n) {
    before_exception_.push_back(sums);
    const std::uint64_t position = pattern.exception_positions[n];
    const Term& term = *(std::ranges::upper_bound(pattern.terms, position, {}, &Term::first) - 1);
    std::array<std::int64_t, max_columns> regular{};
    NestWalk walk;
    walk.seek(view_of(pattern), static_cast<std::uint32_t>(term.at), position - term.first);
    walk.values(regular.data());
    for (std::uint32_t column = 0; column < columns; ++column)
      sums.of[column] += static_cast<std::uint64_t>(pattern.exception_values[n * columns + column]) -
                         static_cast<std::uint64_t>(regular[column]);
  }
  before_exception_.push_back(sums);
}

PatternIndex::Sums PatternIndex::sums_before(std::uint64_t position) const {
  const auto after = std::ranges::upper_bound(pattern_->terms, position, {}, &Term::first);
  const Term& term = *(after - 1);
  Sums sums = before_term_[static_cast<std::size_t>(&term - pattern_->terms.data())];
  const std::uint32_t columns = pattern_->columns;
  if (term.is_nest) {
    const auto more = sums_of(view_of(*pattern_), static_cast<std::uint32_t>(term.at), position - term.first);
    for (std::uint32_t column = 0; column < columns; ++column) sums.of[column] += more[column];
  } else {
    std::vector<std::int64_t> block;
    (void)read_block(std::span(pattern_->literals).subspan(term.at), columns, block);
    for (std::size_t n = 0; n < (position - term.first) * columns; ++n)
      sums.of[n % columns] += static_cast<std::uint64_t>(block[n]);
  }
  const auto exceptions = std::ranges::lower_bound(pattern_->exception_positions, position);
  const Sums& more = before_exception_[static_cast<std::size_t>(exceptions - pattern_->exception_positions.begin())];
  for (std::uint32_t column = 0; column < columns; ++column) sums.of[column] += more.of[column];
  return sums;
}

void PatternIndex::stored_element(std::uint64_t position, std::span<std::int64_t> out) const {
  const Pattern& pattern = *pattern_;
  const auto exception = std::ranges::lower_bound(pattern.exception_positions, position);
  if (exception != pattern.exception_positions.end() && *exception == position) {
    const auto n = static_cast<std::size_t>(exception - pattern.exception_positions.begin());
    std::copy_n(pattern.exception_values.begin() + static_cast<std::ptrdiff_t>(n * pattern.columns), pattern.columns,
                out.begin());
    return;
  }
  const Term& term = *(std::ranges::upper_bound(pattern.terms, position, {}, &Term::first) - 1);
  if (term.is_nest) {
    NestWalk walk;
    walk.seek(view_of(pattern), static_cast<std::uint32_t>(term.at), position - term.first);
    walk.values(out.data());
    return;
  }
  std::vector<std::int64_t> block;
  (void)read_block(std::span(pattern.literals).subspan(term.at), pattern.columns, block);
  std::copy_n(block.begin() + static_cast<std::ptrdiff_t>((position - term.first) * pattern.columns), pattern.columns,
              out.begin());
}

void PatternIndex::element(std::uint64_t position, std::span<std::int64_t> out) const {
  stored_element(position, out);
  if (before_exception_.empty()) return;
  // value[n] = sum of differences up to n + sum of the source before n
  const Sums sums = sums_before(position);
  for (std::uint32_t column = 0; column < pattern_->columns; ++column)
    if (const std::int8_t source = pattern_->follows[column]; source >= 0)
      out[column] = static_cast<std::int64_t>(static_cast<std::uint64_t>(out[column]) + sums.of[column] +
                                              sums.of[static_cast<std::uint8_t>(source)]);
}

}  // namespace iosig
