// The signature language: one parser for pragmas, rules files and the command line.
//
//   signature  := [NAME] param...          sigdef := NAME param...      NAME: of a definition or a preset
//   param      := name [ '(' value ')' ]   value  := word | "quoted"
//
// For example `checkpoint global size-per-IO(16MB) totalsize("1EB")`. Parameters are separated by blanks or commas.
// Mutually exclusive parameters (global/local, random/sequential, sync/nosync, persist/temp, home/rest) conflict within
// one pragma; between a definition and its use, the use takes precedence. Source: IOSIG paper, section 3.
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

/// One finding about a text, with the place for a compiler's caret.
struct Diagnostic {
  enum class Severity { warning, error } severity = Severity::error;
  Span at;
  std::string message;        ///< without the suggestion
  std::string suggestion;     ///< probable replacement for `at`, or empty
  std::optional<Span> other;  ///< a second place, e.g. of the conflicting parameter
  std::string other_message;
};

struct ParsedSignature {
  Signature signature;
  std::string name;  ///< parse_sigdef: of the new definition; parse_sig: of the sigdef or preset used, or empty
  std::vector<Diagnostic> diagnostics;  ///< by place; duplicates are warnings (the last one counts)
  [[nodiscard]] bool ok() const;
};

/// Parses `#pragma sig` text: an optional name, first looked up in `definitions`, then among presets, and parameters
/// that override it.
[[nodiscard]] ParsedSignature parse_sig(std::string_view text, const SignatureDefinitions& definitions = {});

/// Parses `#pragma sigdef` text: a new name, then parameters. The caller checks for a conflicting redefinition.
[[nodiscard]] ParsedSignature parse_sigdef(std::string_view text);

/// parse_sig for callers that want a value: drops warnings and joins all errors to one message with line, column and
/// the offending line underlined. `source` names the place in that message: "--signature", "rules.toml:12".
[[nodiscard]] Result<Signature> parse_signature(std::string_view text, const SignatureDefinitions& definitions = {},
                                                std::string_view source = "signature");

/// Returns the policy of this name, `job` or `paper`. Fails with `bad_input`.
[[nodiscard]] Result<Policy> parse_policy(std::string_view name);

/// Returns canonical text; parse_signature(signature_text(s)) == s for every signature.
[[nodiscard]] std::string signature_text(const Signature& signature);

/// Returns "source:line:column: error: message; did you mean ..." and the line with a caret below.
[[nodiscard]] std::string diagnostic_text(const Diagnostic& diagnostic, std::string_view text, std::string_view source);

/// One parameter: its name and, if it takes a value, an example (otherwise empty). For completion, help and docs.
struct ParameterInfo {
  std::string_view name, example, meaning;
};
[[nodiscard]] const std::vector<ParameterInfo>& signature_parameters();

}  // namespace iosig
