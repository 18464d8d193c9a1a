"""Fig. 10 of the H2DP paper: BTIO, class D, subtype simple, by number of processes (section 5.2.3).

One of the 50 steps that it writes is simulated: the others have the same accesses at other offsets.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from iosig import contest
from iosig.repro import placements
from iosig.repro.accesses import accesses
from iosig.repro.artefact import Artefact, Result, Setting
from iosig.repro.placements import MIB

WHERE = "section 5.2.3, Fig. 10"
PROCESSES = (4, 16, 64)
GRID, QUICK_GRID = 408, 64  # class D: 408
PUBLISHED = {
    ("def", "write"): (137.0, 105.0, 92.0),
    ("padp", "write"): (48.0, 28.0, 25.0),
    ("psa", "write"): (19.0, 19.0, 19.0),
}


def run(setting: Setting) -> Result:
    grid = QUICK_GRID if setting.quick else GRID
    region_bytes = MIB if setting.quick else 64 * MIB
    rows = [
        ("physical", count, *row)
        for count in PROCESSES
        for row in placements.access_rates(
            setting,
            replace(contest.PHYSICAL, processes=count),
            accesses("btio", "--ranks", count, "--grid", grid, "--steps", 1),
            region_bytes,
        )
    ]
    data = pd.DataFrame(rows, columns=["world", "processes", "operation", "policy", "rate_mb_per_s"])
    facts = placements.uniform_facts(WHERE, data, "processes", PUBLISHED, PROCESSES)
    facts.append(placements.best_fact(WHERE, data, "processes", "physical", "ours", placements.WHY_SWEPT))
    panels = placements.panels(data, "processes", "processes", is_size=False)
    return Result(data, facts, panels, f"grid of {grid} points in x, y and z, one step; 12 HServers, 4 SServers")


ARTEFACTS = [
    Artefact("h2dp-fig10", "bandwidth of placements under BTIO", WHERE, placements.SOURCES, run, placements.SIMULATED)
]
