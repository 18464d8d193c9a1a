"""Another program changes a container between any two system calls of a program that writes it.

tests/support/between_steps.c stops the writer before each system call of one of its calls in turn, and runs the other
program to its end. The other program's change took effect during that one call; so every write of before and after it
has its one place in the order, and the file must be what a plain file would be.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD, ROOT, Iosig

LIBRARY = BUILD / "lib" / "libiosig-preload.so"
EVERY = 1 if os.environ.get("IOSIG_CRASH_STEPS") == "all" else 5
"""Each run acts at every fifth call, from another one on in each test; IOSIG_CRASH_STEPS=all: at all of them."""

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="built without libiosig-preload.so")

WRITER = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
/* steps FILE OPS. o: open; t: open with O_TRUNC; 1 to 9: write 100 of that digit where it belongs; T: ftruncate to 100;
   s: fsync; x: close; [ and ]: begin and end of the window. Ends with the number of the call that failed. */
int main(int count, char** given) {
  int fd = -1;
  for (int n = 0; given[2][n] != '\0'; ++n) {
    const char op = given[2][n];
    char block[100];
    int failed = 0;
    memset(block, op, sizeof block);
    if (op == '[' || op == ']') (void)getpgrp();
    else if (op == 'o') failed = (fd = open(given[1], O_RDWR)) < 0;
    else if (op == 't') failed = (fd = open(given[1], O_RDWR | O_TRUNC)) < 0;
    else if (op == 'T') failed = ftruncate(fd, 100) != 0;
    else if (op == 's') failed = fsync(fd) != 0;
    else if (op == 'x') failed = close(fd) != 0;
    else failed = pwrite(fd, block, sizeof block, (op - '1') * 100) != sizeof block;
    if (failed) { perror(given[2] + n); return n + 1; }
  }
  return 0;
}
"""


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """tests/support/between_steps.c and WRITER, compiled."""
    if platform.machine() != "x86_64":
        pytest.skip(f"the tracer of the tests knows the system calls of x86_64, not of {platform.machine()}")
    place = tmp_path_factory.mktemp("steps")
    (place / "writer.c").write_text(WRITER)
    subprocess.run(["gcc", "-O1", "-o", place / "writer", place / "writer.c"], check=True)
    subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-o", place / "between", ROOT / "tests/support/between_steps.c"],
                   check=True)  # fmt: skip
    traced = subprocess.run([place / "between", "0", ":", shutil.which("true") or "/bin/true"], capture_output=True)
    if traced.stdout.split()[:2] != [b"not-reached", b"0"]:
        pytest.skip("processes cannot be traced here")
    return place / "between", place / "writer"


def blocks(text: str, size: int = 100) -> bytes:
    """100 bytes for each character; '.': zeros."""
    return b"".join(bytes(size) if each == "." else each.encode() * size for each in text)


# What the writer does, with its window; what the others do; what the file may be then, in blocks.
FIRST, LATER, CLOSE, OPEN = "o[1]2x", "o1[2]3x", "o12[x]", "[o]12x"
CASES: dict[str, tuple[str, str, set[str]]] = {}
for name, writer, cut, whole in (
    ("first write", FIRST, {"12", ".2"}, "12"),
    ("later write", LATER, {"..3", ".23"}, "123"),
    ("close", CLOSE, {""}, "12"),
    ("open", OPEN, {"12"}, "12"),
):
    CASES[f"{name}, truncated"] = (writer, "$PRELOAD sh -c ': > c'", cut)
    CASES[f"{name}, repaired"] = (writer, "$IOSIG container repair c", {whole})
    CASES[f"{name}, flattened"] = (writer, "$IOSIG container flatten c || true", {whole})
    CASES[f"{name}, written by another"] = (writer, "$PRELOAD $WRITER c o5x", {whole.ljust(4, ".") + "5"})
    CASES[f"{name}, collected"] = (writer, "$IOSIG gc --containers . >/dev/null", {whole})
    CASES[f"{name}, removed and made anew"] = (
        writer,
        "$PRELOAD sh -c 'rm c; : > c; $WRITER c o9x'",
        {"........9", "12......9"} if name == "open" else {"........9"},
    )
CASES["truncating open, written by another"] = ("[t]1x", "$PRELOAD $WRITER c o5x", {"1", "1...5"})
CASES["truncating open, begun by another"] = (
    "[t]1x",
    "$PRELOAD sh -c '(sleep 0.01; exec $WRITER c o5x) & $WRITER c o34x; wait'",
    {"1", "1...5", "1.345", "1.34"},
)
CASES["truncate, written by another"] = ("o12[T]x", "$PRELOAD $WRITER c o5x", {"1", "1...5"})
CASES["sync, truncated"] = ("o1[s]2x", "$PRELOAD sh -c ': > c'", {".2"})


@pytest.mark.parametrize("case", CASES)
def test_between_any_two_steps(iosig: Iosig, tmp_path: Path, programs: tuple[Path, Path], case: str) -> None:
    writer, other, allowed = CASES[case]
    between, program = programs
    preload = f"env LD_PRELOAD={LIBRARY} IOSIG_CONTAINERS={tmp_path}/*/c"
    env = {**iosig.env, "PRELOAD": preload, "IOSIG": str(iosig.binary), "WRITER": str(program)}
    step = 1 + sum(map(ord, case)) % EVERY
    reached, refused = True, []
    while reached:
        place = tmp_path / str(step)
        place.mkdir()
        container = place / "c"
        run = {"cwd": place, "env": env, "capture_output": True, "text": True, "timeout": 60}
        subprocess.run("$PRELOAD sh -c ': > c; $WRITER c o1x; $WRITER c o1x'", shell=True, check=True, **run)
        command = [between, str(step), other, *preload.split(), program, "c", writer]
        said = subprocess.run(command, check=True, **run)
        outcome, status, _ = said.stdout.split()
        reached = outcome != "not-reached"
        assert status == "0", f"step {step}: {said.stderr}"
        bytes_there = subprocess.run(
            ["sh", "-c", "$PRELOAD cat c"], cwd=place, env=env, capture_output=True, check=True
        ).stdout
        # A truncation that had to wait for a lock may come after the last write.
        late = {""} if outcome == "beside" and case.endswith("truncated") else set()
        if bytes_there not in [blocks(each) for each in allowed | late] and reached:
            refused.append((step, bytes_there[::100], said.stderr))
        if container.is_dir():
            iosig("container", "check", container)
        shutil.rmtree(place)
        step += EVERY
    assert not refused, f"{len(refused)} of {step // EVERY} steps: {refused[:3]}"
    assert step > EVERY + 1, "no step was reached"
