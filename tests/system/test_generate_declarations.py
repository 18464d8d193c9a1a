"""The arrays of a template are compared with their declarations: what is unknown, of another type or of another rank is
refused at its directive, with what was expected; what fits is not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from generated_programs import EXAMPLES, IOSIG_GENERATE, TEMPLATES, generate

SOURCE = """#include <mpi.h>
#include <stdint.h>
typedef double real;
struct state { int n; real t[3][4]; };
void f(const char *p, int r, int n, float **rows, real (*cube)[4][5], int64_t *ids, struct state *s, unsigned *u,
       void *any, const unsigned char *bytes) {
  double one = 0, vla[n][n]; short flat[60]; char letters[5];
#pragma sigio file f path(p) level(mpiio) comm(MPI_COMM_WORLD)
#pragma sigio dims f z(3) y(4) x(5)
#pragma sigio dataset f.a %s
  if (r)
#pragma sigio output f
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
    assert done.stderr.startswith(f"{tmp_path}/t.c:10:{column}: error: ") and REFUSED[dataset] in done.stderr


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
