// The text of a C or C++ source, cut into tokens: comments, strings (raw ones too) and joined lines are understood,
// directives and macros are not. It is lenient: what no compiler accepts ends up as some tokens.
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
  std::string_view text;  ///< as spelled, joined lines joined; of a pragma: "sig", "sigdef", ...
  SourceSpan at;          ///< where it is spelled, perhaps in a #define; all of a _Pragma's tokens are at that word
  SourceSpan use;         ///< where the outermost macro that it comes from is used; else `at`
  int pragma = -1;        ///< of a pragma: index into SourceTokens::pragmas

  [[nodiscard]] bool is(std::string_view spelling) const { return kind != Kind::string && text == spelling; }
  [[nodiscard]] bool from_macro() const { return use != at; }
};

/// Never fails. The tokens refer to `text` (less than 4 GiB) and, for words across joined lines, to `spellings`, to
/// which those are added. Spends for each token, and ends with the last that it could; the bytes are the caller's to
/// spend for.
[[nodiscard]] std::vector<SourceToken> lex(std::string_view text, std::uint32_t file,
                                           std::deque<std::string>& spellings, SourceWork& work);

}  // namespace iosig
