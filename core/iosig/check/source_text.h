// Checks the pragmas of a C or C++ source without a compiler. Produces the findings of the compiler's plugin, with the
// same words and places. Used by `iosig check`.
//
// Anything that needs types is left to the compiler: there is no finding for `x.open(...)` if x is not declared in the
// files read.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/check/source_tokens.h"
#include "iosig/format/directive_text.h"
#include "iosig/format/signature_text.h"
#include "iosig/model/opener.h"

namespace iosig {

/// A part of one line. Lines and columns count from 1, columns in bytes.
struct SourcePosition {
  std::string file;
  std::size_t line = 1, column = 1, end_column = 1;  ///< `end_column`: one past the last
  std::string line_text;

  bool operator==(const SourcePosition&) const = default;
};

struct SourceNote {
  SourcePosition at;
  std::string message;
};

struct SourceFinding {
  Diagnostic::Severity severity = Diagnostic::Severity::error;
  std::string_view rule;  ///< kind, for tools that filter: signature, definition, association, callee, directive,
                          ///< template, source, storage, room, file
  SourcePosition at;
  std::string message;       ///< without the suggestion
  std::string suggestion;    ///< what was probably meant, or empty
  bool can_replace = false;  ///< replacing `at` by the suggestion fixes the mistake
  std::vector<SourceNote> notes;
};

/// A correct `#pragma sigio` (format/directive_text.h).
struct SourceDirective {
  SourcePosition at;          ///< from the directive's first word to its last
  std::size_t last_line = 1;  ///< of the pragma, with its joined lines
  Directive directive;
  std::vector<SourcePosition> clauses;  ///< of their names, in the order of `directive.clauses`
  bool is_operator = false;             ///< written as _Pragma("...")
  bool in_function = false;
};

struct CheckedSource {
  struct Use {
    SourcePosition at;
    Signature signature;
  };
  std::vector<SourceFinding> findings;      ///< by file and place
  std::vector<Use> signatures;              ///< each correct `#pragma sig`
  std::vector<SourceDirective> directives;  ///< in source order
  std::vector<SourceNote> missing;          ///< includes that were not found, once each
};

/// Never fails: every mistake is a finding. `callees`: the user's openers, as `#pragma sigopen` declares them.
[[nodiscard]] CheckedSource check_source(const std::string& path, std::string text, const SourceLanguage& language,
                                         std::span<const Opener> callees, const ReadInclude& read_include);

}  // namespace iosig
