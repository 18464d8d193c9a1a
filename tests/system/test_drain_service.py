"""`finalize --background` as a service of the user's systemd, where one runs.

The tests' systemd is a socket that accepts connections, and a `systemd-run` that starts the command as the real one
does: detached, with no variable but those that it is given, its output appended to the log.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_drain import eventually, is_alive, is_home

from redirecting import World

SYSTEMD_RUN = r"""#!/bin/bash
printf '%s\n' "$@" > "$0.words"
variables=() log=/dev/null
while [ "$1" != -- ]; do
  case $1 in
    --setenv=*) variables+=("${1#--setenv=}");;
    --property=StandardOutput=append:*) log=${1#*append:};;
  esac
  shift
done
shift
cd /
setsid env -i "${variables[@]}" "$@" >> "$log" 2>&1 < /dev/null &
echo $! >> "$0.pids"
"""


@pytest.fixture
def systemd(world: World) -> Iterator[Path]:
    """The `systemd-run` of this test, beside which it records its words and the processes that it started."""
    runtime, programs = world.root / "run", world.root / "programs"
    (runtime / "systemd").mkdir(parents=True)
    programs.mkdir()
    program = programs / "systemd-run"
    program.write_text(SYSTEMD_RUN)
    program.chmod(0o755)
    world.env |= {"XDG_RUNTIME_DIR": str(runtime), "PATH": f"{programs}:{os.environ['PATH']}"}
    with socket.socket(socket.AF_UNIX) as listening:
        with contextlib.chdir(runtime):  # a socket's path may not be long
            listening.bind("systemd/private")
        listening.listen(16)
        yield program
    for pid in pids(program):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def pids(systemd: Path) -> list[int]:
    written = systemd.with_name("systemd-run.pids")
    return [int(word) for word in written.read_text().split()] if written.exists() else []


def test_a_service_drains_where_the_user_has_a_systemd(world: World, systemd: Path) -> None:
    path, _ = world.prepared("out", b"data")
    done = world.iosig("finalize", "--background", "--max-rate", "5MB/s", "out", cwd=world.work)
    words = systemd.with_name("systemd-run.words").read_text().splitlines()
    (unit,) = [word.removeprefix("--unit=") for word in words if word.startswith("--unit=")]
    assert re.fullmatch("iosig-drain-[0-9a-f]{16}", unit)
    assert {"--user", "--property=CPUSchedulingPolicy=idle", "--property=IOSchedulingClass=idle"} <= {*words}
    assert words[words.index("--") + 1 :] == [
        str(world.iosig.binary), "finalize", "--background", "--foreground", "--verify=copy", "--max-rate=5MB/s", "--",
        str(path),
    ]  # fmt: skip
    assert f"user service {unit}" in done.stdout and "enable-linger" in done.stderr
    eventually(lambda: is_home(path))
    assert path.read_bytes() == b"data"
    eventually(lambda: not any(map(is_alive, pids(systemd))))
    assert world.is_settled() and "out': brought home" in (world.state / "drain.log").read_text()


def test_the_service_has_the_file_when_the_command_ends(world: World, systemd: Path) -> None:
    path, destination = world.prepared("out", b"data")
    with destination.open("ab"):
        told = world.iosig.json("finalize", "--background", path)["drain"]
        assert told["pid"] == pids(systemd)[0] and told["unit"].startswith("iosig-drain-")
        again = world.iosig.json("finalize", "--background", path)["drain"]
        assert again["drained_by_another"] == [str(path)] and again["unit"] is None and again["pid"] == 0
    eventually(lambda: is_home(path))


def test_prepare_starts_a_service_too(world: World, systemd: Path) -> None:
    said = world.iosig("prepare", world.work / "out", "random", "--drain").stdout
    assert "user service iosig-drain-" in said and f"(process {pids(systemd)[0]})" in said
    (world.work / "out").write_bytes(b"data")
    eventually(lambda: is_home(world.work / "out"))


@pytest.mark.parametrize("fault", ["exit 3", "echo 'Failed to connect to bus' >&2; exit 1"])
def test_a_systemd_that_refuses_is_told_and_a_process_drains(world: World, systemd: Path, fault: str) -> None:
    systemd.write_text(f"#!/bin/bash\n{fault}\n")
    path, _ = world.prepared("out", b"data")
    done = world.iosig("finalize", "--background", path)
    assert "systemd-run: " in done.stderr and "a process drains instead" in done.stderr
    assert re.search(r"^process \d+ drains", done.stdout)
    eventually(lambda: is_home(path))


@pytest.mark.parametrize("kind", ["stale", "missing", "file", "fifo"])
def test_a_socket_that_nobody_serves_is_no_systemd(world: World, systemd: Path, kind: str) -> None:
    private = world.root / "run/systemd/private"
    private.unlink()
    if kind == "stale":
        with socket.socket(socket.AF_UNIX) as closed, contextlib.chdir(private.parent):
            closed.bind("private")
    if kind == "file":
        private.write_text("")
    if kind == "fifo":
        os.mkfifo(private)
    path, _ = world.prepared("out", b"data")
    assert world.iosig.json("finalize", "--background", path)["drain"]["unit"] is None
    eventually(lambda: is_home(path))
    assert not pids(systemd)


def test_foreground_needs_background(world: World) -> None:
    assert "--foreground needs --background" in world.iosig("finalize", "--foreground", "--all", check=2).stderr
