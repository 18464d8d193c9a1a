"""Every step of a redirect and of its settlement is killed, and made to fail, in a run of its own.

strace lists the system calls of one undisturbed run that touch the test's files. Then each is hit: by SIGKILL before
it happens, or by an error in its place. After every single run the data must be at the path that was asked for, or
reachable through it; `recover` and `finalize` must end clean; no foreign file may be lost and nothing of IOSIG be left.

A command that scans /proc makes as many calls as there are processes. In such a scenario strace counts only calls on
the world's own files, so a number means the same call in every run. Names in a directory have no order: the test looks
at the call that was hit, and repeats a run that hit another one.

`make test` hits each distinct step once (one call, on one kind of file). IOSIG_CRASH_STEPS=all walks through every call
with every error that fits, and tells the figures of docs/performance.md.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import Iosig
from redirecting import World, compile_c, remove_tree

EVERYTHING = os.environ.get("IOSIG_CRASH_STEPS") == "all"
CONTENT = os.urandom(5000) * 40  # a few pieces, none like the other
FOREIGN = b"somebody else's file"
COMPANION = b"committed rows"

# Calls that change files, and those that ask about them. Before a call that only asks, a kill finds what it found
# before the next one that changes something.
CHANGING = {
    "openat", "write", "pwrite64", "copy_file_range", "ftruncate", "fsync", "rename", "renameat", "renameat2", "link",
    "linkat", "symlink", "symlinkat", "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat", "fchmod", "fchown",
    "utimensat", "fsetxattr",
}  # fmt: skip
ASKING = {
    "open", "read", "pread64", "lseek", "newfstatat", "fstat", "statfs", "fstatfs", "readlink", "readlinkat",
    "getdents64", "flock", "fcntl", "flistxattr", "fgetxattr", "faccessat2", "access", "statx", "close",
}  # fmt: skip
ERRORS = {
    "openat": ["EIO", "ENOSPC", "EDQUOT", "EROFS"],
    "write": ["EIO", "ENOSPC", "EDQUOT"],
    "pwrite64": ["EIO", "ENOSPC", "EDQUOT"],
    "copy_file_range": ["EIO", "ENOSPC", "EDQUOT"],
    "ftruncate": ["EIO", "ENOSPC", "EDQUOT"],
    "fsync": ["EIO", "ENOSPC", "EDQUOT"],
    "flock": ["EIO", "ENOLCK"],
    "fcntl": ["EAGAIN"],  # the lease: somebody has the data open
    "close": ["EIO"],
}
CHANGES_NAMES = ["EIO", "ENOSPC", "EDQUOT", "EROFS"]

# Writes its input in pieces, syncs each, and says so: what was said must never be lost.
WRITER = r"""
#include <fcntl.h>
#include <iosig/iosig.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
  static char piece[50000];
  long synced = 0;
  (void)argc;
  iosig_open_hint(AT_FDCWD, argv[1], O_CREAT | O_WRONLY, argv[2]);
  int fd = open(argv[1], O_CREAT | O_WRONLY | O_APPEND, 0644);
  if (fd < 0) return 5;
  for (ssize_t got; (got = fread(piece, 1, sizeof piece, stdin)) > 0;)
    if (write(fd, piece, got) != got || fsync(fd) || dprintf(1, "%ld\n", synced += got) < 0) return 6;
  return 0;
}
"""


@dataclass(frozen=True)
class Step:
    """The `number`-th `call` of the run (from 1); `where` names the kind of file it touches."""

    call: str
    number: int
    where: str
    of_program: bool
    among: frozenset[str]  # counted among the calls that touch these names; empty: among all


@dataclass
class Scenario:
    name: str
    signature: str
    command: Callable[[World], list[str]]
    prepare: Callable[[World], None] = lambda world: None
    expected: bytes | None = CONTENT  # at the path in the end; None: nothing
    one_file_system: bool = False  # the link was moved to where its data are
    forks: bool = False  # children ask about the mount points
    is_program: bool = False  # in whose name the error must not show
    foreign: str = ""  # a file of somebody else that must be found at its place in the end, whatever is settled
    companion: str = ""  # a file that must be at home in the end, and always beside the data


def path_of(world: World) -> Path:
    return (world.home if isinstance(world, CrashWorld) else world.work) / "out"


def redirected(world: World, signature: str, content: bytes = CONTENT) -> None:
    world.iosig("prepare", path_of(world), signature)
    path_of(world).write_bytes(content)


def waiting(world: World) -> None:
    world.iosig("prepare", path_of(world), "random")


def moved(world: World, signature: str) -> None:
    world.iosig("prepare", world.work / "out", signature)
    (world.work / "out").write_bytes(CONTENT)
    path_of(world).symlink_to((world.work / "out").readlink())
    (world.work / "out").unlink()


def killed_after_exchange(world: World, signature: str) -> None:
    """A run of finalize, killed just after it had exchanged link and copy."""
    redirected(world, signature)
    identity = world.journal()[0].stem
    draft, aside = (world.work / f".iosig-{identity}.{kind}" for kind in ("draft", "aside"))
    path_of(world).rename(aside)
    draft.write_bytes(CONTENT)
    os.utime(draft, (1, 1))  # of the data, from before the copy was made; one that programs wrote to has a later one
    os.link(draft, path_of(world))


def killed_over_a_foreign_file(world: World, signature: str) -> None:
    """The same, but a program had put its own file at the path a moment before."""
    killed_after_exchange(world, signature)
    identity = world.journal()[0].stem
    (world.work / f".iosig-{identity}.aside").unlink()
    (world.work / f".iosig-{identity}.aside").write_bytes(FOREIGN)


def renamed(world: World, signature: str) -> None:
    world.iosig("prepare", world.work / "out.tmp", signature)
    (world.work / "out.tmp").write_bytes(CONTENT)
    (world.work / "out.tmp").rename(path_of(world))


def without_entry(world: World, signature: str) -> None:
    redirected(world, signature)
    shutil.rmtree(world.state)


def with_companion(world: World, make: Callable[[World, str], None]) -> None:
    """As a database with its write-ahead log, which it finds beside the resolved path."""
    make(world, PERSISTENT)
    Path(f"{path_of(world).resolve()}-wal").write_bytes(COMPANION)


def abandoned(world: World) -> None:
    """A redirect whose program ended before it wrote, one that never got its link, and an entry that was cut."""
    program = world.root / "writer"
    world.run("setsid", "--wait", program, path_of(world), "random", input=b"")
    path_of(world).resolve().unlink()
    world.run("setsid", "--wait", program, world.work / "gone", "random", input=b"")
    (world.work / "gone").resolve().unlink()
    (world.work / "gone").unlink()
    cut = world.state / "journal" / ("c" * 16 + ".json")
    cut.write_bytes(b'{"schema":"iosig.journal/1"')
    os.utime(cut, (1, 1))


def dead_jobs(world: World) -> None:
    program = world.root / "writer"
    world.run("setsid", "--wait", program, path_of(world), "temp random", input=CONTENT)
    done = world.run("setsid", "--wait", world.iosig.binary, "choose", "--make-folder", "temp totalsize(1MB)")
    directory = Path(done.stdout.decode().strip())
    (directory / "sub").mkdir()
    (directory / "sub" / "data").write_bytes(b"x" * 100)


def iosig(*arguments: object) -> Callable[[World], list[str]]:
    return lambda world: [str(world.iosig.binary), *(str(a) for a in arguments)]


PERSISTENT = "random totalsize(1MB)"
SCENARIOS = [
    Scenario("redirect in a program", PERSISTENT, lambda w: [str(w.root / "writer"), str(path_of(w)), PERSISTENT],
             is_program=True),
    Scenario("prepare", PERSISTENT, lambda w: [str(w.iosig.binary), "prepare", str(path_of(w)), PERSISTENT],
             expected=None, forks=True),
    Scenario("choose --make-folder", "temp", iosig("choose", "--make-folder", "temp totalsize(1MB)"), expected=None,
             forks=True),
    Scenario("finalize to another file system", PERSISTENT, iosig("finalize", "--all"),
             lambda w: redirected(w, PERSISTENT)),
    Scenario("finalize on one file system", PERSISTENT, lambda w: [str(w.iosig.binary), "finalize", str(path_of(w))],
             lambda w: moved(w, PERSISTENT), one_file_system=True),
    Scenario("finalize a renamed link", PERSISTENT, iosig("finalize", "--all"), lambda w: renamed(w, PERSISTENT)),
    Scenario("finalize a link without an entry", "random", lambda w: [str(w.iosig.binary), "finalize", str(path_of(w))],
             lambda w: without_entry(w, "random")),
    Scenario("finalize with a companion to another file system", PERSISTENT, iosig("finalize", "--all"),
             lambda w: with_companion(w, redirected), companion="out-wal"),
    Scenario("finalize with a companion on one file system", PERSISTENT,
             lambda w: [str(w.iosig.binary), "finalize", str(path_of(w))], lambda w: with_companion(w, moved),
             one_file_system=True, companion="out-wal"),
    Scenario("finalize temporary data", "temp", iosig("finalize", "--all"), lambda w: redirected(w, "temp"),
             expected=None),
    Scenario("finalize what was never written", "random", iosig("finalize", "--all"),
             waiting, expected=None),
    Scenario("finalize after a killed finalize", PERSISTENT, iosig("finalize", "--all"),
             lambda w: killed_after_exchange(w, PERSISTENT)),
    Scenario("recover a killed finalize", PERSISTENT, iosig("recover", "all"),
             lambda w: killed_after_exchange(w, PERSISTENT)),
    Scenario("recover a killed finalize that had met a foreign file", PERSISTENT, iosig("recover", "all"),
             lambda w: killed_over_a_foreign_file(w, PERSISTENT), expected=FOREIGN, foreign="out"),
    Scenario("recover abandoned redirects", "random", iosig("recover", "all"), abandoned, expected=None),
    Scenario("gc", "temp random", iosig("gc", "--older-than", "0s"), dead_jobs, expected=None),
]  # fmt: skip


class CrashWorld(World):
    def __init__(self, iosig: Iosig, root: Path, fast: Path, writer: Path, scenario: Scenario) -> None:
        super().__init__(iosig, root, fast)
        self.scenario = scenario
        self.home = fast / "home" if scenario.one_file_system else self.work
        self.home.mkdir(exist_ok=True)
        (root / "writer").symlink_to(writer)
        (self.work / "foreign").write_bytes(FOREIGN)

    def reachable(self) -> bytes | None:
        try:
            return path_of(self).read_bytes()
        except FileNotFoundError:
            return None

    def has_companion(self) -> bool:
        """A program that opens the path finds the companion, too."""
        if not self.scenario.companion:
            return True
        companion = path_of(self).resolve().parent / self.scenario.companion
        return companion.exists() and companion.read_bytes() == COMPANION

    def names_of_ours(self) -> list[str]:
        """All names of IOSIG: journal entries, names beside the data, and its directory on the mount point."""
        directory = self.user_directory.iterdir() if self.user_directory.exists() else iter(())
        state = (
            (p for p in self.state.rglob("*") if p.is_file() and p.name != ".lock") if self.state.exists() else iter(())
        )
        return [str(p) for p in (*state, *self.work.rglob(".iosig*"), *self.home.rglob(".iosig*"), *directory)]

    def has_foreign_file(self) -> bool:
        """The bystander is untouched, and a file that was taken out of the path is at the path or beside it."""
        if (self.work / "foreign").read_bytes() != FOREIGN:
            return False
        if not self.scenario.foreign:
            return True
        places = [self.work / self.scenario.foreign, *self.work.glob(".iosig-*.aside")]
        return any(not p.is_symlink() and p.exists() and p.read_bytes() == FOREIGN for p in places)


# What the steps' names begin with instead of a world's own directories; the inner ones first.
PLACES: dict[str, Callable[[CrashWorld], Path]] = {
    "FAST": lambda world: world.fast,
    "STATE": lambda world: world.state,
    "WORK": lambda world: world.work,
    "ROOT": lambda world: world.root,
}


def made_world(scenario: Scenario, writer: Path, tmp: Path) -> Iterator[CrashWorld]:
    root = Path(tempfile.mkdtemp(dir=tmp))
    fast = Path(tempfile.mkdtemp(prefix="iosig-test-", dir="/dev/shm"))
    try:
        (root / "home").mkdir()
        world = CrashWorld(Iosig(root / "home"), root, fast, writer, scenario)
        scenario.prepare(world)
        yield world
    finally:
        remove_tree(fast)
        remove_tree(root)


def strace(world: CrashWorld, *options: str) -> tuple[subprocess.CompletedProcess[bytes], list[tuple[str, str]]]:
    """One run of the scenario's command, and its calls: name and arguments of each."""
    log = world.root.with_suffix(".strace")
    # Only the calls in `options` stop the command, not those in between, which takes a third of the time; but strace
    # sends no signal there, and it needs -f, which disturbs children, too.
    is_slow = world.scenario.forks or any("signal=" in option for option in options)
    command = ["strace", *([] if is_slow else ["--seccomp-bpf", "-f"]), "-qq", "-y", "-s", "4096", "-o", log, *options]
    command += world.scenario.command(world)
    done = world.run(*command, input=CONTENT, start_new_session=True)
    lines = log.read_text(errors="replace").splitlines()
    log.unlink()
    calls = [match.groups() for line in lines if (match := re.match(r"(?:\d+ +)?(\w+)\((.*)", line))]
    return done, [(call, re.sub(r"AT_FDCWD<[^>]*>", "AT_FDCWD", arguments)) for call, arguments in calls]


def steps_of(scenario: Scenario, writer: Path, tmp: Path) -> list[Step]:
    """The calls of an undisturbed run that touch the world's files."""
    for tries_left in range(3, -1, -1):
        steps, calls = listed(scenario, writer, tmp, frozenset())
        of_proc = {call for call, arguments in calls if re.search(r"/proc/\d+/fd", arguments)}
        if not of_proc:
            return steps
        filtered, _ = listed(scenario, writer, tmp, frozenset(name for step in steps for name in names_in(step.where)))
        met = {(step.call, step.where) for step in filtered}
        others = [step for step in steps if (step.call, step.where) not in met]
        # A question about an open file whose name was made up in the run cannot be counted; scenarios with an entry
        # ask it.
        countable = [
            step for step in others if step.call in of_proc and ("ID" not in step.where or changes_files(step))
        ]
        if not countable:
            return filtered + [step for step in others if step.call not in of_proc]
        # Two runs differ where the rest of the machine has changed in between: what they learn in /proc.
        assert tries_left > 0, (countable, [step for step in filtered if step.call in of_proc])
    raise AssertionError


def listed(
    scenario: Scenario, writer: Path, tmp: Path, names: frozenset[str]
) -> tuple[list[Step], list[tuple[str, str]]]:
    """The steps of an undisturbed run and all its calls, in their order; of calls that touch `names`, if there are."""
    counts: dict[str, int] = {}
    steps: list[Step] = []
    calls: list[tuple[str, str]] = []
    for world in made_world(scenario, writer, tmp):
        traced = f"trace={','.join('?' + c for c in sorted(CHANGING | ASKING))}"
        done, calls = strace(world, "-e", traced, *paths_of(world, names))
        assert done.returncode == 0, done.stderr
        of_program = False
        for call, arguments in calls:
            counts[call] = counts.get(call, 0) + 1
            if scenario.is_program and call == "openat" and f'"{path_of(world)}", O_WRONLY' in arguments:
                of_program = True
            if touches(world, arguments):
                steps.append(Step(call, counts[call], where_of(world, call, arguments), of_program, names))
    return steps, calls


def paths_of(world: CrashWorld, names: frozenset[str]) -> list[str]:
    """Options for strace: only calls that touch one of `names`, as where_of writes them."""
    paths = set()
    for name in names:
        for short, path in PLACES.items():
            name = re.sub(rf"^{short}(?=/|$)", str(path(world)), name)
        paths |= {name.replace("ID", entry.stem) for entry in world.journal()} if "ID" in name else {name}
    return [option for path in sorted(paths) for option in ("-P", path)]


def names_in(where: str) -> list[str]:
    return [name for name in re.findall(r'["<]([^">]*)[">]', where) if re.match(r"FAST|STATE|WORK|ROOT", name)]


def touches(world: CrashWorld, arguments: str) -> bool:
    files = str(world.root), str(world.fast)
    return any(file in arguments for file in files) and not re.search(r"/proc/|/writer", arguments)


def where_of(world: CrashWorld, call: str, arguments: str) -> str:
    """The arguments without what differs from run to run."""
    where = (
        re.sub(r'>, ".*"(\.\.\.)?', ">", arguments) if call in ("read", "write", "pread64", "pwrite64") else arguments
    )
    for name, path in PLACES.items():
        where = where.replace(str(path(world)), name)
    where = re.sub(r"\b[0-9a-f]{16}\b", "ID", where)
    where = re.sub(r"^\d+(?=<)|st_\w+=[^,}]*|= .*", "", where)
    return re.sub(r"0x\w+|(?<![-.\w])\d+\b", "#", where).rstrip()


def was_hit(world: CrashWorld, step: Step, calls: list[tuple[str, str]]) -> bool:
    """Whether the call that was disturbed is the one that was meant. Of a killed run it is the last."""
    like = [arguments for call, arguments in calls if call == step.call]
    hit = next((arguments for arguments in like if "(INJECTED)" in arguments), like[-1] if like else "")
    return touches(world, hit) and asked(step.call, where_of(world, step.call, hit)) == asked(step.call, step.where)


def asked(call: str, where: str) -> str:
    """Of `where` what went into the call: what comes out is not there when the call did not happen."""
    inputs = {"readlink": 1, "flistxattr": 1, "readlinkat": 2, "fgetxattr": 2}.get(call)
    return re.split(r"{|#(?!<)", ", ".join(where.split(", ")[:inputs]))[0]


def changes_files(step: Step) -> bool:
    return step.call in CHANGING and (step.call != "openat" or "O_CREAT" in step.where)


def asks_who_has_it_open(step: Step) -> bool:
    """No lease is an answer, not a failure: a program has the file open. With two files for one path it is then left to
    the user where our copy goes. A close that strace keeps from happening has the same effect."""
    return "F_SETLEASE" in step.where or step.call == "close"


def injections(steps: list[Step], foreign: bool) -> list[tuple[Step, str]]:
    """What is done to which step: `signal=KILL`, or `error=NAME`."""
    chosen: list[tuple[Step, str]] = []
    seen: set[tuple[str, str, bool]] = set()
    for turn, step in enumerate(steps):
        if not EVERYTHING and (step.call, step.where, step.of_program) in seen:
            continue
        seen.add((step.call, step.where, step.of_program))
        if changes_files(step):
            chosen.append((step, "signal=KILL"))
        if step.of_program or (foreign and asks_who_has_it_open(step)):
            continue  # an error in the program's own calls is its own to report
        errors = ERRORS.get(step.call, CHANGES_NAMES if step.call in CHANGING else ["EIO"])
        if step.call == "openat" and not changes_files(step):
            errors = ["EIO"]
        chosen += [(step, f"error={name}") for name in (errors if EVERYTHING else [errors[turn % len(errors)]])]
    return chosen


def try_step(scenario: Scenario, writer: Path, tmp: Path, step: Step, what: str, settle_by: list[str]) -> int | None:
    """One disturbed run and what comes after it: how many bytes were lost, or None when another call was hit."""
    for world in made_world(scenario, writer, tmp):
        before = world.reachable()
        inject = f"inject={step.call}:{what}:when={step.number}"
        done, calls = strace(world, "-e", f"trace={step.call}", "-e", inject, *paths_of(world, step.among))
        killed = what == "signal=KILL"
        told = f"{scenario.name}: {what} at {step.call} {step.number} ({step.where})\n{done.stderr.decode()}"
        if not was_hit(world, step, calls):
            return None
        if killed:
            assert done.returncode in (-9, 137), told
        else:
            assert 0 <= done.returncode <= 4, told
        now = world.reachable()
        assert world.has_foreign_file(), told
        if scenario.is_program:
            synced = int((done.stdout.split() or [b"0"])[-1])
            lost = 0 if (now or b"")[:synced] == CONTENT[:synced] else synced
            if not killed:
                assert done.returncode == 0 and now == CONTENT, told
        elif scenario.expected is None:
            lost = 0
        else:
            lost = 0 if now in (before, scenario.expected) and now is not None else len(CONTENT)
        assert lost == 0 and world.has_companion(), told

        if any(not entry.read_bytes().endswith(b"}\n") for entry in world.journal()) and "recover" not in settle_by:
            settle_by = ["recover", *settle_by]  # a cut entry is recover's to remove: finalize names it, with status 3
        for verb in settle_by:
            if verb == "gc":
                world.iosig("gc", "--older-than", "0s")
            elif scenario.foreign and verb == "finalize":
                world.iosig("finalize", "--all", check=1)  # two files want one path
                [data] = world.user_directory.glob("*/out")
                assert data.read_bytes() == CONTENT, told
                data.unlink()
                world.iosig("finalize", "--all")
            else:
                by_path = verb == "finalize" and scenario.one_file_system
                world.iosig(verb, path_of(world) if by_path else "all" if verb == "recover" else "--all")
        if (
            "finalize" in settle_by
            and scenario.name == "finalize a link without an entry"
            and path_of(world).is_symlink()
        ):
            world.iosig("finalize", path_of(world))
        if any(name.endswith("/.promises") for name in world.names_of_ours()):
            world.iosig("recover")  # room that a call which failed could not give back
        assert world.names_of_ours() == [], told
        final = world.reachable()
        if scenario.is_program and killed:
            assert (final or b"")[:synced] == CONTENT[:synced], told
        else:
            assert final == scenario.expected, told
        assert not path_of(world).is_symlink() and world.has_foreign_file() and world.has_companion(), told
        return lost
    raise AssertionError


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(WRITER, tmp_path_factory.mktemp("writer"), "writer")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[s.name for s in SCENARIOS])
def test_no_step_loses_a_byte_when_it_is_killed_or_fails(scenario: Scenario, writer: Path, tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    if tmp_path.stat().st_dev == Path("/dev/shm").stat().st_dev:
        pytest.skip(f"{tmp_path} lies on /dev/shm: there is no second file system to redirect to")
    steps = steps_of(scenario, writer, tmp_path)
    chosen = injections(steps, bool(scenario.foreign))
    kills = sum(what == "signal=KILL" for _, what in chosen)
    assert kills >= 2, steps

    def run(numbered: tuple[int, tuple[Step, str]]) -> int:
        turn, (step, what) = numbered
        settle_by = ["recover", "finalize"] if EVERYTHING or turn % 2 == 0 else ["finalize"]
        if scenario.name in ("gc", "choose --make-folder"):
            settle_by = ["recover", "gc"]
        if scenario.name == "recover abandoned redirects":
            settle_by = ["recover"]
        if scenario.one_file_system:  # by its path; an entry that could not be read then is left to recover
            settle_by = ["finalize", "recover"]
        tries = (try_step(scenario, writer, tmp_path, step, what, settle_by) for _ in range(50))
        lost = next((lost for lost in tries if lost is not None), None)
        assert lost is not None, f"{what} never hit {step}"
        return lost

    with ThreadPoolExecutor(2) as two:
        lost = sum(two.map(run, enumerate(chosen)))
    print(f"{scenario.name}: {len(steps)} steps, {kills} kills, {len(chosen) - kills} errors, {lost} bytes lost")
    assert lost == 0
