"""What the papers' programs do to their files, as bench/workloads has them: stand-ins for their traces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from iosig.access_panel import access_panel
from iosig.panels import Panel
from iosig.repro.machine import call, workloads_command

ACCESS_COLUMNS = "logical,length,physical,id"
STAND_INS = "the accesses of bench/workloads, made after the paper's words, for its traces (computed)"
MADE_AFTER = "the stand-in was made after this sentence"


def accesses(workload: str, *words: object) -> npt.NDArray[np.int64]:
    """A row for each access of `workloads print`, with ACCESS_COLUMNS; one rank after the other unless told."""
    text = call(workloads_command(), "print", workload, *words)
    numbers: npt.NDArray[np.int64] = np.fromstring(text, np.int64, sep=" ")
    return numbers.reshape(-1, 4)


def of_rank(rows: npt.NDArray[np.int64], rank: int) -> npt.NDArray[np.int64]:
    return np.compress(rows[:, 3] == rank, rows, axis=0)


def offsets_panel(title: str, rows: npt.NDArray[np.int64], first: int = 0) -> Panel:
    """The bytes of each rank's accesses, in their order from the `first` on, each rank in a colour."""
    begin, length, _, rank = rows.T
    table = pd.DataFrame({"begin": begin, "end": begin + length, "id": rank})
    table["position"] = first + table.groupby("id").cumcount()
    return access_panel(title, table, "access of the rank", "rank")


def strides_panel(title: str, rows: npt.NDArray[np.int64], first: int = 0) -> Panel:
    """How far behind the one before each access begins, in the order of `rows`; the first row is the one before."""
    stride = np.diff(rows[:, 0])
    table = pd.DataFrame({"begin": stride, "end": stride, "id": rows[1:, 3]})
    table["position"] = first + 1 + np.arange(len(stride))
    panel = access_panel(title, table, "access of the rank", "rank")
    return replace(panel, y_label=panel.y_label.replace("offset", "stride from the access before"))


def planes_panel(title: str, rows: npt.NDArray[np.int64], plane_bytes: int) -> Panel:
    """The bytes of each rank's accesses within their plane of `plane_bytes`, over the planes in order."""
    begin, length, _, rank = rows.T
    plane, at = np.divmod(begin, plane_bytes)
    table = pd.DataFrame({"begin": at, "end": at + length, "id": rank, "position": plane})
    panel = access_panel(title, table, f"plane of {plane_bytes} bytes", "rank")
    return replace(panel, y_label=panel.y_label.replace("offset", "offset in the plane"))
