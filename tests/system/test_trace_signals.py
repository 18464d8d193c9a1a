"""Signal handlers at every moment of a traced call: each call is in the trace with its end, or counted as lost."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import ROOT
from preloading import LIBRARY
from tracing import Tracing

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="built without libiosig-preload.so")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the program steps through instructions of x86-64")
@pytest.mark.parametrize("handler", [3, 700], ids=["few", "many"])
def test_a_handler_at_any_instruction_of_a_call(
    tracing: Tracing, compiled: Callable[[Path], Path], handler: int
) -> None:
    """Many calls of a handler need the slots of earlier ones, also where the interrupted call writes to its own."""
    program = compiled(ROOT / "tests/support/stepped_calls.c")
    instructions, reads = map(int, tracing(program, handler).split())
    assert instructions > 100
    rows = tracing.rows(lambda row: row.call == "pread")
    told = tracing.iosig.json("trace", "info", tracing.trace)
    assert len(rows) + told["lost_calls"] == reads
    assert all(row.end_ns is not None and row.result in (16, 64) for row in rows)
    # Only while a call gets its slot, calls of a handler that need new slots are lost.
    lost = [process["lost_calls"] for process in told["processes"] if process["lost_calls"] > 0]
    assert len(lost) < instructions / 4 if handler > 600 else not lost
