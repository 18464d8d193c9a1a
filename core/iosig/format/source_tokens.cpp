#include "iosig/format/source_tokens.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <span>

namespace iosig {
namespace {

using Kind = SourceToken::Kind;

constexpr int deepest_include = 200;
constexpr int deepest_condition = 100;  ///< parentheses in an #if
constexpr int deepest_call = 200;       ///< macro calls in the arguments of macro calls

bool is_word_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || (static_cast<unsigned char>(c) & 0x80);
}
bool is_word_character(char c) { return is_word_start(c) || std::isdigit(static_cast<unsigned char>(c)); }

// ---- text -> tokens

class Lexer {
 public:
  Lexer(std::string_view text, std::uint32_t file, std::deque<std::string>& spellings)
      : text_(text), file_(file), spellings_(spellings) {}

  std::vector<SourceToken> all() {
    std::vector<SourceToken> tokens;
    for (skip_blanks(); at_ < text_.size(); skip_blanks()) {
      SourceToken token;
      token.starts_line = starts_line_;
      token.after_blank = after_blank_;
      const std::size_t begin = at_;
      token.kind = take();
      token.at = token.use = {file_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(at_)};
      token.text = spelling(begin);
      tokens.push_back(token);
      starts_line_ = after_blank_ = false;
    }
    return tokens;
  }

 private:
  /// Steps over a backslash at the end of a line: such lines are one.
  void join_lines() {
    while (at_ + 1 < text_.size() && text_[at_] == '\\') {
      const std::size_t line_end = text_[at_ + 1] == '\r' ? at_ + 2 : at_ + 1;
      if (line_end >= text_.size() || text_[line_end] != '\n') return;
      at_ = line_end + 1;
      is_joined_ = true;
    }
  }
  char peek() {
    join_lines();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  /// The character after the next one.
  char peek_second() {
    join_lines();
    const std::size_t here = at_;
    const bool joined = is_joined_;
    if (at_ < text_.size()) ++at_;
    const char second = peek();
    at_ = here;
    is_joined_ = joined;
    return second;
  }
  void step() {
    join_lines();
    if (at_ < text_.size()) ++at_;
  }

  std::string_view spelling(std::size_t begin) {
    const std::string_view raw = text_.substr(begin, at_ - begin);
    if (!is_joined_) return raw;
    is_joined_ = false;
    std::string& joined = spellings_.emplace_back();
    for (std::size_t i = 0; i < raw.size(); ++i) {
      const std::size_t line_end = raw.substr(i + 1).starts_with('\r') ? i + 2 : i + 1;
      if (raw[i] == '\\' && line_end < raw.size() && raw[line_end] == '\n')
        i = line_end;
      else
        joined += raw[i];
    }
    return joined;
  }

  void skip_blanks() {
    for (; at_ < text_.size();) {
      const char c = peek();
      if (c == '\n') {
        starts_line_ = after_blank_ = true;
        ++at_;
      } else if (std::isspace(static_cast<unsigned char>(c)) || (c == '\0' && at_ < text_.size())) {
        after_blank_ = true;
        ++at_;
      } else if (c == '/' && peek_second() == '/') {
        while (at_ < text_.size() && peek() != '\n') step();
      } else if (c == '/' && peek_second() == '*') {
        const std::size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
        after_blank_ = true;
      } else {
        break;
      }
    }
    is_joined_ = false;
  }

  Kind take() {
    const char c = peek();
    if (std::isdigit(static_cast<unsigned char>(c)) ||
        (c == '.' && std::isdigit(static_cast<unsigned char>(peek_second())))) {
      take_number();
      return Kind::number;
    }
    if (c == '"' || c == '\'') return take_quoted(c);
    if (is_word_start(c)) {
      const std::size_t begin = at_;
      while (is_word_character(peek())) step();
      const std::string_view word = text_.substr(begin, at_ - begin);
      const char next = at_ < text_.size() ? text_[at_] : '\0';
      constexpr std::array<std::string_view, 9> prefixes = {"L", "u", "U", "u8", "R", "LR", "uR", "UR", "u8R"};
      if ((next != '"' && next != '\'') || std::ranges::find(prefixes, word) == prefixes.end()) return Kind::word;
      if (next == '"' && word.ends_with('R')) return take_raw();
      return take_quoted(next);
    }
    step();
    take_rest_of_operator(c);
    return Kind::punctuation;
  }

  void take_number() {
    for (char last = '\0';; last = peek(), step()) {
      const char c = peek();
      const bool exponent = last == 'e' || last == 'E' || last == 'p' || last == 'P';
      const bool separator = c == '\'' && is_word_character(peek_second());
      if (!is_word_character(c) && c != '.' && !separator && !((c == '+' || c == '-') && exponent)) return;
    }
  }

  Kind take_quoted(char quote) {
    step();
    for (char c = peek(); at_ < text_.size() && c != quote && c != '\n'; c = peek()) {
      if (c == '\\') step();
      step();
    }
    if (at_ < text_.size() && peek() == quote) step();
    return quote == '"' ? Kind::string : Kind::character;
  }

  /// R"x(...)x": nothing in it is joined or escaped.
  Kind take_raw() {
    const std::size_t open = text_.find('(', at_);
    if (open == std::string_view::npos || open - at_ > 17) return take_quoted('"');
    const std::string end = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
    const std::size_t close = text_.find(end, open);
    at_ = close == std::string_view::npos ? text_.size() : close + end.size();
    return Kind::string;
  }

  /// Only the operators that would mean something else in pieces.
  void take_rest_of_operator(char c) {
    const char next = peek();
    constexpr std::array<std::string_view, 13> pairs = {
        "::", "->", "##", "==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "++", "--"};
    const std::array<char, 2> both = {c, next};
    if (std::ranges::find(pairs, std::string_view(both.data(), 2)) != pairs.end()) step();
  }

  std::string_view text_;
  std::uint32_t file_;
  std::deque<std::string>& spellings_;
  std::size_t at_ = 0;
  bool starts_line_ = true, after_blank_ = false, is_joined_ = false;
};

// ---- macros

struct Macro {
  bool takes_arguments = false, is_variadic = false;
  std::vector<std::string_view> parameters;
  std::vector<SourceToken> body;
};

/// The macros that a token has come out of; it is not expanded by them again.
struct Hidden {
  std::string_view name;
  const Hidden* next;

  static bool contains(const Hidden* hidden, std::string_view name) {
    for (; hidden != nullptr; hidden = hidden->next)
      if (hidden->name == name) return true;
    return false;
  }
};
struct MacroToken : SourceToken {
  const Hidden* hidden = nullptr;
};

using Tokens = std::vector<SourceToken>;
using MacroTokens = std::vector<MacroToken>;

class Preprocessor {
 public:
  Preprocessor(const SourceLanguage& language, const ReadInclude& read_include)
      : language_(language), read_include_(read_include) {
    // what every GCC on Linux defines and programs ask for
    for (const auto& [name, value] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
             {"__GNUC__", "12"}, {"__STDC__", "1"}, {"__linux__", "1"}, {"__unix__", "1"}, {"__x86_64__", "1"}})
      define(name, value);
    if (language.is_cxx) {
      define("__cplusplus", "201703L");
      define("_GNU_SOURCE", "1");
    } else {
      define("__STDC_VERSION__", "201710L");
    }
    for (const auto& [name, value] : language.definitions) define(name, value);
  }

  SourceTokens run(std::string path, std::string text) {
    read(add_file(std::move(path), std::move(text)), 0);
    return std::move(result_);
  }

 private:
  struct Condition {
    bool is_active;    ///< this branch is read
    bool was_taken;    ///< a branch has been read
    bool is_enclosed;  ///< in a part that is not read
  };

  std::uint32_t add_file(std::string path, std::string text) {
    text.resize(std::min<std::size_t>(text.size(), UINT32_MAX - 1));
    result_.files.push_back({std::move(path), std::move(text)});
    return static_cast<std::uint32_t>(result_.files.size() - 1);
  }

  std::string_view keep(std::string text) { return result_.spellings.emplace_back(std::move(text)); }

  void define(std::string_view name, std::string_view value) {
    Macro macro;
    macro.body = Lexer(keep(std::string(value)), 0, result_.spellings).all();
    for (SourceToken& token : macro.body) token.at = token.use = {};
    macros_.insert_or_assign(keep(std::string(name)), std::move(macro));
  }

  bool spend(std::size_t tokens) {
    spent_ += tokens;
    result_.is_cut = result_.is_cut || spent_ > language_.most_tokens;
    return !result_.is_cut;
  }

  [[nodiscard]] bool is_active(const std::vector<Condition>& conditions) const {
    return conditions.empty() || conditions.back().is_active;
  }

  void read(std::uint32_t file, int depth) {
    const Tokens tokens = Lexer(result_.files[file].text, file, result_.spellings).all();
    if (!spend(tokens.size() + 1)) return;
    std::vector<Condition> conditions;
    for (std::size_t i = 0; i < tokens.size() && !result_.is_cut;) {
      const bool is_directive = tokens[i].starts_line && tokens[i].is("#");
      std::size_t end = i + 1;
      if (is_directive)
        while (end < tokens.size() && !tokens[end].starts_line) ++end;
      else
        while (end < tokens.size() && !(tokens[end].starts_line && tokens[end].is("#"))) ++end;
      const std::span part = std::span(tokens).subspan(i, end - i);
      if (is_directive)
        handle_directive(part.subspan(1), conditions, file, depth);
      else if (is_active(conditions))
        add_text(expand(part));
      i = end;
    }
  }

  // -- directives

  void handle_directive(std::span<const SourceToken> words, std::vector<Condition>& conditions, std::uint32_t file,
                        int depth) {
    if (words.empty()) return;
    const std::string_view name = words.front().text;
    const auto rest = words.subspan(1);
    const bool active = is_active(conditions);
    if (name == "if" || name == "ifdef" || name == "ifndef") {
      bool holds = false;
      if (active && name == "if") holds = evaluate(rest);
      if (active && name != "if") holds = !rest.empty() && macros_.contains(rest.front().text) == (name == "ifdef");
      conditions.push_back({active && holds, holds, !active});
    } else if (name == "elif" || name == "else" || name == "elifdef" || name == "elifndef") {
      if (conditions.empty()) return;
      Condition& last = conditions.back();
      last.is_active = false;
      if (last.was_taken || last.is_enclosed) return;
      if (name == "elif")
        last.is_active = evaluate(rest);
      else if (name == "else")
        last.is_active = true;
      else
        last.is_active = !rest.empty() && macros_.contains(rest.front().text) == (name == "elifdef");
      last.was_taken = last.is_active;
    } else if (name == "endif") {
      if (!conditions.empty()) conditions.pop_back();
    } else if (!active) {
      return;
    } else if (name == "define") {
      handle_define(rest);
    } else if (name == "undef") {
      if (!rest.empty()) macros_.erase(rest.front().text);
    } else if (name == "include" || name == "import") {
      handle_include(rest, file, depth);
    } else if (name == "pragma" && !rest.empty()) {
      if (rest.front().is("once"))
        read_once_.insert(file);
      else
        add_pragma(rest, false);
    }
  }

  void handle_define(std::span<const SourceToken> words) {
    if (words.empty() || words.front().kind != Kind::word) return;
    Macro macro;
    std::size_t i = 1;
    if (i < words.size() && words[i].is("(") && !words[i].after_blank) {
      macro.takes_arguments = true;
      for (++i; i < words.size() && !words[i].is(")"); ++i) {
        if (words[i].kind == Kind::word) macro.parameters.push_back(words[i].text);
        if (words[i].is(".") && !macro.is_variadic) {  // three of them: `...`, or `name...`
          macro.is_variadic = true;
          if (words[i - 1].kind != Kind::word) macro.parameters.push_back("__VA_ARGS__");
        }
      }
      ++i;
    }
    if (i < words.size()) macro.body.assign(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
    macros_.insert_or_assign(words.front().text, std::move(macro));
  }

  void handle_include(std::span<const SourceToken> words, std::uint32_t file, int depth) {
    if (words.empty() || depth >= deepest_include) return;
    std::string name;
    const bool is_quoted = words.front().kind == Kind::string;
    if (is_quoted) {
      name = words.front().text;
      if (name.size() < 3) return;
      name = name.substr(1, name.size() - 2);
    } else if (words.front().is("<")) {
      for (const SourceToken& word : words.subspan(1)) {
        if (word.is(">")) break;
        name += word.text;
      }
    }
    if (name.empty()) return;
    const auto found = find_include(name, is_quoted, file);
    if (found && !read_once_.contains(*found)) read(*found, depth + 1);
    if (!found && is_quoted) result_.missing.push_back({words.front().at, name});
  }

  std::optional<std::uint32_t> find_include(const std::string& name, bool is_quoted, std::uint32_t from) {
    std::vector<std::string> folders = language_.include_folders;
    const std::string& path = result_.files[from].path;
    if (is_quoted) folders.insert(folders.begin(), path.substr(0, path.rfind('/') + 1));  // npos + 1 == 0
    for (const std::string& folder : folders) {
      const bool joins = name.starts_with('/') || folder.empty() || folder.ends_with('/');
      const std::string candidate = (name.starts_with('/') ? "" : folder) + (joins ? "" : "/") + name;
      if (const auto known = file_of_.find(candidate); known != file_of_.end()) return known->second;
      if (auto text = read_include_(candidate))
        return file_of_.emplace(candidate, add_file(candidate, *std::move(text))).first->second;
    }
    return std::nullopt;
  }

  // -- conditions

  /// The value of an #if's expression; one that no compiler would accept is false.
  bool evaluate(std::span<const SourceToken> words) {
    Tokens plain;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const bool is_defined = words[i].is("defined");
      // the system's headers and GCC's features are taken to be there
      if (!is_defined && !words[i].text.starts_with("__has_")) {
        plain.push_back(words[i]);
        continue;
      }
      const bool in_parentheses = i + 1 < words.size() && words[i + 1].is("(");
      const std::size_t name = i + (in_parentheses ? 2 : 1);
      SourceToken answer = words[i];
      answer.kind = Kind::number;
      answer.text = !is_defined || (name < words.size() && macros_.contains(words[name].text)) ? "1" : "0";
      plain.push_back(answer);
      i = name;
      if (in_parentheses)
        while (i < words.size() && !words[i].is(")")) ++i;
    }
    const Tokens expanded = expand(plain);
    std::span<const SourceToken> rest = expanded;
    return conditional(rest, 0) != 0;
  }

  using Number = std::uint64_t;  // wraps instead of overflowing

  static bool accept(std::span<const SourceToken>& rest, std::string_view spelling) {
    if (rest.empty() || !rest.front().is(spelling)) return false;
    rest = rest.subspan(1);
    return true;
  }

  Number conditional(std::span<const SourceToken>& rest, int depth) {
    const Number condition = binary(rest, 1, depth);
    if (!accept(rest, "?") || depth > deepest_condition) return condition;
    const Number yes = conditional(rest, depth + 1);
    if (!accept(rest, ":")) return 0;
    const Number no = conditional(rest, depth + 1);
    return condition != 0 ? yes : no;
  }

  /// How tightly a binary operator binds; 0: it is none.
  static int strength(const SourceToken& token) {
    constexpr std::array<std::pair<std::string_view, int>, 18> strengths = {{{"||", 1},
                                                                             {"&&", 2},
                                                                             {"|", 3},
                                                                             {"^", 4},
                                                                             {"&", 5},
                                                                             {"==", 6},
                                                                             {"!=", 6},
                                                                             {"<", 7},
                                                                             {">", 7},
                                                                             {"<=", 7},
                                                                             {">=", 7},
                                                                             {"<<", 8},
                                                                             {">>", 8},
                                                                             {"+", 9},
                                                                             {"-", 9},
                                                                             {"*", 10},
                                                                             {"/", 10},
                                                                             {"%", 10}}};
    const auto* known = std::ranges::find(strengths, token.text, &std::pair<std::string_view, int>::first);
    return known == strengths.end() || token.kind != Kind::punctuation ? 0 : known->second;
  }

  Number binary(std::span<const SourceToken>& rest, int weakest, int depth) {
    Number left = unary(rest, depth);
    while (!rest.empty()) {
      const SourceToken sign = rest.front();
      if (strength(sign) < weakest) break;
      rest = rest.subspan(1);
      left = apply(sign.text, left, binary(rest, strength(sign) + 1, depth));
    }
    return left;
  }

  static Number apply(std::string_view sign, Number a, Number b) {
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

  Number unary(std::span<const SourceToken>& rest, int depth) {
    if (rest.empty() || depth > deepest_condition) return 0;
    if (accept(rest, "!")) return unary(rest, depth + 1) == 0 ? 1 : 0;
    if (accept(rest, "-")) return 0 - unary(rest, depth + 1);
    if (accept(rest, "+")) return unary(rest, depth + 1);
    if (accept(rest, "~")) return ~unary(rest, depth + 1);
    if (accept(rest, "(")) {
      const Number inside = conditional(rest, depth + 1);
      return accept(rest, ")") ? inside : 0;
    }
    const SourceToken token = rest.front();
    rest = rest.subspan(1);
    if (token.kind == Kind::character) return token.text.size() > 2 ? static_cast<Number>(token.text[1]) : 0;
    if (token.kind == Kind::word) {
      if (!rest.empty() && rest.front().is("("))  // a macro of a header that was not read
        while (!rest.empty() && !accept(rest, ")")) rest = rest.subspan(1);
      return language_.is_cxx && token.is("true") ? 1 : 0;
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

  // -- expansion

  Tokens expand(std::span<const SourceToken> tokens) {
    MacroTokens all;
    for (const SourceToken& token : tokens) all.push_back({token, nullptr});
    const MacroTokens expanded = expand(all, 0);
    return {expanded.begin(), expanded.end()};
  }

  /// Dave Prosser's algorithm: each token knows which macros it came out of.
  MacroTokens expand(const MacroTokens& tokens, int depth) {
    if (depth > deepest_call) return tokens;
    MacroTokens pending(tokens.rbegin(), tokens.rend());  // the next one last
    MacroTokens done;
    while (!pending.empty() && !result_.is_cut) {
      const MacroToken token = pending.back();
      pending.pop_back();
      const auto macro = token.kind == Kind::word ? macros_.find(token.text) : macros_.end();
      std::vector<MacroTokens> arguments;
      if (macro == macros_.end() || Hidden::contains(token.hidden, token.text) ||
          (macro->second.takes_arguments && !take_arguments(pending, macro->second, arguments))) {
        done.push_back(token);
        continue;
      }
      MacroTokens body = substitute(token, macro->second, arguments, depth);
      if (!spend(body.size() + 1)) break;
      for (auto made = body.rbegin(); made != body.rend(); ++made) {
        made->use = token.use;
        hidden_.push_back({macro->first, made->hidden});
        made->hidden = &hidden_.back();
        pending.push_back(*made);
      }
    }
    return done;
  }

  /// Takes "( a, b )" off `pending`. False: there is no such thing, and nothing was taken.
  bool take_arguments(MacroTokens& pending, const Macro& macro, std::vector<MacroTokens>& arguments) {
    if (pending.empty() || !pending.back().is("(")) return false;
    std::size_t at = pending.size() - 1;
    arguments.emplace_back();
    for (int depth = 1; depth > 0;) {
      if (at == 0 || !spend(1)) return false;
      const MacroToken& token = pending[--at];
      if (token.is("(")) ++depth;
      if (token.is(")")) --depth;
      const bool is_last = macro.is_variadic && arguments.size() == macro.parameters.size();
      if (token.is(",") && depth == 1 && !is_last)
        arguments.emplace_back();
      else if (depth > 0)
        arguments.back().push_back(token);
    }
    pending.resize(at);
    return true;
  }

  /// The body of the macro that `call` names, with its arguments put in.
  MacroTokens substitute(const MacroToken& call, const Macro& macro, const std::vector<MacroTokens>& arguments,
                         int depth) {
    const auto argument_of = [&](const SourceToken& token) -> const MacroTokens* {
      static const MacroTokens none;
      const auto found = std::ranges::find(macro.parameters, token.text);
      if (token.kind != Kind::word || found == macro.parameters.end()) return nullptr;
      const auto index = static_cast<std::size_t>(found - macro.parameters.begin());
      return index < arguments.size() ? &arguments[index] : &none;
    };
    MacroTokens result;
    for (std::size_t i = 0; i < macro.body.size() && spend(1); ++i) {
      const MacroToken token{macro.body[i], call.hidden};
      const SourceToken* next = i + 1 < macro.body.size() ? &macro.body[i + 1] : nullptr;
      const MacroTokens* argument = argument_of(token);
      if (macro.takes_arguments && token.is("#") && next != nullptr && argument_of(*next) != nullptr) {
        result.push_back(as_string(token, *argument_of(*next)));
        ++i;
      } else if (token.is("##") && !result.empty() && next != nullptr) {
        const MacroTokens* pasted = argument_of(*next);
        paste(result, pasted != nullptr ? *pasted : MacroTokens{{*next, call.hidden}});
        ++i;
      } else if (argument != nullptr) {
        const MacroTokens put = next != nullptr && next->is("##") ? *argument : expand(*argument, depth + 1);
        if (!spend(put.size())) break;
        result.insert(result.end(), put.begin(), put.end());
      } else {
        result.push_back(token);
      }
    }
    return result;
  }

  void paste(MacroTokens& result, const MacroTokens& right) {
    if (right.empty()) return;
    result.back().text = keep(std::string(result.back().text) + std::string(right.front().text));
    result.insert(result.end(), right.begin() + 1, right.end());
  }

  MacroToken as_string(MacroToken sign, const MacroTokens& argument) {
    std::string text = "\"";
    for (const SourceToken& token : argument) {
      if (text.size() > 1 && token.after_blank) text += ' ';
      for (const char c : token.text) {
        if (token.kind == Kind::string && (c == '"' || c == '\\')) text += '\\';
        text += c;
      }
    }
    sign.kind = Kind::string;
    sign.text = keep(text + '"');
    return sign;
  }

  // -- what comes out

  void add_text(const Tokens& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const bool is_operator = tokens[i].is("_Pragma") && i + 3 < tokens.size() && tokens[i + 1].is("(") &&
                               tokens[i + 2].kind == Kind::string && tokens[i + 3].is(")");
      if (!is_operator) {
        result_.tokens.push_back(tokens[i]);
        continue;
      }
      Tokens words = Lexer(keep(unquoted(tokens[i + 2].text)), 0, result_.spellings).all();
      for (SourceToken& word : words) {
        word.at = tokens[i].at;
        word.use = tokens[i].use;
      }
      add_pragma(words, true);
      i += 3;
    }
  }

  static std::string unquoted(std::string_view literal) {
    const std::size_t open = literal.find('"');
    std::string text;
    for (std::size_t i = open + 1; i + 1 < literal.size(); ++i) {
      if (literal[i] == '\\' && (literal[i + 1] == '"' || literal[i + 1] == '\\')) ++i;
      text += literal[i];
    }
    return text;
  }

  void add_pragma(std::span<const SourceToken> words, bool is_operator) {
    if (words.empty() || !(words[0].is("sig") || words[0].is("sigdef") || words[0].is("sigopen"))) return;
    SourceToken marker = words[0];
    marker.kind = Kind::pragma;
    marker.pragma = static_cast<int>(result_.pragmas.size());
    result_.tokens.push_back(marker);
    result_.pragmas.push_back({marker, expand(words.subspan(1)), is_operator});
  }

  const SourceLanguage& language_;
  const ReadInclude& read_include_;
  SourceTokens result_;
  std::map<std::string_view, Macro> macros_;
  std::map<std::string, std::uint32_t> file_of_;
  std::set<std::uint32_t> read_once_;
  std::deque<Hidden> hidden_;
  std::size_t spent_ = 0;
};

}  // namespace

SourceTokens read_tokens(std::string path, std::string text, const SourceLanguage& language,
                         const ReadInclude& read_include) {
  return Preprocessor(language, read_include).run(std::move(path), std::move(text));
}

}  // namespace iosig
