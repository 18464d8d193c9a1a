"""A writer that has synced and was killed is known in a second place: the loss of all its droppings is noticed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import BUILD, Iosig
from container_writing import Writing


def exported(iosig: Iosig, container: Path, *options: str) -> bytes | None:
    """None: it was refused."""
    copy = container.with_name("copy")
    copy.unlink(missing_ok=True)
    done = iosig("container", "export", *options, container, copy, check=None)
    return copy.read_bytes() if done.returncode == 0 else None


def problems(iosig: Iosig, container: Path) -> list[tuple[str, int | None]]:
    found = iosig.json("container", "check", "--data", container, check=None)["problems"]
    return [(each["kind"], each["id"]) for each in found]


def killed(iosig: Iosig, tmp_path: Path, *commands: str) -> Path:
    path = tmp_path / "file"
    iosig("container", "create", path)
    writing = Writing(path)
    writing(*commands)
    writing.end(kill=True)
    return path


@pytest.fixture
def container(iosig: Iosig, tmp_path: Path) -> Path:
    """Writer 0 was closed, writers 1 and 2 had synced and were killed."""
    return killed(
        iosig,
        tmp_path,
        *("open a", "write a 0 10 a", "close a"),
        *("open b", "write b 10 10 b", "sync b", "open c", "write c 20 10 c", "sync c", "write c 30 10 C"),
    )


DAMAGES: dict[str, Callable[[Path], object]] = {
    "index gone": lambda container: (container / "d1" / "index.1").unlink(),
    "index cut": lambda container: (container / "d1" / "index.1").write_bytes(b"IO"),
    "tail zeroed": lambda container: (container / "d1" / "tail.1").write_bytes(bytes(8192)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_whose_killed_writer_is_damaged_can_be_emptied(iosig: Iosig, container: Path, damage: str) -> None:
    """The writer is dead, so that what it wrote is older than the new content, whatever it was."""
    DAMAGES[damage](container)
    assert exported(iosig, container) is None
    iosig("run", "--", "sh", "-c", f"printf new > {container}")
    assert problems(iosig, container) == [] and exported(iosig, container) == b"new"


def test_emptying_a_file_keeps_the_damaged_droppings_of_an_active_writer(iosig: Iosig, container: Path) -> None:
    """What it writes afterwards counts."""
    writing = Writing(container)
    writing("open d", "write d 0 5 d")
    (container / "d3" / "index.3").unlink()
    iosig("run", "--", "sh", "-c", f": > {container}")
    assert (container / "d3" / "data.3").exists() and (container / "d3" / "tail.3").exists()
    writing.end(kill=True)
    assert exported(iosig, container) is None


@pytest.mark.parametrize("id", [1, 2])
def test_a_writer_of_which_nothing_is_left_is_missed(iosig: Iosig, container: Path, id: int) -> None:
    assert problems(iosig, container) == []
    shutil.rmtree(container / f"d{id}")
    assert problems(iosig, container) == [("lost", id)]
    assert exported(iosig, container) is None
    done = iosig("run", "--", "cat", container, check=1)
    assert "Input/output error" in done.stderr and done.stdout == ""
    # A program that opens it to write takes another id.
    iosig("run", "--", "sh", "-c", f"printf new | dd of={container} conv=notrunc")
    assert problems(iosig, container) == [("lost", id)]
    assert (container / "d3" / "index.3").exists() and not (container / f"d{id}").exists()


def test_repair_gives_the_writer_up_and_check_goes_on_naming_it(iosig: Iosig, container: Path) -> None:
    shutil.rmtree(container / "d2")
    done = iosig("container", "repair", "--dry-run", container)
    assert "would" in done.stdout and "writer 2: 10 bytes that it had synced are missing" in done.stdout
    assert problems(iosig, container) == [("lost", 2)] and exported(iosig, container) is None
    iosig("container", "repair", container)
    assert problems(iosig, container) == [("lost", 2)]
    assert exported(iosig, container, "--damaged") == b"a" * 10 + b"b" * 10
    assert iosig("run", "--", "cat", container).stdout == "a" * 10 + "b" * 10
    assert iosig.json("container", "repair", container)["steps"] == []
    iosig("run", "--", "sh", "-c", f"printf new > {container}")
    assert problems(iosig, container) == [] and exported(iosig, container) == b"new"


def test_what_repair_gave_up_is_still_named_after_the_record_was_damaged(iosig: Iosig, container: Path) -> None:
    shutil.rmtree(container / "d2")
    (record,) = container.glob("closed.*")
    record.write_bytes(record.read_bytes() + b"IOX\xf1 rest")
    assert sorted(problems(iosig, container)) == [("damaged", None), ("lost", 2)]
    iosig("container", "repair", container)
    assert problems(iosig, container) == [("lost", 2)]
    record.write_bytes(record.read_bytes() + b"IOX\xf1 rest")
    iosig("container", "repair", container)
    assert problems(iosig, container) == [("lost", 2)]


def remove(*names: str) -> Callable[[Path], None]:
    return lambda container: [(container / "d2" / f"{name}.2").unlink() for name in names] and None


def zero_tail(container: Path) -> None:
    tail = container / "d2" / "tail.2"
    tail.write_bytes(bytes(tail.stat().st_size))


def cut_tail_and_data(container: Path) -> None:
    (container / "d2" / "tail.2").write_bytes(b"")
    (container / "d2" / "data.2").write_bytes(b"")


LOSSES = {
    "index and data": remove("index", "data"),
    "index and tail": remove("index", "tail"),
    "data and tail": remove("data", "tail"),
    "tail": remove("tail"),
    "index, data and tail": remove("index", "data", "tail"),
    "zeroed tail": zero_tail,
    "cut tail and data": cut_tail_and_data,
}


# How a file is emptied: only the first deletes records.
EMPTYING = {"O_TRUNC": ": > {}", "truncate": "truncate -s 0 {}"}


@pytest.mark.parametrize("loss", LOSSES)
def test_no_loss_of_a_synced_writer_passes_for_nothing(iosig: Iosig, container: Path, loss: str) -> None:
    LOSSES[loss](container)
    assert ("lost", 2) in problems(iosig, container)
    assert exported(iosig, container) is None
    iosig("container", "repair", container)
    assert ("lost", 2) in problems(iosig, container)
    left = exported(iosig, container, "--damaged")
    assert left is not None and left[:20] == b"a" * 10 + b"b" * 10 and left[20:].strip(b"\0") == b""


def test_a_repaired_writer_is_known_by_its_new_record(iosig: Iosig, container: Path) -> None:
    iosig("container", "repair", container)
    content = b"a" * 10 + b"b" * 10 + b"c" * 10 + b"C" * 10
    assert problems(iosig, container) == [] and exported(iosig, container) == content
    (container / "d2" / "index.2").unlink()
    assert problems(iosig, container) == [("damaged", 2)] and exported(iosig, container) == content


def test_an_emptied_file_misses_no_writer(iosig: Iosig, container: Path) -> None:
    """Whose droppings it may keep, because they had not been closed."""
    iosig("run", "--", "sh", "-c", f": > {container}")
    assert problems(iosig, container) == [] and exported(iosig, container) == b""
    for id in (1, 2):
        shutil.rmtree(container / f"d{id}")
    assert ("lost", 1) not in problems(iosig, container) and exported(iosig, container) == b""


@pytest.mark.parametrize("way", EMPTYING)
def test_a_writer_that_goes_on_after_the_file_was_emptied_is_missed(iosig: Iosig, tmp_path: Path, way: str) -> None:
    path = tmp_path / "file"
    iosig("container", "create", path)
    writing = Writing(path)
    writing("open a", "write a 0 10 a", "sync a")
    iosig("run", "--", "sh", "-c", EMPTYING[way].format(path))
    writing("write a 0 5 b", "sync a", "sync a")
    writing.end(kill=True)
    assert problems(iosig, path) == [] and exported(iosig, path) == b"b" * 5
    shutil.rmtree(path / "d0")
    assert ("lost", 0) in problems(iosig, path) and exported(iosig, path) is None


def test_the_sync_of_a_writer_of_format_1_leaves_no_record(iosig: Iosig, tmp_path: Path) -> None:
    """Programs that know no other would take it for damage."""
    path = tmp_path / "file"
    shutil.copytree(Path(__file__).parent.parent / "data" / "container-1", path)
    before = sorted(path.glob("closed.*"))
    writing = Writing(path)
    writing("open d", "write d 1200 5 x", "sync d")
    assert sorted(path.glob("closed.*")) == before
    iosig("container", "upgrade", path)
    writing("sync d")
    assert sorted(path.glob("closed.*")) == before
    writing.end(kill=False)
    writing = Writing(path)
    writing("open e", "write e 1205 5 y", "sync e")
    assert any(b"\x08\x02 " in record.read_bytes() for record in path.glob("closed.*"))
    writing.end(kill=False)
    assert problems(iosig, path) == []


def test_a_sync_without_room_for_its_record_succeeds(iosig: Iosig, tmp_path: Path) -> None:
    path = tmp_path / "file"
    iosig("container", "create", path)
    said = subprocess.run(
        ["sh", "-c", f"ulimit -f 40; exec {BUILD / 'bin' / 'write_container'} {path}"],
        input="open a\nwrite a 0 10 a\nclose a\n" * 400 + "open b\nwrite b 0 10 b\nsync b\nwrite b 5 10 b\nsync b\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(said.stdout.split()) == {"ok"}
    (record,) = path.glob("closed.*")
    assert record.stat().st_size <= 40 * 1024
    assert exported(iosig, path) == b"b" * 15
