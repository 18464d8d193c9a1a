"""`iosig advise`: real programs with one fault each, one without, and whether the advice works."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import BUILD
from tracing import Tracing

PYTHON = (sys.executable, "-S", "-E", "-c")
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

SLOW, FAST, SEEK = 0.001, 0.00001, 0.009  # latencies in seconds
RATE = 100 << 20  # bytes a second, both ways
STORAGE = """schema = "iosig.storage/2"
[[mount_point]]
path = "{slow}"
device = "disk"
filesystem = "ext4"
free = "10GB"
persistent = true
[[device]]
name = "disk"
kind = "hdd"
read_bandwidth = "100MB/s"
write_bandwidth = "100MB/s"
operation_latency = "1ms"
seek_latency = "9ms"
"""
FASTER = """[[mount_point]]
path = "{fast}"
device = "nvram0"
filesystem = "ext4"
free = "10GB"
persistent = true
[[device]]
name = "nvram0"
kind = "nvram"
read_bandwidth = "1GB/s"
write_bandwidth = "1GB/s"
operation_latency = "10us"
seek_latency = "0s"
"""


def small_write(size: int) -> float:
    """Eq. 3: an unaligned write within a block of 4096 bytes reads the block and writes it."""
    assert size < 4096
    return SLOW + 2 * 4096 / RATE


@pytest.fixture
def disk(tracing: Tracing) -> Path:
    """A description of the program's directory as a slow disk."""
    file = tracing.directory.parent / "storage.toml"
    file.write_text(STORAGE.format(slow=tracing.directory))
    return file


@pytest.fixture
def fast(tracing: Tracing, disk: Path) -> Iterator[Path]:
    """A directory on another file system, which the description gets as fast and persistent."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        disk.write_text(disk.read_text() + FASTER.format(fast=directory))
        yield Path(directory)


def advised(tracing: Tracing, *options: object) -> dict[str, dict[str, Any]]:
    """The last trace's advice by topic, for files in the program's directory."""
    document = tracing.iosig.json("advise", tracing.trace, "--files", f"{tracing.directory}/*", *options)
    found = {each["topic"]: each for each in document["advice"]}
    assert len(found) == len(document["advice"])
    for each in found.values():
        assert 0 < each["time_s"] <= document["io_s"] * 1.001
        assert each["gain"]["seconds"] is None or each["gain"]["seconds"] <= each["time_s"] * 1.001
    return found


def shell(tracing: Tracing, command: str) -> str:
    """Runs a command of the advice as a user would."""
    env = {**tracing.iosig.env, **MPI, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", command], cwd=tracing.directory, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout


def listed(tracing: Tracing, advice: dict[str, Any]) -> list[dict[str, Any]]:
    """The accesses that the advice's command lists: as many as it counts."""
    calls: list[dict[str, Any]] = json.loads(shell(tracing, advice["accesses"]["command"] + " --json"))["list"]
    assert len(calls) == advice["accesses"]["count"]
    return calls


def compiled(tmp_path: Path, source: str, compiler: str = "gcc") -> Path:
    (tmp_path / "program.c").write_text(source)
    subprocess.run([compiler, "-O1", "-o", tmp_path / "program", tmp_path / "program.c"], check=True, cwd=tmp_path)
    return tmp_path / "program"


SMALL = """
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
  char bytes[100];
  memset(bytes, 'x', sizeof bytes);
  const int is_backward = count > 1;
  const int file = open(is_backward ? "backward" : "forward", O_WRONLY | O_CREAT | O_TRUNC, 0666);
  for (int n = 0; n < 20000; n++)
    if (is_backward)
      pwrite(file, bytes, sizeof bytes, (n * 7919L % 20000) * 100);
    else
      write(file, bytes, sizeof bytes);
  return close(file);
}
"""


def test_small_writes_in_order_want_a_buffer(tracing: Tracing, tmp_path: Path, disk: Path) -> None:
    tracing(compiled(tmp_path, SMALL))
    found = advised(tracing, "--storage", disk)
    assert set(found) == {"small-writes"}
    advice = found["small-writes"]
    calls = listed(tracing, advice)
    assert len(calls) == 20000 and all(call["call"] == "write" and call["result"] == 100 for call in calls)
    assert advice["time_s"] == pytest.approx(sum(call["inclusive_s"] for call in calls))
    buffered = (SLOW + (1 << 20) / RATE) * 100 / (1 << 20)
    assert advice["gain"]["seconds"] / advice["time_s"] == pytest.approx(1 - buffered / small_write(100), rel=1e-6)
    assert advice["help"]["command"] is None and "crashes" in advice["help"]["caution"]
    unknown = advised(tracing)["small-writes"]["gain"]
    assert unknown["seconds"] is None and "iosig storage probe" in unknown["why"]
    assert advised(tracing, "--storage", disk, "--min-gain", "1") == {}


def test_small_writes_at_random_want_a_container(tracing: Tracing, tmp_path: Path, disk: Path) -> None:
    tracing(compiled(tmp_path, SMALL), "backward")
    advice = advised(tracing, "--storage", disk)["small-writes"]
    assert advice["gain"]["seconds"] / advice["time_s"] == pytest.approx(
        1 - small_write(100) / (small_write(100) + SEEK), rel=1e-6
    )
    plain = (tracing.directory / "backward").read_bytes()
    (tracing.directory / "backward").unlink()
    shell(tracing, advice["help"]["command"])
    assert (tracing.directory / "backward").is_dir()
    tracing.iosig("container", "export", tracing.directory / "backward", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == plain


PARALLEL = """
#include <mpi.h>
#include <string.h>
int main(int count, char **words) {
  int rank, ranks;
  char bytes[1000];
  MPI_File file;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  memset(bytes, 'a' + rank, sizeof bytes);
  MPI_File_open(MPI_COMM_WORLD, "shared", MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
  for (int n = 0; n < 10000; n++)
    MPI_File_write_at(file, ((MPI_Offset)n * ranks + rank) * 1000, bytes, 1000, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  return MPI_Finalize();
}
"""


@pytest.mark.skipif(not shutil.which("mpicc") or not shutil.which("mpirun"), reason="needs MPI")
def test_ranks_that_share_a_file_want_a_container(tracing: Tracing, tmp_path: Path, disk: Path) -> None:
    program = compiled(tmp_path, PARALLEL, "mpicc")
    env = {**os.environ, **tracing.iosig.env, **MPI}
    if "Open MPI" in subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout:
        env["OMPI_MCA_rmaps_base_oversubscribe"] = "1"
        tracing.iosig.env["OMPI_MCA_rmaps_base_oversubscribe"] = "1"
    subprocess.run(["mpirun", "-n", "4", *tracing.command(program)], cwd=tracing.directory, env=env, check=True,
                   capture_output=True, timeout=120)  # fmt: skip
    advice = advised(tracing, "--storage", disk)["shared-file"]
    assert len(listed(tracing, advice)) == 4 * 10000
    assert advice["what"].startswith("4 processes make 40000 writes of 1000 B")
    assert advice["help"]["command"].startswith("mpirun -n 4 iosig run --container ")
    plain = (tracing.directory / "shared").read_bytes()
    (tracing.directory / "shared").unlink()
    shell(tracing, advice["help"]["command"])
    assert (tracing.directory / "shared").is_dir()
    tracing.iosig("container", "export", tracing.directory / "shared", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == plain


def test_a_rank_that_does_most_of_the_work(tracing: Tracing) -> None:
    tracing("sh", "-c", "for rank in 1 2 3 0; do OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=4 "
            "dd if=/dev/zero of=$rank bs=64k count=$((rank ? 50 : 2000)); done")  # fmt: skip
    advice = advised(tracing)["imbalance"]
    assert advice["what"].startswith("rank 0 spends ") and "it moves 93 % of the bytes" in advice["what"]
    calls = listed(tracing, advice)
    assert {call["rank"] for call in calls} == {0}
    assert 0.5 < advice["gain"]["share"] <= 0.75  # of four ranks, one can take four times the mean


def test_a_file_that_is_opened_again_and_again(tracing: Tracing) -> None:
    tracing(*PYTHON, "import os\nopen('data', 'w').write('x')\nfor n in range(8000):\n  os.close(os.open('data', 0))\n"
            "for n in range(30000): os.stat('data')\n")  # fmt: skip
    found = advised(tracing, "--min-gain", "1%")
    assert set(found) == {"repeated-opens", "repeated-stats"}
    opens, stats = found["repeated-opens"], found["repeated-stats"]
    assert opens["what"].startswith("8000 of 8001 opens") and stats["what"].startswith("29999 of 30000 ")
    _, *repeated = sorted(listed(tracing, opens), key=lambda call: call["start_s"])
    assert opens["gain"]["seconds"] == pytest.approx(sum(call["inclusive_s"] for call in repeated))
    assert opens["gain"]["from"] == "trace"
    listed(tracing, stats)


SYNCING = (  # so often that it matters on a fast disk, too
    "import os\nwith open('log', 'wb', 0) as log:\n  for n in range(250):\n    log.write(b'x' * 100)\n    os.fsync(log)"
)


def test_a_sync_for_each_write(tracing: Tracing, disk: Path) -> None:
    tracing(*PYTHON, SYNCING)
    advice = advised(tracing, "--storage", disk)["sync-storm"]
    assert {call["call"] for call in listed(tracing, advice)} == {"fsync"}
    grouped = SLOW + 2 * 4096 / RATE  # 16 records are still within a block
    assert advice["gain"]["seconds"] / advice["time_s"] == pytest.approx(1 - grouped / 16 / small_write(100), rel=1e-6)
    assert "commit in groups" in advice["help"]["text"] and advice["help"]["command"] is None


def test_a_faster_place_that_keeps_data_as_well_needs_no_change_of_the_program(
    tracing: Tracing, disk: Path, fast: Path
) -> None:
    tracing(*PYTHON, SYNCING)
    before = sum(row.end_ns - row.start_ns for row in tracing.of_file("log", "fsync") if row.end_ns)
    advice = advised(tracing, "--storage", disk)["sync-storm"]
    assert str(fast) in advice["help"]["text"] and " 'persist " in advice["help"]["command"]
    (tracing.directory / "log").unlink()
    shell(tracing, advice["help"]["command"])
    tracing(*PYTHON, SYNCING)
    after = sum(row.end_ns - row.start_ns for row in tracing.of_file("log", "fsync") if row.end_ns)
    assert after < before / 2
    [written] = fast.rglob("log")
    assert written.stat().st_size == 25000
    shell(tracing, f"iosig finalize {tracing.directory}/log")
    assert not (tracing.directory / "log").is_symlink() and (tracing.directory / "log").stat().st_size == 25000


def test_random_rereads_want_a_copy_on_fast_storage(tracing: Tracing, disk: Path, fast: Path) -> None:
    data = tracing.directory / "data"
    data.write_bytes(os.urandom(4 << 20))
    tracing(*PYTHON, "import os\nfile = os.open('data', 0)\nfor turn in range(60):\n"
            "  for n in range(1024): os.pread(file, 4096, n * 389 % 1024 * 4096)\n")  # fmt: skip
    advice = advised(tracing, "--storage", disk)["random-rereads"]
    assert len(listed(tracing, advice)) == 60 * 1024
    assert 0.9 < advice["gain"]["seconds"] / advice["time_s"] < 1
    shell(tracing, advice["help"]["command"])
    [copy] = fast.rglob("data")
    assert copy.read_bytes() == data.read_bytes()


def test_a_good_program_gets_no_advice(tracing: Tracing, disk: Path) -> None:
    tracing("dd", "if=/dev/zero", "of=out", "bs=1M", "count=40", "conv=fsync")
    assert advised(tracing, "--storage", disk) == {} == advised(tracing)
    said = tracing.iosig("advise", tracing.trace, "--storage", disk, "--why").stdout
    assert "no advice" in said


def test_bad_input_is_refused(tracing: Tracing) -> None:
    assert tracing.iosig("advise", tracing.directory, check=3).stderr
    assert tracing.iosig("advise", tracing.directory / "none", check=4).stderr
    assert "--min-gain" in tracing.iosig("advise", "x", "--min-gain", "much", check=2).stderr
    assert "--rank" in tracing.iosig("advise", "x", "--rank", "x", check=2).stderr
    tracing(*PYTHON, "open('data', 'w').write('x')")
    assert "expected each trace once" in tracing.iosig("advise", tracing.trace, tracing.trace, check=2).stderr
