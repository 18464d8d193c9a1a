"""runtime/preload/hooks/calls.txt: libiosig-preload.so stands in for just the functions in the table."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD, ROOT
from preloading import LIBRARY

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="built without libiosig-preload.so")

HOOKS = ROOT / "runtime/preload/hooks"
MADE = BUILD / "runtime/preload/calls"
ROW = re.compile(r"^[\w ]+[ *]+(\w+)\([^()]*\) *\|[^|]*\|([^|]*)$", re.MULTILINE)


def names() -> list[str]:
    """Every name in the table, the other names of a function after its own. A profiled row is two functions."""
    return [
        name
        for function, attributes in ROW.findall((HOOKS / "calls.txt").read_text())
        for name in (
            *((function, f"P{function}") if " profiled " in attributes else (function,)),
            *re.findall(r"also=(\w+)", attributes),
        )
    ]


def symbols(*options: str) -> set[str]:
    """The library's dynamic symbols, without their versions."""
    told = subprocess.run(["nm", "-D", *options, LIBRARY], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].partition("@")[0] for line in told.splitlines()}


def make_calls(table: str, directory: Path) -> subprocess.CompletedProcess[str]:
    (directory / "calls.txt").write_text(table)
    command = ["cmake", f"-DTABLE={directory}/calls.txt", f"-DMADE={directory}", "-P", HOOKS / "calls.cmake"]
    return subprocess.run(command, capture_output=True, text=True)


ANNOUNCES = "iosig_expect_reads"  # stands in for nothing: hints and Python call it (preload/prefetch/announced.h)


def test_the_library_exports_the_names_in_the_table() -> None:
    assert len(names()) == len(set(names())) > 150
    assert symbols("--defined-only") == {*names(), ANNOUNCES}


def test_the_library_calls_no_function_in_the_table_past_it() -> None:
    """The engine's calls go to its wrappers, those of the behaviours to the next definition, found at run time."""
    called = symbols("--undefined-only")
    assert {"dlsym", "mprotect"} <= called
    assert not called & set(names())


def test_the_library_loads_no_other_into_a_program() -> None:
    """Each costs every short program a tenth of its time; the names are those of libc and its dynamic linker."""
    if "asan" in str(LIBRARY):
        pytest.skip("a sanitizer brings libraries of its own")
    told = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"NEEDED.*\[(.*)\]", told)
    assert needed and all(re.match(r"libc\.|ld-linux|ld64", name) for name in needed), needed


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("int dup(int fd) | descriptor:fd", "expected 'PROTOTYPE | KIND:PARAMETER ... | ATTRIBUTE ...'"),
        ("int dup(int fd) | descriptor:from | next", "dup has no parameter 'from'"),
        ("int dup(int fd) | fd | next", "expected descriptor:, path:, stream: or memory: and a parameter, found 'fd'"),
        ("int dup(int fd) | descriptor:fd | nxt", "unknown attribute 'nxt'"),
        ("int dup(int) | | next", "expected 'TYPE NAME' for a parameter, found 'int'"),
        ("int dup(int fd) | descriptor:fd | engine=next", "engine=next needs next"),
        ("int dup(int fd) | descriptor:fd | engine=kernel", "engine=kernel needs number="),
        ("int dup(int fd) | descriptor:fd | also=close", "close has a row already"),
    ],
)
def test_a_wrong_row_is_told_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("needs cmake")
    done = make_calls(f"family descriptor\nint close(int fd) | descriptor:fd | next\n{line}\n", tmp_path)
    told = " ".join(done.stderr.split())
    assert done.returncode != 0 and message in told
    assert f"{tmp_path}/calls.txt:3: " in told.replace("calls.txt: 3:", "calls.txt:3:")


def test_a_row_without_behaviour_and_a_behaviour_without_row_do_not_build(tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("needs cmake")
    table = "family descriptor\nint dup(int fd) | descriptor:fd | next\nint close(int fd) | descriptor:fd | next\n"
    assert make_calls(table, tmp_path).returncode == 0
    header = '#include "preload/hooks/hook.h"\nusing namespace iosig::preload;\n'
    (tmp_path / "calls.cpp").write_text(header + "int hook::dup(int fd) { return fd; }\n")

    def build(*options: str) -> subprocess.CompletedProcess[str]:
        command = ["g++", "-std=c++20", "-shared", "-fPIC", f"-I{ROOT}/runtime", f"-I{tmp_path}", "calls.cpp", *options]
        env = os.environ | {"LC_ALL": "C"}
        return subprocess.run([*command, "-o", "calls.so"], cwd=tmp_path, env=env, capture_output=True, text=True)

    linked = build(f"-Wl,@{tmp_path}/link_options")
    assert linked.returncode != 0
    assert re.search("undefined symbol .iosig_behaviour_of_close' referenced", linked.stderr)
    (tmp_path / "calls.cpp").write_text(header + "int hook::dup2(int fd, int to) { return fd + to; }\n")
    compiled = build()
    assert compiled.returncode != 0
    assert "hook::dup2(int, int)' should have been declared inside 'iosig::preload::hook'" in compiled.stderr
