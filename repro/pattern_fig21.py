"""Fig. 21 of the PATTERN paper: I/O time that a program sees, by what predicts its reads.

The paper replays Pagoda's trace on FUSE file systems, one for each predictor. Here `iosig replay --prefetch` replays
it, and traces of other kinds, on a slow disk of the lab; the predictors work behind the replayer's descriptors, and the
page cache is the prefetch cache. Caches are dropped before each replay. The I/O time has detection and management in
it, as in section 5.1. The other traces are ours.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from iosig.command import iosig_command
from iosig.panels import Curve, Look, Panel
from iosig.repro.accesses import accesses, of_rank
from iosig.repro.artefact import Artefact, Fact, Result, Setting, Source, judge, more_than
from iosig.repro.machine import call
from iosig.repro.slow_disk import DESCRIPTION, slow_disk

WHERE = "section 5, Fig. 21"
PREDICTORS = ("none", "kernel", "markov", "paper", "pattern", "remembered", "perfect")
COMPUTE_MS = (0, 1, 3)
KIB, MIB = 1 << 10, 1 << 20
MARKOV_PERCENT, PATTERN_PERCENT = 18.0, 46.0  # published, less I/O time than without prefetching
TRAINED = "here it has learned from the very run that it predicts"
Reads = list[tuple[int, int]]


def pagoda(count: int) -> Reads:
    """Of one of 16 ranks, shifted to the beginning of the file."""
    rows = of_rank(accesses("pagoda"), 1)[:count]
    first = int(rows[0, 0])
    return [(int(offset) - first, int(length)) for offset, length in rows[:, :2]]


def milc(count: int) -> Reads:
    rows = of_rank(accesses("milc-a"), 1)[:count]
    return [(int(offset), int(length)) for offset, length in rows[:, :2]]


def changing(count: int) -> Reads:
    """Four phases, each with a stride, a size and a part of the file of its own; every second one in two loops."""
    reads: Reads = []
    for phase in range(4):
        for n in range(count // 4):
            inner = 8 if phase % 2 else 1
            step = n // inner * (96 + 32 * phase) * KIB * inner + n % inner * 32 * KIB
            reads.append((phase * 40 * MIB + step, (4 + 4 * phase) * KIB))
    return reads


def noisy(count: int) -> Reads:
    """A stride with a stray read in a hundred."""
    chance = random.Random(1)
    reads: Reads = []
    for n in range(count):
        if chance.random() < 0.01:
            reads.append((chance.randrange(40_000) * 4 * KIB, 4 * KIB))
        reads.append((n * 200 * KIB, 8 * KIB))
    return reads


def scattered(count: int) -> Reads:
    chance = random.Random(2)
    return [(chance.randrange(40_000) * 4 * KIB, 4 * KIB) for _ in range(count)]


def kinds(quick: bool) -> dict[str, Reads]:
    count = 200 if quick else 600
    made = {"Pagoda-like": pagoda(count)}
    if quick:
        return made
    return made | {
        "MILC-like": milc(count),
        "sequential": [(n * 64 * KIB, 64 * KIB) for n in range(count)],
        "random": scattered(count),
        "changing": changing(count),
        "noisy": noisy(count),
    }


def trace_of(reads: Reads, scratch: Path) -> Path:
    """A trace with these reads, as `iosig replay` takes it."""
    table, trace = scratch / "reads.csv", scratch / "trace"
    rows = [
        f"{n + 1},1,pread,/data/file,3,{offset},{length},{n * 1000},{n * 1000 + 500},{length}"
        for n, (offset, length) in enumerate(reads)
    ]
    table.write_text("\n".join(["id,pid,call,path,fd,offset,length,start_ns,end_ns,result", *rows]) + "\n")
    shutil.rmtree(trace, ignore_errors=True)
    call(iosig_command(), "import", table, "-o", trace)
    return trace


def replayed(trace: Path, onto: Path, predictor: str, compute_ms: int) -> dict[str, Any]:
    words = ["--onto", onto, "--drop-caches", "--compute", f"{compute_ms}ms", "--prefetch", predictor, "--json"]
    told = json.loads(call(iosig_command(), "replay", trace, *words))
    return {"io_s": told["replay"]["io_s"], **told["prefetch"]}


def measured(setting: Setting) -> pd.DataFrame:
    rows = []
    with slow_disk(512 * MIB) as disk:
        for kind, reads in kinds(setting.quick).items():
            trace = trace_of(reads, setting.scratch)
            rounds = 3 if kind == "Pagoda-like" and not setting.quick else 1
            for compute_ms in (1,) if setting.quick else COMPUTE_MS:
                for turn in range(rounds):
                    for predictor in PREDICTORS:
                        setting.progress(f"replaying: {kind}, {predictor}, {compute_ms} ms, round {turn + 1}")
                        found = replayed(trace, disk / "replayed", predictor, compute_ms)
                        rows.append({"trace": kind, "compute_ms": compute_ms, "predictor": predictor, **found})
    numbers = ["io_s", "read_bytes", "useful_bytes", "late_bytes", "wasted_bytes", "cached_bytes"]
    return (
        pd.DataFrame(rows).groupby(["trace", "compute_ms", "predictor"], sort=False)[numbers].agg(median).reset_index()
    )


def less_percent(data: pd.DataFrame, predictor: str, kind: str = "Pagoda-like") -> float:
    """By how much the I/O time is less than without prefetching, on average over the compute times."""
    wide = data[data["trace"] == kind].pivot_table(values="io_s", index="compute_ms", columns="predictor")
    return float(100 * (1 - wide[predictor] / wide["none"]).mean())


def possible_share(data: pd.DataFrame, predictor: str, kind: str, compute_ms: int = 1) -> float:
    rows = data[(data["trace"] == kind) & (data["compute_ms"] == compute_ms)].set_index("predictor")["io_s"]
    return float((rows["none"] - rows[predictor]) / (rows["none"] - rows["perfect"]))


def facts_of(data: pd.DataFrame) -> list[Fact]:
    found = {name: less_percent(data, name) for name in PREDICTORS}
    facts = [
        more_than(
            WHERE,
            "the paper's predictor: less I/O time than none",
            PATTERN_PERCENT,
            found["paper"],
            "%",
            "its history is 256 reads, looked at every 16",
        ),
        more_than(WHERE, "Markov, in a later run: less I/O time than none", MARKOV_PERCENT, found["markov"], "%"),
        Fact(
            WHERE,
            "kernel readahead is slightly better than none",
            "0 to 15 %",
            f"{found['kernel']:.1f} %",
            "",
            judge(-3 < found["kernel"] < 15),
            "-3 to 15 % holds",
        ),
        Fact(
            WHERE,
            "the paper's predictor beats Markov in a later run",
            "yes",
            f"{found['paper']:.0f} against {found['markov']:.0f} %",
            "",
            judge(found["paper"] > found["markov"]),
            TRAINED,
        ),
        Fact(
            WHERE,
            "no predictor beats the perfect one (by more than 2 %)",
            "yes",
            f"{found['perfect']:.1f} against {max(found.values()):.1f} %",
            "",
            judge(max(found.values()) <= found["perfect"] + 2),
        ),
    ]
    share = possible_share(data, "pattern", "Pagoda-like")
    facts.append(
        Fact(
            "ours",
            "share of the possible gain, Pagoda-like, 1 ms",
            "",
            f"{100 * share:.1f} %",
            "",
            judge(share >= 0.9),
            "90 % holds",
        )
    )
    return facts


def run(setting: Setting) -> Result:
    data = measured(setting)
    panels = []
    for (kind, compute_ms), rows in data.groupby(["trace", "compute_ms"], sort=False):
        curve = Curve("I/O time", list(rows["predictor"]), list(rows["io_s"]), Look.BARS)
        panels.append(Panel(f"{kind}, {compute_ms} ms of compute", "", "seconds", [curve], log_x=False, log_y=False))
    return Result(data, facts_of(data), panels, f"{DESCRIPTION}; medians of the rounds")


ARTEFACTS = [Artefact("pattern-fig21", "I/O time by what predicts the reads", WHERE, (Source.LAB,), run)]
