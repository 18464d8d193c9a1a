"""`iosig trace` on real programs: what they did is in the trace, and they do not notice."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Iosig
from redirecting import needs_mounts
from tracing import Tracing, rows_of

SUPPORT = Path(__file__).resolve().parent.parent / "support"


def or_none(number: int | None) -> str:
    """As traced_calls.c prints it."""
    return str(-(2**63) if number is None else number)


@pytest.mark.parametrize("seed", range(3))
def test_every_call_is_there_with_every_field(
    tracing: Tracing,
    compiled: Callable[[Path], Path],
    seed: int,
) -> None:
    said = tracing(compiled(SUPPORT / "traced_calls.c"), seed, 3000)
    wanted = [line.split() for line in said.splitlines()]
    calls = {line[0] for line in wanted}
    found = [
        [row.call, Path(row.path).name, *map(or_none, (row.offset, row.length, row.result))]
        for row in tracing.rows(lambda row: row.path.startswith(str(tracing.directory)) and row.call in calls)
    ]  # fmt: skip
    assert len(found) == len(wanted) > 3000
    for one, other in zip(found, wanted, strict=True):
        if int(other[4]) < 0 and other[0] in ("readv", "writev", "preadv", "pwritev"):
            one[3] = other[3]  # nobody reads the array of a call that failed
        assert one == other


def test_times_are_in_order_and_within_the_run(tracing: Tracing) -> None:
    tracing("sh", "-c", "dd if=/etc/passwd of=copy; sleep 0.05; dd if=copy of=again")
    rows = tracing.rows()
    assert [row.start_ns for row in rows] == sorted(row.start_ns for row in rows)
    assert all(row.end_ns is not None and row.end_ns >= row.start_ns for row in rows)
    assert 0.05e9 < max(row.end_ns or 0 for row in rows) - min(row.start_ns for row in rows) < 60e9
    writes = tracing.of_file("copy", "write")
    reads = tracing.of_file("copy", "read")
    assert writes and reads and (writes[-1].end_ns or 0) + 0.04e9 < reads[0].start_ns


def counted(tracing: Tracing, threads: int) -> tuple[int, ...]:
    """The writes that have returned, by thread."""
    counts = tracing.directory / "counts"
    return (
        struct.unpack(f"<{threads}Q", counts.read_bytes()[: 8 * threads].ljust(8 * threads, b"\0"))
        if counts.exists()
        else (0,)
    )


@pytest.mark.parametrize("seed", range(4))
def test_what_returned_before_a_kill_is_in_the_trace(
    tracing: Tracing,
    compiled: Callable[[Path], Path],
    seed: int,
) -> None:
    threads = 4
    program = tracing.start(compiled(SUPPORT / "traced_threads.c"), threads)
    while not all(counted(tracing, threads)):  # the smaller the trace, the sooner it is read
        assert program.poll() is None
    time.sleep(random.Random(seed).random() * 0.02)
    program.send_signal(signal.SIGKILL)
    program.wait()
    rows_by = defaultdict(list)
    for row in tracing.rows(lambda row: row.call == "pwrite"):
        rows_by[Path(row.path).name].append(row)
    for own, count in enumerate(counted(tracing, threads)):
        rows = rows_by[f"data.{own}"]
        returned = [row for row in rows if row.end_ns is not None]
        begun = [row for row in rows if row.end_ns is None]
        assert count > 0 and count <= len(returned) <= count + 1 and len(begun) <= 1
        assert [row.offset for row in rows] == [n % 1000 * 8 for n in range(len(rows))]


def test_calls_that_are_left_without_a_return_harm_no_other(
    tracing: Tracing,
    compiled: Callable[[Path], Path],
) -> None:
    made, by_handler, _ = map(int, tracing(compiled(SUPPORT / "traced_jumps.c")).split())
    rows = tracing.of_file("jumps", "pwrite")
    assert Counter(row.offset == 4096 for row in rows) == {False: made, True: by_handler}
    assert all(row.end_ns is not None for row in rows) and by_handler > 0
    ids = {row.id for row in rows if row.offset == 4096}
    assert not any(row.parent in ids for row in rows)


PROCESSES = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void put(const char *path) {
  const int fd = open(path, O_CREAT | O_WRONLY | O_APPEND, 0666);
  if (write(fd, "x", 1) != 1) abort();
  close(fd);
}
static void *thread(void *path) { put(path); return 0; }
int main(int argc, char **argv) {
  if (argc == 2) { put(argv[1]); return 0; }
  put("parent");
  const int kept = open("kept", O_CREAT | O_RDWR, 0666);
  if (write(kept, "12345", 5) != 5) return 1;
  if (fork() == 0) { put("forked"); if (write(kept, "678", 3) != 3) _exit(1); _exit(0); }
  while (wait(0) > 0) {}
  if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) == 0) { put("cloned"); _exit(0); }
  if (vfork() == 0) { execl(argv[0], argv[0], "vforked", (char *)0); _exit(1); }
  pthread_t made[20];
  for (int n = 0; n < 20; ++n) pthread_create(&made[n], 0, thread, "threads");
  for (int n = 0; n < 20; ++n) pthread_join(made[n], 0);
  while (wait(0) > 0) {}
  put("parent");
  if (write(kept, "9", 1) != 1) return 1;
  if (mkdir("folder", 0777) != 0 || fchdir(open("folder", O_RDONLY)) != 0) return 1;
  put("inside");
  if (fchdir(open("..", O_RDONLY)) != 0) return 1;
  if (fork() == 0) execl(argv[0], argv[0], "executed", (char *)0);
  if (fork() == 0) execveat(AT_FDCWD, argv[0], (char*[]){argv[0], "executed.at", 0}, environ, 0);
  while (wait(0) > 0) {}
  return 0;
}
"""


def test_processes_and_threads_of_all_kinds(tracing: Tracing, tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(PROCESSES)
    subprocess.run(["gcc", "-O1", "-w", "-o", tmp_path / "program", tmp_path / "program.c", "-pthread"], check=True)
    tracing(tmp_path / "program")
    pids = {}
    for name, writes in {"parent": 2, "forked": 1, "cloned": 1, "vforked": 1, "threads": 20, "executed": 1,
                         "executed.at": 1}.items():  # fmt: skip
        rows = tracing.of_file(name, "write")
        assert len(rows) == writes, name
        pids[name] = {row.pid for row in rows}
        assert len(pids[name]) == 1
    assert pids["threads"] == pids["parent"]
    assert len({*map(tuple, pids.values())}) == 6
    assert len({row.tid for row in tracing.of_file("threads", "write")}) > 1
    assert [(row.offset, row.length) for row in tracing.of_file("kept", "write")] == [(0, 5), (5, 3), (8, 1)]
    assert len(tracing.of_file("folder/inside", "write")) == 1
    assert all(row.path for row in tracing.rows() if row.fd is not None)
    told = json.loads(tracing.iosig("trace", "info", "--json", tracing.trace).stdout)
    assert all(process["complete"] for process in told["processes"])


def test_pointers_that_are_no_paths_are_refused(tracing: Tracing, compiled: Callable[[Path], Path]) -> None:
    program = compiled(SUPPORT / "bad_paths.c")
    plain = tracing.directory.parent / "plain"
    plain.mkdir()
    assert tracing(program) == subprocess.run(program, cwd=plain, capture_output=True, text=True, check=True).stdout


NO_KEYS = r"""
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#ifdef LIBRARY
__attribute__((constructor)) static void take_all(void) {
  pthread_key_t key;
  while (pthread_key_create(&key, 0) == 0) {
  }
}
#else
int main(void) {
  const int fd = open("data", O_RDWR | O_CREAT, 0644);
  return fd >= 0 && write(fd, "abc", 3) == 3 && close(fd) == 0 ? 0 : 1;
}
#endif
"""


def test_a_process_without_room_for_the_recorder_goes_on_and_is_counted(tracing: Tracing, tmp_path: Path) -> None:
    """Here a library has taken all keys of threads' data."""
    source, library = tmp_path / "keys.c", tmp_path / "libkeys.so"
    source.write_text(NO_KEYS)
    subprocess.run(["gcc", "-DLIBRARY", "-shared", "-fPIC", "-o", library, source, "-pthread"], check=True)
    subprocess.run(["gcc", "-o", tmp_path / "keys", source, "-Wl,--no-as-needed", library], check=True)
    tracing(tmp_path / "keys")
    assert (tracing.directory / "data").read_bytes() == b"abc"
    told = tracing.iosig.json("trace", "info", tracing.trace)
    assert told["unrecorded_processes"] == 1


def test_a_process_that_ends_by_quick_exit_is_complete(tracing: Tracing) -> None:
    tracing(sys.executable, "-S", "-E", "-c",
            "import ctypes, os\nfd = os.open('data', os.O_RDWR | os.O_CREAT)\nos.pwrite(fd, b'x', 0)\n"
            "ctypes.CDLL(None).quick_exit(5)", status=5)  # fmt: skip
    assert len(tracing.of_file("data", "pwrite")) == 1
    assert all(process["complete"] for process in tracing.iosig.json("trace", "info", tracing.trace)["processes"])


def test_streams_have_their_system_calls_below_them(tracing: Tracing) -> None:
    tracing(sys.executable, "-S", "-E", "-c",
            "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.fopen.restype = ctypes.c_void_p\n"
            "f = ctypes.c_void_p(libc.fopen(b'out', b'w'))\n"
            "for n in range(300): libc.fprintf(f, b'%s', b'x' * 99)\nlibc.fclose(f)\n"
            "f = ctypes.c_void_p(libc.fopen(b'out', b'r'))\nb = ctypes.create_string_buffer(5000)\n"
            "while libc.fread(b, 1, 5000, f): pass\nlibc.fclose(f)\n")  # fmt: skip
    rows = tracing.of_file("out")
    by_id = {row.id: row for row in rows}
    written = [row for row in rows if row.call == "write"]
    assert sum(row.result or 0 for row in written) == 300 * 99
    assert all(by_id[row.parent].call in ("fprintf", "fclose") for row in written)
    assert sum(row.result or 0 for row in rows if row.call == "fprintf") == 300 * 99
    assert sum(row.result or 0 for row in rows if row.call == "fread") == 300 * 99
    assert {by_id[row.parent].call for row in rows if row.call == "read"} == {"fread"}
    assert {row.layer for row in rows} == {"stdio", "posix"}


def test_programs_do_the_same_traced(tracing: Tracing, tmp_path: Path) -> None:
    script = (
        "set -e; mkdir d; seq 20000 | sort -R --random-source=/dev/zero > d/numbers; sort -n d/numbers > sorted;"
        "tar cf d.tar d; tar xf d.tar -O | md5sum; gzip -n -k d.tar; zcat d.tar.gz | cmp - d.tar;"
        "cp sorted copy; mv copy moved; ln moved link; ls | sort; wc moved link; find d -type f; grep -c 7 moved;"
        "dd if=moved of=dd bs=1000 skip=3 seek=7 conv=notrunc 2>/dev/null; md5sum dd; sed -i s/1/2/ moved; md5sum moved"
    )
    plain = tmp_path / "plain"
    plain.mkdir()
    wanted = subprocess.run(["bash", "-c", script], cwd=plain, capture_output=True, text=True, check=True).stdout
    assert tracing("bash", "-c", script) == wanted


def test_containers_are_directories_unless_the_program_runs_under_iosig_run(
    iosig: Iosig, tracing: Tracing, tmp_path: Path
) -> None:
    container = tmp_path / "data" / "file"
    container.parent.mkdir()
    iosig("run", "--container=file", "--", "sh", "-c", "echo hello > file", cwd=container.parent)
    copy = f"tar c -C {container.parent} file | tar x; cp -r {container} again; rm -r again/[a-z]*; rmdir again; "
    copy += "find . | sort"
    for way in ("plain", "traced"):
        (tmp_path / way).mkdir()
    wanted = subprocess.run(["sh", "-c", copy], cwd=tmp_path / "plain", capture_output=True, text=True, check=True)
    assert "./file/.iosig-container" in wanted.stdout
    assert tracing("sh", "-c", f"cd {tmp_path}/traced; {copy}") == wanted.stdout
    traced, run = [iosig.binary, "trace", "-o", tmp_path / "nested", "--"], [iosig.binary, "run", "--"]
    for both in ([*run, *traced], [*traced, *run]):
        assert iosig(*both[1:], "cat", container).stdout == "hello\n"
        shutil.rmtree(tmp_path / "nested")


def test_segments_files_and_calls_are_chosen(tracing: Tracing) -> None:
    program = (
        "import ctypes, os\nswitch = ctypes.CDLL(None).iosig_trace_switch\n"
        "fd = os.open('data', os.O_RDWR | os.O_CREAT)\nos.write(fd, b'before')\nswitch(1)\nos.write(fd, b'in')\n"
        "os.pread(fd, 5, 1)\nother = os.open('other.log', os.O_RDWR | os.O_CREAT)\nos.write(other, b'log')\n"
        "switch(0)\nos.write(fd, b'after')\n"
    )
    python = (sys.executable, "-S", "-E", "-c", program)
    tracing(*python, options=("--paused",))
    assert [(row.call, row.offset) for row in tracing.of_file("data") if row.call != "inherited"] == [
        ("write", 6),
        ("pread", 1),
    ]
    tracing(*python, options=("--ops", "pread,open"))
    assert [row.call for row in tracing.of_file("data")] == ["open", "pread"]
    tracing(*python, options=("--files", "*.log"))
    assert {Path(row.path).name for row in tracing.rows()} == {"other.log"}
    assert [row.call for row in tracing.of_file("other.log")][:2] == ["open", "write"]


@needs_mounts
def test_a_full_file_system_costs_calls_of_the_trace_and_nothing_else(tracing: Tracing) -> None:
    room = tracing.directory.parent / "room"
    room.mkdir()
    program = (
        "import os, threading\nfd = os.open('data', os.O_RDWR | os.O_CREAT)\n"
        "def work():\n  for n in range(20000): os.pwrite(fd, b'x' * (n % 50), (n * 7919) % 1000003)\n"
        "all = [threading.Thread(target=work) for _ in range(4)]\n[t.start() for t in all]\n[t.join() for t in all]\n"
    )
    script = (
        'mount -t tmpfs -o size=200k none "$1" && "$2" trace -o "$1/t" -- "$3" -S -E -c "$4" && "$2" trace info "$1/t"'
    )
    done = subprocess.run(
        ["unshare", "-m", "bash", "-c", script, "-", room, tracing.iosig.binary, sys.executable, program],
        cwd=tracing.directory, env=tracing.iosig.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "could not be recorded" in done.stderr or "tracing fails" in done.stderr


def test_a_directory_that_cannot_be_written(tracing: Tracing) -> None:
    """Said once; the program goes on."""
    program = tracing.start("sh", "-c", f"mv {tracing.directory.parent}/trace.0 gone; cat /etc/passwd; cat /etc/group",
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    out, complaints = program.communicate(timeout=60)
    assert program.returncode == 0 and out.decode() == Path("/etc/passwd").read_text() + Path("/etc/group").read_text()
    assert b"cannot make a file in" in complaints


def test_a_limit_of_file_sizes_is_for_the_trace_as_well(tracing: Tracing) -> None:
    """The recorder does not raise SIGXFSZ; the trace has what fits."""
    tracing("bash", "-c", "ulimit -f 8; for n in 1 2 3; do cat /etc/passwd > copy.$n; done")
    tracing("bash", "-c", "ulimit -f 60; exec dd if=/dev/zero of=data bs=1 count=20000")
    assert len(tracing.of_file("data", "write")) > 500


def test_a_limit_of_file_sizes_that_another_process_sets_is_for_the_trace_as_well(tracing: Tracing) -> None:
    """The program's calls do not tell of it."""
    tracing(sys.executable, "-c",
            "import os, subprocess\nfd = os.open('data', os.O_RDWR | os.O_CREAT)\n"
            "def put(count):\n    for n in range(count): os.pwrite(fd, bytes(n % 89 + 1), n * 7919 % 5000)\n"
            "put(2000)\nsubprocess.run(['prlimit', '--pid', str(os.getpid()), '--fsize=60000:'], check=True)\n"
            "put(40000)\nprint('done')")  # fmt: skip
    assert len(tracing.of_file("data", "pwrite")) > 2000


def test_times_in_microseconds_take_fewer_bytes(tracing: Tracing) -> None:
    program = (sys.executable, "-S", "-E", "-c",
               "import os\nfd = os.open('data', os.O_RDWR | os.O_CREAT)\n"
               "for n in range(20000): os.pwrite(fd, b'x', n)\n")  # fmt: skip
    sizes = []
    for options in ((), ("--microseconds",)):
        tracing(*program, options=options)
        sizes.append(sum(part.stat().st_size for part in tracing.trace.glob("*.part")))
        rows = tracing.of_file("data", "pwrite")
        took = [row.end_ns - row.start_ns for row in rows[:19000] if row.end_ns is not None]
        whole = [ns for ns in took if ns < 20000 and abs(ns - round(ns / 1000) * 1000) < 40]
        short = [ns for ns in took if ns < 20000]
        assert len(took) == 19000 and (whole == short) == bool(options)
    assert sizes[1] < 0.9 * sizes[0]  # 0.4 to 1 bytes a call of 3, as the times of the machine's calls vary


def test_flushes_and_ends_of_mappings_have_their_place_in_the_file(
    tracing: Tracing, compiled: Callable[[Path], Path], tmp_path: Path
) -> None:
    (tmp_path / "maps.c").write_text(r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  const long page = 4096;
  int fd = open("data", O_CREAT | O_RDWR, 0600);
  ftruncate(fd, 100 * page);
  char* at = mmap(0, 8 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 20 * page);
  close(fd);
  at[0] = 1;
  msync(at + 2 * page, page, MS_SYNC);
  mmap(at + page, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0); /* not the file any more */
  msync(at + page, page, MS_ASYNC);
  munmap(at + 1, page); /* fails: not a page's address */
  munmap(at + 3 * page, page); /* leaves two mappings */
  msync(at + 4 * page, 4 * page, MS_SYNC);
  munmap(at + 3 * page, page); /* nothing is there */
  if (fork() == 0) _exit(msync(at, page, MS_SYNC));
  wait(0);
  munmap(at, 8 * page); /* the first of its three parts */
  munmap(at, 8 * page);
  char* none = mmap(0, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(none, page);
  return 0;
}
""")
    tracing(compiled(tmp_path / "maps.c"))
    rows = tracing.rows(lambda row: row.call in ("mmap", "msync", "munmap"))
    assert {row.path for row in rows} == {str(tracing.directory / "data")}
    assert [(row.call, (row.offset or 0) // 4096, (row.length or 0) // 4096, row.result) for row in rows] == [
        ("mmap", 20, 8, 0), ("msync", 22, 1, 0), ("munmap", 20, 0, -22), ("munmap", 23, 1, 0), ("msync", 24, 4, 0),
        ("munmap", 20, 1, 0),
    ]  # fmt: skip


def test_a_file_that_takes_the_place_of_a_part_is_not_written(tracing: Tracing) -> None:
    """Whoever may write in the trace's directory could lead the recorder to any file of the user's."""
    (tracing.directory / "precious").write_bytes(bytes(50000))
    tracing(sys.executable, "-S", "-E", "-c",
            "import glob, os\nfd = os.open('data', os.O_RDWR | os.O_CREAT)\nos.write(fd, b'x')\n"
            "part, = glob.glob('../trace.0/*.part')\nos.rename(part, 'moved')\nos.link('precious', part)\n"
            "for n in range(5000): os.pwrite(fd, b'x', n)\n")  # fmt: skip
    assert (tracing.directory / "precious").read_bytes() == bytes(50000)


def test_a_trace_is_never_mixed_with_another(tracing: Tracing) -> None:
    tracing("true")
    again = [str(tracing.iosig.binary), "trace", "-o", str(tracing.trace), "--", "true"]
    refused = subprocess.run(again, env=tracing.iosig.env, capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "has a trace already" in refused.stderr and str(tracing.trace) in refused.stderr


def test_a_command_of_two_megabytes_is_traced(tracing: Tracing) -> None:
    tracing("true", *(f"{n:0100}" for n in range(15000)))
    told = tracing.iosig.json("trace", "info", tracing.trace)
    assert told["command"].endswith(" ...") and len(told["command"]) < 70000


def test_an_incomplete_copy_is_told_also_between_two_chunks(tracing: Tracing) -> None:
    tracing(sys.executable, "-S", "-E", "-c",
            "import os\nfd = os.open('data', os.O_RDWR | os.O_CREAT)\n"
            "for n in range(5000): os.pwrite(fd, b'x', n)\n")  # fmt: skip
    (part,) = tracing.trace.glob("*.part")
    whole, first = part.read_bytes(), 40960
    ends = [first]
    while ends[-1] < len(whole):
        ends.append(ends[-1] + 16 + (int.from_bytes(whole[ends[-1] + 8 : ends[-1] + 12], "little") + 7) // 8 * 8)
    assert len(ends) > 5 and ends[-1] == len(whole)
    assert "missing" not in tracing.iosig("trace", "info", tracing.trace).stderr
    for end in ends[:-1]:
        os.truncate(part, end)
        told = tracing.iosig("trace", "info", tracing.trace).stderr
        assert f"{part.name}: {len(whole) - end} bytes of blocks are missing at byte {end}" in told
        part.write_bytes(whole)


def test_odd_names(tracing: Tracing) -> None:
    name = b'new\nline \xff "quoted", comma'
    tracing(sys.executable, "-S", "-E", "-c", f"import os; os.close(os.open({name!r}, os.O_CREAT))")
    export = [str(tracing.iosig.binary), "export", "--format", "csv", str(tracing.trace)]
    exported = subprocess.run(export, env=tracing.iosig.env, capture_output=True, check=True).stdout
    rows = list(csv.DictReader(io.StringIO(exported.decode(errors="surrogateescape"), newline="")))
    paths = [os.fsencode(row["path"]) for row in rows if row["call"] == "open"]
    assert os.fsencode(tracing.directory) + b"/" + name in paths


def test_errors_are_recorded_and_passed_on(tracing: Tracing) -> None:
    tracing(sys.executable, "-S", "-E", "-c",
            "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
            "assert libc.open(b'nothing/here', 0) == -1 and ctypes.get_errno() == 2\n"
            "fd = os.open('data', os.O_CREAT | os.O_RDONLY)\n"
            "assert libc.pwrite(fd, b'x', ctypes.c_size_t(1), ctypes.c_long(0)) == -1 and ctypes.get_errno() == 9\n"
            "assert libc.read(fd, ctypes.c_void_p(8), ctypes.c_size_t(10)) in (0, -1)\n"
            "assert libc.open(ctypes.c_void_p(8), 0) == -1 and ctypes.get_errno() == 14\n"
            "assert libc.stat(ctypes.c_void_p(8), ctypes.c_void_p(8)) == -1 and ctypes.get_errno() == 14\n"
            "assert libc.writev(fd, ctypes.c_void_p(8), 2) == -1\n")  # fmt: skip
    results = [(row.call, row.result) for row in tracing.rows()]
    assert ("open", -errno.ENOENT) in results and ("pwrite", -errno.EBADF) in results
    assert ("open", -errno.EFAULT) in results


MPI = r"""
#include <mpi.h>
#include <string.h>
int main(int argc, char **argv) {
  int rank, size;
  char bytes[4096];
  MPI_File file;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  memset(bytes, rank, sizeof bytes);
  MPI_File_open(MPI_COMM_WORLD, "out", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  for (int n = 0; n < 3; ++n)
    MPI_File_write_at(file, (MPI_Offset)(n * size + rank) * 4096, bytes, 1024, MPI_INT, MPI_STATUS_IGNORE);
  PMPI_File_write_at_all(file, (MPI_Offset)(9 * size + rank) * 4096, bytes, 4096, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_read_at(file, (MPI_Offset)rank * 4096, bytes, 2, MPI_DOUBLE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Finalize();
  return 0;
}
"""


FORTRAN = """
program same
  use mpi
  implicit none
  integer :: failure, file, rank, ranks, n, status(MPI_STATUS_SIZE)
  integer(kind=MPI_OFFSET_KIND) :: page = 4096
  character(len=4096) :: bytes
  call MPI_Init(failure)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, failure)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, failure)
  bytes = 'x'
  call MPI_File_open(MPI_COMM_WORLD, 'out', MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, failure)
  do n = 0, 2
    call MPI_File_write_at(file, (n * ranks + rank) * page, bytes, 1024, MPI_INTEGER, status, failure)
  end do
  call MPI_File_write_at_all(file, (9 * ranks + rank) * page, bytes, 4096, MPI_BYTE, status, failure)
  call MPI_File_read_at(file, rank * page, bytes, 2, MPI_DOUBLE_PRECISION, status, failure)
  call MPI_File_close(file, failure)
  call MPI_Finalize(failure)
end program
"""


@pytest.mark.parametrize(("compiler", "name", "source"), [("mpicc", "a.c", MPI), ("mpifort", "a.f90", FORTRAN)])
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_ranks_and_layers_of_mpi(
    tracing: Tracing, tmp_path: Path, mpi: str, compiler: str, name: str, source: str
) -> None:
    if not shutil.which(f"{compiler}.{mpi}") or not shutil.which(f"mpirun.{mpi}"):
        pytest.skip(f"needs {compiler} of {mpi}")
    (tmp_path / name).write_text(source)
    subprocess.run([f"{compiler}.{mpi}", "-O1", "-o", tmp_path / "program", tmp_path / name], check=True, cwd=tmp_path)
    command = [f"mpirun.{mpi}", *(["--oversubscribe"] if mpi == "openmpi" else []), "-n", "2",
               *tracing.command(tmp_path / "program")]  # fmt: skip
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    subprocess.run(command, cwd=tracing.directory, env={**os.environ, **tracing.iosig.env, **allowed}, check=True,
                   capture_output=True, timeout=120)  # fmt: skip
    rows = tracing.of_file("out")
    for rank in range(2):
        own = [
            row for row in rows if row.rank == rank and row.layer == "mpi-io" and row.length and "open" not in row.call
        ]
        assert [(row.call, row.offset, row.length) for row in own] == [
            *(("MPI_File_write_at", (n * 2 + rank) * 4096, 4096) for n in range(3)),
            ("MPI_File_write_at_all", (18 + rank) * 4096, 4096),
            ("MPI_File_read_at", rank * 4096, 16),
        ]  # fmt: skip
        ids = {row.id for row in own if row.call == "MPI_File_write_at"}
        below = [row for row in rows if row.parent in ids]
        assert sum(row.result or 0 for row in below if "write" in row.call) == 3 * 4096


SCANNED = r"""
#include <stdarg.h>
#include <stdio.h>
static int scan(FILE *from, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int items = vfscanf(from, format, arguments);
  va_end(arguments);
  return items;
}
int main(void) {
  FILE *text = fopen("numbers", "w+");
  fprintf(text, "1 2 3 x");
  rewind(text);
  int one, two, three, none;
  if (fscanf(text, "%d %d", &one, &two) != 2 || scan(text, "%d", &three) != 1 || one + two + three != 6) return 1;
  if (fscanf(text, "%d", &none) != 0 || fgetc(text) != 'x' || fscanf(text, "%d", &none) != EOF) return 2;
  return fclose(text);
}
"""


@pytest.mark.parametrize("standard", ["c99", "gnu89"])
def test_fscanf_is_there_with_the_number_of_its_items(tracing: Tracing, standard: str) -> None:
    source = tracing.directory / "scan.c"
    source.write_text(SCANNED)
    subprocess.run(["gcc", f"-std={standard}", "-o", source.with_suffix(""), source], check=True)
    tracing(source.with_suffix(""))
    rows = tracing.of_file("numbers")
    scans = [row for row in rows if row.call == "fscanf"]
    assert [row.result for row in scans] == [2, 1, 0, 0]
    assert next(row.parent for row in rows if row.call == "read") == scans[0].id


BATCHES = r"""
#include <aio.h>
#include <fcntl.h>
#include <libaio.h>
#include <sys/uio.h>
#include <stdlib.h>
static char bytes[300];
int main(void) {
  const int fd = open("data", O_CREAT | O_RDWR, 0666);
  io_context_t context = 0;
  struct iocb requests[3], *all[3] = {&requests[0], &requests[1], &requests[2]};
  struct iovec pieces[2] = {{bytes, 100}, {bytes, 50}};
  struct io_event events[3];
  if (io_setup(8, &context) != 0) return 77;
  io_prep_pwrite(&requests[0], fd, bytes, 300, 0);
  io_prep_pwritev(&requests[1], fd, pieces, 2, 300);
  io_prep_pread(&requests[2], fd, bytes, 10, 5);
  if (io_submit(context, 3, all) != 3 || io_getevents(context, 3, 3, events, 0) != 3) abort();
  struct aiocb read = {.aio_fildes = fd, .aio_offset = 7, .aio_nbytes = 20, .aio_buf = bytes};
  read.aio_lio_opcode = LIO_READ;
  struct aiocb none = {.aio_lio_opcode = LIO_NOP}, *list[2] = {&none, &read};
  if (lio_listio(LIO_WAIT, list, 2, 0) != 0) abort();
  return 0;
}
"""


def test_requests_of_a_batch_are_below_the_call_that_begins_them(tracing: Tracing) -> None:
    if not Path("/usr/include/libaio.h").exists():
        pytest.skip("needs libaio-dev")
    source = tracing.directory / "batches.c"
    source.write_text(BATCHES)
    subprocess.run(["gcc", "-o", source.with_suffix(""), source, "-laio"], check=True)
    tracing(source.with_suffix(""))
    requests = [row for row in tracing.of_file("data") if row.call.startswith("aio_")]
    assert [(row.call, row.offset, row.length) for row in requests] == [
        ("aio_write", 0, 300), ("aio_write", 300, 150), ("aio_read", 5, 10), ("aio_read", 7, 20),
    ]  # fmt: skip
    calls = {row.id: (row.call, row.length, row.result) for row in tracing.rows()}
    assert [calls[row.parent] for row in requests] == [("io_submit", 3, 3)] * 3 + [("lio_listio", 2, 0)]


NAMES = """import os
for name in ("a", "b"): open(name, "w").write("text")
os.rename("a", "c")
os.link("c", "d")
os.symlink("../c", "e")
os.mkdir("sub")
directory = os.open("sub", os.O_RDONLY)
os.rename("b", "f", dst_dir_fd=directory)
"""


def test_both_names_are_there_and_survive_csv(tracing: Tracing) -> None:
    tracing(sys.executable, "-c", NAMES)
    of = {"rename", "link", "symlink"}
    at = str(tracing.directory)
    wanted = [("a", f"{at}/c"), ("c", f"{at}/d"), ("e", "../c"), ("b", f"{at}/sub/f")]
    rows = tracing.rows(lambda row: row.call in of)
    assert [(row.path, row.second_path, row.length) for row in rows] == [(f"{at}/{a}", b, None) for a, b in wanted]
    assert len(tracing.rows(lambda row: row.second_path != "")) == len(wanted)
    told, again = tracing.directory / "told.csv", tracing.directory / "again"
    tracing.iosig("export", "-o", told, tracing.trace)
    assert tracing.iosig("import", told, "-o", again).stderr == ""
    assert [(row.path, row.second_path) for row in rows_of(tracing.iosig, again) if row.call in of] == [
        (row.path, row.second_path) for row in rows
    ]


TITLE = """import ctypes, os
def write(name):
    out = os.open(name, os.O_WRONLY | os.O_CREAT)
    for n in range(3000): os.write(out, b"x")
environment = ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), "environ")
n = 0
while environment[n]:
    ctypes.memset(environment[n], ord("t"), len(ctypes.string_at(environment[n])))
    n += 1
write("parent")
if os.fork() == 0:
    write("child")
    os._exit(0)
os.wait()
"""


def test_a_program_that_shows_a_title_in_the_place_of_its_environment_is_recorded(tracing: Tracing) -> None:
    tracing(sys.executable, "-c", TITLE)
    info = json.loads(tracing.iosig("trace", "info", "--json", tracing.trace).stdout)
    assert (info["lost_calls"], info["lost_names"], info["unrecorded_calls"]) == (0, 0, 0)
    for name in ("parent", "child"):
        assert len(tracing.of_file(name, "write")) == 3000
    assert [each["arguments"][-1] for each in info["processes"]] == [TITLE, TITLE]


def test_an_export_that_fails_leaves_the_older_file_and_nothing_else(tracing: Tracing, tmp_path: Path) -> None:
    tracing(sys.executable, "-c", "with open('out', 'wb', 0) as out:\n  for n in range(2000): out.write(b'x')\n")
    told = tmp_path / "told"
    told.mkdir()
    binary, limit = str(tracing.iosig.binary), "trap '' XFSZ; ulimit -f 8; exec \"$@\""
    for older in (None, b"older"):
        if older:
            (told / "job.csv").write_bytes(older)
        done = subprocess.run(["sh", "-c", limit, "sh", binary, "export", "-o", told / "job.csv", tracing.trace],
                              env=tracing.iosig.env, capture_output=True, text=True, timeout=60)  # fmt: skip
        assert done.returncode == 4 and "job.csv" in done.stderr, done
        assert {each.name: each.read_bytes() for each in told.iterdir()} == ({"job.csv": older} if older else {})
    tracing.iosig("export", "-o", told / "job.csv", tracing.trace)
    assert (told / "job.csv").read_text() == tracing.iosig("export", tracing.trace).stdout
    assert [each.name for each in told.iterdir()] == ["job.csv"]


COPIES = """import os, socket
data = os.open("data", os.O_RDWR | os.O_CREAT)
os.write(data, bytes(10000))
copy = os.open("copy", os.O_RDWR | os.O_CREAT)
assert os.copy_file_range(data, copy, 3000, 1000, 500) == 3000
os.lseek(data, 100, os.SEEK_SET)
assert os.sendfile(copy, data, None, 2000) == 2000  # at both file offsets
one, other = socket.socketpair()
assert os.sendfile(one.fileno(), copy, 700, 50) == 50
"""


def test_copies_in_the_kernel_read_their_source(tracing: Tracing) -> None:
    tracing(sys.executable, "-c", COPIES)
    rows = tracing.rows(lambda row: row.call.startswith(("copy_file_range", "sendfile")))
    assert [(row.call, Path(row.path).name, row.offset, row.length, row.result) for row in rows] == [
        ("copy_file_range", "copy", 500, 3000, 3000),
        ("copy_file_range_source", "data", 1000, 3000, 3000),
        ("sendfile", "copy", 0, 2000, 2000),
        ("sendfile_source", "data", 100, 2000, 2000),
        ("sendfile_source", "copy", 700, 50, 50),
    ]
    assert all(row.start_ns == row.end_ns for row in (rows[1], rows[3])) and rows[4].start_ns < (rows[4].end_ns or 0)
    files = {Path(file["path"]).name: file for file in tracing.iosig.json("trace", "info", tracing.trace)["files"]}
    assert (files["data"]["read_bytes"], files["data"]["written_bytes"]) == (5000, 10000)
    assert (files["copy"]["read_bytes"], files["copy"]["written_bytes"]) == (50, 5000)


def test_times_are_the_same_whenever_they_are_read(tracing: Tracing) -> None:
    tracing("sh", "-c", "cat /etc/passwd; sleep 0.2; cat /etc/passwd; kill -9 $$", status=-signal.SIGKILL)
    assert tracing.rows() == tracing.rows()


def test_what_has_no_part_is_counted(tracing: Tracing) -> None:
    """A limit of 0 bytes stands for a full directory: no part can be made."""
    loop = "for n in 1 2 3; do (ulimit -f 0; exec cat /etc/passwd); done"
    done = subprocess.run(tracing.command("sh", "-c", loop), capture_output=True, text=True, env=tracing.iosig.env)
    assert done.returncode == 0 and done.stderr.count("tracing fails in this process") == 1
    told = tracing.iosig.json("trace", "info", tracing.trace)
    assert told["unrecorded_processes"] == 3 and told["unrecorded_calls"] > 6 and told["missing_parts"] == 0
    assert "3 processes for which no file could be made" in tracing.iosig("trace", "info", tracing.trace).stderr


def test_a_part_that_is_gone_is_missed(tracing: Tracing) -> None:
    program = (
        "import threading\nfor n in range(3):\n  t = threading.Thread(target=lambda: open('/etc/passwd').read())\n"
    )
    tracing(sys.executable, "-c", program + "  t.start()\nt.join()\n")
    assert tracing.iosig.json("trace", "info", tracing.trace)["missing_parts"] == 0
    min(tracing.trace.glob("*.1.part")).unlink()
    assert tracing.iosig.json("trace", "info", tracing.trace)["missing_parts"] == 1
    assert "\ncomplete\n" not in tracing.iosig("trace", "info", tracing.trace).stdout


def test_a_program_with_address_sanitizer_is_traced(tracing: Tracing) -> None:
    source = tracing.directory / "checked.c"
    source.write_text('#include <fcntl.h>\nint main(void) { return open("made", O_CREAT | O_WRONLY, 0600) < 0; }\n')
    subprocess.run(["gcc", "-fsanitize=address", "-o", tracing.directory / "checked", source], check=True)
    tracing(tracing.directory / "checked")
    assert len(tracing.of_file("made", "open")) == 1


SHARED_MEMORY = r"""
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv) {
  const int made = shm_open(argv[1], O_RDWR | O_CREAT | O_EXCL, 0600);
  if (argc != 2 || made < 0 || ftruncate(made, 8192) != 0 || pwrite(made, "memory", 6, 4096) != 6) return 1;
  close(made);
  if (shm_unlink(argv[1]) != 0 || shm_unlink(argv[1]) == 0 || errno != ENOENT) return 2;
  if (shm_open(argv[1], O_RDONLY, 0) >= 0 || errno != ENOENT) return 3;
  return 0;
}
"""


def test_shared_memory_is_a_file(tracing: Tracing) -> None:
    source = tracing.directory / "memory.c"
    source.write_text(SHARED_MEMORY)
    subprocess.run(["gcc", "-o", source.with_suffix(""), source], check=True)
    name = f"/iosig-test-{os.getpid()}"
    tracing(source.with_suffix(""), name)
    rows = tracing.rows(lambda row: row.path == f"/dev/shm{name}")
    made = os.O_RDWR | os.O_CREAT | os.O_EXCL
    # As the C library opens it.
    more = os.O_CLOEXEC | os.O_NOFOLLOW
    assert [(row.call, row.offset, row.length) for row in rows] == [
        ("open", None, made | more), ("ftruncate", None, 8192), ("pwrite", 4096, 6), ("close", None, None),
        ("unlink", None, None), ("unlink", None, None), ("open", None, os.O_RDONLY | more),
    ]  # fmt: skip
    assert [row.result for row in rows[1:]] == [0, 6, 0, 0, -errno.ENOENT, -errno.ENOENT]
    tracing(source.with_suffix(""), name, options=("--files", "/elsewhere/*"))
    assert not tracing.rows(lambda row: row.path.startswith("/dev/shm"))
