"""Figs. 13 and 14 of the DOE report: what generated I/O code costs, against the same by hand."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

import pandas as pd

from iosig.generate.build import build
from iosig.generate.costs import PACKAGED, read_costs
from iosig.generate.optimise import Decision, decide
from iosig.generate.sizes import Sizes, constants
from iosig.generate.template import read_template
from iosig.panels import Curve, Look, Panel
from iosig.repro.artefact import Fact, Result, Setting, Verdict, judge, untested
from iosig.repro.generated import EXAMPLES, SIDES, TARGETS, Contest, median_ratio
from iosig.repro.mpi_programs import RANKS

NEGLIGIBLE = 1.05  # times: what the report's "negligible" is taken for


@dataclass(frozen=True)
class Application:
    """One of the report's: its name there and in examples/generate, and the language of its template.

    size, quick_size: cells along each axis of a block.
    """

    name: str
    id: str
    language: str
    size: int
    quick_size: int


def decisions(application: Application, policy: str) -> list[Decision]:
    """How each output and input of the template is moved, at its level, by the costs of the package."""
    path = str(EXAMPLES / f"{application.id}{SIDES[application.language]}")
    template = read_template(path, [], [])
    model, mistakes = build(template)
    if any(mistake.severity == "error" for mistake in mistakes):
        raise OSError(f"{path}: {mistakes[0].message}")
    known = constants(template, []) | {"edge": application.size}
    costs = read_costs(PACKAGED)
    return [decide(site, policy, Sizes(RANKS, known), costs) for site in model.sites]


def measured(application: Application, setting: Setting) -> pd.DataFrame:
    """A row for each `library` (level and MPI) that is here: `hand_s`, `generated_s`, medians of the rounds, and of the
    rounds' ratios `ratio`, `least`, `most` (95 %)."""
    rows = []
    for level, mpi in TARGETS:
        directory = setting.scratch / f"{level}-{mpi}"
        directory.mkdir()
        size, rounds, repeats = (application.quick_size, 5, 1) if setting.quick else (application.size, 15, 5)
        contest = Contest(application.id, level, mpi, directory, ["hand", application.language], size, repeats)
        setting.progress(f"compiling: {level} with {mpi}")
        try:
            contest.build()
        except OSError as missing:
            setting.progress(f"left out: {level} with {mpi}: {missing}")
            continue
        times = contest.run(rounds, setting.progress)
        hand, generated = times["hand"], times[application.language]
        ratio, least, most = median_ratio(generated, hand)
        medians = {"hand_s": statistics.median(hand), "generated_s": statistics.median(generated)}
        rows.append({"library": f"{level}, {mpi}", **medians, "ratio": ratio, "least": least, "most": most})
    if not rows:
        raise OSError("none of the I/O libraries is here: mpicc.openmpi or mpicc.mpich is needed")
    return pd.DataFrame(rows)


def overhead_fact(where: str, row: dict[Any, Any]) -> Fact:
    """Holds if all of the interval is below NEGLIGIBLE, differs if it is above; else this run cannot say."""
    ratio, least, most = row["ratio"], row["least"], row["most"]
    verdict = judge(most <= NEGLIGIBLE) if most <= NEGLIGIBLE or least > NEGLIGIBLE else Verdict.UNTESTED
    judged = f"{least:.2f} to {most:.2f}; at most {NEGLIGIBLE} holds"
    if verdict == Verdict.UNTESTED:
        judged += "; the interval has both"
    claim = f"the overhead of generated code is negligible: {row['library']}"
    return Fact(where, claim, "negligible", f"{ratio:.3f} times", "", verdict, judged)


def overhead(application: Application, setting: Setting, where: str, pattern_facts: list[Fact]) -> Result:
    data = measured(application, setting)
    facts = [untested(where, "average execution times", "a picture", "", "its numbers are not in the text")]
    facts += pattern_facts
    facts += [overhead_fact(where, row) for row in data.to_dict("records")]
    libraries = list(data["library"])
    curves = [
        Curve(name, libraries, list(data[column] * 1e3), Look.BARS)
        for name, column in (("by hand", "hand_s"), ("generated", "generated_s"))
    ]
    panel = Panel(f"{application.name}, {application.language}", "", "ms an output", curves, log_x=False)
    setup = f"{RANKS} ranks; {application.name}'s arrays; this machine's disk; medians of paired runs"
    return Result(data, facts, [panel], setup)
