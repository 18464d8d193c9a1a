"""`iosig pattern merge`: many processes as one description, overlapping accesses in their order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Iosig

LOCAL = "logical,length,physical"


def describe(iosig: Iosig, file: Path, accesses: list[tuple[int, ...]], columns: str = LOCAL) -> Path:
    text = "".join(" ".join(map(str, access)) + "\n" for access in accesses)
    iosig("pattern", "detect", "--columns", columns, "--output", file, "-", input=text)
    return file


def expanded(iosig: Iosig, text: str) -> list[tuple[int, ...]]:
    lines = iosig("pattern", "expand", "-", input=text).stdout.splitlines()
    return [tuple(int(word) for word in line.split()) for line in lines]


def test_ranks_that_write_in_turns_are_one_term(iosig: Iosig, tmp_path: Path) -> None:
    ranks = {
        rank: [(1000 * (7 * n + rank), 1000, 1000 * n) for n in range(50)] for rank in (10, 20, 30, 40)
    }  # fmt: skip
    files = [describe(iosig, tmp_path / str(rank), accesses) for rank, accesses in ranks.items()]
    answer = iosig("pattern", "merge", "--ids", "10,20,30,40", "--json", *files).stdout
    whole = expanded(iosig, answer)
    assert {rank: [row[:3] for row in whole if row[3] == rank] for rank in ranks} == ranks
    assert '"terms":1' in answer.replace(" ", "")
    merged = tmp_path / "merged"
    assert "200 vectors as 1 term" in iosig("pattern", "merge", *files, "--output", merged).stdout
    assert iosig("pattern", "lookup", merged, 1000 * (7 * 3 + 20) + 1, 10).stdout.split() == [
        "41001",
        "10",
        "20",
        "3001",
    ]


def test_the_newest_of_overlapping_writes_wins(iosig: Iosig, tmp_path: Path) -> None:
    columns = LOCAL + ",sequence"
    # Process 0 writes all before and part of it after process 1; then both write the same bytes in turns.
    zero = [(0, 100, 0, 1), (50, 20, 100, 3)] + [(200, 8, 120 + 8 * n, 10 + 2 * n) for n in range(20)]
    one = [(40, 40, 0, 2)] + [(204, 8, 40 + 8 * n, 11 + 2 * n) for n in range(20)]
    files = [describe(iosig, tmp_path / "0", zero, columns), describe(iosig, tmp_path / "1", one, columns)]
    merged = tmp_path / "merged"
    done = iosig("pattern", "merge", "--columns", columns, *files, "--output", merged)
    assert "one by one" in done.stderr
    pieces = [line.split() for line in iosig("pattern", "lookup", merged, 0, 220).stdout.splitlines()]
    assert [" ".join(piece) for piece in pieces] == [
        "0 40 0 0", "40 10 1 0", "50 20 0 100", "70 10 1 30", "80 20 0 80", "100 100 hole",
        "200 4 0 272", "204 8 1 192", "212 8 hole",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ([], 2, "FILE is required"),
        (["good", "--ids", "1,2"], 2, "--ids: 2 ids for 1 descriptions"),
        (["good", "--ids", "x"], 2, "--ids"),
        (["good", "--columns", "logical,length"], 2, "good: --columns: 2 names for 3 columns"),
        (
            ["good", "--columns", "logical,length,id"],
            2,
            "good: --columns: the description says",
        ),
        (["two"], 3, "two: a pattern of 2 column(s); expected 3"),
        (["four"], 3, "four: the fourth column is id; expected 3 columns, or a sequence"),
        (["other"], 3, "other: column 1 is length; expected logical"),
        (["falls", "--columns", "logical,length,physical,sequence"], 3, "falls: the sequence numbers fall"),
        (["cut"], 3, "cut: byte"),
        (["nothing"], 4, "nothing"),
    ],
)
def test_what_does_not_fit_is_refused(
    iosig: Iosig, tmp_path: Path, words: list[str], status: int, message: str
) -> None:
    describe(iosig, tmp_path / "good", [(0, 5, 0)])
    describe(iosig, tmp_path / "two", [(0, 5)], "logical,length")
    describe(iosig, tmp_path / "four", [(0, 5, 0, 1)], LOCAL + ",id")
    describe(iosig, tmp_path / "other", [(0, 5, 0)], "length,logical,physical")
    describe(iosig, tmp_path / "falls", [(0, 5, 0, 7), (9, 5, 5, 6)], LOCAL + ",sequence")
    (tmp_path / "cut").write_bytes((tmp_path / "good").read_bytes()[:-3])
    done = iosig("pattern", "merge", *words, check=status, cwd=tmp_path)
    assert message in done.stderr


def test_numbers_in_names_are_ids_whatever_the_order_of_the_files(iosig: Iosig, tmp_path: Path) -> None:
    files = [
        describe(iosig, tmp_path / f"rank{rank}.pattern", [(100 * rank, 100, 0)]) for rank in (0, 10, 2)
    ]  # as a shell's rank* has them
    merged = iosig("pattern", "merge", "--json", *files)
    assert sorted(expanded(iosig, merged.stdout)) == [(0, 100, 0, 0), (200, 100, 0, 2), (1000, 100, 0, 10)]
    assert json.loads(merged.stdout)["ids"] == [0, 10, 2]
    assert json.loads(merged.stdout)["interleaved"] == 0
    assert f"{files[1]} is 10, {files[2]} is 2" in merged.stderr
    assert iosig("pattern", "merge", *files[:1], describe(iosig, tmp_path / "rank1.pattern", [(7, 1, 0)])).stderr == ""


def test_ids_may_stand_before_the_files_and_are_decimal(iosig: Iosig, tmp_path: Path) -> None:
    files = [describe(iosig, tmp_path / name, [(100 * n, 100, 0)]) for n, name in enumerate("ab")]
    for words in (("--ids", "010,-1", *files), (*files, "--ids", "010,-1"), (files[0], "--ids=010,-1", files[1])):
        assert iosig.json("pattern", "merge", *words)["ids"] == [10, -1]
    assert iosig.json("pattern", "merge", *files)["ids"] == [0, 1]


def test_two_names_with_the_same_number_need_ids(iosig: Iosig, tmp_path: Path) -> None:
    files = [describe(iosig, tmp_path / name, [(8, 8, 0)]) for name in ("rank1", "rank01")]
    assert "would both be process 1; number them with --ids" in iosig("pattern", "merge", *files, check=2).stderr
    assert iosig.json("pattern", "merge", "--ids", "1,1", *files)["ids"] == [1, 1]
