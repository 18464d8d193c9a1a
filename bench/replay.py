"""What processes pay for writing one file together: a container, one with an entry for each write, a shared file.

    python bench/replay.py [--rounds 5] [--disk DIRECTORY] [--bytes 134217728]

8 and 64 processes, strided, 64 bytes and 4 KB at a time, on tmpfs and, synced, on a disk. The three take turns within
each round. A number is the median of the rounds; ratios are medians of each round's, against the shared file. Every
byte is checked, in a round of its own.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median
from typing import Any

from iosig.repro.replays import FORMS, MEMORY, PLAIN, Job, replayed

MB = 1 << 20


def round_of(job: Job, directory: Path, synced: bool) -> dict[str, dict[str, float]]:
    """By form: what one round measured."""
    found = {}
    for form in FORMS:
        answer = replayed(job, form, directory, "--read", *(["--sync"] if synced else []))
        write, read, index = answer["write"], answer["read"], answer.get("index", {})
        found[form] = {
            "write_mb_per_s": job.bytes / MB / (write["write_s"] + write["sync_s"] + write["close_s"]),
            "write_ns": write["cpu_ns_per_write"],
            "open_ms": 1e3 * index.get("open_s", 0),
            "index_bytes": index.get("bytes", 0),
            "memory_bytes": index.get("memory_bytes", 0),
            "read_mb_per_s": job.bytes / MB / (read["open_s"] + read["read_s"]),
            "read_ns": read["cpu_ns_per_read"],
        }
    return found


def wrong_bytes(job: Job, directory: Path) -> dict[str, tuple[int, float]]:
    """By form: wrong bytes, and MB/s of one process from the first byte to the last."""
    found: dict[str, tuple[int, float]] = {}
    for form in FORMS:
        check: Any = replayed(job, form, directory, "--check")["check"]
        found[form] = check["wrong_bytes"], check["bytes_per_s"] / MB
    return found


def cells_of(rounds: list[dict[str, float]], shared: list[dict[str, float]]) -> list[str]:
    """In the order of the table's heads; `shared`: the same rounds of the shared file."""

    def middle(name: str) -> float:
        return median(one[name] for one in rounds)

    def ratio(name: str) -> float:
        return median(one[name] / other[name] for one, other in zip(rounds, shared, strict=True))

    more_ns = median(one["write_ns"] - other["write_ns"] for one, other in zip(rounds, shared, strict=True))
    return [
        f"{middle('write_mb_per_s'):.0f}",
        f"{ratio('write_mb_per_s'):.2f}",
        f"{middle('write_ns'):.0f}",
        f"{more_ns:+.0f}",
        f"{middle('read_mb_per_s'):.0f}",
        f"{ratio('read_mb_per_s'):.2f}",
        f"{middle('read_ns'):.0f}",
        f"{middle('open_ms'):.3f}",
        f"{middle('index_bytes'):.0f}",
        f"{middle('memory_bytes'):.0f}",
    ]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--disk", type=Path, default=Path("/var/tmp"))
    arguments.add_argument("--bytes", type=int, default=128 * MB, help="of a file; an eighth of it in pieces of 64")
    told = arguments.parse_args()
    heads = ("write MB/s", "ratio", "ns", "more ns", "read MB/s", "ratio", "ns", "open ms", "index B", "memory B")
    print(" | ".join(["place", "processes", "bytes", "form", *heads, "sequential MB/s", "wrong"]))
    for place, directory in {"tmpfs": MEMORY, "disk": told.disk}.items():
        for ranks in (8, 64):
            for size in (64, 4096):
                total = told.bytes // (8 if size < 4096 else 1)
                job = Job(ranks, total // size // ranks, size)
                rounds = [round_of(job, directory, place == "disk") for _ in range(told.rounds)]
                checked = wrong_bytes(job, directory)
                for form in FORMS:
                    cells = cells_of([one[form] for one in rounds], [one[PLAIN] for one in rounds])
                    wrong, rate = checked[form]
                    print(
                        " | ".join([place, str(ranks), str(size), form, *cells, f"{rate:.0f}", str(wrong)]), flush=True
                    )


if __name__ == "__main__":
    main()
