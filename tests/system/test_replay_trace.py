"""`iosig replay TRACE`: what a replay leaves, and does, against what the traced program did."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Iosig
from tracing import Row, Tracing

PYTHON = (sys.executable, "-S", "-E", "-c")
MB = 1 << 20


def replay(tracing: Tracing, onto: Path, *options: object, check: int = 0) -> dict[str, Any]:
    """Replays the last trace's accesses to the program's directory; returns what --json says, if anything."""
    done = tracing.iosig("replay", tracing.trace, "--onto", onto, "--files", f"{tracing.directory}/*", "--json",
                         *options, check=check)  # fmt: skip
    return json.loads(done.stdout) if done.stdout else {}


def sizes(directory: Path) -> dict[str, int]:
    return {str(path.relative_to(directory)): path.stat().st_size for path in directory.rglob("*") if path.is_file()}


# Files that are made, replaced, removed, emptied, appended to, and written with holes.
PROGRAM = """
import os
os.makedirs("d/e")
with open("d/e/new.tmp", "wb") as f:
    for n in range(40): f.write(bytes(5000))
    f.flush(); os.fsync(f.fileno())
os.rename("d/e/new.tmp", "d/e/new")
with open("d/e/../e/new", "rb") as f:
    f.seek(50000); f.read(1000)
log = os.open("log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
for n in range(10): os.write(log, b"line\\n")
again = os.dup(log); os.close(log); os.write(again, b"end\\n")
out = os.open("out", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
os.pwrite(out, bytes(100), 1000000)
os.pwrite(out, bytes(300000), 100000)
os.pwrite(out, bytes(10), 150000)
os.ftruncate(out, 900000)
os.posix_fallocate(out, 0, 950000)
data = os.open("in", os.O_RDONLY)
while os.read(data, 65536): pass
os.sendfile(out, data, 0, 70000)
if os.fork() == 0:
    os.pwrite(out, b"child" * 100, 500000)
    os._exit(0)
os.wait()
os.link("d/e/new", "linked")
open("gone", "w").write("x"); os.unlink("gone")
os.mkdir("p"); open("p/file", "w").close(); os.unlink("p/file")
below = os.open(".", os.O_RDONLY); os.rmdir("p", dir_fd=below)
os.mkdir("q"); os.rmdir("q")
"""


def test_a_replay_leaves_what_the_program_left(tracing: Tracing, tmp_path: Path) -> None:
    (tracing.directory / "in").write_bytes(bytes(3 * MB + 17))
    (tracing.directory / "log").write_bytes(bytes(33))
    tracing(*PYTHON, PROGRAM)
    onto = tmp_path / "again"
    document = replay(tracing, onto, "--verify", "--keep", "--no-think")
    assert sizes(onto) == sizes(tracing.directory)
    assert (onto / "linked").stat().st_ino == (onto / "d/e/new").stat().st_ino
    assert document["plan"]["processes"] == 2 and document["replay"]["failed"] == 0
    assert document["check"] == {
        "files": 5, "unchecked_files": 0, "bytes": sum(sizes(onto).values()), "wrong_sizes": 0, "wrong_bytes": 0,
        "wrong_bytes_read": 0,
    }  # fmt: skip
    # A hole is zeros, and bytes that were written are not.
    content = (onto / "out").read_bytes()
    assert content[410000:500000] == bytes(90000) and content[500000:500500].count(0) < 30
    replayed = {(each["name"], each["kind"]): each for each in document["replay"]["streams"]}
    for name in ("d/e/new.tmp", "log", "out", "in"):
        for kind, calls in (("read", ("read", "sendfile_source")), ("write", ("write", "pwrite", "sendfile"))):
            rows = [row for row in tracing.of_file(name) if row.layer == "posix" and row.call in calls]
            if rows:
                of = replayed[name, kind]
                assert of["replayed"]["count"] == of["original"]["count"] == len(rows)
                assert of["replayed"]["bytes"] == sum(row.result or 0 for row in rows)


def test_appends_that_overtake_each_other_are_no_bytes_of_before(tracing: Tracing, tmp_path: Path) -> None:
    # Rank 1's append begins before rank 0's, and ends up behind it: at 200, where rank 0's is at 100.
    def plan(existing: int) -> tuple[int, int]:
        lines = ["rank,pid,call,path,fd,offset,length,start_ns,end_ns,result"]
        lines += [f"{rank},{rank + 7},open,/data/log,3,,{os.O_WRONLY | os.O_APPEND | os.O_CREAT},{rank},5,3"
                  for rank in range(2)]  # fmt: skip
        for rank, at, start, end in ((0, 0, 10, 20), (1, 200, 30, 45), (0, 100, 31, 44)):
            lines.append(f"{rank},{rank + 7},write,/data/log,3,{existing + at},100,{start},{end},100")
        (tmp_path / f"{existing}.csv").write_text("\n".join(lines) + "\n")
        trace = tmp_path / f"{existing}.trace"
        tracing.iosig("import", tmp_path / f"{existing}.csv", "-o", trace)
        said = json.loads(tracing.iosig("replay", trace, "--dry-run", "--json").stdout)["plan"]
        return said["initial_files"], said["initial_bytes"]

    assert plan(0) == (0, 0)
    assert plan(5000) == (1, 5000)


STREAMS = """
import ctypes, os
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
def write(mode, count):
    stream = ctypes.c_void_p(libc.fopen(b"log", mode))
    libc.fwrite(b"x" * count, 1, count, stream)
    libc.fclose(stream)
write(b"w", 100000); write(b"w", 10); write(b"a", 7)
open("other", "wb").write(bytes(5))
os.symlink("log", "link"); os.unlink("link")
"""


def test_streams_of_the_c_library_are_emptied_and_links_are_no_failures(tracing: Tracing, tmp_path: Path) -> None:
    tracing(*PYTHON, STREAMS)
    onto = tmp_path / "again"
    document = replay(tracing, onto, "--verify", "--keep", "--no-think")
    assert sizes(onto) == sizes(tracing.directory) == {"log": 17, "other": 5}
    done = document["replay"]
    assert (done["failed"], done["made_at_need"], document["check"]["wrong_sizes"]) == (0, 0, 0)
    written = [row for row in tracing.rows() if row.layer == "posix" and row.call == "write" and "/log" in row.path]
    [total] = [each for each in done["totals"] if each["kind"] == "write"]
    assert total["replayed"]["count"] == total["original"]["count"] == len(written) + 1
    assert total["replayed"]["bytes"] == 100000 + 10 + 7 + 5


def moves(rows: list[Row], directory: Path) -> dict[str, list[tuple[str, str, int | None, int | None]]]:
    """What each thread does with files below the directory, of calls that a replay repeats."""
    kinds = {"read": "read", "pread": "read", "sendfile_source": "read", "write": "write", "pwrite": "write",
             "sendfile": "write", "fsync": "sync", "rename": "rename", "unlink": "unlink", "mkdir": "mkdir",
             "rmdir": "unlink", "link": "link", "open": "open", "ftruncate": "truncate",
             "fallocate": "allocate"}  # fmt: skip
    found = defaultdict(list)
    for row in rows:
        if row.layer == "posix" and row.call in kinds and row.path.startswith(f"{directory}/"):
            name = os.path.relpath(row.path, directory)
            if row.call == "open" and ((row.length or 0) & os.O_DIRECTORY or name == "."):
                continue
            has_range = row.call not in ("open", "fsync", "rename", "link")
            if (row.result or 0) >= 0:
                found[f"{row.pid}.{row.tid}"].append(
                    (kinds[row.call], name, row.offset if has_range else None, row.result if has_range else None)
                )
    return dict(found)


def test_a_replay_of_a_replay_repeats_each_access(tracing: Tracing, tmp_path: Path) -> None:
    (tracing.directory / "in").write_bytes(bytes(3 * MB + 17))
    (tracing.directory / "log").write_bytes(bytes(33))
    tracing(*PYTHON, PROGRAM)
    original = moves(tracing.rows(), tracing.directory)
    onto, first = tmp_path / "again", tracing.trace
    done = tracing(tracing.iosig.binary, "replay", first, "--onto", onto, "--files", f"{tracing.directory}/*")
    assert "took" in done
    rows = tracing.rows()
    parent = next(row.pid for row in rows if row.call == "open" and str(first) in row.path)
    again = moves([row for row in rows if row.pid != parent], onto)
    # The child's own descriptor is opened by the replay, which the child has inherited.
    opened = [(kind, name, None, None) for kind, name in (("open", "out"),)]
    child = next(stream for stream in original if len(original[stream]) == 1)
    original[child] = opened + original[child]
    assert sorted(again.values()) == sorted(original.values())


def test_think_time_is_kept_scaled_or_fixed(tracing: Tracing, tmp_path: Path) -> None:
    tracing(*PYTHON, "import os,time\nf=os.open('f',os.O_RDWR|os.O_CREAT)\n"
            "for n in range(20): time.sleep(0.01); os.write(f,bytes(1000))")  # fmt: skip
    rows = tracing.of_file("f")
    asked = sum(after.start_ns - (before.end_ns or 0) for before, after in itertools.pairwise(rows)) / 1e9
    assert asked >= 0.2
    for options, wanted in ((), asked), (("--think", 0.25), asked / 4), (("--compute", "2ms"), 21 * 0.002):
        document = replay(tracing, tmp_path / "again", *options)["replay"]
        # The replayed open has its think time; the descriptor's other calls are not all replayed.
        assert wanted * 0.999 <= document["think_s"]
        assert document["elapsed_s"] >= wanted
        assert document["think_s"] < wanted + 21 * (document["delay"]["max_s"] + 0.001)
    quick = replay(tracing, tmp_path / "again", "--no-think")["replay"]
    assert quick["think_s"] < asked / 4


@pytest.mark.skipif(shutil.which("mpicc.openmpi") is None, reason="needs Open MPI")
def test_ranks_of_mpi_replay_as_processes(tracing: Tracing, tmp_path: Path) -> None:
    source = tmp_path / "job.c"
    source.write_text("""#include <mpi.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank; MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char* block = malloc(65536);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, "shared", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  for (int n = 0; n < 25; ++n)
    MPI_File_write_at(file, (MPI_Offset)(n * 4 + rank) * 65536, block, 65536, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_File_open(MPI_COMM_WORLD, "shared", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  MPI_File_read_at(file, (MPI_Offset)((rank + 1) % 4) * 65536, block, 65536, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Finalize();
}
""")
    subprocess.run(["mpicc.openmpi", source, "-o", tmp_path / "job"], check=True)
    env = tracing.iosig.env | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    tracing.trace = tmp_path / "trace"
    subprocess.run(
        ["mpirun.openmpi", "--oversubscribe", "-n", "4", tracing.iosig.binary, "trace", "-o", tracing.trace, "--",
         tmp_path / "job"], cwd=tracing.directory, env=env, check=True, timeout=120)  # fmt: skip
    for processes in (4, 2):
        document = replay(tracing, tmp_path / "again", "--verify", "--keep", "--processes", processes)
        assert document["plan"]["processes"] == processes
        assert sizes(tmp_path / "again")["shared"] == 100 * 65536
        assert document["check"]["wrong_bytes"] == document["check"]["wrong_bytes_read"] == 0
        assert document["replay"]["failed"] == document["replay"]["short_reads"] == 0
        shutil.rmtree(tmp_path / "again")


def test_a_dry_run_and_preparing_say_and_make_what_is_needed(tracing: Tracing, tmp_path: Path) -> None:
    (tracing.directory / "in").write_bytes(bytes(100000))
    tracing(*PYTHON, "open('out','wb').write(open('in','rb').read(70000))")
    onto = tmp_path / "again"
    plan = replay(tracing, onto, "--dry-run")["plan"]
    assert not onto.exists()
    assert plan["initial_files"] == 1 and plan["written_bytes"] == 70000
    read = sum(row.result or 0 for row in tracing.of_file("in", "read"))
    assert plan["initial_bytes"] == read and plan["room_bytes"] == read + 70000
    replay(tracing, onto, "--prepare-only")
    assert {name: size for name, size in sizes(onto).items() if not name.startswith(".")} == {"in": read}
    replay(tracing, onto, "--verify", check=2)  # the bytes would not be those that are checked
    document = replay(tracing, onto, "--drop-caches")
    assert document["replay"]["failed"] == document["replay"]["short_reads"] == 0
    assert not onto.exists()


def test_a_replay_prefetches_as_asked_and_reads_the_same_bytes(tracing: Tracing, tmp_path: Path) -> None:
    (tracing.directory / "in").write_bytes(bytes(5 * MB))
    tracing(*PYTHON, "import os\nf=os.open('in',os.O_RDONLY)\nfor n in range(50): os.pread(f,4096,n*100000)")
    for predictor in ("none", "pattern", "markov", "perfect"):
        document = replay(tracing, tmp_path / "again", "--verify", "--prefetch", predictor)
        assert document["replay"]["failed"] == document["replay"]["short_reads"] == 0
        assert document["check"]["wrong_bytes_read"] == 0
        # The engine hears of all reads, until it leaves quick ones alone.
        heard = document["prefetch"]["read_bytes"]
        assert heard == 0 if predictor == "none" else 8 * 4096 <= heard <= 50 * 4096
    replay(tracing, tmp_path / "again", "--prefetch", "guess", check=2)
    assert not (tmp_path / "again").exists()


def test_a_replay_never_leaves_its_directory(iosig: Iosig, tmp_path: Path) -> None:
    log = tmp_path / "strace.log"
    calls = [
        'openat(AT_FDCWD, "/a/../../../../x/../etc/shadow2", O_WRONLY|O_CREAT, 0600) = 3',
        'write(3, ""..., 100) = 100',
        "close(3) = 0",
        'openat(AT_FDCWD, "/b/../sub/./f", O_WRONLY|O_CREAT|O_TRUNC, 0600) = 3',
        'write(3, ""..., 50) = 50',
        "close(3) = 0",
    ]
    log.write_text("".join(f"1 1700000000.000{n}01 {call} <0.000010>\n" for n, call in enumerate(calls)))
    iosig("import", log, "-o", tmp_path / "trace")
    onto = tmp_path / "jail" / "again"
    onto.parent.mkdir()
    iosig("replay", tmp_path / "trace", "--onto", onto, "--keep", "--all")
    assert sizes(tmp_path / "jail") == {"again/etc/shadow2": 100, "again/sub/f": 50}
    # Links that somebody plants are not followed, and their targets stay as they are.
    victim = tmp_path / "victim"
    for plant in (os.symlink, os.link):
        shutil.rmtree(onto)
        iosig("replay", tmp_path / "trace", "--onto", onto, "--all", "--prepare-only")
        victim.write_text("precious")
        plant(victim, onto / "sub" / "f")
        done = iosig("replay", tmp_path / "trace", "--onto", onto, "--all", check=4)
        assert "another program" in done.stderr and victim.read_text() == "precious"
        victim.unlink()
        onto.mkdir(exist_ok=True)
    shutil.rmtree(onto)
    iosig("replay", tmp_path / "trace", "--onto", onto, "--all", "--prepare-only")
    shutil.rmtree(onto / "sub")
    (tmp_path / "elsewhere").mkdir()
    (onto / "sub").symlink_to(tmp_path / "elsewhere")
    iosig("replay", tmp_path / "trace", "--onto", onto, "--all", check=None)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_refusals_leave_nothing(tracing: Tracing, tmp_path: Path) -> None:
    tracing(*PYTHON, "import os,time\nf=os.open('f',os.O_RDWR|os.O_CREAT)\nos.pwrite(f,b'x',1<<20)\ntime.sleep(5)\n"
            "os.write(f,b'y')")  # fmt: skip
    full, onto = tmp_path / "full", tmp_path / "again"
    full.mkdir()
    (full / "file").write_text("mine")
    assert "not empty" in tracing.iosig("replay", tracing.trace, "--onto", full, check=2).stderr
    assert (full / "file").read_text() == "mine"
    assert "--onto" in tracing.iosig("replay", tracing.trace, check=2).stderr
    tracing.iosig("replay", tmp_path / "nothing", "--onto", onto, check=None)
    (tmp_path / "empty").mkdir()
    assert tracing.iosig("replay", tmp_path / "empty", "--onto", onto, check=3).stderr
    running = subprocess.Popen([tracing.iosig.binary, "replay", tracing.trace, "--onto", onto, "--files", "f"],
                               env=tracing.iosig.env, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)  # fmt: skip
    for _ in range(200):
        if onto.exists() and list(onto.iterdir()):
            break
        time.sleep(0.02)
    assert [path.name for path in onto.iterdir()] == ["f"]
    running.send_signal(signal.SIGINT)
    assert running.wait(20) == 130 and not onto.exists()


@pytest.fixture
def imported(iosig: Iosig, tmp_path: Path) -> Callable[..., Path]:
    """Makes a trace of system calls, each 1 ms after the one before it (or at its time in seconds)."""

    def make(*calls: str, times: tuple[float, ...] = ()) -> Path:
        log, trace = tmp_path / "strace.log", tmp_path / "imported"
        begins = times or tuple(0.001 * n for n in range(len(calls)))
        log.write_text("".join(f"1 {1.7e9 + begin:.6f} {call} <0.000010>\n"
                               for begin, call in zip(begins, calls, strict=True)))  # fmt: skip
        iosig("import", log, "-o", trace)
        return trace

    return make


def test_sparse_files_that_fit_no_storage_together_are_refused(
    iosig: Iosig, imported: Callable[..., Path], tmp_path: Path
) -> None:
    """The sum of their sizes is 2^64, which 64 bits take for 0: then the storage was filled up."""
    calls = []
    for n in range(4):
        calls += [f'openat(AT_FDCWD, "/d/f{n}", O_RDONLY) = 3', f"pread64(3, \"\"..., 1, {2**62 - 1}) = 1",
                  "close(3) = 0"]  # fmt: skip
    trace, onto = imported(*calls), tmp_path / "again"
    assert iosig.json("replay", trace, "--dry-run")["plan"]["room_bytes"] == 2**63 - 1
    assert "has room for" in iosig("replay", trace, "--onto", onto, check=1).stderr
    assert not onto.exists()


def test_think_times_beyond_the_clock_stay_long(iosig: Iosig, imported: Callable[..., Path]) -> None:
    """A day a million times is longer than 64 bits of nanoseconds: then there was none."""
    calls = ['openat(AT_FDCWD, "/d/f", O_WRONLY|O_CREAT, 0600) = 3', "close(3) = 0"]
    trace = imported(*calls, times=(0, 86400))
    plan = iosig.json("replay", trace, "--dry-run", "--think", "1e6")["plan"]
    assert plan["think_s"] > 2e9 and plan["expected_s"] > 2e9


# A name that keeps its file, and one of two names of a file that becomes the other one, which keeps both.
RENAMES_TO_ITSELF = """
import os
os.mkdir("d")
open("d/x", "w").write("x" * 5000)
os.rename("d/x", "d/../d/x")
open("d/x").read()
os.link("d/x", "d/y")
os.rename("d/x", "d/y")
os.rename("d", "./d")
open("d/x").read(); open("d/y").read()
"""


def test_a_file_that_is_renamed_to_itself_is_still_there(tracing: Tracing, tmp_path: Path) -> None:
    tracing(*PYTHON, RENAMES_TO_ITSELF)
    onto = tmp_path / "again"
    document = replay(tracing, onto, "--verify", "--keep")
    assert document["plan"]["initial_files"] == 0
    assert sizes(onto) == sizes(tracing.directory / "d") == {"x": 5000, "y": 5000}
    assert document["check"]["files"] == 2


def test_directories_without_files_go_with_the_replay(tracing: Tracing, tmp_path: Path) -> None:
    """Those above a directory that the program made stayed, as something that another program had put there."""
    (tracing.directory / "a" / "b").mkdir(parents=True)
    for program in ("os.mkdir('a/b/c'); open('f', 'w').close()", "os.mkdir('a/b/d')"):
        tracing(*PYTHON, "import os; " + program)
        done = tracing.iosig("replay", tracing.trace, "--onto", tmp_path / "again", "--json",
                             "--files", f"{tracing.directory}/*")  # fmt: skip
        assert json.loads(done.stdout)["replay"]["made_at_need"] == 0
        assert "another program" not in done.stderr and not (tmp_path / "again").exists()
    assert json.loads(done.stdout)["plan"]["directory"] == str(tracing.directory / "a/b")


# Directories in a directory that gets another name: made by the program, and there before; with a file, and without.
RENAMES_A_TREE = """
import os
os.makedirs("d/e/h"); open("d/e/f", "w").write("x" * 100); os.mkdir("d/empty")
os.rename("d", "g")
open("g/e/f").read(); os.rmdir("g/empty"); open("g/e/h/new", "w").write("y"); os.mkdir("g/e/k")
os.rename("g/e/h", "z"); open("z/new").read()
open("there/a/b/c").read(); os.rename("there", "moved"); open("moved/a/b/c").read(); os.mkdir("moved/a/n")
"""


def test_directories_in_a_renamed_directory_go_with_it(tracing: Tracing, tmp_path: Path) -> None:
    (tracing.directory / "there" / "a" / "b").mkdir(parents=True)
    (tracing.directory / "there" / "a" / "b" / "c").write_bytes(bytes(50))
    tracing(*PYTHON, RENAMES_A_TREE)
    onto = tmp_path / "again"
    document = replay(tracing, onto, "--verify", "--keep")
    assert document["replay"]["failed"] == document["replay"]["made_at_need"] == 0
    for root in (onto, tracing.directory):
        found = sorted(str(path.relative_to(root)) for path in root.rglob("*"))
        assert found == ["g", "g/e", "g/e/f", "g/e/k", "moved", "moved/a", "moved/a/b", "moved/a/b/c", "moved/a/n", "z",
                         "z/new"]  # fmt: skip
    shutil.rmtree(onto)
    replay(tracing, onto)
    assert not onto.exists()


def test_a_directory_that_is_put_aside_and_made_again_was_there_before(tracing: Tracing, tmp_path: Path) -> None:
    (tracing.directory / "out" / "a").mkdir(parents=True)
    (tracing.directory / "log" / "a").mkdir(parents=True)
    for name in ("out", "log"):
        (tracing.directory / name / "a" / "b").write_bytes(bytes(50))
    tracing(*PYTHON, "import os; open('log/a/b').read(); os.rename('log', 'log.old'); os.mkdir('log')\n"
            "open('out/a/b').read(); os.rename('out', 'old'); os.mkdir('out')\n"
            "os.mkdir('out/a'); open('out/a/new', 'w').write('x'); os.mkdir('out/c')")  # fmt: skip
    onto = tmp_path / "again"
    document = replay(tracing, onto, "--verify", "--keep")
    assert document["replay"]["failed"] == document["replay"]["made_at_need"] == 0
    assert sizes(onto) == sizes(tracing.directory) == {"old/a/b": 50, "out/a/new": 1, "log.old/a/b": 50}


def test_a_directory_is_renamed_and_removed_after_what_others_did_below_it(iosig: Iosig, tmp_path: Path) -> None:
    """Each access begins 0.1 s after the one before it: the third and fourth process have to wait for the second."""
    lines = [
        '1 1700000000.0 mkdir("/w/d", 0700) = 0 <0.00001>',
        '1 1700000000.01 mkdir("/w/old", 0700) = 0 <0.00001>',
        '2 1700000000.1 openat(AT_FDCWD, "/w/d/x", O_WRONLY|O_CREAT, 0600) = 3 <0.00001>',
        '2 1700000000.2 write(3, ""..., 100) = 100 <0.00001>',
        "2 1700000000.3 close(3) = 0 <0.00001>",
        '2 1700000000.4 openat(AT_FDCWD, "/w/old/y", O_WRONLY|O_CREAT, 0600) = 3 <0.00001>',
        "2 1700000000.5 close(3) = 0 <0.00001>",
        '2 1700000000.6 rename("/w/old/y", "/w/y") = 0 <0.00001>',
        '3 1700000000.7 rename("/w/d", "/w/g") = 0 <0.00001>',
        '4 1700000000.8 rmdir("/w/old") = 0 <0.00001>',
    ]
    log, trace, onto = tmp_path / "strace.log", tmp_path / "imported", tmp_path / "again"
    log.write_text("\n".join(lines) + "\n")
    iosig("import", log, "-o", trace)
    document = iosig.json("replay", trace, "--onto", onto, "--keep", "--compute", "100ms")
    assert document["replay"]["failed"] == document["replay"]["made_at_need"] == 0
    assert sizes(onto) == {"g/x": 100, "y": 0} and not (onto / "old").exists()


def test_writes_at_an_offset_of_a_file_that_is_appended_to_are_appended(tracing: Tracing, tmp_path: Path) -> None:
    """As Linux does. The file counted as one that had been there before, up to that offset."""
    tracing(*PYTHON, "import os; f = os.open('f', os.O_RDWR | os.O_APPEND | os.O_CREAT)\n"
            "os.pwrite(f, bytes(100), 5000); os.write(f, bytes(10)); os.pread(f, 200, 0)")  # fmt: skip
    document = replay(tracing, tmp_path / "again", "--verify", "--keep")
    assert document["plan"]["initial_files"] == document["replay"]["short_reads"] == 0
    assert sizes(tmp_path / "again") == sizes(tracing.directory) == {"f": 110}


def test_an_input_that_is_not_there_is_said_to_be_missing(iosig: Iosig, tmp_path: Path) -> None:
    for target in (["--onto", tmp_path / "again"], [tmp_path / "again"]):
        assert "No such file" in iosig("replay", tmp_path / "absent", *target, check=4).stderr


ROUNDS = 6
CSV = "host,pid,rank,call,path,fd,offset,length,start_ns,end_ns,result\n"


def in_rounds(ranks: int, last_rounds: dict[int, int]) -> str:
    """Ranks that write to files of their own, then wait for each other: one of them much, another one each round."""
    lines = []
    for number in range(ROUNDS):
        begin = 1_000_000 * number
        for rank in range(ranks):
            if number >= last_rounds.get(rank, ROUNDS):
                continue
            length = 8 * MB if rank == number % ranks else 100
            head, write = f"n1,{rank + 1},{rank}", f"pwrite,/job/{rank}.{number},{3 + number},0,{length}"
            lines += [
                (begin + rank, f"{head},{write},{begin + rank},{begin + 500},{length}"),
                (begin + 600 + rank, f"{head},MPI_Barrier,,,,{ranks},{begin + 600 + rank},{begin + 700},0"),
            ]
    return CSV + "".join(line + "\n" for _, line in sorted(lines))


@pytest.mark.parametrize("died", [False, True])
@pytest.mark.parametrize("processes", [0, 2])
def test_ranks_wait_for_each_other_at_barriers_as_they_did(tracing: Tracing, died: bool, processes: int) -> None:
    """The replay is traced itself. A rank that died after two rounds is not waited for."""
    ranks, last_rounds = 3, {2: 2} if died else {}
    (tracing.directory / "job.csv").write_text(in_rounds(ranks, last_rounds))
    job = tracing.directory / "job.trace"
    tracing.iosig("import", tracing.directory / "job.csv", "-o", job)
    told = tracing.iosig.json("replay", job, "--dry-run")["plan"]
    assert told["barriers"] == ROUNDS
    tracing(tracing.iosig.binary, "replay", job, "--onto", tracing.directory / "again", "--no-think", "--keep",
            *(["--processes", str(processes)] if processes else []))  # fmt: skip
    writes: dict[tuple[int, int], Row] = {}
    for row in tracing.rows(lambda row: "/again/" in row.path and row.call in ("write", "pwrite")):
        rank, number = map(int, Path(row.path).name.split("."))
        writes[rank, number] = row
    assert len(writes) == sum(last_rounds.get(rank, ROUNDS) for rank in range(ranks))
    for number in range(1, ROUNDS):
        ends = [row.end_ns or 0 for (_, of), row in writes.items() if of == number - 1]
        assert max(ends) <= min(row.start_ns for (_, of), row in writes.items() if of == number)


def test_a_directory_that_another_process_was_still_making(tracing: Tracing) -> None:
    """Its mkdir had made the directory, but not returned, when the other process made one below."""
    lines = (
        f"n1,1,0,pwrite,/job/large,3,0,{64 * MB},10,90,{64 * MB}\n"
        "n1,1,0,mkdir,/job/d,,,,100,500,0\n"
        "n1,2,1,mkdir,/job/d/e,,,,300,400,0\n"
        "n1,2,1,pwrite,/job/d/e/f,3,0,9,600,700,9\n"
    )
    (tracing.directory / "job.csv").write_text(CSV + lines)
    tracing.trace = tracing.directory / "job.trace"
    tracing.iosig("import", tracing.directory / "job.csv", "-o", tracing.trace)
    onto = tracing.directory / "again"
    done = tracing.iosig.json("replay", tracing.trace, "--onto", onto, "--no-think", "--keep")
    assert done["replay"]["failed"] == 0
    assert sizes(onto) == {"large": 64 * MB, "d/e/f": 9}
