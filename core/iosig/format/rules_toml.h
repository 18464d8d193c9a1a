// A rules file: path globs bound to signatures, for programs without source. The format is docs/formats/rules.md.
//
//   schema = "iosig.rules/1"
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
      path_glob;  ///< fnmatch(3) with FNM_PATHNAME; a leading "~/" is the home directory; relative: to the rules file
  Signature signature;
  std::size_t line = 0;  ///< of the signature in the rules file, from 1
};

struct Rules {
  SignatureDefinitions definitions;
  std::vector<Rule> rules;  ///< in file order; the first that matches counts
};

[[nodiscard]] Result<Rules> parse_rules(std::string_view text, std::string_view source);
/// The earlier rule that matches all that `rules.rules[number]` matches, so that this one never counts; nullptr when
/// there is none, or none that is plainly so (its only wildcards are `*`).
[[nodiscard]] const Rule* rule_that_hides(const Rules& rules, std::size_t number);
/// The first rule that matches, or nullptr.
[[nodiscard]] const Rule* match_rule(const Rules& rules, const std::string& path);

}  // namespace iosig
