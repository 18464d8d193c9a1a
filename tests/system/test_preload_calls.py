"""libiosig-preload.so: calls, one family after the other, give on a container what they give on a plain file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import ROOT
from preloading import LIBRARY, Preloaded, assert_same_as_plain

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="built without libiosig-preload.so")


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


def test_truncating_open_reads_the_records_once_and_no_closed_index(run: Preloaded, tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    for _ in range(5):
        run("sh", "-c", "echo line >> out")
    trace = tmp_path / "trace"
    run("strace", "-f", "-qq", "-o", trace, "-e", "trace=openat", "sh", "-c", ": > out")
    opened = re.findall(r'"(index\.\d+|closed\.[0-9a-f]+)", (\S*)', trace.read_text())
    read = [name for name, flags in opened if "O_RDONLY" in flags and "O_PATH" not in flags]
    records = [name for name in read if name.startswith("closed")]
    assert len(records) == 2 and len(set(records)) == 1, "the view reads the records, and the emptying removes them"
    assert [name for name in read if name not in records] in ([], ["index.5"]), "the writer of the truncation, once"
    assert run.content("out") == b""


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


@pytest.mark.parametrize("change", ["os.unlink('box')", "open('box', 'wb').close()", "os.rename('box', 'other')"])
def test_numbers_that_the_engine_has_closed_are_the_programs_again(run: Preloaded, change: str) -> None:
    """The changes make the engine list a directory; closedir() closes a descriptor of the engine's."""
    run.python(
        "import os\n"
        "with open('box', 'wb') as box: box.write(b'line')\n"
        "held = open('box', 'rb')\n"
        f"{change}\n"
        "held.close()\n"
        "for number in range(512, 1024):\n"
        "    if not os.path.exists(f'/proc/self/fd/{number}'):\n"
        "        os.dup2(0, number)\n"
        "        os.close(number)\n"
    )


@pytest.mark.parametrize("hashes", ["gnu", "sysv"])
def test_beside_a_library_that_makes_its_calls_by_number(run: Preloaded, tmp_path: Path, hashes: str) -> None:
    """UCX replaces mmap() so. A call by number on an ordinary file does not come back to that library."""
    for name, text in (("other", OTHER_LIBRARY), ("beside", BESIDE_OTHER_LIBRARY)):
        (tmp_path / f"{name}.c").write_text(text)
    library = tmp_path / "libother.so"
    flags = ["-w", "-O1", "-shared", "-fPIC", f"-Wl,--hash-style={hashes}"]
    subprocess.run(["gcc", *flags, "-o", library, tmp_path / "other.c"], check=True)
    subprocess.run(["gcc", "-w", "-O1", "-o", tmp_path / "beside", tmp_path / "beside.c", library], check=True)
    assert run(str(tmp_path / "beside")) == "1 0\n1 5 boxed\n"
    assert run.is_container("box") and run.content("box") == b"boxed"


STARTED_LIBRARY = r"""
#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>
static void *work(void *unused) {  /* calls that the process has not made before */
  char byte;
  struct iovec part = {&byte, 1};
  readv(-1, &part, 1);
  preadv(-1, &part, 1, 0);
  fdatasync(-1);
  lseek(-1, 0, SEEK_SET);
  return NULL;
}
__attribute__((constructor)) static void start(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  pthread_join(thread, NULL);
}
"""


def test_first_calls_in_a_thread_that_a_librarys_constructor_waits_for(run: Preloaded, tmp_path: Path) -> None:
    """The dynamic linker holds its lock while the constructor runs: a look-up must not wait for it."""
    (tmp_path / "started.c").write_text(STARTED_LIBRARY)
    (tmp_path / "main.c").write_text(
        "#include <dlfcn.h>\nint main(int c, char **v) { return dlopen(v[1], RTLD_NOW) == 0; }\n"
    )
    library = tmp_path / "libstarted.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, tmp_path / "started.c", "-pthread"], check=True)
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "main", tmp_path / "main.c", "-ldl"], check=True)
    run(tmp_path / "main", library)


SPAWN = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static posix_spawn_file_actions_t actions;
static void run(const char *title, const char *script) {
  char *words[] = {"sh", "-c", (char *)script, NULL};
  pid_t child;
  int status = -1;
  fflush(stdout);
  const int failure = posix_spawnp(&child, "sh", &actions, NULL, words, environ);
  if (failure == 0) waitpid(child, &status, 0);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawn_file_actions_init(&actions);
  printf("%s: %s %d\n", title, strerror(failure), status);
}
int main(void) {
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "out", O_WRONLY | O_CREAT | O_EXCL, 0640);
  run("made", "echo one; echo two");
  posix_spawn_file_actions_addopen(&actions, 1, "out", O_WRONLY | O_CREAT | O_EXCL, 0640);
  run("there", "echo three");
  posix_spawn_file_actions_addopen(&actions, 1, "out", O_WRONLY | O_APPEND, 0);
  posix_spawn_file_actions_adddup2(&actions, 1, 5);
  run("appended", "echo three; echo four >&5");
  posix_spawn_file_actions_addopen(&actions, 0, "out", O_RDONLY, 0);
  run("read", "cat");
  posix_spawn_file_actions_addopen(&actions, 0, "out/", O_RDONLY, 0);
  run("slash", "cat");
  posix_spawn_file_actions_addopen(&actions, 0, "none", O_RDONLY, 0);
  run("none", "cat");
  mkdir("sub", 0755);
  posix_spawn_file_actions_addchdir_np(&actions, "sub");
  posix_spawn_file_actions_addopen(&actions, 1, "inner", O_WRONLY | O_CREAT, 0640);
  posix_spawn_file_actions_addopen(&actions, 0, "../out", O_RDONLY, 0);
  run("in a directory", "cat");
  posix_spawn_file_actions_addopen(&actions, 1, "sub/inner", O_WRONLY | O_TRUNC, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclose(&actions, 0);
  run("emptied", "echo five");
  printf("%d\n", open("left", O_RDONLY | O_CREAT, 0600));
  return 0;
}
"""


def test_files_that_posix_spawn_opens(run: Preloaded, tmp_path: Path) -> None:
    (tmp_path / "spawn.c").write_text(SPAWN)
    program = tmp_path / "spawn"
    subprocess.run(["gcc", "-O1", "-o", program, tmp_path / "spawn.c"], check=True)
    plain = tmp_path / "plain"
    plain.mkdir()
    wanted = subprocess.run([program], cwd=plain, capture_output=True, text=True, check=True).stdout
    assert run(program) == wanted and "appended: Success 0" in wanted
    for name in ("out", "sub/inner"):
        assert run.is_container(name) and run.content(name) == (plain / name).read_bytes()
    assert run.content("out") == b"one\ntwo\nthree\nfour\n" and run.content("sub/inner") == b"five\n"


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


def test_the_files_mode_counts_for_all_that_a_container_holds(run: Preloaded) -> None:
    run("sh", "-c", "umask 0; : > narrow; chmod 600 narrow; echo a >> narrow")
    run("sh", "-c", "umask 077; : > wide; chmod 666 wide; echo a >> wide")
    tables = {name: next((run.directory / name).glob("order.*")).stat().st_mode & 0o777 for name in ("narrow", "wide")}
    assert tables == {"narrow": 0o600, "wide": 0o666}


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


def test_names_of_descriptors_tell_of_the_container(run: Preloaded, compiled: Callable[[Path], Path]) -> None:
    program = compiled(ROOT / "tests/support/named_descriptors.c")
    assert_same_as_plain(run, program, 1000)
    run("sh", "-c", "seq 1000 > in.dat; cp /dev/stdin out.dat < in.dat; cmp in.dat out.dat")
    assert run("sh", "-c", "stat -L -c '%s %F' /dev/stdin < in.dat") == "3893 regular file\n"


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


def test_libaio_gives_what_it_gives_on_plain_files(run: Preloaded, tmp_path: Path) -> None:
    if not Path("/usr/include/libaio.h").exists():
        pytest.skip("needs libaio-dev")
    program = tmp_path / "kernel_aio"
    subprocess.run(["gcc", "-O1", "-o", program, ROOT / "tests/support/kernel_aio.c", "-laio"], check=True)
    assert_same_as_plain(run, program, 1200)
    assert run.is_container("file") and run.is_sound("file")
    assert run.content("file") == (tmp_path / "plain/file").read_bytes()


def test_a_change_of_the_mode_follows_no_link_in_the_place_of_a_piece(run: Preloaded, tmp_path: Path) -> None:
    """Whoever may write the container's directory can plant one, and wait for root's chmod."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    secret.chmod(0o600)
    run("sh", "-c", "echo hi > file; echo more >> file")
    pieces = (path for path in (run.directory / "file").rglob("*") if path.is_file())
    planted = [path for path in pieces if path.name != ".iosig-container"]
    assert {path.name.partition(".")[0] for path in planted} >= {"index", "data", "closed", "order"}
    for path in planted:
        path.unlink()
        path.symlink_to(secret)
    run("chmod", "666", "file")
    assert secret.stat().st_mode & 0o777 == 0o600
    assert run("stat", "-c", "%a", "file") == "666\n"
