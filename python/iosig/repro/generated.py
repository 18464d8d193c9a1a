"""The applications of examples/generate: their I/O by hand and as `iosig generate` makes it, built, run in turns, and
timed."""

from __future__ import annotations

import os
import random
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from iosig.command import CHECKOUT
from iosig.generate.measure import libraries_of
from iosig.repro.mpi_programs import ENVIRONMENT, LAUNCHERS, RANKS

EXAMPLES = CHECKOUT / "examples" / "generate"
APPLICATIONS = {"s3d": [""], "flash": [".checkpoint", ".centers", ".corners"]}  # the endings of their files
TARGETS = [("mpiio", "openmpi"), ("mpiio", "mpich"), ("pnetcdf", "openmpi"), ("hdf5", "openmpi"), ("hdf5", "mpich")]
# The programs that are compared, and what each is made of. `naive`: by hand, as simply as possible.
SIDES = {"hand": ".c", "naive": ".c", "C": ".c", "Fortran": ".f90"}
TIMEOUT_S = 600


def libraries(level: str, mpi: str) -> list[str]:
    """The compiler's options for a level of I/O. Raises OSError if the library is not there."""
    if shutil.which(f"mpicc.{mpi}") is None or shutil.which(f"mpirun.{mpi}") is None:
        raise OSError(f"needs {mpi}")
    options = libraries_of(level, f"hdf5-{mpi}")
    if options is None or (level == "pnetcdf" and mpi != "openmpi"):  # Debian's is built with Open MPI
        raise OSError(f"needs {level} with {mpi}")
    return options


def modules(level: str, mpi: str) -> list[str]:
    """The options for Fortran, which needs the library's modules, too."""
    if shutil.which(f"mpifort.{mpi}") is None:
        raise OSError("needs gfortran")
    if level == "mpiio":
        return []
    if level == "hdf5":
        if not Path(f"/usr/include/hdf5/{mpi}/hdf5.mod").exists():
            raise OSError(f"needs hdf5.mod for {mpi}")
        return [*libraries(level, mpi), "-lhdf5_fortran"]
    found = sorted(Path("/usr").glob(f"lib/*/fortran/gfortran-mod-*/{level}.mod"))
    if not found:
        raise OSError(f"needs {level}.mod")
    return [f"-I{found[-1].parent}"]


def made(template: Path, source: Path, level: str, *words: str) -> Path:
    """What `iosig generate` makes of a template."""
    command = [str(Path(sys.executable).with_name("iosig-generate")), str(template), "--level", level, *words]
    done = subprocess.run([*command, "-o", str(source)], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{template}: iosig generate: {done.stderr.strip()}")
    return source


def compiled(source: Path, program: Path, level: str, mpi: str) -> Path:
    compiler, more = "mpicc", libraries(level, mpi)
    if source.suffix == ".f90":
        compiler, more = "mpifort", [*modules(level, mpi), *more, f"-J{program.parent}"]
    command = [f"{compiler}.{mpi}", "-O2", f"-I{EXAMPLES}", "-o", str(program), str(source), *more]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{source}: {command[0]}: {done.stderr.strip()[-500:]}")
    return program


@dataclass(frozen=True)
class Contest:
    """An application's programs for a level and an MPI library, in a directory of their own.

    `sides`: those of SIDES. `size`: the cells along each axis of a block. A run writes all files `repeats` times.
    """

    application: str
    level: str
    mpi: str
    directory: Path
    sides: Sequence[str]
    size: int
    repeats: int

    def build(self, *words: str) -> None:
        """`words`: further options of `iosig generate`."""
        for side in self.sides:
            suffix = SIDES[side]
            if side in ("hand", "naive"):
                source = EXAMPLES / f"{self.application}_{self.level}.c"
            else:
                template = EXAMPLES / f"{self.application}{suffix}"
                source = made(template, self.directory / f"made{suffix}", self.level, *words)
            compiled(source, self.directory / side, self.level, self.mpi)

    def files(self, side: str) -> list[Path]:
        return [Path(f"{self.directory / side}-file{ending}") for ending in APPLICATIONS[self.application]]

    def seconds(self, side: str) -> float:
        """The median over all ranks' outputs: ranks begin an output together, and end it by a collective call."""
        for file in self.files(side):
            file.unlink(missing_ok=True)
        words: list[object] = [f"{self.directory / side}-file", self.size, self.repeats]
        words = words + ["naive"] * (side == "naive") if side in ("hand", "naive") else ["write", *words]
        command = [*LAUNCHERS[self.mpi], "-n", str(RANKS), str(self.directory / side), *map(str, words)]
        environment = {**os.environ, **ENVIRONMENT}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=TIMEOUT_S)
        if done.returncode != 0:
            raise OSError(f"{side}: status {done.returncode}: {done.stderr.strip()[-500:]}")
        return statistics.median(float(line) for line in done.stdout.split())

    def run(self, rounds: int, progress: Callable[[str], None] = lambda _: None) -> dict[str, list[float]]:
        """The seconds of each side's rounds; each round has another order, so that the machine's load meets all sides
        alike. Raises OSError if the files differ."""
        order = random.Random(f"{self.application}-{self.level}-{self.mpi}")
        times: dict[str, list[float]] = {side: [] for side in self.sides}
        for number in range(rounds):
            for side in order.sample(list(self.sides), len(self.sides)):
                progress(f"running: {self.level} with {self.mpi}, {side}, round {number + 1}")
                times[side].append(self.seconds(side))
        for files in zip(*(self.files(side) for side in self.sides), strict=True):
            if len({file.read_bytes() for file in files}) != 1:
                raise OSError(f"{files[0].name}: not every program wrote the same bytes; that is a bug of IOSIG")
        return times


def median_ratio(times: Sequence[float], others: Sequence[float]) -> tuple[float, float, float]:
    """The median of the ratios of rounds, and its 95 % interval, by drawing rounds again."""
    ratios = [one / other for one, other in zip(times, others, strict=True)]
    chance = random.Random(1)
    drawn = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(2000))
    return statistics.median(ratios), drawn[50], drawn[1949]


def code_lines(source: Path) -> int:
    """Lines of I/O by hand: without comments, blank lines, includes, and what only the naive way needs."""
    if source.suffix == ".f90":
        lines = [line.strip() for line in source.read_text().splitlines()]
        return sum(bool(line) and not line.startswith(("!", "use ")) for line in lines)
    text = re.sub(r"/\*.*?\*/", "", source.read_text(), flags=re.DOTALL)
    text = re.sub(r"\n *if \(is_naive\)\n.*;\n *else(?=\n| if)", "\n", text)
    lines = [line.strip() for line in text.splitlines()]
    return sum(bool(line) and not line.startswith("#include") for line in lines)


def with_calls(template: Path, write: str, read: str) -> str:
    """The program of a template in Fortran whose I/O is by hand: these calls in place of `output` and `input`."""
    calls = {"output": write, "input": read}
    text = re.sub(r"^ *!\$sigio (output|input) .*$", lambda found: calls[found[1]], template.read_text(), flags=re.M)
    text = re.sub(r"^ *!\$sigio.*\n", "", text, flags=re.M)
    return re.sub(r"^program (\w+)$", r"program \1\n  use \1_io", text, flags=re.M)


def directive_lines(template: Path) -> int:
    count = 0
    goes_on = False
    for line in template.read_text().splitlines():
        is_directive = goes_on or re.match(r"\s*(#pragma |!\$)sigio ", line) is not None
        count += is_directive
        goes_on = is_directive and line.endswith(("\\", "&"))
    return count
