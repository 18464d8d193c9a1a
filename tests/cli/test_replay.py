"""`iosig replay`: what a write map says is done again, by as many processes, and every byte is the right one."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import BUILD, Iosig

FORMS = ["--container", "--traditional", "--plain"]
RANKS, EACH, BYTES = 4, 50, 64
STRIDED = [(rank, (RANKS * n + rank) * BYTES, BYTES) for n in range(EACH) for rank in range(RANKS)]


def write_map(path: Path, writes: list[tuple[int, int, int]]) -> Path:
    path.write_text("# rank offset length\n" + "".join(f"{r} {o} {n}\n" for r, o, n in writes))
    return path


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return write_map(tmp_path / "job.map", STRIDED)


@pytest.mark.parametrize("form", FORMS)
def test_a_map_is_replayed_and_every_byte_is_right(iosig: Iosig, job: Path, tmp_path: Path, form: str) -> None:
    done = iosig.json("replay", "--check", "--read", "--readers", 3, "--sync", form, job, tmp_path / "target")
    assert done["schema"] == "iosig.replay/1" and done["form"] == form.removeprefix("--")
    size = len(STRIDED) * BYTES
    assert done["map"] == {
        "ranks": RANKS,
        "writes": len(STRIDED),
        "bytes": size,
        "size": size,
        "longest_bytes": BYTES,
    }
    assert (done["check"]["wrong_bytes"], done["check"]["bytes"], done["check"]["shared_bytes"]) == (0, size, 0)
    assert [done[step]["processes"] for step in ("write", "read", "read_blocks")] == [RANKS, RANKS, 3]
    assert done["read"]["bytes"] == done["read_blocks"]["bytes"] == size
    assert ("index" in done) == (form != "--plain")
    if form == "--plain":
        assert (tmp_path / "target").stat().st_size == size
    else:
        assert iosig.json("container", "check", tmp_path / "target")["sound"] is True


def test_an_index_of_entries_has_56_bytes_for_each_write_and_one_of_patterns_does_not_grow(
    iosig: Iosig, tmp_path: Path
) -> None:
    sizes: dict[str, list[int]] = {form: [] for form in FORMS[:2]}
    for form in FORMS[:2]:
        for times in (10, 1000):
            writes = [(rank, (2 * n + rank) * 8, 8) for n in range(times) for rank in range(2)]
            job = write_map(tmp_path / "map", writes)
            done = iosig.json("replay", form, job, tmp_path / f"{form}{times}")
            sizes[form].append(done["index"]["bytes"])
    assert sizes["--traditional"][1] - sizes["--traditional"][0] == pytest.approx(56 * 2 * 990, rel=0.01)
    assert sizes["--container"][1] - sizes["--container"][0] < 50


def test_every_kind_of_map_says_the_same(iosig: Iosig, job: Path, tmp_path: Path) -> None:
    described = tmp_path / "job.pattern"
    vectors = "".join(f"{offset} {length} {rank}\n" for rank, offset, length in STRIDED)
    detect = ("pattern", "detect", "-", "--columns", "logical,length,id", "--output", described, "--json")
    as_json = tmp_path / "job.json"
    as_json.write_text(iosig(*detect, input=vectors).stdout)
    plfs = tmp_path / "plfs"
    lines = [
        f"{rank:5} w {offset:16} {length:8} {n:.16f} {n + 0.5:.16f} {offset + length - 1:16}  [{rank}. {0:10}]"
        for n, (rank, offset, length) in enumerate(STRIDED)
    ]
    plfs.write_text("# Index of /plfs/job\n" + "\n".join(sorted(lines)))
    container = tmp_path / "container"
    iosig("replay", job, container)
    traditional = tmp_path / "traditional"
    iosig("replay", "--traditional", job, traditional)
    told = iosig.json("replay", "--dry-run", job, tmp_path / "none")["map"]
    for kind in (described, as_json, plfs, container, traditional):
        assert iosig.json("replay", "--dry-run", kind, tmp_path / "none")["map"] == told, kind
    told_through_pipe = iosig.json("replay", "--dry-run", "-", tmp_path / "none", input=job.read_text())["map"]
    assert told_through_pipe == told
    assert not (tmp_path / "none").exists()


def test_overlapping_ranks_are_right_either_way_but_in_turn_only_one_way(iosig: Iosig, tmp_path: Path) -> None:
    job = write_map(tmp_path / "map", [(rank, 10 * n, 40) for n in range(200) for rank in (n % 3, (n + 1) % 3)])
    for form in FORMS:
        at_once = iosig("replay", "--check", form, job, tmp_path / f"once{form}")
        assert "wrong bytes: 0" in at_once.stdout and "--in-turn" in at_once.stderr
        in_turn = iosig("replay", "--check", "--in-turn", form, job, tmp_path / f"turn{form}")
        assert "wrong bytes: 0" in in_turn.stdout and "--in-turn" not in in_turn.stderr
    plain = (tmp_path / "turn--plain").read_bytes()
    iosig("container", "export", tmp_path / "turn--container", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == plain


def scattered(ranks: int, overlap: bool) -> list[tuple[int, int, int]]:
    """Writes in no order: of each rank's own blocks, or of any."""
    chance = random.Random(11)
    places = [(place % ranks, 50 * place, chance.randint(1, 50)) for place in range(200)]
    chance.shuffle(places)
    if not overlap:
        return places
    return [(rank, offset, length + chance.choice((0, 0, 0, 90))) for rank, offset, length in places]


@pytest.mark.parametrize(
    "writes",
    [
        scattered(4, overlap=False),
        scattered(4, overlap=True),
        [(0, 8 * n, 8) for n in range(40)] + [(1, 100 + 8 * n, 8) for n in range(40)],  # one after the other
        [(0, 0, 64), (0, 32, 64), (1, 96, 64), (1, 96, 64), (0, (1 << 21) - 5, 10), (1, 1 << 21, 10)],
        [(rank, 0, 10) for rank in (0, 1, 2, 0)],
    ],
    ids=["apart", "scattered", "one-after-the-other", "by-hand", "three"],
)
def test_the_bytes_that_several_ranks_wrote_are_counted(
    iosig: Iosig, tmp_path: Path, writes: list[tuple[int, int, int]]
) -> None:
    writers: dict[int, set[int]] = {}
    for rank, offset, length in writes:
        for byte in range(offset, offset + length):
            writers.setdefault(byte, set()).add(rank)
    shared = sum(len(ranks) > 1 for ranks in writers.values())
    job = write_map(tmp_path / "map", writes)
    done = iosig.json("replay", "--check", job, tmp_path / "target")
    assert (done["check"]["shared_bytes"], done["check"]["wrong_bytes"]) == (shared, 0)
    said = iosig("replay", "--check", job, tmp_path / "again").stderr
    assert (f"{shared} bytes were written by several ranks" in said) == (shared > 0)


@pytest.mark.parametrize(
    "words",
    [("btio", "--ranks", 4, "--grid", 12, "--steps", 2), ("milc-a", "--ranks", 4), ("flash-fuse", "--ranks", 4)],
)
def test_the_jobs_of_known_programs_are_replayed_without_a_wrong_byte(
    iosig: Iosig, tmp_path: Path, words: tuple[object, ...]
) -> None:
    command = [str(BUILD / "bin" / "workloads"), "print", *map(str, words), "--columns", "id,logical,length"]
    job = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    done = iosig.json("replay", "--check", "-", tmp_path / "target", input=job)
    assert (done["map"]["writes"], done["check"]["wrong_bytes"]) == (job.count("\n"), 0)


def test_ranks_and_processes_can_be_fewer(iosig: Iosig, job: Path, tmp_path: Path) -> None:
    done = iosig.json("replay", "--check", "--ranks", 3, "--processes", 2, job, tmp_path / "target")
    assert (done["map"]["ranks"], done["map"]["writes"], done["write"]["processes"]) == (3, 3 * EACH, 2)
    assert done["check"]["wrong_bytes"] == 0
    assert len(iosig.json("container", "ls", tmp_path / "target")["writers"]) == 3


def test_data_go_to_the_targets(iosig: Iosig, job: Path, tmp_path: Path) -> None:
    places = [tmp_path / "a", tmp_path / "b"]
    for place in places:
        place.mkdir()
    iosig("replay", "--check", "--target", places[0], "--target", places[1], job, tmp_path / "target")
    assert [len(list(place.glob("*/d*/data.*"))) for place in places] == [2, 2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 0 1\n1 2\n", ":2: '1 2' is not a write"),
        ("0 0 -1\n", ":1: length -1 is negative"),
        ("0 0 1073741825\n", ":1: a write of 1073741825 bytes"),
        ("0 9223372036854775807 1\n", "end after byte 2^63 - 1"),
        ("# nothing\n", "no write is in it"),
        ("{}", "schema"),
    ],
)
def test_bad_maps_are_refused_with_their_line_and_nothing_is_made(
    iosig: Iosig, tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "map").write_text(text)
    assert words in iosig("replay", tmp_path / "map", tmp_path / "target", check=3).stderr
    assert not (tmp_path / "target").exists()


def test_what_is_there_is_left_alone(iosig: Iosig, job: Path, tmp_path: Path) -> None:
    (tmp_path / "target").write_text("mine")
    for form in FORMS:
        assert "exists already" in iosig("replay", form, job, tmp_path / "target", check=2).stderr
    assert (tmp_path / "target").read_text() == "mine"
    assert "--target" in iosig("replay", "--plain", "--target", tmp_path, job, tmp_path / "no", check=2).stderr


@pytest.mark.parametrize("form", ["--container", "--plain"])
def test_what_an_interruption_leaves_unfinished_is_removed(iosig: Iosig, tmp_path: Path, form: str) -> None:
    endless = {
        "schema": "iosig.pattern/1",
        "count": 1 << 22,
        "columns": 3,
        "names": ["logical", "length", "id"],
        "follows": [None] * 3,
        "description": [{"trips": [1 << 21], "body": [{"trips": [2, 0], "body": [{"vector": [
            [0, 0, 1], [1, 0, 0], [0, 0, 1]]}]}]}],
    }  # fmt: skip
    (tmp_path / "map").write_text(json.dumps(endless))
    target = tmp_path / "target"
    running = subprocess.Popen(
        [str(iosig.binary), "replay", "--in-turn", form, str(tmp_path / "map"), str(target)],
        env=iosig.env,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    until = time.monotonic() + 60
    while not target.exists() and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130 and b"interrupted" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "map"]
