"""The placements of the H2DP paper held against each other in the simulator, and its published gains against theirs.

Its cluster is not described well enough to be simulated: no times of its disks are printed. Two worlds stand for it.
In the physical one disks seek as disks do and each process goes its own way. In the colliding one start-ups are short,
and the processes of a round all want one block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from iosig import contest
from iosig.panels import Curve, Panel
from iosig.repro.artefact import Fact, Setting, Source, judge

KIB, MIB = contest.KIB, contest.MIB
SIMULATED = "the worlds 'physical' and 'colliding' in the simulator (computed)"
WORLDS = {"physical": contest.PHYSICAL, "colliding": contest.COLLIDING}
NAMES: dict[contest.PolicyName, str] = {
    "def": "DEF",
    "padp": "PADP",
    "psa": "PSA",
    "printed": "H2DP",
    "ours": "ours",
}
RIVALS: tuple[contest.PolicyName, ...] = ("def", "padp", "psa")
WINDOW_S, QUICK_WINDOW_S = 20.0, 0.5
DRIFT = 0.3
NOISE = 0.02  # of the draws: less than this is no difference
WITHIN = 0.5  # a gain from half to one and a half times the published one is it
SOURCES = (Source.VIRTUAL,)
Change = Callable[[contest.World], contest.World]  # of a world for one case

WHY_START_UPS = (
    "a request of H2DP to a cold region starts up every HServer, 8 ms each; a small request of {} starts up fewer"
)
WHY_DISKS = "the gain grows with the share of start-ups in a request's time, and the paper prints no times of its disks"
WHY_HOT = (
    "PADP's stripes are those of H2DP: the gain is what hot regions have more than others, and the paper prints "
    "neither how hot they are nor the times of its disks"
)
WHY_LARGE = "a request of 4 MB takes its time for transfers, not start-ups, and DEF's use all 16 servers"
WHY_PSA = (
    "every request of PSA starts up every HServer, as those of H2DP to cold regions do; "
    "those to hot regions, more than half, start up none"
)
WHY_FEW_HSERVERS = "the SServers hold 1/6 of the data however many they are, and fewer HServers have the rest"
WHY_SWEPT = (
    "the processes sweep over the file together; ours tries layouts with some of the requests, and with mean start-ups"
)
WHY_UNIFORM = (
    "all regions are used alike: H2DP then selects as PADP draws, with the same stripes, and nothing is left to gain"
)


def window_s(setting: Setting) -> float:
    return QUICK_WINDOW_S if setting.quick else WINDOW_S


def hot_regions(setting: Setting, request_bytes: int) -> contest.HotRegions:
    """The paper's: 512 regions of 64 MB, Zipf's law; its drift is not printed. Quick: 48 regions, 2 windows."""
    hot = contest.HotRegions(request_bytes, drift=DRIFT, window_s=window_s(setting))
    return replace(hot, regions=48, windows=2) if setting.quick else hot


def rate_mb(world: contest.World, hot: contest.HotRegions, policy: contest.PolicyName, **options: bool) -> float:
    return contest.run(policy, world, hot, **options).bytes_per_s / 1e6


def rates(
    setting: Setting,
    axis: str,
    cases: Iterable[tuple[int, Change, contest.HotRegions]],
) -> pd.DataFrame:
    """A row for each world, case, kind of request and policy, with `rate_mb_per_s`."""
    rows = []
    for value, changed, hot in cases:
        for name, base in WORLDS.items():
            world = changed(base)
            for is_write in (False, True):
                setting.progress(f"simulating: {name}, {axis} {value}")
                asked = replace(hot, is_write=is_write)
                for policy in contest.POLICIES:
                    rows.append((name, value, word(is_write), policy, rate_mb(world, asked, policy)))
    return pd.DataFrame(rows, columns=["world", axis, "operation", "policy", "rate_mb_per_s"])


def word(is_write: bool) -> str:
    return "write" if is_write else "read"


def wide(data: pd.DataFrame, axis: str, world: str, operation: str) -> pd.DataFrame:
    """The rates by policy, a row for each value of the axis."""
    rows = data[(data["world"] == world) & (data["operation"] == operation)]
    return rows.pivot_table(index=axis, columns="policy", values="rate_mb_per_s")


def gains(data: pd.DataFrame, axis: str, world: str, operation: str, over: str) -> dict[int, float]:
    """By how much H2DP is faster than `over`, in percent, by the value of the axis."""
    rate = wide(data, axis, world, operation)
    gain = (rate["printed"] / rate[over] - 1) * 100
    return dict(zip(map(int, gain.index), map(float, gain.to_numpy()), strict=True))


def gain_fact(where: str, claim: str, published: float, found: float, why: str) -> Fact:
    """A published gain in percent. Holds when the one found is within WITHIN of it."""
    holds = abs(found - published) <= WITHIN * published
    judged = f"{(1 - WITHIN) * published:.0f} to {(1 + WITHIN) * published:.0f} % holds" + ("" if holds else f"; {why}")
    return Fact(where, claim, published, found, "%", judge(holds), judged)


def why(world: str, rival: str, is_above: bool) -> str:
    """Why a gain of H2DP's is above the published one, or below it."""
    if rival == "padp":
        return WHY_HOT
    if rival == "psa" and is_above:
        return WHY_PSA
    return WHY_START_UPS.format(rival.upper()) if world == "physical" and not is_above else WHY_DISKS


def up_to_facts(where: str, data: pd.DataFrame, axis: str, published: dict[str, tuple[float, float]]) -> list[Fact]:
    """For each rival the published greatest gain, reads and writes, in each world that `data` has."""
    facts = []
    for world in dict.fromkeys(data["world"]):
        for rival, both in published.items():
            for operation, gain in zip(("read", "write"), both, strict=True):
                found = max(gains(data, axis, world, operation, rival).values())
                claim = f"{world}: H2DP over {rival.upper()}, {operation}s, up to"
                facts.append(gain_fact(where, claim, gain, found, why(world, rival, found > gain)))
    return facts


def best_fact(where: str, data: pd.DataFrame, axis: str, world: str, policy: str, note: str = "") -> Fact:
    """That `policy` is the best of all but ours (ours: of all), in every case."""
    others = [other for other in contest.POLICIES if other not in (policy, "ours")]
    right = all_cases = 0
    for operation in ("read", "write"):
        rate = wide(data, axis, world, operation)
        right += int((rate[policy] >= rate[others].max(axis=1) * (1 - NOISE)).sum())
        all_cases += len(rate)
    claim = f"{world}: {NAMES[policy]} is the best" if policy != "ours" else f"{world}: ours is never below the best"  # type: ignore[index]
    holds = right == all_cases
    judged = f"within the draws' noise of {NOISE:.0%}" + ("" if holds or not note else f"; {note}")
    return Fact(where, f"{claim} ({all_cases} cases)", all_cases, right, "cases", judge(holds), judged)


def access_rates(
    setting: Setting, world: contest.World, rows: npt.NDArray[np.int64], region_bytes: int = 64 * MIB
) -> list[tuple[str, contest.PolicyName, float]]:
    """Operation, policy and MB/s for given accesses (iosig.repro.accesses)."""
    begin, length, _, rank = rows.T.astype(np.uint64)
    made = []
    for is_write in (False, True):
        asked = contest.Accesses(rank, begin, length, is_write, region_bytes)
        for policy in contest.POLICIES:
            setting.progress(f"simulating: {policy}, {world.processes} processes")
            made.append((word(is_write), policy, contest.run_accesses(policy, world, asked).bytes_per_s / 1e6))
    return made


def uniform_facts(
    where: str,
    data: pd.DataFrame,
    axis: str,
    published: Mapping[tuple[str, str], tuple[float, ...]],
    values: Sequence[int],
) -> list[Fact]:
    """Published gains at each value of the axis where no region is hotter than another."""
    facts = []
    for (rival, operation), numbers in published.items():
        found = gains(data, axis, "physical", operation, rival)
        for value, gain in zip(values, numbers, strict=True):
            claim = f"H2DP over {rival.upper()}, {operation}s, {axis.replace('_bytes', '')} {value}"
            reason = WHY_UNIFORM if rival == "padp" else why("physical", rival, found[value] > gain)
            facts.append(gain_fact(where, claim, gain, found[value], reason))
    return facts


def panels(data: pd.DataFrame, axis: str, label: str, is_size: bool = True) -> list[Panel]:
    """A panel for each world and kind of request, with a curve for each policy."""
    made = []
    for world in dict.fromkeys(data["world"]):
        for operation in dict.fromkeys(data["operation"]):
            rate = wide(data, axis, world, operation)
            curves = [
                Curve(NAMES[policy], list(rate.index), list(rate[policy]))
                for policy in contest.POLICIES
                if policy in rate
            ]
            title = f"{world}, {operation}s"
            made.append(Panel(title, label, "MB/s", curves, log_x=is_size, log_y=False, counts_x=not is_size))
    return made


def setup_text(setting: Setting, more: str = "") -> str:
    return f"12 HServers, 4 SServers with room for 1/6; windows simulated for {window_s(setting):g} s each{more}"
