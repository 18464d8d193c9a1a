"""Strided N-1 writes, as FS-TEST has them, replayed by `iosig replay`, which measures what a container costs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from iosig.command import iosig_command
from iosig.interruptions import scratch_in
from iosig.panels import Curve, Look, Panel
from iosig.repro.artefact import Setting
from iosig.repro.machine import call, free_bytes

PATTERN, TRADITIONAL, PLAIN = "pattern", "traditional", "one shared file"
FORMS = {PATTERN: "--container", TRADITIONAL: "--traditional", PLAIN: "--plain"}
KIB = 1 << 10
MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Job:
    """`ranks` processes that write `count` pieces of `size` bytes each, in turns over one file."""

    ranks: int
    count: int
    size: int

    @property
    def bytes(self) -> int:
        return self.ranks * self.count * self.size

    def description(self) -> dict[str, Any]:
        """As `iosig replay` reads it: for n < count, for r < ranks, rank r writes at (n ranks + r) size."""
        columns = [[0, self.ranks * self.size, self.size], [self.size, 0, 0], [0, 0, 1]]
        ranks = {"trips": [self.ranks, 0], "body": [{"vector": columns}]}
        return {
            "schema": "iosig.pattern/1",
            "count": self.ranks * self.count,
            "columns": 3,
            "names": ["logical", "length", "id"],
            "follows": [None] * 3,
            "description": [{"trips": [self.count], "body": [ranks]}],
        }


def replayed(job: Job, form: str, place: Path, *words: object) -> Any:
    """What `iosig replay --json` says of the job onto a container or a file in `place`, which is removed."""
    with scratch_in(place) as scratch:
        description = scratch / "job.json"
        description.write_text(json.dumps(job.description()))
        answer = call(iosig_command(), "replay", "--json", FORMS[form], *words, description, scratch / "target")
    return json.loads(answer)


@contextmanager
def places(setting: Setting, needed_bytes: int) -> Iterator[dict[str, Path]]:
    """Where to measure: in memory, and on the disk that the results go to; that with room for `needed_bytes`."""
    with ExitStack() as stack:
        found = {"disk": setting.scratch}
        if MEMORY.is_dir() and os.access(MEMORY, os.W_OK):
            found = {"memory": stack.enter_context(scratch_in(MEMORY)), **found}
        roomy = {name: place for name, place in found.items() if free_bytes(place) > 2 * needed_bytes}
        if not roomy:
            raise OSError(f"{setting.scratch}: {2 * needed_bytes} bytes are needed free, and not there")
        yield roomy


def count_label(count: int) -> str:
    return f"{count // KIB}K" if count % KIB == 0 else str(count)


def medians(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Of the rounds: a row for each place, count of writes and form, the numbers as medians, and beside `number` the
    least and most of the rounds as `number_low` and `number_high`."""
    rounds = pd.DataFrame(rows).groupby(["place", "count", "form"], sort=False)
    bounds = [
        rounds.min().drop(columns="ranks").add_suffix("_low"),
        rounds.max().drop(columns="ranks").add_suffix("_high"),
    ]
    return pd.concat([rounds.median(), *bounds], axis=1).reset_index()


def panel_of(title: str, label: str, data: pd.DataFrame, column: str, scale: float = 1) -> Panel:
    curves = []
    for form, rows in data.groupby("form", sort=False):
        y, low, high = (list(rows[name] * scale) for name in (column, f"{column}_low", f"{column}_high"))
        counts = [count_label(count) for count in rows["count"]]
        curves.append(Curve(str(form), counts, y, Look.MEASURED, low, high))
    return Panel(title, "writes of a process", label, curves, log_x=False)


def ratios(data: pd.DataFrame, column: str, above: str, below: str) -> list[float]:
    """For each number of writes, in order: of one form against another."""
    wide = data.pivot_table(values=column, index="count", columns="form", sort=False)
    return list(wide[above] / wide[below])


def middle(values: list[float]) -> float:
    return float(median(values))
