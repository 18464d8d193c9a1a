"""Temporary data that a program deletes leave the fast mount point, too, and nothing else does.

A program that deletes its file removes only the link. libiosig holds the links that its process made, and drops the
data of one that no name leads to any more, if they are declared temp: another program may have copied the link before.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from redirecting import World, compile_c

# deleting PATH COUNT HOW DIRECTORY SIGNATURE: makes COUNT files PATH.0 ... through hints, and does HOW to each before
# the next: unlink, rename (to PATH.N.kept), move (into the directory `moved`), carry (there, as mv does between file
# systems: the link is copied, then deleted), replace (by a new file), keep-open (unlink while it is open).
# Prints the greatest number of names that DIRECTORY had.
PROGRAM = r"""
#include <dirent.h>
#include <fcntl.h>
#include <iosig/iosig.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int count(const char *directory) {
  int found = 0;
  DIR *listed = opendir(directory);
  for (struct dirent *item; listed && (item = readdir(listed));) found += item->d_name[0] != '.';
  if (listed) closedir(listed);
  return found;
}
int main(int argc, char **argv) {
  const char *path = argv[1], *how = argv[3], *directory = argv[4];
  int files = atoi(argv[2]), most = 0, kept = -1;
  char name[4096], other[4096], data[1000] = "data";
  (void)argc;
  for (int number = 0; number < files; ++number) {
    snprintf(name, sizeof name, "%s.%d", path, number);
    iosig_open_hint(AT_FDCWD, name, O_CREAT | O_WRONLY, argv[5]);
    int fd = open(name, O_CREAT | O_WRONLY, 0644);
    if (fd < 0 || write(fd, data, sizeof data) != sizeof data) return 5;
    if (count(directory) > most) most = count(directory);
    if (!strcmp(how, "unlink") && (close(fd) || unlink(name))) return 6;
    snprintf(other, sizeof other, "%s.kept", name);
    if (!strcmp(how, "rename") && (close(fd) || rename(name, other))) return 7;
    snprintf(other, sizeof other, "moved/%d", number);
    if (!strcmp(how, "move") && (close(fd) || rename(name, other))) return 8;
    if (!strcmp(how, "carry")) {
      char target[4096] = "";
      if (close(fd) || readlink(name, target, sizeof target - 1) < 0) return 15;
      if (symlink(target, other) || unlink(name)) return 16;
    }
    if (!strcmp(how, "queue") && close(fd)) return 13;
    if (!strcmp(how, "queue") && number >= 8) {  // the oldest of several goes
      snprintf(other, sizeof other, "%s.%d", path, number - 8);
      if (unlink(other)) return 14;
    }
    if (!strcmp(how, "replace")) {
      snprintf(other, sizeof other, "%s.new", name);
      close(fd);
      fd = open(other, O_CREAT | O_WRONLY, 0644);
      if (write(fd, "new", 3) != 3 || close(fd) || rename(other, name)) return 9;
    }
    if (!strcmp(how, "keep-open")) {
      if (unlink(name)) return 10;
      if (kept >= 0) close(kept);
      kept = fd;
    }
  }
  if (!strcmp(how, "queue") && count("/proc/self/fd") > 30) return 12;  // of links that are gone none stays open
  if (kept >= 0 && lseek(kept, 0, SEEK_END) != sizeof data) return 11;
  printf("%d\n", most);
  return 0;
}
"""


@pytest.fixture(scope="module")
def deleting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(PROGRAM, tmp_path_factory.mktemp("deleting"), "deleting")


def max_at_once(world: World, deleting: Path, count: int, how: str, signature: str = "temp random") -> int:
    done = world.run(deleting, "out", count, how, world.user_directory, signature)
    assert done.returncode == 0 and done.stderr == b"", done
    return int(done.stdout)


@pytest.mark.parametrize("how", ["unlink", "replace", "keep-open"])
def test_data_that_a_program_deletes_leave_the_mount_point(world: World, deleting: Path, how: str) -> None:
    assert max_at_once(world, deleting, 95, how) <= 3
    assert world.is_settled()
    if how == "replace":
        assert all((world.work / f"out.{number}").read_bytes() == b"new" for number in range(95))


def test_descriptors_of_deleted_links_are_closed(world: World, deleting: Path) -> None:
    assert max_at_once(world, deleting, 95, "queue") <= 12
    assert len(world.journal()) == 8


def test_data_whose_link_was_renamed_or_moved_stay(world: World, deleting: Path) -> None:
    (world.work / "moved").mkdir()
    max_at_once(world, deleting, 20, "rename", "random")
    max_at_once(world, deleting, 20, "move", "random")
    assert len(world.journal()) == 40 and len(list(world.user_directory.iterdir())) == 40
    for path in [*world.work.glob("out.*"), *(world.work / "moved").iterdir()]:
        assert path.is_symlink() and path.read_bytes()[:4] == b"data"
    world.iosig("finalize", *world.work.glob("out.*"), *(world.work / "moved").iterdir())
    assert world.is_settled()


@pytest.mark.parametrize("how", ["carry", "unlink", "replace"])
def test_data_that_are_not_temporary_survive_their_link(world: World, deleting: Path, how: str) -> None:
    """`mv` to another file system and `cp -a` with `rm` leave a copy of the link, which leads to the data."""
    (world.work / "moved").mkdir()
    max_at_once(world, deleting, 12, how, "random")
    assert len(world.journal()) == 12 and len(list(world.user_directory.iterdir())) >= 12
    for path in (world.work / "moved").iterdir():
        assert path.is_symlink() and path.read_bytes()[:4] == b"data"
    if how == "carry":
        world.iosig("finalize", *(world.work / "moved").iterdir())
        assert world.is_settled()
        return
    assert set(world.states().values()) == {"orphan" if how == "unlink" else "replaced"}
    if how == "unlink":
        world.iosig("finalize", "--all", "--drop-orphans")
        assert world.is_settled()


def test_deleted_data_that_a_program_has_open_can_be_read_and_sealed_ones_stay(world: World, tmp_path: Path) -> None:
    source = r"""
        #include <fcntl.h>
        #include <iosig/iosig.h>
        #include <unistd.h>
        int main(int argc, char **argv) {
          char byte;
          (void)argc;
          iosig_open_hint(AT_FDCWD, "out", O_CREAT | O_WRONLY, argv[1]);
          int fd = open("out", O_CREAT | O_WRONLY, 0644);
          if (fd < 0 || write(fd, "data", 4) != 4 || close(fd)) return 5;
          if (write(1, "x", 1) != 1 || read(0, &byte, 1) != 1) return 6;
          return unlink("out");
        }
    """
    program = compile_c(source, tmp_path, "one")
    for signature, reader in (("temp random", True), ("temp archive random", False)):
        text = world.storage.read_text()
        if "archive" in signature:
            world.storage.write_text(text.replace("persistent = false", "persistent = false\narchive = true"))
        with subprocess.Popen(
            [program, signature], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=world.work, env=world.env
        ) as run:
            assert run.stdout is not None and run.stdout.read(1) == b"x"
            held = (world.work / "out").open("rb") if reader else None
            run.communicate(b"x")
        if held:
            with held:
                assert held.read() == b"data"
        else:
            [entry] = [json.loads(path.read_text()) for path in world.journal()]
            assert Path(entry["destination"]).read_bytes() == b"data"
        world.iosig("finalize", "--all", "--drop-orphans")
        assert world.is_settled()


def test_a_program_that_closes_all_descriptors_loses_none_of_its_own(world: World, tmp_path: Path) -> None:
    """The descriptors by which libiosig knows its links may be closed by the program, which gets the numbers again."""
    source = r"""
        #define _GNU_SOURCE
        #include <fcntl.h>
        #include <iosig/iosig.h>
        #include <unistd.h>
        int main(void) {
          iosig_open_hint(AT_FDCWD, "out", O_CREAT | O_WRONLY, "random");
          int fd = open("out", O_CREAT | O_WRONLY, 0644);
          if (fd < 0 || write(fd, "data", 4) != 4) return 5;
          closefrom(3);
          fd = open("own", O_CREAT | O_WRONLY, 0644);
          for (int number = 3; number < 500; ++number)
            if (number != fd) dup2(fd, number);
          unlink("out");
          iosig_open_hint(AT_FDCWD, "other", O_CREAT | O_WRONLY, "random");
          for (int number = 3; number < 500; ++number)
            if (write(number, "x", 1) != 1) return 6;
          return 0;
        }
    """
    done = world.run(compile_c(source, tmp_path, "closing"))
    assert done.returncode == 0, done
    assert (world.work / "own").stat().st_size == 497
    world.iosig("finalize", "--all", "--drop-orphans")
    assert not os.path.lexists(world.work / "out") and world.is_settled()
