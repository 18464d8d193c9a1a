"""`prepare --drain`: the library starts the drain at the last close, if the one that waited for it is gone."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from draining import Drains, eventually, is_alive, is_home
from redirecting import World

# WAY PATH...: writes each path and closes it in this way. Afterwards, unless it was killed, "unseen" if the process had
# no signal and no child that it did not make. Before what it does last, it waits for a line.
PROGRAM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int signals;
static void count(int number) { (void)number; ++signals; }
static void wait_for_line(void) { char byte; while (read(0, &byte, 1) == 1 && byte != '\n') {} }
static void say(const char *text) { if (write(1, text, strlen(text)) < 0) abort(); }
static int open_written(const char *path) {
  int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  if (fd < 0 || write(fd, "data", 4) != 4) exit(3);
  return fd;
}
static void *in_thread(void *path) {
  int fd = open_written(path), other = dup(fd);
  close(fd);
  close(other);
  return NULL;
}

int main(int argc, char **argv) {
  const char *way = argv[1], *path = argv[2];
  struct sigaction counting = {.sa_handler = count};
  sigaction(SIGCHLD, &counting, NULL);
  if (!strcmp(way, "threads")) {
    pthread_t threads[16];
    for (int n = 2; n < argc; ++n) pthread_create(&threads[n], NULL, in_thread, argv[n]);
    for (int n = 2; n < argc; ++n) pthread_join(threads[n], NULL);
  } else if (!strcmp(way, "stdio")) {
    FILE *file = fopen(path, "w");
    if (!file || fputs("data", file) < 0 || fclose(file) != 0) return 3;
  } else {
    if (!strcmp(way, "subreaper")) prctl(PR_SET_CHILD_SUBREAPER, 1);
    int fd = open_written(path), kept = -1;
    if (!strcmp(way, "dup")) {
      if (dup2(kept = fcntl(fd, F_DUPFD, 20), 30) != 30) return 3;
      close(fd);
      close(kept);
      say("one is left\n");
      wait_for_line();
      fd = 30;
    }
    if (!strcmp(way, "fork")) {
      pid_t child = fork();
      if (child == 0) {
        say("the child has it\n");
        wait_for_line();
        _exit(write(fd, "more", 4) != 4);
      }
      close(fd);
      int status = -1;
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
      --signals;
      return status != 0 || (say("unseen\n"), 0);
    }
    if (!strcmp(way, "kill")) raise(SIGKILL);
    if (!strcmp(way, "exit")) return 0;
    if (!strcmp(way, "_exit")) _exit(0);
    if (!strcmp(way, "exec")) execl("/bin/sleep", "sleep", "0", (char *)NULL);
    close(fd);
  }
  usleep(300000);
  if (waitpid(-1, NULL, __WALL | WNOHANG) == -1 && errno == ECHILD && signals == 0) say("unseen\n");
  return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("closing") / "closing.c"
    source.write_text(PROGRAM)
    subprocess.run(["cc", "-o", source.with_suffix(""), source, "-lpthread"], check=True)
    return source.with_suffix("")


class Closing:
    """Prepared files whose drains were killed, and programs that close them."""

    def __init__(self, world: World, drains: Drains, program: Path) -> None:
        self.world, self.drains, self.program = world, drains, program

    def prepared(self, name: str = "out") -> Path:
        path = self.world.work / name
        said = self.world.iosig("prepare", "--drain", path, "random").stdout
        pid = int(re.findall(r"process (\d+) settles it", said)[0])
        self.drains.pids.append(pid)
        eventually(lambda: self.drains.of(path))
        subprocess.run(["kill", "-KILL", str(pid)], check=True)
        eventually(lambda: not is_alive(pid))
        return path

    def start(self, way: str, *paths: Path) -> subprocess.Popen[str]:
        command = [self.world.iosig.binary, "run", "--", self.program, way, *paths]
        return subprocess.Popen(
            [*map(str, command)], env=self.world.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def is_draining(self, path: Path) -> bool:
        drain = self.drains.of(path)
        if drain and drain["pid"] not in self.drains.pids and is_alive(drain["pid"]):
            self.drains.pids.append(drain["pid"])
            return True
        return False


@pytest.fixture
def closing(world: World, drains: Drains, program: Path) -> Closing:
    return Closing(world, drains, program)


@pytest.mark.parametrize("way", ["close", "stdio", "exit", "_exit", "exec"])
def test_a_file_comes_home_after_its_last_close(closing: Closing, way: str) -> None:
    path = closing.prepared()
    program = closing.start(way, path)
    said, _ = program.communicate(timeout=60)
    assert program.returncode == 0 and said == ("unseen\n" if way in ("close", "stdio") else "")
    eventually(lambda: is_home(path), closing.drains.log())
    assert path.read_bytes() == b"data"
    eventually(closing.world.is_settled)
    requests = closing.world.state / "journal/.requests"
    eventually(lambda: not requests.exists())  # it goes just after the entry


def test_threads_that_close_duplicates_start_one_drain_for_each_file(closing: Closing) -> None:
    paths = [closing.prepared(f"out{n}") for n in range(4)]
    program = closing.start("threads", *paths)
    assert program.communicate(timeout=60)[0] == "unseen\n" and program.returncode == 0
    for path in paths:
        eventually(lambda path=path: is_home(path), closing.drains.log())
    eventually(closing.world.is_settled)
    eventually(lambda: closing.drains.log().count("brought home") >= len(paths))
    assert closing.drains.log().count("brought home") == len(paths)


def test_nothing_starts_before_the_last_duplicate_is_closed(closing: Closing) -> None:
    path = closing.prepared()
    program = closing.start("dup", path)
    assert program.stdout is not None and program.stdout.readline() == "one is left\n"
    assert not closing.is_draining(path) and path.is_symlink()
    assert program.communicate("\n", timeout=60)[0] == "unseen\n"
    eventually(lambda: is_home(path), closing.drains.log())


def test_the_drain_waits_for_a_child_that_has_the_file_open(closing: Closing) -> None:
    path = closing.prepared()
    program = closing.start("fork", path)
    assert program.stdout is not None and program.stdout.readline() == "the child has it\n"
    eventually(lambda: closing.is_draining(path))
    eventually(lambda: "has it open" in (closing.drains.of(path) or {}).get("message", ""))
    assert path.is_symlink()
    assert program.communicate("\n", timeout=60)[0] == "unseen\n"
    eventually(lambda: is_home(path), closing.drains.log())
    assert path.read_bytes() == b"datamore"


def test_a_program_that_is_killed_loses_nothing(closing: Closing) -> None:
    path = closing.prepared()
    program = closing.start("kill", path)
    assert program.wait(timeout=60) == -signal.SIGKILL
    program.communicate()
    assert path.is_symlink() and not closing.is_draining(path)
    closing.world.iosig("finalize", path)
    assert is_home(path) and path.read_bytes() == b"data" and closing.world.is_settled()


def test_a_program_that_adopts_orphans_or_was_not_asked_gets_no_drain(closing: Closing) -> None:
    path = closing.prepared()
    assert closing.start("subreaper", path).communicate(timeout=60)[0] == "unseen\n"
    asked_nothing = closing.world.work / "other"
    closing.world.iosig("prepare", asked_nothing, "random")
    assert closing.start("close", asked_nothing).communicate(timeout=60)[0] == "unseen\n"
    for each in (path, asked_nothing):
        assert each.is_symlink() and not closing.is_draining(each)
        closing.world.iosig("finalize", each)
        assert each.read_bytes() == b"data"
