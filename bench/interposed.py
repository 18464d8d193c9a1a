"""What libiosig-preload.so costs a program that has nothing to do with containers: per call, and per process.

    .venv/bin/python bench/interposed.py [--rounds 301] [--processes 15] [--turns 30] [--library FILE]

Calls: a process with the library preloaded makes each call on an ordinary file, in turns of a hundred, through the
library and through libc's own function behind it. The median of the differences in processor time between the two turns
of a round, in nanoseconds for a call; medians of the processes.

Starts: a shell runs /bin/true a hundred times, in turns alone, with an empty preloaded library, and with this one.
Processor time of a process in microseconds, medians, and the median of the differences within a turn.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import tempfile
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent / "build"
IN_LOOP = 100  # processes in a turn
PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { calls = 100 };
static int fd;
static char bytes[64];
static struct stat status;

static void of_read(void *f) { ((ssize_t(*)(int, void *, size_t))f)(fd, bytes, 0); }
static void of_write(void *f) { ((ssize_t(*)(int, const void *, size_t))f)(fd, bytes, 0); }
static void of_pread(void *f) { ((ssize_t(*)(int, void *, size_t, off_t))f)(fd, bytes, 1, 0); }
static void of_pwrite(void *f) { ((ssize_t(*)(int, const void *, size_t, off_t))f)(fd, bytes, 1, 0); }
static void of_lseek(void *f) { ((off_t(*)(int, off_t, int))f)(fd, 0, SEEK_CUR); }
static void of_fstat(void *f) { ((int (*)(int, struct stat *))f)(fd, &status); }
static const struct { const char *name; void (*call)(void *); } kinds[] = {
  {"read", of_read}, {"write", of_write}, {"pread", of_pread}, {"pwrite", of_pwrite}, {"lseek", of_lseek},
  {"fstat", of_fstat}};

static double turn_ns(void (*call)(void *), void *function) {
  struct timespec begin, end;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  for (int n = 0; n < calls; ++n) call(function);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return (1e9 * (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec)) / calls;
}

int main(int argc, char **argv) {
  const int rounds = atoi(argv[2]);
  void *const libc = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
  fd = open(argv[1], O_RDWR);
  for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; ++kind) {
    void *const through = dlsym(RTLD_DEFAULT, kinds[kind].name), *const behind = dlsym(libc, kinds[kind].name);
    if (argc != 3 || fd < 0 || through == behind) return 1;
    printf("%s", kinds[kind].name);
    for (int round = 0; round < rounds; ++round) {
      const int first = round % 2;
      double ns[2];
      for (int turn = 0; turn < 2; ++turn)
        ns[turn ^ first] = turn_ns(kinds[kind].call, (turn ^ first) ? behind : through);
      printf(" %.2f,%.2f", ns[0], ns[1]);
    }
    puts("");
  }
  return 0;
}
"""


def added_ns(library: Path, rounds: int, processes: int, work: Path) -> None:
    """Prints the table of calls. A process has one place for each function in memory, which may be a bad one."""
    (work / "calls.c").write_text(PROGRAM)
    (work / "file").write_bytes(bytes(64))
    subprocess.run(["gcc", "-O2", "-w", "-o", work / "calls", work / "calls.c", "-ldl"], check=True)
    env = os.environ | {"LD_PRELOAD": str(library)}
    command = [str(work / "calls"), str(work / "file"), str(rounds)]
    behind: dict[str, list[float]] = {}
    added: dict[str, list[float]] = {}
    for _ in range(processes):
        told = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
        for line in told.splitlines():
            name, *turns = line.split()
            pairs = [tuple(map(float, turn.split(","))) for turn in turns]
            behind.setdefault(name, []).append(statistics.median(pair[1] for pair in pairs))
            added.setdefault(name, []).append(statistics.median(pair[0] - pair[1] for pair in pairs))
    print("call     libc's, ns   added, ns   (least and most of a process)")
    for name, each in added.items():
        print(
            f"{name:8} {statistics.median(behind[name]):10.1f}  {statistics.median(each):10.2f}"
            f"   ({min(each):.2f} {max(each):.2f})"
        )


def start_us(env: dict[str, str]) -> float:
    """Processor time of one /bin/true in a loop of a shell."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    loop = f"n=0; while [ $n -lt {IN_LOOP} ]; do /bin/true; n=$((n + 1)); done"
    os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", loop], env), 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e6 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / IN_LOOP


def starts(library: Path, turns: int, work: Path) -> None:
    """Prints the table of starts."""
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", work / "empty.so"], check=True)
    ways = {"alone": None, "an empty library": work / "empty.so", "this library": library}
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(turns):
        for name, preloaded in ways.items():
            taken[name].append(start_us({} if preloaded is None else {"LD_PRELOAD": str(preloaded)}))
    print("\n/bin/true                us   above the empty library, us")
    for name, each in taken.items():
        above = statistics.median(one - other for one, other in zip(each, taken["an empty library"], strict=True))
        print(f"{name:20} {statistics.median(each):6.0f}   {above:6.0f}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--directory", type=Path, default=Path("/dev/shm"))
    options.add_argument("--rounds", type=int, default=301)
    options.add_argument("--processes", type=int, default=15)
    options.add_argument("--turns", type=int, default=30)
    options.add_argument("--library", type=Path, default=BUILD / "lib/libiosig-preload.so")
    told = options.parse_args()
    os.closerange(3, 4096)  # what the shell left open would be looked through by each process
    with tempfile.TemporaryDirectory(dir=told.directory) as work:
        added_ns(told.library.resolve(), told.rounds, told.processes, Path(work))
        starts(told.library.resolve(), told.turns, Path(work))


if __name__ == "__main__":
    main()
