"""`iosig import` of Recorder's directories: the calls of each rank, in every layout."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from recorder_logs import Rank, RecorderLog
from tracing import Tracing

FILE = "/data/a"
SHARED = Rank(
    signatures=[
        ("open", 0, f"{FILE} {os.O_RDWR} 384 "),
        ("pwrite", 0, f"{FILE} %p 1000 4096*r+8 "),
        ("lseek", 0, f"{FILE} 100 0 "),
        ("read", 0, f"{FILE} %p 512 "),
        ("close", 0, f"{FILE} "),
        ("umask", 0, "18 "),
        ("MPI_File_open", 0, "comm /data/b 5 %p 0-0 "),
        ("MPI_File_write_at_all", 0, "0-0 4096*r+0 %p 3 MPI_DOUBLE MPI_STATUS_IGNORE "),
        ("pwrite", 1, "/data/b %p 24 0 "),
    ],
    rules={-1: [(5, 1), (0, 1), (1, 1), (-2, 2), (4, 1), (6, 1), (7, 1), (8, 1)], -2: [(2, 1), (3, 3)]},
    times=[(10 * n, 10 * n + 5) for n in range(13)] + [(130, 150), (135, 140)],
)
LAYOUTS: dict[str, dict[str, Any]] = {
    "files": {},
    "shared grammars, compressed times": {"is_shared": True, "has_compressed_times": True},
    "recorder.dat, long function numbers": {"function_bytes": 4},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_has_the_same_calls(tracing: Tracing, layout: str) -> None:
    log = dataclasses.replace(RecorderLog([SHARED, SHARED]), **LAYOUTS[layout])
    source = tracing.directory / "recorder"
    if "dat" in layout:
        source.mkdir()
        (source / "recorder.dat").write_bytes(log.encoded())
    else:
        log.write(source)
    said = tracing.iosig("import", source, "-o", tracing.trace, "--json")
    document = json.loads(said.stdout)
    assert document["left_out"] == [{"reason": "that are no calls on files, or that IOSIG does not know", "calls": 2}]
    remarks = " ".join(document["remarks"])
    assert "Recorder keeps no results: 18 reads and writes" in remarks
    assert "when rank 0 began alone" in remarks and "the offsets of 12 calls follow" in remarks
    rows = tracing.rows()
    calls = {each.id: each for each in rows}
    for rank in (0, 1):
        own = [row for row in rows if row.rank == rank]
        found = [(row.call, row.path, row.offset, row.length, row.result) for row in own]
        reads = [("lseek", FILE, 100, 0, 100), *(("read", FILE, 100 + 512 * n, 512, 512) for n in range(3))]
        assert found == [
            ("open", FILE, None, os.O_RDWR, 0),
            ("pwrite", FILE, 4096 * rank + 8, 1000, 1000),
            *reads,
            *reads,
            ("close", FILE, None, None, 0),
            ("MPI_File_open", "/data/b", None, None, 0),
            ("MPI_File_write_at_all", "/data/b", 4096 * rank, 24, 24),  # 3 doubles
            ("pwrite", "/data/b", 0, 24, 24),
        ]
        # The first call, umask, is left out; times count from the second.
        assert [row.start_ns // 1000 for row in own] == [*range(0, 130, 10), 125]
        assert calls[own[-1].parent].call == "MPI_File_write_at_all"
        assert own[-2].end_ns == own[-2].start_ns + 20_000


def test_ranks_that_started_at_different_times_are_aligned_by_what_they_did_together(tracing: Tracing) -> None:
    """Recorder keeps the start of rank 0 alone: the times of rank 1, which began 7000 ticks later, are too early."""
    signatures = [
        ("MPI_File_open", 0, "comm /data/b 5 %p 0-0 "),
        ("pwrite", 0, "/data/b %p 24 0 "),
    ]
    rules = {-1: [(0, 1), (1, 1)]}
    # By the clock of rank 0: both are in the open from 8000, rank 0 since 1000, until 8100; then each writes.
    ranks = [
        Rank(signatures, rules, [(1000, 8100), (8200, 8300)]),
        Rank(signatures, rules, [(8000 - 7000, 8100 - 7000), (8150 - 7000, 8250 - 7000)]),
    ]
    source = RecorderLog(ranks).write(tracing.directory / "recorder")
    tracing.iosig("import", source, "-o", tracing.trace)
    assert (
        "the clock of 'rank 1' was 7 ms behind that of 'rank 0'" in tracing.iosig("trace", "info", tracing.trace).stderr
    )
    found = {(row.rank, row.call): row.start_ns for row in tracing.rows()}
    assert found == {
        (0, "MPI_File_open"): 0, (1, "MPI_File_open"): 7_000_000,
        (1, "pwrite"): 7_150_000, (0, "pwrite"): 7_200_000,
    }  # fmt: skip


def test_what_is_cut_or_cannot_be_is_said_with_file_and_place(tracing: Tracing) -> None:
    def source(number: int, log: RecorderLog) -> Path:
        return log.write(tracing.directory / f"log{number}")

    def refused(path: Path) -> str:
        return tracing.iosig("import", path, "-o", tracing.directory / "none", check=3).stderr

    cut = source(0, RecorderLog([SHARED, SHARED]))
    times = (cut / "recorder.ts").read_bytes()
    (cut / "recorder.ts").write_bytes(times[:-24])
    told = tracing.iosig("import", cut, "-o", tracing.trace).stderr
    assert "3 of 15 calls of rank 1 have no times, and are missing" in told and "recorder.ts: cut at byte" in told
    endless = source(1, RecorderLog([dataclasses.replace(SHARED, rules={-1: [(-2, 1)], -2: [(-1, 1)]})]))
    assert "a rule contains itself" in refused(endless)
    # 2**62 times nothing costs no time.
    idle = {-1: [(-2, 2**31 - 1), (0, 1)], -2: [(-3, 2**31 - 1)], -3: []}
    empty = source(2, RecorderLog([dataclasses.replace(SHARED, rules=idle, times=[(1, 2)])]))
    tracing.iosig("import", empty, "-o", tracing.directory / "one.trace")
    (endless / "VERSION").write_text("2.3.3")
    assert "/VERSION: a log of Recorder '2.3.3'; expected version 3" in refused(endless)
    no_ranks = source(3, RecorderLog([]))
    assert "/recorder.mt: byte 0: 0 ranks" in refused(no_ranks)
    damaged = source(4, RecorderLog([SHARED]))
    (damaged / "0.cst").write_bytes((damaged / "0.cst").read_bytes()[:-9])
    assert "/0.cst: byte " in (told := refused(damaged)) and "cut; expected" in told
