"""Fig. 15 of the PATTERN paper: memory that the index takes in each process, and its size on disk.

512 writers, as many writes each as the paper's, strided; all are made by the engine, a byte at a time instead of 4 KB,
which an index does not tell from each other. The writers are simulated: a few processes take turns for them. An index
of entries is written and opened as far as this machine's memory goes without trouble, and is linear from there on.
"""

from __future__ import annotations

import pandas as pd

from iosig.panels import Curve, Look, Panel
from iosig.repro.artefact import Artefact, Fact, Result, Setting, Source, about, judge, more_than, untested
from iosig.repro.replays import KIB, PATTERN, TRADITIONAL, Job, count_label, places, replayed

WHERE = "section 3.1, Fig. 15"
OPENED = "patterns with ids as writers came"
RANKED = "patterns with ranks as ids"
FORMS = {RANKED: PATTERN, OPENED: PATTERN, TRADITIONAL: TRADITIONAL}
RANKS, MOST, PROCESSES = 512, 256 * KIB, 8
COUNTS = {RANKED: [16 * KIB, 64 * KIB, MOST], OPENED: [16 * KIB, 64 * KIB], TRADITIONAL: [KIB, 4 * KIB, 16 * KIB]}
QUICK_RANKS, QUICK_COUNTS = 32, [64, 1024]
GIB, MIB = 1 << 30, 1 << 20
SLICE = "--quick has neither so many writers nor writes"


def measured(setting: Setting) -> pd.DataFrame:
    """For each form and number of writes: `disk_bytes`, `memory_bytes` and `open_s` of the index."""
    ranks = QUICK_RANKS if setting.quick else RANKS
    rows = []
    with places(setting, ranks * (QUICK_COUNTS[-1] if setting.quick else MOST)) as found:
        directory = next(iter(found.values()))
        for form, counts in COUNTS.items():
            in_turn = ["--open-in-turn"] if form == RANKED else []
            for count in QUICK_COUNTS if setting.quick else counts:
                setting.progress(f"{form}: {ranks} writers, {count} writes each")
                answer = replayed(Job(ranks, count, 1), FORMS[form], directory, "--processes", PROCESSES, *in_turn)
                index = answer["index"]
                sizes = {"disk_bytes": index["bytes"], "memory_bytes": index["memory_bytes"]}
                rows.append({"form": form, "ranks": ranks, "count": count} | sizes | {"open_s": index["open_s"]})
    return pd.DataFrame(rows)


def of_entry(rows: pd.DataFrame, column: str) -> float:
    """Bytes for each write, from the least number of writes to the most."""
    first, last = rows.iloc[0], rows.iloc[-1]
    return float((last[column] - first[column]) / (last["ranks"] * (last["count"] - first["count"])))


def facts_of(data: pd.DataFrame) -> list[Fact]:
    rows = {form: data[data["form"] == form] for form in FORMS}
    disk, memory = (of_entry(rows[TRADITIONAL], column) for column in ("disk_bytes", "memory_bytes"))
    writes = RANKS * MOST
    linear = f"linear from {rows[TRADITIONAL]['count'].iloc[-1]} writes each"
    on_node = 8 * writes * memory / GIB
    facts = [
        about("section 3.1", "an entry of the index", 56, disk, "bytes", 0.01),
        about("section 3.1", "index of entries of 512 x 256 K writes", 7, writes * disk / GIB, "GB", 0.1, linear),
        about("section 3.1", "one process's copy of it in memory", 7, writes * memory / GIB, "GB", 0.1,
              f"a node of a map of extents takes {memory:.0f} bytes; {linear}"),
        more_than(WHERE, "copies of it on a node of 8 processes, more than", 48, on_node, "GB"),
    ]  # fmt: skip
    claims = {
        ("disk_bytes", RANKED): ("index of patterns on disk, at most", 3.0, "MB", MIB, ""),
        ("memory_bytes", RANKED): ("index of patterns in memory, at most, writers' ids being ranks as PLFS has them",
                                   6.0, "KB", KIB, ""),
        ("memory_bytes", OPENED): ("index of patterns in memory, at most, writers' ids as they came", 6.0, "KB", KIB,
                                   "ids without order keep each writer's nest by itself; the paper's id[] keeps them "
                                   "beside one pattern"),
    }  # fmt: skip
    for (column, form), (claim, published, unit, scale, why) in claims.items():
        last = rows[form].iloc[-1]
        if last["ranks"] != RANKS:
            facts.append(untested("section 3.1", claim, published, unit, SLICE))
            continue
        found = float(last[column]) / scale
        judged = f"{last['count']} writes each; less holds" + (f"; {why}" if found > published else "")
        facts.append(Fact("section 3.1", claim, published, found, unit, judge(found <= published), judged))
    least, most = (float(rows[RANKED]["memory_bytes"].iloc[at]) for at in (0, -1))
    last = rows[RANKED].iloc[-1]
    return [
        *facts,
        Fact(WHERE, "memory of patterns from the fewest writes to the most", "nearly constant",
             f"{least:.0f} to {most:.0f} bytes", "", judge(most < 2 * least), "less than twice holds"),
        Fact("section 3.1", "patterns take more on disk than in memory", "yes",
             f"{last['disk_bytes']:.0f} and {last['memory_bytes']:.0f} bytes", "",
             judge(bool(last["disk_bytes"] > last["memory_bytes"])), "ids being ranks"),
    ]  # fmt: skip


def run(setting: Setting) -> Result:
    data = measured(setting)
    panels = []
    for column, title, published in (
        ("memory_bytes", "in memory, each process", {TRADITIONAL: 7 * GIB, RANKED: 6 * KIB}),
        ("disk_bytes", "on disk", {TRADITIONAL: 7 * GIB, RANKED: 3 * MIB}),
    ):
        every = sorted(set(data["count"]))
        words = [count_label(count) for count in every]
        curves = [
            Curve(str(form), [count_label(count) for count in rows["count"]], list(rows[column]), Look.MEASURED)
            for form, rows in data.groupby("form", sort=False)
        ]
        line = of_entry(data[data["form"] == TRADITIONAL], column) * int(data["ranks"].iloc[0])
        linear = [line * count for count in every]
        curves.insert(0, Curve(f"{TRADITIONAL}, linear", words, linear, Look.COMPUTED))
        if MOST in every:
            most = [count_label(MOST)]
            curves += [Curve(f"{form}, published", most, [said], Look.PUBLISHED) for form, said in published.items()]
        panels.append(Panel(f"Fig. 15: {title}", "writes of a writer", "bytes of index", curves, log_x=False))
    setup = f"{int(data['ranks'].iloc[0])} writers, simulated by {PROCESSES} processes, a byte a write, strided"
    return Result(data, facts_of(data), panels, setup)


ARTEFACTS = [Artefact("pattern-fig15", "memory of the index", WHERE, (Source.MACHINE,), run)]
