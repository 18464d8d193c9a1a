"""Programs that `iosig generate` makes: generated, compiled without a warning, and run with MPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from conftest import BUILD, ROOT

IOSIG_GENERATE = Path(sys.executable).with_name("iosig-generate")
EXAMPLES = ROOT / "examples/generate"
TEMPLATES = ROOT / "tests/support/generate"
LAUNCH = {
    "openmpi": ["mpirun.openmpi", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"],
    "mpich": ["mpirun.mpich"],
}
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
STRICT = ["-Wall", "-Wextra", "-Werror"]
TARGETS = [("mpiio", "openmpi"), ("mpiio", "mpich"), ("pnetcdf", "openmpi"), ("hdf5", "openmpi"), ("hdf5", "mpich")]
APPLICATIONS = {"s3d": [""], "flash": [".checkpoint", ".centers", ".corners"]}  # in EXAMPLES; the endings of the files

Built = Callable[..., Path]


def libraries(level: str, mpi: str) -> list[str]:
    if shutil.which(f"mpicc.{mpi}") is None or shutil.which(f"mpirun.{mpi}") is None:
        pytest.skip(f"needs {mpi}")
    if level == "mpiio":
        return []
    if level == "posix":
        flags = subprocess.run([BUILD / "bin/iosig", "cc", "--libs"], check=True, capture_output=True, text=True).stdout
        return [f"-I{ROOT / 'include'}", *flags.split()]
    if level == "netcdf4":  # Debian's netcdf-mpi.pc does not name the directory of its headers
        found = sorted(Path("/usr/lib").glob("*/netcdf/mpi/include"))
        if not found:
            pytest.skip("needs libnetcdf-mpi-dev")
        return ["-isystem", str(found[0]), "-lnetcdf_mpi"]
    package = {"hdf5": f"hdf5-{mpi}"}.get(level, level)
    found = subprocess.run(["pkg-config", "--cflags", "--libs", package], capture_output=True, text=True)
    if found.returncode != 0:
        pytest.skip(f"needs {level}")
    return found.stdout.split()


def modules(level: str, mpi: str) -> list[str]:
    """Where Fortran's modules of the library are, and the library below them."""
    if level in ("mpiio", "posix"):
        return []
    if level == "hdf5":
        if not Path(f"/usr/include/hdf5/{mpi}/hdf5.mod").exists():
            pytest.skip(f"needs hdf5.mod for {mpi}")
        return [*libraries(level, mpi), "-lhdf5_fortran"]
    found = sorted(Path("/usr").glob(f"lib/*/fortran/gfortran-mod-*/{level}.mod"))
    if not found:
        pytest.skip(f"needs {level}.mod")
    return [f"-I{found[-1].parent}"]


def compiled(source: Path, program: Path, level: str, mpi: str, *options: str, compiler: str = "mpicc") -> Path:
    more = libraries(level, mpi)
    if source.suffix == ".f90":
        compiler, more = "mpifort", [*modules(level, mpi), *more, f"-J{program.parent}"]
        if shutil.which(f"{compiler}.{mpi}") is None:
            pytest.skip("needs gfortran")
    command = [f"{compiler}.{mpi}", "-O1", *options, f"-I{EXAMPLES}", "-o", program, source, *more]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """built(TEMPLATE, LEVEL, MPI): the program that is generated from it, built without a warning.

    It is kept by the template's name, for a changed one by a further `name`, and by the policy.
    """
    directory = tmp_path_factory.mktemp("generated")

    def build(template: Path, level: str, mpi: str, name: str = "", policy: str = "model") -> Path:
        program = directory / f"{name}{template.name}-{level}-{mpi}-{policy}"
        if not program.exists():
            source = program.with_name(f"{program.name}{template.suffix}")
            libraries(level, mpi)
            command = [IOSIG_GENERATE, template, "--level", level, "--policy", policy, "-o", source]
            subprocess.run(command, check=True, capture_output=True)
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
    command = [*LAUNCH[mpi], "-n", str(ranks), str(program), *map(str, words)]
    variables = os.environ | AS_ROOT | (environment or {})
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
    return header, {name: np.array([float(each) for each in values.split(",")]) for name, values in found}
