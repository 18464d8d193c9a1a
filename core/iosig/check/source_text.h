// What is wrong with the pragmas of a C or C++ source, found without a compiler: the findings of the compiler's plugin,
// in its words and at its places. `iosig check` shows them.
//
// What needs types is left to the compiler: of `x.open(...)` with an x that is not declared in the files read, nothing
// is said.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/check/source_tokens.h"
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
  std::string_view rule;  ///< its kind, for tools that filter: signature, definition, association, callee, source
  SourcePosition at;
  std::string message;       ///< without the suggestion
  std::string suggestion;    ///< what was probably meant, or empty
  bool can_replace = false;  ///< whether putting the suggestion at `at` mends it
  std::vector<SourceNote> notes;
};

struct CheckedSource {
  struct Use {
    SourcePosition at;
    Signature signature;
  };
  std::vector<SourceFinding> findings;  ///< in the order of files and places
  std::vector<Use> signatures;          ///< each `#pragma sig` without a mistake
  std::vector<SourceNote> missing;      ///< includes that were not found, once each
};

/// Never fails: what is wrong is a finding. `callees`: the user's openers, as the pragmas `sigopen` declare them.
[[nodiscard]] CheckedSource check_source(const std::string& path, std::string text, const SourceLanguage& language,
                                         std::span<const Opener> callees, const ReadInclude& read_include);

}  // namespace iosig
