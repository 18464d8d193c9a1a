// `iosig check`: reports the same errors in pragmas as the compiler plugin, without compiling, and errors in rules
// files and storage descriptions.

#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "check_report.h"
#include "commands.h"
#include "iosig/base/files.h"
#include "iosig/base/json_text.h"
#include "iosig/base/text.h"
#include "iosig/check/fortran_text.h"
#include "iosig/config/storage_file.h"
#include "iosig/decide/placement.h"
#include "iosig/enact/circumstances.h"
#include "iosig/format/opener_text.h"
#include "iosig/format/rules_toml.h"
#include "iosig/format/storage_toml.h"

namespace iosig::cli {
namespace {

using Severity = Diagnostic::Severity;

struct CheckArguments {
  std::vector<std::string> files, include_directories, definitions, callees;
  std::string storage, language;
  bool sarif = false, strict = false;
};

struct Report {
  std::vector<SourceFinding> findings;
  std::vector<SourceNote> missing;
  std::vector<Error> unreadable;
};

bool is_cxx(const CheckArguments& options, const std::string& file) {
  if (!options.language.empty()) return options.language == "c++";
  const std::size_t dot = file.rfind('.');
  const std::string ending = dot == std::string::npos ? "" : file.substr(dot + 1);
  return ending != "c" && ending != "h" && ending != "i";
}

SourceLanguage language_of(const CheckArguments& options, const std::string& file) {
  SourceLanguage language;
  language.is_cxx = is_cxx(options, file);
  language.include_directories = options.include_directories;
  for (const std::string& definition : options.definitions) {
    const std::size_t equals = definition.find('=');
    language.definitions.emplace_back(definition.substr(0, equals),
                                      equals == std::string::npos ? "1" : definition.substr(equals + 1));
  }
  return language;
}

/// Reads the description as if all mount points were empty: a full disk is not an error in a source.
Result<Storage> read_description(const std::string& file) {
  auto applied = read_applied_storage(file);
  if (!applied) return pass_on(applied.error());
  Storage storage = std::move((*applied)->storage);  // there is one: `file` names it
  for (MountPoint& mount : storage.mount_points) {
    const Device* device = storage.find_device(mount.device);
    if (!mount.free_bytes) mount.free_bytes = device->capacity_bytes.value_or(max_bytes);
  }
  return storage;
}

void check_storage(const SourcePosition& at, const Signature& wanted, const Storage& storage, Report& report) {
  const auto given = circumstances_at(nullptr, wanted, storage, {}, [] { return ask_page_cache(); });
  const Choice choice = choose_mount_point(wanted, storage, given.value_or(Circumstances{}));
  if (const std::string warning = choice.chosen ? room_warning(wanted, storage, {}, choice) : ""; !warning.empty()) {
    constexpr const char* rule = "room";  // once: it is about the storage more than about this stream
    if (std::ranges::find(report.findings, rule, &SourceFinding::rule) == report.findings.end())
      report.findings.push_back({Severity::warning, rule, at, warning + "; declare totalsize(...)", "", false, {}});
  }
  if (choice.chosen) return;
  SourceFinding finding{Severity::warning,
                        "storage",
                        at,
                        fmt::format("no mount point suits '{}': the file is not redirected", signature_text(wanted)),
                        "",
                        false,
                        {}};
  for (const Candidate& candidate : choice.candidates)
    finding.notes.push_back({at, fmt::format("{}: {}", candidate.mount_point, fmt::join(candidate.reasons, "; "))});
  report.findings.push_back(std::move(finding));
}

// ---- rules files and storage descriptions

std::string line_of(std::string_view text, std::size_t number) {
  for (; number > 1 && !text.empty(); --number) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return std::string(text.substr(0, text.find('\n')));
}

/// Removes "name:line:column: " from the beginning of `message` and returns line and column; nothing if it does not
/// begin like this.
std::optional<std::pair<std::size_t, std::size_t>> take_place(std::string_view& message, std::string_view name) {
  if (!message.starts_with(fmt::format("{}:", name))) return std::nullopt;
  const char* const end = message.data() + message.size();
  std::size_t line = 0, column = 0;
  const auto after_line = std::from_chars(message.data() + name.size() + 1, end, line);
  if (after_line.ec != std::errc{} || after_line.ptr + 1 >= end || line == 0) return std::nullopt;
  const auto after_column = std::from_chars(after_line.ptr + 1, end, column);
  if (after_column.ec != std::errc{} || column == 0) return std::nullopt;
  message = std::string_view(std::min(after_column.ptr + 2, end), end);
  return std::pair(line, column);
}

/// Converts a parser's message about a file to a finding. A message without a place refers to line 1.
SourceFinding as_finding(const std::string& file, std::string_view text, std::string_view message) {
  const auto [line, column] = take_place(message, file).value_or(std::pair<std::size_t, std::size_t>(1, 1));
  SourcePosition at{file, line, column, column, line_of(text, line)};
  // The message about a signature in quotes contains a second place, within the signature.
  const bool is_signature = take_place(message, "sig").has_value() || take_place(message, "sigdef").has_value();
  if (is_signature && message.starts_with("error: ")) message.remove_prefix(7);
  return {Severity::error, "file", std::move(at), std::string(message.substr(0, message.find('\n'))), "", false, {}};
}

void check_toml(const std::string& file, const std::string& text, const Storage* storage, Report& report) {
  // For a file without a schema, either parser reports the error.
  if (text.find("iosig.storage/") != std::string::npos) {
    if (const auto parsed = parse_storage(text, file); !parsed)
      report.findings.push_back(as_finding(file, text, parsed.error().message));
    return;
  }
  const auto rules = parse_rules(text, file);
  if (!rules) return report.findings.push_back(as_finding(file, text, rules.error().message));
  for (const Rule& rule : rules->rules)
    if (storage != nullptr)
      check_storage({file, rule.line, 1, 1, line_of(text, rule.line)}, rule.signature, *storage, report);
}

// ----

void check_file(const CheckArguments& options, const std::string& file, std::span<const Opener> callees,
                const Storage* storage, Report& report) {
  auto text = read_file(file);
  if (!text) return report.unreadable.push_back(text.error());
  if (file.ends_with(".toml")) return check_toml(file, *text, storage, report);
  const auto read_include = [](const std::string& path) -> std::optional<std::string> {
    auto content = read_file(path);
    return content ? std::optional(*std::move(content)) : std::nullopt;
  };
  CheckedSource checked = is_free_form(file)
                              ? check_fortran(file, *text, language_of(options, file).definitions)
                              : check_source(file, *std::move(text), language_of(options, file), callees, read_include);
  for (SourceFinding& finding : checked.findings) report.findings.push_back(std::move(finding));
  for (SourceNote& missing : checked.missing) report.missing.push_back(std::move(missing));
  if (storage == nullptr) return;
  for (const auto& [at, signature] : checked.signatures) check_storage(at, signature, *storage, report);
}

/// Removes duplicates: findings in a header are reported once for each source that includes it.
void drop_duplicates(std::vector<SourceFinding>& findings) {
  std::set<std::tuple<std::string, std::size_t, std::size_t, std::string>> seen;
  std::erase_if(findings, [&](const SourceFinding& finding) {
    return !seen.emplace(finding.at.file, finding.at.line, finding.at.column, finding.message).second;
  });
}

void talk_about_missing(const std::vector<SourceNote>& missing, const Console& console) {
  std::set<std::string> names;
  for (const SourceNote& include : missing) names.insert(include.message);
  if (names.empty()) return;
  console.note(fmt::format("{} included {} not found, what {} defines is unknown (-I DIR tells where to look): {}",
                           names.size(), names.size() == 1 ? "file is" : "files are", names.size() == 1 ? "it" : "they",
                           printable(fmt::format("{}", fmt::join(names, " ")))));
}

std::string count(std::size_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

int run_check(const CheckArguments& options, Console& console) {
  std::optional<Storage> storage;
  if (!options.storage.empty()) {
    auto read = read_description(options.storage);
    if (!read) return console.fail(read.error());
    storage = *std::move(read);
  }
  std::vector<Opener> callees;
  for (const std::string& text : options.callees) {
    const auto callee = parse_callee(text, "--callee");
    if (!callee) return console.fail(callee.error());
    callees.push_back(*callee);
  }
  Report report;
  for (const std::string& file : options.files)
    check_file(options, file, callees, storage ? &*storage : nullptr, report);
  drop_duplicates(report.findings);
  const auto errors =
      static_cast<std::size_t>(std::ranges::count(report.findings, Severity::error, &SourceFinding::severity));
  const std::size_t warnings = report.findings.size() - errors;

  if (options.sarif) {
    console.say(json_page(sarif(report.findings)));
  } else if (console.json) {
    auto list = nlohmann::ordered_json::array();
    for (const SourceFinding& finding : report.findings) list.push_back(finding_json(finding));
    console.say_json("iosig.check/1", {{"findings", list}, {"errors", errors}, {"warnings", warnings}});
  } else {
    for (const SourceFinding& finding : report.findings) console.say(finding_text(finding));
  }
  talk_about_missing(report.missing, console);
  const std::size_t unread = report.unreadable.size();
  console.talk(fmt::format("iosig: {} and {} in {}{}", count(errors, "error"), count(warnings, "warning"),
                           count(options.files.size() - unread, "file"),
                           unread == 0 ? "" : fmt::format("; {} could not be read", count(unread, "file"))));
  int status = errors > 0 || (options.strict && warnings > 0) ? no : yes;
  for (const Error& error : report.unreadable) status = std::max(status, console.fail(error));
  return status;
}

}  // namespace

void add_check(Verb app, Action& action) {
  const Verb verb = app.add_verb("check", "Check pragmas, rules files and storage descriptions without compiling");
  const auto options = std::make_shared<CheckArguments>();
  verb.add_option("FILE", options->files,
                  "sources of C, C++ and Fortran; rules files and storage descriptions (*.toml)")
      .required();
  const auto add_list = [&](const char* name, std::vector<std::string>& list, const char* help, const char* type) {
    verb.add_option(name, list, help).repeatable().type_name(type);
  };
  add_list("-I,--include", options->include_directories, "search this directory for included files; may be repeated",
           "DIR");
  add_list("-D,--define", options->definitions, "define NAME as #define does; may be repeated", "NAME[=VALUE]");
  add_list("--callee", options->callees,
           "a function of yours that opens files, with the numbers of its arguments for path and mode, e.g. "
           "my_open:1:2; may be repeated",
           "NAME:PATH[:MODE]");
  verb.add_option("-x,--language", options->language, "c or c++, whatever the file's suffix")
      .check(one_of({"c", "c++"}))
      .type_name("NAME");
  verb.add_option("--storage", options->storage, "warn about signatures that no mount point of this description admits")
      .type_name("FILE");
  verb.add_flag("--strict", options->strict, "warnings count as findings");
  const Option sarif = verb.add_flag("--sarif", options->sarif, "print SARIF 2.1.0, for code scanning");
  verb.footer(
      "Exit status: 0 no errors (with --strict: nothing at all), 1 findings, 3 or 4 a file cannot be read.\n"
      "Example: iosig check -I include --storage storage.toml src/*.c");
  verb.when_chosen(action, "iosig.check/1", [options](Console& console) { return run_check(*options, console); });
  sarif.excludes("--json");
}

}  // namespace iosig::cli
