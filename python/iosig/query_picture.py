"""What `iosig query --plot FILE` draws: histograms of durations, throughput over time, or a bar for each row."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter

from iosig.figures import COLOURS, as_explored_label, as_label

DRAWN = {
    "latency": ("calls", "duration in seconds"),
    "throughput": ("wall_bytes_per_s", "bytes per second"),
    "calls": ("calls", "calls"),
    "concurrency": ("mean_in_flight", "calls in flight, mean while busy"),
    "power": ("energy_j", "energy in joules"),
}
"""By question: the field that is drawn, and the label of its axis."""

BINS_IN_OCTAVE = 4
MOST_NAMES, MOST_BARS, MOST_POINTS = 20, 60, 1_000_000


def read_answer(text: str) -> dict[str, Any]:
    """An answer of `iosig query --json`. Raises ValueError if it is none that can be drawn."""
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("schema", "iosig.query/1") != "iosig.query/1":
        raise ValueError("expected an answer of iosig query, iosig.query/1")
    if document.get("question") not in DRAWN or not isinstance(document.get("rows"), list):
        raise ValueError(f"question '{document.get('question')}' has no picture; expected one of {', '.join(DRAWN)}")
    answer: dict[str, Any] = document
    return answer


def name_of(row: dict[str, Any]) -> str:
    """The keys of a row, which are the fields before `calls`, but for the window."""
    keys = list(row)[: list(row).index("calls")]
    return " ".join("-" if row[key] is None else str(row[key]) for key in keys if key != "window_start_s") or "all"


def points_of(answer: dict[str, Any]) -> pd.DataFrame:
    """The points of an answer: `name`, `x`, `y`, one for each row, bin or window.

    Of latency, x are the lower edges of bins of a quarter of an octave in seconds, y the calls in each: their sum is
    the number of calls with a duration. Over windows, x are their starts in seconds, and quiet ones are 0; if these
    would make more than MOST_POINTS points, only the first quiet one after others is a point. Else x is the number of
    the row. A value that is not known is NaN.
    """
    question, rows = answer["question"], answer["rows"]
    field = DRAWN[question][0]
    points: list[tuple[str, float, float]] = []
    if question == "latency":
        for row in rows:
            counts: dict[int, int] = {}
            for middle, calls in row.get("histogram", []):
                edge = int(np.floor(BINS_IN_OCTAVE * np.log2(max(middle, 1e-9))))
                counts[edge] = counts.get(edge, 0) + calls
            if counts:
                edges = range(min(counts), max(counts) + 2)
                points += [(name_of(row), 2.0 ** (edge / BINS_IN_OCTAVE), counts.get(edge, 0)) for edge in edges]
    elif "window_s" in answer:
        window_s = answer["window_s"]
        last = max((round(row["window_start_s"] / window_s) for row in rows), default=0)
        known: dict[str, dict[int, float]] = {}
        for row in rows:
            known.setdefault(name_of(row), {})[round(row["window_start_s"] / window_s)] = row[field] or 0
        for name, values in known.items():
            numbers: Iterable[int] = range(last + 2)
            if len(known) * (last + 2) > MOST_POINTS:
                numbers = sorted({0, last + 1, *values, *(number + 1 for number in values)})
            points += [(name, number * window_s, values.get(number, 0)) for number in numbers]
    else:
        points += [(name_of(row), n, float("nan") if row[field] is None else row[field]) for n, row in enumerate(rows)]
    return pd.DataFrame(points, columns=["name", "x", "y"])


def is_bars(answer: dict[str, Any]) -> bool:
    return answer["question"] != "latency" and "window_s" not in answer


def x_label(answer: dict[str, Any]) -> str:
    return "duration in seconds" if answer["question"] == "latency" else "seconds since the first call"


def y_label(answer: dict[str, Any]) -> str:
    return "calls" if answer["question"] == "latency" else DRAWN[answer["question"]][1]


def plot_answer(axes: Axes, answer: dict[str, Any]) -> None:
    """The points of an answer; of more than MOST_NAMES curves or MOST_BARS bars the first ones."""
    points = points_of(answer)
    if is_bars(answer):
        points = points.head(MOST_BARS)
        axes.barh(points["x"], points["y"], color=COLOURS[0])
        axes.set_yticks(points["x"], points["name"].map(as_label))
        axes.invert_yaxis()
        axes.set_xlabel(y_label(answer))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        return
    for n, (name, group) in enumerate(list(points.groupby("name", sort=False))[:MOST_NAMES]):
        axes.step(group["x"], group["y"], where="post", label=as_label(str(name)), color=COLOURS[n % len(COLOURS)])
    if answer["question"] == "latency":
        axes.set_xscale("log")
    axes.xaxis.set_major_formatter(EngFormatter(unit="s", sep=""))
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlabel(x_label(answer))
    axes.set_ylabel(y_label(answer))
    axes.grid(visible=True, which="major", alpha=0.3)
    if len(points):
        axes.legend(fontsize="small")


def explore_answer(answer: dict[str, Any]) -> go.Figure:
    """plot_answer as an interactive figure, with every curve."""
    points = points_of(answer)
    figure = go.Figure()
    if is_bars(answer):
        figure.add_bar(y=points["name"].map(as_explored_label), x=points["y"], orientation="h")
        figure.update_yaxes(autorange="reversed")
        figure.update_xaxes(title=y_label(answer))
        return figure
    for name, group in points.groupby("name", sort=False):
        figure.add_scatter(x=group["x"], y=group["y"], name=as_explored_label(str(name)), mode="lines", line_shape="hv")
    figure.update_xaxes(title=x_label(answer), type="log" if answer["question"] == "latency" else "linear")
    figure.update_yaxes(title=y_label(answer))
    return figure
