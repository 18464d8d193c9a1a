#include "iosig/format/directive_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "iosig/base/text.h"

namespace iosig {
namespace {

using std::string_view;

/// The text between the parentheses of a clause.
enum class ClauseForm {
  expression,   ///< one text in the program's language
  name,         ///< one name
  level,        ///< one of `known_levels`
  access,       ///< read or write
  type,         ///< one of `known_types`
  stored_type,  ///< double or float
  names,        ///< z, y, x
  widths,       ///< z: G, y: G, or G
  extents,      ///< z, y, v: NV
  indices,      ///< v: 3, ...
  components,   ///< v: dens, velx=4, ...
  hints,        ///< key="value", ...
  attributes,   ///< key=value, ...
  ranges,       ///< z: start, count; ...
  turns,        ///< z: number, of, size; ... (without a size: 1)
  lists,        ///< z: indices, count; ...
  value,        ///< of one attribute
};

struct ClauseRule {
  string_view kind, name;  ///< an empty name: the user's own
  ClauseForm form;
  bool is_required;
  string_view example;
};

constexpr std::array clause_rules = {
    ClauseRule{"file", "path", ClauseForm::expression, true, "path(fname)"},
    ClauseRule{"file", "level", ClauseForm::level, true, "level(pnetcdf)"},
    ClauseRule{"file", "comm", ClauseForm::expression, true, "comm(MPI_COMM_WORLD)"},
    ClauseRule{"file", "access", ClauseForm::access, false, "access(write)"},
    ClauseRule{"file", "decomp", ClauseForm::name, false, "decomp(blk)"},
    ClauseRule{"file", "hint", ClauseForm::hints, false, "hint(cb_nodes=\"4\")"},
    ClauseRule{"dims", "", ClauseForm::expression, false, "z(NZ) y(NY) x(NX)"},
    ClauseRule{"attr", "", ClauseForm::value, false, "title(\"a checkpoint\") time(double: t)"},
    ClauseRule{"decomp", "block", ClauseForm::ranges, false, "block(z: c[0]*L, L; y: c[1]*L, L)"},
    ClauseRule{"decomp", "cyclic", ClauseForm::turns, false, "cyclic(z: rank, ranks, 4)"},
    ClauseRule{"decomp", "list", ClauseForm::lists, false, "list(cell: ids, n)"},
    ClauseRule{"dataset", "type", ClauseForm::type, true, "type(double)"},
    ClauseRule{"dataset", "dims", ClauseForm::names, true, "dims(z, y, x)"},
    ClauseRule{"dataset", "data", ClauseForm::expression, true, "data(temp)"},
    ClauseRule{"dataset", "as", ClauseForm::stored_type, false, "as(float)"},
    ClauseRule{"dataset", "memory", ClauseForm::extents, false, "memory(z, y, x, v: NV)"},
    ClauseRule{"dataset", "component", ClauseForm::indices, false, "component(v: 0)"},
    ClauseRule{"dataset", "each", ClauseForm::components, false, "each(v: dens, velx=4)"},
    ClauseRule{"dataset", "decomp", ClauseForm::name, false, "decomp(blk)"},
    ClauseRule{"dataset", "ghost", ClauseForm::widths, false, "ghost(z: 2, y: 2)"},
    ClauseRule{"dataset", "attr", ClauseForm::attributes, false, "attr(units=\"K\")"},
    ClauseRule{"output", "record", ClauseForm::expression, false, "record(step)"},
    ClauseRule{"output", "status", ClauseForm::expression, false, "status(error)"},
    ClauseRule{"input", "record", ClauseForm::expression, false, "record(step)"},
    ClauseRule{"input", "status", ClauseForm::expression, false, "status(error)"},
};

constexpr std::array<string_view, 7> directive_kinds = {"file", "dims", "attr", "decomp", "dataset", "output", "input"};
constexpr std::array<string_view, 5> known_levels = {"pnetcdf", "hdf5", "netcdf4", "mpiio", "posix"};
constexpr std::array<string_view, 2> known_accesses = {"write", "read"};
constexpr std::array<string_view, 2> stored_types = {"double", "float"};
constexpr std::array<string_view, 8> known_types = {"double", "float", "int",   "int64",
                                                    "short",  "int8",  "uint8", "uint64"};

bool is_white_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool continues_name(char c) { return begins_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_name(string_view text) {
  return !text.empty() && begins_name(text.front()) && std::ranges::all_of(text, continues_name);
}

/// Where the quoted text ends that begins at `open`: its closing quote, or the end of `text` if there is none. Only C's
/// texts have escapes; two quotes in one of Fortran, which stand for one, are seen as the end of a text and the begin
/// of another.
std::size_t end_of_quote(string_view text, std::size_t open, DirectiveLanguage language) {
  std::size_t i = open + 1;
  const bool has_escapes = language == DirectiveLanguage::c;
  while (i < text.size() && text[i] != text[open]) i += has_escapes && text[i] == '\\' ? 2 : 1;
  return std::min(i, text.size());
}

/// A number as both languages write it; of a double, Fortran's exponent may begin with a d.
struct Number {
  bool is_number = false, is_integer = true;
};
Number number_in(string_view text, DirectiveLanguage language) {
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t begin = i;
    while (i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0) ++i;
    return i - begin;
  };
  const auto takes = [&](string_view any) {
    return i < text.size() && any.find(text[i]) != string_view::npos && ++i > 0;
  };
  Number found;
  takes("+-");
  std::size_t figures = digits();
  if (takes(".")) {
    found.is_integer = false;
    figures += digits();
  }
  if (figures == 0) return {};
  if (takes(language == DirectiveLanguage::fortran ? "eEdD" : "eE")) {
    found.is_integer = false;
    takes("+-");
    if (digits() == 0) return {};
  }
  found.is_number = i == text.size();
  return found;
}

/// Walks over a text and knows which characters are outside of brackets and quotes.
class BalancedText {
 public:
  BalancedText(string_view text, DirectiveLanguage language) : text_(text), language_(language) {}

  /// Returns the first of `wanted` at or after `begin` that no bracket or quote encloses, or the text's end. Stops at a
  /// closing bracket that is not open.
  std::size_t find(string_view wanted, std::size_t begin) {
    std::string open;
    for (std::size_t i = begin; i < text_.size(); ++i) {
      const char c = text_[i];
      if (open.empty() && wanted.find(c) != string_view::npos) return i;
      if (c == '"' || c == '\'') {
        const std::size_t end = end_of_quote(text_, i, language_);
        if (end == text_.size()) return fail(i, end, "the quoted text is not closed");
        i = end;
      } else if (c == '(' || c == '[' || c == '{') {
        open += c == '(' ? ')' : c == '[' ? ']' : '}';
      } else if (c == ')' || c == ']' || c == '}') {
        if (open.empty() || open.back() != c) return fail(i, i + 1, fmt::format("'{}' closes nothing", c));
        open.pop_back();
      }
    }
    if (!open.empty()) return fail(begin, text_.size(), fmt::format("expected '{}' before the end", open.back()));
    return text_.size();
  }

  [[nodiscard]] const std::optional<Diagnostic>& mistake() const { return mistake_; }

 private:
  std::size_t fail(std::size_t begin, std::size_t end, std::string message) {
    if (!mistake_) {
      mistake_.emplace();
      mistake_->at = {begin, std::max(end, begin + 1)};
      mistake_->message = std::move(message);
    }
    return text_.size();
  }

  string_view text_;
  DirectiveLanguage language_;
  std::optional<Diagnostic> mistake_;
};

Span trimmed_span(string_view text, Span span) {
  while (span.begin < span.end && is_white_space(text[span.begin])) ++span.begin;
  while (span.end > span.begin && is_white_space(text[span.end - 1])) --span.end;
  return span;
}

class DirectiveReader {
 public:
  DirectiveReader(string_view text, DirectiveLanguage language) : text_(text), language_(language), plain_(text) {}

  ParsedDirective read() {
    if (read_head()) read_clauses();
    if (result_.directive.kind == "file" && result_.ok()) read_signature();
    if (result_.ok()) check_required();
    return std::move(result_);
  }

 private:
  [[nodiscard]] string_view part(Span span) const { return text_.substr(span.begin, span.end - span.begin); }

  bool add(Span at, std::string message, string_view suggestion = "") {
    if (at.end <= at.begin) at.end = at.begin + 1;
    result_.diagnostics.push_back(
        {Diagnostic::Severity::error, at, std::move(message), std::string(suggestion), {}, ""});
    return false;
  }

  void skip_blanks() {
    while (at_ < text_.size() && is_white_space(text_[at_])) ++at_;
  }

  /// Reads letters, digits and `also`.
  Span read_word(string_view also) {
    skip_blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (continues_name(text_[at_]) || also.find(text_[at_]) != string_view::npos)) ++at_;
    return {begin, at_};
  }

  bool read_head() {
    const Span kind = read_word("");
    if (part(kind).empty()) return add(kind, fmt::format("expected a directive: {}", fmt::join(directive_kinds, ", ")));
    if (std::ranges::find(directive_kinds, part(kind)) == directive_kinds.end())
      return add(
          kind,
          fmt::format("unknown directive '{}'; expected {}", printable(part(kind)), fmt::join(directive_kinds, ", ")),
          nearest_name(part(kind), directive_kinds));
    Directive& directive = result_.directive;
    directive.kind = part(kind);
    const bool is_dataset = directive.kind == "dataset";
    const Span name = read_word(".");
    directive.name_at = name;
    const std::size_t point = part(name).find('.');
    directive.name = part(name).substr(0, point);
    if (point != string_view::npos) directive.dataset = part(name).substr(point + 1);
    const bool fits =
        is_name(directive.name) && (point == string_view::npos || (is_dataset && is_name(directive.dataset)));
    if (fits && !(at_ < text_.size() && text_[at_] == '(')) {
      if (directive.kind == "output" || directive.kind == "input") read_further_files();
      return true;
    }
    if (is_dataset) return add(name, "expected the name of a file and of a data set: dataset ckpt.temp ...");
    return add(name,
               fmt::format("expected the name of a {0}: {0} {1} ...", directive.kind == "decomp" ? "decomp" : "file",
                           directive.kind == "decomp" ? "blk" : "ckpt"));
  }

  /// Reads names up to the first clause.
  void read_further_files() {
    Directive& directive = result_.directive;
    for (;;) {
      const std::size_t begin = at_;
      const Span name = read_word("");
      skip_blanks();
      const bool is_clause = (at_ < text_.size() && text_[at_] == '(') || rule_of(part(name)) != nullptr;
      if (is_clause || !is_name(part(name))) {
        at_ = begin;
        return;
      }
      if (part(name) == directive.name || std::ranges::find(directive.further, part(name)) != directive.further.end())
        add(name, fmt::format("file '{}' is given twice", part(name)));
      directive.further.emplace_back(part(name));
    }
  }

  [[nodiscard]] const ClauseRule* rule_of(string_view name) const {
    const auto rule = std::ranges::find_if(clause_rules, [&](const ClauseRule& each) {
      return each.kind == result_.directive.kind && (each.name.empty() || each.name == name);
    });
    return rule == clause_rules.end() ? nullptr : &*rule;
  }

  void read_clauses() {
    for (skip_blanks(); at_ < text_.size(); skip_blanks()) {
      const std::size_t begin = at_;
      const Span name = read_word(result_.directive.kind == "file" ? "-" : "");
      if (part(name).empty()) {
        add({begin, begin + 1}, fmt::format("expected a clause, found '{}'", printable(text_.substr(begin, 1))));
        return;
      }
      skip_blanks();
      Span value = {at_, at_};
      const bool has_value = at_ < text_.size() && text_[at_] == '(';
      if (has_value) {
        BalancedText balanced(text_, language_);
        const std::size_t close = balanced.find(")", at_ + 1);
        if (close == text_.size()) {
          add_unclosed(name, balanced.mistake());
          return;
        }
        value = {at_ + 1, close};
        at_ = close + 1;
      }
      read_clause(name, has_value, value, begin);
    }
  }

  void add_unclosed(Span name, const std::optional<Diagnostic>& inner) {
    if (inner)
      result_.diagnostics.push_back(*inner);
    else
      add({at_, at_ + 1}, fmt::format("the '(' after '{}' is not closed", part(name)));
  }

  void read_clause(Span name, bool has_value, Span value, std::size_t begin) {
    Directive& directive = result_.directive;
    const ClauseRule* rule = rule_of(part(name));
    if (rule == nullptr) {
      if (directive.kind == "file" && is_signature_parameter(part(name))) return;
      add_unknown_clause(name);
      return;
    }
    std::fill(plain_.begin() + static_cast<std::ptrdiff_t>(begin), plain_.begin() + static_cast<std::ptrdiff_t>(at_),
              ' ');
    if (!is_name(part(name))) {
      add(name, fmt::format("'{}' is no name; a name has letters, digits and '_'", printable(part(name))));
      return;
    }
    if (!has_value || trimmed(part(value)).empty()) {
      add(name, fmt::format("'{}' needs a value in parentheses, e.g. {}", part(name), rule->example));
      return;
    }
    const auto same = [&](const DirectiveClause& each) { return each.name == part(name); };
    if (const auto first = std::ranges::find_if(directive.clauses, same); first != directive.clauses.end()) {
      add(name, fmt::format("'{}' is given twice", part(name)));
      result_.diagnostics.back().other = first->at;
      result_.diagnostics.back().other_message = "the first one";
      return;
    }
    DirectiveClause clause{std::string(part(name)), name, {}};
    if (read_entries(*rule, value, clause)) directive.clauses.push_back(std::move(clause));
  }

  static bool is_signature_parameter(string_view name) {
    return std::ranges::any_of(signature_parameters(), [&](const ParameterInfo& each) { return each.name == name; });
  }

  void add_unknown_clause(Span name) {
    std::vector<string_view> known;
    for (const ClauseRule& each : clause_rules)
      if (each.kind == result_.directive.kind) known.push_back(each.name);
    add(name,
        fmt::format("'{}' has no clause '{}'; expected {}", result_.directive.kind, printable(part(name)),
                    fmt::join(known, ", ")),
        nearest_name(part(name), known));
  }

  bool read_entries(const ClauseRule& rule, Span value, DirectiveClause& clause) {
    const Span whole = trimmed_span(text_, value);
    switch (rule.form) {
      case ClauseForm::expression: clause.entries.push_back({"", "", {std::string(part(whole))}, whole}); return true;
      case ClauseForm::value:
        clause.entries.push_back({"", "", {}, whole});
        return read_value(whole, clause.entries.back());
      case ClauseForm::level: return read_choice(whole, known_levels, "level", clause);
      case ClauseForm::access: return read_choice(whole, known_accesses, "access", clause);
      case ClauseForm::type: return read_choice(whole, known_types, "type", clause);
      case ClauseForm::stored_type: return read_choice(whole, stored_types, "type in the file", clause);
      case ClauseForm::name:
        if (!is_name(part(whole))) return add(whole, fmt::format("expected one name, e.g. {}", rule.example));
        clause.entries.push_back({"", "", {std::string(part(whole))}, whole});
        return true;
      default: break;
    }
    if (rule.form == ClauseForm::components) return read_components(rule, value, clause);
    const char separator = numbers_in(rule.form) != nullptr ? ';' : ',';
    for (const Span each : split_span(value, separator)) {
      if (!read_entry(rule, trimmed_span(text_, each), clause)) return false;
      if (rule.form != ClauseForm::names && !is_new(rule, clause)) return false;
    }
    return true;
  }

  /// Whether no entry before the last one has its key.
  bool is_new(const ClauseRule& rule, const DirectiveClause& clause) {
    const DirectiveEntry& made = clause.entries.back();
    const auto same = [&](const DirectiveEntry& each) { return each.key == made.key; };
    return std::none_of(clause.entries.begin(), clause.entries.end() - 1, same) ||
           add(made.at, fmt::format("'{}' is given twice in {}", made.key, rule.name));
  }

  /// Reads `AXIS: NAME, NAME=INDEX, ...`.
  bool read_components(const ClauseRule& rule, Span value, DirectiveClause& clause) {
    const std::size_t colon = part(value).find(':');
    const std::string axis(trimmed(part(value).substr(0, colon)));
    if (colon == string_view::npos || !is_name(axis))
      return add(trimmed_span(text_, value), fmt::format("expected an axis and ':', e.g. {}", rule.example));
    for (const Span each : split_span({value.begin + colon + 1, value.end}, ',')) {
      const Span at = trimmed_span(text_, each);
      const std::size_t equals = part(at).find('=');
      const string_view name = trimmed(part(at).substr(0, equals));
      if (!is_name(name)) return add(at, fmt::format("expected the names of data sets, e.g. {}", rule.example));
      clause.entries.push_back({std::string(name), "", {axis}, at});
      if (!is_new(rule, clause)) return false;
      if (equals == string_view::npos) continue;
      const string_view index = trimmed(part(at).substr(equals + 1));
      if (index.empty()) return add(at, fmt::format("expected a value after '{}='", name));
      clause.entries.back().values.emplace_back(index);
    }
    return true;
  }

  bool read_entry(const ClauseRule& rule, Span each, DirectiveClause& clause) {
    if (rule.form == ClauseForm::names) {
      if (!is_name(part(each))) return add(each, fmt::format("expected names, e.g. {}", rule.example));
      clause.entries.push_back({"", "", {std::string(part(each))}, each});
      return true;
    }
    const bool has_equals = rule.form == ClauseForm::hints || rule.form == ClauseForm::attributes;
    const char sign = has_equals ? '=' : ':';
    const std::size_t middle = part(each).find(sign);
    const string_view key = trimmed(part(each).substr(0, middle));
    const bool has_key = middle != string_view::npos && is_name(key);
    if (rule.form == ClauseForm::extents && is_name(part(each))) {  // as many elements as the rank has
      clause.entries.push_back({std::string(part(each)), "", {}, each});
      return true;
    }
    if (!has_key && rule.form == ClauseForm::widths && !part(each).empty()) {  // of all axes
      clause.entries.push_back({"", "", {std::string(part(each))}, each});
      return true;
    }
    if (!has_key) return add(each, fmt::format("expected a name and '{}', e.g. {}", sign, rule.example));
    const Span rest = trimmed_span(text_, {each.begin + middle + 1, each.end});
    DirectiveEntry entry{std::string(key), "", {}, each};
    if (part(rest).empty()) return add(each, fmt::format("expected a value after '{}{}'", key, sign));
    if (rule.form == ClauseForm::attributes) {
      if (!read_value(rest, entry)) return false;
    } else if (rule.form == ClauseForm::hints) {
      if (!is_text(rest)) return add(rest, fmt::format("expected a text in quotes, e.g. {}=\"4\"", key));
      entry.values.emplace_back(part(rest));
    } else if (!read_numbers(rule, rest, entry)) {
      return false;
    }
    clause.entries.push_back(std::move(entry));
    return true;
  }

  /// How many expressions follow an axis, and what they are; null for forms without axes or with one expression.
  struct Numbers {
    ClauseForm form;
    std::size_t min, max;
    string_view text, example;
  };
  static const Numbers* numbers_in(ClauseForm form) {
    static constexpr std::array forms = {
        Numbers{ClauseForm::ranges, 2, 2, "the first index and the number of elements of this rank", "start, count"},
        Numbers{ClauseForm::turns, 2, 3,
                "the number of this rank, how many ranks share the axis, and how many elements are dealt at a time",
                "number, of, size"},
        Numbers{ClauseForm::lists, 2, 2, "the indices of this rank's elements, and their number", "indices, count"},
    };
    const auto* const found = std::ranges::find(forms, form, &Numbers::form);
    return found == forms.end() ? nullptr : found;
  }

  /// Reads the expressions after `AXIS:`.
  bool read_numbers(const ClauseRule& rule, Span rest, DirectiveEntry& entry) {
    for (const Span one : split_span(rest, ',')) {
      const Span inner = trimmed_span(text_, one);
      if (part(inner).empty()) return add(entry.at, fmt::format("an expression is missing after '{}:'", entry.key));
      entry.values.emplace_back(part(inner));
    }
    const Numbers* const numbers = numbers_in(rule.form);
    const std::size_t given = entry.values.size();
    if (numbers == nullptr)
      return given == 1 || add(entry.at, fmt::format("expected one value after '{}:'", entry.key));
    if (given >= numbers->min && given <= numbers->max) return true;
    return add(entry.at,
               fmt::format("expected {}: {}: {} (separate axes by ';')", numbers->text, entry.key, numbers->example));
  }

  /// Reads an attribute's value: a text, a number, or `TYPE: EXPR`.
  bool read_value(Span whole, DirectiveEntry& entry) {
    const string_view value = part(whole);
    const std::size_t colon = value.find(':');
    if (const string_view type = trimmed(value.substr(0, colon)); colon != string_view::npos && is_name(type)) {
      if (std::ranges::find(known_types, type) == known_types.end())
        return add(whole, fmt::format("unknown type '{}'; expected {}", type, fmt::join(known_types, ", ")), "");
      entry.type = type;
      entry.values.emplace_back(trimmed(value.substr(colon + 1)));
      return !entry.values.back().empty() || add(whole, fmt::format("expected a value after '{}:'", type));
    }
    const Number number = number_in(value, language_);
    if (!is_text(whole) && !number.is_number)
      return add(whole, fmt::format("expected {}, a number, or a type and an expression, e.g. double: {}",
                                    language_ == DirectiveLanguage::c ? "a text in double quotes" : "a text in quotes",
                                    printable(value)));
    if (number.is_number && !number.is_integer) entry.type = "double";
    if (number.is_number && number.is_integer && !read_integer(whole, entry)) return false;
    entry.values.emplace_back(value);
    return true;
  }

  /// The type of a number without a point: int if it fits.
  bool read_integer(Span whole, DirectiveEntry& entry) {
    string_view digits = part(whole);
    if (digits.front() == '+') digits.remove_prefix(1);
    const string_view figures = digits.substr(digits.front() == '-' ? 1 : 0);
    if (language_ == DirectiveLanguage::c && figures.size() > 1 && figures.front() == '0')
      return add(whole, "a number that begins with 0 is octal in C; expected it without, or a type: int: " +
                            printable(part(whole)));
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    // The least int64 cannot be written as a number in either language.
    if (error != std::errc{} || value < -std::numeric_limits<std::int64_t>::max())
      return add(whole, fmt::format("the number does not fit into 64 bits; expected at most {}, or a type: double: {}",
                                    std::numeric_limits<std::int64_t>::max(), printable(part(whole))));
    const bool fits =
        value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max();
    entry.type = fits ? "int" : "int64";
    return true;
  }

  /// Whether a value is a text. C: quoted texts and macros side by side, which are one for the compiler. Fortran: what
  /// begins with a quoted text and has no comma; its compiler compares types.
  [[nodiscard]] bool is_text(Span whole) const {
    const string_view value = part(whole);
    const bool is_c = language_ == DirectiveLanguage::c;
    if (value.empty() || (value.front() != '"' && (is_c || value.front() != '\''))) return false;
    if (!is_c) return split_span(whole, ',').size() == 1;
    std::size_t i = 0;
    while (i < value.size()) {
      if (value[i] == '"') {
        i = end_of_quote(value, i, language_);
        if (i == value.size()) return false;
        ++i;
      } else if (begins_name(value[i])) {
        while (i < value.size() && continues_name(value[i])) ++i;
      } else if (is_white_space(value[i])) {
        ++i;
      } else {
        return false;
      }
    }
    return true;
  }

  bool read_choice(Span whole, std::span<const string_view> known, string_view what, DirectiveClause& clause) {
    if (std::ranges::find(known, part(whole)) == known.end())
      return add(whole,
                 fmt::format("unknown {} '{}'; expected {}", what, printable(part(whole)), fmt::join(known, ", ")),
                 nearest_name(part(whole), known));
    clause.entries.push_back({"", "", {std::string(part(whole))}, whole});
    return true;
  }

  std::vector<Span> split_span(Span whole, char separator) const {
    std::vector<Span> parts;
    BalancedText balanced(text_.substr(0, whole.end), language_);
    const std::array<char, 1> wanted = {separator};
    for (std::size_t begin = whole.begin; begin <= whole.end;) {
      const std::size_t end = balanced.find({wanted.data(), 1}, begin);
      parts.push_back({begin, end});
      begin = end + 1;
    }
    return parts;
  }

  /// Parses what is left of a `file` without its own clauses, each byte at its place.
  void read_signature() {
    std::fill_n(plain_.begin(), result_.directive.name_at.end, ' ');
    if (trimmed(plain_).empty()) return;
    ParsedSignature parsed = parse_sig(plain_);
    for (Diagnostic& found : parsed.diagnostics) result_.diagnostics.push_back(std::move(found));
    if (parsed.ok()) result_.directive.signature = signature_text(parsed.signature);
  }

  /// Data sets are named by the directive, by each(...) or by data(...).
  void check_dataset_name() {
    Directive& directive = result_.directive;
    const auto each = std::ranges::find(directive.clauses, "each", &DirectiveClause::name);
    const auto data = std::ranges::find(directive.clauses, "data", &DirectiveClause::name);
    const bool has_each = each != directive.clauses.end();
    if (has_each && !directive.dataset.empty())
      add(each->at, fmt::format("'each' names the data sets; expected dataset {} ..., without '.{}'", directive.name,
                                directive.dataset));
    else if (!has_each && directive.dataset.empty() && data != directive.clauses.end())
      name_arrays(*data);
  }

  /// Makes an entry of each array in data(temp, u=v, w(:n)); its key is the name.
  void name_arrays(DirectiveClause& data) {
    const ClauseRule& rule = *rule_of("data");
    const Span whole = data.entries.front().at;
    data.entries.clear();
    for (const Span one : split_span(whole, ',')) {
      const Span at = trimmed_span(text_, one);
      const string_view text = part(at);
      const auto end = static_cast<std::size_t>(std::ranges::find_if_not(text, continues_name) - text.begin());
      const string_view name = text.substr(0, end), rest = trimmed(text.substr(end));
      const bool has_name = rest.starts_with('=') && !rest.starts_with("==");
      const string_view array = has_name ? trimmed(rest.substr(1)) : text;
      if (!is_name(name) || array.empty() ||
          !(has_name || rest.empty() || rest.front() == '(' || rest.front() == '[')) {
        add(at, fmt::format("expected the data sets' names: data(temp, u=EXPR), or dataset {}.temp ...",
                            result_.directive.name));
        return;
      }
      data.entries.push_back({std::string(name), "", {std::string(array)}, at});
      if (!is_new(rule, data)) return;
    }
  }

  /// A status or record belongs to one file.
  void check_files() {
    const Directive& directive = result_.directive;
    if (directive.further.empty() || directive.clauses.empty()) return;
    const DirectiveClause& clause = directive.clauses.front();
    add(clause.at, fmt::format("'{}' of several files; expected an '{}' for each", clause.name, directive.kind));
  }

  void check_required() {
    const Directive& directive = result_.directive;
    if (directive.kind == "dataset") check_dataset_name();
    check_files();
    for (const ClauseRule& rule : clause_rules) {
      const auto same = [&](const DirectiveClause& each) { return each.name == rule.name; };
      if (rule.kind == directive.kind && rule.is_required && std::ranges::none_of(directive.clauses, same))
        add(directive.name_at, fmt::format("'{}' needs {}(...), e.g. {}", directive.kind, rule.name, rule.example));
    }
    if (directive.kind == "decomp" && directive.clauses.empty() && result_.ok())
      add(directive.name_at,
          fmt::format("'decomp' needs block(...), cyclic(...) or list(...), e.g. {}", rule_of("block")->example));
    const bool lists = directive.kind == "dims" || directive.kind == "attr";
    if (lists && directive.clauses.empty())
      add(directive.name_at, fmt::format("'{0}' needs at least one entry, e.g. {0} {1} {2}", directive.kind,
                                         directive.name, rule_of("")->example));
  }

  string_view text_;
  DirectiveLanguage language_;
  std::string plain_;  ///< `text_` with blanks for the clauses that were read
  std::size_t at_ = 0;
  ParsedDirective result_;
};

}  // namespace

ParsedDirective parse_directive(string_view text, DirectiveLanguage language) {
  return DirectiveReader(text, language).read();
}

}  // namespace iosig
