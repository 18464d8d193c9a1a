"""Fig. 5 of the H2DP paper: IOR with hot regions, by request size (section 5.2.1)."""

from __future__ import annotations

import pandas as pd

from iosig.repro import placements
from iosig.repro.artefact import Artefact, Fact, Result, Setting
from iosig.repro.placements import KIB, MIB

WHERE = "section 5.2.1, Fig. 5"
SIZES = (64 * KIB, 256 * KIB, 512 * KIB, MIB, 4 * MIB)  # 512 KB is the paper's usual size, in its other figures
PUBLISHED = {"def": (219.0, 253.0), "padp": (103.0, 115.0), "psa": (49.0, 56.0)}


def run(setting: Setting) -> Result:
    cases = [(size, lambda world: world, placements.hot_regions(setting, size)) for size in SIZES]
    data = placements.rates(setting, "request_bytes", cases)
    facts = placements.up_to_facts(WHERE, data, "request_bytes", PUBLISHED)
    whys = {"physical": placements.WHY_START_UPS.format("DEF"), "colliding": placements.WHY_LARGE}
    facts += [placements.best_fact(WHERE, data, "request_bytes", world, "printed", why) for world, why in whys.items()]
    facts += [ours_fact(data, world) for world in placements.WORLDS]
    panels = placements.panels(data, "request_bytes", "request size")
    return Result(data, facts, panels, placements.setup_text(setting, "; 32 processes, drift 0.3"))


def ours_fact(data: pd.DataFrame, world: str) -> Fact:
    return placements.best_fact(WHERE, data, "request_bytes", world, "ours")


ARTEFACTS = [
    Artefact(
        id="h2dp-fig5",
        title="bandwidth of placements by request size",
        where=WHERE,
        sources=placements.SOURCES,
        run=run,
        virtual=placements.SIMULATED,
    )
]
