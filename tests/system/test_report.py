"""`iosig report`: the page against the accesses that `iosig export` prints, hostile names, and a real browser."""

from __future__ import annotations

import base64
import html.parser
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from conftest import BUILD, Iosig
from darshan_logs import DarshanLog
from tracing import Tracing

pytestmark = pytest.mark.skipif(
    not (BUILD / "bin" / "iosig-report").exists(), reason="needs the Python package (make python)"
)
PROGRAM = """
import os
for rank in range(2):
    if os.fork() == 0:
        shared = os.open('shared', os.O_RDWR | os.O_CREAT)
        for step in range(1200):
            os.pwrite(shared, bytes(100), 100 * (2 * step + rank))
        few = os.open(f'few.{rank}', os.O_RDWR | os.O_CREAT)
        for step in range(20):
            os.pwrite(few, bytes(5000), 8192 * step)
        for step in range(3):
            os.pread(few, 4096, 4096 * step)
        os._exit(0)
for rank in range(2):
    os.wait()
"""
VOID = {"meta", "input", "br"}


class Page(html.parser.HTMLParser):
    """A page's elements: each end tag must fit."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def counts(self) -> Counter[str]:
        return Counter(tag for tag, _ in self.elements)

    def attributes(self, name: str) -> list[str]:
        return [value for _, attributes in self.elements if (value := attributes.get(name)) is not None]

    def data(self) -> Any:
        return json.loads(next(text for text in self.texts["script"] if text.startswith("{")))


def page_of(iosig: Iosig, *arguments: object) -> Page:
    return Page(iosig("report", *arguments, "-o", "-").stdout)


def cells(grid: dict[str, Any]) -> dict[tuple[int, int], int]:
    """Amounts by column and row (core/iosig/observe/grid.h)."""
    found: dict[tuple[int, int], int] = {}
    numbers, value, shift = [], 0, 0
    for byte in base64.b64decode(grid["cells"]):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(value)
            value = shift = 0
    at = 0
    for gap, amount in zip(numbers[::2], numbers[1::2], strict=True):
        at += gap
        found[at % grid["columns"], at // grid["columns"]] = amount
        at += 1
    return found


def test_the_pictures_have_every_access(tracing: Tracing) -> None:
    tracing(sys.executable, "-S", "-E", "-c", PROGRAM)
    rows = [
        row for row in tracing.rows() if row.call in ("pwrite", "pread") and row.path.startswith(str(tracing.directory))
    ]
    page = page_of(tracing.iosig, tracing.trace, "--files", f"{tracing.directory}/*")
    data = page.data()
    plotted = {file["name"]: file for file in data["plotted"]}
    for name in ("few.0", "few.1"):
        wanted = [row for row in rows if row.path.endswith(name)]
        columns = struct.unpack(f"<{6 * 23}d", base64.b64decode(plotted[name]["list"]))
        start, end, offset, length, _, is_write = (columns[23 * n : 23 * (n + 1)] for n in range(6))
        assert list(offset) == [row.offset for row in wanted]
        assert list(length) == [row.result for row in wanted]
        # The length of a tick may be measured again each time that a trace is opened.
        assert list(start) == pytest.approx([row.start_ns / 1e9 for row in wanted], abs=1e-6)
        assert list(end) == pytest.approx([(row.end_ns or 0) / 1e9 for row in wanted], abs=1e-6)
        assert [bool(each) for each in is_write] == [row.call == "pwrite" for row in wanted]
    shared = plotted["shared"]
    assert (shared["count"], shared["accesses"], shared["end_bytes"]) == (0, 2400, 240_000)
    by_row = Counter[int]()
    for (_, row), amount in cells(shared["written"]).items():
        by_row[row] += amount
    per_row = shared["bytes_per_row"]
    assert by_row == {row: min(per_row, 240_000 - row * per_row) for row in range(-(-240_000 // per_row))}
    assert sum(cells(data["by_line"]["written"]).values()) == 240_000 + 2 * 20 * 5000
    assert sum(cells(data["by_line"]["read"]).values()) == 2 * 3 * 4096
    busy = sum(amount for (_, row), amount in cells(data["busy"]).items() if row % 3 == 2)
    called = sum(row.end_ns - row.start_ns for row in tracing.rows() if row.end_ns and row.layer == "posix"
                 and row.call != "inherited" and row.path.startswith(f"{tracing.directory}/"))  # fmt: skip
    assert busy == pytest.approx(called, rel=1e-5)  # one thread each


def test_the_page_stands_alone_and_its_links_lead_somewhere(tracing: Tracing, tmp_path: Path) -> None:
    (tracing.directory / "in").write_bytes(bytes(3 << 20))
    tracing("dd", "if=in", "of=out", "bs=64K")
    written = tmp_path / "job.html"
    assert tracing.iosig("report", tracing.trace, "-o", written).stdout == f"{written}\n"
    text = written.read_text(encoding="utf-8")
    page = Page(text)
    assert "http://" not in text and "https://" not in text
    assert page.attributes("src") == []
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    assert set(page.attributes("href")) <= {f"#{each}" for each in ids}
    counts = page.counts()
    assert counts["h1"] == 1 and counts["caption"] == counts["table"] > 0
    assert all(attributes.get("aria-label") for tag, attributes in page.elements if attributes.get("role"))
    signatures = " ".join(page.texts["code"])
    assert "persist sequential nosync size-per-IO(64KB) totalsize(3MB)" in signatures
    assert f"{tracing.directory}/out" in signatures
    assert [each.name for each in tmp_path.iterdir() if "draft" in each.name] == []


def test_names_of_files_are_text(tracing: Tracing) -> None:
    names = [
        b"<script>alert(1)<",
        b"\"quoted' &amp; <b>",
        b"new\nline",
        b"no utf-8 \xff",
        "\u202ereversed\u2028".encode(),
    ]
    for directory in (b"a<", b"a"):
        (tracing.directory / os.fsdecode(directory)).mkdir()
    names.append(b"a</script><img src=x>")
    code = f"for name in {names!r}:\n  f = open(name, 'wb', 0)\n  for n in range(3): f.write(b'x' * 100)\n"
    tracing(sys.executable, "-S", "-E", "-c", code)
    page = page_of(tracing.iosig, tracing.trace)
    counts = page.counts()
    assert (counts["script"], counts["img"], counts["b"]) == (2, 0, 0)
    shown = page.texts["code"]
    for name in ("<script>alert(1)<", "\"quoted' &amp; <b>", "new\\x0aline", "no utf-8 \\xff", "\\u202ereversed\\u2028",
                 "a</script><img src=x>"):  # fmt: skip
        assert f"{tracing.directory}/{name}" in shown


def test_a_trace_without_calls_says_so(tracing: Tracing) -> None:
    tracing("true", options=("--files", "/nowhere/*"))
    page = page_of(tracing.iosig, tracing.trace)
    assert "There are no calls in the trace." in page.texts["li"]
    assert page.counts()["figure"] == 0


def test_what_is_no_trace_is_refused_and_nothing_is_written(iosig: Iosig, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    page = tmp_path / "page.html"
    page.write_text("older")
    assert "empty" in iosig("report", tmp_path / "empty", "-o", page, check=3).stderr
    iosig("report", tmp_path / "missing", "-o", page, check=4)
    iosig("report", check=2)
    iosig("report", tmp_path / "empty", "-o", tmp_path / "gone" / "page.html", check=3)
    assert page.read_text() == "older"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["empty", "home", "page.html"]


def test_counters_of_files_without_calls_have_a_table(tracing: Tracing, tmp_path: Path) -> None:
    log = DarshanLog(names={11: "/data/<a>", 22: "/data/b"})
    log.add_counters("POSIX", 4, 11, 0, {3: 0, 4: 130})
    log.add_counters("POSIX", 4, 22, -1, {3: 20, 4: 7})
    (tmp_path / "job.darshan").write_bytes(log.encoded())
    tracing.iosig("import", tmp_path / "job.darshan", "-o", tmp_path / "job.trace")
    page = page_of(tracing.iosig, tmp_path / "job.trace")
    assert "counters" in page.attributes("id")
    assert {"/data/<a>", "/data/b"} <= set(page.texts["code"])
    cells = page.texts["td"]
    assert {"130", "20", "7", "all"} <= set(cells)
    only = page_of(tracing.iosig, tmp_path / "job.trace", "--files", "b")
    assert "/data/b" in only.texts["code"] and "/data/<a>" not in only.texts["code"]


def in_chromium(tracing: Tracing, tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'chromium'}",
         "--enable-logging=stderr", "--virtual-time-budget=2000", "--window-size=1200,4000", *options],
        capture_output=True, text=True, timeout=100, env=tracing.iosig.env,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr, done.stderr
    return done


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_a_browser_draws_it_without_an_error(tracing: Tracing, tmp_path: Path) -> None:
    tracing(sys.executable, "-S", "-E", "-c", PROGRAM)
    written = tmp_path / "job.html"
    tracing.iosig("report", tracing.trace, "-o", written)
    done = in_chromium(tracing, tmp_path, "--dump-dom", written.as_uri())
    assert re.search(r'<html[^>]* data-drawn-ms="\d+"', done.stdout)
    drawn = re.findall(r'<canvas width="(\d+)" height="(\d+)"', done.stdout)
    assert len(drawn) >= 4 and all(int(width) > 100 and int(height) > 60 for width, height in drawn)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_the_timeline_has_the_colours_of_layers_or_of_processes(tracing: Tracing, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    tracing(sys.executable, "-S", "-E", "-c", PROGRAM)
    text = tracing.iosig("report", tracing.trace, "-o", "-").stdout
    layers, lines = (f'<input type="radio" name="timeline-colours" value="{kind}"' for kind in ("layer", "line"))
    assert f"{layers} checked>" in text and f"{lines}>" in text
    by_line = text.replace(f"{layers} checked>", f"{layers}>").replace(f"{lines}>", f"{lines} checked>")
    greens = {}
    for kind, page in (("layer", text), ("line", by_line)):
        (tmp_path / "page.html").write_text(page, encoding="utf-8")
        shot = tmp_path / f"{kind}.png"
        in_chromium(tracing, tmp_path, f"--screenshot={shot}", (tmp_path / "page.html").as_uri())
        colours = image.open(shot).convert("RGB").convert("HSV").getcolors(1 << 24)
        # Of 256, the hue of the second process (137.508 degrees) is 98; no layer's is near.
        greens[kind] = sum(count for count, (hue, saturation, _) in colours if abs(hue - 98) <= 3 and saturation > 60)
    assert greens["layer"] == 0 and greens["line"] > 100
