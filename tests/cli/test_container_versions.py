"""Containers of format 1 are read and written as such, until `iosig container upgrade` lets new writers use format 2.

data/container-1 was written by a program that knew only format 1: two writers that were closed, and one that was
killed.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from conftest import Iosig
from container_writing import Writing

SAMPLE = Path(__file__).parent.parent / "data" / "container-1"


def content_of_sample() -> bytes:
    content = bytearray((b"a" * 64 + b"b" * 64) * 10)
    content[100:150] = b"A" * 50
    content[1190:1195] = b"C" * 5
    return bytes(content[:1200])


@pytest.fixture
def container(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    shutil.copytree(SAMPLE, path)
    return path


def content(iosig: Iosig, container: Path) -> bytes:
    copy = container.with_name("copy")
    iosig("container", "export", container, copy)
    left = copy.read_bytes()
    copy.unlink()
    return left


def version_of(index: Path) -> int:
    """Of its head: the first number of the payload, zigzag."""
    return index.read_bytes()[13] // 2


def schema_of(container: Path) -> str:
    schema: str = json.loads((container / ".iosig-container").read_text())["schema"]
    return schema


def append(container: Path, text: str) -> None:
    writing = Writing(container)
    size = 1200 if text == "x" else 1205
    writing("open d", f"write d {size} 5 {text}")
    writing.end(kill=False)


def test_format_1_is_read_and_written(iosig: Iosig, container: Path) -> None:
    assert content(iosig, container) == content_of_sample()
    assert iosig.json("container", "check", "--data", container)["sound"]
    append(container, "x")
    assert content(iosig, container) == content_of_sample() + b"xxxxx"
    assert [version_of(path) for path in container.glob("d*/index.*")] == [1] * 4
    iosig("container", "repair", container)
    assert content(iosig, container) == content_of_sample() + b"xxxxx"
    assert [version_of(path) for path in container.glob("d*/index.*")] == [1] * 4
    assert schema_of(container) == "iosig.container/1"


def test_after_an_upgrade_new_writers_use_format_2(iosig: Iosig, container: Path) -> None:
    append(container, "x")
    manifest = container / ".iosig-container"
    manifest.chmod(0o640)
    os.utime(manifest, ns=(10**18, 10**18 + 5))
    assert iosig("container", "upgrade", "--dry-run", container).stdout.endswith("would be of version 2 now, not 1\n")
    assert schema_of(container) == "iosig.container/1"
    assert iosig.json("container", "upgrade", container) == {
        "schema": "iosig.container-upgrade/1",
        "dry_run": False,
        "from": 1,
        "to": 2,
    }
    status = manifest.stat()
    assert stat.S_IMODE(status.st_mode) == 0o640 and status.st_mtime_ns == 10**18 + 5
    assert schema_of(container) == "iosig.container/2"
    append(container, "y")
    assert content(iosig, container) == content_of_sample() + b"xxxxxyyyyy"
    assert sorted(version_of(path) for path in container.glob("d*/index.*")) == [1, 1, 1, 1, 2]
    assert "has version 2 already" in iosig("container", "upgrade", container).stdout
    iosig("container", "repair", container)
    assert content(iosig, container) == content_of_sample() + b"xxxxxyyyyy"
    assert iosig.json("container", "check", "--data", container)["sound"]


def test_a_lost_manifest_gets_the_version_of_the_indices(iosig: Iosig, container: Path) -> None:
    (container / ".iosig-container").unlink()
    iosig("container", "repair", container)
    assert schema_of(container) == "iosig.container/1"
    iosig("container", "upgrade", container)
    append(container, "x")
    (container / ".iosig-container").unlink()
    iosig("container", "repair", container)
    assert schema_of(container) == "iosig.container/2"
    assert content(iosig, container) == content_of_sample() + b"xxxxx"


def test_an_upgrade_beside_a_program_that_writes_and_one_that_reads(iosig: Iosig, container: Path) -> None:
    writing = Writing(container)
    writing("open d", "write d 1200 5 x")
    iosig("container", "upgrade", container)
    writing("write d 1205 5 y", "sync d")
    assert content(iosig, container) == content_of_sample() + b"xxxxxyyyyy"
    writing.end(kill=True)
    assert content(iosig, container) == content_of_sample() + b"xxxxxyyyyy"
    iosig("container", "repair", container)
    assert content(iosig, container) == content_of_sample() + b"xxxxxyyyyy"


def test_a_killed_upgrade_leaves_one_manifest_or_the_other(iosig: Iosig, container: Path) -> None:
    """At each of its system calls that change something."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    calls = "openat,write,fsync,fchmod,fchown,utimensat,fsetxattr,rename,renameat,renameat2,unlinkat"
    seen: set[str] = set()
    for call in calls.split(","):
        for n in range(1, 60):
            path = container.with_name("one")
            shutil.copytree(container, path)
            inject = f"inject={call}:signal=KILL:when={n}"
            command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", inject]
            done = subprocess.run([*command, iosig.binary, "container", "upgrade", path], capture_output=True)
            seen.add(schema_of(path))
            assert iosig.json("container", "check", path)["sound"]
            assert content(iosig, path) == content_of_sample()
            iosig("container", "upgrade", path)
            assert schema_of(path) == "iosig.container/2"
            shutil.rmtree(path)
            if done.returncode == 0:
                break
    assert seen == {"iosig.container/1", "iosig.container/2"}


@pytest.mark.parametrize("mode", [0o644, 0o444])
@pytest.mark.parametrize("kind", ["flock", "lockf"])
def test_a_file_that_a_program_has_locked_is_not_upgraded(iosig: Iosig, container: Path, kind: str, mode: int) -> None:
    """The lock is on the manifest, which an upgrade replaces."""
    with (container / ".iosig-container").open("r+") as file:
        (container / ".iosig-container").chmod(mode)
        getattr(fcntl, kind)(file, fcntl.LOCK_EX)
        assert "a program holds a lock" in iosig("container", "upgrade", container, check=1).stderr
    assert schema_of(container) == "iosig.container/1"
    iosig("container", "upgrade", container)
    assert schema_of(container) == "iosig.container/2"
