"""The level netcdf4: files that ncdump reads, with the values of the level pnetcdf."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from generated_programs import EXAMPLES, IOSIG_GENERATE, TEMPLATES, Built, netcdf_values, run

PARTS = [
    ["1,1", "2,1", "5,3,0,1,2,4"],
    ["3,1", "1,3", "5,3,0,1,2,4", "0,1,2,3,4,5", "2,3,4,5,0,1"],
    ["2,1", "2,2", "5,3,0", "5,3,0", "4,1,2", "1,2,4"],
]


@pytest.fixture
def blocks(built: Built) -> Path:
    return built(TEMPLATES / "blocks.c", "netcdf4", "openmpi")


def fine(done: subprocess.CompletedProcess[str], ranks: int) -> bool:
    told = [line.split(", ")[:2] for line in sorted(done.stdout.splitlines())]
    return told == [[f"{rank}: failed 0", "wrong 0"] for rank in range(ranks)]


def failed(done: subprocess.CompletedProcess[str], ranks: int) -> bool:
    return sorted(line.partition(",")[0] for line in done.stdout.splitlines()) == [
        f"{r}: failed 1" for r in range(ranks)
    ]


def test_the_s3d_checkpoint_has_the_values_of_pnetcdf_and_restarts(built: Built, tmp_path: Path) -> None:
    program, path = built(EXAMPLES / "s3d.c", "netcdf4", "openmpi"), tmp_path / "new.nc"
    run(program, "openmpi", 4, "write", path, 4)
    run(built(EXAMPLES / "s3d.c", "pnetcdf", "openmpi"), "openmpi", 4, "write", tmp_path / "old.nc", 4)
    header, values = netcdf_values(path)
    old_header, old_values = netcdf_values(tmp_path / "old.nc")
    assert header.partition("\n")[2] == old_header.partition("\n")[2]  # the first line has the name of the file
    assert values.keys() == old_values.keys() == {"yspecies", "temp", "pressure", "u"}
    assert all(np.array_equal(values[name], old_values[name]) for name in values)
    run(program, "openmpi", 1, "write", path, 8)
    assert run(program, "openmpi", 8, "restart", path, 4).stdout == "0 cells differ\n" * 8


def test_axes_attributes_and_values_are_those_of_the_directives(blocks: Path, tmp_path: Path) -> None:
    path = tmp_path / "f.nc"
    assert fine(run(blocks, "openmpi", 3, "write", path, 4, "0,0", "0,3", "3,1"), 3)
    header, values = netcdf_values(path)
    for part in (
        "z = 4 ;", "x = 3 ;", "double head(x) ;", "int grid(z, x) ;", "grid:scale = 0.5 ;", ":step = 42 ;",
        ":time = 1.5 ;", ':name = "blo\\"cks" ;',
    ):  # fmt: skip
        assert part in header
    assert list(values["grid"]) == [10 * z + x for z in range(4) for x in range(3)]
    assert fine(run(blocks, "openmpi", 2, "read", path, 4, "0,4", "1,0"), 2)


def test_elements_that_are_dealt_or_listed_are_at_their_places(built: Built, tmp_path: Path) -> None:
    program, path = built(TEMPLATES / "parts.c", "netcdf4", "openmpi"), tmp_path / "f.nc"
    for shared in PARTS:
        assert fine(run(program, "openmpi", len(shared) - 2, "write", path, *shared), len(shared) - 2)
        _, values = netcdf_values(path)
        assert np.array_equal(
            values["grid"].reshape(5, 4, 6), np.fromfunction(lambda z, y, x: 100 * z + 10 * y + x, (5, 4, 6))
        )
        assert np.array_equal(values["plain"], 0.5 * np.arange(6))
    assert fine(run(program, "openmpi", 4, "read", path, "2,2", "1,1", "5,3,0", "1,2", "-", "4,5,1,0"), 4)


def test_records_are_added_and_gaps_are_refused(built: Built, tmp_path: Path) -> None:
    program, path = built(TEMPLATES / "records.c", "netcdf4", "openmpi"), tmp_path / "f.nc"
    assert fine(run(program, "openmpi", 3, "write", path, 0, 3), 3)
    assert fine(run(program, "openmpi", 4, "write", path, 2, 5), 4)
    header, values = netcdf_values(path)
    assert "t = UNLIMITED ; // (6 currently)" in header and list(values["time"]) == [0, 0.5, 1, 1.5, 2, 2.5]
    assert np.array_equal(values["grid"], np.fromfunction(lambda t, y, x: 100 * t + 10 * y + x, (6, 6, 3)).ravel())
    done = run(program, "openmpi", 2, "write", path, 7, 7)
    assert failed(done, 2) and "the file has 6 records, counted from 0; record 7 would leave a gap" in done.stderr


def test_what_cannot_be_made_or_has_other_axes_fails_on_every_rank(blocks: Path, tmp_path: Path) -> None:
    for verb in ("write", "read"):
        done = run(blocks, "openmpi", 2, verb, tmp_path / "none/f", 7, "0,3", "3,4")
        assert failed(done, 2) and "file 'f': " in done.stderr
    run(blocks, "openmpi", 1, "write", tmp_path / "f", 7, "0,7")
    done = run(blocks, "openmpi", 2, "read", tmp_path / "f", 8, "0,4", "4,4")
    assert failed(done, 2) and "axis 1 has 7 elements in the file; expected 8" in done.stderr


def test_elements_of_another_type_are_refused(built: Built, tmp_path: Path) -> None:
    """netCDF would take the bytes of memory for elements of the file's type, and write others behind the array."""
    template, path = tmp_path / "t.c", tmp_path / "f"
    text = (TEMPLATES / "records.c").read_text().replace("double time =", "float time =")
    template.write_text(text.replace("f.time type(double)", "f.time type(float)"))
    program = built(template, "netcdf4", "openmpi", "float-")
    run(built(TEMPLATES / "records.c", "netcdf4", "openmpi"), "openmpi", 2, "write", path, 0, 1)
    before = path.read_bytes()
    for words in ("write", path, 2, 2), ("read", path, 1, 1):
        done = run(program, "openmpi", 2, *words)
        assert failed(done, 2) and path.read_bytes() == before
        assert "data set 'time': the variable in the file has the type double; expected float\n" in done.stderr


def test_a_full_disk_is_every_ranks_failure(blocks: Path, full: Path) -> None:
    done = run(blocks, "openmpi", 3, "write", full / "f", 12000, "0,4000", "4000,4000", "8000,4000")  # 144 KB
    assert failed(done, 3), done.stdout + done.stderr


def test_levels_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.f90"
    path.write_text((TEMPLATES / "blocks.f90").read_text())
    done = subprocess.run([IOSIG_GENERATE, path, "--level", "netcdf4"], capture_output=True, text=True)
    assert done.returncode == 3 and f"{path}:33:" in done.stderr
    assert done.stderr.count("error: ") == 1  # the file is known: directives that name it are not wrong
    assert (
        "level 'netcdf4' cannot be generated in Fortran, whose netCDF library is not parallel; expected 'mpiio'"
        in done.stderr
    )
    path = tmp_path / "t.c"
    text = (TEMPLATES / "blocks.c").read_text().replace("level(mpiio)", "level(netcdf4)")
    path.write_text(
        text.replace(
            "#pragma sigio dims f", "#pragma sigio file g path(path) level(pnetcdf) comm(c)\n#pragma sigio dims f"
        )
    )
    done = subprocess.run([IOSIG_GENERATE, path], capture_output=True, text=True)
    assert done.returncode == 3 and "headers of both define the same names" in done.stderr
