"""What an open tells the runtime: its path, its mode and the signature; which functions open, and the users' own."""

from __future__ import annotations

import os

import pytest

from plugin_compiler import AT_FDCWD, PluginCompiler

C_CALLEES = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  int directory = open(".", O_DIRECTORY);
#pragma sig global
  int fd = open("open", O_CREAT | O_WRONLY, 0600);
#pragma sig local
  fd = open64("open64", O_RDONLY);
#pragma sig temp
  fd = openat(directory, "openat", O_CREAT | O_RDWR, 0600);
#pragma sig persist
  fd = openat64(AT_FDCWD, "openat64", O_RDONLY);
#pragma sig random
  fd = creat("creat", 0600);
#pragma sig sequential
  fd = creat64("creat64", 0600);
#pragma sig archive
  FILE *f = fopen("fopen", "w");
#pragma sig tamperproof
  f = fopen64("fopen64", "a+");
#pragma sig temp global
  f = freopen("freopen", "w", f);
#pragma sig temp local
  f = freopen(NULL, "a", f);
  return directory == 3 ? 0 : 1;
}
"""

CXX_CALLEES = r"""
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
int main() {
  const std::string text = "string";
  const std::filesystem::path path = "path";
#pragma sig global
  std::FILE *f = std::fopen("fopen", "w");
#pragma sig local
  std::ofstream a("chars");
#pragma sig temp
  std::ifstream b(text);
#pragma sig persist
  std::fstream c{path, std::ios::in | std::ios::binary};
#pragma sig random
  c.open("open", std::ios::out | std::ios::app);
#pragma sig sequential
  b.open(text + "-open");
#pragma sig archive
  a.open(path / "open");
#pragma sig tamperproof
  int fd = open("fd", O_RDONLY);
  std::filebuf buffer;
#pragma sig temp random
  buffer.open("buffer", std::ios::in);
#pragma sig temp local
  auto *on_heap = new std::ofstream("heap");
#pragma sig temp global
  auto moved = std::ofstream("moved");
#pragma sig persist global
  static std::ofstream kept("static");
  delete on_heap;
  return f == nullptr ? 1 : 0;
}
"""


OPTIONS = ["-O0", "-O2 -D_FORTIFY_SOURCE=2 -D_FILE_OFFSET_BITS=64", "-O2 -flto", "-fopenmp -fsanitize=address"]


@pytest.mark.parametrize("options", OPTIONS)
def test_every_opener_of_c_tells_its_path_mode_and_signature(compiler: PluginCompiler, options: str) -> None:
    creat = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
    hints = compiler.hints(C_CALLEES, "-Wall", *options.split())
    assert [(h.interface, h.path, h.mode, h.dirfd, h.signature) for h in hints] == [
        ("open", "open", str(os.O_CREAT | os.O_WRONLY), AT_FDCWD, "global"),
        ("open", "open64", str(os.O_RDONLY), AT_FDCWD, "local"),
        ("open", "openat", str(os.O_CREAT | os.O_RDWR), 3, "temp"),
        ("open", "openat64", str(os.O_RDONLY), AT_FDCWD, "persist"),
        ("open", "creat", str(creat), AT_FDCWD, "random"),
        ("open", "creat64", str(creat), AT_FDCWD, "sequential"),
        ("fopen", "fopen", "w", AT_FDCWD, "archive"),
        ("fopen", "fopen64", "a+", AT_FDCWD, "tamperproof"),
        ("fopen", "freopen", "w", AT_FDCWD, "global temp"),
    ]  # freopen(NULL) opens nothing new, so nothing is told


@pytest.mark.parametrize("options", ["-O0 -std=c++17", "-O2 -flto -fopenmp -std=c++20"])
def test_every_opener_of_cxx_tells_its_path_mode_and_signature(compiler: PluginCompiler, options: str) -> None:
    app, binary, into, out = 1, 4, 8, 16  # libstdc++'s openmode
    hints = compiler.hints(CXX_CALLEES, *options.split(), language="c++")
    assert [(h.interface, h.path, h.mode, h.signature) for h in hints] == [
        ("fopen", "fopen", "w", "global"),
        ("fstream", "chars", str(out), "local"),
        ("fstream", "string", str(into), "temp"),
        ("fstream", "path", str(into | binary), "persist"),
        ("fstream", "open", str(out | app), "random"),
        ("fstream", "string-open", str(into), "sequential"),
        ("fstream", "path/open", str(out), "archive"),
        ("open", "fd", str(os.O_RDONLY), "tamperproof"),
        ("fstream", "buffer", str(into), "random temp"),
        ("fstream", "heap", str(out), "local temp"),
        ("fstream", "moved", str(out), "global temp"),
        ("fstream", "static", str(out), "global persist"),
    ]


def test_a_program_with_hints_runs_without_the_library_and_compiles_without_the_plugin(
    compiler: PluginCompiler,
) -> None:
    compiler.compile(C_CALLEES, "-Wall", "-Werror", "-Wno-unused")
    compiler.run("./program")
    done = compiler.run("gcc", "program.c", "-Wall", "-Wno-unused", "-o", "plain")
    assert {line.split("[")[-1] for line in done.stderr.splitlines() if "warning:" in line} == {"-Wunknown-pragmas]"}
    compiler.run("./plain")


VALUES = r"""
#include <fcntl.h>
#define CHUNK 16
#define LARGE 1EB
#pragma sigdef checkpoint persist size-per-IO(CHUNK MB) sequential
int main(VOID) {
#pragma sig checkpoint random totalsize("1EB")
  int fd = open("a", O_RDONLY);
#pragma sig availability(1e-6) duration(1.5d) read-share(30%) MTTDL(20y) size-per-IO(1.5MB) totalsize(6 GB)
  fd = open("b", O_RDONLY);
#pragma sig totalsize(EXABYTE)
  fd = open("c", O_RDONLY);
  return 0;
}
"""


@pytest.mark.parametrize(("language", "void", "exabyte"), [("c", "void", "1EB"), ("c++", "", '"1EB"')])
def test_values_with_units_mean_the_same_in_c_and_cxx(
    compiler: PluginCompiler, language: str, void: str, exabyte: str
) -> None:
    source = VALUES.replace("VOID", void).replace("EXABYTE", exabyte)
    if language == "c++":
        source = source.replace("#define LARGE 1EB\n", "")
    assert [h.signature for h in compiler.hints(source, language=language)] == [
        "random persist size-per-IO(16MB) totalsize(1EB)",
        "size-per-IO(1536KB) totalsize(6GB) read-share(0.3) MTTDL(20y) availability(1e-06) duration(36h)",
        "totalsize(1EB)",
    ]


def test_digits_of_cxx_may_be_separated(compiler: PluginCompiler) -> None:
    source = """#include <fcntl.h>
int main() {
#pragma sig totalsize(6'000'000'000) size-per-IO(64'000KB) availability(0.000'001)
  return open("a", O_RDONLY) > 9;
}
"""
    [hint] = compiler.hints(source, language="c++")
    assert hint.signature == "size-per-IO(64000KB) totalsize(5859375KB) availability(1e-06)"


@pytest.mark.parametrize("way", ["-save-temps", "#line"])
def test_numbers_of_a_preprocessed_source_are_those_that_the_compiler_reads(compiler: PluginCompiler, way: str) -> None:
    pragma = "#pragma sig temp size-per-IO(BS) totalsize(64KB) availability(0.5) think-time(2.5h)"
    if way == "#line":  # the other text has a number at each column
        (compiler.directory / "other.txt").write_text("4" * 100 + "\n")
        pragma = '#line 1 "other.txt"\n' + pragma
    source = f'#include <fcntl.h>\n#define BS 1KB\nint main() {{\n{pragma}\n  return open("a", O_RDONLY) > 9;\n}}\n'
    [hint] = compiler.hints(source, *(["-save-temps"] if way == "-save-temps" else []), language="c++")
    assert hint.signature == "temp size-per-IO(1KB) totalsize(64KB) think-time(2.5h) availability(0.5)"


WRAPPERS = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#pragma sigopen traced_open(2, 3)
static int traced_open(int level, const char *path, int flags) { return level ? open(path, flags, 0600) : -1; }
static FILE *text_open(const char *mode, const char *path) { return fopen(path, mode); }
static int simple(const char *path) { return creat(path, 0600); }
int main(int argc, char **argv) {
#pragma sig temp
  int fd = traced_open(argc, "flags", O_RDONLY);
#pragma sig temp
  FILE *f = text_open("r", "mode");
#pragma sig temp
  fd = simple("none");
#pragma sig temp
  return open("known", O_RDONLY) > fd && f && !argv;
}
"""
CXX_WRAPPERS = r"""
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#pragma sigopen io::by_value(1)
#pragma sigopen io::Writer::reopen(2, 3)
#pragma sigopen io::Writer::Writer(2)
#pragma sigopen io::any(1)
#pragma sigopen io::versioned(1)
namespace io {
inline namespace v2 {
int versioned(const char *path) { return path[0]; }
}
int by_value(std::string path) { return path.empty(); }
int unlisted(std::string path) { return path.empty(); }
struct Writer {
  Writer() = default;
  explicit Writer(const std::filesystem::path &path) : stream(path) {}
  void reopen(const std::filesystem::path &path, std::ios::openmode mode) { stream.open(path, mode); }
  std::ofstream stream;
};
template <class Path> int any(const Path &path) { return path == Path(); }
}
int main() {
#pragma sig temp
  io::by_value("value");
#pragma sig temp
  io::unlisted("wrong");
#pragma sig temp
  io::Writer writer("constructor");
#pragma sig temp
  writer.reopen("member", std::ios::app);
#pragma sig temp
  io::any(std::string("template"));
#pragma sig temp
  io::versioned("inline");
}
"""


@pytest.mark.parametrize("options", ["-O0", "-O2 -flto"])
def test_functions_of_the_users_can_be_declared_openers_by_argument_and_by_pragma(
    compiler: PluginCompiler, options: str
) -> None:
    declared = ["-fplugin-arg-iosig-callee=text_open:2:1", "-fplugin-arg-iosig-callee=simple:1"]
    hints = compiler.hints(WRAPPERS, "-w", *declared, *options.split())
    creating = str(os.O_CREAT | os.O_WRONLY)
    assert [(h.interface, h.path, h.mode) for h in hints] == [
        ("open", "flags", str(os.O_RDONLY)),
        ("fopen", "mode", "r"),
        ("open", "none", creating),
        ("open", "known", str(os.O_RDONLY)),
    ]
    hints = compiler.hints(CXX_WRAPPERS, "-w", *options.split(), language="c++")
    assert [(h.interface, h.path, h.mode) for h in hints] == [
        ("open", "value", creating),
        ("open", "constructor", creating),
        ("fstream", "member", "1"),
        ("open", "template", creating),
        ("open", "inline", creating),
    ]


def test_iosig_cc_hands_a_callee_on_to_the_plugin(compiler: PluginCompiler, iosig) -> None:
    (compiler.directory / "wrappers.c").write_text(WRAPPERS)
    arguments = ["-fplugin-arg-iosig-callee=simple:1", "-fplugin-arg-iosig-verbose", "-c", "wrappers.c"]
    done = compiler.run(iosig.binary, "cc", "--", "gcc", *arguments)
    assert "'simple' gets the signature 'temp'" in done.stderr
