"""`iosig import` of Darshan's logs: what DXT recorded, in every version, byte order and compression."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import iosig.trace
from conftest import Iosig
from darshan_logs import DarshanLog, Segment
from tracing import Tracing

NAMES = {11: "/data/a", 22: "/data/b"}
WRITES: list[Segment] = [(4096 * n, 4096, n * 1.0, n + 0.5) for n in range(4)]
READS: list[Segment] = [(4096 * n, 100, 10.0 + n, 10.25 + n) for n in (2, 0)]


def imported(tracing: Tracing, log: DarshanLog, name: str = "job.darshan") -> str:
    """Makes the log the trace whose rows tracing.rows() has; returns the notes."""
    path = tracing.directory / name
    path.write_bytes(log.encoded())
    tracing.trace = tracing.directory / f"trace.{next(tracing.numbers)}"
    return tracing.iosig("import", path, "-o", tracing.trace).stderr


@pytest.mark.parametrize(
    ("version", "order", "compression", "segments", "counters"),
    [
        ("3.00", ">", "zlib", 1, 2),
        ("3.10", "<", "zlib", 1, 3),
        ("3.20", "<", "bzip2", 1, 4),
        ("3.21", ">", "bzip2", 1, 4),
        ("3.41", "<", "zlib", 2, 4),
        ("3.41", ">", "none", 2, 4),
    ],
)  # fmt: skip
def test_every_version_order_and_compression_has_the_same_accesses(
    tracing: Tracing, version: str, order: str, compression: str, segments: int, counters: int
) -> None:
    log = DarshanLog(version, order, compression, processes=2, names=NAMES)
    log.add_segments("DXT_POSIX", segments, 11, 0, WRITES, READS, thread=2**47)
    log.add_segments("DXT_POSIX", segments, 22, 1, [], [(7, 5, 0.25, 0.5)], thread=2**47)
    log.add_counters("POSIX", counters, 11, 0, {1 if counters < 4 else 3: 2, 2 if counters < 4 else 4: 4})
    assert imported(tracing, log) == ""
    found = [
        (row.rank, row.call, row.path, row.offset, row.length, row.result, row.start_ns, row.end_ns)
        for row in tracing.rows()
    ]
    seconds = 10**9
    wanted = [
        *((0, "write", "/data/a", o, n, n, int(s * seconds), int(e * seconds)) for o, n, s, e in WRITES),
        *((0, "read", "/data/a", o, n, n, int(s * seconds), int(e * seconds)) for o, n, s, e in READS),
        (1, "read", "/data/b", 7, 5, 5, seconds // 4, seconds // 2),
    ]
    assert sorted(found) == sorted(wanted)
    info = json.loads(tracing.iosig("trace", "info", "--json", tracing.trace).stdout)
    assert [(each["host"], each["arguments"]) for each in info["processes"]] == [
        ("node7", ["/bin/solver", "input.txt"])
    ] * 2
    assert json.loads((tracing.trace / "manifest.json").read_text())["started_ns"] == 1_700_000_000 * seconds


def test_posix_accesses_are_below_the_mpi_access_of_their_rank_and_file(tracing: Tracing) -> None:
    log = DarshanLog(processes=2, names=NAMES)
    for rank in (0, 1):
        log.add_segments("DXT_MPIIO", 3, 11, rank, [(0, 8192, 1.0, 2.0)], [(0, 10, 5.0, 6.0)], thread=5)
    log.add_segments(
        "DXT_POSIX", 2, 11, 0, [(0, 4096, 1.25, 1.5), (4096, 4096, 1.5, 1.75)], [(0, 10, 7.0, 8.0)], thread=5
    )
    log.add_segments("DXT_POSIX", 2, 22, 0, [(0, 1, 1.25, 1.5)], [], thread=5)  # another file
    log.add_counters("MPI-IO", 3, 11, -1, {5: 2, 2: 2})  # collective writes, independent reads
    imported(tracing, log)
    rows = tracing.rows()
    above = {row.id: row for row in rows}
    assert [row.call for row in rows if row.layer == "mpi-io"] == ["MPI_File_write_all"] * 2 + ["MPI_File_read"] * 2
    found = [
        (row.path, row.offset, above[row.parent].call if row.parent in above else None)
        for row in rows
        if row.layer == "posix"
    ]
    wanted = [("/data/a", 0, "MPI_File_write_all"), ("/data/a", 4096, "MPI_File_write_all")]
    assert sorted(found, key=repr) == sorted([*wanted, ("/data/b", 0, None), ("/data/a", 0, None)], key=repr)
    assert all(above[row.parent].rank == row.rank for row in rows if row.parent in above)
    tracing.iosig("export", tracing.trace, "-o", tracing.directory / "job.csv")
    tracing.trace = tracing.directory / "again.trace"
    tracing.iosig("import", tracing.directory / "job.csv", "-o", tracing.trace)
    # Ranks tell processes without a pid apart.
    again = [(row.rank, row.call, row.path, row.offset, row.start_ns, row.end_ns) for row in tracing.rows()]
    assert again == [(row.rank, row.call, row.path, row.offset, row.start_ns, row.end_ns) for row in rows]


def test_accesses_that_dxt_dropped_are_lost_and_signatures_are_less_sure(tracing: Tracing) -> None:
    log = DarshanLog(names=NAMES)
    log.add_segments("DXT_POSIX", 2, 11, 0, [(4096 * n, 4096, n * 1.0, n + 0.5) for n in range(100)], [])
    log.add_counters("POSIX", 4, 11, 0, {3: 0, 4: 130})
    log.add_counters("POSIX", 4, 22, 0, {3: 20, 4: 0})
    assert "DXT did not keep 50 of 150 accesses that the counters have; on 1 files it has none" in imported(
        tracing, log
    )
    info = json.loads(tracing.iosig("trace", "info", "--json", tracing.trace).stdout)
    assert info["processes"][0]["lost_calls"] == 50
    told = tracing.iosig("infer", "--why", tracing.trace).stdout
    assert "sequential" in told and "the trace does not have every call" in told
    assert "nothing is known of the life of the data" in told and "nosync" not in told


def test_logs_of_one_job_merge(tracing: Tracing) -> None:
    for rank in range(3):
        log = DarshanLog(names=NAMES, started_s=1_700_000_000 + rank)
        log.add_segments("DXT_POSIX", 2, 11, 0, [(rank, 1, 0.5, 0.75)], [])
        (tracing.directory / f"{rank}.darshan").write_bytes(log.encoded())
    tracing.trace = tracing.directory / "all.trace"
    tracing.iosig("import", *sorted(tracing.directory.glob("*.darshan")), "-o", tracing.trace)
    assert [(row.offset, row.start_ns) for row in tracing.rows()] == [(rank, rank * 10**9) for rank in range(3)]


def test_damage_costs_what_is_behind_it(tracing: Tracing) -> None:
    log = DarshanLog(processes=2, names=NAMES)
    log.add_segments("DXT_POSIX", 2, 11, 0, WRITES, READS)
    log.add_segments("DXT_POSIX", 2, 22, 1, WRITES, READS)
    cut = tracing.directory / "cut.darshan"
    cut.write_bytes(log.encoded()[:-30])
    tracing.trace = tracing.directory / "cut.trace"
    told = tracing.iosig("import", cut, "-o", tracing.trace).stderr
    assert f"{cut}: byte {cut.stat().st_size}: the file is cut; expected 30 more bytes: " in told
    assert "segments of rank 1 on /data/b, and those after them, are missing" in told
    assert len([row for row in tracing.rows() if row.rank == 0]) == 6

    log = DarshanLog(names=NAMES)
    log.add_segments("DXT_POSIX", 2, 11, 0, [(0, 1, 2.0, 1.0), (5, -1, 1.0, 2.0), (9, 1, 1.0, 2.0)], [])
    log.add_segments("DXT_POSIX", 2, 11, 7, WRITES, [])
    log.add_counters("POSIX", 4, 11, 0, {3: 0, 4: -2147483648})
    told = imported(tracing, log)
    assert "an access from 2 s to 1 s by rank 0 on /data/a, which cannot be; left out" in told
    assert "an access of -1 bytes by rank 0 on /data/a" in told and "rank 7 of a job with 1 ranks" in told
    assert "POSIX: the record of /data/a has a counter of -2147483648, which overflowed; not used" in told
    assert [row.offset for row in tracing.rows()] == [9]


POSIX_4 = {3: 10, 4: 300, 8: 2, 14: 10 * 512, 15: 300 * 4096, 16: 5119, 17: 10 * 2**20 - 1, 18: 9, 19: 290, 20: 9}
POSIX_4 |= {21: 299, 25: 30, 26: 4096, 30: 10, 41: 300, 57: 4096, 58: 512, 61: 300, 62: 10}
"""10 reads of 512 bytes in order; 300 writes of 4096 bytes, 290 behind the one before and 9 further behind, up to
10 MB; 280 of the 310 offsets are multiples of 4096."""


def test_counters_alone_tell_sizes_shares_order_and_alignment_and_nothing_else(tracing: Tracing) -> None:
    log = DarshanLog(processes=2, names={**NAMES, 33: "/data/log"})
    log.add_counters("POSIX", 4, 11, 0, POSIX_4)
    log.add_counters("POSIX", 4, 22, -1, {4: 40, 15: 40 * 100, 17: 3999, 19: 30, 21: 35, 39: 40, 57: 100, 61: 40})
    log.add_counters("MPI-IO", 3, 22, -1, {5: 4, 15: 4000, 16: 0, 31: 4, 39: 1000, 43: 4})
    log.add_counters("STDIO", 2, 33, 1, {3: 8, 6: 800, 9: 799})
    path = tracing.directory / "job.darshan"
    path.write_bytes(log.encoded())
    said = tracing.iosig("import", path, "-o", tracing.trace)
    assert said.stdout == f"{tracing.trace}: 0 calls by 0 threads in 0 processes, on 0 paths\n" + (
        "counters alone, of files and processes: 4\n"
    )
    shown = tracing.iosig("trace", "info", tracing.trace).stdout
    assert re.search(r"^/data/a +posix +0 +10 +5 KB +300 +1.17 MB", shown, re.MULTILINE)
    assert re.search(r"^/data/b +mpi-io +all +4 +3.91 KB", shown, re.MULTILINE)
    [log_file] = json.loads(tracing.iosig("trace", "info", tracing.trace, "--files", "log", "--json").stdout)[
        "counters"
    ]
    assert (log_file["layer"], log_file["rank"], log_file["writes"]["bytes"]) == ("stdio", 1, 800)
    table = iosig.trace.open(tracing.trace).counters.to_pylist()
    assert [(row["path"], row["layer"], row["rank"], row["written_bytes"]) for row in table if row["rank"] == 1] == [
        ("/data/log", "stdio", 1, 800)
    ]
    told = tracing.iosig("infer", tracing.trace, "--json", "--all")
    assert "362 accesses have counters alone, without times and offsets" in told.stderr
    streams = {stream["glob"]: stream for stream in json.loads(told.stdout)["streams"]}
    one, shared, text = streams["/data/a"], streams["/data/b"], streams["/data/log"]
    assert one["signature"].split() == ["sequential", "size-per-IO(4KB)", "totalsize(10MB)", "read-share(3%)"]
    assert (one["reads"], one["writes"], one["written_bytes"]) == (10, 300, 300 * 4096)
    assert one["aligned_share"] == pytest.approx(280 / 310) and "multiples of 4KB" in " ".join(one["remarks"])
    assert "nothing is known of the life of the data" in " ".join(one["remarks"])
    # 30 of 38 or 39 follow each other, whichever of two ranks wrote.
    assert shared["order"] == "sequential" and (shared["sharing"], shared["processes"]) == ("N-1", 2)
    assert "size-per-IO(100B)" in shared["signature"] and "collective" not in shared["signature"]
    assert text["order"] is None and text["aligned_share"] is None and "order" in " ".join(text["remarks"])

    def rows(*query: str) -> list[dict[str, Any]]:
        return list(json.loads(tracing.iosig("query", *query, tracing.trace, "--json").stdout)["rows"])

    assert [(row["call"], row["calls"], row["read_bytes"] + row["written_bytes"]) for row in rows("calls")] == [
        ("MPI_File_write_all", 4, 4000), ("fwrite", 8, 800), ("read", 10, 5120), ("write", 340, 300 * 4096 + 4000)
    ]  # fmt: skip
    [order] = rows("pattern", "--files", "a")
    counted = {key: order[key] for key in ("calls", "consecutive", "forward", "backward", "first", "unknown")}
    assert counted == {"calls": 310, "consecutive": 299, "forward": 9, "backward": 0, "first": 2, "unknown": 0}
    assert rows("calls", "--by", "node") == []  # the log does not tell
    counters = tracing.trace / "counters"
    counters.write_bytes(counters.read_bytes().replace(b"5120", b"5121"))
    assert "counters:6: the number of lines or the checksum is wrong" in tracing.iosig(
        "infer", tracing.trace, check=3
    ).stderr  # fmt: skip


def test_logs_that_cannot_be_read_are_refused_with_their_place(iosig: Iosig, tmp_path: Path) -> None:
    counters_only = DarshanLog(names=NAMES)
    counters_only.add_counters("POSIX", 4, 11, 0, {3: 5})
    cases = [
        (DarshanLog(names=NAMES).encoded(), ": has neither DXT segments nor counters of reads and writes"),
        (b"3.50\0\0\0\0" + counters_only.encoded()[8:], ": byte 0: a log of version '3.50'; expected 3.00, "),
        (counters_only.encoded()[:600], ": byte 600: cut within the header of 1328 bytes"),
        (DarshanLog(processes=0).encoded(), ": byte 1328: a job of 0 processes; expected 1 or more"),
        (counters_only.encoded()[:1340], ": byte 1328: the job has "),
    ]
    log = tmp_path / "job.darshan"
    for content, told in cases:
        log.write_bytes(content)
        assert f"{log}{told}" in iosig("import", log, "-o", tmp_path / "job.trace", check=3).stderr
        assert not (tmp_path / "job.trace").exists() and not list(tmp_path.glob(".job.trace*"))


@pytest.mark.skipif(shutil.which("darshan-dxt-parser") is None, reason="a test that needs darshan-dxt-parser")
def test_darshans_own_parser_reads_the_same_of_these_logs(tracing: Tracing) -> None:
    log = DarshanLog(processes=2, names=NAMES)
    for rank in (0, 1):
        log.add_segments("DXT_MPIIO", 3, 11, rank, WRITES, READS, thread=5)
        log.add_segments("DXT_POSIX", 2, 22, rank, READS, WRITES, thread=5)
    imported(tracing, log)
    told = subprocess.run(
        ["darshan-dxt-parser", tracing.directory / "job.darshan"], capture_output=True, text=True, check=True
    ).stdout
    lines = [line.split() for line in told.splitlines() if line.split()[:1] in (["X_POSIX"], ["X_MPIIO"])]
    wanted = sorted((int(f[1]), f[2], int(f[4]), int(f[5]), float(f[6]), float(f[7])) for f in lines)
    assert wanted == sorted(
        (
            row.rank,
            "write" if "write" in row.call else "read",
            row.offset,
            row.length,
            row.start_ns / 1e9,
            (row.end_ns or 0) / 1e9,
        )
        for row in tracing.rows()
    )
