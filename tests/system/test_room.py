"""Files on tmpfs are memory of the job: with a real tmpfs, and real control groups with limits."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import Iosig

MB = 1 << 20
GROUPS = Path("/sys/fs/cgroup")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 1 GB and a storage description beside it that names it alone."""
    mounted = tmp_path / "memory"
    mounted.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g", "none", mounted], capture_output=True).returncode:
        pytest.skip("may not mount a tmpfs")
    (tmp_path / "storage.toml").write_text(
        'schema = "iosig.storage/1"\n'
        f'[[mount_point]]\npath = "{mounted}"\ndevice = "ram"\nfilesystem = "tmpfs"\n'
        '[[device]]\nname = "ram"\nkind = "ram"\n'
    )
    yield mounted
    subprocess.run(["umount", "-l", mounted], check=True)


@pytest.fixture
def group() -> Iterator[Path]:
    """A memory control group of its own."""
    made = (GROUPS / "memory" if (GROUPS / "memory").is_dir() else GROUPS) / f"iosig-test-{os.getpid()}"
    try:
        made.mkdir()
    except OSError as refusal:
        pytest.skip(f"may not make a control group: {refusal.strerror}")
    try:
        if not any((made / limit).exists() for limit in ("memory.max", "memory.limit_in_bytes")):
            pytest.skip("control groups here have no memory controller")
        yield made
    finally:
        made.rmdir()


def limit(group: Path, limited_bytes: int) -> None:
    version_2 = group / "memory.max"
    (version_2 if version_2.exists() else group / "memory.limit_in_bytes").write_text(str(limited_bytes))


def joins(group: Path) -> Callable[[], None]:
    """What a child process does to run in `group`."""
    return lambda: (group / "cgroup.procs").write_text("0") and None


def choose(iosig: Iosig, tmp_path: Path, totalsize: str, group: Path | None = None) -> str:
    words = ("choose", "temp", f"totalsize({totalsize})", "--storage", tmp_path / "storage.toml")
    return iosig(*words, check=None, preexec_fn=group and joins(group)).stdout


def test_a_limit_on_the_jobs_memory_limits_the_room_on_tmpfs(
    iosig: Iosig, memory: Path, group: Path, tmp_path: Path
) -> None:
    assert f"chosen: {memory}" in choose(iosig, tmp_path, "200MB")
    limit(group, 128 * MB)
    assert f"chosen: {memory}" in choose(iosig, tmp_path, "50MB", group)
    refused = choose(iosig, tmp_path, "120MB", group)
    assert "no room: totalsize 120MB, free 1" in refused
    assert "(at most what the job's memory leaves)" in refused
    limit(group, 1024 * MB)
    assert f"chosen: {memory}" in choose(iosig, tmp_path, "120MB", group)


def test_a_probe_of_tmpfs_stays_below_the_limit_and_is_not_killed(iosig: Iosig, memory: Path, group: Path) -> None:
    limit(group, 48 * MB)
    iosig("storage", "probe", "--quick", "--dry-run", "--mount", memory, preexec_fn=joins(group))


def test_not_all_that_is_free_is_for_data(iosig: Iosig, memory: Path, tmp_path: Path) -> None:
    assert f"chosen: {memory}" in choose(iosig, tmp_path, "1000MB")
    assert "no room: totalsize 1GB, free 1004 MB" in choose(iosig, tmp_path, "1GB")


@pytest.mark.parametrize(
    ("totalsize", "reserved", "lies_there"),
    [("totalsize(100MB)", "", True), ("totalsize(500MB)", "totalsize(600MB)", False), ("", "totalsize(100MB)", False)],
)
def test_data_of_a_container_go_only_where_they_have_room(
    iosig: Iosig, tmp_path: Path, memory: Path, totalsize: str, reserved: str, lies_there: bool
) -> None:
    """What is reserved for other streams is no room; without a totalsize 1 GB is needed."""
    env = {**iosig.env, "IOSIG_STORAGE": str(tmp_path / "storage.toml"), "IOSIG_STATE": str(tmp_path / "state")}
    if reserved:
        iosig("prepare", tmp_path / "other", f"temp {reserved}", env=env)
    rules = tmp_path / "rules.toml"
    rules.write_text(f'schema = "iosig.rules/1"\n[[rule]]\npath = "*.dat"\nsig = "temp container(1) {totalsize}"\n')
    iosig("run", "--rules", rules, "--", "sh", "-c", "echo hi > file.dat", env=env, cwd=tmp_path)
    data = [*memory.rglob("data.*"), *(tmp_path / "file.dat").rglob("data.*")]
    assert [path.is_relative_to(memory) for path in data] == [lies_there]


def test_memory_is_promised_once_however_many_file_systems_are_in_it(
    iosig: Iosig, tmp_path: Path, memory: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1t", "none", other], check=True)
    subprocess.run(["mount", "-o", "remount,size=1t", memory], check=True)
    try:
        with (tmp_path / "storage.toml").open("a") as description:
            description.write(f'[[mount_point]]\npath = "{other}"\ndevice = "ram"\nfilesystem = "tmpfs"\n')
        env = {**iosig.env, "IOSIG_STORAGE": str(tmp_path / "storage.toml"), "IOSIG_STATE": str(tmp_path / "state")}
        room = min(each["free_bytes"] for each in iosig.json("storage", "list", env=env)["mount_points"])
        signature = f"temp totalsize({room * 6 // 10 >> 20}MB)"
        iosig("prepare", tmp_path / "a", signature, env=env)
        done = iosig("prepare", tmp_path / "b", signature, env=env, check=1)
        assert "no room" in done.stderr and not (tmp_path / "b").is_symlink()
    finally:
        subprocess.run(["umount", "-l", other], check=True)
