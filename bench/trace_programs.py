"""What `iosig trace` adds to whole parallel programs: processor time, traced against untraced, in pairs.

    python bench/trace_programs.py [--directory /dev/shm] [--pairs 15] [--only mpi-io lammps]

mpi-io: 4 ranks of MPICH compute, write a checkpoint by collective calls of 1 MB and by calls of 4 KB, and read it back.
lammps: the program `lmp` of Debian's package, a Lennard-Jones melt of 4,000 atoms that dumps its atoms (one process).

Both runs of a pair follow each other, in changing order. The processor time is that of all processes, user and system.
The interval is that of the mean of the ratios' logarithms (Student's t).
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent / "build"
MPI_IO = r"""
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
enum { piece = 1 << 20, small = 4096, smalls = 64 };
static double compute(double *field) {
  double sum = 0;
  for (int turn = 0; turn < 30; ++turn)
    for (int n = 1; n < piece / 8 - 1; ++n) sum += field[n] = 0.5 * field[n] + 0.25 * (field[n - 1] + field[n + 1]);
  return sum;
}
int main(int argc, char **argv) {
  int rank, ranks;
  double sum = 0;
  MPI_File file;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  double *field = calloc(1, piece);
  field[rank] = 1;
  MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  for (int step = 0; step < atoi(argv[2]); ++step) {
    sum += compute(field);
    const MPI_Offset at = (MPI_Offset)step % 4 * 2 * ranks * piece;
    MPI_File_write_at_all(file, at + (MPI_Offset)rank * piece, field, piece, MPI_BYTE, MPI_STATUS_IGNORE);
    for (int n = 0; n < smalls; ++n)
      MPI_File_write_at(file, at + ranks * piece + (MPI_Offset)(n * ranks + rank) * small, field, small, MPI_BYTE,
                        MPI_STATUS_IGNORE);
    MPI_File_read_at_all(file, at + (MPI_Offset)rank * piece, field, piece, MPI_BYTE, MPI_STATUS_IGNORE);
  }
  MPI_File_close(&file);
  MPI_Finalize();
  return !isfinite(sum);
}
"""
LAMMPS = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
dump 1 all custom 10 dump.*.txt id type x y z vx vy vz
restart 100 restart.*
thermo 10
run 2000
"""


@dataclass
class Program:
    name: str
    before: list[str]  # what starts the ranks
    words: list[str]


def programs(work: Path) -> list[Program]:
    """Those that can be run here; says which cannot."""
    found = []
    if compiler := shutil.which("mpicc.mpich"):
        (work / "checkpoint.c").write_text(MPI_IO)
        subprocess.run([compiler, "-O2", "-w", "-o", work / "checkpoint", work / "checkpoint.c", "-lm"], check=True)
        words = [str(work / "checkpoint"), str(work / "file"), "120"]
        found.append(Program("mpi-io", ["mpiexec.mpich", "-n", "4"], words))
    else:
        print("mpi-io: mpicc.mpich is not there, not measured")
    if lammps := shutil.which("lmp"):
        (work / "in.melt").write_text(LAMMPS)
        found.append(Program("lammps", [], [lammps, "-in", "in.melt", "-log", "log.txt", "-screen", "none"]))
    else:
        print("lammps: lmp is not there, not measured")
    return found


def cpu_s(words: list[str], work: Path) -> float:
    """Processor seconds of a command and all that it starts."""
    child = subprocess.Popen(words, cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{words[0]}: exit status {child.returncode}")
    return used.ru_utime + used.ru_stime


def student(freedom: int) -> float:
    """The 97.5th percentile of Student's t, by its expansion in 1 / freedom (three digits from 5 on)."""
    z = 1.959964
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def measure(program: Program, work: Path, pairs: int) -> None:
    """Prints the program's row."""
    trace = work / "trace"
    ways = {
        False: program.before + program.words,
        True: [*program.before, str(BUILD / "bin/iosig"), "trace", "-o", str(trace), "--", *program.words],
    }
    logs, alone, size = [], [], 0
    for pair in range(pairs + 1):
        taken = {}
        for traced in (False, True) if pair % 2 else (True, False):
            taken[traced] = cpu_s(ways[traced], work)
            if traced:
                size = sum(part.stat().st_size for part in trace.glob("*.part"))
                shutil.rmtree(trace)
        if pair == 0:
            continue  # the page cache is filled
        logs.append(math.log(taken[True] / taken[False]))
        alone.append(taken[False])
    mean = statistics.mean(logs)
    half = student(pairs - 1) * statistics.stdev(logs) / math.sqrt(pairs)
    low, high = math.exp(mean - half), math.exp(mean + half)
    print(
        f"{program.name:10} {statistics.median(alone):12.2f} {math.exp(mean):10.4f}   ({low:.4f} to {high:.4f})"
        f" {math.exp(statistics.median(logs)):8.4f} {size / 1e6:10.2f}",
        flush=True,
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--directory", type=Path, default=Path("/dev/shm"))
    options.add_argument("--pairs", type=int, default=15)
    options.add_argument("--only", nargs="+", choices=("mpi-io", "lammps"))
    told = options.parse_args()
    print(f"load: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; {told.pairs} pairs")
    with tempfile.TemporaryDirectory(dir=told.directory) as directory:
        work = Path(directory)
        chosen = [each for each in programs(work) if told.only is None or each.name in told.only]
        print("program    CPU s, alone      ratio   95 % interval        median   MB of trace")
        for program in chosen:
            measure(program, work, told.pairs)


if __name__ == "__main__":
    main()
