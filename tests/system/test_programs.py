"""Real programs leave the same files on containers, through a mount and over redirected paths as without IOSIG."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_programs import PROGRAMS, WAYS, Program, World, compare, missing

from conftest import BUILD

NEEDS = {"run": "lib/libiosig-preload.so", "mount": "libexec/iosig/iosig-fuse", "prepare": "bin/iosig"}


@pytest.fixture
def world() -> Iterator[World]:
    # Not the tests' own directory, whose path is too long for some programs; and two file systems.
    scratch = Path(tempfile.mkdtemp(prefix="iosig-programs.", dir="/var/tmp"))
    fast = Path(tempfile.mkdtemp(prefix="iosig-programs.", dir="/dev/shm"))
    try:
        yield World(scratch, fast)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(fast, ignore_errors=True)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name.replace(" ", "_"))
def test_the_files_are_the_same(program: Program, way: str, world: World) -> None:
    if not (BUILD / NEEDS[way]).exists():
        pytest.skip(f"built without {NEEDS[way]}")
    if way == "mount" and not os.access("/dev/fuse", os.W_OK):
        pytest.skip("needs /dev/fuse")
    if way == "prepare" and not program.outputs:
        pytest.skip("no file of its own to redirect")
    if lacking := missing(program):
        pytest.skip(f"needs {lacking}")
    same, note = compare(program, way, world)
    if way in program.differs:
        assert not same, f"is equal now, though listed as: {program.differs[way]}"
    else:
        assert same, note
