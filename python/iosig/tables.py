"""The tables that the figures draw. Throughputs and choices are the core's; nothing is derived a second time here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

import iosig
from iosig import Storage

if TYPE_CHECKING:
    from iosig._core import Model

MEASURED_COLUMNS = ["mount_point", "operation", "access", "chunk_bytes", "bytes_per_s"]


def chunk_sizes(smallest_bytes: int = 512, largest_bytes: int = 1 << 30) -> list[int]:
    """Powers of two from `smallest_bytes` up to and including `largest_bytes`, as the x axis of the paper's Fig. 6a."""
    if not 0 < smallest_bytes <= largest_bytes:
        raise ValueError(f"smallest_bytes must be in 1..largest_bytes, got {smallest_bytes} and {largest_bytes}")
    sizes = [smallest_bytes]
    while sizes[-1] * 2 <= largest_bytes:
        sizes.append(sizes[-1] * 2)
    return sizes


def predicted_throughput(
    storage: Storage,
    chunk_bytes: Sequence[int],
    access: str = "sequential",
    operation: str = "write",
    model: Model = "mixed",
) -> pd.DataFrame:
    """Predicted throughput of every mount point for every chunk size.

    access: sequential or random. operation: write or read. model: as of `iosig choose --model`.
    Returns a row per pair with `mount_point`, `operation`, `access`, `chunk_bytes`, `bytes_per_s` (> 0) and `limit`,
    mount points in the order of the description. With each mount point's rows in order of `chunk_bytes`, throughput
    of whole blocks never falls.
    """
    if operation not in ("read", "write"):
        raise ValueError(f"operation must be 'read' or 'write', got '{operation}'")
    share = " read-share(1)" if operation == "read" else ""
    rows = []
    for mount in storage.mount_points:
        for size in chunk_bytes:
            predicted = iosig.predict(f"{access} size-per-IO({size}){share}", storage, mount.path, model)
            rows.append((mount.path, operation, access, size, predicted["throughput_bytes_per_s"], predicted["limit"]))
    return pd.DataFrame(rows, columns=[*MEASURED_COLUMNS, "limit"])


def read_measured(path: Path) -> pd.DataFrame:
    """A CSV of measurements (`bench/grid.py` writes one) with at least MEASURED_COLUMNS, in any order.

    Rows without `bytes_per_s` were left out; those that do not wait (`nosync`) are no part of the curves.
    """
    table = pd.read_csv(path)
    missing = [column for column in MEASURED_COLUMNS if column not in table.columns]
    if missing:
        raise ValueError(f"{path}: columns {', '.join(missing)} are missing; expected {', '.join(MEASURED_COLUMNS)}")
    table = table.dropna(subset=["bytes_per_s"])
    return table[table["sync"] != "nosync"] if "sync" in table.columns else table


def read_demo(path: Path) -> pd.DataFrame:
    """The runs of `make demo`, a row per run, in the order in which they ran.

    `label` tells runs of one task apart; `job_bytes_per_s` is the throughput until the output is at its path.
    """
    document = json.loads(path.read_text())
    if document.get("schema") != "iosig.demo/2":
        raise ValueError(f"{path}: expected schema 'iosig.demo/2', found '{document.get('schema')}'")
    runs = pd.DataFrame(document["runs"])
    runs["label"] = [
        f"{name}, {policy}" if policy else name for name, policy in zip(runs["parameters"], runs["policy"], strict=True)
    ]
    runs["job_bytes_per_s"] = runs["total_bytes"] / (runs["run_s"] + runs["finalize_s"])
    return runs
