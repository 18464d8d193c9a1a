"""Outputs with 2 GB and more of a rank, which an int of C does not count."""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from generated_programs import Built, run

C = """\
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  long n = argc > 2 ? atol(argv[2]) : 0;
  double *a = (double *)calloc((size_t)n, sizeof *a);
  int status = 1;
  MPI_Init(&argc, &argv);
  if (a == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
  a[n - 1] = 7;
#pragma sigio file f path(argv[1]) level(hdf5) comm(MPI_COMM_WORLD)
#pragma sigio dims f x(n)
#pragma sigio dataset f type(double) dims(x) decomp(none) data(NAMES)
#pragma sigio output f status(status)
  printf("failed %d\\n", status);
  free(a);
  return MPI_Finalize();
}
"""
FORTRAN = """\
program large
  use mpi
  character(len=4096) :: path, number
  double precision, allocatable :: a(:)
  integer :: n, e
  call MPI_Init(e)
  call get_command_argument(1, path)
  call get_command_argument(2, number)
  read (number, *) n
  allocate (a(n))
  a(n) = 7
  !$sigio file f path(trim(path)) level(hdf5) comm(MPI_COMM_WORLD)
  !$sigio dims f x(n)
  !$sigio dataset f type(double) dims(x) decomp(none) data(NAMES)
  !$sigio output f status(e)
  print '(a, i0)', 'failed ', e
  call MPI_Finalize(e)
end program
"""
SUFFIXES = {".c": C, ".f90": FORTRAN}


def template(tmp_path: Path, suffix: str, names: str) -> Path:
    path = tmp_path / f"large{suffix}"
    path.write_text(SUFFIXES[suffix].replace("NAMES", names))
    return path


@pytest.fixture
def memory() -> Iterator[Path]:
    """A directory in memory, with room for a file of 2.2 GB that a program has in memory, too."""
    place = Path("/dev/shm")
    pages = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if not place.is_dir() or min(shutil.disk_usage(place).free, pages) < 6 << 30:
        pytest.skip("needs 6 GB of free memory, and /dev/shm")
    with tempfile.TemporaryDirectory(dir=place) as directory:
        yield Path(directory)


@pytest.mark.parametrize(("suffix", "mpi"), [(".c", "mpich"), (".f90", "openmpi")])
def test_hdf5_takes_two_gigabytes_of_a_rank(built: Built, tmp_path: Path, memory: Path, suffix: str, mpi: str) -> None:
    elements = (1 << 28) + 1000
    program = built(template(tmp_path, suffix, "a"), "hdf5", mpi, policy="packed")
    done = run(program, mpi, 1, memory / "f", elements)
    assert done.stdout.split() == ["failed", "0"], done.stderr
    with (memory / "f").open("rb") as file:
        file.seek(-16, os.SEEK_END)
        before, last = struct.unpack("2d", file.read())
        assert last == 7 and (before == 0 or suffix == ".f90")
        assert file.tell() > elements * 8


def test_pnetcdf_takes_two_gigabytes_of_a_rank_in_several_data_sets(built: Built, tmp_path: Path, memory: Path) -> None:
    program = built(template(tmp_path, ".c", "a, b=a"), "pnetcdf", "openmpi", name="several", policy="nonblocking")
    done = run(program, "openmpi", 1, memory / "f", (1 << 27) + 1000)
    assert done.stdout.split() == ["failed", "0"], done.stderr
    with (memory / "f").open("rb") as file:
        file.seek(-16, os.SEEK_END)
        assert struct.unpack(">2d", file.read()) == (0, 7)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_pnetcdf_refuses_two_gigabytes_of_a_rank_before_the_old_file_is_lost(
    built: Built, tmp_path: Path, suffix: str
) -> None:
    source, path = template(tmp_path, suffix, "a"), tmp_path / "f"
    path.write_text("old")
    done = run(built(source, "pnetcdf", "openmpi"), "openmpi", 1, path, 1 << 28)
    assert "data set 'a': this rank has 2 GB of it or more, which PnetCDF does not move" in done.stderr
    assert done.stdout.split() == ["failed", "1"] and path.read_text() == "old"
