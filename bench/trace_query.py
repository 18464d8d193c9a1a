"""What answers about a trace cost: of a million calls, and of 20 million by way of Parquet.

    .venv/bin/python bench/trace_query.py [--calls 20000000] [--rounds 3] [--directory /dev/shm] [--peer DIRECTORY]

The traced program writes and reads 64 bytes to 4 KiB at regular and random offsets of 16 files, in 4 threads. Wall
time, processor time and memory (the greatest resident set) are those of the whole command, its start included; of
queries also the time within a process that has the data set open. Medians of the rounds.

Peer: dftracer-utils, over a DFTracer log of the same million calls: pip install dftracer-utils==0.0.14 into an
environment of its own, --peer its bin directory. Its summary builds an index first, as it would for a new log.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

IOSIG = Path(__file__).resolve().parent.parent / "build" / "bin" / "iosig"
THREADS = 4
PROGRAM = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static long calls;
static void *work(void *number) {
  char bytes[4096] = {0}, name[32];
  int fds[4];
  uint64_t random = (uintptr_t)number + 1;
  for (int n = 0; n < 4; ++n) {
    snprintf(name, sizeof name, "file.%d", (int)(uintptr_t)number * 4 + n);
    fds[n] = open(name, O_RDWR | O_CREAT, 0666);
  }
  for (long n = 0; n < calls; ++n) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const size_t length = (size_t)64 << (random >> 40) % 7;
    if (n % 4 < 2)
      (void)!pwrite(fds[n % 4], bytes, 64, n % 65536 * 64);
    else
      (void)!pread(fds[n % 4 - 2], bytes, length, (off_t)(random >> 44) * 4);
  }
  return 0;
}
int main(int count, char **words) {
  pthread_t threads[4];
  calls = atol(words[count - 1]) / 4;
  for (uintptr_t n = 0; n < 4; ++n) pthread_create(&threads[n], 0, work, (void *)n);
  for (int n = 0; n < 4; ++n) pthread_join(threads[n], 0);
  return 0;
}
"""
FILTER = (
    "SELECT count(*), sum(result) FROM accesses WHERE call = 'pread' AND length = 4096 AND end_ns - start_ns > 2000"
)
GROUP = "SELECT path, call, count(*), sum(result), max(end_ns - start_ns) FROM accesses GROUP BY ALL"

ASK = """
import sys, time
from iosig.sql import Door
door = Door([sys.argv[1]])
list(door.rows("SELECT 1")[1])
begin = time.monotonic(), time.process_time()
list(door.rows(sys.argv[2])[1])
print([time.monotonic() - begin[0], time.process_time() - begin[1]])
"""


class Cost(NamedTuple):
    wall_s: float
    processor_s: float
    memory_mb: float

    def __str__(self) -> str:
        return f"{self.wall_s:7.2f} s  {self.processor_s:7.2f} processor s  {self.memory_mb:6.0f} MB"


def cost(command: list[str | Path]) -> Cost:
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command}: exit status {process.returncode}")
    return Cost(time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def median(measure: Callable[[], Cost], rounds: int) -> Cost:
    return Cost(*(statistics.median(column) for column in zip(*(measure() for _ in range(rounds)), strict=True)))


def traced(work: Path, calls: int) -> Path:
    (work / "calls.c").write_text(PROGRAM)
    program, trace = work / "calls", work / f"{calls}.trace"
    subprocess.run(["gcc", "-O2", "-o", program, work / "calls.c", "-lpthread"], check=True)
    subprocess.run([IOSIG, "trace", "-o", trace, "--", program, str(calls)], check=True, cwd=work, capture_output=True)
    size = sum(file.stat().st_size for file in trace.iterdir())
    print(f"{calls} calls of {THREADS} threads: {size / 2**20:.0f} MB of trace; load {os.getloadavg()[0]:.1f}")
    return trace


def asked(data_set: Path, sql: str) -> tuple[float, float]:
    """Wall and processor seconds of a query in a process that has begun already, and has asked something before."""
    told = subprocess.run([sys.executable, "-c", ASK, data_set, sql], check=True, capture_output=True).stdout
    wall_s, processor_s = json.loads(told)
    return wall_s, processor_s


def dftracer_log(trace: Path, log: Path) -> None:
    """Writes the calls as DFTracer 2 logs them: names of files once, times in microseconds."""
    numbers: dict[str, str] = {}
    with subprocess.Popen([IOSIG, "export", trace], stdout=subprocess.PIPE, text=True) as export:
        assert export.stdout is not None
        with gzip.open(log, "wt", compresslevel=1) as out:
            out.write("[\n")
            for row in csv.DictReader(export.stdout):
                event = {"pid": int(row["pid"]), "tid": int(row["tid"])}
                if row["path"] not in numbers:
                    numbers[row["path"]] = f"{len(numbers):016x}"
                    named = {"name": row["path"], "value": numbers[row["path"]]}
                    out.write(json.dumps({"name": "FH", "cat": "dftracer", **event, "ph": "M", "args": named}) + "\n")
                start_us, end_us = int(row["start_ns"]) // 1000, int(row["end_ns"] or row["start_ns"]) // 1000
                event |= {"ts": 1_700_000_000_000_000 + start_us, "dur": end_us - start_us}
                args = {"fhash": numbers[row["path"]], "offset": row["offset"], "ret": row["result"]}
                out.write(json.dumps({"name": row["call"], "cat": "POSIX", **event, "ph": "X", "args": args}) + "\n")
            out.write("]\n")


def peer(programs: Path, trace: Path, work: Path, rounds: int) -> None:
    logs = work / "logs"
    logs.mkdir()
    dftracer_log(trace, logs / "calls.pfw.gz")
    stats: list[str | Path] = [programs / "dftracer_stats", "-d", logs, "--index-dir", logs, "--log-level", "error"]

    def summary() -> Cost:
        shutil.rmtree(logs / ".dftindex", ignore_errors=True)
        return cost(stats)

    print(f"  {'dftracer-utils, summary':28} {median(summary, rounds)}", flush=True)
    grouped = [*stats, "--report", "detailed", "--group-by", "name"]
    print(f"  {'dftracer-utils, grouped':28} {median(lambda: cost(grouped), rounds)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", type=Path, default=Path("/dev/shm"))
    parser.add_argument("--peer", type=Path)
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(dir=options.directory, prefix="iosig-bench-"))
    try:
        million = traced(work, 1_000_000)
        to_table = "import iosig.trace, sys; assert iosig.trace.open(sys.argv[1]).table().num_rows >= 10**6"
        for name, command in (
            ("trace info", [IOSIG, "trace", "info", million]),
            ("query calls", [IOSIG, "query", "calls", million]),
            ("query sql, grouped", [IOSIG, "query", "sql", GROUP, million]),
            ("Arrow table", [sys.executable, "-c", to_table, million]),
        ):
            print(f"  {name:28} {median(lambda c=command: cost(c), options.rounds)}", flush=True)
        if options.peer:
            peer(options.peer, million, work, options.rounds)
        many, data_set = traced(work, options.calls), work / "many.parquet"
        written = cost([IOSIG, "export", "--format", "parquet", many, "-o", data_set])
        size = sum(file.stat().st_size for file in data_set.rglob("*.*"))
        print(f"  {'export to Parquet':28} {written}  ({size / 2**20:.0f} MB)", flush=True)
        for name, sql in (("filter", FILTER), ("group-by", GROUP)):
            whole = median(lambda s=sql: cost([IOSIG, "query", "sql", s, data_set]), options.rounds)
            alone = [
                statistics.median(each)
                for each in zip(*(asked(data_set, sql) for _ in range(options.rounds)), strict=True)
            ]
            print(f"  {name + ' on Parquet':28} {whole}  (query alone {alone[0]:.2f} s, {alone[1]:.2f} s)", flush=True)
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
