"""What `iosig plan --plot FILE` draws: how much each region is used in each window, and the classes that hold it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm
from plotly.subplots import make_subplots

from iosig.figures import COLOURS

MOST_TICKS = 12


def read_plan(text: str) -> dict[str, Any]:
    """A plan. Raises ValueError if it is none."""
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("schema", "iosig.plan/1") != "iosig.plan/1":
        raise ValueError("expected a plan of iosig plan, iosig.plan/1")
    if not document.get("windows") or not isinstance(document.get("regions"), list):
        raise ValueError("expected a plan with windows and regions")
    plan: dict[str, Any] = document
    return plan


def regions_of(plan: dict[str, Any]) -> pd.DataFrame:
    """A row for each window and region, windows first.

    Columns: `window`, `region` (its place in the plan), `requests`, `place`, the names of the classes that hold it,
    joined by "+", `stripes`, their stripes in words. The sum of `requests` is the number of requests of the plan.
    """
    names = [kind["name"] for kind in plan["servers"]["classes"]]
    rows = []
    for window, planned in enumerate(plan["windows"]):
        for region, placed in enumerate(planned["placements"]):
            holders = [(name, size) for name, size in zip(names, placed["stripe_bytes"], strict=True) if size > 0]
            place = "+".join(name for name, _ in holders)
            stripes = ", ".join(f"{size_text(size)} on {name}" for name, size in holders)
            rows.append((window, region, placed["requests"], place, stripes))
    return pd.DataFrame(rows, columns=["window", "region", "requests", "place", "stripes"])


def size_text(size: int) -> str:
    """64KB for 65536, 100B for 100."""
    for unit in ("B", "KB", "MB"):
        if size < 1024 or size % 1024:
            return f"{size}{unit}"
        size //= 1024
    return f"{size}GB"


def grid_of(regions: pd.DataFrame, values: pd.Series) -> npt.NDArray[Any]:
    """`values` of regions_of as an array of windows and regions."""
    windows = int(regions["window"].max()) + 1
    grid: npt.NDArray[Any] = values.to_numpy().reshape(windows, -1)
    return grid


def places_of(plan: dict[str, Any], regions: pd.DataFrame) -> list[str]:
    """The places that occur, the home class first."""
    home = plan["servers"]["classes"][plan["servers"]["home"]]["name"]
    found = list(dict.fromkeys(regions["place"]))
    return sorted(found, key=lambda place: (place != home, place.count("+"), place))


def place_numbers(places: list[str], regions: pd.DataFrame) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = grid_of(regions, regions["place"].map(places.index)).astype(np.int64)
    return numbers


def plot_plan(axes: tuple[Axes, Axes], plan: dict[str, Any]) -> None:
    """Draws requests on the first axes, and classes on the second one; regions to the right, windows downwards."""
    regions = regions_of(plan)
    places = places_of(plan, regions)
    requests = grid_of(regions, regions["requests"]).astype(float)
    edges = (-0.5, requests.shape[1] - 0.5, requests.shape[0] - 0.5, -0.5)
    most = max(1.0, float(requests.max()))
    heat, where = axes
    drawn = heat.imshow(
        np.where(requests > 0, requests, np.nan),
        cmap="inferno_r",
        norm=LogNorm(max(1.0, most / 1000), max(most, 2.0)),
        aspect="auto",
        interpolation="nearest",
        extent=edges,
    )
    heat.figure.colorbar(drawn, ax=heat, label="requests")
    colours = ListedColormap([COLOURS[n % len(COLOURS)] for n in range(len(places))])
    drawn = where.imshow(
        place_numbers(places, regions),
        cmap=colours,
        vmin=-0.5,
        vmax=len(places) - 0.5,
        aspect="auto",
        interpolation="nearest",
        extent=edges,
    )
    bar = where.figure.colorbar(drawn, ax=where, ticks=range(len(places)), label="held by")
    bar.ax.set_yticklabels(places)
    for panel, title in ((heat, "how much each region is used"), (where, "where it lies")):
        panel.set_title(title, fontsize="medium")
        panel.set_ylabel("window")
        step = max(1, -(-requests.shape[0] // MOST_TICKS))
        panel.set_yticks(range(0, requests.shape[0], step))
    where.set_xlabel("region")


def explore_plan(plan: dict[str, Any]) -> go.Figure:
    """plot_plan as an interactive figure; it also tells the stripes of each region."""
    regions = regions_of(plan)
    places = places_of(plan, regions)
    requests = grid_of(regions, regions["requests"]).astype(float)
    numbers = place_numbers(places, regions)
    stripes = grid_of(regions, regions["stripes"])
    figure = make_subplots(
        rows=2,
        shared_xaxes=True,
        vertical_spacing=0.12,
        subplot_titles=("how much each region is used", "where it lies"),
    )
    figure.add_heatmap(
        z=np.where(requests > 0, requests, np.nan),
        text=stripes,
        hovertemplate="window %{y}, region %{x}: %{z} requests<br>%{text}<extra></extra>",
        colorscale="Inferno_r",
        colorbar={"title": "requests", "len": 0.45, "y": 0.78},
        row=1,
        col=1,
    )
    shades = [COLOURS[n % len(COLOURS)] for n in range(len(places))]
    steps = [[edge / len(places), shade] for n, shade in enumerate(shades) for edge in (n, n + 1)]
    figure.add_heatmap(
        z=numbers,
        text=stripes,
        hovertemplate="window %{y}, region %{x}<br>%{text}<extra></extra>",
        zmin=-0.5,
        zmax=len(places) - 0.5,
        colorscale=steps,
        colorbar={"title": "held by", "tickvals": list(range(len(places))), "ticktext": places, "len": 0.45, "y": 0.22},
        row=2,
        col=1,
    )
    figure.update_yaxes(title="window", autorange="reversed", dtick=max(1, len(requests) // MOST_TICKS))
    figure.update_xaxes(title="region", row=2, col=1)
    return figure
