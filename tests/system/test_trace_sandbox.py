"""`iosig trace` of programs in a sandbox that answers their system calls itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracing import Tracing

SUPPORT = Path(__file__).resolve().parent.parent / "support"

Compile = Callable[..., Path]


def info(tracing: Tracing) -> dict[str, Any]:
    told: dict[str, Any] = tracing.iosig.json("trace", "info", tracing.trace)
    return told


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
