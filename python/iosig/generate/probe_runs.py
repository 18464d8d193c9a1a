"""Programs of `iosig generate --measure`, built and run with an MPI library.

The caller gets a program's output line by line. No program outlives the command, and one that hangs is ended.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

from iosig.interruptions import undisturbed

PATIENCE_S = 120  # with a program that says nothing
ENVIRONMENT = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}  # ranks share processors


@dataclass(frozen=True)
class MpiLibrary:
    """`name`: as messages have it. `hdf5`: its HDF5 by the name that pkg-config knows."""

    name: str
    compiler: str
    launcher: str
    hdf5: str


def mpi_libraries(say: Callable[[str], None]) -> list[MpiLibrary]:
    """Those installed; `say` gets which lacks its compiler or launcher. Raises ValueError if there is none."""
    found: list[MpiLibrary] = []
    for name, compiler, launcher, hdf5 in (
        ("Open MPI", "mpicc.openmpi", "mpirun.openmpi", "hdf5-openmpi"),
        ("MPICH", "mpicc.mpich", "mpirun.mpich", "hdf5-mpich"),
        ("MPI", "mpicc", "mpirun", "hdf5"),
    ):
        lacking = [each for each in (compiler, launcher) if shutil.which(each) is None]
        if len(lacking) == 1 and not (name == "MPI" and found):
            say(f"{name} is left out: {lacking[0]} is not on PATH")
        if not lacking and not (name == "MPI" and found):
            found.append(MpiLibrary(name, compiler, launcher, hdf5))
    if not found:
        raise ValueError("no MPI library found; expected mpicc and mpirun on PATH, or mpicc.openmpi and the like")
    return found


def first_error(text: str) -> str:
    """What compilers and MPI libraries say first of an error."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" -*=")]
    named = [line for line in lines if "error" in line.lower() or line.startswith("rank ")]
    return (named or lines or ["it gives no reason"])[0]


def compiled(source: Path, program: Path, compiler: str, options: list[str]) -> None:
    """Raises ValueError with the compiler's words if it fails."""
    command = [compiler, "-O2", "-o", str(program), str(source), *options]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise ValueError(f"{compiler} cannot build the probe: {first_error(done.stderr)}")


def lines_of(pipe: int, who: str) -> Iterator[str]:
    rest = b""
    while True:
        if not select.select([pipe], [], [], PATIENCE_S)[0]:
            raise ValueError(f"{who} says nothing for {PATIENCE_S} s: it hangs, or the file system does")
        piece = os.read(pipe, 1 << 16)
        if not piece:
            return
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line.decode(errors="replace") for line in whole)


def ended(process: subprocess.Popen[bytes]) -> None:
    """The launcher ends its ranks when it is asked to."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def spoken(launcher: str, ranks: int, program: Path, words: list[str]) -> Generator[str]:
    """The lines of a run, as they come. Raises ValueError if it fails or hangs.

    It is ended where it is given up: by an exception of the caller's, or by ^C, which the program itself does not get.
    """
    command = [launcher, "-n", str(ranks), str(program), *words]
    who = f"{launcher} -n {ranks} of the probe"
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env=ENVIRONMENT | os.environ,
            start_new_session=True,
        )
        assert process.stdout is not None
        try:
            yield from lines_of(process.stdout.fileno(), who)
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise ValueError(f"{who} does not end") from None
        finally:
            with undisturbed():
                if process.poll() is None:
                    ended(process)
                process.stdout.close()
        if process.returncode != 0:
            complaints.seek(0)
            told = first_error(complaints.read().decode(errors="replace"))
            raise ValueError(f"{who} failed with status {process.returncode}: {told}")
