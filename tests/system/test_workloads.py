"""bench/workloads: its accesses against arithmetic and brute force, and files that hold what was written."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from conftest import BUILD, ROOT

PROGRAM = BUILD / "bin" / "workloads"
MPI_PROGRAM = BUILD / "bin" / "workloads_mpi"
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="bench/workloads is not built (IOSIG_TESTS=ON)")

Accesses = npt.NDArray[np.int64]  # columns logical, length, physical, id; a row for each access
Words = npt.NDArray[np.uint64]

# Small ones of each: parameters, accesses of all ranks, bytes of the file.
SMALL: dict[str, tuple[str, int, int]] = {
    "n1-strided": ("--ranks 5 --size 100 --count 7", 5 * 7, 5 * 7 * 100),
    "n1-segmented": ("--ranks 5 --size 100 --count 7", 5 * 7, 5 * 7 * 100),
    "n-n": ("--ranks 5 --size 100 --count 7", 5 * 7, 7 * 100),
    "nersc": ("--ranks 3 --size 10 --count 4", 3 * 4, 3 * 4 * 10),
    "lanl-1": ("--ranks 3 --size 10 --pieces 4 --segments 5", 3 * 4 * 5, 3 * 4 * 5 * 10),
    "lanl-2": ("--ranks 3 --size 10 --count 5 --periods 4", 3 * 5 * 4, 3 * 5 * 10 * (1 + 2 + 3 + 4)),
    "lanl-3": ("--ranks 3 --size 10 --count 5 --variables 4 --alignment 64", 3 * 5 * 4, 3 * 192 + 150),
    "hpio": ("--ranks 3 --size 10 --count 5", 3 * 5, 3 * 5 * 10),
    "milc-a": ("--ranks 8 --nx 4 --ny 4 --nz 4 --nt 8 --site 3", 8 * 64 // 2, 512 * 3),  # rows of 2 sites
    "milc-b": ("--ranks 8 --nx 4 --ny 4 --nz 4 --nt 8 --site 3 --buffer 24", 8 * 3, 512 * 3),  # 24 + 24 + 16
    "milc-c": ("--ranks 8 --nx 4 --ny 4 --nz 4 --nt 8 --site 3 --buffer 64 --header 7", 8 * 2, 7 + 512 * 3),
    "btio": ("--ranks 9 --grid 11 --steps 2 --element 5", 2 * 11 * 11 * 3, 2 * 11**3 * 5),
    "flash": ("--ranks 4 --zones 2 --blocks 3 --variables 5 --header 9", 1 + 4 * 5, 9 + 5 * (3 + 4 + 5 + 3) * 64),
    "flash-fuse": ("--ranks 2 --zones 8 --blocks 3 --variables 2 --request 4KB", 1 + 2 * (4 + 5), 2048 + 2 * 7 * 4096),
    "pagoda": (
        "--ranks 3 --level 2 --records 2 --layers 3 --block 16 --header 5",
        1 + 4 * 2 * (160 // 16 + 1),
        5 + 162 * 2 * 4 * (1 + 6 + 3 + 4),
    ),
    "zipf": ("--ranks 3 --size 10 --count 40 --slots 8", 3 * 40, 3 * 8 * 10),
    "ior-hot": ("--ranks 3 --size 10 --count 40 --regions 5 --region 65", 3 * 40, 5 * 65),
    "random": ("--ranks 3 --size 10 --count 40", 3 * 40, 3 * 40 * 10),
}
WITH_GAPS = {"lanl-3", "zipf", "ior-hot"}


def workloads(
    *args: object, check: int = 0, program: Path = PROGRAM, **options: Any
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([program, *map(str, args)], capture_output=True, text=True, timeout=60, **options)
    assert done.returncode == check, f"exit {done.returncode}, wanted {check}\n{done.stdout}\n{done.stderr}"
    return done


def accesses(name: str, told: str, *args: object) -> Accesses:
    text = workloads("print", name, *told.split(), *args).stdout
    return np.array(text.split(), dtype=np.int64).reshape(-1, 4)


def test_every_workload_is_tried_and_documented() -> None:
    listed = json.loads(workloads("list", "--json").stdout)
    assert listed["schema"] == "iosig.workloads/1"
    names = {workload["name"] for workload in listed["workloads"]}
    assert names == SMALL.keys()
    page = (ROOT / "docs" / "howto" / "workloads.md").read_text()
    for workload in listed["workloads"]:
        assert f"`{workload['name']}`" in page
        shown = workloads("list", workload["name"]).stdout
        assert all(parameter["meaning"] in shown for parameter in workload["parameters"])


@pytest.mark.parametrize("name", SMALL)
def test_counts_and_sizes_are_those_of_the_loops(name: str) -> None:
    told, count, file_bytes = SMALL[name]
    rows = accesses(name, told)
    assert len(rows) == count
    ends = rows[:, 0] + rows[:, 1]
    assert (rows[:, 1] > 0).all() and rows[:, 0].min() >= 0
    assert ends.max() <= file_bytes if name in ("zipf", "ior-hot") else ends.max() == file_bytes


@pytest.mark.parametrize("name", sorted(SMALL.keys() - WITH_GAPS - {"n-n", "milc-c"}))
def test_the_accesses_tile_the_file(name: str) -> None:
    rows = accesses(name, SMALL[name][0])
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    assert rows[0, 0] == 0
    assert (rows[:-1, 0] + rows[:-1, 1] == rows[1:, 0]).all()  # neither gaps nor overlaps


def test_each_rank_of_n_n_tiles_a_file_of_its_own() -> None:
    for rank in range(5):
        rows = accesses("n-n", SMALL["n-n"][0], "--rank", rank)
        assert (rows[:, 0] == np.arange(7) * 100).all() and (rows[:, 3] == rank).all()


def test_only_the_header_of_milc_c_is_everybodys() -> None:
    rows = accesses("milc-c", SMALL["milc-c"][0])
    headers, shares = rows[::2], rows[1::2]
    assert (headers[:, :2] == [0, 7]).all()
    assert (shares[:, 0] == 7 + np.arange(8) * 192).all() and (shares[:, 1] == 192).all()


def test_gaps_are_where_they_are_said_to_be() -> None:
    covered = np.zeros(SMALL["lanl-3"][2], dtype=int)
    for logical, length, _, _ in accesses("lanl-3", SMALL["lanl-3"][0]):
        covered[logical : logical + length] += 1
    expected = np.arange(len(covered)) % 192 < 150  # 150 bytes of a variable, rounded up to 3 * 64
    assert (covered == expected).all()
    rows = accesses("nersc", "--ranks 3 --size 10 --count 4 --stride 50")
    assert sorted(rows[:, 0]) == [50 * k + 10 * rank for k in range(4) for rank in range(3)]


def test_every_point_of_btio_is_written_by_the_rank_that_owns_its_cell() -> None:
    """The owner by inverting the diagonal partition; cells by NPB's rule that the first ones are a point larger."""
    p, grid, element = 3, 11, 5
    cell = np.repeat(np.arange(p), [4, 4, 3])  # of a coordinate
    z, y, x = np.meshgrid(cell, cell, cell, indexing="ij")
    owner = np.tile((((x - z) % p) + p * ((y + z) % p)).ravel(), 2)
    for logical, length, _, rank in accesses("btio", SMALL["btio"][0]):
        assert logical % element == length % element == 0
        assert (owner[logical // element : (logical + length) // element] == rank).all()
    assert len(owner) == 2 * grid**3


def test_milc_divides_its_lattice_as_milc_does() -> None:
    """16 ranks, by hand: t 32 -> 16 -> 8 (longest; divided already), then x and y to 8: parts 2 x 2 x 1 x 4."""
    for rank in (0, 1, 6, 15):
        rows = accesses("milc-a", "--ranks 16", "--rank", rank)
        x, y, t = rank % 2 * 8, rank // 2 % 2 * 8, rank // 4 * 8
        expected = [
            288 * (x + 16 * (y + j + 16 * (k + 16 * (t + m)))) for m in range(8) for k in range(16) for j in range(8)
        ]
        assert rows[:, 0].tolist() == expected
        assert (rows[:, 1] == 8 * 288).all()


@pytest.mark.parametrize("request_kb", [4, 12, 128])
def test_fuse_cuts_at_pages(request_kb: int) -> None:
    told = "--ranks 3 --zones 7 --blocks 60 --variables 3"
    whole, pieces = accesses("flash", told), accesses("flash-fuse", told, "--request", f"{request_kb}KB")
    assert (pieces[:, 1] <= request_kb * 1024).all()
    begins = set(map(tuple, whole[:, [0, 3]].tolist()))
    inner = [row for row in pieces if (row[0], row[3]) not in begins]
    assert inner and all(row[0] % 4096 == 0 for row in inner)
    for table in (whole, pieces):  # the same bytes at the same places of the droppings
        table[:, 0] -= table[:, 2]
    ends = whole[:, 2] + whole[:, 1]
    for shift, _, physical, rank in pieces:
        inside = (whole[:, 3] == rank) & (whole[:, 2] <= physical) & (physical < ends)
        assert whole[inside, 0].tolist() == [shift]
    assert pieces[:, 1].sum() == whole[:, 1].sum()


def test_hpio_leaves_spacing_between_regions() -> None:
    rows = accesses("hpio", "--ranks 3 --size 10 --count 4 --spacing 5")
    assert sorted(rows[:, 0]) == [15 * k for k in range(12)] and (rows[:, 1] == 10).all()


def test_ior_hot_moves_its_hot_regions_and_keeps_ranks_apart() -> None:
    told = "--ranks 2 --size 1 --count 40000 --regions 100 --region 8 --windows 2 --skew-percent 100 --drift-percent"
    weights = 1 / np.arange(1, 101)
    for drift in (0, 30):
        rows = accesses("ior-hot", f"{told} {drift}")
        assert (rows[:, 0] % 8 % 2 == rows[:, 3]).all()  # blocks of a region belong to the ranks in turn
        early = np.arange(len(rows)) % 40000 < 20000
        counts = [np.bincount(rows[part, 0] // 8, minlength=100) for part in (early, ~early)]
        for count in counts:
            assert np.sort(count)[::-1][0] / 40000 == pytest.approx(weights[0] / weights.sum(), rel=0.05)
        moved = np.abs(counts[0] - counts[1]) > 6 * np.sqrt(counts[0] + counts[1])
        assert moved.sum() == 0 if drift == 0 else 5 <= moved.sum() <= 30
    assert "expected at least a block" in workloads("print", "ior-hot", "--region", 100, check=3).stderr


def test_zipf_prefers_few_slots_and_keeps_ranks_apart() -> None:
    rows = accesses("zipf", "--ranks 2 --size 1 --count 20000 --slots 100 --skew-percent 100")
    for rank in range(2):
        slots = rows[rows[:, 3] == rank, 0]
        assert slots.min() >= rank * 100 and slots.max() < (rank + 1) * 100
        shares = np.sort(np.bincount(slots - rank * 100, minlength=100))[::-1] / len(slots)
        law = 1 / np.arange(1, 101)
        assert np.abs(shares - law / law.sum()).max() < 0.01
    even = accesses("zipf", "--ranks 1 --size 1 --count 20000 --slots 100 --skew-percent 0")
    assert np.bincount(even[:, 0]).min() > 100  # of 200 expected


def test_random_follows_the_seed_alone() -> None:
    told = "--ranks 2 --size 1 --count 500"
    first, again, other = (accesses("random", told, "--seed", seed)[:, 0] for seed in (1, 1, 2))
    assert (first == again).all() and (first != other).any()
    assert abs(np.corrcoef(first, np.arange(1000))[0, 1]) < 0.1


@pytest.mark.parametrize("name", ["pagoda", "flash-fuse", "btio"])
def test_orders_columns_and_physical_offsets(name: str) -> None:
    told = SMALL[name][0]
    by_rank, by_round = accesses(name, told), accesses(name, told, "--order", "round")
    turns: list[tuple[int, int]] = []
    for rank in range(by_rank[:, 3].max() + 1):
        own = by_rank[by_rank[:, 3] == rank]
        assert (by_round[by_round[:, 3] == rank] == own).all()
        assert (own[:, 2] == np.cumsum(own[:, 1]) - own[:, 1]).all()
        turns += [(turn, rank) for turn in range(len(own))]
    assert by_round[:, 3].tolist() == [rank for _, rank in sorted(turns)]
    columns = workloads("print", name, *told.split(), "--columns", "id,logical").stdout
    assert np.array(columns.split(), dtype=int).reshape(-1, 2).tolist() == by_rank[:, [3, 0]].tolist()


def mixed(number: Words) -> Words:
    number = number + np.uint64(0x9E3779B97F4A7C15)
    number = (number ^ number >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ number >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return number ^ number >> np.uint64(31)


def content(rank: int, sequence: int, begin: int, end: int) -> bytes:
    """What core/iosig/base/origin.h says, said again."""
    key = mixed(mixed(np.array([rank], dtype=np.uint64)) + np.uint64(sequence))
    words = mixed(key ^ np.arange(begin // 8, end // 8 + 1, dtype=np.uint64))
    return words.tobytes()[begin % 8 : begin % 8 + end - begin]


@pytest.mark.parametrize("name", sorted(SMALL.keys() - {"n-n"}))
def test_a_file_holds_the_newest_write_of_each_byte(name: str, tmp_path: Path) -> None:
    told, _, file_bytes = SMALL[name]
    file = tmp_path / "file"
    workloads("run", name, file, *told.split(), "--verify", "--write", "--read")
    expected = bytearray(file_bytes)
    rows = accesses(name, told)
    for rank in range(rows[:, 3].max() + 1):
        for sequence, (logical, length, _, _) in enumerate(rows[rows[:, 3] == rank].tolist()):
            is_shared = name == "milc-c" and sequence == 0
            origin = (0, 0) if is_shared else (rank, sequence)
            expected[logical : logical + length] = content(*origin, logical, logical + length)
    assert file.read_bytes() == bytes(expected[: file.stat().st_size])
    assert len(expected) == file.stat().st_size or not any(expected[file.stat().st_size :])


@pytest.mark.parametrize("name", ["flash", "zipf"])
def test_verify_names_the_byte_that_is_wrong(name: str, tmp_path: Path) -> None:
    told = SMALL[name][0].split()
    file = tmp_path / "file"
    workloads("run", name, file, *told)
    rows = accesses(name, SMALL[name][0])
    for place in (int(rows[0, 0]), int(rows[-1, 0] + rows[-1, 1]) - 1):
        right = file.read_bytes()
        wrong = bytearray(right)
        wrong[place] ^= 1
        file.write_bytes(wrong)
        said = workloads("run", name, file, *told, "--verify", check=1).stderr
        assert f"'{file}': byte {place} is {wrong[place]:#04x}" in said
        file.write_bytes(right)
    workloads("run", name, file, *told, "--verify")


def test_verify_notices_a_file_that_is_too_short_or_too_long(tmp_path: Path) -> None:
    told = SMALL["flash"][0].split()
    file = tmp_path / "file"
    workloads("run", "flash", file, *told)
    os.truncate(file, 100)
    assert "ends at byte" in workloads("run", "flash", file, *told, "--verify", check=1).stderr
    workloads("run", "flash", file, *told, "--force")
    os.truncate(file, SMALL["flash"][2] + 1)
    assert "the workload makes" in workloads("run", "flash", file, *told, "--verify", check=1).stderr


def test_threads_do_not_change_the_file_and_json_says_what_was_done(tmp_path: Path) -> None:
    told, count, file_bytes = SMALL["pagoda"]
    for threads in (1, 2, 64):
        args = ("run", "pagoda", tmp_path / str(threads), *told.split(), "--threads", threads, "--sync", "--json")
        done = json.loads(workloads(*args, "--write", "--verify").stdout)
        assert done["schema"] == "iosig.workload_run/1" and done["ranks"] == 3 and done["file_bytes"] == file_bytes
        assert [phase["phase"] for phase in done["phases"]] == ["write", "verify"]
        assert all(phase["operations"] == count and phase["bytes"] == file_bytes for phase in done["phases"])
    assert len({(tmp_path / name).read_bytes() for name in ("1", "2", "64")}) == 1


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    told = SMALL["n-n"][0].split()
    (tmp_path / "file.3").write_text("precious")
    said = workloads("run", "n-n", tmp_path / "file", *told, check=4).stderr
    assert "file.3' exists already" in said and "--force" in said
    assert [path.name for path in tmp_path.iterdir()] == ["file.3"]  # the others were taken away again
    assert (tmp_path / "file.3").read_text() == "precious"
    workloads("run", "n-n", tmp_path / "file", *told, "--force", "--write", "--verify")
    assert {path.name for path in tmp_path.iterdir()} == {f"file.{rank}" for rank in range(5)}
    assert "no ordinary file" in workloads("run", "random", "/dev/null", "--force", check=4).stderr
    assert "cannot create" in workloads("run", "random", tmp_path / "no" / "directory", check=4).stderr
    assert "cannot open" in workloads("run", "random", tmp_path / "none", "--read", check=4).stderr


def test_what_a_failure_leaves_unfinished_is_removed(tmp_path: Path) -> None:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))

    file = tmp_path / "file"
    said = workloads("run", "n1-strided", file, "--size", 1000, check=4, preexec_fn=limit).stderr
    assert said.startswith(f"workloads: cannot write '{file}'")
    assert not file.exists()


def test_a_full_disk_is_a_no(tmp_path: Path) -> None:
    script = 'mount -t tmpfs -o size=64k none "$0" && "$1" run n1-strided "$0/file" --count 8; echo $? $(ls "$0")'
    namespace = ["unshare", "-Urm"]
    if subprocess.run([*namespace, "mount", "-t", "tmpfs", "none", tmp_path], capture_output=True).returncode != 0:
        pytest.skip("no mounts in a user namespace here")
    done = subprocess.run(
        [*namespace, "sh", "-c", script, tmp_path, PROGRAM], capture_output=True, text=True, timeout=60
    )
    assert "No space left" in done.stderr
    assert done.stdout.strip() == "1"


def test_interrupted_runs_leave_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    run = subprocess.Popen(
        [PROGRAM, "run", "zipf", file, "--count", str(2**40), "--ranks", "2"], stderr=subprocess.PIPE, text=True
    )
    while not (file.exists() and file.stat().st_size > 0):
        assert run.poll() is None
        time.sleep(0.01)
    run.send_signal(signal.SIGINT)
    time.sleep(0.001)
    run.send_signal(signal.SIGINT)  # as timeout and mpirun do
    _, said = run.communicate(timeout=30)
    assert run.returncode == 130 and "interrupted" in said
    assert not file.exists()


BAD: list[tuple[int, str, str]] = [
    (2, "", "subcommand is required"),
    (2, "run random", "TARGET"),
    (2, "print random --colour red", "--colour"),
    (2, "print random --order sideways", "--order"),
    (2, "print random --rank -1", "--rank"),
    (2, "run random /nowhere/x --through mpiio", "mpirun"),
    (3, "print ramdom", "did you mean 'random'?"),
    (3, "print random --grid 5", "has no --grid; it has --size --count"),
    (3, "print random --size 4XB", "--size"),
    (3, "print random --size 0", "--size 0B: expected 1B to"),
    (3, "print random --count 1e3", "--count '1e3': expected a whole number"),
    (3, "print random --count 18446744073709551616", "expected a whole number"),
    (3, "print random --count 1099511627776 --size 1TB", "2^63 - 1"),
    (3, "print random --ranks 2000000", "--ranks 2000000: expected 1 to"),
    (3, "print random --ranks 0", "--ranks 0: expected 1 to"),
    (3, "print random --rank 16", "ranks 0 to 15"),
    (3, "print random --columns logical,size", "there is no column 'size'"),
    (3, "print btio --ranks 8", "square"),
    (3, "print btio --ranks 16 --grid 11", "16 ranks need 12"),
    (3, "print milc-a --ranks 17", "no side is left that 17 divides"),
    (3, "print nersc --ranks 4 --size 10 --stride 39", "would overlap; at least 40B"),
    (3, "print flash-fuse --request 5000", "multiples of 4KB"),
    (3, "print pagoda --block 3", "divisor"),
    (3, "print pagoda --level 16", "at most 15"),
    (3, "print zipf --slots 20000000", "at most 16777216"),
    (3, "print zipf --count 1000000000000 --size 1GB --slots 1", "2^63 - 1"),
]


@pytest.mark.parametrize(("status", "call", "says"), BAD, ids=[call for _, call, _ in BAD])
def test_a_bad_call_is_refused_with_its_reason(status: int, call: str, says: str) -> None:
    done = workloads(*call.split(), check=status)
    assert says in done.stderr
    assert done.stdout == ""


def test_a_full_standard_output_is_noticed() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([PROGRAM, "print", "random"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 4 and "standard output" in done.stderr


@pytest.fixture
def mpirun() -> Callable[..., subprocess.CompletedProcess[str]]:
    command = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if command is None or not MPI_PROGRAM.exists():
        pytest.skip("no MPI here")
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

    def run(ranks: int, *args: object, check: int = 0) -> subprocess.CompletedProcess[str]:
        options = ("--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-n", ranks, MPI_PROGRAM)
        return workloads(*options, *args, program=Path(command), check=check, env=env)

    return run


@pytest.mark.parametrize(("name", "through"), [("milc-c", "posix"), ("btio", "mpiio"), ("n-n", "mpiio")])
def test_mpis_ranks_write_what_simulated_ones_do(
    name: str, through: str, mpirun: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    ranks, told = 4, SMALL[name][0].split()[2:]
    args = (*told, "--write", "--read", "--verify", "--sync", "--json")
    done = json.loads(mpirun(ranks, "run", name, tmp_path / "mpi", *args, "--through", through).stdout)
    assert done["ranks"] == ranks and done["through"] == through
    workloads("run", name, tmp_path / "threads", *told, "--ranks", ranks)
    for number in range(ranks) if name == "n-n" else [None]:
        ending = "" if number is None else f".{number}"
        assert (tmp_path / f"mpi{ending}").read_bytes() == (tmp_path / f"threads{ending}").read_bytes()


def test_mpis_ranks_fail_together(mpirun: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    (tmp_path / "file.2").write_text("precious")
    said = mpirun(4, "run", "n-n", tmp_path / "file", "--count", 5, check=4).stderr
    assert said.count("exists already") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file.2"]
