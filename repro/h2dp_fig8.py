"""Fig. 8 of the H2DP paper: IOR with hot regions, by the ratio of servers, requests of 512 KB (section 5.2.1)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pandas as pd

from iosig.repro import placements
from iosig.repro.artefact import Artefact, Fact, Result, Setting, judge
from iosig.repro.placements import KIB, RIVALS

WHERE = "section 5.2.1, Fig. 8"
SSDS = (4, 8, 12)  # of 16 servers
PUBLISHED = {
    (4, "read"): (143.0, 71.0, 34.0),
    (4, "write"): (173.0, 74.0, 38.0),
    (12, "read"): (197.0, 62.0, 40.0),
}


def run(setting: Setting) -> Result:
    def with_ssds(count: int) -> placements.Change:
        return lambda world: replace(world, hdds=16 - count, ssds=count)

    hot = placements.hot_regions(setting, 512 * KIB)
    data = placements.rates(setting, "ssds", [(count, with_ssds(count), hot) for count in SSDS])
    facts = [fact for world in placements.WORLDS for fact in facts_of(data, world)]
    panels = placements.panels(data, "ssds", "SServers of 16 servers", is_size=False)
    return Result(data, facts, panels, placements.setup_text(setting, "; requests of 512 KB, drift 0.3"))


def facts_of(data: pd.DataFrame, world: str) -> list[Fact]:
    facts = []
    for (ssds, operation), published in PUBLISHED.items():
        for rival, gain in zip(RIVALS, published, strict=True):
            found = placements.gains(data, "ssds", world, operation, rival)[ssds]
            claim = f"{world}: {16 - ssds}H{ssds}S, H2DP over {rival.upper()}, {operation}s"
            reason = placements.why(world, rival, found > gain)
            if ssds > 8 and rival != "def" and found < gain:
                reason = placements.WHY_FEW_HSERVERS
            facts.append(placements.gain_fact(WHERE, claim, gain, found, reason))
    for operation in ("read", "write"):
        rate = list(placements.wide(data, "ssds", world, operation)["printed"])
        rising = all(later > earlier for earlier, later in pairwise(rate))
        facts.append(
            Fact(
                WHERE,
                f"{world}: H2DP's {operation}s get faster with more SServers",
                "increases",
                ", ".join(f"{each:.0f}" for each in rate) + " MB/s",
                "",
                judge(rising),
                "" if rising else placements.WHY_FEW_HSERVERS,
            )
        )
    return facts


ARTEFACTS = [
    Artefact(
        "h2dp-fig8", "bandwidth of placements by server ratio", WHERE, placements.SOURCES, run, placements.SIMULATED
    )
]
