// The signature language: one parser for pragma, rules file and command line.
//
//   signature  := [NAME] param...          sigdef := NAME param...      NAME: of a definition or a preset
//   param      := name [ '(' value ')' ]   value  := word | "quoted"
//
// e.g. `checkpoint global size-per-IO(16MB) totalsize("1EB")`. Parameters are separated by blanks or commas.
// Parameters that exclude each other (global/local, random/sequential, sync/nosync, persist/temp) conflict inside one
// pragma; across a definition and its use the use wins. Source: IOSIG paper, section 3.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/signature.h"

namespace iosig {

/// Half-open range of bytes in the parsed text.
struct Span {
  std::size_t begin = 0, end = 0;
};

/// One finding about a text, placed so that a compiler can put its caret there.
struct Diagnostic {
  enum class Severity { warning, error } severity = Severity::error;
  Span at;
  std::string message;        ///< without the suggestion
  std::string suggestion;     ///< replacement for `at` that was probably meant, or empty
  std::optional<Span> other;  ///< the second place, e.g. of the parameter that this one conflicts with
  std::string other_message;
};

struct ParsedSignature {
  Signature signature;
  std::string name;  ///< of the sigdef that was defined (parse_sigdef), of the sigdef or preset that was used
                     ///< (parse_sig), or empty
  std::vector<Diagnostic> diagnostics;  ///< in order of place; duplicates are warnings (the last one counts)
  [[nodiscard]] bool ok() const;
};

/// `#pragma sig` text: an optional name, of `definitions` or else of a preset, then parameters that override it.
[[nodiscard]] ParsedSignature parse_sig(std::string_view text, const SignatureDefinitions& definitions = {});

/// `#pragma sigdef` text: a new name, then parameters. Defining a name again differently is the caller's to judge.
[[nodiscard]] ParsedSignature parse_sigdef(std::string_view text);

/// parse_sig for callers that want a value: warnings are dropped, all errors end up in one message with line, column
/// and the offending line underlined. `source` names the place in that message: "--signature", "rules.toml:12".
[[nodiscard]] Result<Signature> parse_signature(std::string_view text, const SignatureDefinitions& definitions = {},
                                                std::string_view source = "signature");

/// Canonical text; parse_signature(signature_text(s)) == s for every signature.
[[nodiscard]] std::string signature_text(const Signature& signature);

/// "source:line:column: error: message; did you mean ..." and the line with a caret below.
[[nodiscard]] std::string diagnostic_text(const Diagnostic& diagnostic, std::string_view text, std::string_view source);

/// Every parameter: its name and, for a value parameter, an example value (else empty). For completion, help and docs.
struct ParameterInfo {
  std::string_view name, example, meaning;
};
[[nodiscard]] const std::vector<ParameterInfo>& signature_parameters();

}  // namespace iosig
