#include <doctest/doctest.h>
#include <fmt/format.h>

#include "iosig/check/source_tokens.h"

using namespace iosig;

namespace {

constexpr std::size_t max_work = 1'000'000;

/// `source` may include itself, as "self.h".
SourceTokens read(const std::string& source, std::size_t allowed = max_work) {
  const ReadInclude itself = [&](const std::string& path) {
    return path == "self.h" ? std::optional(source) : std::nullopt;
  };
  return read_tokens("main.c", source, {.max_work = allowed}, itself);
}

std::size_t spelled_bytes(const SourceTokens& tokens) {
  std::size_t bytes = 0;
  for (const std::string& spelling : tokens.spellings) bytes += spelling.size();
  return bytes;
}

/// What came out of the source, one blank between two tokens.
std::string expanded(const std::string& source) {
  std::string text;
  for (const SourceToken& token : read(source).tokens) text += (text.empty() ? "" : " ") + std::string(token.text);
  return text;
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (; times > 0; --times) all += text;
  return all;
}

}  // namespace

TEST_CASE("source tokens: macros are expanded as the C standard's examples show") {
  // C17 6.10.3.5, examples 3 to 5 and 7
  const std::string macros =
      "#define x 3\n#define f(a) f(x * (a))\n#undef x\n#define x 2\n#define g f\n#define z z[0]\n#define h g(~\n"
      "#define m(a) a(w)\n#define w 0,1\n#define t(a) a\n#define p() int\n#define q(x) x\n#define r(x,y) x ## y\n"
      "#define str(x) # x\n";
  CHECK(expanded(macros + "f(y+1) + f(f(z)) % t(t(g)(0) + t)(1);") ==
        "f ( 2 * ( y + 1 ) ) + f ( 2 * ( f ( 2 * ( z [ 0 ] ) ) ) ) % f ( 2 * ( 0 ) ) + t ( 1 ) ;");
  CHECK(expanded(macros + "g(x+(3,4)-w) | h 5) & m\n(f)^m(m);") ==
        "f ( 2 * ( 2 + ( 3 , 4 ) - 0 , 1 ) ) | f ( 2 * ( ~ 5 ) ) & f ( 2 * ( 0 , 1 ) ) ^ m ( 0 , 1 ) ;");
  CHECK(
      expanded(macros + "p() i[q()] = { q(1), r(2,3), r(4,), r(,5), r(,) };").starts_with("int i [ ] = { 1 , 23 , 4 "));
  CHECK(expanded(macros + "char c[2][6] = { str(hello), str() };") == "char c [ 2 ] [ 6 ] = { \"hello\" , \"\" } ;");
  CHECK(expanded("#define hash_hash # ## #\n#define mkstr(a) # a\n#define in_between(a) mkstr(a)\n"
                 "#define join(c, d) in_between(c hash_hash d)\njoin(x, y)\n") == "\"x ## y\"");
}

TEST_CASE("source tokens: an argument is expanded once, so that calls in calls cost no more than they make") {
  const std::string macro = "#define f(x) x\n#define g(x) sizeof(x)\n";
  for (const std::string_view call : {"f(", "g("}) {
    const SourceTokens tokens = read(macro + repeated(call, 100) + "1" + repeated(")", 100));
    CHECK_FALSE(tokens.is_cut);
    CHECK(tokens.tokens.back().text == (call == "f(" ? "1" : ")"));
  }
  CHECK(read(macro + repeated("f(", 300) + "1" + repeated(")", 300)).is_cut);  // deeper than any program
}

TEST_CASE("source tokens: what grows without end is cut, and neither work nor memory goes beyond what is allowed") {
  const auto levels = [](std::string_view first, std::string_view level) {
    std::string macros = fmt::format("#define A0 {}\n", first);
    for (int i = 1; i < 60; ++i) macros += fmt::format("#define A{} {}\n", i, fmt::format(fmt::runtime(level), i - 1));
    return macros + "A59\n";
  };
  std::string chain;
  for (int i = 0; i < 3000; ++i) chain += fmt::format("#define A{} A{}\n", i, i + 1);
  const std::string two = "#define f(x) x x\n";
  const std::pair<std::string_view, std::string> sources[] = {
      {"calls in calls", two + repeated("f(", 100) + "1" + repeated(")", 100)},
      {"calls that are not closed", two + repeated("f(", 5000)},
      {"macros that double", levels("x", "A{0} A{0}")},
      {"arguments that double", two + levels("x", "f(A{})")},
      {"## that doubles", "#define C(a, b) P(a, b)\n#define P(a, b) a##b\n" + levels("x", "C(A{0}, A{0})")},
      {"# that doubles", "#define S(a) T(a)\n#define T(a) #a #a\n" + levels("\"x\"", "S(A{})")},
      {"## in a row", "#define P(a) " + repeated("a##", 9000) + "a\nP(xxxxxxxxxx)"},
      {"a long word that doubles", levels(std::string(10'000, 'x'), "A{0} A{0}")},
      {"_Pragma of a long string", "#define P _Pragma(\"" + std::string(10'000, 'x') + "\")\n" + repeated("P ", 500)},
      {"a chain of macros", chain + "A0\n"},
      {"more parameters than are used",
       "#define F(a" + repeated(",b", 100) + ") " + repeated("a ", 3000) + "\n" + repeated("F() ", 100)},
      {"a file that includes itself", repeated("#include \"self.h\"\n", 2)},
      {"a comment that includes itself", repeated("#include \"self.h\"\n", 2) + "/*" + std::string(20'000, 'x') + "*/"},
      {"includes that are not there", repeated("#include \"gone.h\"\n", 9000)},
      {"a long file", repeated(";", 50'000)}};
  for (const auto& [name, source] : sources) {
    const std::string_view what = name;  // which a lambda in the macros below takes
    const SourceTokens tokens = read(source);
    CHECK_MESSAGE(tokens.is_cut, what);
    CHECK_MESSAGE(tokens.work <= max_work, what);
    CHECK_MESSAGE(tokens.tokens.size() * SourceWork::token <= max_work, what);
    CHECK_MESSAGE(spelled_bytes(tokens) <= 3 * max_work, what);  // a quote in a string is made of two bytes
  }
}

TEST_CASE("source tokens: the same file is read as often as it is included, but asked for once") {
  int asked = 0;
  const ReadInclude count = [&](const std::string& path) -> std::optional<std::string> {
    ++asked;
    return path == "there/a.h" ? std::optional<std::string>("word\n") : std::nullopt;
  };
  const SourceLanguage language{.include_directories = {"here", "there"}};
  const SourceTokens tokens = read_tokens("main.c", repeated("#include \"a.h\"\n", 50), language, count);
  CHECK(tokens.tokens.size() == 50);
  CHECK(asked == 3);  // in the source's directory, here and there
}
