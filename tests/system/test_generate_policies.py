"""How data are moved changes no byte of a file: each policy, level and MPI library, in C and in Fortran."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from generated_programs import EXAMPLES, IOSIG_GENERATE, TEMPLATES, Built, run
from iosig.repro.generated import TARGETS

METHODS = {
    "mpiio": ["two-phase", "sieving", "packed"],
    "hdf5": ["two-phase", "sieving", "packed"],
    "pnetcdf": ["nonblocking", "two-phase", "sieving", "packed"],
}
CELLS = 6  # along each axis of a rank's block


@pytest.mark.parametrize("suffix", ["c", "f90"])
@pytest.mark.parametrize(("level", "mpi"), TARGETS)
def test_each_policy_writes_the_same_bytes_of_blocks_in_three_dimensions(
    built: Built, tmp_path: Path, level: str, mpi: str, suffix: str
) -> None:
    files = []
    ranks = 2 if (mpi, suffix) == ("mpich", "f90") else 4  # MPICH is slow with more ranks than processors
    for policy in METHODS[level]:
        program, path = built(EXAMPLES / f"s3d.{suffix}", level, mpi, policy=policy), tmp_path / policy
        run(program, mpi, ranks, "write", path, CELLS)
        files.append(path.read_bytes())
        assert run(program, mpi, ranks, "restart", path, CELLS).stdout == "0 cells differ\n" * ranks
    assert len(set(files)) == 1


@pytest.mark.parametrize(("level", "mpi"), TARGETS)
def test_each_policy_moves_components_of_an_array_in_another_order(
    built: Built, tmp_path: Path, level: str, mpi: str
) -> None:
    files = []
    for policy in METHODS[level]:
        program, path = built(TEMPLATES / "orders.c", level, mpi, policy=policy), tmp_path / policy
        for rows in ["0,7"], ["3,4", "0,3"], ["0,3", "3,0", "3,4"]:
            run(program, mpi, len(rows), "write", path, 7, *rows)
            files.append(path.read_bytes())
        told = run(program, mpi, 2, "read", path, 7, "2,4", "0,7").stdout  # elements beside the block are not changed
        assert told.count("failed 0, wrong 0, changed 0") == 2
    assert len(set(files)) == 1


@pytest.mark.parametrize("policy", ["two-phase", "sieving", "packed"])
@pytest.mark.parametrize("level", ["pnetcdf", "hdf5"])
def test_records_and_elements_that_are_dealt_are_moved_by_each_policy(
    built: Built, tmp_path: Path, level: str, policy: str
) -> None:
    for suffix in ("c", "f90"):
        program = built(TEMPLATES / f"records.{suffix}", level, "openmpi", policy=policy)
        run(program, "openmpi", 3, "write", tmp_path / f"{suffix}-records", 0, 3)
        told = run(program, "openmpi", 2, "read", tmp_path / f"{suffix}-records", 0, 3).stdout
        assert sorted(told.splitlines()) == ["0: failed 0, wrong 0", "1: failed 0, wrong 0"]
    shares = ["2,1", "1,3", "5,3,0,1,2,4", "0,1,2,3,4,5"]
    program = built(TEMPLATES / "parts.c", level, "openmpi", policy=policy)
    run(program, "openmpi", 2, "write", tmp_path / "parts", *shares)
    assert run(program, "openmpi", 2, "read", tmp_path / "parts", *shares).stdout.count("failed 0, wrong 0") == 2


def test_unused_bytes_of_hdf5_files_are_the_same_by_each_policy(built: Built, tmp_path: Path) -> None:
    """ROMIO's sieving fills gaps behind the end of a file with what was in memory; HDF5's metadata leave such gaps."""
    files = set()
    for policy in METHODS["hdf5"]:
        for ranks in (1, 2):
            run(
                built(TEMPLATES / "records.c", "hdf5", "mpich", policy=policy),
                "mpich",
                ranks,
                "write",
                tmp_path / "f",
                0,
                3,
            )
            files.add((tmp_path / "f").read_bytes())
    assert len(files) == 1


@pytest.mark.parametrize(("suffix", "mpi"), [("c", "openmpi"), ("c", "mpich"), ("f90", "openmpi")])
def test_chunks_of_a_ranks_block_hold_the_same_values(built: Built, tmp_path: Path, suffix: str, mpi: str) -> None:
    """The layout of the file is another: it is compared by HDF5's own tool."""
    if shutil.which("h5diff") is None:
        pytest.skip("needs h5diff")
    template = EXAMPLES / f"s3d.{suffix}"
    for policy in ("two-phase", "chunked"):
        run(built(template, "hdf5", mpi, policy=policy), mpi, 4, "write", tmp_path / policy, CELLS)
    assert subprocess.run(["h5diff", tmp_path / "two-phase", tmp_path / "chunked"]).returncode == 0
    header = subprocess.run(["h5dump", "-H", "-p", tmp_path / "chunked"], capture_output=True, text=True, check=True)
    assert header.stdout.count(f"CHUNKED ( {CELLS}, {CELLS}, {CELLS} )") == 2  # temp and pressure
    told = run(built(template, "hdf5", mpi, policy="packed"), mpi, 4, "restart", tmp_path / "chunked", CELLS).stdout
    assert told == "0 cells differ\n" * 4


def decisions(template: Path, *options: str) -> list[dict]:
    command = [IOSIG_GENERATE, template, "--check", "--json", *options]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["decisions"]


def test_the_reports_rule_sieves_where_memory_is_not_contiguous(tmp_path: Path) -> None:
    """DOE report, section 3: components that lie side by side (FLASH I/O); blocks without ghost cells (S3D I/O)."""
    sieving, two_phase = ({"ompio": name, "romio": name} for name in ("sieving", "two-phase"))
    assert decisions(TEMPLATES / "orders.c", "--policy", "doe2014")[0]["methods"] == sieving
    bare = tmp_path / "bare.c"
    bare.write_text((EXAMPLES / "s3d.c").read_text().replace("ghost(GHOST)", ""))
    assert decisions(bare, "-I", str(EXAMPLES), "--policy", "doe2014")[0]["methods"] == two_phase


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_hints_of_a_policy_are_for_romio_alone(tmp_path: Path, mpi: str) -> None:
    """OMPIO writes wrong bytes under `cb_nodes`; no policy gives it hints at all."""
    for policy in METHODS["mpiio"]:
        source = tmp_path / "out.c"
        subprocess.run(
            [IOSIG_GENERATE, EXAMPLES / "s3d.c", "--level", "mpiio", "--policy", policy, "-o", source],
            check=True, capture_output=True,
        )  # fmt: skip
        text = source.read_text()
        given = [line for line in text.splitlines() if "iosig_hint(&" in line]
        assert given and all(line.lstrip().startswith("if (!IOSIG_OMPIO) ") for line in given)
        assert "cb_nodes" not in text


def test_a_method_that_the_level_lacks_is_refused() -> None:
    command = [IOSIG_GENERATE, EXAMPLES / "s3d.c", "--level", "hdf5", "--policy", "nonblocking"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 3
    assert "level 'hdf5' has no method 'nonblocking'; expected two-phase, sieving, packed, chunked" in done.stderr
    command[-1] = "best"
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "--policy" in done.stderr
