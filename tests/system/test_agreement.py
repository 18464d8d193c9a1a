"""Who shares a file agrees on where it is, and room that one stream was reserved is not reserved for another."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import BUILD, ROOT
from redirecting import World, compile_c, needs_mounts, race_for_one_path

NEW = os.O_CREAT | os.O_WRONLY

# Redirects "NAME SIGNATURE" from each line of stdin, prints iosig_redirect's answer, and lives until stdin ends.
STREAMS = r"""
#include <iosig/iosig.h>
#include <stdio.h>
#include <string.h>
int main(void) {
  char line[6000];
  while (fgets(line, sizeof line, stdin)) {
    char *signature = strchr(line, ' ');
    *signature++ = 0;
    signature[strcspn(signature, "\n")] = 0;
    int answer = iosig_redirect(line, signature);
    printf("%d %s\n", answer, iosig_last_error());
    fflush(stdout);
  }
  return 0;
}
"""


@pytest.fixture(scope="session")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(STREAMS, tmp_path_factory.mktemp("streams"), "streams")


class Program:
    """A program that redirects what it is told to, and lives until the end of the `with`."""

    def __init__(self, world: World, binary: Path) -> None:
        self.world = world
        self.process = subprocess.Popen(
            [binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=world.work, env=world.env, text=True
        )

    def redirect(self, name: str, signature: str) -> bool:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{name} {signature}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer[:2] in ("1 ", "0 "), answer
        return answer.startswith("1")

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


def only_10_gb_free(world: World) -> None:
    """The fast mount point as if 10 GB were free there, whatever this machine has."""
    text = world.storage.read_text()
    world.storage.write_text(text.replace('device = "fast"\n', 'device = "fast"\nfree = "10GB"\n', 1))


def reservations(world: World) -> int:
    table = world.user_directory / ".promises"
    return sum(any(record) for record in _records(table)) if table.exists() else 0


def _records(table: Path) -> list[bytes]:
    data = table.read_bytes()
    return [data[at : at + 64] for at in range(0, len(data), 64)]


# ---- room -----------------------------------------------------------------------------------------------------------


def test_room_promised_to_one_program_is_not_reserved_to_another_while_it_lives(world: World, streams: Path) -> None:
    only_10_gb_free(world)
    with Program(world, streams) as first, Program(world, streams) as second:
        assert first.redirect("a", "random totalsize(6GB)")
        assert not second.redirect("b", "random totalsize(6GB)")
        assert second.redirect("c", "random totalsize(4GB)")
        assert not first.redirect("d", "random totalsize(1B)")
    with Program(world, streams) as third:
        assert third.redirect("e", "random totalsize(10GB)")


def test_what_is_written_is_not_counted_twice(world: World, streams: Path) -> None:
    """Free space shrinks as a stream writes, so its reservation shrinks too."""
    text = world.storage.read_text()
    free = 64 << 20
    world.storage.write_text(text.replace('device = "fast"\n', f'device = "fast"\nfree = "{free}B"\n', 1))
    with Program(world, streams) as program:
        assert program.redirect("a", "random totalsize(60MB)")
        assert not program.redirect("b", "random totalsize(20MB)")
        (world.work / "a").write_bytes(bytes(50 << 20))
        # `free` is set by hand here and did not shrink: what remains reserved are 10 MB.
        assert program.redirect("c", "random totalsize(20MB)")


def test_the_command_tells_how_much_is_reserved(world: World) -> None:
    only_10_gb_free(world)
    world.iosig("prepare", world.work / "a", "random", "totalsize(6GB)")
    refused = world.iosig("choose", "random totalsize(5GB)").stdout
    assert "no room: totalsize 5GB, free 10 GB, 6 GB of them reserved for other streams" in refused
    mounts = world.iosig.json("storage", "list")["mount_points"]
    assert [m["promised_bytes"] for m in mounts] == [6 << 30, 0]
    assert "10 GB, 6 GB reserved" in world.iosig("storage", "list").stdout


def test_prepared_room_is_kept_until_it_is_settled(world: World) -> None:
    only_10_gb_free(world)
    world.iosig("prepare", world.work / "a", "random", "totalsize(6GB)")
    assert "stays" in world.iosig("prepare", world.work / "b", "random", "totalsize(6GB)").stdout
    world.iosig("finalize", world.work / "a")
    assert "leads to" in world.iosig("prepare", world.work / "b", "random", "totalsize(6GB)").stdout
    world.iosig("finalize", "--all")
    assert not list(world.user_directory.iterdir())


def test_paths_of_one_prepare_share_the_room(world: World) -> None:
    only_10_gb_free(world)
    rules = world.root / "rules.toml"
    rules.write_text(f'schema = "iosig.rules/1"\n[[rule]]\npath = "{world.work}/*"\nsig = "random totalsize(4GB)"\n')
    answer = world.iosig.json("prepare", "--rules", rules, *(world.work / n for n in "abc"))
    assert [r["action"] for r in answer["redirects"]] == ["linked", "linked", "stays"]


def test_a_jobs_directory_keeps_its_room_until_it_is_settled(world: World) -> None:
    only_10_gb_free(world)
    directory = world.iosig("choose", "--make-folder", "temp totalsize(8GB)").stdout.strip()
    assert Path(directory).parent == world.user_directory
    assert f"chosen: {world.root}" in world.iosig("choose", "totalsize(4GB)").stdout
    (Path(directory) / "part").write_bytes(bytes(1 << 20))
    (reserved, _) = (m["promised_bytes"] for m in world.iosig.json("storage", "list")["mount_points"])
    assert reserved == (8 << 30) - (1 << 20)
    (Path(directory) / "part").unlink()
    world.iosig("finalize", directory)
    assert f"chosen: {world.fast}" in world.iosig("choose", "totalsize(4GB)").stdout


def test_a_program_killed_at_any_moment_leaves_a_table_that_works(world: World, streams: Path) -> None:
    only_10_gb_free(world)
    for attempt in range(12):
        with Program(world, streams) as program:
            assert program.process.stdin is not None
            program.process.stdin.write("".join(f"k{attempt}.{i} random totalsize(1MB)\n" for i in range(200)))
            program.process.stdin.flush()
            time.sleep(0.003 * attempt)
            program.process.send_signal(signal.SIGKILL)
    with Program(world, streams) as program:
        assert program.redirect("all", "random totalsize(10GB)")
    world.iosig("finalize", "--all", check=None)  # an entry may have been cut
    assert not list(world.user_directory.iterdir())


def test_a_table_of_garbage_is_taken_for_an_empty_one(world: World, streams: Path) -> None:
    only_10_gb_free(world)
    world.user_directory.mkdir(mode=0o700)
    (world.user_directory / ".promises").write_bytes(os.urandom(1000))
    with Program(world, streams) as first, Program(world, streams) as second:
        assert first.redirect("a", "random totalsize(10GB)")
        assert not second.redirect("b", "random totalsize(1GB)")


def test_streams_that_race_for_room_never_get_more_than_there_is(world: World, streams: Path) -> None:
    only_10_gb_free(world)
    racers = [Program(world, streams) for _ in range(8)]
    for number, racer in enumerate(racers):
        assert racer.process.stdin is not None
        racer.process.stdin.write("".join(f"r{number}.{i} random totalsize(1GB)\n" for i in range(4)))
        racer.process.stdin.flush()
    answers = [racer.process.stdout.readline() for racer in racers for _ in range(4) if racer.process.stdout]
    assert sum(answer.startswith("1") for answer in answers) == 10
    assert reservations(world) == 10
    for racer in racers:
        racer.__exit__()


def test_processes_that_race_for_one_path_and_its_room_reach_one_file(world: World, hinted: Path) -> None:
    only_10_gb_free(world)
    for attempt in range(4):
        race_for_one_path(world, hinted, f"log{attempt}", "random totalsize(7GB)")
        assert (world.work / f"log{attempt}").is_symlink() and reservations(world) >= 1
        assert len(world.journal()) == attempt + 1


# ---- jobs -----------------------------------------------------------------------------------------------------------

RANKS = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <iosig/iosig.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
  int rank, ranks, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < 20; i++) {
    char path[32], data[8];
    snprintf(path, sizeof path, "shared%d", i);
    snprintf(data, sizeof data, "%06d\n", rank);
    MPI_Barrier(MPI_COMM_WORLD);
    iosig_open_hint(AT_FDCWD, path, O_CREAT | O_WRONLY, "random totalsize(1MB)");
    int fd = open(path, O_CREAT | O_WRONLY, 0666);
    wrong |= fd < 0 || pwrite(fd, data, 7, 7 * rank) != 7 || close(fd);
  }
  MPI_Finalize();
  return wrong;
}
"""


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_the_ranks_of_a_job_write_one_file(world: World, tmp_path: Path, mpi: str) -> None:
    compiler, launcher = shutil.which(f"mpicc.{mpi}"), shutil.which(f"mpirun.{mpi}")
    if compiler is None or launcher is None:
        pytest.skip(f"needs {mpi}")
    (tmp_path / "ranks.c").write_text(RANKS)
    subprocess.run(
        [compiler, "-o", "ranks", "ranks.c", f"-I{ROOT}/include", f"-L{BUILD}/lib", "-liosig",
         f"-Wl,-rpath,{BUILD}/lib"],
        cwd=tmp_path, check=True,
    )  # fmt: skip
    options = ["--oversubscribe", "--allow-run-as-root", "--mca", "mpi_yield_when_idle", "1"]
    done = world.run(launcher, *(options if mpi == "openmpi" else []), "-n", 4, tmp_path / "ranks")
    assert done.returncode == 0, done.stderr
    for i in range(20):
        assert (world.work / f"shared{i}").is_symlink()
        assert (world.work / f"shared{i}").read_bytes() == b"".join(b"%06d\n" % rank for rank in range(4))
    assert len(world.journal()) == 20
    world.iosig("finalize", "--all")
    assert not any(path.is_symlink() for path in world.work.iterdir()) and not list(world.user_directory.iterdir())


SEVERAL_NODES = [
    {"OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"},
    {"PMI_SIZE": "8", "MPI_LOCALNRANKS": "4"},
    {"SLURM_STEP_NUM_NODES": "2", "SLURM_JOB_NUM_NODES": "2"},
    {"SLURM_JOB_NUM_NODES": "2"},
]
ONE_NODE = [
    {},
    {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "4", "SLURM_JOB_NUM_NODES": "2"},
    {"PMI_SIZE": "4", "MPI_LOCALNRANKS": "4"},
    {"SLURM_STEP_NUM_NODES": "1", "SLURM_JOB_NUM_NODES": "2"},
]


def see_work_from_other_nodes(world: World) -> None:
    text = world.storage.read_text()
    world.storage.write_text(text.replace('device = "slow"\n', 'device = "slow"\nvisibility = "global"\n', 1))


@pytest.mark.parametrize("variables", [*SEVERAL_NODES, *ONE_NODE], ids=lambda v: ",".join(v) or "no job")
def test_in_a_job_on_several_nodes_a_shared_path_is_global_unless_it_says_local(
    world: World, hinted: Path, variables: dict[str, str]
) -> None:
    see_work_from_other_nodes(world)
    env = world.env | variables | {"IOSIG_VERBOSE": "1"}
    world.run(hinted, "open", "said-local", NEW, "random local", env=env)
    said = world.run(hinted, "open", "unsaid", NEW, "random", env=env).stderr.decode()
    assert (world.work / "said-local").is_symlink()
    assert (world.work / "unsaid").is_symlink() == (variables in ONE_NODE)
    assert ("global, because neither local nor global is given" in said) == (variables in SEVERAL_NODES)
    prepared = world.iosig.json("prepare", world.work / "prepared", "random", env=env)["redirects"][0]
    assert prepared["action"] == ("linked" if variables in ONE_NODE else "stays")


def test_in_a_job_on_several_nodes_a_path_of_this_node_alone_is_redirected(world: World, hinted: Path) -> None:
    world.run(hinted, "open", "out", NEW, "random", env=world.env | SEVERAL_NODES[0])
    assert (world.work / "out").is_symlink()


class Node:
    """A "node": a shell with a host name and a node-local file system of its own; all else is shared."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.shell = subprocess.Popen(
            ["unshare", "--uts", "--mount", "bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, cwd=world.work, env=world.env, text=True,
        )  # fmt: skip
        if "ready" not in self.run(f"hostname {name} && mount -t tmpfs none {world.fast} && echo ready"):
            self.shell.kill()
            pytest.skip("cannot make namespaces here")

    def run(self, command: str) -> str:
        assert self.shell.stdin is not None and self.shell.stdout is not None
        try:
            self.shell.stdin.write(f"{command}\necho; echo --$?\n")
            self.shell.stdin.flush()
        except BrokenPipeError:
            return ""
        lines: list[str] = []
        for line in self.shell.stdout:
            if line.startswith("--"):
                break
            lines.append(line)
        return "".join(lines).strip()

    def json(self, *words: object) -> Any:
        return json.loads(self.run(f"{self.world.iosig.binary} {' '.join(map(str, words))} --json 2>/dev/null"))

    def close(self) -> None:
        self.shell.kill()
        self.shell.wait()


@pytest.fixture
def nodes(world: World) -> Iterator[tuple[Node, Node]]:
    first = Node(world, "node-one")
    second = Node(world, "node-two")
    yield first, second
    first.close()
    second.close()


@needs_mounts
def test_each_node_has_its_own_data_behind_the_link_of_a_local_stream(
    world: World, hinted: Path, nodes: tuple[Node, Node]
) -> None:
    world.env |= SEVERAL_NODES[0]
    for node in nodes:
        name = node.run("hostname")
        answer = node.run(f"for i in 1 2 3; do echo {name} | {hinted} open scratch {NEW} 'temp local random'; done")
        assert answer.splitlines() == ["0 77"] * 3, answer
    assert (world.work / "scratch").is_symlink()
    assert [node.run("cat scratch") for node in nodes] == ["node-one", "node-two"]
    assert len(world.journal()) == 2
    for node, other in zip(nodes, reversed(nodes), strict=True):
        states = {r["host"]: r["state"] for r in node.json("status")["redirects"]}
        assert states == {node.run("hostname"): "linked", other.run("hostname"): "unreachable"}
    for node in nodes:  # each drops its own, and says that the other's are elsewhere
        assert [s["action"] for s in node.json("finalize", "--all")["settled"]] == ["dropped"]
    assert not world.journal() and not os.path.lexists(world.work / "scratch")
    assert [node.run(f"ls -A {world.user_directory}") for node in nodes] == ["", ""]


@needs_mounts
def test_a_node_that_lacks_what_a_stream_of_all_nodes_leads_to_says_so(
    world: World, hinted: Path, nodes: tuple[Node, Node]
) -> None:
    first, second = nodes
    first.run(f"{world.iosig.binary} prepare out random")
    second.run(f"export {' '.join(f'{k}={v}' for k, v in SEVERAL_NODES[0].items())}")
    answer = second.run(f"echo x | {hinted} open out {NEW} random")
    assert "which this node lacks" in answer and "2 77" in answer
    # A job on one node may well be on another one than that where it was prepared.
    second.run(f"unset {' '.join(SEVERAL_NODES[0])}")
    assert second.run(f"echo x | {hinted} open out {NEW} random") == "0 77"
    assert second.run("cat out") == "x"


def test_a_directory_that_was_lost_with_power_is_made_again_for_a_link_that_waits(world: World, hinted: Path) -> None:
    world.iosig("prepare", world.work / "out", "random")
    shutil.rmtree(world.user_directory)
    assert world.run(hinted, "open", "out", NEW, "random", input=b"data").stdout == b"0 77\n"
    assert (world.work / "out").read_bytes() == b"data" and len(world.journal()) == 1


# ---- much and odd ---------------------------------------------------------------------------------------------------


@needs_mounts
def test_ten_thousand_files_are_redirected_listed_and_settled(world: World, streams: Path) -> None:
    """With a totalsize each: nothing in a decision or in settling may grow with what is redirected already."""
    names = [f"f{i}" for i in range(10_000)]
    (world.root / "lines").write_text("".join(f"{name} random totalsize(4KB)\n" for name in names))
    world.state.mkdir()
    # Settling syncs each step, for minutes on a disk: where that can be had, everything is in memory.
    script = f"""
        mount -t tmpfs none {world.state} && mount -t tmpfs none {world.work} && cd {world.work}
        {streams} < ../lines | sort | uniq -c
        for i in $(seq 100); do echo $i > f$i; done
        {world.iosig.binary} status | grep -oE "  (linked|empty)  " | sort | uniq -c
        {world.iosig.binary} finalize --all | wc -l
        ls | wc -l; ls {world.state}/journal | wc -l
    """
    done = world.run_with_own_mounts(script, timeout=600)
    assert done.stdout.split() == b"10000 1 9900 empty 100 linked 10000 100 0".split(), done.stderr
    assert not list(world.user_directory.iterdir())


def test_any_path_goes_through_every_verb_and_json_stays_json(world: World, hinted: Path) -> None:
    for name in (b"new\nline", b"\xff\xfe no utf-8", b'quote" \\ \x1b[2J'):
        path = world.work / os.fsdecode(name)
        assert world.iosig.json("prepare", path, "random", "totalsize(1MB)")["redirects"][0]["action"] == "linked"
        assert world.iosig.json("prepare", path, "random")["redirects"][0]["action"] == "already"
        assert world.run(hinted, "open", path, NEW, "random", input=b"x").stdout == b"0 77\n"
        assert world.iosig.json("status")["redirects"][0]["state"] == "linked"
        for line in world.run(world.iosig.binary, "status").stdout.splitlines():
            assert line.decode().isprintable()
        assert len(world.iosig.json("finalize", path)["settled"]) == 1
        assert path.read_bytes() == b"x" and not path.is_symlink()
        refused = world.iosig("prepare", path, "random", check=1).stderr
        assert "exists already" in refused and refused.rstrip("\n").isprintable()


@pytest.mark.parametrize("length", [4095, 4096, 5000])
def test_paths_as_long_as_the_kernel_takes_and_longer_behave_as_without_iosig(
    world: World, hinted: Path, length: int
) -> None:
    """A path is 4095 bytes at most; a relative one may lead beyond, to where no absolute path can."""
    deep = world.work
    while len(os.fsencode(deep)) < 3900:
        deep = deep / ("d" * 60)
    deep.mkdir(parents=True)
    path = str(deep) + "/" + "n" * 9
    path = path.replace("/" + "n" * 9, "/." * ((length - len(path)) // 2) + "/" + "n" * (9 + (length - len(path)) % 2))
    assert len(path) == length
    expected = b"0 77\n" if length < 4096 else b"%d 77\n" % errno.ENAMETOOLONG
    assert world.run(hinted, "open", path, NEW, "random", input=b"data").stdout == expected
    if length < 4096:
        assert world.iosig.json("prepare", path, "random")["redirects"][0]["action"] == "already"
        assert world.iosig.json("finalize", path)["settled"][0]["action"] == "brought_home"
        assert Path(path).read_bytes() == b"data"


def test_a_file_deeper_than_any_absolute_path_is_left_where_it_is(world: World, hinted: Path) -> None:
    there = os.open(world.work, os.O_RDONLY)
    for _ in range(70):
        os.mkdir("d" * 60, dir_fd=there)
        inner = os.open("d" * 60, os.O_RDONLY, dir_fd=there)
        os.close(there)
        there = inner
    done = world.run(hinted, "open", "out", NEW, "random", input=b"data", cwd=None, preexec_fn=lambda: os.fchdir(there))
    assert done.stdout == b"0 77\n"
    assert not stat.S_ISLNK(os.stat("out", dir_fd=there, follow_symlinks=False).st_mode) and not world.journal()
    os.close(there)


def test_a_program_whose_state_directory_cannot_be_written_is_not_affected(world: World, streams: Path) -> None:
    world.env["IOSIG_STATE"] = "/proc/nowhere"
    done = world.run(streams, input=b"a random totalsize(1MB)\n")
    assert done.returncode == 0 and done.stdout.startswith(b"-1 ")
    assert not os.path.lexists(world.work / "a") and reservations(world) == 0
