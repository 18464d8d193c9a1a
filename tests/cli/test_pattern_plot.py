"""`iosig pattern detect|expand --plot`: a picture of characters, or a file by the Python package."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import BUILD, Iosig
from terminal import run_on_terminal

COLUMNS = ("--columns", "logical,length,id")
ROWS = 20
HAS_PYTHON_PACKAGE = (BUILD / "bin" / "iosig-plot").exists()


def lines(vectors: list[tuple[int, ...]]) -> str:
    return "".join(" ".join(map(str, vector)) + "\n" for vector in vectors)


@pytest.fixture
def plain(iosig: Iosig) -> Iosig:
    """ASCII, 60 columns, no terminal."""
    iosig.env |= {"LC_ALL": "C", "COLUMNS": "60"}
    return iosig


def field(told: str) -> list[str]:
    """The lines of the picture without its axes: behind them are the other axis, its ends, and what they are."""
    rows = told.splitlines()[-ROWS - 3 : -3]
    return [row[re.search(r" [|+]", row).end() :] for row in rows]  # type: ignore[union-attr]


def test_every_byte_is_where_position_and_offset_say(plain: Iosig) -> None:
    # 20 lines of two dots for 4000 bytes: 100 bytes a dot
    vectors = [(80 * n, 80, n % 2) for n in range(50)]
    told = plain("pattern", "detect", *COLUMNS, "--plot", "-", input=lines(vectors)).stdout
    rows = field(told)
    width = told.count("-")  # of the axis
    drawn = {(x, y) for y, row in enumerate(rows) for x, mark in enumerate(row) if mark != " "}
    columns = sorted(x for x, _ in drawn)
    assert set(columns) == {position * width // 50 for position in range(50)}
    for n, (begin, length, _) in enumerate(vectors):
        for byte in range(begin, begin + length):
            assert (n * width // 50, 19 - byte * 40 // 4000 // 2) in drawn
    assert "3.91 KB +" in told and "    0 B +" in told
    assert told.endswith("logical over position\n")


@pytest.mark.parametrize(
    ("values", "labels"),
    [([7] * 5, ["7"]), ([-(2**63), 2**63 - 1], ["9223372036854775807", "-9223372036854775808"]), ([3, 9], ["9", "3"])],
)
def test_values_of_any_size_have_a_scale(plain: Iosig, values: list[int], labels: list[str]) -> None:
    told = plain("pattern", "detect", "--plot", "-", input="".join(f"{value}\n" for value in values)).stdout
    assert all(f" {label} +" in f" {told}".replace("\n", "\n ") for label in labels)
    assert "value over position" in told


def test_utf8_has_braille_and_a_terminal_colours(plain: Iosig) -> None:
    text = lines([(10 * n, 10, n // 20) for n in range(40)])
    plain.env["LC_ALL"] = "C.UTF-8"
    told = plain("pattern", "detect", *COLUMNS, "--plot", "-", input=text).stdout
    assert any("\u2800" <= c <= "\u28ff" for c in told) and "\x1b" not in told
    for no_color in ("", "1"):
        words = [plain.binary, "pattern", "detect", *COLUMNS, "--plot", "-"]
        shown = run_on_terminal(words, plain.env | {"TERM": "xterm", "NO_COLOR": no_color}, text=text)
        assert ("\x1b[34m" in shown and "\x1b[33m" in shown) == (no_color == "")


def test_ranks_in_turn_are_all_seen_and_the_legend_has_their_colours(plain: Iosig) -> None:
    text = lines([(n, 1, n % 4) for n in range(4096)])  # more than one access of each rank in every character
    shown = run_on_terminal(
        [plain.binary, "pattern", "detect", *COLUMNS, "--plot", "-"], plain.env | {"TERM": "xterm"}, text=text
    )
    picture, legend = shown.split("id modulo 6:")
    assert all(f"\x1b[{colour}m" in picture for colour in (34, 33, 32, 31))
    assert legend.strip() == " ".join(f"\x1b[{colour}m{id_}\x1b[0m" for id_, colour in enumerate((34, 33, 32, 31)))


def test_a_few_bytes_that_stand_for_2_60_accesses_are_drawn_at_once(plain: Iosig, tmp_path: Path) -> None:
    text = plain("pattern", "detect", "--json", "-", input="".join(f"{i}\n" for i in range(10))).stdout
    (tmp_path / "huge.json").write_text(text.replace("10", str(2**60)))
    told = plain("pattern", "expand", tmp_path / "huge.json", "--plot").stdout
    assert f"131072 of {2**60}, at random places" in told
    assert len(field(told)) == ROWS


def test_no_accesses_are_no_picture(plain: Iosig) -> None:
    assert plain("pattern", "detect", "--plot", "-", input="").stdout.endswith("no accesses\n")


@pytest.mark.parametrize(
    "words", [("--plot", "FILE"), ("FILE", "--plot"), ("--plot", "FILE", *COLUMNS), ("--plot", *COLUMNS, "FILE")]
)
def test_the_word_after_plot_may_be_the_file(plain: Iosig, tmp_path: Path, words: tuple[str, ...]) -> None:
    file = tmp_path / "trace.txt"
    file.write_text("1 1 1\n2 1 1\n" if COLUMNS[0] in words else "1\n2\n")
    assert "over position" in plain("pattern", "detect", *(file if w == "FILE" else w for w in words)).stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--plot", "x.jpg", "-"), "--plot 'x.jpg': expected a name that ends in .png or .html"),
        (("--plot", "x.png"), "FILE is required"),
        (("--plot",), "FILE is required"),
        ((), "FILE is required"),
        (("--plot", "-", "--json"), "name a file for the picture"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_the_input_is_read(
    plain: Iosig, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    done = plain("pattern", "detect", *words, input="no numbers", check=2, cwd=tmp_path)
    assert message in done.stderr and done.stdout == ""
    assert list(tmp_path.glob("x.*")) == []


@pytest.mark.skipif(not HAS_PYTHON_PACKAGE, reason="the Python package is not built")
def test_a_file_is_drawn_by_the_python_package(plain: Iosig, tmp_path: Path) -> None:
    picture, page = tmp_path / "a.png", tmp_path / "a.html"
    text = lines([(10 * n, 10, n // 20) for n in range(40)])
    told = plain("pattern", "detect", *COLUMNS, "--plot", picture, "-", input=text).stdout
    assert told.startswith("40 vectors as ") and told.endswith(f"{picture}\n")
    assert picture.read_bytes().startswith(b"\x89PNG")
    document = plain.json("pattern", "detect", *COLUMNS, "--plot", page, "-", input=text)
    assert document["count"] == 40
    assert "id 1" in page.read_text()
    refused = plain("pattern", "detect", "--plot", tmp_path / "none" / "a.png", "-", input="1\n", check=4)
    assert "none" in refused.stderr


def test_without_the_python_package_a_file_is_refused_at_once(plain: Iosig, tmp_path: Path) -> None:
    alone = tmp_path / "iosig"
    shutil.copy2(plain.binary, alone)
    words = [alone, "pattern", "detect", "--plot", "a.png", "-"]
    done = subprocess.run(words, env={"PATH": "/usr/bin:/bin"}, cwd=tmp_path, input="x", capture_output=True, text=True)
    assert done.returncode == 2 and "comes with the Python package iosig" in done.stderr
    assert sys.platform == "linux" and not (tmp_path / "a.png").exists()
