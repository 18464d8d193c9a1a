#include "pragmas.h"

#include "iosig/format/directive_text.h"
#include "iosig/format/opener_text.h"
#include "iosig/format/pragma_text.h"
#include "iosig/format/signature_text.h"
#include "openers.h"
#include "options.h"
#include "sites.h"

namespace iosig::gcc {
namespace {

SignatureDefinitions definitions;
std::map<std::string, location_t, std::less<>> definition_places;

bool is_cxx() { return c_language == clk_cxx || c_language == clk_objcxx; }

/// A pragma as read from the lexer.
struct Pragma {
  location_t name = input_location;  ///< location of the pragma's name
  PragmaText<location_t> text{input_location};
  bool is_spoilt = false;  ///< a token could not be read and was diagnosed: no further diagnostics

  /// Returns the range from the token with the span's first byte to the token with its last byte.
  [[nodiscard]] location_t location(Span span) const {
    const location_t first = text.place(span.begin);
    return make_location(first, first, text.place(span.end > span.begin ? span.end - 1 : span.begin));
  }
};

/// Reads a pragma in C, where the preprocessor's tokens have their exact spelling. Leaves the end of line to the
/// parser.
Pragma read_c() {
  Pragma pragma;
  const auto at_end = [](const cpp_token* token) { return token->type == CPP_PRAGMA_EOL || token->type == CPP_EOF; };
  while (!at_end(cpp_peek_token(parse_in, 0))) {
    location_t at = UNKNOWN_LOCATION;
    const cpp_token* token = cpp_get_token_with_location(parse_in, &at);
    if (at_end(token)) break;
    if (token->type != CPP_PADDING)
      pragma.text.append(reinterpret_cast<const char*>(cpp_token_as_text(parse_in, token)), at);
  }
  return pragma;
}

/// Returns the number with which the text begins, with its unit, or "":
///
///   64KB) random   ->  64KB
///   1e+3s, 2       ->  1e+3s
///   6'000'000)     ->  6'000'000
///   (64KB)         ->  ""
std::string_view leading_number(std::string_view text) {
  if (text.empty() || !(ISDIGIT(text[0]) || text[0] == '.')) return {};
  std::size_t end = 1;
  for (; end < text.size(); ++end) {
    const char c = text[end], before = text[end - 1];
    const bool is_sign_of_exponent = (c == '+' || c == '-') && (before == 'e' || before == 'E');
    const bool is_separator = c == '\'' && ISALNUM(before) && end + 1 < text.size() && ISALNUM(text[end + 1]);
    if (!ISALNUM(c) && c != '.' && c != '_' && !is_sign_of_exponent && !is_separator) break;
  }
  return text.substr(0, end);
}

/// Returns the number at `at` as it is spelled in the source file, without C++'s digit separators; "" if there is none
/// (the number comes from _Pragma or from pasted tokens, or the file cannot be read).
std::string number_in_source(location_t at) {
  const location_t start = linemap_resolve_location(line_table, get_start(at), LRK_SPELLING_LOCATION, nullptr);
  const expanded_location place = expand_location(start);
  if (place.file == nullptr || place.column <= 0) return {};
  const char_span line = source_line(place.file, place.line);
  if (!line || line.length() < static_cast<std::size_t>(place.column)) return {};
  const std::string_view rest(line.get_buffer() + place.column - 1, line.length() - place.column + 1);
  std::string number(leading_number(rest));
  number.erase(std::remove(number.begin(), number.end(), '\''), number.end());
  return number;
}

/// Whether the lexer reads `value` from this spelling. It does not if the text was preprocessed before, or has #line:
/// then the source file has something else at that line and column.
bool is_spelling_of(const std::string& spelled, tree value) {
  if (TREE_CODE(value) == USERDEF_LITERAL) {
    const std::string_view suffix = IDENTIFIER_POINTER(USERDEF_LITERAL_SUFFIX_ID(value));
    return spelled.size() > suffix.size() && std::string_view(spelled).ends_with(suffix) &&
           is_spelling_of(spelled.substr(0, spelled.size() - suffix.size()), USERDEF_LITERAL_VALUE(value));
  }
  char* suffix = nullptr;  // one that C++ knows
  if (TREE_CODE(value) == INTEGER_CST) {
    const bool is_binary = spelled.starts_with("0b") || spelled.starts_with("0B");
    const char* const digits = spelled.c_str() + (is_binary ? 2 : 0);
    const unsigned long long number = strtoull(digits, &suffix, is_binary ? 2 : 0);
    return suffix != digits && tree_fits_uhwi_p(value) && tree_to_uhwi(value) == number &&
           std::string_view(suffix).find_first_not_of("uUlLzZ") == std::string_view::npos;
  }
  if (TREE_CODE(value) != REAL_CST) return true;  // nothing that a parameter accepts
  constexpr std::string_view suffixes[] = {"", "f", "F", "l", "L", "d", "D", "w", "W", "q", "Q"};
  strtod(spelled.c_str(), &suffix);
  REAL_VALUE_TYPE number;
  real_from_string(&number, spelled.substr(0, suffix - spelled.c_str()).c_str());
  real_convert(&number, TYPE_MODE(TREE_TYPE(value)), &number);
  return std::find(std::begin(suffixes), std::end(suffixes), suffix) != std::end(suffixes) &&
         real_identical(&number, TREE_REAL_CST_PTR(value));
}

/// Returns a number of the C++ lexer as text; "" if the lexer could not read it.
std::string number_from_value(tree value) {
  char text[64];
  if (value == NULL_TREE) return {};
  switch (TREE_CODE(value)) {
    case INTEGER_CST: return std::to_string(tree_to_uhwi(value));
    case REAL_CST: real_to_decimal(text, TREE_REAL_CST_PTR(value), sizeof text, 15, 1); return text;
    case USERDEF_LITERAL:
      return number_from_value(USERDEF_LITERAL_VALUE(value)) + IDENTIFIER_POINTER(USERDEF_LITERAL_SUFFIX_ID(value));
    default: return {};
  }
}

/// Reads a pragma in C++, where the whole unit was lexed before and numbers are values. Takes their spelling from the
/// source file if it is there.
Pragma read_cxx() {
  Pragma pragma;
  tree value = NULL_TREE;
  location_t at = UNKNOWN_LOCATION;
  for (enum cpp_ttype type; (type = pragma_lex(&value, &at)) != CPP_EOF;) {
    const tree_code code = value == NULL_TREE ? ERROR_MARK : TREE_CODE(value);
    if (type == CPP_STRING && code == STRING_CST) {
      pragma.text.append('"' + std::string(TREE_STRING_POINTER(value)) + '"', at);
    } else if (code == IDENTIFIER_NODE) {
      pragma.text.append(IDENTIFIER_POINTER(value), at);
    } else if (type == CPP_NUMBER || code == USERDEF_LITERAL) {
      const std::string spelled = number_in_source(at);
      if (code == ERROR_MARK) {  // the lexer has already reported an error, with an unhelpful message
        error_at(at, "C++ cannot read the number %qs in a pragma; write it in quotes: %<\"%s\"%>", spelled.c_str(),
                 spelled.c_str());
        pragma.is_spoilt = true;
      } else {
        pragma.text.append(!spelled.empty() && is_spelling_of(spelled, value) ? spelled : number_from_value(value), at);
      }
    } else {
      pragma.text.append(cpp_type2name(type, 0), at);
    }
  }
  return pragma;
}

Pragma read_pragma() { return is_cxx() ? read_cxx() : read_c(); }

void report(const Diagnostic& found, const Pragma& pragma) {
  const auto_diagnostic_group group;
  const location_t at = pragma.location(found.at);
  gcc_rich_location place(at);
  const char* message = found.message.c_str();
  const char* suggestion = found.suggestion.c_str();
  const bool suggests = !found.suggestion.empty();
  if (suggests) place.add_fixit_replace(get_range_from_loc(line_table, at), suggestion);
  if (found.severity == Diagnostic::Severity::error) {
    if (suggests)
      error_at(&place, "%s; did you mean %qs?", message, suggestion);
    else
      error_at(&place, "%s", message);
  } else if (!warning_at(&place, OPT_Wpragmas, "%s", message)) {
    return;
  }
  if (found.other) inform(pragma.location(*found.other), "%s", found.other_message.c_str());
}

/// Reports all diagnostics of the pragma. Returns whether it can be used.
bool accept(const std::vector<Diagnostic>& diagnostics, const Pragma& pragma) {
  if (pragma.is_spoilt) return false;
  for (const Diagnostic& found : diagnostics) report(found, pragma);
  return std::none_of(diagnostics.begin(), diagnostics.end(),
                      [](const Diagnostic& found) { return found.severity == Diagnostic::Severity::error; });
}

/// Returns the first line of a pragma after its name, as spelled; "" if it is not a line of a file.
std::string_view spelled_behind(location_t name, std::string_view pragma) {
  const expanded_location place = expand_location(name);
  if (place.file == nullptr || linemap_location_from_macro_expansion_p(line_table, name)) return {};
  const char_span line = source_line(place.file, place.line);
  if (!line) return {};
  const std::string_view text(line.get_buffer(), line.length());
  const std::size_t begin = place.column - 1 + pragma.size();
  if (begin > text.size() || text.find("#") > begin || text.substr(place.column - 1, pragma.size()) != pragma)
    return {};
  return text.substr(begin);
}

/// Returns whether a macro has removed a parameter, and reports it.
bool has_lost_parameter(const Pragma& pragma, std::string_view name) {
  const auto lost = find_lost_parameter(spelled_behind(pragma.name, name), pragma.text.text());
  if (!lost) return false;
  const location_t first = linemap_position_for_loc_and_offset(line_table, pragma.name, name.size() + lost->at);
  const location_t last = linemap_position_for_loc_and_offset(line_table, first, lost->name.size() - 1);
  error_at(make_location(first, first, last),
           "a macro rewrote the parameter %qs; %<#undef%> it before the pragma, or rename it",
           std::string(lost->name).c_str());
  return true;
}

/// Whether the pragma is in a precompiled header, with a warning. Such a header would keep the trees, but not the
/// plugin's data about them.
bool is_lost_in_pch(const Pragma& pragma, const char* name) {
  if (pch_file == nullptr) return false;
  warning_at(pragma.text.begin(), OPT_Wpragmas,
             "a precompiled header does not keep %<#pragma %s%>; put it into a header that is not precompiled", name);
  return true;
}

/// Returns the class that is being parsed, or NULL_TREE; also NULL_TREE inside of a member function.
tree current_class() {
  const tree scope = current_scope != nullptr ? current_scope() : NULL_TREE;
  return scope != NULL_TREE && RECORD_OR_UNION_TYPE_P(scope) ? scope : NULL_TREE;
}

bool in_statements() { return stmt_list_stack != nullptr && !stmt_list_stack->is_empty(); }

void handle_sig(cpp_reader*) {
  const Pragma pragma = read_pragma();
  if (has_lost_parameter(pragma, "sig")) return;
  if (pragma.text.text().empty()) {
    error_at(pragma.text.begin(), "expected a signature after %<#pragma sig%>, e.g. %<#pragma sig persist random%>");
    return;
  }
  const ParsedSignature parsed = parse_sig(pragma.text.text(), definitions);
  if (!accept(parsed.diagnostics, pragma) || is_lost_in_pch(pragma, "sig")) return;
  Site site;
  site.signature = parsed.signature;
  if (!site.signature.policy) site.signature.policy = options.policy;
  site.text = signature_text(site.signature);
  site.at = pragma.text.begin();
  if (const tree type = current_class(); type != NULL_TREE) site.class_type = keep(type);
  site.marked = site.class_type == NULL_TREE && in_statements();
  site.in_template = site.marked && in_template_function != nullptr && in_template_function();
  if (site.marked) add_stmt(build_marker(sites.size(), site.at));
  sites.push_back(std::move(site));
}

void handle_sigdef(cpp_reader*) {
  const Pragma pragma = read_pragma();
  if (has_lost_parameter(pragma, "sigdef")) return;
  const ParsedSignature parsed = parse_sigdef(pragma.text.text());
  if (!accept(parsed.diagnostics, pragma)) return;
  is_lost_in_pch(pragma, "sigdef");
  const auto [known, is_new] = definitions.try_emplace(parsed.name, parsed.signature);
  if (is_new) {
    definition_places.emplace(parsed.name, pragma.text.begin());
  } else if (known->second != parsed.signature) {
    const auto_diagnostic_group group;
    error_at(pragma.text.begin(), "signature %qs is defined again, differently", parsed.name.c_str());
    inform(definition_places.find(parsed.name)->second, "first defined here as %qs",
           signature_text(known->second).c_str());
  }
}

void handle_sigopen(cpp_reader*) {
  const Pragma pragma = read_pragma();
  ParsedOpener parsed = parse_sigopen(pragma.text.text());
  if (!accept(parsed.diagnostics, pragma)) return;
  is_lost_in_pch(pragma, "sigopen");
  add_opener(std::move(parsed.opener));
}

/// A directive is for `iosig generate`: the compiler only reports mistakes, and that nothing does the I/O.
void handle_sigio(cpp_reader*) {
  const Pragma pragma = read_pragma();
  const ParsedDirective parsed = parse_directive(pragma.text.text());
  if (!accept(parsed.diagnostics, pragma)) return;
  const std::string& kind = parsed.directive.kind;
  if (kind == "output" || kind == "input")
    warning_at(pragma.text.begin(), OPT_Wpragmas,
               "%<#pragma sigio %s%> does nothing in a template; compile what %<iosig generate%> makes of it",
               kind.c_str());
}

}  // namespace

void register_pragmas() {
  c_register_pragma_with_expansion(nullptr, "sig", handle_sig);
  c_register_pragma_with_expansion(nullptr, "sigdef", handle_sigdef);
  c_register_pragma_with_expansion(nullptr, "sigopen", handle_sigopen);
  c_register_pragma(nullptr, "sigio", handle_sigio);
}

}  // namespace iosig::gcc
