"""`iosig mount` for tests: the fixture that mounts a directory and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import BUILD, Iosig

Mount = Callable[..., Path]


def is_mounted(path: Path) -> bool:
    return f" {path} " in Path("/proc/self/mountinfo").read_text()


@pytest.fixture
def mount(iosig: Iosig, tmp_path: Path) -> Iterator[Mount]:
    """mount(option...) mounts tmp_path/source at tmp_path/mounted; nothing of it is left behind."""
    if not (BUILD / "libexec/iosig/iosig-fuse").exists():
        pytest.skip("built without libfuse3")
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as refusal:
        pytest.skip(f"/dev/fuse: {refusal.strerror}")
    source, mounted = tmp_path / "source", tmp_path / "mounted"
    source.mkdir()
    mounted.mkdir()
    pids: list[int] = []

    def start(*options: str) -> Path:
        pids.append(iosig.json("mount", source, mounted, *options)["pid"])
        return mounted

    start.pids = pids  # type: ignore[attr-defined]
    try:
        yield start
    finally:
        while is_mounted(mounted):
            subprocess.run(["umount", "-l", str(mounted)], check=True)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
