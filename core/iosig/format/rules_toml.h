// A rules file: path globs bound to signatures, for programs without source. The format is docs/formats/rules.md.
//
//   schema = "iosig.rules/1"
//   policy = "job"                 optional: for every rule whose signature has none
//   drain = true                   optional: for every rule that does not have the key
//   [sigdef]
//   scratch = "temp random"
//   [[rule]]
//   path = "/data/run*/out.bin"
//   sig = "scratch totalsize(6GB)"
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/signature.h"

namespace iosig {

struct Rule {
  std::string
      path_glob;  ///< fnmatch(3) with FNM_PATHNAME; a leading "~/" is the home directory; relative to the rules file
  Signature signature;
  bool drain = false;    ///< prepare starts a drain: the file comes home when the program has closed it
  std::size_t line = 0;  ///< of the signature in the rules file, counted from 1
};

struct Rules {
  SignatureDefinitions definitions;
  std::vector<Rule> rules;  ///< in file order; the first match counts
};

/// Starts a rules file.
inline constexpr std::string_view rules_head = "schema = \"iosig.rules/1\"\n";
/// Returns a rule as lines of a rules file. The glob is UTF-8.
[[nodiscard]] std::string rule_text(std::string_view path_glob, std::string_view signature);
[[nodiscard]] Result<Rules> parse_rules(std::string_view text, std::string_view source);
/// Returns an earlier rule that matches everything that `rules.rules[number]` matches, which makes the latter
/// unreachable. Returns nullptr if there is none or it is not evident (evident only if `*` is the earlier rule's only
/// wildcard).
[[nodiscard]] const Rule* rule_that_hides(const Rules& rules, std::size_t number);
/// Returns the first rule that matches, or nullptr.
[[nodiscard]] const Rule* match_rule(const Rules& rules, const std::string& path);

}  // namespace iosig
