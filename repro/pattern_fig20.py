"""Fig. 20 of the PATTERN paper: where the requests of one Pagoda process begin, in their order."""

from __future__ import annotations

import numpy as np
import pandas as pd

from iosig import patterns
from iosig.repro.accesses import ACCESS_COLUMNS, BY_CONSTRUCTION, STAND_INS, accesses, of_rank, offsets_panel
from iosig.repro.artefact import Artefact, Fact, Result, Setting, Source, judge

RANK = 1  # rank 0 also writes the header and the poles
SHOWN = range(500, 540)  # where one kind of variables ends
WHERE = "section 5, Fig. 20"


def run(setting: Setting) -> Result:
    rows = of_rank(accesses("pagoda"), RANK)
    offsets = rows[:, 0]
    strides = len(np.unique(np.diff(offsets)))
    follow = int((offsets[1:] == offsets[:-1] + rows[:-1, 1]).sum())
    by_paper, by_nests = patterns.detect(offsets, algorithm="paper"), patterns.detect(offsets)
    facts = [
        Fact(
            WHERE,
            "stride sizes: more complex patterns than simple strided ones",
            "several",
            f"{strides}",
            "",
            judge(strides > 1),
            BY_CONSTRUCTION,
        ),
        Fact(
            "section 4",
            "not sequential: requests that begin where the one before ended",
            "few",
            f"{follow} of {len(rows) - 1}",
            "",
            judge(follow < len(rows) / 10),
            f"under a tenth holds; {BY_CONSTRUCTION}",
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
    panels = [
        offsets_panel(f"rank {RANK}: {len(rows)} requests", rows),
        offsets_panel(
            f"rank {RANK}: requests {SHOWN.start} to {SHOWN.stop - 1}", rows[SHOWN.start : SHOWN.stop], SHOWN.start
        ),
    ]
    setup = f"rank {RANK} of 16; GCRM-like variables of four kinds, 26 records, 250 MB in all"
    return Result(data, facts, panels, setup)


ARTEFACTS = [Artefact("pattern-fig20", "requests of a Pagoda process", WHERE, (Source.VIRTUAL,), run, STAND_INS)]
