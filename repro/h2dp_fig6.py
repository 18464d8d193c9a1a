"""Fig. 6 of the H2DP paper: how long HServers and SServers work, requests of 256 KB (section 5.2.1)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from iosig import contest
from iosig.panels import Curve, Panel
from iosig.repro import placements
from iosig.repro.artefact import Artefact, Fact, Result, Setting, judge
from iosig.repro.placements import KIB, NAMES

WHERE = "section 5.2.1, Fig. 6"
REQUEST_BYTES = 256 * KIB
SKEWED = 2.0  # times as long


def run(setting: Setting) -> Result:
    rows = []
    for name, world in placements.WORLDS.items():
        for policy in contest.POLICIES:
            setting.progress(f"simulating: {name}, {policy}")
            hot = placements.hot_regions(setting, REQUEST_BYTES)
            outcome = contest.run(policy, world, hot)
            gib = outcome.bytes_per_s * outcome.end_s / (1 << 30)
            for number, server in enumerate(outcome.servers):
                kind = "HServers" if number < world.hdds else "SServers"
                rows.append((name, policy, kind, number, (server["disk_s"] + server["link_s"]) / gib))
    data = pd.DataFrame(rows, columns=["world", "policy", "kind", "server", "busy_s_per_gib"])
    facts = [fact for world in placements.WORLDS for fact in facts_of(data, world)]
    panels = [panel_of(data, world) for world in placements.WORLDS]
    return Result(data, facts, panels, placements.setup_text(setting, "; reads of 256 KB"))


def means(data: pd.DataFrame, world: str) -> pd.DataFrame:
    """The busy time of a server, by policy and kind."""
    rows = data[data["world"] == world]
    return rows.pivot_table(index="policy", columns="kind", values="busy_s_per_gib")


CHANGED: tuple[contest.PolicyName, ...] = ("padp", "psa", "printed")


def times(ratio: float) -> str:
    """Of HServers to SServers; in a short run, none of the requests may go to an SServer."""
    return f"{ratio:.3g} times" if np.isfinite(ratio) else "SServers idle"


def facts_of(data: pd.DataFrame, world: str) -> list[Fact]:
    mean = means(data, world)
    ratio = mean["HServers"] / mean["SServers"]
    facts = [
        Fact(
            WHERE,
            f"{world}: HServers work longer than SServers under DEF",
            "severely skewed",
            times(ratio["def"]),
            "",
            judge(ratio["def"] > SKEWED),
            f"more than {SKEWED:g} times holds",
        )
    ]
    for policy in CHANGED:
        reason = "" if ratio[policy] < ratio["def"] else "; on HServers every request costs all of them a start-up"
        facts.append(
            Fact(
                WHERE,
                f"{world}: under {NAMES[policy]} the load is more even",
                "more even",
                times(ratio[policy]),
                "",
                judge(bool(ratio[policy] < ratio["def"])),
                f"less than DEF's {times(ratio['def'])} holds{reason}",
            )
        )
    least = mean["SServers"]
    for policy in CHANGED[:2]:
        facts.append(
            Fact(
                WHERE,
                f"{world}: SServers work less under {NAMES[policy]} than under H2DP",
                "lower",
                f"{least[policy] / least['printed']:.3g} times",
                "",
                judge(bool(least[policy] < least["printed"])),
                "less than once holds",
            )
        )
    return facts


def panel_of(data: pd.DataFrame, world: str) -> Panel:
    mean = means(data, world).loc[list(contest.POLICIES)]
    mean = mean.div(mean["SServers"].to_dict()["printed"])
    names = [NAMES[policy] for policy in contest.POLICIES]
    curves = [Curve(kind, names, list(mean[kind])) for kind in ("HServers", "SServers")]
    return Panel(world, "placement", "busy time of a server, SServers under H2DP = 1", curves, log_y=False)


ARTEFACTS = [
    Artefact("h2dp-fig6", "busy time of HServers and SServers", WHERE, placements.SOURCES, run, placements.SIMULATED)
]
