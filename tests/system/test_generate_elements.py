"""Elements that `iosig generate` writes and reads: every type with its limits, values that overflow, many outputs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from generated_programs import Built, hdf5_values, netcdf_values, run
from iosig.repro.generated import TARGETS

RANGES = """#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
  int rank, failed = -1, missing = -1;
  double first[2] = {1, 2}, second[2] = {3, 4};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 1) first[1] = 1e300; /* is no float */
#pragma sigio file f path(argv[1]) level(pnetcdf) comm(MPI_COMM_WORLD)
#pragma sigio dims f x(6)
#pragma sigio decomp mine block(x: 2 * rank, 2)
#pragma sigio dataset f type(double) as(float) dims(x) decomp(mine) data(first, second)
#pragma sigio output f status(failed)
  first[0] = first[1] = second[0] = second[1] = 0;
#pragma sigio input f status(missing)
  printf("%d: failed %d%d, %d %d %d\\n", rank, failed, missing, first[1] > 1e300, (int)first[0], (int)second[1]);
  return MPI_Finalize();
}
"""
FORTRAN_RANGES = """program ranges
  use mpi
  implicit none
  integer :: rank, failed, missing, ierr
  double precision :: first(2), second(2)
  character(len=512) :: path
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call get_command_argument(1, path)
  first = [1d0, 2d0]
  second = [3d0, 4d0]
  if (rank == 1) first(2) = 1d300 ! is no real
  !$sigio file f path(trim(path)) level(pnetcdf) comm(MPI_COMM_WORLD)
  !$sigio dims f x(6)
  !$sigio decomp mine block(x: 2*rank, 2)
  !$sigio dataset f type(double) as(float) dims(x) decomp(mine) data(first, second)
  !$sigio output f status(failed)
  first = 0
  second = 0
  !$sigio input f status(missing)
  print '(i0, a, i0, i0, a, i0, 1x, i0, 1x, i0)', rank, ': failed ', failed, missing, ', ', &
    merge(1, 0, first(2) > 1d300), int(first(1)), int(second(2))
  call MPI_Finalize(ierr)
end program
"""


@pytest.mark.parametrize(
    ("level", "policy"),
    [
        ("pnetcdf", "two-phase"),
        ("pnetcdf", "nonblocking"),
        ("pnetcdf", "packed"),
        ("mpiio", "model"),
        ("hdf5", "model"),
    ],
)
@pytest.mark.parametrize("language", ["c", "f90"])
def test_a_double_that_is_no_float_is_infinity_in_the_file(
    built: Built, tmp_path: Path, language: str, level: str, policy: str
) -> None:
    template, file = tmp_path / f"ranges.{language}", tmp_path / "f"
    template.write_text(RANGES if language == "c" else FORTRAN_RANGES)
    done = run(built(template, level, "openmpi", policy=policy), "openmpi", 3, file)
    assert sorted(done.stdout.splitlines()) == [f"{rank}: failed 00, {int(rank == 1)} 1 4" for rank in range(3)]
    first, second = [1, 2, 1, np.inf, 1, 2], [3, 4, 3, 4, 3, 4]
    if level == "mpiio":
        assert file.read_bytes() == np.array([first, second], "<f4").tobytes()
    elif level == "hdf5":
        assert hdf5_values(file, "first", "<f4").tolist() == first
    else:
        values = netcdf_values(file)[1]
        assert (values["first"].tolist(), values["second"].tolist()) == (first, second)


# Rank 1's first variable is written and reported as failed.
FAILING = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <pnetcdf.h>
#include <stdlib.h>
int ncmpi_put_vara_all(int nc, int variable, const MPI_Offset *start, const MPI_Offset *count, const void *data,
                       MPI_Offset blocks, MPI_Datatype type) {
  static int calls;
  int (*const real)(int, int, const MPI_Offset *, const MPI_Offset *, const void *, MPI_Offset, MPI_Datatype) =
      dlsym(RTLD_NEXT, "ncmpi_put_vara_all");
  const int code = real(nc, variable, start, count, data, blocks, type);
  return calls++ == 0 && atoi(getenv("OMPI_COMM_WORLD_RANK")) == 1 ? NC_ERANGE : code;
}
"""


@pytest.mark.parametrize("language", ["c", "f90"])
def test_a_rank_that_fails_in_one_variable_takes_part_in_the_next(built: Built, tmp_path: Path, language: str) -> None:
    """The others would wait for it for ever."""
    template, library = tmp_path / f"ranges.{language}", tmp_path / "failing.so"
    template.write_text(RANGES if language == "c" else FORTRAN_RANGES)
    program = built(template, "pnetcdf", "openmpi", policy="two-phase")
    (tmp_path / "failing.c").write_text(FAILING)
    compiler = ["mpicc.openmpi", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "failing.c"), "-ldl"]
    subprocess.run(compiler, check=True, capture_output=True)
    done = run(program, "openmpi", 3, tmp_path / "f", environment={"LD_PRELOAD": str(library)})
    assert sorted(line.partition(",")[0] for line in done.stdout.splitlines()) == [f"{n}: failed 10" for n in range(3)]
    assert "data set 'first'" in done.stderr


# By type, the values that the two ranks write: the least one (Fortran: the greatest one, negated) and the greatest one.
LIMITS: dict[str, tuple[str, str, np.dtype]] = {
    "double": ("-DBL_MAX", "DBL_MAX", np.dtype("f8")),
    "float": ("-FLT_MAX", "FLT_MAX", np.dtype("f4")),
    "int": ("INT_MIN", "INT_MAX", np.dtype("i4")),
    "int64": ("INT64_MIN", "INT64_MAX", np.dtype("i8")),
    "uint64": ("0", "UINT64_MAX", np.dtype("u8")),
    "short": ("SHRT_MIN", "SHRT_MAX", np.dtype("i2")),
    "int8": ("INT8_MIN", "INT8_MAX", np.dtype("i1")),
    "uint8": ("0", "UINT8_MAX", np.dtype("u1")),
}
KINDS = {"double": "real(real64)", "float": "real(real32)", "int": "integer(int32)", "int64": "integer(int64)"} | {
    "short": "integer(int16)",
    "int8": "integer(int8)",
}


def every_type_in_c() -> str:
    c_names = {name: f"{name}_t" for name in LIMITS if name[-1].isdigit()}
    arrays = "".join(
        f"  {c_names.get(name, name)} of_{name}[1], {name}_was = rank == 0 ? {least} : {greatest};\n"
        for name, (least, greatest, _) in LIMITS.items()
    )
    sets = "".join(f"  of_{name}[0] = argc > 2 ? 0 : {name}_was;\n" for name in LIMITS)
    directives = "".join(
        f"#pragma sigio dataset f.{name}_ type({name}) dims(x) decomp(mine) data(of_{name})\n" for name in LIMITS
    )
    differ = " || ".join(f"of_{name}[0] != {name}_was" for name in LIMITS)
    return f"""#include <float.h>
#include <limits.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

static void all(int argc, char **argv, int rank) {{
{arrays}{sets}#pragma sigio file f path(argv[1]) level(mpiio) comm(MPI_COMM_WORLD)
#pragma sigio dims f x(2)
#pragma sigio decomp mine block(x: rank, 1)
{directives}  if (argc > 2) {{
#pragma sigio input f
  }} else {{
#pragma sigio output f
  }}
  printf("%s\\n", {differ} ? "other" : "same");
}}

int main(int argc, char **argv) {{
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  all(argc, argv, rank);
  return MPI_Finalize();
}}
"""


def every_type_in_fortran() -> str:
    arrays = "".join(f"  {kind} :: of_{name}(1), {name}_was\n" for name, kind in KINDS.items())
    sets = "".join(
        f"  {name}_was = merge(-huge({name}_was), huge({name}_was), rank == 0)\n"
        f"  of_{name} = {name}_was\n  if (reads) of_{name} = 0\n"
        for name in KINDS
    )
    directives = "".join(
        f"  !$sigio dataset f.{name}_ type({name}) dims(x) decomp(mine) data(of_{name})\n" for name in KINDS
    )
    differ = " .or. &\n    ".join(f"of_{name}(1) /= {name}_was" for name in KINDS)
    return f"""program all
  use mpi
  use, intrinsic :: iso_fortran_env
  implicit none
{arrays}  integer :: rank, ierr
  logical :: reads
  character(len=512) :: path
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call get_command_argument(1, path)
  reads = command_argument_count() > 1
{sets}  !$sigio file f path(trim(path)) level(mpiio) comm(MPI_COMM_WORLD)
  !$sigio dims f x(2)
  !$sigio decomp mine block(x: rank, 1)
{directives}  if (reads) then
    !$sigio input f
  else
    !$sigio output f
  end if
  print '(a)', merge('other', 'same ', {differ})
  call MPI_Finalize(ierr)
end program
"""


@pytest.mark.parametrize(
    ("language", "level", "mpi"),
    [
        (language, level, mpi)
        for language in ("c", "f90")
        for level, mpi in (*TARGETS, ("netcdf4", "openmpi"), ("posix", "openmpi"))
        if (language, level) != ("f90", "netcdf4")
    ],
)
def test_elements_of_every_type_come_back(built: Built, tmp_path: Path, language: str, level: str, mpi: str) -> None:
    template = tmp_path / f"all.{language}"
    template.write_text(every_type_in_c() if language == "c" else every_type_in_fortran())
    program, path = built(template, level, mpi), tmp_path / "f"
    for words in ([], ["read"]):
        assert re.findall("same|other", run(program, mpi, 2, path, *words).stdout) == ["same", "same"]
    limits = {}
    for name in LIMITS if language == "c" else KINDS:
        type_ = LIMITS[name][2]
        info = np.finfo(type_) if type_.kind == "f" else np.iinfo(type_)
        limits[name] = np.array([info.min if language == "c" else -info.max, info.max], type_)
    if level == "mpiio":
        assert path.read_bytes() == b"".join(values.tobytes() for values in limits.values())
    if level == "pnetcdf" and language == "c":  # ncdump shows some of Fortran's as fill values
        _, found = netcdf_values(path)
        for name, values in limits.items():
            assert list(found[f"{name}_"]) == pytest.approx(list(values.astype("f8")), rel=1e-8)


def test_a_hundred_outputs_of_fortran_with_hdf5_keep_no_memory(built: Built, tmp_path: Path) -> None:
    template = tmp_path / "often.f90"
    template.write_text(
        """program often
  use mpi
  use, intrinsic :: iso_c_binding
  implicit none
  type, bind(C) :: memory
    integer(c_size_t) :: numbers(10) ! of malloc; the eighth are the bytes in use
  end type
  interface
    type(memory) function mallinfo2() bind(C)
      import :: memory
    end function
  end interface
  type(memory) :: first, last
  double precision :: grid(3) = 0.5d0
  integer :: i, code
  character(len=1000) :: path
  call MPI_Init(code)
  call get_command_argument(1, path)
  !$sigio file f path(path) level(hdf5) comm(MPI_COMM_SELF)
  !$sigio dims f x(3)
  !$sigio dataset f.grid type(double) dims(x) data(grid)
  do i = 1, 120
    !$sigio output f
    if (i == 20) first = mallinfo2()
  end do
  last = mallinfo2()
  print '(i0)', last%numbers(8) - first%numbers(8)
  call MPI_Finalize(code)
end program
"""
    )
    done = run(built(template, "hdf5", "openmpi"), "openmpi", 1, tmp_path / "file.h5")
    assert int(done.stdout) < 100_000  # bytes; HDF5 1.10 keeps 30 KB each time that h5open_f is called
