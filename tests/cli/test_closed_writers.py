"""The record that writers leave when they are closed shows what happens to their indices later, and mends it."""

from __future__ import annotations

import os
import random
import shutil
import time
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
    return made(iosig, tmp_path, is_killed=False)


def made(iosig: Iosig, tmp_path: Path, *, is_killed: bool, name: str = "file") -> Path:
    """Eight writers of equal shares, some of whose bytes lie over others', a hole, and truncations. Closed, or synced
    and killed."""
    path = tmp_path / name
    iosig("container", "create", path)
    writing = Writing(path)
    for id in range(WRITERS):
        letter = chr(ord("a") + id)
        writing(f"open {letter}", f"times {letter} 20 {64 * id} {64 * WRITERS} 64 {letter}")
    writing("write c 100 50 C", "write f 130 40 F", "write h 9100 10 H")
    writing("truncate b 9000", "write g 9500 100 G", "truncate e 9550")
    if is_killed:
        writing(*(f"sync {chr(ord('a') + id)}" for id in range(WRITERS)))
    writing.end(kill=is_killed)
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


def is_sound(iosig: Iosig, container: Path, *options: str) -> bool:
    sound: bool = iosig.json("container", "check", *options, container, check=None)["sound"]
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
    # One read of the whole file ends before the first lost byte, so that what lies before it is not lost, too.
    done = iosig("run", "--", "cat", container, check=None)
    assert (done.returncode, done.stdout.encode()) == (1, CONTENT[: 3 * 64])
    again = ("dd", f"of={container}", "bs=64", f"seek={WRITERS * 5 + 3}", "count=1", "conv=notrunc")
    iosig("run", "--", "sh", "-c", "printf %064d 7 | " + " ".join(again))
    done = iosig("run", "--", "dd", f"if={container}", "bs=64", f"skip={WRITERS * 5 + 3}", "count=1")
    assert done.stdout == f"{7:064d}"


def test_an_emptied_file_has_no_lost_writers(iosig: Iosig, container: Path) -> None:
    iosig("run", "--", "sh", "-c", f": > {container}; printf new >> {container}")
    assert is_sound(iosig, container) and exported(iosig, container) == b"new"
    assert len(list(container.glob("d*/index.*"))) < WRITERS


def test_a_file_that_has_lost_all_its_droppings_can_be_emptied(iosig: Iosig, container: Path) -> None:
    for id in range(WRITERS):
        shutil.rmtree(container / f"d{id}")
    iosig("run", "--", "sh", "-c", f": > {container}")
    assert is_sound(iosig, container) and exported(iosig, container) == b""
    iosig("run", "--", "sh", "-c", f"printf new > {container}")
    assert is_sound(iosig, container, "--data") and exported(iosig, container) == b"new"


def test_what_a_writer_wrote_after_another_had_emptied_the_file_is_lost_with_its_droppings(
    iosig: Iosig, tmp_path: Path
) -> None:
    """The writer's id is smaller than that of the truncation, which deletes what smaller ids wrote before it."""
    path = tmp_path / "log"
    iosig("container", "create", path)
    iosig("run", "--", "sh", "-c", f"exec 5>>{path}; echo before >&5; : > {path}; echo after >&5")
    assert exported(iosig, path) == b"after\n"
    (grown,) = (each for each in path.glob("d*/data.*") if each.stat().st_size > 0)
    shutil.rmtree(grown.parent)
    assert not is_sound(iosig, path) and exported(iosig, path) is None
    assert "Input/output error" in iosig("run", "--", "cat", path, check=1).stderr
    iosig("run", "--", "sh", "-c", f"echo new > {path}")
    assert is_sound(iosig, path, "--data") and exported(iosig, path) == b"new\n"


def test_a_file_that_was_emptied_while_a_target_was_away_is_empty(iosig: Iosig, tmp_path: Path) -> None:
    path, target, other = tmp_path / "file", tmp_path / "target", tmp_path / "other"
    target.mkdir()
    other.mkdir()
    iosig("container", "create", "--target", target, "--target", other, path)
    iosig("run", "--", "sh", "-c", f"for n in 1 2 3; do echo line $n >> {path}; done")
    target.rename(tmp_path / "away")
    iosig("run", "--", "truncate", "-s", 0, path)  # its writer's data are on the other target
    (tmp_path / "away").rename(target)
    assert is_sound(iosig, path, "--data") and exported(iosig, path) == b""
    iosig("run", "--", "sh", "-c", f"echo new > {path}")
    assert is_sound(iosig, path, "--data") and exported(iosig, path) == b"new\n"
    assert len([*target.glob("*/d*/data.*"), *other.glob("*/d*/data.*")]) < 4, "what was void is deleted now"


def test_the_id_of_a_writer_that_is_lost_is_not_given_to_another(iosig: Iosig, container: Path) -> None:
    """Nor after a boot, when only the record knows the id."""
    shutil.rmtree(container / f"d{WRITERS - 1}")
    for order in container.glob("order.*"):
        order.unlink()
    writing = Writing(container)
    writing("open z", "write z 0 6 z")
    done = iosig("run", "--", "dd", f"if={container}", "bs=10", "count=1")
    assert done.stdout == "z" * 6 + "a" * 4  # while the writer is active
    writing.end(kill=False)
    assert (container / f"d{WRITERS}" / f"index.{WRITERS}").exists()
    assert iosig("run", "--", "dd", f"if={container}", "bs=10", "count=1").stdout == "z" * 6 + "a" * 4


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
    (container / ".iosig-index").unlink(missing_ok=True)  # a reader that came late enough has left it
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


@pytest.mark.parametrize("is_killed", [False, True], ids=["closed", "synced and killed"])
def test_damaged_copies_are_read_as_they_were_written_or_refused(iosig: Iosig, tmp_path: Path, is_killed: bool) -> None:
    """Alone and in pairs, in indices, tails, data and records, which leave one record of each fact."""
    container = made(iosig, tmp_path, is_killed=is_killed)
    twin = made(iosig, tmp_path, is_killed=is_killed, name="twin")
    assert is_sound(iosig, container, "--data")
    kinds = [*HURTS, *FOREIGN, *HURTS_OF_TAILS] if is_killed else [*HURTS, *FOREIGN]
    chance = random.Random(int(os.environ.get("IOSIG_DAMAGED_SEED", "15")))
    for n in range(COPIES):
        copy = tmp_path / "damaged"
        shutil.copytree(container, copy)
        told = [
            hurt(copy, container, twin, chance, id, chance.choice(kinds))
            for id in chance.sample(range(WRITERS), chance.choice((1, 1, 2)))
        ]
        if not is_killed and len(told) == 1 and chance.random() < 0.5:
            told.append(hurt_record(copy, chance, of_others_than=int(told[0].split()[1].rstrip(":"))))
        left = exported(iosig, copy)
        assert left in (None, CONTENT), (n, told)
        # A record holds its count twice, of which one may be zeroed without a loss.
        is_harmless = left == CONTENT and all("tail" in each for each in told)
        assert is_harmless or not is_sound(iosig, copy, "--data"), (n, told)
        read = what_a_program_reads(iosig, copy)
        # An ordinary read of less than a block does not compare the data with their checksum.
        assert any(" data" in each for each in told) or CONTENT.startswith(read), (n, told)
        shutil.rmtree(copy)


def test_copies_with_damaged_replicas_are_read_as_they_were_written(iosig: Iosig, tmp_path: Path) -> None:
    """All droppings are there, so nothing may be lost, whatever stands in the records and in the index snapshot."""
    container, twin = (made(iosig, tmp_path, is_killed=False, name=name) for name in ("file", "twin"))
    for each in (container, twin):
        time.sleep(0.05)  # younger changes have no snapshot
        assert what_a_program_reads(iosig, each) == CONTENT
        assert (each / ".iosig-index").exists()
    chance = random.Random(int(os.environ.get("IOSIG_DAMAGED_SEED", "15")))
    for n in range(COPIES // 3):
        saved = {path: path.read_bytes() for path in [container / ".iosig-index", *container.glob("closed.*")]}
        for path, content in saved.items():
            kind = chance.choice([*HURTS_OF_FILES])
            (of_twin,) = twin.glob(f"{path.name.split('.')[0] or '.iosig-index'}*")
            path.write_bytes(HURTS_OF_FILES[kind](content, of_twin.read_bytes(), chance))
            assert what_a_program_reads(iosig, container) == CONTENT, (n, path.name, kind)
            assert exported(iosig, container) == CONTENT, (n, path.name, kind)
        for path, content in saved.items():  # neither is a new file, so that the snapshot is as old as before
            path.write_bytes(content)


def what_a_program_reads(iosig: Iosig, container: Path) -> bytes:
    """Up to the first error."""
    into = container.with_name("read")
    iosig("run", "--", "dd", f"if={container}", f"of={into}", "bs=1000", check=None)
    return into.read_bytes()


def hurt_record(container: Path, chance: random.Random, *, of_others_than: int) -> str:
    """Flips a bit of a closed writer's record."""
    (path,) = container.glob("closed.*")
    records = records_of(path.read_bytes())
    at = chance.choice([n for n, record in enumerate(records) if writer_of(record) != of_others_than])
    path.write_bytes(b"".join(flipped(record, chance) if n == at else record for n, record in enumerate(records)))
    return f"record of writer {writer_of(records[at])}: flip"


def records_of(bytes_: bytes) -> list[bytes]:
    records = []
    while bytes_:
        end = 12 + int.from_bytes(bytes_[4:8], "little")
        records.append(bytes_[:end])
        bytes_ = bytes_[end:]
    return records


def writer_of(record: bytes) -> int:
    return record[47] // 2  # docs/formats/container.md, Record of closed writers


def flipped(bytes_: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(bytes_))
    return bytes_[:place] + bytes([bytes_[place] ^ (1 << chance.randrange(8))]) + bytes_[place + 1 :]


def flipped_where_used(bytes_: bytes, chance: random.Random) -> bytes:
    place = chance.choice([n for n in range(len(bytes_)) if bytes_[n] != 0])
    return bytes_[:place] + flipped(bytes_[place : place + 1], chance) + bytes_[place + 1 :]


def zeroed(bytes_: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(bytes_.rstrip(b"\0")))
    return bytes_[:place] + bytes(len(bytes_) - place)


Hurt = Callable[[Path, Path, bytes, random.Random], object]
HURTS: dict[str, Hurt] = {  # arguments: the writer's index and data, another writer's index
    "flip": lambda index, _, __, chance: index.write_bytes(flipped(index.read_bytes(), chance)),
    "cut": lambda index, _, __, chance: os.truncate(index, chance.randrange(index.stat().st_size)),
    "cut frames": lambda index, _, __, chance: index.write_bytes(
        b"".join(frames_of(index)[: chance.randrange(len(frames_of(index)))])
    ),
    "remove": lambda index, _, __, ___: index.unlink(),
    "repeat": lambda index, _, __, chance: index.write_bytes(index.read_bytes() + chance.choice(frames_of(index))),
    "splice": lambda index, _, other, chance: index.write_bytes(
        index.read_bytes() + b"IOX\xf1" + chance.choice(other.split(b"IOX\xf1")[1:])
    ),
    "swap": lambda index, _, other, __: index.write_bytes(other),
    "zero": lambda index, _, __, chance: index.write_bytes(zeroed(index.read_bytes(), chance)),
    "cut data": lambda _, data, __, chance: os.truncate(data, chance.randrange(data.stat().st_size)),
    "flip data": lambda _, data, __, chance: data.write_bytes(flipped(data.read_bytes(), chance)),
    "zero data": lambda _, data, __, chance: data.write_bytes(zeroed(data.read_bytes(), chance)),
    "swap data": lambda _, data, __, ___: data.write_bytes(data.read_bytes().swapcase()),
    "gone": lambda index, data, _, __: (index.unlink(), data.unlink()),
}
HURTS_OF_TAILS: dict[str, Hurt] = {
    "zero tail": lambda index, _, __, chance: tail_of(index).write_bytes(
        tail_of(index).read_bytes()[:64] + zeroed(tail_of(index).read_bytes()[64:], chance)
    ),
    "flip tail": lambda index, _, __, chance: tail_of(index).write_bytes(
        flipped_where_used(tail_of(index).read_bytes(), chance)
    ),
    "cut tail": lambda index, _, __, ___: os.truncate(tail_of(index), 0),
    "remove tail": lambda index, _, __, ___: tail_of(index).unlink(),
    "zero all of the tail": lambda index, _, __, ___: tail_of(index).write_bytes(bytes(tail_of(index).stat().st_size)),
    "all gone": lambda index, data, _, __: (index.unlink(), data.unlink(), tail_of(index).unlink()),
    "data and tail gone": lambda index, data, _, __: (data.unlink(), tail_of(index).unlink()),
    "index and tail gone": lambda index, data, _, __: (index.unlink(), tail_of(index).unlink()),
}


FOREIGN = {"foreign index": ["index"], "foreign data and index": ["data", "index"]}

# Arguments: a file of records or a snapshot, and that of another container of the same writes.
HURTS_OF_FILES: dict[str, Callable[[bytes, bytes, random.Random], bytes]] = {
    "flip": lambda own, _, chance: flipped(own, chance),
    "cut": lambda own, _, chance: own[: chance.randrange(len(own))],
    "zero": lambda own, _, chance: zeroed(own, chance),
    "swap": lambda _, other, __: other,
    "repeat": lambda own, _, chance: own + chance.choice(records_of(own)),
    "splice": lambda own, other, chance: own + chance.choice(records_of(other)),
    "shuffle": lambda own, _, chance: b"".join(chance.sample(records_of(own), len(records_of(own)))),
    "other order": lambda own, _, __: own[len(own) // 2 :] + own[: len(own) // 2],
}


def tail_of(index: Path) -> Path:
    return index.with_name(index.name.replace("index", "tail"))


def hurt(container: Path, sound: Path, twin: Path, chance: random.Random, id: int, kind: str) -> str:
    """Damages droppings of one writer, in a way that no checksum of a frame needs to show."""
    if kind in FOREIGN:
        for each in FOREIGN[kind]:
            shutil.copy(twin / f"d{id}" / f"{each}.{id}", container / f"d{id}" / f"{each}.{id}")
        return f"writer {id}: {kind}"
    other = index(sound, (id + chance.randrange(1, WRITERS)) % WRITERS).read_bytes()
    (HURTS | HURTS_OF_TAILS)[kind](index(container, id), data(container, id), other, chance)
    return f"writer {id}: {kind}"


def test_changed_data_are_found_and_neither_exported_nor_flattened(iosig: Iosig, container: Path) -> None:
    path = data(container, 3)
    sound = path.read_bytes()
    path.write_bytes(sound[:200] + b"!" + sound[201:])
    assert is_sound(iosig, container)
    done = iosig("container", "check", "--data", container, check=None)
    assert done.returncode == 1
    assert f"data.3': bytes 0 to {len(sound)} were changed: they do not match their checksum" in done.stdout
    found = iosig.json("container", "check", "--data", container, check=None)
    written = sum(data(container, id).stat().st_size for id in range(WRITERS))
    assert found["data"] == {"verified_bytes": written - len(sound), "unverified_bytes": 0}
    assert 1024 < found["lost_bytes"] <= len(sound)
    assert exported(iosig, container) is None
    assert iosig("container", "flatten", container, check=None).returncode == 3 and container.is_dir()
    done = iosig("container", "export", "--damaged", container, container.with_name("left"))
    assert "data.3': bytes 0 to" in done.stderr and "as they are" in done.stderr
    left = container.with_name("left").read_bytes()
    assert [n for n in range(len(CONTENT)) if left[n] != CONTENT[n]] == [64 * (3 * WRITERS + 3) + 8]
    path.write_bytes(sound)
    assert is_sound(iosig, container, "--data") and exported(iosig, container) == CONTENT


def test_a_program_that_reads_a_whole_block_gets_an_error_for_changed_data(iosig: Iosig, tmp_path: Path) -> None:
    path = tmp_path / "file"
    content = bytes(range(256)) * 1024  # four blocks of 64 KiB
    plain = tmp_path / "plain"
    plain.write_bytes(content)
    iosig("container", "create", path)
    iosig("run", "--", "dd", f"if={plain}", f"of={path}", "bs=1000", "conv=notrunc")
    changed = data(path, 0).read_bytes()
    data(path, 0).write_bytes(changed[:70_000] + b"!" + changed[70_001:])
    iosig("run", "--", "cmp", "-n", "65536", plain, path)
    iosig("run", "--", "dd", f"if={path}", f"of={tmp_path / 'rest'}", "bs=64K", "skip=2")
    assert (tmp_path / "rest").read_bytes() == content[2 * 65536 :]
    done = iosig("run", "--", "dd", f"if={path}", "bs=128K", "of=/dev/null", check=None)
    assert done.returncode == 1 and "data.0': bytes 65536 to 131072 were changed" in done.stderr
    iosig("run", "--", "dd", f"if={path}", "bs=4K", "of=/dev/null")  # reads no block whole
