// The tokens of a C or C++ source after preprocessing, each with its place, and our pragmas among them.
//
// A preprocessor as far as our pragmas need one: conditionals, macros, _Pragma, and the includes that it is given. It
// is lenient: what no compiler accepts ends up as some tokens. Headers of the system are not read, so their macros are
// unknown, and an `#ifdef` of one is not taken.
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

/// `#pragma sig`, `sigdef` or `sigopen`.
struct SourcePragma {
  SourceToken name;
  std::vector<SourceToken> tokens;  ///< behind the name, macros expanded
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
  std::deque<std::string> spellings;    ///< of tokens that stand in no file as they are
  std::size_t work = 0;                 ///< that it took, as SourceWork counts
  bool is_cut = false;                  ///< it took more than is allowed; the rest is missing
};

/// A file's content, or nothing. Called for each place where an include may be.
using ReadInclude = std::function<std::optional<std::string>(const std::string& path)>;

struct SourceLanguage {
  bool is_cxx = false;
  std::vector<std::string> include_directories = {};                  ///< as -I
  std::vector<std::pair<std::string, std::string>> definitions = {};  ///< as -D: name, value
  /// That may be done for one source, as SourceWork counts. Programs take 2 to 9 for each byte of theirs and of their
  /// headers: this reads 7 MB of the densest, and ends what doubles within a second.
  std::size_t max_work = 64'000'000;
};

/// Never fails. `path`: of the source; includes in quotes are looked for in its directory, then in
/// `include_directories`.
[[nodiscard]] SourceTokens read_tokens(std::string path, std::string text, const SourceLanguage& language,
                                       const ReadInclude& read_include);

}  // namespace iosig
