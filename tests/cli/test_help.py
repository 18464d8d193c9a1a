"""The pages of `--help`: one style for all, and `iosig help` for each of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from conftest import Iosig

COLUMN = 30  # where descriptions begin


def sections(page: str) -> dict[str, list[str]]:
    """The lines below each heading ("Options:"), indented ones."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in page.splitlines():
        if re.fullmatch(r"[A-Z][\w ]*:", line):
            name = line.removesuffix(":")
        elif line.startswith("  ") and name:
            found.setdefault(name, []).append(line)
        else:
            name = ""
    return found


def entries(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Name and description of each entry; a description may begin below a long name, and go on in further lines."""
    name, words = "", ""
    for line in lines:
        if not line.startswith(" " * COLUMN):
            if name:
                yield name, words.strip()
            name, words = line[:COLUMN].strip() if line[:COLUMN].endswith(" ") else line.strip(), ""
            words = "" if name == line.strip() else line[COLUMN:]
        else:
            words += " " + line.strip()
    if name:
        yield name, words.strip()


def commands(iosig: Iosig, *verbs: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every command with its page, those of the Python package aside."""
    page = iosig(*verbs, "--help").stdout
    yield verbs, page
    for name, _ in entries(sections(page).get("Commands", [])):
        yield from commands(iosig, *verbs, name)


def test_every_page_has_one_style(iosig: Iosig) -> None:
    pages = dict(commands(iosig))
    assert {(), ("choose",), ("container", "ls"), ("reliability", "mttdl"), ("help",)} <= pages.keys()
    for verbs, page in pages.items():
        place = " ".join(("iosig", *verbs))
        lines = page.splitlines()
        assert max(map(len, lines)) <= 100, place
        assert re.fullmatch(r"[A-Z].*[^.]", lines[0]), f"{place}: {lines[0]}"
        assert lines[1].startswith(f"Usage: {place}") and "(" not in lines[1], f"{place}: {lines[1]}"
        for heading in ("Positionals", "Options"):
            for name, words in entries(sections(page).get(heading, [])):
                assert re.fullmatch(r"(?![A-Z][a-z ]).*[^.]|.*\.\.\.", words), f"{place} {name}: {words}"
        for name, words in entries(sections(page).get("Commands", [])):
            assert re.fullmatch(r"[A-Z].*[^.]", words), f"{place} {name}: {words}"
        assert re.search(r"^Exit status: .*\d", page, re.MULTILINE), place
        assert re.search(rf"^Example: .*{place}", page, re.MULTILINE), place


def test_help_shows_the_page_of_a_command(iosig: Iosig) -> None:
    for verbs, page in commands(iosig):
        assert iosig("help", *verbs).stdout == page
    assert "unknown command 'chose'. Did you mean 'choose'?" in iosig("help", "chose", check=2).stderr
    assert "unknown command 'chose'. Did you mean 'choose'?" in iosig("chose", "check", check=2).stderr
    assert "unknown command 'lss'. Did you mean 'ls'?" in iosig("help", "container", "lss", check=2).stderr


@pytest.mark.parametrize("columns", [60, 80, 300])
def test_a_page_is_as_wide_as_the_terminal_and_at_most_100_columns(iosig: Iosig, columns: int) -> None:
    for verb in ("gc", "finalize", "replay"):
        page = iosig(verb, "--help", env=iosig.env | {"COLUMNS": str(columns)}).stdout
        prose = [line for line in page.splitlines() if not re.match(r"Example|  -|  [A-Z]|    +iosig|Usage", line)]
        assert max(map(len, prose)) <= min(columns, 100)
