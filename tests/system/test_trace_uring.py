"""`iosig trace` of programs that use io_uring through liburing."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import BUILD
from tracing import Tracing

SUPPORT = Path(__file__).resolve().parent.parent / "support"
REFUSED = 77  # the programs' status if the kernel refuses io_uring

pytestmark = pytest.mark.skipif(not Path("/usr/include/liburing.h").exists(), reason="needs liburing-dev")


@pytest.fixture
def ring_program(tmp_path: Path) -> Callable[[str], Path]:
    """Compiles a program that uses rings; skips if the kernel refuses them."""

    def compiled(source: str) -> Path:
        (tmp_path / "ring.c").write_text(source)
        program = tmp_path / "ring"
        subprocess.run(["gcc", "-O1", "-g", "-o", program, tmp_path / "ring.c", "-luring", "-pthread"], check=True)
        probe = tmp_path / "probe"
        probe.mkdir()
        if subprocess.run([program, "1", "1"], cwd=probe, capture_output=True).returncode == REFUSED:
            pytest.skip("the kernel refuses io_uring")
        return program

    return compiled


@pytest.mark.parametrize("seed", range(2))
def test_every_operation_is_there_with_every_field(
    tracing: Tracing, ring_program: Callable[[str], Path], seed: int
) -> None:
    said = tracing(ring_program((SUPPORT / "traced_ring.c").read_text()), seed, 2000)
    wanted = sorted(tuple(line.split()) for line in said.splitlines())
    rows = tracing.rows(lambda row: row.call.startswith("io_uring_"))
    none = str(-(2**63))
    found = sorted(
        (
            row.call,
            Path(row.path).name,
            none if row.offset is None else str(row.offset),
            none if row.length is None else str(row.length),
            str(row.result),
        )
        for row in rows
    )
    assert found == wanted and len(wanted) == 2000
    assert all(row.parent == "0" and row.end_ns is not None and row.end_ns >= row.start_ns for row in rows)


OTHERS = r"""
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <unistd.h>
static struct io_uring ring;
static char bytes[100];
static void await(int count) {
  struct io_uring_cqe* completion;
  for (; count > 0; --count) {
    if (io_uring_wait_cqe(&ring, &completion) != 0) abort();
    io_uring_cqe_seen(&ring, completion);
  }
}
static struct io_uring_sqe* request(void) { return io_uring_get_sqe(&ring); }
int main(void) {
  if (io_uring_queue_init(8, &ring, 0) != 0) return 77;
  const int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0666), moved = open("moved", O_RDWR | O_CREAT, 0666);
  // The same user data for all, which the program does not need.
  for (int n = 0; n < 6; ++n) io_uring_prep_write(request(), fd, bytes, 10, (__u64)n * 10);  // selected
  if (io_uring_submit_and_wait(&ring, 6) != 6) abort();
  await(6);
  for (int n = 0; n < 3; ++n) {  // at the file offset, also together with write(2)
    io_uring_prep_write(request(), moved, bytes, 5, (__u64)-1);
    io_uring_submit_and_wait(&ring, 1);
    await(1);
    if (write(moved, bytes, 2) != 2) abort();
  }
  struct io_uring_sqe* first = request();  // fails, and takes the next one with it
  io_uring_prep_read(first, fd, (void*)8, 50, 0);
  first->flags |= IOSQE_IO_LINK;
  io_uring_prep_read(request(), fd, bytes, 60, 0);
  io_uring_submit_and_wait(&ring, 2);
  await(2);
  io_uring_prep_close(request(), moved);
  io_uring_submit_and_wait(&ring, 1);
  await(1);
  const int again = open("again", O_RDWR | O_CREAT, 0666);  // the same number
  if (again != moved) abort();
  io_uring_prep_write(request(), again, bytes, 7, 0);
  io_uring_submit(&ring);
  unsigned head;
  struct io_uring_cqe* completion;
  for (int found = 0; found == 0;) io_uring_for_each_cqe(&ring, head, completion) found = 1;
  io_uring_cq_advance(&ring, 1);
  return 0;  // without io_uring_queue_exit(), nor a call of liburing after the last completion
}
"""


def test_operations_that_are_hard_to_follow_are_there(tracing: Tracing, ring_program: Callable[[str], Path]) -> None:
    tracing(ring_program(OTHERS))
    rows = [row for row in tracing.of_file("data") if row.call.startswith("io_uring_")]
    assert sorted(row.offset or 0 for row in rows if row.call == "io_uring_write") == [0, 10, 20, 30, 40, 50]
    assert {row.length: row.result for row in rows if row.call == "io_uring_read"} == {50: -14, 60: -125}
    moved = [row for row in tracing.of_file("moved") if row.call in ("io_uring_write", "write")]
    assert [row.offset for row in moved] == [0, 5, 7, 12, 14, 19]
    assert [row.length for row in tracing.of_file("again", "io_uring_write")] == [7]


def test_operations_are_selected_by_name_file_and_the_line_that_submits(
    tracing: Tracing, ring_program: Callable[[str], Path]
) -> None:
    program = ring_program(OTHERS)
    tracing(program, options=("--ops", "io_uring_write", "--files", "moved"))
    rows = [row for row in tracing.rows() if row.call != "inherited"]
    assert [(Path(row.path).name, row.call, row.offset) for row in rows] == [
        ("moved", "io_uring_write", offset) for offset in (0, 7, 14)
    ]
    if (BUILD / "libexec/iosig/iosig-lines").exists():
        [line] = [number for number, text in enumerate(OTHERS.splitlines(), 1) if "// selected" in text]
        tracing(program, options=("--source", f"ring.c:{line + 1}"))
        assert [row.offset for row in tracing.rows(lambda row: row.call != "inherited")] == [0, 10, 20, 30, 40, 50]


MANY_IN_FLIGHT = r"""
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <stdlib.h>
static struct io_uring ring;
static int count;
static void* reap(void* nothing) {
  for (int n = 0; n < count; ++n) {
    struct io_uring_cqe* done;
    if (io_uring_wait_cqe(&ring, &done) != 0) { --n; continue; }
    io_uring_cqe_seen(&ring, done);
  }
  return nothing;
}
int main(int argc, char** argv) {
  static char bytes[10];
  count = atoi(argv[1]);
  if (io_uring_queue_init(8, &ring, 0) != 0) return 77;
  const int fd = open("data", O_WRONLY | O_CREAT, 0600);
  pthread_t reaper;
  pthread_create(&reaper, 0, reap, 0);
  for (int n = 0; n < count; ++n) {
    struct io_uring_sqe* request;
    while ((request = io_uring_get_sqe(&ring)) == 0) io_uring_submit(&ring);
    io_uring_prep_write(request, fd, bytes, 10, 10L * n);
    io_uring_submit(&ring);
  }
  pthread_join(reaper, 0);
  return 0;
}
"""


def test_more_operations_may_be_in_flight_than_the_queues_hold(
    tracing: Tracing, ring_program: Callable[[str], Path]
) -> None:
    """One thread submits, and the other one reaps."""
    tracing(ring_program(MANY_IN_FLIGHT), 2000)
    rows = tracing.rows(lambda row: row.call == "io_uring_write")
    assert sorted(row.offset for row in rows if row.offset is not None) == [10 * n for n in range(2000)]
