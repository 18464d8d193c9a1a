"""Programs under a libiosig-preload.so with address and undefined-behaviour sanitizers: they find nothing.

`make test` builds the library with clang for the step in which it runs this file; `make sanitized` does so by itself.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import BUILD, ROOT
from preloading import Preloaded, assert_same_as_plain

LIBRARIES = [BUILD / preset / "lib/libiosig-preload.so" for preset in ("fuzz", "asan")]  # by clang, else by GCC
SANITIZED = next((library for library in LIBRARIES if library.exists()), None)
CLIENTS = [
    *(("random_calls", str(seed), "600") for seed in (13, 14, 15)),
    *((name,) for name in ("asynchronous", "below_file", "locks", "named_descriptors", "refused_calls")),
    ("threads_reopen", "shared.dat"),  # not with fork: AddressSanitizer's own memory does not come through it
]


def output_of(*command: object) -> str:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout


def runtimes(library: Path) -> list[str]:
    """The sanitizers' own libraries, which `library` was linked with. The program was not, so they must come first."""
    names = re.findall(r"NEEDED.*\[(lib(?:asan|ubsan|clang_rt)[^]]*)\]", output_of("readelf", "-d", library))
    cache = (library.parent.parent / "CMakeCache.txt").read_text()
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, re.MULTILINE)
    assert names and compiler
    return [output_of(compiler[1], f"-print-file-name={name}").strip() for name in names]


@pytest.mark.skipif(SANITIZED is None, reason="needs: make sanitized")
@pytest.mark.parametrize("client", CLIENTS, ids=" ".join)
def test_sanitizers_find_nothing(run: Preloaded, compiled: Callable[[Path], Path], client: tuple[str, ...]) -> None:
    assert SANITIZED is not None
    run.env["LD_PRELOAD"] = " ".join([*runtimes(SANITIZED), str(SANITIZED)])
    # Programs that end leave what they have; and AddressSanitizer would call our setrlimit() before it is ready.
    run.env["ASAN_OPTIONS"] = "detect_leaks=0:disable_coredump=0"
    assert_same_as_plain(run, compiled(ROOT / f"tests/support/{client[0]}.c"), 5, *client[1:])
