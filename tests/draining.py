"""Tests of drains start them by this, and end those that are left."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from redirecting import World

# Under nohup SIGHUP is ignored, and programs inherit that.
NOT_IGNORED = ["env", "--default-signal=HUP,INT,TERM"]
SLOW = "8MB/s"  # with CONTENT: two seconds in which something can happen
CONTENT = os.urandom(1 << 20) * 16


def eventually(is_true: Callable[[], Any], what: str = "") -> Any:
    """What `is_true` returns as soon as it is true; machines may be slow, so a minute is allowed."""
    for _ in range(1200):
        if answer := is_true():
            return answer
        time.sleep(0.05)
    raise AssertionError(what or "it never came true")


def is_alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    return False


class Drains:
    """Starts drains, and ends those that a test leaves."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.pids: list[int] = []

    def start(self, *arguments: object) -> dict[str, Any]:
        done = self.world.iosig.json("finalize", "--background", *arguments)["drain"]
        if done["pid"]:
            self.pids.append(done["pid"])
        return done

    def of(self, path: Path) -> Any:
        """What `iosig status` says of the drain of this path."""
        redirects = self.world.iosig.json("status")["redirects"]
        return next((each["drain"] for each in redirects if each["path"] == str(path)), None)

    def phase(self, path: Path) -> str:
        return (self.of(path) or {}).get("phase", "")

    def log(self) -> str:
        log = self.world.state / "drain.log"
        return log.read_text() if log.exists() else ""

    def end(self) -> None:
        for pid in self.pids:
            eventually(lambda pid=pid: not is_alive(pid), f"drain {pid} goes on\n{self.log()}")


@pytest.fixture
def drains(world: World) -> Iterator[Drains]:
    started = Drains(world)
    yield started
    for pid in started.pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def is_home(path: Path) -> bool:
    return path.exists() and not path.is_symlink()
