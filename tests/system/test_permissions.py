"""Who may do what with a container, and what its calls say: as with a plain file, for root and for any other user.

The same program makes the same calls on containers, under `iosig run` and through `iosig mount`, and on plain files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import BUILD, ROOT, Iosig
from mounting import is_mounted

LIBRARY = BUILD / "lib" / "libiosig-preload.so"
NOBODY = 65534

pytestmark = [
    pytest.mark.skipif(not LIBRARY.exists(), reason="built without libiosig-preload.so"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as several users"),
    pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv"),
]

# Modes in which each three bits (a class of users has three) are set and not set in every combination: a fifth of all
# modes, or 21 of them where the calls are slower.
MANY, FEW = ("0000", "0777", "5"), ("0000", "0777", "31")
modes = pytest.mark.parametrize(("user", "modes"), [(0, FEW), (NOBODY, MANY)], ids=["root", "nobody"])
users = pytest.mark.parametrize("user", [0, NOBODY], ids=["root", "nobody"])


class World:
    """A directory that every user can reach, in memory if there is such a place: `plain` has plain files, the others
    containers."""

    def __init__(self, iosig: Iosig, directory: Path) -> None:
        self.iosig = iosig
        self.directory = directory
        directory.chmod(0o755)
        self.library = Path(shutil.copy(LIBRARY, directory / "libiosig-preload.so"))
        self.program = directory / "permission_calls"
        source = ROOT / "tests/support/permission_calls.c"
        subprocess.run(["gcc", "-O1", "-o", str(self.program), str(source)], check=True)
        for name in ("plain", "run", "source", "mounted", "home"):
            self.make(name)
        self.preloaded = {"LD_PRELOAD": str(self.library), "IOSIG_CONTAINERS": f"{directory}/run/*"}

    def make(self, name: str) -> None:
        (self.directory / name).mkdir()
        (self.directory / name).chmod(0o777)

    def __call__(self, place: str, user: int, *command: object, **environment: str) -> str:
        """What `command` says in the directory `place`, as `user`."""
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user != 0 else []
        done = subprocess.run(
            [*as_user, "sh", "-c", 'cd "$0" && exec "$@"', str(self.directory / place), *map(str, command)],
            env={**self.iosig.env, "HOME": str(self.directory / "home"), "LC_ALL": "C", **environment},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{command}: {done.returncode} {done.stderr}"
        return done.stdout

    def calls(self, place: str, user: int, *words: object) -> list[str]:
        environment = self.preloaded if place == "run" else {}
        return self(place, user, self.program, *words, **environment).splitlines()


@pytest.fixture
def world(iosig: Iosig) -> Iterator[World]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        made = World(iosig, Path(directory))
        try:
            yield made
        finally:
            for place in ("mounted", "small"):
                while is_mounted(made.directory / place):
                    subprocess.run(["umount", "-l", str(made.directory / place)], check=True)


def differences(wanted: list[str], got: list[str], is_known: Callable[[str, str, str], bool]) -> list[str]:
    """Lines that differ, each with the file that it is about."""
    assert len(wanted) == len(got) and len(wanted) > 50
    about, found = "", []
    for plain, other in zip(wanted, got, strict=True):
        if not plain.startswith(" "):
            about = plain
        if plain != other and not is_known(about, plain, other):
            found.append(f"{about}: {plain} | {other}")
    return found


def none_is_known(_about: str, _plain: str, _other: str) -> bool:
    return False


def may_not_read(about: str, plain: str, other: str) -> bool:
    """What another user may write but not read is not opened: the owner could not read that user's dropping."""
    mode = int(about[1:], 8)
    return mode & 0o006 == 0o002 and plain.startswith("  open ") and other.endswith(" EACCES")


@modes
def test_each_mode_lets_its_owner_do_what_it_does_for_a_plain_file(
    world: World, user: int, modes: tuple[str, ...]
) -> None:
    wanted = world.calls("plain", user, "own", *modes)
    assert (world.directory / "plain/m0000").is_file()
    got = world.calls("run", user, "own", *modes)
    assert (world.directory / "run/m0000").is_dir()
    assert differences(wanted, got, none_is_known) == []


@modes
def test_each_mode_lets_others_do_what_it_does_for_a_plain_file(
    world: World, user: int, modes: tuple[str, ...]
) -> None:
    for place in ("plain", "run"):
        world.calls(place, 0, "make", *modes)
    wanted = world.calls("plain", user, "use", *modes)
    got = world.calls("run", user, "use", *modes)
    assert differences(wanted, got, may_not_read) == []
    for file in sorted((world.directory / "plain").iterdir())[::8]:  # the owner gets all of it, whatever others did
        name = file.name
        assert world("run", 0, "cat", name, **world.preloaded) == world("plain", 0, "cat", name)


@users
@pytest.mark.parametrize("what", ["umask", "limit"])
def test_new_files_and_limits_of_size_are_as_those_of_plain_files(world: World, user: int, what: str) -> None:
    assert differences(world.calls("plain", user, what), world.calls("run", user, what), none_is_known) == []


def mounted_calls(world: World, user: int, *words: str) -> list[str]:
    """Through a mount of that user, in a mount namespace where every user may mount."""
    fuse = BUILD / "libexec/iosig/iosig-fuse"
    if not fuse.exists():
        pytest.skip("built without libfuse3")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be used")
    if user != 0 and shutil.which("fusermount3") is None:
        pytest.skip("needs fusermount3")
    script = """
set -e
mount -t tmpfs none "$1/device"
mknod "$1/device/fuse" c 10 229
chmod 666 "$1/device/fuse"
mount --bind "$1/device/fuse" /dev/fuse
as_user="setpriv --reuid=$2 --regid=$2 --clear-groups"
HOME=$1/home $as_user "$3" mount --containers all --cache-seconds 0 "$1/source" "$1/mounted" >&2
status=0
$as_user sh -c 'cd "$0" && exec "$@"' "$1/mounted" "$1/permission_calls" "$4" $5 $6 $7 || status=$?
HOME=$1/home $as_user "$3" unmount "$1/mounted" >&2
exit $status
"""
    (world.directory / "device").mkdir()
    for name in ("source", "mounted", "home"):
        os.chown(world.directory / name, user, user)
    unshared = ["unshare", "--mount", "--propagation=private", "sh", "-c", script, "-"]
    done = subprocess.run(
        [*unshared, str(world.directory), str(user), str(BUILD / "bin/iosig"), *words],
        env={**world.iosig.env, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.stderr.startswith("unshare: ") or (user != 0 and "permission denied" in done.stderr.lower()):
        pytest.skip(f"this user cannot mount: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert any(path.is_dir() for path in (world.directory / "source").iterdir())
    return done.stdout.splitlines()


@users
@pytest.mark.parametrize("words", [("own", *FEW), ("umask",), ("limit",)], ids=lambda words: words[0])
def test_a_mount_checks_as_for_plain_files(world: World, user: int, words: tuple[str, ...]) -> None:
    got = mounted_calls(world, user, *words)
    assert differences(world.calls("plain", user, *words), got, none_is_known) == []


@pytest.mark.parametrize("first", [0, NOBODY], ids=["root first", "owner first"])
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o666])
def test_what_root_writes_into_a_users_file_is_that_users(world: World, mode: int, first: int) -> None:
    add = "import os, sys; os.umask(0o77); os.write(os.open('file', os.O_WRONLY | os.O_APPEND), sys.argv[1].encode())"
    make = f"import os; os.umask(0); os.close(os.open('file', os.O_CREAT, {mode}))"
    world("run", NOBODY, sys.executable, "-c", make, **world.preloaded)
    order = [0, NOBODY] if first == 0 else [NOBODY, 0]
    for user in [*order, *order]:
        world("run", user, sys.executable, "-c", add, str(user) + " ", **world.preloaded)
    text = world("run", NOBODY, "cat", "file", **world.preloaded)
    assert text == " ".join(map(str, [*order, *order])) + " "
    for piece in (world.directory / "run/file").rglob("*"):
        assert (piece.stat().st_uid, piece.stat().st_gid) == (NOBODY, NOBODY), piece
        assert piece.is_dir() or piece.stat().st_mode & 0o777 == mode, piece


def test_two_users_write_one_file_and_read_each_others_bytes(world: World) -> None:
    add = "import os, sys; os.umask(0o77); os.write(os.open('file', os.O_WRONLY | os.O_APPEND), sys.argv[1].encode())"
    make = "import os; os.umask(0); os.close(os.open('file', os.O_CREAT, 0o666))"
    world("run", 1234, sys.executable, "-c", make, **world.preloaded)
    for user in (1234, NOBODY, 1234, NOBODY):
        world("run", user, sys.executable, "-c", add, str(user) + " ", **world.preloaded)
    for user in (0, 1234, NOBODY, 4321):
        assert world("run", user, "cat", "file", **world.preloaded) == "1234 65534 1234 65534 "


def test_a_file_that_takes_a_containers_place_is_the_same_users(world: World) -> None:
    file = world.directory / "run/file"
    make = "import os; os.write(os.open('file', os.O_WRONLY | os.O_CREAT, 0o640), b'text')"
    world("run", NOBODY, sys.executable, "-c", make, **world.preloaded)
    label = "import os; os.setxattr('file', 'user.label', b'1')"
    world("run", NOBODY, sys.executable, "-c", label, **world.preloaded)
    world("run", 0, BUILD / "bin/iosig", "container", "flatten", "file")
    status = file.stat()
    assert (status.st_uid, status.st_gid, status.st_mode) == (NOBODY, NOBODY, 0o100640)
    assert file.read_bytes() == b"text"
    assert os.getxattr(file, "user.label") == b"1"


FILL = """
import errno, os, sys
path, room = sys.argv[1:]
log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
total = os.write(log, b"a" * 1000)
for _ in range(100):
    try:
        total += os.write(log, b"b" * 70000)
    except OSError as refusal:
        print(errno.errorcode[refusal.errno])
os.unlink(room)
os.sync()
assert os.fstat(log).st_size == total > 500000, total
total += os.write(log, b"the last")
assert os.fstat(log).st_size == total
with open(path, "rb") as file:
    assert os.lseek(file.fileno(), 0, os.SEEK_HOLE) == total
    file.seek(0)
    text = file.read()
assert len(text) == total and text.endswith(b"bthe last") and b"\\0" not in text
"""


@pytest.mark.parametrize("quota", [False, True], ids=["no room", "no quota"])
def test_an_append_that_finds_no_room_leaves_no_hole(world: World, quota: bool) -> None:
    world.make("small")
    small = world.directory / "small"
    image = world.directory / "image"
    steps = [["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(small)]]
    if quota:
        steps = [["truncate", "-s", "256m", str(image)], ["mkfs.btrfs", "-q", str(image)]]
        steps += [["mount", "-o", "loop", str(image), str(small)], ["btrfs", "quota", "enable", str(small)]]
        steps += [["btrfs", "qgroup", "limit", "2m", str(small)]]
    for step in steps:
        if shutil.which(step[0]) is None:
            pytest.skip(f"needs {step[0]}")
        done = subprocess.run(step, capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"{step}: {done.stderr.strip()}")
    small.chmod(0o777)
    containers = {**world.preloaded, "IOSIG_CONTAINERS": f"{small}/log"}
    log = small / "log"
    for environment in ({}, containers):
        if environment and quota:  # btrfs has no room for mapped pages then: only the data lie there
            log = world.directory / "run/log"
            world("run", NOBODY, BUILD / "bin/iosig", "container", "create", "--target", small, log)
        world("small", NOBODY, "sh", "-c", "head -c 200000 /dev/zero > room")
        said = world("small", NOBODY, sys.executable, "-c", FILL, log, small / "room", **environment).split()
        assert set(said) == {"EDQUOT" if quota else "ENOSPC"}
        assert log.is_dir() == bool(environment)
        world("small", NOBODY, "rm", log, **environment)
        os.sync()
