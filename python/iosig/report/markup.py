"""HTML for reports: text that is safe to show, numbers with units, tables with bars."""

from __future__ import annotations

import base64
import html
import json
import unicodedata
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]  # what the core tells of one thing


def text(shown: object) -> str:
    """Text as HTML. Control characters and the like, which could reorder or hide other text, are escaped as \\u...."""
    kept = "".join(
        each if unicodedata.category(each) not in ("Cc", "Cf", "Cs", "Zl", "Zp") else f"\\u{ord(each):04x}"
        for each in str(shown)
    )
    return html.escape(kept)


def data_script(name: str, data: object) -> str:
    """JSON in an element that nothing in the data can end."""
    inner = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for each in "<>&":
        inner = inner.replace(each, f"\\u{ord(each):04x}")
    return f'<script type="application/json" id="{name}">{inner}</script>\n'


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def bytes_text(size: float) -> str:
    """As the iosig command: 1536 -> '1.5 KB'."""
    for unit in ("B", "KB", "MB", "GB", "TB", "PB"):
        if size < 1024:
            return f"{digits(size)} {unit}"
        size /= 1024
    return f"{digits(size)} EB"


def seconds_text(seconds: float) -> str:
    if seconds == 0:
        return "0 s"
    for unit, factor, limit in (("ns", 1e9, 1e-6), ("µs", 1e6, 1e-3), ("ms", 1e3, 1.0), ("s", 1.0, 120.0)):
        if seconds < limit:
            return f"{digits(seconds * factor)} {unit}"
    return f"{digits(seconds / 60)} min" if seconds < 7200 else f"{digits(seconds / 3600)} h"


def count_text(count: int) -> str:
    return f"{count:,}"


def counted(count: int, noun: str) -> str:
    return f"{count_text(count)} {noun}{'' if count == 1 else 's'}"


def number(shown: str) -> str:
    return f'<td class="number">{text(shown)}</td>'


def bar(*shares: tuple[float, str]) -> str:
    """A cell with a bar for each share (0 to 1) in that colour of the style sheet. The numbers stand beside it."""
    bars = "".join(
        f'<span style="width:{100 * min(1.0, share):.1f}%;background:var(--{colour})"></span>' if share > 0 else ""
        for share, colour in shares
    )
    return f'<td class="bar" aria-hidden="true">{bars}</td>'


def table(caption: str, heads: Sequence[str], rows: Sequence[str], bar_at: Sequence[int] = ()) -> str:
    """A table in a region that scrolls. heads: a `#` in front means a column of numbers; rows: HTML of the cells."""
    cells = "".join(
        f'<th scope="col"{" class=number" if head.startswith("#") else ""}>{text(head.lstrip("#"))}</th>'
        if at not in bar_at
        else '<td aria-hidden="true"></td>'
        for at, head in enumerate(heads)
    )
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    label = text(caption)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">\n<table><caption>{label}</caption>\n'
        f"<thead><tr>{cells}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>\n"
    )


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    rows = "".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>\n" for name, value in pairs)
    return f'<dl class="facts">\n{rows}</dl>\n'


def swatch(colour: str, name: str) -> str:
    return f'<span><span class="swatch" style="background:var(--{colour})"></span>{text(name)}</span>'


def section(name: str, title: str, body: str) -> str:
    head = f'<section id="{name}" aria-labelledby="{name}-title">\n<h2 id="{name}-title">{text(title)}</h2>\n'
    return f"{head}{body}</section>\n"


def plot_figure(name: str, title: str, caption: str, tools: str = "", heading: str = "h3") -> str:
    """A figure that the scripts draw into. caption, tools: HTML."""
    zoom = "".join(
        f'<button type="button" data-zoom="{factor}" aria-label="{label}">{sign}</button>'
        for factor, label, sign in (("0.5", "Zoom in", "+"), ("2", "Zoom out", "&minus;"), ("0", "Show all", "all"))
    )
    keys = "Arrow keys step, plus and minus zoom, Shift and arrows pan, 0 shows all."
    return (
        f'<figure id="{name}">\n<{heading}>{title}</{heading}>\n<figcaption>{caption}</figcaption>\n'
        f'<div class="tools">{tools}<div class="zoom" role="group" aria-label="Zoom">{zoom}</div></div>\n'
        f'<div class="plot" tabindex="0" role="application" aria-roledescription="picture" '
        f'aria-label="{html.escape(html_text(title))}. {keys}"><canvas></canvas></div>\n'
        '<p class="readout" aria-live="polite"></p>\n'
        '<details data-table><summary>As a table</summary><div class="scroll" tabindex="0"></div></details>\n'
        "</figure>\n"
    )


def html_text(markup: str) -> str:
    """The text of our own simple HTML."""
    inside = False
    kept = []
    for each in markup:
        if each == "<":
            inside = True
        elif each == ">":
            inside = False
        elif not inside:
            kept.append(each)
    return html.unescape("".join(kept))


def share_of(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"
