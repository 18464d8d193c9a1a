#include "iosig/format/signature_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>

#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/format/presets.h"

namespace iosig {
namespace {

constexpr std::uint64_t max_container_targets = 64;
constexpr std::uint64_t max_passes = 1'000'000;

using Severity = Diagnostic::Severity;

/// The name of a parameter, its group of mutually exclusive parameters (if not 0), and its parser and printer.
struct Parameter {
  std::string_view name, example, meaning, implied;  ///< implied: the default value; empty: a value is required
  int group;
  Result<void> (*set)(Signature&, std::string_view value);  ///< value is empty for flags
  std::optional<std::string> (*show)(const Signature&);     ///< nothing: undeclared; "" for a flag that is set
};

template <auto Member, auto Value>
Result<void> set_flag(Signature& signature, std::string_view) {
  signature.*Member = Value;
  return {};
}
template <auto Member, auto Value>
std::optional<std::string> show_flag(const Signature& signature) {
  if (signature.*Member == Value) return "";
  return std::nullopt;
}
template <auto Member, auto Parse>
Result<void> set_value(Signature& signature, std::string_view value) {
  auto parsed = Parse(value);
  if (!parsed) return pass_on(parsed.error());
  signature.*Member = *parsed;
  return {};
}
template <auto Member, auto Text>
std::optional<std::string> show_value(const Signature& signature) {
  if (signature.*Member) return Text(*(signature.*Member));
  return std::nullopt;
}

Result<std::uint64_t> parse_positive_bytes(std::string_view text) {
  auto bytes = parse_bytes(text);
  if (bytes && *bytes == 0) return fail(ErrorKind::bad_input, "'{}' must be at least 1 byte", text);
  return bytes;
}
Result<double> parse_positive_seconds(std::string_view text) {
  auto seconds = parse_seconds(text);
  if (seconds && !(*seconds > 0)) return fail(ErrorKind::bad_input, "'{}' must be longer than 0", text);
  return seconds;
}
Result<std::uint64_t> parse_count_of(std::string_view things, std::string_view text, std::uint64_t most) {
  const auto count = parse_count<std::uint64_t>(text);
  if (!count || *count < 1 || *count > most)
    return fail(ErrorKind::bad_input, "'{}': expected a number of {}, 1 to {}", printable(text), things, most);
  return *count;
}
Result<std::uint64_t> parse_targets(std::string_view text) {
  return parse_count_of("mount points", text, max_container_targets);
}
Result<std::uint64_t> parse_passes(std::string_view text) { return parse_count_of("passes", text, max_passes); }
/// A word that is an order of accesses is no file: `order(random)` would else be read as one.
Result<std::string> parse_file_of_reads(std::string_view text) {
  if (text == "random" || text == "sequential")
    return fail(ErrorKind::bad_input,
                "'{0}': expected a file; accesses in {0} order are declared by '{0}' alone. A file of "
                "that name: ./{0}",
                text);
  if (text.find('"') != std::string_view::npos || printable(text) != text)
    return fail(ErrorKind::bad_input,
                "'{}': expected the path of a file, without quotation marks and control characters", printable(text));
  return std::string(text);
}
template <DeclaredReads::Form Form>
Result<void> set_reads(Signature& signature, std::string_view value) {
  auto file = parse_file_of_reads(value);
  if (!file) return pass_on(std::move(file.error()));
  signature.reads = DeclaredReads{Form, *std::move(file)};
  return {};
}
template <DeclaredReads::Form Form>
std::optional<std::string> show_reads(const Signature& signature) {
  if (!signature.reads || signature.reads->form != Form) return std::nullopt;
  const std::string& file = signature.reads->file;
  const bool is_plain = file.find_first_of("()") == std::string::npos && trimmed(file) == file;
  return is_plain ? file : '"' + file + '"';
}
std::string count_text(std::uint64_t count) { return fmt::format("{}", count); }
std::string number_text(double number) { return fmt::format("{}", number); }
std::string policy_text(Policy policy) { return name_of(policy); }

enum Group { none, order, visibility, lifetime, synchrony, residence, declared_reads };

template <auto Member, auto Value>
constexpr Parameter flag(std::string_view name, std::string_view meaning, int group = none) {
  return {name, "", meaning, "", group, set_flag<Member, Value>, show_flag<Member, Value>};
}
template <auto Member, auto Parse, auto Text>
constexpr Parameter value(std::string_view name, std::string_view example, std::string_view meaning,
                          std::string_view implied = "") {
  return {name, example, meaning, implied, none, set_value<Member, Parse>, show_value<Member, Text>};
}

template <DeclaredReads::Form Form>
constexpr Parameter file_of_reads(std::string_view name, std::string_view example, std::string_view meaning) {
  return {name, example, meaning, "", declared_reads, set_reads<Form>, show_reads<Form>};
}

using S = Signature;
constexpr Parameter parameters[] = {
    // | `global`, `local` | every node of the job must see the data; one node is enough | constraint |
    flag<&S::visibility, Visibility::global>("global", "every node of the job must see the data", visibility),
    flag<&S::visibility, Visibility::local>("local", "one node is enough", visibility),
    // | `random`, `sequential` | accesses are at random offsets; accesses are contiguous | descriptive |
    flag<&S::access, AccessOrder::random>("random", "accesses jump about", order),
    flag<&S::access, AccessOrder::sequential>("sequential", "accesses follow one another", order),
    // | `sync`, `nosync` | each operation waits for the storage (fdatasync, O_SYNC, O_DIRECT), the default, and
    // reads of data that the stream has written come from the page cache (not with O_DIRECT); operations go through the
    // page cache | descriptive |
    flag<&S::synchrony, Synchrony::sync>("sync", "each operation waits for the storage: fdatasync, O_SYNC, O_DIRECT",
                                         synchrony),
    flag<&S::synchrony, Synchrony::nosync>("nosync", "operations go through the page cache, nothing waits", synchrony),
    // | `persist`, `temp` | the data must survive a power failure; the data may be deleted when the job ends |
    // constraint |
    flag<&S::lifetime, Lifetime::persist>("persist", "the data must survive a loss of power", lifetime),
    flag<&S::lifetime, Lifetime::temp>("temp", "the data may go when the job ends", lifetime),
    // | `home`, `rest` | the data must be at their path after the job; the data may stay on persistent storage where
    // they were written, behind a link at their path ([below](#home-or-rest)) | decision |
    flag<&S::residence, Residence::home>("home", "the data must be at their path after the job", residence),
    flag<&S::residence, Residence::rest>("rest", "the data may stay where they are written, behind a link", residence),
    // | `volatile` | the data may be lost with power although they are not `temp`: memory is admissible, and the data
    // come home from there | constraint |
    flag<&S::may_be_volatile, true>("volatile", "data that are not temp may be lost with power, too"),
    // | `archive` | written for archival, seldom read: archive mount points only | constraint |
    flag<&S::archive, true>("archive", "written for archival, seldom read: archive mount points only"),
    // | `tamperproof` | must not be altered later: tamperproof mount points only | constraint |
    flag<&S::tamperproof, true>("tamperproof", "must not be altered later: tamperproof mount points only"),
    // | `container`, `container(2)` | a [container](container.md): a log for each writer instead of one file for all,
    // its data on the best mount point, or spread over the best 2 ([below](#container)) | form |
    value<&S::container_targets, parse_targets, count_text>(
        "container", "2", "a log for each writer instead of one file for all, over so many mount points", "1"),
    // | `size-per-IO(16MB)` | typical size of one read or write | descriptive |
    value<&S::bytes_per_io, parse_positive_bytes, bytes_text>("size-per-IO", "16MB",
                                                              "typical size of one read or write"),
    // | `totalsize(6GB)` | space that the data need | constraint |
    value<&S::total_bytes, parse_positive_bytes, bytes_text>("totalsize", "6GB", "room that the data needs"),
    // | `read-share(30%)` | share of the operations that read; by default all operations write. `read-share(1)`: the
    // data exist and are only read | descriptive |
    value<&S::read_share, parse_share, number_text>("read-share", "30%", "share of the operations that read"),
    // | `passes(3)` | bytes that the job transfers, as a multiple of `totalsize`; default 1. With `passes(3)
    // read-share(67%)` they are written once and read twice | descriptive |
    value<&S::passes, parse_passes, count_text>("passes", "3", "how often the job transfers all the data"),
    // | `think-time(10min)` | time that the job computes between its transfers; the page cache is stored meanwhile.
    // Default 0 | descriptive |
    value<&S::think_s, parse_positive_seconds, seconds_text>("think-time", "10min",
                                                             "time that the job computes between its transfers"),
    // | `MTTDL(20y)` | smallest acceptable mean time to data loss | constraint |
    value<&S::mttdl_s, parse_positive_seconds, seconds_text>("MTTDL", "20y",
                                                             "smallest acceptable mean time to data loss"),
    // | `availability(1e-6)` | largest acceptable probability of losing the data during `duration` (default: one year)
    // | constraint |
    value<&S::availability, parse_share, number_text>(
        "availability", "1e-6", "largest acceptable probability of losing the data during duration"),
    // | `duration(2h)` | how long the data are needed | constraint |
    value<&S::duration_s, parse_positive_seconds, seconds_text>("duration", "2h", "how long the data is needed"),
    // | `pattern(field.reads)`, `order(epoch.order)` | a file that says how the data will be read
    // ([below](#pattern-and-order)) | prefetching |
    file_of_reads<DeclaredReads::Form::pattern>("pattern", "field.reads",
                                                "a file with the pattern in which the data will be read"),
    file_of_reads<DeclaredReads::Form::order>("order", "epoch.order",
                                              "a file with the order in which records will be read"),
    // | `policy(paper)` | which [policy](choice.md#policies) decides: `job` or `paper` | decision |
    value<&S::policy, parse_policy, policy_text>("policy", "paper",
                                                 "job: time of the whole job; paper: throughput alone"),
};

const Parameter* find_parameter(std::string_view name) {
  const auto* it = std::ranges::find(parameters, name, &Parameter::name);
  return it == std::end(parameters) ? nullptr : it;
}

struct ScannedParameter {
  std::string name;
  Span at;  ///< of the name
  std::optional<std::string> value;
  Span value_at;  ///< without parentheses
};

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; }

/// Splits the text into parameters. Stops at the first syntax error, since the rest would be a guess.
class Scanner {
 public:
  Scanner(std::string_view text, std::vector<Diagnostic>& diagnostics) : text_(text), diagnostics_(diagnostics) {}

  std::optional<ScannedParameter> next() {
    skip_blanks();
    if (at_ >= text_.size()) return std::nullopt;
    ScannedParameter found;
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
    if (at_ == begin) {
      const bool stray_value = text_[at_] == '(';
      stop({begin, begin + 1},
           stray_value ? std::string("expected a parameter name before '('")
                       : fmt::format("expected a parameter name, found '{}'", printable(text_.substr(begin, 1))));
      return std::nullopt;
    }
    found.name = text_.substr(begin, at_ - begin);
    found.at = {begin, at_};
    skip_blanks(false);
    if (at_ < text_.size() && text_[at_] == '(') {
      if (!scan_value(found)) return std::nullopt;
    }
    return found;
  }

 private:
  void skip_blanks(bool commas = true) {
    while (at_ < text_.size() &&
           (std::isspace(static_cast<unsigned char>(text_[at_])) || (commas && text_[at_] == ',')))
      ++at_;
  }

  bool scan_value(ScannedParameter& found) {
    const Span open{at_, at_ + 1};
    ++at_;
    skip_blanks(false);
    std::string value;
    std::size_t begin = at_;
    std::size_t end = 0;
    if (at_ < text_.size() && text_[at_] == '"') {
      const std::size_t close = text_.find('"', at_ + 1);
      if (close == std::string_view::npos)
        return stop({at_, text_.size()}, "the quoted value is not closed; expected '\"'");
      value = text_.substr(at_ + 1, close - at_ - 1);
      at_ = end = close + 1;
      skip_blanks(false);
      if (at_ < text_.size() && text_[at_] != ')') return stop({at_, at_ + 1}, "expected ')' after the quoted value");
    } else {
      while (at_ < text_.size() && text_[at_] != ')' && text_[at_] != '(') ++at_;
      if (at_ < text_.size() && text_[at_] == '(')
        return stop({at_, at_ + 1}, "a value holds no parentheses; expected ')'");
      value = trimmed(text_.substr(begin, at_ - begin));
      end = begin + value.size();
    }
    if (at_ >= text_.size()) {
      return stop(open, fmt::format("the '(' after '{}' is not closed; expected ')'", found.name));
    }
    ++at_;
    if (value.empty()) {  // the place between the parentheses
      begin = open.begin;
      end = at_;
    }
    found.value = std::move(value);
    found.value_at = {begin, end};
    return true;
  }

  bool stop(Span at, std::string message) {
    diagnostics_.push_back({Severity::error, at, std::move(message), "", {}, ""});
    at_ = text_.size();
    return false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Diagnostic>& diagnostics_;
};

/// `definitions`: where to look up a name; nullptr inside a definition, where no name is expected.
void report_unknown(const ScannedParameter& scanned, const SignatureDefinitions* definitions, ParsedSignature& result) {
  const bool is_definition = definitions != nullptr && definitions->contains(scanned.name);
  if (is_definition || (definitions != nullptr && find_preset(scanned.name) != nullptr)) {
    result.diagnostics.push_back({Severity::error,
                                  scanned.at,
                                  fmt::format("'{}' names a {}; expected it first, without a value, and once",
                                              scanned.name, is_definition ? "definition" : "preset"),
                                  "",
                                  {},
                                  ""});
    return;
  }
  std::vector<std::string_view> known;
  for (const Parameter& parameter : parameters) known.push_back(parameter.name);
  if (definitions != nullptr) {
    for (const auto& [name, signature] : *definitions) known.emplace_back(name);
    for (const Preset& preset : presets())
      if (!definitions->contains(preset.name)) known.push_back(preset.name);
  }
  std::string message = fmt::format("unknown parameter '{}'", scanned.name);
  const std::string_view near = nearest_name(scanned.name, known);
  if (near.empty()) message += fmt::format("; expected one of {}", fmt::join(known, " "));
  result.diagnostics.push_back({Severity::error, scanned.at, std::move(message), std::string(near), {}, ""});
}

/// Parses parameters into result.signature, which may already hold a definition. `definitions`: as in report_unknown.
void parse_parameters(Scanner& scanner, std::optional<ScannedParameter> scanned,
                      const SignatureDefinitions* definitions, ParsedSignature& result) {
  struct Given {
    const Parameter* parameter;
    Span at;
  };
  std::vector<Given> given;
  const auto error = [&](Span at, std::string message) {
    result.diagnostics.push_back({Severity::error, at, std::move(message), "", {}, ""});
  };
  Span temp_or_home;  // the last of them
  for (; scanned; scanned = scanner.next()) {
    if (scanned->name == "temp" || scanned->name == "home") temp_or_home = scanned->at;
    const Parameter* parameter = find_parameter(scanned->name);
    if (parameter == nullptr) {
      report_unknown(*scanned, definitions, result);
      continue;
    }
    // one message each, with the first place of the parameter or of one that it excludes
    const auto earlier = std::ranges::find_if(given, [&](const Given& one) {
      return one.parameter == parameter || (parameter->group != none && one.parameter->group == parameter->group);
    });
    if (earlier == given.end()) {
      given.push_back({parameter, scanned->at});
    } else if (earlier->parameter == parameter) {
      result.diagnostics.push_back({Severity::warning, scanned->at,
                                    fmt::format("'{}' is given twice; the last one counts", scanned->name), "",
                                    earlier->at, "first given here"});
    } else {
      result.diagnostics.push_back(
          {Severity::error, scanned->at,
           fmt::format("'{}' contradicts '{}'; expected one of them", scanned->name, earlier->parameter->name), "",
           earlier->at, fmt::format("'{}' is given here", earlier->parameter->name)});
    }
    if (parameter->example.empty()) {
      if (scanned->value) {
        error(scanned->value_at, fmt::format("'{}' takes no value", scanned->name));
        continue;
      }
      (void)parameter->set(result.signature, "");
    } else if (!scanned->value && !parameter->implied.empty()) {
      (void)parameter->set(result.signature, parameter->implied);
    } else if (!scanned->value || scanned->value->empty()) {
      error(scanned->value ? scanned->value_at : scanned->at,
            fmt::format("'{}' needs a value, e.g. {}({})", scanned->name, parameter->name, parameter->example));
    } else if (const auto done = parameter->set(result.signature, *scanned->value); !done) {
      error(scanned->value_at, fmt::format("{}: {}", scanned->name, done.error().message));
    }
  }
  // Not a group: temp and rest go together. From a definition, too: its data would be deleted, and not brought home.
  if (result.signature.lifetime == Lifetime::temp && result.signature.residence == Residence::home)
    error(temp_or_home, "'home' contradicts 'temp': temporary data are deleted after the job; expected one of them");
}

void sort_by_place(std::vector<Diagnostic>& diagnostics) {
  std::ranges::stable_sort(diagnostics, {}, [](const Diagnostic& diagnostic) { return diagnostic.at.begin; });
}

}  // namespace

Result<Policy> parse_policy(std::string_view name) {
  for (const Policy policy : {Policy::job, Policy::paper})
    if (name == name_of(policy)) return policy;
  return fail(ErrorKind::bad_input, "'{}': expected a policy, job or paper", printable(name));
}

bool ParsedSignature::ok() const {
  return std::ranges::none_of(diagnostics, [](const Diagnostic& d) { return d.severity == Severity::error; });
}

ParsedSignature parse_sig(std::string_view text, const SignatureDefinitions& definitions) {
  ParsedSignature result;
  Scanner scanner(text, result.diagnostics);
  std::optional<ScannedParameter> first = scanner.next();
  if (first && !first->value) {
    if (const auto definition = definitions.find(first->name); definition != definitions.end()) {
      result.name = first->name;
      result.signature = definition->second;
      first = scanner.next();
    } else if (const Preset* preset = find_preset(first->name)) {
      result.name = first->name;
      result.signature = parse_sig(preset->signature).signature;
      first = scanner.next();
    }
  }
  parse_parameters(scanner, std::move(first), &definitions, result);
  sort_by_place(result.diagnostics);
  return result;
}

ParsedSignature parse_sigdef(std::string_view text) {
  ParsedSignature result;
  Scanner scanner(text, result.diagnostics);
  const std::optional<ScannedParameter> name = scanner.next();
  const auto error = [&](Span at, std::string message) {
    result.diagnostics.push_back({Severity::error, at, std::move(message), "", {}, ""});
  };
  if (!name) {
    if (result.ok()) error({0, text.size()}, "expected a name and parameters, e.g. sigdef scratch temp random");
  } else if (find_parameter(name->name) != nullptr) {
    error(name->at,
          fmt::format("'{}' is a parameter and cannot name a signature; expected a new name first", name->name));
  } else if (name->value) {
    error(name->value_at,
          fmt::format("the name '{}' takes no value; expected a name first, then parameters", name->name));
  } else {
    result.name = name->name;
    parse_parameters(scanner, scanner.next(), nullptr, result);
  }
  sort_by_place(result.diagnostics);
  return result;
}

Result<Signature> parse_signature(std::string_view text, const SignatureDefinitions& definitions,
                                  std::string_view source) {
  const ParsedSignature parsed = parse_sig(text, definitions);
  if (parsed.ok()) return parsed.signature;
  std::string message;
  for (const Diagnostic& diagnostic : parsed.diagnostics) {
    if (diagnostic.severity != Severity::error) continue;
    if (!message.empty()) message += '\n';
    message += diagnostic_text(diagnostic, text, source);
  }
  return fail(ErrorKind::bad_input, "{}", message);
}

std::string signature_text(const Signature& signature) {
  std::string text;
  for (const Parameter& parameter : parameters) {
    const auto value = parameter.show(signature);
    if (!value) continue;
    if (!text.empty()) text += ' ';
    text += parameter.name;
    if (!parameter.example.empty() && *value != parameter.implied) text += fmt::format("({})", *value);
  }
  return text;
}

std::string diagnostic_text(const Diagnostic& diagnostic, std::string_view text, std::string_view source) {
  const std::size_t begin = std::min(diagnostic.at.begin, text.size());
  const std::size_t line_begin = begin == 0 ? 0 : text.rfind('\n', begin - 1) + 1;  // npos + 1 == 0
  const std::size_t line_end = std::min(text.find('\n', begin), text.size());
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(line_begin), '\n');
  std::string shown = fmt::format("{}:{}:{}: {}: {}", source, line, begin - line_begin + 1,
                                  diagnostic.severity == Severity::error ? "error" : "warning", diagnostic.message);
  if (!diagnostic.suggestion.empty()) shown += fmt::format("; did you mean '{}'?", diagnostic.suggestion);
  const std::size_t marked =
      std::max<std::size_t>(1, std::min(diagnostic.at.end, line_end) - std::min(begin, line_end));
  shown += fmt::format("\n  {}\n  {}^{}", printable(text.substr(line_begin, line_end - line_begin)),
                       std::string(begin - line_begin, ' '), std::string(marked - 1, '~'));
  if (diagnostic.other)
    shown += fmt::format("\n  note: {} (column {})", diagnostic.other_message,
                         diagnostic.other->begin - std::min(line_begin, diagnostic.other->begin) + 1);
  return shown;
}

const std::vector<ParameterInfo>& signature_parameters() {
  static const std::vector<ParameterInfo> infos = [] {
    std::vector<ParameterInfo> all;
    for (const Parameter& parameter : parameters) all.push_back({parameter.name, parameter.example, parameter.meaning});
    return all;
  }();
  return infos;
}

}  // namespace iosig
