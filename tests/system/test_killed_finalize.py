"""A run of finalize is killed after the exchange, and programs use the file at home before the next run.

The copy and the data are two versions then: the next run must not put the older one back.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest
from test_companions import SQLITE_WRITER, killed_in_a_transaction, rows_of

from redirecting import World


def killed_after_the_exchange(world: World, path: Path, is_retired: bool = False) -> None:
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    # The first renameat2 exchanges, the second retires the data; then the names beside them are removed.
    call, when = ("unlinkat", 1) if is_retired else ("renameat2", 2)
    inject = f"inject={call}:signal=KILL:when={when}"
    traced = ["strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e", inject]
    subprocess.run([*traced, world.iosig.binary, "finalize", path], env=world.env, capture_output=True, check=False)
    assert not path.is_symlink() and list(world.work.glob(".iosig-*.aside"))


def test_a_change_that_sets_the_old_times_is_not_undone(world: World) -> None:
    """As rsync -t does: size and modification time are those of the copy."""
    path, destination = world.prepared("out", b"one")
    os.utime(destination, ns=(10**18, 10**18))
    killed_after_the_exchange(world, path)
    path.write_bytes(b"ONE")
    os.utime(path, ns=(10**18, 10**18))
    refused = world.iosig("finalize", path, check=1).stderr
    assert path.read_bytes() == b"ONE" and destination.read_bytes() == b"one" and str(destination) in refused
    destination.unlink()
    world.iosig("finalize", "--all")
    assert path.read_bytes() == b"ONE" and world.is_settled()


def test_a_mode_that_a_program_set_is_kept(world: World) -> None:
    path, _ = world.prepared("out", b"data")
    killed_after_the_exchange(world, path)
    path.chmod(0o600)
    world.iosig("finalize", path)
    assert path.stat().st_mode & 0o777 == 0o600 and path.read_bytes() == b"data" and world.is_settled()


def test_rows_that_were_committed_into_the_log_at_home_stay_visible(world: World) -> None:
    """Only the companion changed: the main file is as finalize had copied it."""
    path = world.work / "a.db"
    world.iosig("prepare", path, "random")
    killed_in_a_transaction(path, "wal", rows=20)
    killed_after_the_exchange(world, path)
    code = SQLITE_WRITER.replace("sys.argv[1], sys.argv[2], int(sys.argv[3])", f"{str(path)!r}, 'wal', 0")
    more = code[: code.index("for n in range(rows)")].replace("create table if not exists t", "create table u")
    subprocess.run(
        ["python3", "-c", more + "db.execute('insert into u values (1, 1, 1)')\nimport os\nos.kill(os.getpid(), 9)"],
        check=False,
    )
    refused = world.iosig("finalize", path, check=1).stderr
    assert "a.db-wal" in refused and not path.is_symlink()
    assert rows_of(path) == list(range(20))
    with sqlite3.connect(path) as database:
        assert database.execute("select count(*) from u").fetchone() == (1,)


def test_an_orphan_is_told_of_with_its_companions_and_the_way_that_brings_all_home(world: World) -> None:
    path = world.work / "a.db"
    world.iosig("prepare", path, "random")
    killed_in_a_transaction(path, "delete", rows=20)
    destination = path.readlink()
    path.unlink()
    refused = world.iosig("finalize", "--all", check=1).stderr
    assert "'a.db-journal'" in refused and f"ln -s '{destination}' '{path}'" in refused
    path.symlink_to(destination)
    world.iosig("finalize", path)
    assert rows_of(path) == list(range(20)) and world.is_settled()


@pytest.mark.parametrize("step", ["before the data are retired", "after"])
def test_a_file_that_was_removed_at_home_does_not_come_back(world: World, step: str) -> None:
    path, destination = world.prepared("out", b"data")
    killed_after_the_exchange(world, path, is_retired=step == "after")
    path.unlink()
    assert world.states() == {"out": "orphan"}
    refused = world.iosig("finalize", "--all", check=1).stderr
    assert list(world.work.iterdir()) == [] and destination.read_bytes() == b"data" and str(destination) in refused
    world.iosig("finalize", "--all", "--drop-orphans")
    assert list(world.work.iterdir()) == [] and world.is_settled()


def test_a_file_that_was_renamed_at_home_has_one_name(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    killed_after_the_exchange(world, path)
    path.rename(world.work / "kept")
    world.iosig("recover", "all")
    assert [file.name for file in world.work.iterdir()] == ["kept"] and destination.read_bytes() == b"data"
    world.iosig("finalize", "--all", "--drop-orphans")
    assert (world.work / "kept").read_bytes() == b"data" and world.is_settled()


def test_links_among_companions_that_a_killed_run_led_home_are_recognized(world: World) -> None:
    """Their text at home is not that at the destination; the second run must not take them for another's files."""
    path, destination = world.prepared("prog-12", b"data")
    path = path.rename(world.work / "a.db")
    (destination.parent / "latest").symlink_to(destination)
    (destination.parent / "previous").symlink_to("prog-12")
    killed_after_the_exchange(world, path)
    path.chmod(0o600)  # so the copy at home stays, and is compared with the data
    world.iosig("finalize", "--all")
    assert [(world.work / name).readlink() for name in ("latest", "previous")] == [Path("a.db")] * 2
    assert path.read_bytes() == b"data" and path.stat().st_mode & 0o777 == 0o600 and world.is_settled()


def test_what_a_killed_run_led_home_is_undone_without_a_trace(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    (destination.parent / "latest").symlink_to(destination)
    killed_after_the_exchange(world, path)
    world.iosig("recover", "all")
    assert list(world.work.iterdir()) == [path] and path.is_symlink()
    world.iosig("finalize", path)
    assert (world.work / "latest").readlink() == Path("out") and world.is_settled()
