"""Programs that `iosig generate` makes: generated, compiled without a warning, and run with MPI."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from conftest import BUILD, ROOT, shared_by_workers
from iosig.generate import cli
from iosig.repro import generated
from iosig.repro.generated import EXAMPLES
from iosig.repro.mpi_programs import ENVIRONMENT, LAUNCHERS

IOSIG_GENERATE = Path(sys.executable).with_name("iosig-generate")
TEMPLATES = ROOT / "tests/support/generate"
STRICT = ["-Wall", "-Wextra", "-Werror"]
Built = Callable[..., Path]


def generate(*words: object) -> subprocess.CompletedProcess[str]:
    """As `iosig-generate words...`, of which each start takes 0.3 s; for tests of what is made, not of the program."""
    command = [*map(str, words)]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as error:
        status = cli.app(command, standalone_mode=False)
    return subprocess.CompletedProcess(command, status or 0, out.getvalue(), error.getvalue())


@functools.cache
def libraries(level: str, mpi: str) -> list[str]:
    if level == "posix":
        flags = subprocess.run([BUILD / "bin/iosig", "cc", "--libs"], check=True, capture_output=True, text=True).stdout
        return [f"-I{ROOT / 'include'}", *flags.split()]
    if level == "netcdf4":  # Debian's netcdf-mpi.pc does not name the directory of its headers
        found = sorted(Path("/usr/lib").glob("*/netcdf/mpi/include"))
        if not found:
            pytest.skip("needs libnetcdf-mpi-dev")
        return ["-isystem", str(found[0]), "-lnetcdf_mpi"]
    try:
        return generated.libraries(level, mpi)
    except OSError as missing:
        pytest.skip(str(missing))


@functools.cache
def modules(level: str, mpi: str) -> list[str]:
    try:
        return generated.modules("mpiio" if level == "posix" else level, mpi)
    except OSError as missing:
        pytest.skip(str(missing))


def compiled(source: Path, program: Path, level: str, mpi: str, *options: str, compiler: str = "mpicc") -> Path:
    """Optimized as far as warnings need it (FLASH in Fortran takes seconds with `-O1`), and with one MPI library."""
    optimization = "-O0" if mpi == "mpich" else "-Og" if source.suffix == ".f90" else "-O1"
    more = libraries(level, mpi)
    if source.suffix == ".f90":
        compiler, more = "mpifort", [*modules(level, mpi), *more, f"-J{program.parent}"]
    command = [f"{compiler}.{mpi}", optimization, *options, f"-I{EXAMPLES}", "-o", program, source, *more]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """built(TEMPLATE, LEVEL, MPI): the program that is generated from it, built without a warning.

    It is kept by the template's name, for a changed one by a further `name`, and by the policy.
    """
    directory = shared_by_workers(tmp_path_factory, "generated")

    def build(template: Path, level: str, mpi: str, name: str = "", policy: str = "model") -> Path:
        program = directory / f"{name}{template.name}-{level}-{mpi}-{policy}"
        libraries(level, mpi)
        with program.with_name(f"{program.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not program.exists():
                source = program.with_name(f"{program.name}{template.suffix}")
                made = generate(template, "--level", level, "--policy", policy, "-o", source)
                assert made.returncode == 0, made.stderr
                # MPICH's Fortran interfaces have no choice buffers: each call with another array is a warning
                fortran = ["-std=f2008ts", *([] if mpi == "mpich" else [*STRICT, "-Wno-compare-reals"])]
                c = [*STRICT, "-std=c99", "-pedantic"]
                compiled(source, program, level, mpi, *(fortran if source.suffix == ".f90" else c))
        return program

    return build


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A file system with 64 KB."""
    if os.geteuid() != 0:
        pytest.skip("mounts a tmpfs: needs root")
    place = tmp_path / "full"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", place], capture_output=True).returncode != 0:
        pytest.skip("tmpfs cannot be mounted")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def run(
    program: Path,
    mpi: str,
    ranks: int,
    *words: object,
    check: bool = True,
    environment: dict[str, str] | None = None,
    timeout_s: float = 60,
) -> subprocess.CompletedProcess[str]:
    command = [*LAUNCHERS[mpi], "-n", str(ranks), str(program), *map(str, words)]
    variables = os.environ | ENVIRONMENT | (environment or {})
    done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=timeout_s)
    assert done.returncode == 0 or not check, done.stderr
    return done


def hdf5_values(path: Path, dataset: str, type_: str) -> np.ndarray:
    """What h5dump finds in a data set, in the order of the file."""
    if shutil.which("h5dump") is None:
        pytest.skip("needs h5dump")
    raw = path.with_suffix(".raw")
    subprocess.run(["h5dump", "-d", dataset, "-b", "LE", "-o", raw, path], check=True, capture_output=True)
    return np.fromfile(raw, type_)


def netcdf_values(path: Path) -> tuple[str, dict[str, np.ndarray]]:
    """The header that ncdump shows, and the values of each variable in the order of the file."""
    if shutil.which("ncdump") is None:
        pytest.skip("needs ncdump")
    told = subprocess.run(["ncdump", "-p", "9,17", path], capture_output=True, text=True, check=True).stdout
    header, _, data = told.partition("data:")
    found = re.findall(r"(\w+) =([^;]*);", data)
    return header, {
        name: np.array([float(each.removesuffix("f")) for each in values.split(",")]) for name, values in found
    }
