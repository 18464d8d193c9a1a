"""What bringing data home costs: `iosig finalize` against `cp` and `sync`, and a drain beside a job.

    python bench/finalize.py --fast DIRECTORY --home DIRECTORY [--what one,many,beside,turns] [--gigabytes 2]
                             [--files 2000] [--rounds 5] [--json FILE]

The directories must lie on different file systems. The data are written to the fast one through prepared links, and
come home; they are in the page cache, as after a job. All ways take their turn within each round. Wall time, medians;
the ratio is the median of each round's.

one     one file: each way of verifying, against `cp` + `sync FILE`
many    files of 16 KB: `finalize --all` with several --jobs, against `cp -r` + `sync -f`
beside  a job that computes (SHA-256, a process per processor) and writes a checkpoint to the fast storage after every
        tenth of its work, with and without a drain of one file beside it. The job's time tells how much it is slowed.
turns   the same for a machine with other work: one job, and one drain, which is stopped and continued every 1.5 s (off,
        on, on, off). Compares, within each four turns, how much the job computes in a second with and without the
        drain, so that work of others that lasts longer cancels out. --rounds: groups of four turns
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

IOSIG = Path(__file__).resolve().parent.parent / "build" / "bin" / "iosig"
COPIED_BYTES = 4 << 20
SMALL_BYTES = 16 << 10


def write(path: Path, total: int) -> None:
    piece = os.urandom(COPIED_BYTES)
    with path.open("wb") as file:
        for at in range(0, total, COPIED_BYTES):
            file.write(at.to_bytes(8, "little") + piece[8:])


class Bench:
    def __init__(self, fast: Path, home: Path, total: int) -> None:
        self.fast, self.home, self.total = fast, home, total
        self.overlaps: list[bool] = []
        storage = home / "storage.toml"
        storage.write_text(
            'schema = "iosig.storage/1"\n'
            f'[[mount_point]]\npath = "{fast}"\ndevice = "fast"\npersistent = false\n'
            f'[[mount_point]]\npath = "{home}"\ndevice = "slow"\n'
            '[[device]]\nname = "fast"\nkind = "ram"\n[[device]]\nname = "slow"\nkind = "hdd"\n'
        )
        self.environment = os.environ | {"IOSIG_STORAGE": str(storage), "XDG_STATE_HOME": str(home / "state")}

    def finalize_s(self, *options: str) -> float:
        path = self.home / "out"
        self.prepare(path, "sequential")
        assert path.is_symlink()
        write(path, self.total)
        os.sync()
        begin_s = time.monotonic()
        done = [IOSIG, "finalize", path, *options]
        subprocess.run(done, env=self.environment, check=True, stdout=subprocess.DEVNULL)
        took_s = time.monotonic() - begin_s
        assert path.stat().st_size == self.total and not path.is_symlink()
        path.unlink()
        return took_s

    def copy_s(self) -> float:
        source, path = self.fast / "source", self.home / "copy"
        write(source, self.total)
        os.sync()
        begin_s = time.monotonic()
        subprocess.run(["cp", source, path], check=True)
        subprocess.run(["sync", path], check=True)
        took_s = time.monotonic() - begin_s
        path.unlink()
        source.unlink()
        return took_s

    def prepare(self, *arguments: object) -> None:
        """By the paper's policy: by default, output that is written once and must come home stays there."""
        done = [IOSIG, "prepare", "--policy", "paper", *arguments]
        subprocess.run(done, env=self.environment, check=True, stdout=subprocess.DEVNULL)

    def finalize_many_s(self, count: int, *options: str) -> float:
        out = self.home / "out"
        out.mkdir()
        rules = self.home / "rules.toml"
        rules.write_text('schema = "iosig.rules/1"\n[[rule]]\npath = "out/*"\nsig = "sequential"\n')
        paths = [out / f"file{number}" for number in range(count)]
        self.prepare("--rules", rules, *paths)
        assert all(path.is_symlink() for path in paths)
        for path in paths:
            path.write_bytes(os.urandom(SMALL_BYTES))
        os.sync()
        begin_s = time.monotonic()
        done = [IOSIG, "finalize", "--all", *options]
        subprocess.run(done, env=self.environment, check=True, stdout=subprocess.DEVNULL)
        took_s = time.monotonic() - begin_s
        assert all(path.stat().st_size == SMALL_BYTES and not path.is_symlink() for path in paths)
        shutil.rmtree(out)
        return took_s

    def copy_many_s(self, count: int) -> float:
        source, path = self.fast / "source", self.home / "copy"
        source.mkdir()
        for number in range(count):
            (source / f"file{number}").write_bytes(os.urandom(SMALL_BYTES))
        os.sync()
        begin_s = time.monotonic()
        subprocess.run(["cp", "-r", source, path], check=True)
        subprocess.run(["sync", "-f", path], check=True)
        took_s = time.monotonic() - begin_s
        shutil.rmtree(path)
        shutil.rmtree(source)
        return took_s

    def job_s(self, work: int, drains: bool, *options: str) -> float:
        """The time of the job. Notes whether the drain was still at work at its end."""
        path = self.home / "out"
        self.prepare(path, "sequential")
        assert path.is_symlink()
        write(path, self.total)
        os.sync()
        time.sleep(1)
        if drains:
            done = [IOSIG, "finalize", "--background", path, *options]
            subprocess.run(done, env=self.environment, check=True, stdout=subprocess.DEVNULL)
        begin_s = time.monotonic()
        with multiprocessing.Pool() as pool:
            pool.starmap(compute, [(work, self.fast / f"checkpoint{n}") for n in range(os.cpu_count() or 1)])
        took_s = time.monotonic() - begin_s
        if drains:
            self.overlaps.append(path.is_symlink())
        while drains and path.is_symlink():
            time.sleep(0.1)
        subprocess.run([IOSIG, "finalize", "--all"], env=self.environment, check=True, stdout=subprocess.DEVNULL)
        assert path.stat().st_size == self.total and not path.is_symlink()
        path.unlink()
        return took_s

    def turns(self, groups: int, seconds: float = 1.5) -> list[float]:
        """The job's rate without the drain over that with it, for each group of four turns."""
        path = self.home / "out"
        self.prepare(path, "sequential")
        assert path.is_symlink()
        write(path, self.total)
        os.sync()
        started = [IOSIG, "finalize", "--background", "--json", path]
        said = subprocess.run(started, env=self.environment, check=True, capture_output=True, text=True).stdout
        drain: int = json.loads(said)["drain"]["pid"]
        time.sleep(1)  # it waits until the file has not changed for half a second
        workers = os.cpu_count() or 1
        done = multiprocessing.Array("q", workers, lock=False)
        job = [
            multiprocessing.Process(target=compute_on, args=(done, n, self.fast / f"checkpoint{n}"), daemon=True)
            for n in range(workers)
        ]
        for process in job:
            process.start()
        ratios = []
        for _ in range(groups):
            rates = [turn_rate(done, drain, how, seconds) for how in (STOPPED, RUNNING, RUNNING, STOPPED)]
            if not path.is_symlink():
                break  # the drain has ended
            ratios.append((rates[0] + rates[3]) / (rates[1] + rates[2]))
        for process in job:
            process.kill()
        subprocess.run([IOSIG, "status"], env=self.environment, check=False)
        if path.is_symlink():
            os.kill(drain, signal.SIGCONT)
            os.kill(drain, signal.SIGTERM)
        subprocess.run([IOSIG, "finalize", path], env=self.environment, check=False, stdout=subprocess.DEVNULL)
        path.unlink()
        return ratios


STOPPED, RUNNING = signal.SIGSTOP, signal.SIGCONT


def turn_rate(done: Any, drain: int, how: signal.Signals, seconds: float) -> float:
    with suppress(ProcessLookupError):
        os.kill(drain, how)
    before, begin_s = sum(done), time.monotonic()
    time.sleep(seconds)
    rate: float = (sum(done) - before) / (time.monotonic() - begin_s)
    return rate


def compute_on(done: Any, number: int, checkpoint: Path) -> None:
    piece = bytes(COPIED_BYTES // 16)
    while True:
        hashlib.sha256(piece).digest()
        done[number] += 1
        if done[number] % 1000 == 0:
            checkpoint.write_bytes(bytes(COPIED_BYTES))


def interval(ratios: list[float]) -> tuple[float, float]:
    """Of the median, by drawing again: 95 %."""
    chance = random.Random(1)
    drawn = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(2000))
    return drawn[50], drawn[1949]


def compute(work: int, checkpoint: Path) -> None:
    piece = bytes(COPIED_BYTES)
    for number in range(work):
        hashlib.sha256(piece).digest()
        if number % (work // 10 or 1) == 0:
            checkpoint.write_bytes(piece)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--fast", type=Path, required=True)
    arguments.add_argument("--home", type=Path, required=True)
    arguments.add_argument("--what", default="one,many,beside")
    arguments.add_argument("--gigabytes", type=float, default=2)
    arguments.add_argument("--files", type=int, default=2000)
    arguments.add_argument(
        "--work", type=int, default=3000, help="of the job beside: pieces of 4 MB for each processor"
    )
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--json", type=Path)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=given.fast) as fast, tempfile.TemporaryDirectory(dir=given.home) as home:
        bench = Bench(Path(fast), Path(home), int(given.gigabytes * (1 << 30)))
        ways: dict[str, dict[str, Callable[[], float]]] = {
            "one": {"cp + sync": bench.copy_s}
            | {f"--verify {way}": partial(bench.finalize_s, "--verify", way) for way in ("none", "copy", "full")},
            "many": {"cp -r + sync -f": partial(bench.copy_many_s, given.files)}
            | {f"--jobs {n}": partial(bench.finalize_many_s, given.files, "--jobs", str(n)) for n in (1, 4, 16, 64)},
            "beside": {
                "job alone": partial(bench.job_s, given.work, False),
                "beside a drain": partial(bench.job_s, given.work, True),
                "beside --max-rate 200MB/s": partial(bench.job_s, given.work, True, "--max-rate", "200MB/s"),
            },
        }
        results = {}
        for what in given.what.split(","):
            print(f"{what}:")
            if what == "turns":
                ratios = bench.turns(given.rounds)
                least, most = interval(ratios)
                print(f"the job takes {statistics.median(ratios):.3f} times as long beside the drain", end=" ")
                print(f"(95 %: {least:.3f} to {most:.3f}; {len(ratios)} groups of turns)")
                results[what] = [{"job beside a drain": ratio} for ratio in ratios]
                continue
            results[what] = rounds = []
            for _ in range(given.rounds):
                rounds.append({name: measure() for name, measure in ways[what].items()})
                print("  ".join(f"{name} {took_s:.2f} s" for name, took_s in rounds[-1].items()), flush=True)
            first = next(iter(ways[what]))
            for name in ways[what]:
                times = [each[name] for each in rounds]
                ratio = statistics.median(each[name] / each[first] for each in rounds)
                shown = f"{name:26} {statistics.median(times):6.2f} s  {ratio:.2f} x {first}"
                print(f"{shown}  ({min(times):.2f} to {max(times):.2f} s)")
        if bench.overlaps:
            print(f"the drain outlasted the job in {sum(bench.overlaps)} of {len(bench.overlaps)} runs")
    if given.json:
        given.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
