"""Whole jobs: does the choice leave a job no slower than its own place, and how far is it from the best place?

    python bench/whole_job.py --storage storage.toml --home DIRECTORY --output FILE.csv [--shapes N] [--rounds 3]

Each shape is one stream: size, size per operation, order, whether operations wait, passes, time that the job thinks
after each pass, and what becomes of the data (home, rest or temp). It runs with its file in DIRECTORY, and behind a
link to each other mount point of the description on which the data may be: `iosig prepare`, the job, `iosig finalize`,
`sync` of the file, in turns within each round. The job is whole_job.c, compiled at the start: pwrite, pread and
fdatasync; it shares no code with the probe. Time to think is not counted, nor the start of the job's program, nor what
it needs to make its data.

`iosig choose` decides once for each shape, by the description alone. Regret: time at the chosen place / time at the
best - 1, by medians. The noise floor is the regret of the best place of the first round, judged by the others. A shape
that seems slower at the chosen place than at home by more than 10 %, by the median of the rounds' ratios, is suspect,
and repeated. Places for which more than --limit seconds are predicted are left out, except the chosen one and home.

FILE.csv gets the rows of a shape when it is done. The same command continues a run that was stopped: shapes that are in
the file are not run again, and count. `--report` only prints the figures of the file; with --storage and --home by what
`iosig choose` answers now, for one who changes the model or the description.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

IOSIG = Path(__file__).resolve().parent.parent / "build" / "bin" / "iosig"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
COLUMNS = ["signature", "home", "mount_point", "is_persistent", "is_chosen", "predicted_s", "times_s"]
CLOSE, SLOWER, MIN_GAIN = 0.05, 1.1, 0.2


@dataclass(frozen=True)
class Shape:
    total_bytes: int
    bytes_per_io: int
    order: str
    sync: str
    passes: int
    think_s: int  # in all
    fate: str  # home, rest, temp

    @property
    def signature(self) -> str:
        words = f"{self.order} {self.sync} size-per-IO({self.bytes_per_io}) totalsize({self.total_bytes}) {self.fate}"
        # The first pass writes; the others alternate between reading and overwriting.
        reads = self.passes // 2
        words += f" passes({self.passes}) read-share({reads / self.passes:.4f})" if self.passes > 1 else ""
        return words + (f" think-time({self.think_s}s)" if self.think_s else "")


def shapes() -> Iterator[Shape]:
    totals = [MIB, 16 * MIB, 128 * MIB, 512 * MIB, 2 * GIB]
    for total, size in itertools.product(totals, [4 * KIB, 64 * KIB, MIB]):
        for order, sync in itertools.product(["sequential", "random"], ["sync", "nosync"]):
            # Synced writes leave nothing to store while the job computes.
            thinks = [0, 2] if sync == "nosync" else [0]
            for passes, think_s, fate in itertools.product([1, 2, 4], thinks, ["home", "rest", "temp"]):
                if size <= total:
                    yield Shape(total, size, order, sync, passes, think_s, fate)


class Bench:
    def __init__(self, storage: Path, home: Path, scratch: Path) -> None:
        self.storage, self.home, self.scratch = storage, home, scratch
        self.job = scratch / "job"
        left = home / "whole-job.out"  # of a run that was killed
        if left.is_symlink():
            left.resolve().unlink(missing_ok=True)
        left.unlink(missing_ok=True)
        subprocess.run(["cc", "-O2", "-o", self.job, Path(__file__).with_suffix(".c")], check=True)
        self.environment = os.environ | {"IOSIG_STORAGE": str(storage), "IOSIG_STATE": str(scratch / "state")}

    def iosig(self, *words: object, **environment: str) -> str:
        command = [str(IOSIG), *map(str, words)]
        done = subprocess.run(command, env=self.environment | environment, capture_output=True, text=True)
        if done.returncode > 1:
            sys.exit(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def choose(self, signature: str) -> tuple[str | None, str, dict[str, float]]:
        """The chosen mount point, that of the home, and the seconds predicted on each where the stream may be."""
        choice: Any = json.loads(self.iosig("choose", signature, "--home", self.home, "--json"))
        candidates = choice["candidates"]
        home = next(each["mount_point"] for each in candidates if each["is_home"])
        predicted = {each["mount_point"]: each["job"]["total_s"] for each in candidates if each["admissible"]}
        return choice["chosen"], home, predicted

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
        time.sleep(0.1)  # the file system tells the device which blocks of the last run are free
        begin_s = time.perf_counter()
        if not is_home:
            # The word volatile and temp are the fate's; residence: finalize is told below.
            self.iosig("prepare", path, f"rest totalsize({shape.total_bytes})", IOSIG_STORAGE=str(self.forced(mount)))
        amounts = shape.total_bytes, shape.bytes_per_io, shape.order, shape.sync, shape.passes, shape.think_s
        started_s = time.perf_counter()
        job = subprocess.run([str(self.job), str(path), *map(str, amounts)], check=True, stdout=subprocess.PIPE)
        program_s = time.perf_counter() - started_s - float(job.stdout)
        lies_there = path.is_symlink()
        assert lies_there != is_home, f"{path} is not on {mount}"
        if shape.fate == "home" and lies_there:
            self.iosig("finalize", path)
        if shape.fate != "temp":
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)
        took_s = time.perf_counter() - begin_s - program_s - shape.think_s
        if lies_there and path.is_symlink():
            path.resolve().unlink()
            self.iosig("finalize", path)
        path.unlink(missing_ok=True)
        return took_s


@dataclass
class Place:
    """A shape at one mount point: what was predicted and measured."""

    home: str
    mount_point: str
    is_persistent: bool
    is_chosen: bool
    predicted_s: float
    times_s: list[float]

    @property
    def is_home(self) -> bool:
        return self.mount_point == self.home

    @property
    def median_s(self) -> float:
        return statistics.median(self.times_s)

    @property
    def first_round_error(self) -> float:
        return abs(self.times_s[0] / statistics.median(self.times_s[1:]) - 1)


Results = dict[str, list[Place]]  # by signature


def read_results(path: Path) -> Results:
    """The shapes of a file that are complete; of a run that was killed, the last row may be cut."""
    results: Results = {}
    with path.open(newline="") as file:
        rows = csv.reader(file)
        if next(rows, COLUMNS) != COLUMNS:
            sys.exit(f"{path}: its columns are not {', '.join(COLUMNS)}: name another file")
        for row in rows:
            if len(row) != len(COLUMNS) or not row[-1].endswith(";"):
                print(f"{path}: a row that is cut is left out: {','.join(row)}", file=sys.stderr)
                continue
            signature, home, mount, persistent, chosen, predicted, times = row
            measured = [float(each) for each in times.rstrip(";").split()]
            place = Place(home, mount, persistent == "True", chosen == "True", float(predicted), measured)
            results.setdefault(signature, []).append(place)
    return {
        signature: places
        for signature, places in results.items()
        if any(each.is_chosen for each in places) and any(each.is_home for each in places)
    }


def append(path: Path, results: Results) -> None:
    """Writes the rows in one step."""
    lines: list[list[object]] = []
    for signature, places in results.items():
        for each in places:
            times = " ".join(f"{took_s:.6f}" for took_s in each.times_s) + ";"
            facts = [each.home, each.mount_point, each.is_persistent, each.is_chosen, each.predicted_s]
            lines.append([signature, *facts, times])
    with path.open("a", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)


def chosen_among(places: list[Place]) -> Place:
    """The choice; if that is not among these, the one that would be: home unless another saves a fifth."""
    for each in places:
        if each.is_chosen:
            return each
    least = min(places, key=lambda each: each.predicted_s)
    home = next((each for each in places if each.is_home), least)
    return least if least.predicted_s <= (1 - MIN_GAIN) * home.predicted_s else home


def regret(places: list[Place], chosen: Place, first: int = 0) -> float:
    times = {id(each): statistics.median(each.times_s[first:]) for each in places}
    return times[id(chosen)] / min(times.values()) - 1


def slowdown(places: list[Place]) -> float:
    """Time at the choice / time at home: the median of the rounds' ratios."""
    chosen, home = chosen_among(places), next(each for each in places if each.is_home)
    return statistics.median(a / b for a, b in zip(chosen.times_s, home.times_s, strict=True))


def share_interval(hits: int, count: int) -> tuple[float, float]:
    """Wilson's interval for a share, 95 % (JASA 22 (1927), 209)."""
    z = 1.959964
    share, scale = hits / count, 1 + z * z / count
    middle = (share + z * z / (2 * count)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return middle - half, middle + half


def mean_interval(values: list[float]) -> tuple[float, float]:
    """The mean's interval, 95 %, by 2,000 bootstrap samples."""
    draw = random.Random(1)
    means = sorted(statistics.fmean(draw.choices(values, k=len(values))) for _ in range(2000))
    return means[49], means[1950]


def report(results: Results) -> None:
    def regrets(is_wanted: Callable[[Place], bool]) -> None:
        kept = [[each for each in places if is_wanted(each)] for places in results.values()]
        kept = [places for places in kept if places and any(each.is_home for each in places)]
        if not kept:
            return
        count = sum(len(places) > 1 for places in kept)
        print(f"  {len(kept)} shapes, of which {count} have more than one place to choose from")
        choices = [regret(places, chosen_among(places)) for places in kept]
        floors = [regret(places, min(places, key=lambda each: each.times_s[0]), 1) for places in kept]
        shares = []
        for name, values in (("choice", choices), ("noise floor", floors)):
            hits = sum(each <= CLOSE for each in values)
            (low, high), (least, most) = share_interval(hits, len(values)), mean_interval(values)
            shares.append((hits / len(values), low, high))
            print(
                f"  {name}: within 5 % of the best in {hits / len(values):.0%} (95 %: {low:.0%} to {high:.0%}), "
                f"mean regret {statistics.fmean(values):.1%} ({least:.1%} to {most:.1%})"
            )
        lies = "lies" if shares[0][1] <= shares[1][0] <= shares[0][2] else "does not lie"
        print(f"  the noise floor {lies} in the interval of the choice")

    count = sum(map(len, results.values()))
    print(f"\n{len(results)} shapes, {count} places; all mount points:")
    regrets(lambda each: True)
    print("persistent mount points:")
    regrets(lambda each: each.is_persistent)
    everywhere = [each for places in results.values() for each in places]
    for name, errors in (
        ("of the prediction", [abs(each.predicted_s / each.median_s - 1) for each in everywhere]),
        ("of the first round as a prediction of the others", [each.first_round_error for each in everywhere]),
    ):
        p90 = sorted(errors)[int(0.9 * len(errors))]
        print(f"error {name}: median {statistics.median(errors):.0%}, p90 {p90:.0%}")
    slower = {signature: slowdown(places) for signature, places in results.items()}
    slower = {signature: ratio for signature, ratio in slower.items() if ratio > SLOWER}
    print(f"slower than home by more than 10 %: {len(slower)}")
    for signature, ratio in slower.items():
        medians = ", ".join(f"{each.mount_point} {each.median_s:.3f} s" for each in results[signature])
        print(f"  {signature}: {ratio:.2f} x; {medians}")


def measure(bench: Bench, shape: Shape, persistent: dict[str, bool], given: argparse.Namespace) -> list[Place]:
    """Empty: the shape would take too long."""
    chosen, home, predicted = bench.choose(shape.signature)
    if chosen is None or max(predicted[home], predicted[chosen]) > 3 * given.limit:
        return []
    places = [
        Place(home, mount, persistent.get(mount, True), mount == chosen, took_s, [])
        for mount, took_s in predicted.items()
        if took_s <= given.limit or mount in (home, chosen)
    ]

    def take_turns() -> None:
        for number in range(given.rounds):
            for place in places[number % len(places) :] + places[: number % len(places)]:
                place.times_s.append(bench.run_s(shape, place.mount_point, place.is_home))

    take_turns()
    if slowdown(places) > SLOWER:
        take_turns()
    return places


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--storage", type=Path)
    arguments.add_argument("--home", type=Path)
    arguments.add_argument("--shapes", type=int, help="so many of them, drawn by --seed; all")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--limit", type=float, default=10, help="seconds predicted, above which a place is left out")
    arguments.add_argument("--minutes", type=float, default=170, help="ends after the shape that is under way then")
    arguments.add_argument("--output", type=Path, required=True, help="a CSV row for each shape and place")
    arguments.add_argument("--report", action="store_true", help="run nothing")
    given = arguments.parse_args()
    if given.rounds < 2:
        arguments.error("--rounds: the noise floor needs two")
    results = read_results(given.output) if given.output.exists() else {}
    has_places = given.storage is not None and given.home is not None
    if not given.report:
        if not has_places:
            arguments.error("--storage and --home are needed")
        run(given, results)
    elif has_places:
        with tempfile.TemporaryDirectory(prefix="iosig-bench-") as scratch:
            decide_again(Bench(given.storage, given.home, Path(scratch)), results)
    if not results:
        sys.exit(f"{given.output}: no shape is complete")
    report(results)


def decide_again(bench: Bench, results: Results) -> None:
    """Replaces what was predicted and chosen."""
    for signature, places in results.items():
        chosen, _, predicted = bench.choose(signature)
        for each in places:
            each.predicted_s = predicted.get(each.mount_point, each.predicted_s)
            each.is_chosen = each.mount_point == chosen


def run(given: argparse.Namespace, results: Results) -> None:
    """Measures the shapes that are missing."""
    mounts = tomllib.loads(given.storage.read_text())["mount_point"]
    persistent = {each["path"]: bool(each.get("persistent", True)) for each in mounts}
    wanted = list(shapes())
    random.Random(given.seed).shuffle(wanted)
    wanted = wanted[: given.shapes or None]
    # The rows of shapes that were not complete are dropped, so that none counts twice.
    draft = given.output.with_name(given.output.name + ".draft")
    draft.write_text(",".join(COLUMNS) + "\n")
    append(draft, results)
    draft.replace(given.output)
    end_s = time.monotonic() + 60 * given.minutes
    too_long = 0
    with tempfile.TemporaryDirectory(prefix="iosig-bench-") as scratch:
        bench = Bench(given.storage, given.home, Path(scratch))
        for number, shape in enumerate(wanted):
            if shape.signature in results:
                continue
            if time.monotonic() > end_s:
                print(f"the time is up before shape {number + 1} of {len(wanted)}; the same command continues")
                break
            places = measure(bench, shape, persistent, given)
            if not places:
                too_long += 1
                continue
            results[shape.signature] = places
            append(given.output, {shape.signature: places})
            shown = ", ".join(f"{each.mount_point} {each.median_s:.3f} ({each.predicted_s:.3f})" for each in places)
            print(f"{shape.signature}: {chosen_among(places).mount_point} | {shown}", flush=True)
    if too_long:
        print(f"{too_long} shapes are left out, since home or the choice would take more than {3 * given.limit:g} s")


if __name__ == "__main__":
    main()
