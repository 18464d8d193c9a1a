"""Files that a umask, a mode, a user id or a user namespace closes: home as without IOSIG, or not redirected."""

from __future__ import annotations

import os
import stat
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import BUILD
from draining import eventually, is_home
from redirecting import compile_c, remove_tree

# creator WAY PATH MODE UMASK: makes the file; "plain" is what a program does without IOSIG.
CREATOR = r"""
#include <fcntl.h>
#include <iosig/iosig.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
  const char *way = argv[1], *path = argv[2];
  mode_t mode = strtol(argv[3], 0, 8);
  int flags = O_CREAT | O_WRONLY | O_TRUNC, fd;
  (void)argc;
  umask(strtol(argv[4], 0, 8));
  if (!strcmp(way, "macro")) {
    fd = IOSIG_OPEN("random totalsize(1KB)", path, flags, mode);
  } else {
    if (!strcmp(way, "hint")) iosig_open_hint(AT_FDCWD, path, flags, "random totalsize(1KB)");
    fd = open(path, flags, mode);
  }
  if (fd < 0 || write(fd, "bytes\n", 6) != 6) return perror(path), 5;
  return close(fd);
}
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be several users")

NOBODY = 65534
USERS = {
    "root": (),
    "uid 65534": ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"),
    "root without capabilities": ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"),
}
NAMESPACES = {"no namespace": (), "unshare -r": ("unshare", "-r"), "unshare -U": ("unshare", "-U")}
MODES = {"0644": "022", "0666": "777", "0200": "022", "0000": "022", "0400": "022", "02750": "0"}


class Owned:
    """A working directory, a home and a fast mount point of one user, where that user may enter."""

    def __init__(self, user: str, places: tuple[Path, Path]) -> None:
        self.user = USERS[user]
        self.uid = NOBODY if user == "uid 65534" else 0
        self.root, self.fast = places
        self.work = self.root / "work"
        self.storage = self.root / "storage.toml"
        self.storage.write_text(
            'schema = "iosig.storage/2"\npolicy = "paper"\n'
            f'[[mount_point]]\npath = "{self.fast}"\ndevice = "fast"\npersistent = false\n'
            f'[[mount_point]]\npath = "{self.root}"\ndevice = "slow"\n'
            '[[device]]\nname = "fast"\nkind = "ram"\n'
            '[[device]]\nname = "slow"\nkind = "hdd"\n'
        )
        self.work.mkdir()
        (self.root / "home").mkdir()
        for path in (self.root, self.fast, self.work, self.root / "home", self.storage):
            os.chown(path, self.uid, self.uid)
            path.chmod(0o755 if path.is_dir() else 0o644)
        self.env = {
            "HOME": str(self.root / "home"),
            "PATH": os.environ["PATH"],
            "IOSIG_STORAGE": str(self.storage),
        }

    def run(self, *command: object, ok: bool = True) -> subprocess.CompletedProcess[str]:
        words = [*self.user, *map(str, command)]
        done = subprocess.run(words, capture_output=True, text=True, env=self.env, cwd=self.work, timeout=60)
        assert not ok or done.returncode == 0, done
        return done

    def create(self, creator: Path, way: str, name: str, mode: str, wrap: tuple[str, ...]) -> str:
        """Makes the file, redirected by `way`; what was said to the user."""
        umask, path, said = mode.partition(" ")[2] or MODES[mode], self.work / name, ""
        mode = mode.partition(" ")[0]
        if way == "prepare":
            prepare = f"umask {umask}; exec {BUILD}/bin/iosig prepare {path} 'random totalsize(1KB)'"
            said = self.run(*wrap, "sh", "-c", prepare, ok=False).stderr
            way = "plain"
        return said + self.run(*wrap, creator, way, path, mode, umask).stderr

    def left(self) -> list[Path]:
        """What a settled redirect must not leave; the user's own empty directory may stay."""
        return [*self.root.rglob("*.json"), *self.fast.glob(".iosig-*/*"), *self.work.glob(".iosig*")]


def attributes(path: Path) -> tuple[int, int, int, bytes]:
    status = path.lstat()
    assert stat.S_ISREG(status.st_mode), path
    return status.st_mode, status.st_uid, status.st_gid, path.read_bytes()


@pytest.fixture
def places() -> Iterator[tuple[Path, Path]]:
    """Directories that are not below one that is closed to other users."""
    made = [Path(tempfile.mkdtemp(prefix="iosig-test-", dir=directory)) for directory in ("/var/tmp", "/dev/shm")]
    try:
        if made[0].stat().st_dev == made[1].stat().st_dev:
            pytest.skip("/var/tmp lies on /dev/shm: there is no second file system to redirect to")
        yield made[0], made[1]
    finally:
        for path in made:
            remove_tree(path)


@pytest.fixture(scope="module")
def creator() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="iosig-test-", dir="/var/tmp") as directory:
        Path(directory).chmod(0o755)
        yield compile_c(CREATOR, Path(directory), "creator")


@pytest.fixture
def enterable() -> None:
    command = [*USERS["uid 65534"], BUILD / "bin/iosig", "--version"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"{BUILD} is closed to other users")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", ["hint", "macro", "prepare"])
@pytest.mark.parametrize("user", USERS)
@pytest.mark.usefixtures("enterable")
def test_a_file_of_any_mode_comes_home_as_it_would_have_been(
    user: str, way: str, mode: str, places: tuple[Path, Path], creator: Path
) -> None:
    owned = Owned(user, places)
    owned.create(creator, "plain", "reference", mode, ())
    assert owned.create(creator, way, "out", mode, ()) == ""
    assert (owned.work / "out").is_symlink()
    owned.run(BUILD / "bin/iosig", "finalize", "--all")
    assert attributes(owned.work / "out") == attributes(owned.work / "reference")
    assert owned.left() == []


@pytest.mark.parametrize("mode", ["0644", "0666", "0200"])
@pytest.mark.parametrize("way", ["hint", "macro", "prepare"])
@pytest.mark.parametrize("namespace", ["unshare -r", "unshare -U"])
@pytest.mark.parametrize("user", ["root", "uid 65534"])
@pytest.mark.usefixtures("enterable")
def test_what_a_user_namespace_made_is_settled_outside_of_it(
    user: str, namespace: str, way: str, mode: str, places: tuple[Path, Path], creator: Path
) -> None:
    owned, wrap = Owned(user, places), NAMESPACES[namespace]
    if owned.run(*wrap, "true", ok=False).returncode != 0:
        pytest.skip(f"this user may not {namespace}")
    owned.create(creator, "plain", "reference", mode, wrap)
    said = owned.create(creator, way, "out", mode, wrap)
    # Under `unshare -U` every user that the namespace does not map looks like this one.
    is_told_apart = namespace == "unshare -r"
    assert (owned.work / "out").is_symlink() == is_told_apart
    assert ("gives user 65534 no user id of its own outside" in said) != is_told_apart
    owned.run(BUILD / "bin/iosig", "finalize", "--all")
    assert attributes(owned.work / "out") == attributes(owned.work / "reference")
    assert owned.left() == []


def test_root_of_a_nested_user_namespace_takes_no_name_of_the_machines_root(
    places: tuple[Path, Path], creator: Path
) -> None:
    owned, nested = Owned("uid 65534", places), ("unshare", "-r", "unshare", "-r")
    if owned.run(*nested, "true", ok=False).returncode != 0:
        pytest.skip("user namespaces cannot be nested here")
    assert "no user id of its own outside" in owned.create(creator, "hint", "out", "0644", nested)
    assert (owned.work / "out").is_file() and list(owned.fast.iterdir()) == []


@pytest.mark.parametrize("flag", ["+i", "+a"])
def test_an_immutable_file_comes_home_immutable(flag: str, places: tuple[Path, Path], creator: Path) -> None:
    owned = Owned("root", places)
    owned.create(creator, "hint", "out", "0644", ())
    owned.create(creator, "plain", "reference", "0644", ())
    data = (owned.work / "out").readlink()
    for path in (data, owned.work / "reference"):
        if subprocess.run(["chattr", flag, path], capture_output=True).returncode != 0:
            pytest.skip(f"no chattr {flag} on the file system of {path}")
    owned.run(BUILD / "bin/iosig", "finalize", "--all")
    listed = [subprocess.run(["lsattr", owned.work / name], capture_output=True, text=True).stdout.split()[0]
              for name in ("out", "reference")]  # fmt: skip
    assert listed[0] == listed[1] and flag[1] in listed[0]
    assert attributes(owned.work / "out") == attributes(owned.work / "reference")
    assert owned.left() == []


def default_acl(user: int) -> bytes:
    """rwx for the owner, rw- for `user`, r-- for the group, mask rw-, --- for others, as setxattr takes it."""
    entries = [(1, 7, -1), (2, 6, user), (4, 4, -1), (0x10, 6, -1), (0x20, 0, -1)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)


@pytest.mark.parametrize("way", ["hint", "prepare"])
def test_a_default_acl_of_the_directory_gives_the_same_permissions(
    way: str, places: tuple[Path, Path], creator: Path
) -> None:
    """With one, the umask does not count, so the permissions cannot be made up afterwards."""
    owned = Owned("root", places)
    for path in (owned.work, owned.fast):
        try:
            os.setxattr(path, "system.posix_acl_default", default_acl(NOBODY))
        except OSError:
            pytest.skip(f"no ACLs on the file system of {path}")
    os.removexattr(owned.fast, "system.posix_acl_default")
    for wanted, name in (("plain", "reference"), (way, "out")):
        owned.create(creator, wanted, name, "0666 022", ())
    assert (owned.work / "out").is_symlink()
    owned.run(BUILD / "bin/iosig", "finalize", "--all")
    acls = [os.getxattr(owned.work / name, "system.posix_acl_access") for name in ("reference", "out")]
    assert acls[0] == acls[1] and struct.pack("<HHi", 0x10, 6, -1) in acls[0]
    assert attributes(owned.work / "out") == attributes(owned.work / "reference")


def access_acl() -> bytes:
    """rw- for the owner and for user 65534, nothing for the group and others, mask rw-: mode 0660."""
    entries = [(1, 6, -1), (2, 6, NOBODY), (4, 0, -1), (0x10, 6, -1), (0x20, 0, -1)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)


def test_an_acl_that_home_cannot_have_does_not_open_the_file_to_its_group(
    places: tuple[Path, Path], creator: Path
) -> None:
    owned = Owned("root", places)
    script = f"""
        mount -t ramfs none {owned.work} && cd {owned.work} || exit 77
        {creator} hint out 0640 022 && {creator} hint plain 0660 0 || exit 1
        python3 -c 'import os, sys; os.setxattr("out", "system.posix_acl_access", bytes.fromhex(sys.argv[1]))' \
            {access_acl().hex()} || exit 77
        stat -Lc %a out && {BUILD}/bin/iosig finalize --all >&2 && stat -c '%F %a' out plain
    """
    done = owned.run("unshare", "--mount", "sh", "-c", script, ok=False)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no ramfs, or no ACLs on the file system of {owned.fast}: {done.stderr}")
    assert done.stdout.splitlines() == ["660", "regular file 600", "regular file 660"], done


@pytest.mark.parametrize("flag", ["+i", "+a"])
def test_a_directory_whose_names_cannot_be_removed_gets_none_of_finalize(
    flag: str, places: tuple[Path, Path], creator: Path
) -> None:
    owned = Owned("root", places)
    owned.create(creator, "hint", "out", "0644", ())
    if subprocess.run(["chattr", flag, owned.work], capture_output=True).returncode != 0:
        pytest.skip(f"no chattr {flag} on the file system of {owned.work}")
    try:
        refused = owned.run(BUILD / "bin/iosig", "finalize", "out", ok=False)
        assert refused.returncode == 1 and "append-only or immutable" in refused.stderr, refused
        assert [path.name for path in owned.work.iterdir()] == ["out"]
    finally:
        subprocess.run(["chattr", flag.replace("+", "-"), owned.work], check=True)
    owned.run(BUILD / "bin/iosig", "finalize", "out")
    assert attributes(owned.work / "out")[3] == b"bytes\n" and owned.left() == []


def test_a_directory_that_an_early_version_made_under_umask_0777_is_opened_again(
    places: tuple[Path, Path], creator: Path, enterable: None
) -> None:
    owned = Owned("uid 65534", places)
    directory = owned.fast / f".iosig-{NOBODY}"
    directory.mkdir()
    os.chown(directory, NOBODY, NOBODY)
    directory.chmod(0)
    assert owned.create(creator, "hint", "out", "0644", ()) == ""
    assert (owned.work / "out").is_symlink() and stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_the_files_of_the_journal_serve_their_owner_whatever_the_umask(
    places: tuple[Path, Path], creator: Path, enterable: None
) -> None:
    owned = Owned("uid 65534", places)
    for umask, name in (("777", "a"), ("022", "b"), ("777", "c")):
        owned.create(creator, "hint", name, "0644", ())
        owned.run("sh", "-c", f"umask {umask}; exec {BUILD}/bin/iosig finalize --background {name}")
        eventually(lambda name=name: is_home(owned.work / name))
    owned.run("sh", "-c", f"umask 777; exec {BUILD}/bin/iosig prepare --drain d 'random totalsize(1KB)'")
    state = owned.root / "home/.local/state/iosig"
    made = {path.relative_to(state).as_posix(): stat.S_IMODE(path.stat().st_mode) for path in state.rglob("*")}
    assert made["drain.log"] == made["journal/.lock"] == 0o600 and made["journal/.requests"] == 0o700
    [record] = [mode for name, mode in made.items() if name.endswith(".drain")]
    assert record == 0o600
    owned.create(creator, "plain", "d", "0644", ())
    eventually(lambda: is_home(owned.work / "d"))
