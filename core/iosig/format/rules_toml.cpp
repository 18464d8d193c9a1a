#include "iosig/format/rules_toml.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>

#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/format/container_globs.h"
#include "iosig/format/signature_text.h"
#include "iosig/format/toml_text.h"

namespace iosig {
namespace {

constexpr std::string_view rules_schema = "iosig.rules/1";

std::string place(std::string_view source, const toml::source_position& at) {
  return fmt::format("{}:{}:{}", source, at.line, at.column);
}

Result<void> check_keys(const toml::table& table, std::string_view source, const std::vector<std::string_view>& known) {
  for (const auto& [key, node] : table)
    if (std::ranges::find(known, key.str()) == known.end())
      return fail(ErrorKind::bad_input, "{}: unknown key '{}'{}; known here: {}", place(source, key.source().begin),
                  printable(key.str()), did_you_mean(key.str(), known), fmt::join(known, " "));
  return {};
}

/// Makes a path absolute: "~/" is the home directory; a relative one starts at the directory of the rules file, with
/// symbolic links resolved as in the paths that a glob is matched against. `as_written` gives the directory in front as
/// it is written there.
template <class AsWritten>
std::string absolute_path(const std::string& path, std::string_view source, const AsWritten& as_written) {
  namespace fs = std::filesystem;
  if (path.starts_with('/')) return fs::path(path).lexically_normal().string();
  if (path.starts_with("~/"))
    return fs::path(as_written(home_directory()) + path.substr(1)).lexically_normal().string();
  std::error_code ignored;
  const auto directory = fs::weakly_canonical(fs::absolute(source, ignored).parent_path(), ignored);
  return (fs::path(as_written(directory.string())) / path).lexically_normal().string();
}

/// The directory in front of a relative glob may have any name, and matches itself alone.
std::string absolute_glob(const std::string& glob, std::string_view source) {
  return absolute_path(glob, source, escaped_glob);
}
std::string absolute_file(const std::string& file, std::string_view source) {
  return absolute_path(file, source, [](std::string directory) { return directory; });
}

Result<void> read_definitions(const toml::table& root, std::string_view source, Rules& rules) {
  const toml::node* node = root.get("sigdef");
  if (node == nullptr) return {};
  const auto* table = node->as_table();
  if (table == nullptr)
    return fail(ErrorKind::bad_input, "{}: sigdef is not a table", place(source, node->source().begin));
  for (const auto& [key, value] : *table) {
    const std::string at = place(source, value.source().begin);
    const auto* text = value.as_string();
    if (text == nullptr) return fail(ErrorKind::bad_input, "{}: {}: expected a signature as text", at, key.str());
    const std::string whole = fmt::format("{} {}", key.str(), text->get());
    const ParsedSignature parsed = parse_sigdef(whole);
    for (const Diagnostic& diagnostic : parsed.diagnostics)
      if (diagnostic.severity == Diagnostic::Severity::error)
        return fail(ErrorKind::bad_input, "{}", diagnostic_text(diagnostic, whole, at + ": sigdef"));
    rules.definitions.emplace(parsed.name, parsed.signature);
  }
  return {};
}

/// Returns the policy for rules whose signature has none.
Result<std::optional<Policy>> read_policy(const toml::table& root, std::string_view source) {
  const toml::node* node = root.get("policy");
  if (node == nullptr) return std::nullopt;
  const auto* name = node->as_string();
  const auto policy = name == nullptr ? Result<Policy>(fail(ErrorKind::bad_input, "expected \"job\" or \"paper\""))
                                      : parse_policy(name->get());
  if (!policy)
    return fail(ErrorKind::bad_input, "{}: policy: {}", place(source, node->source().begin), policy.error().message);
  return *policy;
}

/// Returns the value of the key `drain`, or `otherwise` if there is none.
Result<bool> read_drain(const toml::table& table, std::string_view source, bool otherwise) {
  const toml::node* node = table.get("drain");
  if (node == nullptr) return otherwise;
  if (const auto* value = node->as_boolean()) return value->get();
  return fail(ErrorKind::bad_input, "{}: drain: expected true or false", place(source, node->source().begin));
}

Result<Rule> read_rule(const toml::node& node, std::string_view source, const SignatureDefinitions& definitions,
                       bool drain) {
  const std::string at = place(source, node.source().begin);
  const auto* table = node.as_table();
  if (table == nullptr) return fail(ErrorKind::bad_input, "{}: expected a table, i.e. [[rule]]", at);
  if (auto known = check_keys(*table, source, {"path", "sig", "drain"}); !known) return pass_on(known.error());
  const auto* path = (*table)["path"].as_string();
  const auto* sig = (*table)["sig"].as_string();
  if (path == nullptr || path->get().empty() || sig == nullptr)
    return fail(ErrorKind::bad_input, "{}: expected path = \"...\" and sig = \"...\"", at);
  if (path->get().ends_with('/') || path->get() == "~")
    return fail(ErrorKind::bad_input, "{}: '{}' matches no file: it names a directory; expected e.g. \"{}*\"",
                place(source, path->source().begin), printable(path->get()),
                path->get() == "~" ? "~/" : printable(path->get()));
  auto signature = parse_signature(sig->get(), definitions, place(source, sig->source().begin) + ": sig");
  if (!signature) return pass_on(signature.error());
  if (signature->reads) signature->reads->file = absolute_file(signature->reads->file, source);
  return read_drain(*table, source, drain).map([&](bool drains) {
    return Rule{absolute_glob(path->get(), source), *signature, drains, sig->source().begin.line};
  });
}

}  // namespace

Result<Rules> parse_rules(std::string_view text, std::string_view source) {
  const auto parsed = parse_toml(text, source);
  if (!parsed) return pass_on(parsed.error());
  const toml::table& root = *parsed;
  if (root["schema"].value_or(std::string{}) != rules_schema)
    return fail(ErrorKind::bad_input, "{}:1:1: expected schema = \"{}\" at the top", source, rules_schema);
  if (auto known = check_keys(root, source, {"schema", "policy", "drain", "sigdef", "rule"}); !known)
    return pass_on(known.error());
  Rules rules;
  if (auto read = read_definitions(root, source, rules); !read) return pass_on(read.error());
  const auto policy = read_policy(root, source);
  if (!policy) return pass_on(policy.error());
  const auto drain = read_drain(root, source, false);
  if (!drain) return pass_on(drain.error());
  const toml::node* list = root.get("rule");
  if (list != nullptr && list->is_table())
    return fail(ErrorKind::bad_input, "{}: expected [[rule]], one of a list, instead of [rule]",
                place(source, list->source().begin));
  if (list == nullptr || !list->is_array() || list->as_array()->empty())
    return fail(ErrorKind::bad_input, "{}:1:1: there is no [[rule]]; expected at least one", source);
  for (const toml::node& node : *list->as_array()) {
    auto rule = read_rule(node, source, rules.definitions, *drain);
    if (!rule) return pass_on(rule.error());
    if (!rule->signature.policy) rule->signature.policy = *policy;
    rules.rules.push_back(*std::move(rule));
  }
  return rules;
}

std::string rule_text(std::string_view path_glob, std::string_view signature) {
  return fmt::format("[[rule]]\npath = {}\nsig = {}\n", toml_string(path_glob), toml_string(signature));
}

const Rule* rule_that_hides(const Rules& rules, std::size_t number) {
  // A pattern with only `*` matches the text of a narrower pattern in the same way as each path of that pattern.
  for (std::size_t earlier = 0; earlier < number; ++earlier) {
    const std::string &wide = rules.rules[earlier].path_glob, &narrow = rules.rules[number].path_glob;
    if (wide == narrow ||
        (wide.find_first_of("?[\\") == std::string::npos && ::fnmatch(wide.c_str(), narrow.c_str(), FNM_PATHNAME) == 0))
      return &rules.rules[earlier];
  }
  return nullptr;
}

const Rule* match_rule(const Rules& rules, const std::string& path) {
  for (const Rule& rule : rules.rules)
    if (::fnmatch(rule.path_glob.c_str(), path.c_str(), FNM_PATHNAME) == 0) return &rule;
  return nullptr;
}

}  // namespace iosig
