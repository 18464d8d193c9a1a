"""PID namespaces of one machine: what a live job left is never taken for a dead one's, wherever gc runs."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redirecting import World, with_checksum

NEW = str(os.O_CREAT | os.O_WRONLY)
NOW = ("--older-than", "0s")
# The kernel's first PID namespace has a fixed number; only from there is everything visible.
SEES_ALL = Path("/proc/self/ns/pid").stat().st_ino == 0xEFFFFFFC


def can_unshare() -> bool:
    command = ["unshare", "--pid", "--fork", "--mount-proc", "true"]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0


pytestmark = pytest.mark.skipif(not can_unshare(), reason="needs root, to make PID namespaces")


class Namespace:
    """A PID namespace with a /proc of its own (`own_proc`), in which commands can be run."""

    def __init__(self, own_proc: bool = True) -> None:
        mount = ["--mount-proc"] if own_proc else ["--mount"]
        self.holder = subprocess.Popen(
            ["unshare", "--pid", "--fork", *mount, "--kill-child=KILL", "sh", "-c", "echo; exec sleep 1000"],
            stdout=subprocess.PIPE,
        )
        assert self.holder.stdout is not None and self.holder.stdout.readline() == b"\n"
        children = Path(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children").read_text()
        self.own_proc = own_proc
        self.enter = ("nsenter", "--target", children.strip(), "--pid", "--mount", "--wdns=/")

    def __enter__(self) -> Namespace:
        return self

    def __exit__(self, *_: object) -> None:
        self.holder.kill()
        self.holder.wait()


@pytest.fixture(params=["own /proc", "the outer /proc"])
def inside(request: pytest.FixtureRequest) -> Iterator[Namespace]:
    with Namespace(own_proc=request.param == "own /proc") as namespace:
        yield namespace


@contextlib.contextmanager
def job(world: World, hinted: Path, *enter: str) -> Iterator[Path]:
    """A live job, a session of its own, with a directory and temporary data that none of its processes has open."""
    script = (
        'directory=$("$0" choose --make-folder temp) && "$1" open "$3/scratch" "$2" "temp random" <<< data >&2'
        ' && echo "$directory" && read -r x'
    )
    process = subprocess.Popen(
        [*enter, "setsid", "--fork", "--wait", "bash", "-c", script, world.iosig.binary, hinted, NEW, world.work],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=world.env,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    try:
        directory = Path(process.stdout.readline().decode().strip())
        assert directory.parent == world.user_directory
        (directory / "data").write_bytes(b"data")
        yield directory
    finally:
        process.stdin.close()
        process.wait()


def gc(world: World, *enter: str, words: tuple[object, ...] = NOW, check: int = 0) -> dict[str, tuple[str, str]]:
    """Name -> ("removed" or "kept", why)."""
    done = world.run(*enter, world.iosig.binary, "gc", "--json", *words)
    assert done.returncode == check, done
    answer = json.loads(done.stdout)
    return {Path(item["path"]).name: (what, item["why"]) for what in ("removed", "kept") for item in answer[what]}


def whats(found: dict[str, tuple[str, str]]) -> list[str]:
    return [what for what, _ in found.values()]


def test_a_live_job_in_another_namespace_keeps_its_data(world: World, hinted: Path, inside: Namespace) -> None:
    with job(world, hinted, *inside.enter) as directory:
        found = gc(world)
        assert whats(found) == ["kept", "kept"] and (directory / "data").exists()
        assert (world.work / "scratch").read_bytes() == b"data\n"
        if SEES_ALL:
            assert all("still runs" in why for _, why in found.values())
    assert whats(gc(world)) == ["removed", "removed"]  # its namespace is there and can be seen
    assert not list(world.user_directory.iterdir()) and not world.journal()


def test_a_job_whose_namespace_is_gone_is_dead_where_everything_can_be_seen(world: World, hinted: Path) -> None:
    with Namespace() as namespace, job(world, hinted, *namespace.enter):
        pass
    assert whats(gc(world)) == (["removed", "removed"] if SEES_ALL else ["kept", "kept"])


def test_a_job_outside_is_judged_from_within_only_by_its_own_proc(
    world: World, hinted: Path, inside: Namespace
) -> None:
    with job(world, hinted) as directory:
        found = gc(world, *inside.enter)
        reason = "cannot be told" if inside.own_proc else "still runs"
        assert whats(found) == ["kept", "kept"] and all(reason in why for _, why in found.values())
        assert (directory / "data").exists() and (world.work / "scratch").read_bytes() == b"data\n"
    if inside.own_proc:
        assert whats(gc(world, *inside.enter)) == ["kept", "kept"]
    assert whats(gc(world)) == ["removed", "removed"]


def test_siblings_do_not_judge_each_other(world: World, hinted: Path, inside: Namespace) -> None:
    with Namespace() as other:
        with job(world, hinted, *other.enter) as directory:
            assert whats(gc(world, *inside.enter)) == ["kept", "kept"]
            assert (directory / "data").exists() and (world.work / "scratch").read_bytes() == b"data\n"
        if inside.own_proc:
            assert whats(gc(world, *inside.enter)) == ["kept", "kept"]
        assert whats(gc(world, *other.enter)) == ["removed", "removed"]


def test_a_job_is_judged_within_its_own_namespace(world: World, hinted: Path, inside: Namespace) -> None:
    with job(world, hinted, *inside.enter):
        found = gc(world, *inside.enter)
        assert whats(found) == ["kept", "kept"] and all("still runs" in why for _, why in found.values())
    assert whats(gc(world, *inside.enter)) == ["removed", "removed"]


def test_a_session_whose_leader_is_outside_of_the_namespace_is_unknown(world: World, inside: Namespace) -> None:
    """As in `unshare --pid --fork program`: the rest of the job runs where the entry's numbers mean nothing."""
    directory = Path(
        world.run(*inside.enter, world.iosig.binary, "choose", "--make-folder", "temp").stdout.decode().strip()
    )
    for enter in ((), inside.enter):
        assert gc(world, *enter)[directory.name][0] == "kept" and directory.exists()


def test_data_of_an_unknown_job_go_only_when_they_are_named(world: World, hinted: Path) -> None:
    with Namespace() as namespace:
        with job(world, hinted) as directory:
            pass
        data = (world.work / "scratch").readlink()
        unknown = gc(world, *namespace.enter, words=("--unknown",))
        assert set(unknown) == {directory.name, data.name} and whats(unknown) == ["kept", "kept"]
        for words in (("--unknown", "--dry-run", directory), ("--unknown", world.work / "other"), (directory,)):
            done = world.run(*namespace.enter, world.iosig.binary, "gc", *words)
            assert done.returncode == {"other": 1, directory.name: 0}[Path(words[-1]).name]
            assert directory.exists() and data.exists()
        for path, name in ((directory, directory.name), (world.work / "scratch", data.name)):
            assert gc(world, *namespace.enter, words=("--unknown", path))[name][0] == "removed"
        assert not list(world.user_directory.iterdir()) and not world.journal()
        assert not os.path.lexists(world.work / "scratch")
    assert gc(world, words=("--unknown",)) == {}


def test_named_data_that_an_unseen_process_has_open_stay(world: World, hinted: Path) -> None:
    with Namespace() as namespace, job(world, hinted) as directory, (directory / "data").open("ab"):
        what, why = gc(world, *namespace.enter, words=("--unknown", directory))[directory.name]
        assert what == "kept" and "cannot be seen" in why and (directory / "data").exists()


def test_finalize_drops_no_temporary_data_that_an_unseen_process_writes(world: World) -> None:
    path, data = world.prepared("out", b"data", "temp random")
    with Namespace() as namespace:
        with path.open("ab") as file:
            done = world.run(*namespace.enter, world.iosig.binary, "finalize", path)
            assert done.returncode == 1 and b"opened its data" in done.stderr
            file.write(b"more")
        assert path.read_bytes() == b"datamore"
        assert world.run(*namespace.enter, world.iosig.binary, "finalize", path).returncode == 0
    assert not os.path.lexists(path) and not data.exists()


def edit_entry(entry: Path, **fields: object) -> None:
    """Rewrites fields of the journal entry (None: removes them), with a checksum that fits."""
    members = json.loads(entry.read_text())
    del members["checksum"]
    members |= fields
    members = {key: value for key, value in members.items() if value is not None}
    entry.write_text(with_checksum(json.dumps(members, separators=(",", ":"))[:-1]))


def without_new_fields(world: World) -> None:
    for entry in world.journal():
        edit_entry(entry, pid_namespace=None, start_ticks=None, session_start_ticks=None, has_machines_host_name=None)


def test_entries_of_an_early_version_are_unknown_to_gc_and_still_settle(world: World, hinted: Path) -> None:
    with job(world, hinted):
        pass
    world.prepared("kept", b"bytes")
    world.iosig("prepare", world.work / "never", "random")
    world.run(hinted, "redirect", "unused", "0", "random")
    without_new_fields(world)
    found = gc(world)
    assert whats(found) == ["kept", "kept"] and all("cannot be told" in why for _, why in found.values())
    shutil.rmtree(next(world.user_directory.glob("*.job")) / "data", ignore_errors=True)
    (next(world.user_directory.glob("*.job")) / "data").unlink()
    world.iosig("finalize", "--all")
    assert (world.work / "kept").read_bytes() == b"bytes" and world.is_settled()


def next_pid(wanted: int) -> None:
    Path("/proc/sys/kernel/ns_last_pid").write_text(str(wanted - 1))


def process_with_pid(wanted: int, *command: str) -> subprocess.Popen[bytes]:
    """Starts the command with a PID that was used before, in a later clock tick; others may be quicker."""
    time.sleep(3 / os.sysconf("SC_CLK_TCK"))
    for _ in range(50):
        next_pid(wanted)
        process = subprocess.Popen(command, start_new_session=True)
        if process.pid == wanted:
            return process
        process.kill()
        process.wait()
    pytest.skip(f"PID {wanted} could not be had again")


def test_a_session_number_that_was_given_away_again_is_another_job(world: World, hinted: Path) -> None:
    with job(world, hinted) as directory:
        session = json.loads(world.journal()[0].read_text())["session"]
        assert gc(world)[directory.name][0] == "kept"
    other = process_with_pid(session, "sleep", "1000")
    try:
        assert os.getsid(other.pid) == session and whats(gc(world)) == ["removed", "removed"]
    finally:
        other.kill()
        other.wait()


def test_a_pid_that_was_given_away_again_is_another_process(world: World, hinted: Path) -> None:
    """`finalize` waits for a program between its entry and its data; not for one that got its PID."""
    maker = subprocess.Popen([hinted, "redirect", "out", "0", "random"], env=world.env, cwd=world.work,
                             stdout=subprocess.DEVNULL)  # fmt: skip
    maker.wait()
    other = process_with_pid(maker.pid, "sleep", "1000")
    try:
        # An entry made in the very second in which the other process began.
        edit_entry(world.journal()[0], created_boot_s=1 << 40)
        world.iosig("finalize", "--all")
        assert world.is_settled() and not os.path.lexists(world.work / "out")
    finally:
        other.kill()
        other.wait()


def test_finalize_waits_for_a_program_that_it_cannot_see(world: World, hinted: Path) -> None:
    script = '"$0" redirect "$1/out" 0 random && read -r x'
    command = ["bash", "-c", f"exec 3<&0; {script}", hinted, world.work]
    program = subprocess.Popen(command, env=world.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert program.stdout is not None and program.stdout.readline().startswith(b"1 ")
    with Namespace() as namespace:
        done = world.run(*namespace.enter, world.iosig.binary, "finalize", "--all")
        assert done.returncode == 1 and b"may be about to write it" in done.stderr
        assert os.path.lexists(world.work / "out") and len(world.journal()) == 1
    program.communicate(b"\n")
    world.iosig("finalize", "--all")
    assert world.is_settled()


def test_a_host_name_of_a_container_is_no_proof_that_this_machine_was_restarted(world: World) -> None:
    """Containers of one name on two machines that share a file system: the boot id differs, and the job may live."""
    boot_id = world.root / "boot_id"
    boot_id.write_text("01234567-89ab-cdef-0123-456789abcdef\n")
    script = 'mount --bind "$1" /proc/sys/kernel/random/boot_id && exec "$2" choose --make-folder temp'
    for unshare, what in (((), "removed"), (("--uts",), "kept")):
        command = ("unshare", "--mount", *unshare, "bash", "-c", script, "-", boot_id, world.iosig.binary)
        directory = Path(world.run(*command).stdout.decode().strip())
        assert directory.parent == world.user_directory
        assert gc(world)[directory.name][0] == what


# ---- reservations ---------------------------------------------------------------------------------------------------


def only_10_gb_free(world: World) -> None:
    text = world.storage.read_text()
    world.storage.write_text(text.replace('device = "fast"\n', 'device = "fast"\nfree = "10GB"\n', 1))


@contextlib.contextmanager
def program_with_6_gb(world: World, hinted: Path, *enter: str) -> Iterator[Any]:
    """A program that was reserved 6 GB and lives."""
    process = subprocess.Popen(
        [*enter, hinted, "open", world.work / "out", NEW, "random totalsize(6GB)"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=world.env,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    assert process.stdout.readline() == b"0 77\n"
    try:
        yield process
    finally:
        process.stdin.close()
        process.wait()


def room_is_free(world: World, *enter: str) -> bool:
    done = world.run(*enter, world.iosig.binary, "choose", "--json", "random totalsize(8GB)")
    return json.loads(done.stdout)["chosen"] == str(world.fast)


def test_room_of_a_live_program_in_another_namespace_stays_reserved(world: World, hinted: Path) -> None:
    only_10_gb_free(world)
    with Namespace() as one, Namespace() as two:
        for maker in ((), one.enter):
            with program_with_6_gb(world, hinted, *maker):
                for judge in ((), one.enter, two.enter):
                    assert not room_is_free(world, *judge)
            assert room_is_free(world, *maker) and not room_is_free(world, *two.enter)
            world.iosig("finalize", "--all")
            assert room_is_free(world, *two.enter)
            (world.work / "out").unlink()


def test_reservations_of_an_early_version_are_kept_until_they_are_settled(world: World, hinted: Path) -> None:
    """It wrote the seconds since the start of the machine, and no namespace."""
    only_10_gb_free(world)
    with program_with_6_gb(world, hinted) as program:
        table = world.user_directory / ".promises"
        record = bytearray(table.read_bytes()[:64])
        record[32:40] = program.pid.to_bytes(8, "little")
        record[40:48] = (1 << 30).to_bytes(8, "little")
        checksum = 0xCBF29CE484222325  # FNV-1a
        for byte in record[:56]:
            checksum = (checksum ^ byte) * 0x100000001B3 % 2**64
        record[56:64] = checksum.to_bytes(8, "little")
        table.write_bytes(bytes(record))
        assert not room_is_free(world)
    assert not room_is_free(world)
    world.iosig("finalize", "--all")
    assert room_is_free(world)


def test_room_that_another_home_prepared_stays_reserved(world: World) -> None:
    """A container has a home, and so a journal, of its own."""
    only_10_gb_free(world)
    elsewhere = world.env | {"IOSIG_STATE": str(world.root / "elsewhere")}
    world.iosig("prepare", world.work / "a", "random", "totalsize(6GB)", env=elsewhere)
    assert not room_is_free(world)
    world.iosig("finalize", world.work / "a", env=elsewhere)
    assert room_is_free(world)


# ---- containers -----------------------------------------------------------------------------------------------------

WRITE = """
import os, sys
fd = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR, 0o644)
print(flush=True)
for line in sys.stdin:
    os.pwrite(fd, line.strip().encode() * 4096, 0)
    print(flush=True)
"""


def test_writers_of_one_container_in_two_namespaces_write_in_one_order(world: World) -> None:
    container = world.work / "file.dat"
    world.iosig("container", "create", container)
    with Namespace() as one, Namespace() as two:
        writers = [
            subprocess.Popen(
                [*enter, world.iosig.binary, "run", "--container", container, "--", "python3", "-c", WRITE, container],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=world.env,
            )
            for enter in ((), one.enter, two.enter)
        ]  # fmt: skip
        for writer in writers:
            assert writer.stdout is not None and writer.stdout.readline() == b"\n"
        for turn in range(60):
            writer = writers[turn * 7 % 3]
            assert writer.stdin is not None and writer.stdout is not None
            letter = b"%c" % (65 + turn % 26)
            writer.stdin.write(letter + b"\n")
            writer.stdin.flush()
            assert writer.stdout.readline() == b"\n"
            if turn % 10 == 9:
                read = world.run(world.iosig.binary, "run", "--container", container, "--", "cat", container)
                assert read.stdout == letter * 4096
        writers[1].send_signal(signal.SIGKILL)
        two.holder.kill()  # and all in it
        for writer in writers:
            writer.communicate()
    assert world.iosig.json("container", "check", container)["sound"]
    assert len(list(container.glob("order.*"))) <= 1
