"""Real clients over throttled disks against the simulator: how far iosig.striping.simulate is from what happens.

A server is a thread with a queue, first in, first out, that reads a file on one of the lab's targets with O_DIRECT. A
client is a thread that sends its next request when all parts of the last one have come. First the
bench measures each target alone; the simulator gets these figures, and no network, since there is none between threads.

    lab/lab up --only hdd1,hdd2,ssd1 --targets 2x1 --size 256
    chrt -r 1 .venv/bin/python bench/striped_clients.py --hdd /mnt/iosig-lab/hdd? --ssd /mnt/iosig-lab/ssd?

Without a real-time priority, other programs on a busy machine change what it measures by a factor of 2 and more.
"""

from __future__ import annotations

import argparse
import mmap
import os
import queue
import statistics
import threading
import time
from pathlib import Path

import numpy as np

from iosig.striping import ServerClass, Servers, simulate

KB, MB = 1 << 10, 1 << 20
FILE_BYTES = 96 * MB
REGION = 16 * MB
BLOCK = 4 * KB


class Target:
    """A file on one mount point, which a thread serves part by part."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "striped-clients.data"
        with self.path.open("wb") as data:
            for _ in range(FILE_BYTES // MB):
                data.write(os.urandom(MB))
            data.flush()
            os.fsync(data.fileno())
        self.fd = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
        self.buffer = mmap.mmap(-1, 4 * MB)
        self.parts: queue.SimpleQueue[tuple[int, int, threading.Semaphore] | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def read(self, offset: int, length: int) -> None:
        at = offset % (FILE_BYTES - 4 * MB) // BLOCK * BLOCK
        size = -(-length // BLOCK) * BLOCK
        assert os.preadv(self.fd, [memoryview(self.buffer)[:size]], at) == size

    def serve(self) -> None:
        while (part := self.parts.get()) is not None:
            self.read(part[0], part[1])
            part[2].release()

    def end(self) -> None:
        self.parts.put(None)
        self.thread.join()
        os.close(self.fd)
        self.path.unlink()


def alone(targets: list[Target], rng: np.random.Generator, count: int = 24) -> tuple[float, float]:
    """Start-up and bytes per second of equal targets: a line through the medians of small and of large random reads."""
    medians = []
    for size in (4 * KB, MB):
        times = []
        for n in range(count):
            offset = int(rng.integers(FILE_BYTES))
            begin = time.perf_counter()
            targets[n % len(targets)].read(offset, size)
            times.append(time.perf_counter() - begin)
        medians.append(statistics.median(times))
    s_per_byte = max(1e-12, (medians[1] - medians[0]) / (MB - 4 * KB))
    return max(0.0, medians[0] - 4 * KB * s_per_byte), 1 / s_per_byte


def parts_of(stripes: list[int], counts: list[int], region: int, offset: int, length: int) -> dict[int, int]:
    """The bytes of each server, as the simulator's layouts split them."""
    order = []
    first = 0
    for size, count in zip(stripes, counts, strict=True):
        order += [(first + (region + turn) % count, size) for turn in range(count) if size]
        first += count
    period = sum(size for _, size in order)
    found: dict[int, int] = {}
    while length > 0:
        at = offset % period
        for server, size in order:
            if at < size:
                taken = min(length, size - at)
                found[server] = found.get(server, 0) + taken
                offset, length = offset + taken, length - taken
                break
            at -= size
    return found


def run(
    targets: list[Target], counts: list[int], rows: np.ndarray, clients: int, offsets: np.ndarray, size: int
) -> float:
    """Seconds that real clients take."""

    def client(number: int) -> None:
        came = threading.Semaphore(0)
        for offset in offsets[number::clients]:
            region = int(offset) // REGION
            parts = parts_of([int(s) for s in rows[region]], counts, region, int(offset) % REGION, size)
            for server, length in parts.items():
                targets[server].parts.put((int(offset), length, came))
            for _ in parts:
                came.acquire()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hdd", type=Path, nargs="+", required=True)
    parser.add_argument("--ssd", type=Path, nargs="+", required=True)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--requests", type=int, default=160)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    rng = np.random.default_rng(1)
    hdd, ssd = [Target(path) for path in given.hdd], [Target(path) for path in given.ssd]
    targets, counts = hdd + ssd, [len(hdd), len(ssd)]
    try:
        speeds = [alone(kind, rng) for kind in (hdd, ssd)]
        classes = [
            ServerClass(name, len(kind), speed, speed)
            for name, kind, speed in zip(("hdd", "ssd"), (hdd, ssd), speeds, strict=True)
        ]
        for kind in classes:
            print(f"{kind.count} {kind.name}: start-up {1e3 * kind.read[0]:.2f} ms, {kind.read[1] / MB:.0f} MB/s")
        servers = Servers(classes, network=(0.0, 1e12), processes=given.clients)
        regions = 8
        layouts = {
            "64 KB on all": np.tile([64 * KB, 64 * KB], (regions, 1)),
            "1 MB on hdd": np.tile([MB, 0], (regions, 1)),
            "one region of two on ssd": np.array([[MB, 0], [0, MB]] * (regions // 2)),
            "all on ssd": np.tile([0, MB], (regions, 1)),
        }
        print("request  layout                      simulated   measured  measured / simulated")
        for size in (64 * KB, 512 * KB):
            offsets = rng.integers(regions * REGION // size, size=given.requests) * size
            for name, rows in layouts.items():
                told = simulate(
                    servers,
                    rows,
                    offsets,
                    size,
                    processes=np.arange(given.requests) % given.clients,
                    region_bytes=REGION,
                )
                took = [run(targets, counts, rows, given.clients, offsets, size) for _ in range(given.repeats)]
                middle = statistics.median(took)
                print(
                    f"{size // KB:>4} KB  {name:<26} {told.seconds:>8.2f} s {middle:>8.2f} s"
                    f"  {middle / told.seconds:.2f} ({min(took) / told.seconds:.2f} to {max(took) / told.seconds:.2f})"
                )
    finally:
        for target in targets:
            target.end()


if __name__ == "__main__":
    main()
