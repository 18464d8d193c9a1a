"""`iosig generate --policy model` against each fixed policy: FLASH-like and S3D-like outputs (examples/generate).

Each round runs the program of every policy, in a new order. 4 ranks write REPEATS times; a run's time is the median of
its outputs. Printed are the medians, what `model` chose, and its time over that of the best fixed policy (the one with
the least median): the median of the ratios of a round with its 95 % interval. The files must be the same; `chunked`,
which has another layout, is left out.

    .venv/bin/python bench/policies.py [--rounds 15] [--repeats 5] [--costs FILE] [APPLICATION-LEVEL-MPI...]

e.g. s3d-mpiio-mpich. FILE is what iosig generate --measure wrote.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from generate import SIZES

from iosig.generate.optimise import AVAILABLE
from iosig.repro.generated import APPLICATIONS, EXAMPLES, TARGETS, Contest, compiled, made, median_ratio


class Policies(Contest):
    """Its sides are policies."""

    def build(self, *words: str) -> None:
        for policy in self.sides:
            template, source = EXAMPLES / f"{self.application}.c", self.directory / f"{policy}.c"
            made(template, source, self.level, "--policy", policy, *words)
            compiled(source, self.directory / policy, self.level, self.mpi)


def chosen(target: str, words: list[str]) -> str:
    """The methods of `model`, of each output."""
    application, level, mpi = target.split("-")
    command = [str(Path(sys.executable).with_name("iosig-generate")), str(EXAMPLES / f"{application}.c"), "--json"]
    done = subprocess.run([*command, "--check", "--level", level, *words], check=True, capture_output=True)
    document = json.loads(done.stdout)
    pairs = zip(document["sites"], document["decisions"], strict=True)
    library = "ompio" if mpi == "openmpi" else "romio"
    return ", ".join(decision["methods"][library] for site, decision in pairs if site["kind"] == "output")


def measure(directory: Path, target: str, rounds: int, repeats: int, costs: str) -> None:
    application, level, mpi = target.split("-")
    fixed = [method.name for method in AVAILABLE[level] if not method.chunks]
    size = SIZES[application]
    words = [f"--assume=edge={size}", "--assume=blocks=81", *([f"--costs={costs}"] if costs else [])]
    contest = Policies(application, level, mpi, directory, [*fixed, "model"], size, repeats)
    contest.build(*words)
    times = contest.run(rounds)
    medians = {policy: statistics.median(each) for policy, each in times.items()}
    best = min(fixed, key=lambda policy: medians[policy])
    middle, least, most = median_ratio(times["model"], times[best])
    told = "  ".join(f"{policy} {1000 * median:.1f}" for policy, median in medians.items())
    print(
        f"{target:20} ms: {told}   model ({chosen(target, words)}) / {best} {middle:.2f} ({least:.2f} to {most:.2f})",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = [f"{name}-{level}-{mpi}" for name in APPLICATIONS for level, mpi in TARGETS]
    parser.add_argument("targets", nargs="*", default=every)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--costs", default="")
    given = parser.parse_args()
    for target in given.targets:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                measure(Path(scratch), target, given.rounds, given.repeats, given.costs)
            except OSError as missing:
                print(f"{target:20} left out: {missing}")


if __name__ == "__main__":
    main()
