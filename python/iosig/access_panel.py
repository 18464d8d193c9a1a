"""Accesses as a picture: their bytes over their position in a sequence, coloured by id."""

from __future__ import annotations

import numpy as np
import pandas as pd

from iosig import _core
from iosig.figures import COLOURS
from iosig.panels import Curve, Look, Panel
from iosig.patterns import Pattern

MOST_DRAWN = 100_000
COLUMNS = ["logical", "length", "physical", "id"]
SEED = 1


def sampled_accesses(pattern: Pattern, columns: str = "", most: int = MOST_DRAWN) -> pd.DataFrame:
    """Accesses of `pattern` in order: `position`, `begin`, `end` (int64; begin + 1 without a length) and `id`.

    columns: names as of `iosig pattern detect --columns`, if not the pattern's own; without any the first column is
    drawn, and of three or four they are logical, length, physical, id. Of more than `most` accesses as many are taken,
    at random places of even stretches: every n-th one would show only some of the ranks that take turns. The same every
    time.
    """
    names = (
        _core.parse_columns(columns)
        or pattern.names
        or (COLUMNS[: pattern.columns] if pattern.columns > 2 else COLUMNS[:1])
    )
    if columns and len(names) != pattern.columns:
        raise ValueError(f"columns: {len(names)} names for {pattern.columns} columns")
    if pattern.count <= most:
        positions = np.arange(pattern.count)
    else:
        edges = np.array([pattern.count * n // most for n in range(most + 1)])
        positions = np.random.default_rng(SEED).integers(edges[:-1], edges[1:])
    values = pattern[positions].reshape(len(positions), -1)
    shown = {name: values[:, at] for at, name in enumerate(names)}
    begin = shown.get("logical", values[:, 0])
    length = shown.get("length", np.ones_like(begin))
    room = np.iinfo(np.int64).max - np.maximum(begin, 0)
    end = begin + np.clip(length, 0, room)
    return pd.DataFrame(
        {"position": positions, "begin": begin, "end": end, "id": shown.get("id", np.zeros_like(begin))}
    )


def byte_scale(table: pd.DataFrame) -> tuple[int, str]:
    """The unit in which the largest offset has at most four digits."""
    largest = table[["begin", "end"]].abs().to_numpy(np.float64).max(initial=0)
    units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    at = next((at for at in range(len(units)) if largest < 8192 * 1024**at), len(units) - 1)
    return 1024**at, units[at]


def access_panel(title: str, table: pd.DataFrame, x_label: str, id_label: str, is_bytes: bool = True) -> Panel:
    """A panel of `table`, as of sampled_accesses; more ids than there are colours share them. is_bytes: else plain
    values."""
    scale, unit = byte_scale(table) if is_bytes else (1, "")
    curves = []
    for at in range(len(COLOURS)):
        rows = table[table["id"] % len(COLOURS) == at]
        if rows.empty:
            continue
        ids = np.unique(rows["id"])
        name = f"{id_label} {ids[0]}" + (f", {ids[1]}" if len(ids) > 1 else "") + (", ..." if len(ids) > 2 else "")
        begin, end = (rows[column] / scale for column in ("begin", "end"))
        curves.append(Curve(name, rows["position"].tolist(), begin.tolist(), Look.ACCESSES, high=end.tolist()))
    return Panel(
        title, x_label, f"offset, {unit}" if is_bytes else "value", curves, log_x=False, log_y=False, counts_x=True
    )
