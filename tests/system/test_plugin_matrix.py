"""Every flag under which programs are compiled, and what the plugin makes of it: ok, diagnosed, or skipped and why.

The table of all of it is printed, and written to reports/plugin-matrix.txt of the build directory.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import traceback
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from plugin_matrix import ROWS, SOURCES, STORAGE, Row, check_compile_mode, check_run_mode

from conftest import BUILD
from plugin_compiler import ORACLE, PluginCompiler

CELLS = [(language, mode) for language in ("c", "c++") for mode in ("run", "compile")]
ONE_OPEN = """
#include <fcntl.h>
int main(void) {
#pragma sig temp
  return open("file", O_CREAT | O_WRONLY, 0600) < 3;
}
"""
NOT_MEANT = "-"


class Matrix:
    """What came of each cell; the cells of `rows` are tried by as many threads as there are processors."""

    def __init__(self, directory: Path, pool: ThreadPoolExecutor, rows: list[Row]) -> None:
        self.directory = directory
        PluginCompiler(directory)  # skips without a plugin
        (directory / "oracle.c").write_text(ORACLE)
        subprocess.run(["gcc", "-c", "oracle.c"], cwd=directory, check=True)
        self.cells: dict[tuple[str, str, str], Future[str]] = {}
        for number, row in enumerate(rows):
            for language, mode in CELLS:
                self.cells[title(row), language, mode] = pool.submit(self.attempt, number, row, language, mode)

    def attempt(self, number: int, row: Row, language: str, mode: str) -> str:
        if language not in row.languages:
            return NOT_MEANT
        if row.how.startswith("ccache"):
            if shutil.which("ccache") is None:
                return "skipped: ccache is not installed"
            if mode == "compile":
                return NOT_MEANT  # tried below: it is refused
        directory = self.directory / f"{number}-{language}-{mode}"
        directory.mkdir()
        compiler = PluginCompiler(directory)
        compiler.env |= {"CCACHE_DIR": str(directory / "ccache")}
        try:
            check = check_run_mode if mode == "run" else check_compile_mode
            check(compiler, row, language)
        except Exception:
            return f"FAILED: {traceback.format_exc()}"
        shutil.rmtree(directory)
        return "ok"

    def note(self, label: str, outcome: str, languages: tuple[str, ...] = ("c", "c++"), modes: str = "run compile"):
        """A line of the table for what is tested in a way of its own."""
        for language, mode in CELLS:
            known: Future[str] = Future()
            known.set_result(outcome if language in languages and mode in modes.split() else NOT_MEANT)
            self.cells[label, language, mode] = known

    def table(self) -> str:
        labels = list(dict.fromkeys(label for label, _, _ in self.cells))
        lines = [f"{'flags':66}{'C run':12}{'C compile':12}{'C++ run':12}{'C++ compile':12}"]
        for label in labels:
            found = [self.cells[label, language, mode].result() for language, mode in CELLS]
            lines.append(f"{label:66}" + "".join(f"{outcome.split(':')[0]:12}" for outcome in found))
            lines += [f"    {reason}" for reason in dict.fromkeys(found) if reason.startswith("skipped")]
        return "\n".join(line.rstrip() for line in lines) + "\n"


def title(row: Row) -> str:
    return row.flags if row.how == "build" else f"{row.flags} ({row.how})"


@pytest.fixture(scope="module")
def matrix(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    chosen = [item.callspec.params["row"] for item in request.session.items if hasattr(item, "callspec")
              and "row" in item.callspec.params]  # fmt: skip
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = Matrix(tmp_path_factory.mktemp("matrix"), pool, chosen)
        yield made
        reports = BUILD / "reports"
        reports.mkdir(exist_ok=True)
        (reports / "plugin-matrix.txt").write_text(made.table())


def need(tool: str) -> str:
    found = shutil.which(tool)
    if found is None:
        pytest.skip(f"{tool} is not installed")
    return found


@pytest.mark.parametrize("row", ROWS, ids=title)
def test_every_open_gets_its_own_pragma_under_these_flags(matrix: Matrix, row: Row) -> None:
    outcomes = [matrix.cells[title(row), language, mode].result() for language, mode in CELLS]
    assert [outcome for outcome in outcomes if outcome.startswith("FAILED")] == []
    skipped = [outcome for outcome in outcomes if outcome.startswith("skipped")]
    if skipped:
        pytest.skip(skipped[0].partition(": ")[2])
    assert "ok" in outcomes


def test_line_counts_of_coverage_are_those_of_the_program(matrix: Matrix, compiler: PluginCompiler) -> None:
    counts = []
    for flags in ([f"-fplugin={compiler.plugin}"], ["-Wno-unknown-pragmas"]):
        source = SOURCES / "places.c"
        compiler.run("gcc", *flags, "-O0", "--coverage", "-c", source, "-o", "places.o")
        compiler.run("gcc", "--coverage", "places.o", "-o", "program")
        compiler.run("./program")
        compiler.run(need("gcov"), "places.gcda")
        report = (compiler.directory / "places.c.gcov").read_text().splitlines()
        fields = [line.split(":", 2) for line in report[4:]]
        # A star tells that a block of the line did not run: the hint, in a program without libiosig.
        counts.append([(number, count.strip().rstrip("*")) for count, number, _ in fields])
        (compiler.directory / "places.gcda").unlink()
        for left in compiler.directory.glob("[on][ko]-*"):
            left.unlink()
    assert counts[0] == counts[1]
    matrix.note("--coverage: the same counts as without the plugin", "ok", ("c",), "run")


def test_the_analyzer_finds_the_same_with_and_without_the_plugin(matrix: Matrix, compiler: PluginCompiler) -> None:
    source = SOURCES / "places.c"
    found = []
    for flag in (f"-fplugin={compiler.plugin}", "-Wno-unknown-pragmas"):
        said = compiler.run("gcc", flag, "-fanalyzer", "-O1", "-c", source, "-o", "places.o").stderr
        found.append([line for line in said.splitlines() if "warning:" in line])
    assert found[0] == found[1]
    assert "possible-null-argument" in found[0][0]
    matrix.note("-fanalyzer", "ok", ("c",), "run")


@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_syntax_check_finds_mistakes_in_pragmas_and_makes_nothing(compiler, matrix: Matrix, language: str) -> None:
    [found] = compiler.diagnostics(ONE_OPEN.replace("temp", "tmep"), "-fsyntax-only", language=language)
    assert "tmep" in found["message"]
    assert compiler.diagnostics(ONE_OPEN, "-fsyntax-only", language=language) == []
    assert not (compiler.directory / "program.o").exists()
    matrix.note("-fsyntax-only", "ok")


@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_pragma_in_a_precompiled_header_is_diagnosed(compiler, matrix: Matrix, language: str) -> None:
    driver = "gcc" if language == "c" else "g++"
    (compiler.directory / "kept.h").write_text("#pragma sigdef kept temp\n#include <fcntl.h>\n")
    done = compiler.run(driver, f"-fplugin={compiler.plugin}", "-x", f"{language}-header", "kept.h")
    assert "a precompiled header does not keep '#pragma sigdef'" in done.stderr
    matrix.note("precompiled header", "diagnosed")


@pytest.mark.parametrize("language", ["c", "c++"])
def test_preprocessing_directives_only_keeps_pragmas(compiler, matrix: Matrix, language: str) -> None:
    (compiler.directory / "one.c").write_text("#define SHORT temp\n" + ONE_OPEN.replace("temp", "SHORT"))
    gcc = ["gcc", f"-fplugin={compiler.plugin}", "-fdirectives-only", "-Werror"]
    compiler.run(*gcc, "-E", "-x", language, "one.c", "-o", "one.i")
    compiled_as = {"c": "cpp-output", "c++": "c++-cpp-output"}[language]
    compiler.run(*gcc, "-fpreprocessed", "-x", compiled_as, "one.i", "-c", "-o", "one.o")
    assert "iosig_open_hint" in compiler.run("nm", "one.o").stdout
    matrix.note("-E -fdirectives-only, then compile", "ok")


def stats_of(compiler: PluginCompiler) -> tuple[int, int]:
    """Hits and misses of ccache since the last call."""
    counts = dict(line.split("\t") for line in compiler.run("ccache", "--print-stats").stdout.splitlines())
    compiler.run("ccache", "--zero-stats")
    return int(counts["direct_cache_hit"]) + int(counts["preprocessed_cache_hit"]), int(counts["cache_miss"])


def test_ccache_compiles_again_when_the_plugin_or_its_arguments_change(matrix: Matrix, compiler) -> None:
    need("ccache")
    compiler.env |= {"CCACHE_DIR": str(compiler.directory / "ccache")}
    (compiler.directory / "one.c").write_text(ONE_OPEN)
    plugin = compiler.directory / "iosig.so"
    shutil.copy(compiler.plugin, plugin)

    def compile_one(*flags: str) -> tuple[int, int]:
        compiler.run("ccache", "gcc", f"-fplugin={plugin}", *flags, "-c", "one.c")
        return stats_of(compiler)

    assert compile_one() == (0, 1)
    assert compile_one() == (1, 0)
    assert compile_one("-fplugin-arg-iosig-resolve=run") == (0, 1)
    os.utime(plugin, (1, 1))
    assert compile_one() == (0, 1), "another plugin"
    matrix.note("ccache, plugin changed: compiled again", "ok", modes="run")


def test_ccache_never_keeps_a_destination(iosig, matrix: Matrix, compiler: PluginCompiler) -> None:
    need("ccache")
    compiler.env |= {"CCACHE_DIR": str(compiler.directory / "ccache")}
    (compiler.directory / "one.c").write_text(ONE_OPEN)
    storage = compiler.directory / "storage.toml"
    for name in ("first", "second"):
        mount = compiler.directory / name
        mount.mkdir()
        storage.write_text(STORAGE.format(mount=mount))
        arguments = ["--resolve=compile", f"--storage={storage}"]
        compiler.run(iosig.binary, "cc", *arguments, "--", "ccache", "gcc", "-c", "one.c")
        assert str(mount).encode() in (compiler.directory / "one.o").read_bytes()
        flags = compiler.run(iosig.binary, "cc", *arguments, "--cflags").stdout.split()
        by_hand = compiler.run("ccache", "gcc", *flags, "-c", "one.c", check=False)
        assert by_hand.returncode != 0
        assert "CCACHE_DISABLE=1" in by_hand.stderr
    assert stats_of(compiler)[0] == 0
    matrix.note("ccache, destinations fixed while compiling", "diagnosed", modes="compile")


def test_iosig_cc_understands_ccache_before_the_compiler(iosig, compiler: PluginCompiler) -> None:
    need("ccache")
    (compiler.directory / "one.c").write_text(ONE_OPEN)
    compiler.env |= {"CCACHE_DIR": str(compiler.directory / "ccache")}
    for hits in (0, 1):
        compiler.run(iosig.binary, "cc", "--", "ccache", "gcc", "-c", "one.c")
        assert stats_of(compiler) == (hits, 1 - hits)
    compiler.run(iosig.binary, "cc", "--", "ccache", "gcc", "one.c", "-o", "program")
    assert "iosig_open_hint" in compiler.run("nm", "program").stdout


def test_the_link_time_compiler_loads_the_plugin_and_leaves_the_program_alone(matrix: Matrix, compiler) -> None:
    done = compiler.compile(ONE_OPEN, "-O2", "-flto", "-v")
    [*_, link_time] = [line for line in done.stderr.splitlines() if "/lto1 " in line]
    assert f"-fplugin={compiler.plugin}" in link_time
    compiler.run("./program")
    matrix.note("loaded into lto1", "ok", modes="run")


def test_the_fortran_compiler_loads_the_plugin_and_leaves_the_program_alone(matrix: Matrix, compiler) -> None:
    need("gfortran")
    (compiler.directory / "one.f90").write_text("print '(a)', 'fortran'\nend\n")
    done = compiler.run("gfortran", "-v", f"-fplugin={compiler.plugin}", "one.f90", "-o", "program")
    [f951] = [line for line in done.stderr.splitlines() if "/f951 " in line]
    assert f"-fplugin={compiler.plugin}" in f951
    assert compiler.run("./program").stdout == "fortran\n"
    matrix.note("loaded into f951", "ok", modes="run")


def test_a_plugin_in_another_gcc_says_for_which_it_was_built(matrix: Matrix, compiler: PluginCompiler) -> None:
    need("gcc-11")
    (compiler.directory / "one.c").write_text(ONE_OPEN)
    for language in ("c", "c++"):
        command = ["gcc-11", "-x", language, f"-fplugin={compiler.plugin}", "-c", "one.c"]
        done = compiler.run(*command, check=False)
        assert done.returncode != 0
        assert "this IOSIG plugin was built for GCC 12." in done.stderr
        assert "cannot be loaded by GCC 11." in done.stderr
    matrix.note("loaded into GCC 11", "diagnosed")


def test_iosig_cc_refuses_gcc_11_and_says_what_to_do(iosig, matrix: Matrix, compiler: PluginCompiler) -> None:
    need("gcc-11")
    done = iosig("cc", "--", "gcc-11", "-c", "one.c", check=4)
    assert "GCC 11" in done.stderr
    assert "GCC 12" in done.stderr
    assert "IOSIG_OPEN" in done.stderr
