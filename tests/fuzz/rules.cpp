// Fuzzes the rules file: reading it, and holding paths against its globs.
#include "iosig/format/rules_toml.h"
#include "iosig/format/signature_text.h"
#include "property.h"

using namespace iosig;
using fuzz::hold;

void try_one(std::string_view text) {
  const auto rules = parse_rules(text, "/rules.toml");
  if (!rules) {
    const std::string& message = rules.error().message;
    hold(rules.error().kind == ErrorKind::bad_input, "a refusal is bad input", message);
    hold(fuzz::names_a_line(message, "/rules.toml"), "a refusal names its place", message);
    return;
  }
  hold(!rules->rules.empty(), "there is a rule");
  for (const Rule& rule : rules->rules) {
    hold(rule.path_glob.starts_with('/'), "a glob is absolute", rule.path_glob);
    const auto again = parse_signature(signature_text(rule.signature));
    hold(again && *again == rule.signature, "a rule's signature is read back", signature_text(rule.signature));
  }
  for (const char* path : {"/data/run7/out.bin", "/home/ann/results/a[b]*.h5", "/"}) (void)match_rule(*rules, path);
}
