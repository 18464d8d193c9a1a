"""`iosig finalize --background` and `prepare --drain`: data come home beside the program, which wins."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from draining import CONTENT, NOT_IGNORED, SLOW, Drains, eventually, is_alive, is_home
from redirecting import World, needs_mounts


def test_closed_files_come_home_in_the_background_and_nothing_is_left(world: World, drains: Drains) -> None:
    files = [world.prepared(f"out{n}", b"%d" % n * 1000) for n in range(5)]
    started = drains.start("--all")
    assert sorted(started["draining"]) == [str(path) for path, _ in files]
    drains.end()
    for n, (path, _) in enumerate(files):
        assert is_home(path) and path.read_bytes() == b"%d" % n * 1000
    assert world.is_settled() and "out3': brought home (copied and verified" in drains.log()
    assert not [*(world.state / "journal").glob(".*.drain*")]


def test_a_drain_keeps_nothing_of_its_caller(world: World, drains: Drains) -> None:
    """A script that reads the output of the command, and one that waits for the end of a pipe, go on at once."""
    path, destination = world.prepared("out", b"data")
    with destination.open("ab"):  # it has to wait
        read, write = os.pipe()
        done = subprocess.run(
            [world.iosig.binary, "finalize", "--background", "--json", path],
            env=world.env, cwd=world.work, capture_output=True, check=True, pass_fds=[write],
        )  # fmt: skip
        os.close(write)
        assert os.read(read, 1) == b""
        os.close(read)
        pid = json.loads(done.stdout)["drain"]["pid"]
        drains.pids.append(pid)
        assert os.getsid(pid) != os.getsid(0) and os.getpriority(os.PRIO_PROCESS, pid) == 19
        assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
    drains.end()
    assert is_home(path) and path.read_bytes() == b"data"


def test_a_file_that_is_open_is_waited_for(world: World, drains: Drains) -> None:
    path, _destination = world.prepared("out", b"one")
    with path.open("ab") as file:
        drains.start(path)
        eventually(lambda: "a program has it open" in (drains.of(path) or {}).get("message", ""))
        assert path.is_symlink() and "it waits: a program has it open" in world.iosig("status").stdout
        file.write(b" two")
    drains.end()
    assert is_home(path) and path.read_bytes() == b"one two" and world.is_settled()


def test_a_prepared_file_comes_home_after_its_last_close(world: World, drains: Drains) -> None:
    path = world.work / "out"
    said = world.iosig("prepare", "--drain", path, "random").stdout
    drains.pids.append(int(re.findall(r"process (\d+) settles it", said)[0]))
    eventually(lambda: "has not written it" in (drains.of(path) or {}).get("message", ""))
    assert path.is_symlink() and is_alive(drains.pids[0])
    path.write_bytes(CONTENT)
    drains.end()
    assert is_home(path) and path.read_bytes() == CONTENT and world.is_settled()


def test_a_reader_finds_the_data_at_every_moment(world: World, drains: Drains) -> None:
    path, _ = world.prepared("out", CONTENT)
    drains.start("--max-rate", "30MB/s", path)
    while not is_home(path):
        with path.open("rb") as file:
            file.seek(len(CONTENT) - 100)
            assert file.read() == CONTENT[-100:]
        time.sleep(0.02)  # a drain waits for readers, too
    drains.end()
    assert path.read_bytes() == CONTENT


def test_status_shows_how_far_a_drain_is(world: World, drains: Drains) -> None:
    path, _ = world.prepared("out", CONTENT)
    drains.start("--max-rate", SLOW, path)
    shown = eventually(lambda: "copying: " in (text := world.iosig("status").stdout) and text)
    assert re.search(r"'.*out': process \d+ drains it; copying: [\d.]+ [KM]B of 16 MB, [\d.]+ [KM]B/s", shown)
    assert "killed run" not in world.iosig("status").stderr  # its temporary names are those of a living one
    drains.end()
    assert path.read_bytes() == CONTENT


def test_a_redirect_has_one_drain(world: World, drains: Drains) -> None:
    path, destination = world.prepared("out", b"data")
    with destination.open("ab"):
        first = drains.start(path)
        second = drains.start("--all")
        assert first["draining"] == [str(path)] and second["pid"] == 0 and second["drained_by_another"] == [str(path)]
        assert "another drain has it" in world.iosig("finalize", "--background", path).stdout
    drains.end()
    assert path.read_bytes() == b"data"


def test_finalize_settles_what_a_drain_waits_for(world: World, drains: Drains) -> None:
    path, destination = world.prepared("out", b"data")
    with destination.open("ab"):
        drains.start(path)
        eventually(lambda: "open" in (drains.of(path) or {}).get("message", ""))
        world.iosig("finalize", "--force", path)
    drains.end()
    assert is_home(path) and "settled by another run" in drains.log() and world.is_settled()


@pytest.mark.parametrize("how", ["written", "appended", "replaced by rename"])
def test_a_file_that_is_rewritten_while_it_is_drained_comes_home_as_it_was_written_last(
    world: World, drains: Drains, how: str
) -> None:
    path, destination = world.prepared("out", CONTENT)
    drains.start("--max-rate", SLOW, path)
    eventually(lambda: drains.phase(path) == "copying")
    if how == "written":
        path.write_bytes(b"new")
    elif how == "appended":
        with path.open("ab") as file:
            file.write(b"new")
    else:
        (destination.parent / "next").write_bytes(b"new")
        (destination.parent / "next").rename(destination)
    drains.end()
    assert is_home(path) and path.read_bytes() == (CONTENT + b"new" if how == "appended" else b"new")
    assert world.is_settled()


def test_a_link_that_is_renamed_while_it_is_drained_is_followed(world: World, drains: Drains) -> None:
    path, _ = world.prepared("out.tmp", CONTENT)
    drains.start("--max-rate", SLOW, path)
    eventually(lambda: drains.phase(path) == "copying")
    renamed = path.rename(world.work / "out")
    drains.end()
    assert is_home(renamed) and renamed.read_bytes() == CONTENT
    assert list(world.work.iterdir()) == [renamed] and world.is_settled()


def test_a_link_that_is_removed_while_it_is_drained_does_not_come_back(world: World, drains: Drains) -> None:
    path, destination = world.prepared("out", CONTENT)
    drains.start("--max-rate", SLOW, path)
    eventually(lambda: drains.phase(path) == "copying")
    path.unlink()
    drains.end()
    assert list(world.work.iterdir()) == [] and destination.read_bytes() == CONTENT
    assert drains.phase(path) == "gave_up" and "--drop-orphans" in world.iosig("status").stdout
    world.iosig("finalize", "--all", "--drop-orphans")
    assert world.is_settled() and not [*(world.state / "journal").glob(".*.drain*")]


def test_a_file_that_takes_the_path_while_it_is_drained_is_kept_with_the_data(world: World, drains: Drains) -> None:
    path, destination = world.prepared("out", CONTENT)
    drains.start("--max-rate", SLOW, path)
    eventually(lambda: drains.phase(path) == "copying")
    (world.work / "next").write_bytes(b"new")
    (world.work / "next").rename(path)
    drains.end()
    assert path.read_bytes() == b"new" and destination.read_bytes() == CONTENT
    assert drains.phase(path) == "gave_up" and str(destination) in world.iosig("status").stdout


def test_a_drain_in_the_foreground_that_gives_up_fails_and_settles_the_others(world: World) -> None:
    lost, destination = world.prepared("lost", CONTENT)
    path, _ = world.prepared("out", CONTENT)
    lost.unlink()
    done = world.iosig("finalize", "--background", "--foreground", lost, path, check=1)
    assert "redirects given up: 1" in done.stderr and "'iosig status' says why" in done.stderr
    assert destination.read_bytes() == CONTENT and is_home(path) and path.read_bytes() == CONTENT


def test_the_end_of_the_terminal_does_not_end_a_drain(world: World, drains: Drains) -> None:
    path, destination = world.prepared("out", b"data")
    with destination.open("ab"):
        master, slave = os.openpty()
        command = f"'{world.iosig.binary}' finalize --background --json '{path}' > answer; sleep 100"
        shell = subprocess.Popen(
            [*NOT_IGNORED, "setsid", "--ctty", "bash", "-c", command],
            stdin=slave, stdout=slave, stderr=slave, env=world.env, cwd=world.root,
        )  # fmt: skip
        os.close(slave)
        answer = eventually(lambda: (world.root / "answer").exists() and (world.root / "answer").read_text())
        drains.pids.append(json.loads(answer)["drain"]["pid"])
        os.close(master)  # SIGHUP for everything on the terminal
        assert shell.wait() != 0
        assert is_alive(drains.pids[0])
        os.kill(drains.pids[0], signal.SIGHUP)
        assert is_alive(drains.pids[0])
    drains.end()
    assert is_home(path) and path.read_bytes() == b"data"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_finalize_and_the_data_stay_reachable(world: World, number: int) -> None:
    path, _ = world.prepared("out", CONTENT)
    other, _ = world.prepared("other", b"x")
    command = [*NOT_IGNORED, world.iosig.binary, "finalize", "--max-rate", SLOW, path, other]
    with subprocess.Popen(command, env=world.env, stdout=subprocess.DEVNULL) as run:
        eventually(lambda: [*world.work.glob(".iosig-*.draft")])
        run.send_signal(number)
        assert run.wait() == -number
    assert path.is_symlink() and path.read_bytes() == CONTENT and other.read_bytes() == b"x"
    world.iosig("finalize", "--all")
    assert is_home(path) and path.read_bytes() == CONTENT and world.is_settled()


def test_a_journal_that_is_not_there_is_waited_for_and_not_made(world: World, drains: Drains) -> None:
    """The file system of the home directory, with the journal, is unmounted for a while."""
    path, destination = world.prepared("out", b"data")
    away = world.root / "away"
    with destination.open("ab"):
        drains.start(path)
        eventually(lambda: "a program has it open" in (drains.of(path) or {}).get("message", ""))
        world.state.rename(away)
        eventually(lambda: "may not be mounted" in (away / "drain.log").read_text())
    time.sleep(1)
    assert is_alive(drains.pids[0]) and path.is_symlink() and not world.state.exists()
    away.rename(world.state)
    drains.end()
    assert is_home(path) and path.read_bytes() == b"data" and world.is_settled()


@pytest.mark.parametrize("way", [(), ("--background", "--foreground", "--timeout", "1s")])
def test_a_file_beyond_the_limit_of_file_sizes_stays_where_it_is(world: World, way: tuple[str, ...]) -> None:
    path, destination = world.prepared("out", CONTENT)
    command = 'ulimit -f 1024; exec "$@"'
    done = world.run("bash", "-c", command, "-", world.iosig.binary, "finalize", *way, path)
    said = done.stdout.decode() + done.stderr.decode()
    assert done.returncode == (1 if way else 4) and "File too large" in said, (done.returncode, said)
    assert destination.read_bytes() == CONTENT and list(world.work.iterdir()) == [path]
    world.iosig("finalize", path)
    assert is_home(path) and path.read_bytes() == CONTENT and world.is_settled()


@needs_mounts
def test_a_full_disk_at_home_is_waited_for_and_nothing_is_half_done(world: World) -> None:
    script = r"""
        set -e
        mount -t tmpfs -o size=8m none "$2"
        head -c 6m /dev/zero > "$2/ballast"
        iosig=$1 path=$2/out
        "$iosig" prepare "$path" random > /dev/null
        head -c 4m /dev/urandom > "$path"
        sum=$(sha256sum < "$path")
        "$iosig" finalize --background "$path"
        for i in $(seq 600); do "$iosig" status | grep -q "no room in" && break; sleep 0.1; done
        "$iosig" status
        ls -A "$2"
        test -L "$path"
        test "$(sha256sum < "$path")" = "$sum"
        rm "$2/ballast"
        for i in $(seq 900); do test "$(ls -A "$2")" = out && test ! -L "$path" && break; sleep 0.1; done
        test ! -L "$path"
        test "$(sha256sum < "$path")" = "$sum"
        echo "and then:"
        ls -A "$2"
    """
    done = world.run_with_own_mounts(script, world.iosig.binary, world.work, timeout=200)
    said = done.stdout.decode()
    assert done.returncode == 0, said + done.stderr.decode()
    assert "it waits: '" in said and "missing; nothing was changed" in said
    before, after = said.split("and then:\n")
    assert ".iosig" not in before.split("missing; nothing was changed")[1] and after == "out\n"


@needs_mounts
def test_a_destination_that_is_unmounted_meanwhile_is_waited_for(world: World) -> None:
    script = r"""
        set -e
        iosig=$1 work=$2 fast=$3
        mount -t tmpfs none "$fast"
        "$iosig" prepare "$work/out" random > /dev/null
        echo data > "$work/out"
        exec 9>> "$work/out"  # the drain has to wait
        "$iosig" finalize --background "$work/out"
        for i in $(seq 600); do "$iosig" status | grep -q "has it open" && break; sleep 0.1; done
        mkdir "$4"
        mount --bind "$fast" "$4"
        exec 9>&-
        umount --lazy "$fast"
        for i in $(seq 600); do "$iosig" status | grep -q "cannot be reached" && break; sleep 0.1; done
        "$iosig" status
        test -L "$work/out"
        mount --bind "$4" "$fast"
        for i in $(seq 900); do test -L "$work/out" || break; sleep 0.1; done
        cat "$work/out"
        test ! -L "$work/out"
    """
    words = world.iosig.binary, world.work, world.fast, world.root / "kept"
    done = world.run_with_own_mounts(script, *words, timeout=200)
    said = done.stdout.decode()
    assert done.returncode == 0, said + done.stderr.decode()
    assert said.endswith("data\n")


@needs_mounts
def test_without_a_writable_state_directory_no_drain_is_started(world: World) -> None:
    path, _ = world.prepared("out", b"data")
    script = 'mount --bind "$2" "$2" && mount -o remount,bind,ro "$2" && "$1" finalize --background "$3"'
    done = world.run_with_own_mounts(script, world.iosig.binary, world.state, path)
    assert done.returncode == 4 and str(world.state).encode() in done.stderr, done
    assert path.is_symlink() and path.read_bytes() == b"data"


def test_a_state_directory_that_is_a_file_is_named(world: World) -> None:
    path = world.work / "out"
    path.write_bytes(b"data")
    blocked = world.root / "file"
    blocked.write_bytes(b"")
    refused = world.iosig("finalize", "--all", "--background", env=world.env | {"IOSIG_STATE": str(blocked)}, check=4)
    assert str(blocked) in refused.stderr


def test_temporary_data_are_not_dropped_while_their_job_runs(world: World, drains: Drains) -> None:
    path = world.work / "scratch"
    script = f"'{world.iosig.binary}' prepare '{path}' temp > made && echo data > '{path}' && read line"
    with subprocess.Popen(["setsid", "bash", "-c", script], stdin=subprocess.PIPE, env=world.env, cwd=world.root):
        eventually(lambda: path.exists() and path.read_bytes() == b"data\n")
        drains.start(path)
        eventually(lambda: "its job runs" in (drains.of(path) or {}).get("message", ""))
        assert path.read_bytes() == b"data\n"
    drains.end()
    assert not os.path.lexists(path) and world.is_settled()


@pytest.mark.parametrize(
    "arguments",
    [["--all", "--wait"], ["--all", "--timeout", "1s"], ["--all", "--job", "1"], ["--job", "1", "out"],
     ["--all", "--background", "--dry-run"], ["--all", "--background", "--force"], ["--all", "--max-rate", "fast"],
     ["--all", "--background", "--timeout", "3"], ["--all", "--jobs", "-1"]],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(world: World, arguments: list[str]) -> None:
    assert world.iosig("finalize", *arguments, check=2).stderr
