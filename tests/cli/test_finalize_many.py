"""`iosig finalize` of many redirects at once: order, errors, progress; and what it says of copies that share blocks."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from redirecting import World, needs_mounts
from terminal import run_on_terminal


def prepared_files(world: World, count: int, size: Callable[[int], int]) -> list[Path]:
    names = [f"out{number:03}" for number in range(count)]
    (world.root / "rules.toml").write_text(
        f'schema = "iosig.rules/1"\n[[rule]]\npath = "{world.work}/*"\nsig = "random"\n'
    )
    world.iosig("prepare", "--rules", world.root / "rules.toml", *names, cwd=world.work)
    for number, name in enumerate(names):
        (world.work / name).write_bytes(content_of(number, size(number)))
    return [world.work / name for name in names]


def content_of(number: int, size: int) -> bytes:
    return (b"%d " % number * size)[:size]


@pytest.mark.parametrize("jobs", [[], ["--jobs", "1"], ["--jobs", "3"], ["--jobs", "200"]])
def test_many_files_come_home_and_are_told_of_in_their_order(world: World, jobs: list[str]) -> None:
    """The large ones end last."""
    sizes = [3_000_000 if number % 7 == 0 else 1000 for number in range(60)]
    paths = prepared_files(world, 60, sizes.__getitem__)
    order = [each["path"] for each in world.iosig.json("status")["redirects"]]
    said = world.iosig("finalize", "--all", *jobs).stdout.splitlines()
    assert [line.split("'")[1] for line in said] == order == [str(path) for path in paths]
    for number, path in enumerate(paths):
        assert not path.is_symlink() and path.read_bytes() == content_of(number, sizes[number])
    assert world.is_settled()


def test_an_error_of_one_file_is_that_of_the_others_not(world: World) -> None:
    paths = prepared_files(world, 20, lambda _: 1000)
    paths[5].unlink()
    paths[5].write_bytes(b"new")
    held = paths[12].open("rb")
    done = world.iosig("finalize", "--all", check=1)
    held.close()
    refused = [line for line in done.stderr.splitlines() if line.startswith("iosig: ")]
    assert len(refused) == 2 and "out005" in refused[0] and "out012" in refused[1]
    assert done.stdout.count("brought home") == 18 and world.states() == {"out005": "replaced", "out012": "linked"}


def test_few_descriptors_mean_fewer_jobs(world: World) -> None:
    paths = prepared_files(world, 40, lambda _: 1000)
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))  # noqa: E731
    world.iosig("finalize", "--all", preexec_fn=few)
    assert world.is_settled() and all(not path.is_symlink() for path in paths)


def test_two_runs_settle_each_redirect_once(world: World) -> None:
    paths = prepared_files(world, 40, lambda _: 1000)
    runs = [
        subprocess.Popen([world.iosig.binary, "finalize", "--all"], env=world.env, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = [run.communicate()[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0] and sum(text.count("brought home") for text in said) == 40
    assert world.is_settled() and all(path.read_bytes() == content_of(n, 1000) for n, path in enumerate(paths))


def test_a_log_has_progress_with_rate_and_time_left(world: World) -> None:
    paths = prepared_files(world, 3, lambda _: 12 << 20)
    said = world.iosig("finalize", "--all", "--max-rate", "8MB/s").stderr  # longer than the three seconds of a log
    assert re.search(r"settling 3 redirects: [\d.]+ MB of 36 MB \(\d+ %\), [\d.]+ MB/s, [\d.]+ s left\n", said), said
    assert "\r" not in said and all(not path.is_symlink() for path in paths)


def test_a_terminal_has_a_line_that_is_drawn_again(world: World) -> None:
    prepared_files(world, 3, lambda _: 4 << 20)
    words = world.iosig.binary, "finalize", "--all", "--max-rate", "8MB/s"
    shown = run_on_terminal(words, world.env, columns=100)
    assert len(re.findall(r"\rsettling 3 redirects: [\d.]+ MB of 12 MB", shown)) > 1
    assert [line for line in shown.splitlines() if "\r" not in line] or shown.count("brought home") == 3


@needs_mounts
@pytest.mark.parametrize(("verify", "said"), [("copy", "(blocks shared,"), ("full", "(blocks shared and verified,")])
def test_shared_blocks_are_not_called_verified(world: World, verify: str, said: str) -> None:
    """One btrfs, mounted twice: no hard link leads from one mount to the other, but both share blocks."""
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("needs mkfs.btrfs")
    script = r"""
        set -e
        truncate -s 200M "$4/image"
        mkfs.btrfs -q "$4/image"
        mkdir "$4/whole"
        mount -o loop "$4/image" "$4/whole" || exit 77
        btrfs -q subvolume create "$4/whole/home" > /dev/null
        btrfs -q subvolume create "$4/whole/fast" > /dev/null
        mount --bind "$4/whole/home" "$2"
        mount --bind "$4/whole/fast" "$3"
        "$1" prepare "$2/out" random > /dev/null
        head -c 3m /dev/urandom > "$2/out"
        sum=$(sha256sum < "$2/out")
        "$1" finalize --verify "$5" "$2/out"
        test ! -L "$2/out"
        test "$(sha256sum < "$2/out")" = "$sum"
    """
    (world.root / "images").mkdir()
    words = world.iosig.binary, world.work, world.fast, world.root / "images", verify
    done = world.run_with_own_mounts(script, *words)
    if done.returncode in (77, 127):
        pytest.skip(f"needs loop devices and btrfs: {done.stderr.decode()}")
    assert done.returncode == 0, done.stderr.decode()
    assert said.encode() in done.stdout


def test_only_what_was_compared_is_called_verified(world: World) -> None:
    for verify, said in (
        ("none", "copied, not verified"),
        ("copy", "copied and verified"),
        ("full", "copied and verified"),
    ):
        path, _ = world.prepared(f"out-{verify}", os.urandom(100_000))
        assert f"({said}, " in world.iosig("finalize", "--verify", verify, path).stdout
