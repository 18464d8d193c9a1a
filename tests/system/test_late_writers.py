"""Another program writes between any two system calls of `finalize`, or kills it there: no acknowledged byte is lost.

tests/support/at_step.c stops finalize before a call, and opens, writes and closes meanwhile. Whatever finalize then
does, after one more run the file at its path has what was written last. `make test` walks with a stride;
IOSIG_CRASH_STEPS=all visits every call and tells the figures of docs/performance.md.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from conftest import Iosig
from redirecting import World

EVERYTHING = os.environ.get("IOSIG_CRASH_STEPS") == "all"
STRIDE = 1 if EVERYTHING else 11
CONTENT = os.urandom(50_000)
LATE = b"written late"


@dataclass(frozen=True)
class Action:
    name: str
    expected: Callable[[bytes], bytes]  # what the file must hold when the action was done
    may_be_refused: tuple[int, ...] = ()


def unchanged(content: bytes) -> bytes:
    return content


# Names below the destination's directory are gone when the data are at home: the program is told so by its open.
GONE = (errno.ENOENT, errno.ENOTDIR)
ACTIONS = [
    Action("append", lambda content: content + LATE),
    Action("truncate", lambda _: LATE),
    Action("overwrite", lambda content: LATE + content[len(LATE) :]),
    Action("map", lambda content: LATE + content[len(LATE) :]),
    Action("append-there", lambda content: content + LATE, GONE),
    Action("rename-there", lambda _: LATE, GONE),
    Action("companion", unchanged, GONE),
    Action("chmod", unchanged),
    Action("kill", unchanged),
]


@contextmanager
def fresh_world(tmp: Path, number: str) -> Iterator[World]:
    root = tmp / number
    (root / "home").mkdir(parents=True)
    fast = Path(tempfile.mkdtemp(prefix="iosig-test-", dir="/dev/shm"))
    try:
        yield World(Iosig(root / "home"), root, fast)
    finally:
        shutil.rmtree(fast)
        shutil.rmtree(root)


def redirected(world: World, layout: str) -> Path:
    """A redirected file: with companions, alone, or with its link on the file system of the data."""
    path, destination = world.prepared("out", CONTENT)
    os.utime(destination, ns=(10**18, 10**18))
    if layout == "companions":
        (destination.parent / "out-wal").write_bytes(CONTENT[::-1])
    if layout == "one file system":
        near = world.fast / "near"
        near.mkdir()
        (near / "out").symlink_to(path.readlink())
        path.unlink()
        return near / "out"
    return path


LAYOUTS = ["companions", "alone", "one file system"]


def try_point(world: World, at_step: Path, action: Action, layout: str, step: int) -> tuple[bool, int]:
    """One disturbed run and one more after it: whether the step was reached, and how many bytes were lost."""
    path = redirected(world, layout)
    resolved = path.resolve()
    command = [at_step, str(step), action.name, path, resolved, world.iosig.binary, "finalize", path]
    done = subprocess.run(command, capture_output=True, text=True, env=world.env, timeout=100)
    told = f"{layout}: {action.name} before call {step}: {done.stdout}{done.stderr}"
    assert done.returncode == 0, told
    outcome, status = done.stdout.splitlines()[-1].split()
    if outcome == "not-reached":
        return False, 0
    if outcome != "done":
        assert int(outcome.removeprefix("refused-")) in action.may_be_refused, told
    assert int(status) in (0, 1, 128 + 9), told
    expected = action.expected(CONTENT) if outcome == "done" else CONTENT
    now = path.read_bytes()  # by its link or at home, at once
    if now != expected:
        return True, len(expected)
    world.iosig("finalize", path)
    lost = 0 if path.read_bytes() == expected and not path.is_symlink() else len(expected)
    if layout == "companions" and (path.parent / "out-wal").read_bytes() != CONTENT[::-1]:
        lost += len(CONTENT)
    if action.name == "companion" and outcome == "done" and (path.parent / "out-late").read_bytes() != LATE:
        lost += len(LATE)
    if action.name == "chmod" and stat.S_IMODE(path.stat().st_mode) != 0o604:
        lost += 1
    assert lost == 0, told
    assert world.is_settled() and not list(path.parent.glob(".iosig-*")), told
    return True, lost


@pytest.mark.parametrize(("action", "expected"), [("hold", CONTENT + LATE), ("replace", LATE)])
def test_the_file_at_the_path_is_the_programs(at_step: Path, tmp_path: Path, action: str, expected: bytes) -> None:
    """Whether a program opens the path at any step, has finalize undo what it did, and writes when finalize has ended;
    or puts another file at the path. Both versions may be left then, so no second run settles it."""
    for step in count(1, 1 if EVERYTHING else 9):
        with fresh_world(tmp_path, str(step)) as world:
            path = redirected(world, "alone")
            command = [at_step, str(step), action, path, path.resolve(), world.iosig.binary, "finalize", path]
            done = subprocess.run(command, capture_output=True, text=True, env=world.env, timeout=100)
            outcome, _ = done.stdout.splitlines()[-1].split()
            if outcome == "not-reached":
                assert step > 50
                return
            assert outcome == "done", (step, done)
            assert path.read_bytes() == expected, (step, done)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("action", ACTIONS, ids=[action.name for action in ACTIONS])
def test_a_late_writer_loses_nothing(at_step: Path, tmp_path: Path, action: Action, layout: str) -> None:
    if tmp_path.stat().st_dev == Path("/dev/shm").stat().st_dev:
        pytest.skip(f"{tmp_path} lies on /dev/shm: there is no second file system to redirect to")

    def walk(first: int) -> tuple[int, int]:
        lost = 0
        for points, step in enumerate(count(first, 2 * STRIDE)):
            with fresh_world(tmp_path, str(step)) as world:
                reached, lost_here = try_point(world, at_step, action, layout, step)
            if not reached:
                return points, lost
            lost += lost_here
            assert lost_here == 0, f"{layout}: {action.name} before call {step}"
        raise AssertionError

    offset = 1 + ACTIONS.index(action) % STRIDE  # each action visits other calls
    with ThreadPoolExecutor(2) as two:
        walks = list(two.map(walk, (offset, offset + STRIDE)))
    points, lost = sum(p for p, _ in walks), sum(n for _, n in walks)
    print(f"{layout}: {action.name}: {points} points, {lost} bytes lost")
    assert points >= 5 and lost == 0
