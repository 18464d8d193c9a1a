"""What `iosig infer` and `iosig advise` say, with links to the accesses behind it."""

from __future__ import annotations

import shlex
from typing import Any

from iosig.report.markup import counted, percent, seconds_text, text
from iosig.report.numbers import Numbers

MOST_STREAMS = 60
MOST_LINKS = 8


def plotted_files(numbers: Numbers) -> dict[str, int]:
    """The numbers of the plotted files by path, as JSON documents of the command spell it."""
    pairs = zip(numbers.summary["files"], numbers.summary["plotted"], strict=False)
    return {file["bytes"].decode(errors="replace"): n for n, (file, of) in enumerate(pairs) if of["accesses"]}


def access_links(paths: list[str], plotted: dict[str, int], since: float = -1, until: float = -1) -> str:
    """Links to the pictures of those of the files that have one; "" if none has."""
    shown = [path for path in paths if path in plotted]
    ends = f' data-from="{since:.9g}" data-to="{until:.9g}"' if until > since >= 0 else ""
    links = [
        f'<a href="#file-{plotted[path]}"{ends}>{text(path.rsplit("/", 1)[-1] or path)}</a>'
        for path in shown[:MOST_LINKS]
    ]
    if len(paths) > len(links) and links:
        links.append(f"{len(paths) - len(links)} more")
    return ", ".join(links)


def command_of(command: str) -> str:
    return f"<pre>{text(command)}</pre>\n"


def signature_of(stream: dict[str, Any], plotted: dict[str, int], traces: list[str]) -> str:
    links = access_links(stream["paths"], plotted)
    reasons = "".join(
        f"<li><code>{text(word['word'])}</code>, confidence {percent(word['confidence'])}: {text(word['why'])}</li>\n"
        for word in stream["words"]
    )
    reasons += "".join(f"<li>{text(remark)}</li>\n" for remark in stream.get("remarks", []))
    signature = stream["signature"] or "no word is sure enough"
    files = counted(len(stream["paths"]), "file")
    accesses = f"<p>Accesses: {links}</p>\n" if links else ""
    query = ["iosig", "export", *traces[:1], "--files", stream["paths"][0]] if stream["paths"] else []
    ask = "" if links or not query or len(traces) > 1 else "<p>Its accesses:</p>\n" + command_of(shlex.join(query))
    return (
        f'<article class="finding"><h3><code>{text(stream["glob"])}</code></h3>\n'
        f"<p><code>{text(signature)}</code> <span class=soft>({files})</span></p>\n{accesses}{ask}"
        f"<details><summary>Evidence</summary><ul>\n{reasons}</ul></details></article>\n"
    )


def signatures(numbers: Numbers) -> str:
    """The inferred signatures, those with the most bytes first."""
    streams = sorted(
        numbers.inferred.document["streams"], key=lambda each: -(each["read_bytes"] + each["written_bytes"])
    )
    plotted = plotted_files(numbers)
    told = "<p>The signature of each file that was used, as <code>iosig infer</code> finds it.</p>\n"
    more = len(streams) - MOST_STREAMS
    rest = f"<p>{more} more are left out here; <code>iosig infer</code> has all.</p>\n" if more > 0 else ""
    return told + "".join(signature_of(each, plotted, numbers.traces) for each in streams[:MOST_STREAMS]) + rest


def advised(each: dict[str, Any], plotted: dict[str, int]) -> str:
    """One piece of advice of `iosig advise` (docs/formats/advice.md)."""
    behind, help_, gain = each["accesses"], each["help"], each["gain"]
    links = access_links(each["paths"], plotted)
    asked = command_of(behind["command"]) if behind["command"] else ""
    lost = f"{seconds_text(each['time_s'])}, {percent(each['time_share'])} of the time in calls"
    gained = f"{seconds_text(gain['seconds'])}; {gain['why']}" if gain["seconds"] is not None else gain["why"]
    caution = f"<p>But: {text(help_['caution'])}</p>\n" if help_["caution"] else ""
    return (
        f'<article class="finding"><h3>{text(each["topic"])}: <code>{text(each["stream"] or "")}</code></h3>\n'
        f"<p>{text(each['what'])}</p>\n<p>Time: {text(lost)}</p>\n<p>Help: {text(help_['text'])}</p>\n"
        + (command_of(help_["command"]) if help_["command"] else "")
        + caution
        + f"<p>Predicted gain: {text(gained)}</p>\n<p>{counted(behind['count'], 'call')} behind it"
        + (f": {links}" if links else "")
        + f"</p>\n{asked}</article>\n"
    )


def advice(numbers: Numbers) -> str:
    """Advice, the greatest gain first as `iosig advise` orders it. "": the command has none, or does not exist."""
    found = numbers.advice.document.get("advice", [])
    plotted = plotted_files(numbers)
    return "".join(advised(each, plotted) for each in found[:MOST_STREAMS])
