"""Whole jobs: does the choice leave a job no slower than its own place, and how far is it from the best place?

    python bench/whole_job.py --storage storage.toml --home DIRECTORY [--shapes N] [--rounds 3] [--output FILE.csv]

Each shape is one stream: size, size per operation, order, whether operations wait, passes, and what becomes of the data
(home, rest or temp). It runs with its file in DIRECTORY, and behind a link to each other mount point of the description
on which the data may be: `iosig prepare`, the job, `iosig finalize`, `sync` of the file, in turns within each round.
The job is whole_job.c, compiled at the start: pwrite, pread and fdatasync; it shares no code with the probe.

`iosig choose` decides once for each shape, by the description alone. Regret: time at the chosen place / time at the
best - 1, by medians. The noise floor is the regret of the best place of the first rounds, judged by the others. Places
for which more than --limit seconds are predicted are left out, except the chosen one and home.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

IOSIG = Path(__file__).resolve().parent.parent / "build" / "bin" / "iosig"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
LOST_WITH_POWER = "lost with power"  # in the reasons of choose


@dataclass(frozen=True)
class Shape:
    total_bytes: int
    bytes_per_io: int
    order: str
    sync: str
    passes: int
    fate: str  # home, rest, temp

    @property
    def signature(self) -> str:
        words = f"{self.order} {self.sync} size-per-IO({self.bytes_per_io}) totalsize({self.total_bytes}) {self.fate}"
        # The first pass writes; the others alternate between reading and overwriting.
        reads = self.passes // 2
        return words + (f" passes({self.passes}) read-share({reads / self.passes:.4f})" if self.passes > 1 else "")


def shapes() -> Iterator[Shape]:
    totals = [MIB, 16 * MIB, 128 * MIB, 512 * MIB, 2 * GIB]
    for total, size in itertools.product(totals, [4 * KIB, 64 * KIB, MIB]):
        for order, sync in itertools.product(["sequential", "random"], ["sync", "nosync"]):
            for passes, fate in itertools.product([1, 2, 4], ["home", "rest", "temp"]):
                if size <= total:
                    yield Shape(total, size, order, sync, passes, fate)


class Bench:
    def __init__(self, storage: Path, home: Path, scratch: Path) -> None:
        self.storage, self.home, self.scratch = storage, home, scratch
        self.job = scratch / "job"
        subprocess.run(["cc", "-O2", "-o", self.job, Path(__file__).with_suffix(".c")], check=True)
        self.environment = os.environ | {"IOSIG_STORAGE": str(storage), "IOSIG_STATE": str(scratch / "state")}

    def iosig(self, *words: object, **environment: str) -> str:
        command = [str(IOSIG), *map(str, words)]
        done = subprocess.run(command, env=self.environment | environment, capture_output=True, text=True)
        if done.returncode > 1:
            sys.exit(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def forced(self, mount: str) -> Path:
        """A description by which `mount` wins whatever the stream."""
        path = self.scratch / f"forced-{abs(hash(mount))}.toml"
        path.write_text(
            f'schema = "iosig.storage/2"\npolicy = "paper"\n[[mount_point]]\npath = "{mount}"\ndevice = "d"\n'
            'persistent = true\n[[device]]\nname = "d"\nkind = "ssd"\n'
        )
        return path

    def run_s(self, shape: Shape, mount: str, is_home: bool) -> float:
        """Seconds from before prepare until the data are where they must be."""
        path = self.home / "whole-job.out"
        os.sync()
        begin_s = time.perf_counter()
        if not is_home:
            # The word volatile and temp are the fate's; residence: finalize is told below.
            self.iosig("prepare", path, f"rest totalsize({shape.total_bytes})", IOSIG_STORAGE=str(self.forced(mount)))
        amounts = shape.total_bytes, shape.bytes_per_io, shape.order, shape.sync, shape.passes
        subprocess.run([str(self.job), str(path), *map(str, amounts)], check=True)
        lies_there = path.is_symlink()
        assert lies_there != is_home, f"{path} is not on {mount}"
        if shape.fate == "home" and lies_there:
            self.iosig("finalize", path)
        if shape.fate != "temp":
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)
        took_s = time.perf_counter() - begin_s
        if lies_there and path.is_symlink():
            path.resolve().unlink()
            self.iosig("finalize", path)
        path.unlink(missing_ok=True)
        return took_s


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--storage", type=Path, required=True)
    arguments.add_argument("--home", type=Path, required=True)
    arguments.add_argument("--shapes", type=int, help="so many of them, drawn by --seed; all")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--limit", type=float, default=10, help="seconds predicted, above which a place is left out")
    arguments.add_argument("--minutes", type=float, default=170, help="ends after the shape that is under way then")
    arguments.add_argument("--output", type=Path, help="a CSV row for each shape and place")
    given = arguments.parse_args()
    chosen_shapes = list(shapes())
    random.Random(given.seed).shuffle(chosen_shapes)
    chosen_shapes = chosen_shapes[: given.shapes or None]
    end_s = time.monotonic() + 60 * given.minutes

    rows, regrets, floors, slower, errors = [], [], [], [], []
    with tempfile.TemporaryDirectory(prefix="iosig-bench-") as scratch:
        bench = Bench(given.storage, given.home, Path(scratch))
        for shape in chosen_shapes:
            if time.monotonic() > end_s:
                break
            words = ("choose", shape.signature, "--home", given.home, "--json")
            choice = json.loads(bench.iosig(*words))
            predicted = {c["mount_point"]: c["job"]["total_s"] for c in choice["candidates"] if c["admissible"]}
            home = next(c["mount_point"] for c in choice["candidates"] if c["is_home"])
            if choice["chosen"] is None or max(predicted[home], predicted[choice["chosen"]]) > 3 * given.limit:
                continue
            places = [m for m, s in predicted.items() if s <= given.limit or m in (home, choice["chosen"])]
            times: dict[str, list[float]] = {place: [] for place in places}
            for number in range(given.rounds):
                for place in places[number % len(places) :] + places[: number % len(places)]:
                    times[place].append(bench.run_s(shape, place, place == home))
            medians = {place: statistics.median(seconds) for place, seconds in times.items()}
            best = min(medians.values())
            regrets.append(medians[choice["chosen"]] / best - 1)
            first = min(times, key=lambda place: times[place][0])
            later = {place: statistics.median(seconds[1:]) for place, seconds in times.items()}
            floors.append(later[first] / min(later.values()) - 1)
            if medians[choice["chosen"]] > 1.1 * medians[home]:
                slower.append((shape, choice["chosen"], medians))
            for place in places:
                errors.append(abs(predicted[place] / medians[place] - 1))
                is_chosen = place == choice["chosen"]
                rows.append([shape.signature, place, is_chosen, place == home, predicted[place], *times[place]])
            shown = ", ".join(f"{place} {medians[place]:.3f} ({predicted[place]:.3f})" for place in places)
            print(f"{shape.signature}: {choice['chosen']} | {shown}", flush=True)
    if given.output:
        with given.output.open("w", newline="") as file:
            head = ["signature", "mount_point", "chosen", "home", "predicted_s"]
            csv.writer(file).writerows([[*head, *(f"round{i}_s" for i in range(given.rounds))], *rows])
    errors.sort()
    print(f"\n{len(regrets)} shapes, {len(errors)} places")
    for name, values in (("choice", regrets), ("noise floor", floors)):
        within = sum(regret <= 0.05 for regret in values)
        print(
            f"{name}: within 5 % of the best in {within / len(values):.0%}, mean regret {statistics.mean(values):.1%}"
        )
    print(f"error of the prediction: median {statistics.median(errors):.0%}, p90 {errors[int(0.9 * len(errors))]:.0%}")
    print(f"slower than home by more than 10 %: {len(slower)}")
    for shape, place, medians in slower:
        print(f"  {shape.signature}: {place} {medians}")


if __name__ == "__main__":
    main()
