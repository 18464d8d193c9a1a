"""`iosig query` says of traced programs what a plain computation over `iosig export` says."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from test_trace import MPI

from conftest import Iosig
from tracing import Row, Tracing

READS = {"read", "pread", "readv", "preadv", "fread"}
WRITES = {"write", "pwrite", "writev", "pwritev", "fwrite", "fprintf", "sendfile", "copy_file_range", "splice"}

# With the time stamp counter, each run of iosig measures anew how long a tick is if the trace is shorter than a second,
# and times differ in the fifth digit from those of another run.
EXACT = ("env", "-u", "IOSIG_TRACE_CLOCK")

# Four threads that write and read files of their own and one that they share; each also writes a stream, whose buffer
# is written below it.
PROGRAM = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int shared;
static void *work(void *number) {
  const int own = (int)(intptr_t)number;
  char name[20], bytes[3000] = {0};
  snprintf(name, sizeof name, "own.%d", own);
  const int fd = open(name, O_RDWR | O_CREAT, 0666);
  snprintf(name, sizeof name, "stream.%d", own);
  FILE *const stream = fopen(name, "w");
  unsigned random = own;
  for (int n = 0; n < 800; ++n) {
    random = random * 1664525 + 1013904223;
    if (pwrite(shared, bytes, 1 + random % 3000, (own * 800 + n) * 4096L) < 0) abort();
    if (pwrite(fd, bytes, 100, n % 10 == 0 ? random % 100000 : n * 100L) < 0) abort();
    if (n % 3 == 0 && pread(fd, bytes, 50, n * 20L) < 0) abort();
    if (fwrite(bytes, 1, 700, stream) != 700) abort();
    if (n % 100 == 0) fsync(fd);
    if (n % 50 == 0) (void)!write(-1, bytes, 1);
  }
  fclose(stream);
  close(fd);
  return 0;
}
int main(void) {
  pthread_t threads[4];
  shared = open("shared", O_RDWR | O_CREAT, 0666);
  for (intptr_t n = 0; n < 4; ++n) pthread_create(&threads[n], 0, work, (void *)n);
  for (int n = 0; n < 4; ++n) pthread_join(threads[n], 0);
  return 0;
}
"""


def calls_of(tracing: Tracing) -> list[Row]:
    """All but `inherited`, which is none: it names a file."""
    return tracing.rows(lambda row: row.call != "inherited")


def duration(row: Row) -> int:
    assert row.end_ns is not None
    return row.end_ns - row.start_ns


def moved(row: Row) -> int:
    return max(row.result or 0, 0) if row.call in READS | WRITES or row.call.startswith("MPI_File_") else 0


def own_times(rows: list[Row]) -> dict[str, int]:
    """Without the calls below, which follow each other."""
    own = {row.id: duration(row) for row in rows}
    for row in rows:
        if row.parent in own:
            own[row.parent] -= duration(row)
    return own


def outermost(selected: list[Row], of: list[Row]) -> list[Row]:
    """Those of the selected calls that no other of them has caused."""
    parents = {row.id: row.parent for row in of}
    ids = {row.id for row in selected}

    def has_above(row: Row) -> bool:
        above = row.parent
        while above in parents:
            if above in ids:
                return True
            above = parents[above]
        return False

    return [row for row in selected if not has_above(row)]


def busy(intervals: Iterable[tuple[int, int]]) -> int:
    total, until = 0, -1
    for start, end in sorted(intervals):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total


def most_in_flight(intervals: list[tuple[int, int]]) -> int:
    """An end comes before a start at the same time, but not of an interval of no length."""
    events = [(start, 1, 1) for start, _ in intervals]
    events += [(end, 2 if start == end else 0, -1) for start, end in intervals]
    now = most = 0
    for _, _, step in sorted(events):
        now += step
        most = max(most, now)
    return most


def grouped(rows: list[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    found = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found


def percentile(numbers: list[int], percent: float) -> int:
    return sorted(numbers)[max(math.ceil(len(numbers) * percent / 100 - 1e-9), 1) - 1]


@pytest.fixture(scope="module")
def threads(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tracing, list[Row]]:
    directory = tmp_path_factory.mktemp("query")
    (directory / "home").mkdir()
    (directory / "a.c").write_text(PROGRAM)
    subprocess.run(["cc", "-O1", "-pthread", "-o", directory / "a", directory / "a.c"], check=True)
    tracing = Tracing(Iosig(directory / "home"), directory / "directory")
    tracing(*EXACT, directory / "a")
    rows = calls_of(tracing)
    assert all(row.end_ns is not None for row in rows)
    return tracing, rows


def ask(tracing: Tracing, *arguments: object) -> list[dict[str, Any]]:
    document = tracing.iosig.json("query", arguments[0], tracing.trace, *arguments[1:])
    assert (document["schema"], document["question"]) == ("iosig.query/1", arguments[0])
    rows: list[dict[str, Any]] = document["rows"]
    return rows


def test_latency_is_that_of_the_calls_with_and_without_those_below(threads: tuple[Tracing, list[Row]]) -> None:
    tracing, rows = threads
    own = own_times(tracing.rows())
    assert any(row.parent in own for row in rows)
    for exclusive in ((), ("--exclusive",)):
        found = ask(tracing, "latency", "--by", "thread,call", "--stat", "min,mean,p50,p90,p99.9,max", *exclusive)
        wanted = grouped(rows, lambda row: (row.layer, row.tid, row.call))
        assert {(row["layer"], row["tid"], row["call"]) for row in found} == wanted.keys()
        for row in found:
            calls = wanted[row["layer"], row["tid"], row["call"]]
            numbers = [own[call.id] if exclusive else duration(call) for call in calls]
            assert (row["calls"], row["unfinished"]) == (len(calls), 0)
            assert row["failed"] == sum((call.result or 0) < 0 for call in calls)
            assert row["min_s"] == pytest.approx(min(numbers) / 1e9, rel=1e-12)
            assert row["max_s"] == pytest.approx(max(numbers) / 1e9, rel=1e-12)
            assert row["mean_s"] == pytest.approx(sum(numbers) / len(numbers) / 1e9, rel=1e-9)
            for name, percent in (("p50_s", 50), ("p90_s", 90), ("p99.9_s", 99.9)):
                assert row[name] == pytest.approx(percentile(numbers, percent) / 1e9, rel=0.008)
            assert row["inclusive_s"] == pytest.approx(sum(map(duration, outermost(calls, rows))) / 1e9, rel=1e-12)
            assert row["exclusive_s"] == pytest.approx(sum(own[call.id] for call in calls) / 1e9, rel=1e-12)


def test_throughput_and_concurrency_count_no_time_and_no_byte_twice(threads: tuple[Tracing, list[Row]]) -> None:
    tracing, rows = threads
    moving = [row for row in rows if row.call in READS | WRITES]
    wanted = grouped(moving, lambda row: (row.layer, row.path or None))
    found = ask(tracing, "throughput", "--by", "file")
    assert {(row["layer"], row["file"]) for row in found} == wanted.keys()
    for row in found:
        calls = wanted[row["layer"], row["file"]]
        counted = outermost(calls, rows)
        total = sum(map(moved, counted))
        busy_ns = busy((call.start_ns, call.end_ns or 0) for call in counted)
        wall_ns = max(call.end_ns or 0 for call in counted) - min(call.start_ns for call in counted)
        assert row["read_bytes"] + row["written_bytes"] == row["moved_bytes"] == total
        assert row["read_bytes"] == sum(moved(call) for call in counted if call.call in READS)
        assert row["busy_s"] == pytest.approx(busy_ns / 1e9, rel=1e-12)
        assert row["wall_s"] == pytest.approx(wall_ns / 1e9, rel=1e-12)
        assert row["busy_bytes_per_s"] == pytest.approx(total / busy_ns * 1e9, rel=1e-9)
        assert row["wall_bytes_per_s"] == pytest.approx(total / wall_ns * 1e9, rel=1e-9)
    for layer in ("posix", "stdio", "all"):
        calls = outermost([row for row in rows if layer in ("all", row.layer)], rows)
        intervals = [(call.start_ns, call.end_ns or 0) for call in calls]
        (row,) = ask(tracing, "concurrency", "--layer", layer, *(("--by", "node") if layer == "all" else ()))
        assert row["busy_s"] == pytest.approx(busy(intervals) / 1e9, rel=1e-12)
        assert row["max_in_flight"] == most_in_flight(intervals)
        assert row["mean_in_flight"] == pytest.approx(sum(map(duration, calls)) / busy(intervals), rel=1e-9)


def test_windows_add_up_to_the_whole(threads: tuple[Tracing, list[Row]]) -> None:
    tracing, _ = threads
    (whole,) = ask(tracing, "throughput", "--layer", "posix")
    windows = ask(tracing, "throughput", "--layer", "posix", "--by", "window=1ms")
    assert len(windows) > 3
    assert sum(row["moved_bytes"] for row in windows) == whole["moved_bytes"]
    assert sum(row["calls"] for row in windows) == whole["calls"]
    assert sum(row["busy_s"] for row in windows) == pytest.approx(whole["busy_s"], rel=1e-9)
    assert all(row["busy_s"] <= 0.001 + 1e-12 for row in windows)
    starts = [row["window_start_s"] for row in windows]
    assert starts == sorted(starts)


def test_filters_select_calls(threads: tuple[Tracing, list[Row]]) -> None:
    tracing, rows = threads
    middle = sorted(row.start_ns for row in rows)[len(rows) // 2]
    for arguments, wanted in (
        (("--layer", "stdio"), lambda row: row.layer == "stdio"),
        (("--call", "pread,fsync"), lambda row: row.call in ("pread", "fsync")),
        (("--files", "own.*"), lambda row: Path(row.path).name.startswith("own.")),
        (("--files", f"{tracing.directory}/*.1"), lambda row: row.path.endswith(".1")),
        (("--from", f"{middle}ns"), lambda row: row.start_ns >= middle),
        (("--to", f"{middle}ns", "--writes"), lambda row: row.start_ns < middle and row.call in WRITES),
        (("--min-bytes", "1000", "--reads"), lambda row: row.call in READS and moved(row) >= 1000),
        (("--min-bytes", "1000", "--call", "pwrite"), lambda row: row.call == "pwrite" and moved(row) >= 1000),
        (("--pid", "1"), lambda row: False),
        (("--host", "elsewhere"), lambda row: False),
    ):
        for question in ("calls", "latency"):  # latency reads the other calls, too
            found = {row["call"]: row["calls"] for row in ask(tracing, question, *arguments)}
            assert found == {key: len(of) for key, of in grouped(list(filter(wanted, rows)), lambda r: r.call).items()}


def test_rows_are_sorted_and_cut_as_asked(threads: tuple[Tracing, list[Row]]) -> None:
    tracing, rows = threads
    found = ask(tracing, "calls", "--by", "file", "--layer", "posix", "--sort", "written_bytes", "--top", 2)
    assert found[0]["file"] == str(tracing.directory / "shared") and len(found) == 2
    slowest = tracing.iosig.json("query", "latency", tracing.trace, "--stat", "list", "--top", 5)["list"]
    assert [round(call["inclusive_s"] * 1e9) for call in slowest] == sorted(map(duration, rows), reverse=True)[:5]
    own = tracing.iosig.json("query", "latency", tracing.trace, "--stat", "list", "--top", 5, "--exclusive")["list"]
    assert [round(call["exclusive_s"] * 1e9) for call in own] == sorted(
        own_times(tracing.rows()).values(), reverse=True
    )[:5]
    table = tracing.iosig("query", "calls", tracing.trace, "--by", "file", "--top", 1).stdout.splitlines()
    assert table[0].split() == ["LAYER", "FILE", "CALLS", "FAILED", "UNFINISHED", "READ", "WRITTEN"]
    assert len(table) == 3 and table[2].endswith("more; --top 0 shows all")


def test_accesses_in_order_are_told_from_others(threads: tuple[Tracing, list[Row]]) -> None:
    tracing, rows = threads
    wanted: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(("consecutive", "forward", "backward"), 0))
    ends: dict[tuple[str, bool], int] = {}
    for row in rows:
        if row.layer != "posix" or row.call not in READS | WRITES or (row.result or 0) < 0 or row.offset is None:
            continue
        key = row.path, row.call in READS
        if key in ends:
            end = ends[key]
            kind = "consecutive" if row.offset == end else "forward" if row.offset > end else "backward"
            wanted[row.path][kind] += 1
        ends[key] = row.offset + moved(row)
    found = {row["file"]: row for row in ask(tracing, "pattern", "--layer", "posix") if row["file"]}
    for path, kinds in wanted.items():
        assert {kind: found[path][kind] for kind in kinds} == kinds


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_ranks_layers_and_files_of_an_mpi_program(tracing: Tracing, tmp_path: Path, mpi: str) -> None:
    if not shutil.which(f"mpicc.{mpi}") or not shutil.which(f"mpirun.{mpi}"):
        pytest.skip(f"needs mpicc of {mpi}")
    (tmp_path / "a.c").write_text(MPI)
    subprocess.run([f"mpicc.{mpi}", "-O1", "-o", tmp_path / "program", tmp_path / "a.c"], check=True)
    command = [f"mpirun.{mpi}", *(["--oversubscribe"] if mpi == "openmpi" else []), "-n", "2",
               *tracing.command(*EXACT, tmp_path / "program")]  # fmt: skip
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    subprocess.run(command, cwd=tracing.directory, env={**os.environ, **tracing.iosig.env, **allowed}, check=True,
                   capture_output=True, timeout=120)  # fmt: skip
    rows = calls_of(tracing)
    own = own_times(tracing.rows())
    out = str(tracing.directory / "out")
    for row in ask(tracing, "latency", "--by", "rank", "--files", "out"):
        calls = [call for call in rows if (call.layer, call.rank, call.path) == (row["layer"], row["rank"], out)]
        assert row["calls"] == len(calls)
        assert row["exclusive_s"] == pytest.approx(sum(own[call.id] for call in calls) / 1e9, rel=1e-12)
        assert row["inclusive_s"] == pytest.approx(sum(map(duration, outermost(calls, rows))) / 1e9, rel=1e-12)
    (file,) = ask(tracing, "touched", "--files", "out", "--layer", "mpi-io")
    assert (file["file"], [process["rank"] for process in file["processes"]]) == (out, [0, 1])
    assert [process["written_bytes"] for process in file["processes"]] == [4 * 4096] * 2
    assert [process["read_bytes"] for process in file["processes"]] == [16] * 2
    by_rank = ask(tracing, "touched", "--by", "rank", "--files", "out", "--layer", "mpi-io")
    assert [(row["rank"], [each["file"] for each in row["files"]]) for row in by_rank] == [(0, [out]), (1, [out])]
    table = tracing.iosig("query", "touched", tracing.trace, "--files", "out", "--layer", "mpi-io").stdout
    assert table.split()[-3:] == ["0-1", "0-1", out]
    assert [row["rank"] for row in ask(tracing, "calls", "--by", "rank", "--rank", "1", "--layer", "mpi-io")] == [1]


def test_several_traces_are_one(threads: tuple[Tracing, list[Row]], tmp_path: Path) -> None:
    first, rows = threads
    second = Tracing(first.iosig, tmp_path / "directory")
    second("cp", "/etc/passwd", "copy")
    calls = len(rows) + len(calls_of(second))
    found = first.iosig.json("query", "calls", first.trace, second.trace, "--layer", "all", "--by", "node")["rows"]
    assert sum(row["calls"] for row in found) == calls
    shutil.copytree(first.trace, tmp_path / "copy")
    refused = first.iosig("query", "calls", first.trace, tmp_path / "copy", check=2).stderr
    assert "is in two of the traces" in refused


def test_what_cannot_be_answered_is_said(tracing: Tracing, tmp_path: Path) -> None:
    tracing(sys.executable, "-S", "-E", "-c", "import os; os.pwrite(os.open('data', 66), b'x', 0)")
    run, trace = tracing.iosig, tracing.trace
    for arguments, said in (
        (("calls", trace, "--by", "rnak"), "--by: 'rnak': expected some of layer, call"),
        (("calls", trace, "--by", "window=0"), "at least 1 ns"),
        (("calls", trace, "--layer", "hdf5"), "--layer: 'hdf5': expected one of mpi-io, stdio, posix, all"),
        (("calls", trace, "--call", "pwrit"), "--call: 'pwrit' is no call"),
        (("calls", trace, "--rank", "3-1"), "--rank: '3-1': expected ranks such as 0-3,7"),
        (("calls", trace, "--from", "2", "--to", "1"), "expected an earlier time first"),
        (("calls", trace, "--from", "soon"), "--from: 'soon': expected seconds"),
        (("calls", trace, "--stat", "median"), "--stat: 'median': expected some of min, mean, max, p50"),
        (("calls", trace, "--sort", "size"), "--sort: 'size': expected one of keys, layer, call, calls"),
        (("latency", trace, "--by", "window=1ns", "--stat", "list", "--top", "0"), "expected 1 to 1000000"),
        (("touched", trace, "--by", "call"), "--by: 'call': expected file or rank"),
    ):
        assert said in run("query", *arguments, check=2).stderr
    assert "is no trace" in run("query", "calls", tmp_path, check=3).stderr
    for question in ("latency", "throughput", "calls", "pattern", "concurrency", "touched"):
        assert run("query", question, trace, "--rank", "5").stdout == "no call was recorded, or is selected\n"
        assert json.loads(run("query", question, trace, "--rank", "5", "--json").stdout)["rows"] == []
    (part,) = trace.glob("*.part")
    content = bytearray(part.read_bytes())
    content[8] = 9
    part.write_bytes(content)
    assert f"{part}: version 9 of the trace format" in run("query", "calls", trace, check=3).stderr


def test_a_call_that_had_not_returned_counts_without_time(tracing: Tracing) -> None:
    tracing(*EXACT, sys.executable, "-S", "-E", "-c", """if True:
        import os, signal, threading
        os.mkfifo("fifo")
        os.write(os.open("data", os.O_WRONLY | os.O_CREAT), b"x")
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()
        os.open("fifo", os.O_RDONLY)
    """, status=-9)  # fmt: skip
    opens = tracing.rows(lambda row: row.call == "open")
    finished = [row for row in opens if row.end_ns is not None]
    assert len(finished) == len(opens) - 1
    done = tracing.iosig("query", "latency", tracing.trace, "--call", "open", "--json")
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["calls"], row["unfinished"]) == (len(opens), 1)
    assert row["inclusive_s"] == pytest.approx(sum(map(duration, finished)) / 1e9, rel=1e-12)
    assert "1 call has no end" in done.stderr


def test_an_imported_call_without_an_end_counts_also_where_no_other_call_of_its_thread_does(
    iosig: Iosig, tmp_path: Path
) -> None:
    calls, trace = tmp_path / "calls.csv", tmp_path / "calls.trace"
    calls.write_text(
        "id,pid,tid,call,path,fd,offset,length,start_ns,end_ns,result\n"
        "1,7,7,read,/a,3,0,10,0,100,10\n"
        "2,7,7,read,/a,3,10,10,240,,\n"  # begins after all other calls of its thread have ended
        "3,7,8,read,/b,4,0,10,50,,\n"  # the only call of its thread
    )
    iosig("import", calls, "-o", trace)

    def reads(*options: str) -> list[tuple[int, int]]:
        rows = json.loads(iosig("query", "calls", trace, "--call", "read", "--json", *options).stdout)["rows"]
        return [(row["calls"], row["unfinished"]) for row in rows]

    assert reads() == [(3, 2)]
    assert reads("--from", "150ns") == [(1, 1)]
    assert reads("--from", "50ns", "--to", "240ns") == [(1, 1)]
    assert reads("--from", "241ns") == []


def test_keys_with_the_same_field_have_one_column_for_it(threads: tuple[Tracing, list[Row]]) -> None:
    tracing, _ = threads
    words = ("query", "calls", tracing.trace, "--by", "node,process,thread,rank")
    head = tracing.iosig(*words).stdout.splitlines()[0].split()
    assert head[:6] == ["LAYER", "HOST", "PID", "RANK", "TID", "CALLS"]
    (row, *_) = json.loads(tracing.iosig(*words, "--json").stdout)["rows"]
    assert list(row)[:6] == ["layer", "host", "pid", "rank", "tid", "calls"]


def test_numbers_beyond_64_bits_are_the_greatest_and_not_negative(iosig: Iosig, tmp_path: Path) -> None:
    calls, trace = tmp_path / "calls.csv", tmp_path / "calls.trace"
    end = 2**63 - 2
    calls.write_text(
        "id,pid,tid,call,path,fd,offset,length,start_ns,end_ns,result\n"
        f"1,7,7,pread,/a,3,0,10,0,{end},10\n"
        f"2,7,8,pread,/a,3,0,10,0,{end},10\n"
        f"3,8,8,pwrite,/a,3,0,{2**62},0,1,{2**62}\n"
    )
    iosig("import", calls, "-o", trace)
    read, _ = json.loads(iosig("query", "latency", trace, "--json").stdout)["rows"]
    assert read["inclusive_s"] == read["exclusive_s"] == pytest.approx((2**63 - 1) / 1e9)
    (both,) = json.loads(iosig("query", "concurrency", trace, "--call", "pread", "--json").stdout)["rows"]
    assert both["mean_in_flight"] >= 1 and both["max_in_flight"] == 2
    (listed,) = json.loads(iosig("query", "throughput", trace, "--writes", "--stat", "list", "--json").stdout)["list"]
    assert listed["bytes_per_s"] >= 2**64 - 1


def test_bytes_of_several_layers_are_those_that_reach_the_file(tracing: Tracing) -> None:
    """Of a buffered stream, fputs() has no bytes, fclose() writes them; fwrite() has them, and the write below, too."""
    tracing(sys.executable, "-S", "-E", "-c",
            "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.fopen.restype = ctypes.c_void_p\n"
            "for name in (b'puts', b'items'):\n  out = ctypes.c_void_p(libc.fopen(name, b'w'))\n"
            "  for n in range(10):\n    if name == b'puts': libc.fputs(b'0123456789', out)\n"
            "    else: libc.fwrite(b'0123456789', 1, 10, out)\n  libc.fclose(out)\n")  # fmt: skip
    for question in ("calls", "throughput"):
        rows = ask(tracing, question, "--layer", "all", "--by", "file", "--files", f"{tracing.directory}/*")
        assert [row["written_bytes"] for row in rows] == [100, 100]
    files = tracing.iosig.json("trace", "info", tracing.trace)["files"]
    written = {each["path"]: each["written_bytes"] for each in files}
    assert [written[str(tracing.directory / name)] for name in ("puts", "items")] == [100, 100]
