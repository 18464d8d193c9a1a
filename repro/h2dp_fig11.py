"""Fig. 11 of the H2DP paper: with and without migration, by request size (section 5.3)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from iosig import contest
from iosig.panels import Curve, Panel
from iosig.repro import placements
from iosig.repro.artefact import Artefact, Fact, Result, Setting, judge
from iosig.repro.placements import KIB, MIB, NAMES

WHERE = "section 5.3, Fig. 11"
SIZES = (64 * KIB, 256 * KIB, MIB, 4 * MIB)
PUBLISHED = {64 * KIB: 26.0, 4 * MIB: 5.0}
MOVED_PERCENT, MORE_HYBRID_PERCENT = 17.0, 32.0
SEEDS = (1, 2, 3, 4)  # which regions change places: one draw's gain of migration differs by 6 % from the mean
PLANNERS: tuple[contest.PolicyName, ...] = ("printed", "ours")


def run(setting: Setting) -> Result:
    rows = []
    for name, world in placements.WORLDS.items():
        for size in SIZES:
            for is_write in (False, True):
                setting.progress(f"simulating: {name}, {size} bytes")
                hot = replace(placements.hot_regions(setting, size), is_write=is_write)
                for policy in PLANNERS:
                    for migrating in (False, True):
                        told = mean_of_draws(policy, world, hot, migrating)
                        rows.append((name, size, placements.word(is_write), policy, migrating, *told))
    data = pd.DataFrame(
        rows,
        columns=[
            *("world", "request_bytes", "operation", "policy", "migrating"),
            *("rate_mb_per_s", "fast_share", "moved_share"),
        ],
    )
    facts = [fact for world in placements.WORLDS for policy in PLANNERS for fact in facts_of(data, world, policy)]
    panels = [panel_of(data, world, operation) for world in placements.WORLDS for operation in ("read", "write")]
    return Result(data, facts, panels, placements.setup_text(setting, f"; drift 0.3, the mean of {len(SEEDS)} draws"))


def mean_of_draws(
    policy: contest.PolicyName, world: contest.World, hot: contest.HotRegions, migrating: bool
) -> tuple[float, float, float]:
    """MB/s, the share of the requests that SServers serve, and the share of the regions that move."""
    draws = [contest.run(policy, world, replace(hot, seed=seed), is_migrating=migrating) for seed in SEEDS]
    told = [(each.bytes_per_s / 1e6, each.fast_share, each.moved_regions / hot.regions) for each in draws]
    rate, share, moved = np.mean(told, axis=0).tolist()
    return rate, share, moved


def pairs(
    data: pd.DataFrame, world: str, policy: str, operation: str, column: str
) -> tuple[dict[int, float], dict[int, float]]:
    """A column without and with migration, by request size."""
    rows = data[(data["world"] == world) & (data["policy"] == policy) & (data["operation"] == operation)]

    def numbers(migrating: bool) -> dict[int, float]:
        part = rows[rows["migrating"] == migrating]
        return dict(zip(part["request_bytes"].tolist(), part[column].tolist(), strict=True))

    return numbers(False), numbers(True)


def facts_of(data: pd.DataFrame, world: str, policy: contest.PolicyName) -> list[Fact]:
    without, with_moves = pairs(data, world, policy, "read", "rate_mb_per_s")
    gain = {size: (with_moves[size] / without[size] - 1) * 100 for size in SIZES}
    name = NAMES[policy]
    dear = "a window has few requests, which hardly pay for moves of 64 MB"
    facts = [
        placements.gain_fact(
            WHERE, f"{world}: {name}, migration with reads of 64 KB", PUBLISHED[64 * KIB], gain[64 * KIB], dear
        ),
        Fact(
            WHERE,
            f"{world}: {name}, migration with reads of 4 MB",
            PUBLISHED[4 * MIB],
            gain[4 * MIB],
            "%",
            judge(gain[4 * MIB] >= -100 * placements.NOISE),
            f"not below the draws' noise of {placements.NOISE:.0%} holds"
            + ("" if gain[4 * MIB] >= -100 * placements.NOISE else f"; {dear}"),
        ),
        Fact(
            WHERE,
            f"{world}: {name}, larger requests gain less",
            "less",
            f"{gain[64 * KIB]:.0f}, then {gain[4 * MIB]:.0f} %",
            "",
            judge(gain[4 * MIB] < gain[64 * KIB]),
        ),
    ]
    if policy == "printed":
        moved = pairs(data, world, policy, "read", "moved_share")[1][64 * KIB] * 100
        before, after = pairs(data, world, policy, "read", "fast_share")
        more = (after[64 * KIB] / before[64 * KIB] - 1) * 100
        facts += [
            placements.gain_fact(
                WHERE, f"{world}: data migrated, 64 KB", MOVED_PERCENT, moved, "the paper's drift is not printed"
            ),
            placements.gain_fact(
                WHERE,
                f"{world}: more requests to hybrid servers, 64 KB",
                MORE_HYBRID_PERCENT,
                more,
                "the paper's drift is not printed",
            ),
        ]
    return facts


def panel_of(data: pd.DataFrame, world: str, operation: str) -> Panel:
    curves = []
    for policy in PLANNERS:
        for how, rate in zip(("W/O", "W/"), pairs(data, world, policy, operation, "rate_mb_per_s"), strict=True):
            curves.append(Curve(f"{NAMES[policy]} {how}", list(rate), list(rate.values())))
    return Panel(f"{world}, {operation}s", "request size", "MB/s", curves, log_y=False)


ARTEFACTS = [Artefact("h2dp-fig11", "with and without migration", WHERE, placements.SOURCES, run, placements.SIMULATED)]
