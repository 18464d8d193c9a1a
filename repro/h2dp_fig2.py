"""Fig. 2 of the H2DP paper: IOR on HDD servers, SSD servers and both, with stripes of one size (section 2.2)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from iosig import contest
from iosig.panels import Curve, Look, Panel
from iosig.repro import placements
from iosig.repro.artefact import Artefact, Fact, Result, Setting, all_of, judge
from iosig.repro.placements import KIB, MIB

WHERE = "section 2.2, Fig. 2"
PROCESSES, REQUEST_BYTES, FILE_BYTES, QUICK_FILE_BYTES = 16, 512 * KIB, 16 << 30, 1 << 30
SLIGHTLY = 1.5  # times as fast
BASE = replace(contest.PHYSICAL, processes=PROCESSES)
PLATFORMS = {
    "HDD": replace(BASE, hdds=4, ssds=0),
    "SSD": replace(BASE, hdd=BASE.ssd, hdds=4, ssds=0),
    "Hybrid": replace(BASE, hdds=4, ssds=4),
}
PATTERNS = {f"{order} {operation}": (order, operation) for order in ("seq", "rand") for operation in ("read", "write")}


def ior(file_bytes: int, is_random: bool, is_write: bool) -> contest.Accesses:
    """Each process has its own part of the file; random: in another order, each place once."""
    per_process = file_bytes // REQUEST_BYTES // PROCESSES
    draws = np.random.default_rng(1)
    parts: list[npt.NDArray[np.int64]] = []
    for process in range(PROCESSES):
        places = np.arange(per_process, dtype=np.int64) + process * per_process
        parts.append(draws.permutation(places) if is_random else places)
    offsets = (np.concatenate(parts) * REQUEST_BYTES).astype(np.uint64)
    processes = np.repeat(np.arange(PROCESSES, dtype=np.uint64), per_process)
    return contest.Accesses(processes, offsets, np.full_like(offsets, REQUEST_BYTES), is_write)


def run(setting: Setting) -> Result:
    file_bytes = QUICK_FILE_BYTES if setting.quick else FILE_BYTES
    rows = []
    for pattern, (order, operation) in PATTERNS.items():
        for platform, world in PLATFORMS.items():
            setting.progress(f"simulating: {pattern}, {platform}")
            asked = ior(file_bytes, order == "rand", operation == "write")
            outcome = contest.run_accesses("def", world, asked, ssd_share=None)
            rows.append((pattern, platform, outcome.bytes_per_s / 1e6))
    data = pd.DataFrame(rows, columns=["pattern", "platform", "rate_mb_per_s"])
    rate = data.pivot_table(index="pattern", columns="platform", values="rate_mb_per_s").loc[list(PATTERNS)]
    return Result(data, facts_of(rate), panels_of(rate), f"{file_bytes / MIB:g} MB, 16 processes, requests of 512 KB")


def facts_of(rate: pd.DataFrame) -> list[Fact]:
    better = rate["Hybrid"] / rate["HDD"]
    slightly = int(((better > 1) & (better <= SLIGHTLY)).sum())
    worse = int((rate["Hybrid"] < rate["SSD"]).sum())
    of = len(rate)
    return [
        Fact(
            WHERE,
            "patterns in which eight hybrid servers are slightly better than four HServers",
            all_of(of, of),
            all_of(slightly, of),
            "",
            judge(slightly == of),
            f"{better.min():.2f} to {better.max():.2f} times as fast; up to {SLIGHTLY:g} times holds",
        ),
        Fact(
            WHERE,
            "patterns in which they are worse than four SServers",
            all_of(of, of),
            all_of(worse, of),
            "",
            judge(worse == of),
            "the HServers' stripes keep every request waiting",
        ),
    ]


def panels_of(rate: pd.DataFrame) -> list[Panel]:
    curves = [Curve(str(name), list(rate.index), list(rate[name]), Look.COMPUTED) for name in PLATFORMS]
    return [Panel("stripes of 64 KB on all servers", "pattern", "MB/s", curves, log_y=False)]


ARTEFACTS = [
    Artefact(
        "h2dp-fig2",
        "HDD, SSD and hybrid servers under one stripe size",
        WHERE,
        placements.SOURCES,
        run,
        placements.SIMULATED,
    ),
]
