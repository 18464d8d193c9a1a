"""`iosig generate --measure`: what calls, pieces and bytes cost here, with each I/O library that is installed.

A program (probe.c) is generated for each level and method, and run with each MPI library; the costs are fitted to its
times (core/iosig/cost/collective.h): to medians, because the load of the machine delays some methods more than others.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from iosig._core import fitted_transfer_costs, transfer_work
from iosig.generate.build import build
from iosig.generate.model import Model
from iosig.generate.optimise import AVAILABLE, Method, as_moved, core_method, forced
from iosig.generate.render import Renderer
from iosig.generate.sizes import Sizes, transfer_of
from iosig.generate.template import Template, read_template

if TYPE_CHECKING:
    from iosig._core import TransferTerms

PROBE = Path(__file__).parent / "probe.c"
PACKAGES = {"mpiio": None, "pnetcdf": "pnetcdf", "hdf5": "hdf5"}  # of pkg-config
REPEATS = 5  # of an output or input in a run
TURNS = 2  # of each program
# As probe.c takes them: elements along z, y, x; those in memory along x, numbers for each; which axis is shared.
SHAPES = [
    (4, 4, 4, 4, 1, 0),  # small: what a call costs
    (32, 64, 64, 64, 1, 0),  # large: what a byte costs
    (8, 16, 64, 64, 24, 0),  # single numbers in memory
    (16, 32, 32, 36, 1, 0),  # lines in memory
    (16, 32, 32, 32, 1, 1),  # lines in the file
    (32, 64, 8, 8, 1, 1),  # short ones
    (16, 32, 8, 8, 24, 1),  # both
    (16, 32, 32, 36, 1, 1),
    (200, 1, 640, 644, 1, 1),  # pieces of 5 KB, which share pages
]


def mpi_libraries() -> Iterator[tuple[str, str, str]]:
    """The compiler, the command that starts programs, and what pkg-config puts behind the name of HDF5."""
    found = [(f"mpicc.{name}", f"mpirun.{name}", f"-{name}") for name in ("openmpi", "mpich")]
    installed = [each for each in found if shutil.which(each[0]) and shutil.which(each[1])]
    if not installed and shutil.which("mpicc") and shutil.which("mpirun"):
        installed = [("mpicc", "mpirun", "")]
    yield from installed


def libraries_of(level: str, ending: str) -> list[str] | None:
    """What the compiler needs, or None if the library is not installed."""
    package = PACKAGES[level]
    if package is None:
        return []
    if shutil.which("pkg-config") is None:
        return None
    name = package + ending if level == "hdf5" else package
    done = subprocess.run(["pkg-config", "--cflags", "--libs", name], capture_output=True, text=True)
    return done.stdout.split() if done.returncode == 0 else None


Times = dict[tuple[str, int, str], list[float]]  # seconds by shape, number of data sets and access


def times(program: Path, mpirun: str, ranks: int, directory: str) -> tuple[str, Times]:
    """The library below MPI-IO, and what the program took. Fails with ValueError if the program does."""
    patient = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}  # ranks share processors
    words = [",".join(map(str, shape)) for shape in SHAPES]
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        command = [mpirun, "-n", str(ranks), str(program), f"{scratch}/probe", str(REPEATS), *words]
        done = subprocess.run(command, capture_output=True, text=True, env=patient | os.environ)
    if done.returncode != 0:
        raise ValueError(f"{mpirun} -n {ranks} of the probe failed: {done.stderr.strip()}")
    lines = done.stdout.splitlines()
    found: Times = {}
    for shape, count, access, seconds in (line.split() for line in lines[1:]):
        found.setdefault((shape, int(count), access), []).append(float(seconds))
    return ("ompio" if lines[0] == "Open MPI" else "romio"), found


def joined(some: Times, others: Times) -> Times:
    return {key: seconds + others.get(key, []) for key, seconds in some.items()}


def fitted(model: Model, method: Method, library: str, found: Times, ranks: int) -> dict[str, TransferTerms]:
    """The costs by access."""
    measured: dict[str, list[tuple[TransferTerms, float]]] = {"write": [], "read": []}
    for (shape, count, access), seconds in found.items():
        nz, ny, nx, room, nv, split = map(int, shape.split(","))
        known = {"nz": nz, "ny": ny, "nx": nx, "room": room, "nv": nv}
        known |= {"all_z": nz if split else nz * ranks, "all_x": nx * ranks if split else nx}
        file = model.files["one" if count == 1 else "many"]
        transfers = [transfer_of(each, Sizes(ranks, known), access == "write") for each in file.datasets]
        work = transfer_work(core_method(method, library, file.level), as_moved(method, transfers))
        measured[access].append((work, statistics.median(seconds)))
    return {access: fitted_transfer_costs(each) for access, each in measured.items()}


def built(program: Path, template: Template, model: Model, method: Method, compiler: str, options: list[str]) -> bool:
    """False if the level's library does not work with this MPI."""
    source = program.with_suffix(".c")
    decisions = [forced(site, method) for site in model.sites]
    source.write_text(Renderer(template, model, decisions).text(str(source)))
    return subprocess.run([compiler, "-O2", "-o", program, source, *options], capture_output=True).returncode == 0


def level_costs(
    level: str, compiler: str, mpirun: str, options: list[str], ranks: int, directory: str
) -> dict[tuple[str, str, str, str], TransferTerms]:
    """By level, library, access and method. Methods take turns, so that all meet the same load of the machine.

    Fails with ValueError if a program cannot be built, or fails.
    """
    template = read_template(str(PROBE), [], [])
    model = build(template, level)[0]
    library, found = "", dict[str, Times]()
    with tempfile.TemporaryDirectory() as scratch:
        programs = {method.name: Path(scratch) / method.name for method in AVAILABLE[level]}
        for method in AVAILABLE[level]:
            if not built(programs[method.name], template, model, method, compiler, options):
                raise ValueError(f"{compiler} cannot build the probe")
        for _ in range(TURNS):
            for name, program in programs.items():
                library, seconds = times(program, mpirun, ranks, directory)
                found[name] = joined(seconds, found.get(name, {}))
                print(f"measured: {level}, {library}, {name}", file=sys.stderr, flush=True)
    if level == "pnetcdf" and library == "ompio":  # one method: OMPIO has no sieving, PnetCDF packs by itself
        found["packed"] = found["sieving"] = joined(found["packed"], found["sieving"])
    return {
        (level, library, access, method.name): costs
        for method in AVAILABLE[level]
        for access, costs in fitted(model, method, library, found[method.name], ranks).items()
    }


def measured_costs(ranks: int, directory: str) -> dict[tuple[str, str, str, str], TransferTerms]:
    """By level, library, access and method. Files are written below `directory`; progress goes to standard error.

    Fails with ValueError if no MPI library is installed, or its MPI-IO does not work.
    """
    rows: dict[tuple[str, str, str, str], TransferTerms] = {}
    for compiler, mpirun, ending in mpi_libraries():
        for level in PACKAGES:
            options = libraries_of(level, ending)
            if options is None:
                continue
            try:
                rows |= level_costs(level, compiler, mpirun, options, ranks, directory)
            except ValueError as error:
                if level == "mpiio":
                    raise
                print(f"{level} with {compiler} is left out: {error}", file=sys.stderr)  # PnetCDF of another MPI, say
    if not rows:
        raise ValueError("no MPI library found; expected mpicc and mpirun on PATH")
    return rows
