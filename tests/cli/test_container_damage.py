"""A damaged container gives the bytes that were written last, or an error; never others without a word."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import BUILD, Iosig
from container_writing import Writing, forget_closed_writers

# b lies over a half of a, d over a quarter of both; c has its own.
COMMANDS = (
    "open a",
    "open b",
    "open c",
    "open d",
    "times a 10 0 10 10 a",
    "write a 100 20 a",
    "times b 5 0 20 15 b",
    "times c 9 120 7 3 c",
    "write c 300 5 c",
    "write d 0 25 d",
)


def written() -> bytes:
    content = bytearray(305)
    content[0:120] = b"a" * 120
    for n in range(5):
        content[20 * n : 20 * n + 15] = b"b" * 15
    for n in range(9):
        content[120 + 7 * n : 123 + 7 * n] = b"ccc"
    content[300:305] = b"ccccc"
    content[0:25] = b"d" * 25
    return bytes(content)


CONTENT = written()


@pytest.fixture(params=["closed", "killed"])
def container(iosig: Iosig, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "file"
    iosig("container", "create", path)
    writing = Writing(path)
    writing(*COMMANDS)
    writing.end(kill=request.param == "killed")
    forget_closed_writers(path)
    return path


def exported(iosig: Iosig, container: Path, *options: str) -> bytes | None:
    """None: it was refused."""
    copy = container.with_name("copy")
    done = iosig("container", "export", container, copy, *options, check=None)
    assert done.returncode in (0, 3), done.stderr
    if done.returncode != 0:
        assert not copy.exists()
        return None
    content = copy.read_bytes()
    copy.unlink()
    return content


def flips(path: Path) -> Iterator[str]:
    sound = path.read_bytes()
    for place in range(0, min(len(sound), 400), 5):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ (1 << place % 8)]) + sound[place + 1 :])
        yield f"{path.name}: byte {place} flipped"
    path.write_bytes(sound)


def cuts(path: Path) -> Iterator[str]:
    sound = path.read_bytes()
    for size in range(0, min(len(sound), 300), 9):
        path.write_bytes(sound[:size])
        yield f"{path.name}: cut to {size}"
    path.write_bytes(sound)


def removals(path: Path) -> Iterator[str]:
    sound = path.read_bytes()
    path.unlink()
    yield f"{path.name}: removed"
    path.write_bytes(sound)


@pytest.mark.parametrize("damages", [flips, cuts, removals])
@pytest.mark.parametrize("kind", ["index", "tail", "data"])
def test_it_is_read_as_it_was_written_or_refused(
    iosig: Iosig, container: Path, damages: Callable[[Path], Iterator[str]], kind: str
) -> None:
    refused = 0
    for id in range(4):
        for path in container.glob(f"d{id}/{kind}.*"):
            if kind == "data" and damages is flips:
                continue  # of the data themselves there is no checksum
            for damage in damages(path):
                content = exported(iosig, container)
                assert content in (None, CONTENT), damage
                refused += content is None
                if content is None:
                    assert iosig.json("container", "check", container, check=1)["problems"], damage
    assert exported(iosig, container) == CONTENT
    if kind == "index" or damages is not flips:
        assert refused or not list(container.glob(f"d*/{kind}.*"))


@pytest.mark.parametrize("name", ["index.1", "data.1"])
def test_what_is_there_can_be_had_and_repair_makes_it_readable(iosig: Iosig, container: Path, name: str) -> None:
    path = container / "d1" / name
    path.unlink()
    assert exported(iosig, container) is None
    there = exported(iosig, container, "--damaged")
    assert there is not None and len(there) == len(CONTENT)
    for n, byte in enumerate(there):
        assert byte == CONTENT[n] or (CONTENT[n] == ord("b") and byte in b"a\0"), n
    iosig("container", "repair", container)
    lost = iosig.json("container", "check", container, check=1)["problems"]
    assert any(problem["kind"] == "lost" and problem["bytes"] == 75 for problem in lost)
    if name == "index.1":
        assert exported(iosig, container) == there
    assert "export --damaged" in iosig("container", "flatten", container, check=3).stderr


def test_what_was_written_after_the_lost_is_sure(iosig: Iosig, tmp_path: Path) -> None:
    path = tmp_path / "file"
    iosig("container", "create", path)
    writing = Writing(path)
    writing("open a", "open b", "write a 0 100 a", "write b 0 10 b")
    writing("truncate a 100", "write a 50 50 A")  # frames of its own number
    writing("write b 40 20 B")
    writing.end(kill=False)
    forget_closed_writers(path)
    index = path / "d1" / "index.1"
    frames = index.read_bytes().split(b"IOX\xf1")[1:]
    assert len(frames) >= 2
    sound = b"b" * 10 + b"a" * 30 + b"B" * 20 + b"A" * 40
    assert exported(iosig, path) == sound
    index.write_bytes(index.read_bytes()[:-1] + b"\0")
    assert exported(iosig, path) is None


def test_programs_get_an_error(iosig: Iosig, container: Path) -> None:
    (container / "d1" / "index.1").unlink()
    done = iosig("run", "--", "cat", container, check=None)
    assert done.returncode == 1 and "Input/output error" in done.stderr and "index" in done.stderr
    assert done.stdout == ""
    iosig("container", "repair", container)
    assert iosig("run", "--", "cat", container).stdout.encode() == exported(iosig, container)


def test_writers_that_left_nothing_are_noticed(iosig: Iosig, container: Path) -> None:
    shutil.rmtree(container / "d1")
    problems = iosig.json("container", "check", container, check=1)["problems"]
    assert [problem["id"] for problem in problems if problem["kind"] == "absent"] == [1]


MARKS = {  # of a writer that only cuts: its index is a head of 63 bytes and a frame of 24
    "removed": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut in the head": lambda path: path.write_bytes(path.read_bytes()[:30]),
    "cut in the mark": lambda path: path.write_bytes(path.read_bytes()[:-5]),
    "head flipped": lambda path: path.write_bytes(path.read_bytes()[:30] + b"!" + path.read_bytes()[31:]),
    "mark flipped": lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\xff"),
    "another's": lambda path: shutil.copy(path.parents[1] / "d0" / "index.0", path),
}


@pytest.mark.parametrize("ends", ["closed", "killed"])
@pytest.mark.parametrize("damage", MARKS)
def test_lost_marks_are_noticed(iosig: Iosig, tmp_path: Path, ends: str, damage: str) -> None:
    path = tmp_path / "file"
    iosig("container", "create", path)
    first, second = Writing(path), Writing(path)
    first("open a", "write a 0 10 a")
    second("open b", "truncate b 4")
    first.end(kill=False)
    second.end(kill=ends == "killed")
    forget_closed_writers(path)
    assert exported(iosig, path) == b"aaaa"
    MARKS[damage](path / "d1" / "index.1")
    if (ends, damage) == ("killed", "cut in the mark"):  # as if it had died while it wrote that
        assert iosig.json("container", "check", path)["problems"][0]["kind"] == "unsynced"
        return
    assert exported(iosig, path) is None
    assert not iosig.json("container", "check", path, check=1)["sound"]


def test_a_mark_is_not_bounded_by_the_writes_that_stand_behind_it(iosig: Iosig, tmp_path: Path) -> None:
    path = tmp_path / "file"
    iosig("container", "create", path)
    writing = Writing(path)
    writing("open a", "write a 0 10 a", "truncate a 4")  # the write's frame comes when the writer ends
    writing.end(kill=False)
    forget_closed_writers(path)
    assert exported(iosig, path) == b"aaaa"
    index = path / "d0" / "index.0"
    frames = index.read_bytes().split(b"IOX\xf1")
    assert len(frames) == 4
    frames[2] = frames[2][:-1] + b"\xff"
    index.write_bytes(b"IOX\xf1".join(frames))
    done = iosig("run", "--", "dd", f"if={path}", "bs=4", "count=1", check=None)
    assert done.returncode == 1 and done.stdout == ""


def test_another_writers_tail_is_not_taken_for_its_own(iosig: Iosig, tmp_path: Path) -> None:
    path = tmp_path / "file"
    iosig("container", "create", path)
    writing = Writing(path)
    writing("open a", "open b", "write a 0 10 a", "write b 10 10 b")
    writing.end(kill=True)
    tails = [path / f"d{id}" / f"tail.{id}" for id in range(2)]
    assert exported(iosig, path) == b"a" * 10 + b"b" * 10
    shutil.copy(tails[0], tails[1])
    assert exported(iosig, path) is None
    iosig("container", "repair", path)
    assert not iosig.json("container", "check", path, check=1)["sound"]
    assert exported(iosig, path) == b"a" * 10
    assert iosig("container", "flatten", path, check=3).stderr


def test_repair_between_the_making_of_a_tail_and_its_lock_loses_nothing(iosig: Iosig, tmp_path: Path) -> None:
    """Repair takes a tail that is not locked for a dead writer's."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    path = tmp_path / "file"
    iosig("container", "create", path)
    delayed = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=flock", "-e", "inject=flock:delay_enter=300000"]
    program = [*delayed, str(BUILD / "bin" / "write_container"), str(path)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writing:
        assert writing.stdin and writing.stdout
        writing.stdin.write("open w\n")
        writing.stdin.flush()
        tail = wait_for_tail(path)
        iosig("container", "repair", path)
        assert writing.stdout.readline() == "ok\n"
        assert not tail.exists()  # it was taken for a dead writer's, so the writer has another one
        writing.stdin.write("write w 0 4 a\n")
        writing.stdin.flush()
        assert writing.stdout.readline() == "ok\n"
        iosig("container", "repair", path)
        writing.kill()
    iosig("container", "repair", path)
    assert exported(iosig, path) == b"aaaa"


def wait_for_tail(container: Path) -> Path:
    for _ in range(1000):
        if tails := list(container.rglob("tail.*")):
            return tails[0]
        time.sleep(0.005)
    raise AssertionError("no tail was made")


def test_repair_beside_writers_loses_nothing(iosig: Iosig, tmp_path: Path) -> None:
    path = tmp_path / "file"
    iosig("container", "create", path)
    repairs = subprocess.Popen(
        ["sh", "-c", f"while [ ! -e {tmp_path / 'end'} ]; do {iosig.binary} container repair {path}; done"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    for n in range(300):
        writing = Writing(path)
        writing(f"open w{n}", f"write w{n} {4 * n} 4 {chr(97 + n % 26)}")
        writing.end(kill=n % 3 == 2)
    (tmp_path / "end").touch()
    said = repairs.communicate()[0]
    assert "aside" not in said
    assert exported(iosig, path) == b"".join(bytes([97 + n % 26]) * 4 for n in range(300))
