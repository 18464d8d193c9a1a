"""`iosig status`: what is redirected, and what became of it."""

from __future__ import annotations

import shutil
from pathlib import Path

from redirecting import World


def test_nothing_redirected_is_said(world: World) -> None:
    assert world.iosig("status").stdout == "nothing is redirected\n"
    assert world.iosig.json("status") == {"schema": "iosig.status/1", "redirects": [], "unreadable": []}
    assert not world.state.exists()


def test_every_state_has_its_name(world: World) -> None:
    world.prepared("linked", b"data")
    world.iosig("prepare", world.work / "empty", "random")
    world.prepared("orphan", b"data")[0].unlink()
    replaced, _ = world.prepared("replaced", b"data")
    replaced.unlink()
    replaced.write_bytes(b"new")
    gone, destination = world.prepared("gone", b"data")
    gone.unlink()
    destination.unlink()
    directory = Path(world.iosig("choose", "--make-folder", "temp").stdout.strip())
    (directory / "x").touch()
    expected = {name: name for name in ("linked", "empty", "orphan", "replaced", "gone")} | {directory.name: "filled"}
    assert world.states() == expected
    shutil.rmtree(world.user_directory)
    assert set(world.states().values()) == {"unreachable"}


def test_the_table_says_where_how_much_and_for_what(world: World) -> None:
    path, destination = world.prepared("out", bytes(2048), "temp random")
    header, row = world.iosig("status").stdout.splitlines()
    assert header.split() == ["PATH", "WHERE", "SIZE", "STATE", "SIGNATURE", "AGE"]
    assert row.startswith(str(path)) and str(destination) in row and "2 KB" in row and "linked" in row


def test_one_companion_alone_is_one_file(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    (destination.parent / "out.part").write_bytes(b"part")
    assert " in 2 files " in world.iosig("status").stdout
    destination.unlink()
    assert " in 1 file " in world.iosig("status").stdout and path.is_symlink()


def test_a_renamed_link_is_shown_where_it_is(world: World) -> None:
    path, _ = world.prepared("out.tmp", b"data")
    path.rename(world.work / "out")
    assert world.states() == {"out": "linked"}


def test_bad_entries_are_named_and_the_others_shown(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    directory = world.state / "journal"
    good = world.journal()[0].read_bytes()
    (directory / "1111111111111111.json").write_bytes(good[:-30])
    (directory / "2222222222222222.json").write_bytes(good.replace(b"/out", b"/oot"))
    (directory / "3333333333333333.json").write_bytes(good)
    (directory / "4444444444444444.json").write_bytes(good.replace(b"journal/1", b"journal/9"))
    done = world.iosig("status", check=3)
    assert str(path) in done.stdout and str(destination) in done.stdout
    for digit, word in {"1": "cut off", "2": "changed", "3": "renamed", "4": "iosig.journal/9"}.items():
        assert any(digit * 16 in line and word in line for line in done.stderr.splitlines()), (digit, done.stderr)
    assert len(world.iosig.json("status", check=3)["unreadable"]) == 4
