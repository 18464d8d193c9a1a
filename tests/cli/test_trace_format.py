"""Traces as docs/formats/trace.md describes them: the page's example, an independent reader (tests/trace_reader.py) and
iosig agree; so do that reader and the packer, for calls of all kinds."""

from __future__ import annotations

import csv
import random
import re
import struct
import subprocess
from pathlib import Path

import pytest

import trace_reader
from conftest import BUILD, Iosig
from trace_reader import NONE, Call, crc32c

PAGE = Path(__file__).parent.parent.parent / "docs" / "formats" / "trace.md"
SLOT = struct.Struct("<QQqqqIIIiIHH")


def slot(call: Call, is_checked: bool = False) -> bytes:
    plain = SLOT.pack(
        call.start, call.end, call.offset, call.length, call.result, call.id, call.parent, call.file, call.fd,
        call.path, call.call, 0,
    )  # fmt: skip
    words = struct.unpack("<8Q", plain)
    flags = trace_reader.checked_flags(words, call.flags) if is_checked else call.flags
    return plain[:62] + struct.pack("<H", flags)


def chunk(kind: int, payload: bytes) -> bytes:
    head = struct.pack("<4sHHI", b"CHNK", kind, 0, len(payload))
    return head + struct.pack("<I", crc32c(head + payload)) + payload + bytes(-len(payload) % 8)


def make_part(path: Path, chunks: bytes, slots: bytes = b"", version: int = 1, closed: int = 1) -> None:
    head = struct.pack("<8sIIQii", b"IOSIGTR1", version, 0, 9, 42, 1)
    head += struct.pack("<QQQQ64sI", 1000, 1000, 1_700_000_000_000_001_000, 7, b"node1", 0)
    head += struct.pack("<I", crc32c(head))
    head += struct.pack("<IiQQQII", 64, 77, 2000, 2000, 0, closed, 0)
    front = head.ljust(4096, b"\0") + slots
    path.write_bytes(front.ljust(40960, b"\0") + chunks)


def section_of(heading: str) -> str:
    return PAGE.read_text().split(f"\n{heading}\n")[1].split("\n## ")[0]


def bytes_of(section: str) -> bytes:
    """The bytes of the code that a section has."""
    lines = [re.match(r"((?:[0-9a-f]{2} ?)+)", line) for line in section.split("```")[1].splitlines()]
    return b"".join(bytes.fromhex(line[1]) for line in lines if line)


def page_example() -> tuple[list[dict[str, int]], bytes]:
    """The calls in the example's table, and its bytes."""
    section = section_of("### Example")
    table = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")
    ]
    calls = [dict(zip(table[0], map(int, row), strict=True)) for row in table[2:]]
    return calls, bytes_of(section)


def test_page_example(iosig: Iosig, tmp_path: Path) -> None:
    expected, example = page_example()
    assert len(expected) == 4
    trace = tmp_path / "trace"
    trace.mkdir()
    make_part(trace / "a.part", example)
    read = trace_reader.read_part(trace / "a.part").calls
    assert [{key: getattr(call, key) for key in expected[0]} for call in read] == expected
    assert {(call.call, call.tid, call.file, call.fd) for call in read} == {(5, 77, 1, 3)}
    rows = list(csv.DictReader(iosig("export", "--format", "csv", trace).stdout.splitlines()))
    for row, call in zip(rows, expected, strict=True):
        call = call | {"start_ns": call["start"] - 1000, "end_ns": call["end"] - 1000}
        assert {key: int(row[key]) for key in ("id", "start_ns", "end_ns", "offset", "length", "result")} == {
            key: call[key] for key in ("id", "start_ns", "end_ns", "offset", "length", "result")
        }
        assert (row["call"], row["layer"], row["tid"], row["fd"]) == ("pread", "posix", "77", "3")


def test_page_example_of_sums() -> None:
    calls = [Call(5, 0, 3, 1, 0, n + 1, 0, 200 * n, 200 * n + 120, 4096, 4096, 4096 * n, 77) for n in range(100)]
    calls[-1].end += 30
    assert trace_reader.read_sums(bytes_of(section_of("## Sums"))) == trace_reader.sums_of(calls)


def streams(chance: random.Random) -> list[Call]:
    """Calls of one thread: several files, nested calls, opens and closes, seeks, some results that are errors."""
    calls: list[Call] = []
    now, id_ = 10**12, 0
    style = chance.randrange(5)
    files = chance.randrange(1, 6)
    for n in range(chance.randrange(1, 560)):
        file = chance.randrange(files) + 1 if style < 4 else n // 3 + 1
        size = chance.choice((64, 4096)) if style % 2 else 4096
        call = Call(call=3, file=file, fd=file + 2, length=size, result=size, flags=1, tid=77)
        if style == 0:
            call.offset = n * 4096
        elif style == 1:
            call.offset = chance.randrange(1 << 40)
        elif style == 2:
            call.call, call.offset = (11, chance.randrange(1000) * 512) if n % 2 else (4, n * 64)
            call.result = call.offset if n % 2 else size
        elif style == 3:
            call.offset, call.result = n * 100, chance.choice((100, 100, -5, 0))
        else:
            call.call = (1, 3, 2)[n % 3]
            call.offset, call.length = (0, 1000) if n % 3 == 1 else (NONE, NONE)
            call.path = file if n % 3 == 0 else 0
            call.result = (3, 1000, 0)[n % 3]
        id_ += 1
        now += 26 * chance.randrange(1, 20)
        call.id, call.start = id_, now
        children: list[Call] = []
        if style == 3 and n % 4 == 0:
            for _ in range(chance.randrange(1, 4)):
                id_ += 1
                now += 26 * chance.randrange(1, 9)
                child = Call(5, 0, 3, file, 0, id_, call.id, now, now + 260, 512, 512, n * 512, tid=77)
                now += 260
                children.append(child)
        now += 26 * chance.randrange(1, 20)
        call.end = now
        calls += [call, *children] if chance.random() < 0.9 else [*children, call]
    return calls[:576]


def wild(chance: random.Random) -> list[Call]:
    def number(bits: int) -> int:
        return chance.choice((0, 1, (1 << bits) - 1, 1 << (bits - 1), chance.getrandbits(bits), chance.getrandbits(4)))

    def signed(bits: int) -> int:
        return trace_reader.signed(number(bits), bits)

    return [
        Call(number(16), number(16) & 3, signed(32), number(32), number(32), number(32), number(32), number(64),
             number(64), signed(64), signed(64), signed(64), 77)
        for _ in range(chance.randrange(1, 100))
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_packed_calls_are_read_back(seed: int) -> None:
    chance = random.Random(seed)
    calls = wild(chance) if seed % 4 == 3 else streams(chance)
    packed = subprocess.run(
        [BUILD / "bin" / "pack_calls"], input=b"".join(map(slot, calls)), capture_output=True, check=True
    ).stdout
    magic, kind, _, size, checksum = struct.unpack_from("<4sHHII", packed)
    assert (magic, kind) == (b"CHNK", 3)
    assert checksum == crc32c(packed[:12] + packed[16 : 16 + size])
    assert trace_reader.read_block(packed[16 : 16 + size]) == calls
    rest = packed[16 + (size + 7) // 8 * 8 :]
    sums = None
    if rest:
        assert rest[:6] == b"CHNK\4\0"
        sums = trace_reader.read_sums(rest[16 : 16 + int.from_bytes(rest[8:12], "little")])
    assert sums == trace_reader.sums_of(calls)


def test_info_and_export_say_what_is_missing(iosig: Iosig, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.mkdir()
    _, example = page_example()
    flying = Call(call=4, fd=3, file=1, id=5, start=3000, length=10, result=0, offset=0)
    name = chunk(2, struct.pack("<I", 1) + b"/data/a\nb")
    opened = Call(call=1, fd=3, file=1, path=1, id=6, start=900, end=950, length=0, result=3, offset=NONE)
    make_part(
        trace / "a.part", name + example + chunk(1, b"rank=2\0")[:20], slot(flying) + slot(opened, True), closed=0
    )
    make_part(trace / "b.part", b"", version=3)
    info = iosig.json("trace", "info", trace)
    assert info["schema"] == "iosig.trace.info/1"
    assert info["layers"]["posix"]["calls"] == 6
    assert info["layers"]["posix"]["in_flight"] == 1
    assert info["layers"]["posix"]["read_bytes"] == 3 * 4096 + 100
    assert [part["state"] for part in info["parts"]] == ["open", "unreadable"]
    assert info["files"][0]["path"] == "/data/a\nb"
    done = iosig("export", "--format", "csv", trace)
    assert "version 3 of the trace format" in done.stderr
    assert "within a" in done.stderr
    rows = list(csv.DictReader(done.stdout.splitlines(keepends=True)))
    assert [row["path"] for row in rows] == ["/data/a\nb"] * 6
    assert rows[0]["call"] == "open"
    assert (rows[-1]["end_ns"], rows[-1]["result"]) == ("", "")
    assert iosig("trace", "info", trace).stdout
    only = iosig("export", trace, "--files", "/other/*").stdout
    assert len(only.splitlines()) == 1


def test_what_is_no_trace_is_refused(iosig: Iosig, tmp_path: Path) -> None:
    assert "is no trace" in iosig("export", tmp_path, check=3).stderr
    assert iosig("trace", "info", tmp_path / "missing", check=4).stderr
    assert "expected one of mpi-io, stdio, posix" in iosig("export", tmp_path, "--layer", "nfs", check=2).stderr
