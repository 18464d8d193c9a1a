"""Devices that fail, killed programs, and threads beside a writer: no accepted write is lost, and nothing hangs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import BUILD, Iosig

LIBRARY = BUILD / "lib" / "libiosig-preload.so"
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="built without libiosig-preload.so")
needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")

OFFSETS = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int fd;
static volatile int ends;
static const char* asks;

static void* ask(void* unused) {
  while (!ends) {
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_END};
    int bytes;
    if (strcmp(asks, "lseek") == 0) lseek(fd, 0, SEEK_CUR);
    if (strcmp(asks, "FIONREAD") == 0) ioctl(fd, FIONREAD, &bytes);
    if (strcmp(asks, "F_GETLK") == 0) fcntl(fd, F_GETLK, &range);
  }
  return unused;
}

int main(int count, char** words) {
  pthread_t thread;
  fd = open("file.dat", O_RDWR | O_CREAT | O_TRUNC, 0644);
  asks = words[1];
  if (count != 2 || fd < 0 || pthread_create(&thread, NULL, ask, NULL) != 0) return 2;
  for (long n = 0; n < 20000; ++n)
    if (write(fd, &n, 8) != 8) return 3;
  ends = 1;
  return pthread_join(thread, NULL) != 0 || lseek(fd, 0, SEEK_CUR) != 160000;
}
"""


def python(
    iosig: Iosig, script: str, directory: Path, *before: object, **options: object
) -> subprocess.CompletedProcess:
    command = [*before, iosig.binary, "run", "--container", "*.dat", "--", sys.executable, "-S", "-E", "-c", script]
    return subprocess.run(
        [str(word) for word in command],
        cwd=directory,
        env=iosig.env,
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


@pytest.mark.parametrize("asks", ["lseek", "FIONREAD", "F_GETLK"])
def test_a_question_beside_a_write_does_not_move_the_offset_back(
    iosig: Iosig, compiled: Callable[[Path], Path], tmp_path: Path, asks: str
) -> None:
    source = tmp_path / "offsets.c"
    source.write_text(OFFSETS)
    iosig("run", "--container", "*.dat", "--", compiled(source), asks, cwd=tmp_path)
    iosig("container", "flatten", tmp_path / "file.dat")
    assert (tmp_path / "file.dat").read_bytes() == b"".join(n.to_bytes(8, "little") for n in range(20000))


@needs_strace
def test_an_index_that_cannot_be_stored_once_is_written_again(iosig: Iosig, tmp_path: Path) -> None:
    """The write that finds the tail full is refused; the next ones go on, and everything accepted is there."""
    script = """
import os, random
fd = os.open('file.dat', os.O_RDWR | os.O_CREAT)
os.pwrite(fd, b'x', 0)
os.fsync(fd)
places, refused, accepted = random.Random(1), 0, {}
for n in range(17000):
    at = places.randrange(1 << 30)
    try:
        os.pwrite(fd, b'%05d' % n, 8 * at)
        accepted[at] = n
    except OSError:
        refused += 1
os.fsync(fd)
wrong = sum(os.pread(fd, 5, 8 * at) != b'%05d' % n for at, n in accepted.items())
print(refused, wrong)
"""
    outcomes = []
    for when in range(2, 7):
        directory = tmp_path / str(when)
        directory.mkdir()
        inject = f"inject=fdatasync:error=EIO:when={when}"
        done = python(iosig, script, directory, "strace", "-f", "-qq", "-o", directory / "log", "-e", inject)
        outcomes.append(done.stdout or done.stderr.splitlines()[-1])
        assert iosig.json("container", "check", directory / "file.dat")["sound"], when
    assert "1 0\n" in outcomes and all(re.match("[01] 0\n|.*Input/output", each) for each in outcomes), outcomes


@needs_strace
def test_a_close_that_the_file_system_refuses_fails(iosig: Iosig, tmp_path: Path) -> None:
    """As a network file system does that learns at the close that the quota is exceeded."""
    script = """
import os
fd = os.open('file.dat', os.O_WRONLY | os.O_CREAT)
os.write(fd, b'x' * 4096)
os.close(fd)
"""
    data = tmp_path / "file.dat/d0/data.0"
    done = python(
        iosig,
        script,
        tmp_path,
        "strace",
        "-f",
        "-qq",
        "-o",
        tmp_path / "log",
        "-P",
        data,
        "-e",
        "inject=close:error=EDQUOT",
    )
    assert done.returncode == 1 and "Disk quota exceeded" in done.stderr, done.stderr
    tails = [*(tmp_path / "file.dat").rglob("tail.0")]
    assert tails, "a writer whose bytes may be lost is recorded as closed"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a tmpfs: needs root")
def test_writers_that_find_no_room_leave_no_files(iosig: Iosig, tmp_path: Path) -> None:
    place = tmp_path / "full"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", place], check=True)
    try:
        python(iosig, "open('file.dat', 'w').write('first')", place)
        with (place / "rest").open("wb", buffering=0) as rest, pytest.raises(OSError):
            while True:
                rest.write(bytes(4096))
        os.truncate(place / "rest", (place / "rest").stat().st_size - 8192)
        before = sorted((place / "file.dat").rglob("*.*"))
        script = """
import os
for _ in range(20):
    fd = os.open('file.dat', os.O_WRONLY)
    try:
        os.write(fd, bytes(65536))
    except OSError:
        print('refused')
    os.close(fd)
"""
        done = python(iosig, script, place)
        assert done.stdout.count("refused") == 20, done
        assert sorted((place / "file.dat").rglob("*.*")) == before
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@needs_strace
def test_syncfs_flushes_the_file_system_of_a_container(iosig: Iosig, tmp_path: Path) -> None:
    script = """
import ctypes, os
fd = os.open('file.dat', os.O_WRONLY | os.O_CREAT)
os.write(fd, b'x')
print(ctypes.CDLL(None).syncfs(fd))
"""
    log = tmp_path / "log"
    done = python(iosig, script, tmp_path, "strace", "-f", "-qq", "-o", log, "-e", "trace=syncfs")
    assert done.stdout == "0\n" and " = 0" in log.read_text()


@needs_strace
def test_a_sync_of_a_file_that_was_closed_and_opened_again_is_one_of_its_writes(iosig: Iosig, tmp_path: Path) -> None:
    """As programs do that write with one function and flush with another."""
    script = """
import os
fd = os.open('file.dat', os.O_WRONLY | os.O_CREAT)
os.write(fd, b'x' * 100)
os.close(fd)
fd = os.open('file.dat', os.O_RDONLY)
os.fsync(fd)
"""
    log = tmp_path / "log"
    python(iosig, script, tmp_path, "strace", "-f", "-qq", "-y", "-o", log, "-e", "trace=fsync,fdatasync")
    synced = log.read_text()
    assert "/file.dat/d0/data.0>" in synced and "/file.dat/d0/index.0>" in synced
