// Fuzzes the checks of source text: the input is a C source whose first byte, if it is a '+', makes it C++. It may
// include itself. The input is checked as Fortran, too.
#include "iosig/check/fortran_text.h"
#include "iosig/check/source_text.h"
#include "property.h"

using namespace iosig;
using fuzz::hold;

void try_one(std::string_view text) {
  const std::string source(text);
  const ReadInclude read = [&](const std::string& path) {
    return path == "self.h" ? std::optional(source) : std::nullopt;
  };
  const SourceLanguage language{.is_cxx = text.starts_with('+'), .max_work = 100'000};
  const auto check_position = [](const SourcePosition& at) {
    hold(at.line >= 1 && at.column >= 1 && at.column <= at.end_column, "a place is a range of columns", at.line_text);
    hold(at.column <= at.line_text.size() + 1, "a place is in its line", at.line_text);
  };
  const CheckedSource checked = check_source("main.c", source, language, {}, read);
  for (const CheckedSource& each : {checked, check_fortran("main.f90", text)}) {
    for (const SourceFinding& finding : each.findings) {
      hold(!finding.message.empty() && !finding.rule.empty(), "a finding says something");
      check_position(finding.at);
      for (const SourceNote& note : finding.notes) check_position(note.at);
    }
    for (const SourceDirective& directive : each.directives) {
      check_position(directive.at);
      hold(directive.last_line >= directive.at.line, "a directive ends after it begins");
      hold(directive.clauses.size() == directive.directive.clauses.size(), "each clause has a place");
      for (const SourcePosition& clause : directive.clauses) check_position(clause);
    }
  }
  for (const auto& [at, signature] : checked.signatures) {
    check_position(at);
    const auto again = parse_signature(signature_text(signature));
    hold(again && *again == signature, "a signature that was found is read back", at.line_text);
  }
}
