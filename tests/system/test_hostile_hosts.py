"""libiosig in programs that live under hard conditions: whatever they are, the program ends as without it."""

from __future__ import annotations

import bisect
import os
import platform
import resource
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD
from redirecting import World, compile_c

HOST = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <iosig/iosig.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static const char *path;
static void *hint(void *ignored) {
  iosig_open_hint(AT_FDCWD, path, O_CREAT | O_WRONLY, "random");
  return ignored;
}
static void fork_now(int ignored) {
  /* Anew each time: where a fork takes longer than the interval, a periodic timer leaves the program no time at all. */
  struct itimerval soon = {{0, 0}, {0, 200}};
  (void)ignored;
  pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, 0, 0);
  setitimer(ITIMER_REAL, &soon, 0);
}

/* Once: a timer that repeats would leave a busy machine no time between two handlers. */
static const struct itimerval soon = {{0, 0}, {0, 150}};
static volatile int opened;
static void open_one_more(int ignored) {
  char name[16];
  (void)ignored;
  snprintf(name, sizeof name, "new%d", opened++);
  iosig_open_hint(AT_FDCWD, name, O_CREAT | O_WRONLY, opened % 2 ? "random" : "random totalsize(1MB)");
  setitimer(ITIMER_REAL, &soon, 0);
}

static void *open_for_ever(void *ignored) {
  for (;;) {
    hint(0);
    unlink(path);
  }
  return ignored;
}
static void refuse(int ignored, siginfo_t *info, void *context) {
  (void)ignored, (void)info;
  ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = -1; /* EPERM */
}

static void put_and_get(int fd) {
  static char put[5000], got[5000];
  struct iovec halves[2] = {{put, 2000}, {put + 2000, 3000}};
  struct stat status;
  memset(put, 'x', sizeof put);
  lseek(fd, 0, SEEK_SET);
  if (writev(fd, halves, 2) == sizeof put && pread(fd, got, sizeof got, 0) > 0 && memcmp(put, got, sizeof put))
    puts("what was written is not there");
  pwrite(fd, put, 100, 9000);
  fstat(fd, &status);
  ftruncate(fd, 3000);
  fsync(fd);
}
static void use_container(iosig_container *container) {
  static char put[5000], got[5000];
  int64_t end;
  memset(put, 'x', sizeof put);
  if (iosig_container_pwrite(container, put, sizeof put, 0) == sizeof put &&
      iosig_container_pread(container, got, sizeof got, 0) > 0 && memcmp(put, got, sizeof put))
    puts("what was written is not there");
  iosig_container_append(container, put, 100, &end);
  iosig_container_size(container);
  iosig_container_truncate(container, 3000);
  iosig_container_sync(container);
  iosig_container_close(container);
}

int main(int argc, char **argv) {
  (void)argc;
  path = argv[2];
  if (!strcmp(argv[1], "files")) {
    int fd = open(path, O_CREAT | O_RDWR, 0644), status = 0;
    setvbuf(stdout, 0, _IONBF, 0);
    put_and_get(fd);
    pid_t child = fork();
    if (child == 0) {
      put_and_get(fd);
      _exit(0);
    }
    waitpid(child, &status, 0);
    if (status != 0) return 4;
    FILE *text = fopen("text", "w");
    if (text != 0) {
      fprintf(text, "text");
      fclose(text);
    }
    close(fd);
    rename(path, "renamed");
    unlink("renamed");
  }
  if (!strcmp(argv[1], "container")) {
    use_container(iosig_container_open(path, O_CREAT | O_RDWR, 0644, 0));
    iosig_container_rename(path, "renamed");
    iosig_container_unlink("renamed");
  }
  if (!strcmp(argv[1], "_Fork")) {
    pthread_t thread;
    pthread_create(&thread, 0, open_for_ever, 0);
    for (int i = 0; i < 300; i++) {
      int status;
      pid_t child = _Fork();
      if (child == 0) _exit(iosig_redirect("child", "random") == 0 ? 0 : 3);
      waitpid(child, &status, 0);
      if (status != 0) return 4;
    }
  }
  if (!strcmp(argv[1], "seccomp")) {
    struct sigaction answer = {.sa_sigaction = refuse, .sa_flags = SA_SIGINFO};
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_symlinkat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {4, filter};
    sigaction(SIGSYS, &answer, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 3;
    hint(0);
  }
  if (!strcmp(argv[1], "plain")) hint(0);
  if (!strcmp(argv[1], "null")) printf("%d %s\n", iosig_redirect(path, NULL), iosig_last_error());
  if (!strcmp(argv[1], "thread")) {
    pthread_attr_t small;
    pthread_t thread;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, atoi(argv[3]));
    if (pthread_create(&thread, &small, hint, 0)) return 3;
    pthread_join(thread, 0);
  }
  if (!strcmp(argv[1], "signals")) {
    signal(SIGALRM, fork_now);
    fork_now(0);
    for (int i = 0; i < 200; i++) {
      hint(0);
      unlink(path);
    }
  }
  if (!strcmp(argv[1], "many")) {
    int links = 0;
    for (int i = 0; i < 2400; i++) {
      char signature[64];
      snprintf(signature, sizeof signature, "random totalsize(%dB)", 1 + i % 1200);
      links += iosig_redirect(path, signature);
      unlink(path);
    }
    printf("%d links\n", links);
  }
  if (!strcmp(argv[1], "malloc")) {
    /* The handler opens files while this thread is anywhere in malloc. */
    signal(SIGALRM, open_one_more);
    setitimer(ITIMER_REAL, &soon, 0);
    void *kept[64] = {0};
    for (unsigned i = 0; opened < 300; i++) {
      free(kept[i % 64]);
      kept[i % 64] = malloc(2000 + i * 7919 % 60000);
    }
    signal(SIGALRM, SIG_IGN);
  }
  puts("alive");
  return 0;
}
"""


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(HOST, tmp_path_factory.mktemp("host"), "host")


def test_a_message_to_a_pipe_without_a_reader_does_not_end_the_program(world: World, host: Path) -> None:
    world.env["IOSIG_STORAGE"] = "/nonexistent"
    reader, writer = os.pipe()
    os.close(reader)
    # Python ignores SIGPIPE, and its children would too.
    done = subprocess.run(
        [host, "plain", "out"], env=world.env, cwd=world.work, stdout=subprocess.PIPE, stderr=writer, timeout=20,
        preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL),
    )  # fmt: skip
    os.close(writer)
    assert done.returncode == 0 and done.stdout == b"alive\n"


def test_a_message_to_a_full_pipe_does_not_hold_the_program_up(world: World, host: Path) -> None:
    world.env["IOSIG_STORAGE"] = "/nonexistent"
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    for size in (1 << 16, 1):
        while True:
            try:
                os.write(writer, b"x" * size)
            except BlockingIOError:
                break
    os.set_blocking(writer, True)
    done = subprocess.run(
        [host, "plain", "out"], env=world.env, cwd=world.work, stdout=subprocess.PIPE, stderr=writer, timeout=20
    )
    os.close(reader)
    os.close(writer)
    assert done.stdout == b"alive\n"


def test_a_limit_on_the_size_of_files_that_the_journal_meets_does_not_end_the_program(world: World, host: Path) -> None:
    done = world.run(
        host, "plain", "out", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout == b"alive\n"
    assert not os.path.lexists(world.work / "out") and not world.journal()


@pytest.mark.parametrize("descriptors", [4, 5, 6])
def test_a_program_without_descriptors_to_spare_goes_on(world: World, host: Path, descriptors: int) -> None:
    limit = (descriptors, descriptors)
    done = world.run(host, "plain", "out", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit))
    assert done.returncode == 0 and done.stdout == b"alive\n", done.stderr


@pytest.mark.parametrize(
    ("does", "is_preloaded", "steps", "step_pages"),
    [("plain", False, 512, 1), ("container", False, 192, 4), ("files", True, 256, 4)],
)
def test_a_program_that_starts_ends_as_without_the_library_however_little_memory_is_left(
    world: World, host: Path, does: str, is_preloaded: bool, steps: int, step_pages: int
) -> None:
    page = 4096
    if is_preloaded:
        world.env |= {"LD_PRELOAD": str(BUILD / "lib/libiosig-preload.so"), "IOSIG_CONTAINERS": "*"}

    def run_with(what: str, limit: int) -> subprocess.CompletedProcess[bytes]:
        return world.run(
            host, what, "out", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        )  # fmt: skip

    def starts(limit: int) -> bool:
        done = run_with("nothing", limit)
        loader_failed = done.returncode in (127, -signal.SIGSEGV) or b"cannot be preloaded" in done.stderr
        return not loader_failed

    least = next(n for n in range(8) if starts(page << (8 + n)))
    first = bisect.bisect_left(range(page << (7 + least), page << (8 + least), page), True, key=starts)
    first = (page << (7 + least)) + first * page
    is_helped = []
    for limit in range(first, first + steps * step_pages * page, step_pages * page):
        done = run_with(does, limit)
        assert (done.returncode, done.stdout) == (0, b"alive\n"), (limit, done)
        is_helped.append((world.work / "out").is_symlink())
        for left in world.work.iterdir():
            shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
    assert not is_helped[0] and is_helped[-1] == (does == "plain")


def test_a_signature_that_is_no_pointer_is_refused(world: World, host: Path) -> None:
    assert world.run(host, "null", "out").stdout == b"0 there is no signature\nalive\n"


@pytest.mark.parametrize("stack", [16 << 10, 64 << 10, 128 << 10, 1 << 20])
def test_a_thread_with_a_small_stack_decides_as_any_other(world: World, host: Path, stack: int) -> None:
    assert world.run(host, "thread", "out", stack).stdout == b"alive\n"
    assert (world.work / "out").is_symlink()


def test_a_signal_handler_that_forks_in_the_midst_of_decisions_does_not_deadlock(world: World, host: Path) -> None:
    assert world.run(host, "signals", "out").stdout == b"alive\n"


def test_a_signal_handler_that_interrupts_malloc_opens_files_without_a_deadlock(world: World, host: Path) -> None:
    done = world.run(host, "malloc", "out")
    assert done.stdout == b"alive\n" and done.stderr == b""
    assert sum(path.is_symlink() for path in world.work.iterdir()) >= 300


@pytest.mark.parametrize("sanitizer", ["address", "thread", "undefined"])
def test_a_sanitizer_of_the_program_finds_nothing_to_say(world: World, tmp_path: Path, sanitizer: str) -> None:
    done = world.run(compile_c(HOST, tmp_path, "sanitized", f"-fsanitize={sanitizer}"), "plain", "out")
    assert done.stdout == b"alive\n" and done.stderr == b""
    assert (world.work / "out").is_symlink()


def test_a_program_that_makes_up_thousands_of_signatures_is_served(world: World, host: Path) -> None:
    assert world.run(host, "many", "out").stdout == b"2400 links\nalive\n"


def test_a_child_that_fork_did_not_make_waits_for_no_lock_of_its_parents_threads(world: World, host: Path) -> None:
    assert world.run(host, "_Fork", "out").stdout == b"alive\n"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the host answers with a register of x86-64")
def test_a_program_that_answers_for_its_seccomp_filter_answers_for_the_library_too(world: World, host: Path) -> None:
    done = world.run(host, "seccomp", "out")
    assert done.stdout == b"alive\n" and b"cannot make a link" in done.stderr
    assert not world.journal()


CLOSER = r"""
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void *library;
static void *open_and_close_the_library(void *path) {
  void (*hint)(int, const char *, int, const char *);
  *(void **)&hint = dlsym(library, "iosig_open_hint");
  hint(AT_FDCWD, path, O_CREAT | O_WRONLY, "random");
  dlclose(library);
  return 0;
}

int main(int argc, char **argv) {
  pthread_t thread;
  (void)argc;
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  pthread_create(&thread, 0, open_and_close_the_library, argv[2]);
  pthread_join(thread, 0);
  if (fork() == 0) _exit(0);
  wait(0);
  puts("alive");
  return 0;
}
"""


def test_a_program_may_close_the_library_before_its_threads_end(world: World, tmp_path: Path) -> None:
    (tmp_path / "closer.c").write_text(CLOSER)
    subprocess.run(["gcc", "-o", tmp_path / "closer", tmp_path / "closer.c", "-pthread"], check=True)
    done = world.run(tmp_path / "closer", BUILD / "lib/libiosig.so.1", "out")
    assert done.returncode == 0 and done.stdout == b"alive\n"
    assert (world.work / "out").is_symlink()


ELSEWHERE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static const char *moved(const char *path, char *room) {
  const char *seen = getenv("SEEN");
  size_t length = strlen(seen);
  if (strncmp(path, seen, length) != 0 || path[length] != '/') return path;
  snprintf(room, 4096, "%s%s", getenv("BEHIND"), path + length);
  return room;
}
#define MOVED(name, result, parameters, arguments)          \
  result name parameters {                                  \
    char room[4096];                                        \
    result(*next) parameters = dlsym(RTLD_NEXT, #name);     \
    path = moved(path, room);                               \
    return next arguments;                                  \
  }
MOVED(open, int, (const char *path, int flags, mode_t mode), (path, flags, mode))
MOVED(open64, int, (const char *path, int flags, mode_t mode), (path, flags, mode))
MOVED(openat, int, (int at, const char *path, int flags, mode_t mode), (at, path, flags, mode))
MOVED(openat64, int, (int at, const char *path, int flags, mode_t mode), (at, path, flags, mode))
MOVED(stat, int, (const char *path, void *status), (path, status))
MOVED(stat64, int, (const char *path, void *status), (path, status))
MOVED(fstatat, int, (int at, const char *path, void *status, int flags), (at, path, status, flags))
MOVED(fstatat64, int, (int at, const char *path, void *status, int flags), (at, path, status, flags))
MOVED(__xstat, int, (int version, const char *path, void *status), (version, path, status))
MOVED(__xstat64, int, (int version, const char *path, void *status), (version, path, status))
MOVED(__fxstatat, int, (int version, int at, const char *path, void *status, int flags),
      (version, at, path, status, flags))
MOVED(__fxstatat64, int, (int version, int at, const char *path, void *status, int flags),
      (version, at, path, status, flags))
"""


def test_a_library_that_moves_paths_moves_the_links_too(world: World, host: Path, tmp_path: Path) -> None:
    """As fakechroot does: to the program, `seen` is `behind`. Nothing must be made in what the kernel calls `seen`."""
    (tmp_path / "elsewhere.c").write_text(ELSEWHERE)
    library = tmp_path / "elsewhere.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, tmp_path / "elsewhere.c", "-ldl"], check=True)
    seen, behind = world.work / "seen", world.work / "behind"
    seen.mkdir()
    behind.mkdir()
    moved = world.env | {"LD_PRELOAD": str(library), "SEEN": str(seen), "BEHIND": str(behind)}
    done = world.run(host, "plain", seen / "out", env=moved)
    assert done.stdout == b"alive\n", done.stderr
    assert list(seen.iterdir()) == [] and (behind / "out").is_symlink()
