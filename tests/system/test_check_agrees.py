"""`iosig check` and the compiler's plugin say the same about the same sources, finding by finding, place by place."""

from __future__ import annotations

import re

import pytest

from conftest import Iosig
from plugin_compiler import PluginCompiler

# What follows "#include <fcntl.h>", ... in a file of its own; the languages that it is written in.
BOTH = {
    "mistakes": r"""
#pragma sig persist size-per-OI(16MB)
#pragma sig global persist local
#pragma sig
#pragma sig global(1)
#pragma sig totalsize
#pragma sig totalsize()
#pragma sig totalsize(12parsecs)
#pragma sig totalsize(1MB
#pragma sig temp temp tmp
#pragma sig temp ;
#pragma sig temp (3)
#pragma sig size-per-IO("4 XB") availability(2)
#pragma sigdef
#pragma sigdef random temp
#pragma sigdef name(1) temp
#pragma sigdef a temp
#pragma sigdef a temp
	#pragma	sigdef  a   persist
#pragma sig temp checkpoint
#pragma sig checkpoin
#pragma sigopen my_open
#pragma sigopen my_open(1, 1)
#pragma sigopen my_open(x)
int main(void) { return 0; }
""",
    "directives": r"""
#define t x
#pragma sigio fiel ckpt
#pragma sigio
#pragma sigio file ckpt path(a[i + 1], "b c") level(mpio) comm(c)
#pragma sigio file ckpt path(p) level(mpiio) comm(c) persist temp
#pragma sigio file ckpt path(p) level(mpiio) \
    comm(c) acces(write)
#pragma sigio dims ckpt z(N * (3 - -1)) y
#pragma sigio decomp blk block(z: start(1, 2), L; y : 1)
#pragma sigio dataset ckpt.t type(float) dims(z, y) data(t->x) ghost(z: 1 y)
#pragma sigio dataset ckpt type(float)
#pragma sigio attr ckpt name("it's") n(x)
int main(void) { return 0; }
""",
    "macros": r"""
#define BAD randm
#define SIGNED _Pragma("sig temp totalsiz(16MB)")
#define SIZE totalsize(16XB)
#define STRING(x) _Pragma(#x)
#define temp
int fd;
int main(void) {
#pragma sig persist BAD
  fd = open("x", O_RDONLY);
  SIGNED fd = open("x", O_RDONLY);
#pragma sig persist SIZE
  fd = open("x", O_RDONLY);
  STRING(sig rndom) fd = open("x", O_RDONLY);
_Pragma("sig persist(3)") fd = open("x", O_RDONLY);
#pragma sig temp random
  fd = open("x", O_RDONLY);
#if 0
#pragma sig nothing
#elif defined(BAD) && __GNUC__ > 4
#pragma sigdef \
   b \
   random sequential
#endif
  return fd;
}
""",
    "statements": r"""
#define OPEN(path) do { fd = open(path, O_RDONLY); } while (0)
#define CLOSE(path) do { fd = 3; } while (0)
#pragma sigopen my_open(2)
int my_open(int, const char *);
int fd;
int main(int argc, char **argv) {
#pragma sig temp
  int a = 5;
#pragma sig temp
#pragma sig persist
  fd = open("x", O_RDONLY);
#pragma sig temp
  fd = open("x", O_RDONLY) + open("y", O_RDONLY);
  {
#pragma sig temp
  }
#pragma sig temp
  if (argc) fd = open("x", O_RDONLY); else fd = open("y", O_RDONLY);
#pragma sig temp
  if ((fd = open("x", O_RDONLY)) < 0) fd = open("y", O_RDONLY);
#pragma sig temp
  while (a < 0) fd = open("y", O_RDONLY);
#pragma sig temp
  for (fd = 0; fd < 0;) { a++; }
  switch (a) {
    case 0: break;
#pragma sig temp
    case 1: fd = open("x", O_RDONLY); break;
#pragma sig temp
    default: fd = 3;
  }
#pragma sig temp
  OPEN("x");
#pragma sig temp
  CLOSE("x");
#pragma sig temp
  fd = argc ? open("x", O_RDONLY) : open("y", O_RDONLY);
#pragma sig temp
  int b = open("x", O_RDONLY), c = open("y", O_RDONLY);
#pragma sig temp
  if (argc) {
    fd = creat("x", 1);
#pragma sig persist
    fd = creat("y", 1);
  }
#pragma sig temp
  fd = my_open(1, "x");
#pragma sig temp
  FILE *f = fopen("x", "w"); fd = 3;
#pragma sig temp
  ;
	_Pragma("sig temp") fd = 5;
#pragma sig temp
  return fd + a + b + c + (f != 0) + (argv != 0);
}
#pragma sig persist
int later(void) { return open("x", O_RDONLY); }
#pragma sig persist
int nothing = 3;
""",
    "statements without a tree": r"""
#define LOG(x)
int fd;
int main(void) {
#pragma sig temp
  ;
  fd = open("x", O_RDONLY);
#pragma sig temp
  { }
  fd = open("x", O_RDONLY);
#pragma sig temp /* a comment;
  goes on */ \
  random
  LOG("opening");
  fd = open("x", O_RDONLY);
#pragma sig temp
  typedef int T;
  fd = open("x", O_RDONLY);
#pragma sig temp
  extern int z;
  fd = open("x", O_RDONLY);
#pragma sig temp
  struct X { int a; };
  fd = open("x", O_RDONLY);
#pragma sig temp
  enum { A };
  fd = open("x", O_RDONLY);
#pragma sig temp
  int f(void);
  fd = open("x", O_RDONLY);
  _Pragma("sig temp") ;
  fd = open("x", O_RDONLY);
#pragma sig temp
  LOG("opening")
  fd = open("x", O_RDONLY);
#pragma sig temp
  do ; while ((fd = open("x", O_RDONLY)) < 0);
#pragma sig temp
  do { } while ((fd = open("x", O_RDONLY)) < 0);
#pragma sig temp
  if (fd) ; else fd = open("x", O_RDONLY);
#pragma sig temp
  if (0) { } else { fd = open("x", O_RDONLY); }
#pragma sig temp
  for (;;) { fd = open("x", O_RDONLY); }
#pragma sig temp
  struct Y { int a, b; } y = {1, open("x", O_RDONLY)};
#pragma sig temp
  { ; fd = open("x", O_RDONLY); }
  return fd + y.a;
}
""",
}
NESTED = {
    "nested functions": r"""
int main(int argc, char **argv) {
  int nested(const char *path) {
#pragma sig temp
    return open(path, O_RDONLY);
  }
  int outer(const char *path) {
    int inner(void) {
#pragma sig temp
      int fd = open(path, O_RDONLY);
#pragma sig temp
      return fd;
    }
#pragma sig temp
    int fd = inner(), other = open(path, O_RDONLY);
#pragma sig temp
    int more = open(path, O_RDONLY) + open("x", O_RDONLY);
#pragma sig temp
#pragma sig persist
    return fd + other + more;
  }
#pragma sig temp
  int last(void) { return open("x", O_RDONLY); }
  {
    int in_block(void) {
#pragma sig temp
    }
#pragma sig temp
    struct { int a, fd; } parts = {1, 2};
    parts.fd = open("x", O_RDONLY);
    in_block();
#pragma sig temp
    return nested(argv[0]) + outer("x") + last() + parts.fd + argc;
  }
}
""",
}
CXX = {
    "captures": r"""
#include <fstream>
struct Pair { int before, fd; };
#pragma sig temp
Pair global = {1, open("x", O_RDONLY)};
#pragma sig temp
Pair constant = {1, 2};
#pragma sig temp
auto lambda = [before = 1, fd = open("x", O_RDONLY)] { return fd + before; };
int main() {
#pragma sig temp
  auto one = [fd = open("x", O_RDONLY)] { return fd; };
#pragma sig temp
  auto two = [before = 1, fd = open("x", O_RDONLY), more = open("y", O_RDONLY)] { return fd + before + more; };
#pragma sig temp
  auto none = [before = 1, fd = 2] { return fd + before; };
#pragma sig temp
  auto inside = [before = 1] {
#pragma sig temp
    return before;
  };
#pragma sig temp
  Pair pair = {1, open("x", O_RDONLY)};
#pragma sig temp
  Pair numbers = {1, 2};
  numbers.fd = open("x", O_RDONLY);
#pragma sig temp
  std::ofstream streams[2] = {std::ofstream("x"), std::ofstream()};
#pragma sig temp
  std::ofstream closed[2];
  for (auto &each : closed) each.open("x");
  return one() + two() + none() + inside() + pair.fd + numbers.fd;
}
""",
    "streams": r"""
#include <fstream>
#include <string>
struct Log : std::ofstream {};
using Out = std::ofstream;
Log log_;
std::ofstream global;
#pragma sig temp
static std::ofstream opened("x");
#pragma sig temp
static std::ofstream closed;
namespace io {
#pragma sig temp
int fd = open("x", O_RDONLY);
#pragma sig temp
int fd2 = 3;
}
int main() {
  std::string name = "x";
#pragma sig temp
  std::ofstream a;
#pragma sig temp
  std::ofstream b(name), c(name + "y");
#pragma sig temp
  Out d{name};
#pragma sig temp
  d.open(name);
#pragma sig temp
  log_.open("x");
#pragma sig temp
  global.close();
#pragma sig temp
  auto *e = new std::ofstream(name);
#pragma sig temp
  auto f = [] { return open("x", O_RDONLY); };
#pragma sig temp
  std::ofstream g(std::move(d));
#pragma sig temp
  if (std::ifstream h(name); h) std::ofstream i(name);
#pragma sig temp
  std::ofstream(name) << 1;
#pragma sig temp
  FILE *j = std::fopen("x", "w");
#pragma sig temp
  try { a.open(name); } catch (...) { }
  auto k = [&] {
#pragma sig temp
    return 4;
  };
  delete e;
  return f() + k() + (j != nullptr);
}
""",
    "numbers": "#pragma sig totalsize(1EB) size-per-IO(08KB)\n#pragma sigdef large totalsize(6 GB)\n"
    "#pragma sigdef separated totalsize(6'000'000KB)\n#pragma sig separated totalsize(6'0XB)\nint a;\n",
}
SOURCES = [(name, "c", text) for name, text in (BOTH | NESTED).items()] + [
    (name, "c++", text) for name, text in (BOTH | CXX).items()
]


LINE = re.compile(r"^program\.\w+:(\d+):(\d+): (error|warning): (.*)$", re.MULTILINE)


def findings_of_plugin(compiler: PluginCompiler, source: str, language: str) -> list[tuple[int, int, str, str]]:
    """What the compiler prints: places in macros, unlike those of its JSON."""
    flags = ["-c", "-fno-diagnostics-show-caret", "-fno-diagnostics-show-option", "-fdiagnostics-color=never"]
    done = compiler.compile(source, *flags, language=language, check=False, output="program.o")
    found = [(int(line), int(column), kind, text) for line, column, kind, text in LINE.findall(done.stderr)]
    own = ("exponent has no digits", "in octal constant")  # C++'s lexer's
    return [one for one in found if not any(words in one[3] for words in own)]


@pytest.mark.parametrize(("name", "language", "text"), SOURCES, ids=[f"{n} in {la}" for n, la, _ in SOURCES])
def test_check_and_plugin_agree(iosig: Iosig, compiler: PluginCompiler, name: str, language: str, text: str) -> None:
    source = "#include <fcntl.h>\n#include <stdio.h>\n" + text
    plugin = findings_of_plugin(compiler, source, language)
    file = "program.c" if language == "c" else "program.cc"
    document = iosig.json("check", file, cwd=compiler.directory, check=None)
    check = [(f["line"], f["column"], f["severity"], f["message"]) for f in document["findings"]]
    # an error keeps the compiler from judging what stands outside of functions
    if any(kind == "error" for _, _, kind, _ in plugin):
        check = [found for found in check if "is not followed by a declaration" not in found[3]]
    assert sorted(check) == sorted(plugin)
    assert len(check) >= (2 if name == "numbers" else 7)
