"""Quotas are room: real ones on ext4 where the kernel has them, and answers that strace puts in the kernel's mouth."""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Iosig

KB, MB = 1 << 10, 1 << 20
USER, GROUP, PROJECT = 0, 1, 2
BLOCK_LIMITS, INODE_LIMITS = 1, 4
NEEDED_INODES = 2


def dqblk(hard_bytes: int = 0, used_bytes: int = 0, hard_inodes: int = 0, used_inodes: int = 0) -> bytes:
    """struct if_dqblk of linux/quota.h."""
    limits = (BLOCK_LIMITS if hard_bytes else 0) | (INODE_LIMITS if hard_inodes else 0)
    return struct.pack("=8QI4x", hard_bytes // KB, 0, used_bytes, hard_inodes, 0, used_inodes, 0, 0, limits | 0xA)


def describe(file: Path, mount: Path) -> Path:
    file.write_text(
        f'schema = "iosig.storage/2"\n[[mount_point]]\npath = "{mount}"\ndevice = "d"\nfilesystem = "ext4"\n'
        '[[device]]\nname = "d"\nkind = "ssd"\n'
    )
    return file


# ---- as if the kernel had them ---------------------------------------------------------------------------------------


def answered(iosig: Iosig, quota: bytes, *words: object, check: int) -> str:
    """What iosig says if the kernel reports `quota` for the user and the group."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    inject = f"inject=quotactl_fd:retval=0:poke_exit=@arg4={quota.hex()}"
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", inject, str(iosig.binary), *map(str, words)]
    done = subprocess.run(command, env=iosig.env, capture_output=True, text=True, timeout=120)
    if done.returncode == 1 and "strace:" in done.stderr:
        pytest.skip(f"this strace cannot change what calls return: {done.stderr}")
    assert done.returncode == check, (done.stdout, done.stderr)
    return done.stdout + done.stderr


def test_a_quota_of_one_megabyte_is_all_the_room_on_a_large_disk(iosig: Iosig, tmp_path: Path) -> None:
    storage = describe(tmp_path / "storage.toml", tmp_path)
    quota = dqblk(hard_bytes=MB)
    said = answered(iosig, quota, "choose", "temp totalsize(2MB)", "--storage", storage, check=1)
    assert "no room: totalsize 2MB, free 1004 KB (what a quota leaves)" in said  # 1 MB less a fiftieth
    said = answered(iosig, quota, "choose", "temp totalsize(900KB)", "--storage", storage, check=0)
    assert f"chosen: {tmp_path}" in said


def test_a_quota_without_inodes_leaves_no_room(iosig: Iosig, tmp_path: Path) -> None:
    storage = describe(tmp_path / "storage.toml", tmp_path)
    full = dqblk(hard_inodes=100, used_inodes=100 - NEEDED_INODES + 1)
    assert "no room" in answered(iosig, full, "choose", "temp totalsize(4KB)", "--storage", storage, check=1)
    enough = dqblk(hard_inodes=100, used_inodes=100 - NEEDED_INODES)
    answered(iosig, enough, "choose", "temp totalsize(4KB)", "--storage", storage, check=0)


def test_a_probe_stays_within_a_quota(iosig: Iosig, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    probe = ("storage", "probe", "--quick", "--dry-run", "--mount", scratch)
    said = answered(iosig, dqblk(hard_bytes=MB), *probe, check=1)
    assert "has only 1 MB free" in said and list(scratch.iterdir()) == []
    answered(iosig, dqblk(hard_bytes=64 * MB), *probe, check=0)


# ---- real ones -------------------------------------------------------------------------------------------------------


def set_quota(mount: Path, kind: int, number: int, quota: bytes) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(mount, os.O_PATH)
    set_command = (0x800008 << 8) | kind  # Q_SETQUOTA
    if libc.syscall(443, descriptor, set_command, number, quota) != 0:  # quotactl_fd
        pytest.skip(f"cannot set a quota: {os.strerror(ctypes.get_errno())}")
    os.close(descriptor)


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Path]:
    """An ext4 file system of 256 MB with quotas of users, groups and projects."""
    image, mount = tmp_path / "image", tmp_path / "limited"
    mount.mkdir()
    image.touch()
    os.truncate(image, 256 * MB)
    make = ["mkfs.ext4", "-q", "-O", "quota,project", "-E", "quotatype=usrquota:grpquota:prjquota", image]
    if shutil.which("mkfs.ext4") is None or subprocess.run(make, capture_output=True).returncode != 0:
        pytest.skip("cannot make an ext4 file system with quotas")
    done = subprocess.run(["mount", "-o", "loop,usrquota,grpquota,prjquota", image, mount], capture_output=True)
    if done.returncode != 0:
        pytest.skip("this kernel (CONFIG_QFMT_V2), or this user, cannot mount ext4 with quotas")
    yield mount
    subprocess.run(["umount", "-l", mount], check=True)


@pytest.mark.parametrize(("kind", "number"), [(USER, os.geteuid()), (GROUP, os.getegid())])
def test_the_quotas_of_user_and_group_limit_the_room(
    iosig: Iosig, limited: Path, tmp_path: Path, kind: int, number: int
) -> None:
    storage = describe(tmp_path / "storage.toml", limited)
    choose = ("choose", "temp totalsize(2MB)", "--storage", storage)
    assert f"chosen: {limited}" in iosig(*choose).stdout
    used = 2 * MB  # more than the directories that mkfs made
    (limited / "used").write_bytes(b"x" * used)
    os.sync()
    set_quota(limited, kind, number, dqblk(hard_bytes=used + MB))
    assert "no room: totalsize 2MB" in iosig(*choose, check=1).stdout
    set_quota(limited, kind, number, dqblk(hard_bytes=used + 64 * MB))
    assert f"chosen: {limited}" in iosig(*choose).stdout
    set_quota(limited, kind, number, dqblk(hard_inodes=1))
    assert "no room" in iosig(*choose, check=1).stdout


def test_the_quota_of_a_project_limits_the_room_in_its_directory(iosig: Iosig, limited: Path, tmp_path: Path) -> None:
    project = limited / "project"
    project.mkdir()
    if subprocess.run(["chattr", "-p", "77", "+P", project], capture_output=True).returncode != 0:
        pytest.skip("cannot give a directory a project")
    set_quota(limited, PROJECT, 77, dqblk(hard_bytes=MB))
    inside, outside = describe(tmp_path / "in.toml", project), describe(tmp_path / "out.toml", limited)
    assert "no room: totalsize 2MB" in iosig("choose", "temp totalsize(2MB)", "--storage", inside, check=1).stdout
    assert f"chosen: {limited}" in iosig("choose", "temp totalsize(2MB)", "--storage", outside).stdout
