#include <doctest/doctest.h>

#include <map>
#include <random>

#include "iosig/check/source_text.h"

using namespace iosig;

namespace {

/// A directory of files in memory; `source` is the one to check.
struct World {
  std::string source;
  std::map<std::string, std::string> includes = {};
  bool is_cxx = false;
  std::vector<std::string> include_directories = {};
  std::vector<std::pair<std::string, std::string>> definitions = {};

  [[nodiscard]] CheckedSource check() const {
    const ReadInclude read = [&](const std::string& path) -> std::optional<std::string> {
      const auto found = includes.find(path);
      return found == includes.end() ? std::nullopt : std::optional(found->second);
    };
    return check_source("main", source, {is_cxx, include_directories, definitions, 5'000'000}, {}, read);
  }
};

/// Each finding as "line:column message", one a line.
std::string findings(const World& world) {
  std::string text;
  for (const SourceFinding& finding : world.check().findings)
    text += fmt::format("{}:{} {}\n", finding.at.line, finding.at.column, finding.message);
  return text;
}

/// Canonical texts of the signatures that the source uses, one a line.
std::string signatures(const World& world) {
  std::string text;
  for (const auto& use : world.check().signatures) text += signature_text(use.signature) + '\n';
  return text;
}

/// Of a statement behind `#pragma sig temp` in a function: "", "none" or how many opens are too many.
std::string association(std::string_view statement, bool is_cxx = false) {
  const World world{.source = fmt::format("int main() {{\n#pragma sig temp\n{}\n}}\n", statement), .is_cxx = is_cxx};
  const auto found = world.check().findings;
  if (found.empty()) return "";
  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == Diagnostic::Severity::warning);
  CHECK(found[0].at.line == 2);
  CHECK(found[0].at.column == 13);
  if (found[0].message.find("is not followed by") != std::string::npos) return "none";
  return std::to_string(found[0].notes.size());
}

}  // namespace

TEST_CASE("source: pragmas are read in whatever way the preprocessor lets them be written") {
  CHECK(signatures({"#pragma sig temp random\nint fd = open(p, 0);"}) == "random temp\n");
  CHECK(signatures({"  #  pragma\tsig temp /* but */ random // not persist\nint fd = open(p, 0);"}) == "random temp\n");
  CHECK(signatures({"#pragma sig te\\\nmp \\\r\n size-per-IO(4KB)\nint fd = open(p, 0);"}) ==
        "temp size-per-IO(4KB)\n");
  CHECK(signatures({"_Pragma(\"sig totalsize(\\\"1EB\\\")\") int fd = open(p, 0);"}) == "totalsize(1EB)\n");
  CHECK(signatures({"#define SIG _Pragma(\"sig temp\")\nSIG int fd = open(p, 0);"}) == "temp\n");
  CHECK(signatures({"#define CHUNK 16\n#define UNIT MB\n#pragma sig size-per-IO(CHUNK UNIT)\nint fd = open(p, 0);"}) ==
        "size-per-IO(16MB)\n");
  CHECK(signatures({"#define P(x) _Pragma(#x)\nP(sig random temp) int fd = open(p, 0);"}) == "random temp\n");
  CHECK(signatures({"#pragma sig checkpoint\nint fd = open(p, 0);"}) == "sequential persist size-per-IO(16MB)\n");
}

TEST_CASE("source: what only looks like a pragma is none") {
  CHECK(signatures({"/* \n#pragma sig temp\n*/ // \\\n#pragma sig temp\n"}).empty());
  CHECK(signatures({"const char *s = \"\\\n#pragma sig temp\\\n\";"}).empty());
  CHECK(signatures({"auto s = R\"x(\n#pragma sig temp\n)\" )x\";", {}, true}).empty());
  CHECK(signatures({"#if 0\n#pragma sig temp\n#endif\n#ifdef NOBODY\n#pragma sig temp\n#endif\n"}).empty());
  CHECK(signatures({"#pragma omp sig temp\n#pragma GCC sig\n"}).empty());
  CHECK(findings({"\"unclosed\n'\n#pragma sigdef a tmp"}).starts_with("3:18 unknown parameter 'tmp'"));
}

TEST_CASE("source: a condition is judged as the preprocessor does, with what is known") {
  const auto holds = [](std::string_view condition, bool is_cxx = false) {
    return !signatures({.source = fmt::format("#define ONE 1\n#define TWICE(x) (2 * x)\n#if {}\n#pragma sig temp\n"
                                              "int fd = open(p, 0);\n#endif\n",
                                              condition),
                        .is_cxx = is_cxx,
                        .definitions = {{"GIVEN", "201"}}})
                .empty();
  };
  for (const char* yes :
       {"1", "ONE", "defined ONE", "defined(ONE) && !defined(TWO)", "TWICE(ONE) == 2", "GIVEN > 200",
        "0x10 == 16 && 010 == 8", "1 ? 2 : 0", "-1 < 0", "1 + 2 * 3 == 7", "(1 + 2) * 3 == 9", "__linux__", "'a' == 97",
        "__has_include(<mpi.h>)", "!UNKNOWN", "7 / 2 == 3 && 7 % 4 == 3", "1 << 3 == 8", "~0 == -1", "100L == 100u"})
    CHECK_MESSAGE(holds(yes), yes);
  for (const char* no : {"0", "UNKNOWN", "defined TWO", "1 / 0", "", "UNKNOWN_MACRO(3, 4)", "0 || 0", "((((", "+"})
    CHECK_FALSE_MESSAGE(holds(no), no);
  CHECK(holds("__cplusplus >= 201103L", true));
  CHECK_FALSE(holds("defined __cplusplus"));
}

TEST_CASE("source: a condition is computed as intmax_t, or as uintmax_t where an operand is unsigned") {
  const auto holds = [](std::string_view condition) {
    const World world{fmt::format("#define NEGATIVE -3\n#if {}\n#pragma sig temp\n#endif\n", condition)};
    return !signatures(world).empty();
  };
  for (const char* yes : {"-1 < 0 && -1 > 0u && -1 == 18446744073709551615u", "NEGATIVE < 2 && 0U < NEGATIVE",
                          "18446744073709551615 > 0 && 0x8000000000000000 > 0 && 9223372036854775807 > -1",
                          "-8 / 2 == -4 && -8 / 2u == 9223372036854775804", "-7 % 4 == -3 && -7 % 4u == 1",
                          "-8 >> 1 == -4 && -8 >> 1u < 0 && -1 >> 70 == -1 && -1 << 1u < 0 && -1u >> 63 == 1",
                          "~0u > 0 && -1ull > 0 && 1 - 2 - 0u > 0", "(1 ? -1 : 0u) > 0 && (0 ? 0u : -1) > 0",
                          "(2 > 1u) - 2 < 0 && !0u - 2 < 0",
                          "(-9223372036854775807 - 1) / -1 < 0 && (-9223372036854775807 - 1) % -1 == 0"})
    CHECK_MESSAGE(holds(yes), yes);
  for (const char* no : {"-1 < 0u", "NEGATIVE > 0", "18446744073709551615 < 0", "-1 / 0", "-1 % 0", "1u / 0 || 1u % 0"})
    CHECK_FALSE_MESSAGE(holds(no), no);
}

TEST_CASE("source: of the branches of a condition one is read") {
  const std::string source =
      "#if A\n#pragma sigdef a temp\n#elif B\n#pragma sigdef b temp\n#ifdef A\n#pragma sigdef c tmp\n#else\n"
      "#pragma sigdef d tmp\n#endif\n#else\n#pragma sigdef e tmp\n#endif\n";
  const auto with = [&](const char* name) { return findings({.source = source, .definitions = {{name, "1"}}}); };
  CHECK(with("A").empty());
  CHECK(with("B").starts_with("8:18"));
  CHECK(with("C").starts_with("11:18"));
}

TEST_CASE("source: definitions and macros come out of included files, each at its own place") {
  World world{
      .source =
          "#include \"sig.h\"\n#include \"deep/more.h\"\n#include <vector>\n#include \"gone.h\"\n"
          "#pragma sig mine CHUNK\nint fd = open(p, 0);\n",
      .includes = {{"sig.h", "#pragma once\n#pragma sigdef mine temp\n"},
                   {"there/deep/more.h", "#include \"../sig.h\"\n#define CHUNK size-per-IO(4KB)\n#pragma sig tmp\n"},
                   {"there/deep/../sig.h", "#pragma sigdef other random\n"}},
      .include_directories = {"there"}};
  const CheckedSource checked = world.check();
  REQUIRE(checked.signatures.size() == 1);
  CHECK(signature_text(checked.signatures[0].signature) == "temp size-per-IO(4KB)");
  REQUIRE(checked.findings.size() == 1);
  CHECK(checked.findings[0].at.file == "there/deep/more.h");
  CHECK(checked.findings[0].at.line == 3);
  REQUIRE(checked.missing.size() == 1);
  CHECK(checked.missing[0].message == "gone.h");
  CHECK(checked.missing[0].at.line == 4);
}

TEST_CASE("source: a mistake in a macro is placed in it, with a note where it is used, and cannot be replaced") {
  const World world{"#define BAD randm\nint main(void) {\n#pragma sig temp BAD\n  open(p, 0);\n}\n"};
  const auto found = world.check().findings;
  REQUIRE(found.size() == 1);
  CHECK(found[0].at.line == 1);
  CHECK(found[0].at.column == 13);
  CHECK(found[0].suggestion == "random");
  CHECK_FALSE(found[0].can_replace);
  REQUIRE(found[0].notes.size() == 1);
  CHECK(found[0].notes[0].message == "in expansion of macro 'BAD'");
  CHECK(found[0].notes[0].at.line == 3);
  CHECK(found[0].notes[0].at.column == 18);
}

TEST_CASE("source: a mistake is underlined from its first to its last byte") {
  const auto found = World{"#pragma sig persist size-per-OI(16MB)\nint fd = open(p, 0);"}.check().findings;
  REQUIRE(found.size() == 1);
  CHECK(found[0].at == SourcePosition{"main", 1, 21, 32, "#pragma sig persist size-per-OI(16MB)"});
  CHECK(found[0].suggestion == "size-per-IO");
  CHECK(found[0].can_replace);
}

TEST_CASE("source: numbers that C++ cannot read are refused there and taken in C") {
  const std::string source = "#pragma sig totalsize(1EB) size-per-IO(08KB)\nint fd = open(p, 0);";
  CHECK(findings({source}).empty());
  CHECK(findings({source, {}, true}) ==
        "1:23 C++ cannot read the number '1EB' in a pragma; write it in quotes: '\"1EB\"'\n"
        "1:40 C++ cannot read the number '08KB' in a pragma; write it in quotes: '\"08KB\"'\n");
  CHECK(findings({"#pragma sig availability(1e-6) totalsize(16MB) size-per-IO(0x10)\nint fd = open(p, 0);", {}, true})
            .find("cannot read") == std::string::npos);
}

TEST_CASE("source: a name that is defined twice differently shows where it was first") {
  CHECK(findings({"#pragma sigdef a temp\n#pragma sigdef a temp\n"}).empty());
  const auto found = World{"#pragma sigdef a temp\n\n#pragma sigdef a random\n"}.check().findings;
  REQUIRE(found.size() == 1);
  CHECK(found[0].message == "signature 'a' is defined again, differently");
  REQUIRE(found[0].notes.size() == 1);
  CHECK(found[0].notes[0].at.line == 1);
}

TEST_CASE("source: the open in the next statement is found, and no other") {
  for (const char* one : {"fd = open(p, O_RDONLY);", "return open(p, 0);", "FILE *f = fopen(p, \"w\");",
                          "if ((fd = open(p, 0)) < 0) fd = open(q, 0);", "while ((fd = creat(p, 1)) < 0) open(q, 0);",
                          "for (fd = open(p, 0); fd;) { open(q, 0); }", "switch (open(p, 0)) { case 1: open(q, 0); }",
                          "if (c) { fd = open(p, 0); }", "label: fd = open(p, 0);", "{ fd = open(p, 0); }",
                          "do { fd = open(p, 0); } while (fd < 0);", "x = TEMP_FAILURE_RETRY(open(p, 0));",
                          "int fd = open(p, 0), n = 3; open(q, 0);", "fd = openat(dir, p, 0); fd = open(q, 0);",
                          "fd = ({ int r = open(p, 0); r; });", "if (c) puts(\"open(p)\"); else fd = open(p, 0);",
                          "#pragma omp parallel\n{ fd = open(p, 0); }", "#pragma sigdef a temp\nfd = open(p, 0);",
                          "case 3: default: fd = freopen(p, \"w\", f);"})
    CHECK_MESSAGE(association(one).empty(), one);
  for (const char* none :
       {"fd = 5; open(p, 0);", ";", "", "{ }", "if (c) x(); fd = open(p, 0);", "other_open(p);", "fd = io.open(p, 0);",
        "int (*f)(const char *, int) = open;", "// open(p, 0)", "extern int open(const char *, int);",
        "extern FILE *fopen(const char *, const char *);", "for (;;) { x(); } open(p, 0);",
        "do x(); while (c); open(p, 0);", "FOR_EACH(a, b) { x(); } open(p, 0);"})
    CHECK_MESSAGE(association(none) == "none", none);
  for (const char* two :
       {"a = open(p, 0), b = open(q, 0);", "fd = c ? open(p, 0) : open(q, 0);", "int a = open(p, 0), b = open(q, 0);",
        "{ open(p, 0); open(q, 0); }", "if (c) a = open(p, 0); else a = open(q, 0);"})
    CHECK_MESSAGE(association(two) == "2", two);
}

TEST_CASE("source: macros in a statement are expanded before its opens are counted") {
  const auto with = [](std::string_view macro) {
    return findings({fmt::format("{}\nint main(void) {{\n#pragma sig temp\n  OPEN(p);\n  open(q, 0);\n}}\n", macro)});
  };
  CHECK(with("#define OPEN(path) do { fd = open(path, 0); } while (0)").empty());
  CHECK(with("#define INNER(f, a, ...) f(a, ##__VA_ARGS__)\n#define OPEN(path) INNER(open, path, 0)").empty());
  CHECK(with("#define OPEN(path) close(path)").starts_with("3:13 '#pragma sig' is not followed"));
  CHECK(with("#define NAME op##en\n#define OPEN(path) NAME(path, 0)").empty());
  CHECK(with("#define OPEN(path) OPEN(path)").starts_with("3:13 '#pragma sig' is not followed"));
}

TEST_CASE("source: streams of C++ open files where they are constructed with a path or opened") {
  for (const char* one :
       {"std::ofstream f(\"x\");", "std::ofstream f{path};", "ifstream f(path + \".txt\", std::ios::in);",
        "std::fstream f; f.open(path);", "auto *f = new std::ofstream(path);", "auto f = std::ofstream(path);",
        "std::ofstream(path) << 1;", "static std::ofstream f(path);", "if (std::ifstream f(path); f) open(q, 0);",
        "auto f = std::fopen(p, \"w\");", "fd = ::open(p, 0);", "std::basic_ofstream<char> f(path);",
        "const std::ofstream f(dir / name);", "x([] { open(q, 0); }, open(p, 0));"}) {
    if (std::string_view(one).starts_with("std::fstream f;")) continue;
    CHECK_MESSAGE(association(one, true).empty(), one);
  }
  for (const char* none :
       {"std::ofstream f;", "std::ofstream f(std::move(g));", "std::ofstream make(const char *path);",
        "std::ofstream make(std::string path);", "std::vector<std::ofstream> all(3);", "other::open(p, 0);",
        "auto f = [] { return open(p, 0); };", "std::ofstream &f = all.front();",
        "struct S { int f() { return open(p, 0); } };", "std::fstream f; f.open(path);"})
    CHECK_MESSAGE(association(none, true) == "none", none);
  CHECK(association("std::ofstream a(p), b(q);", true) == "2");
  CHECK(association("std::ofstream a{p}, b, c{q};", true) == "2");
  const auto member = [](std::string_view declared) {
    return findings({fmt::format("{}\nint main() {{\n#pragma sig temp\n  x.open(p);\n}}\n", declared), {}, true});
  };
  CHECK(member("std::ofstream x;").empty());
  CHECK(member("using Out = std::ofstream; Out x;").empty());
  CHECK(member("struct Log : std::ofstream {}; Log x;").empty());
  CHECK(member("extern Unknown x;").empty());  // who knows
}

TEST_CASE("source: an open that a pragma of its own speaks about is not counted for one before the statement") {
  CHECK(
      findings({"int main(void) {\n#pragma sig temp\n  if (c) {\n    open(p, 0);\n#pragma sig random\n    open(q, 0);\n"
                "  }\n}\n"})
          .empty());
}

TEST_CASE("source: a macro that is called like a parameter is told") {
  CHECK(findings({"#define temp\n#define random 5\n#pragma sig random temp // persist\n"}) ==
        "3:13 a macro rewrote the parameter 'random'; '#undef' it before the pragma, or rename it\n");
  CHECK(
      findings({"#define temp temp\n#define size 3\n#pragma sig temp totalsize(size)\nint fd = open(p, 0);"}).empty());
}

TEST_CASE("source: functions that a pragma declares as openers are openers, in the whole source") {
  const World world{.source =
                        "#pragma sig temp\nint a = my_open(1, p);\n#pragma sigopen my_open(2)\n#pragma sig temp\n"
                        "int b = io::create(p);\n#pragma sigopen io::create(1)\n#pragma sig temp\nint c = other(p);\n"
                        "#pragma sigopen io(0)\n",
                    .is_cxx = true};
  CHECK(findings(world) ==
        "7:13 '#pragma sig' is not followed by a declaration that opens a file\n"
        "9:20 arguments are counted from 1 to 99\n");
  const std::string constructor = "#pragma sigopen io::Writer::Writer(2)\n#pragma sig temp\n";
  for (const char* use : {"io::Writer w(path);", "Writer w{path};", "auto *w = new io::Writer(path);"})
    CHECK_MESSAGE(findings({.source = constructor + use, .is_cxx = true}).empty(), use);
  for (const char* use : {"io::Writer w;", "Reader r(path);", "io::Writer make(const char *path);"})
    CHECK_MESSAGE(!findings({.source = constructor + use, .is_cxx = true}).empty(), use);
}

TEST_CASE("source: a pragma among declarations asks for a declaration, in a function for a statement") {
  const auto asks = [](std::string_view source, bool is_cxx) {
    const std::string found = findings({std::string(source), {}, is_cxx});
    return found.find("a statement") != std::string::npos     ? "statement"
           : found.find("a declaration") != std::string::npos ? "declaration"
                                                              : "";
  };
  const std::string_view pragma = "\n#pragma sig temp\n";
  for (const char* around :
       {"{}int a;", "int f(void) {{ }}{}int a;", "struct s {{ int a; }};{}int a;", "int a[] = {{ 1, 2 }};{}int b;",
        "enum e {{ x, y }};{}int b;", "{}int f(void) {{ return open(p, 0); }}"})
    CHECK_MESSAGE(std::string_view(asks(fmt::format(fmt::runtime(around), pragma), false)) == "declaration", around);
  for (const char* around :
       {"int f(void) {{{}int a; }}", "struct s f(int a) {{{}int b; }}", "int f(a) int a; {{{}return a; }}",
        "int f(void) {{ if (a) {{{}int b; }} }}", "static void *f(struct s *a) {{ int b = {{0}};{}b++; }}"})
    CHECK_MESSAGE(std::string_view(asks(fmt::format(fmt::runtime(around), pragma), false)) == "statement", around);
  for (const char* around :
       {"namespace a::b {{{}int a; }}", "extern \"C\" {{{}int a; }}", "class A : public B {{{}int a; }};",
        "template <class T> struct A {{ void f() {{ }}{}int a; }};", "int f() {{ struct L {{{}int a; }}; }}",
        "std::string a{{\"x\"}};{}int b;", "enum class E : int {{ x }};{}int b;", "auto f = [] {{ }};{}int b;",
        "A::A() : a{{1}}, b(2) {{ }}{}int c;"})
    CHECK_MESSAGE(std::string_view(asks(fmt::format(fmt::runtime(around), pragma), true)) == "declaration", around);
  for (const char* around :
       {"template <class T> void f(T a) {{{}a(); }}", "A::A() : a{{1}}, b(2) {{{}c(); }}",
        "auto f = [](int a) mutable {{{}a(); }};", "class A {{ void f() const override {{{}a(); }} }};",
        "auto f() -> int {{{}return 1; }}", "bool operator=(const A &a) {{{}return 1; }}",
        "void f() {{ g([&] {{{}a(); }}); }}", "int f() try {{{}a(); }} catch (...) {{ }}"})
    CHECK_MESSAGE(std::string_view(asks(fmt::format(fmt::runtime(around), pragma), true)) == "statement", around);
}

TEST_CASE("source: a directive is read as it is spelled, without its macros, over joined lines") {
  const CheckedSource checked =
      World{
          "#define N 3\n"
          "#define f(x) g(x)\n"
          "#pragma sigio dims ckpt z(N - -1)   y( f( 2 ) ) /* two\n"
          "lines */\n"
          "void h() {\n"
          "#pragma sigio output \\\n"
          "  ckpt // here\n"
          "}\n"}
          .check();
  CHECK(checked.findings.empty());
  REQUIRE(checked.directives.size() == 2);
  const SourceDirective& dims = checked.directives[0];
  CHECK(dims.directive.clauses[0].entries[0].values[0] == "N - -1");
  CHECK(dims.directive.clauses[1].entries[0].values[0] == "f( 2 )");
  CHECK(dims.clauses[1].column == 37);
  CHECK(dims.at.line == 3);
  CHECK(dims.at.column == 15);
  CHECK(dims.last_line == 4);
  const SourceDirective& output = checked.directives[1];
  CHECK(output.at.line == 6);
  CHECK(output.last_line == 7);
  CHECK(output.in_function);
}

TEST_CASE("source: a mistake in a directive has its place, also in a joined line") {
  CHECK(findings({"#pragma sigio file ckpt \\\n path(p) levl(mpiio)\n"}) ==
        "2:10 'file' has no clause 'levl'; expected path, level, comm, access, decomp, hint\n");
  CHECK(findings({"void f() {}\n#pragma sigio output ckpt\n"}) ==
        "2:15 'output' is outside of functions; put it where the code is to be\n");
  CHECK(findings({"#if 0\n#pragma sigio nothing\n#endif\n"}).empty());
}

TEST_CASE("source: a template that opens a file by itself is warned of, another source is not") {
  const std::string opens = "void f() { fopen(p, m); x.fopen(p); }\n";
  CHECK(findings({opens}).empty());
  CHECK(findings({opens + "#pragma sigio dims ckpt z(1)\n"}) ==
        "1:12 'fopen' opens a file in a template; the I/O of a template is what its directives say\n");
}

TEST_CASE("source: no text makes the checker fail or take long, and each finding is in its file") {
  const std::vector<std::string> pieces{"#pragma sig ",
                                        "#pragma sigio ",
                                        "file f path(",
                                        "output f",
                                        ":",
                                        "=",
                                        "#pragma sigdef a ",
                                        "temp",
                                        "\n",
                                        "{",
                                        "}",
                                        "(",
                                        ")",
                                        ";",
                                        "open(",
                                        "if (",
                                        "else",
                                        "for (;;)",
                                        "#define A ",
                                        "#define F(x, ...) ",
                                        "#x",
                                        "##",
                                        "A",
                                        "F(",
                                        ",",
                                        "_Pragma(\"sig tmp\")",
                                        "\"",
                                        "'",
                                        "\\\n",
                                        "/*",
                                        "*/",
                                        "//",
                                        "#if ",
                                        "#else\n",
                                        "#endif\n",
                                        "R\"(",
                                        "[",
                                        "]",
                                        "std::ofstream",
                                        "f",
                                        "::",
                                        "<",
                                        ">",
                                        "#include \"main\"\n",
                                        "defined",
                                        "1EB",
                                        "=",
                                        "class",
                                        "case",
                                        ":",
                                        "?",
                                        "\xff",
                                        "\r\n",
                                        "#"};
  std::mt19937_64 random(4);
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (auto n = random() % 40; n > 0; --n) text += pieces[random() % pieces.size()] + (random() % 3 == 0 ? " " : "");
    const World world{.source = text, .includes = {{"main", "#pragma once\n" + text}}, .is_cxx = random() % 2 == 0};
    for (const SourceFinding& finding : world.check().findings) {
      REQUIRE(finding.at.column >= 1);
      REQUIRE(finding.at.column <= finding.at.end_column);
      REQUIRE(finding.at.column <= finding.at.line_text.size() + 1);
    }
  }
}

TEST_CASE("source: macros that double and files that include themselves end with a warning") {
  std::string doubling = "#define A0 x x\n";
  for (int i = 1; i < 40; ++i) doubling += fmt::format("#define A{} A{} A{}\n", i, i - 1, i - 1);
  CHECK(findings({doubling + "A39\n"}).find("more than can be checked") != std::string::npos);
  const std::string twice = "#include \"a\"\n#include \"a\"\n";
  CHECK(findings({.source = twice, .includes = {{"a", twice}}}).find("more than can be checked") != std::string::npos);
  CHECK(findings({std::string(100'000, '(')}).empty());
  std::string nested = "#define F(x) x\n";
  for (int i = 0; i < 20'000; ++i) nested += "F(";
  CHECK(findings({nested}).size() < 200);
}

TEST_CASE("source: what would take quadratic time or room is left with a warning, a large program is not") {
  const auto times = [](std::string_view text, int count) {
    std::string all;
    for (; count > 0; --count) all += text;
    return all;
  };
  std::string definitions, openers;
  for (int i = 0; i < 2000; ++i) definitions += fmt::format("#pragma sigdef name{} temp\n", i);
  for (int i = 0; i < 2000; ++i) openers += fmt::format("#pragma sigopen f{}(1)\n", i);
  const std::string pragma = "\n#pragma sig temp\n";
  const std::pair<std::string_view, std::string> sources[] = {
      {"pragmas in statements", "int main() {" + times(pragma + "{", 2000) + times("open(p, 0);", 5000)},
      {"opens on one line", "int main() {" + pragma + "x = " + times("open(p, 0) + ", 5000)},
      {"initialisers", "a = " + times("{}", 20'000)},
      {"classes", times("class a ", 20'000)},
      {"lambdas that never begin", times("= []< ", 20'000) + ";"},
      {"templates", times("ofstream<", 20'000)},
      {"names", times("ofstream::", 20'000)},
      {"openers", openers + pragma + "{" + times("g(x);", 2000) + "}"},
      {"unknown names among many", definitions + times("#pragma sig nome\n", 2000)},
      {"a word too long for a pragma", pragma + "#pragma sig " + std::string(20'000, 'x')}};
  for (const auto& [name, source] : sources) {
    const std::string_view what = name;  // which a lambda in the macros below takes
    const CheckedSource checked = World{.source = source, .is_cxx = true}.check();
    std::size_t told = 0;
    bool is_left = false;
    for (const SourceFinding& finding : checked.findings) {
      is_left = is_left || finding.message.find("more than can be checked") != std::string::npos ||
                finding.message.find("more words than can be checked") != std::string::npos;
      told += finding.message.size() + finding.at.line_text.size();
      for (const SourceNote& note : finding.notes) told += note.at.line_text.size();
    }
    CHECK_MESSAGE(is_left, what);
    CHECK_MESSAGE(told < 20'000'000, what);
  }
  std::string large;
  for (int i = 0; i < 2000; ++i)
    large += fmt::format("int f{}(void) {{\n{}  int fd = open(p, 0); if (fd) {{ g(fd); }}\n}}\n", i, pragma);
  CHECK(findings({large}).empty());
}
