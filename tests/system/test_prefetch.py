"""`iosig run --prefetch`: a program's results stay the same, and the report says what was prefetched."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import BUILD, Iosig
from iosig.repro.slow_disk import refused, slow_disk
from mounting import Mount, mount  # noqa: F401
from preloading import LIBRARY

needs_library = pytest.mark.skipif(not LIBRARY.exists(), reason="built without libiosig-preload.so")


def drop_cached(*paths: Path) -> None:
    """Takes files out of the page cache."""
    os.sync()
    for path in paths:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


# All ways to read, with duplicates, seeks, a child that reads on, a signal handler that reads, and closed descriptors;
# then which descriptors are open. All is printed.
READS = """
import hashlib, os, signal, sys, threading
path, digest = sys.argv[1], hashlib.sha256()
fd = os.open(path, os.O_RDONLY)
signal.signal(signal.SIGALRM, lambda *_: os.pread(fd, 100, 0))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
pieces = [bytearray(300), bytearray(700)]
for n in range(150):
    digest.update(os.pread(fd, 1000, n * 20000))
    os.lseek(fd, n * 30000, os.SEEK_SET); digest.update(os.read(fd, 500))
    digest.update(b"%d" % os.preadv(fd, pieces, n * 25000)); digest.update(pieces[1])
with open(path, "rb") as stream:
    for n in range(100): stream.seek(n * 40000); digest.update(stream.read(100))
signal.setitimer(signal.ITIMER_REAL, 0)
second = os.dup(fd)
def read_alone(number, found):
    for n in range(100): found.append(os.pread(second, 50, n * 9000 + number))
founds = [[] for _ in range(3)]
threads = [threading.Thread(target=read_alone, args=(n, found)) for n, found in enumerate(founds)]
[each.start() for each in threads]; [each.join() for each in threads]
for found in founds: [digest.update(each) for each in found]
os.close(fd)
sys.stdout.flush()
if (child := os.fork()) == 0:
    for n in range(40): digest.update(os.pread(second, 10, n * 70000))
    print("child", digest.hexdigest(), flush=True)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os.truncate(path, 1000000)
print([len(os.pread(second, 10, n * 300000)) for n in range(10)])
os.dup2(0, second)
print(digest.hexdigest(), sorted(os.listdir("/proc/self/fd"), key=int), os.open(path, 0))
"""


@needs_library
def test_a_prefetched_program_has_the_same_results_and_descriptors(iosig: Iosig, tmp_path: Path) -> None:
    def run(*prefix: object) -> subprocess.CompletedProcess[str]:
        data = tmp_path / "data"
        data.write_bytes(b"".join(n.to_bytes(4, "little") for n in range(1_000_000)))
        command = [*map(str, prefix), sys.executable, "-c", READS, str(data)]
        return subprocess.run(
            command, env=iosig.env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60
        )

    plain = run()
    assert (plain.returncode, plain.stderr) == (0, "")
    report = tmp_path / "report"
    observed = run(BUILD / "bin" / "iosig", "run", "--prefetch", "--prefetch-report", report, "--")
    assert (observed.returncode, observed.stdout, observed.stderr) == (0, plain.stdout, "")
    told = report.read_text()
    totals = re.findall(r"prefetch: python\S* \((\d+)\): \d+ open files? prefetched", told)
    assert len(set(totals)) == 2  # the child's, then the program's
    assert f"prefetch: {tmp_path / 'data'}: useful" in told


def test_options_of_prefetching(iosig: Iosig) -> None:
    shown = iosig("run", "--prefetch", "--prefetch-memory", "1MB", "--dry-run", "--", "true").stdout
    assert "IOSIG_PREFETCH='pattern' IOSIG_PREFETCH_BYTES='1048576' true" in shown
    refused = iosig("run", "--prefetch", "--prefetch-report", "/nowhere/report", "--", "true", check=4).stderr
    assert "'--prefetch-report /nowhere/report': No such file or directory" in refused
    assert "IOSIG_PREFETCH='none'" in iosig("run", "--prefetch=none", "--dry-run", "--", "true").stdout
    assert "expected one of pattern" in iosig("run", "--prefetch=oracle", "--", "ls", check=2).stderr
    assert "needs --prefetch" in iosig("run", "--prefetch-report", "-", "--", "true", check=2).stderr
    assert "above 0" in iosig("run", "--prefetch", "--prefetch-memory", "0", "--", "true", check=2).stderr


def test_a_mount_prefetches_and_shows_what_is_written_meanwhile(
    iosig: Iosig,
    mount: Mount,  # noqa: F811
    tmp_path: Path,
) -> None:
    report = tmp_path / "report"
    mounted = mount("--prefetch", "--prefetch-memory", "1MiB", "--prefetch-report", str(report))
    source = tmp_path / "source" / "data"
    source.write_bytes(bytes(8 << 20))
    with (mounted / "data").open("rb", buffering=0) as reads, (mounted / "data").open("r+b", buffering=0) as writes:
        for n in range(100):
            place = n * 80_000
            assert writes.seek(place + 80_000) and writes.write(b"new")
            assert os.pread(reads.fileno(), 3, place) == (b"new" if n > 0 else bytes(3))
            time.sleep(0.001)  # the daemon's planner opens the file while the program has it open
        os.truncate(mounted / "data", 80_002)
        assert os.pread(reads.fileno(), 3, 80_000) == b"ne"
    iosig("unmount", mounted)
    assert f"prefetch: {source}: useful" in report.read_text()


@pytest.mark.skipif(bool(refused()), reason=f"a slow disk: {refused()}")
def test_replay_prefetches_also_where_the_kernel_has_read_the_beginning(iosig: Iosig, tmp_path: Path) -> None:
    rows = [f"{n + 1},1,pread,/data/file,3,{n * 16392},1024,{n * 1000},{n * 1000 + 500},1024" for n in range(200)]
    table = tmp_path / "reads.csv"
    table.write_text("\n".join(["id,pid,call,path,fd,offset,length,start_ns,end_ns,result", *rows]) + "\n")
    iosig("import", table, "-o", tmp_path / "trace")
    with slow_disk(64 << 20) as disk:
        for predictor in ("pattern", "perfect"):
            words = ["--onto", disk / "replayed", "--drop-caches", "--compute", "1ms", "--prefetch", predictor]
            told = json.loads(iosig("replay", tmp_path / "trace", *words, "--json", "--verify").stdout)
            counts = told["prefetch"]
            assert told["check"]["wrong_bytes_read"] == 0
            assert counts["useful_bytes"] + counts["late_bytes"] + counts["cached_bytes"] > 100 * 1024, counts
            assert counts["wasted_bytes"] < 50 * 1024, counts


@pytest.mark.skipif(bool(refused()), reason=f"a slow disk: {refused()}")
def test_replay_tells_files_apart_whose_names_end_each_other(iosig: Iosig, tmp_path: Path) -> None:
    orders = {"/data/a": list(range(100)), "/data/b/a": list(range(100))}
    for seed, order in enumerate(orders.values()):
        random.Random(seed).shuffle(order)
    rows, start = [], 0
    for n in range(100):
        for fd, (path, order) in enumerate(orders.items()):
            start += 1000
            rows.append(f"{start // 1000},1,pread,{path},{3 + fd},{order[n] * 65536},4096,{start},{start + 500},4096")
    table = tmp_path / "reads.csv"
    table.write_text("\n".join(["id,pid,call,path,fd,offset,length,start_ns,end_ns,result", *rows]) + "\n")
    iosig("import", table, "-o", tmp_path / "trace")
    with slow_disk(64 << 20) as disk:
        words = ["--onto", disk / "replayed", "--drop-caches", "--compute", "1ms", "--prefetch", "perfect", "--json"]
        counts = json.loads(iosig("replay", tmp_path / "trace", *words).stdout)["prefetch"]
    # The order of the other file would be expected wrongly nearly always.
    assert counts["useful_bytes"] + counts["late_bytes"] + counts["cached_bytes"] > 150 * 4096, counts
    assert counts["wasted_bytes"] < 20 * 4096, counts


# A program that reads, in an order without a pattern, what the model has: only the model can expect it.
SHUFFLED = """
import os, random, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
places = [n * 65536 for n in range(100)]
random.Random(7).shuffle(places)
print(sum(os.pread(fd, 4096, place)[0] for place in places))
"""


def model_of(iosig: Iosig, data: Path, tmp_path: Path, *words: object) -> Path:
    iosig("trace", "-o", tmp_path / "trace", "--", sys.executable, "-c", SHUFFLED, data)
    model = tmp_path / "model"
    iosig("pattern", "trace", tmp_path / "trace", "--files", str(data), "--model", model, *words)
    return model


@needs_library
@pytest.mark.skipif(bool(refused()), reason=f"a slow disk: {refused()}")
@pytest.mark.parametrize("words", [[], ["--markov=4KiB"]], ids=["remembered", "markov"])
def test_a_run_with_a_model_expects_the_order_of_an_earlier_run(iosig: Iosig, tmp_path: Path, words: list[str]) -> None:
    with slow_disk(64 << 20) as disk:
        data = disk / "data"
        data.write_bytes(b"\1" * 6_600_000)
        model = model_of(iosig, data, tmp_path, *words)
        report = tmp_path / "report"
        for options in ([], ["--prefetch-model", model]):
            drop_cached(data)
            report.unlink(missing_ok=True)
            command = ["--prefetch", *options, "--prefetch-report", report, "--", sys.executable, "-c", SHUFFLED, data]
            assert iosig("run", *command).stdout == "100\n"
            told = report.read_text()
            line = next(line for line in told.splitlines() if f"{data}: " in line)
            if not options:
                assert "left alone, no pattern" in line, told
            else:
                assert "left alone" not in line and "useful 0.0 MB, late 0.0," not in line, told


@needs_library
def test_a_model_that_cannot_be_used_is_noted_and_the_program_runs(iosig: Iosig, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(b"\1" * 6_600_000)
    model = model_of(iosig, data, tmp_path)
    sound = model.read_bytes()
    command = ["run", "--prefetch-model", model, "--", sys.executable, "-c", SHUFFLED, data]
    quiet = iosig(*command)
    assert (quiet.stdout, quiet.stderr) == ("100\n", "")
    for name, content, reason in [
        ("cut", sound[:-5], "its checksum does not fit"),
        ("damaged", sound[:9] + bytes([sound[9] ^ 1]) + sound[10:], "its checksum does not fit"),
        ("newer", sound[:3] + b"\2" + sound[4:], "version 2 of the format; this program reads 1"),
        ("another file", b"PNG", 'expected it to begin with "IOM"'),
        ("absent", None, "No such file or directory"),
    ]:
        model.unlink(missing_ok=True)
        if content is not None:
            model.write_bytes(content)
        noted = iosig(*command)
        assert noted.stdout == "100\n", name
        assert reason in noted.stderr and "running without this model" in noted.stderr, noted.stderr
    # The environment is the program's, so a model may also vanish before the program starts.
    env = iosig.env | {"LD_PRELOAD": str(LIBRARY), "IOSIG_PREFETCH": "pattern", "IOSIG_PREFETCH_MODEL": str(model)}
    late = subprocess.run(["true"], env=env, capture_output=True, text=True)
    assert late.returncode == 0 and "prefetching without this model" in late.stderr
    assert "needs --prefetch" in iosig("run", "--prefetch-memory", "1MB", "--", "true", check=2).stderr


def test_a_mount_uses_a_model_of_the_files_below_it(
    iosig: Iosig,
    mount: Mount,  # noqa: F811
    tmp_path: Path,
) -> None:
    source = tmp_path / "source"
    source.mkdir(exist_ok=True)
    data = source / "data"
    data.write_bytes(b"\1" * 6_600_000)
    model, report = model_of(iosig, data, tmp_path), tmp_path / "report"
    mounted = mount("--prefetch-model", str(model), "--prefetch=none", "--prefetch-report", str(report))
    # The daemon's planner opens the file while the program has it open.
    command = [sys.executable, "-c", f"{SHUFFLED}\nimport time; time.sleep(0.3)", str(mounted / "data")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert shown.stdout == "100\n"
    iosig("unmount", mounted)
    line = next(line for line in report.read_text().splitlines() if f"prefetch: {data}: useful" in line)
    assert "there is no predictor" not in line  # that of the model, since other files have none


ORDERED = SHUFFLED.replace(
    "print(",
    """if len(sys.argv) > 2:
    with open(sys.argv[2], "w") as order:
        print("iosig.order/1", "records 65536", *(place // 65536 for place in places), sep="\\n", file=order)
print(""",
)


@needs_library
@pytest.mark.skipif(bool(refused()), reason=f"a slow disk: {refused()}")
def test_a_rule_tells_the_order_in_which_a_program_reads_for_the_first_time(iosig: Iosig, tmp_path: Path) -> None:
    rules, order, report = tmp_path / "rules.toml", tmp_path / "epoch.order", tmp_path / "report"
    with slow_disk(64 << 20) as disk:
        data = disk / "data"
        data.write_bytes(b"\1" * 6_600_000)
        rules.write_text(f'schema = "iosig.rules/1"\n[[rule]]\npath = "{data}"\nsig = "order({order.name})"\n')
        options = ["--rules", rules, "--prefetch", "--prefetch-report", report]

        def line_of_a_run(*words: object) -> tuple[str, str]:
            drop_cached(data)
            report.unlink(missing_ok=True)
            ran = iosig("run", *options, "--", sys.executable, "-c", ORDERED, data, *words)
            assert ran.stdout == "100\n"
            return next(each for each in report.read_text().splitlines() if f"{data}: " in each), ran.stderr

        # The program writes the order itself, before it reads.
        line, noted = line_of_a_run(order)
        assert "left alone" not in line and "useful 0.0 MB, late 0.0," not in line
        assert "epoch.order': No such file" in noted and "it is looked for again" in noted
        line, noted = line_of_a_run()
        assert "left alone" not in line and noted == ""
        order.write_text("iosig.order/2\n")
        line, noted = line_of_a_run()
        assert "left alone, no pattern" in line and "version 'iosig.order/2'" in line
        assert "prefetching without it" in noted


@needs_library
def test_a_declared_order_without_prefetch_is_noted(iosig: Iosig, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('schema = "iosig.rules/1"\n[[rule]]\npath = "/data/*"\nsig = "order(epoch.order)"\n')
    noted = iosig("run", "--rules", rules, "--", "true").stderr
    assert f"{rules}:4: how its files will be read is used with --prefetch only" in noted


PYTHON_LOADER = """
import os, random, sys
import iosig.reads
places = list(range(100))
random.Random(7).shuffle(places)
iosig.reads.write_order(sys.argv[2], places, record_bytes=65536)
told = iosig.reads.expect(sys.argv[1], f"order({sys.argv[2]})")
fd = os.open(sys.argv[1], os.O_RDONLY)
print(sum(os.pread(fd, 4096, place * 65536)[0] for place in places), told)
"""

C_LOADER = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include <iosig/iosig.h>
int main(int argc, char** argv) {
  int sum = 0;
  char byte;
  (void)argc;
  iosig_open_hint(AT_FDCWD, argv[1], O_RDONLY, argv[2]);
  int fd = open(argv[1], O_RDONLY);
  for (int n = 0; n < 100; ++n) sum += pread(fd, &byte, 1, (off_t)(n * 37 % 100) * 65536) == 1 ? byte : 0;
  printf("%d True\n", sum);
  return 0;
}
"""


@needs_library
@pytest.mark.skipif(bool(refused()), reason=f"a slow disk: {refused()}")
@pytest.mark.parametrize("language", ["c", "python"])
def test_a_program_announces_the_order_of_its_reads(iosig: Iosig, tmp_path: Path, language: str) -> None:
    order, report = tmp_path / "epoch.order", tmp_path / "report"
    if language == "c":
        (tmp_path / "loader.c").write_text(C_LOADER)
        libraries = iosig("cc", "--libs").stdout.split()
        include = BUILD.parent / "include"
        command = ["gcc", "-O1", "-I", include, "-o", tmp_path / "loader", tmp_path / "loader.c", *libraries]
        subprocess.run(command, check=True)
        order.write_text("iosig.order/1\nrecords 65536\n" + "".join(f"{n * 37 % 100}\n" for n in range(100)))
        loader: list[object] = [tmp_path / "loader"]
    else:
        loader = [sys.executable, "-c", PYTHON_LOADER]
    with slow_disk(64 << 20) as disk:
        data = disk / "data"
        data.write_bytes(b"\1" * 6_600_000)
        drop_cached(data)
        words = [*loader, data, f"order({order})" if language == "c" else order]
        assert iosig("run", "--prefetch", "--prefetch-report", report, "--", *words).stdout == "100 True\n"
        line = next(each for each in report.read_text().splitlines() if f"{data}: " in each)
        assert "left alone" not in line and "useful 0.0 MB, late 0.0," not in line


STRIDED = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
print(sum(len(os.pread(fd, 4096, n * 65536)) for n in range(100)))
"""


@needs_library
def test_processes_of_a_script_that_read_next_to_nothing_have_no_report(iosig: Iosig, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(bytes(6_600_000))
    script = f"cat {__file__} > /dev/null; {sys.executable} -c '{STRIDED}' {data}; ls {tmp_path} > /dev/null"
    report = tmp_path / "report"
    ran = iosig("run", "--prefetch", "--prefetch-report", report, "--", "sh", "-c", f"{script}; true")
    assert ran.stdout == "409600\n"
    told = report.read_text()
    assert f"{data}: " in told and "other files of few reads" in told
    # That of Python, and that of the shell, which is the command.
    assert set(re.findall(r"prefetch: ([a-z]+)[\d.]* \(\d+\): ", told)) == {"python", "sh"}, told
    assert told.count("left alone; useful") + told.count("nothing was prefetched") == 2, told


MEMORY_GROUPS = Path("/sys/fs/cgroup/memory")


@needs_library
@pytest.mark.skipif(not os.access(MEMORY_GROUPS / "cgroup.procs", os.W_OK), reason="no memory control group to use")
def test_little_memory_in_a_control_group_is_the_reason(iosig: Iosig, tmp_path: Path) -> None:
    data, report = tmp_path / "data", tmp_path / "report"
    data.write_bytes(bytes(6_600_000))
    own = Path("/proc/self/cgroup").read_text().split(":memory:")[1].splitlines()[0]
    group = Path(f"{MEMORY_GROUPS}{own}/iosig-test-{os.getpid()}")
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(28 << 20))
        inner = f"echo $$ > {group}/cgroup.procs; exec {sys.executable} -c '{STRIDED}' {data}"
        drop_cached(data)
        ran = iosig("run", "--prefetch", "--prefetch-report", report, "--", "sh", "-c", inner)
        assert ran.stdout == "409600\n"
        line = next(each for each in report.read_text().splitlines() if f"{data}: " in each)
        assert "useful 0.0 MB, late 0.0, wasted 0.0" in line
        # Of a quick disk the reads may be the reason.
        assert "left alone, less than 32 MiB of memory is free" in line or "its reads are quick" in line
    finally:
        group.rmdir()


@contextmanager
def failing_files(tmp_path: Path, at_start: str = "") -> Iterator[tuple[Path, Path]]:
    """A directory behind FUSE, and the file that says which of its operations fail."""
    program = BUILD / "bin" / "faulty_fs"
    if not program.exists() or not os.access("/dev/fuse", os.W_OK) or shutil.which("fusermount3") is None:
        pytest.skip("needs FUSE: libfuse3-dev when building, fuse3, and a writable /dev/fuse")
    source, mounted, faults = (tmp_path / name for name in ("behind", "mounted", "faults"))
    source.mkdir()
    mounted.mkdir()
    faults.write_text(at_start)
    server = subprocess.Popen([program, source, faults, mounted])
    try:
        while not mounted.is_mount():
            if server.poll() is not None:
                pytest.skip("cannot mount FUSE here")
            time.sleep(0.01)
        yield mounted, faults
    finally:
        subprocess.run(["fusermount3", "-uz", mounted], check=False, capture_output=True)
        server.wait()


ERRORS = """
import os, sys, time
fd, told = os.open(sys.argv[1], os.O_RDONLY), []
for n in [*range(48), 70, 3, 99, 20]:
    try:
        told.append(os.pread(fd, 4096, n * 65536)[:3])
    except OSError as error:
        told.append(error.strerror)
    time.sleep(0.0005)
print(told)
"""


@needs_library
def test_a_read_error_in_an_expected_range_is_reported_only_where_the_program_reads(
    iosig: Iosig, tmp_path: Path
) -> None:
    rules, report = tmp_path / "rules.toml", tmp_path / "report"
    with failing_files(tmp_path) as (mounted, faults):
        data = mounted / "data"
        data.write_bytes(b"".join(n.to_bytes(3, "big") + bytes(65533) for n in range(100)))
        order = tmp_path / "all.order"
        order.write_text("iosig.order/1\nrecords 65536\n" + "".join(f"{n}\n" for n in range(100)))
        rules.write_text(f'schema = "iosig.rules/1"\n[[rule]]\npath = "{data}"\nsig = "order({order})"\n')
        command = [sys.executable, "-c", ERRORS, data]
        shown = []
        for prefix in ([], ["run", "--prefetch", "--rules", rules, "--prefetch-report", report, "--"]):
            faults.write_text("")
            drop_cached(data)
            faults.write_text("rear EIO")
            if prefix:
                shown.append(iosig(*prefix, *command).stdout)
            else:
                shown.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert shown[0] == shown[1]
    assert shown[0].count("Input/output error") == 2  # records 70 and 99
    assert "left alone" not in next(each for each in report.read_text().splitlines() if f"{data}: " in each)


REMOVES = """
import os, sys
for turn in range(20):
    os.mkdir(f"{sys.argv[1]}/made")
    with open(f"{sys.argv[1]}/made/data", "wb") as file: file.truncate(8 << 20)
    fd = os.open(f"{sys.argv[1]}/made/data", os.O_RDONLY)
    for n in range(60): os.pread(fd, 4096, n * 131072)
    os.close(fd)
    os.unlink(f"{sys.argv[1]}/made/data")
    os.rmdir(f"{sys.argv[1]}/made")
print("removed")
"""


@needs_library
def test_on_a_network_file_system_a_closed_file_can_be_removed_with_its_directory(iosig: Iosig, tmp_path: Path) -> None:
    with failing_files(tmp_path, "hidden EIO") as (mounted, _):
        assert iosig("run", "--prefetch", "--", sys.executable, "-c", REMOVES, mounted).stdout == "removed\n"


MANY = """
import hashlib, os, resource, sys, time
directory, data = sys.argv[1:3]
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
digest, fds = hashlib.sha256(), []
for n in range(10_000):
    fds.append(os.open(f"{directory}/{n % 100}", os.O_RDONLY))
for fd in fds:
    for n in range(5): digest.update(os.pread(fd, 10, n * 70000))
time.sleep(1.2)
last = os.open(data, os.O_RDONLY)
for n in range(100): digest.update(os.pread(last, 4096, n * 65536))
print(digest.hexdigest(), last)
"""


@needs_library
@pytest.mark.skipif(resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 10_100, reason="10,000 files may not be open")
@pytest.mark.skipif(bool(refused()), reason=f"a slow disk: {refused()}")
def test_of_ten_thousand_open_files_the_one_that_is_read_is_prefetched(iosig: Iosig, tmp_path: Path) -> None:
    report = tmp_path / "report"
    for n in range(100):
        (tmp_path / str(n)).write_bytes(n.to_bytes(4, "big") * 100_000)
    with slow_disk(64 << 20) as disk:
        data = disk / "data"
        data.write_bytes(b"\1" * 6_600_000)
        command = [sys.executable, "-c", MANY, tmp_path, data]
        plain = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        drop_cached(data)
        assert iosig("run", "--prefetch", "--prefetch-report", report, "--", *command).stdout == plain
        line = next(each for each in report.read_text().splitlines() if f"{data}: " in each)
        assert "left alone" not in line and "useful 0.0 MB, late 0.0," not in line


CHANGES = """
import os, sys, threading
path = sys.argv[1]
fd, ends, wrong = os.open(path, os.O_RDWR), threading.Event(), 0
block = lambda n: bytes([n % 251 + 1]) * 4096
def change():
    turn = 0
    while not ends.is_set():
        os.ftruncate(fd, (turn % 40) * 65536)
        for n in range(turn % 7, 100, 7): os.pwrite(fd, block(n), n * 65536)
        if turn == 5: os.rename(path, path + ".old")
        if turn == 9: os.unlink(path + ".old")
        turn += 1
threads = [threading.Thread(target=change) for _ in range(2)]
[each.start() for each in threads]
for turn in range(30):
    reader = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
    for n in range(100):
        got = os.pread(reader, 4096, n * 65536)
        wrong += got not in (block(n)[:len(got)], bytes(len(got)))
    os.close(reader)
ends.set()
[each.join() for each in threads]
print(wrong)
"""


@needs_library
def test_a_file_that_shrinks_vanishes_and_changes_while_it_is_read(iosig: Iosig, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(bytes(6_600_000))
    assert iosig("run", "--prefetch", "--", sys.executable, "-c", CHANGES, data).stdout == "0\n"


STARTS_PROGRAMS = """
import os, subprocess, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
for n in range(100):
    os.pread(fd, 32768, n * 65536)
    if n % 10 == 5: subprocess.run(["true"], check=True)
"""


@needs_library
@pytest.mark.skipif(bool(refused()), reason=f"a slow disk: {refused()}")
def test_what_a_child_closes_before_it_becomes_another_program_is_still_read_by_its_parent(
    iosig: Iosig, tmp_path: Path
) -> None:
    report = tmp_path / "report"
    with slow_disk(64 << 20) as disk:
        data = disk / "data"
        data.write_bytes(bytes(6_600_000))
        drop_cached(data)
        command = [sys.executable, "-c", STARTS_PROGRAMS, data]
        iosig("run", "--prefetch", "--prefetch-report", report, "--", *command)
    line = next(each for each in report.read_text().splitlines() if f"{data}: " in each)
    counted = re.search(r"useful ([\d.]+) MB, late ([\d.]+), .* in memory before ([\d.]+), of", line)
    assert counted is not None, line
    assert sum(map(float, counted.groups())) > 2.3, line  # of 3.3 MB; the first ten reads are always learned from


READS_IN_TURNS = """
import os, sys, time
fds, total = [os.open(each, os.O_RDONLY) for each in sys.argv[1:]], 0
for n in range(150):
    for fd in fds: total += len(os.pread(fd, 16384, n * 65536)); time.sleep(0.001)
print(total)
"""


@needs_library
@pytest.mark.skipif(bool(refused()), reason=f"a slow disk: {refused()}")
def test_files_that_are_read_in_turns_are_prefetched_though_their_beginnings_were_in_memory(
    iosig: Iosig, tmp_path: Path
) -> None:
    report = tmp_path / "report"
    with slow_disk(64 << 20) as disk:
        files = [disk / name for name in ("one", "other")]
        for each in files:
            each.write_bytes(bytes(150 * 65536))
        drop_cached(*files)
        options = ["--prefetch", "--prefetch-report", report]
        assert iosig("run", *options, "--", sys.executable, "-c", READS_IN_TURNS, *files).stdout == "4915200\n"
    lines = [each for each in report.read_text().splitlines() if re.search(r"/(one|other): useful", each)]
    assert len(lines) == 2 and not any("left alone" in each for each in lines), lines


WRITES_RECORDS = """
import os, sys
fd, rank = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT), int(sys.argv[2])
for n in range(96): os.pwrite(fd, bytes([n, rank]) * 32768, (4 * n + rank) * 65536)
"""
READS_RECORDS = """
import os, sys
fd, told = os.open(sys.argv[1], os.O_RDWR), []
for n in range(128):
    told.append(os.pread(fd, 4096, 3 * n * 65536))
    if n % 32 == 20: os.pwrite(fd, b"new", 3 * (n + 2) * 65536)
if (child := os.fork()) == 0:
    os._exit(sum(os.pread(fd, 1, (3 * n + 1) * 65536)[0] == (3 * n + 1) // 4 for n in range(100)))
child = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print([each[:3] for each in told], {each[3:] == each[1:3] + each[1:3] * 2046 + each[3:4] for each in told}, child)
"""


@needs_library
@pytest.mark.skipif(bool(refused()), reason=f"a slow disk: {refused()}")
@pytest.mark.parametrize("way", ["run", "mount"])
def test_reads_of_a_container_are_prefetched_from_its_data_droppings(iosig: Iosig, tmp_path: Path, way: str) -> None:
    if way == "mount" and not (BUILD / "libexec/iosig/iosig-fuse").exists():
        pytest.skip("built without libfuse3")
    report, mounted = tmp_path / "report", tmp_path / "mounted"
    mounted.mkdir()
    with slow_disk(96 << 20) as disk:
        box = disk / "box"

        def printed(*options: object, path: Path = box) -> str:
            shutil.rmtree(box, ignore_errors=True)
            for rank in range(4):
                iosig("run", "--container", box, "--", sys.executable, "-c", WRITES_RECORDS, box, rank)
            drop_cached(*(each for each in box.rglob("*") if each.is_file()))
            prefix = ["run", "--container", box, *options, "--"] if path == box else ["run", "--"]
            return iosig(*prefix, sys.executable, "-c", READS_RECORDS, path).stdout

        plain = printed()
        assert plain.count("b'new'") == 4 and plain.endswith("100\n")
        if way == "run":
            assert printed("--prefetch", "--prefetch-report", report) == plain
        else:
            iosig("mount", "--prefetch", "--prefetch-report", report, disk, mounted)
            assert printed(path=mounted / "box") == plain
            iosig("unmount", mounted)
    lines = [each for each in report.read_text().splitlines() if re.search(r"/box/d\d/data\.\d: useful", each)]
    processes = 2 if way == "run" else 1  # the child prefetches, too
    assert len(lines) == 4 * processes and not any("left alone" in each for each in lines), lines


@needs_library
@pytest.mark.parametrize("thread_local_bytes", [200_000, 252_000, 3_000_000])
def test_a_program_with_large_thread_local_variables_is_prefetched(
    iosig: Iosig, tmp_path: Path, thread_local_bytes: int
) -> None:
    """The C library puts them into each thread's stack, that of the prefetching thread included."""
    source = tmp_path / "strided.c"
    source.write_text("""
#include <fcntl.h>
#include <unistd.h>
__thread char large[LARGE];
int main(void) {
  char bytes[4096];
  const int fd = open("data", O_RDONLY);
  large[5] = 1;
  for (int n = 0; n < 2000; ++n)
    if (pread(fd, bytes, sizeof bytes, (off_t)(n % 500) * 65536) != sizeof bytes) return 2;
  return 0;
}
""")
    subprocess.run(["gcc", "-O1", f"-DLARGE={thread_local_bytes}", "-o", tmp_path / "strided", source], check=True)
    with (tmp_path / "data").open("wb") as data:
        data.truncate(32 << 20)
    report = tmp_path / "report"
    iosig("run", "--prefetch", "--prefetch-report", report, "--", tmp_path / "strided", cwd=tmp_path)
    assert report.read_text()


@needs_library
def test_a_program_whose_main_thread_ends_first_ends_with_its_last_thread(iosig: Iosig, tmp_path: Path) -> None:
    """Its exit handlers run, with its own descriptors."""
    version = os.confstr("CS_GNU_LIBC_VERSION")
    if version is None or tuple(map(int, version.split()[1].split("."))) < (2, 34):
        pytest.skip("needs glibc 2.34")
    source = tmp_path / "ends.c"
    source.write_text("""
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static FILE *kept;
static void told(void) { fprintf(kept, "at exit\\n"); }
static void *rest(void *fd) {
  char bytes[4096];
  for (int n = 0; n < 500; ++n)
    if (pread((int)(long)fd, bytes, sizeof bytes, (off_t)n * 65536) != sizeof bytes) exit(2);
  fprintf(kept, "all is read\\n");
  usleep(100000);
  return NULL;
}
int main(void) {
  char bytes[4096];
  pthread_t thread;
  const int fd = open("data", O_RDONLY);
  kept = fopen("kept", "w");
  atexit(told);
  for (int n = 0; n < 500; ++n)
    if (pread(fd, bytes, sizeof bytes, (off_t)n * 65536) != sizeof bytes) return 2;
  pthread_create(&thread, NULL, rest, (void *)(long)fd);
  pthread_exit(NULL);
}
""")
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "ends", source], check=True)
    with (tmp_path / "data").open("wb") as data:
        data.truncate(32 << 20)
    report = tmp_path / "report"
    run = (iosig.binary, "run", "--prefetch", "--prefetch-report", report, "--", tmp_path / "ends")
    ended = subprocess.run(run, cwd=tmp_path, env=iosig.env, check=False, timeout=60)
    assert ended.returncode == 0 and report.read_text()
    assert (tmp_path / "kept").read_text() == "all is read\nat exit\n"
