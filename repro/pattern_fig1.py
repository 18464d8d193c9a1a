"""Fig. 1 of the PATTERN paper: how much smaller the index is when it is described by patterns.

The rate is (uncompressed size) / (compressed size). An entry of the uncompressed index has 56 bytes (section 3.1).
Compressed here are three descriptions, each in IOSIG's binary form: of every rank by itself, by the paper's Algorithm
1; of every rank by IOSIG's nests, merged; and by nests of an access of each rank in turn: an index may have its
entries in any order in which no rank's own changes and none overlap.

The paper's rates are those of its data structures, whose sizes it does not print, for runs whose ranks and sizes it
does not print. Algorithm 1's are held against them nevertheless, and cannot be expected to be equal.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from iosig import patterns
from iosig.panels import Curve, Look, Panel
from iosig.repro.accesses import ACCESS_COLUMNS, STAND_INS, accesses, of_rank
from iosig.repro.artefact import Artefact, Fact, Result, Setting, Source, about, judge, same

ENTRY_BYTES = 56
ALGORITHM1, MERGED, IN_TURN = "Algorithm 1, each rank", "nests, ranks merged", "nests in turn, an access of each rank"
# Ours is n1-strided for FS-TEST and for LANL App 2 through its own library, as it strides its writes.
WORKLOADS = {
    "n1-strided": "FS-TEST",
    "nersc": "NERSC",
    "lanl-1": "LANL 1",
    "lanl-2": "LANL 2",
    "lanl-3": "LANL 3",
    "milc-a": "MILC A",
    "milc-b": "MILC B",
    "milc-c": "MILC C",
    "btio": "BTIO",
    "flash": "FLASH",
    "flash-fuse": "FLASH, FUSE",
    "pagoda": "Pagoda",
}
PUBLISHED = {"MILC A": 37.0, "MILC C": 3.6, "MILC B": 3.0, "Pagoda": 2.9}  # from the highest
PLACES = {"MILC A": "section 3.2.1", "MILC C": "section 3.2.1", "MILC B": "section 3.2.1", "Pagoda": "section 3.2.2"}
FOLDED = ["NERSC", "LANL 1", "LANL 3", "BTIO"]
WHERE = "section 3.3"
UNKNOWN = "not to be expected equal: rates grow with the writes, whose number the paper does not print"


def described_alone(rows: npt.NDArray[np.int64]) -> list[patterns.Pattern]:
    """Every rank's accesses by Algorithm 1; which rank's they are the index's file says."""
    columns = ACCESS_COLUMNS.removesuffix(",id")
    ranks = np.unique(rows[:, 3])
    return [patterns.detect(of_rank(rows, rank)[:, :3], columns, algorithm="paper") for rank in ranks]


def described_merged(rows: npt.NDArray[np.int64]) -> patterns.Pattern:
    columns = ACCESS_COLUMNS.removesuffix(",id")
    ranks = [int(rank) for rank in np.unique(rows[:, 3])]
    return patterns.merge((patterns.detect(of_rank(rows, rank)[:, :3], columns) for rank in ranks), ranks).pattern


def rates(setting: Setting) -> pd.DataFrame:
    """For each workload and way (`by`): `entries`, `terms`, `bytes` of the descriptions, and their `rate`."""
    table = []
    for workload, name in WORKLOADS.items():
        setting.progress(f"describing: {name}")
        rows = accesses(workload)
        ranks = len(np.unique(rows[:, 3]))
        in_turn = patterns.detect(accesses(workload, "--order", "round"), ACCESS_COLUMNS)
        ways = {ALGORITHM1: described_alone(rows), MERGED: [described_merged(rows)], IN_TURN: [in_turn]}
        for by, described in ways.items():
            terms, size = sum(p.terms for p in described), sum(p.bytes for p in described)
            table.append((name, workload, ranks, by, len(rows), terms, size, ENTRY_BYTES * len(rows) / size))
    return pd.DataFrame(table, columns=["name", "workload", "ranks", "by", "entries", "terms", "bytes", "rate"])


def rate_facts(rate: pd.Series[float]) -> list[Fact]:
    """Like with like: the paper's algorithm, here and there."""
    facts = []
    for name, published in PUBLISHED.items():
        claim = f"{name}: rate of the index, each rank by Algorithm 1, of a run of unknown size"
        facts.append(about(PLACES[name], claim, published, rate[name, ALGORITHM1], "", note=UNKNOWN))
    found = sorted(PUBLISHED, key=lambda name: -rate[name, ALGORITHM1])
    claim = "from the highest rate to the lowest, by Algorithm 1"
    return [*facts, same("section 3.2", claim, ", ".join(PUBLISHED), ", ".join(found), note=UNKNOWN)]


def folding_facts(known: pd.DataFrame) -> list[Fact]:
    """Section 3.3: all ranks of these are one global pattern."""
    facts = []
    for name in FOLDED:
        merged, in_turn = (float(known["terms"][name, by]) for by in (MERGED, IN_TURN))
        note = f"an access of each rank in turn: {in_turn:.0f}"
        facts.append(same(WHERE, f"{name}: patterns that the ranks' own ones fold to", 1.0, merged, "", note))
    return facts


def library_fact(setting: Setting, rate: pd.Series[float]) -> Fact:
    """As many writes of LANL App 2 through its own library as without."""
    setting.progress("describing: LANL 2, library")
    rows = accesses("lanl-2")
    ranks = len(np.unique(rows[:, 3]))
    strided = accesses("n1-strided", "--ranks", ranks, "--count", len(rows) // ranks)
    found = ENTRY_BYTES * len(strided) / described_merged(strided).bytes
    claim = "LANL 2: with its own library, which strides the same number of writes, the rate is"
    text = f"{found:.0f} against {rate['LANL 2', MERGED]:.0f}"
    return Fact(WHERE, claim, "higher", text, "", judge(found > rate["LANL 2", MERGED]), "nests, ranks merged")


def facts_of(setting: Setting, data: pd.DataFrame) -> list[Fact]:
    known = data.set_index(["name", "by"])
    rate = known["rate"]
    orders = float(np.log10(rate["LANL 3", MERGED]))
    found, writes = (int(known[column]["FLASH, FUSE", MERGED]) for column in ("terms", "entries"))
    split = [int(known["terms"][name, ALGORITHM1]) for name in ("FLASH", "FLASH, FUSE")]
    return [
        *rate_facts(rate),
        *folding_facts(known),
        Fact("section 2.2", "orders of magnitude of LANL 3's rate, by nests", "several", f"{orders:.1f}", "",
             judge(orders > 2), "above 2 holds"),
        library_fact(setting, rate),
        Fact(
            WHERE,
            "FLASH: split by FUSE, Algorithm 1 finds",
            "more pieces",
            f"{split[1]} terms instead of {split[0]}",
            "",
            judge(split[1] > split[0]),
        ),
        Fact(WHERE, "FLASH, split by FUSE: there are patterns to detect: nests find", "patterns",
             f"{found} terms for {writes} writes", "", judge(found < writes / 10), "fewer than a tenth holds"),
    ]  # fmt: skip


def run(setting: Setting) -> Result:
    data = rates(setting)
    facts = facts_of(setting, data)
    curves = [
        Curve(str(by), list(rows["name"]), list(rows["rate"]), Look.BARS) for by, rows in data.groupby("by", sort=False)
    ]
    published = Curve("Algorithm 1, published", list(PUBLISHED), list(PUBLISHED.values()), Look.PUBLISHED)
    label = "uncompressed / compressed size of the index"
    panel = Panel(f"{ENTRY_BYTES} bytes an uncompressed entry", "program", label, [*curves, published])
    entries = data["entries"]
    setup = f"{data['ranks'].max()} ranks, {entries.min()} to {entries.max()} accesses; rates grow with their number"
    return Result(data, facts, [panel], setup)


ARTEFACTS = [
    Artefact("pattern-fig1", "compression rate of the index", "section 1, Fig. 1", (Source.VIRTUAL,), run, STAND_INS)
]
