"""Output that `iosig generate` made, against the same written by hand (examples/generate): how long it takes, and how
many lines it needs.

Each round runs four programs in a new order: by hand; by hand as simply as possible (`naive`: a blocking call for each
array, no hints); generated from the template in C, and from that in Fortran. 4 ranks write REPEATS times; a run's time
is the median of its outputs. Printed are the median time by hand, and medians of the ratios of a round with their 95 %
intervals. The files must be the same (HDF5 is told to keep no times).

    python3 bench/generate.py [--rounds 15] [--repeats 10] [--size N] [APPLICATION-LEVEL-MPI...]     flash-mpiio-mpich
    python3 bench/generate.py --lines

SIZE: cells along each axis, of a rank's block (s3d, 25) or of each of its 80 to 82 blocks (flash, 8).
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from generated_programs import APPLICATIONS, EXAMPLES, IOSIG_GENERATE, TARGETS, compiled, run

RANKS = 4
SIZES = {"s3d": 25, "flash": 8}
GENERATED = {"C": ".c", "Fortran": ".f90"}
SIDES = ["hand", "naive", *GENERATED]


def code_lines(source: Path) -> int:
    """Lines of a program by hand: without comments, blank lines, includes, and what only the naive way needs."""
    text = re.sub(r"/\*.*?\*/", "", source.read_text(), flags=re.DOTALL)
    text = re.sub(r"\n *if \(is_naive\)\n.*;\n *else(?=\n)", "", text)
    lines = [line.strip() for line in text.splitlines()]
    return sum(bool(line) and not line.startswith("#include") for line in lines)


def directive_lines(template: Path) -> int:
    """Without those that read, which the programs by hand do not."""
    count = 0
    goes_on = False
    for line in template.read_text().splitlines():
        is_directive = goes_on or re.match(r"\s*(#pragma sigio|!\$sigio) (?!input)", line) is not None
        count += is_directive
        goes_on = is_directive and line.endswith(("\\", "&"))
    return count


def print_lines() -> None:
    for application in APPLICATIONS:
        for level in ("pnetcdf", "hdf5", "mpiio"):
            hand = code_lines(EXAMPLES / f"{application}_{level}.c")
            directives = [directive_lines(EXAMPLES / f"{application}{suffix}") for suffix in GENERATED.values()]
            shares = [
                f"{count} in {language} (1/{hand / count:.1f})"
                for language, count in zip(GENERATED, directives, strict=True)
            ]
            print(f"{application}-{level}: {hand} lines by hand; directives: {', '.join(shares)}")


def built(directory: Path, application: str, level: str, mpi: str) -> dict[str, list[object]]:
    """The program of each side, and its words before the file."""
    hand = compiled(EXAMPLES / f"{application}_{level}.c", directory / "hand", level, mpi)
    programs: dict[str, list[object]] = {"hand": [hand], "naive": [hand]}
    for language, suffix in GENERATED.items():
        source = directory / f"made{suffix}"
        words = [IOSIG_GENERATE, EXAMPLES / f"{application}{suffix}", "--level", level, "-o", source]
        subprocess.run(words, check=True, capture_output=True)
        programs[language] = [compiled(source, directory / language, level, mpi), "write"]
    return programs


def seconds(program: list[object], mpi: str, *words: object) -> float:
    """The median over all ranks' outputs: ranks begin an output together, and end it by a collective call."""
    done = run(Path(str(program[0])), mpi, RANKS, *program[1:], *words, timeout_s=600)
    return statistics.median(float(line) for line in done.stdout.split())


def interval(ratios: list[float]) -> tuple[float, float]:
    """Of the median, by drawing again: 95 %."""
    chance = random.Random(1)
    drawn = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(2000))
    return drawn[50], drawn[1949]


def measure(directory: Path, target: str, rounds: int, repeats: int, size: int) -> None:
    application, level, mpi = target.split("-")
    programs = built(directory, application, level, mpi)
    order = random.Random(target)
    times: dict[str, list[float]] = {side: [] for side in SIDES}
    for _ in range(rounds):
        for side in order.sample(SIDES, len(SIDES)):
            for ending in APPLICATIONS[application]:
                Path(f"{directory / side}-out{ending}").unlink(missing_ok=True)
            words = [directory / f"{side}-out", size, repeats, *(["naive"] if side == "naive" else [])]
            times[side].append(seconds(programs[side], mpi, *words))
    for ending in APPLICATIONS[application]:
        contents = {Path(f"{directory / side}-out{ending}").read_bytes() for side in SIDES}
        assert len(contents) == 1, f"{target}: the files{ending} differ"
    told = [f"{target:20} by hand {1000 * statistics.median(times['hand']):8.2f} ms"]
    for side, rival in [(side, rival) for rival in ("hand", "naive") for side in GENERATED]:
        ratios = [mine / theirs for mine, theirs in zip(times[side], times[rival], strict=True)]
        least, most = interval(ratios)
        told.append(f"{side}/{rival} {statistics.median(ratios):.3f} ({least:.3f} to {most:.3f})")
    print("   ".join(told), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = [f"{name}-{level}-{mpi}" for name in APPLICATIONS for level, mpi in TARGETS]
    parser.add_argument("targets", nargs="*", default=every)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--size", type=int)
    parser.add_argument("--lines", action="store_true")
    given = parser.parse_args()
    if given.lines:
        print_lines()
        return
    for target in given.targets:
        with tempfile.TemporaryDirectory() as scratch:
            size = given.size or SIZES[target.partition("-")[0]]
            try:
                measure(Path(scratch), target, given.rounds, given.repeats, size)
            except pytest.skip.Exception as missing:
                print(f"{target:20} {missing}")


if __name__ == "__main__":
    main()
