"""The arrays of a template are compared with their declarations: what is unknown, of another type, of another rank or
of another size is refused at its directive, with what was expected; what fits is not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from generated_programs import EXAMPLES, IOSIG_GENERATE, TEMPLATES, Built, generate, run

SOURCE = """#include <mpi.h>
#include <stdint.h>
typedef double real;
struct state { int n; real t[3][4]; };
void f(const char *p, int r, int n, float **rows, real (*cube)[4][5], int64_t *ids, struct state *s, unsigned *u,
       void *any, const unsigned char *bytes) {
  enum { NY = 2 }; double one = 0, vla[n][n], wide[4][9], few[3]; short flat[60]; char letters[5];
  __int128 big[5]; _Complex double z[5]; float v4 __attribute__((vector_size(16))); const double fixed[5] = {0};
#pragma sigio file f path(p) level(mpiio) comm(MPI_COMM_WORLD)
#pragma sigio dims f z(3) y(4) x(5)
#pragma sigio decomp d block(y: 2 * r, 2)
#pragma sigio dataset f.a %s
#pragma sigio dataset f.split type(int) dims(y) data(&r) decomp(d)
  if (r)
#pragma sigio output f
  (void)wide; (void)few; (void)big; (void)z; (void)v4; (void)fixed;
  (void)r; (void)n; (void)rows; (void)cube; (void)ids; (void)s; (void)u; (void)any; (void)bytes;
}
"""

FIT = [
    "type(double) dims(z, y, x) data(cube)",
    "type(double) dims(z, y) data(s->t)",
    "type(double) dims(z, y, x) data(&cube[0][0][0])",
    "type(double) dims(x) data(&one)",
    "type(double) dims(y, x) data(vla)",
    "type(short) dims(z, y, x) data(flat)",
    "type(int64) dims(x) data(ids + n)",
    "type(int8) dims(x) data(letters)",
    "type(uint8) dims(x) data(bytes)",
    "type(float) dims(x) data(rows[0])",
    "type(int) dims(x) data(any)",
    "type(double) dims(x) data(fixed)",
    "type(double) dims(y, x) data(wide) decomp(d) memory(y, x: 9)",
    "type(double) dims(y, x) data(wide) decomp(d) ghost(x: NY, y: 1)",
    "type(double) dims(z) data(few)",
    "type(double) dims(y, x) data(&few[0])",
]
REFUSED = {
    "type(double) dims(x) data(unknown)": "use of undeclared identifier 'unknown'",
    "type(double) dims(x) data(s->temp)": "no member named 'temp' in 'struct state'",
    "type(float) dims(z, y, x) data(cube)": "'cube' is 'double (*)[4][5]'; expected elements of the type 'float'",
    "type(int) dims(x) data(u)": "'u' is 'unsigned int *'; expected elements of the type 'int'",
    "type(int) dims(x) data(ids)": "expected elements of the type 'int'",
    "type(int) dims(x) data(s)": "'s' is 'struct state *'; expected elements of the type 'int'",
    "type(double) dims(x) data(one)": "'one' is 'double'; expected an array or a pointer, e.g. 'double *'",
    "type(float) dims(y, x) data(rows)": "rows that are pointers do not lie side by side",
    "type(double) dims(y, x) data(cube)": "'cube' is 'double (*)[4][5]'; expected 2 axes, as in dims(...), not 3",
    "type(double) dims(z, y, x) data(vla)": "'vla' is 'double[n][n]'; expected 3 axes, as in dims(...), not 2",
    "type(double) dims(x) data(z)": "'z' is '_Complex double[5]'; expected elements of the type 'double'",
    "type(int64) dims(x) data(big)": "expected elements of the type 'int64'",
    "type(float) dims(x) data(&v4)": "expected elements of the type 'float'",
    "type(double) dims(x) data(f)": "expected an array or a pointer, e.g. 'double *'",
    "type(double) dims(x) data(&f)": "expected elements of the type 'double'",
    "type(double) dims(y, x) data(wide)": "'wide' has 9 elements along its axis 2, 'x'; the block with its ghost cells "
    "has 5; if the array has more than the rank's elements: memory(y, x: 9)",
    "type(double) dims(y, x) data(wide) decomp(d) ghost(x: NY, y: 2)": "'wide' has 4 elements along its axis 1, 'y'; "
    "the block with its ghost cells has 6",
    "type(double) dims(y, x) data(wide) memory(y, x: 8)": "'wide' has 9 elements along its axis 2, 'x'",
    "type(double) dims(z, y, x) data(cube) decomp(d)": "'cube' has 4 elements along its axis 2, 'y'",
    "type(double) dims(y) data(few)": "'few' has 3 elements; the block with its ghost cells has 4",
    "type(double) dims(y, x) data(few) decomp(d)": "'few' has 3 elements; the block with its ghost cells has 10",
}


def check(path: Path, dataset: str, *options: str) -> subprocess.CompletedProcess[str]:
    path.write_text(SOURCE % dataset)
    return generate("--check", path, *options)


@pytest.fixture(autouse=True)
def needs_mpi() -> None:
    if shutil.which("mpicc") is None:
        pytest.skip("needs mpi.h")


@pytest.mark.parametrize("dataset", FIT)
@pytest.mark.parametrize("suffix", [".c", ".cc"])
def test_what_fits_is_accepted(tmp_path: Path, dataset: str, suffix: str) -> None:
    if suffix == ".cc" and "vla" in dataset:
        pytest.skip("C++ has no such arrays")
    done = check(tmp_path / f"t{suffix}", dataset)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("dataset", REFUSED)
def test_what_does_not_fit_is_refused_where_the_array_is_given(tmp_path: Path, dataset: str) -> None:
    done = check(tmp_path / "t.c", dataset)
    assert done.returncode == 1
    column = len("#pragma sigio dataset f.a ") + dataset.index("data(") + 1
    assert done.stderr.startswith(f"{tmp_path}/t.c:12:{column}: error: ") and REFUSED[dataset] in done.stderr


def test_an_array_of_a_type_that_libclang_has_no_name_for_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.c"
    path.write_text((SOURCE % "type(short) dims(x) data(half)").replace("double one", "_Float16 half[5]; double one"))
    done = generate("--check", path)
    assert done.returncode == 1 and "expected elements of the type 'short'" in done.stderr


def test_an_input_into_const_elements_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.c"
    path.write_text((SOURCE % "type(double) dims(x) data(fixed)").replace("output f", "input f"))
    done = generate("--check", path)
    assert done.returncode == 1 and "'const double[5]'; expected elements that an input can change" in done.stderr


SIZES = """#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int ny = argc - 1, nx = ny + 2, failed = 0;
  double u[4][10] = {{0}}, few[9] = {0};
  MPI_Init(&argc, &argv);
  {
    double vla[ny][nx], (*rows)[10] = u;
    (void)rows, (void)few, vla[0][0] = ny > 0 ? u[0][0] : few[0], (void)vla[0][0];
#pragma sigio file f path(argv[1]) level(mpiio) comm(MPI_COMM_SELF) access(write)
#pragma sigio dims f y(ny) x(nx)
#pragma sigio dataset f.a type(double) dims(y, x) data(%s)
#pragma sigio output f status(failed)
  }
  printf("%%d\\n", failed);
  return MPI_Finalize();
}
"""
LONGER = (
    "the array has 10 elements along its axis 2, 'x'; the block with its ghost cells has 4; if the array has more than "
    "the rank's elements: memory(y, x: 10)"
)


@pytest.mark.parametrize(
    ("array", "words", "said"),
    [
        ("u", 2, LONGER),
        ("rows", 2, LONGER),
        ("u", 8, "the array has 4 elements along its axis 1, 'y'; the block with its ghost cells has 8"),
        ("few", 3, "the array has 9 elements; the block with its ghost cells has 15"),
        ("vla", 3, ""),
        ("few", 2, ""),
    ],
)
def test_an_array_of_another_size_fails_when_it_is_written(
    built: Built, tmp_path: Path, array: str, words: int, said: str
) -> None:
    template = tmp_path / f"size_{array}.c"
    template.write_text(SIZES % array)
    done = run(built(template, "mpiio", "openmpi"), "openmpi", 1, tmp_path / "file", *range(words - 1))
    assert (done.stdout, f"data set 'a': {said}\n" in done.stderr) == (f"{int(bool(said))}\n", bool(said))
    assert (tmp_path / "file").exists() == (not said)


def test_containers_of_cxx_are_not_taken_for_their_elements(tmp_path: Path) -> None:
    source = "#include <vector>\n" + SOURCE.replace("double one = 0, vla", "std::vector<double> v; double one = 0, vla")
    path = tmp_path / "t.cc"
    path.write_text(source % "type(double) dims(x) data(v)")
    done = subprocess.run([IOSIG_GENERATE, "--check", path], capture_output=True, text=True)
    assert done.returncode == 1 and "expected an array or a pointer, e.g. 'double *'" in done.stderr
    path.write_text(source % "type(double) dims(x) data(v.data())")
    assert subprocess.run([IOSIG_GENERATE, "--check", path], capture_output=True).returncode == 0


def test_nothing_is_written_of_an_array_of_another_type(tmp_path: Path) -> None:
    path, out = tmp_path / "t.c", tmp_path / "out.c"
    path.write_text(SOURCE % "type(float) dims(z, y, x) data(cube)")
    done = subprocess.run([IOSIG_GENERATE, path, "-o", out], capture_output=True, text=True)
    assert done.returncode == 3 and not out.exists()


def test_a_missing_header_is_a_warning_and_its_directory_can_be_given(tmp_path: Path) -> None:
    path = tmp_path / "t.c"
    path.write_text("#include <nowhere.h>\n" + SOURCE % "type(double) dims(x) data(&one)")
    done = subprocess.run([IOSIG_GENERATE, "--check", path], capture_output=True, text=True)
    assert done.returncode == 0 and f"{path}:1:1: warning: 'nowhere.h' file not found" in done.stderr
    (tmp_path / "include").mkdir()
    (tmp_path / "include/nowhere.h").write_text("")
    done = subprocess.run([IOSIG_GENERATE, "--check", path, "-I", tmp_path / "include"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert check(path, "type(double) dims(x) data(NAME)", "-D", "NAME=vla[0]").returncode == 0
    assert "undeclared identifier 'NAME'" in check(path, "type(double) dims(x) data(NAME)").stderr


@pytest.mark.parametrize("template", sorted([*TEMPLATES.glob("*.c"), EXAMPLES / "s3d.c"]), ids=lambda path: path.name)
def test_templates_that_run_have_arrays_that_fit(template: Path) -> None:
    done = generate("--check", template)
    assert done.returncode == 0 and "error" not in done.stderr
