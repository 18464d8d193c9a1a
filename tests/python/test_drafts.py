"""Files that are written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from iosig.drafts import replaced


def test_two_writers_of_a_file_do_not_meet_in_one_draft(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    with replaced(path) as first:
        first.write_text("first")
        with replaced(path) as second:
            second.write_text("second, longer")
        assert path.read_text() == "second, longer"
    assert path.read_text() == "first" and list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_made_is_named_as_the_user_named_it(tmp_path: Path) -> None:
    path = tmp_path / "none" / "page.html"
    with pytest.raises(FileNotFoundError) as failed, replaced(path):
        raise AssertionError
    assert failed.value.filename == str(path)
