"""Parallel programs that know nothing of containers: what they write into them is what they write into plain files."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import BUILD, ROOT, Iosig
from mounting import Mount

# An MPI library's name: its compiler's, and what the launcher is told to have it, not another one of the same MPI.
LIBRARIES = {
    "ompio": ("openmpi", ["--mca", "io", "ompio"]),
    "romio": ("openmpi", ["--mca", "io", "romio321"]),
    "mpich": ("mpich", []),
}
PRELOAD = BUILD / "lib" / "libiosig-preload.so"
OVERSUBSCRIBED = ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# In the order of mpi_client.c.
PARTS = [
    *("independent", "vector_all", "vector_each", "subarray", "darray", "indexed", "nonblocking", "shared_pointer"),
    *("overlapping", "sizes", "names", "alone"),
]
# What OMPIO 4.1 does not do right on plain files.
NOT_OMPIO = ["atomic_mode", "preallocate"]

Build = Callable[[str, str], Path]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """built(NAME, MPI) is the program of tests/support/NAME.c."""
    directory = tmp_path_factory.mktemp("clients")

    def build(name: str, mpi: str) -> Path:
        program = directory / f"{name}.{mpi}"
        if program.exists():
            return program
        compiler, libraries = shutil.which(f"mpicc.{mpi}"), []
        if compiler is None or shutil.which(f"mpirun.{mpi}") is None:
            pytest.skip(f"needs {mpi}")
        for package in {"hdf5_client": ["hdf5-openmpi"], "pnetcdf_client": ["pnetcdf"]}.get(name, []):
            found = subprocess.run(["pkg-config", "--cflags", "--libs", package], capture_output=True, text=True)
            if found.returncode != 0:
                pytest.skip(f"needs {package}")
            libraries = found.stdout.split()
        source = ROOT / "tests/support" / f"{name}.c"
        subprocess.run([compiler, "-O1", "-w", "-o", program, source, *libraries], check=True)
        return program

    return build


def launch(
    library: str, ranks: int, *command: object, before: tuple[object, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """The finished job of `ranks` processes; `before` stands before each one's command."""
    mpi, options = LIBRARIES[library]
    words = [f"mpirun.{mpi}", *(OVERSUBSCRIBED if mpi == "openmpi" else []), *options, "-n", ranks, *before, *command]
    env = dict(os.environ, **AS_ROOT)
    # Four ranks that wait by polling, and the server of the mount, take 5 s on two idle processors, and ten times as
    # long beside sanitized tests.
    return subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=300, env=env)


def do(library: str, ranks: int, *command: object, before: tuple[object, ...] = ()) -> None:
    done = launch(library, ranks, *command, before=before)
    assert done.returncode == 0, f"{library}, {ranks} ranks: {done.stdout}\n{done.stderr}"


def parts_of(library: str) -> list[str]:
    """The parts of mpi_client that the library does right on plain files."""
    more = {"ompio": [], "romio": NOT_OMPIO, "mpich": [*NOT_OMPIO, "large_counts"]}
    return [*PARTS, *more[library]]


@pytest.fixture(scope="session")
def plain(built: Build, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """plain(RANKS): what mpi_client writes into a directory of plain files. No library has bytes of its own."""

    def written(ranks: int) -> Path:
        directory = tmp_path_factory.getbasetemp() / f"plain{ranks}"
        if not directory.exists():
            directory.mkdir()
            library = "mpich" if ranks < 3 else "romio"  # where there are more ranks than processors MPICH is slow
            do(library, ranks, built("mpi_client", LIBRARIES[library][0]), directory, "write")
        return directory

    return written


class Way:
    """How programs come to containers: in `folder`, their commands with `before` before them; they lie in `source`."""

    def __init__(self, directory: Path, source: Path, before: tuple[object, ...], leave: Callable[[], object]) -> None:
        self.directory, self.source, self.before, self.leave = directory, source, before, leave


@pytest.fixture(params=["mount", "preload"])
def way(request: pytest.FixtureRequest, iosig: Iosig, mount: Mount, tmp_path: Path) -> Callable[[str], Way]:
    """way(GLOB): new files of such names become containers. leave() when all is written, then others can read it."""
    source = tmp_path / "source"

    def begin(glob: str) -> Way:
        if request.param == "mount":
            directory = mount("--containers", glob)
            return Way(directory, source, (), lambda: iosig("unmount", directory))
        if not PRELOAD.exists():
            pytest.skip("built without libiosig-preload.so")
        return Way(source, source, ("env", f"LD_PRELOAD={PRELOAD}", f"IOSIG_CONTAINERS={source}/{glob}"), lambda: None)

    return begin


def differences(directory: Path, expected: Path) -> list[str]:
    """Names of the files in `folder` that are not as in `expected`."""
    assert sorted(path.name for path in directory.iterdir()) != []
    return [path.name for path in directory.iterdir() if not filecmp.cmp(path, expected / path.name, shallow=False)]


def check_containers(iosig: Iosig, directory: Path, expected: Path, scratch: Path) -> None:
    """Every file is a container that has the expected bytes."""
    scratch.mkdir()
    for path in directory.iterdir():
        iosig("container", "export", path, scratch / path.name)
    assert differences(scratch, expected) == []


@pytest.mark.parametrize(("library", "ranks"), [("ompio", 2), ("romio", 4), ("mpich", 2)])
def test_mpi_io_writes_into_containers_what_it_writes_into_plain_files(
    library: str, ranks: int, built: Build, plain: Callable[[int], Path], iosig: Iosig, way: Callable[[str], Way],
    mount: Mount, tmp_path: Path,
) -> None:  # fmt: skip
    expected, client, to = plain(ranks), built("mpi_client", LIBRARIES[library][0]), way("*.dat")
    for act in ("write", "read"):
        do(library, ranks, client, to.directory, act, *parts_of(library), before=to.before)
    to.leave()
    check_containers(iosig, to.source, expected, tmp_path / "exported")
    assert differences(mount(), expected) == []


def test_ompios_shared_file_pointer_is_no_container(
    built: Build, plain: Callable[[int], Path], iosig: Iosig, tmp_path: Path
) -> None:
    if not PRELOAD.exists():
        pytest.skip("built without libiosig-preload.so")
    expected, client, directory = plain(3), built("mpi_client", "openmpi"), tmp_path / "directory"
    directory.mkdir()
    # In a temporary directory OMPIO maps `shared_pointer.dat_cid-N-PID.sm`, which all ranks open before.
    before = ("env", f"LD_PRELOAD={PRELOAD}", "IOSIG_CONTAINERS=*.dat*")
    for act in ("write", "read"):
        do("ompio", 3, client, directory, act, "shared_pointer", before=before)
    assert (directory / "shared_pointer.dat").is_dir()
    check_containers(iosig, directory, expected, tmp_path / "exported")


def dumped(tool: str, path: Path) -> str:
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}")
    return subprocess.run([tool, path.name], cwd=path.parent, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(("name", "file", "tool"), [("hdf5", "f.h5", "h5dump"), ("pnetcdf", "f.nc", "ncdump")])
def test_formats_have_the_bytes_of_plain_files_and_tools_read_them(
    name: str, file: str, tool: str, built: Build, iosig: Iosig, way: Callable[[str], Way], mount: Mount, tmp_path: Path
) -> None:
    client, to, plain_directory = built(f"{name}_client", "openmpi"), way("f.*"), tmp_path / "plain"
    plain_directory.mkdir()
    do("ompio", 3, client, plain_directory / file, "write")
    do("ompio", 1, client, to.directory / file, "write", before=to.before)
    do("ompio", 3, client, to.directory / file, "write", before=to.before)  # over what is there
    do("ompio", 3, client, to.directory / file, "read", before=to.before)
    to.leave()
    check_containers(iosig, to.source, plain_directory, tmp_path / "exported")
    directory = mount()
    assert dumped(tool, directory / file) == dumped(tool, plain_directory / file)
    subprocess.run(["cp", directory / file, tmp_path / "copy"], check=True)
    subprocess.run(["tar", "-cf", tmp_path / "all.tar", "-C", directory, file], check=True)
    subprocess.run(["tar", "-xf", tmp_path / "all.tar", "-C", tmp_path], check=True)
    for copy in (tmp_path / "copy", tmp_path / file):
        subprocess.run(["cmp", copy, plain_directory / file], check=True)


@pytest.mark.parametrize(
    ("workload", "through"), [("btio --grid 11 --steps 2 --element 5", "mpiio"), ("n1-strided --count 500", "posix")]
)
def test_known_jobs_write_into_containers_what_they_write_into_plain_files(
    workload: str, through: str, iosig: Iosig, way: Callable[[str], Way], tmp_path: Path
) -> None:
    program, plain_directory, to = BUILD / "bin" / "workloads_mpi", tmp_path / "plain", way("job")
    if not program.exists() or shutil.which("mpirun.openmpi") is None:
        pytest.skip("workloads_mpi is not built")
    plain_directory.mkdir()
    name, *told = workload.split()
    for directory, before in ((plain_directory, ()), (to.directory, to.before)):
        do("ompio", 4, program, "run", name, directory / "job", *told, "--write", "--through", through, before=before)
    do(
        "ompio",
        4,
        program,
        "run",
        name,
        to.directory / "job",
        *told,
        "--verify",
        "--through",
        through,
        before=to.before,
    )
    to.leave()
    check_containers(iosig, to.source, plain_directory, tmp_path / "exported")


def strided(ranks: int, small: int = 64, count: int = 1000) -> bytes:
    """What part `killed` of mpi_client writes: byte_of(rank, n), in blocks in turn."""

    def block(rank: int, number: int) -> bytes:
        bytes_of = range(number * small, (number + 1) * small)
        return bytes(((n * 2654435761 & 0xFFFFFFFFFFFFFFFF) >> 13 ^ (rank * 37 + 1)) & 0xFF for n in bytes_of)

    return b"".join(block(rank, number) for number in range(count) for rank in range(ranks))


def test_what_ranks_have_synced_is_there_when_one_of_them_is_killed(
    built: Build, iosig: Iosig, way: Callable[[str], Way], mount: Mount, tmp_path: Path
) -> None:
    to = way("*.dat")
    done = launch("romio", 3, built("mpi_client", "openmpi"), to.directory, "write", "killed", before=to.before)
    assert done.returncode in (128 + signal.SIGKILL, signal.SIGKILL), done.stderr
    to.leave()
    assert iosig.json("container", "check", to.source / "killed.dat")["sound"]
    assert (mount() / "killed.dat").read_bytes() == strided(3)


@pytest.mark.parametrize(("library", "ranks"), [("romio", 4), ("mpich", 2)])
def test_a_collective_open_reads_the_index_once(library: str, ranks: int, built: Build, tmp_path: Path) -> None:
    if not PRELOAD.exists() or shutil.which("strace") is None:
        pytest.skip("needs libiosig-preload.so and strace")
    client, directory = built("mpi_client", LIBRARIES[library][0]), tmp_path / "source"
    directory.mkdir()
    preloaded = ("env", f"LD_PRELOAD={PRELOAD}", f"IOSIG_CONTAINERS={directory}/*")
    do(library, ranks, client, directory, "write", "independent", before=preloaded)
    traced = ("strace", "-ff", "-qq", "-o", tmp_path / "trace", "-e", "trace=openat", *preloaded)
    do(library, ranks, client, directory, "read", "independent", before=traced)
    index = re.compile(r'"(index\.\d+|closed\.[0-9a-f]+|\.iosig-index)"')
    opens = {trace.name: trace.read_text().partition('"data.')[0] for trace in tmp_path.glob("trace.*")}
    # Behind the first data dropping, every rank that reads whole blocks reads their checksums from the records.
    assert len([rank for rank, until_data in opens.items() if index.search(until_data)]) == 1


OTHER_NODE = """
[ $((OMPI_COMM_WORLD_RANK % 2)) = 0 ] && exec "$@"
exec unshare --mount --uts sh -c 'mount --bind "$0" /proc/sys/kernel/random/boot_id && hostname other && exec "$@"' \
  {boot_id} "$@"
"""


def test_ranks_on_several_nodes_lose_nothing(
    built: Build, plain: Callable[[int], Path], iosig: Iosig, tmp_path: Path
) -> None:
    """Odd ranks find another start of the machine, which is what tells nodes from each other."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "--uts", "true"]).returncode != 0:
        pytest.skip("needs root, to give ranks a node of their own")
    if not PRELOAD.exists():
        pytest.skip("built without libiosig-preload.so")
    client, directory, boot_id = built("mpi_client", "openmpi"), tmp_path / "source", tmp_path / "boot_id"
    directory.mkdir()
    boot_id.write_text("01234567-89ab-cdef-0123-456789abcdef\n")
    (tmp_path / "node").write_text(OTHER_NODE.format(boot_id=boot_id))
    before = ("sh", tmp_path / "node", "env", f"LD_PRELOAD={PRELOAD}", f"IOSIG_CONTAINERS={directory}/*.dat")
    parts = ["independent", "vector_each", "vector_all", "overlapping", "atomic_mode", "shared_pointer", "sizes"]
    for act in ("write", "read"):
        do("romio", 4, client, directory, act, *parts, before=before)
    for part in parts:
        assert len(list((directory / f"{part}.dat").glob("order.*"))) == 2
    check_containers(iosig, directory, plain(4), tmp_path / "exported")


WRITE_SLOWLY = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(fd, b"x" * 100)
os.fsync(fd)
print("synced", flush=True)
sys.stdin.read()
"""
# Looks at the file while the other node writes, and once more when that has ended, which the end of the input tells.
LOOK_AT_SIZE = """
import os, select, sys
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_CREAT)
def size():  # an open sees what other nodes have closed
    with open(sys.argv[1], "rb") as again: return os.fstat(again.fileno()).st_size
while not select.select([0], [], [], 0.01)[0]: size()
print(size(), len(os.read(fd, 1000)))
"""


def test_a_write_that_another_node_ended_after_a_look_is_seen(tmp_path: Path) -> None:
    """The data are there, their place in the file is not yet: the size that is found then must not be kept."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "--uts", "true"]).returncode != 0:
        pytest.skip("needs root, to give a program a node of its own")
    if not PRELOAD.exists() or shutil.which("strace") is None:
        pytest.skip("needs libiosig-preload.so and strace")
    boot_id, file = tmp_path / "boot_id", tmp_path / "file.dat"
    boot_id.write_text("01234567-89ab-cdef-0123-456789abcdef\n")
    (tmp_path / "node").write_text(OTHER_NODE.format(boot_id=boot_id))
    environment = os.environ | {"OMPI_COMM_WORLD_RANK": "1"}
    preloaded = ["env", f"LD_PRELOAD={PRELOAD}", f"IOSIG_CONTAINERS={file}", sys.executable, "-c"]
    reader = subprocess.Popen(
        [*preloaded, LOOK_AT_SIZE, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    slow = ["strace", "-f", "-o", tmp_path / "calls", "-e", "inject=pwrite64:delay_exit=500000"]
    writer = ["sh", tmp_path / "node", *slow, *preloaded, WRITE_SLOWLY, file]
    with subprocess.Popen(
        [*map(str, writer)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writing:
        assert writing.stdout is not None and writing.stdout.readline() == "synced\n"
        assert reader.communicate(timeout=60)[0] == "100 100\n"
        writing.communicate(timeout=60)
