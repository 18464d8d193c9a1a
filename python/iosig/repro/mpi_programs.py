"""A small MPI-IO program, compiled when it is needed, run with and without `iosig trace`."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from iosig.command import iosig_command

RANKS = 4

SOURCE = r"""
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#define CHECK(call) do { if ((call) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1); } while (0)
/* program PATH collective|independent|read COUNT BYTES: rank r's k-th access is at (k ranks + r) BYTES. */
int main(int argc, char **argv) {
  if (argc != 5) return 2;
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int count = atoi(argv[3]), bytes = atoi(argv[4]);
  const int reads = !strcmp(argv[2], "read"), together = !strcmp(argv[2], "collective");
  char *const data = calloc(1, bytes);
  MPI_File file;
  CHECK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  for (int k = 0; k < count; ++k) {
    const MPI_Offset at = ((MPI_Offset)k * ranks + rank) * bytes;
    if (reads) CHECK(MPI_File_read_at(file, at, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    else if (together) CHECK(MPI_File_write_at_all(file, at, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    else CHECK(MPI_File_write_at(file, at, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  CHECK(MPI_File_close(&file));
  free(data);
  MPI_Finalize();
  return 0;
}
"""

# With the options for more ranks than processors.
LAUNCHERS = {
    "openmpi": ["mpirun.openmpi", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"],
    "mpich": ["mpirun.mpich"],
}
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@dataclass(frozen=True)
class Mpi:
    """An MPI's compiler, and its launcher with the options for more ranks than processors."""

    compiler: str
    launcher: list[str]


def found_mpi() -> Mpi:
    """Open MPI if it is there: MPICH is slow on few processors. Raises OSError if there is none."""
    for name, launcher in LAUNCHERS.items():
        if shutil.which(f"mpicc.{name}") and shutil.which(launcher[0]):
            return Mpi(f"mpicc.{name}", launcher)
    raise OSError("mpicc.openmpi or mpicc.mpich, with its mpirun, is needed, and is not in $PATH")


def compiled(mpi: Mpi, scratch: Path) -> Path:
    source, program = scratch / "mpi_io.c", scratch / "mpi_io"
    source.write_text(SOURCE)
    subprocess.run([mpi.compiler, "-O2", "-o", program, source], check=True, capture_output=True)
    return program


@dataclass(frozen=True)
class Run:
    wall_s: float
    processor_s: float  # of all ranks and the launcher


def run_program(mpi: Mpi, program: Path, words: list[str], trace: Path | None = None) -> Run:
    """Runs it on RANKS ranks, traced into `trace` if given. Raises OSError if it fails."""
    traced = [] if trace is None else [iosig_command(), "trace", "-o", str(trace), "--"]
    command = [*mpi.launcher, "-n", str(RANKS), *traced, str(program), *words]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True)
    wall_s, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise OSError(f"{mpi.launcher[0]}: status {done.returncode}: {done.stderr.strip()[-500:]}")
    return Run(wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
