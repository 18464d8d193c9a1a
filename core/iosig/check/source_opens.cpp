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

/// Returns whether the `[` at `i` can begin a lambda: it follows no operand, which it would index, and the matching `]`
/// is followed by what a lambda has. `run([&](int n) mutable { ... })` does; `table[n] = 1` does not.
bool SourceOpens::begins_lambda(std::size_t i) const {
  if (!is(i, "[") || is(i + 1, "[")) return false;
  const bool follows_operand =
      i > 0 && !leads_expression(tokens_[i - 1]) &&
      (tokens_[i - 1].kind != SourceToken::Kind::punctuation || is_one_of(tokens_[i - 1], {")", "]", "["}));
  const std::size_t next = partner_[i] + 1;
  return !follows_operand && next < tokens_.size() &&
         is_one_of(tokens_[next], {"(", "{", "<", "->", "mutable", "noexcept", "constexpr"});
}

void SourceOpens::find_lambdas() {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (!begins_lambda(i)) continue;
    std::size_t at = partner_[i] + 1;
    while (spend(1) && at < tokens_.size() && !is_one_of(tokens_[at], {"{", "}", ";", ")"}))
      at = is(at, "(") ? partner_[at] + 1 : at + 1;
    if (is(at, "{")) lambda_bodies_.insert(at);
  }
}

/// Walks through all braces once, with a stack of those that are open:
///
///   namespace io {                     declarations, a namespace body
///   struct File {                      declarations, a class body
///     int id = {7};                    initialiser
///     void open() { if (id) { ... } }  block, a function body; block
///   }; }
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
      note_body(i, around.head, scope, around.scope != Scope::declarations);
      stack.push_back({scope, i + 1, 0});
    } else if (is(i, "}") && stack.size() > 1) {
      const bool goes_on = around.scope == Scope::initialiser || stack[stack.size() - 2].parentheses > 0;
      stack.pop_back();
      if (!goes_on) stack.back().head = i + 1;
    }
  }
}

/// Records the brace if it opens the body of a namespace, class or function.
void SourceOpens::note_body(std::size_t brace, std::size_t head, Scope scope, bool in_function) {
  if (scope == Scope::declarations) {
    const auto first = tokens_.begin() + static_cast<std::ptrdiff_t>(head);
    const auto last = tokens_.begin() + static_cast<std::ptrdiff_t>(brace);
    const bool is_namespace = std::any_of(first, last, [](const SourceToken& token) {
      return is_one_of(token, {"namespace", "extern"});
    });
    (is_namespace ? namespace_bodies_ : class_bodies_).insert(brace);
  }
  if (scope == Scope::block && !lambda_bodies_.contains(brace) && (!in_function || is_nested_function(brace)))
    function_bodies_.insert(brace);
}

/// Returns whether the brace opens the body of a nested function (GNU C). `FOR_EACH(...) {` has no type before its
/// name.
bool SourceOpens::is_nested_function(std::size_t brace) {
  if (is_cxx_ || brace == 0 || !is(brace - 1, ")") || partner_[brace - 1] >= brace) return false;
  const std::size_t parameters = partner_[brace - 1];
  return parameters > 0 && is_word(parameters - 1) && !controls(tokens_[parameters - 1]) &&
         is_declared_here(parameters - 1);
}

/// What stands between the beginning of a declaration or statement and its brace. Positions are those of the tokens
/// after the last `(`, `=` and `class`, or 0.
///
///   int open(const char *path) {        parameters
///   struct Stat now = {                 type, initialiser
///   template <class T> class File {     type: that of `File`, not of `T`
struct SourceOpens::Head {
  std::size_t parameters = 0, initialiser = 0, type = 0;
  bool is_namespace = false, is_enum = false;

  [[nodiscard]] bool is_class() const { return type > parameters && initialiser == 0; }
};

SourceOpens::Head SourceOpens::read_head(std::size_t begin, std::size_t brace) const {
  Head head;
  for (std::size_t i = begin; i < brace; ++i) {
    if (is_one_of(tokens_[i], {"class", "struct", "union"})) head.type = i + 1;
    if (is(i, "enum")) head.is_enum = true;
    if (is(i, "namespace")) head.is_namespace = true;
    if (is(i, "=") && !(i > 0 && is(i - 1, "operator"))) head.initialiser = i + 1;
    if (is(i, "<") && i > 0 && is(i - 1, "template")) {
      i = end_of_template_parameters(i, brace);
    } else if (is(i, "(") && partner_[i] < brace) {
      const bool is_attribute = i > 0 && is_one_of(tokens_[i - 1], {"__attribute__", "alignas", "__declspec"});
      if (!is_attribute) head.parameters = i + 1;
      i = partner_[i];
    }
  }
  return head;
}

/// Returns the position of the `>` that matches the `<` at `at`, or `end`.
std::size_t SourceOpens::end_of_template_parameters(std::size_t at, std::size_t end) const {
  for (int depth = 0; at < end; ++at) {
    depth += is(at, "<") ? 1 : is(at, ">") ? -1 : is(at, ">>") ? -2 : 0;
    if (depth <= 0) return at;
  }
  return end;
}

/// Returns the kind of scope that the brace opens, judged by its declaration or statement, which begins at `begin`.
///
///   extern "C" {               declarations
///   class File : Base {        declarations
///   enum Mode {                initialiser
///   const char *names[] = {    initialiser
///   int open(const char *p) {  block
///   File() : id{               initialiser, of a member
///   File() : id{7} {           block
SourceOpens::Scope SourceOpens::scope_of_brace(std::size_t brace, std::size_t begin, Scope around,
                                               bool in_parentheses) {
  if (lambda_bodies_.contains(brace)) return Scope::block;
  if (in_parentheses || around == Scope::initialiser)
    return around == Scope::declarations ? Scope::initialiser : around;
  if (!spend(brace - begin)) return Scope::block;
  const Head head = read_head(begin, brace);
  if (around == Scope::block) return head.is_class() ? Scope::declarations : Scope::block;
  const bool is_extern_c = brace > begin && tokens_[brace - 1].kind == SourceToken::Kind::string;
  if (head.is_namespace || is_extern_c) return Scope::declarations;
  if (head.is_enum) return Scope::initialiser;
  if (head.is_class()) return Scope::declarations;
  if (head.initialiser > head.parameters) return Scope::initialiser;
  if (head.parameters == 0) return brace == begin ? Scope::block : Scope::initialiser;
  return is_word(brace - 1) && has_member_list(head.parameters, brace) ? Scope::initialiser : Scope::block;
}

/// Returns whether a constructor's list of members, `: id{7}, name{"x"}`, begins in the range.
bool SourceOpens::has_member_list(std::size_t begin, std::size_t end) const {
  for (std::size_t i = begin; i < end; ++i)
    if (is(i, ":")) return true;
  return false;
}

// ---- C++ streams

/// Returns the position after a type and its template arguments: after `basic_ofstream<char>`.
std::size_t SourceOpens::after_type(std::size_t type) {
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
    if (is_one_of(tokens_[i], {"class", "struct"}) && is_word(i + 1)) note_derived_type(i + 1);
    if (!stream_types_.contains(tokens_[i].text) && !derived_types_.contains(tokens_[i].text)) continue;
    uses.push_back(i);
    note_names_before(i);
  }
  for (const std::size_t use : uses) find_stream_variables(use);
}

/// Records the class `name` of `class Log : public std::ofstream {`.
void SourceOpens::note_derived_type(std::size_t name) {
  bool has_bases = false;
  for (std::size_t at = name + 1; spend(1) && at < tokens_.size() && !is_one_of(tokens_[at], {"{", ";", "("}); ++at) {
    has_bases = has_bases || is(at, ":");
    if (has_bases && stream_types_.contains(tokens_[at].text)) derived_types_.insert(tokens_[name].text);
  }
}

/// Records the types and variables that stand before or after the stream's `type`: `using Out = std::ofstream`,
/// `typedef std::ofstream Out`, `auto out = new std::ofstream(...)`.
void SourceOpens::note_names_before(std::size_t type) {
  std::size_t first = first_of_name(type);
  if (first >= 3 && is(first - 1, "=") && is(first - 3, "using")) stream_types_.insert(tokens_[first - 2].text);
  if (first >= 1 && is(first - 1, "typedef") && is_word(after_type(type)))
    stream_types_.insert(tokens_[after_type(type)].text);
  if (first >= 1 && is(first - 1, "new")) --first;
  if (first >= 2 && is(first - 1, "=") && is_word(first - 2)) stream_variables_.insert(tokens_[first - 2].text);
}

/// Finds the variables of `std::ofstream a, *b("x"), c{d};` and of templates of the type: `unique_ptr<ofstream> e`.
void SourceOpens::find_stream_variables(std::size_t type) {
  for (std::size_t at = after_type(type); at < tokens_.size() && spend(1); ++at) {
    while (spend(1) && at < tokens_.size() && is_one_of(tokens_[at], {"*", "&", "&&", ">", ">>", "const"})) ++at;
    if (!is_word(at)) return;
    stream_variables_.insert(tokens_[at].text);
    ++at;
    if (at < tokens_.size() && is_one_of(tokens_[at], {"(", "{", "["})) at = partner_[at] + 1;
    if (!is(at, ",")) return;
  }
}

/// Returns whether `bracket` holds arguments with which a constructor opens a file.
///
///   std::ofstream out("out.txt");            true
///   std::ofstream out{path, std::ios::app};  true
///   std::ofstream out();                     false: no argument
///   std::ofstream out(std::move(other));     false: the file is open already
///   std::ofstream make(const char *path);    false: declares a function
///   std::ofstream make(Name name);           false: declares a function
bool SourceOpens::opens_a_file(std::size_t bracket) {
  if (bracket >= tokens_.size() || !is_one_of(tokens_[bracket], {"(", "{"})) return false;
  std::size_t at = bracket + 1;
  if (at >= partner_[bracket] || partner_[bracket] == tokens_.size()) return false;
  if (is(at, "std") && is(at + 1, "::")) at += 2;
  if (is(at, "move") && is(at + 1, "(")) return false;
  if (is_one_of(tokens_[at], {"const", "auto", "void", "char", "int", "bool", "unsigned", "long"})) return false;
  while (spend(1) && is_word(at) && is(at + 1, "::")) at += 2;
  if (!is_word(at)) return true;
  at = after_type(at);
  const bool by_reference = at < tokens_.size() && is_one_of(tokens_[at], {"&", "&&", "*"});
  return !(is_word(at) || (by_reference && (is_word(at + 1) || is(at + 1, ")") || is(at + 1, ","))));
}

void SourceOpens::look_at_stream(std::size_t type, FollowingOpens& found) {
  std::size_t at = after_type(type);
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

/// Returns the position of `a` in the qualified name `a::b::open`, whose last part is at `last`.
std::size_t SourceOpens::first_of_name(std::size_t last) {
  while (spend(1) && last >= 2 && is(last - 1, "::") && is_word(last - 2)) last -= 2;
  return last;
}

/// Returns whether a function of the user's (`#pragma sigopen`) is called by `name`. A member is called without the
/// name of its class: `file.open()` may be `io::File::open`.
bool SourceOpens::is_own(std::string_view name, bool is_member) const {
  return std::ranges::any_of(own_, [&](const Opener& opener) {
    return is_member ? is_tail(name, opener.name) && opener.name.find("::") != std::string::npos
                     : is_tail(name, opener.name) || is_tail(opener.name, name);
  });
}

/// Records the word if it opens a file.
///
///   std::ofstream out("x")   constructor of a stream
///   io::Writer w("x")        constructor that `#pragma sigopen io::Writer::Writer(1)` declares
///   io::start("x")           function that `#pragma sigopen io::start(1)` declares
///   ::open("x", O_RDWR)      known function
///   out.open("x")            member function of a variable that is a stream
///   file.open("x")           perhaps: the type of `file` is not visible
///   int open(const char *);  no: a declaration
void SourceOpens::look_at_word(std::size_t at, FollowingOpens& found) {
  const std::string_view word = tokens_[at].text;
  if (own_constructors_.contains(word) || stream_types_.contains(word)) return look_at_stream(at, found);
  if (!is(at + 1, "(") || partner_[at + 1] == tokens_.size()) return;
  const std::size_t first = first_of_name(at);
  std::string name;
  for (std::size_t part = first; part <= at; ++part) name += tokens_[part].text;
  const bool is_global = first > 0 && is(first - 1, "::");
  const bool is_member = first > 0 && (is(first - 1, ".") || is(first - 1, "->"));
  if (!is_member && is_declared_here(is_global ? first - 1 : first)) return;
  if (!spend(own_.size())) return;
  if (is_own(name, is_member)) return found.calls.push_back(tokens_[at]);
  if (!is_member) {
    if (is_cxx_ && name.starts_with("std::")) name.erase(0, 5);
    const auto known = known_openers();
    if (std::ranges::find(known, name, &Opener::name) != known.end()) found.calls.push_back(tokens_[at]);
  } else if (is_cxx_ && name == "open" && partner_[at + 1] > at + 2) {
    const bool is_stream = first >= 2 && is_word(first - 2) && stream_variables_.contains(tokens_[first - 2].text);
    if (is_stream)
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

/// Skips labels (`again:`, `case 1:`, `default:`) and pragmas, which do not belong to the statement after them.
std::size_t SourceOpens::after_labels(std::size_t at) {
  while (at + 1 < tokens_.size() && spend(1)) {
    if (tokens_[at].kind == SourceToken::Kind::pragma) {
      ++at;
    } else if (is(at, "default") || (is_word(at) && is(at + 1, ":"))) {
      at += 2;
    } else if (is(at, "case")) {
      while (at < tokens_.size() && spend(1) && !is_one_of(tokens_[at], {":", ";", "{", "}"})) ++at;
      if (!is(at, ":")) return at;
      ++at;
    } else {
      return at;
    }
  }
  return at;
}

/// Returns the position after the statement that begins at `at`, with all its parts: after the last `;` or `}` of
/// `if (a) b(); else { c(); }`.
std::size_t SourceOpens::end_of_statement(std::size_t at, int depth) {
  const std::size_t none = tokens_.size();
  at = after_labels(at);
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
