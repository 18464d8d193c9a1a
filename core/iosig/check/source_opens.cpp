#include "iosig/check/source_opens.h"

#include <fmt/format.h>

#include <algorithm>

namespace iosig {
namespace {

constexpr int deepest_statement = 200;
using Words = std::initializer_list<std::string_view>;

bool is_one_of(const SourceToken& token, Words words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return token.is(word); });
}

bool controls(const SourceToken& token) { return is_one_of(token, {"if", "while", "for", "switch"}); }

/// Returns whether a call may follow the word; any other word before a name makes the two a declaration.
bool leads_expression(const SourceToken& token) {
  return is_one_of(token, {"return", "else", "do", "case", "goto", "throw", "new", "delete", "sizeof", "and", "or",
                           "not", "co_return", "co_await", "co_yield"});
}

/// Returns whether `tail` is a suffix at a name boundary: "io::open" is a tail of "my::io::open".
bool is_tail(std::string_view tail, std::string_view whole) {
  return whole.ends_with(tail) && (whole.size() == tail.size() || whole[whole.size() - tail.size() - 1] == ':');
}

}  // namespace

SourceOpens::SourceOpens(const SourceTokens& tokens, bool is_cxx, std::span<const Opener> own, std::size_t max_work)
    : tokens_(tokens.tokens), is_cxx_(is_cxx), own_(own), work_(max_work) {
  for (const Opener& opener : own_) {
    const std::size_t name = opener.name.rfind(':') + 1;  // npos + 1 == 0
    const std::string_view last = std::string_view(opener.name).substr(name);
    if (is_tail(fmt::format("{0}::{0}", last), opener.name)) own_constructors_.insert(last);
  }
  match_brackets();
  if (is_cxx_) find_lambdas();
  find_scopes();
  if (is_cxx_) find_streams();
}

void SourceOpens::match_brackets() {
  partner_.assign(tokens_.size(), tokens_.size());
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (is_one_of(tokens_[i], {"(", "[", "{"})) {
      open.push_back(i);
    } else if (is_one_of(tokens_[i], {")", "]", "}"})) {
      const char wanted = is(i, ")") ? '(' : is(i, "]") ? '[' : '{';
      // a stray bracket must not close the braces around it
      while (!open.empty() && tokens_[open.back()].text[0] != wanted && (wanted == '{' || !is(open.back(), "{")))
        open.pop_back();
      if (open.empty() || tokens_[open.back()].text[0] != wanted) continue;
      partner_[i] = open.back();
      partner_[open.back()] = i;
      open.pop_back();
    }
  }
}

void SourceOpens::find_lambdas() {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (!is(i, "[") || is(i + 1, "[")) continue;
    const bool starts =
        i == 0 || leads_expression(tokens_[i - 1]) ||
        (tokens_[i - 1].kind == SourceToken::Kind::punctuation && !is_one_of(tokens_[i - 1], {")", "]", "["}));
    std::size_t at = partner_[i] + 1;
    if (!starts || at >= tokens_.size() ||
        !(is_one_of(tokens_[at], {"(", "{", "<", "->"}) ||
          is_one_of(tokens_[at], {"mutable", "noexcept", "constexpr"})))
      continue;
    while (spend(1) && at < tokens_.size() && !is_one_of(tokens_[at], {"{", "}", ";", ")"}))
      at = is(at, "(") ? partner_[at] + 1 : at + 1;
    if (is(at, "{")) lambda_bodies_.insert(at);
  }
}

void SourceOpens::find_scopes() {
  struct Enclosing {
    Scope scope;
    std::size_t head;  ///< first token of the declaration or statement
    int parentheses;
  };
  std::vector<Enclosing> stack = {{Scope::declarations, 0, 0}};
  scope_.reserve(tokens_.size());
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    Enclosing& around = stack.back();
    scope_.push_back(around.scope);
    if (is(i, "(") || is(i, "[")) ++around.parentheses;
    if (is(i, ")") || is(i, "]")) around.parentheses = std::max(0, around.parentheses - 1);
    if (is(i, ";") && around.parentheses == 0) around.head = i + 1;
    if (is(i, "{")) {
      const Scope scope = scope_of_brace(i, around.head, around.scope, around.parentheses > 0);
      if (scope == Scope::declarations) {
        const bool has_name_space =
            std::any_of(tokens_.begin() + static_cast<std::ptrdiff_t>(around.head),
                        tokens_.begin() + static_cast<std::ptrdiff_t>(i), [](const SourceToken& token) {
                          return is_one_of(token, {"namespace", "extern"});
                        });
        (has_name_space ? namespace_bodies_ : class_bodies_).insert(i);
      }
      const bool in_function = around.scope != Scope::declarations;
      if (scope == Scope::block && !lambda_bodies_.contains(i) && (!in_function || is_nested_function(i)))
        function_bodies_.insert(i);
      stack.push_back({scope, i + 1, 0});
    } else if (is(i, "}") && stack.size() > 1) {
      const bool goes_on = around.scope == Scope::initialiser || stack[stack.size() - 2].parentheses > 0;
      stack.pop_back();
      if (!goes_on) stack.back().head = i + 1;
    }
  }
}

/// Returns whether the brace opens the body of a nested function (GNU C). `FOR_EACH(...) {` has no type before its
/// name.
bool SourceOpens::is_nested_function(std::size_t brace) {
  if (is_cxx_ || brace == 0 || !is(brace - 1, ")") || partner_[brace - 1] >= brace) return false;
  const std::size_t parameters = partner_[brace - 1];
  return parameters > 0 && is_word(parameters - 1) && !controls(tokens_[parameters - 1]) &&
         is_declared_here(parameters - 1);
}

/// Returns the kind of scope that the brace opens, judged by its declaration or statement, which begins at `head`.
SourceOpens::Scope SourceOpens::scope_of_brace(std::size_t brace, std::size_t head, Scope around, bool in_parentheses) {
  if (lambda_bodies_.contains(brace)) return Scope::block;
  if (in_parentheses || around == Scope::initialiser)
    return around == Scope::declarations ? Scope::initialiser : around;
  if (!spend(brace - head)) return Scope::block;
  std::size_t parameters = 0, initialiser = 0, type = 0;
  bool is_namespace = false, is_enum = false;
  for (std::size_t i = head; i < brace; ++i) {
    if (is_one_of(tokens_[i], {"class", "struct", "union"})) type = i + 1;
    if (is(i, "enum")) is_enum = true;
    if (is(i, "namespace")) is_namespace = true;
    if (is(i, "=") && !(i > 0 && is(i - 1, "operator"))) initialiser = i + 1;
    if (is(i, "<") && i > 0 && is(i - 1, "template")) {  // its `class` does not declare one
      for (int depth = 0; i < brace; ++i) {
        depth += is(i, "<") ? 1 : is(i, ">") ? -1 : is(i, ">>") ? -2 : 0;
        if (depth <= 0) break;
      }
    } else if (is(i, "(") && partner_[i] < brace) {
      const bool is_attribute = i > 0 && is_one_of(tokens_[i - 1], {"__attribute__", "alignas", "__declspec"});
      if (!is_attribute) parameters = i + 1;
      i = partner_[i];
    }
  }
  const bool is_class = type > parameters && initialiser == 0;
  if (around == Scope::block) return is_class ? Scope::declarations : Scope::block;
  if (is_namespace || (brace > head && tokens_[brace - 1].kind == SourceToken::Kind::string))
    return Scope::declarations;
  if (is_enum) return Scope::initialiser;
  if (is_class) return Scope::declarations;
  if (initialiser > parameters) return Scope::initialiser;
  if (parameters == 0) return brace == head ? Scope::block : Scope::initialiser;
  // `S() : member{1} {`: a brace after a name belongs to the member
  const bool in_member_list = brace > 0 && is_word(brace - 1) && [&] {
    for (std::size_t i = parameters; i < brace; ++i)
      if (is(i, ":")) return true;
    return false;
  }();
  return in_member_list ? Scope::initialiser : Scope::block;
}

// ---- C++ streams

std::size_t SourceOpens::behind_type(std::size_t type) {
  std::size_t at = type + 1;
  if (!is(at, "<")) return at;
  for (int depth = 0; at < tokens_.size() && spend(1); ++at) {
    depth += is(at, "<") ? 1 : is(at, ">") ? -1 : is(at, ">>") ? -2 : 0;
    if (depth <= 0 || is(at, ";")) return at + 1;
  }
  return at;
}

void SourceOpens::find_streams() {
  stream_types_ = {"ofstream", "ifstream", "fstream",        "filebuf",        "wofstream",     "wifstream",
                   "wfstream", "wfilebuf", "basic_ofstream", "basic_ifstream", "basic_fstream", "basic_filebuf"};
  std::vector<std::size_t> uses;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (!is_word(i)) continue;
    if (is_one_of(tokens_[i], {"class", "struct"}) && is_word(i + 1)) {
      bool has_bases = false;
      for (std::size_t at = i + 2; spend(1) && at < tokens_.size() && !is_one_of(tokens_[at], {"{", ";", "("}); ++at) {
        has_bases = has_bases || is(at, ":");
        if (has_bases && stream_types_.contains(tokens_[at].text)) derived_types_.insert(tokens_[i + 1].text);
      }
    }
    if (!stream_types_.contains(tokens_[i].text) && !derived_types_.contains(tokens_[i].text)) continue;
    uses.push_back(i);
    std::size_t first = i;
    while (spend(1) && first >= 2 && is(first - 1, "::") && is_word(first - 2)) first -= 2;
    if (first >= 3 && is(first - 1, "=") && is(first - 3, "using")) stream_types_.insert(tokens_[first - 2].text);
    if (first >= 1 && is(first - 1, "typedef") && is_word(behind_type(i)))
      stream_types_.insert(tokens_[behind_type(i)].text);
    if (first >= 1 && is(first - 1, "new")) --first;
    if (first >= 2 && is(first - 1, "=") && is_word(first - 2)) stream_variables_.insert(tokens_[first - 2].text);
  }
  for (const std::size_t use : uses) find_stream_variables(use);
}

/// Finds the variables of `std::ofstream a, *b("x"), c{d};` and of templates of the type: `unique_ptr<ofstream> e`.
void SourceOpens::find_stream_variables(std::size_t type) {
  for (std::size_t at = behind_type(type); at < tokens_.size() && spend(1); ++at) {
    while (spend(1) && at < tokens_.size() && is_one_of(tokens_[at], {"*", "&", "&&", ">", ">>", "const"})) ++at;
    if (!is_word(at)) return;
    stream_variables_.insert(tokens_[at].text);
    ++at;
    if (at < tokens_.size() && is_one_of(tokens_[at], {"(", "{", "["})) at = partner_[at] + 1;
    if (!is(at, ",")) return;
  }
}

/// Returns whether `bracket` holds arguments with which a constructor opens a file.
bool SourceOpens::opens_a_file(std::size_t bracket) {
  if (bracket >= tokens_.size() || !is_one_of(tokens_[bracket], {"(", "{"})) return false;
  std::size_t at = bracket + 1;
  if (at >= partner_[bracket] || partner_[bracket] == tokens_.size()) return false;
  if (is(at, "std") && is(at + 1, "::")) at += 2;
  if (is(at, "move") && is(at + 1, "(")) return false;
  // a parameter: this declares a function, as in `std::ofstream make(const char *path);`
  if (is_one_of(tokens_[at], {"const", "auto", "void", "char", "int", "bool", "unsigned", "long"})) return false;
  while (spend(1) && is_word(at) && is(at + 1, "::")) at += 2;
  if (!is_word(at)) return true;
  at = behind_type(at);
  const bool by_reference = at < tokens_.size() && is_one_of(tokens_[at], {"&", "&&", "*"});
  return !(is_word(at) || (by_reference && (is_word(at + 1) || is(at + 1, ")") || is(at + 1, ","))));
}

void SourceOpens::look_at_stream(std::size_t type, FollowingOpens& found) {
  std::size_t at = behind_type(type);
  if (type > 0 && is(type - 1, "~")) return;
  if (opens_a_file(at)) return found.calls.push_back(tokens_[type]);
  while (spend(1) && is(at, "const")) ++at;
  for (; spend(1) && is_word(at); at += is_word(at + 1) ? 1 : 0) {
    if (opens_a_file(at + 1)) found.calls.push_back(tokens_[at]);
    ++at;
    if (at < tokens_.size() && is_one_of(tokens_[at], {"(", "{"})) at = partner_[at] + 1;
    if (!is(at, ",")) return;
  }
}

// ---- calls

/// Returns whether this is a declaration and not a call: `int open(const char *path)`, `FILE *fopen(...)`.
bool SourceOpens::is_declared_here(std::size_t name) {
  std::size_t before = name;
  while (spend(1) && before > 0 && is_one_of(tokens_[before - 1], {"*", "&"})) --before;
  return before > 0 && is_word(before - 1) && !leads_expression(tokens_[before - 1]);
}

void SourceOpens::look_at_word(std::size_t at, FollowingOpens& found) {
  const std::string_view word = tokens_[at].text;
  if (own_constructors_.contains(word) || stream_types_.contains(word)) return look_at_stream(at, found);
  if (!is(at + 1, "(") || partner_[at + 1] == tokens_.size()) return;
  std::size_t first = at;  // of the qualified name `a::b::open`
  while (spend(1) && first >= 2 && is(first - 1, "::") && is_word(first - 2)) first -= 2;
  std::string name;
  for (std::size_t part = first; part <= at; ++part) name += tokens_[part].text;
  const bool is_global = first > 0 && is(first - 1, "::");
  const bool is_member = first > 0 && (is(first - 1, ".") || is(first - 1, "->"));
  if (!is_member && is_declared_here(is_global ? first - 1 : first)) return;
  if (!spend(own_.size())) return;
  for (const Opener& opener : own_) {
    const bool fits = is_member ? is_tail(name, opener.name) && opener.name.find("::") != std::string::npos
                                : is_tail(name, opener.name) || is_tail(opener.name, name);
    if (fits) return found.calls.push_back(tokens_[at]);
  }
  if (!is_member) {
    if (is_cxx_ && name.starts_with("std::")) name.erase(0, 5);
    const auto known = known_openers();
    if (std::ranges::find(known, name, &Opener::name) != known.end()) found.calls.push_back(tokens_[at]);
  } else if (is_cxx_ && name == "open" && partner_[at + 1] > at + 2) {
    if (first >= 2 && is_word(first - 2) && stream_variables_.contains(tokens_[first - 2].text))
      found.calls.push_back(tokens_[at]);
    else
      found.may_open = true;
  }
}

/// Returns the position after the parentheses of `if (...)`, `for (...)`, ...
std::size_t SourceOpens::after_condition(std::size_t keyword) const {
  std::size_t at = keyword + 1;
  while (at < tokens_.size() && (is(at, "constexpr") || is(at, "consteval") || is(at, "!"))) ++at;
  return is(at, "(") ? std::min(partner_[at] + 1, tokens_.size()) : at;
}

/// Collects the opens in a range. `skip_bodies`: of if, while, for and switch only the part before the body.
void SourceOpens::collect(std::size_t begin, std::size_t end, bool skip_bodies, FollowingOpens& found) {
  for (std::size_t i = begin; i < end && spend(1); ++i) {
    if (skip_bodies && controls(tokens_[i])) {
      const std::size_t body = after_condition(i);
      for (std::size_t at = i + 1; at < body && spend(1); ++at)
        if (is_word(at)) look_at_word(at, found);
      const bool has_else = is(i, "if");
      i = end_of_statement(body, 0);
      while (has_else && is(i, "else")) i = end_of_statement(i + 1, 0);
      --i;
    } else if (lambda_bodies_.contains(i) || class_bodies_.contains(i) || function_bodies_.contains(i)) {
      i = partner_[i];  // the code of another function
    } else if (is_word(i)) {
      look_at_word(i, found);
    }
  }
}

std::size_t SourceOpens::end_of_simple_statement(std::size_t at) {
  for (; at < tokens_.size() && spend(1); ++at) {
    if (is(at, ";")) return at + 1;
    if (is(at, "}")) return at;
    if (function_bodies_.contains(at) || namespace_bodies_.contains(at)) return at;
    // `FOR_EACH(...) { ... }`: a statement by a macro of a header that was not read
    const bool has_body = is(at, "{") && !lambda_bodies_.contains(at) && at > 0 && is(at - 1, ")") &&
                          partner_[at - 1] > 0 && partner_[at - 1] < at && is_word(partner_[at - 1] - 1);
    if (is_one_of(tokens_[at], {"(", "[", "{"})) at = partner_[at];
    if (has_body) return std::min(at + 1, tokens_.size());
  }
  return tokens_.size();
}

/// Returns the position after the statement that begins at `at`.
std::size_t SourceOpens::end_of_statement(std::size_t at, int depth) {
  const std::size_t none = tokens_.size();
  while (at + 1 < none && spend(1)) {  // skip labels, and pragmas that do not belong to this statement
    if (tokens_[at].kind == SourceToken::Kind::pragma) {
      ++at;
    } else if (is(at, "default") || (is_word(at) && is(at + 1, ":"))) {
      at += 2;
    } else if (is(at, "case")) {
      while (at < none && spend(1) && !is_one_of(tokens_[at], {":", ";", "{", "}"})) ++at;
      if (!is(at, ":")) break;
      ++at;
    } else {
      break;
    }
  }
  if (at >= none || depth > deepest_statement || !spend(1)) return none;
  if (is(at, "{")) return std::min(partner_[at] + 1, none);
  if (controls(tokens_[at])) {
    const bool has_else = is(at, "if");
    at = end_of_statement(after_condition(at), depth + 1);
    return has_else && is(at, "else") ? end_of_statement(at + 1, depth + 1) : at;
  }
  if (is(at, "do")) {
    at = end_of_statement(at + 1, depth + 1);
    return is(at, "while") ? std::min(after_condition(at) + 1, none) : at;
  }
  if (is(at, "try")) {
    at = end_of_statement(at + 1, depth + 1);
    while (is(at, "catch")) at = end_of_statement(after_condition(at), depth + 1);
    return at;
  }
  return end_of_simple_statement(at);
}

FollowingOpens SourceOpens::after(std::size_t pragma) {
  FollowingOpens found;
  std::size_t begin = pragma + 1;
  for (; begin < tokens_.size() && spend(1) && tokens_[begin].kind == SourceToken::Kind::pragma; ++begin) {
    found.pragma_follows = tokens_[begin].is("sig");
    if (found.pragma_follows) return found;
  }
  const std::size_t end = end_of_statement(begin, 0);
  collect(begin, end, true, found);
  if (found.calls.empty() && !found.may_open) collect(begin, end, false, found);
  return found;
}

}  // namespace iosig
