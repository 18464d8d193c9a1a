"""Composite storage for real: btrfs over loop devices, GlusterFS, MooseFS; and the directories of jobs."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import Iosig
from redirecting import needs_mounts

# Whatever is mounted is gone with its namespace, and a loop device is detached with its last user: see `machine`.
PRELUDE = """
set -euo pipefail
cd "$1"
mkdir -p mnt
disk() {  # NAME: a loop device over a new file
  [ -e "$1" ] || truncate -s 160M "$1"
  losetup --partscan --find --show "$1"
}
made() { mkfs.btrfs -q -f "$@" >/dev/null 2>&1; }
"""


def shortcoming(tools: tuple[str, ...]) -> str:
    """Why this machine cannot run it, or ""."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return f"needs {', '.join(missing)}" if missing else ""


def loops_below(directory: Path) -> list[str]:
    found = []
    for file in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):  # somebody else's, gone in this moment
            if file.read_text().startswith(f"{directory}/"):
                found.append(f"/dev/{file.parts[3]}")
    return found


def documents(text: str) -> list[Any]:
    """The JSON documents that `text` consists of."""
    found, decoder = [], json.JSONDecoder()
    while text := text.strip():
        document, end = decoder.raw_decode(text)
        found.append(document)
        text = text[end:]
    return found


def write_partitions(file: Path, sectors: list[int]) -> None:
    """A disk of 320 MB with partitions of so many sectors one after the other (an MBR)."""
    begin, table = 2048, b""
    for count in sectors:
        table += struct.pack("<8BII", 0, 0, 0, 0, 0x83, 0, 0, 0, begin, count)
        begin += count
    with file.open("wb") as disk:
        disk.write(b"\0" * 446 + table.ljust(64, b"\0") + b"\x55\xaa")
        disk.truncate(320 << 20)


class Machine:
    """Runs scripts as root of a mount namespace of their own; `$iosig` is the command."""

    def __init__(self, iosig: Iosig, directory: Path) -> None:
        self.iosig, self.directory = iosig, directory

    def __call__(self, script: str, *unshared: str, **environment: str) -> str:
        done = subprocess.run(
            ["unshare", "--mount", *unshared, "bash", "-c", PRELUDE + script, "-", str(self.directory)],
            env=self.iosig.env | {"iosig": str(self.iosig.binary)} | environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        if "failed to set up loop device" in done.stderr:
            pytest.skip(f"needs loop devices: {done.stderr.strip()}")
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def described(self, script: str, **environment: str) -> dict[str, Any]:
        """The script's output, a description in JSON, without what is mounted elsewhere: devices by name."""
        (document,) = documents(self(script, **environment))
        mounts = {m["path"]: m for m in document["mount_points"] if m["path"].startswith(str(self.directory))}
        return {"mounts": mounts, "devices": {device["name"]: device for device in document["devices"]}}

    def carrier(self, script: str) -> dict[str, Any]:
        """The device below mnt/, with its description."""
        found = self.described(script + "\n$iosig storage list --json")
        device: dict[str, Any] = found["devices"][found["mounts"][f"{self.directory}/mnt"]["device"]]
        return device | {"all": found["devices"]}


@pytest.fixture
def machine(iosig: Iosig, tmp_path: Path) -> Iterator[Machine]:
    directory = tmp_path / "machine"
    directory.mkdir(mode=0o700)
    yield Machine(iosig, directory)
    for loop in loops_below(directory):
        subprocess.run(["losetup", "--detach", loop], check=False, capture_output=True)
    assert not loops_below(directory)


needs_btrfs = pytest.mark.skipif(
    bool(shortcoming(("mkfs.btrfs", "losetup"))), reason=shortcoming(("mkfs.btrfs", "losetup"))
)


@needs_mounts
@needs_btrfs
@pytest.mark.parametrize(
    ("data", "metadata", "disks", "scheme", "code"),
    [
        ("raid1", "raid1", 2, "raid1", (0, 0)),
        ("raid1", "raid1", 3, "mds", (2, 1)),  # two copies, on whichever devices
        ("raid10", "raid10", 4, "mds", (3, 1)),
        ("raid1c3", "raid1c3", 3, "raid1", (0, 0)),
        ("single", "raid1", 2, "stripe", (0, 0)),
        ("single", "dup", 1, None, None),
    ],
)
def test_btrfs_is_what_its_profiles_make_of_its_devices(
    machine: Machine, data: str, metadata: str, disks: int, scheme: str | None, code: tuple[int, int] | None
) -> None:
    found = machine.carrier(f"""
        for i in $(seq {disks}); do disks+=("$(disk disk$i)"); done
        made -d {data} -m {metadata} "${{disks[@]}}"
        mount "${{disks[0]}}" mnt""")
    redundancy = found["redundancy"]
    if scheme is None:
        assert redundancy is None and found["kind"] in ("hdd", "ssd") and found["name"].startswith("loop")
        return
    assert redundancy["scheme"] == scheme and (redundancy["data"], redundancy["parity"]) == code
    assert found["kind"] == "composite" and found["origins"]["redundancy"] == "inspected"
    assert re.fullmatch("btrfs-[0-9a-f]{8}", found["name"])
    assert len(redundancy["members"]) == disks == len(set(redundancy["members"]))
    assert all(found["all"][name]["path"] == f"/dev/{name}" for name in redundancy["members"])


@needs_mounts
@needs_btrfs
def test_partitions_are_their_disk_which_is_no_mirror_of_itself(machine: Machine) -> None:
    for name in ("a", "b"):
        write_partitions(machine.directory / name, [300_000, 300_000])
    # The tool reads the tables: this kernel may know no MBR.
    found = machine("""
        for name in a b; do partx --add "$(disk $name)" || true; done
        for name in a b; do [ ! -b "$(losetup -nO NAME -j $name)p2" ] || echo partitions; done""")
    if found.count("partitions") != 2:
        pytest.skip("needs partitions of loop devices")
    again = "a=$(losetup -nO NAME -j a); b=$(losetup -nO NAME -j b); made -d raid1 -m raid1 "
    apart = machine.carrier(again + "${a}p1 ${b}p1; mount ${a}p1 mnt")
    assert apart["redundancy"]["scheme"] == "raid1"
    assert [apart["all"][name]["path"] for name in apart["redundancy"]["members"]] == [
        f"/dev/{name}" for name in apart["redundancy"]["members"]
    ]
    assert all(re.fullmatch(r"loop\d+", name) for name in apart["redundancy"]["members"])
    alike = machine.carrier(again + "${a}p1 ${a}p2; mount ${a}p1 mnt")
    assert alike["redundancy"] is None and re.fullmatch(r"loop\d+p1", alike["name"])


@needs_mounts
@needs_btrfs
def test_members_reliability_by_hand_gives_the_composites_mttdl_and_survives_a_probe(machine: Machine) -> None:
    output = machine("""
        a=$(disk a); b=$(disk b)
        made -d raid1 -m raid1 $a $b; mount $a mnt
        mkdir "mnt/${a#/dev/}"; mount -t tmpfs t "mnt/${a#/dev/}"  # named like a member, but none
        probe() { $iosig storage probe --quick --force --mount "$PWD/mnt" --output storage.toml --json; }
        probe
        sed -i '/^name = "loop/a mttf = "1000d"\\nber = 1e-18\\nmttr = "1d"' storage.toml
        sed -i '/^name = "btrfs/a mttr = "1d"' storage.toml
        probe >/dev/null
        $iosig choose "persist MTTDL(100y)" --storage storage.toml --json
        $iosig storage show "$1/mnt" --storage storage.toml --json
        $iosig storage list --json
        """)
    probed, choice, shown, listed = documents(output)
    assert [device["kind"] for device in probed["devices"]].count("composite") == 1
    # Mirrors: (3 lambda + mu) / (2 lambda^2) with lambda = 1 / 1000 d, mu = 1 / d.
    mttdl_s = shown["mount_points"][0]["computed"]["mttdl_of_1GB_s"]
    assert mttdl_s == pytest.approx((3 / 1000 + 1) / (2 / 1000**2) * 86400, rel=0.01)
    assert choice["chosen"] == f"{machine.directory}/mnt"
    device = shown["mount_points"][0]["device"]
    assert [member["name"] for member in shown["mount_points"][0]["members"]] == device["redundancy"]["members"]
    assert device["origins"] | {"redundancy": "inspected", "mttr": "config"} == device["origins"]
    names = [each["name"] for each in listed["devices"]]
    assert len(names) == len(set(names))
    kinds = {each["name"]: each["kind"] for each in listed["devices"]}
    assert all(kinds[name] != "ram" for name in device["redundancy"]["members"])


def cannot_serve(*tools: str) -> str:
    if os.geteuid() == 0 and not os.access("/dev/fuse", os.W_OK):
        return "needs /dev/fuse"
    return shortcoming((*tools, "ip"))


# A network, process and mount namespace: the daemons touch nothing of the machine's and die with it.
ALONE = ("--net", "--pid", "--fork", "--mount-proc", "--kill-child")
GLUSTER = ("glusterd", "gluster", "mount.glusterfs")
MOOSEFS = ("mfsmaster", "mfschunkserver", "mfsmount", "mfsgetsclass")


@needs_mounts
@pytest.mark.skipif(bool(cannot_serve(*GLUSTER)), reason=cannot_serve(*GLUSTER))
def test_a_gluster_volume_is_described_with_its_replica_sets(machine: Machine) -> None:
    output = machine(
        """
        ip link set lo up; ip address add 10.99.99.1/24 dev lo
        for directory in /var/lib/glusterd /var/log/glusterfs /run; do mount -t tmpfs gluster $directory; done
        mkdir -p /run/gluster bricks; mount -t tmpfs bricks bricks
        glusterd -N >/dev/null 2>&1 &
        volume() { gluster --mode=script volume "$@"; }
        for try in {1..200}; do ! volume info >/dev/null 2>&1 || break; sleep 0.05; done
        volume create twins replica 3 $(for i in {1..6}; do echo 10.99.99.1:$PWD/bricks/$i; done) force >/dev/null
        volume start twins >/dev/null
        mount -t glusterfs 10.99.99.1:/twins mnt
        $iosig storage list --json""",
        *ALONE,
    )
    (document,) = documents(output)
    devices = {device["name"]: device for device in document["devices"]}
    mount = next(each for each in document["mount_points"] if each["path"] == f"{machine.directory}/mnt")
    assert mount["visibility"] == "global" and mount["device"] == "twins"
    assert devices["twins"]["redundancy"]["scheme"] == "stripe"
    sets = [devices[name]["redundancy"] for name in devices["twins"]["redundancy"]["members"]]
    assert [each["scheme"] for each in sets] == ["replica", "replica"]
    bricks = [name for each in sets for name in each["members"]]
    assert bricks == [f"10.99.99.1:{machine.directory}/bricks/{i}" for i in range(1, 7)]
    assert all(devices[brick]["kind"] == "network" for brick in bricks)


@needs_mounts
@pytest.mark.skipif(bool(cannot_serve(*MOOSEFS)), reason=cannot_serve(*MOOSEFS))
def test_moosefs_is_as_redundant_as_the_storage_class_of_its_root(machine: Machine) -> None:
    output = machine(
        """
        ip link set lo up; ip address add 10.99.99.1/24 dev lo
        mkdir -p disk; mount -t tmpfs disk disk; mkdir disk/{master,server,chunks}
        printf 'MFSM NEW' >disk/master/metadata.mfs
        echo '* / rw,alldirs,admin,maproot=0:0' >exports
        echo "$PWD/disk/chunks" >disks
        common="WORKING_USER = root\nWORKING_GROUP = root\nDATA_PATH = $PWD/disk"
        printf "$common/master\nEXPORTS_FILENAME = $PWD/exports\nTOPOLOGY_FILENAME = /dev/null\n" >master.cfg
        printf "$common/server\nHDD_CONF_FILENAME = $PWD/disks\nMASTER_HOST = 10.99.99.1\n" >server.cfg
        mfsmaster -c master.cfg start >/dev/null 2>&1
        mfschunkserver -c server.cfg start >/dev/null 2>&1
        mfsmount mnt -H 10.99.99.1 >/dev/null 2>&1
        chmod 755 mnt
        mfsscadmin "$PWD/mnt" create A,A,B archived >/dev/null
        mfssetsclass archived mnt >/dev/null
        for try in {1..100}; do [ "$(stat -f -c %a mnt)" = 0 ] || break; sleep 0.05; done
        $iosig storage list --json""",
        *ALONE,
    )
    (document,) = documents(output)
    mount = next(each for each in document["mount_points"] if each["path"] == f"{machine.directory}/mnt")
    device = next(each for each in document["devices"] if each["name"] == mount["device"])
    assert mount["filesystem"] == "fuse.mfs" and mount["visibility"] == "global"
    assert device["path"] == "10.99.99.1:9421" and device["kind"] == "composite"
    wanted = {"scheme": "replica", "data": 1, "parity": 2, "local_groups": 0, "members": []}
    assert device["redundancy"] == wanted


@needs_mounts
def test_the_directories_that_a_job_and_a_session_name_are_preferred(machine: Machine) -> None:
    directory = machine.directory
    run = Path("/run") / f"iosig-test-{os.getpid()}"
    run.mkdir(mode=0o700)
    try:
        found = machine.described(
            f"""
            mount -t tmpfs -o mode=700 t {run}
            for name in node burst; do mkdir $name; mount -t tmpfs -o mode=700 t $name; mkdir -m 700 $name/job.1; done
            $iosig storage list --json | sed 's|"{run}"|"{directory}/run"|g'""",
            SLURM_TMPDIR=f"{directory}/node/job.1",
            DW_JOB_STRIPED=f"{directory}/burst/job.1",
            XDG_RUNTIME_DIR=str(run),
            BBPATH="not/absolute",
        )["mounts"]
    finally:
        run.rmdir()
    visible = {path.removeprefix(f"{directory}/"): mount["visibility"] for path, mount in found.items()}
    visible.pop(str(directory), None)
    assert visible | {"node/job.1": "local", "burst/job.1": "global", "run": "local"} == visible
    assert "node" not in visible and "burst" not in visible
