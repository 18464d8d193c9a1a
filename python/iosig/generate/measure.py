"""`iosig generate --measure`: what calls, pieces and bytes cost here, with each I/O library that is installed.

A program (probe.c) is generated for each level and method, and run with each MPI library (probe_runs.py) until its
times are known well enough, or the time is over; the costs are fitted to them (core/iosig/cost/collective.h): to
medians, because the load of the machine delays some methods more than others.
"""

from __future__ import annotations

import errno
import os
import shutil
import statistics
import subprocess
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Protocol

from iosig._core import fitted_transfer_costs, transfer_work
from iosig.generate.build import build
from iosig.generate.model import Model
from iosig.generate.optimise import AVAILABLE, Method, as_moved, core_method, forced
from iosig.generate.probe_runs import MpiLibrary, compiled, mpi_libraries, spoken
from iosig.generate.render import Renderer
from iosig.generate.sizes import Sizes, transfer_of
from iosig.generate.template import read_template
from iosig.interruptions import scratch_in

if TYPE_CHECKING:
    from iosig._core import TransferTerms

PROBE = Path(__file__).parent / "probe.c"
PACKAGES = {"mpiio": None, "pnetcdf": "pnetcdf", "hdf5": "hdf5"}  # of pkg-config
TIME_LIMIT_S = 120.0  # for an MPI library
REPEATS = 3  # of an output or input in a run
ENOUGH = 0.1  # the uncertainty at which a time is known well enough
# As probe.c takes them: elements along z, y, x; those in memory along x, numbers for each; which axis is shared. The
# first ones are measured at least, however long they take: they have all that costs are asked for.
LEAST_SHAPES = 5
SHAPES = [
    (4, 4, 4, 4, 1, 0),  # small: what a call costs
    (32, 64, 64, 64, 1, 0),  # large: what a byte costs
    (8, 16, 64, 64, 24, 0),  # single numbers in memory
    (16, 32, 32, 32, 1, 1),  # lines in the file
    (100, 1, 640, 644, 1, 1),  # pieces of 5 KB
    (32, 64, 8, 8, 1, 1),  # short ones
    (16, 32, 32, 36, 1, 0),  # lines in memory
    (16, 32, 8, 8, 24, 1),  # both
    (16, 32, 32, 36, 1, 1),
    (32, 1, 2050, 2054, 1, 1),  # pieces of 16 KB
]
MOST_DATASETS = 8  # of a file
Costs = dict[tuple[str, str, str, str], "TransferTerms"]  # by level, library, access and method
Times = dict[tuple[str, int, str], list[float]]  # seconds by shape, number of data sets and access


class Report(Protocol):
    """What the user is told meanwhile."""

    def say(self, line: str) -> None: ...

    def progress(self, line: str) -> None:
        """Of many; some may be left out."""


def libraries_of(level: str, hdf5: str) -> list[str] | None:
    """What the compiler needs, or None if the library is not installed."""
    package = hdf5 if level == "hdf5" else PACKAGES[level]
    if package is None:
        return []
    if shutil.which("pkg-config") is None:
        return None
    done = subprocess.run(["pkg-config", "--cflags", "--libs", package], capture_output=True, text=True)
    return done.stdout.split() if done.returncode == 0 else None


def uncertainty(seconds: list[float]) -> float:
    """Half the 95 % interval of the median, relative to it, from the median deviation; of fewer than 5, infinity."""
    if len(seconds) < 5:
        return float("inf")
    middle = statistics.median(seconds)
    deviation = 1.4826 * statistics.median(abs(each - middle) for each in seconds)
    return float(1.96 * 1.2533 * deviation / len(seconds) ** 0.5 / middle)


@dataclass
class Probe:
    """The program of a level and method. `library`: below MPI-IO, when it has run."""

    level: str
    method: Method
    model: Model
    program: Path
    library: str = ""
    times: Times = field(default_factory=dict)

    def of_shape(self, shape: tuple[int, ...]) -> list[list[float]]:
        word = ",".join(map(str, shape))
        return [seconds for (name, _, _), seconds in self.times.items() if name == word]

    def unknown(self) -> list[tuple[int, ...]]:
        """Shapes whose times are not known well enough, first those that were measured least."""

        def turns(shape: tuple[int, ...]) -> int:
            return min((len(seconds) for seconds in self.of_shape(shape)), default=0)

        known = [
            all(uncertainty(each) <= ENOUGH for each in self.of_shape(shape)) and turns(shape) > 0 for shape in SHAPES
        ]
        return sorted((shape for shape, is_known in zip(SHAPES, known, strict=True) if not is_known), key=turns)

    def costs(self, ranks: int) -> dict[str, TransferTerms]:
        """By access."""
        measured: dict[str, list[tuple[TransferTerms, float]]] = {"write": [], "read": []}
        for (shape, count, access), seconds in self.times.items():
            nz, ny, nx, room, nv, split = map(int, shape.split(","))
            known = {"nz": nz, "ny": ny, "nx": nx, "room": room, "nv": nv}
            known |= {"all_z": nz if split else nz * ranks, "all_x": nx * ranks if split else nx}
            file = self.model.files["one" if count == 1 else "many"]
            transfers = [transfer_of(each, Sizes(ranks, known), access == "write") for each in file.datasets]
            work = transfer_work(core_method(self.method, self.library, file.level), as_moved(self.method, transfers))
            measured[access].append((work, statistics.median(seconds)))
        return {access: fitted_transfer_costs(each) for access, each in measured.items()}


def probes_of(mpi: MpiLibrary, level: str, programs: Path) -> list[Probe]:
    """Raises ValueError if the library is not installed, or the compiler refuses."""
    options = libraries_of(level, mpi.hdf5)
    if options is None:
        raise ValueError(f"pkg-config does not know {mpi.hdf5 if level == 'hdf5' else PACKAGES[level]}")
    template = read_template(str(PROBE), [], [])
    model = build(template, level)[0]
    found = []
    for method in AVAILABLE[level]:
        source = programs / f"{level}-{method.name}.c"
        decisions = [forced(site, method) for site in model.sites]
        source.write_text(Renderer(template, model, decisions).text(str(source)))
        found.append(Probe(level, method, model, source.with_suffix("")))
        compiled(source, found[-1].program, mpi.compiler, options)
    return found


@dataclass
class Measuring:
    """With one MPI library. `began` (monotonic): when the programs were built."""

    mpi: MpiLibrary
    ranks: int
    directory: Path  # for the files
    time_limit_s: float
    report: Report
    began: float = 0.0

    def left_s(self) -> float:
        return self.began + self.time_limit_s - time.monotonic()

    def run(self, probe: Probe, seconds: float, least: int) -> None:
        """At most so long, but at least so many shapes."""
        asked = [",".join(map(str, shape)) for shape in probe.unknown()]
        settings = [str(self.directory / "probe"), str(REPEATS), f"{seconds:.1f}", str(least)]
        with closing(spoken(self.mpi.launcher, self.ranks, probe.program, [*settings, *asked])) as lines:
            probe.library = "ompio" if next(lines, "") == "Open MPI" else "romio"
            for line in lines:
                words = line.split()
                if len(words) != 4 or words[0] not in asked:
                    continue  # some MPI libraries say on standard output why they end a program
                shape, count, access, taken = words
                key = shape, int(count), access
                probe.times.setdefault(key, []).append(float(taken))
                self.tell(probe, key)

    def tell(self, probe: Probe, key: tuple[str, int, str]) -> None:
        shape, count, access = key
        z, y, x = shape.split(",")[:3]
        middle_ms = 1000 * statistics.median(probe.times[key])
        known = uncertainty(probe.times[key])
        told = f", +- {100 * known:.0f} %" if known < 10 else ""
        self.report.progress(
            f"{self.mpi.name}, {time.monotonic() - self.began:.0f} of {self.time_limit_s:.0f} s: {probe.level}, "
            f"{probe.method.name}, {access} {count} x ({z}, {y}, {x}): {middle_ms:.3g} ms{told}"
        )


def all_probes(mpi: MpiLibrary, programs: Path, report: Report) -> list[Probe]:
    """A level other than MPI-IO may be missing: it is said why. Raises ValueError if MPI-IO is."""
    probes = []
    for level in PACKAGES:
        report.progress(f"{mpi.name}: building the probe of {level}")
        try:
            probes += probes_of(mpi, level, programs)
        except ValueError as error:
            if level == "mpiio":
                raise
            report.say(f"{mpi.name}: {level} is left out: {error}")
    return probes


def costs_with(measuring: Measuring, programs: Path) -> Costs:
    """Methods take turns, so that all meet the same load of the machine. Raises ValueError if MPI-IO does not work."""
    mpi, report = measuring.mpi, measuring.report
    probes = all_probes(mpi, programs, report)
    measuring.began = time.monotonic()
    least = LEAST_SHAPES
    while least > 1 or measuring.left_s() > 0:
        waiting = [probe for probe in probes if probe.unknown()]
        if not waiting:
            break
        for number, probe in enumerate(waiting):
            if probe not in probes or (least == 1 and measuring.left_s() <= 0):
                continue
            try:
                measuring.run(probe, max(0, measuring.left_s()) / (len(waiting) - number), least)
            except ValueError as error:
                if probe.level == "mpiio":
                    raise
                report.say(f"{mpi.name}: {probe.level} is left out: {error}")
                probes = [each for each in probes if each.level != probe.level]
        least = 1
    known = [uncertainty(seconds) <= ENOUGH for probe in probes for seconds in probe.times.values()]
    report.say(
        f"{mpi.name}: {sum(known)} of {len(known)} times are known to {100 * ENOUGH:.0f} %, with 95 % confidence"
    )
    one = [
        each for each in probes if each.level == "pnetcdf" and each.library == "ompio" and not each.method.is_collective
    ]
    for key in {key for each in one for key in each.times}:  # OMPIO has no sieving, PnetCDF packs by itself
        joined = [seconds for each in one for seconds in each.times.get(key, [])]
        for each in one:
            each.times[key] = joined
    return {
        (probe.level, probe.library, access, probe.method.name): costs
        for probe in probes
        for access, costs in probe.costs(measuring.ranks).items()
    }


def check_directory(directory: Path, ranks: int) -> None:
    """Raises OSError if it is none, or lacks room for the probe's files."""
    if not directory.is_dir():
        code = errno.ENOTDIR if directory.exists() else errno.ENOENT
        raise OSError(code, "expected a directory to measure in", str(directory))
    system = os.statvfs(directory)
    free, needed = (
        system.f_bavail * system.f_frsize,
        ranks * MOST_DATASETS * 8 * max(z * y * x for z, y, x, *_ in SHAPES),
    )
    if system.f_blocks > 0 and free < 2 * needed:
        told = f"measuring with {ranks} ranks needs {2 * needed >> 20} MB of room, {free >> 20} MB are free"
        raise OSError(errno.ENOSPC, told, str(directory))


def measured_costs(ranks: int, directory: Path, time_limit_s: float, report: Report) -> Costs:
    """Files are written below `directory`, and removed; `report` gets a line for each time. Each MPI library has
    `time_limit_s`.

    Raises ValueError if no MPI library is installed, or its MPI-IO does not work; OSError if files cannot be written.
    """
    check_directory(directory, ranks)
    found: Costs = {}
    failures = []
    libraries = mpi_libraries(report.say)
    with scratch_in(directory, "iosig-measure") as files, scratch_in(Path(gettempdir()), "iosig-measure") as programs:
        for mpi in libraries:
            try:
                found |= costs_with(Measuring(mpi, ranks, files, time_limit_s, report), programs)
            except ValueError as error:
                failures.append(f"{mpi.name}: {error}")
    if not found:
        raise ValueError("; ".join(failures))
    for failure in failures:
        report.say(f"left out: {failure}")
    return found
