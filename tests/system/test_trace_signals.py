"""Signal handlers at every moment of a traced call: each call is in the trace with its end, or counted as lost."""

from __future__ import annotations

import errno
import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import ROOT
from preloading import LIBRARY
from tracing import Tracing

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="built without libiosig-preload.so")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the program steps through instructions of x86-64")
@pytest.mark.parametrize("handler", [3, 700], ids=["few", "many"])
def test_a_handler_at_any_instruction_of_a_call(
    tracing: Tracing, compiled: Callable[[Path], Path], handler: int
) -> None:
    """Many calls of a handler need the slots of earlier ones, also where the interrupted call writes to its own."""
    program = compiled(ROOT / "tests/support/stepped_calls.c")
    instructions, reads = map(int, tracing(program, handler).split())
    assert instructions > 100
    rows = tracing.rows(lambda row: row.call == "pread")
    told = tracing.iosig.json("trace", "info", tracing.trace)
    assert len(rows) + told["lost_calls"] == reads
    assert all(row.end_ns is not None and row.result in (16, 64) for row in rows)
    # Only while a call gets its slot, calls of a handler that need new slots are lost.
    lost = [process["lost_calls"] for process in told["processes"] if process["lost_calls"] > 0]
    assert len(lost) < instructions / 4 if handler > 600 else not lost


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the program steps through instructions of x86-64")
def test_a_handler_that_jumps_out_of_any_instruction_of_a_call_costs_few_later_ones(
    tracing: Tracing, compiled: Callable[[Path], Path]
) -> None:
    """Where a call was left while it got its slot, nothing tells for a while that no handler interrupts it."""
    instructions, reads = map(int, tracing(compiled(ROOT / "tests/support/left_claims.c")).split())
    assert instructions > 100
    told = tracing.iosig.json("trace", "info", tracing.trace)
    processes = told["processes"][1:]
    assert len(processes) == instructions
    assert all(process["calls"] + process["lost_calls"] >= reads for process in processes)
    assert max(process["lost_calls"] for process in processes) <= 2 * 576


LEFT_BY_A_JUMP = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
static sigjmp_buf back;
static void jump(int signal) { siglongjmp(back, signal); }
static void* nothing(void* unused) { return unused; }
int main(int count, char** arguments) {
  char byte;
  pthread_t thread;
  if (pthread_create(&thread, 0, nothing, 0) != 0 || pthread_join(thread, 0) != 0) return 3;
  const int fd = open("data", O_RDWR | O_CREAT, 0644), terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY);
  signal(SIGALRM, jump);
  if (sigsetjmp(back, 1) == 0) {
    ualarm(50000, 0);
    if ((count > 1 ? syscall(SYS_read, terminal, &byte, 1) : read(terminal, &byte, 1)) >= 0) return 1;
  }
  for (int n = 0; n < 5; ++n)
    if (syscall(SYS_pwrite64, fd, "abc", 3, 3L * n) != 3) return 2;
  int state;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
  return state == PTHREAD_CANCEL_ENABLE ? 0 : 4;
}
"""


@pytest.mark.parametrize("way", [(), ("by number",)], ids=["called", "by number"])
def test_calls_by_number_are_recorded_after_a_jump_out_of_a_call(
    tracing: Tracing, compiled: Callable[[Path], Path], tmp_path: Path, way: tuple[str, ...]
) -> None:
    """By `read`, or by a call by number, in which the thread cannot be cancelled."""
    (tmp_path / "jump.c").write_text(LEFT_BY_A_JUMP)
    tracing(compiled(tmp_path / "jump.c"), *way)
    assert [row.offset for row in tracing.of_file("data", "pwrite")] == [0, 3, 6, 9, 12]


HIDDEN_STACK = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
enum { bytes = 65536, autodisarm = 1u << 31 };
static int fd, terminal;
static void* stack;
static void write_some(int signal) {
  (void)signal;
  for (int n = 0; n < 3; ++n) (void)!pwrite(fd, "handler", 7, 100);
}
static void* wait_for_signal(void* unused) {
  char byte;
  const struct sigaction action = {.sa_handler = write_some, .sa_flags = SA_ONSTACK};
  const stack_t own = {.ss_sp = stack, .ss_flags = autodisarm, .ss_size = bytes};
  if (sigaltstack(&own, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0) return NULL;
  return read(terminal, &byte, 1) < 0 ? stack : NULL;
}
int main(void) {
  pthread_t thread;
  void* answer = NULL;
  fd = open("data", O_RDWR | O_CREAT, 0644);
  terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY);
  stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* above the thread's */
  if (pthread_create(&thread, NULL, wait_for_signal, NULL) != 0) return 1;
  usleep(100000);
  pthread_kill(thread, SIGUSR1);
  pthread_join(thread, &answer);
  return answer == stack ? 0 : 2;
}
"""


def test_a_handler_on_a_stack_that_the_kernel_has_forgotten_ends_no_call(
    tracing: Tracing, compiled: Callable[[Path], Path], tmp_path: Path
) -> None:
    (tmp_path / "hidden.c").write_text(HIDDEN_STACK)
    tracing(compiled(tmp_path / "hidden.c"))
    (read,) = tracing.rows(lambda row: row.call == "read")
    writes = tracing.of_file("data", "pwrite")
    assert read.result == -errno.EINTR and len(writes) == 3
    assert all(row.parent == read.id for row in writes)


HANDLER_ABOVE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static char *high, *low;
static int ends[2], before = -1, after = -1;
static void handle(int signal) {
  (void)signal;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  pthread_setcancelstate(before, 0);
  syscall(SYS_getppid);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &after);
  pthread_setcancelstate(after, 0);
  if (write(ends[1], "x", 1) != 1) _exit(4);
}
static void* reader(void* unused) {
  (void)unused;
  char byte;
  stack_t stack = {.ss_sp = high, .ss_size = 1 << 16};
  if (sigaltstack(&stack, 0) != 0) _exit(5);
  if (syscall(SYS_read, ends[0], &byte, 1) != 1) _exit(6);
  return 0;
}
int main(void) {
  char* const both = mmap(0, 1 << 21, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (both == MAP_FAILED || pipe(ends) != 0) return 2;
  low = both;
  high = both + (1 << 20);
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK | SA_RESTART};
  sigaction(SIGUSR1, &action, 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, low, 1 << 20);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, reader, 0) != 0) return 3;
  usleep(50000);
  pthread_kill(thread, SIGUSR1);
  pthread_join(thread, 0);
  return before == after ? 0 : 1;
}
"""


def test_a_handler_on_a_stack_above_does_not_end_the_call_by_number_that_it_interrupts(
    tracing: Tracing, compiled: Callable[[Path], Path], tmp_path: Path
) -> None:
    (tmp_path / "above.c").write_text(HANDLER_ABOVE)
    tracing(compiled(tmp_path / "above.c"))
