"""Fig. 7 of the DOE report: execution time with an un-instrumented and an instrumented I/O stack.

The report: IOPin instruments the binaries of the I/O stack while they run, and costs about 7 % on average. Here: an
MPI-IO program without and with `iosig trace`, in turns. The figure's programs, sizes and times are not in the text.

Beside the time the time of the processors is measured: where ranks share processors with each other and with other
programs, only that is comparable.
"""

from __future__ import annotations

import shutil
from statistics import median

import pandas as pd

from iosig.panels import Curve, Look, Panel
from iosig.repro import mpi_programs
from iosig.repro.artefact import Artefact, Fact, Result, Setting, Source, judge

WHERE = "section 2, Fig. 7"
PUBLISHED_PERCENT = 7.0
KINDS = ("independent", "collective", "read")
PLAIN, TRACED = "un-instrumented", "instrumented"


def measured(setting: Setting) -> pd.DataFrame:
    """For each kind of access and `stack`: medians of the rounds of `wall_s` and `processor_s`."""
    mpi = mpi_programs.found_mpi()
    program = mpi_programs.compiled(mpi, setting.scratch)
    count, size, rounds = ("200", "65536", 1) if setting.quick else ("2000", "262144", 5)
    rows = []
    for kind in KINDS:
        for turn in range(rounds):
            for stack in (PLAIN, TRACED):
                setting.progress(f"running: {kind}, {stack}, round {turn + 1}")
                trace = setting.scratch / "trace" if stack == TRACED else None
                words = [str(setting.scratch / "data"), kind, count, size]
                run = mpi_programs.run_program(mpi, program, words, trace)
                if trace is not None:
                    shutil.rmtree(trace)
                rows.append({"kind": kind, "stack": stack, "wall_s": run.wall_s, "processor_s": run.processor_s})
    return pd.DataFrame(rows).groupby(["kind", "stack"], sort=False).agg(median).reset_index()


def overhead_percent(data: pd.DataFrame, column: str) -> float:
    """The mean over the kinds of what the instrumented stack takes more."""
    wide = data.pivot_table(values=column, index="kind", columns="stack", sort=False)
    return float(100 * (wide[TRACED] / wide[PLAIN] - 1).mean())


def facts_of(data: pd.DataFrame) -> list[Fact]:
    facts = []
    for column, claim in (
        ("wall_s", "execution time that tracing adds, on average"),
        ("processor_s", "time of the processors that tracing adds, on average"),
    ):
        found = overhead_percent(data, column)
        judged = "not more than published holds; with the start of the recorder in each rank"
        facts.append(Fact(WHERE, claim, PUBLISHED_PERCENT, found, "%", judge(found <= PUBLISHED_PERCENT), judged))
    return facts


def run(setting: Setting) -> Result:
    data = measured(setting)
    panels = []
    for title, column in (("execution time", "wall_s"), ("time of the processors", "processor_s")):
        curves = []
        for stack in (PLAIN, TRACED):
            rows = data[data["stack"] == stack]
            curves.append(Curve(stack, list(rows["kind"]), list(rows[column]), Look.BARS))
        panels.append(Panel(title, "", "seconds", curves, log_x=False, log_y=False))
    setup = f"{mpi_programs.RANKS} ranks with MPI-IO; this machine's disk; medians of the rounds"
    return Result(data, facts_of(data), panels, setup)


ARTEFACTS = [Artefact("doe-fig7", "execution time with and without tracing", WHERE, (Source.MACHINE,), run)]
