"""What calls, pieces and bytes cost with each I/O library: `iosig.collective/1` (docs/formats/collective.md).

`iosig generate --measure` writes the user's file; without one, those of the package serve, measured on a machine with
two processors. Only their proportions matter to a decision.
"""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iosig._core import TransferTerms

SCHEMA = "iosig.collective/1"
TERMS = ("output_s", "call_s", "memory_piece_s", "file_piece_s", "interleaved_byte_s", "byte_s")
KEYS = ("level", "library", "access", "method")
BELOW = {"nonblocking": "two-phase", "chunked": "packed"}  # what they do with fewer calls, or in other pieces
MOST_S = 1e6  # more is no cost, and sums of it would not be numbers
PACKAGED = Path(__file__).parent / "collective.toml"


def user_file() -> Path:
    """Beside the user's storage description."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "iosig" / "collective.toml"


@dataclass(frozen=True)
class Costs:
    """`origin`: where they are from. `rows`: by level, library, access and method."""

    origin: str
    rows: dict[tuple[str, str, str, str], TransferTerms]

    def of(self, level: str, library: str, access: str, method: str) -> TransferTerms:
        """Of what was not measured: those of the method below, or of MPI-IO."""
        below = BELOW.get(method, method)
        for at, name in (level, method), (level, below), ("mpiio", below):
            if (at, library, access, name) in self.rows:
                return self.rows[at, library, access, name]
        raise ValueError(f"{self.origin}: no costs of {method} with {library} ({access}); expected those of mpiio")


def read_costs(path: Path | None = None) -> Costs:
    """Of the file, or the user's, or the package's; with a library that was not measured, the package's.

    Fails with ValueError if the file is not as it must be.
    """
    if path is None:
        own = user_file()
        path = own if own.exists() else PACKAGED
    if path.exists() and not path.is_file():
        raise ValueError(f"{path}: expected a file")  # a pipe would be waited for
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if document.get("schema") != SCHEMA:
        raise ValueError(f"{path}: schema is {document.get('schema')!r}; expected {SCHEMA!r}")
    rows: dict[tuple[str, str, str, str], TransferTerms] = {}
    listed = document.get("cost", [])
    if not (isinstance(listed, list) and all(isinstance(row, dict) for row in listed)):
        raise ValueError(f"{path}: cost is {listed!r}; expected tables, [[cost]]")
    for number, row in enumerate(listed, 1):
        where = f"{path}: [[cost]] {number}"
        row.setdefault("interleaved_byte_s", 0)  # files of before have none
        for name in (*KEYS, *TERMS):
            if name not in row:
                raise ValueError(f"{where} lacks {name}")
            value = row[name]
            if name in KEYS and not isinstance(value, str):
                raise ValueError(f"{where}: {name} is {value!r}; expected a text")
            if name in TERMS and not (type(value) in (int, float) and 0 <= value <= MOST_S):
                raise ValueError(f"{where}: {name} is {value!r}; expected seconds, from 0 to {MOST_S:.0e}")
        output, call, memory_piece, file_piece, interleaved_byte, byte = (row[term] for term in TERMS)
        key = row["level"], row["library"], row["access"], row["method"]
        rows[key] = output, call, memory_piece, file_piece, interleaved_byte, byte
    if path == PACKAGED:
        return Costs("the package's, not measured here; see --measure", rows)
    measured = {library for _, library, _, _ in rows}
    others = {key: costs for key, costs in read_costs(PACKAGED).rows.items() if key[1] not in measured}
    borrowed = ", ".join(sorted({library.upper() for _, library, _, _ in others}))
    origin = f"those of {path}" + (f"; of {borrowed} the package's" if borrowed else "")
    return Costs(origin, others | rows)


def costs_text(rows: dict[tuple[str, str, str, str], TransferTerms], ranks: int, place: str) -> str:
    """The file."""
    lines = [
        f'schema = "{SCHEMA}"',
        f"ranks = {ranks}",
        f"processors = {os.cpu_count()}",
        f"directory = {json.dumps(place)}",
    ]
    for key, costs in rows.items():
        lines += ["", "[[cost]]", *(f'{name} = "{value}"' for name, value in zip(KEYS, key, strict=True))]
        lines += [f"{term} = {cost:.4e}" for term, cost in zip(TERMS, costs, strict=True)]
    return "\n".join(lines) + "\n"
