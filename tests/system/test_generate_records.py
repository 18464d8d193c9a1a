"""Files that grow by records: which record is written, what is in the file, and which records are refused.

Step S of `records` is S / 2 in `time`, and 100 S + 10 y + x in `grid`. The reader is another program than the writer.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from generated_programs import TEMPLATES, Built, hdf5_values, netcdf_values, run

TEMPLATE, FORTRAN = TEMPLATES / "records.c", TEMPLATES / "records.f90"
LEVELS = ["pnetcdf", "hdf5"]


def said(done: subprocess.CompletedProcess[str]) -> list[str]:
    return sorted(done.stdout.splitlines())


def fine(ranks: int) -> list[str]:
    return [f"{rank}: failed 0, wrong 0" for rank in range(ranks)]


def failed(ranks: int, done: subprocess.CompletedProcess[str]) -> bool:
    return [line.partition(",")[0] for line in said(done)] == [f"{rank}: failed 1" for rank in range(ranks)]


def grid(steps: int) -> np.ndarray:
    step, y, x = np.indices((steps, 6, 3))
    return 100 * step + 10 * y + x


@pytest.mark.parametrize("level", LEVELS)
def test_records_are_added_by_one_run_after_another_with_any_number_of_ranks(
    built: Built, tmp_path: Path, level: str
) -> None:
    files = []
    for template in (TEMPLATE, FORTRAN):
        program = built(template, level, "openmpi")
        for ranks in (1, 3, 4) if template is TEMPLATE else (3,):
            files.append(tmp_path / f"{template.suffix[1:]}{ranks}")
            assert said(run(program, "openmpi", ranks, "write", files[-1], 0, 3)) == fine(ranks)
            # a restart at step 2 writes two records again
            assert said(run(program, "openmpi", ranks, "write", files[-1], 2, 5)) == fine(ranks)
            assert said(run(built(TEMPLATE, level, "openmpi"), "openmpi", 2, "read", files[-1], 0, 5)) == fine(2)
    assert {path.read_bytes() for path in files} == {files[0].read_bytes()}  # 1, 3 and 4 ranks, C and Fortran


def test_another_program_reads_the_records_of_an_hdf5_file(built: Built, tmp_path: Path) -> None:
    path = tmp_path / "f.h5"
    run(built(TEMPLATE, "hdf5", "openmpi"), "openmpi", 3, "write", path, 0, 5)
    assert np.array_equal(hdf5_values(path, "grid", "<i4"), grid(6).ravel())
    assert np.array_equal(hdf5_values(path, "time", "<f8"), 0.5 * np.arange(6))
    assert np.array_equal(hdf5_values(path, "mesh", "<f4"), [0.25, 0.5, 0.75])
    header = subprocess.run(["h5dump", "-H", path], capture_output=True, text=True, check=True).stdout
    assert "{ ( 6, 6, 3 ) / ( H5S_UNLIMITED, 6, 3 ) }" in header


def test_another_program_reads_the_records_of_a_netcdf_file(built: Built, tmp_path: Path) -> None:
    path = tmp_path / "f.nc"
    run(built(FORTRAN, "pnetcdf", "openmpi"), "openmpi", 3, "write", path, 0, 5)
    told, values = netcdf_values(path)
    assert "t = UNLIMITED ; // (6 currently)" in told
    assert np.array_equal(values["grid"], grid(6).ravel()) and np.array_equal(values["time"], 0.5 * np.arange(6))


@pytest.mark.parametrize("template", [TEMPLATE, FORTRAN], ids=lambda path: path.suffix[1:])
@pytest.mark.parametrize("level", LEVELS)
def test_records_that_would_leave_a_gap_or_are_not_there_are_refused_on_every_rank(
    built: Built, tmp_path: Path, template: Path, level: str
) -> None:
    program, path = built(template, level, "openmpi"), tmp_path / "f"
    done = run(program, "openmpi", 2, "write", path, 1, 1)
    assert failed(2, done) and "file 'f': " in done.stderr and not path.exists()
    run(program, "openmpi", 2, "write", path, 0, 1)
    before = path.read_bytes()
    done = run(program, "openmpi", 2, "write", path, 3, 3)
    assert failed(2, done) and path.read_bytes() == before
    assert "data set 'time': the file has 2 records, counted from 0; record 3 would leave a gap\n" in done.stderr
    done = run(program, "openmpi", 2, "read", path, 2, 2)
    assert failed(2, done)
    assert "data set 'time': the file has 2 records, counted from 0; record 2 is none of them\n" in done.stderr
    done = run(program, "openmpi", 2, "write", path, -1, -1)
    assert failed(2, done) and "records -1 to -1; expected the same one, at least 0\n" in done.stderr


@pytest.mark.parametrize("template", [TEMPLATE, FORTRAN], ids=lambda path: path.suffix[1:])
@pytest.mark.parametrize("level", LEVELS)
def test_a_record_of_another_type_is_refused_and_the_file_stays_as_it_is(
    built: Built, tmp_path: Path, template: Path, level: str
) -> None:
    path, changed = tmp_path / "f", tmp_path / template.name
    text = template.read_text().splitlines()
    at = next(number for number, line in enumerate(text) if "dataset f.time" in line)
    text[at : at + 2] = text[at + 1], text[at].replace("double", "float")  # behind one that fits
    declared = (
        ("double time =", "float time =") if template is TEMPLATE else ("double precision :: time", "real :: time")
    )
    again = "\n".join(text).replace(*declared).replace("0.5d0*step, 0d0", "0.5*step, 0.0")
    changed.write_text(again + "\n")
    run(built(template, level, "openmpi"), "openmpi", 2, "write", path, 0, 1)
    before = path.read_bytes()
    program = built(changed, level, "openmpi", "float-")
    for words in ("write", path, 2, 2), ("read", path, 1, 1):
        done = run(program, "openmpi", 2, *words)
        assert failed(2, done) and path.read_bytes() == before
        assert f"{changed}:{at + 2}: data set 'time': the " in done.stderr
        assert " in the file has the type double; expected float\n" in done.stderr


def test_ranks_that_are_at_different_steps_are_refused(built: Built, tmp_path: Path) -> None:
    template = tmp_path / "t.c"
    template.write_text(TEMPLATE.read_text().replace("output f record(step)", "output f record(step + rank)"))
    done = run(built(template, "pnetcdf", "openmpi"), "openmpi", 3, "write", tmp_path / "f", 0, 0)
    assert failed(3, done) and "the ranks have the records 0 to 2; expected the same one" in done.stderr


@pytest.mark.parametrize("template", [TEMPLATE, FORTRAN], ids=lambda path: path.suffix[1:])
@pytest.mark.parametrize("level", LEVELS)
def test_a_disk_that_a_later_record_fills_is_every_ranks_failure(
    built: Built, tmp_path: Path, full: Path, template: Path, level: str
) -> None:
    changed = tmp_path / template.name
    text = (
        template.read_text()
        .replace("define ROWS 6\n", "define ROWS 3000\n")
        .replace("all_rows = 6,", "all_rows = 3000,")
    )
    changed.write_text(text)
    program = built(changed, level, "openmpi", "large-")
    assert said(run(program, "openmpi", 3, "write", full / "f", 0, 0)) == fine(3)  # 36 KB of 64
    done = run(program, "openmpi", 3, "write", full / "f", 1, 1)
    # Some methods of HDF5 find it at the write, others at the close.
    assert failed(3, done) and ("file 'f': " in done.stderr or "data set 'grid': " in done.stderr)
