"""Draws tables: each figure once for print (on a matplotlib Axes that is given) and once to explore (plotly)."""

from __future__ import annotations

import html
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from iosig.drafts import replaced

COLOURS = ["#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#da8bc3", "#8c8c8c"]
COLOURS += ["#1b2f6b", "#f2b84b", "#0f5c3a", "#7a0c1e", "#c3b1f0", "#3f2a14", "#17becf", "#b5c334"]
MIB = 1 << 20


def bytes_label(size: float, _position: int | None = None) -> str:
    """A size as IOSIG spells it: 65536 -> '64KB'."""
    for unit in ("B", "KB", "MB", "GB", "TB", "PB"):
        if size < 1024 or unit == "PB":
            return f"{size:g}{unit}"
        size /= 1024
    raise AssertionError


def colour_of(names: list[str]) -> dict[str, str]:
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}


def plot_model(axes: Axes, predicted: pd.DataFrame, measured: pd.DataFrame | None = None) -> None:
    """Throughput over chunk size, one curve per mount point, measured points beside it (the paper's Fig. 6)."""
    colours = colour_of(list(predicted["mount_point"].unique()))
    for mount, rows in predicted.groupby("mount_point", sort=False):
        axes.plot(
            rows["chunk_bytes"], rows["bytes_per_s"] / MIB, color=colours[str(mount)], label=f"{mount}, predicted"
        )
    if measured is not None:
        for mount, rows in measured.groupby("mount_point", sort=False):
            axes.plot(
                rows["chunk_bytes"],
                rows["bytes_per_s"] / MIB,
                "o",
                color=colours.get(str(mount), "black"),
                markersize=4,
                alpha=0.7,
                label=f"{mount}, measured",
            )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(bytes_label))
    axes.set_xlabel("chunk size")
    axes.set_ylabel("throughput, MB/s")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(fontsize="small")


def explore_model(predicted: pd.DataFrame, measured: pd.DataFrame | None = None) -> go.Figure:
    """plot_model as an interactive figure; hovering names the term that limits the prediction."""
    figure = go.Figure()
    colours = colour_of(list(predicted["mount_point"].unique()))
    for mount, rows in predicted.groupby("mount_point", sort=False):
        figure.add_scatter(
            x=rows["chunk_bytes"],
            y=rows["bytes_per_s"] / MIB,
            name=f"{mount}, predicted",
            line_color=colours[str(mount)],
            customdata=[
                [bytes_label(size), limit] for size, limit in zip(rows["chunk_bytes"], rows["limit"], strict=True)
            ],
            hovertemplate="%{customdata[0]}: %{y:.1f} MB/s, limited by %{customdata[1]}",
        )
    if measured is not None:
        for mount, rows in measured.groupby("mount_point", sort=False):
            figure.add_scatter(
                x=rows["chunk_bytes"],
                y=rows["bytes_per_s"] / MIB,
                mode="markers",
                name=f"{mount}, measured",
                marker_color=colours.get(str(mount), "black"),
                customdata=[[bytes_label(size)] for size in rows["chunk_bytes"]],
                hovertemplate="%{customdata[0]}: %{y:.1f} MB/s",
            )
    sizes = sorted(predicted["chunk_bytes"].unique())[::2]
    figure.update_xaxes(type="log", title="chunk size", tickvals=sizes, ticktext=[bytes_label(s) for s in sizes])
    figure.update_yaxes(type="log", title="throughput, MB/s")
    return figure


def plot_demo(axes: Axes, runs: pd.DataFrame) -> None:
    """Throughput of each run of the demo: bars for the whole job, circles for the program alone, marks for predictions.

    runs: `task`, `label`, `job_bytes_per_s`, `bytes_per_s`, `predicted_bytes_per_s` (may be missing), `mount_point`.
    """
    tasks = list(runs["task"].unique())
    colours = colour_of(list(runs["label"].unique()))
    width = 0.8 / runs.groupby("task").size().max()
    for at, task in enumerate(tasks):
        rows = runs[runs["task"] == task]
        x = at + (np.arange(len(rows)) - (len(rows) - 1) / 2) * width
        axes.bar(x, rows["job_bytes_per_s"] / MIB, width * 0.92, color=[colours[name] for name in rows["label"]])
        axes.plot(x, rows["bytes_per_s"] / MIB, "o", color="black", markerfacecolor="white", markersize=60 * width)
        axes.plot(x, rows["predicted_bytes_per_s"].astype(float) / MIB, "_", color="black", markersize=160 * width)
        for bar, mount in zip(x, rows["mount_point"], strict=True):
            axes.annotate(
                f" {mount}", (bar, 0), xycoords=("data", "axes fraction"), rotation=90, ha="center", color="white"
            )
    keys: list[Artist] = [Patch(color=colour, label=name) for name, colour in colours.items()]
    keys.append(Line2D([], [], color="black", marker="o", markerfacecolor="white", linestyle="", label="program alone"))
    keys.append(Line2D([], [], color="black", label="predicted"))
    axes.set_yscale("log")
    axes.set_ylim(bottom=runs["job_bytes_per_s"].min() / MIB / 4)  # room for the names in the shortest bar
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    axes.set_xticks(range(len(tasks)), tasks)
    axes.set_ylabel("throughput of the whole job, MB/s")
    axes.legend(handles=keys, fontsize="small", ncols=5, loc="upper center", bbox_to_anchor=(0.5, -0.06))


def explore_demo(runs: pd.DataFrame) -> go.Figure:
    """plot_demo as an interactive figure; hovering tells the mount point and why it was chosen."""
    figure = go.Figure()
    for name, colour in colour_of(list(runs["label"].unique())).items():
        rows = runs[runs["label"] == name]
        figure.add_bar(
            x=rows["task"],
            y=rows["job_bytes_per_s"] / MIB,
            name=name,
            marker_color=colour,
            customdata=rows[["mount_point", "why"]].assign(program=rows["bytes_per_s"] / MIB),
            hovertemplate="%{y:.1f} MB/s, the program alone %{customdata[2]:.1f} MB/s, on %{customdata[0]}<br>"
            "%{customdata[1]}",
        )
    figure.update_yaxes(type="log", title="throughput of the whole job, MB/s")
    return figure


def as_label(text: str) -> str:
    """Text as Matplotlib shows it unchanged: dollar signs would begin a formula."""
    return text.replace("$", r"\$")


def as_explored_label(text: str) -> str:
    """Text as Plotly shows it unchanged: it reads some HTML."""
    return html.escape(text, quote=False)


def page(interactive: go.Figure, title: str, rows: int, below: str) -> str:
    """A self-contained page: the title's first line as heading, the others as text, the figure, `below` (HTML).

    The figure takes most of the window for each of its rows of axes.
    """
    heading, *lines = [html.escape(line, quote=False) for line in title.split("\n")]
    text = "".join(f"<p>{line}</p>\n" for line in lines)
    height = f"max({75 * rows}vh, {420 * rows}px)"
    interactive.update_layout(template="plotly_white", margin={"t": 40, "b": 40})
    figure = interactive.to_html(full_html=False, include_plotlyjs=True, default_height=height)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{heading}</title>
<style>
body {{ font-family: "Open Sans", sans-serif; color: #2a3f5f; margin: 1em 2em; }}
h1 {{ font-size: 1.3em; }}
p {{ margin: 0.2em 0; }}
td, th {{ text-align: left; vertical-align: top; padding: 0.2em 1em 0.2em 0; border-bottom: 1px solid #ddd; }}
</style>
</head>
<body>
<h1>{heading}</h1>
{text}{figure}
{below}</body>
</html>
"""


def write_picture(path: Path, drawn: Figure, title: str) -> None:
    """A PNG, whole or not at all."""
    if len(drawn.axes) == 1 and not drawn.axes[0].get_title():
        drawn.axes[0].set_title(as_label(title))
    else:
        drawn.suptitle(as_label(title))
    with replaced(path) as draft:
        drawn.savefig(draft, dpi=150, format="png")


def write_page(path: Path, interactive: go.Figure, title: str, rows: int = 1, below: str = "") -> None:
    """A self-contained HTML (`page`), whole or not at all."""
    with replaced(path) as draft:
        draft.write_text(page(interactive, title, rows, below))


def write_figure(
    stem: Path, drawn: Figure, interactive: go.Figure, title: str, rows: int = 1, below: str = ""
) -> list[Path]:
    """Writes `stem`.png and a self-contained `stem`.html; returns both paths."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    picture, explored = stem.with_suffix(".png"), stem.with_suffix(".html")
    write_picture(picture, drawn, title)
    write_page(explored, interactive, title, rows, below)
    return [picture, explored]
