"""`iosig trace` and the descriptors of the traced program: the recorder takes none of them, writes to none of them, and
loses no call when the program has none to spare."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracing import Tracing

SUPPORT = Path(__file__).resolve().parent.parent / "support"

Compile = Callable[..., Path]


@pytest.fixture
def program(compiled: Compile) -> Path:
    return compiled(SUPPORT / "traced_descriptors.c")


def info(tracing: Tracing) -> dict[str, Any]:
    told: dict[str, Any] = tracing.iosig.json("trace", "info", tracing.trace)
    return told


def complained(tracing: Tracing, *program: object) -> list[int]:
    """The numbers that a program says on stderr."""
    done = subprocess.run(tracing.command(*program), cwd=tracing.directory, env=tracing.iosig.env, capture_output=True,
                          text=True, check=False, timeout=120)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [int(word) for line in done.stderr.splitlines() if line[0].isdigit() for word in line.split()]


def is_whole(told: dict[str, Any]) -> bool:
    return not any(told[loss] for loss in ("lost_calls", "lost_names", "missing_parts", "unrecorded_calls"))


def test_a_redirection_in_another_thread_gets_no_byte_of_the_trace(tracing: Tracing, program: Path) -> None:
    assert complained(tracing, program, "redirect") == [0, len("hello log\n")]
    assert (tracing.directory / "log").read_bytes() == b"hello log\n"
    assert is_whole(info(tracing))


def test_descriptors_have_the_numbers_that_they_have_without_the_library(tracing: Tracing, program: Path) -> None:
    assert complained(tracing, program, "numbers") == [0]
    assert is_whole(info(tracing))


def test_children_inherit_no_descriptor_of_the_trace(tracing: Tracing, program: Path) -> None:
    assert tracing(program, "fork") == "0\n"


@pytest.mark.parametrize("mode", ["full", "jail", "user", "closed"])
def test_no_call_is_lost_when_no_file_can_be_opened_any_more(tracing: Tracing, program: Path, mode: str) -> None:
    if mode in ("jail", "user") and os.geteuid() != 0:
        pytest.skip("needs root")
    assert tracing(program, mode) == "10000\n"
    assert is_whole(info(tracing))
    rows = tracing.of_file("data", "pwrite")
    assert len(rows) == 10000 and {row.result for row in rows} == {16}


def test_a_thread_that_found_no_descriptor_is_recorded_once_there_is_one(tracing: Tracing, program: Path) -> None:
    (tracing.directory / "input").write_bytes(b"abc")
    with (tracing.directory / "input").open() as given:
        tracing(program, "late", stdin=given)
    told = info(tracing)
    reads = len(tracing.of_file("input", "pread"))
    assert reads >= 50 and told["unrecorded_processes"] == 1
    assert told["unrecorded_calls"] >= 10 and told["missing_parts"] == 0
    assert len(tracing.of_file("of the child", "pwrite")) == 100


def test_hundreds_of_threads_leave_the_program_its_descriptors(tracing: Tracing, program: Path) -> None:
    assert tracing(program, "threads") == "0\n"
    told = info(tracing)
    assert is_whole(told)
    assert len(tracing.rows(lambda row: row.call == "pwrite")) == 512 * 301
