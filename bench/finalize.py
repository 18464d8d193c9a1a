"""What bringing data home costs: `iosig finalize` against `cp` and `sync` of the same bytes.

    python bench/finalize.py --fast DIRECTORY --home DIRECTORY [--gigabytes 2] [--rounds 5] [--json FILE]

The directories must lie on different file systems. The data are written to the fast one through a prepared link, and
come home; they are in the page cache, as after a job. Each way of verifying takes its turn with `cp` + `sync FILE`
within each round. Wall time, medians; the ratio is the median of each round's.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

IOSIG = Path(__file__).resolve().parent.parent / "build" / "bin" / "iosig"
COPIED_BYTES = 4 << 20


def write(path: Path, total: int) -> None:
    piece = os.urandom(COPIED_BYTES)
    with path.open("wb") as file:
        for at in range(0, total, COPIED_BYTES):
            file.write(at.to_bytes(8, "little") + piece[8:])


class Bench:
    def __init__(self, fast: Path, home: Path, total: int) -> None:
        self.fast, self.home, self.total = fast, home, total
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
        subprocess.run(
            [IOSIG, "prepare", path, "sequential"], env=self.environment, check=True, stdout=subprocess.DEVNULL
        )
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


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--fast", type=Path, required=True)
    arguments.add_argument("--home", type=Path, required=True)
    arguments.add_argument("--gigabytes", type=float, default=2)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--json", type=Path)
    given = arguments.parse_args()
    ways = [("--verify", way) for way in ("none", "copy", "full")]
    with tempfile.TemporaryDirectory(dir=given.fast) as fast, tempfile.TemporaryDirectory(dir=given.home) as home:
        bench = Bench(Path(fast), Path(home), int(given.gigabytes * (1 << 30)))
        rounds = []
        for _ in range(given.rounds):
            rounds.append({"cp + sync": bench.copy_s()} | {" ".join(way): bench.finalize_s(*way) for way in ways})
            print("  ".join(f"{name} {took_s:.2f} s" for name, took_s in rounds[-1].items()), flush=True)
    for name in rounds[0]:
        times = [each[name] for each in rounds]
        ratio = statistics.median(each[name] / each["cp + sync"] for each in rounds)
        shown = f"{name:16} {statistics.median(times):6.2f} s  {ratio:.2f} x cp + sync"
        print(f"{shown}  ({min(times):.2f} to {max(times):.2f} s)")
    if given.json:
        given.json.write_text(json.dumps(rounds, indent=2))


if __name__ == "__main__":
    main()
