// Splits the text of a C or C++ source into tokens. Handles comments, strings (including raw strings) and joined lines,
// but not directives and macros. Lenient: invalid input yields some tokens.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/check/source_work.h"

namespace iosig {

/// Half-open range of bytes in one of the files.
struct SourceSpan {
  std::uint32_t file = 0, begin = 0, end = 0;
  bool operator==(const SourceSpan&) const = default;
};

struct SourceToken {
  enum class Kind : std::uint8_t { word, number, string, character, punctuation, pragma };
  Kind kind = Kind::punctuation;
  bool starts_line = false, after_blank = false;
  std::string_view text;  ///< as spelled, with joined lines joined; of a pragma: "sig", "sigdef", ...
  SourceSpan at;          ///< its place in the source, possibly in a #define; all tokens of a _Pragma are at that word
  SourceSpan use;         ///< use of the outermost macro that it comes from; otherwise `at`
  int pragma = -1;        ///< of a pragma: index into SourceTokens::pragmas

  [[nodiscard]] bool is(std::string_view spelling) const { return kind != Kind::string && text == spelling; }
  [[nodiscard]] bool from_macro() const { return use != at; }
};

/// Never fails. The tokens refer to `text` (less than 4 GiB) or, for words across joined lines, to strings that are
/// added to `spellings`. Spends work for each token and ends with the last that is covered; the caller spends for the
/// bytes.
[[nodiscard]] std::vector<SourceToken> lex(std::string_view text, std::uint32_t file,
                                           std::deque<std::string>& spellings, SourceWork& work);

}  // namespace iosig
