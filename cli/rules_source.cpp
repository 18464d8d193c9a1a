#include "rules_source.h"

#include "iosig/base/text.h"
#include "iosig/base/trust.h"

namespace iosig::cli {

Result<Rules> read_rules(const std::string& file, const Console& console) {
  auto rules = read_configuration(file, Configuration::named).and_then([&](const std::string& text) {
    return parse_rules(text, file);
  });
  if (!rules) return rules;
  for (std::size_t i = 0; i < rules->rules.size(); ++i)
    if (const Rule* earlier = rule_that_hides(*rules, i))
      console.note(fmt::format("{}:{}: this rule never counts: all that it matches, the rule of line {} matches before",
                               printable(file), rules->rules[i].line, earlier->line));
  return rules;
}

}  // namespace iosig::cli
