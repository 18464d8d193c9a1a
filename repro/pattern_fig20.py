"""Fig. 20 of the PATTERN paper: where the requests of one Pagoda process begin, in their order."""

from __future__ import annotations

import numpy as np
import pandas as pd

from iosig import patterns
from iosig.repro.accesses import (
    ACCESS_COLUMNS,
    MADE_AFTER,
    STAND_INS,
    accesses,
    of_rank,
    offsets_panel,
    strides_panel,
)
from iosig.repro.artefact import Artefact, Fact, Result, Setting, Source, by_construction, judge

RANK = 1  # rank 0 also writes the header and the poles
SHOWN = range(500, 540)  # where one kind of variables ends
IN_ONE = range(800, 850)  # a stride at the end of each record is longer by the cells of the poles
WHERE = "section 5, Fig. 20"


def run(setting: Setting) -> Result:
    rows_of_all = accesses("pagoda")
    rows = of_rank(rows_of_all, RANK)
    offsets = rows[:, 0]
    strides = len(np.unique(np.diff(offsets)))
    follow = int((offsets[1:] == offsets[:-1] + rows[:-1, 1]).sum())
    by_paper, by_nests = patterns.detect(offsets, algorithm="paper"), patterns.detect(offsets)
    facts = [
        by_construction(
            Fact(
                WHERE,
                "stride sizes: more complex patterns than simple strided ones",
                "several",
                f"{strides}",
                "",
                judge(strides > 1),
            ),
            MADE_AFTER,
        ),
        by_construction(
            Fact(
                "section 4",
                "not sequential: requests that begin where the one before ended",
                "few",
                f"{follow} of {len(rows) - 1}",
                "",
                judge(follow < len(rows) / 10),
            ),
            f"under a tenth holds; {MADE_AFTER}",
        ),
        Fact(
            "section 4",
            "regular: what Algorithm 1 describes the offsets by",
            "patterns",
            f"{by_paper.terms} terms for {by_paper.count} requests",
            "",
            judge(by_paper.terms < by_paper.count / 10),
            "fewer than a tenth holds",
        ),
        Fact(
            "section 4.2, Fig. 18",
            "loops in complex nests give recursive patterns: what nests describe the offsets by",
            "fewer",
            f"{by_nests.terms} terms",
            "",
            judge(by_nests.terms < by_paper.terms),
            "fewer than Algorithm 1's holds",
        ),
    ]
    data = pd.DataFrame(rows, columns=ACCESS_COLUMNS.split(","))
    shown, name = rows[SHOWN.start : SHOWN.stop], f"requests {SHOWN.start} to {SHOWN.stop - 1}"
    panels = [
        offsets_panel(f"rank {RANK}: {len(rows)} requests", rows),
        offsets_panel(f"rank {RANK}: {name}", shown, SHOWN.start),
        strides_panel(f"rank {RANK}: {strides} strides between {len(rows)} requests", rows),
        strides_panel(
            f"rank {RANK}: strides between requests {IN_ONE.start} to {IN_ONE.stop - 1}, of one kind of variable",
            rows[IN_ONE.start : IN_ONE.stop],
            IN_ONE.start,
        ),
    ]
    size = rows_of_all[:, :2].sum(axis=1).max() / (1 << 20)
    setup = f"rank {RANK} of 16; GCRM-like variables of four kinds, 26 records, {size:.0f} MiB in all (paper: 250 MB)"
    return Result(data, facts, panels, setup)


ARTEFACTS = [Artefact("pattern-fig20", "requests of a Pagoda process", WHERE, (Source.VIRTUAL,), run, STAND_INS)]
