"""Experiments on real storage: finding it, timed writes, and the paper's picture program on chosen mount points.

What is written lies in files without a name or in directories that are removed; programs that are run have a journal of
their own, which is settled at the end, also after ^C.
"""

from __future__ import annotations

import filecmp
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import iosig
from iosig.command import CHECKOUT, iosig_command
from iosig.interruptions import scratch_in, undisturbed
from iosig.repro.artefact import Setting, Source

MIB = 1 << 20
BUSY_SHARE = 0.5  # of the processors
LIFE = 'mttf = "10y"\nber = 1e-6\nsector_bits = 512\necc_bits = 2\n'


def built_program(name: str) -> str:
    """A program that is not installed: beside the command, else in the checkout, where tools/install-python builds
    it."""
    places = [Path(iosig_command()).resolve().parent, CHECKOUT / "build" / "bin"]
    found = next((place / name for place in places if (place / name).exists()), None)
    if found is None:
        raise OSError(f"{places[-1]}/{name}: not built; run make python")
    return str(found)


def workloads_command() -> str:
    """The program bench/workloads."""
    return built_program("workloads")


def ended(
    *words: object, accept: tuple[int, ...] = (0,), environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """A program that has run. A status that is not accepted is an OSError with what the program said."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=environment)
    if done.returncode not in accept:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise OSError(f"{' '.join(map(str, words))} ended with status {done.returncode}: {said[-1] if said else ''}")
    return done


def call(*words: object, accept: tuple[int, ...] = (0,), environment: dict[str, str] | None = None) -> str:
    """What a program prints, as `ended` runs it."""
    return ended(*words, accept=accept, environment=environment).stdout


def described(storage: Path) -> Any:
    """`iosig storage list --json` of a description."""
    return json.loads(call(iosig_command(), "storage", "list", "--storage", storage, "--json"))


@dataclass(frozen=True)
class Machine:
    """Storage to experiment on. `kinds`: of the device behind each mount point; raid1 stands for every composite.
    `environment`: of programs, with this description and a journal of their own. `notes`: the probe's, of what the
    measured values may suffer from."""

    description: Path
    storage: iosig.Storage
    kinds: dict[str, str]
    environment: dict[str, str]
    notes: list[str]

    def noted(self, setup: str) -> str:
        """A setup with the notes. One on several mount points is told once, without its numbers."""
        places: dict[str, list[str]] = {}
        for note in self.notes:
            place, _, what = note.partition(": ")
            if place in self.kinds:
                places.setdefault(what.split(": ")[0], []).append(place)
            else:
                places[note] = []
        told = (f"{', '.join(where)}: {what}" if where else what for what, where in places.items())
        return "; ".join([setup, *told])

    def by_speed(self) -> list[str]:
        """Mount points from slow to fast, as predicted for synchronised writes of 1 MB."""

        def rate(mount: str) -> float:
            return iosig.predict("random size-per-IO(1MB)", self.storage, mount)["throughput_bytes_per_s"]

        return sorted(self.kinds, key=rate)

    def persistent(self) -> list[str]:
        kept = {mount.path for mount in self.storage.mount_points if mount.persistent}
        return [mount for mount in self.by_speed() if mount in kept]


def lab_members() -> dict[str, str]:
    """Path and kind of each member of the lab's hierarchy; its targets for hybrid-server work are not part of it."""
    told = json.loads(call(CHECKOUT / "lab" / "lab", "status", "--json", accept=(0, 1)))
    hierarchy = [member for member in told["members"] if not re.fullmatch(r"(hdd|ssd)\d+", member["name"])]
    members = {member["path"]: member["kind"] for member in hierarchy if member["up"]}
    if not members:
        raise OSError("the lab is not up: start it with lab/lab up (as root), or use --source machine")
    return members


def machine_of(setting: Setting) -> Machine:
    """This machine's storage as its description says, or the lab's; measured now if there is no description."""
    description = setting.scratch / "storage.toml"
    known: dict[str, str] = {}
    notes: list[str] = []
    if setting.source == Source.LAB:
        known = lab_members()
        notes = probe(setting, description, *(word for mount in known for word in ("--mount", mount)))
        assume_lives(description)
    elif found := iosig.find_storage():
        description = Path(found)
    else:
        notes = probe(setting, description)
    told = described(description)
    kind = {device["name"]: device["kind"].replace("composite", "raid1") for device in told["devices"]}
    kinds = {mount["path"]: known.get(mount["path"], kind[mount["device"]]) for mount in told["mount_points"]}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("IOSIG_")}
    environment |= {"IOSIG_STORAGE": str(description), "IOSIG_STATE": str(setting.scratch / "state"), "LC_ALL": "C"}
    return Machine(description, iosig.read_storage(str(description)), kinds, environment, notes)


def assume_lives(description: Path) -> None:
    """Gives devices section 7.4's MTTF and bit errors, and composites its time of repair: nothing can measure them."""
    kinds = {device["name"]: device["kind"] for device in described(description)["devices"]}

    def with_life(name_line: re.Match[str]) -> str:
        is_composite = kinds[name_line[1]] == "composite"
        return name_line[0] + ('mttr = "1d"\n' if is_composite else LIFE)

    text = description.read_text()
    description.write_text(re.sub(r'^name = "(.*)"\n', with_life, text, flags=re.MULTILINE))


def probe(setting: Setting, description: Path, *words: str) -> list[str]:
    """Writes the description. Returns what the probe notes of the measurement, such as that the machine was busy."""
    setting.progress(f"measuring the storage: {' '.join(words)}")
    quick = ["--quick"] if setting.quick else []
    said = ended(iosig_command(), "storage", "probe", *quick, "--output", description, *words).stderr
    mark = "iosig: note: "
    notes = [line.removeprefix(mark) for line in said.splitlines() if line.startswith(mark)]
    notes = [note for note in notes if str(description) not in note]  # of the file, which is removed
    for note in notes:
        setting.progress(note)
    return notes


def busy_note() -> str:
    """What to say of a measurement that begins now, if other programs keep the processors busy; else nothing."""
    load, processors = os.getloadavg()[0], len(os.sched_getaffinity(0))
    is_busy = load > BUSY_SHARE * processors
    return f"the machine was busy (load {load:.1f} on {processors} processors): times may mislead" if is_busy else ""


@dataclass(frozen=True)
class Rate:
    """Bytes per second over all writes; `low` and `high`: of single writes, the 10th and 90th percentile, at least from
    and to the mean."""

    mean: float
    low: float
    high: float


def write_rate(directory: str, chunk_bytes: int, budget_s: float) -> Rate:
    """The rate of chunks that are written in turn, each followed by fdatasync, as `dd oflag=dsync` does.

    At least three of them, or one that takes longer than `budget_s`; in a file without a name, of at most 256 MB or one
    chunk, that is begun anew when it is full.
    """
    data = bytes(chunk_bytes)
    places = max(1, 256 * MIB // chunk_bytes)
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        times_s: list[float] = []
        while (len(times_s) < 3 or sum(times_s) < budget_s) and not sum(times_s) > 3 * budget_s:
            at = len(times_s) % places * chunk_bytes
            begin_s = time.perf_counter()
            if os.pwrite(file.fileno(), data, at) != chunk_bytes:
                raise OSError(f"{directory}: a write of {chunk_bytes} bytes was cut short; is there room?")
            os.fdatasync(file.fileno())
            times_s.append(time.perf_counter() - begin_s)
    mean_s = sum(times_s) / len(times_s)
    fast_s, slow_s = np.quantile(times_s, [0.1, 0.9])
    low, high = chunk_bytes / max(mean_s, slow_s), chunk_bytes / min(mean_s, fast_s)
    return Rate(chunk_bytes / mean_s, float(low), float(high))


def free_bytes(directory: str | Path) -> int:
    room = os.statvfs(directory)
    return room.f_bavail * room.f_frsize


class Pictures:
    """examples/pgm on real storage, synced chunk by chunk; times are the whole program's, as the paper's."""

    def __init__(self, setting: Setting, machine: Machine, total_bytes: int, mounts: list[str]) -> None:
        """A square picture of at most `total_bytes` that fits three times on each of `mounts`."""
        self.machine = machine
        self.progress = setting.progress
        user_directories = [Path(mount) / f".iosig-{os.geteuid()}" for mount in machine.kinds]
        self.new_user_directories = [directory for directory in user_directories if not directory.exists()]
        directories: list[str | Path] = [*mounts, setting.scratch]
        side = int(min(total_bytes, *(free_bytes(directory) // 3 for directory in directories)) ** 0.5)
        self.side = 1 << (side.bit_length() - 1)
        self.picture = setting.scratch / "in.pgm"
        self.program = setting.scratch / "pgm"
        source = CHECKOUT / "examples" / "pgm" / "pgm.c"
        compiler = shutil.which("gcc") or "cc"
        call(compiler, "-std=c17", "-O2", "-Wno-unknown-pragmas", source, "-o", self.program)
        self.progress("making a picture")
        call(self.program, "generate", self.side, self.side, self.picture)

    @property
    def bytes(self) -> int:
        return self.side * self.side

    def run_s(self, task: str, chunk_bytes: int, output: Path) -> float:
        self.progress(f"{task}: {output}, chunks of {chunk_bytes} bytes")
        words = (self.program, task, self.picture, output, "--chunk", chunk_bytes, "--json")
        return float(json.loads(call(*words, environment=self.machine.environment))["total_s"])

    def run_prepared_s(self, task: str, chunk_bytes: int, output: Path, signature: str) -> tuple[float, str | None]:
        """Seconds, and the mount point to which `iosig prepare` redirected `output` by the paper's policy, or None."""
        command, environment = iosig_command(), self.machine.environment
        call(command, "prepare", "--policy", "paper", output, signature, accept=(0, 1), environment=environment)
        run_s = self.run_s(task, chunk_bytes, output)
        if not output.is_symlink():
            return run_s, None
        target = str(output.readlink())
        return run_s, max((m for m in self.machine.kinds if target.startswith(f"{m.rstrip('/')}/")), key=len)

    def drop(self, output: Path) -> None:
        """Removes an output and, if it was redirected, its data."""
        linked = output.is_symlink()
        output.unlink()
        if linked:
            self.settle()

    def settle(self) -> None:
        words = (iosig_command(), "finalize", "--all", "--drop-orphans")
        call(*words, accept=(0, 1), environment=self.machine.environment)

    def remove_user_directories(self) -> None:
        """The user's directories of redirected data that were made meanwhile, where nothing is in them."""
        for directory in self.new_user_directories:
            with suppress(OSError):  # never made, or in use
                directory.rmdir()


@contextmanager
def home_on(mount: str, pictures: Pictures) -> Iterator[Path]:
    """A directory for outputs on a mount point; at the end, whatever happened, nothing of them is left anywhere."""
    with scratch_in(Path(mount)) as home:
        try:
            yield home
        finally:
            with undisturbed():
                for output in home.iterdir():
                    output.unlink()
                pictures.settle()
                pictures.remove_user_directories()


def check_same(output: Path, reference: Path) -> None:
    if not filecmp.cmp(output, reference, shallow=False):
        raise OSError(f"{output}: differs from what the same run wrote to {reference}; that is a bug of IOSIG")
