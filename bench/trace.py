"""What `iosig trace` costs a traced program: per call, per process, and in bytes.

    .venv/bin/python bench/trace.py [--rounds 41] [--processes 5] [--turns 15] [--directory /dev/shm]

Calls: a traced process makes each call in turns of 4096, through the recorder and through libc's function behind it.
Two rounds go over the sequential file once; which way is first changes with each pass, so that both meet each part of
it. The median of the differences in processor time, each the mean of a round's and of the same round's a pass later,
in nanoseconds for a call; packing is in it. The floor is what any recorder of begin and end pays: two clock reads and a
store of 32 bytes in memory that is written once. Bytes: what the trace's files grow by, for each call, lossless.

Starts: a shell runs /bin/true a hundred times, in turns with an empty preloaded library, with the recorder's library
that does not record, and traced. The library is a copy, as an installed one is: the pages of one that the linker has
just written are mapped more slowly. Peers: strace, if it is there, and DFTracer: pip download --no-deps
dftracer==2.2.0, unzip, --dftracer DIRECTORY; Darshan's runtime, built from its source, --darshan PREFIX. Processor time
of the same calls, of all processes. Whole programs: trace_programs.py.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent / "build"
IN_LOOP = 100  # processes in a turn
PASS = 2  # rounds that go over the file once; `passed` in the program
PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { calls = 4096, span = 64 << 20, passed = 2 };  // rounds in which a file of `span` is passed over sequentially
typedef ssize_t (*Plain)(int, void *, size_t);
typedef ssize_t (*Placed)(int, void *, size_t, off_t);
struct state { int fd; off_t at; uint64_t random; char bytes[4096]; };
static off_t next_random(struct state *s, off_t end) {
  s->random = s->random * 6364136223846793005u + 1442695040888963407u;
  return (off_t)(s->random >> 20) % (end / 4096) * 4096;
}
static void write_64(void *f, struct state *s) {
  ((Placed)f)(s->fd, s->bytes, 64, s->at); s->at = (s->at + 256) % span;
}
static void write_4096(void *f, struct state *s) {
  ((Placed)f)(s->fd, s->bytes, 4096, s->at); s->at = (s->at + 4096) % span;
}
static void read_random(void *f, struct state *s) { ((Placed)f)(s->fd, s->bytes, 4096, next_random(s, span)); }
static void read_far(void *f, struct state *s) { ((Placed)f)(s->fd, s->bytes, 4096, next_random(s, (off_t)1 << 40)); }
static void read_next(void *f, struct state *s) {
  if (((Plain)f)(s->fd, s->bytes, 4096) < 4096) lseek(s->fd, 0, SEEK_SET);
}
static const struct { const char *name, *function; void (*call)(void *, struct state *); } kinds[] = {
  {"pwrite 64 B, strided", "pwrite", write_64}, {"pwrite 4 KB, sequential", "pwrite", write_4096},
  {"pread 4 KB, random in 64 MB", "pread", read_random}, {"pread 4 KB, random in 1 TB", "pread", read_far},
  {"read 4 KB, sequential", "read", read_next}};

static double elapsed_ns(struct timespec begin, struct timespec end) {
  return 1e9 * (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec);
}
static const char *path;
static int kind, rounds, only_traced;
static void *measure(void *unused) {
  (void)unused;
  struct state *s = calloc(1, sizeof *s);
  s->fd = open(path, O_RDWR);
  void *const libc = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
  void *const functions[2] = {dlsym(RTLD_DEFAULT, kinds[kind].function), dlsym(libc, kinds[kind].function)};
  char *out = malloc((size_t)rounds * 40 + 1), *at = out;
  *out = 0;
  for (int round = 0; round < rounds; ++round) {
    double ns[2] = {0, 0};
    for (int turn = 0; turn < (only_traced ? 1 : 2); ++turn) {
      const int which = only_traced ? 0 : turn ^ (round / passed % 2);
      struct timespec begin, end;
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
      for (int n = 0; n < calls; ++n) kinds[kind].call(functions[which], s);
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
      ns[which] = elapsed_ns(begin, end) / calls;
    }
    at += sprintf(at, " %.2f,%.2f", ns[0], ns[1]);
  }
  return out;
}
static double floor_ns(void) {
  static uint64_t records[1 << 20][4];
  struct timespec begin, end, time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  for (size_t n = 0; n < sizeof records / sizeof *records; ++n) {
    clock_gettime(CLOCK_MONOTONIC, &time);
    records[n][0] = (uint64_t)time.tv_nsec;
    records[n][1] = n;
    clock_gettime(CLOCK_MONOTONIC, &time);
    records[n][2] = (uint64_t)time.tv_nsec;
    *(volatile uint64_t *)&records[n][3] = n;
  }
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return elapsed_ns(begin, end) / (double)(sizeof records / sizeof *records);
}
int main(int argc, char **argv) {
  if (argc == 2) { printf("%.1f\n", floor_ns()); return 0; }
  path = argv[1]; kind = atoi(argv[2]); rounds = atoi(argv[3]); only_traced = atoi(argv[5]);
  const int threads = atoi(argv[4]);
  pthread_t each[8];
  void *out;
  for (int n = 0; n < threads; ++n) pthread_create(&each[n], 0, measure, 0);
  for (int n = 0; n < threads; ++n) { pthread_join(each[n], &out); puts(out); }
  return 0;
}
"""
KINDS = [
    "pwrite 64 B, strided", "pwrite 4 KB, sequential", "pread 4 KB, random in 64 MB", "pread 4 KB, random in 1 TB",
    "read 4 KB, sequential",
]  # fmt: skip
CHUNKS = 40960  # where a part's packed calls begin (docs/formats/trace.md)


def cpu_s(command: list[str | Path], **more: object) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [str(part) for part in command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more
    )  # type: ignore[call-overload]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def traced(work: Path, *command: object) -> tuple[str, Path]:
    """Runs the command traced; returns its output and the trace's directory."""
    trace = Path(tempfile.mkdtemp(dir=work)) / "trace"
    run = [BUILD / "bin/iosig", "trace", "-o", trace, "--", *command]
    return subprocess.run([str(part) for part in run], capture_output=True, text=True, check=True).stdout, trace


def calls(work: Path, rounds: int, processes: int) -> None:
    """Prints the table of calls."""
    (work / "calls.c").write_text(PROGRAM)
    program = work / "calls"
    subprocess.run(["gcc", "-O2", "-w", "-o", program, work / "calls.c", "-ldl", "-lpthread"], check=True)
    with (work / "file").open("wb") as file:
        file.write(bytes(64 << 20))
    floors = [
        float(subprocess.run([program, "floor"], capture_output=True, text=True, check=True).stdout) for _ in range(5)
    ]
    print(f"floor: two clock reads and a store of 32 bytes: {statistics.median(floors):.0f} ns")
    print(
        "\ncall                          libc's, ns  added, ns (least and most of a process)   2 threads   bytes a call"
    )
    for kind, name in enumerate(KINDS):
        added: dict[int, list[float]] = {1: [], 2: []}
        behind: list[float] = []
        for threads in (1, 2):
            for _ in range(processes):
                told, trace = traced(work, program, work / "file", kind, rounds, threads, 0)
                shutil.rmtree(trace.parent)
                for line in told.splitlines():
                    pairs = [tuple(map(float, turn.split(","))) for turn in line.split()]
                    differences = [pair[0] - pair[1] for pair in pairs]
                    added[threads].append(
                        statistics.median(map(statistics.mean, zip(differences, differences[PASS:], strict=False)))
                    )
                    if threads == 1:
                        behind.append(statistics.median(pair[1] for pair in pairs))
        _, trace = traced(work, program, work / "file", kind, rounds, 1, 1)
        grown = sum(max(part.stat().st_size - CHUNKS, 0) for part in trace.glob("*.part"))
        shutil.rmtree(trace.parent)
        print(
            f"{name:28} {statistics.median(behind):11.0f} {statistics.median(added[1]):10.1f}"
            f"   ({min(added[1]):.1f} {max(added[1]):.1f}) {statistics.median(added[2]):24.1f}"
            f" {grown / (rounds * 4096):14.2f}"
        )


def starts(work: Path, copied: Path, turns: int) -> None:
    """Prints the table of starts. `copied`: a directory for the copy of the library."""
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", work / "empty.so"], check=True)
    loop = f"n=0; while [ $n -lt {IN_LOOP} ]; do /bin/true; n=$((n + 1)); done"
    library = shutil.copy(BUILD / "lib/libiosig-preload.so", copied / "libiosig-preload.so")
    ways = ["an empty library", "not recording", "traced"]
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(turns):
        for name in ways:
            trace = work / "starts.trace"
            trace.mkdir(exist_ok=True)
            env = {"LD_PRELOAD": str(work / "empty.so") if name == ways[0] else library}
            if name == "traced":
                env |= {"IOSIG_TRACE": str(trace), "IOSIG_TRACE_CLOCK": "tsc"}
            taken[name].append(1e6 * cpu_s(["/bin/sh", "-c", loop], env=env) / IN_LOOP)
            shutil.rmtree(trace)
    print("\n/bin/true                us   above the empty library, us")
    for name, each in taken.items():
        above = statistics.median(one - other for one, other in zip(each, taken[ways[0]], strict=True))
        print(f"{name:20} {statistics.median(each):6.0f}   {above:6.0f}")


@dataclass
class Way:
    """A way to run the program; `logs`: globs below the working directory of what it writes then."""

    command: list[object]
    logs: str = ""
    env: dict[str, str] = field(default_factory=dict)


def ways_of(work: Path, program: list[object], dftracer: Path | None, darshan: Path | None) -> dict[str, Way]:
    """Alone, traced by us, and by each peer that is there."""
    ways = {
        "alone": Way(program),
        "iosig trace": Way(
            [BUILD / "bin/iosig", "trace", "-o", work / "iosig.trace", "--", *program], "iosig.trace/*.part"
        ),
    }
    if strace := shutil.which("strace"):
        traced_by = [strace, "-f", "--seccomp-bpf", "-ttt", "-T", "-e", "trace=pwrite64", "-o", work / "strace.out"]
        ways["strace --seccomp-bpf"] = Way([*traced_by, *program], "strace.out")
    if dftracer:
        libraries = dftracer / "dftracer" / "lib64"
        ways["DFTracer, with offsets"] = Way(
            program,
            "dftracer-*",
            {
                "LD_PRELOAD": str(libraries / "libdftracer_preload.so"),
                "LD_LIBRARY_PATH": f"{libraries}:{dftracer / 'dftracer.libs'}",
                "DFTRACER_ENABLE": "1",
                "DFTRACER_INIT": "PRELOAD",
                "DFTRACER_INC_METADATA": "1",
                "DFTRACER_LOG_FILE": str(work / "dftracer"),
                "DFTRACER_DATA_DIR": str(work),
            },
        )
    if darshan:
        settings = work / "darshan.conf"  # it leaves out /dev, where a tmpfs is; MiB: room for every operation
        settings.write_text("NAME_INCLUDE .* *\nMODMEM 64\n")
        env = {
            "LD_PRELOAD": str(darshan / "lib/libdarshan.so"),
            "DARSHAN_ENABLE_NONMPI": "1",
            "DARSHAN_LOGPATH": str(work),
            "DARSHAN_CONFIG_PATH": str(settings),
        }
        ways["Darshan, counters only"] = Way(program, "*.darshan", env)
        ways["Darshan, with DXT"] = Way(program, "*.darshan", env | {"DXT_ENABLE_IO_TRACE": "1"})
    return ways


def peers(work: Path, dftracer: Path | None, darshan: Path | None) -> None:
    """Prints the table of whole processes: the program that only calls, traced by each."""
    turns = 61
    ways = ways_of(work, [work / "calls", work / "file", 0, turns, 1, 1], dftracer, darshan)
    print("\n250,000 pwrites of 64 B        CPU s, of all processes   ns a call above alone   bytes a call")
    taken: dict[str, list[float]] = {name: [] for name in ways}
    written: dict[str, int] = {}
    for _ in range(3):
        for name, way in ways.items():
            taken[name].append(cpu_s(way.command, env=os.environ | way.env))
            logs = [log for log in work.glob(way.logs) if log.is_file()] if way.logs else []
            written[name] = sum(log.stat().st_size for log in logs)
            for log in logs:
                log.unlink()
            shutil.rmtree(work / "iosig.trace", ignore_errors=True)
    for name, each in taken.items():
        above = statistics.median(each) - statistics.median(taken["alone"])
        a_call = f"{above / turns / 4096 * 1e9:32.0f} {written[name] / turns / 4096:18.1f}" if name != "alone" else ""
        print(f"{name:30} {statistics.median(each):8.2f} {a_call}")
    there = {"strace": shutil.which("strace"), "DFTracer (--dftracer)": dftracer, "Darshan (--darshan)": darshan}
    for peer, is_there in there.items():
        if not is_there:
            print(f"{peer}: not there, not measured")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--directory", type=Path, default=Path("/dev/shm"))
    options.add_argument("--rounds", type=int, default=41)
    options.add_argument("--processes", type=int, default=5)
    options.add_argument("--turns", type=int, default=15)
    options.add_argument("--dftracer", type=Path, help="where the wheel of its Python package is unpacked")
    options.add_argument(
        "--darshan",
        type=Path,
        help="where its runtime is installed (configure --without-mpi --with-log-path-by-env=DARSHAN_LOGPATH)",
    )
    told = options.parse_args()
    os.closerange(3, 4096)  # what the shell left open would be looked through by each process
    print(f"load: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory(dir=told.directory) as work:
        calls(Path(work), told.rounds, told.processes)
        with tempfile.TemporaryDirectory(dir=BUILD) as copied:
            starts(Path(work), Path(copied), told.turns)
        peers(Path(work), told.dftracer, told.darshan)


if __name__ == "__main__":
    main()
