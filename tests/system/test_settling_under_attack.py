"""Companions and settlements at their worst: names that collide, files that are replaced at the last moment, runs that
are killed while programs go on, and many runs at once. Each test failed once.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from redirecting import World


def entry_id(world: World) -> str:
    [entry] = world.journal()
    return entry.stem


def test_two_companions_that_would_get_one_name_at_home_are_named_and_both_stay(world: World) -> None:
    path, destination = world.prepared("new", b"data")
    path = path.rename(world.work / "a")
    (destination.parent / "a-wal").write_bytes(b"of a")
    (destination.parent / "new-wal").write_bytes(b"of new")
    for options in (["--dry-run"], []):
        refused = world.iosig("finalize", path, *options, check=1).stderr
        assert f"{destination.parent}/a-wal" in refused and f"{destination.parent}/new-wal" in refused
    assert path.is_symlink() and list(world.work.iterdir()) == [path]
    (destination.parent / "a-wal").unlink()
    world.iosig("finalize", path)
    assert (world.work / "a-wal").read_bytes() == b"of new" and world.is_settled()


@pytest.mark.parametrize("suffix", ["draft", "aside", "companions"])
def test_a_companion_with_a_name_of_finalize_itself_is_named(world: World, suffix: str) -> None:
    path, destination = world.prepared("out", b"data")
    companion = destination.parent / f".iosig-{entry_id(world)}.{suffix}"
    companion.write_bytes(b"companion")
    refused = world.iosig("finalize", path, check=1).stderr
    assert str(companion) in refused and "rename" in refused
    assert list(world.work.iterdir()) == [path] and companion.read_bytes() == b"companion"
    companion.rename(destination.parent / ".iosig-x")
    world.iosig("finalize", path)
    assert (world.work / ".iosig-x").read_bytes() == b"companion" and path.read_bytes() == b"data"


def test_a_companion_whose_name_at_home_is_too_long_is_named(world: World) -> None:
    path, destination = world.prepared("a", b"data")
    path = path.rename(world.work / ("l" * 255))
    (destination.parent / "a-wal").write_bytes(b"log")
    refused = world.iosig("finalize", path, check=1).stderr
    assert f"{destination.parent}/a-wal" in refused and "too long" in refused
    assert path.is_symlink() and list(world.work.iterdir()) == [path]


@pytest.mark.parametrize("name", ["out.sha256", "out.sha256.bak", "out.sha256sums"])
def test_a_checksum_file_that_a_program_made_is_a_companion(world: World, name: str) -> None:
    path, destination = world.prepared("out", b"data")
    (destination.parent / name).write_bytes(b"a program's own\n")
    world.iosig("finalize", path)
    assert (world.work / name).read_bytes() == b"a program's own\n"
    assert path.read_bytes() == b"data" and world.is_settled()


def test_odd_names_and_modes_of_companions_come_home(world: World) -> None:
    path, destination = world.prepared("o", b"data")
    names = [b"o\n-wal", b"o\xff\xfe", b"o-o-o.o", b"x" * 255, b".iosig-", b"o ", b"o'\"", b"-o", b"o\\"]
    companions = [destination.parent / os.fsdecode(name) for name in names]
    for number, companion in enumerate(companions):
        companion.write_bytes(b"%d" % number)
    companions[0].chmod(0)
    companions[1].chmod(0o200)
    with (destination.parent / "o.sparse").open("wb") as sparse:
        sparse.truncate(1 << 32)
        sparse.seek(1 << 31)
        sparse.write(b"x")
    world.iosig("finalize", path)
    for number, companion in enumerate(companions):
        assert (world.work / companion.name).read_bytes() == b"%d" % number
    assert (world.work / companions[1].name).stat().st_mode & 0o777 == 0o200
    assert (world.work / "o.sparse").stat().st_blocks < 200 and path.read_bytes() == b"data"
    assert not world.journal()


def test_many_runs_at_once_settle_each_redirect_once(world: World) -> None:
    count = 60
    paths = [world.work / f"out{n}" for n in range(count)]
    rules = world.root / "rules.toml"
    rules.write_text('schema = "iosig.rules/1"\n[[rule]]\npath = "*/out*"\nsig = "random"\n')
    world.iosig("prepare", "--rules", rules, *paths)
    for path in paths:
        path.write_bytes(path.name.encode())
        (path.readlink().parent / f"{path.name}-wal").write_bytes(b"log")
    verbs = [["finalize", "--all"]] * 6 + [["gc", "--older-than", "0s"], ["recover"], ["status"], ["finalize", *paths]]
    runs = [
        subprocess.Popen(
            [world.iosig.binary, *map(str, verb), "--json"],
            env=world.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for verb in verbs
    ]  # fmt: skip
    settled: list[str] = []
    for verb, run in zip(verbs, runs, strict=True):
        out, err = run.communicate(timeout=120)
        assert run.returncode == 0, (verb[:2], err)
        said = json.loads(out)
        settled += [each["path"] for each in said.get("settled", [])]
        settled += [each["path"] for each in said.get("recovered", []) if each["outcome"] != "left"]
    assert sorted(settled) == sorted(map(str, paths))
    for path in paths:
        assert path.read_bytes() == path.name.encode() and not path.is_symlink()
        assert path.with_name(f"{path.name}-wal").read_bytes() == b"log"
    assert world.is_settled()


@pytest.mark.parametrize("made_anew", ["", "empty", "filled"])
@pytest.mark.parametrize("first", ["finalize", "recover", "gc"])
def test_a_retired_directory_is_no_garbage_while_the_link_leads_there(world: World, first: str, made_anew: str) -> None:
    """What remains of a run that could not take its retirement back, as the destination's directory was made anew."""
    path, destination = world.prepared("out", b"data")
    retired = destination.parent.rename(destination.parent.with_name(destination.parent.name + ".settled"))
    if made_anew:
        destination.parent.mkdir()
    if made_anew == "filled":
        destination.write_bytes(b"anew")
    if first == "recover":
        world.iosig("recover")
    if first == "gc":
        world.iosig("gc", "--older-than", "0s")
    if made_anew == "filled":
        assert str(retired) in world.iosig("finalize", path, check=1).stderr
        assert path.read_bytes() == b"anew" and (retired / "out").read_bytes() == b"data"
        shutil.rmtree(destination.parent)
    world.iosig("finalize", path)
    assert path.read_bytes() == b"data" and not path.is_symlink() and world.is_settled()


def test_hard_links_between_companions_are_not_taken_for_open_files(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    os.link(destination, destination.parent / "out~")
    (destination.parent / "out.a").write_bytes(b"a")
    os.link(destination.parent / "out.a", destination.parent / "out.b")
    world.iosig("finalize", path)
    assert path.read_bytes() == (world.work / "out~").read_bytes() == b"data"
    assert (world.work / "out.b").read_bytes() == b"a" and world.is_settled()


def test_a_run_that_was_killed_when_all_was_at_home_leaves_nothing_to_decide(world: World) -> None:
    """The link is gone, the data are retired: a program that goes on with the file at home has its only copy."""
    path, destination = world.prepared("out", b"data")
    (destination.parent / "out-wal").write_bytes(b"log")
    entry = entry_id(world)
    staging = world.work / f".iosig-{entry}.companions"
    staging.mkdir()
    (staging / staging.name).touch()
    path.unlink()
    path.write_bytes(b"data")
    os.link(path, world.work / f".iosig-{entry}.draft")
    (staging / "out-wal").write_bytes(b"log")
    os.link(staging / "out-wal", world.work / "out-wal")
    destination.parent.rename(destination.parent.with_name(destination.parent.name + ".settled"))
    path.write_bytes(b"written at home")
    (world.work / "out-wal").write_bytes(b"log at home")
    world.iosig("finalize", "--all")
    assert path.read_bytes() == b"written at home" and (world.work / "out-wal").read_bytes() == b"log at home"
    assert world.is_settled()


def test_data_with_a_time_to_come_stay_behind_the_link_when_they_are_in_use(world: World, at_step: Path) -> None:
    for step in range(1, 400, 7):
        path, destination = world.prepared(f"out{step}", b"data" * 1000)
        os.utime(destination, ns=(4 * 10**18, 4 * 10**18))
        command = [at_step, str(step), "append", path, destination, world.iosig.binary, "finalize", path]
        done = subprocess.run(command, capture_output=True, text=True, env=world.env, timeout=100)
        if "not-reached" in done.stdout:
            break
        assert path.read_bytes() == b"data" * 1000 + b"written late", done.stdout + done.stderr
        world.iosig("finalize", path)
        assert path.read_bytes() == b"data" * 1000 + b"written late" and world.is_settled()
    else:
        raise AssertionError


def test_a_companion_that_a_program_removes_meanwhile_is_a_program_at_work(world: World, at_step: Path) -> None:
    for step in range(3, 600, 29):
        path, destination = world.prepared(f"out{step}", b"data")
        companion = destination.with_name(f"{destination.name}-wal")
        companion.write_bytes(b"log")
        command = [at_step, str(step), "vanish", path, destination, world.iosig.binary, "finalize", path]
        done = subprocess.run(command, capture_output=True, text=True, env=world.env, timeout=100)
        outcome, status = done.stdout.splitlines()[-1].split()
        if outcome == "not-reached":
            break
        assert status in ("0", "1"), done.stdout + done.stderr
        world.iosig("finalize", path)
        assert path.read_bytes() == b"data" and world.is_settled()
    else:
        raise AssertionError
