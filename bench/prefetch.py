"""Reads over a slow disk: alone, under `iosig run --prefetch`, with a model of an earlier run, with a declared order,
and as a programmer would write them: with posix_fadvise(POSIX_FADV_WILLNEED), and with io_uring.

The disk is the lab's (2 ms a request, 400 MB/s, 16 at once) under a loop device with ext4; needs root, FUSE, liburing.
--container reads a container instead, which 8 processes wrote in turns, 64 KiB each (--ways alone,prefetch); --mount
reads either through `iosig mount`; --no-report prefetches without a report, for which more is observed. Caches are
dropped before each run. The reader (bench/prefetch_reader.c) measures the time in its reads, with the hints and
submissions that it makes; it computes between them. Prints for each case and way the median of --runs runs:

    io_ms     time in reads
    p99_us    99th percentile of a read
    cpu_us    processor time for each read, of all threads of the process, without the computing
    anon_kib  anonymous memory of the process at its end
    wasted    share of the bytes that were brought into memory and not read (of prefetched bytes; from the report)
    /alone, /hints  mean ratio of io_ms to that way's in the same round, with its 95 % interval; p99/alone: of p99_us

    sudo python3 bench/prefetch.py [--runs N] [--cases strided:0,random:1]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("IOSIG_BUILD", ROOT / "build"))
LENGTH, STRIDE, READS = 16 << 10, 256 << 10, 500
PATTERNS = ("strided", "nested", "phases", "sequential", "random")
WAYS = ("alone", "prefetch", "remembered", "order", "hints", "uring")


def offsets(pattern: str, size: int) -> list[int]:
    """The places of the reads, LENGTH bytes each."""
    chance = random.Random(1)
    if pattern == "random":
        return [chance.randrange(size // 4096) * 4096 for _ in range(READS)]
    if pattern == "sequential":
        return [n * LENGTH for n in range(READS * 4)]
    if pattern == "nested":  # columns of planes: 10 times 10 times 5
        return [(25 << 20) * i + (2 << 20) * j + STRIDE * k for i in range(10) for j in range(10) for k in range(5)]
    if pattern == "phases":  # another stride every 100 reads, none of which goes back
        strides = (STRIDE, 96 << 10, 160 << 10, 64 << 10, 384 << 10)
        return [(n // 100) * (50 << 20) + (n % 100) * strides[n // 100] for n in range(READS)]
    return [n * STRIDE for n in range(READS)]


@contextlib.contextmanager
def slow_file(latency_us: int) -> Iterator[Path]:
    """A file of 256 MiB on a slow disk."""
    with tempfile.TemporaryDirectory(prefix="iosig-prefetch") as name:
        disk, mounted = Path(name) / "disk", Path(name) / "mounted"
        disk.touch()
        mounted.mkdir()
        size = 400 << 20
        model = ["read=400000000", "write=400000000", f"latency_us={latency_us}", "seek_us=0", "channels=16"]
        subprocess.run([BUILD / "bin" / "slowdisk", disk, f"size={size}", *model], check=True)
        loop = ""
        try:
            command = ["losetup", "--direct-io=on", "--find", "--show", disk]
            loop = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
            subprocess.run(["mkfs.ext4", "-q", loop], check=True)
            subprocess.run(["mount", loop, mounted], check=True)
            yield mounted / "data"
        finally:
            subprocess.run(["umount", mounted], check=False)
            if loop:
                subprocess.run(["losetup", "--detach", loop], check=False)
            for _ in range(300):  # the loop device is released a moment later
                if subprocess.run(["umount", disk], check=False, capture_output=True).returncode == 0:
                    break
                time.sleep(0.1)


def write_data(path: Path, is_container: bool) -> None:
    """Writes 256 MiB into a file, or by 8 processes in turns into a container."""
    if not is_container:
        path.write_bytes(os.urandom(1 << 20) * 256)
    writer = """
import os, sys
fd, rank = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT), int(sys.argv[2])
for n in range(512): os.pwrite(fd, os.urandom(65536), (8 * n + rank) * 65536)
"""
    for rank in range(8 if is_container else 0):
        words = [
            BUILD / "bin" / "iosig",
            "run",
            "--container",
            path,
            "--",
            sys.executable,
            "-c",
            writer,
            path,
            str(rank),
        ]
        subprocess.run(words, check=True)
    os.sync()


@dataclass
class Case:
    """Reads of one pattern, and what tells them beforehand."""

    path: Path
    pattern: str
    compute_us: int
    reader: Path
    places: str
    mounted: Path | None = None
    has_report: bool = True

    def __post_init__(self) -> None:
        self.directory = self.reader.parent
        self.model = self.directory / f"{self.pattern}.reads"
        self.rules = self.directory / f"{self.pattern}.toml"

    def command(self, way: str) -> list[str | Path]:
        path = self.path if self.mounted is None else self.mounted / self.path.name
        return [self.reader, path, str(LENGTH), str(self.compute_us), way]

    def learn(self) -> None:
        """Makes the model of an earlier run, and the declared order."""
        iosig, trace = BUILD / "bin" / "iosig", self.directory / "trace"
        words = [iosig, "trace", "-o", trace, "--", *self.command("plain")]
        subprocess.run(words, input=self.places, text=True, check=True, capture_output=True)
        words = [iosig, "pattern", "trace", trace, "--files", self.path, "--model", self.model]
        subprocess.run(words, check=True, capture_output=True)
        shutil.rmtree(trace)
        order = self.model.with_suffix(".order")
        order.write_text("iosig.order/1\n" + "".join(f"{place} {LENGTH}\n" for place in self.places.split()))
        self.rules.write_text(f'schema = "iosig.rules/1"\n[[rule]]\npath = "{self.path}"\nsig = "order({order})"\n')

    def run(self, way: str) -> dict[str, float]:
        for each in self.path.rglob("*") if self.path.is_dir() else [self.path]:
            if each.is_file():
                with each.open("rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        report = self.directory / "report"
        report.unlink(missing_ok=True)
        options: dict[str, list[str | Path]] = {
            "prefetch": ["--prefetch"],
            "remembered": ["--prefetch-model", self.model],
            "order": ["--prefetch", "--rules", self.rules],
        }
        before: list[str | Path] = []
        iosig, asked = BUILD / "bin" / "iosig", list(options.get(way, []))
        if self.has_report:
            asked += ["--prefetch-report", report]
        if self.mounted is not None:
            subprocess.run(
                [iosig, "mount", *(asked if way in options else []), self.path.parent, self.mounted], check=True
            )
        elif way in options or self.path.is_dir():
            container = ["--container", self.path] if self.path.is_dir() else []
            before = [iosig, "run", *container, *(asked if way in options else []), "--"]
        words = [*before, *self.command(way if way in ("hints", "uring") else "plain")]
        printed = subprocess.run(words, input=self.places, text=True, check=True, capture_output=True).stdout.split()
        if self.mounted is not None:
            subprocess.run([iosig, "unmount", self.mounted], check=True)
        io_s, p99_us, cpu_us, anon_kib = map(float, printed)
        found = {"io_ms": io_s * 1000, "p99_us": p99_us, "cpu_us": cpu_us, "anon_kib": anon_kib}
        told = report.read_text() if report.exists() else ""
        if line := re.search(re.escape(f"{self.path}: ") + r"useful ([\d.]+) MB, late ([\d.]+), wasted ([\d.]+)", told):
            useful, late, wasted = map(float, line.groups())
            found["wasted"] = wasted / max(useful + late + wasted, 1e-9)
        return found


def ratio(found: list[float], others: list[float]) -> str:
    ratios = [one / other for one, other in zip(found, others, strict=True)]
    half = 1.96 * statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else 0.0
    return f"{statistics.mean(ratios):7.3f} +- {half:.3f}"


def measure(case: Case, runs: int, ways: list[str]) -> None:
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(runs):
        for way in ways:
            found[way].append(case.run(way))
    for way in ways:

        def median(name: str, way: str = way) -> float:
            return statistics.median(each.get(name, 0.0) for each in found[way])

        def ratio_to(base: str, name: str, way: str = way) -> str:
            return ratio([run[name] for run in found[way]], [run[name] for run in found[base]])

        compared = [("alone", "io_ms"), ("alone", "p99_us"), ("hints", "io_ms")]
        ratios = "".join(f"{ratio_to(base, name):>18}" for base, name in compared if base in ways)
        print(
            f"{case.pattern:11}{case.compute_us / 1000:3g} ms {way:11}{median('io_ms'):9.1f}{median('p99_us'):9.0f}"
            f"{median('cpu_us'):8.1f}{median('anon_kib'):9.0f}{median('wasted'):8.1%}{ratios}",
            flush=True,
        )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--latency-us", type=int, default=2000)
    options.add_argument("--cases", default=",".join(f"{pattern}:{ms}" for pattern in PATTERNS for ms in (0, 1)))
    options.add_argument("--ways", default=",".join(WAYS))
    options.add_argument("--container", action="store_true")
    options.add_argument("--mount", action="store_true")
    options.add_argument("--no-report", action="store_true")
    given = options.parse_args()
    with slow_file(given.latency_us) as path, tempfile.TemporaryDirectory(prefix="iosig-reader") as directory:
        write_data(path, given.container)
        size = 256 << 20
        reader = Path(directory) / "reader"
        mounted = Path(directory) / "mounted"
        mounted.mkdir()
        subprocess.run(["cc", "-O2", "-o", reader, ROOT / "bench" / "prefetch_reader.c", "-luring"], check=True)
        print(
            f"{'reads':11}{'':6} {'way':11}{'io_ms':>9}{'p99_us':>9}{'cpu_us':>8}{'anon_kib':>9}{'wasted':>8}"
            f"{'/alone':>18}{'p99/alone':>18}{'/hints':>18}"
        )
        for each in given.cases.split(","):
            pattern, compute_ms = each.split(":")
            places = "".join(f"{place}\n" for place in offsets(pattern, size))
            case = Case(path, pattern, round(float(compute_ms) * 1000), reader, places)
            case.mounted, case.has_report = mounted if given.mount else None, not given.no_report
            ways = given.ways.split(",")
            if {"remembered", "order"} & set(ways):
                case.learn()
            measure(case, given.runs, ways)


if __name__ == "__main__":
    main()
