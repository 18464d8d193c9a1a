"""`iosig trace` for tests: runs programs traced, and gives what the trace has as rows."""

from __future__ import annotations

import csv
import io
import itertools
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conftest import Iosig

FIELDS = (
    "id", "parent", "host", "pid", "tid", "rank", "layer", "call", "path", "fd", "offset", "length", "start_ns",
    "end_ns", "result", "second_path",
)  # fmt: skip


@dataclass
class Row:
    """One access of a trace; None: the field is empty."""

    id: str
    parent: str
    pid: int
    tid: int
    rank: int | None
    layer: str
    call: str
    path: str
    fd: int | None
    offset: int | None
    length: int | None
    start_ns: int
    end_ns: int | None
    result: int | None
    second_path: str = ""


def number(text: str) -> int | None:
    return int(text) if text else None


def rows_of(iosig: Iosig, trace: Path) -> list[Row]:
    """What a trace has, in the order of the calls' begins."""
    found = []
    # Not splitlines(): names may have line ends.
    for line in csv.DictReader(io.StringIO(iosig("export", "--format", "csv", trace).stdout, newline="")):
        assert tuple(line) == FIELDS
        row = Row(
            line["id"], line["parent"], int(line["pid"]), int(line["tid"]), number(line["rank"]), line["layer"],
            line["call"], line["path"], number(line["fd"]), number(line["offset"]), number(line["length"]),
            int(line["start_ns"]), number(line["end_ns"]), number(line["result"]), line["second_path"],
        )  # fmt: skip
        found.append(row)
    return found


class Tracing:
    """Runs programs in `directory` under `iosig trace`."""

    def __init__(self, iosig: Iosig, directory: Path) -> None:
        self.iosig = iosig
        self.directory = directory
        self.numbers = itertools.count()
        directory.mkdir()
        self.trace = directory.parent / "trace"

    def command(self, *program: object, options: tuple[object, ...] = ()) -> list[str]:
        self.trace = self.directory.parent / f"trace.{next(self.numbers)}"
        return [str(part) for part in (self.iosig.binary, "trace", "-o", self.trace, *options, "--", *program)]

    def start(self, *program: object, options: tuple[object, ...] = (), **more: Any) -> subprocess.Popen[bytes]:
        more = {"cwd": self.directory, "env": self.iosig.env, **more}
        return subprocess.Popen(self.command(*program, options=options), **more)

    def __call__(self, *program: object, options: tuple[object, ...] = (), status: int = 0, **more: Any) -> str:
        """Runs the program; returns what it says on stdout."""
        more = {"cwd": self.directory, "env": self.iosig.env, "timeout": 120, **more}
        done = subprocess.run(self.command(*program, options=options), capture_output=True, text=True, **more)
        assert done.returncode == status, f"{program}: {done.returncode} {done.stderr}"
        return done.stdout

    def rows(self, of: Callable[[Row], bool] = lambda row: True) -> list[Row]:
        """What the last trace has, in the order of the calls' begins."""
        return [row for row in rows_of(self.iosig, self.trace) if of(row)]

    def of_file(self, name: str, call: str | None = None) -> list[Row]:
        path = str(self.directory / name)
        return self.rows(lambda row: row.path == path and call in (None, row.call))


@pytest.fixture
def tracing(iosig: Iosig, tmp_path: Path) -> Tracing:
    return Tracing(iosig, tmp_path / "directory")
