"""What `iosig mount` costs: bandwidth and processor time of dd through it, against the same without it.

    python bench/mount.py [--directory /dev/shm] [--rounds 5] [--json FILE]

Doors to the same directory: direct; through the mount, ordinary files; through the mount, containers; through a mount
with --trace, ordinary files; through libfuse's own example passthrough_ll, if libfuse3-dev brings its source. They take
turns within each round, and the best of each counts. Reads are first from the daemon (the kernel is asked to drop what
it has), then from the kernel's cache. Processor time is dd's and the daemon's together.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

IOSIG = Path(__file__).resolve().parent.parent / "build" / "bin" / "iosig"
EXAMPLE = Path("/usr/share/doc/libfuse3-dev/examples/passthrough_ll.c")
SIZES = {4 << 10: 32 << 20, 1 << 20: 256 << 20}  # bytes of a request: of the file
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def daemon_cpu_s(pid: int | None) -> float:
    if pid is None:
        return 0
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Door:
    def __init__(self, name: str, directory: Path, file: str, pid: int | None) -> None:
        self.name, self.path, self.pid = name, directory / file, pid

    def timed(self, *dd: str) -> tuple[float, float]:
        """Seconds, and seconds of processors, of `dd` and the daemon."""
        cpu_s, begin_s = children_cpu_s() + daemon_cpu_s(self.pid), time.monotonic()
        subprocess.run(["dd", "status=none", *dd], check=True)
        took_s = time.monotonic() - begin_s
        return took_s, children_cpu_s() + daemon_cpu_s(self.pid) - cpu_s

    def write(self, request: int, total: int) -> tuple[float, float]:
        self.path.unlink(missing_ok=True)
        return self.timed("if=/dev/zero", f"of={self.path}", f"bs={request}", f"count={total // request}")

    def read(self, request: int, total: int) -> tuple[float, float]:
        with self.path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return self.read_again(request, total)

    def read_again(self, request: int, total: int) -> tuple[float, float]:
        return self.timed(f"if={self.path}", "of=/dev/null", f"bs={request}")


def mount(source: Path, mounted: Path, *options: str) -> int:
    """Returns the daemon's number."""
    command = [str(IOSIG), "mount", str(source), str(mounted), *options, "--json"]
    return int(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["pid"])


def start_example(work: Path, source: Path, mounted: Path) -> subprocess.Popen[bytes] | None:
    """libfuse's example, built as its package says; None where it is not there."""
    if not EXAMPLE.exists():
        return None
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True, check=True)
    program = work / "passthrough_ll"
    command = ["gcc", "-O2", "-w", f"-I{EXAMPLE.parent}", str(EXAMPLE), "-o", str(program), *flags.stdout.split()]
    if subprocess.run(command, check=False).returncode != 0:
        return None
    daemon = subprocess.Popen([str(program), "-f", "-o", f"source={source}", str(mounted)])
    while not os.path.ismount(mounted):
        time.sleep(0.01)
    return daemon


def measure(doors: list[Door], rounds: int) -> list[dict[str, object]]:
    acts: dict[str, Callable[[Door, int, int], tuple[float, float]]] = {
        "write": Door.write,
        "read": Door.read,
        "read again": Door.read_again,
    }
    taken: dict[tuple[str, int, str], list[tuple[float, float]]] = {}
    for _ in range(rounds):
        for request, total in SIZES.items():
            for door in doors:
                for act, run in acts.items():
                    taken.setdefault((act, request, door.name), []).append(run(door, request, total))
    return [
        {
            "act": act,
            "request_bytes": request,
            "door": door,
            "bytes_per_s": SIZES[request] / min(took_s for took_s, _ in samples),
            "cpu_per_request_s": min(cpu_s for _, cpu_s in samples) * request / SIZES[request],
        }
        for (act, request, door), samples in taken.items()
    ]


def table(rows: list[dict[str, object]]) -> str:
    doors = list(dict.fromkeys(str(row["door"]) for row in rows))
    lines = [
        "| MB/s; us of processors per request | " + " | ".join(doors) + " |",
        "|---|" + "---|" * len(doors),
    ]
    for act, request in dict.fromkeys((row["act"], row["request_bytes"]) for row in rows):
        cells = [
            f"{float(str(row['bytes_per_s'])) / 1e6:.0f}; {float(str(row['cpu_per_request_s'])) * 1e6:.1f}"
            for row in rows
            if (row["act"], row["request_bytes"]) == (act, request)
        ]
        size = "4 KB" if request == 4 << 10 else "1 MB"
        lines.append(f"| {act}, {size} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--directory", type=Path, default=Path("/dev/shm"), help="below which the files are put")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write the rows there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as name:
        work = Path(name)
        source, mounted, traced, peer = work / "source", work / "mounted", work / "traced", work / "peer"
        for directory in (source, mounted, traced, peer):
            directory.mkdir()
        example = None
        try:
            pid = mount(source, mounted, "--containers", "*.c")
            traced_pid = mount(source, traced, "--trace", str(work / "trace"))
            doors = [
                Door("direct", source, "direct", None),
                Door("mount, files", mounted, "file", pid),
                Door("mount, containers", mounted, "file.c", pid),
                Door("mount --trace, files", traced, "traced", traced_pid),
            ]
            example = start_example(work, source, peer)
            if example is not None:
                doors.append(Door("passthrough_ll", peer, "peer", example.pid))
            rows = measure(doors, options.rounds)
        finally:
            for directory in (mounted, traced, peer):
                subprocess.run(["umount", "-l", str(directory)], check=False, stderr=subprocess.DEVNULL)
            if example is not None:
                example.wait(10)
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps({"schema": "iosig.mount-bench/1", "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
