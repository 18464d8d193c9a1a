"""The directory at home cannot be examined, or has moved: nothing proves that no link leads to the data."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from redirecting import World, needs_mounts, with_checksum


@needs_mounts
@pytest.mark.parametrize("below", ["", "project/run"])
def test_data_whose_home_is_not_mounted_are_never_given_up(world: World, below: str) -> None:
    """The file system at home is unmounted: only the empty directory under the mount is there."""
    done = world.run_with_own_mounts(
        """
        set -e
        mount -t tmpfs home "$2" && mkdir -p "$2/$3" && cd "$2/$3"
        "$1" prepare out random >&2 && echo 'the only copy' > out
        cd / && umount "$2"
        "$1" status
        "$1" finalize --all --drop-orphans && exit 90
        "$1" recover all
        "$1" gc --older-than 0s
        """,
        world.iosig.binary,
        world.work,
        below,
    )
    text = done.stdout.decode() + done.stderr.decode()
    assert done.returncode == 0, text
    [destination] = world.user_directory.glob("*/out")
    assert destination.read_text() == "the only copy\n" and len(world.journal()) == 1
    assert "unreachable" in text and " orphan " not in text and "may not be mounted" in text
    # The way out that the message names, for who does not want the data:
    assert f"rm -r '{destination.parent}'" in text
    shutil.rmtree(destination.parent)
    world.iosig("finalize", "--all", "--drop-orphans")
    assert world.is_settled()


@needs_mounts
def test_data_whose_home_is_mounted_again_come_home(world: World) -> None:
    image = world.root / "home.img"
    with image.open("wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    done = world.run_with_own_mounts(
        """
        set -e
        mount -o loop "$3" "$2" && cd "$2" && "$1" prepare out random >&2 && echo data > out
        cd / && umount "$2" && "$1" finalize --all --drop-orphans 2>&1 && exit 90
        mount -o loop "$3" "$2" && "$1" finalize --all >&2 && test ! -L "$2/out" && cat "$2/out"
        """,
        world.iosig.binary,
        world.work,
        image,
    )
    assert done.stdout.decode().endswith("\ndata\n"), done.stderr.decode()
    assert world.is_settled()


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_data_whose_home_cannot_be_read_are_never_given_up(world: World) -> None:
    # Root without the capabilities that let it read everything is a user like others.
    plain = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    done = world.run(
        *plain, "bash", "-c",
        """
        mkdir "$2" && cd "$2" && "$1" prepare out random >&2 && echo 'the only copy' > out && cd /
        chmod 000 "$2" && "$1" finalize --all --drop-orphans; echo "exit $?"
        chmod 700 "$2" && "$1" finalize --all && cat "$2/out"
        """,
        "-", world.iosig.binary, world.work / "closed",
    )  # fmt: skip
    assert b"exit 1\n" in done.stdout and done.stdout.endswith(b"the only copy\n"), done
    assert b"cannot tell whether a link leads to its data" in done.stderr


@pytest.mark.parametrize("old, new", [("run", "run.1"), ("project/run", "project/done"), ("project", "project2")])
def test_a_link_is_found_in_a_directory_that_was_renamed(world: World, old: str, new: str) -> None:
    """The job's directory gets another name before finalize."""
    inner = world.work / "project/run" if old.startswith("project") else world.work / "run"
    inner.mkdir(parents=True)
    path, _ = world.prepared(str(inner.relative_to(world.work) / "out"), b"data")
    (world.work / old).rename(world.work / new)
    moved = world.work / new / "run/out" if old == "project" else world.work / new / "out"
    [redirect] = world.iosig.json("status")["redirects"]
    assert (redirect["state"], redirect["path"]) == ("linked", str(moved))
    world.iosig("finalize", "--all", "--drop-orphans")
    assert moved.read_bytes() == b"data" and not moved.is_symlink() and not path.exists() and world.is_settled()


def test_a_link_is_found_beside_a_new_directory_of_the_old_name(world: World) -> None:
    """As logrotate does with directories: mv run run.1; mkdir run."""
    (world.work / "run").mkdir()
    world.prepared("run/out", b"data")
    (world.work / "run").rename(world.work / "run.1")
    (world.work / "run").mkdir()
    world.iosig("finalize", "--all", "--drop-orphans")
    assert (world.work / "run.1/out").read_bytes() == b"data" and world.is_settled()


def test_a_killed_run_is_undone_in_a_renamed_directory(world: World) -> None:
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    (world.work / "run").mkdir()
    path, _ = world.prepared("run/out", b"data")
    traced = ["strace", "-o", "/dev/null", "-e", "trace=renameat2", "-e", "inject=renameat2:signal=KILL:when=2"]
    world.run(*traced, world.iosig.binary, "finalize", path)
    assert not path.is_symlink() and list(path.parent.glob(".iosig-*.aside"))
    (world.work / "run").rename(world.work / "run.1")
    world.iosig("finalize", "--all")
    assert (world.work / "run.1/out").read_bytes() == b"data" and world.is_settled()


def test_data_whose_directory_was_removed_are_orphans(world: World) -> None:
    (world.work / "run").mkdir()
    _, destination = world.prepared("run/out", b"data")
    shutil.rmtree(world.work / "run")
    assert world.states() == {"out": "orphan"}
    assert str(destination) in world.iosig("finalize", "--all", check=1).stderr
    world.iosig("finalize", "--all", "--drop-orphans")
    assert world.is_settled()


def test_an_entry_that_does_not_know_its_home_keeps_data_whose_directory_is_missing(world: World) -> None:
    """Early versions did not record it: an unmounted file system looks like a removed directory."""
    (world.work / "run").mkdir()
    world.prepared("run/out", b"data")
    [entry] = world.journal()
    before, _, after = entry.read_text().partition(',"home_filesystem_id"')
    entry.write_text(with_checksum(before + after[after.index(',"signature"') : after.index(',"checksum"')]))
    assert world.states() == {"out": "linked"}
    shutil.rmtree(world.work / "run")
    assert world.states() == {"out": "unreachable"}
    world.iosig("finalize", "--all", "--drop-orphans", check=1)
    assert len(list(world.user_directory.glob("*/out"))) == 1


def test_data_whose_link_was_renamed_and_has_other_names_are_never_given_up(world: World) -> None:
    """As after `cp -al` of the directory and `mv`: the journal knows neither name, and both lead to the data."""
    path, destination = world.prepared("out", b"the only copy")
    (world.work / "backup").mkdir()
    os.link(path, world.work / "backup/out", follow_symlinks=False)
    renamed = path.rename(world.work / "final")
    refused = world.iosig("finalize", "--all", "--drop-orphans", check=1).stderr
    assert f"'{renamed}' does, but it has other names, too (hard links)" in refused
    assert "hard links" in world.iosig("finalize", renamed, check=1).stderr
    assert renamed.read_bytes() == destination.read_bytes() == b"the only copy"
    assert world.states() == {"out": "unreachable"}
    (world.work / "backup/out").unlink()
    world.iosig("finalize", "--all")
    assert renamed.read_bytes() == b"the only copy" and not renamed.is_symlink() and world.is_settled()


def test_a_killed_run_is_undone_beside_a_link_with_two_names(world: World) -> None:
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    path, destination = world.prepared("out", b"data")
    os.link(path, world.work / "second", follow_symlinks=False)
    traced = ["strace", "-o", "/dev/null", "-e", "trace=renameat2", "-e", "inject=renameat2:signal=KILL:when=1"]
    world.run(*traced, world.iosig.binary, "finalize", path)
    assert list(world.work.glob(".iosig-*.aside"))
    done = world.iosig("finalize", path).stdout
    assert path.read_bytes() == b"data" and not path.is_symlink() and world.is_settled()
    assert f"dangle now: '{world.work / 'second'}'" in done and not destination.exists()


def test_links_that_dangle_are_named_also_if_they_are_names_of_one_link(world: World) -> None:
    path, _ = world.prepared("out", b"data")
    others = [world.work / "a", world.work / "b"]
    for other in others:
        os.link(path, other, follow_symlinks=False)
    names = ", ".join(f"'{other}'" for other in others)
    assert f"would dangle: {names}" in world.iosig("finalize", "--dry-run", path).stdout
    assert f"dangle now: {names}" in world.iosig("finalize", path).stdout
    assert path.read_bytes() == b"data" and world.is_settled()
