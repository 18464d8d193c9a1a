"""The lab: storage of unlike speed that one script makes and removes, on real FUSE, loop devices and mounts."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import BUILD, ROOT, Iosig

MIB = 1 << 20
TOOLS = ("losetup", "mkfs.ext4", "mkfs.btrfs", "sshfs", "flock")


def shortcoming() -> str:
    """Why this machine can have no lab, or ""."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"needs {', '.join(missing)}"
    if not (BUILD / "bin" / "slowdisk").exists():
        return "needs libfuse3-dev when building"
    if not os.access("/dev/fuse", os.W_OK):
        return "needs /dev/fuse"
    free = subprocess.run(["losetup", "--find"], capture_output=True, text=True)
    if free.returncode != 0 or not Path(free.stdout.strip()).is_block_device():
        return "needs loop devices"
    mounts = subprocess.run(["unshare", "-m", "mount", "-t", "btrfs", "/dev/null", "/"], capture_output=True, text=True)
    if "unknown filesystem" in mounts.stderr or "permitted" in mounts.stderr or "denied" in mounts.stderr:
        return f"needs mounts of btrfs: {mounts.stderr.strip()}"
    return ""


pytestmark = pytest.mark.skipif(bool(shortcoming()), reason=shortcoming())


def is_below(path: str, directory: Path) -> bool:
    return path.startswith(f"{directory}/")


class Lab:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.env = os.environ | {"IOSIG_LAB": str(directory), "IOSIG_BUILD": str(BUILD)}
        self.command = [str(ROOT / "lab" / "lab")]

    def __call__(self, *words: str, check: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*self.command, *words], env=self.env, cwd="/", capture_output=True, text=True, timeout=60
        )
        assert done.returncode == check, f"exit {done.returncode}, wanted {check}\n{done.stdout}\n{done.stderr}"
        return done

    @property
    def lock(self) -> Path:
        return Path("/run/iosig-lab") / str(self.directory)[1:].replace("/", "%")

    def up(self, only: str) -> subprocess.CompletedProcess[str]:
        return self("up", "--size", "128", "--only", only)

    def status(self, check: int = 0) -> dict[str, Any]:
        return json.loads(self("status", "--json", check=check).stdout)

    def member(self, name: str, check: int = 0) -> dict[str, Any]:
        return next(member for member in self.status(check)["members"] if member["name"] == name)

    def mounts(self) -> list[str]:
        """Identity and path of each mount below the run directory, by the kernel's word."""
        lines = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        return [f"{words[0]} {words[4]}" for words in lines if is_below(f"{words[4]}/", self.directory)]

    def loops(self) -> list[str]:
        found = []
        for file in Path("/sys/block").glob("loop*/loop/backing_file"):
            try:
                if is_below(file.read_text(), self.directory):
                    found.append(file.parts[3])
            except OSError:  # somebody else's, gone in this moment
                continue
        return found

    def processes(self) -> list[int]:
        """Those that serve files of the run directory."""
        found = []
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = file.read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0].endswith((b"slowdisk", b"sshfs", b"slownet")) and any(
                word.startswith(bytes(self.directory)) for word in words
            ):
                found.append(int(file.parts[2]))
        return found

    def leaves_nothing(self) -> bool:
        return not (self.mounts() or self.loops() or self.processes())


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path / "lab")
    yield made
    subprocess.run(["umount", "-q", made.directory / "ssd1"], check=False)  # of a test that mounted something there
    subprocess.run([*made.command, "down"], env=made.env, check=False, capture_output=True, timeout=60)
    assert made.leaves_nothing(), (made.mounts(), made.loops(), made.processes())


def test_up_makes_unlike_storage_once_and_down_removes_all_of_it(lab: Lab, iosig: Iosig) -> None:
    assert lab.status(check=1)["members"] == []
    probe = lab.up("ram,raid1,net,hdd1,ssd1").stdout
    status, mounts = lab.status(), lab.mounts()
    assert lab.up("ram,raid1,net,hdd1,ssd1").stdout == probe
    assert lab.status() == status and lab.mounts() == mounts

    assert status["schema"] == "iosig.lab/1" and status["up"] is True
    members = {member["name"]: member for member in status["members"]}
    assert probe.split()[:3] == ["iosig", "storage", "probe"]
    assert probe.split()[4::2] == [member["path"] for member in members.values()]
    assert members["hdd1"]["parameters"]["seek_us"] > members["ssd1"]["parameters"]["seek_us"] == 0
    assert len(members["raid1"]["devices"]) == 2 and len(lab.loops()) == 4

    listed = iosig.json("storage", "list")
    device_kinds = {device["name"]: device["kind"] for device in listed["devices"]}
    found = {Path(row["path"]).name: row for row in listed["mount_points"] if is_below(row["path"], lab.directory)}
    assert found.keys() == members.keys()
    kinds = {name: device_kinds[row["device"]] for name, row in found.items()}
    assert kinds.pop("raid1") in ("composite", "ssd")
    assert kinds == {"ram": "ram", "net": "network", "hdd1": "hdd", "ssd1": "ssd"}
    assert [name for name, row in found.items() if row["visibility"] == "global"] == ["net"]
    assert [name for name, row in found.items() if not row["persistent"]] == ["ram"]

    for name in members:
        content = os.urandom(3 * MIB)
        (lab.directory / name / "file").write_bytes(content)
        assert (lab.directory / name / "file").read_bytes() == content
    lab("down")
    assert lab.leaves_nothing() and not lab.directory.exists()
    lab("down")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_up_cut_short_at_any_moment_is_completed_by_up_and_removed_by_down(lab: Lab, number: signal.Signals) -> None:
    for step in range(3):
        process = subprocess.Popen(
            [*lab.command, "up", "--size", "128", "--only", "ssd1,net"], env=lab.env, stderr=subprocess.PIPE, text=True,
            stdout=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        assert process.stderr is not None
        process.stderr.readline()  # it has begun
        time.sleep(0.1 * step)
        if number == signal.SIGINT:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)  # as a terminal does
        else:
            process.kill()
        said = process.stderr.read()
        assert process.wait() in (0, -number, 130), said
        assert process.returncode != 130 or "interrupted" in said
        if step == 2:
            lab.up("ssd1,net")
            assert lab.status()["up"] is True
            (lab.directory / "ssd1" / "file").write_text("works")
        lab("down")
        assert lab.leaves_nothing() and not lab.directory.exists(), step


def test_a_member_that_is_asked_for_twice_is_made_and_told_once(lab: Lab) -> None:
    assert lab.up("ram,ram").stdout == f"iosig storage probe --mount {lab.directory}/ram\n"
    assert [member["name"] for member in lab.status()["members"]] == ["ram"]


def test_without_root_nothing_is_tried(lab: Lab) -> None:
    if subprocess.run(["unshare", "--user", "true"], capture_output=True).returncode != 0:
        pytest.skip("needs user namespaces")
    lab.command = ["unshare", "--user", *lab.command]
    for verb in ("up", "status", "down"):
        assert "as root" in lab(verb, check=4).stderr
    assert not lab.directory.exists()


def test_a_disk_whose_server_is_killed_is_told_and_made_anew(lab: Lab) -> None:
    lab.up("ram,ssd1")
    (lab.directory / "ram" / "file").write_text("stays")
    for process in lab.processes():
        os.kill(process, 9)
    assert lab.member("ssd1", check=1)["up"] is False and lab.member("ram", check=1)["up"] is True
    lab.up("ssd1")
    assert lab.status()["up"] is True
    (lab.directory / "ssd1" / "file").write_text("works")
    assert (lab.directory / "ram" / "file").read_text() == "stays"
    for process in lab.processes():
        os.kill(process, 9)
    lab("down")
    assert lab.leaves_nothing()


def test_what_the_lab_did_not_make_is_left_alone(lab: Lab, tmp_path: Path) -> None:
    lab.directory.mkdir()
    (lab.directory / "mine").write_text("keep")
    assert "was not made by the lab" in lab("up", check=4).stderr
    assert "was not made by the lab" in lab("down", check=4).stderr
    (lab.directory / "mine").unlink()
    lab.directory.rmdir()

    (tmp_path / "elsewhere").mkdir()
    lab.directory.symlink_to(tmp_path / "elsewhere")
    assert "is a link" in lab("up", check=4).stderr
    lab.directory.unlink()

    staging = Path(f"{lab.directory}.staging")
    staging.mkdir()
    (staging / "owner").write_text("me")
    assert "did not make it" in lab("down", check=4).stderr
    assert (staging / "owner").read_text() == "me"
    shutil.rmtree(staging)

    lab.up("ram,ssd1")
    (lab.directory / "mine").write_text("keep")
    subprocess.run(["umount", lab.directory / "ssd1"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "foreign", lab.directory / "ssd1"], check=True)
    (lab.directory / "ssd1" / "mine").write_text("keep")
    for verb in (["up", "--only", "ssd1"], ["down"]):
        assert "did not make" in lab(*verb, check=4).stderr
        assert (lab.directory / "ssd1" / "mine").read_text() == "keep"
    subprocess.run(["umount", lab.directory / "ssd1"], check=True)
    assert str(lab.directory / "mine") in lab("down").stderr
    assert lab.leaves_nothing() and (lab.directory / "mine").read_text() == "keep"
    (lab.directory / "mine").unlink()
    lab("down")
    assert not lab.directory.exists()


def test_only_commands_on_the_same_directory_wait_and_the_message_names_what_they_wait_for(lab: Lab) -> None:
    lab.env["IOSIG_LAB_WAIT"] = "1"
    parent = os.open(lab.directory.parent, os.O_RDONLY)
    fcntl.flock(parent, fcntl.LOCK_EX)  # as anybody who may read it can
    lab.up("ram")
    os.close(parent)
    holding = ["bash", "-c", 'exec 9>>"$0" && flock 9 && echo && exec sleep 60', lab.lock]
    with subprocess.Popen(holding, stdout=subprocess.PIPE) as other:  # as the lab does
        try:
            assert other.stdout is not None
            other.stdout.readline()
            said = lab("down", check=4).stderr
            assert f"at work on {lab.directory} " in said and f"process {other.pid} (sleep 60)" in said
            assert lab.status()["up"] is True
            assert f"being changed by process {other.pid}" in lab("status").stderr
            sibling = Lab(lab.directory.parent / "sibling")
            sibling.up("ram")
            sibling("down")
            assert sibling.leaves_nothing()
        finally:
            other.kill()
    lab("down")
    assert not lab.lock.exists()


def test_a_server_that_does_not_answer_keeps_nobody_waiting(lab: Lab) -> None:
    lab.up("net")
    processes = lab.processes()
    assert len(processes) == 2
    inside = subprocess.Popen(
        ["sleep", "60"], cwd=lab.directory / "net"
    )  # holds the mount whatever becomes of its server
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    lab("down")
    assert lab.leaves_nothing() and not lab.directory.exists()
    inside.kill()
    inside.wait()


def test_a_copy_of_its_mounts_in_another_namespace_keeps_no_server_alive(lab: Lab) -> None:
    lab.up("ssd1")
    subprocess.run(["umount", lab.directory / "ssd1"], check=True)  # as if `up` had come no further than the disk
    other = subprocess.Popen(["unshare", "-m", "sh", "-c", "echo; exec sleep 60"], stdout=subprocess.PIPE)
    assert other.stdout is not None
    other.stdout.readline()  # it has its copy
    lab("down")
    assert lab.leaves_nothing()
    other.kill()
    other.wait()


def test_the_howto_chooses_on_it(lab: Lab, iosig: Iosig, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "howto" / "lab.md").read_text()
    (commands,) = [block for block in re.findall(r"^```sh\n(.*?)^```$", page, re.M | re.S) if "iosig choose" in block]
    commands = commands.replace("/mnt/iosig-lab", str(lab.directory)).replace("lab/lab ", f"{lab.command[0]} ")
    environment = lab.env | iosig.env | {"PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-ec", commands], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "nvram" in done.stdout


def test_a_copy_into_the_page_cache_takes_as_long_on_every_disk_with_the_same_kind_of_file_system(
    lab: Lab, iosig: Iosig
) -> None:
    lab.up("hdd1,ssd1")
    mounts = [word for name in ("hdd1", "ssd1") for word in ("--mount", str(lab.directory / name))]
    hdd, ssd = iosig.json("storage", "probe", "--quick", "--dry-run", *mounts)["devices"]
    for value in ("buffered_write_bytes_per_s", "buffered_write_latency_s", "buffered_small_write_latency_s"):
        assert hdd[value] == ssd[value]
    assert hdd["buffered_write_bytes_per_s"] > 0  # beside other programs a latency can be lost in the noise: 0
    # A flush seeks on the hard disk (8 ms in lab/lab); other programs make that no shorter. Random accesses to files
    # this small may stay on one track.
    assert hdd["operation_latency_s"] > 0.008


def test_a_member_in_use_stays_and_the_message_says_so(lab: Lab) -> None:
    lab.up("ram,ssd1")
    with (lab.directory / "ssd1" / "file").open("w"):
        assert "ssd1 is in use" in lab("down", check=4).stderr
        assert lab.member("ssd1", check=1)["up"] is True
    lab("down")
    assert lab.leaves_nothing()


def test_wrong_usage_and_too_little_memory_are_told_before_anything_is_made(lab: Lab) -> None:
    for words in (["up", "--only", "tape"], ["up", "--targets", "4"], ["up", "--size", "64"], ["up", "--only"],
                  ["up", "everything"], ["down", "now"], ["status", "--xml"], ["sideways"], []):  # fmt: skip
        assert lab(*words, check=2).stderr, words
    assert "4x2" in lab("up", "--targets", "4", check=2).stderr
    available_mib = int(next(re.finditer(r"MemAvailable: *(\d+)", Path("/proc/meminfo").read_text()))[1]) // 1024
    if (targets := available_mib // 512 + 1) < 100:
        assert "too much" in lab("up", "--targets", f"{targets}x0", check=4).stderr
    for only in ("", ",", "ram,,hdd", "ram hdd", "*"):
        assert "there are: ram nvram" in lab("up", "--only", only, check=2).stderr, only
    for words in (["--help"], ["up", "--help"], ["down", "--help"], ["status", "-h"]):
        assert "Example:" in lab(*words).stdout, words
    assert not lab.directory.exists()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Starts a slowdisk of so many bytes."""
    file = tmp_path / "disk"
    file.touch()

    def start(size: int, **parameters: int) -> Path:
        given = {"size": size, "read": 0, "write": 0, "latency_us": 50, "seek_us": 100, "channels": 4} | parameters
        words = [f"{key}={value}" for key, value in given.items()]
        subprocess.run([BUILD / "bin" / "slowdisk", file, *words], check=True)
        return file

    yield start
    subprocess.run(["umount", "-q", "-l", file], check=False)


def test_a_slow_disk_keeps_every_byte_of_many_writers(disk: Callable[..., Path]) -> None:
    size, writers, pieces = 8 * MIB, 8, 120
    file = disk(size)
    expected = bytearray(size)
    share = size // writers
    failures: list[str] = []

    def work(writer: int) -> None:
        """Writes and reads back pieces of any length at any place of the writer's own share."""
        dice = random.Random(writer)
        fd = os.open(file, os.O_RDWR)
        for _ in range(pieces):
            begin = writer * share + dice.randrange(share - 1)
            piece = dice.randbytes(min(dice.choice((1, 511, 4096, 70_000)), (writer + 1) * share - begin))
            if os.pwrite(fd, piece, begin) != len(piece):
                failures.append(f"short write at {begin}")
            expected[begin : begin + len(piece)] = piece
            os.fsync(fd)
            if os.pread(fd, len(piece), begin) != piece:
                failures.append(f"other bytes at {begin}")
        os.close(fd)

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert file.read_bytes() == expected


def test_a_slow_disk_has_a_fixed_size_and_forgets_what_is_discarded(disk: Callable[..., Path]) -> None:
    file = disk(MIB)
    fd = os.open(file, os.O_RDWR)
    assert os.fstat(fd).st_size == MIB
    assert os.pwrite(fd, b"x" * MIB, 0) == MIB
    with pytest.raises(OSError, match="No space"):
        os.pwrite(fd, b"xy", MIB - 1)
    assert os.pread(fd, 100, MIB - 10) == b"x" * 10 and os.pread(fd, 1, MIB) == b""
    subprocess.run(["fallocate", "--punch-hole", "-o", "4096", "-l", "8192", file], check=True)
    assert os.pread(fd, MIB, 0) == b"x" * 4096 + bytes(8192) + b"x" * (MIB - 12288)
    os.close(fd)
    assert subprocess.run(["fallocate", "-l", str(2 * MIB), file], check=False, capture_output=True).returncode != 0
    assert file.stat().st_size == MIB
    subprocess.run(["umount", file], check=True)
    assert file.stat().st_size == 0


def test_a_slow_disk_names_the_parameter_that_is_wrong(tmp_path: Path) -> None:
    for words, said in (("size=1", "read=NUMBER is missing"), ("size=big", "'size=big'"), ("speed=1", "'speed=1'"),
                        ("size=1 size=2", "'size=2'"), ("size", "'size'"), ("", "usage:")):  # fmt: skip
        command = [BUILD / "bin" / "slowdisk", *([tmp_path / "disk", *words.split()] if words else [])]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 2 and said in done.stderr, (words, done.stderr)
