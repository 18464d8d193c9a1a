"""Fig. 13 of the PATTERN paper: what writing costs, with an index of patterns and with an entry for each write.

The paper: 512 processes, 4 KB at a time, 16 K to 256 K writes each, on PanFS. Here: as many processes and writes as one
machine takes, on tmpfs and, synced, on its disk; `iosig replay` does the writing. The figure beside the two is one
ordinary file that all processes share.
"""

from __future__ import annotations

import pandas as pd

from iosig.repro.artefact import Artefact, Fact, Result, Setting, Source, counted, judge, untested
from iosig.repro.replays import FORMS, PATTERN, TRADITIONAL, Job, medians, middle, panel_of, places, ratios, replayed

WHERE = "section 3.1, Fig. 13"
SIZE = 4096
CLOSE_PERCENT = 50
OTHER_MACHINE = "a number of their machine"


def measured(setting: Setting) -> pd.DataFrame:
    """For each place, number of writes and form: `open_s`, `close_s` for a process, `bytes_per_s` with the sync."""
    ranks, counts, rounds = (8, [64, 512], 1) if setting.quick else (64, [256, 512, 1024, 2048, 4096], 3)
    rows = []
    with places(setting, ranks * counts[-1] * SIZE) as found:
        for place, directory in found.items():
            synced = ["--sync"] if place == "disk" else []
            for count in counts:
                for turn in range(rounds if place == "memory" else 1):
                    for form in FORMS:
                        setting.progress(f"writing: {place}, {count} writes, {form}, round {turn + 1}")
                        job = Job(ranks, count, SIZE)
                        write = replayed(job, form, directory, *synced)["write"]
                        rate = job.bytes / (write["write_s"] + write["sync_s"])
                        times = {"open_s": write["open_s"], "close_s": write["close_s"], "bytes_per_s": rate}
                        cpu = {"cpu_ns_per_write": write["cpu_ns_per_write"]}
                        rows.append({"place": place, "count": count, "form": form, "ranks": ranks} | times | cpu)
    return medians(rows)


def close_fact(where: str, claim: str, factors: list[float], why: str = "") -> Fact:
    """Times that the paper finds close: the median of the ratios of patterns to entries. `why` they would not be."""
    percent = 100 * (middle(factors) - 1)
    holds = abs(percent) <= CLOSE_PERCENT
    judged = f"median over the numbers of writes; at most {CLOSE_PERCENT} % off is our limit for 'close'"
    judged += "" if holds or not why else f"; {why}"
    return Fact(where, claim, "close", f"{percent:+.0f} %", "", judge(holds), judged)


def facts_of(data: pd.DataFrame) -> list[Fact]:
    facts = []
    for place, rows in data.groupby("place", sort=False):
        on = f"{place}: "
        faster = ratios(rows, "bytes_per_s", PATTERN, TRADITIONAL)
        won = sum(factor >= 1 for factor in faster)
        facts += [
            close_fact(f"{WHERE}(A)", f"{on}open for writing, patterns against entries",
                       ratios(rows, "open_s", PATTERN, TRADITIONAL)),
            counted(f"{WHERE}(B)", f"{on}numbers of writes at which bandwidth with patterns is better", won,
                 len(faster), 1 / 2, 1,
                 f"{100 * (min(faster) - 1):+.0f} to {100 * (max(faster) - 1):+.0f} %; 56 bytes of index for 4 KB of "
                 "data are 1.4 % more to write, and here no file system is shared by hosts"),
            close_fact(f"{WHERE}(C)", f"{on}close, patterns against entries",
                       ratios(rows, "close_s", PATTERN, TRADITIONAL), "entries are written when a writer closes"),
        ]  # fmt: skip
    facts.append(untested("section 3.1", "bandwidth gained by patterns, at most", 80, "%", OTHER_MACHINE))
    claim = "faster with patterns, 512 processes and 16 K writes each"
    facts.append(untested(f"{WHERE}(B)", claim, 1.5, "GB/s", OTHER_MACHINE))
    return facts


def run(setting: Setting) -> Result:
    data = measured(setting)
    panels = []
    for place, rows in data.groupby("place", sort=False):
        panels += [
            panel_of(f"(A) {place}: open", "open, all processes, ms", rows, "open_s", 1e3),
            panel_of(f"(B) {place}: write", "bandwidth, MB/s", rows, "bytes_per_s", 2**-20),
            panel_of(f"(C) {place}: close", "close, all processes, ms", rows, "close_s", 1e3),
        ]
    ranks = data["ranks"].iloc[0]
    setup = f"{ranks:.0f} processes, {SIZE} bytes a write, strided; memory: tmpfs; disk: with the sync"
    return Result(data, facts_of(data), panels, setup)


ARTEFACTS = [Artefact("pattern-fig13", "writing with patterns or entries", WHERE, (Source.MACHINE,), run)]
