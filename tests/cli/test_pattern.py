"""`iosig pattern detect` and `expand`: the same lines come back in every form; what is wrong is refused."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from conftest import Iosig

ALL = "logical,length,physical,id"


def lines(vectors: list[tuple[int, ...]]) -> str:
    return "".join(" ".join(map(str, vector)) + "\n" for vector in vectors)


def accesses(offsets: list[tuple[int, int]]) -> list[tuple[int, ...]]:
    """(logical, length) with the physical offset of a log, and an id."""
    vectors: list[tuple[int, ...]] = []
    physical = 0
    for logical, length in offsets:
        vectors.append((logical, length, physical, 3))
        physical += length
    return vectors


def inputs() -> dict[str, list[tuple[int, ...]]]:
    rng = random.Random(1)
    return {
        "strided": accesses([(32768 * i, 4096) for i in range(2000)]),
        "rows": accesses([(524288 * y + 4096 * x, 1024) for y in range(100) for x in range(16)]),
        "triangle": accesses([(10000 * i + 8 * j, 8) for i in range(60) for j in range(i)]),
        "noise": accesses([(rng.randrange(2**40) if rng.random() < 0.01 else 4096 * i, 4096) for i in range(2000)]),
        "random": accesses([(rng.randrange(2**40), rng.randrange(2**17)) for _ in range(2000)]),
        "one": [(0, 0, 2**63 - 1, -5)],
        "none": [],
    }


@pytest.mark.parametrize("name", inputs())
@pytest.mark.parametrize("algorithm", ["nest", "paper"])
def test_expand_prints_the_lines_again(iosig: Iosig, tmp_path: Path, name: str, algorithm: str) -> None:
    text = lines(inputs()[name])
    binary = tmp_path / "pattern.bin"
    options = ("--columns", ALL, "--algorithm", algorithm, "--output", binary)
    described = iosig("pattern", "detect", *options, "--json", "-", input=text)
    assert iosig("pattern", "expand", "-", input=described.stdout).stdout == text
    assert iosig("pattern", "expand", binary).stdout == text


@pytest.mark.parametrize(("name", "max_bytes"), [("strided", 20), ("rows", 24), ("triangle", 30)])
def test_regular_accesses_are_one_term_of_few_bytes(iosig: Iosig, name: str, max_bytes: int) -> None:
    answer = iosig.json("pattern", "detect", "--columns", ALL, "-", input=lines(inputs()[name]))
    assert answer["schema"] == "iosig.pattern/1"
    assert answer["count"] == len(inputs()[name])
    assert answer["terms"] == 1
    assert answer["bytes"] <= max_bytes


def test_the_binary_form_has_as_many_bytes_as_told_and_random_input_takes_few(iosig: Iosig, tmp_path: Path) -> None:
    binary = tmp_path / "pattern.bin"
    options = ("--columns", ALL, "--output", binary)
    answer = iosig.json("pattern", "detect", *options, "-", input=lines(inputs()["random"]))
    assert answer["bytes"] == binary.stat().st_size
    assert answer["bytes"] / answer["count"] < 7.5  # 40 + 17 bits are 7.1 B; physical offset and id cost nothing


def test_a_nest_is_printed_as_loops(iosig: Iosig) -> None:
    text = lines([(1000 * y + 8 * x, 8) for y in range(5) for x in range(4)])
    assert iosig("pattern", "detect", "--columns", "logical,length", "-", input=text).stdout == (
        "20 vectors as 1 term, 0 exceptions: 16 bytes\nfor i < 5\n  for j < 4\n    logical 1000 i + 8 j, length 8\n"
    )


def test_few_bytes_may_stand_for_more_than_fits_anywhere(iosig: Iosig, tmp_path: Path) -> None:
    text = iosig("pattern", "detect", "--json", "-", input="".join(f"{i}\n" for i in range(10))).stdout
    huge = tmp_path / "huge.json"
    huge.write_text(text.replace("10", str(2**60)))  # the trip count and the count
    with (tmp_path / "out").open("wb") as out:
        command = f"{iosig.binary} pattern expand {huge} | head -n 3"
        done = subprocess.run(["bash", "-c", command], stdout=out, timeout=20, env=iosig.env)
    assert done.returncode == 0
    assert (tmp_path / "out").read_text() == "0\n1\n2\n"


@pytest.mark.parametrize(
    ("columns", "text", "message"),
    [
        (None, "1\n2\nx\n", "standard input:3: 'x' is not an integer"),
        (
            None,
            "# of a run\n1,2\n",
            "standard input:2: '1,2' is not an integer; expected white-space-separated decimal integers; try tr",
        ),
        (None, "offset\n1\n", "is this a header? put # before it"),
        (None, "\ufeff1\n", "byte order mark"),
        (None, '{"schema": 1}', "if this is a description already"),
        (None, "1\n2.5\n", "standard input:2: '2.5' is not an integer"),
        (None, "1 2\n", "standard input:1: 2 integers; expected 1"),
        ("logical,length", "0 4\n4 4\n\n8\n", "standard input:4: 1 integer; expected 2 (logical, length)"),
        ("logical,length", "0 -4\n", "standard input:1: length -4 is negative"),
        ("logical,length", "-1 4\n", "standard input:1: logical -1 is negative"),
        (None, "9223372036854775808\n", "standard input:1: '9223372036854775808' does not fit 64 bits"),
        ("logical,length", "9223372036854775807 1\n", "end past 2^63 - 1"),
    ],
)
def test_lines_that_are_no_vectors_are_refused_with_their_number(
    iosig: Iosig, columns: str | None, text: str, message: str
) -> None:
    options = () if columns is None else ("--columns", columns)
    done = iosig("pattern", "detect", *options, "-", input=text, check=3)
    assert message in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--columns", "logical,offset"), "'offset' is not a column"),
        (("--columns", "lenght"), "did you mean 'length'"),
        (("--columns", "id,id"), "twice"),
        (("--algorithm", "magic"), "magic"),
        (("--window", "0"), "window"),
    ],
)
def test_wrong_usage_is_explained(iosig: Iosig, options: tuple[str, str], message: str) -> None:
    assert message in iosig("pattern", "detect", *options, "-", input="1\n", check=2).stderr


def test_damaged_descriptions_are_refused(iosig: Iosig, tmp_path: Path) -> None:
    binary, damaged = tmp_path / "pattern.bin", tmp_path / "damaged.bin"
    text = iosig("pattern", "detect", "--json", "--output", binary, "-", input="0\n8\n16\n24\n").stdout
    good = binary.read_bytes()
    for bad in (good[:-1], good[:5], good[:3] + b"\x02" + good[4:], good[:8] + bytes([good[8] ^ 1]) + good[9:]):
        damaged.write_bytes(bad)
        done = iosig("pattern", "expand", damaged, check=3)
        assert f"{damaged}: byte " in done.stderr
        assert done.stdout == ""
    damaged.write_text(text.replace("pattern/1", "pattern/9"))
    assert 'expected "iosig.pattern/1"' in iosig("pattern", "expand", damaged, check=3).stderr
    damaged.write_text(text[: len(text) // 2])
    assert "not a JSON object" in iosig("pattern", "expand", damaged, check=3).stderr
    assert "cannot open" in iosig("pattern", "expand", tmp_path / "none", check=4).stderr


def test_a_failed_detection_leaves_the_output_alone(iosig: Iosig, tmp_path: Path) -> None:
    binary = tmp_path / "pattern.bin"
    binary.write_text("mine")
    iosig("pattern", "detect", "--output", binary, "-", input="x\n", check=3)
    assert binary.read_text() == "mine"
