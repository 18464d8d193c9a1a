"""libiosig-preload.so: unmodified programs read and write containers, and get what a plain file gives them."""

from __future__ import annotations

import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import BUILD, ROOT, Iosig

LIBRARY = BUILD / "lib" / "libiosig-preload.so"

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="built without libiosig-preload.so")


class Preloaded:
    """Runs programs in `folder`, where every new file but those that end in .plain becomes a container."""

    def __init__(self, iosig: Iosig, directory: Path) -> None:
        self.iosig = iosig
        self.directory = directory
        self.numbers = itertools.count()
        directory.mkdir()
        self.env = {
            **iosig.env,
            "LD_PRELOAD": str(LIBRARY),
            "IOSIG_CONTAINERS": f"{directory}/*[!n]:{directory}/*/*[!n]",
            "LC_ALL": "C",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def start(self, *command: object, **options: Any) -> subprocess.Popen[bytes]:
        options = {
            "cwd": self.directory,
            "env": self.env,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            **options,
        }
        return subprocess.Popen([*map(str, command)], **options)

    def __call__(self, *command: object, status: int = 0, quiet: bool = True, **options: Any) -> str:
        """What the program says on stdout; `quiet`: and nothing on stderr."""
        program = self.start(*command, **options)
        said, complained = program.communicate(timeout=60)
        assert program.returncode == status, f"{command}: {program.returncode} {complained.decode()}"
        assert not (quiet and complained), f"{command}: {complained.decode()}"
        return said.decode(errors="replace")

    def python(self, text: str, *arguments: object, **options: Any) -> str:
        return self(sys.executable, "-S", "-E", "-c", text, *arguments, **options)

    def is_container(self, name: str) -> bool:
        return (self.directory / name).is_dir()

    def content(self, name: str) -> bytes:
        """As `iosig container export` gives it."""
        to = self.directory.parent / f"exported.{next(self.numbers)}"
        self.iosig("container", "export", self.directory / name, to)
        return to.read_bytes()

    def is_sound(self, name: str) -> bool:
        return bool(self.iosig.json("container", "check", self.directory / name, check=None)["sound"])


@pytest.fixture
def run(iosig: Iosig, tmp_path: Path) -> Preloaded:
    return Preloaded(iosig, tmp_path / "directory")


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Compiles a C program, once."""
    made: dict[Path, Path] = {}

    def program(source: Path) -> Path:
        if source not in made:
            made[source] = tmp_path_factory.mktemp("compiled") / source.stem
            subprocess.run(["gcc", "-O1", "-o", str(made[source]), str(source), "-pthread"], check=True)
        return made[source]

    return program


def assert_same_as_plain(run: Preloaded, program: Path, least: int, *arguments: str) -> None:
    """The program says the same on containers as on plain files: more than `least` characters."""
    command = [str(program), *arguments]
    plain = run.directory.parent / "plain"
    plain.mkdir()
    wanted = subprocess.run(command, cwd=plain, capture_output=True, text=True, check=True).stdout
    assert run(*command).splitlines() == wanted.splitlines() and len(wanted) > least


def sample(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.mark.parametrize("seed", range(1, 13))
def test_random_calls_give_what_they_give_on_plain_files(
    run: Preloaded, compiled: Callable[[Path], Path], seed: int
) -> None:
    program = compiled(ROOT / "tests/support/random_calls.c")
    plain = run.directory.parent / "plain"
    plain.mkdir()
    command = [str(program), str(seed), "600"]
    wanted = subprocess.run(command, cwd=plain, env=run.iosig.env, capture_output=True, text=True, check=True)
    got = run(*command)
    for one, other in zip(wanted.stdout.splitlines(), got.splitlines(), strict=False):
        assert one == other, f"{program} {seed} 600"
    assert wanted.stdout == got
    assert sorted(path.name for path in plain.iterdir()) == sorted(path.name for path in run.directory.iterdir())
    for path in plain.iterdir():
        assert run.content(path.name) == path.read_bytes()
        assert run.is_sound(path.name)


def test_tools_copy_compare_and_read(run: Preloaded) -> None:
    source = run.directory.parent / "source"
    for size in (0, 1, 4096, 1_234_567):
        source.write_bytes(sample(size, size))
        run("cp", source, "copy")
        assert run.is_container("copy") and run.content("copy") == source.read_bytes()
        run("cmp", source, "copy")
        run("cp", "copy", "again")
        run("cmp", "copy", "again")
        assert run("wc", "-c", "again").split()[0] == str(size)
        assert run("sh", "-c", "cat copy | cmp - again && cat again again | wc -c").strip() == str(2 * size)
        run("rm", "copy", "again")
    assert list(run.directory.iterdir()) == []


def test_dd_writes_blocks_in_any_order(run: Preloaded) -> None:
    source = run.directory.parent / "source"
    source.write_bytes(sample(1, 10 * 512))
    for block in (7, 0, 3, 9, 1, 8, 2, 6, 5, 4):
        run(
            *f"dd if={source} of=file bs=512 count=1 conv=notrunc status=none".split(), f"skip={block}", f"seek={block}"
        )
    assert run.content("file") == source.read_bytes()
    run(*["dd", "if=file", "of=tail", "bs=1000", "skip=2", "status=none"])
    assert run.content("tail") == source.read_bytes()[2000:]
    run(*f"dd if={source} of=file bs=512 count=1 seek=3 status=none".split())  # cuts what is behind
    assert run.content("file") == source.read_bytes()[: 3 * 512] + source.read_bytes()[:512]


def test_tar_goes_both_ways(run: Preloaded) -> None:
    plain = run.directory.parent / "plain"
    (plain / "below").mkdir(parents=True)
    for size in (0, 700, 100_000):
        (plain / "below" / f"{size}").write_bytes(sample(size, size))
    (plain / "link").symlink_to("below/700")
    run("tar", "-cf", "archive", "-C", plain, ".")
    assert run.is_container("archive")
    run("sh", "-c", "mkdir out && tar -xf archive -C out && tar -df archive -C out")
    assert (run.directory / "out/below").is_dir() and not (
        run.directory / "out/below/700"
    ).is_dir()  # the glob ends above it
    run(
        "sh",
        "-c",
        f"cd {plain}/below && cp 0 700 100000 {run.directory}/out"
        f" && tar -cf {plain}/again.tar -C {run.directory} out/700",
    )
    assert subprocess.run(["tar", "-xOf", plain / "again.tar"], capture_output=True, check=True).stdout == sample(
        700, 700
    )
    listed = run("ls", "-l", "out/100000")
    assert listed.startswith("-") and " 100000 " in listed


def test_truncating_open_reads_the_records_once_and_no_closed_index(run: Preloaded, tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    for _ in range(5):
        run("sh", "-c", "echo line >> out")
    trace = tmp_path / "trace"
    run("strace", "-f", "-qq", "-o", trace, "-e", "trace=openat", "sh", "-c", ": > out")
    opened = re.findall(r'"(index\.\d+|closed\.[0-9a-f]+)", (\S*)', trace.read_text())
    emptying = next(n for n, (_, flags) in enumerate(opened) if "O_PATH" in flags)
    read_before, read_after = (
        [name for name, flags in part if "O_RDONLY" in flags and "O_PATH" not in flags]
        for part in (opened[:emptying], opened[emptying:])
    )
    assert len(read_before) == len(set(read_before)), "the view reads each once"
    assert {name for name in read_before if name.startswith("index")} <= {"index.5"}, "the writer of the truncation"
    assert [name.partition(".")[0] for name in read_after] == ["closed"], "the emptying removes the records"
    assert run.content("out") == b""


EMPTY_AGAIN_AND_AGAIN = """
import os, random, sys, time
chance, end = random.Random(int(sys.argv[1])), time.monotonic() + 4
while time.monotonic() < end:
    flags = os.O_TRUNC if chance.random() < 0.15 else os.O_APPEND if chance.random() < 0.6 else 0
    fd = os.open("out", os.O_WRONLY | os.O_CREAT | flags)
    for _ in range(chance.randrange(4)): os.write(fd, b"x" * chance.randrange(1, 5000))
    os.close(fd)
"""
READ_AGAIN_AND_AGAIN = """
import os, time
end = time.monotonic() + 4
while time.monotonic() < end:
    fd = os.open("out", os.O_RDONLY | os.O_CREAT)
    content = b"".join(iter(lambda: os.read(fd, 1 << 20), b""))
    assert not content.strip(b"x\\0"), content
    os.close(fd)
"""


def test_a_reader_beside_programs_that_empty_the_file_gets_no_error(run: Preloaded, tmp_path: Path) -> None:
    """The droppings that are deleted then are those that the reader is about to open."""
    for name, text in (("empty", EMPTY_AGAIN_AND_AGAIN), ("read", READ_AGAIN_AND_AGAIN)):
        (tmp_path / name).write_text(text)
    empty, read = f"{sys.executable} {tmp_path}/empty", f"{sys.executable} {tmp_path}/read"
    run("sh", "-c", f"{empty} 1 & {empty} 2 & {empty} 3 & {read} & {read}; wait")


SYSCALLS = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>
static int is_text(const struct dirent* each) { return each->d_name[0] == 't'; }
int main(void) {
  struct statx status = {0};
  struct dirent** names;
  char bytes[8] = "";
  const int from = syscall(SYS_openat, AT_FDCWD, "text", O_RDONLY), to = open("there", O_RDWR | O_CREAT, 0644);
  syscall(SYS_statx, AT_FDCWD, "text", 0, STATX_BASIC_STATS, &status);
  printf("%o %d\n", status.stx_mode, (int)status.stx_size);
  printf("%d ", (int)syscall(SYS_copy_file_range, from, NULL, to, NULL, 100, 0));
  printf("%d %s\n", (int)syscall(SYS_pread64, to, bytes, sizeof bytes - 1, 0), bytes);
  const long renamed = syscall(SYS_renameat2, AT_FDCWD, "there", AT_FDCWD, "text", 1 /* RENAME_NOREPLACE */);
  printf("%d\n", renamed == -1 && errno == EEXIST);
  const int count = scandir(".", &names, is_text, alphasort);
  for (int n = 0; n < count; ++n) printf("%s %d\n", names[n]->d_name, names[n]->d_type == DT_REG);
  return syscall(SYS_getpid) == getpid() ? 0 : 1;
}
"""


def test_calls_by_number_and_scandir_are_those_of_files(run: Preloaded, tmp_path: Path) -> None:
    """Node.js calls statx and copy_file_range by number, and lists directories by scandir."""
    (tmp_path / "calls.c").write_text(SYSCALLS)
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "calls", tmp_path / "calls.c"], check=True)
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "text").write_text("line\n")
    (plain / "text").chmod(0o644)
    run("sh", "-c", "umask 022; echo line > text")
    command = [str(tmp_path / "calls")]
    wanted = subprocess.run(command, cwd=plain, capture_output=True, text=True, check=True).stdout
    assert run(*command) == wanted
    assert run.is_container("there") and run.content("there") == b"line\n"


DESCRIPTORS_BY_NUMBER = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static int ends[2];
static void *reader(void *unused) {
  char byte;
  syscall(SYS_read, ends[0], &byte, 1);  /* no cancellation point */
  puts("read");
  fflush(stdout);
  for (;;) pause();
}
int main(void) {
  int fd = open("container", O_RDWR | O_CREAT | O_TRUNC, 0644), log = open("log", O_RDWR | O_CREAT | O_TRUNC, 0644);
  write(fd, "0123456789", 10);
  if (syscall(SYS_dup3, log, fd, 0) != fd || write(fd, "logged\n", 7) != 7) return 1;
  printf("log %ld\n", (long)lseek(log, 0, SEEK_END));
  fd = open("container", O_RDWR);
  syscall(SYS_close_range, fd, fd, 0);
  pipe(ends);
  char text[8] = "";
  write(ends[1], "piped", 5);
  printf("%s %ld %s\n", ends[0] == fd ? "same" : "other", (long)read(ends[0], text, 5), text);
  int two = syscall(SYS_dup, open("container", O_RDONLY));
  printf("%ld %s\n", (long)pread(two, text, 5, 2), text);
  pthread_t thread;
  void *result;
  pthread_create(&thread, NULL, reader, NULL);
  usleep(50000);
  pthread_cancel(thread);
  write(ends[1], "x", 1);
  pthread_join(thread, &result);
  puts(result == PTHREAD_CANCELED ? "cancelled" : "ended");
}
"""


def test_descriptors_and_threads_under_calls_by_number(run: Preloaded, tmp_path: Path) -> None:
    (tmp_path / "numbers.c").write_text(DESCRIPTORS_BY_NUMBER)
    subprocess.run(["gcc", "-w", "-o", tmp_path / "numbers", tmp_path / "numbers.c", "-lpthread"], check=True)
    plain = tmp_path / "plain"
    plain.mkdir()
    wanted = subprocess.run([tmp_path / "numbers"], cwd=plain, capture_output=True, text=True, check=True).stdout
    assert wanted == "log 7\nsame 5 piped\n5 23456\nread\ncancelled\n"
    assert run(str(tmp_path / "numbers")) == wanted
    assert run.content("container") == b"0123456789"


OTHER_LIBRARY = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static int calls;
void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset) {
  ++calls;
  return (void *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
}
int dup(int fd) { return ++calls, syscall(SYS_dup, fd); }
int close(int fd) { return ++calls, syscall(SYS_close, fd); }
int fstat(int fd, struct stat *status) { return ++calls, syscall(SYS_fstat, fd, status); }
int openat(int directory, const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int mode = va_arg(rest, int);
  va_end(rest);
  return ++calls, syscall(SYS_openat, directory, path, flags, mode);
}
int calls_so_far(void) { return calls; }
"""

BESIDE_OTHER_LIBRARY = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
int calls_so_far(void);
int main(void) {
  char text[8] = "";
  struct stat status;
  const int before = calls_so_far();
  void *page = (void *)syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const int two = syscall(SYS_dup, 0);
  syscall(SYS_fstat, two, &status);
  syscall(SYS_close, two);
  printf("%d %d\n", page != MAP_FAILED, calls_so_far() - before);
  const int plain = openat(AT_FDCWD, "log.plain", O_RDWR | O_CREAT, 0644);
  const int box = openat(AT_FDCWD, "box", O_RDWR | O_CREAT, 0644);
  write(plain, "a", 1);
  write(box, "boxed", 5);
  fstat(dup(plain), &status);
  printf("%d ", (int)status.st_size);
  fstat(dup(box), &status);
  const char *mapped = mmap(NULL, 5, PROT_READ, MAP_PRIVATE, box, 0);
  printf("%d %.5s\n", (int)status.st_size, mapped);
  return close(plain) + close(box);
}
"""


def test_beside_a_library_that_makes_its_calls_by_number(run: Preloaded, tmp_path: Path) -> None:
    """UCX replaces mmap() so. A call by number on an ordinary file does not come back to that library."""
    for name, text in (("other", OTHER_LIBRARY), ("beside", BESIDE_OTHER_LIBRARY)):
        (tmp_path / f"{name}.c").write_text(text)
    library = tmp_path / "libother.so"
    subprocess.run(["gcc", "-w", "-O1", "-shared", "-fPIC", "-o", library, tmp_path / "other.c"], check=True)
    subprocess.run(["gcc", "-w", "-O1", "-o", tmp_path / "beside", tmp_path / "beside.c", library], check=True)
    assert run(str(tmp_path / "beside")) == "1 0\n1 5 boxed\n"
    assert run.is_container("box") and run.content("box") == b"boxed"


WALKS = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static char lines[100][200];
static int count;
static int order(const void *one, const void *two) { return strcmp(one, two); }
static void add(const char *path, int type, const struct stat *status) {
  const int is_file = status != NULL && S_ISREG(status->st_mode);
  snprintf(lines[count++], sizeof lines[0], "%s %d %d", path, type, is_file ? (int)status->st_size : -1);
}
static void tell(const char *title, int result) {
  qsort(lines, count, sizeof lines[0], order);
  printf("%s %d\n", title, result);
  for (int n = 0; n < count; ++n) puts(lines[n]);
  count = 0;
}
static int visit(const char *path, const struct stat *status, int type, struct FTW *place) {
  add(path, type * 100 + place->level * 10 + (place->base == strrchr(path, '/') - path + 1), status);
  return 0;
}
static int visit_short(const char *path, const struct stat *status, int type) { return add(path, type, status), 0; }
static int stop(const char *path, const struct stat *status, int type, struct FTW *place) {
  return type == FTW_F ? 42 : 0;
}
static int skip(const char *path, const struct stat *status, int type, struct FTW *place) {
  add(path, type, status);
  return strcmp(path, "tree/sub") == 0 ? FTW_SKIP_SUBTREE : FTW_CONTINUE;
}
static int delete_all(const char *path, const struct stat *status, int type, struct FTW *place) {
  return remove(path);
}
static int by_name(const FTSENT **one, const FTSENT **two) { return strcmp((*one)->fts_name, (*two)->fts_name); }
static void walk_fts(int options, int asks_children) {
  char *roots[] = {"tree", NULL};
  FTS *tree = fts_open(roots, options, by_name);
  for (FTSENT *each; (each = fts_read(tree)) != NULL;) {
    add(each->fts_path, each->fts_info, (options & FTS_NOSTAT) ? NULL : each->fts_statp);
    if (asks_children && each->fts_info == FTS_D)
      for (FTSENT *child = fts_children(tree, 0); child != NULL; child = child->fts_link)
        add(child->fts_name, 1000 + child->fts_info, child->fts_statp);
  }
  fts_close(tree);
}
int main(void) {
  const int flags[] = {0, FTW_PHYS, FTW_DEPTH, FTW_CHDIR, FTW_DEPTH | FTW_PHYS, FTW_DEPTH | FTW_PHYS | FTW_CHDIR};
  for (int n = 0; n < 6; ++n) tell("nftw", nftw("tree", visit, 5, flags[n]));
  tell("nftw of a file", nftw("tree/file", visit, 5, 0));
  tell("stop", nftw("tree", stop, 5, FTW_PHYS));
  tell("skip", nftw("tree", skip, 5, FTW_ACTIONRETVAL));
  tell("ftw", ftw("tree", visit_short, 5));
  walk_fts(FTS_PHYSICAL, 0), tell("fts", 0);
  walk_fts(FTS_PHYSICAL, 1), tell("fts", 0);
  walk_fts(FTS_LOGICAL | FTS_NOCHDIR, 0), tell("fts", 0);
  walk_fts(FTS_PHYSICAL | FTS_NOSTAT, 0), tell("fts", 0);
  glob_t found;
  const char *patterns[] = {"tree/*", "tree/*/*", "tr?e/file", "*/*/*/*"};
  for (int n = 0; n < 4; ++n) {
    const int result = glob(patterns[n], GLOB_MARK, NULL, &found);
    for (size_t at = 0; result == 0 && at < found.gl_pathc; ++at) add(found.gl_pathv[at], found.gl_flags, NULL);
    if (result == 0) globfree(&found);
    tell("glob", result);
  }
  struct dirent **names;
  const int top = open("tree", O_RDONLY | O_DIRECTORY), entries = scandirat(top, "sub", &names, NULL, alphasort);
  for (int n = 0; n < entries; ++n) add(names[n]->d_name, names[n]->d_type, NULL);
  tell("scandirat", entries);
  tell("removed", nftw("tree", delete_all, 5, FTW_DEPTH | FTW_PHYS));
  return access("tree", F_OK) == 0;
}
"""


def test_the_walks_of_libc_find_files(run: Preloaded, tmp_path: Path) -> None:
    (tmp_path / "walks.c").write_text(WALKS)
    subprocess.run(["gcc", "-w", "-o", tmp_path / "walks", tmp_path / "walks.c"], check=True)
    make = "mkdir -p tree/sub/deep; echo text > tree/file; echo longer > tree/sub/file; : > tree/sub/deep/empty;"
    make += "echo text beside > beside; ln -s ../beside tree/link; ln -s nothing tree/dangling; ln -s sub tree/way"
    plain = tmp_path / "plain"
    plain.mkdir()
    subprocess.run(["sh", "-c", make], cwd=plain, check=True)
    wanted = subprocess.run([tmp_path / "walks"], cwd=plain, capture_output=True, text=True, check=True).stdout
    assert "stop 42" in wanted and "tree/sub/file" in wanted
    run.env["IOSIG_CONTAINERS"] = (
        f"{run.directory}/beside:{run.directory}/tree/*:{run.directory}/tree/sub/*:{run.directory}/tree/sub/deep/*"
    )
    run("sh", "-c", make)
    assert run.is_container("tree/sub/file")
    assert run(str(tmp_path / "walks")) == wanted
    assert not (run.directory / "tree").exists()


DAEMON = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **arguments) {
  const int out = open("out", O_RDWR | O_CREAT | O_APPEND, 0644);
  dup2(out, 1);
  write(1, "before\n", 7);
  if (strcmp(arguments[1], "daemon") == 0) {
    daemon(1, 0);
    write(1, "after\n", 6);
    write(out, "logged\n", 7);
  } else {
    int terminal;
    const pid_t child = forkpty(&terminal, NULL, NULL, NULL);
    if (child == 0) return write(1, "after\n", 6) != 6;
    char text[32] = "";
    read(terminal, text, sizeof text - 1);
    waitpid(child, NULL, 0);
    write(out, strstr(text, "after") ? "logged\n" : text, 7);
  }
  return close(out) + open("done.plain", O_CREAT | O_WRONLY, 0644) < 0;
}
"""


@pytest.mark.parametrize("way", ["daemon", "forkpty"])
def test_output_after_daemon_does_not_go_into_the_container(run: Preloaded, tmp_path: Path, way: str) -> None:
    (tmp_path / "daemon.c").write_text(DAEMON)
    subprocess.run(["gcc", "-w", "-o", tmp_path / "daemon", tmp_path / "daemon.c"], check=True)
    run(str(tmp_path / "daemon"), way)
    limit = time.monotonic() + 20
    while not (run.directory / "done.plain").exists() and time.monotonic() < limit:
        time.sleep(0.01)
    assert run.is_container("out") and run.content("out") == b"before\nlogged\n"


WILD_POINTERS = """
import ctypes, errno, fcntl, os
libc = ctypes.CDLL(None, use_errno=True)
fd, other = os.open("box", os.O_RDWR | os.O_CREAT), os.open("other", os.O_RDWR | os.O_CREAT)
os.write(fd, b"text")
wild, size = ctypes.c_void_p(1), ctypes.c_size_t(4)
calls = {
    "fstat": lambda: libc.fstat(fd, None),
    "lock": lambda: libc.fcntl(fd, fcntl.F_SETLK, wild),
    "sendfile": lambda: libc.sendfile(other, fd, wild, size),
    "copy from": lambda: libc.copy_file_range(fd, wild, other, None, size, 0),
    "copy to": lambda: libc.copy_file_range(fd, None, other, wild, size, 0),
}
for name, call in calls.items():
    assert (call(), ctypes.get_errno()) == (-1, errno.EFAULT), name
assert libc.utimensat(-100, b"box", None, 0x10) == -1 and ctypes.get_errno() == errno.EINVAL
"""


def test_pointers_that_no_call_can_use_are_refused(run: Preloaded) -> None:
    run.python(WILD_POINTERS)
    assert run.content("box") == b"text" and run.content("other") == b""


FORKS_UNDER_SIGNALS = r"""
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static int fd;
static volatile long written, others;
static void handler(int number) {
  int before = errno;
  struct stat status;
  if (write(fd, "S", 1) == 1) ++written;
  else if (errno != EDEADLK) ++others;
  fstat(fd, &status);
  errno = before;
}
int main(void) {
  fd = open("file", O_RDWR | O_CREAT | O_APPEND | O_TRUNC, 0644);
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, NULL);
  for (int n = 0; n < 300; ++n) {
    pid_t child = fork();
    if (child == 0) _exit(write(fd, "C", 1) != 1);
    int status;
    while (waitpid(child, &status, 0) < 0) {}
    if (status != 0) ++others;
  }
  setitimer(ITIMER_REAL, &never, NULL);
  printf("%ld %d\n", others, lseek(fd, 0, SEEK_END) == written + 300);
}
"""


def test_signal_handlers_use_containers_while_the_program_forks(run: Preloaded, tmp_path: Path) -> None:
    (tmp_path / "forks.c").write_text(FORKS_UNDER_SIGNALS)
    subprocess.run(["gcc", "-w", "-o", tmp_path / "forks", tmp_path / "forks.c"], check=True)
    assert run("timeout", "-k", "1", "60", str(tmp_path / "forks")) == "0 1\n"


def test_tail_follows_a_container(run: Preloaded) -> None:
    """A watch of the container would report its pieces, so there is none, and tail polls."""
    script = "seq 3 > log; timeout 4 tail -s 0.2 -f log & sleep 1; echo 4 >> log; wait || :"
    assert run("sh", "-c", script, quiet=False).split() == ["1", "2", "3", "4"]


def test_sort_writes_over_what_it_reads(run: Preloaded) -> None:
    lines = [f"{number}\n" for number in random.Random(1).sample(range(100_000), 5000)]
    source = run.directory.parent / "source"
    source.write_text("".join(lines))
    run("cp", source, "file")
    run("sort", "-o", "file", "file")
    assert run.content("file").decode() == "".join(sorted(lines))


def test_shells_lead_programs_to_containers(run: Preloaded) -> None:
    run("sh", "-c", "echo one > file; echo two >> file; printf three >> file; { echo; seq 1000; } >> file")
    wanted = "one\ntwo\nthree\n" + "".join(f"{n}\n" for n in range(1, 1001))
    assert run.content("file").decode() == wanted
    assert run("sh", "-c", "wc -l < file; head -n 1 < file; read line < file; echo $line") == "1003\none\none\n"
    run("sh", "-c", "set -C; ! echo no > file") if False else None
    run("sh", "-c", "{ echo out; echo err >&2; sh -c 'echo inner'; } > both 2>&1")
    assert run.content("both") == b"out\nerr\ninner\n"
    run("sh", "-c", "exec 3<> file; echo ONE >&3; sed -n 1p <&3 >&4", quiet=False, status=2)  # 4 is not open
    assert run.content("file").startswith(b"ONE\ntwo\n")


def test_python_programs_work(run: Preloaded) -> None:
    run.python(
        """
import mmap, os
with open("file", "wb+", buffering=64) as file:
    for n in range(100):
        file.write(bytes([n]) * 50)
    file.seek(1000)
    assert file.read(60) == bytes([20]) * 50 + bytes([21]) * 10
    file.seek(500)
    file.write(b"x" * 10)
    assert file.tell() == 510 and os.fstat(file.fileno()).st_size == 5000
    file.truncate(4000)
    file.seek(0, os.SEEK_END)
    assert file.tell() == 4000
    file.truncate(6000)
with open("file", "ab") as file:
    assert file.tell() == 6000
    file.write(b"end")
with open("file", "rb") as file:
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as seen:
        assert len(seen) == 6003 and seen[500:511] == b"x" * 10 + bytes([10])
        assert seen[4000:6003] == bytes(2000) + b"end"
text = open("text", "w+")
print("line", 1, file=text)
text.flush()
assert open("text").read() == "line 1\\n" and os.path.getsize("text") == 7 and os.path.isfile("text")
assert [entry.is_file() for entry in os.scandir(".")] == [True, True] and sorted(os.listdir(".")) == ["file", "text"]
"""
    )
    assert run.is_container("file") and run.content("file")[6000:] == b"end"


def test_names_are_renamed_and_removed_as_those_of_files(run: Preloaded) -> None:
    run.python(
        """
import errno, os
def fails(number, call, *arguments):
    try:
        call(*arguments)
    except OSError as refusal:
        assert refusal.errno == number, refusal
    else:
        assert False
def put(name, text):
    with open(name, "wb") as file:
        file.write(text)
put("one", b"1" * 100)
put("two", b"2" * 200)
held = open("two", "rb")
os.rename("one", "two")
assert held.read() == b"2" * 200 and open("two", "rb").read() == b"1" * 100 and not os.path.exists("one")
held = open("two", "r+b", buffering=0)
os.unlink("two")
fails(errno.ENOENT, os.stat, "two")
assert held.write(b"xx") == 2 and os.pread(held.fileno(), 5, 0) == b"xx111" and os.fstat(held.fileno()).st_size == 100
put("two", b"new")
assert os.fstat(held.fileno()).st_size == 100 and os.path.getsize("two") == 3
put("ordinary.plain", b"plain")
os.replace("ordinary.plain", "two")
assert open("two", "rb").read() == b"plain"
put("three", b"3")
os.replace("three", "two")
assert open("two", "rb").read() == b"3" and os.listdir(".") == ["two"]
os.open("new", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
fails(errno.EEXIST, os.open, "new", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
fails(errno.ENOENT, os.open, "none", os.O_RDONLY)
fails(errno.ENOTDIR, os.listdir, "new")
fails(errno.ENOTDIR, os.open, "new", os.O_RDONLY | os.O_DIRECTORY)
fails(errno.ENOTDIR, os.rmdir, "new")
os.mkdir("directory")
fails(errno.EISDIR, os.rename, "new", "directory")
os.rename("new", "directory/new")
assert os.listdir("directory") == ["new"]
os.chmod("directory/new", 0o640)
os.utime("directory/new", (10**9, 10**9 + 1))
status = os.stat("directory/new")
assert oct(status.st_mode) == "0o100640" and status.st_mtime == 10**9 + 1 and status.st_nlink == 1
"""
    )


def test_files_that_are_not_bound_stay_files(run: Preloaded) -> None:
    run(
        "sh",
        "-c",
        "echo text > ordinary.plain; cp ordinary.plain copy.plain; mkdir directory; echo x > directory/a.plain",
    )
    assert (run.directory / "copy.plain").read_text() == "text\n" and (
        run.directory / "directory/a.plain"
    ).read_text() == "x\n"
    (run.directory / "before").write_text("was there")
    run("sh", "-c", "echo more >> before")
    assert (run.directory / "before").read_text() == "was theremore\n"
    elsewhere = run.directory.parent / "elsewhere"
    run("sh", "-c", f"echo text > {elsewhere}")
    assert elsewhere.read_text() == "text\n"


def test_appends_of_many_processes_are_whole(run: Preloaded) -> None:
    text = """
import os, sys
fd = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
for n in range(200):
    os.write(fd, f"{sys.argv[1]} {n:03}\\n".encode() * (1 + n % 3))
"""
    writers = [run.start(sys.executable, "-S", "-E", "-c", text, who) for who in "abcd"]
    for writer in writers:
        assert writer.communicate(timeout=60)[1] == b"" and writer.returncode == 0
    lines = run.content("log").decode().splitlines()
    for who in "abcd":
        assert [line for line in lines if line[0] == who] == [
            f"{who} {n:03}" for n in range(200) for _ in range(1 + n % 3)
        ]
    assert len(lines) == 4 * sum(1 + n % 3 for n in range(200))


def test_one_of_many_creators_wins(run: Preloaded) -> None:
    text = """
import os, sys
try:
    os.write(os.open("lock", os.O_WRONLY | os.O_CREAT | os.O_EXCL), sys.argv[1].encode())
    print("won")
except FileExistsError:
    pass
"""
    rivals = [run.start(sys.executable, "-S", "-E", "-c", text, who) for who in range(4)]
    said = [rival.communicate(timeout=60) for rival in rivals]
    assert sorted(said) == [(b"", b"")] * 3 + [(b"won\n", b"")]
    assert run.content("lock").decode() == str([out for out, _ in said].index(b"won\n"))


def test_forked_children_and_duplicates_share_the_offset(run: Preloaded) -> None:
    run.python(
        """
import os
fd = os.open("file", os.O_RDWR | os.O_CREAT)
other = os.dup(fd)
os.write(fd, b"aa")
os.write(other, b"bb")
for child in range(3):
    if os.fork() == 0:
        os.write(fd, b"child %d" % child)
        os.pwrite(other, b"%d" % child, 100 + child)
        os._exit(0)
    os.wait()
    os.write(other, b".")
assert os.lseek(fd, 0, os.SEEK_CUR) == os.lseek(other, 0, os.SEEK_CUR) == 28
assert os.pread(fd, 200, 0) == b"aabbchild 0.child 1.child 2." + bytes(72) + b"012"
os.close(fd)
assert os.pread(other, 2, 2) == b"bb"
"""
    )
    assert run.content("file") == b"aabbchild 0.child 1.child 2." + bytes(72) + b"012"


def test_a_process_reads_what_another_has_written(run: Preloaded) -> None:
    run.python(
        """
import os
fd = os.open("file", os.O_RDWR | os.O_CREAT)
here, there = os.pipe(), os.pipe()
child = os.fork()
own = os.open("file", os.O_RDWR)
for n in range(200):
    if child:
        os.pwrite(own, b"%04d" % n, 8 * n)
        os.write(there[1], b".")
        os.read(here[0], 1)
        assert os.pread(own, 9, 8 * n + 4) == b"%04d" % n and os.fstat(own).st_size == 8 * n + 8
    else:
        os.read(there[0], 1)
        assert os.pread(own, 9, 8 * n) == b"%04d" % n and os.lseek(own, 0, os.SEEK_END) == 8 * n + 4
        os.pwrite(own, b"%04d" % n, 8 * n + 4)
        os.write(here[1], b".")
if child:
    assert os.wait()[1] == 0
else:
    os._exit(0)
"""
    )


def test_threads_write_one_file(run: Preloaded) -> None:
    run.python(
        """
import os, threading
fd = os.open("file", os.O_RDWR | os.O_CREAT)
def write(who):
    for n in range(500):
        os.pwrite(fd, bytes([1 + who]) * 64, 64 * (4 * n + who))
threads = [threading.Thread(target=write, args=(who,)) for who in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
    )
    assert run.content("file") == b"".join(bytes([1 + who]) * 64 for who in range(4)) * 500


def test_started_programs_go_on_with_descriptors(run: Preloaded) -> None:
    run.python(
        """
import os, sys
fd = os.open("file", os.O_RDWR | os.O_CREAT)
os.write(fd, b"before ")
os.set_inheritable(fd, True)
text = '''
import os, sys
fd = int(sys.argv[1])
os.write(fd, b"after ")
print(os.pread(fd, 100, 0).decode(), os.fstat(fd).st_size, end="")
'''
os.execv(sys.executable, [sys.executable, "-S", "-E", "-c", text, str(fd)])
"""
    )
    assert run.content("file") == b"before after "
    run.python(
        """
import os, subprocess, sys
with open("out", "wb") as out:
    for n in range(3):
        subprocess.run(["echo", str(n)], stdout=out, check=True)
    out.write(b"self\\n")
"""
    )
    assert run.content("out") == b"0\n1\n2\nself\n"


def test_what_a_killed_writer_was_told_is_written_is_there(run: Preloaded) -> None:
    text = """
import os, sys
fd = os.open("file", os.O_WRONLY | os.O_CREAT)
for n in range(10**9):
    os.pwrite(fd, b"%08d" % n * 8, n * 100)
    os.pwrite(1, b"%09d" % n, 0)
"""
    for wait_s in (0.05, 0.1, 0.15):
        with tempfile.TemporaryFile() as told:
            writer = run.start(sys.executable, "-S", "-E", "-c", text, stdout=told)
            while os.fstat(told.fileno()).st_size < 9 and writer.poll() is None:
                time.sleep(0.005)
            time.sleep(wait_s)
            writer.send_signal(signal.SIGKILL)
            assert writer.communicate()[1] == b""
            last = int(os.pread(told.fileno(), 9, 0))
        content = run.content("file")
        for n in range(last + 1):
            assert content[n * 100 : n * 100 + 64] == b"%08d" % n * 8
        assert len(content) <= (last + 1) * 100 + 64
        assert run("wc", "-c", "file").split()[0] == str(len(content))
        run("rm", "file")


@pytest.fixture
def small(run: Preloaded) -> Iterator[Preloaded]:
    """The directory is a file system of 1 MB."""
    if os.geteuid() != 0:
        pytest.skip("mounts a tmpfs: needs root")
    try:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(run.directory)], check=True, capture_output=True
        )
    except subprocess.CalledProcessError as refusal:
        pytest.skip(f"tmpfs cannot be mounted: {refusal.stderr.decode().strip()}")
    try:
        yield run
    finally:
        subprocess.run(["umount", "-l", str(run.directory)], check=True)


def test_no_room_is_told_and_what_was_written_stays(small: Preloaded) -> None:
    said = small.python(
        """
import errno, os
fd = os.open("file", os.O_RDWR | os.O_CREAT)
done = 0
try:
    while True:
        done += os.pwrite(fd, bytes([1 + done // 4096 % 250]) * 4096, done)
except OSError as refusal:
    assert refusal.errno == errno.ENOSPC, refusal
assert os.pread(fd, 4096, done - 4096) == bytes([1 + (done // 4096 - 1) % 250]) * 4096
print(done)
""",
        quiet=False,
    )
    done = int(said)
    assert done >= 512 * 1024
    wanted = b"".join(bytes([1 + n % 250]) * 4096 for n in range(done // 4096 + 1))
    content = small.content("file")
    assert len(content) >= done and content[:done] == wanted[:done]
    small("rm", "file")
    assert list(small.directory.iterdir()) == []
    small("sh", "-c", "echo works > file")
    assert small.content("file") == b"works\n"


def test_the_files_mode_counts_for_all_that_a_container_holds(run: Preloaded) -> None:
    run("sh", "-c", "umask 0; : > narrow; chmod 600 narrow; echo a >> narrow")
    run("sh", "-c", "umask 077; : > wide; chmod 666 wide; echo a >> wide")
    tables = {name: next((run.directory / name).glob("order.*")).stat().st_mode & 0o777 for name in ("narrow", "wide")}
    assert tables == {"narrow": 0o600, "wide": 0o666}


def test_threads_open_and_close_what_others_write(run: Preloaded, compiled: Callable[[Path], Path]) -> None:
    program = compiled(ROOT / "tests/support/threads_reopen.c")
    for forks in ([], ["fork"]):
        assert run(program, "shared.dat", *forks) == "0 wrong\n"
        (run.directory / "shared.dat").rename(run.directory / f"kept{len(forks)}")


def test_names_of_descriptors_lead_to_the_container(run: Preloaded) -> None:
    run("sh", "-c", "echo hello > in.dat")
    assert run("sh", "-c", "cat /dev/stdin < in.dat") == "hello\n"
    run("sh", "-c", "exec 3<>in.dat; echo again >> /dev/fd/3")
    assert run.content("in.dat") == b"hello\nagain\n"
    run.python("""
import os
fd = os.open("p.dat", os.O_RDWR | os.O_CREAT)
os.write(fd, b"line1")
again = os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
assert os.read(again, 9) == b"line1" and os.write(again, b"more") == 4 and os.pread(fd, 20, 0) == b"line1more"
""")


def test_started_programs_find_what_was_renamed_or_removed_meanwhile(run: Preloaded) -> None:
    # (what is done while the loop runs, where its bytes are then)
    elsewhere = run.directory.parent / "elsewhere"
    elsewhere.mkdir()
    (run.directory / "sub").mkdir()
    for change, at in (
        ("mv l.dat m.dat", "m.dat"),
        ("echo old > m.dat; mv l.dat m.dat", "m.dat"),
        ("mv l.dat sub/m.dat", "sub/m.dat"),
        (f"mv l.dat {elsewhere}/m.dat", "../elsewhere/m.dat"),
        ("rm l.dat", None),
        ("echo new > n.dat; mv n.dat l.dat", None),
        ("rm l.dat; echo other > l.dat", None),
    ):
        run(
            "sh",
            "-c",
            f"mkfifo fifo.plain; (/bin/echo 1; read go < fifo.plain; /bin/echo 2; /bin/echo 3) > l.dat &"
            f" until [ -s l.dat ]; do :; done; {change}; echo > fifo.plain; wait; rm fifo.plain",
        )
        if at is not None:
            assert run.content(at) == b"1\n2\n3\n", change
            run("rm", at)
        run("rm", "-f", "l.dat")
        assert [path.name for path in run.directory.iterdir()] == ["sub"], change


def test_names_of_descriptors_tell_of_the_container(run: Preloaded, compiled: Callable[[Path], Path]) -> None:
    program = compiled(ROOT / "tests/support/named_descriptors.c")
    assert_same_as_plain(run, program, 1000)
    run("sh", "-c", "seq 1000 > in.dat; cp /dev/stdin out.dat < in.dat; cmp in.dat out.dat")
    assert run("sh", "-c", "stat -L -c '%s %F' /dev/stdin < in.dat") == "3893 regular file\n"


def test_messages_name_the_file_that_the_user_knows(run: Preloaded) -> None:
    run("sh", "-c", "mkdir below; echo text > below/cut; echo text > below/lost")
    (run.directory / "below/cut/.iosig-container").write_text("{")
    (run.directory / "below/lost/d0/data.0").unlink()
    for name in ("cut", "lost"):
        command = f"""
import os
os.read(os.open("{name}", os.O_RDONLY, dir_fd=os.open("below", os.O_RDONLY)), 9)
"""
        program = run.start(sys.executable, "-S", "-E", "-c", command)
        complained = program.communicate(timeout=60)[1].decode()
        assert f"{run.directory}/below/{name}/" in complained.splitlines()[0] and "/proc" not in complained
    refused = run.start("sh", "-c", "echo > none/file").communicate(timeout=60)[1]
    assert refused == b"sh: 1: cannot create none/file: Directory nonexistent\n"  # what errno says is not said again


def test_nothing_lies_below_a_file(run: Preloaded, compiled: Callable[[Path], Path]) -> None:
    program = compiled(ROOT / "tests/support/below_file.c")
    assert_same_as_plain(run, program, 5000)


def test_what_a_kernel_refuses_is_refused(run: Preloaded, compiled: Callable[[Path], Path]) -> None:
    program = compiled(ROOT / "tests/support/refused_calls.c")
    assert_same_as_plain(run, program, 5000)


def test_pointers_that_are_no_paths_are_refused(run: Preloaded, compiled: Callable[[Path], Path]) -> None:
    assert_same_as_plain(run, compiled(ROOT / "tests/support/bad_paths.c"), 2000)


def test_the_longest_paths_work(run: Preloaded) -> None:
    run.python(
        """
import errno, os
levels = "/".join(["d" * 200] * 19 + ["e" * 90] * 4)
longest = (os.getcwd() + "/" + levels)[:4095]
parent, name = longest.rsplit("/", 1)
os.makedirs(parent)
assert len(longest) == 4095 and name
with open(longest, "wb") as file:
    file.write(b"x" * 100)
assert os.path.isfile(longest) and os.path.getsize(longest) == 100 and open(longest, "rb").read() == b"x" * 100
os.rename(longest, longest[:-1] + "e")
os.unlink(longest[:-1] + "e")
assert os.listdir(parent) == []
""",
        env={**run.env, "IOSIG_CONTAINERS": "*"},
    )


def test_locks_hold_between_processes(run: Preloaded, compiled: Callable[[Path], Path]) -> None:
    assert_same_as_plain(run, compiled(ROOT / "tests/support/locks.c"), 900)


def test_asynchronous_calls_and_signal_handlers(run: Preloaded, compiled: Callable[[Path], Path]) -> None:
    assert_same_as_plain(run, compiled(ROOT / "tests/support/asynchronous.c"), 600)
    assert run.is_sound("file") and run.is_sound("of_handler")


def test_files_that_are_mapped_shared_become_ordinary(
    run: Preloaded, compiled: Callable[[Path], Path], tmp_path: Path
) -> None:
    program, plain = compiled(ROOT / "tests/support/mapped.c"), tmp_path / "plain"
    plain.mkdir()
    wanted = subprocess.run([program], cwd=plain, capture_output=True, text=True, check=True)
    assert run(program, quiet=False).splitlines() == wanted.stdout.splitlines() and len(wanted.stdout) > 1000
    assert "Success" not in wanted.stdout and not wanted.stderr
    assert sorted(path.name for path in run.directory.iterdir()) == sorted(path.name for path in plain.iterdir())
    for name in ("renamed", "secret"):
        assert (run.directory / name).is_file() and (run.directory / name).read_bytes() == (plain / name).read_bytes()
        assert (run.directory / name).stat().st_mode == (plain / name).stat().st_mode


def test_a_container_that_others_have_open_is_not_mapped_to_be_written(run: Preloaded) -> None:
    mapped = """
import errno, mmap, os
def tries(fd):
    try:
        mmap.mmap(fd, 0)
    except OSError as refusal:
        return errno.errorcode[refusal.errno]
    return "mapped"
fd = os.open("file", os.O_RDWR | os.O_CREAT)
os.write(fd, b"one " * 1000)
"""
    other = (
        mapped
        + """
pid = os.fork()
if pid == 0:
    os.read(0, 1)  # the parent is refused before
    os.write(fd, b"of the child")
    os._exit(0)
assert tries(fd) == "ENODEV", "shared with a child"
os.write(int(os.environ["GO"]), b"x")
os.waitpid(pid, 0)
assert os.pread(fd, 100, 4000) == b"of the child"
assert tries(fd) == "mapped"
assert os.lseek(fd, 0, os.SEEK_CUR) == 4012 and os.pread(fd, 100, 4000) == b"of the child"
"""
    )
    reader, writer = os.pipe()
    with os.fdopen(reader), os.fdopen(writer):
        run.env["GO"] = str(writer)
        run.python(other, quiet=False, stdin=reader, pass_fds=[reader, writer])
    assert (run.directory / "file").read_bytes() == b"one " * 1000 + b"of the child"
    run("rm", "file")
    reader, writer = os.pipe()
    with os.fdopen(reader), os.fdopen(writer):
        holds = run.start(
            sys.executable, "-S", "-E", "-c",
            mapped + "print('ready', flush=True); os.read(0, 1); os.write(fd, b'more'); print(tries(fd))",
            stdin=reader,
        )  # fmt: skip
        assert holds.stdout is not None and holds.stdout.readline() == b"ready\n"
        said = run.python(
            "import os, mmap; exec(os.environ['DEFINES']); print(tries(fd)); os.pwrite(fd, b'two', 0)",
            env={**run.env, "DEFINES": mapped}, quiet=False,
        )  # fmt: skip
        assert said == "ENODEV\n" and run.is_container("file")
        os.write(writer, b"x")
        said_last, _ = holds.communicate(timeout=60)
    assert said_last == b"mapped\n"
    assert (run.directory / "file").read_bytes() == b"two " + b"one " * 999 + b"more"


def test_databases_in_wal_mode_work_in_several_processes(run: Preloaded) -> None:
    run.env["IOSIG_CONTAINERS"] = "*"
    program = """
import sqlite3, sys
database = sqlite3.connect("a.db", timeout=60, isolation_level=None)
assert database.execute("pragma journal_mode=wal").fetchall() == [("wal",)]
database.execute("create table if not exists t(writer, number, text)")
for number in range(60):
    database.execute("begin immediate")
    database.execute("insert into t values(?, ?, ?)", (int(sys.argv[1]), number, "x" * 500))
    database.execute("commit")
assert database.execute("select count(*) from t where writer = ?", (int(sys.argv[1]),)).fetchall() == [(60,)]
"""
    run(sys.executable, "-c", "import sqlite3; sqlite3.connect('a.db').execute('pragma journal_mode=wal')", quiet=False)
    writers = [run.start(sys.executable, "-c", program, number) for number in range(4)]
    for writer in writers:
        said = writer.communicate(timeout=60)
        assert writer.returncode == 0, said
    program = "import sqlite3; print(*sqlite3.connect('a.db').execute(*__import__('sys').argv[1:]).fetchall())"
    assert run(sys.executable, "-c", program, "pragma integrity_check", quiet=False) == "('ok',)\n"
    counted = "select writer, count(*), sum(number), sum(length(text)) from t group by writer"
    assert run(sys.executable, "-c", program, counted) == " ".join(f"({n}, 60, 1770, 30000)" for n in range(4)) + "\n"
    assert run.is_container("a.db")


def test_libaio_gives_what_it_gives_on_plain_files(run: Preloaded, tmp_path: Path) -> None:
    if not Path("/usr/include/libaio.h").exists():
        pytest.skip("needs libaio-dev")
    program = tmp_path / "kernel_aio"
    subprocess.run(["gcc", "-O1", "-o", program, ROOT / "tests/support/kernel_aio.c", "-laio"], check=True)
    assert_same_as_plain(run, program, 1200)
    assert run.is_container("file") and run.is_sound("file")
    assert run.content("file") == (tmp_path / "plain/file").read_bytes()


def test_streams_tell_that_there_is_no_room(small: Preloaded) -> None:
    full = small.start("seq", "1000000", stdout=(small.directory / "file.plain").open("wb"))
    plain = full.communicate(timeout=60)[1]
    (small.directory / "file.plain").unlink()
    full = small.start("sh", "-c", "exec seq 1000000 > file")
    complained = full.communicate(timeout=60)[1].decode().splitlines()
    assert complained[-1].encode() == plain.strip() and b"No space left" in plain and full.returncode == 1
    assert [line.split(":")[0] for line in complained[:-1]] == ["iosig"] * (len(complained) - 1)
    content = small.content("file").decode()
    assert len(content) > 512 * 1024 and "".join(f"{n}\n" for n in range(1, 200_000)).startswith(content)
    small("rm", "file")
    small("sh", "-c", "seq 10000 > file")
    assert len(small.content("file")) == 48_894


def test_streams_are_opened_anew(run: Preloaded) -> None:
    program = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.fopen.restype = libc.freopen.restype = ctypes.c_void_p
libc.fputs.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
libc.freopen.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p]
libc.fclose.argtypes = libc.fileno.argtypes = [ctypes.c_void_p]
for number, (one, other) in enumerate([("a", "b"), ("a", "b.plain"), ("a.plain", "b"), ("a", "a")]):
    one, other = f"{number}{one}".encode(), f"{number}{other}".encode()
    stream = libc.fopen(one, b"w")
    before = libc.fileno(stream)
    assert libc.fputs(b"first", stream) >= 0
    stream = libc.freopen(other, b"a", stream)
    assert stream and libc.fileno(stream) == before
    assert libc.fputs(b"second", stream) >= 0 and libc.fclose(stream) == 0
    with open(one, "rb") as file, open(other, "rb") as file2:
        said = file.read(), file2.read()
    assert said == ((b"first", b"second") if one != other else (b"firstsecond",) * 2), said
    stream = libc.fopen(one, b"r")
    fds = len(os.listdir("/proc/self/fd"))
    assert libc.freopen(b"none/file", b"r", stream) is None and ctypes.get_errno() == 2
    assert len(os.listdir("/proc/self/fd")) < fds
"""
    run.python(program)
    subprocess.run([sys.executable, "-S", "-E", "-c", program], cwd=run.directory.parent, check=True)


def test_locks_outlive_the_program_that_takes_them(run: Preloaded) -> None:
    rival = "(exec 8> lock; flock -n 8 && echo taken || echo busy)"
    script = f"""
exec 9> lock
flock -n 9
{rival}
(exec 9>&-; {rival})
(flock -u 9)
{rival}
flock -n 9
exec {sys.executable} -S -E -c 'import os; os.system("{rival}"); os.close(9); os.system("{rival}")'
"""
    wanted = ["busy", "busy", "taken", "busy", "taken"]
    plain = subprocess.run(["sh", "-c", script], cwd=run.directory.parent, capture_output=True, text=True, check=True)
    assert plain.stdout.split() == wanted and run("sh", "-c", script).split() == wanted
    # Who has no descriptor of the file has none that bears its locks.
    said = run(
        "sh",
        "-c",
        f"exec 9> lock; flock 9; exec {sys.executable} -S -E -c 'import os; os.system(\"ls /proc/self/fd 9>&-\")'",
    )
    assert max(map(int, said.split())) < 300


SANITIZED = BUILD / "asan/lib/libiosig-preload.so"
CLIENTS = [
    *(("random_calls", str(seed), "600") for seed in (13, 14, 15)),
    *((name,) for name in ("asynchronous", "below_file", "locks", "named_descriptors", "refused_calls")),
    ("threads_reopen", "shared.dat"),  # not with fork: AddressSanitizer's own memory does not come through it
]


@pytest.mark.skipif(not SANITIZED.exists(), reason="needs: cmake --build --preset asan --target iosig_preload")
@pytest.mark.parametrize("client", CLIENTS, ids=" ".join)
def test_sanitizers_find_nothing(run: Preloaded, compiled: Callable[[Path], Path], client: tuple[str, ...]) -> None:
    def runtime(name: str) -> str:
        found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
        return found.stdout.strip()

    run.env["LD_PRELOAD"] = f"{runtime('libasan.so')} {runtime('libubsan.so')} {SANITIZED}"
    run.env["ASAN_OPTIONS"] = "detect_leaks=0"  # programs that end leave what they have
    assert_same_as_plain(run, compiled(ROOT / f"tests/support/{client[0]}.c"), 5, *client[1:])


REPLACE = """
import os
for n in range(400):
    text = bytes([65 + n % 26]) * 4096
    with open("new.dat", "wb") as file:
        file.write(text)
    os.rename("new.dat", "file.dat")
    with open("file.dat", "rb") as file:
        assert file.read() == text, n
"""
READ = """
import os
while not os.path.exists("end"):
    with open("file.dat", "rb") as file:
        text = file.read()
    assert len(text) == 4096 and len(set(text)) == 1, text[:10]
"""


def test_a_container_is_replaced_by_rename_beside_readers(run: Preloaded) -> None:
    run("sh", "-c", "head -c 4096 /dev/zero > file.dat")
    assert run.is_container("file.dat")
    reader = f"(python3 -c '{READ}' && echo read) &"
    assert run("bash", "-c", f"{reader} {reader} python3 -c '{REPLACE}'; touch end; wait").split() == ["read", "read"]
    assert sorted(path.name for path in run.directory.iterdir()) == ["end", "file.dat"]
