// A value has one of two types, intmax_t or uintmax_t. The operands decide which one an operation has:
//
//   -1 < 0      both are signed: true
//   -1 < 0u     0u makes both unsigned: 18446744073709551615 < 0, false
//   -8 / 2      -4;  -8 / 2u: 9223372036854775804
//   -8 >> 1u    -4: only the left operand decides the type of a shift
#include "iosig/check/source_condition.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

namespace iosig {
namespace {

using Kind = SourceToken::Kind;

constexpr int deepest = 100;  ///< parentheses and signs

struct Value {
  std::uint64_t bits = 0;  ///< of either type: wraps instead of overflowing
  bool is_unsigned = false;

  [[nodiscard]] std::int64_t as_signed() const { return static_cast<std::int64_t>(bits); }
  [[nodiscard]] bool is_true() const { return bits != 0; }
};

Value truth(bool holds) { return {holds ? 1u : 0u}; }

/// Returns the result of an operation whose operands have been converted to their common type.
Value common(Value a, Value b, std::uint64_t bits) { return {bits, a.is_unsigned || b.is_unsigned}; }

bool is_less(Value a, Value b) {
  return a.is_unsigned || b.is_unsigned ? a.bits < b.bits : a.as_signed() < b.as_signed();
}

Value shifted_right(Value a, Value b) {
  const bool is_negative = !a.is_unsigned && a.as_signed() < 0;
  const std::uint64_t inverted = is_negative ? ~a.bits : a.bits;  // the zeros shifted in become ones
  const std::uint64_t shifted = b.bits < 64 ? inverted >> b.bits : 0;
  return {is_negative ? ~shifted : shifted, a.is_unsigned};
}

Value quotient(Value a, Value b) {
  if (b.bits == 0) return {};
  if (a.is_unsigned || b.is_unsigned) return common(a, b, a.bits / b.bits);
  if (b.as_signed() == -1) return {0 - a.bits};  // the quotient of INTMAX_MIN overflows
  return {static_cast<std::uint64_t>(a.as_signed() / b.as_signed())};
}

Value remainder(Value a, Value b) {
  if (b.bits == 0) return {};
  return common(a, b, a.bits - quotient(a, b).bits * b.bits);
}

struct Operator {
  std::string_view spelling;
  int precedence;  ///< from 1, the one that binds least
  Value (*apply)(Value, Value);
};

constexpr Operator operators[] = {
    {"||", 1, [](Value a, Value b) { return truth(a.is_true() || b.is_true()); }},
    {"&&", 2, [](Value a, Value b) { return truth(a.is_true() && b.is_true()); }},
    {"|", 3, [](Value a, Value b) { return common(a, b, a.bits | b.bits); }},
    {"^", 4, [](Value a, Value b) { return common(a, b, a.bits ^ b.bits); }},
    {"&", 5, [](Value a, Value b) { return common(a, b, a.bits & b.bits); }},
    {"==", 6, [](Value a, Value b) { return truth(a.bits == b.bits); }},
    {"!=", 6, [](Value a, Value b) { return truth(a.bits != b.bits); }},
    {"<", 7, [](Value a, Value b) { return truth(is_less(a, b)); }},
    {">", 7, [](Value a, Value b) { return truth(is_less(b, a)); }},
    {"<=", 7, [](Value a, Value b) { return truth(!is_less(b, a)); }},
    {">=", 7, [](Value a, Value b) { return truth(!is_less(a, b)); }},
    {"<<", 8,
     [](Value a, Value b) {
       return Value{b.bits < 64 ? a.bits << b.bits : 0, a.is_unsigned};
     }},
    {">>", 8, shifted_right},
    {"+", 9, [](Value a, Value b) { return common(a, b, a.bits + b.bits); }},
    {"-", 9, [](Value a, Value b) { return common(a, b, a.bits - b.bits); }},
    {"*", 10, [](Value a, Value b) { return common(a, b, a.bits * b.bits); }},
    {"/", 10, quotient},
    {"%", 10, remainder},
};

/// Returns the binary operator that the token is, or nullptr.
const Operator* operator_of(const SourceToken& token) {
  const auto* known = std::ranges::find(operators, token.text, &Operator::spelling);
  return known == std::end(operators) || token.kind != Kind::punctuation ? nullptr : known;
}

/// Returns the value of an integer: decimal, 0x, 0b or octal, and unsigned with a suffix u or above INTMAX_MAX.
Value number(std::string_view digits) {
  constexpr std::pair<std::string_view, int> prefixes[] = {{"0x", 16}, {"0X", 16}, {"0b", 2}, {"0B", 2}};
  int base = digits.starts_with('0') ? 8 : 10;
  for (const auto& [prefix, its_base] : prefixes)
    if (digits.starts_with(prefix)) {
      base = its_base;
      digits.remove_prefix(prefix.size());
      break;
    }
  Value value;
  const char* const end = digits.data() + digits.size();
  const std::string_view suffix(std::from_chars(digits.data(), end, value.bits, base).ptr, end);
  value.is_unsigned = value.as_signed() < 0 || suffix.find_first_of("uU") != std::string_view::npos;
  return value;
}

/// A recursive-descent parser; each rule leaves the tokens that it did not consume.
class Expression {
 public:
  Expression(std::span<const SourceToken> tokens, bool is_cxx) : rest_(tokens), is_cxx_(is_cxx) {}

  Value conditional(int depth) {
    const Value condition = binary(1, depth);
    if (!accept("?") || depth > deepest) return condition;
    const Value yes = conditional(depth + 1);
    if (!accept(":")) return {};
    const Value no = conditional(depth + 1);
    return common(yes, no, condition.is_true() ? yes.bits : no.bits);
  }

 private:
  bool accept(std::string_view spelling) {
    if (rest_.empty() || !rest_.front().is(spelling)) return false;
    rest_ = rest_.subspan(1);
    return true;
  }

  /// Consumes operators of this or a higher precedence: of `1 + 2 * 3 == 7` with precedence 9 it leaves `== 7`.
  Value binary(int precedence, int depth) {
    Value left = unary(depth);
    while (!rest_.empty()) {
      const Operator* const operation = operator_of(rest_.front());
      if (operation == nullptr || operation->precedence < precedence) break;
      rest_ = rest_.subspan(1);
      left = operation->apply(left, binary(operation->precedence + 1, depth));
    }
    return left;
  }

  Value unary(int depth) {
    if (rest_.empty() || depth > deepest) return {};
    if (accept("!")) return truth(!unary(depth + 1).is_true());
    if (accept("+")) return unary(depth + 1);
    if (accept("-")) {
      const Value operand = unary(depth + 1);
      return {0 - operand.bits, operand.is_unsigned};
    }
    if (accept("~")) {
      const Value operand = unary(depth + 1);
      return {~operand.bits, operand.is_unsigned};
    }
    if (accept("(")) {
      const Value inside = conditional(depth + 1);
      return accept(")") ? inside : Value{};
    }
    return primary();
  }

  Value primary() {
    const SourceToken token = rest_.front();
    rest_ = rest_.subspan(1);
    if (token.kind == Kind::character) return {token.text.size() > 2 ? static_cast<std::uint64_t>(token.text[1]) : 0};
    if (token.kind != Kind::word) return number(token.text);
    if (!rest_.empty() && rest_.front().is("("))  // a macro of a header that was not read
      while (!rest_.empty() && !accept(")")) rest_ = rest_.subspan(1);
    return truth(is_cxx_ && token.is("true"));
  }

  std::span<const SourceToken> rest_;
  bool is_cxx_;
};

}  // namespace

bool condition_holds(std::span<const SourceToken> expression, bool is_cxx) {
  return Expression(expression, is_cxx).conditional(0).is_true();
}

}  // namespace iosig
