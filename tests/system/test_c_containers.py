"""The containers of iosig.h: what a C program does with them is what it would do with an ordinary file."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD, ROOT
from redirecting import World, compile_c

PROGRAM = r"""
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <iosig/iosig.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ranks = 4, each = 500, bytes = 32 };

static void expect(int ok, const char *what) {
  if (ok) return;
  fprintf(stderr, "%s: errno %d, %s\n", what, errno, iosig_last_error());
  exit(1);
}

static void fill(char *block, int rank, int n) { snprintf(block, bytes, "%30d", rank * 1000 + n); }

static void *write_as(void *argument) { /* a handle of its own */
  char block[bytes] = {0};
  const int rank = (int)(long)argument;
  iosig_container *file = iosig_container_open("shared", O_WRONLY, 0, 0);
  expect(file != 0, "open in a thread");
  for (int n = 0; n < each; ++n) {
    fill(block, rank, n);
    expect(iosig_container_pwrite(file, block, bytes, ((long)n * ranks + rank) * bytes) == bytes, "pwrite");
  }
  expect(iosig_container_close(file) == 0, "close");
  return 0;
}

static void check_shared(void) {
  char block[bytes] = {0}, wanted[bytes] = {0};
  iosig_container *file = iosig_container_open("shared", O_RDONLY, 0, 0);
  expect(file != 0, "open to read");
  expect(iosig_container_size(file) == (long)ranks * each * bytes, "size");
  for (int n = 0; n < ranks * each; ++n) {
    fill(wanted, n % ranks, n / ranks);
    expect(iosig_container_pread(file, block, bytes, (long)n * bytes) == bytes, "pread");
    expect(memcmp(block, wanted, bytes) == 0, "what was read");
  }
  expect(iosig_container_pread(file, block, bytes, (long)ranks * each * bytes) == 0, "read at the end");
  expect(iosig_container_pwrite(file, block, 1, 0) == -1 && errno == EBADF, "write to a file that was opened to read");
  iosig_container_close(file);
}

int main(int argc, char **argv) {
  const char *signature = argc > 1 ? argv[1] : 0;
  pthread_t threads[ranks];
  iosig_container *file = iosig_container_open("shared", O_RDWR | O_CREAT | O_EXCL, 0640, signature);
  expect(file != 0, "create");
  expect(iosig_container_open("shared", O_RDWR | O_CREAT | O_EXCL, 0640, signature) == 0 && errno == EEXIST, "O_EXCL");
  for (long rank = 0; rank < ranks; ++rank) pthread_create(&threads[rank], 0, write_as, (void *)rank);
  for (int rank = 0; rank < ranks; ++rank) pthread_join(threads[rank], 0);
  check_shared();

  /* processes */
  expect(iosig_container_truncate(file, 0) == 0 && iosig_container_size(file) == 0, "truncate");
  for (long rank = 0; rank < ranks; ++rank)
    if (fork() == 0) {
      iosig_container_close(file);
      write_as((void *)rank);
      _exit(0);
    }
  for (int rank = 0, status; rank < ranks; ++rank) expect(wait(&status) > 0 && status == 0, "child");
  check_shared();

  int64_t at = 0;
  errno = 77;
  expect(iosig_container_append(file, "end", 3, &at) == 3 && at == (long)ranks * each * bytes, "append");
  expect(errno == 77, "errno is kept");
  expect(iosig_container_sync(file) == 0, "sync");
  expect(iosig_container_pwrite(file, "x", 1, -1) == -1 && errno == EINVAL, "negative offset");
  expect(iosig_container_close(file) == 0, "close");

  expect(iosig_container_rename("shared", "renamed") == 0, "rename");
  expect(iosig_container_open("shared", O_RDONLY, 0, 0) == 0 && errno == ENOENT, "the old name");
  file = iosig_container_open("renamed", O_WRONLY | O_CREAT | O_TRUNC, 0640, 0);
  expect(file != 0 && iosig_container_size(file) == 0, "O_TRUNC");
  expect(iosig_container_pread(file, &at, 1, 0) == -1 && errno == EBADF, "read from a file that was opened to write");
  iosig_container_close(file);
  expect(iosig_container_unlink("renamed") == 0 && access("renamed", F_OK) != 0, "unlink");
  expect(iosig_container_unlink("renamed") == -1 && errno == ENOENT, "unlink again");

  iosig_container* held = iosig_container_open("held", O_RDWR | O_CREAT, 0644, 0);
  expect(held && iosig_container_pwrite(held, "hello", 5, 0) == 5, "a file that is open");
  expect(iosig_container_unlink("held") == 0 && access("held", F_OK) != 0, "unlink while open");
  char back[8] = "";
  expect(iosig_container_pread(held, back, 5, 0) == 5 && !memcmp(back, "hello", 5), "read after unlink");
  expect(iosig_container_pwrite(held, "J", 1, 0) == 1 && iosig_container_sync(held) == 0, "write after unlink");
  expect(iosig_container_pread(held, back, 5, 0) == 5 && !memcmp(back, "Jello", 5), "read what was written then");
  expect(iosig_container_close(held) == 0, "close after unlink");

  fclose(fopen("ordinary", "w"));
  expect(iosig_container_open("ordinary", O_RDWR, 0, 0) == 0 && errno == ENOTSUP, "an ordinary file");
  expect(strstr(iosig_last_error(), "'ordinary' is not a container") != 0, "the reason");
  expect(iosig_container_open(".", O_RDONLY, 0, 0) == 0 && errno == ENOTSUP, "a directory");
  expect(iosig_container_open("nowhere/at/all", O_RDWR | O_CREAT, 0600, 0) == 0 && errno == ENOENT, "no directory");
  expect(iosig_container_open(0, O_RDONLY, 0, 0) == 0 && errno == EFAULT, "no path");
  expect(iosig_container_open("new", O_RDWR | O_CREAT, 0600, "containr") == 0 && errno == EINVAL, "a signature");
  expect(iosig_container_close(0) == 0, "close nothing");
  puts("all as it should be");
  return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(PROGRAM, tmp_path_factory.mktemp("c"), "containers", "-Wextra", "-Werror", "-g")


def run(program: Path, directory: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **settings}
    return subprocess.run([program], cwd=directory, env=environment, capture_output=True, text=True)


def test_a_program_that_uses_containers(program: Path, tmp_path: Path) -> None:
    done = run(program, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "all as it should be\n", "")
    assert [path.name for path in tmp_path.iterdir()] == ["ordinary"]


def test_data_go_to_the_best_mount_point_of_a_signature(program: Path, world: World) -> None:
    done = world.run(program, "temp container")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"all as it should be\n", b"")
    assert list(world.user_directory.iterdir()) == []  # it was there, and removed with the container


def test_without_the_library_there_are_no_containers(tmp_path: Path) -> None:
    source = tmp_path / "none.c"
    source.write_text(
        "#include <errno.h>\n#include <iosig/iosig.h>\n"
        'int main(void) { return iosig_container_open("x", O_RDWR | O_CREAT, 0600, 0) == 0 ? errno : -1; }\n'
    )
    libraries = ["-L", str(BUILD / "lib"), "-liosig-link", "-ldl"]  # no run path
    command = ["gcc", "-I", str(ROOT / "include"), str(source), "-o", str(tmp_path / "none"), *libraries]
    subprocess.run(command, check=True)
    assert subprocess.run([tmp_path / "none"], cwd=tmp_path).returncode == 38  # ENOSYS
    assert not (tmp_path / "x").exists()


def test_a_disabled_library_makes_no_containers(program: Path, tmp_path: Path) -> None:
    done = run(program, tmp_path, IOSIG_DISABLE="1")
    assert done.returncode == 1
    assert done.stderr.startswith("create: errno 38")
    assert list(tmp_path.iterdir()) == []
