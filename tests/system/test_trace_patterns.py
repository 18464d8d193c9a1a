"""`iosig pattern trace`: the patterns stand for just the accesses that the trace has."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tracing import Tracing

READS = {"read", "pread", "readv", "preadv"}
WRITES = {"write", "pwrite", "writev", "pwritev"}

# Each rank, an environment variable as a launcher sets it, writes and reads at places of its own.
RANKS = """
import os, sys
children = []
for rank in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        os.environ["PMI_RANK"] = str(rank)
        os.execv(sys.executable, [sys.executable, "-S", "-E", "-c", sys.argv[2], str(rank)])
    children.append(child)
for child in children:
    os.waitpid(child, 0)
"""


def accesses(tracing: Tracing) -> dict[tuple[str, str], dict[int, list[tuple[int, int]]]]:
    """By file and direction, then by process: what `iosig export` says."""
    found: dict[tuple[str, str], dict[int, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    for row in tracing.rows():
        if row.layer != "posix" or row.offset is None or row.length is None or row.result is None or row.result < 0:
            continue
        for direction, calls in (("read", READS), ("write", WRITES)):
            if row.call in calls:
                found[row.path, direction][row.pid].append((row.offset, row.length))
    return found


def expanded(tracing: Tracing, document: dict[str, Any]) -> dict[tuple[str, str], dict[int, list[tuple[int, int]]]]:
    pids = {process["id"]: process["pid"] for process in document["processes"]}
    found: dict[tuple[str, str], dict[int, list[tuple[int, int]]]] = {}
    for stream in document["streams"]:
        lines = tracing.iosig("pattern", "expand", "-", input=json.dumps(stream["pattern"])).stdout.splitlines()
        by_process: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for line in lines:
            offset, length, process = map(int, line.split())
            by_process[pids[process]].append((offset, length))
        assert {pids[process] for process in stream["processes"]} == set(by_process)
        found[stream["path"], stream["direction"]] = by_process
    return found


def test_patterns_stand_for_the_accesses_of_the_trace(tracing: Tracing) -> None:
    """Regular ones, random ones, and more files at a time than there are detectors."""
    tracing(sys.executable, "-S", "-E", "-c", """if True:
        import os, random
        random.seed(1)
        made = [os.open(f"file{n}", os.O_RDWR | os.O_CREAT) for n in range(300)]
        for turn in range(130):
            for n, fd in enumerate(made):
                place = 512 * turn if n % 3 else random.randrange(1 << 40)
                os.pwrite(fd, bytes(1 + n), place)
        if os.fork() == 0:
            for turn in range(200):
                os.pread(made[1], 7 + turn % 5, 100 * turn)
            os.pread(made[1], 10, 1 << 50)
            os._exit(0)
        os.wait()
    """)  # fmt: skip
    document = tracing.iosig.json("pattern", "trace", tracing.trace)
    wanted = accesses(tracing)
    mine = {key for key in wanted if key[0].startswith(str(tracing.directory))}
    assert len(mine) == 301
    assert expanded(tracing, {**document, "streams": [
        stream for stream in document["streams"] if (stream["path"], stream["direction"]) in mine
    ]}) == {key: wanted[key] for key in mine}  # fmt: skip


@pytest.mark.parametrize("ranks", [4, 9])
def test_ranks_that_do_alike_are_one_nest(tracing: Tracing, ranks: int) -> None:
    tracing(sys.executable, "-S", "-E", "-c", RANKS, ranks, f"""if True:
        import os, sys
        rank = int(sys.argv[1])
        fd = os.open("shared", os.O_RDWR | os.O_CREAT)
        for turn in range(50):
            os.pwrite(fd, bytes(4096), 4096 * ({ranks} * turn + rank))
        for turn in range(20):
            os.pread(fd, 100, 1000 * turn)
    """)  # fmt: skip
    document = tracing.iosig.json("pattern", "trace", tracing.trace, "--files", "shared")
    written, read = document["streams"]
    assert (written["direction"], read["direction"]) == ("write", "read")
    assert written["processes"] == read["processes"] == list(range(ranks))
    shown = tracing.iosig("pattern", "trace", tracing.trace, "--files", "shared").stdout
    assert f"    for j < 50\n      logical 4096 i + {4096 * ranks} j, length 4096, id i\n" in shown
    assert f"  for i < {ranks}\n    for j < 20\n      logical 1000 j, length 100, id i\n" in shown
    assert expanded(tracing, document) == {
        key: value for key, value in accesses(tracing).items() if key[0].endswith("/shared")
    }


def test_one_stream_is_written_to_a_file_and_drawn(tracing: Tracing, tmp_path: Path) -> None:
    tracing(sys.executable, "-S", "-E", "-c", """if True:
        import os
        fd = os.open("data", os.O_RDWR | os.O_CREAT)
        for n in range(64):
            os.pwrite(fd, bytes(8), 16 * n)
        os.pread(fd, 8, 0)
    """)  # fmt: skip
    run, output = tracing.iosig, tmp_path / "data.pattern"
    arguments = ("pattern", "trace", tracing.trace, "--files", "data", "--output", output)
    assert "select one with --files, --reads, --writes" in run(*arguments, check=2).stderr
    assert not output.exists()
    run(*arguments, "--writes")
    assert run("pattern", "expand", output).stdout.split() == [str(n) for k in range(64) for n in (16 * k, 8, 0)]
    assert (
        "logical over position"
        in run("pattern", "trace", tracing.trace, "--files", "data", "--writes", "--plot").stdout
    )


def test_what_is_not_there_is_said(tracing: Tracing) -> None:
    tracing(sys.executable, "-S", "-E", "-c", "import os\ntry: os.write(os.open('.', 0), b'x')\nexcept OSError: pass")
    run = tracing.iosig
    assert "iosig pattern trace" in run("pattern", "detect", tracing.trace, check=2).stderr
    assert "left out: 1 access that failed" in run("pattern", "trace", tracing.trace, "--writes").stderr
    assert run.json("pattern", "trace", tracing.trace, "--files", "absent")["streams"] == []
    assert "no call was recorded, or is selected" in run("trace", "info", tracing.trace, "--files", "absent").stdout
    assert "is no trace" in run("pattern", "trace", tracing.directory, check=3).stderr
    run("pattern", "trace", check=2)
