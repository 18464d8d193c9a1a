"""Real programs over a slow disk, alone and under `iosig run --prefetch`: how long they take. All must say the same.

The disk is bench/prefetch.py's (2 ms a request); needs root and FUSE, and of each program what its line says:

    hdf5      some columns of a 2-d data set, row by row (h5py)
    nccopy    a copy of a NetCDF-4 file into chunks of another shape (netcdf-bin)
    samtools  a hundred regions of an indexed BAM file (samtools)
    shuffled  a Python loader that reads records in an order of its own (random: nothing to foresee)
    ordered   the same loader, with a rule that names the order
    sqlite    rows by an index, whose rows lie anywhere (sqlite3)

Caches are dropped before each run. Pairs in turns; prints the medians, and the mean ratio with its 95 % interval.

    sudo python3 bench/prefetch_programs.py [--runs 15] [PROGRAM...]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from prefetch import BUILD, slow_file

HDF5_READER = """
import h5py, sys
with h5py.File(sys.argv[1]) as file:
    field, total = file["field"], 0
    for row in range(field.shape[0]):
        total += int(field[row, 4096:8192].sum())
print(total)
"""
LOADER = """
import os, random, sys, zlib
fd, record, sum_ = os.open(sys.argv[1], os.O_RDONLY), 16384, 0
order = list(range(os.fstat(fd).st_size // record))
random.Random(7).shuffle(order)
for n in order[:600]:
    sum_ = zlib.crc32(os.pread(fd, record, n * record), sum_)
print(sum_)
"""


@dataclass
class Program:
    make: Callable[[Path], None]  # the file that it reads
    words: Callable[[Path], list[str | Path]]
    missing: Callable[[], str]  # what it lacks here, or nothing
    options: Callable[[Path], list[str | Path]] = lambda path: []  # of `iosig run`, besides --prefetch


def lacks(*names: str) -> Callable[[], str]:
    return lambda: ", ".join(name for name in names if shutil.which(name) is None)


def lacks_h5py() -> str:
    return "" if importlib.util.find_spec("h5py") else "h5py"


def make_hdf5(path: Path) -> None:
    import h5py
    import numpy

    with h5py.File(path, "w") as file:
        rows = numpy.random.default_rng(1).integers(0, 1 << 30, (512, 1 << 16), numpy.int32)
        file.create_dataset("field", data=rows)  # contiguous, 128 MiB, rows of 256 KiB


def make_netcdf(path: Path) -> None:
    import h5py
    import numpy

    with h5py.File(path, "w") as file:
        for name, size in (("y", 2048), ("x", 8192)):
            file.create_dataset(name, data=numpy.arange(size, dtype="f4")).make_scale(name)
        values = numpy.random.default_rng(2).standard_normal((2048, 8192), numpy.float32)
        field = file.create_dataset("field", data=values, chunks=(64, 64))
        for n, name in enumerate(("y", "x")):
            field.dims[n].attach_scale(file[name])


def make_bam(path: Path) -> None:
    chance = random.Random(3)
    bases, qualities = ("".join(chance.choices(letters, k=1 << 20)) for letters in ("ACGT", "FGHIJ"))
    lines = ["@HD\tVN:1.6\tSO:coordinate"] + [f"@SQ\tSN:chr{n}\tLN:10000000" for n in range(1, 5)]
    text = path.with_suffix(".sam")
    with text.open("w") as file:
        file.write("\n".join(lines) + "\n")
        for chromosome in range(1, 5):
            for place in sorted(chance.randrange(1, 9_999_000) for _ in range(150_000)):
                at = chance.randrange((1 << 20) - 100)
                words = f"{bases[at : at + 100]}\t{qualities[at : at + 100]}"
                file.write(f"r{place}\t0\tchr{chromosome}\t{place}\t60\t100M\t*\t0\t0\t{words}\n")
    subprocess.run(["samtools", "view", "-b", "-o", path, text], check=True)
    subprocess.run(["samtools", "index", path], check=True)
    text.unlink()


def make_database(path: Path) -> None:
    chance = random.Random(4)
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE run (id INTEGER PRIMARY KEY, energy REAL, note TEXT)")
        rows = ((n, chance.random(), "x" * 400) for n in range(200_000))
        database.executemany("INSERT INTO run VALUES (?, ?, ?)", rows)
        database.execute("CREATE INDEX by_energy ON run (energy)")
    database.close()


def make_records(path: Path) -> None:
    path.write_bytes(os.urandom(1 << 20) * 128)


def order_of_loader(path: Path) -> list[str | Path]:
    """The rule for the records, which lies beside them with the order."""
    order, rules = path.with_suffix(".order"), path.with_suffix(".toml")
    records = list(range(path.stat().st_size // 16384))
    random.Random(7).shuffle(records)
    order.write_text("iosig.order/1\nrecords 16384\n" + "".join(f"{n}\n" for n in records))
    rules.write_text(f'schema = "iosig.rules/1"\n[[rule]]\npath = "{path}"\nsig = "order({order.name})"\n')
    return ["--rules", rules]


def regions(path: Path) -> list[str | Path]:
    return ["samtools", "view", "-c", path] + [
        f"chr{1 + n % 4}:{100_000 * n + 1}-{100_000 * n + 20_000}" for n in range(0, 100)
    ]


PROGRAMS = {
    "hdf5": Program(make_hdf5, lambda path: [sys.executable, "-c", HDF5_READER, path], lacks_h5py),
    "nccopy": Program(
        make_netcdf,
        lambda path: ["nccopy", "-c", "y/2048,x/16", path, "/dev/shm/iosig-nccopy.nc"],
        lambda: lacks("nccopy")() or lacks_h5py(),
    ),
    "samtools": Program(make_bam, regions, lacks("samtools")),
    "shuffled": Program(make_records, lambda path: [sys.executable, "-c", LOADER, path], lacks()),
    "ordered": Program(
        make_records, lambda path: [sys.executable, "-c", LOADER, path], lacks(), options=order_of_loader
    ),
    "sqlite": Program(
        make_database,
        lambda path: ["sqlite3", path, "SELECT count(*), sum(length(note)) FROM run WHERE energy < 0.005"],
        lacks("sqlite3"),
    ),
}


def run_cold(words: list[str | Path], files: list[Path]) -> tuple[float, str]:
    for file in files:
        with file.open("rb") as opened:
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    begin = time.perf_counter()
    output = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return time.perf_counter() - begin, output


def measure(name: str, program: Program, directory: Path, runs: int) -> None:
    path = directory / name
    program.make(path)
    options = program.options(path)
    os.sync()
    files = [file for file in directory.iterdir() if file.is_file() and file.name.startswith(name)]
    words = program.words(path)
    with_prefetch = [BUILD / "bin" / "iosig", "run", "--prefetch", *options, "--", *words]
    times: dict[str, list[float]] = {"alone": [], "prefetch": []}
    outputs = set()
    for _ in range(runs):
        for way, command in (("alone", words), ("prefetch", with_prefetch)):
            took, output = run_cold(command, files)
            times[way].append(took * 1000)
            outputs.add(output)
    if len(outputs) != 1:
        raise SystemExit(f"{name}: the outputs differ: {outputs}")
    ratios = [with_ / without for with_, without in zip(times["prefetch"], times["alone"], strict=True)]
    half = 1.96 * statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else 0.0
    medians = "".join(f"{statistics.median(times[way]):10.0f}" for way in times)
    print(f"{name:10}{medians}   {statistics.mean(ratios):.3f} +- {half:.3f}", flush=True)
    for file in files:
        file.unlink()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("programs", nargs="*", metavar="PROGRAM", default=list(PROGRAMS))
    options.add_argument("--runs", type=int, default=15)
    options.add_argument("--latency-us", type=int, default=2000)
    given = options.parse_args()
    with slow_file(given.latency_us) as path:
        path.unlink()
        print(f"{'program':10}{'alone':>10}{'prefetch':>10}   prefetch / alone (ms)")
        for name in given.programs:
            if lacking := PROGRAMS[name].missing():
                print(f"{name:10}not measured: there is no {lacking}")
            else:
                measure(name, PROGRAMS[name], path.parent, given.runs)


if __name__ == "__main__":
    main()
