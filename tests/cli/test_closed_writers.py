"""The record that writers leave when they are closed shows what happens to their indices later, and mends it."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Iosig
from container_writing import Writing

WRITERS = 8
COPIES = int(os.environ.get("IOSIG_DAMAGED_COPIES", "60"))


def written() -> bytes:
    content = bytearray()
    for _ in range(20):
        for id in range(WRITERS):
            content += bytes([ord("a") + id]) * 64
    content[100:150] = b"C" * 50
    content[130:170] = b"F" * 40
    return bytes(content[:9000]) + bytes(500) + b"G" * 50


CONTENT = written()


@pytest.fixture
def container(iosig: Iosig, tmp_path: Path) -> Path:
    """Eight writers of equal shares, some of whose bytes lie over others', a hole, and truncations."""
    path = tmp_path / "file"
    iosig("container", "create", path)
    writing = Writing(path)
    for id in range(WRITERS):
        letter = chr(ord("a") + id)
        writing(f"open {letter}", f"times {letter} 20 {64 * id} {64 * WRITERS} 64 {letter}")
    writing("write c 100 50 C", "write f 130 40 F", "write h 9100 10 H")
    writing("truncate b 9000", "write g 9500 100 G", "truncate e 9550")
    writing.end(kill=False)
    assert exported(iosig, path) == CONTENT
    return path


def exported(iosig: Iosig, container: Path) -> bytes | None:
    """None: it was refused."""
    copy = container.with_name("copy")
    done = iosig("container", "export", container, copy, check=None)
    assert done.returncode in (0, 3), done.stderr
    if done.returncode != 0:
        return None
    content = copy.read_bytes()
    copy.unlink()
    return content


def is_sound(iosig: Iosig, container: Path) -> bool:
    sound: bool = iosig.json("container", "check", container, check=None)["sound"]
    return sound


def index(container: Path, id: int) -> Path:
    return container / f"d{id}" / f"index.{id}"


def data(container: Path, id: int) -> Path:
    return container / f"d{id}" / f"data.{id}"


def frames_of(path: Path) -> list[bytes]:
    return [b"IOX\xf1" + part for part in path.read_bytes().split(b"IOX\xf1")[1:]]


def repeat_a_frame(container: Path) -> None:
    path = index(container, 2)
    path.write_bytes(path.read_bytes() + frames_of(path)[-1])


def splice_a_frame_of_another(container: Path) -> None:
    path = index(container, 2)
    path.write_bytes(path.read_bytes() + frames_of(index(container, 3))[-1])


def cut_index_and_data_at_one_boundary(container: Path) -> None:
    path = index(container, 6)
    path.write_bytes(frames_of(path)[0])
    data(container, 6).write_bytes(b"")


def cut_off_a_truncation(container: Path) -> None:
    path = index(container, 1)
    frames = frames_of(path)
    path.write_bytes(b"".join(frame for frame in frames if len(frame) > 30))


def swap_two_indices(container: Path) -> None:
    one, other = index(container, 1).read_bytes(), index(container, 4).read_bytes()
    index(container, 1).write_bytes(other)
    index(container, 4).write_bytes(one)


def remove_indices(container: Path) -> None:
    for id in range(WRITERS):
        index(container, id).unlink()


def remove_the_last_writer(container: Path) -> None:
    shutil.rmtree(container / f"d{WRITERS - 1}")


def remove_a_writer_in_the_middle(container: Path) -> None:
    shutil.rmtree(container / "d3")


DAMAGES = [
    (repeat_a_frame, True),
    (splice_a_frame_of_another, True),
    (cut_index_and_data_at_one_boundary, False),
    (cut_off_a_truncation, True),
    (swap_two_indices, True),
    (remove_indices, True),
    (remove_the_last_writer, False),
    (remove_a_writer_in_the_middle, False),
]


@pytest.mark.parametrize(("damage", "keeps_data"), DAMAGES, ids=lambda value: getattr(value, "__name__", ""))
def test_damage_after_the_close_is_seen_and_mended(
    iosig: Iosig, container: Path, damage: Callable[[Path], None], keeps_data: bool
) -> None:
    damage(container)
    assert not is_sound(iosig, container)
    assert exported(iosig, container) == (CONTENT if keeps_data else None)
    # At most the lost writer's share cannot be read, and what it was is known.
    lost = iosig.json("container", "check", container, check=None)["lost_bytes"]
    assert lost <= (0 if keeps_data else len(CONTENT) / WRITERS + 200)
    iosig("container", "repair", container)
    assert is_sound(iosig, container) == keeps_data
    assert exported(iosig, container) == (CONTENT if keeps_data else None)
    iosig("container", "repair", container)
    assert is_sound(iosig, container) == keeps_data


def test_programs_read_what_is_not_lost_and_what_is_written_anew(iosig: Iosig, container: Path) -> None:
    remove_a_writer_in_the_middle(container)
    for id in range(WRITERS):
        done = iosig("run", "--", "dd", f"if={container}", "bs=64", f"skip={WRITERS * 5 + id}", "count=1", check=None)
        assert (done.returncode == 0) == (id != 3), id
        if id != 3:
            assert done.stdout.encode() == CONTENT[64 * (40 + id) : 64 * (41 + id)]
    again = ("dd", f"of={container}", "bs=64", f"seek={WRITERS * 5 + 3}", "count=1", "conv=notrunc")
    iosig("run", "--", "sh", "-c", "printf %064d 7 | " + " ".join(again))
    done = iosig("run", "--", "dd", f"if={container}", "bs=64", f"skip={WRITERS * 5 + 3}", "count=1")
    assert done.stdout == f"{7:064d}"


def test_an_emptied_file_has_no_lost_writers(iosig: Iosig, container: Path) -> None:
    iosig("run", "--", "sh", "-c", f": > {container}; printf new >> {container}")
    assert is_sound(iosig, container) and exported(iosig, container) == b"new"
    assert len(list(container.glob("d*/index.*"))) < WRITERS


def test_a_damaged_record_is_renewed(iosig: Iosig, container: Path) -> None:
    (record,) = container.glob("closed.*")
    sound = record.read_bytes()
    for damaged in (sound[:-9], sound[:200] + b"!" + sound[201:], sound[:-1] + b"!", b"", sound + b"IOX\xf1rest"):
        record.write_bytes(damaged)
        assert exported(iosig, container) == CONTENT
        assert is_sound(iosig, container) == (damaged == b"")
        iosig("container", "repair", container)
        assert is_sound(iosig, container)
    remove_indices(container)
    assert exported(iosig, container) == CONTENT


def test_a_writer_that_repair_gave_up_stays_given_up(iosig: Iosig, container: Path) -> None:
    """Its index and its record are lost; without them its data mean nothing."""
    (record,) = container.glob("closed.*")
    record.unlink()
    index(container, 3).write_bytes(b"")
    assert exported(iosig, container) is None
    iosig("container", "repair", container)
    left = exported(iosig, container)
    assert left is not None and left[64 * 3 : 64 * 4] == bytes(64)


PLANTS: dict[str, Callable[[Path, Path], object]] = {
    "a link": lambda record, elsewhere: record.symlink_to(elsewhere),
    "a FIFO": lambda record, _: os.mkfifo(record),
    "a directory": lambda record, _: record.mkdir(),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_what_stands_in_the_place_of_the_record_is_neither_followed_nor_in_the_way(
    iosig: Iosig, container: Path, tmp_path: Path, plant: str
) -> None:
    (record,) = container.glob("closed.*")
    record.unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    PLANTS[plant](record, elsewhere)
    iosig("run", "--", "sh", "-c", f"printf more >> {container}")
    assert exported(iosig, container) == CONTENT + b"more"
    assert not is_sound(iosig, container) and elsewhere.read_text() == "mine"
    iosig("container", "repair", container)
    assert is_sound(iosig, container) and len(list(container.glob("closed.*"))) == 1
    assert exported(iosig, container) == CONTENT + b"more" and elsewhere.read_text() == "mine"


def test_damaged_copies_are_read_as_they_were_written_or_refused(iosig: Iosig, container: Path, tmp_path: Path) -> None:
    """Alone and in pairs, in indices and sizes of data, which leave one record of each fact."""
    chance = random.Random(15)
    for n in range(COPIES):
        copy = tmp_path / "damaged"
        shutil.copytree(container, copy)
        told = [hurt(copy, container, chance, id) for id in chance.sample(range(WRITERS), chance.choice((1, 1, 2)))]
        assert exported(iosig, copy) in (None, CONTENT), (n, told)
        assert not is_sound(iosig, copy), (n, told)
        shutil.rmtree(copy)


def hurt(container: Path, sound: Path, chance: random.Random, id: int) -> str:
    """Damages droppings of one writer, in a way that no checksum of a frame needs to show."""
    path = index(container, id)
    bytes_, frames = path.read_bytes(), frames_of(path)
    other = index(sound, (id + chance.randrange(1, WRITERS)) % WRITERS)
    place = chance.randrange(len(bytes_))
    kind = chance.choice(
        ("flip", "cut", "cut frames", "remove", "repeat", "splice", "swap", "zero", "cut data", "gone")
    )
    if kind == "flip":
        path.write_bytes(bytes_[:place] + bytes([bytes_[place] ^ (1 << chance.randrange(8))]) + bytes_[place + 1 :])
    elif kind == "cut":
        path.write_bytes(bytes_[:place])
    elif kind == "cut frames":
        path.write_bytes(b"".join(frames[: chance.randrange(1, len(frames))]))
    elif kind == "remove":
        path.unlink()
    elif kind == "repeat":
        path.write_bytes(bytes_ + chance.choice(frames))
    elif kind == "splice":
        path.write_bytes(bytes_ + chance.choice(frames_of(other)))
    elif kind == "swap":
        path.write_bytes(other.read_bytes())
    elif kind == "zero":
        path.write_bytes(bytes_[:place] + bytes(len(bytes_) - place))
    elif kind == "cut data":
        size = data(container, id).stat().st_size
        os.truncate(data(container, id), chance.randrange(size))
    else:
        path.unlink()
        data(container, id).unlink()
    return f"writer {id}: {kind} at {place}"
