"""`iosig finalize --job --wait`, and drains of a job: its files come home when it has ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from draining import Drains, eventually, is_alive, is_home
from redirecting import World


class Job:
    """Processes with a batch system's id and a session of their own: each line given to `do` is run by its shell."""

    def __init__(self, world: World, number: str) -> None:
        self.shell = subprocess.Popen(
            ["setsid", "bash"], stdin=subprocess.PIPE, env=world.env | {"SLURM_JOB_ID": number}, cwd=world.work,
            stdout=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.world = world

    def do(self, line: str) -> None:
        assert self.shell.stdin is not None
        done = self.world.root / "done"
        self.shell.stdin.write(f"{line}\ntouch '{done}'\n")
        self.shell.stdin.flush()
        eventually(done.exists)
        done.unlink()

    def end(self) -> None:
        assert self.shell.stdin is not None
        self.shell.stdin.close()
        self.shell.wait()


@pytest.fixture
def job(world: World) -> Iterator[Job]:
    started = Job(world, "4711")
    yield started
    started.shell.kill()
    started.shell.wait()


def test_a_job_is_settled_when_it_has_ended(world: World, job: Job) -> None:
    path, other = world.work / "out", world.prepared("other", b"of no job")[0]
    job.do(f"'{world.iosig.binary}' prepare out random; echo data > out")
    [redirect] = [each for each in world.iosig.json("status")["redirects"] if each["path"] == str(path)]
    assert redirect["job"] == "slurm:4711"
    refused = world.iosig("finalize", "--job", "4711", check=1).stderr
    assert "job '4711' still runs" in refused and "--wait" in refused
    refused = world.iosig("finalize", "--job", "4711", "--wait", "--timeout", "10ms", check=1).stderr
    assert "still runs after" in refused and path.is_symlink()
    waiting = subprocess.Popen(
        [world.iosig.binary, "finalize", "--job", "slurm:4711", "--wait"], env=world.env, stdout=subprocess.PIPE
    )
    time.sleep(0.5)
    assert waiting.poll() is None and path.is_symlink()
    job.do(f"'{world.iosig.binary}' prepare late random; echo later > late")
    job.end()
    out, _ = waiting.communicate()
    assert waiting.returncode == 0 and out.count(b"brought home") == 2
    assert is_home(path) and (world.work / "late").read_bytes() == b"later\n"
    assert other.is_symlink()
    assert "nothing is redirected" in world.iosig("finalize", "--job", "4711").stdout


def test_a_process_that_has_ended_does_not_count_before_its_parent_asks(world: World) -> None:
    prepare = f"'{world.iosig.binary}' prepare out random; echo data > out"
    shell = subprocess.Popen(
        ["setsid", "bash", "-c", prepare], env=world.env | {"SLURM_JOB_ID": "4712"}, cwd=world.work,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    eventually(lambda: not is_alive(shell.pid))  # a zombie
    world.iosig("finalize", "--job", "4712")
    assert is_home(world.work / "out")
    shell.wait()


def test_a_program_of_the_job_that_left_its_session_is_waited_for(world: World, job: Job) -> None:
    path = world.work / "out"
    job.do(f"'{world.iosig.binary}' prepare out random; echo data > out; setsid sleep 100 & echo $! > sleeper")
    job.end()
    sleeper = int((world.work / "sleeper").read_text())
    try:
        refused = world.iosig("finalize", "--job", "4711", check=1).stderr
        assert "still runs" in refused and path.is_symlink()
    finally:
        os.kill(sleeper, signal.SIGKILL)
    eventually(lambda: not is_alive(sleeper))
    world.iosig("finalize", "--job", "4711")
    assert is_home(path)


def test_without_a_batch_system_the_session_is_the_job(world: World, job: Job) -> None:
    path = world.work / "out"
    job.do(f"'{world.iosig.binary}' prepare out random; echo data > out; ps -o sid= $$ | tr -d ' ' > sid")
    session = (world.work / "sid").read_text().strip()
    assert "still runs" in world.iosig("finalize", "--job", f"session:{session}", check=1).stderr
    job.end()
    world.iosig("finalize", "--job", f"session:{session}", "--wait")
    assert is_home(path)


def test_a_job_that_waits_for_itself_is_told(world: World, job: Job) -> None:
    job.do(
        f"'{world.iosig.binary}' prepare out random; echo data > out; "
        f"'{world.iosig.binary}' finalize --job 4711 --wait 2> told; echo $? >> told"
    )
    told = (world.work / "told").read_text()
    assert "--background" in told and told.endswith("\n2\n")


def test_the_shell_that_submitted_a_job_is_not_waited_for(world: World) -> None:
    """As with salloc: it redirected for the job, and goes on when the job has ended."""
    words = f"SLURM_JOB_ID=4711 {world.iosig.binary} prepare out random; echo data > out; ps -o sid= $$ > sid; "
    done = world.run("setsid", "-w", "bash", "-c", words + f"{world.iosig.binary} finalize --job 4711 --wait")
    assert done.returncode == 0, done.stderr
    assert is_home(world.work / "out") and world.is_settled()


def test_a_job_of_another_machine_is_not_taken_for_ended(world: World, job: Job) -> None:
    job.do(f"unshare -u true && unshare -u bash -c \"hostname elsewhere; '{world.iosig.binary}' prepare out random\"")
    path = world.work / "out"
    if not path.is_symlink():
        pytest.skip("needs UTS namespaces")
    path.write_bytes(b"data")
    job.end()
    refused = world.iosig("finalize", "--job", "4711", check=1).stderr
    assert "'elsewhere'" in refused and "--force" in refused and path.is_symlink()
    world.iosig("finalize", "--job", "4711", "--force")
    assert is_home(path)


def test_the_drain_of_a_job_takes_on_what_it_redirects_later(world: World, job: Job, drains: Drains) -> None:
    job.do(f"'{world.iosig.binary}' prepare out random; echo data > out; sleep 0.01")
    drains.start("--job", "4711")
    eventually(lambda: is_home(world.work / "out"))
    job.do(f"'{world.iosig.binary}' prepare late random; echo later > late")
    eventually(lambda: is_home(world.work / "late"))
    assert is_alive(drains.pids[0])
    job.end()
    drains.end()
    assert (world.work / "late").read_bytes() == b"later\n" and world.is_settled()


def test_a_drain_with_wait_leaves_everything_until_the_job_ends(world: World, job: Job, drains: Drains) -> None:
    path = world.work / "out"
    job.do(f"'{world.iosig.binary}' prepare out random; echo data > out; '{world.iosig.binary}' finalize --background "
           "--job 4711 --wait --json > answer")  # fmt: skip
    drains.pids.append(json.loads((world.work / "answer").read_text())["drain"]["pid"])
    eventually(lambda: "its job runs" in (drains.of(path) or {}).get("message", ""))
    assert path.is_symlink()
    job.end()
    drains.end()
    assert is_home(path) and path.read_bytes() == b"data\n"
