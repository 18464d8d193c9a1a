"""The main job of IOSIG on this machine, end to end (`make demo`; FULL=1 for the paper's size).

1. Measures this machine's storage.
2. The paper's picture program, annotated: posterize, divide and shuffle with the default destination and with the
   parameter sets ps1..ps4, whose pragmas libiosig turns into a mount point when the output is opened. By the paper's
   policy (throughput alone) and, where they differ, by that of the whole job, which includes bringing the output home.
3. GNU sort, which nobody annotated: its temporary directory and its output are placed from the command line.

Each run's output is compared with the default run's byte for byte, before and after `iosig finalize`. Writes demo.json,
demo.png and demo.html to demo/; needs the built tree and .venv; leaves nothing else behind.
"""

from __future__ import annotations

import argparse
import contextlib
import filecmp
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import iosig
from iosig.figures import bytes_label

ROOT = Path(__file__).resolve().parent.parent
IOSIG = ROOT / "build" / "bin" / "iosig"
DEMO = ROOT / "demo"
SCRATCH = DEMO / "scratch"
STORAGE = DEMO / "storage.toml"
# Its own description and journal: the user's are neither read nor changed.
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("IOSIG_")} | {
    "IOSIG_STORAGE": str(STORAGE),
    "IOSIG_STATE": str(SCRATCH / "state"),
    "LC_ALL": "C",
}

TASKS = {"posterize": "sequential", "divide": "random", "shuffle": "random"}
OWN_CHOICE = "the program's own choice"
Policy = Literal["job", "paper"]
JOB: Policy = "job"
PAPER: Policy = "paper"
PARAMETER_SETS = {"ps1": "global", "ps2": "MTTDL(20y)", "ps3": "persist", "ps4": ""}  # Fig. 10 of the paper


@dataclass(frozen=True)
class Sizes:
    side_pixels: int
    sort_bytes: int
    chunk_bytes: int = 512 << 10
    rounds: int = 6  # the first warms up and is not counted

    @property
    def picture_bytes(self) -> int:
        return self.side_pixels * self.side_pixels

    @property
    def sort_buffer_bytes(self) -> int:
        return self.sort_bytes // 6


@dataclass
class Run:
    """One row of the table: medians over the repetitions. The speed-ups are over the default run of the same task."""

    task: str
    parameters: str
    policy: str
    signature: str
    mount_point: str
    redirected: bool
    why: str
    predicted_bytes_per_s: float | None
    total_bytes: int
    run_s: float
    finalize_s: float = 0.0
    bytes_per_s: float = 0.0
    speedup: float = 1.0
    speedup_with_finalize: float = 1.0

    def compare_with(self, default: Run) -> None:
        self.bytes_per_s = self.total_bytes / self.run_s
        self.speedup = default.run_s / self.run_s
        self.speedup_with_finalize = default.run_s / (self.run_s + self.finalize_s)


class DemoError(Exception):
    """Something the demo asserts is not so, or a program that it runs refused."""


def run(*command: object, accept: tuple[int, ...] = (0,), policy: str = JOB) -> str:
    environment = ENVIRONMENT | {"IOSIG_POLICY": policy}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment)
    if done.returncode not in accept:
        shown = " ".join(map(str, command))
        raise DemoError(f"{shown}\n  ended with status {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def timed(*command: object) -> float:
    begin_s = time.perf_counter()
    run(*command)
    return time.perf_counter() - begin_s


@dataclass(frozen=True)
class Variant:
    """One way to run the picture program."""

    name: str  # of the parameter set, or "default"
    policy: Policy | None = None

    @property
    def label(self) -> str:
        return f"{self.name}-{self.policy}" if self.policy else self.name


DEFAULT = Variant("default")
# ps1 and ps2 exclude memory, so the policies can differ only where a persistent mount point is faster than home.
VARIANTS = [DEFAULT, *(Variant(name, PAPER) for name in PARAMETER_SETS), Variant("ps3", JOB), Variant("ps4", JOB)]


def rotated(variants: list[Variant], by: int) -> list[Variant]:
    """A different one first in each round; the reference needs `default` in the first."""
    by %= len(variants)
    return variants[by:] + variants[:by]


def say(text: str) -> None:
    print(text, flush=True)


def same(output: Path, reference: Path, when: str) -> None:
    if not filecmp.cmp(output, reference, shallow=False):
        raise DemoError(f"{output.name} differs from {reference.name} {when}")


def default_mount(storage: iosig.Storage) -> str | None:
    """The described mount point whose file system holds the scratch directory."""
    here = SCRATCH.stat().st_dev
    for mount in storage.mount_points:
        with contextlib.suppress(OSError):
            if Path(mount.path).stat().st_dev == here:
                return mount.path
    return None


def choose(signature: str, storage: iosig.Storage, home: str | None, policy: Policy = JOB) -> tuple[str | None, str]:
    """The mount point that the core chooses for a file at `home`, and its reason in one line."""
    choice = iosig.choose(signature, storage, policy=policy, home=home)
    if choice["chosen"] is None:
        reasons = {reason for candidate in choice["candidates"] for reason in candidate["reasons"]}
        return None, "no mount point is admissible, so it stays where it is: " + "; ".join(sorted(reasons))
    best = choice["candidates"][0]
    by = "fastest admissible" if policy == PAPER else "least time until the data are home"
    excluded = [f"{c['mount_point']} {'; '.join(c['reasons'])}" for c in choice["candidates"] if not c["admissible"]]
    why = by + (f", limited by {best['limit']}" if best["limit"] else "")
    if choice["chosen"] == home:
        why = "the best is where it is already"
    return choice["chosen"], why + (f" (excluded: {', '.join(excluded)})" if excluded else "")


def finalize(path: Path) -> float:
    """Settles `path` and returns the seconds that took; nothing to do is fine."""
    return timed(IOSIG, "finalize", path)


def landing(output: Path, storage: iosig.Storage, home: str | None) -> tuple[str, bool]:
    """The mount point that `output` really lies on, and whether a link led there."""
    if not output.is_symlink():
        return home or str(SCRATCH), False
    target = str(output.readlink())
    mounts = [mount.path for mount in storage.mount_points if target.startswith(mount.path.rstrip("/") + "/")]
    if not mounts:
        raise DemoError(f"{output} leads to {target}, which is on no described mount point")
    return max(mounts, key=len), True


def build_pictures(sizes: Sizes) -> dict[str, Path]:
    """The program as any compiler builds it, and once for each parameter set with the plugin."""
    source = ROOT / "examples" / "pgm" / "pgm.c"
    flags = ["-std=c17", "-O2", f"-DCHUNK={bytes_label(sizes.chunk_bytes)}"]
    flags += [f"-DTOTAL={bytes_label(sizes.picture_bytes)}"]
    compiler = "/usr/bin/gcc"
    programs = {name: SCRATCH / f"pgm-{name}" for name in ("default", *PARAMETER_SETS)}
    run(compiler, *flags, "-Wno-unknown-pragmas", source, "-o", programs["default"])
    for name in PARAMETER_SETS:
        run(IOSIG, "cc", "--", compiler, *flags, f"-DSIGNATURE={name}", source, "-o", programs[name])
    return programs


def run_picture(task: str, programs: dict[str, Path], sizes: Sizes, storage: iosig.Storage) -> list[Run]:
    """One transformation under the default and under every parameter set, taking turns so that drifts hit all alike."""
    picture, reference = SCRATCH / "in.pgm", SCRATCH / f"{task}-reference.pgm"
    home = default_mount(storage)
    seconds: dict[Variant, list[float]] = {variant: [] for variant in VARIANTS}
    settling: dict[Variant, list[float]] = {variant: [] for variant in VARIANTS}
    landed: dict[Variant, tuple[str, bool]] = {}
    for round_ in range(sizes.rounds):
        for variant in rotated(VARIANTS, round_):
            output = SCRATCH / f"{task}-{variant.label}.pgm"
            told = json.loads(
                run(programs[variant.name], task, picture, output, "--json", policy=variant.policy or JOB)
            )
            if round_ > 0:
                seconds[variant].append(told["writing_s"])
            landed[variant] = landing(output, storage, home)
            if variant == DEFAULT:
                if round_ == 0:
                    output.rename(reference)
                else:
                    same(output, reference, "after the run")
                    output.unlink()
                continue
            same(output, reference, "after the run")
            settling[variant].append(finalize(output))
            if output.is_symlink():
                raise DemoError(f"{output} is still a link after finalize")
            same(output, reference, "after finalize")
            output.unlink()
    reference.unlink()

    description = f"{TASKS[task]} size-per-IO({sizes.chunk_bytes}) totalsize({sizes.picture_bytes})"
    runs = []
    for variant in VARIANTS:
        # A pragma that does not say home may rest, so its choice does not pay for the way home; the table does.
        signature = iosig.parse_signature(f"{PARAMETER_SETS.get(variant.name, '')} {description} rest")
        chosen, why = (home, OWN_CHOICE)
        if variant != DEFAULT:
            chosen, why = choose(signature, storage, home, variant.policy or JOB)
        mount, redirected = landed[variant]
        if mount != (chosen or home or str(SCRATCH)):
            raise DemoError(f"{task} with {variant.label} landed on {mount}, but {chosen} was chosen")
        predicted = iosig.predict(signature, storage, mount)["throughput_bytes_per_s"] if chosen or home else None
        run_s = statistics.median(seconds[variant])
        settle_s = statistics.median(settling[variant]) if redirected else 0.0
        placed = (signature, mount, redirected, why, predicted, sizes.picture_bytes)
        runs.append(Run(task, variant.name, variant.policy or "", *placed, run_s, settle_s))
    return runs


def write_text(path: Path, size_bytes: int) -> None:
    """Lines of hexadecimal noise, the same in every demo."""
    noise = random.Random(1)
    with path.open("w") as out:
        while out.tell() < size_bytes:
            block = noise.randbytes(1 << 20).hex()
            out.write("\n".join(block[i : i + 60] for i in range(0, len(block), 60)) + "\n")


def run_sort(sizes: Sizes, storage: iosig.Storage) -> list[Run]:
    """GNU sort with an input that does not fit into its buffer, as it is and with its streams placed.

    Both are timed from the start until the sorted bytes are synced where the run put them.
    """
    text, output, reference = SCRATCH / "text", SCRATCH / "sorted", SCRATCH / "sorted-reference"
    temporary = SCRATCH / "tmp"
    temporary.mkdir()
    write_text(text, sizes.sort_bytes)
    home = default_mount(storage)
    described = f"sequential size-per-IO(4KB) totalsize({sizes.sort_bytes})"
    temp_signature, out_signature = iosig.parse_signature(f"temp {described}"), iosig.parse_signature(described)
    sort = ["sort", "-S", f"{sizes.sort_buffer_bytes}b", "--parallel=1"]
    plain_s, placed_s, settle_s = [], [], []
    landed = (home or str(SCRATCH), False)
    for round_ in range(sizes.rounds):
        as_it_is = timed(*sort, "-T", temporary, "-o", reference, text) + timed("sync", reference)

        directory = Path(run(IOSIG, "choose", "--make-folder", temp_signature, accept=(0, 1)).strip() or temporary)
        run(IOSIG, "prepare", output, out_signature, accept=(0, 1))
        placed = timed(*sort, "-T", directory, "-o", output, text) + timed("sync", output)
        landed = landing(output, storage, home)
        same(output, reference, "after the run")
        settled = finalize(output)
        same(output, reference, "after finalize")
        if directory != temporary:
            finalize(directory)
        output.unlink()
        if round_ > 0:
            plain_s.append(as_it_is)
            placed_s.append(placed)
            settle_s.append(settled)
    mount, redirected = landed
    temp_mount, temp_why = choose(temp_signature, storage, home)
    why = f"output: {choose(out_signature, storage, home)[1]}; temporary files on {temp_mount or home}: {temp_why}"
    signatures = f"output: {out_signature}; temporary files: {temp_signature}"
    median = statistics.median
    finalize_s = median(settle_s) if redirected else 0.0
    return [
        Run("sort", "default", "", "", home or mount, False, OWN_CHOICE, None, sizes.sort_bytes, median(plain_s)),
        Run("sort", "placed", JOB, signatures, *landed, why, None, sizes.sort_bytes, median(placed_s), finalize_s),
    ]


def table(runs: list[Run]) -> str:
    rows = [("run", "parameters", "policy", "mount point", "predicted", "measured", "program", "finalize", "whole job")]
    for row in runs:
        predicted = f"{row.predicted_bytes_per_s / 2**20:.0f} MB/s" if row.predicted_bytes_per_s else "-"
        settled = f"{row.finalize_s:.2f} s" if row.redirected else "-"
        place = row.mount_point if row.redirected or row.parameters == "default" else f"{row.mount_point} (stays)"
        overall = f"{row.speedup_with_finalize:.2f}"
        rates = (predicted, f"{row.bytes_per_s / 2**20:.0f} MB/s", f"{row.speedup:.2f}", settled, overall)
        rows.append((row.task, row.parameters, row.policy or "-", place, *rates))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for cells in rows:
        left = [cell.ljust(width) for cell, width in zip(cells[:4], widths[:4], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(cells[4:], widths[4:], strict=True)]
        lines.append("  ".join(left + right))
    return "\n".join(lines)


def reasons(runs: list[Run]) -> str:
    """Each placement's reason once: it is the same for runs that differ in nothing that counts."""
    seen: dict[str, list[str]] = {}
    for row in runs:
        if row.parameters != "default":
            seen.setdefault(row.why, []).append(
                f"{row.task}/{row.parameters}" + (f" ({row.policy})" if row.policy else "")
            )
    return "\n".join(f"  {', '.join(names)}: {why}" for why, names in seen.items())


def write_results(runs: list[Run], sizes: Sizes) -> list[str]:
    document: dict[str, Any] = {"schema": "iosig.demo/2", **asdict(sizes), "runs": [asdict(row) for row in runs]}
    (DEMO / "demo.json").write_text(json.dumps(document, indent=2) + "\n")
    drawn = run(Path(sys.executable).with_name("iosig-plot"), "demo", DEMO / "demo.json", "--output", DEMO)
    return ["demo.json", *(Path(line).name for line in drawn.split())]


@contextlib.contextmanager
def scratch() -> Iterator[None]:
    """A fresh scratch directory; at the end, whatever happened, nothing of the demo stays redirected."""
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    try:
        yield
    finally:
        run(IOSIG, "finalize", "--all", "--drop-orphans", accept=(0, 1))
        shutil.rmtree(SCRATCH)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--full", action="store_true", help="a picture of 1 GB and a sort of 1 GB")
    sizes = Sizes(32768, 1 << 30) if parser.parse_args().full else Sizes(8192, 96 << 20)
    begin_s = time.perf_counter()
    with scratch():
        say("1/4 measuring this machine's storage (iosig storage probe --quick)")
        STORAGE.unlink(missing_ok=True)
        run(IOSIG, "storage", "probe", "--quick", "--output", STORAGE)
        storage = iosig.read_storage(str(STORAGE))
        say(run(IOSIG, "storage", "list").rstrip())
        say("2/4 compiling pgm: once plain, and with the plugin for ps1..ps4 (iosig cc -- gcc)")
        programs = build_pictures(sizes)
        run(programs["default"], "generate", sizes.side_pixels, sizes.side_pixels, SCRATCH / "in.pgm")
        runs: list[Run] = []
        for task in TASKS:
            size, chunk = bytes_label(sizes.picture_bytes), bytes_label(sizes.chunk_bytes)
            say(f"3/4 {task}: {size}, a write and a sync for every {chunk}, {sizes.rounds} rounds")
            runs += run_picture(task, programs, sizes, storage)
        (SCRATCH / "in.pgm").unlink()
        text, buffer = bytes_label(sizes.sort_bytes), bytes_label(sizes.sort_buffer_bytes)
        say(f"4/4 sort: {text} of text with a buffer of {buffer}, {sizes.rounds} rounds")
        runs += run_sort(sizes, storage)
    for task in {row.task for row in runs}:
        of_task = [row for row in runs if row.task == task]
        for row in of_task:
            row.compare_with(of_task[0])
    files = write_results(runs, sizes)
    say(f"\n{table(runs)}\n\nwhy there:\n{reasons(runs)}\n")
    say(
        "whole job: speed-up until the output is at its path, the program's time and finalize. program: its time alone."
    )
    job = [row for row in runs if row.policy == JOB]
    say(
        f"by the job's policy, no run may lose: from {min(row.speedup_with_finalize for row in job):.2f} to "
        f"{max(row.speedup_with_finalize for row in job):.2f} times the speed of the default."
    )
    say(f"all outputs are identical, before and after finalize. {time.perf_counter() - begin_s:.0f} s.")
    say("results: " + ", ".join(f"demo/{name}" for name in files))


if __name__ == "__main__":
    try:
        main()
    except (DemoError, OSError, ValueError) as error:
        sys.exit(f"demo: {error}")
