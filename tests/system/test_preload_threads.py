"""libiosig-preload.so in programs that cancel threads, throw through libc, have small stacks, or wait for callbacks."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import ROOT, Iosig
from preloading import LIBRARY
from tracing import rows_of

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="built without libiosig-preload.so")

WAYS = {
    "plain": ("run",),
    "containers": ("run", "--container", "*.dat"),
    "prefetching": ("run", "--prefetch"),
    "traced": ("trace", "-o", "../trace"),
}
way = pytest.mark.parametrize("way", WAYS)


def said(command: list[object], directory: Path, timeout_s: int = 60) -> list[str]:
    """What the program says in a new directory; it must succeed."""
    directory.mkdir()
    done = subprocess.run(
        [str(part) for part in command], cwd=directory, capture_output=True, text=True, timeout=timeout_s
    )
    assert done.returncode == 0, f"exit {done.returncode}, after: {done.stdout.splitlines()[-3:]} {done.stderr}"
    return done.stdout.splitlines()


def said_under(iosig: Iosig, way: str, tmp_path: Path, *command: object) -> list[str]:
    return said([iosig.binary, *WAYS[way], "--", *command], tmp_path / "under")


@way
def test_a_thread_is_cancelled_in_a_call_as_without_iosig_and_the_process_works_on(
    iosig: Iosig, compiled: Callable[[Path], Path], tmp_path: Path, way: str
) -> None:
    """Also where it waits for a lock. It is cancelled in no call that libc is not cancelled in, like lseek()."""
    program = compiled(ROOT / "tests/support/cancelled_calls.c")
    wanted = said([program], tmp_path / "alone")
    assert len(wanted) > 60 and sum(line.endswith(": in") for line in wanted) > 30
    assert said_under(iosig, way, tmp_path, program) == wanted
    calls = int(wanted[-1].split()[0])
    content = b"".join(number.to_bytes(8, "little") for number in range(1, calls + 1))
    if way == "containers":
        iosig("container", "export", tmp_path / "under/work.dat", tmp_path / "exported")
        assert (tmp_path / "exported").read_bytes() == content
        for name in ("work.dat", "file.dat", "copy.dat"):
            assert iosig.json("container", "check", tmp_path / "under" / name)["sound"], name
    else:
        assert (tmp_path / "under/work.dat").read_bytes() == content
    if way == "traced":
        work = [row for row in rows_of(iosig, tmp_path / "trace") if row.path.endswith("/work.dat")]
        assert [row.offset for row in work if row.call == "pwrite"] == [8 * number for number in range(calls)]
        assert [row.result for row in work if row.call == "close"] == [0] * calls


OWN_TABLE = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static int fd, other;
static void* close_all(void* unused) {
  const int failed = close_range(3, ~0U, CLOSE_RANGE_UNSHARE);
  printf("%d, in the thread %d %d\n", failed, fcntl(fd, F_GETFD), fcntl(other, F_GETFD));
  return unused;
}
int main(void) {
  pthread_t thread;
  fd = open("work.dat", O_RDWR | O_CREAT, 0644);
  other = dup(fd);
  printf("%ld\n", (long)write(fd, "before ", 7));
  if (pthread_create(&thread, NULL, close_all, NULL) != 0) return 1;
  pthread_join(thread, NULL);
  printf("%d, %ld\n", fcntl(other, F_GETFD), (long)write(fd, "after", 5));
  return close(fd);
}
"""


@way
def test_a_thread_with_a_table_of_its_own_closes_nothing_of_the_others(
    iosig: Iosig, compiled: Callable[[Path], Path], tmp_path: Path, way: str
) -> None:
    source = tmp_path / "table.c"
    source.write_text(OWN_TABLE)
    program = compiled(source)
    wanted = said([program], tmp_path / "alone")
    assert wanted == ["7", "0, in the thread -1 -1", "0, 5"]
    assert said_under(iosig, way, tmp_path, program) == wanted
    if way == "containers":
        iosig("container", "export", tmp_path / "under/work.dat", tmp_path / "exported")
        assert (tmp_path / "exported").read_bytes() == b"before after"
    else:
        assert (tmp_path / "under/work.dat").read_bytes() == b"before after"
    if way == "traced":
        work = [row for row in rows_of(iosig, tmp_path / "trace") if row.path.endswith("/work.dat")]
        assert [(row.call, row.offset) for row in work if row.call in ("write", "inherited")] == [
            ("write", 0), ("write", 7)
        ]  # fmt: skip


CANCELLED_IN_LOOPS = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void* use_files(void* number) {
  char path[32], bytes[8] = "";
  snprintf(path, sizeof path, "%ld.dat", (long)number);
  for (;;) {
    const int fd = open(path, O_RDWR | O_CREAT, 0644);
    (void)!write(fd, bytes, 8);
    (void)!pread(fd, bytes, 8, 0);
    close(fd);
    FILE* const stream = fopen(path, "r+");
    if (stream == NULL) continue;
    (void)!fread(bytes, 1, 8, stream);
    fwrite(bytes, 1, 8, stream);
    fclose(stream);
  }
}
int main(void) {
  for (int round = 0; round < 100; ++round) {
    pthread_t threads[4];
    for (long n = 0; n < 4; ++n) pthread_create(&threads[n], NULL, use_files, (void*)n);
    usleep(1000);
    for (int n = 0; n < 4; ++n) pthread_cancel(threads[n]);
    for (int n = 0; n < 4; ++n) pthread_join(threads[n], NULL);
    for (int fd = 3; fd < 64; ++fd) close(fd);
  }
  puts("ended");
  return 0;
}
"""


@way
def test_threads_that_use_files_in_loops_are_cancelled_at_any_time(
    iosig: Iosig, compiled: Callable[[Path], Path], tmp_path: Path, way: str
) -> None:
    source = tmp_path / "loops.c"
    source.write_text(CANCELLED_IN_LOOPS)
    assert said_under(iosig, way, tmp_path, compiled(source)) == ["ended"]


CANCELS_ITSELF = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/single_threaded.h>
#include <unistd.h>
static int fd;
static void say_where(void* unused) { printf("%lld\n", (long long)lseek(fd, 0, SEEK_CUR)); fflush(stdout); }
int main(int count, char** arguments) {
  char bytes[8] = "";
  fd = open("work.dat", O_RDWR | O_CREAT | O_TRUNC, 0644);
  pthread_cleanup_push(say_where, NULL);
  int call = atoi(arguments[1]), before;
  if (!__libc_single_threaded) return 1;  /* its copy in the program stays 1 after pthread_cancel() */
  for (int n = 0; n < 100; ++n) {
    (void)!write(fd, bytes, 8);  /* these are made in place */
    (void)!pread(fd, bytes, 8, 0);
  }
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  pthread_cancel(pthread_self());
  (void)!write(fd, bytes, 8);
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
  if (call == 0) (void)!write(fd, bytes, 8);
  if (call == 1) (void)!pwrite(fd, bytes, 8, 0);
  if (call == 2) (void)!read(fd, bytes, 8);
  if (call == 3) (void)!pread(fd, bytes, 8, 0);
  printf("call %d has returned\n", call);
  pthread_cleanup_pop(0);
  return 0;
}
"""


@way
def test_a_program_without_threads_that_cancels_itself_ends_in_the_next_call(
    iosig: Iosig, compiled: Callable[[Path], Path], tmp_path: Path, way: str
) -> None:
    """The C library goes on to tell other libraries that there is one thread, which nothing could cancel."""
    source = tmp_path / "itself.c"
    source.write_text(CANCELS_ITSELF)
    program = compiled(source)
    for call in range(4):
        wanted = said([program, str(call)], tmp_path / f"alone{call}")
        assert wanted == ["808"]
        (tmp_path / str(call)).mkdir()
        assert said_under(iosig, way, tmp_path / str(call), program, call) == wanted


THROWS = r"""
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <unistd.h>
#include <cstdio>
#include <cstring>
#include <stdexcept>
static int inner = 0, outer = 0;
static int stop(const char*, const struct stat*, int, FTW*) { ++inner; throw std::runtime_error("stop"); }
static int stop_too(const char*, const struct stat*, int) { throw std::runtime_error("stop"); }
static int refuse(const dirent*) { throw std::runtime_error("stop"); }
// A walk in a walk, which ends by an exception; the outer one goes on.
static int walk_again(const char*, const struct stat*, int, FTW*) {
  ++outer;
  try {
    nftw(".", stop, 10, FTW_PHYS);
  } catch (const std::exception&) {
  }
  return 0;
}
template <class Call>
static void try_out(const char* name, Call call) {
  try {
    call();
    std::printf("%s returned\n", name);
  } catch (const std::exception& error) {
    std::printf("%s: %s\n", name, error.what());
  }
}
int main() {
  for (const char* name : {"one.dat", "two.dat", "three"}) close(open(name, O_RDWR | O_CREAT, 0644));
  dirent** names = nullptr;
  try_out("nftw", [] { nftw(".", stop, 10, FTW_PHYS); });
  try_out("nftw, depth", [] { nftw(".", stop, 10, FTW_DEPTH | FTW_PHYS); });
  try_out("nftw, chdir", [] { nftw(".", stop, 10, FTW_DEPTH | FTW_CHDIR | FTW_PHYS); });
  try_out("ftw", [] { ftw(".", stop_too, 10); });
  try_out("scandir", [&] { scandir(".", &names, refuse, nullptr); });
  const int done = nftw(".", walk_again, 10, FTW_PHYS);
  std::printf("%d, %d of %d\n", done, inner, outer);
  const int fd = open("four.dat", O_RDWR | O_CREAT, 0644);
  char bytes[8] = "";
  const bool is_read = pwrite(fd, "written", 7, 0) == 7 && pread(fd, bytes, 7, 0) == 7;
  std::printf("%d\n", is_read && std::strcmp(bytes, "written") == 0);
}
"""


@way
def test_exceptions_pass_through_walks(iosig: Iosig, tmp_path: Path, way: str) -> None:
    (tmp_path / "throws.cpp").write_text(THROWS)
    program = tmp_path / "throws"
    subprocess.run(["g++", "-O1", "-o", str(program), str(tmp_path / "throws.cpp")], check=True)
    wanted = said([program], tmp_path / "alone")
    assert wanted[0] == "nftw: stop" and wanted[-2:] == ["0, 7 of 4", "1"]
    assert said_under(iosig, way, tmp_path, program) == wanted


@way
def test_a_signal_handler_uses_files_on_a_small_stack(
    iosig: Iosig, compiled: Callable[[Path], Path], tmp_path: Path, way: str
) -> None:
    """3 KiB more than the kernel itself needs for the signal: together less than SIGSTKSZ, which was 8 KiB."""
    program = compiled(ROOT / "tests/support/small_stacks.c")
    wanted = said([program, 3072], tmp_path / "alone")
    assert len(wanted) == 26 and all(line.endswith(": ended") for line in wanted)
    assert said_under(iosig, way, tmp_path, program, 3072) == wanted


def test_the_first_call_of_a_process_may_be_in_a_handler_on_a_small_stack(
    compiled: Callable[[Path], Path], tmp_path: Path
) -> None:
    """The library alone, without the command, which makes it do more at the start."""
    program = compiled(ROOT / "tests/support/small_stacks.c")
    wanted = said([program, 3072], tmp_path / "alone")
    assert said(["env", f"LD_PRELOAD={LIBRARY}", program, 3072], tmp_path / "preloaded") == wanted


@way
def test_a_program_with_an_indirect_memcpy_of_its_own_starts(
    iosig: Iosig, compiled: Callable[[Path], Path], tmp_path: Path, way: str
) -> None:
    """The dynamic linker refuses to start it with a library whose calls are all bound at the start (`-z now`)."""
    program = compiled(ROOT / "tests/support/own_memcpy.c")
    assert said_under(iosig, way, tmp_path, program) == ["1", "written"]


def test_a_signal_handler_opens_a_file_while_the_library_starts(
    iosig: Iosig, compiled: Callable[[Path], Path], tmp_path: Path
) -> None:
    """Of a library that began before: constructors run in the order of the libraries."""
    library = tmp_path / "raises.so"
    source = ROOT / "tests/support/raises_at_start.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    tracing = [iosig.binary, "run", "--container", "*.dat", "--", iosig.binary, "trace", "-o", "../trace", "--"]
    program = ["env", f"LD_PRELOAD={LIBRARY}:{library}", "true"]
    assert said(["timeout", "-s", "KILL", "30", *tracing, *program], tmp_path / "under") == []
    iosig("container", "export", tmp_path / "under/early.dat", tmp_path / "exported")
    assert (tmp_path / "exported").read_text() == "early"


@way
def test_completions_of_posix_aio_are_called_in_a_thread_of_their_own(
    iosig: Iosig, compiled: Callable[[Path], Path], tmp_path: Path, way: str
) -> None:
    """So a program may hold a lock that the function takes."""
    program = compiled(ROOT / "tests/support/notified_thread.c")
    wanted = said([program], tmp_path / "alone")
    assert len(wanted) == 6 and all("other thread 1" in line for line in wanted[:5])
    assert said_under(iosig, way, tmp_path, program) == wanted


USES_INNER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char** arguments) {
  char bytes[8] = "";
  const int plain = open("plain", O_RDWR | O_CREAT, 0644);
  if (write(plain, "plain", 5) != 5 || pwrite(plain, "p", 1, 0) != 1 || pread(plain, bytes, 5, 0) != 5) return 1;
  if (read(plain, bytes, 5) != 0) return 2;
  if (count > 1) ((void (*)(void))dlsym(RTLD_DEFAULT, "patch_libc"))();
  const int fd = open("inner", O_RDWR);
  for (int n = 0; n < 2; ++n) {
    printf("%zd %zd ", write(fd, "abc", 3), pwrite(fd, "abcd", 4, 0));
    printf("%zd %zd %s\n", read(fd, bytes, 8), pread(fd, bytes, 8, 0), bytes);
  }
  return close(fd);
}
"""


@way
@pytest.mark.parametrize("when", ["early", "late"])
def test_a_file_system_in_user_space_that_patches_libc_gets_the_calls(
    iosig: Iosig, compiled: Callable[[Path], Path], tmp_path: Path, way: str, when: str
) -> None:
    """As GekkoFS and DAOS do: a system call that is made in place would not reach it."""
    if os.uname().machine != "x86_64":
        pytest.skip("patches x86-64 code")
    library = tmp_path / "patched.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, ROOT / "tests/support/patched_libc.c"], check=True)
    source = tmp_path / "inner.c"
    source.write_text(USES_INNER)
    env = [f"LD_PRELOAD={library}", *(["PATCH_LATE=1"] if when == "late" else [])]
    program = [compiled(source), *(["late"] if when == "late" else [])]
    wanted = ["3 4 5 5 inner"] * 2
    assert said(["env", *env, *program], tmp_path / "alone") == wanted
    under = said(["env", *env, iosig.binary, *WAYS[way], "--", *program], tmp_path / "under")
    assert under == wanted
