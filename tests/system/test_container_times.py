"""The times of a container are those of a plain file: only a call that changes the file changes st_mtime and st_ctime.

Editors compare st_mtime before they write, and make compares it between files, so a close that changed it would lose
edits or repeat work.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import BUILD, Iosig
from mounting import Mount

LIBRARY = BUILD / "lib" / "libiosig-preload.so"

# Prints after each call whether st_mtime and st_ctime changed since the call before.
CALLS = r"""
import os, time
calls = {
    "open": lambda: os.open("file", os.O_RDWR | os.O_CREAT, 0o644),
    "write": lambda: os.pwrite(fd, b"x" * 100, 0),
    "fsync": lambda: os.fsync(fd),
    "many writes": lambda: [os.pwrite(fd, b"y" * 10, (n * 7919) % 60000 * 3) for n in range(20000)],
    "read": lambda: os.pread(fd, 50, 0),
    "ftruncate": lambda: os.ftruncate(fd, 60),
    "ftruncate to the same size": lambda: os.ftruncate(fd, 60),
    "posix_fallocate": lambda: os.posix_fallocate(fd, 0, 5000),
    "write after a mark": lambda: os.pwrite(fd, b"z", 10),
    "close": lambda: os.close(fd),
    "read by a new descriptor": lambda: open("file", "rb").read(10),
    "open for writing, no write": lambda: os.close(os.open("file", os.O_RDWR)),
    "O_TRUNC": lambda: os.close(os.open("file", os.O_WRONLY | os.O_TRUNC)),
    "append": lambda: os.write(again, b"more"),
    "utime": lambda: os.utime("file", ns=(10**18, 10**18)),
    "close after utime": lambda: os.close(again),
}
before = None
for name, call in calls.items():
    if name == "append": again = os.open("file", os.O_WRONLY | os.O_APPEND)
    result = call()
    if name == "open": fd = result
    if name == "close": time.sleep(1.2)  # longer than the mount's kernel may keep what it was told
    now = os.stat("file")
    if before is not None:
        changed = [time for time in ("st_mtime_ns", "st_ctime_ns") if getattr(now, time) != getattr(before, time)]
        print(name + ":", *changed)
    before = now
    time.sleep(0.03)  # longer than the clock of file systems ticks
"""


def run_calls(directory: Path, *before: object) -> str:
    command = [*map(str, before), sys.executable, "-S", "-E", "-c", CALLS]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def plain(tmp_path: Path) -> str:
    directory = tmp_path / "plain"
    directory.mkdir()
    return run_calls(directory)


@pytest.mark.skipif(not LIBRARY.exists(), reason="built without libiosig-preload.so")
def test_times_under_run(plain: str, tmp_path: Path) -> None:
    directory = tmp_path / "run"
    directory.mkdir()
    assert run_calls(directory, "env", f"LD_PRELOAD={LIBRARY}", f"IOSIG_CONTAINERS={directory}/*") == plain
    assert (directory / "file").is_dir()


def test_times_through_the_mount(plain: str, mount: Mount) -> None:
    assert run_calls(mount("--containers", "all")) == plain


def test_an_editor_keeps_both_edits(mount: Mount) -> None:
    if shutil.which("vim") is None and shutil.which("ex") is None:
        pytest.skip("needs vim")
    directory = mount("--containers", "all")
    (directory / "text").write_text("one\ntwo\n")
    for edit in ("s/one/first/", "s/two/second/"):
        subprocess.run(["ex", "-s", "-c", f"%{edit}e|wq", "text"], cwd=directory, check=True, timeout=60)
    assert (directory / "text").read_text() == "first\nsecond\n"


@pytest.mark.skipif(not LIBRARY.exists(), reason="built without libiosig-preload.so")
def test_repair_changes_no_time(iosig: Iosig, tmp_path: Path) -> None:
    path = tmp_path / "file"
    iosig("container", "create", path)
    killed = "import os; os.write(os.open('file', os.O_WRONLY), b'1' * 100); os.kill(os.getpid(), 9)"
    subprocess.run([BUILD / "bin" / "iosig", "run", "--", sys.executable, "-S", "-c", killed], cwd=tmp_path, timeout=60)
    index = next(path.glob("d*/index.*"))
    index.write_bytes(index.read_bytes() + b"IOX\xf1\x09")  # a torn frame

    def modified() -> str:
        shown = iosig("run", "--", "stat", "-c", "%s %y", path).stdout
        assert shown.startswith("100 ")
        return shown

    before = modified()
    time.sleep(0.03)
    assert "index" in iosig("container", "repair", path).stdout
    assert modified() == before
