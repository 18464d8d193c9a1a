"""`iosig import` on what other tools recorded of real programs."""

from __future__ import annotations

import bz2
import gzip
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from test_trace import SUPPORT, or_none

from conftest import Iosig
from draining import eventually
from tracing import Row, Tracing

HEADER = "id,parent,host,pid,tid,rank,layer,call,path,fd,offset,length,start_ns,end_ns,result\n"  # without second_path
SHELL = (
    "echo hello > a; cat a a > b; mkdir sub; (cd sub; echo in > c; cat ../a c > d); mv b 'e,\"f'; "
    "echo more >> a; head -c 5 'e,\"f' > g; exec 3<> a; read line <&3; echo x >&3; ln g h; rm g; exec cat < h"
)

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="a test that needs strace")


def without_part(line: str) -> tuple[str, ...]:
    """Fields of a line of CSV, but of id and parent only the number in the part."""
    own, parent, rest = line.split(",", 2)
    return str(int(own) % 2**44), str(int(parent) % 2**44), rest


def import_rows(tracing: Tracing, *arguments: object) -> list[Row]:
    """Imports, and makes the result the trace whose rows tracing.rows() has."""
    tracing.trace = tracing.directory.parent / f"trace.{next(tracing.numbers)}"
    tracing.iosig("import", *arguments, "-o", tracing.trace)
    return tracing.rows()


def straced(tracing: Tracing, *program: object, options: tuple[str, ...] = (), status: int = 0) -> tuple[Path, str]:
    """The file that strace wrote, and what the program said."""
    output = tracing.directory.parent / f"strace.{next(tracing.numbers)}.out"
    command = ["strace", "-f", "-ttt", "-T", *options, "-o", output, *program]
    done = subprocess.run(
        [str(part) for part in command], cwd=tracing.directory, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == status, done.stderr
    return output, done.stdout


def test_an_exported_trace_comes_back_as_it_was(tracing: Tracing, tmp_path: Path) -> None:
    names = ["plain", 'q"uote', "com,ma", "new\nline", "\r", b"\xff\xfe".decode(errors="surrogateescape")]
    script = "import sys\nfor name in sys.argv[1:]:\n  with open(name, 'w') as made: made.write('x' * 10000)\n"
    tracing(sys.executable, "-c", script, *names)
    exported, again = tmp_path / "job.csv", tmp_path / "again.csv"
    tracing.iosig("export", tracing.trace, "-o", exported)
    tracing.iosig("import", exported, "-o", tmp_path / "back")
    tracing.iosig("export", tmp_path / "back", "-o", again)
    first, second = (path.read_bytes().decode(errors="surrogateescape") for path in (exported, again))
    for name in names:
        assert f"{tracing.directory}/{name}".replace('"', '""') in first
    records = [
        [without_part(line) if line[:1].isdigit() else line for line in text.split("\n")] for text in (first, second)
    ]
    assert records[0] == records[1]


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("id,call,when\n", ":1:9: ", "'when' is no column"),
        ("call,path,start_ns,end_ns\n", ":1:1: ", "no column 'result'"),
        ("call,path,start_ns,end_ns,result\npread,/a,5,9,x\n", ":2:14: ", "result is 'x'"),
        ("call,path,start_ns,end_ns,result\npread,/a,5,4,0\n", ":2:12: ", "end_ns 4 before start_ns 5"),
        ("call,path,start_ns,end_ns,result\npread,/a,-5,4,0\n", ":2:10: ", "expected a number from 0"),
        ("call,path,start_ns,end_ns,result\npread,/a,5,9223372036854775808,0\n", ":2:12: ", "expected a number"),
        ("call,path,start_ns,end_ns,result\nfrob,/a,5,6,0\n", ":2:1: ", "'frob' is no call"),
        ('call,path,start_ns,end_ns,result\npread,"/a\nb",5,6,0\nread,/a,5,6\n', ":4:11: ", "4 fields; expected 5"),
        ('call,path,start_ns,end_ns,result\npread,"/a"b,5,6,0\n', ":2:7: ", "after a closing quote"),
        (HEADER + "2,0,n,1,1,,posix,fsync,,,,,5,6,1\n1,0,n,1,1,,posix,fsync,,,,,7,8,1\n", ":3:1: ", "id 1 after 2"),
        (HEADER + "2,2,n,1,1,,posix,read,/a,3,0,1,5,6,1\n", ":2:3: ", "parent 2 of call 2"),
        (HEADER + "1,0,n,1,1,,mpi-io,read,/a,3,0,1,5,6,1\n", ":2:12: ", "layer 'mpi-io' of read"),
        (HEADER + "1,0,n,1,1,,posix,read,/a,,,,5,6,1\n2,1,n,2,2,,posix,read,/a,,,,5,6,1\n", ":3:3: ", "of another"),
        ("hello\n", ":1: ", "no format that is known"),
    ],
)  # fmt: skip
def test_wrong_csv_is_refused_with_its_place_and_nothing_is_left(
    iosig: Iosig, tmp_path: Path, text: str, where: str, what: str
) -> None:
    job = tmp_path / "job.csv"
    job.write_text(text)
    before = sorted(tmp_path.iterdir())
    told = iosig("import", job, "-o", tmp_path / "job.trace", check=3).stderr
    assert f"{job}{where}" in told and what in told
    assert sorted(tmp_path.iterdir()) == before


def test_the_calls_before_a_cut_are_read(iosig: Iosig, tmp_path: Path) -> None:
    job = tmp_path / "job.csv"
    job.write_text("call,path,start_ns,end_ns,result\npread,/a,5,9,0\npread,/a,1")
    done = iosig("import", "--json", job, "-o", tmp_path / "job.trace")
    told = json.loads(done.stdout)
    assert told["schema"] == "iosig.import/1" and told["calls"] == 1
    assert told["remarks"] == [f"{job}:3: cut within the line; the calls before it are read"]


def test_an_import_that_is_interrupted_leaves_nothing(iosig: Iosig, tmp_path: Path) -> None:
    command = [str(iosig.binary), "import", "--format", "csv", "-", "-o", str(tmp_path / "job.trace")]
    for number in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen(
            command, env=iosig.env, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as started:
            assert started.stdin is not None and started.stderr is not None
            started.stdin.write("call,path,start_ns,end_ns,result\n" + "read,/a,5,9,1\n" * 100_000)
            started.stdin.flush()
            eventually(lambda: bool(list(tmp_path.glob(".job.trace.*"))))
            started.send_signal(number)
            assert started.wait(30) == 128 + number
            assert "interrupted; " in started.stderr.read()
        assert not list(tmp_path.glob("*job.trace*"))


def test_a_log_does_not_count_twice(iosig: Iosig, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.csv").write_text("call,path,start_ns,end_ns,result\nopen,/a,0,1,3\n")
    (tmp_path / "link").symlink_to(logs / "a.csv")
    for again in (logs / "a.csv", tmp_path / "link", logs):
        refused = iosig("import", logs / "a.csv", again, "-o", tmp_path / "trace", check=2).stderr
        assert "are one log" in refused and not (tmp_path / "trace").exists()
    iosig("import", logs, "-o", tmp_path / "trace")


def test_a_trace_that_is_there_is_not_touched(iosig: Iosig, tmp_path: Path) -> None:
    job, trace = tmp_path / "job.csv", tmp_path / "job.trace"
    job.write_text("call,path,start_ns,end_ns,result\npread,/a,5,9,0\n")
    trace.mkdir()  # an empty directory is taken
    iosig("import", job, "-o", trace)
    before = sorted(trace.iterdir())
    assert "exists" in iosig("import", job, "-o", trace, check=2).stderr
    assert sorted(trace.iterdir()) == before


@needs_strace
@pytest.mark.parametrize("options", [("-y",), ()], ids=["with -y", "without -y"])
def test_strace_of_random_calls_has_every_field(
    tracing: Tracing, compiled: Callable[[Path], Path], options: tuple[str, ...]
) -> None:
    output, said = straced(tracing, compiled(SUPPORT / "traced_calls.c"), 7, 1500, options=options)
    wanted = [line.split() for line in said.splitlines()]
    calls = {line[0] for line in wanted}
    found = [
        [row.call, Path(row.path).name, *map(or_none, (row.offset, row.length, row.result))]
        for row in import_rows(tracing, output)
        if Path(row.path).name in ("a", "b", "c", "log") and row.call in calls
    ]  # fmt: skip
    assert len(found) == len(wanted) > 1500
    for one, other in zip(found, wanted, strict=True):
        if int(other[4]) < 0 and other[0] in ("readv", "writev", "preadv", "pwritev"):
            one[3] = other[3]
        assert one == other


def of_process(rows: list[Row], directory: Path) -> list[list[tuple[object, ...]]]:
    """What each process did below a directory, in its order; sorted, as processes run in any order."""
    left_out = ("inherited", "fcntl", "fstat", "stat", "access", "dup", "close", "posix_fadvise", "chdir")
    of: dict[int, list[tuple[object, ...]]] = {}
    for row in rows:
        if row.path.startswith(f"{directory}/") and row.layer == "posix" and row.call not in left_out:
            length = None if row.call in ("rename", "link") else row.length
            of.setdefault(row.pid, []).append((row.call, row.path, row.offset, length, row.result))
    return sorted(of.values(), key=repr)


def test_forks_that_only_a_made_up_log_has_are_refused(iosig: Iosig, tmp_path: Path) -> None:
    """The lines of each child wait for its parent's fork, which waits for that of its parent, 40,000 times."""
    lines = ["1 1000.000001 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>"]
    lines += [f"{n} 1000.{n:06} clone(child_stack=NULL, flags=SIGCHLD) = {n + 1} <0.000001>" for n in range(2, 40000)]
    lines += ["1 1001.000001 <... clone resumed>) = 2 <0.5>"]
    (tmp_path / "log").write_text("\n".join(lines) + "\n")
    done = iosig("import", tmp_path / "log", "-o", tmp_path / "trace", check=3)
    assert "not a log of strace" in done.stderr and not [*tmp_path.glob("*trace*")]


@needs_strace
@pytest.mark.parametrize("options", [("-f",), ("-ff",)])
def test_strace_and_iosig_trace_tell_the_same_of_a_shell_and_its_children(
    tracing: Tracing, options: tuple[str, ...]
) -> None:
    tracing("sh", "-c", SHELL)
    wanted = of_process(tracing.rows(), tracing.directory)
    shutil.rmtree(tracing.directory)
    tracing.directory.mkdir()
    output, _ = straced(tracing, "sh", "-c", SHELL, options=("-y", *options))
    found = import_rows(tracing, *output.parent.glob(f"{output.name}*"))
    assert of_process(found, tracing.directory) == wanted
    assert len(wanted) > 6
    facts = json.loads(tracing.iosig("trace", "info", "--json", tracing.trace).stdout)["processes"]
    assert ["cat", "a", "a"] in [process["arguments"] for process in facts]
    assert {process["parent_pid"] for process in facts} & {process["pid"] for process in facts}


@needs_strace
def test_a_call_during_which_its_process_was_killed_is_in_flight(tracing: Tracing) -> None:
    script = (
        "import os, fcntl, signal, threading\n"
        "held = open('held', 'w'); fcntl.flock(held, fcntl.LOCK_EX)\n"
        "waits = open('held')\n"
        "threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()\n"
        "fcntl.flock(waits, fcntl.LOCK_EX)\n"
    )
    output, _ = straced(tracing, sys.executable, "-c", script, options=("-y",), status=-signal.SIGKILL)
    locks = [row for row in import_rows(tracing, output) if row.call == "flock" and row.path.endswith("/held")]
    assert [row.result for row in locks] == [0, None]
    assert locks[1].end_ns is None


@needs_strace
def test_lines_of_strace_that_are_cut_or_damaged_cost_only_themselves(tracing: Tracing) -> None:
    output, _ = straced(tracing, "dd", "if=/dev/zero", "of=copy", "bs=1000", "count=20", options=("-y",))
    lines = output.read_bytes().splitlines(keepends=True)
    writes = [n for n, line in enumerate(lines) if b" write(1</" in line]
    damaged = [*lines[: writes[5]], b"\0garbage\n", *lines[writes[5] + 1 : writes[12]], lines[writes[12]][:40]]
    output.write_bytes(b"".join(damaged))
    tracing.trace = tracing.directory.parent / "cut.trace"
    told = tracing.iosig("import", output, "-o", tracing.trace).stderr
    assert f"{output}:{writes[5] + 1}: no line of strace -ttt" in told
    assert f"{output}:{writes[12] + 1}: malformed or cut" in told
    found = tracing.of_file("copy", "write")
    assert [row.offset for row in found] == [*(n * 1000 for n in range(5)), *(n * 1000 - 1000 for n in range(6, 12))]


def event(name: str, start_us: int, tid: int = 7, kind: str = "POSIX", **args: object) -> str:
    """A line as DFTracer 2.2.0 writes it."""
    args = {"hhash": "6882", **args}
    return json.dumps(
        {"id": 1, "name": name, "cat": kind, "pid": 7, "tid": tid, "ts": start_us, "dur": 5, "ph": 1, "args": args}
    )


def named(kind: str, name: str, value: str, ph: object) -> str:
    args = {"hhash": "6882", "name": name, "value": value}
    return json.dumps({"name": kind, "cat": "dftracer", "pid": 7, "tid": 7, "ph": ph, "args": args})


def test_forks_that_never_end_keep_no_other_process_waiting(tracing: Tracing) -> None:
    log = tracing.directory / "log"
    log.write_text(
        "40 1700000000.100000 vfork( <unfinished ...>\n"
        "41 1700000000.200000 vfork( <unfinished ...>\n"
        '42 1700000000.300000 openat(AT_FDCWD, "/b", O_WRONLY|O_CREAT, 0600) = 3 <0.000010>\n'
        '42 1700000000.400000 write(3, "x", 1) = 1 <0.000010>\n'
    )
    assert [(row.pid, row.call, row.path) for row in import_rows(tracing, log)] == [
        (42, "open", "/b"), (42, "write", "/b"),
    ]  # fmt: skip


@pytest.mark.parametrize("ph", [4, "M"])
def test_logs_of_dftracer_have_paths_and_offsets(tracing: Tracing, ph: object) -> None:
    lines = [
        "[",
        named("HH", "node3", "6882", ph),
        named("FH", "/data/a", "e03b", ph),
        named("FH", "/data/b", "a277", ph),
        event("open", 1000, flags=578, mode=438, fhash="e03b"),
        event("write", 1010, ret=100, count=100, fhash="e03b"),
        event("lseek", 1020, ret=10, whence=0, offset=10, fhash="e03b"),
        event("read", 1030, ret=20, count=30, fhash="e03b"),
        event("pwrite", 1040, ret=30, offset=1000, count=30, fhash="e03b", tid=8),
        event("open", 1050, flags=0, fhash="e03b"),
        event("read", 1060, ret=20, count=30, fhash="e03b"),  # of which of the two?
        event("fwrite", 1070, kind="STDIO", ret=5, count=5, size=4, fhash="a277"),
        event("rename", 1080, fhash="e03b", newpath_hash="a277"),
        event("step", 1090, kind="PYTHON"),
        '{"id":2,"name":"rea',
    ]
    log = tracing.directory / "job.pfw"
    log.write_text("\n".join(lines))
    found = [(row.call, row.path, row.tid, row.offset, row.length, row.result) for row in import_rows(tracing, log)]
    assert found[:-1] == [
        ("open", "/data/a", 7, None, 578, 0),
        ("write", "/data/a", 7, 0, 100, 100),
        ("lseek", "/data/a", 7, 10, 0, 10),
        ("read", "/data/a", 7, 10, 30, 20),
        ("pwrite", "/data/a", 8, 1000, 30, 30),
        ("open", "/data/a", 7, None, 0, 0),
        ("read", "/data/a", 7, None, 30, 20),
        ("fwrite", "/data/b", 7, None, 20, 20),
    ]
    assert found[-1][:2] == ("rename", "/data/a")
    info = json.loads(tracing.iosig("trace", "info", "--json", tracing.trace).stdout)
    assert info["processes"][0]["host"] == "node3"
    told = tracing.iosig("import", log, "-o", tracing.directory / "again").stderr
    assert f"{log}:15: cut; left out" in told and "results of 3 calls" in told


def test_dftracer_tells_the_directory_of_relative_paths_until_it_changes(tracing: Tracing) -> None:
    start = {"name": "start", "cat": "dftracer", "pid": 7, "tid": 7, "ts": 990, "dur": 0, "ph": 1}
    lines = [
        named("HH", "node3", "6882", 4),
        named("FH", "/job", "c0", 4),
        named("FH", "out", "c1", 4),
        named("FH", "./sub/in", "c2", 4),
        json.dumps(start | {"args": {"hhash": "6882", "cwd": "c0"}}),
        event("pwrite", 1000, ret=8, offset=0, count=8, fhash="c1"),
        event("pread", 1010, ret=8, offset=0, count=8, fhash="c2"),
        event("rename", 1020, fhash="c1", newpath_hash="c2"),
        event("chdir", 1030, fhash="c2"),
        event("pwrite", 1040, ret=8, offset=0, count=8, fhash="c1"),
    ]
    log = tracing.directory / "job.pfw"
    log.write_text("\n".join(lines) + "\n")
    # DFTracer itself leaves an empty log for a child that made no call.
    empty = tracing.directory / "job-fork.pfw.gz"
    empty.write_bytes(b"")
    tracing.trace = tracing.directory / "job.trace"
    told = tracing.iosig("import", log, empty, "-o", tracing.trace)
    assert f"{empty}: empty; left out" in told.stderr
    paths = [(row.call, row.path, row.second_path) for row in tracing.rows() if row.call != "chdir"]
    assert paths == [
        ("pwrite", "/job/out", ""),
        ("pread", "/job/sub/in", ""),
        ("rename", "/job/out", "/job/sub/in"),
        ("pwrite", "out", ""),
    ]
    assert "no file of a format that is known" in tracing.iosig("import", empty, "-o", "none", check=3).stderr


def test_compressed_logs_are_read_together_and_a_cut_one_to_its_cut(tracing: Tracing) -> None:
    names = [named("HH", "node3", "6882", 4), named("FH", "/data/a", "e03b", 4)]
    events = [event("pwrite", 1000 + n, ret=8, offset=8 * n, count=8, fhash="e03b") for n in range(6000)]
    logs = tracing.directory / "logs"
    logs.mkdir()
    # DFTracer compresses in blocks: a log is several streams of gzip, one after another.
    parts = [
        gzip.compress("\n".join([*part, ""]).encode()) for part in (["[", *names], events[:2000], events[2000:4000])
    ]
    (logs / "a.pfw.gz").write_bytes(b"".join(parts))
    (logs / "b.pfw.bz2").write_bytes(bz2.compress("\n".join(events[4000:]).encode()))
    tracing.trace = tracing.directory / "both.trace"
    told = json.loads(tracing.iosig("import", "--json", logs, "-o", tracing.trace).stdout)
    assert (told["processes"], told["calls"], told["remarks"]) == (1, 6000, [])
    assert sorted(row.offset or 0 for row in tracing.rows()) == [8 * n for n in range(6000)]
    cut = tracing.directory / "cut.pfw.gz"
    cut.write_bytes(b"".join(parts)[:-100])
    tracing.trace = tracing.directory / "cut.trace"
    told = tracing.iosig("import", cut, "-o", tracing.trace).stderr
    assert f"{cut}: the compressed data are cut at byte {cut.stat().st_size}; what is before it is read" in told
    offsets = [row.offset for row in tracing.rows()]
    assert 2000 < len(offsets) < 4000 and offsets == [8 * n for n in range(len(offsets))]
    parts[1] = parts[1][:300] + bytes(byte ^ 0x55 for byte in parts[1][300:])
    cut.write_bytes(b"".join(parts))
    tracing.trace = tracing.directory / "damaged.trace"
    assert f"{cut}: the compressed data are damaged" in tracing.iosig("import", cut, "-o", tracing.trace).stderr
    offsets = [row.offset for row in tracing.rows()]
    assert len(offsets) < 2000 and offsets == [8 * n for n in range(len(offsets))]
