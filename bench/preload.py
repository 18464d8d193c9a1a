"""What a call costs under libiosig-preload.so: containers, and ordinary files, against the same program without it.

    .venv/bin/python bench/preload.py [--directory /dev/shm] [--rounds 5]

One C program: processes write a file, strided or every block at random, and read it back, at random in another order,
each access a call of pwrite or pread, timed by their own clocks of processors. Without the library, with it on an
ordinary file, and with it on a container take turns within each round; medians.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent / "build"
SIZES = {64: 200_000, 4096: 40_000}  # bytes of an access: accesses of all processes
PROGRAM = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Where the access of each turn is. */
static void deal(long *place, long blocks, int is_random) {
  for (long turn = 0; turn < blocks; ++turn) {
    const long other = is_random ? random() % (turn + 1) : turn;
    place[turn] = place[other];
    place[other] = turn;
  }
}

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

int main(int argc, char **argv) {
  const long processes = atol(argv[2]), size = atol(argv[3]), each = atol(argv[4]) / processes;
  const int is_random = argv[5][0] == 'r';
  const long blocks = each * processes;
  long *place = malloc((size_t)blocks * sizeof *place);
  double *ns = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), sum[2] = {0, 0};
  char *block = calloc(1, (size_t)size);
  (void)argc;
  close(open(argv[1], O_CREAT | O_WRONLY, 0644));
  for (int reads = 0; reads < 2; ++reads) {
    deal(place, blocks, is_random);
    for (long rank = 0; rank < processes; ++rank)
      if (fork() == 0) {
        const int fd = open(argv[1], O_RDWR);
        if (reads ? pread(fd, block, 1, 0) < 0 : pwrite(fd, block, (size_t)size, place[rank] * size) != size) _exit(1);
        const double begin = now_ns();
        for (long n = 0; n < each; ++n) {
          const off_t at = place[n * processes + rank] * size;
          if ((reads ? pread(fd, block, (size_t)size, at) : pwrite(fd, block, (size_t)size, at)) != size) _exit(1);
        }
        ns[rank] = (now_ns() - begin) / (double)each;
        if (close(fd) != 0) _exit(1);
        _exit(0);
      }
    for (long rank = 0, status; rank < processes; ++rank) {
      int ended = 0;
      status = wait(&ended);
      if (status < 0 || ended != 0) return 1;
    }
    for (long rank = 0; rank < processes; ++rank) sum[reads] += ns[rank] / (double)processes;
  }
  printf("%f %f\n", sum[0], sum[1]);
  return 0;
}
"""
PRELOAD = f"LD_PRELOAD={BUILD}/lib/libiosig-preload.so"


def run(
    program: Path, path: Path, shape: str, processes: int, size: int, library: bool, container: bool
) -> tuple[float, float]:
    """Nanoseconds of processors for a write and for a read."""
    before = ["env", *([PRELOAD] if library else []), *([f"IOSIG_CONTAINERS={path}"] if container else [])]
    words = [*before, str(program), str(path), str(processes), str(size), str(SIZES[size]), shape]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    write_ns, read_ns = map(float, done.stdout.split())
    return write_ns, read_ns


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--directory", type=Path, default=Path("/dev/shm"))
    options.add_argument("--rounds", type=int, default=5)
    told = options.parse_args()
    print(f"ns of processors for a call, {os.cpu_count()} processors, medians of {told.rounds}:")
    print("alone, with the library on an ordinary file, on a container (and its ratio)")
    print("shape    processes  access | write:  alone  ordinary  container        | read:  alone  ordinary  container")
    with tempfile.TemporaryDirectory(dir=told.directory) as work:
        source, program = Path(work) / "calls.c", Path(work) / "calls"
        source.write_text(PROGRAM)
        subprocess.run(["gcc", "-O2", "-o", program, source], check=True)
        for shape, processes, size in itertools.product(("strided", "random"), (1, 4), SIZES):
            taken: dict[tuple[bool, bool], list[tuple[float, float]]] = {}
            for _ in range(told.rounds):
                for way in ((False, False), (True, False), (True, True)):
                    once = run(program, Path(work) / "file", shape, processes, size, *way)
                    taken.setdefault(way, []).append(once)
            cells = []
            for call in (0, 1):
                plain, ordinary, container = (
                    statistics.median(once[call] for once in taken[way])
                    for way in ((False, False), (True, False), (True, True))
                )
                cells.append(f"{plain:14.0f}  {ordinary:8.0f}  {container:9.0f} ({container / plain:4.2f})")
            print(f"{shape:8} {processes:9}  {size:4} B | {' | '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
