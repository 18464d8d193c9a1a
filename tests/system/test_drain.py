"""`iosig finalize --background`, `--job --wait`, `prepare --drain`: data come home beside the job, which wins."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from redirecting import World, needs_mounts

# Under nohup SIGHUP is ignored, and programs inherit that.
NOT_IGNORED = ["env", "--default-signal=HUP,INT,TERM"]
SLOW = "8MB/s"  # with CONTENT: two seconds in which something can happen
CONTENT = os.urandom(1 << 20) * 16


def eventually(is_true: Callable[[], Any], what: str = "") -> Any:
    """What `is_true` returns as soon as it is true; machines may be slow, so a minute is allowed."""
    for _ in range(1200):
        if answer := is_true():
            return answer
        time.sleep(0.05)
    raise AssertionError(what or "it never came true")


def is_alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    return False


class Drains:
    """Starts drains, and ends those that a test leaves."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.pids: list[int] = []

    def start(self, *arguments: object) -> dict[str, Any]:
        done = self.world.iosig.json("finalize", "--background", *arguments)["drain"]
        if done["pid"]:
            self.pids.append(done["pid"])
        return done

    def of(self, path: Path) -> Any:
        """What `iosig status` says of the drain of this path."""
        redirects = self.world.iosig.json("status")["redirects"]
        return next((each["drain"] for each in redirects if each["path"] == str(path)), None)

    def phase(self, path: Path) -> str:
        return (self.of(path) or {}).get("phase", "")

    def log(self) -> str:
        log = self.world.state / "drain.log"
        return log.read_text() if log.exists() else ""

    def end(self) -> None:
        for pid in self.pids:
            eventually(lambda pid=pid: not is_alive(pid), f"drain {pid} goes on\n{self.log()}")


@pytest.fixture
def drains(world: World) -> Iterator[Drains]:
    started = Drains(world)
    yield started
    for pid in started.pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def is_home(path: Path) -> bool:
    return path.exists() and not path.is_symlink()


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


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_drain_that_is_killed_is_shown_and_started_again(world: World, drains: Drains, number: int) -> None:
    path, _ = world.prepared("out", CONTENT)
    pid = drains.start("--max-rate", SLOW, path)["pid"]
    eventually(lambda: drains.phase(path) == "copying")
    os.kill(pid, number)
    drains.end()
    assert path.is_symlink() and path.read_bytes() == CONTENT and drains.phase(path) == "stopped"
    assert "its drain was killed; iosig finalize --background starts another one" in world.iosig("status").stdout
    drains.start(path)
    drains.end()
    assert is_home(path) and path.read_bytes() == CONTENT and world.is_settled()
    assert [file.name for file in world.work.iterdir()] == ["out"]


def killed_while_copying(world: World, drains: Drains, path: Path) -> int:
    """Kills a drain in the middle of its copy; returns the inode of that copy."""
    pid = drains.start("--max-rate", SLOW, path)["pid"]
    eventually(lambda: drains.phase(path) == "copying")
    os.kill(pid, signal.SIGKILL)
    drains.end()
    [draft] = world.work.glob(".iosig-*.draft")
    return draft.stat().st_ino


@pytest.mark.parametrize("by", ["a drain", "finalize", "finalize --verify none", "finalize --verify full"])
def test_the_copy_of_a_killed_drain_is_continued(world: World, drains: Drains, by: str) -> None:
    path, _ = world.prepared("out", CONTENT)
    inode = killed_while_copying(world, drains, path)
    if by == "a drain":
        drains.start(path)
        drains.end()
    else:
        world.iosig(*by.split(), path)
    assert is_home(path) and path.read_bytes() == CONTENT and world.is_settled()
    assert path.stat().st_ino == inode and path.stat().st_mode & 0o777 == 0o644


def test_a_copy_whose_bytes_are_wrong_is_put_right(world: World, drains: Drains) -> None:
    path, _ = world.prepared("out", CONTENT)
    inode = killed_while_copying(world, drains, path)
    [draft] = world.work.glob(".iosig-*.draft")
    with draft.open("r+b") as file:  # a fault of the memory, say
        file.seek(3_000_000)
        file.write(b"wrong")
    world.iosig("finalize", path)
    assert path.read_bytes() == CONTENT and path.stat().st_ino == inode


def test_the_copy_of_other_data_is_not_continued(world: World, drains: Drains) -> None:
    """The data have a hole now where the copy has bytes."""
    path, destination = world.prepared("out", CONTENT)
    killed_while_copying(world, drains, path)
    with destination.open("r+b") as file:
        file.truncate(0)
        file.seek(len(CONTENT) - 1)
        file.write(b"x")
    world.iosig("finalize", path)
    assert path.read_bytes() == bytes(len(CONTENT) - 1) + b"x" and path.stat().st_blocks * 512 < 1 << 20


@pytest.mark.parametrize("how", ["another file", "a link", "another name"])
def test_a_file_in_the_place_of_the_copy_is_not_written_to(world: World, drains: Drains, how: str) -> None:
    path, _ = world.prepared("out", CONTENT)
    killed_while_copying(world, drains, path)
    [draft] = world.work.glob(".iosig-*.draft")
    foreign = world.work / "foreign"
    if how == "another name":
        os.link(draft, foreign)
    else:
        foreign.write_bytes(b"foreign")
        draft.unlink()
        if how == "a link":
            draft.symlink_to(foreign)
        else:
            os.link(foreign, draft)
    before = foreign.read_bytes()
    world.iosig("finalize", path)
    assert foreign.read_bytes() == before and path.read_bytes() == CONTENT and not foreign.samefile(path)


def test_the_copy_of_lost_data_is_kept_until_it_is_given_up(world: World, drains: Drains) -> None:
    path, destination = world.prepared("out", CONTENT)
    killed_while_copying(world, drains, path)
    path.unlink()
    destination.unlink()
    refused = world.iosig("finalize", "--all", check=1).stderr
    [draft] = world.work.iterdir()
    assert str(draft) in refused
    world.iosig("finalize", "--all", "--drop-orphans")
    assert list(world.work.iterdir()) == [] and world.is_settled()


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
        for i in $(seq 900); do test -L "$path" || break; sleep 0.1; done
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


class Job:
    """Processes with a batch system's id and a session of their own: each line given to `do` is run by its shell."""

    def __init__(self, world: World, number: str) -> None:
        self.shell = subprocess.Popen(
            ["setsid", "bash"], stdin=subprocess.PIPE, env=world.env | {"SLURM_JOB_ID": number}, cwd=world.work,
            stdout=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.world = world

    def do(self, line: str) -> None:
        assert self.shell.stdin is not None
        done = self.world.root / "done"
        self.shell.stdin.write(f"{line}\ntouch '{done}'\n")
        self.shell.stdin.flush()
        eventually(done.exists)
        done.unlink()

    def end(self) -> None:
        assert self.shell.stdin is not None
        self.shell.stdin.close()
        self.shell.wait()


@pytest.fixture
def job(world: World) -> Iterator[Job]:
    started = Job(world, "4711")
    yield started
    started.shell.kill()
    started.shell.wait()


def test_a_job_is_settled_when_it_has_ended(world: World, job: Job) -> None:
    path, other = world.work / "out", world.prepared("other", b"of no job")[0]
    job.do(f"'{world.iosig.binary}' prepare out random; echo data > out")
    [redirect] = [each for each in world.iosig.json("status")["redirects"] if each["path"] == str(path)]
    assert redirect["job"] == "slurm:4711"
    refused = world.iosig("finalize", "--job", "4711", check=1).stderr
    assert "job '4711' still runs" in refused and "--wait" in refused
    refused = world.iosig("finalize", "--job", "4711", "--wait", "--timeout", "10ms", check=1).stderr
    assert "still runs after" in refused and path.is_symlink()
    waiting = subprocess.Popen(
        [world.iosig.binary, "finalize", "--job", "slurm:4711", "--wait"], env=world.env, stdout=subprocess.PIPE
    )
    time.sleep(0.5)
    assert waiting.poll() is None and path.is_symlink()
    job.do(f"'{world.iosig.binary}' prepare late random; echo later > late")
    job.end()
    out, _ = waiting.communicate()
    assert waiting.returncode == 0 and out.count(b"brought home") == 2
    assert is_home(path) and (world.work / "late").read_bytes() == b"later\n"
    assert other.is_symlink()
    assert "nothing is redirected" in world.iosig("finalize", "--job", "4711").stdout


def test_a_program_of_the_job_that_left_its_session_is_waited_for(world: World, job: Job) -> None:
    path = world.work / "out"
    job.do(f"'{world.iosig.binary}' prepare out random; echo data > out; setsid sleep 100 & echo $! > sleeper")
    job.end()
    sleeper = int((world.work / "sleeper").read_text())
    try:
        refused = world.iosig("finalize", "--job", "4711", check=1).stderr
        assert "still runs" in refused and path.is_symlink()
    finally:
        os.kill(sleeper, signal.SIGKILL)
    eventually(lambda: not is_alive(sleeper))
    world.iosig("finalize", "--job", "4711")
    assert is_home(path)


def test_without_a_batch_system_the_session_is_the_job(world: World, job: Job) -> None:
    path = world.work / "out"
    job.do(f"'{world.iosig.binary}' prepare out random; echo data > out; ps -o sid= $$ | tr -d ' ' > sid")
    session = (world.work / "sid").read_text().strip()
    assert "still runs" in world.iosig("finalize", "--job", f"session:{session}", check=1).stderr
    job.end()
    world.iosig("finalize", "--job", f"session:{session}", "--wait")
    assert is_home(path)


def test_a_job_that_waits_for_itself_is_told(world: World, job: Job) -> None:
    job.do(
        f"'{world.iosig.binary}' prepare out random; echo data > out; "
        f"'{world.iosig.binary}' finalize --job 4711 --wait 2> told; echo $? >> told"
    )
    told = (world.work / "told").read_text()
    assert "--background" in told and told.endswith("\n2\n")


def test_the_shell_that_submitted_a_job_is_not_waited_for(world: World) -> None:
    """As with salloc: it redirected for the job, and goes on when the job has ended."""
    words = f"SLURM_JOB_ID=4711 {world.iosig.binary} prepare out random; echo data > out; ps -o sid= $$ > sid; "
    done = world.run("setsid", "-w", "bash", "-c", words + f"{world.iosig.binary} finalize --job 4711 --wait")
    assert done.returncode == 0, done.stderr
    assert is_home(world.work / "out") and world.is_settled()


def test_a_job_of_another_machine_is_not_taken_for_ended(world: World, job: Job) -> None:
    job.do(f"unshare -u true && unshare -u bash -c \"hostname elsewhere; '{world.iosig.binary}' prepare out random\"")
    path = world.work / "out"
    if not path.is_symlink():
        pytest.skip("needs UTS namespaces")
    path.write_bytes(b"data")
    job.end()
    refused = world.iosig("finalize", "--job", "4711", check=1).stderr
    assert "'elsewhere'" in refused and "--force" in refused and path.is_symlink()
    world.iosig("finalize", "--job", "4711", "--force")
    assert is_home(path)


def test_the_drain_of_a_job_takes_on_what_it_redirects_later(world: World, job: Job, drains: Drains) -> None:
    job.do(f"'{world.iosig.binary}' prepare out random; echo data > out; sleep 0.01")
    drains.start("--job", "4711")
    eventually(lambda: is_home(world.work / "out"))
    job.do(f"'{world.iosig.binary}' prepare late random; echo later > late")
    eventually(lambda: is_home(world.work / "late"))
    assert is_alive(drains.pids[0])
    job.end()
    drains.end()
    assert (world.work / "late").read_bytes() == b"later\n" and world.is_settled()


def test_a_drain_with_wait_leaves_everything_until_the_job_ends(world: World, job: Job, drains: Drains) -> None:
    path = world.work / "out"
    job.do(f"'{world.iosig.binary}' prepare out random; echo data > out; '{world.iosig.binary}' finalize --background "
           "--job 4711 --wait --json > answer")  # fmt: skip
    drains.pids.append(json.loads((world.work / "answer").read_text())["drain"]["pid"])
    eventually(lambda: "its job runs" in (drains.of(path) or {}).get("message", ""))
    assert path.is_symlink()
    job.end()
    drains.end()
    assert is_home(path) and path.read_bytes() == b"data\n"


@pytest.mark.parametrize(
    "arguments",
    [["--all", "--wait"], ["--all", "--timeout", "1s"], ["--all", "--job", "1"], ["--job", "1", "out"],
     ["--all", "--background", "--dry-run"], ["--all", "--background", "--force"], ["--all", "--max-rate", "fast"],
     ["--all", "--background", "--timeout", "3"], ["--all", "--jobs", "-1"]],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(world: World, arguments: list[str]) -> None:
    assert world.iosig("finalize", *arguments, check=2).stderr


CHANGING = [
    "write", "pwrite64", "fsync", "sync_file_range", "ftruncate", "linkat", "renameat", "renameat2", "unlink",
    "unlinkat", "fchmod", "utimensat",
]  # fmt: skip


def drain_traced(world: World, path: Path, *options: str) -> str:
    """A drain of the path, traced from the last close of its data until it ends; returns the trace."""
    log = world.root / f"{path.name}.strace"
    with path.open("ab"):
        pid = world.iosig.json("finalize", "--background", path)["drain"]["pid"]
        try:
            record = world.state / "journal" / f".{path.readlink().parent.name}.drain"
            eventually(lambda: "has it open" in record.read_text())
            strace = subprocess.Popen(["strace", "-f", "-o", log, *options, "-p", str(pid)], stderr=subprocess.PIPE)
            assert strace.stderr is not None
            while b"attached" not in (line := strace.stderr.readline()):
                if not line:
                    pytest.skip("processes cannot be traced here")
        except BaseException:
            os.kill(pid, signal.SIGKILL)
            raise
    strace.communicate()
    return log.read_text(errors="replace")


def test_a_settled_redirect_leaves_no_record_of_a_drain_that_was_killed(world: World) -> None:
    path, _ = world.prepared("out", b"data")
    for left in ("drain", "drain.draft"):
        (world.state / "journal" / f".{path.readlink().parent.name}.{left}").write_text("cut")
    world.iosig("finalize", path)
    assert is_home(path) and not [*(world.state / "journal").glob(".*.drain*")]


def test_a_drain_that_is_killed_at_any_step_loses_nothing_and_goes_on(world: World) -> None:
    """strace kills it before the N-th call of each kind that changes files; the next drain, or finalize, finishes."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    content = CONTENT[:300_000]
    path, _ = world.prepared("out0", content)
    log = drain_traced(world, path, "-e", f"trace={','.join(CHANGING)}")
    assert is_home(path), log
    calls = re.findall(r"^\d+ +(\w+)\(", log, re.MULTILINE)
    steps = [(call, count) for call in CHANGING for count in range(1, calls.count(call) + 1)]
    assert len(steps) >= 20, log

    def kill_at(numbered: tuple[int, tuple[str, int]]) -> bool:
        # How often it writes down how far it is depends on the time: a run may have fewer calls than the first had.
        return any(was_killed_at(*numbered, turn) for turn in range(5))

    def was_killed_at(number: int, step: tuple[str, int], turn: int) -> bool:
        call, count = step
        path, _ = world.prepared(f"out{number}.{turn}", content)
        log = drain_traced(world, path, "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={count}")
        told = f"killed before {call} {count}\n{log}"
        assert path.read_bytes() == content, told
        if number % 2 == 0 and path.is_symlink():
            world.iosig("finalize", "--background", path)
            eventually(lambda: is_home(path), told)
        else:
            world.iosig("finalize", path)
        assert is_home(path) and path.read_bytes() == content, told
        return "killed by SIGKILL" in log

    with ThreadPoolExecutor(4) as some:
        killed = sum(some.map(kill_at, enumerate(steps, 1)))
    print(f"{killed} kills at {len(steps)} steps")
    assert killed == len(steps)
    eventually(lambda: not world.journal() or not world.iosig("finalize", "--all", check=None).returncode)
    assert world.is_settled()
    assert not [*(world.state / "journal").glob(".*.drain*")]
