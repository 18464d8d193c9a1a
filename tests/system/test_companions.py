"""Files that programs make beside redirected data (SQLite's journal, swap and backup files) come home with them.

Programs derive their names from the path that they reach, so behind a link they lie beside the destination.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from redirecting import World, needs_mounts, with_checksum

# Commits rows until it is killed, says each commit, and leaves a transaction open at the end: its pages are on disk,
# its rollback journal or log beside them.
SQLITE_WRITER = """
import sqlite3, sys
path, mode, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
db = sqlite3.connect(path, isolation_level=None, timeout=60)
db.execute(f"pragma journal_mode={mode}")
db.execute("pragma synchronous=full")
db.execute("pragma cache_size=5")
db.execute("create table if not exists t (writer integer, n integer, filler blob)")
for n in range(rows):
    db.execute("insert into t values (?, ?, randomblob(3000))", (int(sys.argv[4]), n))
    print(n, flush=True)
sys.stdin.readline()
db.execute("begin immediate")
for n in range(200):
    db.execute("insert into t values (-1, ?, randomblob(3000))", (n,))
db.execute("update t set filler = randomblob(3000)")
print("open", flush=True)
sys.stdin.readline()
"""


def killed_in_a_transaction(path: Path, mode: str, rows: int = 100) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SQLITE_WRITER, path, mode, str(rows), "1"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as writer:  # fmt: skip
        assert writer.stdout is not None and writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
        for line in writer.stdout:
            if line == "open\n":
                break
        writer.kill()


def rows_of(path: Path) -> list[int]:
    with sqlite3.connect(path) as database:
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)
        return [n for (n,) in database.execute("select n from t where writer = 1 order by n")]


@pytest.mark.parametrize(("mode", "companions"), [("delete", ["-journal"]), ("wal", ["-shm", "-wal"])])
def test_a_killed_transaction_of_sqlite_is_rolled_back_at_home(world: World, mode: str, companions: list[str]) -> None:
    path = world.work / "a.db"
    world.iosig("prepare", path, "random")
    killed_in_a_transaction(path, mode)
    [told] = world.iosig.json("status")["redirects"]
    assert told["companions"] == [f"a.db{suffix}" for suffix in companions]
    settled = world.iosig.json("finalize", "--all")["settled"]
    assert settled[0]["companions"] == told["companions"]
    assert sorted(p.name for p in world.work.iterdir()) == ["a.db", *(f"a.db{suffix}" for suffix in companions)]
    assert world.is_settled()
    assert rows_of(path) == list(range(100))


def test_several_processes_of_sqlite_share_the_redirected_database(world: World) -> None:
    path = world.work / "a.db"
    world.iosig("prepare", path, "random")
    first = sqlite3.connect(path)
    first.execute("pragma journal_mode=wal")
    first.close()
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", SQLITE_WRITER, path, "wal", "40", str(number)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for number in range(3)
    ]  # fmt: skip
    committed = [0] * 3
    for number, writer in enumerate(writers):
        assert writer.stdout is not None
        for line in writer.stdout:
            if line == "39\n":
                break
        committed[number] = 40
    for writer in writers:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    world.iosig("finalize", path)
    with sqlite3.connect(path) as database:
        counted = dict(database.execute("select writer, count(*) from t where writer >= 0 group by writer"))
    assert counted == dict(enumerate(committed)) and world.is_settled()


def test_companions_of_all_kinds_come_home(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    directory = destination.parent
    (directory / "out.part").write_bytes(b"part")
    (directory / ".out.swp").write_bytes(b"swap" * 10000)
    (directory / "out~").write_bytes(b"backup")
    (directory / "out.latest").symlink_to("out")
    os.utime(directory / "out~", ns=(10**18, 10**18))
    (directory / "out~").chmod(0o640)
    said = world.iosig("finalize", path).stdout
    assert "'.out.swp'" in said and "'out.part'" in said
    assert (world.work / "out.part").read_bytes() == b"part"
    assert (world.work / ".out.swp").read_bytes() == b"swap" * 10000
    backup = (world.work / "out~").stat()
    assert backup.st_mtime_ns == 10**18 and backup.st_mode & 0o777 == 0o640
    assert (world.work / "out.latest").readlink() == Path("out")
    assert path.read_bytes() == b"data" and world.is_settled()


def test_links_among_companions_lead_to_the_files_at_home(world: World) -> None:
    """Absolute, or by a name that changes on the way: else they dangle, since the directory goes."""
    path, destination = world.prepared("prog-12", b"data")
    path = path.rename(world.work / "a.db")
    directory = destination.parent
    (directory / "prog-12.part").write_bytes(b"part")
    targets = {
        "absolute": (destination, "a.db"),
        "of-part": (directory / "prog-12.part", "a.db.part"),
        "relative": ("prog-12", "a.db"),
        "dotted": ("./prog-12.part", "a.db.part"),
        "by-link": (directory / "absolute", "absolute"),
        "to-come": (directory / "prog-12-wal", "a.db-wal"),
        "directory": (directory, "."),
        "same": ("absolute", "absolute"),
        "lock": ("ann@host.prog-12:7", "ann@host.prog-12:7"),
        "elsewhere": ("/etc/passwd", "/etc/passwd"),
        "above": ("../prog-12", "../prog-12"),
        "like": (f"{directory}0/prog-12", f"{directory}0/prog-12"),
    }
    for name, (target, _) in targets.items():
        (directory / name).symlink_to(target)
    world.iosig("finalize", path)
    for name, (_, wanted) in targets.items():
        assert (world.work / name).readlink() == Path(wanted), name
    assert all((world.work / name).read_bytes() == b"data" for name in ("absolute", "relative", "by-link", "same"))
    assert (world.work / "of-part").read_bytes() == b"part" and world.is_settled()


def test_a_link_among_companions_that_spells_the_mount_point_free_of_links_is_led_home_too(world: World) -> None:
    alias = world.root / "alias"
    alias.symlink_to(world.fast)
    world.storage.write_text(world.storage.read_text().replace(f'"{world.fast}"', f'"{alias}"'))
    path, destination = world.prepared("out", b"data")
    assert destination.is_relative_to(alias)
    (destination.parent / "one").symlink_to(destination)
    (destination.parent / "other").symlink_to(destination.resolve())
    world.iosig("finalize", path)
    assert [(world.work / name).readlink() for name in ("one", "other")] == [Path("out")] * 2 and world.is_settled()


def test_a_companion_whose_name_is_taken_at_home_is_named_and_nothing_is_changed(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    (destination.parent / "out.log").write_bytes(b"behind the link")
    (destination.parent / "out.a").write_bytes(b"a")
    (world.work / "out.log").write_bytes(b"at home")
    for options in (["--dry-run"], []):
        refused = world.iosig("finalize", path, *options, check=1).stderr
        assert f"{world.work}/out.log" in refused and "move or remove" in refused
    assert path.is_symlink() and (world.work / "out.log").read_bytes() == b"at home"
    assert sorted(p.name for p in world.work.iterdir()) == ["out", "out.log"]
    (world.work / "out.log").unlink()
    world.iosig("finalize", path)
    assert (world.work / "out.log").read_bytes() == b"behind the link" and world.is_settled()


def test_a_companion_that_is_a_directory_is_named_and_nothing_is_changed(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    (destination.parent / "out.d").mkdir()
    assert f"{destination.parent}/out.d" in world.iosig("finalize", path, check=1).stderr
    assert path.is_symlink() and list(world.work.iterdir()) == [path]


def test_companions_without_their_file_come_home_too(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    destination.rename(destination.parent / "out.bak")
    assert world.states() == {"out": "linked"}
    world.iosig("finalize", path)
    assert not os.path.lexists(path) and (world.work / "out.bak").read_bytes() == b"data" and world.is_settled()


def test_companions_get_the_name_that_the_data_have_at_home(world: World) -> None:
    """A program renames its file, by its link, and then works on it: SQLite looks for the journal of the new name."""
    path, destination = world.prepared("new.db", b"")
    path = path.rename(world.work / "a.db")
    killed_in_a_transaction(path, "wal", rows=20)
    assert (destination.parent / "new.db-wal").exists()
    assert world.iosig.json("finalize", path)["settled"][0]["companions"] == ["a.db-shm", "a.db-wal"]
    assert rows_of(path) == list(range(20)) and world.is_settled()


def test_temporary_data_are_dropped_with_their_companions(world: World) -> None:
    path, destination = world.prepared("scratch", b"data", "temp")
    (destination.parent / "scratch-journal").write_bytes(b"journal")
    world.iosig("finalize", path)
    assert list(world.work.iterdir()) == [] and world.is_settled()


def test_data_whose_companion_is_open_are_left_alone(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    companion = destination.parent / "out-wal"
    with subprocess.Popen(["sleep", "60"], stdout=companion.open("ab")) as writer:
        assert f"process {writer.pid} still has" in world.iosig("finalize", path, check=1).stderr
        writer.kill()
    assert path.is_symlink()
    world.iosig("finalize", path)
    assert (world.work / companion.name).exists() and world.is_settled()


def test_companions_without_a_link_are_kept_and_counted(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    (destination.parent / "out-wal").write_bytes(b"w" * 1000)
    path.unlink()
    assert world.states() == {"out": "orphan"}
    [told] = world.iosig.json("status")["redirects"]
    assert told["data_bytes"] == 1004
    world.iosig("finalize", "--all", check=1)
    assert (destination.parent / "out-wal").exists()
    kept = world.iosig.json("gc", "--older-than", "0s")["kept"]
    assert [each["data_bytes"] for each in kept] == [1004]
    world.iosig("finalize", "--all", "--drop-orphans")
    assert world.is_settled()


@needs_mounts
def test_a_full_home_refuses_all_of_them(world: World) -> None:
    """Room is asked for the data and their companions together; what a full disk refuses is undone."""
    path, destination = world.prepared("out", b"data")
    (destination.parent / "out-wal").write_bytes(os.urandom(2 << 20))
    script = f"""
        mount -t tmpfs -o size=1M none {world.work} && ln -s {destination} {path} || exit
        {world.iosig.binary} finalize {path}
        echo status $?
        ls -A {world.work}
    """
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small file system")
    done = world.run_with_own_mounts(script, cwd="/")
    assert b"no room" in done.stderr and done.stdout.decode().splitlines() == ["status 1", "out"]


def test_flat_destinations_of_early_versions_still_settle(world: World) -> None:
    """What a version before directories of their own left: link, data `<id>.<name>`, and an entry that says so."""
    path, destination = world.prepared("out", b"")
    [entry] = world.journal()
    flat = world.user_directory / f"{entry.stem}.out"
    text = entry.read_text().replace(f"{entry.stem}/out", f"{entry.stem}.out")
    entry.write_text(with_checksum(text[: text.index(',"checksum"')]))
    path.unlink()
    shutil.rmtree(destination.parent)
    path.symlink_to(flat)
    assert world.states() == {"out": "empty"}
    path.write_bytes(b"data")  # a program that is linked already keeps working
    assert flat.read_bytes() == b"data" and world.states() == {"out": "linked"}
    world.iosig("finalize", "--all")
    assert path.read_bytes() == b"data" and not path.is_symlink() and world.is_settled()


def test_vim_leaves_its_swap_and_backup_files_where_it_finds_them_again(world: World) -> None:
    if shutil.which("vim") is None:
        pytest.skip("needs vim")
    path, _ = world.prepared("text", b"first line\n")
    with subprocess.Popen(
        ["vim", "-u", "NONE", "-N", "-c", "set updatecount=1", "-c", "normal Gosecond", "-c", "preserve", path],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as vim:  # fmt: skip
        deadline = time.time() + 20
        while not list(path.resolve().parent.glob(".text.sw*")) and time.time() < deadline:
            time.sleep(0.05)
        vim.kill()
    assert list(path.resolve().parent.glob(".text.sw*"))
    world.iosig("finalize", path)
    assert list(world.work.glob(".text.sw*")) and path.read_bytes() == b"first line\n" and world.is_settled()
