"""How builds find plugin, header and library: `iosig cc`, pkg-config, find_package; in the build tree and installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD
from plugin_compiler import PluginCompiler

SOURCE = r"""
#include <fcntl.h>
#include <iosig/iosig.h>
int main(void) {
#pragma sig temp
  return open("x", O_CREAT | O_WRONLY, 0600) < 0;
}
"""


@pytest.fixture
def compiler(tmp_path: Path) -> PluginCompiler:
    directory = tmp_path / "work"
    directory.mkdir()
    found = PluginCompiler(directory)
    (directory / "program.c").write_text(SOURCE)
    shutil.copy(directory / "program.c", directory / "program.cc")
    return found


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """The build under test, installed."""
    directory = tmp_path / "prefix"
    done = subprocess.run(["cmake", "--install", BUILD, "--prefix", directory], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"the build cannot be installed (build all of it first): {done.stderr.strip()}")
    return directory


def is_ready(compiler: PluginCompiler, program: str = "program") -> bool:
    """Runs, gives hints, and finds libiosig by itself, without needing it."""
    (compiler.directory / "x").unlink(missing_ok=True)
    said = compiler.run(f"./{program}", env=compiler.env | {"IOSIG_VERBOSE": "1"}).stderr
    needed = compiler.run("readelf", "-d", program).stdout
    return "iosig: 'x'" in said and "libiosig" not in re.sub(r"R(UN)?PATH.*", "", needed)


def test_iosig_cc_compiles_and_links_in_the_build_tree(iosig, compiler: PluginCompiler) -> None:
    where = {"cwd": compiler.directory}
    iosig("cc", "--", "gcc", "-O2", "-Wall", "-o", "program", "program.c", **where)
    assert is_ready(compiler)
    iosig("cc", "--", "g++", "-c", "program.cc", **where)
    iosig("cc", "--", "g++", "-o", "program", "program.o", **where)
    assert is_ready(compiler)
    (compiler.directory / "precompiled.h").write_text("int number;\n")
    for words in (["gcc", "precompiled.h"], ["g++", "-x", "c++-header", "precompiled.h", "-o", "precompiled.h.gch"]):
        iosig("cc", "--", *words, **where)
        (compiler.directory / "precompiled.h.gch").unlink()
    flags = iosig("cc", "--cflags", "--libs").stdout.split()
    compiler.run("gcc", *flags, "program.c", "-o", "program")
    assert is_ready(compiler)


@pytest.mark.parametrize("sanitizer", ["address", "thread", "undefined"])
def test_a_program_with_a_sanitizer_finds_libiosig_along_its_run_path(iosig, compiler, sanitizer: str) -> None:
    iosig("cc", "--", "gcc", f"-fsanitize={sanitizer}", "-o", "program", "program.c", cwd=compiler.directory)
    assert is_ready(compiler)


def test_iosig_cc_and_the_packages_work_from_an_installation(compiler: PluginCompiler, prefix: Path) -> None:
    iosig = prefix / "bin" / "iosig"
    compiler.run(iosig, "cc", "--", "gcc", "-o", "program", "program.c")
    assert is_ready(compiler)
    assert str(prefix) in compiler.run(iosig, "cc", "--cflags").stdout
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    [file] = prefix.rglob("iosig.pc")
    env = compiler.env | {"PKG_CONFIG_PATH": str(file.parent)}
    flags = compiler.run("pkg-config", "--cflags", "--libs", "iosig", env=env).stdout.split()
    compiler.run("gcc", "program.c", "-o", "program", *flags)
    assert is_ready(compiler)


def test_a_program_runs_on_where_libiosig_is_not(compiler: PluginCompiler, prefix: Path) -> None:
    compiler.run(prefix / "bin" / "iosig", "cc", "--", "gcc", "-o", "program", "program.c")
    assert is_ready(compiler)
    for library in prefix.rglob("libiosig.so*"):
        library.unlink()
    (compiler.directory / "x").unlink()
    assert compiler.run("./program", env=compiler.env | {"IOSIG_VERBOSE": "1"}).stderr == ""
    assert (compiler.directory / "x").exists()


CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C CXX)
find_package(iosig REQUIRED)
add_executable(c_program program.c)
add_executable(cxx_program program.cc)
target_link_libraries(c_program iosig::iosig)
target_link_libraries(cxx_program iosig::iosig)
"""


@pytest.mark.parametrize("compilers", [("gcc", "g++"), ("clang", "clang++")])
def test_find_package_gives_a_target_for_c_and_cxx(
    compiler: PluginCompiler, prefix: Path, compilers: tuple[str, str]
) -> None:
    for tool in (*compilers, "ninja"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    (compiler.directory / "CMakeLists.txt").write_text(CMAKE)
    c, cxx = compilers
    compiler.run("cmake", "-G", "Ninja", "-B", ".", f"-DCMAKE_C_COMPILER={c}", f"-DCMAKE_CXX_COMPILER={cxx}",
                 f"-DCMAKE_PREFIX_PATH={prefix}")  # fmt: skip
    compiler.run("ninja")
    for program in ("c_program", "cxx_program"):
        if c == "gcc":
            assert is_ready(compiler, program)
        else:
            compiler.run(f"./{program}")


def test_iosig_cc_says_what_it_would_run_and_why_it_cannot(iosig, compiler: PluginCompiler) -> None:
    where = {"cwd": compiler.directory}
    dry = iosig("cc", "--resolve", "compile", "--storage", "s.toml", "--dry-run", "--", "gcc", "-c", "a.c", **where)
    assert "-fplugin-arg-iosig-resolve=compile" in dry.stdout
    assert dry.stdout.startswith("CCACHE_DISABLE=1 gcc ")
    assert f"-fplugin-arg-iosig-storage={compiler.directory}/s.toml" in dry.stdout
    assert "-liosig" not in dry.stdout, "nothing is linked with -c"
    assert iosig("cc", "--", "gcc", "--version", **where).stdout.startswith("gcc")
    assert "cannot run 'no-such-cc'" in iosig("cc", "--", "no-such-cc", "a.c", check=4).stderr
    assert "expected a C or C++ compiler" in iosig("cc", "--", "false", "a.c", check=4).stderr
    assert "expected a compiler's command" in iosig("cc", check=2).stderr
    iosig("cc", "--", "gcc", "-c", "no-such-file.c", check=1, **where)
    document = iosig.json("cc", "--compiler", "g++")
    assert document["schema"] == "iosig.cc/1"
    assert document["plugin"] == str(compiler.plugin)


def test_iosig_cc_has_a_clear_word_for_a_gcc_without_a_plugin(iosig, compiler: PluginCompiler) -> None:
    other = compiler.directory / "gcc-99"
    other.write_text("#!/bin/sh\necho '#define __GNUC__ 99'\n")
    other.chmod(0o755)
    done = iosig("cc", "--", str(other), "-c", "program.c", check=4, cwd=compiler.directory)
    assert "there is no IOSIG plugin for" in done.stderr
    assert "gcc-99-plugin-dev" in done.stderr


def test_iosig_cc_leaves_clang_alone_and_says_so(iosig, compiler: PluginCompiler) -> None:
    if shutil.which("clang") is None:
        pytest.skip("clang is not installed")
    done = iosig("cc", "--", "clang", "-Wno-unknown-pragmas", "-o", "program", "program.c", cwd=compiler.directory)
    assert (
        done.stderr.strip()
        == "iosig: note: 'clang' is clang: it ignores pragmas; IOSIG_OPEN(...) of iosig.h works with it"
    )
    compiler.run("./program")
