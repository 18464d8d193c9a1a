"""Panels: sets of axes beside each other with curves over sizes, counts or words, for print and to explore."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
import plotly.graph_objects as go
import plotly.subplots
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from iosig.figures import COLOURS, bytes_label, colour_of


class Look(StrEnum):
    """What a curve's points are: computed ones are a line or, over words, bars; measured or simulated ones dots,
    published ones crosses, or triangles where they are lower bounds; accesses bars from `y` to `high`."""

    COMPUTED = "computed"
    COMPUTED_TOO = "computed too"  # by another formula: dashed
    BARS = "bars"
    ACCESSES = "accesses"
    MEASURED = "measured"
    PUBLISHED = "published"
    PUBLISHED_LEAST = "published, at least"

    @property
    def is_published(self) -> bool:
        return self in (Look.PUBLISHED, Look.PUBLISHED_LEAST)


@dataclass(frozen=True)
class Curve:
    """Points with a name; x are sizes in bytes, counts, or words. `low`, `high`: bounds of y, as bars, where known."""

    name: str
    x: Sequence[float] | Sequence[str]
    y: Sequence[float]
    look: Look = Look.COMPUTED
    low: Sequence[float] = field(default_factory=list)
    high: Sequence[float] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """The name up to the first comma."""
        return self.name.split(",")[0]

    def bars(self) -> tuple[list[float], list[float]]:
        """How far the bounds are below and above y."""
        below = [y - low for y, low in zip(self.y, self.low or self.y, strict=True)]
        above = [high - y for y, high in zip(self.y, self.high, strict=True)]
        return below, above


@dataclass(frozen=True)
class Panel:
    """One set of axes. Curves with the same name up to the first comma share their colour; published ones that are of
    none of the others are black, and so are those over bars, which stand over the bar whose name theirs begins with.

    marks: sizes that a paper names, each a vertical line, by what it says of them. tick_bytes: labels x at multiples of
    this instead of at its points. counts_x: x are counts.
    """

    title: str
    x_label: str
    y_label: str
    curves: list[Curve] = field(default_factory=list)
    log_x: bool = True
    log_y: bool = True
    tick_bytes: int = 0
    marks: dict[str, float] = field(default_factory=dict)
    counts_x: bool = False

    def own_kinds(self) -> list[str]:
        """The kinds of the curves that are not published, in order."""
        return list(dict.fromkeys(curve.kind for curve in self.curves if not curve.look.is_published))

    def colours(self, by_kind: dict[str, str] | None = None) -> list[str]:
        """Of each curve. `by_kind`: those of a whole figure (colours_of), which accesses are not part of."""
        by_name = by_kind if by_kind and not self.shows_accesses() else colour_of(self.own_kinds())
        has_bars = bool(self.bars())
        return [
            "black" if has_bars and curve.look.is_published else by_name.get(curve.kind, "black")
            for curve in self.curves
        ]

    def bars(self) -> list[str]:
        """The kinds of the curves that are bars, in order."""
        return [curve.kind for curve in self.curves if curve.look == Look.BARS]

    def bar_places(self, curve: Curve) -> tuple[list[float], float]:
        """x of `curve` over words, where the bars of a word stand beside each other, and the width of a bar."""
        bars, words = self.bars(), self.words()
        width = 0.8 / max(1, len(bars))
        shift = (bars.index(curve.kind) - (len(bars) - 1) / 2) * width if curve.kind in bars else 0
        return [words.index(word) + shift for word in curve.x if isinstance(word, str)], width

    def least(self) -> float:
        """Where bars on a logarithmic axis begin: 1, or the power of ten below the smallest."""
        smallest = min((y for curve in self.curves for y in curve.y if y > 0), default=1.0)
        return min(1.0, float(10 ** math.floor(math.log10(smallest))))

    def sizes(self) -> list[float]:
        """Where the x axis is labelled, at most nine; empty when x are words or counts."""
        if self.counts_x:
            return []
        every = sorted({x for curve in self.curves for x in curve.x if not isinstance(x, str)})
        if every and self.tick_bytes:
            every = [float(x) for x in range(self.tick_bytes, int(every[-1]) + 1, self.tick_bytes)]
        return every[:: -(-len(every) // 9)] if every else []

    def last_count(self) -> float:
        return max((float(x) for curve in self.curves for x in curve.x), default=0.0)

    def words(self) -> list[str]:
        """In order; empty when x are numbers."""
        return list(dict.fromkeys(x for curve in self.curves for x in curve.x if isinstance(x, str)))

    def shows_accesses(self) -> bool:
        return all(curve.look == Look.ACCESSES for curve in self.curves)

    def has_legend(self) -> bool:
        return not self.shows_accesses() or 1 < len(self.curves) <= len(COLOURS)


LONG_COUNT = 100_000  # from here on they are labelled in thousands or millions


def columns_for(panels: list[Panel]) -> int:
    """At most three; four panels are a square."""
    return 2 if len(panels) == 4 else min(3, len(panels))


def colours_of(panels: list[Panel]) -> dict[str, str]:
    """One colour for each kind of curve in all panels. Panels of accesses have their own: there, a rank is a kind."""
    return colour_of(
        list(dict.fromkeys(k for panel in panels if not panel.shows_accesses() for k in panel.own_kinds()))
    )


def plot_panels(figure: Figure, panels: list[Panel]) -> None:
    """Every panel on axes of its own. A legend has what no panel before has named."""
    columns, colours, named = columns_for(panels), colours_of(panels), set[str]()
    for at, panel in enumerate(panels):
        plot_panel(figure.add_subplot(math.ceil(len(panels) / columns), columns, at + 1), panel, colours, named)


DRAWN = {
    Look.COMPUTED: "-",
    Look.COMPUTED_TOO: "--",
    Look.MEASURED: "o",
    Look.PUBLISHED: "x",
    Look.PUBLISHED_LEAST: "^",
}


def number_label(value: float, _position: int | None = None) -> str:
    """Without powers of ten."""
    return f"{value:.12f}".rstrip("0").rstrip(".")


def count_label(value: float, _position: int | None = None) -> str:
    """Without powers of ten: 250000 -> '250k'."""
    return f"{value:g}" if abs(value) < LONG_COUNT else EngFormatter(sep="")(value)


def plot_bars(axes: Axes, panel: Panel, by_kind: dict[str, str]) -> None:
    """The bars of a word beside each other, in the order of the words; what is published over its bar."""
    axes.set_xticks(range(len(panel.words())), panel.words())
    for curve, colour in zip(panel.curves, panel.colours(by_kind), strict=True):
        x, width = panel.bar_places(curve)
        if curve.look == Look.BARS:
            axes.bar(x, curve.y, width, color=colour, label=curve.name)
        else:
            axes.plot(x, curve.y, "X", color=colour, label=curve.name, markersize=8, markerfacecolor="white")


def speck_size(panel: Panel) -> float:
    """So that neighbours are told apart, and a single access is seen."""
    return min(4.0, max(1.0, 2000 / max(1, *(len(curve.x) for curve in panel.curves))))


def opacity(panel: Panel) -> float:
    """So that where many accesses are is darker than where few are."""
    return min(1.0, max(0.3, 20_000 / max(1, sum(len(curve.x) for curve in panel.curves))))


def plot_accesses(axes: Axes, panel: Panel) -> None:
    """The curves' accesses in a mixed order, so that none lies over all others."""
    colours = panel.colours()
    x, low, high = (
        np.concatenate([np.asarray(part, np.float64) for part in parts])
        for parts in ([c.x for c in panel.curves], [c.y for c in panel.curves], [c.high for c in panel.curves])
    )
    colour = np.repeat(to_rgba_array(colours), [len(curve.x) for curve in panel.curves], axis=0)
    colour[:, 3] = opacity(panel)
    size = speck_size(panel)
    mixed = np.random.default_rng(1).permutation(len(x))
    axes.scatter(x[mixed], low[mixed], size**2, colour[mixed], marker="s", linewidths=0)
    axes.vlines(x[mixed], low[mixed], high[mixed], colors=colour[mixed].tolist(), linewidth=size)
    for curve, each in zip(panel.curves, colours, strict=True):
        axes.plot([], [], "s", color=each, label=curve.name)


def in_mixed_order(panel: Panel, by_kind: dict[str, str]) -> Iterator[tuple[Curve, str]]:
    """What to draw one after the other, and its colour: the curves, or pieces of many accesses, so that along x each
    curve in turn is the last."""
    coloured = list(zip(panel.curves, panel.colours(by_kind), strict=True))
    turns = len(coloured) if panel.shows_accesses() and sum(len(curve.x) for curve in panel.curves) > 2000 else 1
    stretches = 200 / (panel.last_count() + 1) if turns > 1 else 0
    for turn in range(turns):
        for at, (curve, colour) in enumerate(coloured):
            if turns == 1:
                yield curve, colour
                continue
            x = np.asarray(curve.x, np.float64)
            part = np.flatnonzero((at + (x * stretches).astype(np.int64)) % turns == turn)
            if len(part):
                x, y, high = (np.asarray(values)[part].tolist() for values in (curve.x, curve.y, curve.high))
                yield replace(curve, x=x, y=y, high=high), colour


def plot_panel(axes: Axes, panel: Panel, by_kind: dict[str, str] | None = None, named: set[str] | None = None) -> None:
    """`by_kind`: the colours of the figure. `named`: what the legends of other panels have; gets this one's."""
    by_kind, named = by_kind or colours_of([panel]), set() if named is None else named
    if panel.bars():
        plot_bars(axes, panel, by_kind)
    elif panel.shows_accesses():
        plot_accesses(axes, panel)
    drawn = panel.bars() or panel.shows_accesses()
    for curve, colour in [] if drawn else zip(panel.curves, panel.colours(by_kind), strict=True):
        size = 8 if curve.look.is_published else 4
        if curve.look == Look.MEASURED and curve.low:
            axes.errorbar(
                curve.x, curve.y, curve.bars(), fmt="o", color=colour, label=curve.name, markersize=4, capsize=2
            )
        else:
            axes.plot(
                curve.x,
                curve.y,
                "o" if len(curve.x) == 1 and not curve.look.is_published else DRAWN[curve.look],
                color=colour,
                label=curve.name,
                markersize=size,
                markerfacecolor="none" if curve.look.is_published else colour,
                linewidth=1.2,
            )
    for said, x in panel.marks.items():
        axes.axvline(x, color="black", linestyle=":", linewidth=1.2, label=said)
    if panel.log_y:
        axes.set_yscale("log")
        if panel.bars():
            axes.set_ylim(panel.least(), 10 * axes.get_ylim()[1])  # room for the legend
        low, high = axes.get_ylim()
        axes.yaxis.set_major_locator(LogLocator(subs=(1,) if high > 1000 * low else (1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(number_label))
        axes.yaxis.set_minor_formatter(NullFormatter())
    if sizes := panel.sizes():
        if panel.log_x:
            axes.set_xscale("log", base=2)
            axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks(sizes, [bytes_label(size) for size in sizes], rotation=45)
    elif panel.counts_x:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(count_label))
    else:
        for label in axes.get_xticklabels():
            label.set(rotation=30, horizontalalignment="right", rotation_mode="anchor")
    if not panel.log_y:
        axes.yaxis.set_major_formatter(FuncFormatter(count_label))
    axes.set_title(panel.title, fontsize="medium")
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    axes.grid(visible=True, which="major", alpha=0.3)
    if panel.has_legend() and panel.shows_accesses():  # there is no room among them
        axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    elif panel.has_legend():
        keys = [key for key in zip(*axes.get_legend_handles_labels(), strict=True) if key[1] not in named]
        named.update(label for _, label in keys)
        if keys:
            axes.legend(*zip(*keys, strict=True), fontsize="small", ncols=2 if panel.bars() else 1)


def explore_panels(panels: list[Panel]) -> go.Figure:
    """plot_panels as an interactive figure."""
    columns = columns_for(panels)
    rows = math.ceil(len(panels) / columns)
    titles = [panel.title for panel in panels]
    figure = plotly.subplots.make_subplots(rows, columns, subplot_titles=titles, vertical_spacing=0.18 / rows)
    colours, named = colours_of(panels), set[str]()
    for number, panel in enumerate(panels):
        place = {"row": number // columns + 1, "col": number % columns + 1}
        if panel.shows_accesses() and panel.has_legend():
            for at, (curve, colour) in enumerate(zip(panel.curves, panel.colours(), strict=True)):
                key = {"mode": "markers", "marker": {"color": colour, "symbol": "square"}, "name": curve.name}
                group = {"legendgroup": f"{panel.title} {curve.name}"}
                group |= {"legendgrouptitle_text": panel.title} if at == 0 else {}
                figure.add_scattergl(x=[None], y=[None], **key, **group, **place)
        for curve, colour in in_mixed_order(panel, colours):
            explore_curve(figure, curve, colour, panel, place, named)
        for said, x in panel.marks.items():
            ends = [y for curve in panel.curves for y in curve.y]
            line = {"name": said, "mode": "lines", "line": {"dash": "dot", "color": "black"}}
            figure.add_scatter(x=[x, x], y=[min(ends), max(ends)], **legend_of(said, named), **line, **place)
        figure.update_xaxes(title=panel.x_label, **place)
        if sizes := panel.sizes():
            labels = [bytes_label(size) for size in sizes]
            scale = "log" if panel.log_x else "linear"
            figure.update_xaxes(type=scale, tickvals=sizes, ticktext=labels, tickangle=-45, **place)
        elif panel.counts_x:
            figure.update_xaxes(tickformat="~s" if panel.last_count() >= LONG_COUNT else ".0f", **place)
        else:
            figure.update_xaxes(tickangle=-30, **place)
        figure.update_yaxes(title=panel.y_label, type="log" if panel.log_y else "linear", **place)
        if panel.log_y:
            figure.update_yaxes(tickformat=".12~g", **place)
        if panel.log_y and panel.bars():
            top = max(y for curve in panel.curves for y in curve.y)
            figure.update_yaxes(range=[math.log10(panel.least()), math.log10(2 * top)], **place)
    figure.update_layout(legend_itemsizing="constant", scattermode="group")  # specks are seen there, too
    return figure


def explored_marker(look: Look, colour: str) -> dict[str, Any]:
    """Published points are open and large, so that a dot at the same place is seen."""
    if not look.is_published:
        return {"symbol": "circle", "color": colour}
    symbol = "x-thin-open" if look == Look.PUBLISHED else "triangle-up-open"
    return {"symbol": symbol, "color": colour, "size": 12, "line": {"width": 2}}


def legend_of(name: str, named: set[str]) -> dict[str, Any]:
    """One entry for all panels, which hides and shows the curves of that name in all of them. `named`: has one."""
    is_first = name not in named
    named.add(name)
    return {"legendgroup": name, "showlegend": is_first}


def explore_curve(
    figure: go.Figure, curve: Curve, colour: str, panel: Panel, place: dict[str, Any], named: set[str]
) -> None:
    legend = legend_of(curve.name, named) if not panel.shows_accesses() else {}
    if curve.look == Look.BARS:
        hover = "%{x}: %{y:.4g} " + panel.y_label
        figure.add_bar(
            x=curve.x,
            y=curve.y,
            name=curve.name,
            marker_color=colour,
            offsetgroup=curve.kind,
            hovertemplate=hover,
            **legend,
            **place,
        )
        return
    if curve.look == Look.ACCESSES:
        size = speck_size(panel)
        ends = {"array": curve.bars()[1], "arrayminus": [0.0] * len(curve.y), "width": 0, "thickness": size}
        marker = {"size": 1 + size, "color": colour, "symbol": "square"}
        look = {"mode": "markers", "marker": marker, "error_y": ends}
        legend = {"legendgroup": f"{panel.title} {curve.name}", "showlegend": False}  # that has opaque ones
        shown = opacity(panel)
        figure.add_scattergl(x=curve.x, y=curve.y, name=curve.name, opacity=shown, **look, **legend, **place)
        return
    names = [[x if isinstance(x, str) else number_label(x) if panel.counts_x else bytes_label(x)] for x in curve.x]
    is_joined = curve.look in (Look.COMPUTED, Look.COMPUTED_TOO)
    bars = {}
    if curve.low:
        below, above = curve.bars()
        bars = {"error_y": {"array": above, "arrayminus": below}}
    figure.add_scatter(
        x=curve.x,
        y=curve.y,
        name=curve.name,
        mode="lines" if is_joined else "markers",
        line_dash="dash" if curve.look == Look.COMPUTED_TOO else "solid",
        line_color=colour,
        marker=explored_marker(curve.look, colour),
        customdata=names,
        hovertemplate="%{customdata[0]}: %{y:.4g} " + panel.y_label,
        offsetgroup=curve.kind if panel.bars() else None,
        **legend,
        **bars,
        **place,
    )
