#include "iosig/check/source_condition.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <utility>

namespace iosig {
namespace {

using Kind = SourceToken::Kind;
using Number = std::uint64_t;  // unsigned: wraps instead of overflowing

constexpr int deepest = 100;  ///< parentheses and signs

/// Returns the precedence of a binary operator; 0: it is none.
int strength(const SourceToken& token) {
  constexpr std::pair<std::string_view, int> strengths[] = {
      {"||", 1}, {"&&", 2}, {"|", 3},  {"^", 4},  {"&", 5}, {"==", 6}, {"!=", 6}, {"<", 7},  {">", 7},
      {"<=", 7}, {">=", 7}, {"<<", 8}, {">>", 8}, {"+", 9}, {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};
  const auto* known = std::ranges::find(strengths, token.text, &std::pair<std::string_view, int>::first);
  return known == std::end(strengths) || token.kind != Kind::punctuation ? 0 : known->second;
}

Number apply(std::string_view sign, Number a, Number b) {
  const auto x = static_cast<std::int64_t>(a), y = static_cast<std::int64_t>(b);
  if (sign == "||") return a != 0 || b != 0 ? 1 : 0;
  if (sign == "&&") return a != 0 && b != 0 ? 1 : 0;
  if (sign == "|") return a | b;
  if (sign == "^") return a ^ b;
  if (sign == "&") return a & b;
  if (sign == "==") return a == b ? 1 : 0;
  if (sign == "!=") return a != b ? 1 : 0;
  if (sign == "<") return x < y ? 1 : 0;
  if (sign == ">") return x > y ? 1 : 0;
  if (sign == "<=") return x <= y ? 1 : 0;
  if (sign == ">=") return x >= y ? 1 : 0;
  if (sign == "<<") return b < 64 ? a << b : 0;
  if (sign == ">>") return b < 64 ? a >> b : 0;
  if (sign == "+") return a + b;
  if (sign == "-") return a - b;
  if (sign == "*") return a * b;
  if (y == 0 || y == -1) return sign == "/" && y == -1 ? 0 - a : 0;
  return static_cast<Number>(sign == "/" ? x / y : x % y);
}

/// A recursive-descent parser; each rule leaves the tokens that it did not consume.
class Expression {
 public:
  Expression(std::span<const SourceToken> tokens, bool is_cxx) : rest_(tokens), is_cxx_(is_cxx) {}

  Number conditional(int depth) {
    const Number condition = binary(1, depth);
    if (!accept("?") || depth > deepest) return condition;
    const Number yes = conditional(depth + 1);
    if (!accept(":")) return 0;
    const Number no = conditional(depth + 1);
    return condition != 0 ? yes : no;
  }

 private:
  bool accept(std::string_view spelling) {
    if (rest_.empty() || !rest_.front().is(spelling)) return false;
    rest_ = rest_.subspan(1);
    return true;
  }

  Number binary(int weakest, int depth) {
    Number left = unary(depth);
    while (!rest_.empty()) {
      const SourceToken sign = rest_.front();
      if (strength(sign) < weakest) break;
      rest_ = rest_.subspan(1);
      left = apply(sign.text, left, binary(strength(sign) + 1, depth));
    }
    return left;
  }

  Number unary(int depth) {
    if (rest_.empty() || depth > deepest) return 0;
    if (accept("!")) return unary(depth + 1) == 0 ? 1 : 0;
    if (accept("-")) return 0 - unary(depth + 1);
    if (accept("+")) return unary(depth + 1);
    if (accept("~")) return ~unary(depth + 1);
    if (accept("(")) {
      const Number inside = conditional(depth + 1);
      return accept(")") ? inside : 0;
    }
    const SourceToken token = rest_.front();
    rest_ = rest_.subspan(1);
    if (token.kind == Kind::character) return token.text.size() > 2 ? static_cast<Number>(token.text[1]) : 0;
    if (token.kind == Kind::word) {
      if (!rest_.empty() && rest_.front().is("("))  // a macro of a header that was not read
        while (!rest_.empty() && !accept(")")) rest_ = rest_.subspan(1);
      return is_cxx_ && token.is("true") ? 1 : 0;
    }
    std::string_view digits = token.text;
    int base = 10;
    if (digits.starts_with("0x") || digits.starts_with("0X")) {
      base = 16;
      digits.remove_prefix(2);
    } else if (digits.starts_with("0b") || digits.starts_with("0B")) {
      base = 2;
      digits.remove_prefix(2);
    } else if (digits.starts_with('0')) {
      base = 8;
    }
    Number value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    return value;
  }

  std::span<const SourceToken> rest_;
  bool is_cxx_;
};

}  // namespace

bool condition_holds(std::span<const SourceToken> expression, bool is_cxx) {
  return Expression(expression, is_cxx).conditional(0) != 0;
}

}  // namespace iosig
