"""`iosig mount --trace`: what programs do in a mount is in the trace, whatever they are made of."""

from __future__ import annotations

import contextlib
import errno
import itertools
import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from conftest import Iosig
from draining import eventually
from mounting import Mount, is_mounted
from redirecting import needs_mounts
from tracing import Row, rows_of

SUPPORT = Path(__file__).resolve().parent.parent / "support"


@pytest.fixture(scope="module")
def static_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("static") / "mounted_calls"
    command = ["gcc", "-O1", "-static", "-o", str(made), str(SUPPORT / "mounted_calls.c")]
    if subprocess.run(command, check=False).returncode != 0:
        pytest.skip("no static C library")
    return made


def rows_in(iosig: Iosig, directory: Path, trace: Path) -> list[Row]:
    """The trace, after the mount's end."""
    iosig("unmount", directory)
    return rows_of(iosig, trace)


@pytest.mark.parametrize("containers", ["existing", "all"])
def test_every_operation_of_a_static_program_is_there_with_every_field(
    iosig: Iosig, mount: Mount, tmp_path: Path, static_program: Path, containers: str
) -> None:
    trace = tmp_path / "trace"
    directory = mount("--trace", str(trace), "--uncached", "--containers", containers)
    program = subprocess.Popen([static_program, "5", "1500"], cwd=directory, stdout=subprocess.PIPE, text=True)
    said, _ = program.communicate(timeout=60)
    wanted = [line.split() for line in said.splitlines()]
    calls = {line[0] for line in wanted}
    rows = [row for row in rows_in(iosig, directory, trace) if row.call in calls and row.pid == program.pid]
    assert len(rows) == len(wanted) > 1500
    for row, (call, name, offset, length, result) in zip(rows, wanted, strict=True):
        assert (row.call, row.path, row.result) == (call, str(directory / name), int(result))
        assert (row.tid, row.layer, row.parent, row.fd) == (program.pid, "posix", "0", None)
        if offset != "-":
            assert row.offset == int(offset)
        if length != "-":
            assert row.length == int(length)
        assert row.end_ns is not None and row.start_ns <= row.end_ns
    for one, other in itertools.pairwise(rows):
        assert (one.end_ns or 0) <= other.start_ns
    written = sum(int(line[4]) for line in wanted if line[0] == "write")
    streams = iosig.json("pattern", "trace", trace, "--files", "file")["streams"]
    assert {(each["direction"], each["transferred_bytes"]) for each in streams} >= {("write", written)}


def test_programs_ranks_and_threads_are_kept_apart(iosig: Iosig, mount: Mount, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    directory = mount("--trace", str(trace))
    threads = (
        "import os, sys, threading\nfd = os.open(sys.argv[1], os.O_WRONLY)\n"
        "def work(n):\n [os.pwrite(fd, b'x' * (n + 1), 100 * k) for k in range(50)]\n"
        " tids.add(threading.get_native_id())\ntids = set()\n"
        "all = [threading.Thread(target=work, args=[n]) for n in range(4)]\n"
        "[t.start() for t in all]\n[t.join() for t in all]\nprint(*sorted(tids))"
    )
    (directory / "data").touch()
    started = [
        subprocess.Popen(
            [sys.executable, "-c", threads, directory / "data", f"argument {rank}"],
            stdout=subprocess.PIPE, text=True, env={**os.environ, "PMI_RANK": str(rank), "PMI_SIZE": "3"},
        )
        for rank in range(3)
    ]  # fmt: skip
    tids = [{*map(int, program.communicate(timeout=60)[0].split())} for program in started]
    shell = subprocess.Popen(["sh", "-c", f"exec cat {directory / 'data'} > {directory / 'copy'}"])
    assert shell.wait(60) == 0
    rows = rows_in(iosig, directory, trace)
    for rank, program in enumerate(started):
        writes = [row for row in rows if row.pid == program.pid and row.call == "write"]
        assert {row.tid for row in writes} == tids[rank] and {row.rank for row in writes} == {rank}
        assert Counter(row.result for row in writes) == dict.fromkeys(range(1, 5), 50)
    info = iosig.json("trace", "info", trace)
    processes = {each["pid"]: each for each in info["processes"]}
    for rank, program in enumerate(started):
        told = processes[program.pid]
        assert told["program"] == os.path.realpath(sys.executable) and told["ranks"] == 3
        assert told["arguments"][-1] == f"argument {rank}" and told["parent_pid"] == os.getpid()
    # The shell opens the copy, then executes cat, which writes it: one process number, two programs.
    opened = {Path(row.path).name for row in rows if row.call == "open" and row.pid == shell.pid}
    assert opened == {"data", "copy"}
    programs = [each["program"] for each in info["processes"] if each["pid"] == shell.pid]
    assert sorted(programs) == sorted(map(os.path.realpath, ("/bin/cat", "/bin/sh")))
    assert all(each["complete"] for each in info["processes"])


WRITE_ON = """
import mmap, os, struct, sys
counts = mmap.mmap(os.open(sys.argv[2], os.O_RDWR), 4096)
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for n in range(10**9):
    os.pwrite(fd, b"x" * 8, n % 1000 * 8)
    counts[:8] = struct.pack("<Q", n + 1)
"""


@pytest.mark.parametrize("seed", range(3))
def test_what_returned_before_a_kill_of_the_daemon_is_in_the_trace(
    iosig: Iosig, mount: Mount, tmp_path: Path, seed: int
) -> None:
    trace = tmp_path / "trace"
    directory = mount("--trace", str(trace))
    counts = tmp_path / "counts"
    counts.write_bytes(bytes(4096))
    program = subprocess.Popen([sys.executable, "-c", WRITE_ON, directory / "data", counts], stderr=subprocess.DEVNULL)
    while counts.read_bytes()[:8] == bytes(8):
        assert program.poll() is None
    time.sleep(random.Random(seed).random() * 0.2)
    os.kill(mount.pids[-1], signal.SIGKILL)  # type: ignore[attr-defined]
    program.wait(10)
    (count,) = struct.unpack("<Q", counts.read_bytes()[:8])
    rows = [row for row in rows_of(iosig, trace) if row.call == "write"]
    returned = [row for row in rows if row.end_ns is not None]
    assert count > 0 and count <= len(returned) <= count + 1 and len(rows) - len(returned) <= 1
    assert [row.offset for row in rows] == [n % 1000 * 8 for n in range(len(rows))]
    assert {row.pid for row in rows} == {program.pid}
    # The mount point is mounted again, with a trace of its own.
    again = iosig("mount", "--trace", trace, tmp_path / "source", directory, check=2)
    assert "has a trace already" in again.stderr and "--trace" in again.stderr
    mount("--trace", str(tmp_path / "second"))


def test_the_trace_is_readable_while_it_grows(iosig: Iosig, mount: Mount, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    directory = mount("--trace", str(trace))
    assert iosig.json("trace", "info", trace)["parts"][0]["state"] == "open"  # before the first request
    counts = tmp_path / "counts"
    counts.write_bytes(bytes(4096))
    program = subprocess.Popen([sys.executable, "-c", WRITE_ON, directory / "data", counts])
    try:
        before = 0
        eventually(lambda: any(counts.read_bytes()[:8]), "the program does not write")
        for _ in range(10):
            (least,) = struct.unpack("<Q", counts.read_bytes()[:8])
            info = iosig.json("trace", "info", trace)
            assert not any("fault" in part for part in info["parts"])
            found = info["calls"].get("write", {"calls": 0})["calls"]
            assert found >= max(least, before)
            before = found
    finally:
        program.kill()
        program.wait()
    assert before > 0


def test_names_of_any_bytes_are_kept(iosig: Iosig, mount: Mount, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    directory = mount("--trace", str(trace))
    odd, long = os.fsencode(directory) + b'/a\nb,"\xff', os.fsencode(directory) + b"/" + b"n" * 255
    os.close(os.open(odd, os.O_WRONLY | os.O_CREAT))
    Path(os.fsdecode(odd)).rename(os.fsdecode(long)).unlink()
    with contextlib.suppress(FileNotFoundError):
        os.open(odd, os.O_RDONLY)
    iosig("unmount", directory)
    command = [iosig.binary, "export", "--format", "csv", trace]
    table = subprocess.run(command, capture_output=True, check=True, env=iosig.env).stdout
    assert b'posix,open,"' + odd.replace(b'"', b'""') + b'"' in table
    assert b"posix,unlink," + long + b"," in table
    assert b'posix,lookup,"' + odd.replace(b'"', b'""') + b'",,,,' in table  # the failed open


def test_an_uncached_mount_sees_each_read_and_maps_nothing_shared(iosig: Iosig, mount: Mount, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    directory = mount("--trace", str(trace), "--uncached")
    (directory / "data").write_bytes(bytes(8192))
    with (directory / "data").open("r+b", buffering=0) as file:
        assert [len(os.pread(file.fileno(), 100, 50)) for _ in range(3)] == [100] * 3
        with pytest.raises(OSError) as refused:
            mmap.mmap(file.fileno(), 8192)
    assert refused.value.errno == errno.ENODEV
    reads = [row for row in rows_in(iosig, directory, trace) if row.call == "read"]
    assert [(row.offset, row.length, row.result) for row in reads] == [(50, 100, 100)] * 3


def test_a_write_that_waits_for_the_cache_of_readers_is_complete(iosig: Iosig, mount: Mount, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    directory = mount("--trace", str(trace), "--containers", "all")
    (directory / "data").write_bytes(bytes(8192))
    with (directory / "data").open("rb") as reader, (directory / "data").open("r+b", buffering=0) as writer:
        assert reader.read(10) == bytes(10)
        for n in range(20):
            assert os.pwrite(writer.fileno(), b"new", 100 * n) == 3
    rows = [row for row in rows_in(iosig, directory, trace) if row.call == "write"]
    assert [(row.offset, row.result) for row in rows] == [(0, 8192)] + [(100 * n, 3) for n in range(20)]
    assert all(row.end_ns is not None and row.pid == os.getpid() for row in rows)


def test_pages_that_the_kernel_writes_back_are_its_own_requests(iosig: Iosig, mount: Mount, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    directory = mount("--trace", str(trace))
    (directory / "data").write_bytes(bytes(8192))
    with (directory / "data").open("r+b") as file, mmap.mmap(file.fileno(), 8192) as mapped:
        mapped[4096:4100] = b"abcd"
        mapped.flush()
    rows = rows_in(iosig, directory, trace)
    written = [(row.pid, row.offset, row.result) for row in rows if row.call == "write"]
    assert written == [(os.getpid(), 0, 8192), (0, 4096, 4096)]
    assert next(row for row in rows if row.call == "read").pid == os.getpid()  # the page fault is the program's
    assert {each["program"] for each in iosig.json("trace", "info", trace)["processes"] if each["pid"] == 0} == {
        "[kernel]"
    }


def test_a_program_that_executes_another_with_files_open_is_not_held_up(mount: Mount, tmp_path: Path) -> None:
    """execve(2) closes them while it holds locks that readers of /proc/PID/environ wait for."""
    directory = mount("--trace", str(tmp_path / "trace"))
    program = (
        "import os, sys\nfds = [os.open(sys.argv[1] + f'/{n}', os.O_CREAT | os.O_WRONLY) for n in range(50)]\n"
        "if len(sys.argv) < 8: os.execv(sys.executable, [sys.executable, '-c', *sys.orig_argv[2:], 'again'])\n"
    )
    subprocess.run([sys.executable, "-c", program, directory], check=True, timeout=30)


def test_many_short_programs_take_little_room_and_no_descriptors(iosig: Iosig, mount: Mount, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    directory = mount("--trace", str(trace))
    (directory / "data").write_bytes(b"some data")
    descriptors = Path(f"/proc/{mount.pids[-1]}/fd")  # type: ignore[attr-defined]
    before = len(list(descriptors.iterdir()))
    script = 'n=0; while [ $n -lt 300 ]; do /bin/cat "$1" > /dev/null; n=$((n + 1)); done'
    subprocess.run(["sh", "-c", script, "-", directory / "data"], check=True)
    assert len(list(descriptors.iterdir())) < before + 20
    rows = rows_in(iosig, directory, trace)
    opens = [row for row in rows if row.call == "open" and row.length is not None and row.length & os.O_ACCMODE == 0]
    assert len({row.pid for row in opens}) == len(opens) == 300
    parts = [path.stat() for path in trace.glob("*.part")]
    assert len(parts) < 310 and all(part.st_blocks * 512 <= 8192 for part in parts)
    assert all(part["state"] == "complete" for part in iosig.json("trace", "info", trace)["parts"])


@needs_mounts
def test_a_full_trace_directory_costs_calls_of_the_trace_and_nothing_else(
    iosig: Iosig, mount: Mount, tmp_path: Path
) -> None:
    room = tmp_path / "room"
    room.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60k", "none", room], check=True)
    try:
        command = [iosig.binary, "mount", "--foreground", "--trace", room / "trace", tmp_path / "source"]
        mounted = tmp_path / "mounted"
        (tmp_path / "source").mkdir(exist_ok=True)
        daemon = subprocess.Popen([*command, mounted], stderr=subprocess.PIPE, text=True, env=iosig.env)
        while not is_mounted(mounted):
            assert daemon.poll() is None
            time.sleep(0.01)
        draw = random.Random(1)
        for number in range(4):
            program = (
                "import os, sys\nfd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)\n"
                f"for n in {[draw.randrange(10**6) for _ in range(1000)]}: assert os.pwrite(fd, b'x', n) == 1"
            )
            subprocess.run([sys.executable, "-c", program, mounted / f"{number}"], check=True)
        iosig("unmount", mounted)
        assert daemon.wait(30) == 0
        complaints = (daemon.stderr or sys.stdin).read()
        assert complaints.count("is not complete") == 1
        told = iosig("trace", "info", room / "trace")
        assert "could not be recorded" in told.stderr
    finally:
        subprocess.run(["umount", "-l", room], check=True)


def test_a_trace_that_cannot_be_is_refused(iosig: Iosig, mount: Mount, tmp_path: Path) -> None:
    directory = mount()
    iosig("unmount", directory)
    source = tmp_path / "source"
    inside = iosig("mount", "--trace", directory / "trace", source, directory, check=3)
    assert "is below the mount point" in inside.stderr
    (tmp_path / "link").symlink_to(directory)
    assert "is below" in iosig("mount", "--trace", tmp_path / "link/trace", source, directory, check=3).stderr
    assert "is below" in iosig("mount", "--trace", source / "trace", source, source, check=3).stderr
    assert not list(source.iterdir()) and not is_mounted(directory)
    assert "cannot make" in iosig("mount", "--trace", tmp_path / "none/trace", source, directory, check=4).stderr
    assert not is_mounted(directory)
    # Below the source is allowed: the daemon reaches it past the mount.
    mount("--trace", str(source / "trace"))
    (directory / "file").write_text("x")
    assert any(row.path == str(directory / "file") for row in rows_in(iosig, directory, source / "trace"))
