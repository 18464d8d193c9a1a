"""The HTML page of a report, section by section."""

from __future__ import annotations

import base64
import datetime
import hashlib
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from iosig.report import findings
from iosig.report.markup import (
    Row,
    bar,
    bytes_text,
    count_text,
    counted,
    data_script,
    encoded,
    facts,
    number,
    percent,
    plot_figure,
    seconds_text,
    section,
    share_of,
    swatch,
    table,
    text,
)
from iosig.report.numbers import Numbers

LAYERS = ["mpi-io", "stdio", "posix"]
MOST_CALLS = 25
MOST_COUNTERS = 50
SCRIPTS = ["data", "texts", "grid", "plot", "cells", "tables", "timeline", "heat", "offsets", "start"]


def moved(row: Row) -> int:
    return int(row["read_bytes"] + row["written_bytes"])


def process_name(process: Row, has_one_host: bool) -> str:
    if process["rank"] is not None:
        return f"rank {process['rank']}"
    pid = f"{Path(process['program']).name or 'process'} {process['pid']}"
    return pid if has_one_host else f"{process['host']} {pid}"


def line_names(summary: Row) -> list[str]:
    """A name for each row of the pictures: a process, or the first and the last of several."""
    ends = [each for line in summary["lines"] for each in (line["first"], line["last"])]
    has_one_host = len({each["host"] for each in ends}) <= 1
    names = []
    for line in summary["lines"]:
        first, last = (process_name(line[end], has_one_host) for end in ("first", "last"))
        names.append(first if line["processes"] == 1 else f"{first} to {last.removeprefix('rank ')}")
    return names


def file_names(summary: Row) -> list[str]:
    """Last components of the plotted files' paths, with as many directories as tell them apart."""
    paths = [file["shown"] for file in summary["files"][: len(summary["plotted"])]]
    names = []
    for path in paths:
        parts = path.split("/")
        kept = 1
        while kept < len(parts) and sum(("/" + each).endswith("/" + "/".join(parts[-kept:])) for each in paths) > 1:
            kept += 1
        names.append("/".join(parts[-kept:]) or path)
    return names


def used_layers(summary: Row) -> list[int]:
    used = {row["layer"] for row in summary["layers"]}
    return [n for n, name in enumerate(LAYERS) if name in used]


def overview(numbers: Numbers) -> str:
    summary = numbers.summary
    began = datetime.datetime.fromtimestamp(summary["started_ns"] / 1e9, datetime.UTC)
    calls = sum(row["calls"] for row in summary["layers"])
    lines = summary["lines"]
    shown = [
        ("calls", count_text(calls)),
        ("duration", seconds_text(summary["span_s"]) if calls else "none"),
        ("processes", count_text(sum(line["processes"] for line in lines))),
        ("files", count_text(summary["file_count"])),
        ("read", bytes_text(sum(line["read_bytes"] for line in lines))),
        ("written", bytes_text(sum(line["written_bytes"] for line in lines))),
    ]
    command = " ".join(numbers.command)
    if len(command) > 500:
        command = command[:500] + " …"
    told = f"<p><code>{text(command)}</code></p>\n" if command else ""
    if calls:
        told += f"<p class=soft>The first call began on {began:%Y-%m-%d} at {began:%H:%M:%S} UTC.</p>\n"
    if numbers.files:
        told += f"<p>Only calls on files that match <code>{text(numbers.files)}</code>.</p>\n"
    return told + facts(shown) + notes(numbers)


def notes(numbers: Numbers) -> str:
    """What is missing in the traces or in this report."""
    summary = numbers.summary
    told = list(summary["notes"])
    if not summary["layers"]:
        told.append("There are no calls in the trace" + (" on such files." if numbers.files else "."))
    if summary["unfinished"]:
        told.append(
            f"{counted(summary['unfinished'], 'call')} without an end: the program ended, was killed or still runs. "
            "They count as calls and take no time here."
        )
    if summary["impossible_calls"]:
        told.append(f"{counted(summary['impossible_calls'], 'call')} would end before the begin, and are left out.")
    if summary["compares_clocks"]:
        told.append("Calls of several nodes are shown by the nodes' clocks, which may differ.")
    if summary["without_offset"]:
        told.append(
            f"{counted(summary['without_offset'], 'transfer')} without an offset are not in the pictures of offsets."
        )
    if numbers.inferred.failure:
        told.append(f"No signatures: iosig infer: {numbers.inferred.failure}")
    if not told:
        return ""
    return '<ul class="notes">\n' + "".join(f"<li>{text(each)}</li>\n" for each in told) + "</ul>\n"


def legend(summary: Row) -> str:
    layers = "".join(swatch(f"layer-{n}", LAYERS[n]) for n in used_layers(summary))
    return f'<span class="legend">{layers}</span>'


def timeline(summary: Row) -> str:
    several = any(line["processes"] > 1 for line in summary["lines"])
    caption = (
        "Each row is "
        + ("some processes" if several else "a process")
        + ", with a bar for each layer: the stronger the colour, the more of the time a call was in flight. "
        + legend(summary)
    )
    heads = ["process", *[f"#time in {LAYERS[n]}" for n in used_layers(summary)]]
    rows = [
        f'<th scope="row">{text(name)}</th>'
        + "".join(number(seconds_text(line["busy_s"][n])) for n in used_layers(summary))
        for name, line in zip(line_names(summary), summary["lines"], strict=True)
    ]
    sums = f"<details><summary>Time of each process</summary>\n{table('Time in calls', heads, rows)}</details>\n"
    tools = choice("timeline-colours", "colours", [("layer", "of layers"), ("line", "of processes")])
    return plot_figure("timeline-figure", "Calls in flight over time", caption, tools) + sums


def choice(name: str, title: str, options: list[tuple[str, str]]) -> str:
    inputs = "".join(
        f'<label><input type="radio" name="{name}" value="{value}"{" checked" if n == 0 else ""}> {label}</label>'
        for n, (value, label) in enumerate(options)
    )
    return f"<fieldset><legend>{title}</legend>{inputs}</fieldset>"


def heat(summary: Row) -> str:
    tools = choice("heat-rows", "rows", [("line", "processes"), ("file", "files")])
    tools += choice("heat-bytes", "bytes", [("all", "all"), ("read", "read"), ("written", "written")])
    caption = 'Bytes moved, by time. <span class="heat-most"></span>'
    heads = ["process", "#read", "#written"]
    rows = [
        f'<th scope="row">{text(name)}</th>'
        + "".join(number(bytes_text(line[way])) for way in ("read_bytes", "written_bytes"))
        for name, line in zip(line_names(summary), summary["lines"], strict=True)
    ]
    sums = f"<details><summary>Bytes of each process</summary>\n{table('Bytes moved', heads, rows)}</details>\n"
    return plot_figure("heat-figure", "Bytes over time", caption, tools) + sums


def offsets(summary: Row) -> str:
    figures = []
    for n, (file, plotted) in enumerate(zip(summary["files"], summary["plotted"], strict=False)):
        if not plotted["accesses"]:
            continue
        how = (
            "each a rectangle over its time and bytes"
            if plotted["count"]
            else f"as bytes in cells of {bytes_text(plotted['bytes_per_row'])}"
        )
        noun = "access" if plotted["accesses"] == 1 else "accesses"
        caption = f"{count_text(plotted['accesses'])} {noun} in {text(file['layer'])}, {how}"
        figures.append(plot_figure(f"file-{n}", f"<code>{text(file['shown'])}</code>", caption))
    if not figures:
        return "<p>No access with an offset moved bytes.</p>\n"
    told = (
        "<p>Which bytes of a file were accessed when, for the files with the most bytes. "
        f'<span class="legend">{swatch("read", "read")}{swatch("written", "write")}'
        f"{swatch('both', 'both, in one cell')}</span></p>\n"
        '<p class="soft tools-note">Drag over a picture to zoom into it; a double click shows all.</p>\n'
    )
    return told + f'<div class="files">\n{"".join(figures)}</div>\n'


def sizes(summary: Row) -> str:
    read, written = summary["read_sizes"], summary["written_sizes"]
    counts = [(read["counts"][n], written["counts"][n]) for n in range(64)]
    used = [n for n, both in enumerate(counts) if sum(both)]
    if not used:
        return "<p>No call moved bytes.</p>\n"
    most = max(max(both) for both in counts)
    told = []
    for name, of in (("read", read), ("write", written)):
        if of["transfers"]:
            typical, median = bytes_text(of["typical_bytes"]), bytes_text(of["median_bytes"])
            share = percent(of["typical_share"])
            told.append(
                f"<p>{counted(of['transfers'], name)}; the most frequent size is {typical} ({share} of them), "
                f"the median {median}.</p>\n"
            )
    rows = []
    for n in range(used[0], used[-1] + 1):
        of_read, of_written = counts[n]
        name = bytes_text(1 << n) if n == 0 else f"{bytes_text(1 << n)} to below {bytes_text(2 << n)}"
        rows.append(
            f'<th scope="row">{text(name)}</th>{number(count_text(of_read))}{number(count_text(of_written))}'
            + bar((share_of(of_read, most), "read"), (share_of(of_written, most), "written"))
        )
    caption = "Transfers by the bytes that each moved"
    key = f'<p class="legend">{swatch("read", "read")}{swatch("written", "write")}</p>\n'
    return "".join(told) + key + table(caption, ["size", "#reads", "#writes", ""], rows, [3])


def timed_rows(rows: list[Row], is_call: bool) -> Iterator[str]:
    most = max((row["inclusive_s"] for row in rows), default=0.0)
    for row in rows:
        layer = LAYERS.index(row["layer"])
        name = f'<th scope="row">{text(row["call"] if is_call else row["layer"])}</th>'
        middle = f"<td>{text(row['layer'])}</td>" if is_call else ""
        cells = [count_text(row["calls"]), count_text(row["failed"]), bytes_text(row["read_bytes"])]
        cells += [bytes_text(row["written_bytes"]), seconds_text(row["inclusive_s"]), seconds_text(row["exclusive_s"])]
        if is_call:
            cells += [seconds_text(row[each]) for each in ("p50_s", "p99_s", "max_s")]
        own = share_of(row["exclusive_s"], most)
        yield (
            name
            + middle
            + "".join(map(number, cells))
            + bar((share_of(row["inclusive_s"], most), f"layer-{layer}"), (own, "soft"))
        )


def layers(summary: Row) -> str:
    if not summary["layers"]:
        return "<p>There are no calls.</p>\n"
    told = (
        "<p>Inclusive time is from the begin of a call to its end; exclusive time is without the calls of the same "
        "thread below it. The times of all processes and threads are added up. The upper bar is inclusive time, the "
        "lower one exclusive time.</p>\n"
    )
    sums = ["#calls", "#failed", "#read", "#written", "#inclusive", "#exclusive"]
    by_layer = table("By layer", ["layer", *sums, ""], list(timed_rows(summary["layers"], False)), [7])
    calls = sorted(summary["calls"], key=lambda row: (-row["inclusive_s"], -row["calls"], row["call"]))
    caption = "By call"
    if len(calls) > MOST_CALLS:
        caption += f": the {MOST_CALLS} of {len(calls)} with the most time"
    heads = ["call", "layer", *sums, "#median", "#99 %", "#longest", ""]
    return told + by_layer + table(caption, heads, list(timed_rows(calls[:MOST_CALLS], True)), [11])


def files(summary: Row) -> str:
    listed = summary["files"]
    if not listed:
        return "<p>No call names a file.</p>\n"
    most = max(map(moved, listed))
    rows = []
    for n, file in enumerate(listed):
        is_plotted = n < len(summary["plotted"]) and summary["plotted"][n]["accesses"]
        name = f"<code>{text(file['shown'])}</code>"
        followed = file["consecutive"] + file["forward"] + file["backward"]
        cells = [
            count_text(file["calls"]), bytes_text(file["read_bytes"]), bytes_text(file["written_bytes"]),
            seconds_text(file["time_s"]), percent(file["consecutive"] / followed) if followed else "",
        ]  # fmt: skip
        rows.append(
            f'<th scope="row" class="path">{f"<a href=#file-{n}>{name}</a>" if is_plotted else name}</th>'
            f"<td>{text(file['layer'])}</td>"
            + "".join(map(number, cells))
            + bar((share_of(file["read_bytes"], most), "read"), (share_of(file["written_bytes"], most), "written"))
        )
    caption = f"The {len(listed)} of {count_text(summary['file_count'])} files with the most bytes"
    if len(listed) == summary["file_count"]:
        caption = "Files, the most bytes first"
    heads = ["file", "layer", "#calls", "#read", "#written", "#time", "#in order", ""]
    told = (
        "<p>Each file is counted in the lowest layer that moved bytes of it. In order: accesses that begin where the "
        "process's access before ended.</p>\n"
    )
    return told + table(caption, heads, rows, [7])


def counters(summary: Row) -> str:
    """Files whose single calls the trace does not have: of a Darshan log without DXT."""
    listed = sorted(summary["counters"], key=lambda row: (-moved(row), row["path"], row["layer"], row["rank"] or 0))
    most = max(map(moved, listed))
    rows = [
        f'<th scope="row" class="path"><code>{text(file["path"])}</code></th><td>{text(file["layer"])}</td>'
        + number("all" if file["rank"] is None else str(file["rank"]))
        + number(count_text(file["reads"]))
        + number(bytes_text(file["read_bytes"]))
        + number(count_text(file["writes"]))
        + number(bytes_text(file["written_bytes"]))
        + number(count_text(file["syncs"]))
        + bar((share_of(file["read_bytes"], most), "read"), (share_of(file["written_bytes"], most), "written"))
        for file in listed[:MOST_COUNTERS]
    ]
    caption = "Counters, the most bytes first"
    if len(listed) > MOST_COUNTERS:
        caption = f"The {MOST_COUNTERS} of {count_text(len(listed))} counters with the most bytes"
    heads = ["file", "layer", "#rank", "#reads", "#read", "#writes", "#written", "#syncs", ""]
    told = (
        "<p>The trace has these accesses as sums alone, without times and offsets: they are in no picture, and not in "
        "the other tables.</p>\n"
    )
    return told + table(caption, heads, rows, [8])


def grid(of: Row) -> dict[str, Any]:
    return {"columns": of["columns"], "rows": of["rows"], "cells": encoded(of["cells"])}


def drawn_data(summary: Row) -> dict[str, Any]:
    """What the scripts draw."""
    lines = [
        {"name": name, "processes": line["processes"]}
        for name, line in zip(line_names(summary), summary["lines"], strict=True)
    ]
    plotted = [
        {
            "time": [file["first_s"], max(file["last_s"], file["first_s"] + 1e-9)],
            **{key: of[key] for key in ("accesses", "end_bytes", "count", "bytes_per_row")},
            "name": name,
            "list": encoded(of["list"]),
            "read": grid(of["read"]),
            "written": grid(of["written"]),
        }
        for name, file, of in zip(file_names(summary), summary["files"], summary["plotted"], strict=False)
    ]
    heats = {name: {way: grid(summary[name][way]) for way in ("read", "written")} for name in ("by_line", "by_file")}
    return {
        "span_s": summary["span_s"], "layers": LAYERS, "used_layers": used_layers(summary), "lines": lines,
        "busy": grid(summary["busy"]), **heats, "plotted": plotted,
    }  # fmt: skip


def sections(numbers: Numbers) -> list[tuple[str, str, str]]:
    """Of each section: id, title, HTML."""
    summary = numbers.summary
    made = [("overview", "Overview", overview(numbers))]
    advice = findings.advice(numbers)
    if advice:
        made.append(("advice", "Advice", advice))
    if summary["layers"]:
        made.append(("timeline", "Timeline", timeline(summary)))
    if any(map(moved, summary["lines"])):
        made.append(("heat", "Heat map", heat(summary)))
        made.append(("offsets", "Offsets over time", offsets(summary)))
    if summary["layers"]:
        made.append(("sizes", "Sizes", sizes(summary)))
        made.append(("layers", "Layers and calls", layers(summary)))
        made.append(("files", "Files", files(summary)))
    if summary["counters"]:
        made.append(("counters", "Counters", counters(summary)))
    if numbers.inferred.document.get("streams"):
        made.append(("signatures", "Signatures", findings.signatures(numbers)))
    return made


def script_of(directory: Traversable) -> str:
    """The parts of the script as one function, in an order in which each finds what it uses at once."""
    parts = "\n".join((directory / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


def policy_hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def page(numbers: Numbers) -> str:
    """The whole page. It needs nothing else, and may load nothing: its policy allows only its own script."""
    here = resources.files("iosig.report")
    style = (here / "page.css").read_text(encoding="utf-8")
    script = script_of(here / "scripts")
    made = sections(numbers)
    title = f"I/O report: {', '.join(Path(trace).name or trace for trace in numbers.traces)}"
    links = "".join(f'<li><a href="#{name}">{text(label)}</a></li>\n' for name, label, _ in made)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{policy_hash(script)}'"
    body = "".join(section(name, label, inner) for name, label, inner in made)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{text(title)}</title>
<style>
{style}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header><h1>{text(title)}</h1></header>
<nav aria-label="Sections"><ul>
{links}</ul></nav>
<main id="content">
<noscript><p>The pictures need JavaScript. The tables have their numbers.</p></noscript>
{body}</main>
{data_script("data", drawn_data(numbers.summary))}<script>{script}</script>
</body>
</html>
"""
