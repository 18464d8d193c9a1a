"""`iosig mount`: programs that know nothing of containers read and write them, and get what a plain file gives them."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import mmap
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import BUILD, Iosig
from mounting import Mount, is_mounted

STRIDED_WRITER = """
import os, sys
path, rank, ranks, count, length = sys.argv[1], *map(int, sys.argv[2:])
fd = os.open(path, os.O_WRONLY)
for n in range(count):
    os.pwrite(fd, bytes([1 + rank]) * length, (n * ranks + rank) * length)
os.close(fd)
"""


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def daemon(mount: Mount) -> int:
    return int(mount.pids[-1])  # type: ignore[attr-defined]


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] == "Z"
    except FileNotFoundError:
        return True


def run(*command: object, **options: Any) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60, **options)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return str(done.stdout)


def test_tools_copy_archive_and_compare_containers(iosig: Iosig, mount: Mount, tmp_path: Path) -> None:
    directory = mount("--containers", "all")
    plain = tmp_path / "plain"
    (plain / "below").mkdir(parents=True)
    for n, size in enumerate([0, 1, 4096, 1_234_567]):
        (plain / "below" / f"{n}").write_bytes(random.Random(n).randbytes(size))
    (plain / "link").symlink_to("below/3")
    os.utime(plain / "below" / "3", ns=(10**18, 10**18 + 5))
    run("cp", "-a", plain, directory / "copy")
    run("cmp", plain / "below" / "3", directory / "copy" / "link")
    run("tar", "-cf", directory / "archive.tar", "-C", plain, ".")
    (directory / "out").mkdir()
    run("tar", "-xf", directory / "archive.tar", "-C", directory / "out")
    run("diff", "-r", plain, directory / "copy")
    run("diff", "-r", plain, directory / "out")
    assert (directory / "copy/below/3").stat().st_mtime_ns == 10**18 + 5
    run("dd", f"if={plain / 'below/3'}", f"of={directory / 'dd'}", "bs=777", "conv=fsync")
    run("dd", f"if={directory / 'dd'}", f"of={tmp_path / 'back'}", "bs=999")
    run("cmp", plain / "below/3", tmp_path / "back")
    run("rm", "-r", directory / "out")
    iosig("unmount", directory)
    assert has_ended(daemon(mount))
    container = tmp_path / "source/dd"
    assert (container / ".iosig-container").is_file()
    assert iosig.json("container", "check", container)["problems"] == []
    assert not (tmp_path / "source/out").exists()


def test_ranks_of_one_file_write_what_a_plain_file_gets(iosig: Iosig, mount: Mount, tmp_path: Path) -> None:
    directory = mount("--containers", "*.dat")
    ranks, count, length = 6, 300, 47
    for path in (directory / "x.dat", tmp_path / "plain"):
        path.touch()
        writers = [
            subprocess.Popen([sys.executable, "-c", STRIDED_WRITER, path, *map(str, (rank, ranks, count, length))])
            for rank in range(ranks)
        ]
        assert [writer.wait(60) for writer in writers] == [0] * ranks
    expected = b"".join(bytes([1 + rank]) * length for _ in range(count) for rank in range(ranks))
    assert (tmp_path / "plain").read_bytes() == expected
    assert (directory / "x.dat").read_bytes() == expected
    (directory / "other").write_bytes(b"an ordinary file")
    assert (tmp_path / "source/other").is_file()
    iosig("unmount", directory)
    listing = iosig.json("container", "ls", tmp_path / "source/x.dat")
    assert len(listing["writers"]) == ranks and listing["size"] == len(expected)


@pytest.mark.parametrize(("seed", "containers"), [(1, "all"), (2, "all"), (3, "all"), (4, "existing")])
def test_any_calls_in_any_order_do_what_they_do_to_a_plain_file(
    mount: Mount, tmp_path: Path, seed: int, containers: str
) -> None:
    directory = mount("--containers", containers)
    draw = random.Random(seed)
    paths = [directory / "file", tmp_path / "plain"]
    handles: list[list[int]] = []
    for path in paths:
        flags = [os.O_RDWR | os.O_CREAT, os.O_WRONLY, os.O_RDWR, os.O_RDONLY, os.O_WRONLY | os.O_APPEND]
        handles.append([os.open(path, flag, 0o644) for flag in flags])
    for _ in range(400):
        which, offset, length = draw.randrange(5), draw.randrange(30_000), draw.randrange(1, 9_000)
        act = draw.choice(["write", "write", "write", "read", "read", "append", "truncate", "stat", "punch", "sync"])
        data = draw.randbytes(length)
        results: list[Any] = []
        for fds in handles:
            fd = fds[which]
            if act == "write" and which < 3:
                results.append(os.pwrite(fd, data, offset))
            elif act == "append":
                results.append(os.write(fds[4], data[:100]))
            elif act == "read":
                results.append(os.pread(fds[draw_read(which)], length, offset))
            elif act == "truncate":
                os.ftruncate(fds[0], offset)
            elif act == "stat":
                results.append(os.fstat(fd).st_size)
            elif act == "sync":
                os.fsync(fd)
            elif act == "punch":
                punch(fds[0], offset, length)
        assert all(result == results[0] for result in results), act
    for fd in [*handles[0], *handles[1]]:
        os.close(fd)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def draw_read(which: int) -> int:
    """A handle that may read."""
    return (0, 2, 3)[which % 3]


def punch(fd: int, offset: int, length: int) -> None:
    """Makes a hole: FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE."""
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.fallocate(fd, 3, ctypes.c_long(offset), ctypes.c_long(length))
    assert failed == 0, os.strerror(ctypes.get_errno())


@pytest.mark.parametrize("containers", ["all", "existing"])
@pytest.mark.parametrize("access", [os.O_WRONLY, os.O_RDWR])
def test_readers_see_a_write_that_has_returned(mount: Mount, containers: str, access: int) -> None:
    directory = mount("--containers", containers)
    path = directory / "file"
    path.write_bytes(bytes(8192))
    with path.open("rb") as reader, os.fdopen(os.open(path, access), "wb", buffering=0) as writer:
        mapped = mmap.mmap(reader.fileno(), 8192, prot=mmap.PROT_READ)
        for n in range(1, 100):
            os.pwrite(writer.fileno(), bytes([n]) * 200, 4000)
            assert os.pread(reader.fileno(), 200, 4000) == bytes([n]) * 200
            assert mapped[4000:4200] == bytes([n]) * 200
        mapped.close()


def test_what_others_write_to_the_container_shows_soon(iosig: Iosig, mount: Mount, tmp_path: Path) -> None:
    iosig("container", "create", tmp_path / "source/file")
    directory = mount("--cache-seconds", "0.05")
    with (directory / "file").open("rb") as reader:
        assert reader.read() == b""
        subprocess.run(
            [BUILD / "bin/write_container", tmp_path / "source/file"],
            input="open a\nwrite a 10 5 x\nclose a",
            text=True,
            check=True,
            capture_output=True,
        )
        wait_for(lambda: (directory / "file").stat().st_size == 15)
        assert (directory / "file").read_bytes() == bytes(10) + b"xxxxx"
        assert os.pread(reader.fileno(), 100, 0) == bytes(10) + b"xxxxx"


def test_open_files_outlive_their_names(mount: Mount, tmp_path: Path) -> None:
    directory = mount("--containers", "all")
    (directory / "below").mkdir()
    path = directory / "below/file"
    with path.open("w+b", buffering=0) as file:
        file.write(b"one")
        path.unlink()
        assert not path.exists() and names_in(directory / "below") == []
        (directory / "below").rmdir()
        file.write(b" two")
        assert os.pread(file.fileno(), 100, 0) == b"one two"
        assert names_in(directory) == []
    wait_for(lambda: names_in(tmp_path / "source") == [])


def test_renaming_replaces_containers_and_files_alike(iosig: Iosig, mount: Mount, tmp_path: Path) -> None:
    directory = mount("--containers", "c*")
    for old, new in [("c1", "c2"), ("c1", "plain"), ("plain", "c1"), ("c1", "c-new")]:
        (directory / old).write_bytes(b"new")
        if new != "c-new":
            (directory / new).write_bytes(b"old, and longer")
        with (directory / old).open("rb") as open_file:
            (directory / old).rename(directory / new)
            assert open_file.read() == b"new"
        assert (directory / new).read_bytes() == b"new" and names_in(directory) == [new], (old, new)
        (directory / new).unlink()
    (directory / "c1").touch()
    (directory / "directory").mkdir()
    with pytest.raises(IsADirectoryError):
        (directory / "c1").rename(directory / "directory")
    with pytest.raises(NotADirectoryError):
        (directory / "directory").rename(directory / "c1")
    with pytest.raises(FileExistsError):
        os.open(directory / "c1", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    with pytest.raises(PermissionError):
        os.link(directory / "c1", directory / "c2")
    with pytest.raises(PermissionError):
        (directory / ".iosig-container").touch()


def test_a_change_of_the_mode_changes_the_ctime(mount: Mount) -> None:
    path = mount("--containers", "all") / "file"
    path.write_bytes(b"x")
    before = path.stat()
    time.sleep(0.05)
    path.chmod(0o400)
    after = path.stat()
    assert after.st_ctime_ns > before.st_ctime_ns and after.st_mtime_ns == before.st_mtime_ns


def test_pages_and_places_of_a_file_opened_to_append_stay_where_they_are(mount: Mount, tmp_path: Path) -> None:
    path = mount() / "appended"
    with path.open("a+b", buffering=0) as file:
        file.write(b"o" * 4096)
        with mmap.mmap(file.fileno(), 4096) as pages:
            pages[:4] = b"NEW!"
            pages.flush()
        file.write(b"end")
        fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) & ~os.O_APPEND)
        os.pwrite(file.fileno(), b"XX", 10)
    assert (tmp_path / "source/appended").read_bytes() == b"NEW!" + b"o" * 6 + b"XX" + b"o" * 4084 + b"end"


def test_appends_through_the_mount_and_beside_it_do_not_overwrite_each_other(mount: Mount, tmp_path: Path) -> None:
    script = "import os, sys; fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT); " + (
        "[os.write(fd, sys.argv[2].encode() * 10) for _ in range(500)]"
    )
    places = {"a": mount() / "log", "b": tmp_path / "source/log"}
    writers = [subprocess.Popen([sys.executable, "-S", "-E", "-c", script, path, who]) for who, path in places.items()]
    assert [each.wait() for each in writers] == [0, 0]
    data = places["b"].read_bytes()
    assert len(data) == 10000 and data.count(b"a") == data.count(b"b") == 5000


def test_the_daemon_keeps_no_descriptor_of_the_script_that_mounts(iosig: Iosig, mount: Mount, tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as lock:
        os.set_inheritable(lock.fileno(), True)
        fcntl.flock(lock, fcntl.LOCK_EX)
        mount()
        (pid,) = mount.pids  # type: ignore[attr-defined]
        held = [each.readlink() for each in Path(f"/proc/{pid}/fd").iterdir()]
        assert tmp_path / "lock" not in held


def test_a_report_below_the_mount_point_is_refused(iosig: Iosig, mount: Mount, tmp_path: Path) -> None:
    (tmp_path / "source").touch()
    for report in (tmp_path / "mounted/report", tmp_path / "mounted/sub/../report"):
        done = iosig(
            "mount", "--prefetch", "--prefetch-report", report, tmp_path / "source", tmp_path / "mounted", check=3
        )
        assert "is below the mount point" in done.stderr and not is_mounted(tmp_path / "mounted")


def test_holes_attributes_and_links(mount: Mount) -> None:
    directory = mount("--containers", "all")
    path = directory / "file"
    path.touch(mode=0o640)
    path.chmod(0o440)
    assert path.stat().st_mode & 0o777 == 0o440
    with path.open("r+b", buffering=0) as file:
        os.pwrite(file.fileno(), b"x" * 4096, 1 << 20)
        os.posix_fallocate(file.fileno(), 0, 2 << 20)
        assert file.seek(0, os.SEEK_DATA) == 1 << 20
        assert file.seek(1 << 20, os.SEEK_HOLE) == (1 << 20) + 4096
        with pytest.raises(OSError) as refusal:
            file.seek(3 << 20, os.SEEK_DATA)
        assert refusal.value.errno == errno.ENXIO
    assert path.stat().st_size == 2 << 20 and path.stat().st_blocks == 8
    os.utime(path, ns=(1, 2))
    assert path.stat().st_mtime_ns == 2
    (directory / "link").symlink_to("file")
    assert (directory / "link").read_bytes()[1 << 20 :][:4096] == b"x" * 4096
    assert os.statvfs(directory).f_blocks == os.statvfs(directory.parent / "source").f_blocks


def test_extended_attributes_of_a_link_are_its_own(mount: Mount, tmp_path: Path) -> None:
    """mv, rsync -X, tar --xattrs and ls -l ask for them."""
    directory = mount("--containers", "all")
    (directory / "file").write_bytes(b"x")
    for name in ("file", "nothing"):
        link, plain = directory / f"to {name}", tmp_path / f"to {name}"
        for each in (link, plain):
            each.symlink_to(name)

        def attempt(path: Path, call: Callable[..., object], *arguments: object) -> object:
            try:
                return call(path, *arguments, follow_symlinks=False)
            except OSError as failure:
                return failure.errno

        for call, *arguments in (
            (os.listxattr,),
            (os.getxattr, "security.selinux"),
            (os.setxattr, "user.a", b"v"),
            (os.setxattr, "trusted.a", b"v"),
            (os.getxattr, "trusted.a"),
            (os.listxattr,),
            (os.removexattr, "trusted.a"),
            (os.removexattr, "trusted.a"),
        ):
            assert attempt(link, call, *arguments) == attempt(plain, call, *arguments), (call, arguments)
    assert os.listxattr(directory / "file") == []


def test_a_killed_daemon_loses_nothing_that_was_written(iosig: Iosig, mount: Mount, tmp_path: Path) -> None:
    directory = mount("--containers", "all")
    data = random.Random(7).randbytes(200_000)
    file = (directory / "file").open("wb", buffering=0)
    for offset in range(0, len(data), 1000):
        file.write(data[offset : offset + 1000])
    os.kill(daemon(mount), signal.SIGKILL)
    wait_for(lambda: has_ended(daemon(mount)))
    with pytest.raises(OSError):
        file.write(b"x")
    with pytest.raises(OSError):
        file.close()
    assert iosig.json("container", "check", tmp_path / "source/file")["sound"]
    done = iosig("mount", tmp_path / "source", directory, "--json")  # over the dead one
    mount.pids.append(json.loads(done.stdout)["pid"])  # type: ignore[attr-defined]
    assert "daemon that died" in done.stderr
    assert (directory / "file").read_bytes() == data
    with (directory / "file").open("ab") as again:
        again.write(b"more")
    assert (directory / "file").read_bytes() == data + b"more"


def test_a_directory_swapped_for_a_link_leads_nowhere_else(mount: Mount, tmp_path: Path) -> None:
    source, elsewhere = tmp_path / "source", tmp_path / "elsewhere"
    (source / "below").mkdir()
    elsewhere.mkdir()
    directory = mount("--cache-seconds", "60", "--containers", "c*")
    assert names_in(directory / "below") == []  # the kernel knows it as a directory from now on
    (source / "below").rename(source / "kept")
    (source / "below").symlink_to(elsewhere)
    for name in ("plain", "container"):
        (directory / "below" / name).write_bytes(b"x")
    assert names_in(elsewhere) == [] and names_in(source / "kept") == ["container", "plain"]


def test_it_ends_in_order_on_sigterm(iosig: Iosig, mount: Mount, tmp_path: Path) -> None:
    directory = mount("--containers", "all")
    file = (directory / "file").open("wb", buffering=0)
    file.write(b"written")
    os.kill(daemon(mount), signal.SIGTERM)
    wait_for(lambda: has_ended(daemon(mount)) and not is_mounted(directory))
    with pytest.raises(OSError):
        file.write(b"x")
    with pytest.raises(OSError):
        file.close()
    listing = iosig.json("container", "ls", tmp_path / "source/file")
    assert [writer["is_closed"] for writer in listing["writers"]] == [True] and listing["size"] == 7


def test_unmounting_what_is_in_use_says_so(iosig: Iosig, mount: Mount) -> None:
    directory = mount()
    (directory / "file").write_bytes(b"x")
    with (directory / "file").open("rb"):
        assert "is in use" in iosig("unmount", directory, check=4).stderr
    iosig("unmount", directory)
    assert "is not a mount of `iosig mount`" in iosig("unmount", directory, check=3).stderr


def test_a_read_only_mount_changes_nothing(mount: Mount, tmp_path: Path) -> None:
    (tmp_path / "source/file").write_bytes(b"x")
    directory = mount("--read-only")
    assert (directory / "file").read_bytes() == b"x"
    with pytest.raises(OSError) as refusal:
        (directory / "new").touch()
    assert refusal.value.errno == errno.EROFS


def test_a_damaged_container_is_an_error_of_its_own(iosig: Iosig, mount: Mount, tmp_path: Path) -> None:
    source = tmp_path / "source"
    directory = mount("--containers", "all")
    for name in ("manifest", "data", "sound"):
        (directory / name).write_bytes(b"x" * 1000)
    iosig("unmount", directory)
    (source / "manifest/.iosig-container").write_text("{")
    (source / "data/d0/data.0").write_bytes(b"x" * 10)
    directory = mount()
    for name in ("manifest", "data"):
        with pytest.raises(OSError) as refusal:
            (directory / name).read_bytes()
        assert refusal.value.errno == errno.EIO, name
    assert names_in(directory) == ["data", "manifest", "sound"]
    assert (directory / "sound").read_bytes() == b"x" * 1000


@pytest.mark.parametrize(
    ("source", "point", "message"),
    [
        ("none", "empty", "No such file"),
        ("file", "empty", "is not a directory"),
        ("empty", "file", "is not a directory"),
        ("empty", "full", "is not empty: it holds 'x'"),
        ("full", ".", "is below the mount point"),
        (".", "empty", "which would then contain itself"),
        ("container", "empty", "is a container"),
    ],
)
def test_what_cannot_be_mounted_is_refused(iosig: Iosig, tmp_path: Path, source: str, point: str, message: str) -> None:
    if not (BUILD / "libexec/iosig/iosig-fuse").exists():
        pytest.skip("built without libfuse3")
    place = tmp_path / "place"
    (place / "full").mkdir(parents=True)
    (place / "empty").mkdir()
    (place / "file").touch()
    (place / "full/x").touch()
    iosig("container", "create", place / "container")
    done = iosig("mount", place / source, place / point, check=None)
    assert done.returncode in (3, 4) and message in done.stderr
    assert not is_mounted(place / point)


def test_a_busy_mount_point_is_named(iosig: Iosig, mount: Mount, tmp_path: Path) -> None:
    directory = mount()
    done = iosig("mount", tmp_path / "source", directory, check=4)
    assert "is a mount point already" in done.stderr and "iosig unmount" in done.stderr
