#include "iosig/check/fortran_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>

#include "iosig/base/text.h"

namespace iosig {
namespace {

constexpr std::string_view fortran_sentinel = "!$sigio";
constexpr std::size_t max_directive_bytes = 10'000;
constexpr std::size_t max_fortran_findings = 10'000;

bool is_fortran_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string lower_case(std::string_view text) {
  std::string made(text);
  std::ranges::transform(made, made.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return made;
}

bool ends_with_one_of(std::string_view path, std::span<const std::string_view> endings) {
  const std::size_t point = path.rfind('.');
  return point != std::string_view::npos &&
         std::ranges::find(endings, lower_case(path.substr(point + 1))) != endings.end();
}

/// Returns the column, from 0, behind the sentinel of a directive's line; npos if it is none.
std::size_t behind_sentinel(std::string_view line) {
  std::size_t at = 0;
  while (at < line.size() && is_fortran_blank(line[at])) ++at;
  const std::size_t end = at + fortran_sentinel.size();
  if (lower_case(line.substr(at, fortran_sentinel.size())) != fortran_sentinel) return std::string_view::npos;
  const bool is_word = end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) || line[end] == '_');
  return is_word ? std::string_view::npos : end;
}

/// Returns the numbers, from 0, of the lines with a sentinel that conditions of the preprocessor leave in; nothing if
/// the source has no preprocessor's lines. Conditions are those of C: what is left of the source, with a pragma in
/// place of each of these lines, is read as C.
std::optional<std::set<std::size_t>> lines_left_in(
    const std::string& path, std::span<const std::string_view> lines,
    const std::vector<std::pair<std::string, std::string>>& definitions) {
  std::string conditions;
  bool has_conditions = false, goes_on = false;
  for (const std::string_view line : lines) {
    const bool is_kept = goes_on || line.starts_with('#');
    has_conditions |= is_kept;
    if (is_kept)
      conditions += line;
    else if (behind_sentinel(line) != std::string_view::npos)
      conditions += "#pragma sigio dims line a(1)";
    conditions += '\n';
    goes_on = is_kept && line.ends_with('\\');
  }
  if (!has_conditions) return std::nullopt;
  SourceLanguage language;
  language.definitions = definitions;
  const auto read_nothing = [](const std::string&) -> std::optional<std::string> { return std::nullopt; };
  std::set<std::size_t> left_in;
  for (const SourceDirective& each : check_source(path, std::move(conditions), language, {}, read_nothing).directives)
    left_in.insert(each.at.line - 1);
  return left_in;
}

class FortranReader {
 public:
  FortranReader(const std::string& path, std::string_view text,
                const std::vector<std::pair<std::string, std::string>>& definitions)
      : path_(path), lines_(split(text, '\n')), left_in_(lines_left_in(path, lines_, definitions)) {}

  CheckedSource read() {
    for (std::size_t i = 0; i < lines_.size() && result_.findings.size() < max_fortran_findings;) {
      const std::size_t begin = behind_sentinel(lines_[i]);
      if (begin == std::string_view::npos || (left_in_ && !left_in_->contains(i))) {
        ++i;
        continue;
      }
      i = read_directive(i, begin);
    }
    if (!result_.directives.empty()) find_plain_calls();
    return std::move(result_);
  }

 private:
  /// Where a part of the directive's text comes from.
  struct Piece {
    std::size_t begin, line, column;
  };

  /// Reads a directive and the lines that continue it; returns the number of the line after it.
  std::size_t read_directive(std::size_t line, std::size_t column) {
    text_.clear();
    pieces_.clear();
    const std::size_t first = line;
    for (;;) {
      const bool goes_on = take_line(line, column);
      ++line;
      if (!goes_on) break;
      column = line < lines_.size() ? behind_sentinel(lines_[line]) : std::string_view::npos;
      if (column == std::string_view::npos) {
        add({first, lines_[first].find('!')}, fortran_sentinel.size(),
            "the directive ends with '&', but the next line does not begin with '!$sigio'");
        return line;
      }
      const std::size_t next = lines_[line].find_first_not_of(" \t", column);
      if (next != std::string_view::npos && lines_[line][next] == '&') column = next + 1;
    }
    if (text_.size() > max_directive_bytes)
      add({first, lines_[first].find('!')}, fortran_sentinel.size(), "the directive is longer than can be checked");
    else
      parse(first, line);
    return line;
  }

  /// Appends the rest of a line without its comment; returns whether it ends with '&'. Quoted texts end in their line.
  bool take_line(std::size_t number, std::size_t column) {
    const std::string_view line = lines_[number];
    std::size_t end = column;
    for (char quote = '\0'; end < line.size(); ++end) {
      const char c = line[end];
      if (quote == '\0' && c == '!') break;
      if (quote == '\0' && (c == '"' || c == '\''))
        quote = c;
      else if (c == quote)
        quote = '\0';
    }
    while (end > column && is_fortran_blank(line[end - 1])) --end;
    const bool goes_on = end > column && line[end - 1] == '&';
    if (goes_on) --end;
    if (!text_.empty()) text_ += ' ';
    pieces_.push_back({text_.size(), number, column});
    text_ += line.substr(column, end - column);
    return goes_on;
  }

  void parse(std::size_t first, std::size_t behind) {
    ParsedDirective parsed = parse_directive(text_, DirectiveLanguage::fortran);
    for (const Diagnostic& found : parsed.diagnostics) {
      SourceFinding& finding = add(found.severity, "directive", position(found.at), found.message);
      finding.suggestion = found.suggestion;
      finding.can_replace = !found.suggestion.empty();
      if (found.other) finding.notes.push_back({position(*found.other), found.other_message});
    }
    if (!parsed.ok()) return;
    std::size_t begin = 0;
    while (begin < text_.size() && is_fortran_blank(text_[begin])) ++begin;
    SourceDirective made{position({begin, text_.size()}), behind, std::move(parsed.directive), {}, false, true};
    made.at.line = first + 1;
    for (const DirectiveClause& clause : made.directive.clauses) made.clauses.push_back(position(clause.at));
    result_.directives.push_back(std::move(made));
  }

  [[nodiscard]] SourcePosition position(Span span) const {
    const Piece* from = &pieces_.front();
    for (const Piece& piece : pieces_)
      if (piece.begin <= span.begin) from = &piece;
    const std::size_t column = from->column + (span.begin - from->begin);
    return place({from->line, column}, span.end - span.begin);
  }

  [[nodiscard]] SourcePosition place(std::pair<std::size_t, std::size_t> at, std::size_t bytes) const {
    std::string_view line = lines_[at.first];
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t end = std::max(at.second, std::min(at.second + bytes, line.size()));
    return {path_, at.first + 1, at.second + 1, end + 1, std::string(line)};
  }

  void add(std::pair<std::size_t, std::size_t> at, std::size_t bytes, std::string message) {
    add(Diagnostic::Severity::error, "directive", place(at, bytes), std::move(message));
  }

  SourceFinding& add(Diagnostic::Severity severity, std::string_view rule, SourcePosition at, std::string message) {
    result_.findings.push_back({severity, rule, std::move(at), std::move(message), "", false, {}});
    return result_.findings.back();
  }

  /// A template has no I/O of its own.
  void find_plain_calls() {
    constexpr std::array<std::string_view, 8> openers = {"open",           "mpi_file_open", "nf90_create", "nf90_open",
                                                         "nf90mpi_create", "nf90mpi_open",  "h5fcreate_f", "h5fopen_f"};
    for (std::size_t i = 0; i < lines_.size() && result_.findings.size() < max_fortran_findings; ++i) {
      const std::string line = lower_case(lines_[i].substr(0, lines_[i].find('!')));
      for (std::size_t open = line.find('('); open != std::string::npos; open = line.find('(', open + 1)) {
        std::size_t end = open;
        while (end > 0 && is_fortran_blank(line[end - 1])) --end;
        std::size_t begin = end;
        const auto is_part = [&](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
        while (begin > 0 && is_part(line[begin - 1])) --begin;
        const std::string_view word = std::string_view(line).substr(begin, end - begin);
        if (std::ranges::find(openers, word) == openers.end() || (begin > 0 && line[begin - 1] == '%')) continue;
        add(Diagnostic::Severity::warning, "template", place({i, begin}, word.size()),
            fmt::format("'{}' opens a file in a template; the I/O of a template is what its directives say", word));
      }
    }
  }

  std::string path_;
  std::vector<std::string_view> lines_;
  std::optional<std::set<std::size_t>> left_in_;  ///< lines_left_in
  CheckedSource result_;
  std::string text_;           ///< of the directive that is read
  std::vector<Piece> pieces_;  ///< of `text_`
};

}  // namespace

bool is_free_form(std::string_view path) {
  constexpr std::array<std::string_view, 4> endings = {"f90", "f95", "f03", "f08"};
  return ends_with_one_of(path, endings);
}

bool is_fixed_form(std::string_view path) {
  constexpr std::array<std::string_view, 3> endings = {"f", "for", "ftn"};
  return ends_with_one_of(path, endings);
}

CheckedSource check_fortran(const std::string& path, std::string_view text,
                            const std::vector<std::pair<std::string, std::string>>& definitions) {
  return FortranReader(path, text, definitions).read();
}

}  // namespace iosig
