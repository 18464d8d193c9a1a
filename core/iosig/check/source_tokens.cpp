#include "iosig/check/source_tokens.h"

#include <map>
#include <set>
#include <span>

#include "iosig/check/source_condition.h"

namespace iosig {
namespace {

using Kind = SourceToken::Kind;

constexpr int deepest_include = 200;
constexpr int deepest_call = 200;       ///< nested macro calls in arguments; deeper nesting stops the preprocessor
constexpr std::size_t look_work = 100;  ///< for looking up a file that may not exist

struct BodyToken : SourceToken {
  int parameter = -1;  ///< the parameter that it names
};
struct Macro {
  bool takes_arguments = false, is_variadic = false;
  std::size_t parameters = 0;
  std::vector<BodyToken> body;
};

/// The macros that a token comes from, which must not expand it again.
struct Hidden {
  const Macro* macro;
  const Hidden* next;
};
struct MacroToken : SourceToken {
  const Hidden* hidden = nullptr;
};

using Tokens = std::vector<SourceToken>;
using MacroTokens = std::vector<MacroToken>;

/// One use of a macro.
struct MacroCall {
  MacroToken name;
  const Macro* macro;
  std::vector<MacroTokens> arguments = {};
  std::map<int, MacroTokens> expanded = {};  ///< arguments by index, each expanded once, however often it is used

  [[nodiscard]] const MacroTokens& argument_of(const BodyToken& parameter) const {
    static const MacroTokens none;
    const auto index = static_cast<std::size_t>(parameter.parameter);
    return index < arguments.size() ? arguments[index] : none;
  }
};

class Preprocessor {
 public:
  Preprocessor(const SourceLanguage& language, const ReadInclude& read_include)
      : language_(language), read_include_(read_include), work_(language.max_work) {
    // what every GCC on Linux defines and programs test
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
    result_.is_cut = work_.is_spent();
    result_.work = work_.done();
    return std::move(result_);
  }

 private:
  struct Condition {
    bool is_active;    ///< this branch is read
    bool was_taken;    ///< a branch has been read
    bool is_enclosed;  ///< in a skipped part
  };

  std::uint32_t add_file(std::string path, std::string text) {
    text.resize(std::min<std::size_t>(text.size(), UINT32_MAX - 1));
    result_.files.push_back({std::move(path), std::move(text)});
    return static_cast<std::uint32_t>(result_.files.size() - 1);
  }

  std::string_view keep(std::string text) { return result_.spellings.emplace_back(std::move(text)); }

  void define(std::string_view name, std::string_view value) {
    Macro macro;
    for (SourceToken& token : lex(keep(std::string(value)), 0, result_.spellings, work_)) {
      token.at = token.use = {};
      macro.body.push_back({token});
    }
    macros_.insert_or_assign(keep(std::string(name)), std::move(macro));
  }

  [[nodiscard]] bool is_active(const std::vector<Condition>& conditions) const {
    return conditions.empty() || conditions.back().is_active;
  }

  void read(std::uint32_t file, int depth) {
    const std::string& text = result_.files[file].text;
    if (!work_.spend(text.size())) return;
    const Tokens tokens = lex(text, file, result_.spellings, work_);
    std::vector<Condition> conditions;
    for (std::size_t i = 0; i < tokens.size() && !work_.is_spent();) {
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

  /// Conditionals are followed in skipped parts, too; other directives are not.
  void handle_directive(std::span<const SourceToken> words, std::vector<Condition>& conditions, std::uint32_t file,
                        int depth) {
    if (words.empty()) return;
    const std::string_view name = words.front().text;
    const auto rest = words.subspan(1);
    const bool active = is_active(conditions);
    if (name == "if" || name == "ifdef" || name == "ifndef") {
      const bool holds = active && branch_holds(name, rest);
      conditions.push_back({holds, holds, !active});
    } else if (name == "elif" || name == "elifdef" || name == "elifndef" || name == "else") {
      if (!conditions.empty()) begin_branch(conditions.back(), name, rest);
    } else if (name == "endif") {
      if (!conditions.empty()) conditions.pop_back();
    } else if (active) {
      handle_active_directive(name, rest, file, depth);
    }
  }

  void begin_branch(Condition& condition, std::string_view name, std::span<const SourceToken> words) {
    condition.is_active = !condition.was_taken && !condition.is_enclosed && branch_holds(name, words);
    condition.was_taken = condition.was_taken || condition.is_active;
  }

  /// Evaluates what an #if, #elif, #ifdef, #else, ... asks.
  bool branch_holds(std::string_view name, std::span<const SourceToken> words) {
    if (name == "else") return true;
    if (name == "if" || name == "elif") return evaluate(words);
    const bool wants_defined = name.ends_with("ifdef");  // else #ifndef or #elifndef
    return !words.empty() && macros_.contains(words.front().text) == wants_defined;
  }

  void handle_active_directive(std::string_view name, std::span<const SourceToken> words, std::uint32_t file,
                               int depth) {
    if (name == "define") {
      handle_define(words);
    } else if (name == "undef") {
      if (!words.empty()) macros_.erase(words.front().text);
    } else if (name == "include" || name == "import") {
      handle_include(words, file, depth);
    } else if (name == "pragma" && !words.empty()) {
      if (words.front().is("once"))
        read_once_.insert(file);
      else
        add_pragma(words, false);
    }
  }

  void handle_define(std::span<const SourceToken> words) {
    if (words.empty() || words.front().kind != Kind::word) return;
    Macro macro;
    std::map<std::string_view, int> parameters;
    const auto add_parameter = [&](std::string_view name) {
      parameters.try_emplace(name, static_cast<int>(macro.parameters++));
    };
    std::size_t i = 1;
    if (i < words.size() && words[i].is("(") && !words[i].after_blank) {
      macro.takes_arguments = true;
      for (++i; i < words.size() && !words[i].is(")"); ++i) {
        if (words[i].kind == Kind::word) add_parameter(words[i].text);
        if (words[i].is(".") && !macro.is_variadic) {  // three of them: `...`, or `name...`
          macro.is_variadic = true;
          if (words[i - 1].kind != Kind::word) add_parameter("__VA_ARGS__");
        }
      }
      ++i;
    }
    for (; i < words.size(); ++i) {
      const auto parameter = words[i].kind == Kind::word ? parameters.find(words[i].text) : parameters.end();
      macro.body.push_back({words[i], parameter == parameters.end() ? -1 : parameter->second});
    }
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
    if (!found && is_quoted && !work_.is_spent()) result_.missing.push_back({words.front().at, name});
  }

  std::optional<std::uint32_t> find_include(const std::string& name, bool is_quoted, std::uint32_t from) {
    if (name.starts_with('/')) return look_for(name);
    if (is_quoted) {
      const std::string& path = result_.files[from].path;
      if (const auto found = look_for(path.substr(0, path.rfind('/') + 1) + name)) return found;  // npos + 1 == 0
    }
    for (const std::string& directory : language_.include_directories) {
      std::string path = directory;
      if (!path.empty() && !path.ends_with('/')) path += '/';
      if (const auto found = look_for(path += name)) return found;
    }
    return std::nullopt;
  }

  std::optional<std::uint32_t> look_for(const std::string& path) {
    if (!work_.spend(look_work + path.size())) return std::nullopt;
    const auto [known, is_new] = file_of_.try_emplace(path);
    if (is_new)
      if (auto text = read_include_(path)) known->second = add_file(path, *std::move(text));
    return known->second;
  }

  /// Returns whether the expression of an #if is true.
  bool evaluate(std::span<const SourceToken> words) {
    Tokens plain;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const bool is_defined = words[i].is("defined");
      // system headers and GCC's features are assumed to exist
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
    return condition_holds(expand(plain), language_.is_cxx);
  }

  // -- expansion

  /// Spends work for each token that is created, copied or inspected, and for each byte that is spelled.
  Tokens expand(std::span<const SourceToken> tokens) {
    MacroTokens pending;
    pending.reserve(tokens.size());
    for (auto token = tokens.rbegin(); token != tokens.rend(); ++token) pending.push_back({*token, nullptr});
    const MacroTokens expanded = expand(std::move(pending), 0);
    hidden_.clear();
    return {expanded.begin(), expanded.end()};
  }

  /// Dave Prosser's algorithm: each token records the macros that it comes from. `pending`: the next token last.
  MacroTokens expand(MacroTokens pending, int depth) {
    if (depth > deepest_call) work_.stop();
    MacroTokens done;
    done.reserve(pending.size());
    while (!pending.empty() && work_.spend(SourceWork::token)) {
      const MacroToken token = pending.back();
      pending.pop_back();
      MacroCall call{token, macro_of(token)};
      const Macro* macro = call.macro;
      if (macro == nullptr || is_hidden(token.hidden, *macro) ||
          (macro->takes_arguments && !take_arguments(pending, call))) {
        done.push_back(token);
        continue;
      }
      MacroTokens body = substitute(call, depth);
      const Hidden *outer = nullptr, *inner = nullptr;  // neighbouring tokens mostly share theirs
      for (auto made = body.rbegin(); made != body.rend(); ++made) {
        if (inner == nullptr || made->hidden != outer) {
          outer = made->hidden;
          inner = hide(outer, *macro);
        }
        made->hidden = inner;
        made->use = token.use;
        pending.push_back(*made);
      }
    }
    return done;
  }

  const Macro* macro_of(const SourceToken& token) {
    if (token.kind != Kind::word || !work_.spend(token.text.size())) return nullptr;
    const auto macro = macros_.find(token.text);
    return macro == macros_.end() ? nullptr : &macro->second;
  }

  bool is_hidden(const Hidden* hidden, const Macro& macro) {
    while (hidden != nullptr && hidden->macro != &macro && work_.spend(1)) hidden = hidden->next;
    return hidden != nullptr;
  }

  const Hidden* hide(const Hidden* hidden, const Macro& macro) {
    if (is_hidden(hidden, macro)) return hidden;
    hidden_.push_back({&macro, hidden});
    return &hidden_.back();
  }

  /// Takes "( a, b )" off `pending`. Returns false, and takes nothing, if it is not there.
  bool take_arguments(MacroTokens& pending, MacroCall& call) {
    if (pending.empty() || !pending.back().is("(")) return false;
    std::vector<MacroTokens>& arguments = call.arguments;
    std::size_t at = pending.size() - 1;
    arguments.emplace_back();
    for (int depth = 1; depth > 0;) {
      if (at == 0 || !work_.spend(SourceWork::token)) return false;
      const MacroToken& token = pending[--at];
      if (token.is("(")) ++depth;
      if (token.is(")")) --depth;
      const bool is_last = call.macro->is_variadic && arguments.size() == call.macro->parameters;
      if (token.is(",") && depth == 1 && !is_last)
        arguments.emplace_back();
      else if (depth > 0)
        arguments.back().push_back(token);
    }
    pending.resize(at);
    return true;
  }

  /// Returns the macro's body with the arguments in place of its parameters:
  ///
  ///   #define CALL(f, x) f(x) #x f##_##x
  ///   #define MODE 0644
  ///   CALL(open, MODE)  ->  open(0644) "MODE" open_MODE
  ///
  /// An argument is expanded first, except as an operand of # or ##.
  MacroTokens substitute(MacroCall& call, int depth) {
    const std::vector<BodyToken>& body = call.macro->body;
    MacroTokens result;
    for (std::size_t i = 0; i < body.size() && work_.spend(SourceWork::token); ++i) {
      const BodyToken& token = body[i];
      const BodyToken* next = i + 1 < body.size() ? &body[i + 1] : nullptr;
      if (call.macro->takes_arguments && token.is("#") && next != nullptr && next->parameter >= 0) {
        result.push_back(as_string({token, call.name.hidden}, call.argument_of(*next)));
        ++i;
      } else if (token.is("##") && !result.empty() && next != nullptr) {
        paste_operand(result, call, *next);
        ++i;
      } else if (token.parameter < 0) {
        result.push_back({token, call.name.hidden});
      } else if (next != nullptr && next->is("##")) {
        append(result, call.argument_of(token));
      } else {
        append(result, expanded_argument_of(call, token, depth));
      }
    }
    return result;
  }

  const MacroTokens& expanded_argument_of(MacroCall& call, const BodyToken& parameter, int depth) {
    const auto [known, is_new] = call.expanded.try_emplace(parameter.parameter);
    const MacroTokens& argument = call.argument_of(parameter);
    if (is_new) known->second = expand({argument.rbegin(), argument.rend()}, depth + 1);
    return known->second;
  }

  void append(MacroTokens& result, std::span<const MacroToken> tokens) {
    if (work_.spend(tokens.size() * SourceWork::token)) result.insert(result.end(), tokens.begin(), tokens.end());
  }

  /// Pastes the right operand of ## to the last token of `result`; of an argument only its first token.
  void paste_operand(MacroTokens& result, const MacroCall& call, const BodyToken& operand) {
    const MacroTokens itself = {{operand, call.name.hidden}};
    const std::span<const MacroToken> right = operand.parameter >= 0 ? call.argument_of(operand) : itself;
    if (right.empty()) return;
    paste(result.back(), right.front());
    append(result, right.subspan(1));
  }

  void paste(MacroToken& left, const MacroToken& right) {
    if (work_.spend(left.text.size() + right.text.size()))
      left.text = keep(std::string(left.text) + std::string(right.text));
  }

  MacroToken as_string(MacroToken sign, const MacroTokens& argument) {
    std::string text = "\"";
    for (const SourceToken& token : argument) {
      if (!work_.spend(SourceWork::token + token.text.size())) break;
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

  // -- output

  void add_text(const Tokens& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const bool is_operator = tokens[i].is("_Pragma") && i + 3 < tokens.size() && tokens[i + 1].is("(") &&
                               tokens[i + 2].kind == Kind::string && tokens[i + 3].is(")");
      if (!is_operator) {
        result_.tokens.push_back(tokens[i]);
        continue;
      }
      if (!work_.spend(tokens[i + 2].text.size())) return;
      Tokens words = lex(keep(unquoted(tokens[i + 2].text)), 0, result_.spellings, work_);
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
    if (words.empty()) return;
    const bool is_directive = words[0].is("sigio");
    if (!is_directive && !words[0].is("sig") && !words[0].is("sigdef") && !words[0].is("sigopen")) return;
    SourceToken marker = words[0];
    marker.kind = Kind::pragma;
    marker.pragma = static_cast<int>(result_.pragmas.size());
    result_.tokens.push_back(marker);
    const auto rest = words.subspan(1);  // a directive's words become code, which the compiler expands
    result_.pragmas.push_back({marker, is_directive ? Tokens(rest.begin(), rest.end()) : expand(rest), is_operator});
  }

  const SourceLanguage& language_;
  const ReadInclude& read_include_;
  SourceTokens result_;
  std::map<std::string_view, Macro> macros_;
  std::map<std::string, std::optional<std::uint32_t>> file_of_;  ///< by path; nothing: does not exist
  std::set<std::uint32_t> read_once_;
  std::deque<Hidden> hidden_;  ///< of the tokens being expanded
  SourceWork work_;
};

}  // namespace

SourceTokens read_tokens(std::string path, std::string text, const SourceLanguage& language,
                         const ReadInclude& read_include) {
  return Preprocessor(language, read_include).run(std::move(path), std::move(text));
}

}  // namespace iosig
