"""IOSIG_OPEN, IOSIG_FOPEN and IOSIG_PATH of iosig.h: signatures for compilers that have no plugin."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT
from plugin_compiler import ORACLE
from redirecting import World

CREATE = 0o101  # O_CREAT | O_WRONLY

COMMON = r"""
#include <iosig/iosig.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
static int calls;
static const char *count(const char *text) { ++calls; return text; }
static int number(int value) { ++calls; return value; }
static int in_common(void) {
  int fd = IOSIG_OPEN(count("temp random"), count("open"), number(O_CREAT | O_WRONLY), number(0640));
  FILE *file = IOSIG_FOPEN(count("persist"), count("fopen"), count("w"));
  int other;
  if (fd < 3 || !file || calls != 7) return 1;
  if (IOSIG_OPEN("temp", "no/such/directory", O_CREAT | O_WRONLY, 0600) != -1) return 2;
  other = open(IOSIG_PATH(count("global"), count("path")), O_CREAT | O_WRONLY, 0600);
  return other < 0 || calls != 9 || close(fd) || fclose(file) || close(other) ? 3 : 0;
}
"""
C_MAIN = "int main(void) { return in_common(); }\n"
CXX_MAIN = r"""
#include <fstream>
#include <string>
#if __cplusplus >= 201703L
#include <filesystem>
#endif
int main() {
  std::ofstream string(IOSIG_PATH("local", std::string("str") + "ing"));
  std::ofstream chars(IOSIG_PATH("temp local", "chars"));
#if __cplusplus >= 201703L
  std::ofstream path(IOSIG_PATH("persist", std::filesystem::path("filesystem-path")));
#endif
  return string.good() && chars.good() ? in_common() : 4;
}
"""
IN_COMMON = [
    ("open", "open", str(CREATE), "temp random"),
    ("fopen", "fopen", "w", "persist"),
    ("open", "no/such/directory", str(CREATE), "temp"),
    ("open", "path", str(CREATE), "global"),
]
IN_CXX = [("open", "string", str(CREATE), "local"), ("open", "chars", str(CREATE), "temp local")]
IN_CXX17 = [("open", "filesystem-path", str(CREATE), "persist")]

COMPILERS = [
    *[(compiler, standard) for compiler in ("gcc", "clang") for standard in ("gnu90", "c99", "c17", "gnu2x")],
    *[(compiler, standard) for compiler in ("g++", "clang++") for standard in ("c++11", "c++17", "c++20")],
]


class Compiler:
    """Compiles the program above with every warning an error, and runs it in `folder`."""

    def __init__(self, name: str, standard: str, directory: Path) -> None:
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")
        self.is_cxx = "++" in standard
        self.directory = directory
        source = directory / ("program.cc" if self.is_cxx else "program.c")
        source.write_text(COMMON + (CXX_MAIN if self.is_cxx else C_MAIN))
        warnings = ["-Wall", "-Wextra", "-Wshadow", "-pedantic-errors", "-Werror"]
        self.command = [name, f"-std={standard}", *warnings, f"-I{ROOT / 'include'}", source, "-o", "program"]

    def build(self, *more: object) -> None:
        done = subprocess.run(
            [*map(str, self.command + list(more))], cwd=self.directory, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr

    def run(self, **environment: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [self.directory / "program"],
            cwd=self.directory,
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert done.returncode == 0, done
        return done


@pytest.mark.parametrize(("name", "standard"), COMPILERS)
def test_a_signed_open_gives_its_hint_once_and_then_opens(name: str, standard: str, tmp_path: Path) -> None:
    compiler = Compiler(name, standard, tmp_path)
    (tmp_path / "oracle.c").write_text(ORACLE)
    subprocess.run(["gcc", "-c", "oracle.c"], cwd=tmp_path, check=True)
    compiler.build("oracle.o")
    compiler.run(HINTS=str(tmp_path / "hints"))
    told = [line.split("\t") for line in (tmp_path / "hints").read_text().splitlines()]
    expected = IN_COMMON
    if compiler.is_cxx:
        expected = IN_CXX + (IN_CXX17 if standard != "c++11" else []) + IN_COMMON
    assert [(kind, path, mode, signature) for kind, path, mode, _, signature in told] == expected


@pytest.mark.parametrize(("name", "standard"), [("clang", "c17"), ("gcc", "c17"), ("clang++", "c++17")])
def test_without_libiosig_a_signed_open_is_an_open(name: str, standard: str, tmp_path: Path) -> None:
    compiler = Compiler(name, standard, tmp_path)
    compiler.build()
    assert compiler.run().stderr == ""
    assert (tmp_path / "open").stat().st_size == 0
    assert (tmp_path / "open").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(("name", "standard"), [("clang", "c17"), ("clang++", "c++17"), ("gcc", "c17")])
def test_with_libiosig_a_signed_open_is_redirected(world: World, name: str, standard: str) -> None:
    compiler = Compiler(name, standard, world.work)
    compiler.build(*world.iosig("cc", "--libs", "--compiler", name).stdout.split())
    compiler.run(**world.env)
    redirected = {path.name for path in world.work.iterdir() if path.is_symlink()}
    assert all((world.work / name).readlink().is_relative_to(world.fast) for name in redirected)
    # What must persist stays: the fast mount point is volatile.
    assert redirected == ({"open", "string", "chars"} if compiler.is_cxx else {"open"})
