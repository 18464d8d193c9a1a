"""The lines that open files, of programs compiled with -g: `iosig infer --pragmas`, `iosig query --by source`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from test_trace_source import built, line_of

from conftest import BUILD
from tracing import Tracing

pytestmark = pytest.mark.skipif(not (BUILD / "libexec/iosig/iosig-lines").exists(), reason="built without libdw")


def places(tracing: Tracing) -> dict[str, set[tuple[str, ...]]]:
    """By name: the lines of each open, with their files' names alone."""
    return {
        Path(each["glob"]).name: {tuple(Path(line).name for line in lines) for lines in each["opened_at"]}
        for each in tracing.iosig.json("infer", tracing.trace)["streams"]
    }


C = """#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include "own.h"
static inline __attribute__((always_inline)) int make(const char* name) {
  return open(name, O_CREAT | O_WRONLY, 0666);  // IN MAKE
}
static void put(int fd) {
  if (write(fd, "12345678", 8) != 8) _exit(1);
  close(fd);
}
int main(void) {
  char name[32];
  for (int n = 0; n < 100; ++n) {
    snprintf(name, sizeof name, "step%03d", n);
    put(make(name));  // STEPS
  }
  put(make("alone"));  // ALONE
  put(make_by_library("library"));  // LIBRARY
  FILE* const stream = fopen("stream", "w");  // STREAM
  fputs("text", stream);
  fclose(stream);
  return 0;
}
"""
LIBRARY = """#include <fcntl.h>
#include "own.h"
int make_by_library(const char* name) { return open(name, O_CREAT | O_WRONLY, 0666); }
"""


@pytest.mark.parametrize("optimization", ["-O0", "-O2"])
def test_each_stream_has_the_lines_that_open_it(tracing: Tracing, optimization: str) -> None:
    (tracing.directory / "own.h").write_text("int make_by_library(const char* name);\n")
    built(tracing, "own.c", LIBRARY, "-g", "-shared", "-fPIC")
    program = built(tracing, "opens.c", C, "-g", optimization, "own.so", "-Wl,-rpath,$ORIGIN")
    tracing(program)

    def line(text: str) -> str:
        return f"opens.c:{line_of(C, text)}"

    found = places(tracing)
    assert found["step[0-9][0-9][0-9]"] == {(line("IN MAKE"), line("STEPS"))}
    assert found["alone"] == {(line("IN MAKE"), line("ALONE"))}
    assert found["library"] == {("own.c:3", line("LIBRARY"))}
    assert found["stream"] == {(line("STREAM"),)}
    text = tracing.iosig("infer", tracing.trace, "--pragmas").stdout
    directory = tracing.directory
    assert f"// opened at {directory}/{line('IN MAKE')}, called at {directory}/{line('ALONE')}\n#pragma sig" in text


def test_lines_of_cpp_and_fortran_are_those_of_the_user_not_of_the_language_s_library(tracing: Tracing) -> None:
    source = '#include <fstream>\nint main() {\n  std::ofstream out;\n  out.open("data");\n  out << "text";\n}\n'
    tracing(built(tracing, "stream.cpp", source, "-g", "-O2", compiler="g++"))
    assert places(tracing)["data"] == {("stream.cpp:4",)}
    if shutil.which("gfortran") is None:
        pytest.skip("there is no gfortran")
    source = 'program p\n  open(unit=11, file="fortran", access="stream")\n  write(11) 1\n  close(11)\nend program\n'
    tracing(built(tracing, "unit.f90", source, "-g", compiler="gfortran"))
    assert places(tracing)["fortran"] == {("unit.f90:2", "unit.f90:5")}  # main() is on the last line


def test_a_program_that_was_built_again_has_no_lines(tracing: Tracing) -> None:
    (tracing.directory / "own.h").write_text("int make_by_library(const char* name);\n")
    built(tracing, "own.c", LIBRARY, "-g", "-shared", "-fPIC")
    program = built(tracing, "opens.c", C, "-g", "own.so", "-Wl,-rpath,$ORIGIN")
    tracing(program)
    built(tracing, "opens.c", "\n" + C, "-g", "own.so", "-Wl,-rpath,$ORIGIN")
    done = tracing.iosig("infer", tracing.trace, "--pragmas")
    assert f"'{program}' is not the file that ran" in done.stderr
    assert "opens.c" not in done.stdout and "own.c:3\n" in done.stdout  # the library is the same


def test_without_line_tables_nothing_is_noted(tracing: Tracing) -> None:
    (tracing.directory / "own.h").write_text("int make_by_library(const char* name);\n")
    built(tracing, "own.c", LIBRARY, "-shared", "-fPIC")
    program = built(tracing, "opens.c", C, "own.so", "-Wl,-rpath,$ORIGIN")
    tracing(program)
    assert set().union(*places(tracing).values()) == set()
    assert "programs compiled with -g tell" in tracing.iosig("infer", tracing.trace, "--pragmas").stdout
    assert not any(b"opened=" in part.read_bytes() for part in tracing.trace.glob("*.part"))
    program = built(tracing, "opens.c", C, "-g", "own.so", "-Wl,-rpath,$ORIGIN")
    tracing(program, options=("--no-open-lines",))
    assert not any(b"opened=" in part.read_bytes() for part in tracing.trace.glob("*.part"))


def test_calls_are_counted_by_the_line_that_opened_their_file(tracing: Tracing) -> None:
    (tracing.directory / "own.h").write_text("int make_by_library(const char* name);\n")
    built(tracing, "own.c", LIBRARY, "-g", "-shared", "-fPIC")
    tracing(built(tracing, "opens.c", C, "-g", "own.so", "-Wl,-rpath,$ORIGIN"))
    asked = ("query", "calls", tracing.trace, "--by", "source", "--layer", "posix", "--call", "write")
    rows = tracing.iosig.json(*asked)["rows"]
    make, steps, alone, library, stream = (
        f"{tracing.directory}/opens.c:{line_of(C, text)}"
        for text in ("IN MAKE", "STEPS", "ALONE", "LIBRARY", "// STREAM")
    )
    assert {row["opened_at"]: (row["calls"], row["written_bytes"]) for row in rows} == {
        f"{make}, called at {steps}": (100, 800),
        f"{make}, called at {alone}": (1, 8),
        f"{tracing.directory}/own.c:3, called at {library}": (1, 8),
        stream: (1, 4),
    }
    tracing("true")
    done = tracing.iosig(*asked[:2], tracing.trace, "--by", "source", check=None)
    assert "the traces do not say where files are opened" in done.stderr


def test_advice_names_the_line(tracing: Tracing) -> None:
    source = (
        "#include <fcntl.h>\n#include <unistd.h>\nint main(void) {\n"
        '  const int fd = open("data", O_CREAT | O_WRONLY, 0666);\n'
        "  for (int n = 0; n < 100000; ++n)\n    if (write(fd, &n, sizeof n) < 0) return 1;\n}\n"
    )
    tracing(built(tracing, "small.c", source, "-g"))
    document = tracing.iosig.json("advise", tracing.trace, "--min-gain", "0%")
    [places] = [each["opened_at"] for each in document["advice"] if each["topic"] == "small-writes"]
    assert places == [[f"{tracing.directory}/small.c:4"]]
    assert f"  opened    {tracing.directory}/small.c:4\n" in tracing.iosig("advise", tracing.trace).stdout


SMALL_STACK = """#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static int depth;
static int deep(int n) {
  volatile char frame[64];
  frame[0] = 0;
  if (n > 0) return deep(n - 1) + frame[0];
  return open("small", O_CREAT | O_WRONLY, 0666);  // OPEN
}
static void* run(void* none) {
  const int fd = deep(depth);
  if (write(fd, "text", 4) != 4) _exit(1);
  return none;
}
int main(int count, char** words) {
  pthread_t thread;
  pthread_attr_t small;
  depth = count > 1 ? atoi(words[1]) : 0;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 16384);
  pthread_create(&thread, &small, run, 0);
  return pthread_join(thread, 0);
}
"""


def test_the_unwinder_needs_no_stack_of_the_program(tracing: Tracing) -> None:
    program = built(tracing, "stack.c", SMALL_STACK, "-g", "-O1", "-fno-optimize-sibling-calls", "-pthread")

    def survives(depth: int, *options: str) -> bool:
        words = tracing.command(program, depth, options=options)
        return subprocess.run(words, cwd=tracing.directory, env=tracing.iosig.env, capture_output=True).returncode == 0

    works, fails = 0, 200  # calls before the open
    while fails - works > 1:
        middle = (works + fails) // 2
        works, fails = (middle, fails) if survives(middle, "--no-open-lines") else (works, middle)
    assert works > 10 and survives(works - 1)
    [lines] = places(tracing)["small"]
    assert lines[0] == f"stack.c:{line_of(SMALL_STACK, '// OPEN')}"
