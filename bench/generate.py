"""Output that `iosig generate` made, against the same written by hand (examples/generate): how long it takes, and how
many lines it needs.

Each round runs four programs in a new order: by hand; by hand as simply as possible (`naive`: a blocking call for each
array, no hints); generated from the template in C, and from that in Fortran. 4 ranks write REPEATS times; a run's time
is the median of its outputs. Printed are the median time by hand, and medians of the ratios of a round with their 95 %
intervals. The files must be the same (HDF5 is told to keep no times).

    .venv/bin/python bench/generate.py [--rounds 15] [--repeats 10] [--size N] [APPLICATION-LEVEL-MPI...]
    .venv/bin/python bench/generate.py --lines

e.g. flash-mpiio-mpich. SIZE: cells along each axis, of a rank's block (s3d, 25) or of each of its 80 to 82 blocks
(flash, 8).
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from iosig.repro.generated import (
    APPLICATIONS,
    EXAMPLES,
    SIDES,
    TARGETS,
    Contest,
    code_lines,
    directive_lines,
    median_ratio,
)

SIZES = {"s3d": 25, "flash": 8}
GENERATED = ("C", "Fortran")


def print_lines() -> None:
    for application in APPLICATIONS:
        for level in dict(TARGETS):
            for language in GENERATED:
                by_hand = EXAMPLES / f"{application}_{level}{SIDES[language]}"
                if by_hand.exists():
                    hand, count = code_lines(by_hand), directive_lines(EXAMPLES / f"{application}{SIDES[language]}")
                    told = f"{hand} lines by hand, {count} with directives (1/{hand / count:.1f})"
                    print(f"{application}-{level}, {language}: {told}")


def measure(directory: Path, target: str, rounds: int, repeats: int, size: int) -> None:
    application, level, mpi = target.split("-")
    contest = Contest(application, level, mpi, directory, list(SIDES), size or SIZES[application], repeats)
    contest.build()
    times = contest.run(rounds)
    told = [f"{target:22} by hand {1000 * statistics.median(times['hand']):8.2f} ms"]
    for side, rival in [(side, rival) for rival in ("hand", "naive") for side in GENERATED]:
        middle, least, most = median_ratio(times[side], times[rival])
        told.append(f"{side}/{rival} {middle:.3f} ({least:.3f} to {most:.3f})")
    print("   ".join(told), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = [f"{name}-{level}-{mpi}" for name in APPLICATIONS for level, mpi in TARGETS]
    parser.add_argument("targets", nargs="*", default=every)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--size", type=int, default=0)
    parser.add_argument("--lines", action="store_true")
    given = parser.parse_args()
    if given.lines:
        print_lines()
        return
    for target in given.targets:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                measure(Path(scratch), target, given.rounds, given.repeats, given.size)
            except OSError as missing:
                print(f"{target:22} {missing}")


if __name__ == "__main__":
    main()
