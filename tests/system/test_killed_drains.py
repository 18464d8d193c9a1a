"""Drains that are killed at any step: the data stay reachable, the next drain or `finalize` continues."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from draining import CONTENT, SLOW, Drains, eventually, is_home
from redirecting import World


def killed_while_copying(world: World, drains: Drains, path: Path) -> int:
    """Kills a drain in the middle of its copy; returns the inode of that copy."""
    pid = drains.start("--max-rate", SLOW, path)["pid"]
    eventually(lambda: drains.phase(path) == "copying")
    os.kill(pid, signal.SIGKILL)
    drains.end()
    [draft] = world.work.glob(".iosig-*.draft")
    return draft.stat().st_ino


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_drain_that_is_killed_is_shown_and_started_again(world: World, drains: Drains, number: int) -> None:
    path, _ = world.prepared("out", CONTENT)
    pid = drains.start("--max-rate", SLOW, path)["pid"]
    eventually(lambda: drains.phase(path) == "copying")
    os.kill(pid, number)
    drains.end()
    assert path.is_symlink() and path.read_bytes() == CONTENT and drains.phase(path) == "stopped"
    assert "its drain was killed; iosig finalize --background starts another one" in world.iosig("status").stdout
    drains.start(path)
    drains.end()
    assert is_home(path) and path.read_bytes() == CONTENT and world.is_settled()
    assert [file.name for file in world.work.iterdir()] == ["out"]


@pytest.mark.parametrize("by", ["a drain", "finalize", "finalize --verify none", "finalize --verify full"])
def test_the_copy_of_a_killed_drain_is_continued(world: World, drains: Drains, by: str) -> None:
    path, _ = world.prepared("out", CONTENT)
    inode = killed_while_copying(world, drains, path)
    if by == "a drain":
        drains.start(path)
        drains.end()
    else:
        world.iosig(*by.split(), path)
    assert is_home(path) and path.read_bytes() == CONTENT and world.is_settled()
    assert path.stat().st_ino == inode and path.stat().st_mode & 0o777 == 0o644


def test_a_copy_whose_bytes_are_wrong_is_put_right(world: World, drains: Drains) -> None:
    path, _ = world.prepared("out", CONTENT)
    inode = killed_while_copying(world, drains, path)
    [draft] = world.work.glob(".iosig-*.draft")
    with draft.open("r+b") as file:  # a fault of the memory, say
        file.seek(3_000_000)
        file.write(b"wrong")
    world.iosig("finalize", path)
    assert path.read_bytes() == CONTENT and path.stat().st_ino == inode


def test_the_copy_of_other_data_is_not_continued(world: World, drains: Drains) -> None:
    """The data have a hole now where the copy has bytes."""
    path, destination = world.prepared("out", CONTENT)
    killed_while_copying(world, drains, path)
    with destination.open("r+b") as file:
        file.truncate(0)
        file.seek(len(CONTENT) - 1)
        file.write(b"x")
    world.iosig("finalize", path)
    assert path.read_bytes() == bytes(len(CONTENT) - 1) + b"x" and path.stat().st_blocks * 512 < 1 << 20


@pytest.mark.parametrize("how", ["another file", "a link", "another name"])
def test_a_file_in_the_place_of_the_copy_is_not_written_to(world: World, drains: Drains, how: str) -> None:
    path, _ = world.prepared("out", CONTENT)
    killed_while_copying(world, drains, path)
    [draft] = world.work.glob(".iosig-*.draft")
    foreign = world.work / "foreign"
    if how == "another name":
        os.link(draft, foreign)
    else:
        foreign.write_bytes(b"foreign")
        draft.unlink()
        if how == "a link":
            draft.symlink_to(foreign)
        else:
            os.link(foreign, draft)
    before = foreign.read_bytes()
    world.iosig("finalize", path)
    assert foreign.read_bytes() == before and path.read_bytes() == CONTENT and not foreign.samefile(path)


def test_the_copy_of_lost_data_is_kept_until_it_is_given_up(world: World, drains: Drains) -> None:
    path, destination = world.prepared("out", CONTENT)
    killed_while_copying(world, drains, path)
    path.unlink()
    destination.unlink()
    refused = world.iosig("finalize", "--all", check=1).stderr
    [draft] = world.work.iterdir()
    assert str(draft) in refused
    world.iosig("finalize", "--all", "--drop-orphans")
    assert list(world.work.iterdir()) == [] and world.is_settled()


CHANGING = [
    "write", "pwrite64", "fsync", "sync_file_range", "ftruncate", "linkat", "renameat", "renameat2", "unlink",
    "unlinkat", "fchmod", "utimensat",
]  # fmt: skip


def drain_traced(world: World, path: Path, *options: str) -> str:
    """A drain of the path, traced from the last close of its data until it ends; returns the trace."""
    log = world.root / f"{path.name}.strace"
    with path.open("ab"):
        pid = world.iosig.json("finalize", "--background", path)["drain"]["pid"]
        try:
            record = world.state / "journal" / f".{path.readlink().parent.name}.drain"
            eventually(lambda: "has it open" in record.read_text())
            strace = subprocess.Popen(["strace", "-f", "-o", log, *options, "-p", str(pid)], stderr=subprocess.PIPE)
            assert strace.stderr is not None
            while b"attached" not in (line := strace.stderr.readline()):
                if not line:
                    pytest.skip("processes cannot be traced here")
        except BaseException:
            os.kill(pid, signal.SIGKILL)
            raise
    strace.communicate()
    return log.read_text(errors="replace")


def test_a_settled_redirect_leaves_no_record_of_a_drain_that_was_killed(world: World) -> None:
    path, _ = world.prepared("out", b"data")
    for left in ("drain", "drain.draft"):
        (world.state / "journal" / f".{path.readlink().parent.name}.{left}").write_text("cut")
    world.iosig("finalize", path)
    assert is_home(path) and not [*(world.state / "journal").glob(".*.drain*")]


def test_a_drain_that_is_killed_at_any_step_loses_nothing_and_goes_on(world: World) -> None:
    """strace kills it before the N-th call of each kind that changes files; the next drain, or finalize, finishes."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    content = CONTENT[:300_000]

    def calls_of_a_drain(number: int) -> list[str]:
        path, _ = world.prepared(f"out0.{number}", content)
        log = drain_traced(world, path, "-e", f"trace={','.join(CHANGING)}")
        assert is_home(path), log
        return re.findall(r"^\d+ +(\w+)\(", log, re.MULTILINE)

    # How often it writes down how far it is depends on the time.
    runs = [calls_of_a_drain(number) for number in range(3)]
    steps = [(call, n) for call in CHANGING for n in range(1, min(run.count(call) for run in runs) + 1)]
    assert len(steps) >= 20, runs

    def kill_at(numbered: tuple[int, tuple[str, int]]) -> bool:
        # A run may have fewer calls than those had.
        return any(was_killed_at(*numbered, turn) for turn in range(5))

    def was_killed_at(number: int, step: tuple[str, int], turn: int) -> bool:
        call, count = step
        path, _ = world.prepared(f"out{number}.{turn}", content)
        log = drain_traced(world, path, "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={count}")
        told = f"killed before {call} {count}\n{log}"
        assert path.read_bytes() == content, told
        if number % 2 == 0 and path.is_symlink():
            world.iosig("finalize", "--background", path)
            eventually(lambda: is_home(path), told)
        else:
            world.iosig("finalize", path)
        assert is_home(path) and path.read_bytes() == content, told
        return "killed by SIGKILL" in log

    with ThreadPoolExecutor(4) as some:
        killed = sum(some.map(kill_at, enumerate(steps, 1)))
    print(f"{killed} kills at {len(steps)} steps")
    assert killed == len(steps)
    eventually(lambda: not world.journal() or not world.iosig("finalize", "--all", check=None).returncode)
    assert world.is_settled()
    assert not [*(world.state / "journal").glob(".*.drain*")]
