"""`iosig generate --policy model` against each fixed policy: FLASH-like and S3D-like outputs (examples/generate).

Each round runs the program of every policy, in a new order. 4 ranks write REPEATS times; a run's time is the median of
its outputs. Printed are the medians, what `model` chose, and its time over that of the best fixed policy (the one with
the least median): the median of the ratios of a round with its 95 % interval. The files must be the same, but for the
layout of `chunked`, which `model` does not take; it counts as no fixed policy.

    python3 bench/policies.py [--rounds 15] [--repeats 5] [--costs FILE] [APPLICATION-LEVEL-MPI...]    s3d-mpiio-mpich
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from generate import SIZES, interval, seconds

from generated_programs import APPLICATIONS, EXAMPLES, IOSIG_GENERATE, TARGETS, compiled
from iosig.generate.optimise import AVAILABLE

NAMES = {"s3d": ["edge"], "flash": ["edge"]}  # of the size in the template
BLOCKS = {"s3d": [], "flash": ["blocks=81"]}


def options(application: str, level: str, policy: str, costs: str) -> list[str]:
    sizes = [f"{name}={SIZES[application]}" for name in NAMES[application]] + BLOCKS[application]
    assumed = [word for size in sizes for word in ("--assume", size)]
    return ["--level", level, "--policy", policy, *assumed, *(["--costs", costs] if costs else [])]


def chosen(application: str, level: str, mpi: str, costs: str) -> str:
    """The methods of `model`, of each output."""
    words = [IOSIG_GENERATE, EXAMPLES / f"{application}.c", "--json", "--check"]
    done = subprocess.run([*words, *options(application, level, "model", costs)], check=True, capture_output=True)
    document = json.loads(done.stdout)
    library = "ompio" if mpi == "openmpi" else "romio"
    pairs = zip(document["sites"], document["decisions"], strict=True)
    return ", ".join(decision["methods"][library] for site, decision in pairs if site["kind"] == "output")


def measure(directory: Path, target: str, rounds: int, repeats: int, costs: str) -> None:
    application, level, mpi = target.split("-")
    policies = [method.name for method in AVAILABLE[level]] + ["model"]
    programs = {}
    for policy in policies:
        source = directory / f"{policy}.c"
        words = [IOSIG_GENERATE, EXAMPLES / f"{application}.c", "-o", source]
        subprocess.run([*words, *options(application, level, policy, costs)], check=True, capture_output=True)
        programs[policy] = compiled(source, directory / policy, level, mpi)
    order = random.Random(target)
    times: dict[str, list[float]] = {policy: [] for policy in policies}
    for _ in range(rounds):
        for policy in order.sample(policies, len(policies)):
            words = ["write", directory / f"{policy}-out", SIZES[application], repeats]
            times[policy].append(seconds([programs[policy]], mpi, *words))
            for ending in APPLICATIONS[application]:
                first, own = (Path(f"{directory / each}-out{ending}") for each in (policies[0], policy))
                assert policy == "chunked" or not first.exists() or first.read_bytes() == own.read_bytes(), (
                    f"{target}: the files{ending} differ"
                )
    medians = {policy: statistics.median(each) for policy, each in times.items()}
    fixed = [policy for policy in policies if policy not in ("model", "chunked")]
    best = min(fixed, key=lambda policy: medians[policy])
    ratios = [mine / theirs for mine, theirs in zip(times["model"], times[best], strict=True)]
    least, most = interval(ratios)
    told = "  ".join(f"{policy} {1000 * median:.1f}" for policy, median in medians.items())
    print(
        f"{target:20} ms: {told}   model ({chosen(application, level, mpi, costs)}) / {best} "
        f"{statistics.median(ratios):.2f} ({least:.2f} to {most:.2f})",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = [f"{name}-{level}-{mpi}" for name in APPLICATIONS for level, mpi in TARGETS]
    parser.add_argument("targets", nargs="*", default=every)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--costs", default="", help="what iosig generate --measure wrote")
    given = parser.parse_args()
    for target in given.targets:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                measure(Path(scratch), target, given.rounds, given.repeats, given.costs)
            except pytest.skip.Exception as missing:
                print(f"{target:20} {missing}")


if __name__ == "__main__":
    main()
