"""What `iosig generate` makes, on a disk that becomes full: every rank's status tells it, and nobody hangs."""

from __future__ import annotations

import subprocess
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
    if (level, mpi) == ("hdf5", "mpich"):
        pytest.skip("HDF5 1.10 over ROMIO: a rank whose write succeeded waits for those whose write failed")
    program = built(template, level, mpi)
    done = run(program, mpi, 3, "write", full / "f", 12000, "0,4000", "4000,4000", "8000,4000")  # 144 KB
    assert all(f"{rank}: failed 1" in done.stdout for rank in range(3)), done.stdout + done.stderr
    assert str(template) in done.stderr


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
