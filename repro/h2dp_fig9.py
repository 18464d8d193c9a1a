"""Fig. 9 of the H2DP paper: HPIO, contiguous and uniform, by region size (section 5.2.2)."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from iosig import contest
from iosig.repro import placements
from iosig.repro.accesses import accesses
from iosig.repro.artefact import Artefact, Result, Setting
from iosig.repro.placements import KIB, MIB

WHERE = "section 5.2.2, Fig. 9"
SIZES = (64 * KIB, 256 * KIB, MIB)  # "varied from 64 KB to 512 KB", and reported for 1 MB
PROCESSES, REGIONS, QUICK_REGIONS = 16, 40960, 2560
PUBLISHED = {
    ("def", "read"): (192.0, 136.0, 111.0),
    ("def", "write"): (166.0, 156.0, 113.0),
    ("padp", "read"): (91.0, 72.0, 62.0),
    ("padp", "write"): (71.0, 70.0, 67.0),
    ("psa", "read"): (41.0, 21.0, 17.0),
}
WORLD = replace(contest.PHYSICAL, processes=PROCESSES)


def run(setting: Setting) -> Result:
    count = QUICK_REGIONS if setting.quick else REGIONS
    rows = [
        ("physical", size, *row)
        for size in SIZES
        for row in placements.access_rates(
            setting, WORLD, accesses("hpio", "--ranks", PROCESSES, "--count", count // PROCESSES, "--size", size)
        )
    ]
    data = pd.DataFrame(rows, columns=["world", "size_bytes", "operation", "policy", "rate_mb_per_s"])
    facts = placements.uniform_facts(WHERE, data, "size_bytes", PUBLISHED, SIZES)
    facts.append(placements.best_fact(WHERE, data, "size_bytes", "physical", "ours", placements.WHY_SWEPT))
    panels = placements.panels(data, "size_bytes", "region size")
    return Result(data, facts, panels, f"{count} regions, spacing 0, 16 processes, 12 HServers, 4 SServers")


ARTEFACTS = [
    Artefact("h2dp-fig9", "bandwidth of placements under HPIO", WHERE, placements.SOURCES, run, placements.SIMULATED)
]
