"""Clocks of several hosts: the ranks of a real MPI program, two of them as if they had run on another host."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from conftest import Iosig
from trace_reader import crc32c
from tracing import Tracing, rows_of

PROGRAM = r"""
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
  int rank;
  MPI_File file;
  char name[16], byte = 'x';
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(name, sizeof name, "own.%d", rank);
  const int own = open(name, O_CREAT | O_WRONLY, 0600);
  for (int n = 0; n < 8; ++n) {
    usleep(1000 * ((rank * 7 + n * 3) % 5));
    if (argc > 1 && rank == 3 && n == 6) raise(SIGKILL);
    if (write(own, &byte, 1) != 1) return 1;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_File_open(MPI_COMM_WORLD, "out", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_write_at_all(file, rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Finalize();
  return 0;
}
"""
AHEAD_NS = -5_250_000_000
RATE_NS = 5_000  # the length of a tick is found anew for each boot, from two readings of the clocks
MPI_RUN = ["mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "-n", "4"]

pytestmark = pytest.mark.skipif(
    not shutil.which("mpicc.openmpi") or not shutil.which("mpirun.openmpi"), reason="needs Open MPI"
)


def ran(tracing: Tracing, *arguments: str) -> None:
    source = tracing.directory / "program.c"
    source.write_text(PROGRAM)
    subprocess.run(["mpicc.openmpi", "-o", tracing.directory / "program", source], check=True)
    done = subprocess.run([*MPI_RUN, *tracing.command(tracing.directory / "program", *arguments)],
                          cwd=tracing.directory, env={**os.environ, **tracing.iosig.env}, capture_output=True,
                          timeout=120)  # fmt: skip
    assert (done.returncode == 0) == (not arguments)


def move_to_another_host(trace: Path, pids: set[int]) -> int:
    """As if these processes had run on a host whose clock is ahead: docs/formats/trace.md, "Header".

    Returns by how much: the first part of a boot says how far CLOCK_REALTIME and CLOCK_MONOTONIC are apart.
    """
    moved = 0
    firsts: dict[bool, tuple[int, int]] = {}
    for part in trace.glob("*.part"):
        header = bytearray(part.read_bytes()[:136])
        _, monotonic_ns, realtime_ns, boot = struct.unpack_from("<QQQQ", header, 32)
        is_moved = struct.unpack_from("<i", header, 24)[0] in pids
        firsts[is_moved] = min(firsts.get(is_moved, (1 << 64, 0)), (monotonic_ns, realtime_ns - monotonic_ns))
        if not is_moved:
            continue
        struct.pack_into("<QQ64s", header, 48, realtime_ns + AHEAD_NS, boot ^ 1, b"other")
        struct.pack_into("<I", header, 132, crc32c(bytes(header[:132])))
        with part.open("r+b") as file:
            file.write(header)
        moved += 1
    assert moved >= len(pids)
    return AHEAD_NS + firsts[True][1] - firsts[False][1]


def pids_of_ranks(iosig: Iosig, trace: Path) -> dict[int, int]:
    return {row.rank: row.pid for row in rows_of(iosig, trace) if row.rank is not None and row.call == "MPI_Barrier"}


def test_clocks_of_hosts_are_aligned_at_barriers(iosig: Iosig, tracing: Tracing) -> None:
    ran(tracing)
    before = rows_of(iosig, tracing.trace)
    pids = pids_of_ranks(iosig, tracing.trace)
    assert sorted(pids) == [0, 1, 2, 3]
    barriers = [row for row in before if row.call == "MPI_Barrier"]
    assert [row.length for row in barriers] == [4] * 32
    assert not iosig.json("trace", "info", tracing.trace)["clocks"]  # one host has one clock

    ahead_ns = move_to_another_host(tracing.trace, {pids[2], pids[3]})
    shown = iosig("trace", "info", tracing.trace, "--json")
    assert "the clock of 'other' was 5.2" in shown.stderr
    assert "by 8 collective MPI calls" in shown.stderr  # the barriers; files count only where there are none
    reference, other = iosig.json("trace", "info", tracing.trace)["clocks"]
    assert (reference["state"], other["state"]) == ("reference", "ahead")
    assert (other["name"], other["calls"], other["agreeing"]) == ("other", 8, 8)
    assert other["at_least_ns"] - RATE_NS <= ahead_ns <= other["at_most_ns"] + RATE_NS
    assert other["at_least_ns"] <= other["ahead_ns"] <= other["at_most_ns"]

    # All readers have the aligned times: what was moved is off by no more than the difference is known.
    after = rows_of(iosig, tracing.trace)
    assert len(after) == len(before)
    own = defaultdict(list)
    for row in after:
        if row.call == "MPI_Barrier":
            own[row.rank].append(row)
    for members in zip(*own.values(), strict=True):  # nobody leaves before all have entered
        assert max(row.start_ns for row in members) <= min(row.end_ns or 0 for row in members)
    error_ns = abs(other["ahead_ns"] - ahead_ns) + abs(ahead_ns - AHEAD_NS)
    starts = {(row.pid, row.tid, row.id.rjust(20)[-13:]): row.start_ns for row in before}
    first = min(row.start_ns for row in after)
    assert first == 0
    offsets = {
        row.start_ns - starts[row.pid, row.tid, row.id.rjust(20)[-13:]] for row in after if row.pid in pids.values()
    }
    assert max(offsets) - min(offsets) <= error_ns + RATE_NS
    total = iosig.json("query", "calls", tracing.trace, "--call", "MPI_Barrier")
    assert total["rows"][0]["calls"] == 32


def test_a_rank_that_was_killed_before_a_barrier(iosig: Iosig, tracing: Tracing) -> None:
    ran(tracing, "killed")
    pids = pids_of_ranks(iosig, tracing.trace)
    ahead_ns = move_to_another_host(tracing.trace, {pids[3]})
    _, other = iosig.json("trace", "info", tracing.trace)["clocks"]
    assert (other["state"], other["calls"]) == ("ahead", 6)  # it reached six barriers
    assert other["at_least_ns"] - RATE_NS <= ahead_ns <= other["at_most_ns"] + RATE_NS


COLUMNS = "host,pid,rank,call,path,start_ns,end_ns,result\n"


def imported(iosig: Iosig, directory: Path, lines: str) -> tuple[Path, str]:
    (directory / "job.csv").write_text(COLUMNS + lines)
    iosig("import", directory / "job.csv", "-o", directory / "job.trace")
    return directory / "job.trace", iosig("trace", "info", directory / "job.trace").stderr


def test_without_a_call_in_common_the_clocks_are_compared_as_they_are_and_that_is_said(
    iosig: Iosig, tmp_path: Path
) -> None:
    trace, notes = imported(iosig, tmp_path, "n1,7,0,pread,/a,1000,2000,1\nn2,7,1,pread,/b,900,2500,1\n")
    assert "'n1', 'n2' have no collective MPI call in common" in notes
    assert "compared as they are" in notes
    assert [row.start_ns for row in rows_of(iosig, trace)] == [0, 100]


def test_one_host_has_one_clock(iosig: Iosig, tmp_path: Path) -> None:
    trace, notes = imported(iosig, tmp_path, "n1,7,0,pread,/a,1000,2000,1\nn1,8,1,pread,/b,900,2500,1\n")
    assert "clock" not in notes
    assert not iosig.json("trace", "info", trace)["clocks"]


def test_an_aligned_trace_is_exported_and_imported_as_it_is(iosig: Iosig, tmp_path: Path) -> None:
    # Both leave the open at the same time, which n2 calls 700 ns later; n2 reads 10 ns after that.
    lines = (
        "n1,7,0,MPI_File_open,/a,1000,2000,0\nn2,7,1,MPI_File_open,/a,2600,2700,0\n"
        "n1,7,0,pread,/a,2005,2100,1\nn2,7,1,pread,/a,2710,2800,1\n"
    )
    trace, notes = imported(iosig, tmp_path, lines)
    # n1 leaves after n2 has entered: 600 ns at least. n2 leaves after n1 has entered: 1700 ns at most.
    told = "the clock of 'n2' was 700 ns ahead of that of 'n1', within 1.00 us, by 1 collective MPI call:"
    assert told in notes
    rows = rows_of(iosig, trace)
    assert [(row.rank, row.start_ns, row.end_ns) for row in rows] == [
        (0, 0, 1000), (1, 900, 1000), (0, 1005, 1100), (1, 1010, 1100),
    ]  # fmt: skip
    exported = tmp_path / "copy.csv"
    exported.write_text(iosig("export", trace).stdout)
    iosig("import", exported, "-o", tmp_path / "copy.trace")
    again = rows_of(iosig, tmp_path / "copy.trace")
    assert [(row.rank, row.start_ns, row.end_ns) for row in again] == [
        (row.rank, row.start_ns, row.end_ns) for row in rows
    ]


def test_calls_that_contradict_each_other_align_nothing(iosig: Iosig, tmp_path: Path) -> None:
    # Each rank opens the file for itself: nothing says how far the clocks differ.
    opens = "".join(
        f"n1,7,0,MPI_File_open,/a,{1000 * n},{1000 * n + 10},0\nn2,7,1,MPI_File_open,/a,{at},{at + 10},0\n"
        for n, at in enumerate([50, 1300, 2700, 3020], 1)
    )
    trace, notes = imported(iosig, tmp_path, opens)
    assert "contradict each other" in notes
    assert "(1 of 4 agree)" in notes
    assert [row.start_ns for row in rows_of(iosig, trace)][:2] == [0, 950]


def test_times_of_damage_stay_as_they_are(iosig: Iosig, tmp_path: Path) -> None:
    most = 2**63 - 2
    lines = (
        f"n1,7,0,MPI_File_open,/a,1000,2000,0\nn1,7,0,pread,/a,{most - 9},{most},1\n"
        f"n2,7,1,MPI_File_open,/a,{most - 9},{most},0\n"
    )
    trace, notes = imported(iosig, tmp_path, lines)
    assert "compared as they are" in notes
    assert [row.start_ns for row in rows_of(iosig, trace)] == [0, most - 1009, most - 1009]


def test_traces_of_nodes_that_are_read_together_are_aligned_with_each_other(iosig: Iosig, tmp_path: Path) -> None:
    # Rank 0 waits for rank 1, whose clock is 5000 ns ahead.
    calls = {"n1": "n1,7,0,MPI_File_open,/a,1000,3000,0\nn1,7,0,pread,/a,3100,3200,1\n",
             "n2": "n2,7,1,MPI_File_open,/a,7900,8000,0\nn2,7,1,pread,/a,8100,8200,1\n"}  # fmt: skip
    traces = []
    for node, lines in calls.items():
        (tmp_path / node).mkdir()
        trace, notes = imported(iosig, tmp_path / node, lines)
        assert notes == ""
        traces.append(trace)
    shown = iosig("query", "concurrency", *traces, "--json")
    assert "the clock of 'n2' was 5.00 us ahead of that of 'n1'" in shown.stderr
    assert "could not be aligned" not in shown.stderr
    by_layer = {row["layer"]: row for row in json.loads(shown.stdout)["rows"]}
    # By n1's clock: opens from 1000 and 2900 to 3000, both reads from 3100 to 3200.
    assert by_layer["mpi-io"]["wall_s"] == pytest.approx(2000e-9)
    assert by_layer["mpi-io"]["mean_in_flight"] == pytest.approx((2000 + 100) / 2000)
    assert by_layer["posix"]["wall_s"] == pytest.approx(100e-9)
    assert by_layer["posix"]["max_in_flight"] == 2
    # Each rank twice: these are two runs, and nothing tells how their clocks differ.
    (tmp_path / "again").mkdir()
    again, _ = imported(iosig, tmp_path / "again", calls["n1"].replace("n1", "n3"))
    assert "could not be aligned" in iosig("query", "concurrency", traces[0], again).stderr
