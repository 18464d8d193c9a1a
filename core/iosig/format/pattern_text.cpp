#include "iosig/format/pattern_text.h"

#include <algorithm>

#include "iosig/model/literals.h"
#include "iosig/model/nest.h"

namespace iosig {
namespace {

constexpr std::size_t shown_vectors = 8;  ///< of a block of literals, and of the exceptions
constexpr std::size_t shown_terms = 64;

/// Returns i, j, k, .., z, then i1, j1, ..
std::string index_name(std::size_t depth) {
  constexpr std::size_t letters = 'z' - 'i' + 1;
  const std::string letter(1, static_cast<char>('i' + depth % letters));
  return depth < letters ? letter : fmt::format("{}{}", letter, depth / letters);
}

/// Returns a text such as "524288 i + 4096 j - 8".
std::string affine_text(const std::int64_t* numbers, std::size_t depth) {
  std::string text;
  const auto add = [&](std::int64_t number, const std::string& name) {
    if (number == 0) return;
    const std::uint64_t size = number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
    text += text.empty() ? (number < 0 ? "-" : "") : (number < 0 ? " - " : " + ");
    text += name.empty() ? fmt::format("{}", size) : size == 1 ? name : fmt::format("{} {}", size, name);
  };
  add(numbers[0], "");
  for (std::size_t d = 0; d < depth; ++d) add(numbers[d + 1], index_name(d));
  return text.empty() ? "0" : text;
}

class Printer {
 public:
  Printer(const Pattern& pattern, std::span<const std::string> names) : pattern_(pattern), names_(names) {}

  std::string text() {
    const std::size_t terms = std::min(pattern_.terms.size(), shown_terms);
    for (std::size_t n = 0; n < terms; ++n) {
      const Term& term = pattern_.terms[n];
      if (term.is_nest)
        add_node(static_cast<std::uint32_t>(term.at), 0);
      else
        add_literals(term);
    }
    if (terms < pattern_.terms.size()) line(0, fmt::format("... {} more terms", pattern_.terms.size() - terms));
    add_exceptions();
    if (!text_.empty()) text_.pop_back();
    return std::move(text_);
  }

 private:
  void line(std::size_t depth, std::string_view what) { text_ += fmt::format("{:{}}{}\n", "", 2 * depth, what); }

  /// Returns `value(column)` for each column, with its name.
  template <class Value>
  std::string vector_text(Value value) const {
    std::string text;
    for (std::uint32_t column = 0; column < pattern_.columns; ++column) {
      if (column > 0) text += ", ";
      if (column < names_.size()) text += names_[column] + " ";
      const std::string own = value(column);
      text +=
          pattern_.follows[column] < 0 ? own : followed_text(static_cast<std::size_t>(pattern_.follows[column]), own);
    }
    return text;
  }

  /// Returns the text of a column that is its previous value plus the previous `source` plus `own`.
  [[nodiscard]] std::string followed_text(std::size_t source, std::string_view own) const {
    std::string sum =
        "previous + its " + (source < names_.size() ? names_[source] : fmt::format("column {}", source + 1));
    if (own == "0") return sum;
    return own.starts_with('-') ? fmt::format("{} - {}", sum, own.substr(1)) : fmt::format("{} + {}", sum, own);
  }

  void add_node(std::uint32_t node, std::size_t depth) {
    const Node& it = pattern_.nodes[node];
    const std::int64_t* numbers = pattern_.numbers.data() + it.numbers;
    if (!it.is_loop) {
      line(depth,
           vector_text([&](std::uint32_t column) { return affine_text(numbers + column * (depth + 1), depth); }));
      return;
    }
    line(depth, fmt::format("for {} < {}", index_name(depth), affine_text(numbers, depth)));
    for (std::uint32_t child = node + 1; child < it.end; child = pattern_.nodes[child].end) add_node(child, depth + 1);
  }

  void add_literals(const Term& term) {
    std::vector<std::int64_t> block;
    (void)read_block(std::span(pattern_.literals).subspan(term.at), pattern_.columns, block);
    const std::size_t shown = std::min<std::size_t>(term.count, shown_vectors);
    for (std::size_t n = 0; n < shown; ++n)
      line(0,
           vector_text([&](std::uint32_t column) { return fmt::format("{}", block[n * pattern_.columns + column]); }));
    if (shown < term.count) line(0, fmt::format("... {} more without a nest", term.count - shown));
  }

  void add_exceptions() {
    const std::size_t all = pattern_.exception_positions.size(), shown = std::min(all, shown_vectors);
    for (std::size_t n = 0; n < shown; ++n)
      line(0, fmt::format("but at {}: {}", pattern_.exception_positions[n], vector_text([&](std::uint32_t column) {
                            return fmt::format("{}", pattern_.exception_values[n * pattern_.columns + column]);
                          })));
    if (shown < all) line(0, fmt::format("... {} more exceptions", all - shown));
  }

  const Pattern& pattern_;
  std::span<const std::string> names_;
  std::string text_;
};

}  // namespace

std::string pattern_text(const Pattern& pattern, std::span<const std::string> names) {
  return Printer(pattern, names).text();
}

}  // namespace iosig
