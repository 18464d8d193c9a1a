"""Fig. 14 of the PATTERN paper: opening and reading, by as many processes as wrote (uniform) and by half as many.

The paper: 512 and 256 processes, blocks of 4 KB. Each process opens the file by itself, and reads the index then, there
and here. Uniform readers read what the process of their number wrote, the others blocks in turns. Caches are warm: what
differs is the index, not the disk.
"""

from __future__ import annotations

import pandas as pd

from iosig.repro.artefact import Artefact, Fact, Result, Setting, Source, counted, judge, untested
from iosig.repro.replays import FORMS, PATTERN, TRADITIONAL, Job, medians, panel_of, places, ratios, replayed

WHERE = "section 3.1, Fig. 14"
SIZE = 4096
READERS = {"uniform": "read", "non-uniform": "read_blocks"}
PANELS = {"uniform": ("A", "B"), "non-uniform": ("C", "D")}


def measured(setting: Setting) -> pd.DataFrame:
    """For each kind of reader, number of writes and form: `open_s` and `read_s` of all processes, `bytes_per_s` of
    both."""
    ranks, counts, rounds = (8, [64, 512], 1) if setting.quick else (64, [256, 512, 1024, 2048, 4096], 3)
    rows = []
    with places(setting, ranks * counts[-1] * SIZE) as found:
        directory = next(iter(found.values()))
        for count in counts:
            for turn in range(rounds):
                for form in FORMS:
                    setting.progress(f"reading: {count} writes, {form}, round {turn + 1}")
                    job = Job(ranks, count, SIZE)
                    answer = replayed(job, form, directory, "--read", "--readers", ranks // 2)
                    for readers, key in READERS.items():
                        read = answer[key]
                        known = {"place": readers, "count": count, "form": form, "ranks": ranks}
                        times = {"open_s": read["open_s"], "read_s": read["read_s"]}
                        rate = job.bytes / (read["open_s"] + read["read_s"])
                        rows.append(known | times | {"bytes_per_s": rate, "memory_bytes": read["memory_bytes"]})
    return medians(rows)


def facts_of(data: pd.DataFrame) -> list[Fact]:
    facts = []
    for readers, rows in data.groupby("place", sort=False):
        opening, reading = (f"{WHERE}({letter})" for letter in PANELS[str(readers)])
        slower = ratios(rows, "open_s", TRADITIONAL, PATTERN)
        better = ratios(rows, "bytes_per_s", PATTERN, TRADITIONAL)
        won = sum(factor > 1 for factor in better)
        facts += [
            Fact(opening, f"{readers}: open for reading, entries against patterns", "much longer",
                 f"{min(slower):.1f} to {max(slower):.1f} times", "", judge(slower[-1] > 2),
                 "twice at the most writes holds"),
            Fact(opening, f"{readers}: it grows with the number of writes", "yes",
                 f"{slower[-1] / slower[0]:.2g} times from the fewest to the most", "",
                 judge(slower[-1] > 2 * slower[0]), "of the ratio; more than twice holds"),
            counted(reading, f"{readers}: numbers of writes at which bandwidth with patterns is better", won,
                    len(better), 1 / 2, 1,
                    f"{100 * (min(better) - 1):+.0f} to {100 * (max(better) - 1):+.0f} %, opening counted"),
        ]  # fmt: skip
    why = "a number of their machine: 512 processes on 64 hosts"
    facts.append(untested("section 3.1", "bandwidth gained by patterns, at most", 480, "%", why))
    return facts


def run(setting: Setting) -> Result:
    data = measured(setting)
    panels = []
    for readers, rows in data.groupby("place", sort=False):
        first, second = PANELS[str(readers)]
        panels += [
            panel_of(f"({first}) {readers}: open", "open, all processes, ms", rows, "open_s", 1e3),
            panel_of(f"({second}) {readers}: open and read", "bandwidth, MB/s", rows, "bytes_per_s", 2**-20),
        ]
    ranks = int(data["ranks"].iloc[0])
    setup = f"written by {ranks} processes, {SIZE} bytes a write, read by {ranks} and by {ranks // 2}; caches are warm"
    return Result(data, facts_of(data), panels, setup)


ARTEFACTS = [Artefact("pattern-fig14", "reading with patterns or entries", WHERE, (Source.MACHINE,), run)]
