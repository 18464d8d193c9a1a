"""A small world for tests of redirection: a working directory on one file system, a fast mount point on another."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import BUILD, ROOT, Iosig

# A program with a hinted open, by hand what the compiler plugin injects:
#   hinted open|fopen|fstream|redirect PATH FLAGS SIGNATURE < data
# stdout: "<errno of the open, 0 if it worked> <errno after the hint>", the latter set to 77 before it.
PROGRAM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <iosig/iosig.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  const char *kind = argv[1], *path = argv[2], *how = argv[3], *signature = argv[4];
  int flags = atoi(how), fd = -1, copied;
  char data[65536];
  (void)argc;
  errno = 77;
  if (!strcmp(kind, "redirect")) {
    int answer = iosig_redirect(path, signature);
    printf("%d %d %s\n", answer, errno, iosig_last_error());
    return 0;
  }
  if (!strcmp(kind, "fopen")) iosig_fopen_hint(path, how, signature);
  if (!strcmp(kind, "fstream")) iosig_fstream_hint(path, flags, signature);
  if (!strcmp(kind, "open")) iosig_open_hint(AT_FDCWD, path, flags, signature);
  if (!strcmp(kind, "openat")) {  /* PATH is DIRECTORY:NAME */
    char *name = strchr(path, ':');
    *name++ = 0;
    int directory = open(path, O_RDONLY | O_DIRECTORY);
    errno = 77;
    iosig_open_hint(directory, name, flags, signature);
    copied = errno;
    fd = openat(directory, name, flags, 0666);
    errno = copied;
  }
  copied = errno;
  if (!strcmp(kind, "fopen")) {
    FILE *file = fopen(path, how);
    printf("%d %d\n", file ? 0 : errno, copied);
    if (file) fd = fileno(file);
  } else {
    if (!strcmp(kind, "open")) fd = open(path, flags, 0666);
    printf("%d %d\n", fd >= 0 ? 0 : errno, copied);
  }
  fflush(stdout);
  for (ssize_t got; fd >= 0 && (got = read(0, data, sizeof data)) > 0;)
    for (ssize_t put = 0, n; put < got; put += n)
      if ((n = write(fd, data + put, got - put)) < 0) return perror("write"), 5;
  return 0;
}
"""


class World:
    """`work` and `fast` lie on different file systems; IOSIG knows both and finds `fast` faster.

    By the paper's policy, throughput alone: what these tests are of is what happens to a redirected file.
    """

    def __init__(self, iosig: Iosig, root: Path, fast: Path) -> None:
        self.iosig = iosig
        self.root = root
        self.work = root / "work"
        self.fast = fast
        self.state = root / "state"
        self.storage = root / "storage.toml"
        self.work.mkdir(exist_ok=True)
        self.storage.write_text(
            'schema = "iosig.storage/2"\npolicy = "paper"\n'
            f'[[mount_point]]\npath = "{fast}"\ndevice = "fast"\npersistent = false\n'
            f'[[mount_point]]\npath = "{root}"\ndevice = "slow"\n'
            '[[device]]\nname = "fast"\nkind = "ram"\n'
            '[[device]]\nname = "slow"\nkind = "hdd"\n'
        )
        iosig.env |= {"IOSIG_STORAGE": str(self.storage), "IOSIG_STATE": str(self.state)}
        self.env = iosig.env

    @property
    def user_directory(self) -> Path:
        return self.fast / f".iosig-{os.geteuid()}"

    def prepared(self, name: str, content: bytes, signature: str = "random") -> tuple[Path, Path]:
        """A redirected file with this content: (the path asked for, where the bytes are)."""
        path = self.work / name
        self.iosig("prepare", path, signature)
        path.write_bytes(content)
        return path, path.readlink()

    def journal(self) -> list[Path]:
        return sorted((self.state / "journal").glob("*.json")) if self.state.exists() else []

    def is_settled(self) -> bool:
        """Nothing is left on the mount point, in the journal, or hidden beside the data."""
        return not (self.journal() or list(self.work.rglob(".iosig*")) or list(self.user_directory.iterdir()))

    def states(self) -> dict[str, str]:
        return {Path(r["path"]).name: r["state"] for r in self.iosig.json("status")["redirects"]}

    def run(self, *command: object, **options: Any) -> subprocess.CompletedProcess[bytes]:
        options.setdefault("env", self.env)
        options.setdefault("cwd", self.work)
        options.setdefault("timeout", 60)
        # fsencode: file names are bytes
        return subprocess.run([os.fsencode(str(c)) for c in command], capture_output=True, **options)

    def run_with_own_mounts(self, script: str, *words: object, **options: Any) -> subprocess.CompletedProcess[bytes]:
        """Runs the Bash script, with `words` as its $1 and so on; what it mounts goes with it (`needs_mounts`)."""
        return self.run("unshare", "--mount", "bash", "-c", script, "-", *words, **options)


def remove_tree(path: Path) -> None:
    """Removes a directory with files that iosig has sealed (immutable) as well."""
    try:
        shutil.rmtree(path)
    except OSError:  # immutable, or a program that the test has left is at work there
        subprocess.run(["chattr", "-R", "-f", "-i", "-a", path], capture_output=True)
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def world(iosig: Iosig, tmp_path: Path) -> Iterator[World]:
    fast = Path(tempfile.mkdtemp(prefix="iosig-test-", dir="/dev/shm"))
    try:
        if fast.stat().st_dev == tmp_path.stat().st_dev:
            pytest.skip(f"{tmp_path} lies on /dev/shm: there is no second file system to redirect to")
        yield World(iosig, tmp_path, fast)
    finally:
        remove_tree(fast)


def compile_c(source: str, into: Path, name: str, *flags: str) -> Path:
    """Compiles a program that calls the hints."""
    (into / f"{name}.c").write_text(source)
    library = BUILD / "lib"
    subprocess.run(
        ["gcc", "-O1", "-Wall", "-o", into / name, into / f"{name}.c", f"-I{ROOT}/include", f"-L{library}",
         "-liosig", f"-Wl,-rpath,{library}", "-pthread", *flags],
        check=True,
    )  # fmt: skip
    return into / name


@pytest.fixture(scope="session")
def hinted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PROGRAM, compiled."""
    return compile_c(PROGRAM, tmp_path_factory.mktemp("hinted"), "hinted")


@pytest.fixture(scope="session")
def at_step(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tests/support/at_step.c, compiled: stops a command at one of its system calls."""
    if platform.machine() != "x86_64":
        pytest.skip(f"the tracer of the tests knows the system calls of x86_64, not of {platform.machine()}")
    program = tmp_path_factory.mktemp("at_step") / "at_step"
    subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-o", program, ROOT / "tests/support/at_step.c"], check=True)
    traced = subprocess.run([program, "0", "kill", "x", "x", shutil.which("true") or "/bin/true"], capture_output=True)
    if traced.stdout.split()[1:2] != [b"0"]:
        pytest.skip("processes cannot be traced here")
    return program


@pytest.fixture(scope="session")
def fork_at_step(at_step: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tests/support/fork_at_step.c, compiled. Asks for `at_step`, which is skipped where no process can be traced."""
    source = (ROOT / "tests/support/fork_at_step.c").read_text()
    return compile_c(source, tmp_path_factory.mktemp("fork_at_step"), "fork_at_step", "-Werror")


def race_for_one_path(world: World, hinted: Path, name: str, signature: str) -> None:
    """Twelve processes open a new path at once and append a line each: one file must have them all."""
    racers = [
        subprocess.Popen(
            [hinted, "open", name, str(os.O_CREAT | os.O_WRONLY | os.O_APPEND), signature],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd=world.work, env=world.env,
        )
        for _ in range(12)
    ]  # fmt: skip
    for number, racer in enumerate(racers):
        racer.communicate(b"line of %02d\n" % number)
        assert racer.returncode == 0
    assert sorted((world.work / name).read_bytes().splitlines()) == [b"line of %02d" % n for n in range(12)]


def with_checksum(body: str) -> str:
    """The text of a journal entry whose fields up to the checksum, its last one, are `body`."""
    checksum = 0xCBF29CE484222325  # FNV-1a
    for byte in body.encode():
        checksum = (checksum ^ byte) * 0x100000001B3 % 2**64
    return f'{body},"checksum":"{checksum:016x}"}}\n'


def can_mount() -> bool:
    mount = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/tmp"]
    return os.geteuid() == 0 and subprocess.run(mount, capture_output=True).returncode == 0


needs_mounts = pytest.mark.skipif(not can_mount(), reason="needs root and mount namespaces, to mount file systems")
