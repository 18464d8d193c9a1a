"""Output that `iosig generate` made, against the same written by hand (examples/generate): how long it takes.

Each pair of runs writes the S3D-like checkpoint REPEATS times with 4 ranks; a run's time is the median of its outputs.
Prints the median time by hand, and the median ratio with its 95 % interval. The files must be the same (HDF5 is told
to keep no times).

    python3 bench/generate.py [--pairs 15] [--repeats 10] [--cells 25] [LEVEL-MPI...]     mpiio-mpich and others
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from generated_programs import EXAMPLES, IOSIG_GENERATE, TARGETS, compiled, run

RANKS = 4


def generated(directory: Path, level: str, mpi: str) -> Path:
    source = directory / f"{level}-{mpi}.c"
    subprocess.run([IOSIG_GENERATE, EXAMPLES / "s3d.c", "--level", level, "-o", source], check=True)
    return compiled(source, directory / f"{level}-{mpi}-generated", level, mpi)


def by_hand(directory: Path, level: str, mpi: str) -> Path:
    return compiled(EXAMPLES / f"s3d_{level}.c", directory / f"{level}-{mpi}-by-hand", level, mpi)


def seconds(program: Path, mpi: str, file: Path, *words: object) -> float:
    """The median over all ranks' outputs: ranks begin an output together, and end it by a collective call."""
    file.unlink(missing_ok=True)
    return statistics.median(float(line) for line in run(program, mpi, RANKS, *words).stdout.split())


def interval(ratios: list[float]) -> tuple[float, float]:
    """Of the median, by drawing again: 95 %."""
    chance = random.Random(1)
    drawn = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(2000))
    return drawn[50], drawn[1949]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", default=[f"{level}-{mpi}" for level, mpi in TARGETS])
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--cells", type=int, default=25)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        for target in given.targets:
            level, mpi = target.split("-")
            programs = by_hand(directory, level, mpi), generated(directory, level, mpi)
            files = directory / "by-hand", directory / "generated"
            ratios, hand = [], []
            for pair in range(given.pairs):
                both = {}
                for which in (0, 1) if pair % 2 == 0 else (1, 0):
                    words = ["write"] * which + [files[which], given.cells, given.repeats]
                    both[which] = seconds(programs[which], mpi, files[which], *words)
                ratios.append(both[1] / both[0])
                hand.append(both[0])
            assert files[0].read_bytes() == files[1].read_bytes(), f"{target}: the files differ"
            least, most = interval(ratios)
            print(
                f"{target:16} by hand {1000 * statistics.median(hand):8.2f} ms   generated "
                f"{statistics.median(ratios):.3f} times ({least:.3f} to {most:.3f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
