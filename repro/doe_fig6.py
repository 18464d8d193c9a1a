"""Fig. 6 of the DOE report: the statistics that IOTRACE returned for "inclusive latency of client 0".

The figure is a picture of a window, and its numbers are not in the text. What the text says is what the query answers:
the inclusive latency of a call (the time across all layers below one), the exclusive one (the time at one layer), and
list, max, min and average of a group of calls (section 1, step 5). Here `iosig query latency` answers it for rank 0 of
a traced MPI-IO program that writes collectively, independently, and reads back.

The layers of the report below the client's file system calls, the server and its disks, are not traced here.
"""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from iosig.command import iosig_command
from iosig.panels import Curve, Look, Panel
from iosig.repro import mpi_programs
from iosig.repro.artefact import Artefact, Fact, Result, Setting, Source, by_construction, counted, same, untested
from iosig.repro.machine import call

WHERE = "section 1, Fig. 6"
KINDS = ("independent", "collective", "read")
LAYERS = {"mpi-io": "MPI-IO", "posix": "POSIX"}
ROUNDING = 1e-6


def asked(trace: object, kind: str, *words: object) -> Any:
    """The answer of `iosig query latency` about the reads or writes of rank 0. Opens also access other files."""
    selected = ("--rank", 0, "--files", "data", "--reads" if kind == "read" else "--writes")
    return json.loads(call(iosig_command(), "query", "latency", trace, *selected, "--json", *words))


def measured(setting: Setting) -> pd.DataFrame:
    """For each kind of access and layer: `calls`, `inclusive_s`, `exclusive_s`, and of the calls' durations `min_s`,
    `mean_s`, `max_s` and `listed_s`, the greatest of the list."""
    mpi = mpi_programs.found_mpi()
    program = mpi_programs.compiled(mpi, setting.scratch)
    count, size = ("100", "65536") if setting.quick else ("1000", "262144")
    rows = []
    for kind in KINDS:
        setting.progress(f"tracing: {kind}")
        trace = setting.scratch / f"{kind}.trace"
        mpi_programs.run_program(mpi, program, [str(setting.scratch / "data"), kind, count, size], trace)
        for row in asked(trace, kind, "--by", "layer", "--stat", "min,mean,max")["rows"]:
            listed = asked(trace, kind, "--layer", row["layer"], "--stat", "list", "--top", 1)["list"]
            rows.append({"kind": kind, **row, "listed_s": listed[0]["inclusive_s"]})
    columns = ["kind", "layer", "calls", "inclusive_s", "exclusive_s", "min_s", "mean_s", "max_s", "listed_s"]
    return pd.DataFrame(rows)[columns]


def facts_of(data: pd.DataFrame) -> list[Fact]:
    of: dict[tuple[str, str], dict[Any, Any]] = {(row["kind"], row["layer"]): row for row in data.to_dict("records")}
    facts = [untested(WHERE, "inclusive latency of client 0", "a window", "", "its numbers are not in the text")]
    adds_up = above = 0
    for kind in KINDS:
        mpi, posix = of[kind, "mpi-io"], of[kind, "posix"]
        below = mpi["exclusive_s"] + posix["inclusive_s"]
        adds_up += bool(abs(mpi["inclusive_s"] - below) <= 0.01 * mpi["inclusive_s"])
        above += bool(mpi["mean_s"] >= posix["mean_s"])
    facts.append(
        counted(
            "section 1, step 5", "inclusive latency of MPI-IO is its exclusive and, below, POSIX's inclusive one",
            adds_up, len(KINDS), 0, judged="to 1 %; of reads or writes",
        )
    )  # fmt: skip
    facts.append(
        counted(
            "section 1, step 5", "the latency that a layer sees covers the layers below: MPI-IO's calls take longer",
            above, len(KINDS), 1 / 8, judged="means of the calls",
        )
    )  # fmt: skip
    rounded = 1 + ROUNDING
    in_order = (data["min_s"] <= data["mean_s"] * rounded) & (data["mean_s"] <= data["max_s"] * rounded)
    is_listed = (data["max_s"] - data["listed_s"]).abs() <= ROUNDING * data["max_s"]
    ordered = bool((in_order & is_listed).all())
    claim = "list, max, min, average of a group of calls"
    facts.append(
        by_construction(
            same("section 1, step 5", claim, "offered", "offered" if ordered else "contradict each other"),
            "min <= average <= max = the first of the list",
        )
    )
    return facts


def run(setting: Setting) -> Result:
    data = measured(setting)
    panels = []
    for name, column in (("inclusive", "inclusive_s"), ("exclusive", "exclusive_s")):
        curves = []
        for layer, shown in LAYERS.items():
            rows = data[data["layer"] == layer]
            curves.append(Curve(shown, list(rows["kind"]), list(rows[column] * 1e3), Look.BARS))
        panels.append(Panel(f"{name} latency of client 0", "", "ms, all calls", curves, log_x=False))
    calls = data["calls"].max()
    setup = f"{mpi_programs.RANKS} ranks, up to {calls:.0f} calls of rank 0 in a layer; this machine's disk"
    return Result(data, facts_of(data), panels, setup)


ARTEFACTS = [Artefact("doe-fig6", "latency of client 0, inclusive and exclusive", WHERE, (Source.MACHINE,), run)]
