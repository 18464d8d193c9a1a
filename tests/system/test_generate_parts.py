"""Elements that are dealt to ranks in turn, or listed: each is at its place in the file, on each level.

Ranks that do not share the array exactly once are refused. `parts` writes 100 z + 10 y + x to `grid`, and x / 2 to
`plain`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from generated_programs import TEMPLATES, Built, hdf5_values, netcdf_values, run
from iosig.repro.generated import TARGETS

TEMPLATE, FORTRAN = TEMPLATES / "parts.c", TEMPLATES / "parts.f90"
# Ranks along z and y; planes and rows at a time; the columns of each rank, in the order of memory.
SHARED = [
    ["1,1", "2,1", "5,3,0,1,2,4"],
    ["3,1", "1,3", "5,3,0,1,2,4", "0,1,2,3,4,5", "2,3,4,5,0,1"],
    ["2,1", "2,2", "5,3,0", "5,3,0", "4,1,2", "1,2,4"],
    ["2,2", "3,1", "0,1,2,3,4,5", "5,4,3,2,1,0", "0,2,4,1,3,5", "3,4,5,0,1,2"],
]
AGAIN = ["2,2", "1,1", "5,3,0", "1,2", "-", "4,5,1,0"]  # what is read may overlap, and leave elements out
GRID = np.fromfunction(lambda z, y, x: 100 * z + 10 * y + x, (5, 4, 6))
PLAIN = 0.5 * np.arange(6)


def said(done: subprocess.CompletedProcess[str]) -> list[str]:
    return sorted(done.stdout.splitlines())


def fine(ranks: int) -> list[str]:
    return [f"{rank}: failed 0, wrong 0" for rank in range(ranks)]


def values(path: Path, level: str) -> tuple[np.ndarray, np.ndarray]:
    if level == "hdf5":
        return hdf5_values(path, "grid", "<i2"), hdf5_values(path, "plain", "<f8")
    if level == "pnetcdf":
        _, found = netcdf_values(path)
        return found["grid"], found["plain"]
    content = path.read_bytes()
    return np.frombuffer(content[48:], np.int16), np.frombuffer(content[:48], np.float64)


@pytest.mark.parametrize("template", [TEMPLATE, FORTRAN], ids=lambda path: path.suffix[1:])
@pytest.mark.parametrize(("level", "mpi"), TARGETS)
def test_each_element_is_at_its_place_however_ranks_share_them(
    built: Built, tmp_path: Path, template: Path, level: str, mpi: str
) -> None:
    program, path = built(template, level, mpi), tmp_path / "file"
    for shared in SHARED if mpi == "openmpi" else [["1,2", "2,2", "5,3,0,1,2,4", "0,1,2,3,4,5"]]:
        ranks = len(shared) - 2  # MPICH is slow with more ranks than cores
        assert said(run(program, mpi, ranks, "write", path, *shared)) == fine(ranks)
        grid, plain = values(path, level)
        assert np.array_equal(grid, GRID.ravel()) and np.array_equal(plain, PLAIN)
    assert said(run(program, mpi, 2, "read", path, "2,1", "2,1", "5,3,0", "1,2")) == fine(2)
    assert mpi == "mpich" or said(run(program, mpi, 4, "read", path, *AGAIN)) == fine(4)


REFUSED = {
    "outside": (["2,1", "1,1", "0,1,2,3,4,5", "0,1,2,3,4,9"], "has the elements 0 to 5, and this rank's list has 9\n"),
    "negative": (["2,1", "1,1", "0,1,2,3,4,5", "-1,0"], "has the elements 0 to 5, and this rank's list has -1\n"),
    "twice": (["2,1", "1,1", "0,1,2,3,4,5", "0,4,4"], "data set 'grid': this rank's list has element 4 of axis "),
    "hole": (
        ["2,1", "1,1", "0,1,2,3,4,5", "0,1,2,3,4"],
        "data set 'grid': the blocks of the ranks leave elements out\n",
    ),
    "overlap": (["1,1", "1,1", "0,1,2,3", "3,4,5"], "data set 'plain': the blocks of the ranks overlap\n"),
    "both": (["1,1", "1,1", "0,1,2", "2,3,4"], "overlap, and leave other elements out\n"),
    "nothing at a time": (["2,1", "0,1", "0", "1"], "decomp 'grid', axis 'z': rank 0 of 2 gets 0 elements at a time; "),
}


@pytest.mark.parametrize("template", [TEMPLATE, FORTRAN], ids=lambda path: path.suffix[1:])
@pytest.mark.parametrize("what", REFUSED)
def test_ranks_that_do_not_have_each_element_once_are_refused(
    built: Built, tmp_path: Path, template: Path, what: str
) -> None:
    shared, expected = REFUSED[what]
    done = run(built(template, "mpiio", "openmpi"), "openmpi", 2, "write", tmp_path / "file", *shared)
    assert [line.partition(",")[0] for line in said(done)] == ["0: failed 1", "1: failed 1"]
    assert expected in done.stderr and not (tmp_path / "file").exists()


@pytest.mark.parametrize("template", [TEMPLATE, FORTRAN], ids=lambda path: path.suffix[1:])
@pytest.mark.parametrize("level", ["pnetcdf", "hdf5"])
def test_records_of_elements_that_are_dealt_are_at_their_places_too(
    built: Built, tmp_path: Path, template: Path, level: str
) -> None:
    text = (
        template.read_text()
        .replace("dims f z(", "dims f t(unlimited) z(")
        .replace(" f status", " f record(step) status")
    )
    text = text.replace("dims(z, y, x)", "dims(t, z, y, x)").replace("dims(x, y, z)", "dims(x, y, z, t)")
    step = '  int step = atoi(getenv("STEP"));\n#pragma sigio file'
    text = text.replace("#pragma sigio file", step, 1)
    text = text.replace("  character(len=512) ::", "  integer :: step\n  character(len=512) ::")
    read = "  call get_environment_variable('STEP', argument)\n  read (argument, *) step\n  !$sigio file"
    changed, path = tmp_path / template.name, tmp_path / "file"
    changed.write_text(text.replace("  !$sigio file", read, 1))
    program = built(changed, level, "openmpi", f"{template.stem}-records")
    for step in range(2):
        done = run(program, "openmpi", 4, "write", path, *SHARED[3 - step], environment={"STEP": str(step)})
        assert said(done) == fine(4)
    grid, _ = values(path, level)
    assert np.array_equal(grid, np.concatenate([GRID.ravel(), GRID.ravel()]))
    assert said(run(program, "openmpi", 4, "read", path, *AGAIN, environment={"STEP": "1"})) == fine(4)
