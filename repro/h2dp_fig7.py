"""Fig. 7 of the H2DP paper: IOR with hot regions, by number of processes, requests of 512 KB (section 5.2.1)."""

from __future__ import annotations

from dataclasses import replace

from iosig import contest
from iosig.repro import placements
from iosig.repro.artefact import Artefact, Fact, Result, Setting, judge
from iosig.repro.placements import KIB, NAMES

WHERE = "section 5.2.1, Fig. 7"
PROCESSES = (16, 32, 64, 128)  # on 32 nodes; the text does not name the paper's
PUBLISHED = {"def": (188.0, 204.0), "padp": (82.0, 75.0), "psa": (49.0, 51.0)}
WHY_NOT_SLOWER = "no cost of the model grows with the queue: a disk seeks no further because more processes wait"


def run(setting: Setting) -> Result:
    def with_processes(count: int) -> placements.Change:
        return lambda world: replace(world, processes=count)

    hot = placements.hot_regions(setting, 512 * KIB)
    cases = [(count, with_processes(count), hot) for count in PROCESSES]
    data = placements.rates(setting, "processes", cases)
    facts = placements.up_to_facts(WHERE, data, "processes", PUBLISHED)
    for world in placements.WORLDS:
        rate = placements.wide(data, "processes", world, "read")
        slower = [NAMES[policy] for policy in contest.POLICIES[:4] if rate[policy].is_monotonic_decreasing]
        facts.append(
            Fact(
                WHERE,
                f"{world}: placements that get slower with more processes",
                "all 4",
                ", ".join(slower) or "none",
                "",
                judge(len(slower) == len(contest.POLICIES[:4])),
                WHY_NOT_SLOWER,
            )
        )
    panels = placements.panels(data, "processes", "processes", is_size=False)
    return Result(data, facts, panels, placements.setup_text(setting, "; requests of 512 KB, drift 0.3"))


ARTEFACTS = [
    Artefact("h2dp-fig7", "bandwidth of placements by processes", WHERE, placements.SOURCES, run, placements.SIMULATED)
]
