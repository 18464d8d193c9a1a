"""What MPI-IO on a container costs, through libiosig-preload.so: against the same program on a plain file.

    python bench/mpi_io.py [--directory /dev/shm /tmp] [--rounds 7] [--ranks 4] [--json FILE]

Ranks of Open MPI (OMPIO) write a file in turns, strided, each access a call of MPI_File_write_at, sync it, close it and
read it back. Plain file and container take turns within each round; the medians are compared. Times are from opening to
closing, and of the slowest rank in calls of MPI-IO alone. Traditional: one index entry for each write.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent / "build"
SIZES = {64: 50_000, 4096: 10_000}  # bytes of an access: accesses of each rank
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
MPIRUN = ["mpirun.openmpi", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "--mca", "io", "ompio"]


def run(path: Path, ranks: int, size: int, count: int, container: bool) -> dict[str, dict[str, float]]:
    """Seconds by phase, write and read: `elapsed_s`, and `in_calls_s`."""
    env = dict(os.environ, **AS_ROOT)
    before = []
    if container:
        before = ["env", f"LD_PRELOAD={BUILD}/lib/libiosig-preload.so", f"IOSIG_CONTAINERS={path}"]
    told = ["--size", size, "--count", count, "--write", "--read", "--sync", "--through", "mpiio", "--json"]
    words = [*MPIRUN, "-n", ranks, *before, BUILD / "bin/workloads_mpi", "run", "n1-strided", path, *told]
    done = subprocess.run([*map(str, words)], env=env, capture_output=True, text=True, check=True)
    return {phase["phase"]: phase for phase in json.loads(done.stdout)["phases"]}


def index_bytes(path: Path) -> int:
    listing = subprocess.run([BUILD / "bin/iosig", "container", "ls", "--json", path], capture_output=True, check=True)
    return sum(writer["index_bytes"] for writer in json.loads(listing.stdout)["writers"])


def measure(directory: Path, ranks: int, size: int, count: int, rounds: int) -> dict[str, object]:
    taken: dict[bool, list[dict[str, dict[str, float]]]] = {False: [], True: []}
    with tempfile.TemporaryDirectory(dir=directory) as work:
        for _ in range(rounds):
            for container in (False, True):
                path = Path(work) / "file"
                taken[container].append(run(path, ranks, size, count, container))
                index = index_bytes(path) if container else 0
                shutil.rmtree(path) if container else path.unlink()

    def ratio(phase: str, time: str) -> float:
        plain, made = ([one[phase][time] for one in taken[container]] for container in (False, True))
        return statistics.median(made) / statistics.median(plain)

    return {
        "directory": str(directory),
        "ranks": ranks,
        "access_bytes": size,
        "accesses": ranks * count,
        "plain_write_s": statistics.median(one["write"]["elapsed_s"] for one in taken[False]),
        "plain_read_s": statistics.median(one["read"]["elapsed_s"] for one in taken[False]),
        **{f"{phase}_{time[:-2]}_ratio": ratio(phase, time) for phase in ("write", "read")
           for time in ("elapsed_s", "in_calls_s")},
        "index_bytes": index,
        "traditional_index_bytes": 56 * ranks * count,
    }  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--directory", type=Path, nargs="+", default=[Path("/dev/shm"), Path("/tmp")])
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--ranks", type=int, default=4)
    options.add_argument("--json", type=Path)
    told = options.parse_args()
    print(f"container / plain file, {told.ranks} ranks on {os.cpu_count()} processors, medians of {told.rounds}")
    print("directory      access   write  in calls    read  in calls  index bytes  (traditional)")
    results = []
    for directory in told.directory:
        for size, count in SIZES.items():
            one = measure(directory, told.ranks, size, count, told.rounds)
            results.append(one)
            print(
                f"{one['directory']:10} {size:6} B"
                f"  {one['write_elapsed_ratio']:6.2f}  {one['write_in_calls_ratio']:8.2f}"
                f"  {one['read_elapsed_ratio']:6.2f}  {one['read_in_calls_ratio']:8.2f}  {one['index_bytes']:11}"
                f"  ({one['traditional_index_bytes']})",
                flush=True,
            )
    if told.json:
        told.json.write_text(json.dumps({"schema": "iosig.bench-mpi-io/1", "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
