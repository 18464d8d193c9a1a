// The tokens of a C or C++ source after preprocessing, each with its place, including our pragmas.
//
// A preprocessor for the needs of our pragmas: conditionals, macros, _Pragma, and the includes that it is given.
// Lenient: invalid input yields some tokens. System headers are not read, so their macros are unknown, and an `#ifdef`
// of one is not taken.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "iosig/check/source_lexer.h"

namespace iosig {

struct SourceFile {
  std::string path, text;
};

/// `#pragma sig`, `sigdef`, `sigopen` or `sigio`.
struct SourcePragma {
  SourceToken name;
  std::vector<SourceToken> tokens;  ///< after the name, macros expanded (not those of sigio)
  bool is_operator = false;         ///< written as _Pragma("...")
};

struct MissingInclude {
  SourceSpan at;
  std::string name;
};

struct SourceTokens {
  std::deque<SourceFile> files;  ///< the source first, then each included file once
  std::vector<SourceToken> tokens;
  std::vector<SourcePragma> pragmas;
  std::vector<MissingInclude> missing;  ///< includes in quotes that were not found
  std::deque<std::string> spellings;    ///< of tokens that are not in any file verbatim
  std::size_t work = 0;                 ///< work done, in units of SourceWork
  bool is_cut = false;                  ///< exceeded the limit; the rest is missing
};

/// Returns a file's content, or nothing. Called for each possible place of an include.
using ReadInclude = std::function<std::optional<std::string>(const std::string& path)>;

struct SourceLanguage {
  bool is_cxx = false;
  std::vector<std::string> include_directories = {};                  ///< as -I
  std::vector<std::pair<std::string, std::string>> definitions = {};  ///< as -D: name, value
  /// Limit for one source, in units of SourceWork. Programs take 2 to 9 units per byte, including their headers: this
  /// suffices for 7 MB of the densest code and stops exponential expansion within a second.
  std::size_t max_work = 64'000'000;
};

/// Never fails. `path`: of the source; quoted includes are looked up in its directory, then in `include_directories`.
[[nodiscard]] SourceTokens read_tokens(std::string path, std::string text, const SourceLanguage& language,
                                       const ReadInclude& read_include);

}  // namespace iosig
