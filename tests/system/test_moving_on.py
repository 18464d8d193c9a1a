"""A destination that fills is not the program's ENOSPC where its own place has room: the file moves home meanwhile."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, Iosig
from preloading import LIBRARY
from redirecting import World, compile_c, needs_mounts

SMALL, LARGE = 2 << 20, 5 << 20  # the size of the mount point; what the programs write
PIECE = 65536

pytestmark = needs_mounts


def content(length: int) -> bytes:
    return bytes((n // 4096 + n) % 256 for n in range(length))


@pytest.fixture
def world(iosig: Iosig, tmp_path: Path) -> Iterator[World]:
    """As redirecting.World, with a fast mount point of 2 MB."""
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "none", small], check=True)
    try:
        yield World(iosig, tmp_path, small)
    finally:
        subprocess.run(["umount", "-l", small], check=True)


@pytest.fixture(scope="session")
def fill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tests/support/fill.c, compiled."""
    program = tmp_path_factory.mktemp("fill") / "fill"
    subprocess.run(
        ["gcc", "-O1", "-Wall", "-Werror", "-pthread", "-o", program, ROOT / "tests/support/fill.c"], check=True
    )
    return program


def prepared(world: World, name: str = "out", signature: str = "random") -> tuple[Path, Path]:
    path = world.work / name
    world.iosig("prepare", path, signature)
    return path, path.readlink()


def run(world: World, *command: object, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """As under `iosig run`."""
    return world.run(*command, env=world.env | {"LD_PRELOAD": str(LIBRARY)}, **options)


def is_moved(world: World, path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and world.is_settled()


@pytest.mark.parametrize("how", ["write", "append", "pwrite", "writev", "fallocate", "stdio", "dup"])
def test_a_program_that_fills_the_mount_point_ends_as_if_its_file_were_at_home(
    world: World, fill: Path, how: str
) -> None:
    path, _ = prepared(world)
    done = run(world, fill, how, path, LARGE)
    assert done.returncode == 0, done.stderr.decode()
    assert path.read_bytes() == content(LARGE) and is_moved(world, path)
    assert path.stat().st_mode & 0o777 == (0o644 if how == "stdio" else 0o640)
    said = done.stderr.decode()
    assert f"'{path}': '{world.fast}' is full; the file is at its own path now" in said and said.count("\n") == 1


def test_temporary_data_move_too(world: World, fill: Path) -> None:
    path, _ = prepared(world, signature="temp random")
    assert run(world, fill, "write", path, LARGE).returncode == 0
    assert path.read_bytes() == content(LARGE) and is_moved(world, path)


@pytest.mark.parametrize(
    "command",
    [
        "seq 1 600000 > out",
        "seq 1 600000 | tee out > /dev/null",
        "seq 1 600000 | dd of=out bs=100001 status=none conv=notrunc",
        "seq 1 600000 | sort -n -o out",
        "seq 1 600000 | awk '{print > \"out\"}'",
    ],
)
def test_real_programs_do_not_meet_the_end_of_the_mount_point(world: World, command: str) -> None:
    path, _ = prepared(world)
    done = run(world, "bash", "-c", f"set -o pipefail; {command}")
    assert done.returncode == 0, done.stderr.decode()
    assert path.read_bytes() == b"".join(b"%d\n" % n for n in range(1, 600001)) and is_moved(world, path)


def test_a_hinted_open_moves_under_the_preloaded_library(world: World, hinted: Path) -> None:
    data = os.urandom(LARGE)
    (world.work / "in").write_bytes(data)
    with (world.work / "in").open("rb") as given:
        done = run(world, hinted, "open", "out", os.O_CREAT | os.O_WRONLY, "random", stdin=given)
    assert done.returncode == 0 and b"is full" in done.stderr, done.stderr.decode()
    assert (world.work / "out").read_bytes() == data and is_moved(world, world.work / "out")


@pytest.mark.parametrize(
    ("how", "why"),
    [("mapped", "it is mapped"), ("locked", "it is locked"), ("reopened", "several descriptors|open a second time"),
     ("shared", r"process \d+ has it open, too")],
)  # fmt: skip
def test_a_file_that_others_could_go_on_using_stays_and_the_program_gets_its_error(
    world: World, fill: Path, how: str, why: str
) -> None:
    path, destination = prepared(world)
    done = run(world, fill, how, path, LARGE)
    assert done.returncode == 1 and f"{how}: No space left on device" in done.stderr.decode()
    assert re.search(why, done.stderr.decode()), done.stderr.decode()
    kept = destination.read_bytes()
    assert path.readlink() == destination and kept == content(len(kept)) and len(kept) > SMALL // 2
    world.iosig("finalize", path)
    assert path.read_bytes() == kept and is_moved(world, path)


def test_where_home_has_no_room_either_the_program_gets_its_error(world: World, fill: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "none", world.work], check=True)
    try:
        path, destination = prepared(world)
        done = run(world, fill, "write", path, LARGE)
        assert done.returncode == 1 and "has no room for it, either" in done.stderr.decode()
        assert path.readlink() == destination and not list(world.work.glob(".iosig*"))
    finally:
        subprocess.run(["umount", "-l", world.work], check=True)


def test_a_link_that_the_program_removed_meanwhile_does_not_come_back(world: World) -> None:
    path, _ = prepared(world)
    done = run(world, "bash", "-c", "exec 5> out; rm out; head -c 5000000 /dev/zero >&5")
    assert done.returncode == 1 and not os.path.lexists(path)


@pytest.mark.parametrize("pause_us", [0, 20000, 200000])
def test_what_another_thread_writes_meanwhile_is_never_lost(world: World, fill: Path, pause_us: int) -> None:
    """Either the file moves, or the program gets its error because the data changed while they were copied."""
    for number in range(4):
        path, _ = prepared(world, f"out{number}")
        done = run(world, fill, "threads", path, LARGE, pause_us)
        accepted = int(done.stdout)
        data = path.read_bytes()
        assert data[:4096] == accepted.to_bytes(8, "little") * 512
        assert data[4096:] == content(len(data))[4096:]
        assert len(data) == LARGE if done.returncode == 0 else b"No space left" in done.stderr
        world.iosig("finalize", path)
        assert path.read_bytes() == data and is_moved(world, path)


def test_a_quota_counts_as_a_full_mount_point(world: World, fill: Path) -> None:
    """The quota is strace's: EDQUOT for one write."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    path, _ = prepared(world)
    done = world.run(
        "strace", "-o", world.root / "strace", "-E", f"LD_PRELOAD={LIBRARY}", "-P", path.readlink(),
        "-e", "trace=write", "-e", "inject=write:error=EDQUOT:when=5", fill, "write", path, 10 * PIECE,
    )  # fmt: skip
    assert done.returncode == 0 and b"is full" in done.stderr, done.stderr.decode()
    assert path.read_bytes() == content(10 * PIECE) and is_moved(world, path)


CHANGING = [
    "write", "pwrite64", "fsync", "sync_file_range", "ftruncate", "linkat", "renameat", "renameat2", "unlink",
    "unlinkat", "fchmod", "utimensat", "dup3",
]  # fmt: skip


def test_a_program_that_is_killed_at_any_step_of_the_move_loses_nothing(world: World, fill: Path) -> None:
    """strace kills it before the N-th call of each kind that changes files; finalize then finds all bytes."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    log = world.root / "strace"

    def traced(path: Path, *options: str) -> str:
        world.run("strace", "-o", log, "-E", f"LD_PRELOAD={LIBRARY}", *options, fill, "pwrite", path, LARGE)
        return log.read_text(errors="replace")

    path, _ = prepared(world)
    calls = traced(path, "-e", f"trace={','.join(CHANGING)}")
    assert is_moved(world, path), calls
    names = re.findall(r"^(\w+)\(", calls, re.MULTILINE)
    failed = next(n for n, line in enumerate(calls.splitlines()) if "ENOSPC" in line)
    # From the write that fails to the one that is repeated.
    after = next(n for n in range(failed + 1, len(names)) if f", {PIECE}, " in calls.splitlines()[n])
    begun = {name: names[:failed].count(name) for name in CHANGING}
    steps = [(name, begun[name] + n) for name in CHANGING for n in range(1, names[failed : after + 1].count(name) + 1)]
    assert len(steps) >= 15, calls
    killed = 0
    for number, (name, count) in enumerate(steps):
        path, _ = prepared(world, f"out{number}")
        trace = traced(path, "-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={count}")
        told = f"killed before {name} {count}\n{trace}"
        killed += "killed by SIGKILL" in trace
        data = path.read_bytes()
        assert len(data) > SMALL - 2 * PIECE and data == content(len(data)), told
        world.iosig("recover") if number % 2 else None
        world.iosig("finalize", path)
        assert path.read_bytes() == data and is_moved(world, path), told
        path.unlink()
    print(f"{killed} kills at {len(steps)} steps")
    assert killed == len(steps)


TWO_HINTS = r"""
#include <fcntl.h>
#include <iosig/iosig.h>
int main(int argc, char **argv) {
  for (int n = 1; n < argc; ++n) iosig_open_hint(AT_FDCWD, argv[n], O_CREAT | O_WRONLY, "random");
  return 0;
}
"""


def test_hints_warn_once_and_only_a_user_who_asked_for_messages(world: World, tmp_path: Path) -> None:
    program = compile_c(TWO_HINTS, tmp_path, "hints")
    assert world.run(program, "a", "b").stderr == b""
    done = world.run(program, "c", "d", env=world.env | {"IOSIG_VERBOSE": "1"})
    assert done.stderr.decode().count("warning: no totalsize is given: beyond 1.96 MB") == 1, done.stderr.decode()


VANISHING = r"""
#include <errno.h>
#include <fcntl.h>
#include <iosig/iosig.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  (void)argc;
  iosig_open_hint(AT_FDCWD, argv[1], O_CREAT | O_WRONLY, "random");
  if (system(argv[2]) != 0) return 2;
  int fd = open(argv[1], O_CREAT | O_WRONLY, 0644);
  printf("%d\n", fd >= 0 ? 0 : errno);
  return 0;
}
"""


def test_a_mount_point_that_vanishes_between_decision_and_open_is_named(world: World, tmp_path: Path) -> None:
    """The program's open fails, since nothing can take the data; nothing is written elsewhere, and iosig says why."""
    program = compile_c(VANISHING, tmp_path, "vanishing")
    path = world.work / "out"
    done = world.run(program, path, f"umount -l '{world.fast}'")
    assert int(done.stdout) == errno.ENOENT and path.is_symlink() and not list(world.fast.iterdir())
    try:
        assert world.states() == {"out": "unreachable"}
        assert f"when '{world.fast}' is mounted again" in world.iosig("finalize", path, check=1).stderr
        world.iosig("finalize", path, "--drop-orphans")
        assert not world.journal()
    finally:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "none", world.fast], check=True)
