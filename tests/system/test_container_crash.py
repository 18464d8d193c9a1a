"""A writer of a container is killed before each of its system calls: what it said was written is there.

strace counts the calls that change files in one undisturbed run, then kills a run before each of them. Afterwards the
container must hold every write that was answered with "ok"; the one at work may be there or not. A repair must lose
none of them and leave nothing to do, and a new writer must find its place. `make test` takes every fifth call;
IOSIG_CRASH_STEPS=all takes all.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD, Iosig

EVERY = 1 if os.environ.get("IOSIG_CRASH_STEPS") == "all" else 5
CALLS = "openat,mkdirat,linkat,unlinkat,renameat,ftruncate,fallocate,write,pwrite64,fsync,fdatasync,msync,mmap,mremap"

# A strided writer, a disturbing one, syncs, a cut, a late comer.
COMMANDS = [
    "open a",
    "times a 5 0 100 50 a",
    "open b",
    "write b 120 60 b",
    "write a 150 10 A",
    "sync a",
    "times a 5 500 100 50 c",
    "truncate b 800",
    "write b 900 30 d",
    "close a",
    "open a",
    "write a 0 20 e",
    "sync a",
    "close a",
    "close b",
]


def apply(content: bytearray, command: str) -> None:
    """What a plain file would hold after the command."""
    words = command.split()
    if words[0] == "truncate":
        size = int(words[2])
        del content[size:]
        content.extend(bytes(size - len(content)))
    if words[0] not in ("write", "times"):
        return
    count, numbers = (int(words[2]), words[3:6]) if words[0] == "times" else (1, [words[2], "0", words[3]])
    offset, stride, length = map(int, numbers)
    for n in range(count):
        begin = offset + n * stride
        content.extend(bytes(max(0, begin + length - len(content))))
        content[begin : begin + length] = words[-1].encode() * length


def run(container: Path, *inject: str) -> tuple[int, list[str]]:
    """How many commands were answered with "ok", and the calls that strace saw."""
    log = container.with_name("strace")
    options = ["-qq", "-o", str(log), "-e", f"trace={CALLS}", *inject]
    done = subprocess.run(
        ["strace", *options, str(BUILD / "bin" / "write_container"), str(container)],
        input="\n".join(COMMANDS),
        capture_output=True,
        text=True,
        timeout=60,
    )
    answers = done.stdout.split("\n")[:-1]
    assert set(answers) <= {"ok"}, done.stdout
    return len(answers), re.findall(r"^(\w+)\(", log.read_text(), re.MULTILINE)


def content_of(iosig: Iosig, container: Path) -> bytes:
    copy = container.with_name("copy")
    copy.unlink(missing_ok=True)
    iosig("container", "export", container, copy)
    return copy.read_bytes()


def may_be(done: int) -> list[bytes]:
    """What the file may hold when `done` commands were answered: the next one may have been at work."""
    content = bytearray()
    for command in COMMANDS[:done]:
        apply(content, command)
    allowed = [bytes(content)]
    if done < len(COMMANDS):
        words = COMMANDS[done].split()
        for n in range(1, int(words[2]) + 1 if words[0] == "times" else 2):
            partly = bytearray(content)
            apply(partly, " ".join(["times", words[1], str(n), *words[3:]]) if words[0] == "times" else " ".join(words))
            allowed.append(bytes(partly))
    return allowed


def test_nothing_that_was_answered_is_lost(iosig: Iosig, tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    container = tmp_path / "file"
    iosig("container", "create", container)
    done, calls = run(container)
    assert done == len(COMMANDS) and content_of(iosig, container) in may_be(done)
    first = next(n for n, call in enumerate(calls) if call == "mkdirat")  # before, the program itself is loaded
    for step in range(first - 5, len(calls) + 1, EVERY):
        where = f"killed before call {step} of {len(calls)}, {calls[step - 1]}"
        shutil.rmtree(container)
        iosig("container", "create", container)
        done, _ = run(container, "-e", f"inject={CALLS}:signal=KILL:when={step}")
        assert content_of(iosig, container) in may_be(done), where
        found = content_of(iosig, container)
        assert iosig.json("container", "check", container)["sound"], where
        iosig("container", "repair", container)
        assert content_of(iosig, container) == found, f"repaired after {where}"
        assert iosig.json("container", "repair", "--dry-run", container)["steps"] == [], where
        subprocess.run(
            [str(BUILD / "bin" / "write_container"), str(container)],
            input="open z\nwrite z 0 1 Z\nclose z",
            capture_output=True,
            text=True,
            check=True,
        )
        assert content_of(iosig, container) == b"Z" + found[1:], f"written after {where}"
