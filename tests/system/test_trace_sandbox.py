"""`iosig trace` of programs in a sandbox that answers their system calls itself."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracing import Tracing

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the handlers know one kind of registers")

SUPPORT = Path(__file__).resolve().parent.parent / "support"

Compile = Callable[..., Path]


def info(tracing: Tracing) -> dict[str, Any]:
    told: dict[str, Any] = tracing.iosig.json("trace", "info", tracing.trace)
    return told


def is_whole(told: dict[str, Any]) -> bool:
    return not any(told[loss] for loss in ("lost_calls", "lost_names", "missing_parts", "unrecorded_calls"))


@pytest.mark.parametrize("mode", ["", "early"])
def test_a_sandbox_that_answers_calls_in_a_handler_goes_on(tracing: Tracing, compiled: Compile, mode: str) -> None:
    (tracing.directory / "input").write_bytes(bytes(16))
    with (tracing.directory / "input").open() as given:
        assert tracing(compiled(SUPPORT / "traced_sandbox.c"), mode, stdin=given) == "13 10000\n"
    told = info(tracing)
    assert told["missing_parts"] == 0
    if mode == "":
        reads = [row for row in tracing.of_file("data", "pread") if row.result == 16]
        assert len(reads) + told["lost_calls"] >= 10000


def test_threads_that_begin_at_once_are_one_process(tracing: Tracing, compiled: Compile) -> None:
    """The calls of a process that two threads have begun would be those of two, without the files of one."""
    processes = 40
    tracing(compiled(SUPPORT / "traced_first_calls.c"), processes)
    told = info(tracing)
    assert is_whole(told)
    numbers = {(part["pid"], part["part"].split(".")[-3]) for part in told["parts"]}
    assert len(numbers) == len({pid for pid, _ in numbers}) == processes  # their parent makes no traced call
    rows = tracing.rows(lambda row: row.call == "pwrite")
    assert len(rows) == processes * 4 * 20
    assert {row.path for row in rows} == {str(tracing.directory / f"f.{n}") for n in range(4)}
    assert not tracing.rows(lambda row: row.call == "inherited" and Path(row.path).name.startswith("f."))
