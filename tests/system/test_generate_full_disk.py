"""What `iosig generate` makes, on a disk that is or becomes full: every rank's status tells it, and nobody hangs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ROOT
from generated_programs import TEMPLATES, Built, run
from iosig.repro.generated import TARGETS

BLOCKS = TEMPLATES / "blocks.c"
FORTRAN_BLOCKS = TEMPLATES / "blocks.f90"


@pytest.mark.parametrize(
    ("template", "level", "mpi"),
    [(BLOCKS, *each) for each in TARGETS] + [(FORTRAN_BLOCKS, *each) for each in (TARGETS[0], *TARGETS[2:])],
    ids=lambda value: getattr(value, "suffix", value),
)
def test_a_full_disk_is_every_ranks_failure_and_nobody_hangs(
    built: Built, full: Path, template: Path, level: str, mpi: str
) -> None:
    program = built(template, level, mpi)
    done = run(program, mpi, 3, "write", full / "f", 12000, "0,4000", "4000,4000", "8000,4000")  # 144 KB
    assert all(f"{rank}: failed 1" in done.stdout for rank in range(3)), done.stdout + done.stderr
    assert str(template) in done.stderr


ROWS = 700_000  # 8.4 MB in the grid
TOO_LARGE = ["0,350000", f"350000,{ROWS - 350_000}"]


@pytest.fixture
def ext4(tmp_path: Path) -> Iterator[Path]:
    """A file system with about 6 MB, which allocates beyond the end of files."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("mounts an ext4: needs root and mkfs.ext4")
    image, place = tmp_path / "image", tmp_path / "ext4"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(8 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
    if subprocess.run(["mount", "-o", "loop", image, place], capture_output=True).returncode != 0:
        pytest.skip("ext4 cannot be mounted")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.parametrize(("level", "mpi"), [("mpiio", "openmpi"), ("hdf5", "mpich")])
@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS], ids=lambda path: path.suffix[1:])
def test_an_output_without_room_is_refused_and_leaves_the_old_file(
    built: Built, ext4: Path, template: Path, level: str, mpi: str
) -> None:
    program = built(template, level, mpi)
    assert "failed 0" in run(program, mpi, 2, "write", ext4 / "f", 6, "0,3", "3,3").stdout
    before = (ext4 / "f").read_bytes()
    for name in "f", "g":
        done = run(program, mpi, 2, "write", ext4 / name, ROWS, *TOO_LARGE)
        assert all(f"{rank}: failed 1" in done.stdout for rank in range(2)), done.stdout + done.stderr
        metadata = 3 * 4096 if level == "hdf5" else 0
        assert f"the file system has no room for {ROWS * 3 * 4 + 3 * 8 + metadata} bytes" in done.stderr
    assert (ext4 / "f").read_bytes() == before and not (ext4 / "g").exists()
    assert (ext4 / "f").stat().st_blocks * 512 < 16 << 10  # what could be allocated is given back


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS], ids=lambda path: path.suffix[1:])
def test_hdf5_does_not_hang_on_a_disk_with_room_for_the_data_but_not_for_metadata(
    built: Built, ext4: Path, template: Path, mpi: str
) -> None:
    program = built(template, "hdf5", mpi)
    rows = 4096 * 85  # 1020 blocks in the grid, and one in the head
    (ext4 / "f").write_text("old")
    free = os.statvfs(ext4)
    with (ext4 / "filler").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_bsize - (1020 << 12))
    blocks = [f"{rows // 4 * rank},{rows // 4}" for rank in range(4)]
    done = run(program, mpi, 4, "write", ext4 / "f", rows, *blocks)
    assert all(f"{rank}: failed 1" in done.stdout for rank in range(4)), done.stdout + done.stderr
    assert (ext4 / "f").read_text() == "old"


@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS], ids=lambda path: path.suffix[1:])
def test_holes_of_the_old_file_are_no_room(built: Built, ext4: Path, template: Path) -> None:
    with (ext4 / "f").open("wb") as file:
        file.truncate(ROWS * 12 + 4096)
    done = run(built(template, "mpiio", "openmpi"), "openmpi", 2, "write", ext4 / "f", ROWS, *TOO_LARGE)
    assert "has no room" in done.stderr
    assert (ext4 / "f").stat().st_size == ROWS * 12 + 4096


@pytest.mark.parametrize("error", ["EDQUOT", "ENOSPC"])
@pytest.mark.parametrize(("level", "mpi"), [("mpiio", "openmpi"), ("mpiio", "mpich"), ("pnetcdf", "openmpi")])
@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS], ids=lambda path: path.suffix[1:])
def test_a_new_file_without_room_is_closed_and_a_link_of_the_user_stays(
    built: Built, tmp_path: Path, template: Path, level: str, mpi: str, error: str
) -> None:
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    program = built(template, level, mpi, policy="two-phase")
    (tmp_path / "link").symlink_to("target")
    log = tmp_path / "log"
    traced = ["-f", "-qq", "-y", "-o", str(log), "-e", "trace=openat,close,fallocate"]
    traced += ["-e", f"inject=fallocate:error={error}", str(program)]
    done = run(Path("strace"), mpi, 1, *traced, "write", tmp_path / "link", 6, "0,6")
    assert "0: failed 1" in done.stdout, done.stdout + done.stderr
    assert (tmp_path / "link").is_symlink()
    opened = [line for line in log.read_text().splitlines() if "/target>" in line]
    assert sum("openat(" in line for line in opened) == sum("close(" in line for line in opened) > 0


@pytest.mark.parametrize("policy", ["two-phase", "packed"])
@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS], ids=lambda path: path.suffix[1:])
def test_a_longer_file_that_only_mpi_finds_is_emptied(
    built: Built, tmp_path: Path, template: Path, policy: str
) -> None:
    program = built(template, "mpiio", "mpich", policy=policy)
    (tmp_path / "f").write_bytes(bytes(1000))
    done = run(program, "mpich", 2, "write", f"ufs:{tmp_path}/f", 6, "0,3", "3,3")
    assert "failed 0" in done.stdout, done.stdout + done.stderr
    assert (tmp_path / "f").stat().st_size == 3 * 8 + 6 * 3 * 4


@pytest.mark.parametrize(("error", "status"), [("EDQUOT", 1), ("EOPNOTSUPP", 0)])
@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS], ids=lambda path: path.suffix[1:])
def test_a_quota_is_room_and_a_file_system_that_does_not_allocate_is_asked_what_is_free(
    built: Built, tmp_path: Path, template: Path, error: str, status: int
) -> None:
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    program = built(template, "mpiio", "openmpi")
    traced = ["-f", "-qq", "-o", "/dev/null", "-e", f"inject=fallocate:error={error}", str(program)]
    done = run(Path("strace"), "openmpi", 2, *traced, "write", tmp_path / "f", 6, "0,3", "3,3")
    assert all(f"{rank}: failed {status}" in done.stdout for rank in range(2)), done.stdout + done.stderr


@pytest.fixture(scope="session")
def late_rank(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which rank 1 writes last, and OMPIO lets each rank write."""
    library = tmp_path_factory.mktemp("late") / "late_rank.so"
    source = ROOT / "tests" / "support" / "late_rank.c"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library), "LATE_RANK": "1", "OMPI_MCA_io_ompio_num_aggregators": "3"}


@pytest.mark.parametrize("policy", ["two-phase", "packed"])
@pytest.mark.parametrize("level", ["mpiio", "pnetcdf", "hdf5"])
@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS], ids=lambda path: path.suffix[1:])
def test_a_part_that_is_missing_in_the_middle_is_every_ranks_failure(
    built: Built, full: Path, late_rank: dict[str, str], template: Path, level: str, policy: str
) -> None:
    # OMPIO reports none of these failures, and the file has its whole size: what is behind the part was there before.
    program = built(template, level, "openmpi", policy=policy)
    words = ["write", full / "f", 6000, "0,2000", "2000,2000", "4000,2000"]  # 24 KB of each rank, 72 of 64
    done = run(program, "openmpi", 3, *words, environment=late_rank)
    assert all(f"{rank}: failed 1" in done.stdout for rank in range(3)), done.stdout + done.stderr
