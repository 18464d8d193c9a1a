"""Calls that fail once while a container is read: each command gives all its bytes, or fails; none gives fewer.

A process without a free descriptor must not take what it cannot open for missing: flatten would delete it.
"""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import BUILD, Iosig

LIBRARY = BUILD / "lib" / "libiosig-preload.so"
CALLS = {
    "openat": ["EMFILE", "EIO", "EINTR", "ENOMEM", "EACCES"],
    "getdents64": ["EIO"],
    "newfstatat": ["EIO", "ENOMEM"],
    "pread64": ["EIO"],
    "read": ["EIO"],
    "flock": ["EIO", "EINTR"],
}
CONTENT = b"".join(bytes([65 + n]) * 1000 for n in range(10))

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="built without libiosig-preload.so")


@pytest.fixture
def whole(iosig: Iosig, tmp_path: Path) -> Path:
    """A container of two writers, in turns; its droppings are in two subdirectories."""
    path = tmp_path / "whole"
    iosig("container", "create", path)
    script = "import os, sys; fd = os.open(sys.argv[1], os.O_WRONLY); n = int(sys.argv[2]); " + (
        "[os.pwrite(fd, bytes([65 + k]) * 1000, 1000 * k) for k in range(n, 10, 2)]"
    )
    for n in range(2):
        iosig("run", "--", sys.executable, "-S", "-E", "-c", script, path, n)
    return path


@pytest.mark.parametrize("verb", ["flatten", "export"])
def test_a_call_that_fails_once_loses_no_byte(iosig: Iosig, whole: Path, tmp_path: Path, verb: str) -> None:
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    path, log = tmp_path / "file", tmp_path / "strace"
    result = path if verb == "flatten" else tmp_path / "exported"
    command = [str(iosig.binary), "container", verb, str(path), *([str(result)] if verb == "export" else [])]

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        for old in (path, result):
            shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
        shutil.copytree(whole, path)
        traced = ["strace", "-f", "-qq", "-y", "-o", str(log), *options, *command]
        return subprocess.run(traced, env=iosig.env, capture_output=True, text=True, timeout=60)

    tried = 0
    for call, errors in CALLS.items():
        assert run("-e", f"trace={call}").returncode == 0
        lines = [line for line in log.read_text().splitlines() if f" {call}(" in line]
        touching = [n for n, line in enumerate(lines, 1) if re.search(r'["/<](d\d+|index\.|data\.|file[">/])', line)]
        for n, error in zip(touching, itertools.cycle(errors), strict=False):
            done = run("-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={n}")
            told = f"{error} at {call} {n} ({lines[n - 1]}): {done.returncode} {done.stdout} {done.stderr}"
            if done.returncode == 0:
                assert result.read_bytes() == CONTENT, told
            else:
                assert path.is_dir() or path.read_bytes() == CONTENT, told
                if path.is_dir():
                    assert iosig.json("container", "check", path)["sound"], told
            tried += 1
    assert tried > 20


def test_a_program_without_a_free_descriptor_is_not_told_a_wrong_size(iosig: Iosig, whole: Path) -> None:
    script = """
import errno, os, resource, sys
path = sys.argv[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
fd = os.open(path, os.O_RDWR)
taken = []
try:
    while True: taken.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error:
    assert error.errno == errno.EMFILE
for free in range(8):
    for ask in (lambda: os.fstat(fd).st_size, lambda: os.stat(path).st_size, lambda: os.lseek(fd, 0, os.SEEK_END),
                lambda: len(os.pread(fd, 20000, 0))):
        try: assert ask() == 10000, (free, ask())
        except OSError as error: assert error.errno in (errno.EMFILE, errno.EIO), error
    os.close(taken.pop())
for each in taken: os.close(each)
assert os.fstat(fd).st_size == os.stat(path).st_size == len(os.pread(fd, 20000, 0)) == 10000
"""
    iosig("run", "--", sys.executable, "-S", "-E", "-c", script, whole)
