// The tokens of a C or C++ source after preprocessing, each with its place, and our pragmas among them.
//
// A preprocessor as far as our pragmas need one: comments, strings (raw ones too), joined lines, conditionals, macros,
// _Pragma, and the includes that it is given. It is lenient: what no compiler accepts ends up as some tokens. Headers
// of the system are not read, so their macros are unknown, and an `#ifdef` of one is not taken.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace iosig {

struct SourceFile {
  std::string path, text;
};

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
  int pragma = -1;        ///< index into SourceTokens::pragmas

  [[nodiscard]] bool is(std::string_view spelling) const { return kind != Kind::string && text == spelling; }
  [[nodiscard]] bool from_macro() const { return use != at; }
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
  bool is_cut = false;                  ///< it expands to absurdly many tokens; those after them are missing
  std::deque<std::string> spellings;    ///< of tokens that stand in no file as they are
};

/// A file's content, or nothing. Called for each place where an include may be.
using ReadInclude = std::function<std::optional<std::string>(const std::string& path)>;

struct SourceLanguage {
  bool is_cxx = false;
  std::vector<std::string> include_folders = {};                      ///< as -I
  std::vector<std::pair<std::string, std::string>> definitions = {};  ///< as -D: name, value
  /// That may be read and made for one source: more than the largest programs have, and a bound for macros that double
  /// and files that include themselves.
  std::size_t most_tokens = 2'000'000;
};

/// Never fails. `path`: of the source; includes in quotes are looked for in its folder, then in `include_folders`.
[[nodiscard]] SourceTokens read_tokens(std::string path, std::string text, const SourceLanguage& language,
                                       const ReadInclude& read_include);

}  // namespace iosig
