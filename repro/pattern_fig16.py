"""Fig. 16 of the PATTERN paper: MILC's three ways to write the same lattice, as offsets in the order of the writes.

The lattice is 16 x 16 x 16 x 32 sites over 16 ranks, which gives (A) the paper's 2-d strides; it prints no sizes.
"""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
import pandas as pd

from iosig import patterns
from iosig.repro.accesses import (
    ACCESS_COLUMNS,
    MADE_AFTER,
    STAND_INS,
    accesses,
    of_rank,
    offsets_panel,
    planes_panel,
)
from iosig.repro.artefact import Artefact, Fact, Result, Setting, Source, all_of, by_construction, judge, same

WAYS = {"milc-a": "A", "milc-b": "B", "milc-c": "C"}
SHOWN, NEIGHBOURS = 40, 4  # writes, and ranks that share planes of the lattice, so that strides can be seen
PLANE_BYTES = 16 * 16 * 288  # of x and y
WHERE = "section 3.2.1, Fig. 16"


def loops_of(rows: npt.NDArray[np.int64]) -> list[int]:
    """The depth of loops of each term in the description of one rank's offsets; 0 for numbers without structure."""

    def depth(node: dict[str, list[dict[str, object]]]) -> int:
        return 1 + max(depth(child) for child in node["body"]) if "body" in node else 0  # type: ignore[arg-type]

    return [depth(term) for term in json.loads(patterns.detect(rows[:, 0]).to_json())["description"]]


def is_contiguous(rows: npt.NDArray[np.int64]) -> bool:
    return bool((rows[1:, 0] == rows[:-1, 0] + rows[:-1, 1]).all())


def facts_of(ways: dict[str, npt.NDArray[np.int64]]) -> list[Fact]:
    a, b, c = ways["milc-a"], ways["milc-b"], ways["milc-c"]
    ranks = [int(rank) for rank in np.unique(a[:, 3])]
    sizes = {len(np.unique(of_rank(a, rank)[:, 1])) for rank in ranks}
    loops = {tuple(loops_of(of_rank(a, rank))) for rank in ranks}
    strides = {len(np.unique(np.diff(of_rank(a, rank)[:, 0]))) for rank in ranks}
    in_one = sum(is_contiguous(of_rank(b, rank)) for rank in ranks)
    with_header = sum(int(of_rank(c, rank)[0, 0]) == 0 for rank in ranks)
    shares = [(of_rank(b, rank)[:, 1].sum(), of_rank(c, rank)[1:, 1].sum()) for rank in ranks]
    as_in_b = sum(
        bool(is_contiguous(of_rank(c, rank)[1:]) and here == there)
        for rank, (here, there) in zip(ranks, shares, strict=True)
    )
    every = all_of(len(ranks), len(ranks))
    made = [
        same(WHERE, "(A) sizes of a process's pieces", 1.0, float(max(sizes))),
        Fact(WHERE, "(A) stride sizes of a process", "vary", f"{min(strides)} sizes", "", judge(min(strides) > 1)),
        same(WHERE, "(B) processes that write one contiguous portion", every, all_of(in_one, len(ranks))),
        same(
            WHERE,
            "(C) processes that also write at the beginning of the file",
            every,
            all_of(with_header, len(ranks)),
        ),
        same(WHERE, "(C) processes that but for that write as much as in (B)", every, all_of(as_in_b, len(ranks))),
    ]
    found = ", ".join(str(depth) for term in loops for depth in term)
    detected = same(WHERE, "(A) dimensions of a process's strides, as detected", "2", found)
    return [detected, *(by_construction(fact, MADE_AFTER) for fact in made)]


def run(setting: Setting) -> Result:
    ways = {workload: accesses(workload) for workload in WAYS}
    tables = [
        pd.DataFrame(rows, columns=ACCESS_COLUMNS.split(",")).assign(configuration=WAYS[workload])
        for workload, rows in ways.items()
    ]
    panels = [
        offsets_panel(f"({WAYS[workload]}) {len(rows)} writes of {len(np.unique(rows[:, 3]))} ranks{also}", rows)
        for (workload, rows), also in zip(ways.items(), ("", "", ", all of them at 0 first"), strict=True)
    ]
    a = ways["milc-a"]
    # over their order the ranks of (A) that share planes are all one line
    panels[0] = planes_panel(f"(A) {len(a)} writes of 16 ranks, plane by plane of the lattice", a, PLANE_BYTES)
    first = np.concatenate([of_rank(a, rank)[:SHOWN] for rank in range(NEIGHBOURS)])
    panels.insert(1, offsets_panel(f"(A) the first {SHOWN} writes of ranks 0 to {NEIGHBOURS - 1}", first))
    setup = "16 x 16 x 16 x 32 sites of 288 bytes on 16 ranks, each in a colour"
    return Result(pd.concat(tables), facts_of(ways), panels, setup)


ARTEFACTS = [Artefact("pattern-fig16", "MILC's write patterns", WHERE, (Source.VIRTUAL,), run, STAND_INS)]
