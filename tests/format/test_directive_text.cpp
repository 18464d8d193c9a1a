#include <doctest/doctest.h>

#include "iosig/format/directive_text.h"

using namespace iosig;

namespace {

Directive directive_of(const char* text, DirectiveLanguage language = DirectiveLanguage::c) {
  const ParsedDirective parsed = parse_directive(text, language);
  REQUIRE_MESSAGE(parsed.ok(), parsed.diagnostics.front().message);
  return parsed.directive;
}

/// The part of `text` that the first mistake underlines, and what it says.
struct Mistake {
  std::string at, message, suggestion;
};
Mistake mistake_in(const std::string& text, DirectiveLanguage language = DirectiveLanguage::c) {
  const ParsedDirective parsed = parse_directive(text, language);
  REQUIRE_FALSE(parsed.ok());
  const Diagnostic& first = parsed.diagnostics.front();
  REQUIRE(first.at.begin < first.at.end);
  return {text.substr(std::min(first.at.begin, text.size()), first.at.end - first.at.begin), first.message,
          first.suggestion};
}

}  // namespace

TEST_CASE("directive: a file has its clauses, hints, and the parameters of a signature in any order") {
  const Directive file = directive_of(
      "file ckpt persist path(dir[k(1)]) level(mpiio) totalsize(6GB) comm(MPI_COMM_WORLD) hint(a=\"1\", b=\"x, y\")");
  CHECK(file.kind == "file");
  CHECK(file.name == "ckpt");
  CHECK(file.signature == "persist totalsize(6GB)");
  REQUIRE(file.clauses.size() == 4);
  CHECK(file.clauses[0].entries[0].values[0] == "dir[k(1)]");
  CHECK(file.clauses[3].entries.size() == 2);
  CHECK(file.clauses[3].entries[1].key == "b");
  CHECK(file.clauses[3].entries[1].values[0] == "\"x, y\"");
}

TEST_CASE("directive: brackets and quotes keep separators together") {
  const Directive decomp = directive_of("decomp blk block(z: at(c[0], 'x;'), n[L, 1]; y: a ? b : c, 1)");
  const auto& entries = decomp.clauses[0].entries;
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].key == "z");
  CHECK(entries[0].values == std::vector<std::string>{"at(c[0], 'x;')", "n[L, 1]"});
  CHECK(entries[1].values == std::vector<std::string>{"a ? b : c", "1"});
}

TEST_CASE("directive: an attribute is a text, a number, or an expression with its type") {
  const Directive attr = directive_of("attr ckpt title(\"a:b\") version(3) dt(1.5e-3) time(double: s->t)");
  REQUIRE(attr.clauses.size() == 4);
  CHECK(attr.clauses[0].entries[0].type.empty());
  CHECK(attr.clauses[1].entries[0].type == "int");
  CHECK(attr.clauses[2].entries[0].type == "double");
  CHECK(attr.clauses[3].entries[0].type == "double");
  CHECK(attr.clauses[3].entries[0].values[0] == "s->t");
}

TEST_CASE("directive: a data set names its file, its axes and its array") {
  const Directive dataset = directive_of(
      "dataset ckpt.temp type(double) dims(z, y,x) decomp(blk) data(temp) ghost(z:G, y : 2) attr(units=\"K\", n=1)");
  CHECK(dataset.name == "ckpt");
  CHECK(dataset.dataset == "temp");
  REQUIRE(dataset.clauses.size() == 6);
  CHECK(dataset.clauses[1].entries.size() == 3);
  CHECK(dataset.clauses[4].entries[1].key == "y");
  CHECK(dataset.clauses[4].entries[1].values[0] == "2");
  CHECK(dataset.clauses[5].entries[1].type == "int");
}

TEST_CASE("directive: axes are shared by blocks, in turn, or by lists") {
  const Directive decomp =
      directive_of("decomp d block(z: a, b) cyclic(y: r, n, 4; x: p, q) list(cell: ids[k], n(1, 2))");
  REQUIRE(decomp.clauses.size() == 3);
  CHECK(decomp.clauses[1].entries[0].values == std::vector<std::string>{"r", "n", "4"});
  CHECK(decomp.clauses[1].entries[1].values.size() == 2);
  CHECK(decomp.clauses[2].entries[0].values == std::vector<std::string>{"ids[k]", "n(1, 2)"});
  CHECK(mistake_in("decomp d").message.starts_with("'decomp' needs block(...), cyclic(...) or list(...)"));
  CHECK(mistake_in("decomp d cyclic(z: r)").at == "z: r");
  CHECK(mistake_in("decomp d cyclic(z: r, n, 2, 3)").at == "z: r, n, 2, 3");
  CHECK(mistake_in("decomp d list(z: ids)").message.starts_with("expected the indices of this rank's elements"));
  CHECK(mistake_in("decomp d blok(z: a, b)").suggestion == "block");
}

TEST_CASE("directive: an output may name its record") {
  const Directive output = directive_of("output ckpt record(step / every) status(failed)");
  REQUIRE(output.clauses.size() == 2);
  CHECK(output.clauses[0].entries[0].values[0] == "step / every");
}

TEST_CASE("directive: axes of memory have an extent or none; components have an index") {
  const Directive dataset = directive_of(
      "dataset c.t type(double) as(float) dims(z, x) data(d) memory(z, x: n[a, b], v : NV) component(v: f(1, 2))");
  CHECK(dataset.clauses[1].entries[0].values[0] == "float");
  const auto& memory = dataset.clauses[4].entries;
  REQUIRE(memory.size() == 3);
  CHECK(memory[0].key == "z");
  CHECK(memory[0].values.empty());
  CHECK(memory[1].values == std::vector<std::string>{"n[a, b]"});
  CHECK(memory[2].key == "v");
  CHECK(dataset.clauses[5].entries[0].values == std::vector<std::string>{"f(1, 2)"});
  const auto mistake = [](const std::string& more) { return mistake_in("dataset c.t type(double) dims(z) " + more); };
  CHECK(mistake("data(d) memory(z, 3)").message == "expected a name and ':', e.g. memory(z, y, x, v: NV)");
  CHECK(mistake("data(d) memory(z, v: 1, 2)").at == "2");
  CHECK(mistake("data(d) memory(z, z)").message == "'z' is given twice in memory");
  CHECK(mistake("data(d) component(v)").at == "v");
  CHECK(mistake("data(d) as(int)").message == "unknown type in the file 'int'; expected double, float");
}

TEST_CASE("directive: each names a data set for components along an axis, in turn or by an index") {
  const Directive dataset =
      directive_of("dataset ckpt type(double) dims(z) data(d) memory(z, v: NV) each(v : dens, velx=f(1, 2), vely)");
  CHECK(dataset.name == "ckpt");
  CHECK(dataset.dataset.empty());
  const auto& entries = dataset.clauses.back().entries;
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].key == "dens");
  CHECK(entries[0].values == std::vector<std::string>{"v"});
  CHECK(entries[1].key == "velx");
  CHECK(entries[1].values == std::vector<std::string>{"v", "f(1, 2)"});
  const auto mistake = [](const std::string& more, const std::string& name = "c") {
    return mistake_in("dataset " + name + " type(double) dims(z) data(d) memory(z, v: 3) " + more);
  };
  CHECK(mistake("each(dens, velx)").message == "expected an axis and ':', e.g. each(v: dens, velx=4)");
  CHECK(mistake("each(v: dens, dens=2)").at == "dens=2");
  CHECK(mistake("each(v: dens, 4)").at == "4");
  CHECK(mistake("each(v: dens, )").message.starts_with("expected the names of data sets"));
  CHECK(mistake("each(v: dens; w: a)").at == "dens; w: a");
  CHECK(mistake("each(v: dens=)").message == "expected a value after 'dens='");
  CHECK(mistake("each(v: dens)", "c.t").at == "each");
}

TEST_CASE("directive: arrays name their data sets, or are named") {
  const Directive dataset = directive_of("dataset c type(int) dims(z) data(temp, w(:n, 1) , u = p->u[0] == 1 ? a : b)");
  CHECK(dataset.dataset.empty());
  const auto& entries = dataset.clauses.back().entries;
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].key == "temp");
  CHECK(entries[0].values == std::vector<std::string>{"temp"});
  CHECK(entries[1].key == "w");
  CHECK(entries[1].values == std::vector<std::string>{"w(:n, 1)"});
  CHECK(entries[2].key == "u");
  CHECK(entries[2].values == std::vector<std::string>{"p->u[0] == 1 ? a : b"});
  CHECK(directive_of("dataset c.t type(int) dims(z) data(a, b)").clauses.back().entries[0].values[0] == "a, b");
  const auto mistake = [](const std::string& data) {
    return mistake_in("dataset c type(int) dims(z) data(" + data + ")");
  };
  CHECK(mistake("t, p->t").message == "expected the data sets' names: data(temp, u=EXPR), or dataset c.temp ...");
  CHECK(mistake("t, p->t").at == "p->t");
  CHECK(mistake("a == b").at == "a == b");
  CHECK(mistake("t, ").at == " ");
  CHECK(mistake("t, u=").at == "u=");
  CHECK(mistake("t, u, t").message == "'t' is given twice in data");
}

TEST_CASE("directive: an output is of one file, or of several without a status") {
  const Directive output = directive_of("output a b  c");
  CHECK(output.name == "a");
  CHECK(output.further == std::vector<std::string>{"b", "c"});
  CHECK(directive_of("input a status(e)").further.empty());
  CHECK(mistake_in("output a b a").message == "file 'a' is given twice");
  CHECK(mistake_in("output a b status(e)").message == "'status' of several files; expected an 'output' for each");
  CHECK(mistake_in("output a status").message == "'status' needs a value in parentheses, e.g. status(error)");
  CHECK(mistake_in("output a, b").at == ",");
  CHECK(mistake_in("dims a b z(3)").at == "b");
}

TEST_CASE("directive: one width is for all axes, and an expression with a colon is no axis") {
  const auto width = [](const char* text) {
    return directive_of(("dataset c.t type(int) dims(z) data(d) ghost(" + std::string(text) + ")").c_str())
        .clauses.back()
        .entries[0];
  };
  CHECK(width("G").key.empty());
  CHECK(width("a > 0 ? a : b").key.empty());
  CHECK(width("a > 0 ? a : b").values[0] == "a > 0 ? a : b");
  CHECK(width("z: a ? b : c").key == "z");
}

TEST_CASE("directive: a mistake is underlined, and what was meant is suggested") {
  CHECK(mistake_in("fiel ckpt").suggestion == "file");
  CHECK(mistake_in("").message == "expected a directive: file, dims, attr, decomp, dataset, output, input");
  CHECK(mistake_in("file ckpt path(f) lvel(mpiio)").at == "lvel");
  CHECK(mistake_in("file ckpt path(f) lvel(mpiio)").suggestion == "level");
  CHECK(mistake_in("file ckpt path(f) level(mpio) comm(c)").suggestion == "mpiio");
  CHECK(mistake_in("file ckpt path(f) level(mpiio)").message == "'file' needs comm(...), e.g. comm(MPI_COMM_WORLD)");
  CHECK(mistake_in("file ckpt path(f) level(mpiio) comm(c) totalsize(6XB)").at == "6XB");
  CHECK(mistake_in("dataset temp type(double)").at == "temp");
  CHECK(mistake_in("dataset c.t type(duoble) dims(z) data(d)").suggestion == "double");
  CHECK(mistake_in("dims ckpt z(1) z(2)").message == "'z' is given twice");
  CHECK(mistake_in("dims ckpt").at == "ckpt");
  CHECK(mistake_in("dims ckpt z").message == "'z' needs a value in parentheses, e.g. z(NZ) y(NY) x(NX)");
  CHECK(mistake_in("decomp blk block(z: 1)").at == "z: 1");
  CHECK(mistake_in("decomp blk block(z: 1, 2, 3)").at == "z: 1, 2, 3");
  CHECK(mistake_in("attr ckpt time(t)").at == "t");
}

TEST_CASE("directive: an integer attribute is an int64 where it does not fit into an int") {
  const auto type = [](const char* value) {
    return directive_of(("attr c n(" + std::string(value) + ")").c_str()).clauses[0].entries[0].type;
  };
  CHECK(type("2147483647") == "int");
  CHECK(type("2147483648") == "int64");
  CHECK(type("-2147483648") == "int");
  CHECK(type("-2147483649") == "int64");
  CHECK(type("+9223372036854775807") == "int64");
  CHECK(type("5000000000.") == "double");
  CHECK(mistake_in("attr c n(9223372036854775808)").message ==
        "the number does not fit into 64 bits; expected at most 9223372036854775807, or a type: double: "
        "9223372036854775808");
  CHECK(mistake_in("dataset c.t type(int) dims(z) data(d) attr(n=-9223372036854775808)").at == "-9223372036854775808");
}

TEST_CASE("directive: a difference, an exponent without digits or signs alone are no number") {
  for (const std::string value : {"1-2", "1e", "e5", "+", ".", "1.2.3", "--1", "1 2", "0x10", "1d0"}) {
    CAPTURE(value);
    CHECK(mistake_in("attr c n(" + value + ")").at == value);
  }
  CHECK(mistake_in("attr c n(010)").message ==
        "a number that begins with 0 is octal in C; expected it without, or a type: int: 010");
  CHECK(directive_of("attr c n(0) m(0.5)").clauses[0].entries[0].type == "int");
  CHECK(directive_of("attr c n(010)", DirectiveLanguage::fortran).clauses[0].entries[0].type == "int");
  CHECK(directive_of("attr c n(1d0) m(-.5D-3)", DirectiveLanguage::fortran).clauses[1].entries[0].type == "double");
}

TEST_CASE("directive: a text has the quotes of its language, and nothing behind it") {
  const auto entry = [](const std::string& value, DirectiveLanguage language) {
    return directive_of(("attr c n(" + value + ")").c_str(), language).clauses[0].entries[0];
  };
  using enum DirectiveLanguage;
  CHECK(entry(R"("a\"b, c" VERSION "d")", c).values[0] == R"("a\"b, c" VERSION "d")");
  CHECK(entry(R"('C:\')", fortran).values[0] == R"('C:\')");
  CHECK(entry("'it''s' // \"a, b\"", fortran).type.empty());
  for (const std::string value : {"'abc'", R"("a, b", "c")", R"("abc"[0])", R"("abc" + 1)"}) {
    CAPTURE(value);
    CHECK(mistake_in("attr c n(" + value + ")").message.starts_with("expected a text in double quotes, a number"));
  }
  CHECK(mistake_in("file f path(p) level(mpiio) comm(c) hint(k='4')").at == "'4'");
  CHECK(mistake_in("attr c n('a', 'b')", fortran).at == "'a', 'b'");
  CHECK(mistake_in(R"(attr c n("a\"))", c).message == "the quoted text is not closed");
}

TEST_CASE("directive: brackets and quotes must fit") {
  CHECK(mistake_in("output ckpt status(e").message == "the '(' after 'status' is not closed");
  CHECK(mistake_in("output ckpt status(e[1)").at == ")");
  CHECK(mistake_in("file ckpt path(\"f) level(mpiio)").message == "the quoted text is not closed");
  CHECK(mistake_in("output ckpt )").at == ")");
}
