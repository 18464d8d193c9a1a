"""I/O time of a reader over a slow disk: alone, under `iosig run --prefetch`, with a model of an earlier run, and with
hints written by hand.

The disk is the lab's (2 ms a request, 400 MB/s, 16 at once) under a loop device with ext4; needs root and FUSE.
Caches are dropped before each run. The reader measures the time in its reads, with the hints that it gives; it computes
between them. Prints the median of --runs runs, in ms, and for pairs of runs without and with --prefetch the ratio with
its 95 % interval.

    sudo python3 bench/prefetch.py
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("IOSIG_BUILD", ROOT / "build"))
LENGTH, STRIDE, READS, DEPTH = 16 << 10, 256 << 10, 500, 16


def offsets(pattern: str, size: int) -> list[int]:
    if pattern == "random":
        chance = random.Random(1)
        return [chance.randrange(size // 4096) * 4096 for _ in range(READS)]
    return [
        n * (LENGTH if pattern == "sequential" else STRIDE)
        for n in range(READS * (4 if pattern == "sequential" else 1))
    ]


def read(path: str, pattern: str, compute_ms: float, has_hints: bool) -> None:
    """The reader, in a process of its own: prints its I/O time in seconds."""
    fd = os.open(path, os.O_RDONLY)
    places = offsets(pattern, os.fstat(fd).st_size)
    total_s = 0.0
    for n, place in enumerate(places):
        begin = time.perf_counter()
        if has_hints:
            for ahead in places[:DEPTH] if n == 0 else places[n + DEPTH - 1 : n + DEPTH]:
                os.posix_fadvise(fd, ahead, LENGTH, os.POSIX_FADV_WILLNEED)
        os.pread(fd, LENGTH, place)
        end = time.perf_counter()
        total_s += end - begin
        while time.perf_counter() < end + compute_ms / 1000:
            pass
    print(total_s)


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
            (mounted / "data").write_bytes(os.urandom(1 << 20) * 256)
            os.sync()
            yield mounted / "data"
        finally:
            subprocess.run(["umount", mounted], check=False)
            if loop:
                subprocess.run(["losetup", "--detach", loop], check=False)
            subprocess.run(["umount", disk], check=False)


def command(path: Path, pattern: str, compute_ms: float, has_hints: bool = False) -> list[str | Path]:
    return [sys.executable, __file__, "--read", path, pattern, str(compute_ms), "1" if has_hints else ""]


def model_of(path: Path, pattern: str) -> Path:
    """What a run of the reader reads, as `iosig run --prefetch-model` takes it."""
    iosig, trace, model = BUILD / "bin" / "iosig", path.with_name("trace"), path.with_name(f"{pattern}.reads")
    subprocess.run([iosig, "trace", "-o", trace, "--", *command(path, pattern, 0)], check=True, capture_output=True)
    words = ["pattern", "trace", trace, "--files", path, "--model", model]
    subprocess.run([iosig, *words], check=True, capture_output=True)
    shutil.rmtree(trace)
    return model


def io_time_ms(path: Path, pattern: str, compute_ms: float, way: str) -> float:
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    options = {"prefetch": ["--prefetch"], "remembered": ["--prefetch-model", path.with_name(f"{pattern}.reads")]}
    before = [BUILD / "bin" / "iosig", "run", *options[way], "--"] if way in options else []
    words = [*before, *command(path, pattern, compute_ms, way == "hints")]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout) * 1000


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--latency-us", type=int, default=2000)
    given = options.parse_args()
    with slow_file(given.latency_us) as path:
        ways = ("none", "prefetch", "remembered", "hints")
        print(f"{'pattern':12}{'compute':>8}" + "".join(f"{way:>12}" for way in ways) + "   prefetch / none")
        for pattern, compute_ms in [
            ("strided", 0),
            ("strided", 1),
            ("sequential", 0),
            ("sequential", 1),
            ("random", 0),
            ("random", 1),
        ]:
            if compute_ms == 0:
                model_of(path, pattern)
            times: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(given.runs):
                for way in ways:
                    times[way].append(io_time_ms(path, pattern, compute_ms, way))
            ratios = [with_ / without for with_, without in zip(times["prefetch"], times["none"], strict=True)]
            half = 1.96 * statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else 0.0
            medians = "".join(f"{statistics.median(times[way]):12.1f}" for way in ways)
            print(f"{pattern:12}{compute_ms:8}{medians}   {statistics.mean(ratios):.3f} +- {half:.3f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        read(sys.argv[2], sys.argv[3], float(sys.argv[4]), sys.argv[5] == "1")
    else:
        main()
