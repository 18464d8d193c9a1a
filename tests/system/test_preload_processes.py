"""libiosig-preload.so: several processes and threads on one container: order, sharing, locks, kills."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import ROOT
from preloading import LIBRARY, Preloaded, assert_same_as_plain

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="built without libiosig-preload.so")


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


def test_a_child_never_waits_for_a_thread_that_only_its_parent_has(run: Preloaded, fork_at_step: Path) -> None:
    """Whatever step of writing a container another thread is in when the program forks, the child can write one."""
    program = run.start(fork_at_step, "file", "", "5")
    said, complained = program.communicate(timeout=600)
    assert program.returncode == 0 and not complained, said.decode() + complained.decode()
    assert int(said.split()[0]) > 40
    assert run.is_container("thread1") and run.content("child1") == b"x" and run.is_sound("child1")


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


def test_threads_open_and_close_what_others_write(run: Preloaded, compiled: Callable[[Path], Path]) -> None:
    program = compiled(ROOT / "tests/support/threads_reopen.c")
    for forks in ([], ["fork"]):
        assert run(program, "shared.dat", *forks) == "0 wrong\n"
        (run.directory / "shared.dat").rename(run.directory / f"kept{len(forks)}")


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


def test_locks_hold_between_processes(run: Preloaded, compiled: Callable[[Path], Path]) -> None:
    assert_same_as_plain(run, compiled(ROOT / "tests/support/locks.c"), 900)


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


def test_a_file_removed_while_its_last_user_closes_it_is_gone(run: Preloaded) -> None:
    """rm has renamed the container, the last user is deleting it, and rm looks: a directory without a manifest."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")

    def traced(*inject: str) -> list[str]:
        return ["strace", "-f", "-qq", "-o", "/dev/null", *(word for each in inject for word in ("-e", each))]

    deletes_late = traced("trace=rmdir", "inject=rmdir:delay_enter=800000")
    user = run.start(*deletes_late, "sh", "-c", "exec 3>file; echo open; read line", stdin=subprocess.PIPE)
    assert user.stdout is not None and user.stdout.readline() == b"open\n"
    looks_late = traced("trace=renameat2", "inject=renameat2:delay_exit=400000")
    rm = run.start(*looks_late, "rm", "file")
    while not list(run.directory.glob(".file.iosig-removed-*")):
        time.sleep(0.01)
    user.communicate(b"\n", timeout=60)
    _, complained = rm.communicate(timeout=60)
    assert rm.returncode == 0, complained
    assert list(run.directory.iterdir()) == []


@pytest.mark.parametrize("number", [3, 63, 64, 500])
def test_a_container_is_inherited_under_any_number(run: Preloaded, number: int) -> None:
    """A program looks at its first numbers one by one when it starts, and lists the others if there are any."""
    child = f"import os; print(os.read({number}, 100)); os.lseek({number}, 0, 0); print(os.write({number}, b'L'))"
    said = run.python(
        "import os, sys\n"
        "with open('box', 'wb') as box: box.write(b'line')\n"
        "fd = os.open('box', os.O_RDWR)\n"
        f"os.dup2(fd, {number})\n"
        f"os.set_inheritable({number}, True)\n"
        f"fd == {number} or os.close(fd)\n"
        f"os.execv(sys.executable, [sys.executable, '-S', '-E', '-c', {child!r}])\n"
    )
    assert said == "b'line'\n1\n" and run.content("box") == b"Line"
