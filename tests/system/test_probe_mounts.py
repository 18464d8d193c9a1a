"""What the probe makes of real mounts that are no storage, or that only stand before some."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import BUILD, Iosig
from redirecting import needs_mounts

# $1 is a directory on a disk, $iosig the command, $faulty the FUSE file system; `$directory/mem` is a tmpfs.
PRELUDE = """
cd "$1"; directory=$1
mkdir -p mem && mount -t tmpfs -o size=500m none mem
fuse() {  # SOURCE MOUNT: shows the one at the other, and says so
  touch none
  "$faulty" "$directory/$1" "$directory/none" "$directory/$2" -o "fsname=${3-$directory/$1}" & served="$served $2"
  until grep -q " $directory/$2 " /proc/self/mountinfo; do kill -0 $! || exit 77; sleep 0.01; done
}
finish() { for each in $served; do umount -l "$directory/$each"; done; wait; }
trap finish EXIT
"""

pytestmark = [
    needs_mounts,
    pytest.mark.skipif(
        not (BUILD / "bin" / "faulty_fs").exists() or not os.access("/dev/fuse", os.W_OK),
        reason="needs libfuse3-dev when building, and /dev/fuse",
    ),
]


def run(iosig: Iosig, directory: Path, script: str) -> subprocess.CompletedProcess[str]:
    env = iosig.env | {"iosig": str(iosig.binary), "faulty": str(BUILD / "bin" / "faulty_fs"), "TMPDIR": str(directory)}
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-c", PRELUDE + script, "-", str(directory)],
        env=env, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    if done.returncode == 77 or "failed to set up loop device" in done.stderr:
        pytest.skip(f"cannot mount that here: {done.stderr}")
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done


def offered(done: subprocess.CompletedProcess[str], directory: Path) -> dict[str, Any]:
    """The mount points below `folder` by their names there, each with the kind of its device."""
    document = json.loads(done.stdout)
    kinds = {device["name"]: device["kind"] for device in document["devices"]}
    return {
        mount["path"].removeprefix(f"{directory}/"): mount | {"kind": kinds[mount["device"]]}
        for mount in document["mount_points"]
        if mount["path"].startswith(f"{directory}/")
    }


@pytest.fixture
def directory(iosig: Iosig, tmp_path: Path) -> Path:
    made = tmp_path / "mounts"
    made.mkdir()
    return made


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """One that other users can reach, as they cannot reach tmp_path."""
    made = Path(tempfile.mkdtemp(prefix="iosig-test-", dir="/var/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


INTERFACES = ("cgroup2 proc sysfs debugfs tracefs securityfs pstore bpf mqueue hugetlbfs devpts devtmpfs binfmt_misc "
              "fusectl configfs efivarfs")  # fmt: skip


def test_no_interface_of_the_kernel_and_no_mount_of_iosig_is_offered(iosig: Iosig, directory: Path) -> None:
    done = run(iosig, directory, f"""
        for type in {INTERFACES}; do mkdir $type; mount -t $type none $type 2>/dev/null || rmdir $type; done
        mkdir own source cgroups
        mount --rbind /sys/fs/cgroup cgroups
        if [ -e "${{iosig%/bin/iosig}}/libexec/iosig/iosig-fuse" ]; then
          $iosig mount source own >/dev/null && served="$served own"
          $iosig storage probe --quick --dry-run --mount "$directory/own" && exit 5
        fi
        [ -d cgroup2 ] && $iosig storage probe --quick --dry-run --mount "$directory/cgroup2" && exit 6
        $iosig storage list --json
    """)  # fmt: skip
    assert offered(done, directory).keys() <= {"mem", "home"}, done.stdout
    assert "mem" in offered(done, directory)
    if "own" in done.stderr:
        assert f"it is a mount of iosig itself, which shows '{directory}/source'" in done.stderr
    if "cgroup2" in done.stderr:
        assert "it is an interface of the kernel (cgroup2), no storage" in done.stderr


def test_a_mount_has_the_persistence_of_what_lies_beneath(iosig: Iosig, directory: Path) -> None:
    done = run(iosig, directory, """
        mkdir disk mem/{a,up,work} low onmem ondisk untold ov ov2 up2 work2 loop
        fuse mem/a onmem; fuse disk ondisk; fuse disk untold bucket
        mount -t overlay -o "lowerdir=low,upperdir=$directory/mem/up,workdir=$directory/mem/work" none ov
        mount -t overlay -o "lowerdir=low,upperdir=$directory/up2,workdir=$directory/work2" none ov2
        truncate -s 100M onmem/image && mkfs.ext4 -q onmem/image && mount -o loop onmem/image loop
        served="loop $served"
        $iosig storage list --json
    """)  # fmt: skip
    found = offered(done, directory)
    assert {name: mount["persistent"] for name, mount in found.items()} == {
        "mem": False, "onmem": False, "ondisk": True, "untold": False, "ov": False, "ov2": True, "loop": False,
    } | {name: True for name in found if name == "home"}  # fmt: skip
    assert {found[name]["kind"] for name in ("mem", "onmem", "ov", "loop")} == {"ram"}


def test_what_cannot_be_told_is_said_and_the_users_word_counts(iosig: Iosig, directory: Path) -> None:
    done = run(iosig, directory, """
        mkdir disk untold; fuse disk untold bucket
        probe() { $iosig storage probe --quick --force --mount "$directory/untold" --output "$directory/s.toml" "$@"; }
        probe >/dev/null
        grep -q 'persistent = false' s.toml || exit 5
        $iosig choose persist --storage s.toml && exit 6
        sed -i 's/^persistent = false/persistent = true/' s.toml
        probe --json
    """)  # fmt: skip
    assert f"{directory}/untold is fuse" in done.stderr
    assert "its data do not count as persistent unless you write persistent = true" in done.stderr
    document = json.loads(done.stdout[done.stdout.index("{") :])
    (mount,) = document["mount_points"]
    assert mount["persistent"] is True and mount["origins"]["persistent"] == "config"


def test_another_users_fuse_mount_is_no_destination(iosig: Iosig, open_directory: Path) -> None:
    if shutil.which("setpriv") is None or shutil.which("fusermount3") is None:
        pytest.skip("needs setpriv and fusermount3")
    done = run(iosig, open_directory, """
        mknod device c 10 229 && chmod 666 device && mount --bind device /dev/fuse
        echo user_allow_other > conf && mount --bind conf /etc/fuse.conf
        mkdir his behind && chown 65534:65534 his behind && touch none
        setpriv --reuid 65534 --regid 65534 --clear-groups \
          "$faulty" "$directory/behind" "$directory/none" "$directory/his" -o allow_other &
        until grep -q " $directory/his " /proc/self/mountinfo; do kill -0 $! || exit 77; sleep 0.01; done
        served="$served his"
        touch his/root-can-write || exit 77
        $iosig storage probe --quick --dry-run --mount "$directory/his" && exit 5
        $iosig storage list --json
    """)  # fmt: skip
    assert "his" not in offered(done, open_directory)
    assert "was mounted by user 65534, whose program would see and serve your files" in done.stderr
