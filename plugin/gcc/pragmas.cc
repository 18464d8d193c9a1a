#include "pragmas.h"

#include "iosig/format/opener_text.h"
#include "iosig/format/signature_text.h"
#include "openers.h"
#include "sites.h"

namespace iosig::gcc {
namespace {

SignatureDefinitions definitions;
std::map<std::string, location_t, std::less<>> definition_places;

bool is_cxx() { return c_language == clk_cxx || c_language == clk_objcxx; }

/// A pragma's text, put together from its tokens, that knows where each byte came from.
class PragmaText {
 public:
  PragmaText() : name_(input_location) {}

  /// Words are set apart by one blank; punctuation joins its neighbours, so that `size-per-IO` is one name however
  /// the lexer cut it.
  void append(std::string_view spelling, location_t at) {
    const auto is_word = [](char c) { return ISALNUM(c) || c == '_' || c == '"'; };
    if (!text_.empty() && is_word(spelling.front()) && (is_word(text_.back()) || text_.back() == ')')) text_ += ' ';
    pieces_.push_back({text_.size(), at});
    text_ += spelling;
  }
  /// Nothing more is to be said about this pragma: a token was beyond recovery and has been diagnosed.
  void spoil() { spoiled_ = true; }

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool spoiled() const { return spoiled_; }
  [[nodiscard]] location_t begin() const { return pieces_.empty() ? name_ : pieces_.front().at; }
  /// Where the pragma's own name stands.
  [[nodiscard]] location_t name() const { return name_; }

  /// From the token that holds the span's first byte to the one that holds its last.
  [[nodiscard]] location_t location(Span span) const {
    if (pieces_.empty()) return name_;
    const location_t first = piece_at(span.begin);
    return make_location(first, first, piece_at(span.end > span.begin ? span.end - 1 : span.begin));
  }

 private:
  struct Piece {
    std::size_t begin;
    location_t at;
  };
  [[nodiscard]] location_t piece_at(std::size_t byte) const {
    location_t at = pieces_.front().at;
    for (const Piece& piece : pieces_)
      if (piece.begin <= byte) at = piece.at;
    return at;
  }

  std::string text_;
  std::vector<Piece> pieces_;
  location_t name_;
  bool spoiled_ = false;
};

/// C: the preprocessor's tokens have their exact spelling. The end of line stays for the parser.
PragmaText read_c() {
  PragmaText pragma;
  const auto at_end = [](const cpp_token* token) { return token->type == CPP_PRAGMA_EOL || token->type == CPP_EOF; };
  while (!at_end(cpp_peek_token(parse_in, 0))) {
    location_t at = UNKNOWN_LOCATION;
    const cpp_token* token = cpp_get_token_with_location(parse_in, &at);
    if (at_end(token)) break;
    if (token->type != CPP_PADDING)
      pragma.append(reinterpret_cast<const char*>(cpp_token_as_text(parse_in, token)), at);
  }
  return pragma;
}

/// The number that starts at `at` in the source file, as it is written there; "" when no number stands there (it came
/// from _Pragma or from pasted tokens, or the file is gone).
std::string number_in_source(location_t at) {
  const location_t start = linemap_resolve_location(line_table, get_start(at), LRK_SPELLING_LOCATION, nullptr);
  const expanded_location place = expand_location(start);
  if (place.file == nullptr || place.column <= 0) return {};
  const char_span line = location_get_source_line(place.file, place.line);
  if (!line || line.length() < static_cast<std::size_t>(place.column)) return {};
  const std::string_view rest(line.get_buffer() + place.column - 1, line.length() - place.column + 1);
  std::size_t end = 0;
  while (end < rest.size() &&
         (ISALNUM(rest[end]) || rest[end] == '.' || rest[end] == '_' ||
          ((rest[end] == '+' || rest[end] == '-') && end > 0 && (rest[end - 1] == 'e' || rest[end - 1] == 'E'))))
    ++end;
  return ISDIGIT(rest[0]) || rest[0] == '.' ? std::string(rest.substr(0, end)) : std::string{};
}

/// What the C++ lexer made of a number, as text; "" when it made nothing of it.
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

/// C++: the whole unit was lexed before, so numbers are values now; their spelling is taken from the source file.
PragmaText read_cxx() {
  PragmaText pragma;
  tree value = NULL_TREE;
  location_t at = UNKNOWN_LOCATION;
  for (enum cpp_ttype type; (type = pragma_lex(&value, &at)) != CPP_EOF;) {
    const tree_code code = value == NULL_TREE ? ERROR_MARK : TREE_CODE(value);
    if (type == CPP_STRING && code == STRING_CST) {
      pragma.append('"' + std::string(TREE_STRING_POINTER(value)) + '"', at);
    } else if (code == IDENTIFIER_NODE) {
      pragma.append(IDENTIFIER_POINTER(value), at);
    } else if (type == CPP_NUMBER || code == USERDEF_LITERAL) {
      const std::string spelled = number_in_source(at);
      if (code == ERROR_MARK) {  // the lexer has complained already, in words that do not help here
        error_at(at, "C++ cannot read the number %qs in a pragma; write it in quotes: %<\"%s\"%>", spelled.c_str(),
                 spelled.c_str());
        pragma.spoil();
      } else {
        pragma.append(spelled.empty() ? number_from_value(value) : spelled, at);
      }
    } else {
      pragma.append(cpp_type2name(type, 0), at);
    }
  }
  return pragma;
}

PragmaText read_pragma() { return is_cxx() ? read_cxx() : read_c(); }

void report(const Diagnostic& found, const PragmaText& pragma) {
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

/// Whether the pragma can be used; everything that was found about it is told.
bool accept(const std::vector<Diagnostic>& diagnostics, const PragmaText& pragma) {
  if (pragma.spoiled()) return false;
  for (const Diagnostic& found : diagnostics) report(found, pragma);
  return std::none_of(diagnostics.begin(), diagnostics.end(),
                      [](const Diagnostic& found) { return found.severity == Diagnostic::Severity::error; });
}

/// The first line of a pragma as it is spelled, behind the pragma's name; "" when it is not a line of a file.
std::string_view spelled_behind(location_t name, std::string_view pragma) {
  const expanded_location place = expand_location(name);
  if (place.file == nullptr || linemap_location_from_macro_expansion_p(line_table, name)) return {};
  const char_span line = location_get_source_line(place.file, place.line);
  if (!line) return {};
  const std::string_view text(line.get_buffer(), line.length());
  const std::size_t begin = place.column - 1 + pragma.size();
  if (begin > text.size() || text.find("#") > begin || text.substr(place.column - 1, pragma.size()) != pragma)
    return {};
  return text.substr(begin);
}

/// Where the text has the name outside of a value; npos: nowhere.
std::size_t find_parameter(std::string_view text, std::string_view name) {
  const auto is_part = [](char c) { return ISALNUM(c) || c == '_' || c == '-'; };
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '/' && i + 1 < text.size() && (text[i + 1] == '/' || text[i + 1] == '*')) break;
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    const std::size_t end = i + name.size();
    if (depth == 0 && text.substr(i, name.size()) == name && (i == 0 || !is_part(text[i - 1])) &&
        (end == text.size() || !is_part(text[end])))
      return i;
  }
  return std::string_view::npos;
}

/// A macro that happens to be called like a parameter would take the parameter away, silently if it is empty.
bool has_lost_parameter(const PragmaText& pragma, std::string_view name_of_pragma) {
  const std::string_view spelled = spelled_behind(pragma.name(), name_of_pragma);
  for (const ParameterInfo& parameter : signature_parameters()) {
    const std::size_t at = find_parameter(spelled, parameter.name);
    if (at == std::string_view::npos || find_parameter(pragma.text(), parameter.name) != std::string_view::npos)
      continue;
    const location_t first = linemap_position_for_loc_and_offset(line_table, pragma.name(), name_of_pragma.size() + at);
    const location_t last = linemap_position_for_loc_and_offset(line_table, first, parameter.name.size() - 1);
    error_at(make_location(first, first, last),
             "a macro rewrote the parameter %qs; %<#undef%> it before the pragma, or rename it",
             std::string(parameter.name).c_str());
    return true;
  }
  return false;
}

/// A precompiled header would keep the trees but not what we know about them.
bool is_lost_in_pch(const PragmaText& pragma, const char* name) {
  if (pch_file == nullptr) return false;
  warning_at(pragma.begin(), OPT_Wpragmas,
             "a precompiled header does not keep %<#pragma %s%>; put it into a header that is not precompiled", name);
  return true;
}

/// The class that is being parsed, or none; not that of a function that is being parsed.
tree current_class() {
  const tree scope = current_scope != nullptr ? current_scope() : NULL_TREE;
  return scope != NULL_TREE && RECORD_OR_UNION_TYPE_P(scope) ? scope : NULL_TREE;
}

bool in_statements() { return stmt_list_stack != nullptr && !stmt_list_stack->is_empty(); }

void handle_sig(cpp_reader*) {
  const PragmaText pragma = read_pragma();
  if (has_lost_parameter(pragma, "sig")) return;
  if (pragma.text().empty()) {
    error_at(pragma.begin(), "expected a signature after %<#pragma sig%>, e.g. %<#pragma sig persist random%>");
    return;
  }
  const ParsedSignature parsed = parse_sig(pragma.text(), definitions);
  if (!accept(parsed.diagnostics, pragma) || is_lost_in_pch(pragma, "sig")) return;
  Site site;
  site.signature = parsed.signature;
  site.text = signature_text(parsed.signature);
  site.at = pragma.begin();
  site.class_type = current_class();
  site.marked = site.class_type == NULL_TREE && in_statements();
  if (site.marked) add_stmt(build_marker(sites.size(), site.at));
  sites.push_back(std::move(site));
}

void handle_sigdef(cpp_reader*) {
  const PragmaText pragma = read_pragma();
  if (has_lost_parameter(pragma, "sigdef")) return;
  const ParsedSignature parsed = parse_sigdef(pragma.text());
  if (!accept(parsed.diagnostics, pragma)) return;
  is_lost_in_pch(pragma, "sigdef");
  const auto [known, is_new] = definitions.try_emplace(parsed.name, parsed.signature);
  if (is_new) {
    definition_places.emplace(parsed.name, pragma.begin());
  } else if (known->second != parsed.signature) {
    const auto_diagnostic_group group;
    error_at(pragma.begin(), "signature %qs is defined again, differently", parsed.name.c_str());
    inform(definition_places.find(parsed.name)->second, "first defined here as %qs",
           signature_text(known->second).c_str());
  }
}

void handle_sigopen(cpp_reader*) {
  const PragmaText pragma = read_pragma();
  ParsedOpener parsed = parse_sigopen(pragma.text());
  if (!accept(parsed.diagnostics, pragma)) return;
  is_lost_in_pch(pragma, "sigopen");
  add_opener(std::move(parsed.opener));
}

}  // namespace

void register_pragmas() {
  c_register_pragma_with_expansion(nullptr, "sig", handle_sig);
  c_register_pragma_with_expansion(nullptr, "sigdef", handle_sigdef);
  c_register_pragma_with_expansion(nullptr, "sigopen", handle_sigopen);
}

}  // namespace iosig::gcc
