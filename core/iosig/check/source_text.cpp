#include "iosig/check/source_text.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "iosig/check/source_opens.h"
#include "iosig/format/opener_text.h"
#include "iosig/format/pragma_text.h"

namespace iosig {
namespace {

/// Limits for one source; only sources with exponentially expanding macros exceed them.
constexpr std::size_t max_pragmas = 10'000;
constexpr std::size_t max_words = 1'000;           ///< in one pragma
constexpr std::size_t max_pragma_bytes = 10'000;   ///< of one pragma, expanded
constexpr std::size_t max_told_bytes = 8'000'000;  ///< of messages, including the lines that they show

using Severity = Diagnostic::Severity;
using Text = PragmaText<SourceToken>;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// C++'s lexer refuses a number whose unit looks like an exponent (1EB), and digits that are not octal (08KB).
bool cxx_can_read(std::string_view number) {
  const std::size_t digits = std::min(number.find_first_not_of("0123456789."), number.size());
  const bool is_octal = number.starts_with('0') && number.find('.') == std::string_view::npos;
  std::string_view unit = number.substr(digits);
  if (unit.starts_with('e') || unit.starts_with('E')) {
    unit.remove_prefix(1);
    if (unit.starts_with('+') || unit.starts_with('-')) unit.remove_prefix(1);
    return !unit.empty() && is_digit(unit.front());
  }
  return !is_octal || number.substr(0, digits).find_first_of("89") == std::string_view::npos;
}

std::string without_separators(std::string_view number) {
  std::string digits(number);
  std::erase(digits, '\'');
  return digits;
}

class Checker {
 public:
  Checker(SourceTokens tokens, const SourceLanguage& language)
      : source_(std::move(tokens)), is_cxx_(language.is_cxx), work_(language.max_work) {}

  /// Reads each `#pragma sigopen` first: they apply to the whole source.
  CheckedSource run(std::span<const Opener> callees) {
    std::vector<Opener> own(callees.begin(), callees.end());
    for (const SourcePragma& pragma : source_.pragmas)
      if (pragma.name.is("sigopen") && !is_too_much()) add_callee(pragma, own);
    const std::vector<Site> sites = check_signatures();
    SourceOpens opens(source_, is_cxx_, own, work_.left());
    check_associations(sites, opens);
    check_directives(opens);
    add_missing_includes();
    if (source_.is_cut || opens.is_cut() || is_too_much()) add_not_checked();
    sort_findings();
    return std::move(result_);
  }

 private:
  /// A `#pragma sig` with a correct signature.
  struct Site {
    std::size_t token;
    SourceToken begin;  ///< of the signature
  };

  [[nodiscard]] bool is_too_much() const {
    return std::max(result_.findings.size(), result_.signatures.size()) > max_pragmas || told_bytes_ > max_told_bytes ||
           work_.is_spent();
  }

  // -- steps

  /// In source order, because a definition (`#pragma sigdef`) applies to what follows it.
  std::vector<Site> check_signatures() {
    std::vector<Site> sites;
    for (std::size_t i = 0; i < source_.tokens.size() && !is_too_much(); ++i) {
      if (source_.tokens[i].kind != SourceToken::Kind::pragma) continue;
      const SourcePragma& pragma = source_.pragmas[static_cast<std::size_t>(source_.tokens[i].pragma)];
      if (pragma.name.is("sigdef")) check_sigdef(pragma);
      if (!pragma.name.is("sig")) continue;
      if (const auto begin = check_sig(pragma)) sites.push_back({i, *begin});
    }
    return sites;
  }

  /// From last to first: calls that belong to a pragma inside a statement do not belong to an earlier one.
  ///
  ///   #pragma sig persist    // second: the first call is taken, the other one remains
  ///   while (has_more()) {
  ///     #pragma sig temp     // first: takes the call in the next line
  ///     a = open(scratch, O_CREAT | O_RDWR, 0600);
  ///     b = open(result, O_CREAT | O_WRONLY, 0600);
  ///   }
  void check_associations(const std::vector<Site>& sites, SourceOpens& opens) {
    std::set<std::pair<std::uint32_t, std::uint32_t>> taken;
    for (auto site = sites.rbegin(); site != sites.rend() && !is_too_much(); ++site) {
      FollowingOpens following = opens.after(site->token);
      if (opens.is_cut()) break;
      std::erase_if(following.calls, [&](const SourceToken& call) { return taken.contains(key(call)); });
      if (!following.calls.empty()) taken.insert(key(following.calls.front()));
      check_association(site->begin, following, opens.is_in_function(site->token));
    }
  }

  void check_directives(const SourceOpens& opens) {
    for (std::size_t i = 0; i < source_.tokens.size() && !is_too_much(); ++i) {
      if (source_.tokens[i].kind != SourceToken::Kind::pragma) continue;
      const SourcePragma& pragma = source_.pragmas[static_cast<std::size_t>(source_.tokens[i].pragma)];
      if (pragma.name.is("sigio")) check_directive(pragma, opens.is_in_function(i));
    }
    if (!result_.directives.empty()) check_plain_calls();
  }

  /// A template has no I/O of its own: what it opens there would not be opened by all ranks, or twice.
  void check_plain_calls() {
    const std::span<const Opener> openers = known_openers();
    for (std::size_t i = 0; i + 1 < source_.tokens.size() && !is_too_much(); ++i) {
      const SourceToken& token = source_.tokens[i];
      if (token.kind != SourceToken::Kind::word || token.at.file != 0 || !source_.tokens[i + 1].is("(")) continue;
      if (i > 0 && (source_.tokens[i - 1].is(".") || source_.tokens[i - 1].is("->"))) continue;
      if (std::ranges::find(openers, token.text, &Opener::name) == openers.end()) continue;
      add(Severity::warning, "template", token,
          fmt::format("'{}' opens a file in a template; the I/O of a template is what its directives say", token.text));
    }
  }

  void add_missing_includes() {
    std::set<std::string_view> names;
    for (const MissingInclude& missing : source_.missing)
      if (!is_too_much() && names.insert(missing.name).second)
        result_.missing.push_back({position(missing.at), missing.name});
  }

  void add_not_checked() {
    result_.findings.push_back({Severity::warning,
                                "source",
                                position({}),
                                "includes and macros expand to more than can be checked; the rest was not",
                                "",
                                false,
                                {}});
  }

  // -- places

  const std::vector<std::size_t>& line_begins(std::uint32_t file) {
    std::vector<std::size_t>& begins = line_begins_[file];
    if (begins.empty()) {
      begins.push_back(0);
      const std::string& text = source_.files[file].text;
      for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] == '\n') begins.push_back(i + 1);
    }
    return begins;
  }

  SourcePosition position(const SourceSpan& span) {
    const SourceFile& file = source_.files[span.file];
    const auto& begins = line_begins(span.file);
    const auto line = static_cast<std::size_t>(std::ranges::upper_bound(begins, span.begin) - begins.begin());
    const std::size_t begin = begins[line - 1];
    std::size_t end = line < begins.size() ? begins[line] - 1 : file.text.size();
    if (end > begin && file.text[end - 1] == '\r') --end;
    told_bytes_ += end - begin;
    return {file.path, line, span.begin - begin + 1,
            std::clamp<std::size_t>(span.end, span.begin, std::max<std::size_t>(end, span.begin)) - begin + 1,
            file.text.substr(begin, end - begin)};
  }

  /// Returns the range from the token with the span's first byte to the one with its last.
  SourceSpan place(const Text& text, Span span) const {
    SourceSpan first = text.place(span.begin).at;
    const SourceSpan last = text.place(span.end > span.begin ? span.end - 1 : span.begin).at;
    if (last.file == first.file && last.end > first.end) first.end = last.end;
    return first;
  }

  // -- pragmas

  /// Returns the text; nothing if C++'s lexer cannot read a number, which is reported.
  std::optional<Text> text_of(const SourcePragma& pragma) {
    Text text(pragma.name);
    bool is_spoiled = false;
    std::size_t bytes = 0;
    for (const SourceToken& token : pragma.tokens) bytes += token.text.size();
    if (pragma.tokens.size() > max_words || bytes > max_pragma_bytes) {
      add(Severity::error, "source", pragma.name, "the pragma expands to more words than can be checked");
      return std::nullopt;
    }
    for (const SourceToken& token : pragma.tokens) {
      if (!is_cxx_ || token.kind != SourceToken::Kind::number) {
        text.append(token.text, token);
        continue;
      }
      const std::string number = without_separators(token.text);
      if (!cxx_can_read(number)) {
        add(Severity::error, "signature", token,
            fmt::format("C++ cannot read the number '{0}' in a pragma; write it in quotes: '\"{0}\"'", number));
        is_spoiled = true;
      }
      text.append(number, token);
    }
    if (is_spoiled) return std::nullopt;
    return text;
  }

  SourceFinding& add(Severity severity, std::string_view rule, const SourceToken& at, std::string message) {
    told_bytes_ += message.size();
    result_.findings.push_back({severity, rule, position(at.at), std::move(message), "", false, {}});
    SourceFinding& finding = result_.findings.back();
    if (at.from_macro()) {
      const SourcePosition use = position(at.use);
      finding.notes.push_back({use, fmt::format("in expansion of macro '{}'",
                                                use.line_text.substr(use.column - 1, use.end_column - use.column))});
    }
    return finding;
  }

  void report(const std::vector<Diagnostic>& diagnostics, std::string_view rule, const Text& text, bool is_operator) {
    for (const Diagnostic& found : diagnostics) {
      if (is_too_much()) return;
      const SourceToken first = text.place(found.at.begin);
      SourceFinding& finding = add(found.severity, rule, first, found.message);
      finding.at = position(place(text, found.at));
      finding.suggestion = found.suggestion;
      finding.can_replace = !found.suggestion.empty() && !is_operator && !first.from_macro();
      if (found.other) finding.notes.push_back({position(place(text, *found.other)), found.other_message});
    }
  }

  void add_callee(const SourcePragma& pragma, std::vector<Opener>& own) {
    const auto text = text_of(pragma);
    if (!text) return;
    ParsedOpener parsed = parse_sigopen(text->text());
    report(parsed.diagnostics, "callee", *text, pragma.is_operator);
    if (parsed.ok()) own.push_back(std::move(parsed.opener));
  }

  /// Returns whether a macro replaced a parameter, and reports it.
  bool has_lost_parameter(const SourcePragma& pragma, const Text& text) {
    if (pragma.is_operator) return false;
    SourcePosition at = position(pragma.name.at);
    const std::size_t begin = std::min(at.end_column - 1, at.line_text.size());
    const auto lost = find_lost_parameter(std::string_view(at.line_text).substr(begin), text.text());
    if (!lost) return false;
    SourceFinding& finding =
        add(Severity::error, "signature", pragma.name,
            fmt::format("a macro rewrote the parameter '{}'; '#undef' it before the pragma, or rename it", lost->name));
    finding.at.column = begin + lost->at + 1;
    finding.at.end_column = finding.at.column + lost->name.size();
    return true;
  }

  /// Returns the first token of a valid signature, or nothing.
  std::optional<SourceToken> check_sig(const SourcePragma& pragma) {
    const auto text = text_of(pragma);
    if (!text || has_lost_parameter(pragma, *text)) return std::nullopt;
    if (text->text().empty()) {
      add(Severity::error, "signature", pragma.name,
          "expected a signature after '#pragma sig', e.g. '#pragma sig persist random'");
      return std::nullopt;
    }
    if (!work_.spend(text->text().size() * (1 + definition_bytes_)))
      return std::nullopt;  // limits the search for names similar to an unknown word
    const ParsedSignature parsed = parse_sig(text->text(), definitions_);
    report(parsed.diagnostics, "signature", *text, pragma.is_operator);
    if (!parsed.ok()) return std::nullopt;
    result_.signatures.push_back({position(text->begin().at), parsed.signature});
    return text->begin();
  }

  static std::pair<std::uint32_t, std::uint32_t> key(const SourceToken& call) { return {call.at.file, call.at.begin}; }

  void check_association(const SourceToken& begin, const FollowingOpens& following, bool in_function) {
    if (following.calls.empty() && !following.may_open)
      return add_no_open(begin, following.pragma_follows, in_function);
    if (following.calls.size() < 2) return;
    SourceFinding& finding =
        add(Severity::warning, "association", begin,
            fmt::format("the statement after '#pragma sig' opens {} files; only the first gets the signature",
                        following.calls.size()));
    for (std::size_t i = 0; i < following.calls.size() && !is_too_much(); ++i)
      finding.notes.push_back({position(following.calls[i].use), i == 0 ? "this one gets it" : "this one does not"});
  }

  void add_no_open(const SourceToken& begin, bool pragma_follows, bool in_function) {
    SourceFinding& finding = add(Severity::warning, "association", begin,
                                 fmt::format("'#pragma sig' is not followed by a {} that opens a file",
                                             in_function ? "statement" : "declaration"));
    if (!in_function) return;
    finding.notes.push_back(
        {position(begin.at),
         pragma_follows ? "another '#pragma sig' follows; name one signature with '#pragma sigdef' and override it"
                        : "put it directly before the statement, declaration or condition with the open"});
  }

  void check_sigdef(const SourcePragma& pragma) {
    const auto text = text_of(pragma);
    if (!text || has_lost_parameter(pragma, *text)) return;
    const ParsedSignature parsed = parse_sigdef(text->text());
    report(parsed.diagnostics, "signature", *text, pragma.is_operator);
    if (!parsed.ok()) return;
    const SourceToken begin = text->begin();
    const auto [known, is_new] = definitions_.try_emplace(parsed.name, parsed.signature);
    if (is_new) {
      definition_places_.emplace(parsed.name, begin.at);
      definition_bytes_ += parsed.name.size();
    } else if (known->second != parsed.signature) {
      SourceFinding& finding = add(Severity::error, "definition", begin,
                                   fmt::format("signature '{}' is defined again, differently", parsed.name));
      finding.notes.push_back({position(definition_places_.find(parsed.name)->second),
                               fmt::format("first defined here as '{}'", signature_text(known->second))});
    }
  }

  void check_directive(const SourcePragma& pragma, bool in_function) {
    Text text(pragma.name);
    for (const SourceToken& token : pragma.tokens) text.append_as_spelled(token.text, token, token.after_blank);
    if (text.text().size() > max_pragma_bytes) {
      add(Severity::error, "source", pragma.name, "the pragma is longer than can be checked");
      return;
    }
    if (!work_.spend(text.text().size() * SourceWork::token)) return;
    ParsedDirective parsed = parse_directive(text.text());
    report(parsed.diagnostics, "directive", text, pragma.is_operator);
    if (!parsed.ok()) return;
    const bool is_site = parsed.directive.kind == "output" || parsed.directive.kind == "input";
    if (is_site && !in_function) {
      add(Severity::error, "directive", text.begin(),
          fmt::format("'{}' is outside of functions; put it where the code is to be", parsed.directive.kind));
      return;
    }
    SourceDirective made{position(place(text, {0, text.text().size()})),
                         0,
                         std::move(parsed.directive),
                         {},
                         pragma.is_operator,
                         in_function};
    made.last_line = last_line(pragma);
    for (const DirectiveClause& clause : made.directive.clauses)
      made.clauses.push_back(position(place(text, clause.at)));
    result_.directives.push_back(std::move(made));
  }

  /// Returns the number of the pragma's last line: lines may be joined, and a comment may go on in the next one.
  std::size_t last_line(const SourcePragma& pragma) {
    const SourceSpan end = pragma.tokens.empty() ? pragma.name.at : pragma.tokens.back().at;
    const std::string& text = source_.files[end.file].text;
    std::size_t i = end.end;
    bool in_line_comment = false;
    for (; i < text.size() && text[i] != '\n'; ++i) {
      if (text[i] == '\\') {
        i += text.compare(i + 1, 2, "\r\n") == 0 ? 2 : 1;
      } else if (text.compare(i, 2, "//") == 0) {
        in_line_comment = true;
      } else if (!in_line_comment && text.compare(i, 2, "/*") == 0) {
        i = std::min(text.find("*/", i + 2), text.size() - 2) + 1;
      }
    }
    const auto& begins = line_begins(end.file);
    return static_cast<std::size_t>(std::ranges::upper_bound(begins, std::min(i, text.size())) - begins.begin());
  }

  void sort_findings() {
    std::map<std::string_view, std::size_t> order;
    for (const SourceFile& file : source_.files) order.try_emplace(file.path, order.size());
    const auto key = [&](const SourceFinding& finding) {
      return std::tuple(order.at(finding.at.file), finding.at.line, finding.at.column);
    };
    std::ranges::stable_sort(result_.findings, {}, key);
  }

  SourceTokens source_;
  bool is_cxx_;
  CheckedSource result_;
  std::map<std::uint32_t, std::vector<std::size_t>> line_begins_;
  SignatureDefinitions definitions_;
  std::map<std::string, SourceSpan, std::less<>> definition_places_;
  std::size_t definition_bytes_ = 0;  ///< of the definitions' names
  std::size_t told_bytes_ = 0;
  SourceWork work_;
};

}  // namespace

CheckedSource check_source(const std::string& path, std::string text, const SourceLanguage& language,
                           std::span<const Opener> callees, const ReadInclude& read_include) {
  return Checker(read_tokens(path, std::move(text), language, read_include), language).run(callees);
}

}  // namespace iosig
