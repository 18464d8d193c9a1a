"""`iosig generate --measure`: the costs of this machine, in the time that the user gives, or nothing at all."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from generated_programs import IOSIG_GENERATE
from iosig.generate import probe_runs
from iosig.generate.costs import PACKAGED, read_costs
from iosig.repro.generated import EXAMPLES
from iosig.repro.mpi_programs import ENVIRONMENT

OLD = 'schema = "iosig.collective/1"\n# measured before\n'


@pytest.fixture
def open_mpi(tmp_path: Path) -> Path:
    """A directory with the machine's programs but those of other MPI libraries."""
    if shutil.which("mpicc.openmpi") is None:
        pytest.skip("needs Open MPI")
    place = tmp_path / "bin"
    place.mkdir()
    for each in Path("/usr/bin").iterdir():
        if "mpich" not in each.name:
            (place / each.name).symlink_to(each)
    return place


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where files are measured, and temporary files are."""
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


def environment(path: str, place: Path) -> dict[str, str]:
    return os.environ | ENVIRONMENT | {"PATH": path, "TMPDIR": str(place), "XDG_CONFIG_HOME": str(place / "config")}


def measure(path: str, place: Path, output: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [IOSIG_GENERATE, "--measure", place, "-o", output, *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment(path, place))


def is_clean(place: Path) -> bool:
    return not [each for each in place.iterdir() if each.name != "config" and not each.name.startswith("ompi.")]


def fake(directory: Path, name: str, script: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(f"#!/bin/sh\n{script}\n")
    (directory / name).chmod(0o755)


def test_costs_are_measured_and_serve_decisions(open_mpi: Path, place: Path, tmp_path: Path) -> None:
    output = tmp_path / "costs.toml"
    output.write_text(OLD)
    done = measure(str(open_mpi), place, output, "--ranks", "1", "--time-limit", "1")
    assert done.returncode == 0, done.stderr
    assert is_clean(place)
    assert re.search(r"Open MPI: \d+ of \d+ times are known to 10 %", done.stderr)
    costs = read_costs(output)
    for method in ("two-phase", "sieving", "packed"):
        assert all(0 < sum(costs.of("mpiio", "ompio", access, method)) < 10 for access in ("write", "read"))
    key = "mpiio", "romio", "write", "packed"  # of MPICH, which was not found
    assert costs.rows[key] == read_costs(PACKAGED).rows[key]
    command = [IOSIG_GENERATE, EXAMPLES / "s3d.c", "--explain", "--costs", output]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"costs are those of {output}; of ROMIO the package's" in told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_leaves_everything_as_it_was(
    open_mpi: Path, place: Path, tmp_path: Path, number: signal.Signals
) -> None:
    (open_mpi / "pkg-config").unlink()  # MPI-IO is enough
    output = tmp_path / "costs.toml"
    output.write_text(OLD)
    command = [IOSIG_GENERATE, "--measure", place, "-o", output, "--ranks", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment(str(open_mpi), place)) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if " of 120 s: " in line:  # the probe runs
                break
        process.send_signal(number)
        said = process.stderr.read()
    assert process.returncode == 128 + number
    assert f"interrupted; {output} is as it was. --time-limit makes it shorter" in said
    assert output.read_text() == OLD and is_clean(place)
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(place / ".iosig-measure-") not in running


@pytest.mark.parametrize(
    ("mpicc", "mpirun", "said"),
    [
        ("echo 'probe.c:3:10: fatal error: mpi.h: No such file' >&2; exit 1", "", "probe.c:3:10: fatal error: mpi.h"),
        ("", "echo 'no such host' >&2; exit 9", "mpirun -n 1 of the probe failed with status 9: no such host"),
        ("", "echo 'Open MPI'; echo 'rank 0: no space left' >&2; exit 1", "with status 1: rank 0: no space left"),
        ("", "echo MPICH; echo; echo 'Fatal error in one word more'; exit 3", "of the probe failed with status 3"),
        (None, "", "no MPI library found; expected mpicc and mpirun on PATH"),
    ],
)
def test_a_library_that_does_not_work_is_told_with_its_words(
    place: Path, tmp_path: Path, mpicc: str | None, mpirun: str, said: str
) -> None:
    tools = tmp_path / "tools"
    fake(tools, "mpirun", mpirun)
    if mpicc is not None:
        fake(tools, "mpicc", mpicc)
    done = measure(str(tools), place, tmp_path / "costs.toml", "--ranks", "1")
    assert (done.returncode, said in done.stderr) == (3, True), done.stderr
    assert is_clean(place) and not (tmp_path / "costs.toml").exists()


def test_half_a_library_is_told(place: Path, tmp_path: Path) -> None:
    fake(tmp_path / "tools", "mpirun.mpich", "")
    done = measure(str(tmp_path / "tools"), place, tmp_path / "costs.toml")
    assert "MPICH is left out: mpicc.mpich is not on PATH" in done.stderr


def test_a_program_that_stands_still_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_runs, "PATIENCE_S", 0.2)
    fake(tmp_path, "mpirun", "exec sleep 100")
    with pytest.raises(ValueError, match="of the probe says nothing for 0"):
        list(probe_runs.spoken(str(tmp_path / "mpirun"), 1, tmp_path / "probe", []))


def test_a_place_that_is_no_directory_or_has_no_room_is_refused(full: Path, tmp_path: Path) -> None:
    output = tmp_path / "costs.toml"
    for place, words, said in (
        (tmp_path / "none", [], "expected a directory to measure in"),
        (Path(sys.executable), [], "expected a directory to measure in"),
        (full, ["--ranks", "4"], "measuring with 4 ranks needs 64 MB of room, 0 MB are free"),
    ):
        done = subprocess.run(
            [IOSIG_GENERATE, "--measure", place, "-o", output, *words], capture_output=True, text=True
        )
        assert (done.returncode, said in done.stderr) == (4, True), done.stderr
        assert not output.exists()
