"""Operations on names beside holders: a container that a process has open, by whichever way in, keeps its data when
another process removes, renames or replaces it, by whichever way in; they go with the last close, or with gc."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from conftest import BUILD, ROOT, Iosig
from mounting import Mount
from redirecting import compile_c

LIBRARY = BUILD / "lib" / "libiosig-preload.so"
SOURCE = (ROOT / "tests/support/name_operations.c").read_text()
NOREPLACE, EXCHANGE, WHITEOUT = 1, 2, 4

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="built without libiosig-preload.so")


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


class Program:
    """A started name_operations, which is told what to do."""

    def __init__(self, command: list[str], directory: Path, env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command, cwd=directory, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def __call__(self, *words: object) -> str:
        """Its answer: "ok", "ok TEXT", an errno's number, or "" if it ended."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            print(*words, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().rstrip("\n")

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(30) == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)


class Ways:
    """The ways into containers of the directory `source`: "run", "mount", "c", and "command"."""

    def __init__(self, iosig: Iosig, source: Path, programs: dict[str, Path]) -> None:
        self.iosig, self.source, self.programs = iosig, source, programs
        self.started: list[Program] = []

    def mount(self, mount: Mount) -> None:
        self.mounted = mount("--cache-seconds", "0")
        self.daemon: int = mount.pids[-1]  # type: ignore[attr-defined]

    def start(self, way: str, *before: str) -> Program:
        """`before`: a command that starts it."""
        env = dict(self.iosig.env)
        directory = self.source
        if way == "run":
            env["LD_PRELOAD"] = str(LIBRARY)
        if way == "mount":
            directory = self.mounted
        inner = [f"-E{name}={value}" for name, value in env.items() if name == "LD_PRELOAD"] if before else []
        if before:
            env.pop("LD_PRELOAD", None)
        program = self.programs["c" if way == "c" else "posix"]
        self.started.append(Program([*before, *inner, str(program)], directory, env))
        return self.started[-1]

    def make(self, name: str, text: str) -> None:
        self.iosig("container", "create", self.source / name)
        writer = self.start("c")
        assert [writer("open", name), writer("pwrite", 0, text), writer("close")] == ["ok"] * 3
        writer.end()

    def content(self, name: str) -> str:
        path = self.source / name
        if not path.is_dir():
            return path.read_text()
        to = self.source.parent / "exported"
        to.unlink(missing_ok=True)
        self.iosig("container", "export", path, to)
        return to.read_text()

    def hidden(self) -> list[str]:
        return [name for name in names_in(self.source) if ".iosig-" in name]

    def shown(self) -> dict[str, str]:
        names = [path.name for path in self.source.iterdir() if ".iosig-" not in path.name]
        return {name: self.content(name) for name in sorted(names) if self.is_file(name)}

    def is_file(self, name: str) -> bool:
        path = self.source / name
        return path.is_file() or (path / ".iosig-container").exists()


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("names")
    posix = directory / "posix"
    (directory / "posix.c").write_text(SOURCE)
    subprocess.run(["gcc", "-O1", "-o", str(posix), str(directory / "posix.c")], check=True)
    return {"posix": posix, "c": compile_c(SOURCE, directory, "c_interface", "-DC_INTERFACE")}


@pytest.fixture
def ways(iosig: Iosig, mount: Mount, tmp_path: Path, programs: dict[str, Path]) -> Iterator[Ways]:
    made = Ways(iosig, tmp_path / "source", programs)
    made.mount(mount)
    try:
        yield made
    finally:
        for program in made.started:
            if program.process.poll() is None:
                program.kill()


HOLDERS = ["run", "mount", "c"]
# (who removes or replaces "held", how, what the names show then if the holder has written " second")
OPERATIONS = {
    "unlink": ("unlink", "held"),
    "rename over by a container": ("rename", "new", "held"),
    "rename over by a file": ("rename", "plain", "held"),
    "rename away": ("rename", "held", "moved"),
    "rename onto a container": ("rename", "held", "new"),
    "rename onto a file": ("rename", "held", "plain"),
    "exchange with a container": ("renameat2", "held", "new", EXCHANGE),
    "exchange with a file": ("renameat2", "plain", "held", EXCHANGE),
    "rename away, no replacing": ("renameat2", "held", "moved", NOREPLACE),
    "command rm": ("container", "rm", "held"),
}
AFTER: dict[str, dict[str, str]] = {
    "unlink": {"new": "NEW", "plain": "PLAIN"},
    "rename over by a container": {"held": "NEW", "plain": "PLAIN"},
    "rename over by a file": {"held": "PLAIN", "new": "NEW"},
    "rename away": {"moved": "first,second", "new": "NEW", "plain": "PLAIN"},
    "rename onto a container": {"new": "first,second", "plain": "PLAIN"},
    "rename onto a file": {"new": "NEW", "plain": "first,second"},
    "exchange with a container": {"held": "NEW", "new": "first,second", "plain": "PLAIN"},
    "exchange with a file": {"held": "PLAIN", "new": "NEW", "plain": "first,second"},
    "rename away, no replacing": {"moved": "first,second", "new": "NEW", "plain": "PLAIN"},
    "command rm": {"new": "NEW", "plain": "PLAIN"},
}
UNLINKS = {"unlink", "rename over by a container", "rename over by a file", "command rm"}


def pairs() -> Iterator[tuple[str, str, str]]:
    for holder, operation in itertools.product(HOLDERS, OPERATIONS):
        for remover in ["command"] if operation == "command rm" else HOLDERS:
            if remover == "c" and (OPERATIONS[operation][0] == "renameat2" or operation == "rename over by a file"):
                continue  # not in iosig.h
            yield holder, remover, operation


def prepare(ways: Ways) -> None:
    for name, text in (("held", "first"), ("new", "NEW")):
        ways.make(name, text)
    (ways.source / "plain").write_text("PLAIN")


def do(ways: Ways, remover: str, operation: str) -> None:
    words = OPERATIONS[operation]
    if remover == "command":
        ways.iosig(*words, cwd=ways.source)
        return
    program = ways.start(remover)
    assert program(*words) == "ok"
    program.end()


@pytest.mark.parametrize("has_written", [False, True], ids=["reader first", "writer first"])
@pytest.mark.parametrize(("holder", "remover", "operation"), list(pairs()))
def test_a_holder_keeps_its_data(ways: Ways, holder: str, remover: str, operation: str, has_written: bool) -> None:
    prepare(ways)
    program = ways.start(holder)
    assert program("open", "held") == "ok"
    if has_written:
        assert program("pwrite", 5, ",") == "ok"
    do(ways, remover, operation)
    assert [program("pwrite", 5, ",second"), program("fsync"), program("pread")] == ["ok", "ok", "ok first,second"]
    assert program("size") == "ok 12"
    if holder != "c":
        assert program("links") == ("ok 0" if operation in UNLINKS else "ok 1")
    assert ways.shown() == AFTER[operation]
    assert len(ways.hidden()) == (1 if operation in UNLINKS else 0)
    assert program("close") == "ok"
    wait_for(lambda: ways.hidden() == [])
    program.end()
    assert ways.shown() == AFTER[operation]


@pytest.mark.parametrize("operation", [name for name in OPERATIONS if name != "command rm"])
@pytest.mark.parametrize("remover", ["run", "mount", "c"])
def test_what_no_process_holds_goes_at_once(ways: Ways, remover: str, operation: str) -> None:
    if ("any", remover, operation) not in {("any", *rest) for _, *rest in pairs()}:
        pytest.skip("not in iosig.h")
    prepare(ways)
    do(ways, remover, operation)
    assert ways.hidden() == []
    assert ways.shown() == {name: text.replace(",second", "") for name, text in AFTER[operation].items()}


def test_several_holders_by_different_ways_share_what_was_unlinked(ways: Ways) -> None:
    prepare(ways)
    holders = [ways.start(way) for way in ("run", "mount", "c", "run")]
    for holder in holders:
        assert holder("open", "held") == "ok"
    do(ways, "mount", "unlink")
    for n, holder in enumerate(holders):
        assert holder("pwrite", 5 + n, "x") == "ok"
    for holder in holders[1:]:
        assert holder("pread") == "ok firstxxxx"
        assert len(ways.hidden()) == 1
    for holder in holders[:3]:
        holder.end()
        assert len(ways.hidden()) == 1
    assert holders[3]("pread") == "ok firstxxxx"
    holders[3].end()
    wait_for(lambda: ways.hidden() == [])


INHERITS = "import os; assert os.pwrite(9, b',second', 5) == 7; print(os.pread(9, 99, 0).decode())"
HANDS_ON = """
import os, subprocess, sys
os.dup2(os.open("held", os.O_RDWR), 9)
os.closerange(3, 9)
os.unlink("held")
come, go = os.pipe()
# By vfork, to a program that knows nothing of containers, which begins one that does once all is closed here.
script = f"read line <&{come}; LD_PRELOAD={sys.argv[1]} exec python3 -S -E {sys.argv[2]}"
child = subprocess.Popen(["sh", "-c", script], pass_fds=(9, come), env={"PATH": os.environ["PATH"]})
os.close(9)
os.write(go, b"go\\n")
sys.exit(child.wait())
"""


def test_a_container_stays_held_while_a_program_begins_another(ways: Ways, tmp_path: Path) -> None:
    prepare(ways)
    (tmp_path / "inherits.py").write_text(INHERITS)
    between = f"{ways.iosig.binary} container rm held && LD_PRELOAD={LIBRARY} exec python3 -S -E {tmp_path}/inherits.py"
    script = f"exec 9<> held; exec env -u LD_PRELOAD sh -c '{between}'"
    env = {**ways.iosig.env, "LD_PRELOAD": str(LIBRARY)}
    done = subprocess.run(["bash", "-c", script], cwd=ways.source, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()[1:], done.stderr) == (0, ["first,second"], "")
    assert ways.hidden() == [] and "held" not in ways.shown()


def test_a_child_by_vfork_holds_what_its_parent_closes(ways: Ways, tmp_path: Path) -> None:
    prepare(ways)
    (tmp_path / "inherits.py").write_text(INHERITS)
    env = {**ways.iosig.env, "LD_PRELOAD": str(LIBRARY)}
    command = ["python3", "-S", "-E", "-c", HANDS_ON, str(LIBRARY), str(tmp_path / "inherits.py")]
    done = subprocess.run(command, cwd=ways.source, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "first,second\n", "")
    assert ways.hidden() == []


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_program_that_ends_without_closing_is_a_last_close(ways: Ways, holder: str) -> None:
    prepare(ways)
    program = ways.start(holder)
    assert [program("open", "held"), program("unlink", "held"), program("pwrite", 0, "x")] == ["ok"] * 3
    assert len(ways.hidden()) == 1
    program.end()
    wait_for(lambda: ways.hidden() == [])


@pytest.mark.parametrize("remover", ["run", "mount"])
@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("unlinker", HOLDERS)
def test_a_directory_is_empty_when_all_in_it_was_unlinked(ways: Ways, holder: str, unlinker: str, remover: str) -> None:
    for name in ("below", "below/deep"):
        (ways.source / name).mkdir()
    ways.make("below/deep/held", "first")
    program, other = ways.start(holder), ways.start(remover)
    assert program("open", "below/deep/held") == "ok"
    assert ways.start(unlinker)("unlink", "below/deep/held") == "ok"
    assert other("rmdir", "below") == str(errno.ENOTEMPTY)
    assert [other("rmdir", "below/deep"), other("rmdir", "below")] == ["ok", "ok"]
    assert [program("pwrite", 5, ",second"), program("pread")] == ["ok", "ok first,second"]
    program.end()
    wait_for(lambda: names_in(ways.source) == [])


@pytest.mark.parametrize("renamer", ["run", "mount"])
@pytest.mark.parametrize("holder", HOLDERS)
def test_directories_of_open_containers_are_renamed_and_replaced(ways: Ways, holder: str, renamer: str) -> None:
    for name in ("one", "two"):
        (ways.source / name).mkdir()
        ways.make(f"{name}/held", "first")
    programs = [ways.start(holder) for _ in range(3)]
    assert [program("open", f"{name}/held") for program, name in zip(programs, ("one", "one", "two"), strict=True)] == [
        "ok"
    ] * 3
    other = ways.start(renamer)
    assert other("rename", "two", "one") == str(errno.ENOTEMPTY)
    assert other("unlink", "one/held") == "ok"
    assert other("rename", "two", "one") == "ok"
    assert [program("pwrite", 5, ",second") for program in programs] == ["ok"] * 3
    assert [program("pread") for program in programs] == ["ok first,second"] * 3
    for program in programs:
        program.end()
    wait_for(lambda: names_in(ways.source) == ["one"] and names_in(ways.source / "one") == ["held"])
    assert ways.content("one/held") == "first,second"


def test_a_directory_with_other_hidden_files_is_not_empty(ways: Ways) -> None:
    (ways.source / "below").mkdir()
    (ways.source / "below/.mine.iosig-removed-").write_text("no container")
    assert ways.start("run")("rmdir", "below") == str(errno.ENOTEMPTY)
    assert names_in(ways.source / "below") == [".mine.iosig-removed-"]


def test_flags_of_renameat2(ways: Ways) -> None:
    prepare(ways)
    (ways.source / "directory").mkdir()
    for way in ("run", "mount"):
        program = ways.start(way)
        assert program("renameat2", "held", "new", NOREPLACE) == str(errno.EEXIST)
        assert program("renameat2", "plain", "new", NOREPLACE) == str(errno.EEXIST)
        assert program("renameat2", "held", "none", EXCHANGE) == str(errno.ENOENT)
        assert program("renameat2", "held", "moved", WHITEOUT) == str(errno.EINVAL)
        assert program("renameat2", "held", "new", EXCHANGE | NOREPLACE) == str(errno.EINVAL)
        assert program("renameat2", "held", "new", 64) == str(errno.EINVAL)
        assert program("rename", "held", "directory") == str(errno.EISDIR)
        assert program("rename", "directory", "held") == str(errno.ENOTDIR)
        assert program("rename", "none", "held") == str(errno.ENOENT)
        assert program("rename", "held", "none/held") == str(errno.ENOENT)
        assert program("rename", "held", "plain/held") == str(errno.ENOTDIR)
        assert program("rename", "held", "held") == "ok"
        assert program("rmdir", "held") == str(errno.ENOTDIR)
        assert program("unlink", "directory") == str(errno.EISDIR)
        assert program("unlink", "none") == str(errno.ENOENT)
    assert ways.shown() == {"held": "first", "new": "NEW", "plain": "PLAIN"}


def strace(*inject: str) -> list[str]:
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    return ["strace", "-f", "-qq", "-o", "/dev/null", *[f"-einject={each}" for each in inject]]


@pytest.mark.parametrize("operation", sorted(UNLINKS - {"command rm"}))
@pytest.mark.parametrize("holder", HOLDERS)
def test_what_a_killed_holder_kept_goes_with_gc(ways: Ways, holder: str, operation: str) -> None:
    prepare(ways)
    program = ways.start(holder)
    assert [program("open", "held"), program("pwrite", 5, ",second")] == ["ok", "ok"]
    do(ways, "run", operation)
    kept = ways.iosig.json("gc", "--older-than", "0s", ways.source)["kept"]
    assert [item["why"] for item in kept] == ["a removed container that a process has open"]
    assert program("pread") == "ok first,second"
    if holder == "mount":
        os.kill(ways.daemon, signal.SIGKILL)
        wait_for(lambda: program("pread") == str(errno.ENOTCONN))
    program.kill()
    shown = ways.shown()
    assert shown == {name: text.replace(",second", "") for name, text in AFTER[operation].items()}
    [hidden] = ways.hidden()
    younger = ways.iosig.json("gc", ways.source)["kept"]
    assert [item["path"] for item in younger] == [str(ways.source / hidden)] and "changed" in younger[0]["why"]
    planned = ways.iosig.json("gc", "--older-than", "0s", "--dry-run", ways.source)["removed"]
    assert ways.hidden() == [hidden]
    assert ways.iosig.json("gc", "--older-than", "0s", ways.source)["removed"] == planned and len(planned) == 1
    assert ways.hidden() == [] and ways.shown() == shown


def test_gc_knows_the_data_on_targets_of_a_removed_container(ways: Ways, tmp_path: Path) -> None:
    fast = tmp_path / "fast"
    target = fast / f".iosig-{os.geteuid()}"
    target.mkdir(parents=True, mode=0o700)
    storage = tmp_path / "storage.toml"
    storage.write_text(
        f'schema = "iosig.storage/1"\n[[mount_point]]\npath = "{fast}"\ndevice = "fast"\n'
        '[[device]]\nname = "fast"\nkind = "ram"\n'
    )
    ways.iosig.env |= {"IOSIG_STORAGE": str(storage), "IOSIG_STATE": str(tmp_path / "state")}
    (ways.source / "below").mkdir()
    ways.iosig("container", "create", "--target", target, ways.source / "below/held")
    for kill in (False, True):
        program = ways.start("run")
        assert [program("open", "below/held"), program("pwrite", 0, "text")] == ["ok", "ok"]
        if not kill:
            program.end()
    assert program("unlink", "below/held") == "ok"
    for directory in ("kept where it was", "moved up", "made anew"):
        if directory == "moved up":
            assert ways.start("run")("rmdir", "below") == "ok"
        if directory == "made anew":
            (ways.source / "below").mkdir()
        [kept] = ways.iosig.json("gc", "--containers", "--older-than", "0s")["kept"]
        assert "a process has it open" in kept["why"], directory
        assert program("pread") == "ok text"
    program.kill()
    [removed] = ways.iosig.json("gc", "--older-than", "0s")["removed"]
    assert "which was removed" in removed["why"]
    assert list(target.iterdir()) == [] and ways.hidden() == []


# What may be there once the remover was killed: nothing was done, or all, or the two have changed places.
BEFORE = {"held": "first,second", "new": "NEW", "plain": "PLAIN"}
CHANGED = {
    "rename over by a container": {"held": "NEW", "new": "first,second", "plain": "PLAIN"},
    "rename over by a file": {"held": "PLAIN", "new": "NEW", "plain": "first,second"},
    "rename onto a container": {"held": "NEW", "new": "first,second", "plain": "PLAIN"},
    "rename onto a file": {"held": "PLAIN", "new": "NEW", "plain": "first,second"},
}


def done_by_daemon(ways: Ways, mount: Mount, injected: list[str], words: Sequence[object]) -> bool:
    """false: what was `injected` has killed the mount's daemon, and there is a new one."""
    process = Path(f"/proc/{ways.daemon}")
    tracer = subprocess.Popen([*injected, "-p", str(ways.daemon)])
    wait_for(lambda: all("TracerPid:\t0" not in each.read_text() for each in process.glob("task/*/status")))
    is_done = ways.start("mount")(*words) == "ok"
    if is_done:
        tracer.terminate()
    tracer.wait(30)
    if not is_done:
        wait_for(lambda: not process.exists() or "State:\tZ" in (process / "status").read_text())
        subprocess.run(["umount", "-l", str(ways.mounted)], check=True)
        ways.mount(mount)
    return is_done


@pytest.mark.parametrize("is_held", [True, False], ids=["held", "not held"])
@pytest.mark.parametrize("operation", [name for name in OPERATIONS if "renameat2" not in OPERATIONS[name][0]])
@pytest.mark.parametrize("remover", ["run", "mount"])
def test_a_remover_that_is_killed_at_any_step_loses_nothing(
    ways: Ways, mount: Mount, remover: str, operation: str, is_held: bool
) -> None:
    """Killed at each call that changes a name or takes the lock, one after another, until there is none left."""
    words, calls = OPERATIONS[operation], "rename,renameat,renameat2,flock,unlinkat,unlink,rmdir"
    if operation == "command rm" and remover == "mount":
        pytest.skip("the command does not go through the mount")
    for step in itertools.count(1):
        for name in ways.shown():
            ways.iosig("container", "rm", name, cwd=ways.source, check=None)
            (ways.source / name).unlink(missing_ok=True)
        prepare(ways)
        program = ways.start("c")
        assert [program("open", "held"), program("pwrite", 5, ",second")] == ["ok", "ok"]
        if not is_held:
            assert program("close") == "ok"
        injected = strace(f"{calls}:signal=SIGKILL:when={step}")
        if operation == "command rm":
            killed = subprocess.run([*injected, ways.iosig.binary, *words], cwd=ways.source).returncode != 0
        elif remover == "run":
            answer = ways.start("run", *injected)(*words)
            killed = answer == ""
            assert killed or answer == "ok"
        else:
            killed = not done_by_daemon(ways, mount, injected, words)
        if is_held:
            assert [program("pwrite", 5, ",SECOND"), program("fsync")] == ["ok", "ok"]
            assert program("pread") == "ok first,SECOND", step
            assert program("pwrite", 5, ",second") == "ok"
        after = AFTER.get(operation, {})
        assert ways.shown() in [BEFORE, after, CHANGED.get(operation)], step
        program.end()
        assert ways.shown() in [BEFORE, after, CHANGED.get(operation)], step
        ways.iosig("gc", "--older-than", "0s", ways.source)
        assert ways.hidden() == []
        assert ways.shown() in [BEFORE, after, CHANGED.get(operation)], step
        if not killed:
            assert ways.shown() == after and step > 1
            return


class Stopped:
    """`iosig words...`, stopped just after its first flock(2), on the container `path`."""

    def __init__(self, ways: Ways, path: Path, *words: object) -> None:
        self.process = subprocess.Popen(
            [*strace("flock:signal=SIGSTOP:when=1"), str(ways.iosig.binary), *map(str, words)],
            cwd=ways.source,
            env=ways.iosig.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        inode = f":{path.stat().st_ino} "
        wait_for(lambda: any(inode in line for line in Path("/proc/locks").read_text().splitlines()))

    def child(self) -> int:
        return int(Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text())

    def kill(self) -> None:
        os.kill(self.child(), signal.SIGKILL)
        self.process.communicate(timeout=60)

    def go_on(self) -> tuple[int, str]:
        """Its exit status, and what it says on stderr."""
        child = self.child()
        wait_for(lambda: Path(f"/proc/{child}/stat").read_text().split(") ")[1][0] in "tT")
        os.kill(child, signal.SIGCONT)
        said = self.process.communicate(timeout=60)[1]
        return self.process.returncode, said


@pytest.mark.parametrize("remover", ["run", "mount", "c", "command"])
@pytest.mark.parametrize("verb", ["export", "check", "repair", "ls", "index"])
def test_the_command_keeps_what_it_reads(ways: Ways, verb: str, remover: str, tmp_path: Path) -> None:
    prepare(ways)
    out = tmp_path / "out"
    at_work = Stopped(ways, ways.source / "held", "container", verb, "held", *([out] if verb == "export" else []))
    do(ways, remover, "command rm" if remover == "command" else "unlink")
    assert len(ways.hidden()) == 1
    status, said = at_work.go_on()
    assert (status, said) == (0, "") or (verb, status) == ("check", 0)  # which names what lies beside
    assert verb != "export" or out.read_text() == "first"
    assert ways.hidden() == []


def can_be_flattened(ways: Ways) -> bool:
    return ways.iosig("container", "flatten", "--dry-run", "held", cwd=ways.source, check=None).returncode == 0


def test_flatten_refuses_what_is_held_by_any_way(ways: Ways) -> None:
    prepare(ways)
    for holder in HOLDERS:
        program = ways.start(holder)
        assert program("open", "held") == "ok"
        refused = ways.iosig("container", "flatten", "held", cwd=ways.source, check=1)
        assert "open in a program" in refused.stderr
        assert [program("pwrite", 5, ",second"), program("pread")] == ["ok", "ok first,second"]
        assert program("close") == "ok"
        wait_for(lambda: can_be_flattened(ways))


class OpenBesideFlatten:
    """Flatten is stopped while it has the container alone; then a program opens the path, and waits."""

    def __init__(self, ways: Ways, opener: str) -> None:
        prepare(ways)
        self.flatten = Stopped(ways, ways.source / "held", "container", "flatten", "held")
        self.program = ways.start(opener)
        self.answers: list[str] = []
        self.opening = threading.Thread(target=lambda: self.answers.append(self.program("open", "held")))
        self.opening.start()


@pytest.mark.parametrize("opener", HOLDERS)
def test_an_open_beside_flatten_gets_the_file(ways: Ways, opener: str) -> None:
    """While flatten has the container alone, an open waits for it; it does not find the path missing."""
    beside = OpenBesideFlatten(ways, opener)
    flatten, program, opening, answers = beside.flatten, beside.program, beside.opening, beside.answers
    opening.join(0.3)
    assert answers == []
    assert flatten.go_on() == (0, "")
    opening.join(30)
    assert answers == [str(errno.ENOTSUP) if opener == "c" else "ok"]
    if opener != "c":
        assert [program("pwrite", 5, ",second"), program("pread")] == ["ok", "ok first,second"]
        program.end()
        assert ways.shown()["held"] == "first,second" and (ways.source / "held").is_file()
    assert ways.hidden() == []


@pytest.mark.parametrize("opener", HOLDERS)
def test_an_open_beside_a_flatten_that_is_killed_gets_the_container(ways: Ways, opener: str) -> None:
    beside = OpenBesideFlatten(ways, opener)
    beside.flatten.kill()
    beside.opening.join(30)
    program = beside.program
    assert beside.answers == ["ok"]
    assert [program("pwrite", 5, ",second"), program("pread")] == ["ok", "ok first,second"]
    program.end()
    assert ways.content("held") == "first,second"


def test_flatten_leaves_what_another_process_put_there_meanwhile(ways: Ways) -> None:
    prepare(ways)
    flatten = Stopped(ways, ways.source / "held", "container", "flatten", "held")
    (ways.source / "held").rename(ways.source / "moved")
    (ways.source / "new").rename(ways.source / "held")
    status, said = flatten.go_on()
    assert status == 1 and "meanwhile" in said
    assert ways.shown() == {"held": "NEW", "moved": "first", "plain": "PLAIN"}
    assert ways.hidden() == []


@pytest.mark.parametrize("way", ["run", "mount"])
def test_many_names_change_beside_holders(ways: Ways, way: str) -> None:
    """Each of two programs puts whole containers and files at the names that the other unlinks and exchanges."""
    for name in "abc":
        ways.make(name, name * 8)
    (ways.source / "d").write_text("d" * 8)
    programs = [ways.start(other) for other in (way, "run")]
    orders = []
    for n in range(400):
        one, two = "abcd"[n % 4], "abcd"[n // 4 % 4]
        orders.append(("renameat2", one, two, EXCHANGE) if n % 3 else ("rename", one, two))
    holder = ways.start("run")
    assert holder("open", "a") == "ok"
    for program in programs:
        assert program.process.stdin is not None
        program.process.stdin.writelines(" ".join(map(str, order)) + "\n" for order in orders)
        program.process.stdin.flush()
    for program in programs:
        assert program.process.stdout is not None
        answers = {program.process.stdout.readline().strip() for _ in orders}
        assert answers <= {"ok", str(errno.ENOENT)}
    assert [holder("pwrite", 0, "A"), holder("pread")] == ["ok", "ok Aaaaaaaa"]
    holder.end()
    wait_for(lambda: ways.hidden() == [])
    left = ways.shown()
    assert left and set(left.values()) <= {"Aaaaaaaa", "b" * 8, "c" * 8, "d" * 8}
    assert len(set(left.values())) == len(left)
