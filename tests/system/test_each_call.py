"""Each program of tests/support/calls: its calls are in the trace, and give on a container what they give on a file."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import ROOT
from preloading import LIBRARY, Preloaded
from tracing import Tracing

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="built without libiosig-preload.so")

each_program = pytest.mark.parametrize(
    "program", sorted((ROOT / "tests/support/calls").glob("*.c")), ids=lambda path: path.stem
)
NONE = str(-(2**63))


def as_refused(line: str) -> str:
    """What a program says of a call that containers refuse: the result is the refusal."""
    call, bar, refusal = line.partition(" | ")
    return f"{call.rpartition(' ')[0]} {refusal}{bar}{refusal}" if bar else line


@each_program
def test_calls_are_in_the_trace(tracing: Tracing, compiled: Callable[[Path], Path], program: Path) -> None:
    said = tracing(compiled(program)).splitlines()
    wanted = [line.partition(" | ")[0].split() for line in said if not line.startswith("#")]
    calls = {call for call, *_ in wanted}
    found = [
        [row.call, Path(row.path).name, *(NONE if n is None else str(n) for n in (row.offset, row.length, row.result))]
        for row in tracing.rows(lambda row: row.call in calls and row.path.startswith(f"{tracing.directory}/"))
    ]
    assert found == wanted and wanted


@each_program
def test_calls_give_on_a_container_what_they_give_on_a_file(
    run: Preloaded, compiled: Callable[[Path], Path], program: Path
) -> None:
    plain = run.directory.parent / "plain"
    plain.mkdir()
    command = [str(compiled(program))]
    said = subprocess.run(command, cwd=plain, capture_output=True, text=True, check=True).stdout.splitlines()
    assert run(*command).splitlines() == [as_refused(line) for line in said] and said
    assert any(run.is_container(path.name) for path in run.directory.iterdir())
