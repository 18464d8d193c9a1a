"""What the program around an output may be: its names, the types of its expressions, where its texts end; a path that
is NULL; blocks of no elements; templates with an odd beginning or an odd path."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from generated_programs import IOSIG_GENERATE, STRICT, Built, compiled, generate, hdf5_values, netcdf_values, run

EDGES = """\ufeff#include <mpi.h>
#include <stdio.h>
static int calls = 0;
static const unsigned char *cells(int rank) {
  static const unsigned char lists[2][3] = {{0, 2, 4}, {5, 3, 1}};
  calls++;
  return lists[rank];
}
int main(int argc, char **argv) {
  int rank, z;
  struct { signed char before, failed, after[6]; } s = {1, -1, {2, 3, 4, 5, 6, 7}};
  double a[4][2];
  unsigned char cell[3];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  short part[4] = {1, 2, 3, 4};
  for (z = 0; z < 4; z++) a[z][0] = -1, a[z][1] = z;
  for (z = 0; z < 3; z++) cell[z] = (unsigned char)(10 * rank + z);
#pragma sigio file f path(PATH) level(mpiio) comm(MPI_COMM_WORLD) access(write)
#pragma sigio dims f z(4) v(6)
#pragma sigio decomp listed list(v: cells(rank), 3)
#pragma sigio decomp one block(z: rank == 0 ? 0 : 100, rank == 0 ? 4 : 0)
#pragma sigio dataset f.a type(double) dims(z) data(a) memory(z, v: 2) component(v: 1)
#pragma sigio dataset f.cell type(uint8) dims(v) data(cell) decomp(listed)
#pragma sigio dataset f.part type(short) dims(z) data(part) decomp(one)
#pragma sigio output f status(s.failed)
  printf("%d: failed %d, calls %d, %d%d\\n", rank, s.failed, calls, s.before, s.after[0]);
  return MPI_Finalize();
}
"""
WRITTEN = np.arange(4, dtype="<f8").tobytes() + bytes([0, 12, 1, 11, 2, 10]) + np.arange(1, 5, dtype="<i2").tobytes()


def check_edges(program: Path, file: Path, path: Path) -> None:
    done = run(program, "openmpi", 2, path)
    assert sorted(done.stdout.splitlines()) == [f"{rank}: failed 0, calls 1, 12" for rank in range(2)]
    assert file.read_bytes() == WRITTEN
    done = run(program, "openmpi", 2, path, "null")
    assert sorted(done.stdout.splitlines()) == [f"{rank}: failed 1, calls 1, 12" for rank in range(2)]
    assert "rank 0: " in done.stderr and "file 'f': path is NULL\n" in done.stderr
    assert file.read_bytes() == WRITTEN


def test_a_program_in_c(built: Built, tmp_path: Path) -> None:
    """Its first byte is a mark of UTF-8, its status one byte, a list one of bytes from a call, a path may be NULL."""
    template = tmp_path / "edges.c"
    template.write_text(EDGES.replace("PATH", "argc > 2 ? NULL : argv[1]"))
    check_edges(built(template, "mpiio", "openmpi"), tmp_path / "f", tmp_path / "f")


def test_a_program_in_cxx_may_give_the_path_of_a_temporary_text(tmp_path: Path) -> None:
    template, source = tmp_path / "edges.cc", tmp_path / "out.cc"
    path = 'argc > 2 ? nullptr : (std::string(argv[1]) + "/of-a-name-that-is-allocated").c_str()'
    template.write_text(
        EDGES.replace("PATH", path).replace("#include <stdio.h>", "#include <stdio.h>\n#include <string>")
    )
    made = generate(template, "-o", source)
    assert made.returncode == 0, made.stderr
    flags = [*STRICT, "-Wno-cast-function-type", "-std=c++11"]  # Open MPI's own C++ header casts
    program = compiled(source, tmp_path / "t", "mpiio", "openmpi", *flags, compiler="mpicxx")
    check_edges(program, tmp_path / "of-a-name-that-is-allocated", tmp_path)


SHADOWS = """program shadows
  use mpi
  use, intrinsic :: iso_fortran_env
  implicit none
  integer :: size, int, real, trim, merge, ior, rank, failed, ierr
  integer(int64) :: ids(2)
  double precision :: t(2), u(3)
  integer(int16) :: w(4)
  character(len=512) :: path
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  call get_command_argument(1, path)
  int = 1
  real = int
  trim = int
  merge = trim
  ior = merge
  t = rank
  u = real + ior
  w = 5
  ids = [2*rank, 2*rank + 1]
  !$sigio file f path(path) level(pnetcdf) comm(MPI_COMM_WORLD) access(write)
  !$sigio dims f x(2*size) y(3) z(4)
  !$sigio attr f big(3000000000) small(-2147483648) n(int64: int + real) h(float: 0.5d0) text('C:\\')
  !$sigio decomp mine list(x: ids, 2)
  !$sigio decomp one block(z: rank*100, merge*4 - 4*rank)
  !$sigio dataset f.t type(double) dims(x) decomp(mine) data(t)
  !$sigio dataset f.u type(double) dims(y) data(u)
  !$sigio dataset f.w type(short) dims(z) data(w) decomp(one)
  !$sigio output f status(failed)
  print '(i0, a, i0)', rank, ': failed ', failed
  call MPI_Finalize(ierr)
end program
"""


@pytest.mark.parametrize("level", ["mpiio", "pnetcdf", "hdf5"])
def test_variables_of_fortran_may_have_the_names_of_intrinsic_functions(
    built: Built, tmp_path: Path, level: str
) -> None:
    template, file = tmp_path / "shadows.f90", tmp_path / "f"
    template.write_text(SHADOWS)
    done = run(built(template, level, "openmpi"), "openmpi", 2, file)
    assert sorted(done.stdout.splitlines()) == [f"{rank}: failed 0" for rank in range(2)]
    if level == "mpiio":
        assert file.read_bytes() == np.array([0, 0, 1, 1, 2, 2, 2], "<f8").tobytes() + np.full(4, 5, "<i2").tobytes()
    elif level == "hdf5":
        assert hdf5_values(file, "t", "<f8").tolist() == [0, 0, 1, 1]
    else:
        header, values = netcdf_values(file)
        assert values["t"].tolist() == [0, 0, 1, 1] and values["w"].tolist() == [5] * 4
        for told in ("big = 3000000000LL", "small = -2147483648 ", "n = 2LL", "h = 0.5f", r'text = "C:\\"'):
            assert f":{told}" in header


def code_of(template: Path) -> str:
    output = template.with_name(f"made-{template.name}")
    done = generate(template, "-o", output)
    assert done.returncode == 0, done.stderr
    return output.read_text()


def test_a_number_beyond_32_bits_is_an_attribute_of_64_bits(tmp_path: Path) -> None:
    template = tmp_path / "t.c"
    text = EDGES.replace("PATH", "argv[1]").replace("level(mpiio)", "level(pnetcdf)")
    template.write_text(text.replace("f.part", "f.part attr(n=5000000000, m=-7)"))
    made = code_of(template)
    assert "const long long iosig_a = (long long)(5000000000);" in made and "const int iosig_a = (int)(-7);" in made


def test_modules_of_templates_with_one_name_differ_and_equal_texts_have_equal_names(tmp_path: Path) -> None:
    modules = []
    for directory, array in (("one", "t"), ("two", "u"), ("three", "t")):
        template = tmp_path / directory / f"{'a_long_name' * 9}.f90"
        template.parent.mkdir()
        template.write_text(SHADOWS.replace("data(t)", f"data({array})"))
        modules += re.findall(r"^module (iosig_\w+)$", code_of(template), re.MULTILINE)
    one, two, three = modules
    assert one == three != two and len(one) <= 63


def test_the_path_of_a_template_ends_no_comment(tmp_path: Path) -> None:
    (tmp_path / "a*").mkdir()
    template = tmp_path / "a*/t.c"
    template.write_text(EDGES.replace("PATH", "argv[1]"))
    first = code_of(template).split("\n")[0]
    assert first.startswith("/* Made by iosig generate from ") and first.index("*/") == len(first) - 2


def test_a_disk_that_is_full_is_said_of_the_output(tmp_path: Path) -> None:
    (tmp_path / "t.c").write_text(EDGES.replace("PATH", "argv[1]"))
    command = ["sh", "-c", f"ulimit -f 1; trap '' XFSZ; {IOSIG_GENERATE} t.c -o out.c"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.stderr == f"iosig generate: {tmp_path}/out.c: File too large\n" and done.returncode == 4
    assert [each.name for each in tmp_path.iterdir()] == ["t.c"]


def test_an_interrupt_while_the_command_starts_shows_no_traceback(tmp_path: Path) -> None:
    module = tmp_path / "jinja2.py"  # which the command imports
    module.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([IOSIG_GENERATE, "t.c"], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (130, "")


def test_the_generated_code_goes_into_a_pipe(tmp_path: Path) -> None:
    template = tmp_path / "t.c"
    template.write_text(EDGES.replace("PATH", "argv[1]"))
    command = ["sh", "-c", f"{IOSIG_GENERATE} {template} -o /dev/stdout | cat"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr == "" and "iosig_end(" in done.stdout
