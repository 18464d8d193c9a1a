"""Storage that fails while data come home: full, over quota, broken, read-only, gone. Real mounts; FUSE errs."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import BUILD
from redirecting import World, needs_mounts

CONTENT = os.urandom(1 << 20)


@contextmanager
def failing(directory: Path, world: World, at_start: str = "") -> Iterator[Path]:
    """`folder` behind a file system that fails as the yielded file says."""
    program = BUILD / "bin" / "faulty_fs"
    if not program.exists() or not os.access("/dev/fuse", os.W_OK) or shutil.which("fusermount3") is None:
        pytest.skip("needs FUSE: libfuse3-dev when building, fuse3, and a writable /dev/fuse")
    source, faults = world.root / f"behind-{directory.name}", world.root / f"faults-{directory.name}"
    source.mkdir()
    faults.write_text(at_start)
    server = subprocess.Popen([program, source, faults, directory], stderr=subprocess.PIPE)
    try:
        while not directory.is_mount():
            if server.poll() is not None:
                pytest.skip(f"cannot mount FUSE here: {server.stderr.read().decode() if server.stderr else ''}")
            time.sleep(0.01)
        yield faults
    finally:
        subprocess.run(["fusermount3", "-uz", directory], check=False, capture_output=True)
        server.wait()


def words_of(error: str) -> str:
    return {"EIO": "Input/output", "ENOSPC": "No space", "EDQUOT": "quota", "EROFS": "Read-only"}[error]


def test_a_home_that_fails_keeps_the_data_where_they_are_until_it_works_again(world: World) -> None:
    with failing(world.work, world) as faults:
        for fault in ("create EROFS", "create EDQUOT", "write ENOSPC", "write EDQUOT", "write EIO", "fsync EDQUOT",
                      "fsync EIO", "link EIO", "rename EIO"):  # fmt: skip
            path, destination = world.prepared("out", CONTENT)
            faults.write_text(fault)
            error = fault.split()[1]
            done = world.iosig("finalize", path, check=None)
            assert done.returncode == (1 if error in ("ENOSPC", "EDQUOT") else 4), (fault, done.stderr)
            assert words_of(error) in done.stderr, (fault, done.stderr)
            assert destination.read_bytes() == CONTENT, fault
            faults.write_text("")
            assert path.is_symlink() and path.read_bytes() == CONTENT, fault
            world.iosig("finalize", path)
            assert not path.is_symlink() and path.read_bytes() == CONTENT and world.is_settled(), fault
            path.unlink()


@pytest.mark.parametrize(("verify", "at_start"), [("full", ""), ("copy", "direct EIO")])
def test_a_home_that_changes_what_is_written_gets_no_data(world: World, verify: str, at_start: str) -> None:
    with failing(world.work, world, at_start) as faults:
        path, destination = world.prepared("out", CONTENT)
        faults.write_text("flip EIO")
        done = world.iosig("finalize", "--verify", verify, path, check=None)
        assert done.returncode == 4 and "faulty" in done.stderr and "nothing was changed" in done.stderr
        assert destination.read_bytes() == CONTENT and path.is_symlink() and path.read_bytes() == CONTENT
        faults.write_text("")
        assert "copied and verified" in world.iosig("finalize", "--verify", verify, path).stdout
        assert path.read_bytes() == CONTENT and world.is_settled()


def test_a_copy_that_nobody_verified_is_called_so(world: World) -> None:
    path, _ = world.prepared("out", CONTENT)
    assert "copied, not verified" in world.iosig("finalize", "--verify", "none", path).stdout
    assert path.read_bytes() == CONTENT


def test_a_copy_that_is_in_place_is_completed_when_the_mount_point_works_again(world: World) -> None:
    with failing(world.fast, world) as faults:
        path, destination = world.prepared("out", CONTENT)
        faults.write_text("unlink EROFS")
        said = world.iosig("finalize", path, check=4).stderr
        assert "is settled" in said and str(destination) in said
        assert not path.is_symlink() and path.read_bytes() == CONTENT
        faults.write_text("")
        assert "1 finished" in world.iosig("recover").stdout
        assert path.read_bytes() == CONTENT and world.is_settled()


def test_data_that_cannot_be_read_now_are_neither_lost_nor_taken_for_lost(world: World) -> None:
    with failing(world.fast, world) as faults:
        path, _ = world.prepared("out", CONTENT)
        temporary, _ = world.prepared("scratch", CONTENT, "temp")
        faults.write_text("look EIO")
        assert "cannot be reached" in world.iosig("finalize", "--all", check=1).stderr
        assert "0 finished, 0 undone, 2 left" in world.iosig("recover", "all").stdout
        assert world.states() == {"out": "unreachable", "scratch": "unreachable"}
        faults.write_text("read EIO")
        assert words_of("EIO") in world.iosig("finalize", path, check=4).stderr
        assert path.is_symlink() and temporary.is_symlink() and len(world.journal()) == 2
        faults.write_text("")
        assert path.read_bytes() == CONTENT
        world.iosig("finalize", "--all")
        assert path.read_bytes() == CONTENT and not os.path.lexists(temporary) and world.is_settled()


def test_a_home_whose_links_cannot_be_read_now_loses_no_entry(world: World) -> None:
    with failing(world.work, world) as faults:
        path, _ = world.prepared("out", CONTENT)
        temporary, _ = world.prepared("scratch", CONTENT, "temp")
        faults.write_text("look EIO")
        world.iosig("finalize", "--all", check=1)
        world.iosig("recover", "all")
        faults.write_text("")
        assert path.read_bytes() == temporary.read_bytes() == CONTENT and len(world.journal()) == 2
        world.iosig("finalize", "--all")
        assert path.read_bytes() == CONTENT and not os.path.lexists(temporary) and world.is_settled()


def test_a_program_whose_destination_fails_gets_its_own_error_and_loses_no_synced_byte(world: World) -> None:
    with failing(world.fast, world) as faults:
        path, _ = world.prepared("out", CONTENT)
        for error in ("ENOSPC", "EDQUOT", "EIO"):
            faults.write_text(f"write {error}")
            done = world.run("dd", f"of={path}", "oflag=append", "conv=notrunc,nocreat", "status=none", input=b"more")
            assert done.returncode == 1 and words_of(error) in done.stderr.decode()
        faults.write_text("")
        world.iosig("finalize", path)
        assert path.read_bytes() == CONTENT and world.is_settled()


@needs_mounts
def test_a_mount_point_that_vanishes_or_turns_read_only_is_waited_for(world: World) -> None:
    script = f"""
        mount -t tmpfs none {world.fast} || exit
        i={world.iosig.binary}
        $i prepare out random && cat > out || exit 1
        $i prepare waiting random
        mount -o remount,ro {world.fast}
        $i finalize out; echo read-only $?
        cmp out "$(readlink out 2>/dev/null || echo {world.user_directory}/*/out)" || exit 2
        mount -o remount,rw {world.fast}
        exec 3< {world.user_directory}
        umount -l {world.fast}
        $i finalize --all; echo vanished $?
        $i recover all
        mount -t tmpfs none {world.fast}
        $i finalize --all; echo another $?
        $i status
    """
    done = world.run_with_own_mounts(script, input=CONTENT)
    told = done.stdout.decode() + done.stderr.decode()
    assert done.returncode == 0, told
    assert "read-only 4" in told and "vanished 1" in told and "another 1" in told, told
    assert "0 finished, 0 undone, 2 left" in told, told
    assert (world.work / "out").read_bytes() == CONTENT and (world.work / "waiting").is_symlink()
    assert len(world.journal()) == 2


def test_a_directory_where_finalize_puts_its_copy_is_named_with_what_to_do(world: World) -> None:
    path, destination = world.prepared("out", CONTENT)
    [entry] = world.journal()
    taken = world.work / f".iosig-{entry.stem}.draft"
    taken.mkdir()
    for _ in range(2):
        refused = world.iosig("finalize", path, check=1).stderr
        assert all(str(each) in refused for each in (path, taken, destination)), refused
        assert "move the directory away" in refused
    assert path.is_symlink() and path.read_bytes() == CONTENT
    taken.rmdir()
    world.iosig("finalize", path)
    assert not path.is_symlink() and path.read_bytes() == CONTENT and world.is_settled()


@needs_mounts
def test_a_full_journal_keeps_no_data_from_being_settled(world: World) -> None:
    """The journal is in the user's home directory, which is full; the links were renamed since it was written."""
    script = """
        set -e
        mkdir -p "$IOSIG_STATE" && mount -t tmpfs -o size=1m none "$IOSIG_STATE" && cd "$2"
        "$1" prepare scratch.tmp temp random > /dev/null && echo scratch > scratch.tmp && mv scratch.tmp scratch
        "$1" prepare out.tmp random > /dev/null && echo data > out.tmp && mv out.tmp out
        head -c 2m /dev/zero > "$IOSIG_STATE/ballast" 2> /dev/null && exit 90
        "$1" finalize --all
        "$1" status && ls -A && cat out
    """
    done = world.run_with_own_mounts(script, world.iosig.binary, world.work)
    said = done.stdout.decode()
    assert done.returncode == 0, said + done.stderr.decode()
    assert said.endswith("nothing is redirected\nout\ndata\n") and not list(world.user_directory.iterdir())


@needs_mounts
@pytest.mark.parametrize("way", ["finalize", "move on"])
def test_data_come_home_to_a_file_system_that_does_not_tell_its_size(world: World, way: str) -> None:
    script = """
        set -e
        mount -t ramfs none "$2" && mount -t tmpfs -o size=1m none "$3" && cd "$2"
        "$1" prepare out random > /dev/null
        if [ "$4" = finalize ]; then seq 1000 > out; "$1" finalize out; fi
        if [ "$4" = "move on" ]; then "$1" run -- sh -c 'exec seq 300000 > out'; fi
        test ! -L out && tail -n 1 out
    """
    done = world.run_with_own_mounts(script, world.iosig.binary, world.work, world.fast, way)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split()[-1] == (b"1000" if way == "finalize" else b"300000")
