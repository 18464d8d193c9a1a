"""What the recorder knows of descriptors and of the working directory stays true through calls of the C library."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from conftest import Iosig
from tracing import rows_of

PROGRAM = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

static void closed_directory(void) { /* a pipe gets the number of a directory that closedir closed */
  char bytes[100] = {0};
  int ends[2], directory = open(".", O_RDONLY | O_DIRECTORY);
  closedir(fdopendir(directory));
  if (pipe(ends) != 0 || ends[0] != directory) exit(2);
  for (int n = 0; n < 5; ++n)
    if (write(ends[1], bytes, 100) != 100 || read(ends[0], bytes, 100) != 100) exit(3);
}

static void closed_pipe(void) { /* a file of the C library's own gets the number of a pipe that pclose closed */
  char line[100];
  FILE* command = popen("echo hello", "r");
  const int number = fileno(command);
  if (!fgets(line, sizeof line, command) || pclose(command) != 0) exit(2);
  FILE* file = tmpfile();
  if (fileno(file) != number) exit(3);
  if (write(number, line, 3) != 3 || write(number, line, 4) != 4) exit(4);
}

static void shared_offset(void) { /* children of system and popen write to the program's file */
  int fd = open("shared", O_RDWR | O_CREAT, 0644);
  dup2(fd, 1);
  if (write(1, "abc", 3) != 3 || system("echo 1234567") != 0 || write(1, "def", 3) != 3) exit(2);
  FILE* command = popen("cat", "w");
  fputs("89\n", command);
  if (pclose(command) != 0 || write(1, "x", 1) != 1) exit(3);
}

static void directories(void) {
  if (chdir("sub") != 0) exit(2);
  close(open("in-sub", O_RDWR | O_CREAT, 0644));
  if (chdir("..") != 0 || chdir("sub") != 0 || chdir("..") != 0) exit(3);
}

static void child_of_vfork(void) {
  int fd = open("first", O_RDWR | O_CREAT, 0644);
  if (vfork() == 0) {
    close(fd);
    if (chdir("sub") != 0 || open("of-child", O_RDWR | O_CREAT, 0644) != fd) _exit(1);
    _exit(0);
  }
  wait(NULL);
  if (write(fd, "parent", 6) != 6) exit(2);
  close(open("second", O_RDWR | O_CREAT, 0644));
}

/* A child with a copy of the memory, of which no handler of a fork learns, uses numbers again. Its first call is on a
   file that it has from its parent, and whose offset it shares. */
static void bare_child(int is_made_by_libc) {
  int ends[2], kept = open("kept", O_RDWR | O_CREAT, 0644), other = open("other", O_RDWR | O_CREAT, 0644);
  if (write(other, "x", 1) != 1 || write(kept, "12345", 5) != 5) exit(2);
  const pid_t child = is_made_by_libc ? _Fork() : syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    if (write(kept, "678", 3) != 3) _exit(1);
    close(open("more", O_RDWR | O_CREAT, 0644));
    int fd = open("a", O_RDWR | O_CREAT, 0644);
    if (write(fd, "a", 1) != 1) _exit(2);
    close(fd);
    if (open("b", O_RDWR | O_CREAT, 0644) != fd || write(fd, "bb", 2) != 2 || dup2(kept, fd) != fd) _exit(3);
    if (write(fd, "9", 1) != 1 || close(fd) != 0 || pipe(ends) != 0 || ends[0] != fd) _exit(4);
    if (write(ends[1], "in a pipe", 9) != 9 || read(ends[0], ends, 4) != 4) _exit(5);
    _exit(0);
  }
  int status = 1;
  if (waitpid(child, &status, 0) != child || status != 0) exit(3);
  if (write(kept, "0", 1) != 1) exit(4);
}

/* The first call of all is a child's that has its parent's memory. Says who the parent is. */
static void* begin_by_vfork(void* unused) {
  int ends[2], status = 1;
  if (vfork() == 0) {
    const int fd = open("of-child", O_RDWR | O_CREAT, 0644);
    if (write(fd, "child", 5) != 5) _exit(1);
    _exit(0);
  }
  wait(&status);
  if (status != 0 || pipe(ends) != 0 || write(ends[1], "in a pipe", 9) != 9 || read(ends[0], &status, 4) != 4) exit(2);
  for (int n = 0; n < 3; ++n) close(open("of-parent", O_RDWR | O_CREAT, 0644));
  dprintf(1, "%d %ld\n", getpid(), syscall(SYS_gettid));
  raise(SIGKILL);
  return unused;
}
static void first_by_vfork(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, begin_by_vfork, NULL) != 0 || pthread_join(thread, NULL) != 0) exit(5);
}

static void terminal(void) { /* login_tty gives the numbers of the standard files to a terminal */
  int other, own, out = open("out", O_RDWR | O_CREAT, 0644);
  dup2(out, 1);
  if (write(1, "in the file", 11) != 11 || fork() != 0) {
    wait(NULL);
    return;
  }
  if (write(1, "too", 3) != 3 || setsid() < 0 || openpty(&other, &own, NULL, NULL, NULL) != 0) _exit(2);
  if (login_tty(own) != 0 || write(1, "on the terminal", 15) != 15) _exit(3);
  _exit(0);
}

static void appended_stream(void) { /* the C library sets O_APPEND by a call of its own */
  char bytes[100] = {0};
  int fd = open("appended", O_RDWR | O_CREAT, 0644);
  if (write(fd, bytes, 100) != 100 || lseek(fd, 0, SEEK_SET) != 0) exit(2);
  FILE* stream = fdopen(fd, "a+");
  if (fputs("x", stream) < 0 || fflush(stream) != 0 || fputs("yz", stream) < 0 || fflush(stream) != 0) exit(3);
}

int main(int count, char** words) {
  if (count < 2) return 9;
  const char* what = words[1];
  if (!strcmp(what, "closed_directory")) closed_directory();
  if (!strcmp(what, "closed_pipe")) closed_pipe();
  if (!strcmp(what, "shared_offset")) shared_offset();
  if (!strcmp(what, "directories")) directories();
  if (!strcmp(what, "child_of_vfork")) child_of_vfork();
  if (!strcmp(what, "bare_child")) bare_child(0);
  if (!strcmp(what, "child_of_libc")) bare_child(1);
  if (!strcmp(what, "first_by_vfork")) first_by_vfork();
  if (!strcmp(what, "terminal")) terminal();
  if (!strcmp(what, "appended_stream")) appended_stream();
  return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("descriptors") / "descriptors.c"
    source.write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-w", "-o", source.with_suffix(""), source, "-lutil", "-pthread"], check=True)
    return source.with_suffix("")


def traced(iosig: Iosig, program: Path, at: Path, what: str) -> list[tuple[str, str, int | None, int | None]]:
    """(call, path relative to the working directory, offset, result) of the program's own calls on files there."""
    work = at / "work"
    (work / "sub").mkdir(parents=True)
    iosig("trace", "-o", at / "trace", "--", program, what, cwd=work)
    rows = rows_of(iosig, at / "trace")
    pid = rows[-1].pid  # the program outlives its children
    return [
        (row.call, row.path.removeprefix(f"{work}/"), row.offset, row.result)
        for row in rows
        if row.pid == pid and (row.path.startswith(str(work)) or "(deleted)" in row.path)
    ]


def test_a_pipe_with_the_number_of_a_directory_is_no_file(iosig: Iosig, program: Path, tmp_path: Path) -> None:
    assert "read" not in [call for call, *_ in traced(iosig, program, tmp_path, "closed_directory")]


def test_a_file_with_the_number_of_a_pipe_is_traced(iosig: Iosig, program: Path, tmp_path: Path) -> None:
    rows = traced(iosig, program, tmp_path, "closed_pipe")
    assert [row[2:] for row in rows if row[0] == "write"] == [(0, 3), (3, 4)]


def test_offsets_after_children_of_the_c_library_are_those_of_the_kernel(
    iosig: Iosig, program: Path, tmp_path: Path
) -> None:
    rows = traced(iosig, program, tmp_path, "shared_offset")
    assert [row[1:] for row in rows if row[0] == "write"] == [("shared", 0, 3), ("shared", 11, 3), ("shared", 17, 1)]


def test_paths_are_those_of_the_directory_before_chdir(iosig: Iosig, program: Path, tmp_path: Path) -> None:
    rows = traced(iosig, program, tmp_path, "directories")
    assert [path for call, path, *_ in rows if call == "chdir"] == ["sub", "sub/..", "sub", "sub/.."]
    assert ("open", "sub/in-sub") in [row[:2] for row in rows]


def test_a_child_of_vfork_changes_nothing_of_its_parents(iosig: Iosig, program: Path, tmp_path: Path) -> None:
    rows = traced(iosig, program, tmp_path, "child_of_vfork")
    assert ("write", "first", 0, 6) in rows
    assert [path for call, path, *_ in rows if call == "open"][-1] == "second"


@pytest.mark.parametrize("what", ["bare_child", "child_of_libc"])
def test_a_child_of_which_no_fork_handler_learns_has_files_and_offsets_of_its_own(
    iosig: Iosig, program: Path, tmp_path: Path, what: str
) -> None:
    parents = traced(iosig, program, tmp_path, what)
    assert [row[1:] for row in parents if row[0] == "write" and row[1] == "kept"] == [("kept", 0, 5), ("kept", 9, 1)]
    pid = rows_of(iosig, tmp_path / "trace")[-1].pid
    rows = [row for row in rows_of(iosig, tmp_path / "trace") if row.pid != pid]
    assert [(row.call, Path(row.path).name, row.offset) for row in rows if row.call in ("read", "write")] == [
        ("write", "kept", 5), ("write", "a", 0), ("write", "b", 0), ("write", "kept", 8)
    ]  # fmt: skip
    assert [Path(row.path).name for row in rows if row.call == "inherited"] == ["kept"]


def test_what_goes_to_the_terminal_of_login_tty_is_in_no_file(iosig: Iosig, program: Path, tmp_path: Path) -> None:
    traced(iosig, program, tmp_path, "terminal")
    rows = [row for row in rows_of(iosig, tmp_path / "trace") if row.call == "write"]
    assert [(Path(row.path).name, row.offset, row.length) for row in rows] == [("out", 0, 11), ("out", 11, 3)]


def test_the_first_call_may_be_that_of_a_child_of_vfork(iosig: Iosig, program: Path, tmp_path: Path) -> None:
    work, trace = tmp_path / "work", tmp_path / "trace"
    work.mkdir()
    done = subprocess.run([iosig.binary, "trace", "-o", trace, "--", program, "first_by_vfork"], cwd=work,
                          env=iosig.env, capture_output=True, text=True, check=False, timeout=60)  # fmt: skip
    pid, tid = map(int, done.stdout.split())
    rows = [row for row in rows_of(iosig, trace) if row.path.startswith(str(work))]
    assert {(row.pid, row.tid) for row in rows} == {(pid, tid)}
    assert [Path(row.path).name for row in rows if row.call == "write"] == ["of-child"]
    (process,) = iosig.json("trace", "info", trace)["processes"]
    assert process["pid"] == pid and not process["complete"], "the child's end is not the killed parent's"


def test_a_stream_that_appends_to_an_open_descriptor_writes_at_the_end(
    iosig: Iosig, program: Path, tmp_path: Path
) -> None:
    rows = traced(iosig, program, tmp_path, "appended_stream")
    assert [row[2:] for row in rows if row[0] == "write"] == [(0, 100), (100, 1), (101, 2)]
