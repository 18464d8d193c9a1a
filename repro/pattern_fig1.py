"""Fig. 1 of the PATTERN paper: how much smaller the index is when it is described by patterns.

The rate is (uncompressed size) / (compressed size). An entry of the uncompressed index has 56 bytes (section 3.1).
Compressed here are two descriptions, each in IOSIG's binary form: of every rank by itself, by the paper's Algorithm 1,
and of all ranks together, by IOSIG's nests. These are the ranks' own descriptions merged, or are found in an access of
each rank in turn, if that takes fewer terms: an index may have its entries in any order in which no rank's own changes
and none overlap.

The paper's rates are those of its data structures, whose sizes it does not print, for runs whose ranks and sizes it
does not print: that a description here is as large cannot be tested, only that it is not larger.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from iosig import patterns
from iosig.panels import Curve, Look, Panel
from iosig.repro.accesses import ACCESS_COLUMNS, STAND_INS, accesses, of_rank
from iosig.repro.artefact import Artefact, Fact, Result, Setting, Source, Verdict, judge, more_than, same

ENTRY_BYTES = 56
ALGORITHM1, NESTS = "Algorithm 1, each rank", "nests, all ranks"
ALONE, MERGED, IN_TURN = "each rank", "each rank, merged", "an access of each rank in turn"
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
PUBLISHED = {"MILC A": 37.0, "MILC B": 3.0, "MILC C": 3.6, "Pagoda": 2.9}
PLACES = {"MILC A": "section 3.2.1", "MILC B": "section 3.2.1", "MILC C": "section 3.2.1", "Pagoda": "section 3.2.2"}
FOLDED = ["NERSC", "LANL 1", "LANL 3", "BTIO"]
WHERE = "section 3.3"
UNKNOWN = "the paper prints neither the ranks and sizes of its run nor those of its structures"


def described_alone(rows: npt.NDArray[np.int64]) -> list[patterns.Pattern]:
    """Every rank's accesses by Algorithm 1; which rank's they are the index's file says."""
    columns = ACCESS_COLUMNS.removesuffix(",id")
    ranks = np.unique(rows[:, 3])
    return [patterns.detect(of_rank(rows, rank)[:, :3], columns, algorithm="paper") for rank in ranks]


def described_together(workload: str, rows: npt.NDArray[np.int64], *words: object) -> tuple[str, patterns.Pattern]:
    """How, and the description. words: as those that gave `rows`."""
    columns = ACCESS_COLUMNS.removesuffix(",id")
    ranks = [int(rank) for rank in np.unique(rows[:, 3])]
    merged = patterns.merge((patterns.detect(of_rank(rows, rank)[:, :3], columns) for rank in ranks), ranks).pattern
    in_turn = patterns.detect(accesses(workload, "--order", "round", *words), ACCESS_COLUMNS)
    return min((MERGED, merged), (IN_TURN, in_turn), key=lambda way: way[1].terms)


def rates(setting: Setting) -> pd.DataFrame:
    """For each workload and way (`by`, `how`): `entries`, `terms`, `bytes` of the descriptions, and their `rate`."""
    table = []
    for workload, name in WORKLOADS.items():
        setting.progress(f"describing: {name}")
        rows = accesses(workload)
        ranks = len(np.unique(rows[:, 3]))
        how, together = described_together(workload, rows)
        for by, way, described in ((ALGORITHM1, ALONE, described_alone(rows)), (NESTS, how, [together])):
            terms, size = sum(p.terms for p in described), sum(p.bytes for p in described)
            table.append((name, workload, ranks, by, way, len(rows), terms, size, ENTRY_BYTES * len(rows) / size))
    columns = ["name", "workload", "ranks", "by", "how", "entries", "terms", "bytes", "rate"]
    return pd.DataFrame(table, columns=columns)


def rate_facts(rate: pd.Series[float]) -> list[Fact]:
    facts = []
    for name, published in PUBLISHED.items():
        claim = f"{name}: rate of the index, all ranks by nests: at least"
        facts.append(more_than(PLACES[name], claim, published, rate[name, NESTS], ""))
        claim = f"{name}: the same, each rank by Algorithm 1"
        found = rate[name, ALGORITHM1]
        facts.append(Fact(PLACES[name], claim, published, found, "", Verdict.UNTESTED, UNKNOWN))
    return facts


def order_fact(rate: pd.Series[float], by: str) -> Fact:
    milc = ["MILC A", "MILC C", "MILC B"]
    found = sorted(milc, key=lambda name: -rate[name, by])
    return same("section 3.2.1", f"MILC's configurations by their rate ({by})", ", ".join(milc), ", ".join(found))


def folding_facts(known: pd.DataFrame) -> list[Fact]:
    """Section 3.3: all ranks of these are one global pattern."""
    facts = []
    for name in FOLDED:
        terms, how = float(known["terms"][name, NESTS]), str(known["how"][name, NESTS])
        facts.append(same(WHERE, f"{name}: patterns that all ranks together fold to", 1.0, terms, "", how))
    return facts


def library_fact(setting: Setting, rate: pd.Series[float]) -> Fact:
    """As many writes of LANL App 2 through its own library as without."""
    setting.progress("describing: LANL 2, library")
    rows = accesses("lanl-2")
    ranks = len(np.unique(rows[:, 3]))
    words = ("--ranks", ranks, "--count", len(rows) // ranks)
    strided = accesses("n1-strided", *words)
    found = ENTRY_BYTES * len(strided) / described_together("n1-strided", strided, *words)[1].bytes
    claim = "LANL 2: with its own library, which strides the same number of writes, the rate is"
    text = f"{found:.0f} against {rate['LANL 2', NESTS]:.0f}"
    return Fact(WHERE, claim, "higher", text, "", judge(found > rate["LANL 2", NESTS]), "")


def facts_of(setting: Setting, data: pd.DataFrame) -> list[Fact]:
    known = data.set_index(["name", "by"])
    rate = known["rate"]
    orders = float(np.log10(rate["LANL 3", NESTS]))
    found, writes = (int(known[column]["FLASH, FUSE", NESTS]) for column in ("terms", "entries"))
    split = [int(known["terms"][name, ALGORITHM1]) for name in ("FLASH", "FLASH, FUSE")]
    return [
        *rate_facts(rate),
        order_fact(rate, ALGORITHM1),
        order_fact(rate, NESTS),
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
    curves.append(Curve("published", list(PUBLISHED), list(PUBLISHED.values()), Look.PUBLISHED))
    label = "uncompressed / compressed size of the index"
    panel = Panel(f"{ENTRY_BYTES} bytes an uncompressed entry", "program", label, curves)
    entries = data["entries"]
    setup = f"{data['ranks'].max()} ranks, {entries.min()} to {entries.max()} accesses; rates grow with their number"
    return Result(data, facts, [panel], setup)


ARTEFACTS = [
    Artefact("pattern-fig1", "compression rate of the index", "section 1, Fig. 1", (Source.VIRTUAL,), run, STAND_INS)
]
