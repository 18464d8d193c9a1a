"""`iosig pattern lookup`: every byte is where its newest writer put it; what cannot be looked up is refused."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from conftest import Iosig

COLUMNS = ("--columns", "logical,length,physical,id")


def described(iosig: Iosig, directory: Path, vectors: list[tuple[int, ...]], *options: str) -> Path:
    file = directory / "trace.pattern"
    text = "".join(" ".join(map(str, vector)) + "\n" for vector in vectors)
    iosig("pattern", "detect", *(options or COLUMNS), "--output", file, "-", input=text)
    return file


def test_lookup_agrees_with_a_file_of_bytes(iosig: Iosig, tmp_path: Path) -> None:
    rng = random.Random(3)
    vectors, physical = [], [0, 0, 0, 0]
    for n in range(800):
        rank = n % 4
        logical, length = (64 * n, 64) if rng.random() < 0.95 else (rng.randrange(60000), rng.randrange(200))
        vectors.append((logical, length, physical[rank], rank))
        physical[rank] += length
    size = max(logical + length for logical, length, _, _ in vectors)
    expected: list[tuple[int, int] | None] = [None] * size
    for logical, length, at, rank in vectors:
        for n in range(length):
            expected[logical + n] = (rank, at + n)
    found: list[tuple[int, int] | None] = []
    for line in iosig("pattern", "lookup", described(iosig, tmp_path, vectors), 0, size).stdout.splitlines():
        logical, length, *place = line.split()
        assert int(logical) == len(found)
        if place == ["hole"]:
            found += [None] * int(length)
        else:
            found += [(int(place[0]), int(place[1]) + n) for n in range(int(length))]
    assert found == expected


def test_json_has_the_pieces_and_the_size(iosig: Iosig, tmp_path: Path) -> None:
    file = described(iosig, tmp_path, [(100 * n, 50, 50 * n, 7) for n in range(10)])
    answer = iosig.json("pattern", "lookup", file, 920, 100)
    assert answer == {
        "schema": "iosig.pattern_lookup/1",
        "offset": 920,
        "length": 100,
        "size": 950,
        "pieces": [
            {"logical": 920, "length": 30, "id": 7, "physical": 470},
            {"logical": 950, "length": 70, "hole": True},
        ],
    }


@pytest.mark.parametrize(
    ("columns", "options", "status", "said"),
    [
        ("logical,length", (), 3, "a lookup needs logical, length and physical; it has logical,length"),
        ("logical,length,id", (), 3, "a lookup needs logical, length and physical; it has logical,length,id"),
        ("logical,length,physical", ("--columns", "logical,length"), 2, "2 names for 3 columns"),
        (
            "logical,length,physical",
            ("--columns", "logical,length,id"),
            2,
            "the description says logical,length,physical",
        ),
    ],
)
def test_columns_that_do_not_do_are_refused(
    iosig: Iosig, tmp_path: Path, columns: str, options: tuple[str, ...], status: int, said: str
) -> None:
    file = described(iosig, tmp_path, [(8, 4, 0)[: columns.count(",") + 1]], "--columns", columns)
    assert said in iosig("pattern", "lookup", file, 0, 1, *options, check=status).stderr


def test_a_description_knows_its_columns(iosig: Iosig, tmp_path: Path) -> None:
    lines = "".join(f"4096 {4096 * (4 * n + rank)} {4096 * n} {rank}\n" for n in range(50) for rank in range(4))
    file = tmp_path / "length-first"
    iosig("pattern", "detect", "--columns", "length,logical,physical,id", "--output", file, "-", input=lines)
    assert iosig("pattern", "lookup", file, 40000, 6000).stdout.split()[:4] == ["40000", "960", "1", "11328"]
    as_json = iosig("pattern", "detect", "--json", "--columns", "length,logical,physical,id", "-", input=lines).stdout
    assert json.loads(as_json)["names"] == ["length", "logical", "physical", "id"]
    assert iosig("pattern", "lookup", "-", 40000, 6000, input=as_json).stdout == (
        iosig("pattern", "lookup", file, 40000, 6000).stdout
    )
    other = json.loads(as_json) | {"names": ["length", "length", None, "id"]}
    assert "two columns of one name" in iosig("pattern", "expand", "-", input=json.dumps(other), check=3).stderr
    other["names"] = ["size", None, None, None]
    assert "/names: expected" in iosig("pattern", "expand", "-", input=json.dumps(other), check=3).stderr


def test_offset_and_length_are_decimal_sizes(iosig: Iosig, tmp_path: Path) -> None:
    file = described(iosig, tmp_path, [(0, 8192, 0, 0)])
    assert iosig("pattern", "lookup", file, "010", "4KB").stdout == "10 4096 0 10\n"
    for words, said in (
        (("0x10", "1"), "OFFSET: 'x10' is not a unit"),
        (("0", "9223372036854775808"), "LENGTH: '9223372036854775808' is more than a file can hold"),
        (("18446744073709551616", "1"), "OFFSET"),
        (("--", "-1", "1"), "OFFSET: '-1' is negative"),
    ):
        done = iosig("pattern", "lookup", file, *words, check=2)
        assert said in done.stderr and done.stdout == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [("0 4096 0\n", "looks like vectors, not like a description"), ("", "it is empty"), ("{", "was it cut?")],
)
def test_what_is_no_description_is_told_from_one(iosig: Iosig, text: str, said: str) -> None:
    for verb in (["expand", "-"], ["lookup", "-", 0, 1], ["merge", "-"]):
        assert said in iosig("pattern", *verb, input=text, check=3).stderr
