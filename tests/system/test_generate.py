"""What `iosig generate` makes: real compilers build it, real MPI libraries run it, and its files are those of programs
written by hand, or of the arithmetic of their elements."""

from __future__ import annotations

import functools
import itertools
import os
import re
import shutil
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from conftest import Iosig
from generated_programs import (
    EXAMPLES,
    IOSIG_GENERATE,
    STRICT,
    TEMPLATES,
    Built,
    compiled,
    libraries,
    run,
)
from iosig.repro.generated import APPLICATIONS, TARGETS, with_calls
from plugin_compiler import PluginCompiler

BLOCKS = TEMPLATES / "blocks.c"
FORTRAN_BLOCKS = TEMPLATES / "blocks.f90"
ORDERS = TEMPLATES / "orders.c"
FORTRAN_ORDERS = TEMPLATES / "orders.f90"
CELLS = 6  # along each axis of a rank's block
ByHand = Callable[[str, str, str], tuple[Path, Path]]


def ranks_of(name: str, mpi: str) -> int:
    """MPICH's ranks wait for each other by looking: four on two processors take five times as long as two."""
    return 2 if (name, mpi) == ("flash", "mpich") else 4


def lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What the ranks of `blocks` print, by rank, without the line number."""
    return sorted(line.rpartition(", line")[0] for line in done.stdout.splitlines() if line[:1].isdigit())


# -- the application


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> ByHand:
    """by_hand(NAME, LEVEL, MPI): the program written by hand, and the path that it was given to write its files."""
    directory = tmp_path_factory.mktemp("by_hand")

    @functools.cache
    def written(name: str, level: str, mpi: str) -> tuple[Path, Path]:
        program = directory / f"{name}-{level}-{mpi}"
        compiled(EXAMPLES / f"{name}_{level}.c", program, level, mpi, *STRICT)
        files = program.with_name(f"{program.name}-files")
        run(program, mpi, ranks_of(name, mpi), files, CELLS)
        if level == "hdf5":
            time.sleep(1.1)  # those of the templates are of another second: the files have no times
        return program, files

    return written


@pytest.mark.parametrize(
    ("template", "level", "mpi"),
    [(f"{name}{suffix}", *each) for name in APPLICATIONS for suffix in (".c", ".f90") for each in TARGETS],
)
def test_the_templates_write_the_bytes_of_the_programs_by_hand(
    built: Built, by_hand: ByHand, tmp_path: Path, template: str, level: str, mpi: str
) -> None:
    name = Path(template).stem
    ranks = ranks_of(name, mpi)
    _, hand = by_hand(name, level, mpi)
    generated = built(EXAMPLES / template, level, mpi)
    run(generated, mpi, ranks, "write", tmp_path / "generated", CELLS)
    for ending in APPLICATIONS[name]:
        content = (tmp_path / f"generated{ending}").read_bytes()
        assert content == Path(f"{hand}{ending}").read_bytes()
        blocks = 4 if name == "s3d" else sum([80, 81, 82, 80][:ranks])
        values = {"": 16, ".checkpoint": 24, ".centers": 4 // 2, ".corners": 4 // 2}[ending]  # doubles of a cell
        assert len(content) >= values * blocks * CELLS**3 * 8
    assert run(generated, mpi, ranks, "restart", hand, CELLS).stdout == "0 cells differ\n" * ranks


@pytest.mark.parametrize("name", APPLICATIONS)
@pytest.mark.parametrize("level", ["mpiio", "pnetcdf", "hdf5"])
def test_the_simplest_program_by_hand_writes_the_same_and_it_restarts(
    by_hand: ByHand, tmp_path: Path, name: str, level: str
) -> None:
    program, _ = by_hand(name, level, "openmpi")
    for file, words in (("hand", [1]), ("naive", [1, "naive"])):
        run(program, "openmpi", 2, tmp_path / file, 2, *words)
    for ending in APPLICATIONS[name]:
        assert (tmp_path / f"naive{ending}").read_bytes() == (tmp_path / f"hand{ending}").read_bytes()
    restarted = run(program, "openmpi", 2, tmp_path / "hand", 2, 1, "restart")
    assert restarted.stdout == "0 cells differ\n" * 2


ARRAYS = {
    "s3d": "path, edge, blocks, mine, yspecies, temp, pressure, u",
    "flash": "path, edge, blocks, first_block, all_blocks, lrefine, nodetype, gid, coord, sizes, bnd_box, unk",
}


@pytest.mark.parametrize("name", APPLICATIONS)
@pytest.mark.parametrize("level", ["mpiio", "pnetcdf", "hdf5"])
def test_programs_by_hand_in_fortran_write_and_read_the_same_files(
    built: Built, tmp_path: Path, name: str, level: str
) -> None:
    template, arrays = EXAMPLES / f"{name}.f90", ARRAYS[name]
    written = arrays + (", corners" if name == "flash" else "")
    text = with_calls(template, f"call write_files({written})", f"call read_files({arrays})")
    (tmp_path / "by_hand.f90").write_text((EXAMPLES / f"{name}_{level}.f90").read_text() + text)
    options = ["-std=f2008ts", *STRICT, "-Wno-compare-reals"]
    by_hand = compiled(tmp_path / "by_hand.f90", tmp_path / "by_hand", level, "openmpi", *options)
    run(built(template, level, "openmpi"), "openmpi", 4, "write", tmp_path / "generated", CELLS)
    run(by_hand, "openmpi", 4, "write", tmp_path / "hand", CELLS)
    for ending in APPLICATIONS[name]:
        assert (tmp_path / f"generated{ending}").read_bytes() == (tmp_path / f"hand{ending}").read_bytes()
    assert run(by_hand, "openmpi", 4, "restart", tmp_path / "generated", CELLS).stdout == "0 cells differ\n" * 4


@pytest.mark.parametrize(("level", "mpi"), TARGETS)
def test_s3d_restarts_with_another_number_of_ranks(built: Built, tmp_path: Path, level: str, mpi: str) -> None:
    program = built(EXAMPLES / "s3d.c", level, mpi)
    run(program, mpi, 1, "write", tmp_path / "ckpt", 12)  # 12 x 12 x 12 cells; 8 ranks have 6 x 6 x 6 each
    assert run(program, mpi, 8, "restart", tmp_path / "ckpt", 6).stdout == "0 cells differ\n" * 8


# -- values, ghost cells, blocks


def expected_file(rows: int) -> bytes:
    grid = [10 * z + x for z in range(rows) for x in range(3)]
    return struct.pack(f"=3d{len(grid)}i", 0.5, 1.5, 2.5, *grid)


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
@pytest.mark.parametrize(
    "blocks",
    [["0,7"], ["0,3", "3,4"], ["4,3", "0,4"], ["0,0", "0,7", "7,0"], ["0,1", "1,1", "2,5"]],
    ids=" ".join,
)
def test_a_raw_file_has_each_element_at_its_place(built: Built, tmp_path: Path, mpi: str, blocks: list[str]) -> None:
    program, path = built(BLOCKS, "mpiio", mpi), tmp_path / "raw"
    path.write_bytes(b"old" * 1000)  # is replaced, also where it was longer
    told = lines(run(program, mpi, len(blocks), "write", path, 7, *blocks))
    assert told == [f"{r}: failed 0, wrong 0, changed 0, head 0.5 1.5 2.5" for r in range(len(blocks))]
    assert path.read_bytes() == expected_file(7)
    told = lines(run(program, mpi, 2, "read", path, 7, "2,4", "0,6"))  # blocks that are read may overlap
    assert told == [f"{r}: failed 0, wrong 0, changed 0, head 0.5 1.5 2.5" for r in range(2)]


def test_a_netcdf_file_has_axes_attributes_and_values(built: Built, tmp_path: Path) -> None:
    program, path = built(BLOCKS, "pnetcdf", "openmpi"), tmp_path / "blocks.nc"
    run(program, "openmpi", 3, "write", path, 4, "0,0", "0,3", "3,1")
    if shutil.which("ncdump") is None:
        pytest.skip("needs ncdump")
    told = subprocess.run(["ncdump", path], capture_output=True, text=True, check=True).stdout
    for part in (
        "z = 4 ;", "x = 3 ;", "double head(x) ;", "int grid(z, x) ;", "grid:scale = 0.5 ;", ":step = 42 ;",
        ":time = 1.5 ;", ':name = "blo\\"cks" ;', "head = 0.5, 1.5, 2.5 ;",
    ):  # fmt: skip
        assert part in told
    assert re.search(r"grid =\s+0, 1, 2,\s+10, 11, 12,\s+20, 21, 22,\s+30, 31, 32 ;", told)
    told = lines(run(program, "openmpi", 2, "read", path, 4, "0,4", "1,0"))
    assert told == [f"{r}: failed 0, wrong 0, changed 0, head 0.5 1.5 2.5" for r in range(2)]


@pytest.mark.parametrize("blocks", [["0,7"], ["4,3", "0,0", "0,4"]], ids=" ".join)
def test_fortran_writes_and_reads_the_files_of_c(built: Built, tmp_path: Path, blocks: list[str]) -> None:
    path = tmp_path / "raw"
    told = lines(run(built(FORTRAN_BLOCKS, "mpiio", "openmpi"), "openmpi", len(blocks), "write", path, 7, *blocks))
    assert told == [f"{r}: failed 0, wrong 0, changed 0, head 0.5 1.5 2.5" for r in range(len(blocks))]
    assert path.read_bytes() == expected_file(7)


@pytest.mark.parametrize("level", ["pnetcdf", "hdf5"])
def test_files_of_fortran_and_c_are_alike_with_their_attributes(built: Built, tmp_path: Path, level: str) -> None:
    path = tmp_path / "file"
    run(built(FORTRAN_BLOCKS, level, "openmpi"), "openmpi", 3, "write", path, 7, "4,3", "0,0", "0,4")
    for template in (BLOCKS, FORTRAN_BLOCKS):
        told = lines(run(built(template, level, "openmpi"), "openmpi", 2, "read", path, 7, "2,4", "0,6"))
        assert told == [f"{r}: failed 0, wrong 0, changed 0, head 0.5 1.5 2.5" for r in range(2)]
    if shutil.which("ncdump") is None or shutil.which("h5diff") is None:
        pytest.skip("needs ncdump and h5diff")
    if level == "hdf5":
        run(built(BLOCKS, level, "openmpi"), "openmpi", 2, "write", tmp_path / "c", 7, "0,3", "3,4")
        for each in ("grid", "head"):  # their programs have other attributes
            subprocess.run(["h5diff", path, tmp_path / "c", each, each], check=True)
    header = subprocess.run(["ncdump", "-h", path], capture_output=True, text=True, check=True).stdout
    assert all(part in header for part in (":step = 42 ;", ":time = 1.5 ;", ':name = "it\\\'s" ;', ":small = 0.25 ;"))
    assert "grid:scale = 0.5 ;" in header and (level == "hdf5" or "int grid(z, x) ;" in header)


# -- arrays with other axes in memory than in the file


def expected_orders(rows: int) -> bytes:
    """Worked out from orders.c's comment: two components (doubles, floats), ints, shorts; each by row, y, x."""

    def component(v: int) -> list[float]:
        return [100 * r + 10 * y + x + 1000 * v + 0.25 for r in range(rows) for y in range(2) for x in range(3)]

    turned = [10 * r + 2 * y + x for r in range(rows) for y in range(2) for x in range(3)]
    halves = [r + 100 * y for r in range(rows) for y in range(2)]
    n = 6 * rows
    return struct.pack(f"={n}d{n}f{n}i{2 * rows}h", *component(0), *component(2), *turned, *halves)


@pytest.mark.parametrize("template", [ORDERS, FORTRAN_ORDERS], ids=lambda path: path.suffix)
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_memory_in_another_order_is_written_in_the_files_order(
    built: Built, tmp_path: Path, template: Path, mpi: str
) -> None:
    program, path = built(template, "mpiio", mpi), tmp_path / "raw"
    told = lines(run(program, mpi, 3, "write", path, 7, "0,3", "3,0", "3,4"))
    assert told == [f"{rank}: failed 0, wrong 0, changed 0" for rank in range(3)]
    assert path.read_bytes() == expected_orders(7)
    told = lines(run(program, mpi, 2, "read", path, 7, "2,4", "0,7"))
    assert told == [f"{rank}: failed 0, wrong 0, changed 0" for rank in range(2)]


@pytest.mark.parametrize(
    ("level", "writer", "reader"),
    [("pnetcdf", ORDERS, FORTRAN_ORDERS), ("pnetcdf", FORTRAN_ORDERS, ORDERS), ("hdf5", ORDERS, ORDERS)],
    ids=["pnetcdf-c", "pnetcdf-f90", "hdf5-c"],
)
def test_libraries_get_and_return_memory_in_another_order(
    built: Built, tmp_path: Path, level: str, writer: Path, reader: Path
) -> None:
    path = tmp_path / "file"
    run(built(writer, level, "openmpi"), "openmpi", 2, "write", path, 5, "0,2", "2,3")
    told = lines(run(built(reader, level, "openmpi"), "openmpi", 3, "read", path, 5, "0,5", "1,0", "4,1"))
    assert told == [f"{rank}: failed 0, wrong 0, changed 0" for rank in range(3)]
    content, wanted = path.read_bytes(), expected_orders(5)
    if level == "pnetcdf":  # netCDF's classic formats have big-endian numbers, padded to 4 bytes
        floats = struct.pack(">30f", *struct.unpack("<30f", wanted[240:360]))
        assert floats in content
    else:  # HDF5 has each data set as it is in the raw file
        assert all(part in content for part in (wanted[:240], wanted[240:360], wanted[360:480], wanted[480:]))


def test_rows_that_do_not_fit_into_the_array_are_refused(built: Built, tmp_path: Path) -> None:
    for template in (ORDERS, FORTRAN_ORDERS):
        done = run(built(template, "mpiio", "openmpi"), "openmpi", 1, "write", tmp_path / "f", 10, "0,10")
        axis = 1 if template is ORDERS else 4
        where = f"{template}:{line_of('dataset f.first', template)}: data set 'first'"
        assert f"{where}: axis {axis} in memory has 9 elements; expected 10 to 2147483647" in done.stderr
        assert "0: failed 1" in done.stdout and not (tmp_path / "f").exists()


# -- failures: the same on every rank, with the directive's line, and no file is touched before


BAD_BLOCKS = {
    "overlap": (["0,4", "3,4"], "the blocks of the ranks overlap\n"),
    "hole": (["0,3", "4,3"], "the blocks of the ranks leave elements out\n"),
    "both": (["0,4", "2,3"], "the blocks of the ranks overlap, and leave other elements out\n"),
    "outside": (["0,4", "4,4"], "axis 1 has the elements 0 to 6, and this rank's are 4 to 7\n"),
    "before": (["0,7", "-1,1"], "axis 1 has the elements 0 to 6, and this rank's are -1 to -1\n"),
    "negative": (["0,7", "0,-1"], "axis 1 has the elements 0 to 6, and this rank's are 0 to -2\n"),
    "far": (["0,7", "9223372036854775807,3"], "axis 1 has the elements 0 to 6"),
}


@pytest.mark.parametrize("what", BAD_BLOCKS)
def test_blocks_that_do_not_cover_the_array_once_are_refused(built: Built, tmp_path: Path, what: str) -> None:
    blocks, said = BAD_BLOCKS[what]
    program, path = built(BLOCKS, "mpiio", "openmpi"), tmp_path / "raw"
    path.write_bytes(b"old")
    done = run(program, "openmpi", 2, "write", path, 7, *blocks)
    assert all(f"{rank}: failed 1" in done.stdout for rank in range(2))
    assert f"{BLOCKS}:{line_of('dataset f.grid')}: data set 'grid': {said}" in done.stderr
    assert path.read_bytes() == b"old"


def beside(program: Path, *words: object) -> list[object]:
    """For `run`: a rank with words of its own."""
    return [":", "-n", 1, program, *words]


@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS])
def test_ranks_that_disagree_on_the_extents_are_all_told(built: Built, tmp_path: Path, template: Path) -> None:
    program, path = built(template, "mpiio", "openmpi"), tmp_path / "raw"
    words = ["0,4", "4,3"]
    done = run(program, "openmpi", 1, "write", path, 7, *words, *beside(program, "write", path, 8, *words))
    assert "data set 'grid': the ranks have different extents of its axes\n" in done.stderr
    assert all(f"{rank}: failed 1" in done.stdout for rank in range(2)) and not path.exists()


@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS])
def test_a_rank_whose_extent_is_the_mean_of_all_is_told_too(built: Built, tmp_path: Path, template: Path) -> None:
    program, path = built(template, "mpiio", "openmpi"), tmp_path / "raw"
    runs = [["write", path, rows, "0,2", "2,2", "4,3"] for rows in (6, 7, 8)]
    done = run(program, "openmpi", 1, *runs[0], *beside(program, *runs[1]), *beside(program, *runs[2]))
    assert "data set 'grid': the ranks have different extents of its axes\n" in done.stderr
    assert all(f"{rank}: failed 1" in done.stdout for rank in range(3)) and not path.exists()


@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS])
@pytest.mark.parametrize(
    ("level", "mpi"), [("mpiio", "openmpi"), ("mpiio", "mpich"), ("pnetcdf", "openmpi"), ("hdf5", "openmpi")]
)
def test_a_file_that_only_one_rank_can_open_is_every_ranks_failure(
    built: Built, tmp_path: Path, template: Path, level: str, mpi: str
) -> None:
    program = built(template, level, mpi)
    for paths in (tmp_path / "raw", tmp_path / "none" / "raw"), (tmp_path / "none" / "raw", tmp_path / "raw"):
        first, second = (["write", path, 7, "0,4", "4,3"] for path in paths)
        done = run(program, mpi, 1, *first, *beside(program, *second))
        assert f"{template}:{line_of('file f ', template)}: file 'f': " in done.stderr
        assert all(f"{rank}: failed 1" in done.stdout for rank in range(2)) and not (tmp_path / "raw").exists()


@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS])
@pytest.mark.parametrize(
    ("level", "mpi"), [("mpiio", "openmpi"), ("pnetcdf", "openmpi"), ("hdf5", "openmpi"), ("mpiio", "mpich")]
)
def test_a_file_that_is_not_the_same_on_all_ranks_is_every_ranks_failure(
    built: Built, tmp_path: Path, template: Path, level: str, mpi: str
) -> None:
    program = built(template, level, mpi)
    first, second = tmp_path / "first" / "file", tmp_path / "second" / "file"  # like /tmp of two nodes
    for path in (first, second):
        path.parent.mkdir()
    words = [["write", path, 7, "0,4", "4,3"] for path in (first, second)]
    for old in [], [first], [second], [first, second]:  # with a new file, OMPIO would wait for ever
        for path in old:
            path.write_text("old")
        done = run(program, mpi, 1, *words[0], *beside(program, *words[1]))
        assert all(f"{rank}: failed 1" in done.stdout for rank in range(2))
        said = "it is not the file of rank 0" if old or mpi == "openmpi" else "does not exist"
        assert f"rank 1: {template}:{line_of('file f ', template)}: file 'f': " in done.stderr and said in done.stderr
        left = [path for path in tmp_path.glob("*/*") if path.is_file()]
        assert sorted(left) == (old or [first] if mpi == "mpich" else old)
        assert all(path.read_text() == "old" for path in old)
        for path in left:
            path.unlink()


@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS])
def test_an_old_file_takes_no_more_room_after_an_output_that_fails(
    built: Built, tmp_path: Path, template: Path
) -> None:
    path = tmp_path / "raw"
    path.write_text("old")
    run(built(template, "mpiio", "openmpi"), "openmpi", 1, "write", path, 2**20, "0,4")  # 12 MB, and elements left out
    assert path.read_text() == "old" and path.stat().st_blocks * 512 < 2**20


@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS])
def test_ranks_that_cannot_share_a_file_by_their_communicator_are_told(
    built: Built, tmp_path: Path, template: Path
) -> None:
    changed, path = tmp_path / template.name, tmp_path / "raw"
    text = template.read_text().replace("comm(MPI_COMM_WORLD)", "comm(comm)")
    if template is BLOCKS:
        made = """
  MPI_Comm own, comm = rank == 1 ? MPI_COMM_NULL : MPI_COMM_SELF;
  MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &own);
  if (rows == 8) MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, 1 - rank, 0, &comm);
"""
        text = text.replace("#pragma sigio file f", f"{made}#pragma sigio file f")
    else:
        made = """
  comm = merge(MPI_COMM_NULL, MPI_COMM_SELF, rank == 1)
  call MPI_Comm_split(MPI_COMM_WORLD, rank, 0, own, ierr)
  if (rows == 8) call MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, 1 - rank, 0, comm, ierr)
"""
        text = text.replace("  !$SIGIO file f", f"{made}  !$SIGIO file f")
        text = text.replace("  integer :: rank,", "  integer :: own, comm, rank,")
    changed.write_text(text)
    program = built(changed, "mpiio", "openmpi", "comm-")
    where = f"{changed}:{line_of('file f ', changed)}: file 'f': comm is "
    done = run(program, "openmpi", 2, "write", path, 7, "0,7", "0,7")
    assert f"{where}MPI_COMM_NULL; expected only ranks of the communicator here\n" in done.stderr
    assert "0: failed 0" in done.stdout and "1: failed 1" in done.stdout and path.stat().st_size == 3 * 8 + 7 * 3 * 4
    done = run(program, "openmpi", 2, "write", path, 8, "0,4", "4,4")  # its ranks would wait for ever
    assert f"{where}an intercommunicator; expected one whose ranks share the file\n" in done.stderr
    assert "0: failed 1" in done.stdout and "1: failed 1" in done.stdout


@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS])
def test_a_rank_without_the_file_is_told_though_nothing_can_be_made_beside_that_of_rank_0(
    built: Built, tmp_path: Path, template: Path
) -> None:
    program = built(template, "mpiio", "openmpi")
    first, second = tmp_path / "first" / "file", tmp_path / "second" / "file"
    for path in (first, second):
        path.parent.mkdir()
    first.write_text("old")
    if subprocess.run(["chattr", "+i", first.parent], capture_output=True).returncode != 0:
        pytest.skip("needs root, and a file system whose directories can be made immutable")
    try:
        words = [["write", path, 7, "0,4", "4,3"] for path in (first, second)]
        done = run(program, "openmpi", 1, *words[0], *beside(program, *words[1]))
    finally:
        subprocess.run(["chattr", "-i", first.parent], check=True)
    assert "rank 1: " in done.stderr and "it is not the file of rank 0" in done.stderr
    assert first.read_text() == "old" and not second.exists()


@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS])
def test_a_file_of_two_names_is_one(built: Built, tmp_path: Path, template: Path) -> None:
    """Another program may replace it while the ranks look."""
    (tmp_path / "old").write_text("old")
    (tmp_path / "link").symlink_to("file")
    words = [["write", tmp_path / name, 7, "0,4", "4,3"] for name in ("link", "file")]
    program = built(template, "mpiio", "openmpi")
    run(program, "openmpi", 1, *words[0], *beside(program, *words[1]))


@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS])
def test_an_old_file_that_a_link_in_another_directory_leads_to_is_one(
    built: Built, tmp_path: Path, template: Path
) -> None:
    """Rank 0 changes its times when it looks for room, before or after the others have seen them."""
    path, link = tmp_path / "raw", tmp_path / "links" / "raw"
    link.parent.mkdir()
    link.symlink_to("../raw")
    path.write_text("old")
    os.utime(path, (0, 0))
    rows = 4000
    words = [["write", each, rows, "0,2000", "2000,2000"] for each in (path, link)]
    program = built(template, "mpiio", "openmpi")
    done = run(program, "openmpi", 1, *words[0], *beside(program, *words[1]))
    assert all(f"{rank}: failed 0" in done.stdout for rank in range(2)) and link.is_symlink()


@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS])
def test_a_new_file_where_a_link_leads_is_written(built: Built, tmp_path: Path, template: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    run(built(template, "mpiio", "openmpi"), "openmpi", 2, "write", tmp_path / "link", 7, "0,4", "4,3")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").stat().st_size > 0


@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS])
def test_ranks_that_open_a_file_alone_make_none_of_their_own(built: Built, tmp_path: Path, template: Path) -> None:
    program = built(template, "mpiio", "mpich", policy="packed")
    first, second = tmp_path / "first" / "file", tmp_path / "second" / "file"  # like /tmp of two nodes
    for path in (first, second):
        path.parent.mkdir()
    words = [["write", path, 7, "0,4", "4,3"] for path in (first, second)]
    done = run(program, "mpich", 1, *words[0], *beside(program, *words[1]))
    assert all(f"{rank}: failed 1" in done.stdout for rank in range(2))
    assert f"{template}:{line_of('file f ', template)}: file 'f': " in done.stderr
    assert not second.exists()


@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS])
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_a_file_that_is_missing_is_every_ranks_failure(built: Built, tmp_path: Path, template: Path, mpi: str) -> None:
    done = run(built(template, "mpiio", mpi), mpi, 2, "read", tmp_path / "none", 7, "0,4", "4,3")
    assert f"{template}:{line_of('file f ', template)}: file 'f': no such file" in done.stderr.lower()
    assert all(f"{rank}: failed 1" in done.stdout for rank in range(2))


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        (["0,4", "2,3"], "the blocks of the ranks overlap, and leave other elements out"),
        (["0,4", "4,4"], "axis 2 has the elements 0 to 6, and this rank's are 4 to 7"),
        (["0,4", "3,4"], "the blocks of the ranks overlap"),
        (["0,3", "4,3"], "the blocks of the ranks leave elements out"),
    ],
)
def test_fortran_refuses_such_blocks_too(built: Built, tmp_path: Path, blocks: list[str], said: str) -> None:
    path = tmp_path / "raw"
    done = run(built(FORTRAN_BLOCKS, "mpiio", "openmpi"), "openmpi", 2, "write", path, 7, *blocks)
    assert f"{FORTRAN_BLOCKS}:{line_of('dataset f.grid', FORTRAN_BLOCKS)}: data set 'grid': {said}\n" in done.stderr
    assert all(f"{rank}: failed 1" in done.stdout for rank in range(2)) and not path.exists()


def test_an_array_of_another_size_than_the_block_is_refused_in_fortran(built: Built, tmp_path: Path) -> None:
    template, source = tmp_path / "t.f90", tmp_path / "out.f90"
    template.write_text(FORTRAN_BLOCKS.read_text().replace("ghost(z: ghost, x: ghost)", "ghost(z: ghost)"))
    subprocess.run([IOSIG_GENERATE, template, "-o", source], check=True, capture_output=True)
    program = compiled(source, tmp_path / "t", "mpiio", "openmpi")
    done = run(program, "openmpi", 1, "write", tmp_path / "raw", 7, "0,7")
    # 7 + 2 x 2 rows of 3 + 2 x 2 columns; without ghost cells along x, of 3
    assert "data set 'grid': the array has 77 elements; the block with its ghost cells has 33" in done.stderr


def test_an_array_of_another_type_is_the_compilers_error_in_fortran(tmp_path: Path) -> None:
    template, source = tmp_path / "t.f90", tmp_path / "out.f90"
    template.write_text(FORTRAN_BLOCKS.read_text().replace("integer, allocatable :: grid", "real, allocatable :: grid"))
    subprocess.run([IOSIG_GENERATE, template, "-o", source], check=True, capture_output=True)
    if shutil.which("mpifort.openmpi") is None:
        pytest.skip("needs gfortran")
    done = subprocess.run(["mpifort.openmpi", "-c", source], capture_output=True, text=True, cwd=tmp_path)
    assert f"{template}:{line_of('dataset f.grid', template)}:" in done.stderr
    assert "passed REAL(4) to INTEGER(4)" in done.stderr


def test_an_array_with_other_axes_is_refused_in_fortran(built: Built, tmp_path: Path) -> None:
    template = tmp_path / "t.f90"
    text = FORTRAN_BLOCKS.read_text().replace("dims f z(rows)", "dims f w(1) z(rows)")
    template.write_text(text.replace("dims(x, z) decomp", "dims(x, z, w) decomp"))
    done = run(built(template, "mpiio", "openmpi"), "openmpi", 1, "write", tmp_path / "raw", 7, "0,7")
    assert "data set 'grid': the array has 2 axes; expected 3, as in dims(...), or 1\n" in done.stderr


def line_of(directive: str, template: Path = BLOCKS) -> int:
    return next(n for n, line in enumerate(template.read_text().splitlines(), 1) if directive.lower() in line.lower())


@pytest.mark.parametrize("level", ["mpiio", "pnetcdf", "hdf5"])
def test_an_axis_of_two_to_the_31_elements_is_refused(built: Built, tmp_path: Path, level: str) -> None:
    done = run(built(BLOCKS, level, "openmpi"), "openmpi", 2, "write", tmp_path / "f", 2**31, "0,1", "1,1")
    assert "axis 1 has 2147483648 elements; expected 1 to 2147483647" in done.stderr
    assert all(f"{rank}: failed 1" in done.stdout for rank in range(2))


@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS], ids=lambda template: template.suffix)
def test_a_directory_is_no_file_to_read(built: Built, tmp_path: Path, template: Path) -> None:
    """OMPIO opens it, and reads of it succeed with what was in memory."""
    done = run(built(template, "mpiio", "openmpi"), "openmpi", 2, "read", tmp_path, 7, "0,3", "3,4")
    assert all(f"{rank}: failed 1" in done.stdout for rank in range(2)), done.stdout
    assert "a directory" in done.stderr


@pytest.mark.parametrize(
    ("template", "level", "mpi"),
    [(BLOCKS, *each) for each in TARGETS] + [(FORTRAN_BLOCKS, "hdf5", "openmpi")],
    ids=lambda value: getattr(value, "suffix", value),
)
def test_a_file_that_cannot_be_made_or_found_fails_on_every_rank(
    built: Built, tmp_path: Path, template: Path, level: str, mpi: str
) -> None:
    program = built(template, level, mpi)
    for verb in ("write", "read"):
        done = run(program, mpi, 2, verb, tmp_path / "none/f", 7, "0,3", "3,4")
        assert all(f"{rank}: failed 1" in done.stdout for rank in range(2))
        assert re.search(
            rf"^rank 0: {re.escape(str(template))}:{line_of(' file f', template)}: file 'f': ",
            done.stderr,
            re.MULTILINE,
        )


@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS], ids=lambda path: path.suffix[1:])
def test_data_sets_of_hdf5_begin_at_a_stripe_if_its_size_is_given(built: Built, tmp_path: Path, template: Path) -> None:
    if shutil.which("h5dump") is None:
        pytest.skip("needs h5dump")
    striped = tmp_path / template.name
    striped.write_text(re.sub('access_style ?= ?"write_once"', 'striping_unit="8192"', template.read_text()))
    words = ("write", tmp_path / "f", 900, "0,500", "500,400")
    offsets = []
    for name, program in ("plain", template), ("striped", striped):
        run(built(program, "hdf5", "openmpi", name=name), "openmpi", 2, *words)
        header = subprocess.run(["h5dump", "-pH", tmp_path / "f"], capture_output=True, text=True, check=True).stdout
        offsets.append([int(each) for each in re.findall(r"OFFSET (\d+)", header)])
    assert [each % 8192 == 0 for each in offsets[0]] == [False, False]  # head and grid
    assert [each % 8192 == 0 for each in offsets[1]] == [True, False]  # grid, which has 10800 bytes, and head


@pytest.mark.parametrize("template", [BLOCKS, FORTRAN_BLOCKS], ids=lambda path: path.suffix[1:])
@pytest.mark.parametrize(("level", "mpi"), [("mpiio", "mpich"), ("hdf5", "openmpi")])
def test_a_pipe_is_no_file(built: Built, tmp_path: Path, template: Path, level: str, mpi: str) -> None:
    os.mkfifo(tmp_path / "pipe")  # who opens it waits for the other end
    for act in ("write", "read"):
        done = run(built(template, level, mpi), mpi, 2, act, tmp_path / "pipe", 6, "0,3", "3,3")
        assert all(f"{rank}: failed 1" in done.stdout for rank in range(2))
        assert "file 'f': it is no ordinary file" in done.stderr


def test_a_file_that_is_too_short_or_has_other_axes_is_not_read(built: Built, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    for template, mpi in itertools.product((BLOCKS, FORTRAN_BLOCKS), ("openmpi", "mpich")):
        program = built(template, "mpiio", mpi)
        raw.write_bytes(expected_file(7)[:-4])
        done = run(program, mpi, 2, "read", raw, 7, "0,3", "3,4")
        assert "file 'f': the file has 104 of 108 bytes" in done.stderr  # 3 doubles and 7 x 3 ints
        assert all(f"{rank}: failed 1" in done.stdout for rank in range(2))
        raw.write_bytes(expected_file(8))  # its second half would be taken for that of another array
        done = run(program, mpi, 2, "read", raw, 7, "0,3", "3,4")
        assert "file 'f': the file has 120 bytes, its data sets 108" in done.stderr
        assert all(f"{rank}: failed 1" in done.stdout for rank in range(2))
    program, path = built(BLOCKS, "pnetcdf", "openmpi"), tmp_path / "f.nc"
    run(program, "openmpi", 1, "write", path, 7, "0,7")
    whole = path.read_bytes()
    path.write_bytes(whole[:-4])
    done = run(program, "openmpi", 2, "read", path, 7, "0,3", "3,4")
    assert f"file 'f': the file has {len(whole) - 4} of {len(whole)} bytes" in done.stderr
    path.write_bytes(whole)
    done = run(program, "openmpi", 2, "read", path, 8, "0,4", "4,4")
    assert "data set 'grid': axis 1 has 7 elements in the file; expected 8" in done.stderr
    assert all(f"{rank}: failed 1" in done.stdout for rank in range(2))


def test_a_failure_without_a_status_ends_the_program(built: Built, tmp_path: Path) -> None:
    done = run(built(EXAMPLES / "s3d.c", "mpiio", "mpich"), "mpich", 2, "write", tmp_path / "none/f", 2, check=False)
    assert done.returncode != 0
    assert f"{EXAMPLES / 's3d.c'}:18: file 'ckpt': " in done.stderr


# -- compilers


def test_mistakes_in_expressions_are_those_of_the_templates_lines(tmp_path: Path) -> None:
    template, source = tmp_path / "t.c", tmp_path / "out.c"
    template.write_text(BLOCKS.read_text().replace("z(rows)", "z(rwos)").replace("block(z : start", "block(z : strat"))
    subprocess.run([IOSIG_GENERATE, template, "-o", source], check=True, capture_output=True)
    libraries("mpiio", "openmpi")
    done = subprocess.run(["mpicc.openmpi", "-c", "-o", tmp_path / "t.o", source], capture_output=True, text=True)
    at = [int(line) for line in re.findall(rf"^{template}:(\d+):\d+: error", done.stderr, re.MULTILINE)]
    assert sorted(set(at)) == [line_of("dims f"), line_of("decomp rows_of")]
    assert len(at) == done.stderr.count("error:")


def test_fortran_compilers_report_the_templates_lines_too(tmp_path: Path) -> None:
    template, source = tmp_path / "t.f90", tmp_path / "out.f90"
    text = FORTRAN_BLOCKS.read_text().replace("z(rows)", "z(rwos)").replace("wrong = 0", "wrnog = 0")
    template.write_text(text)
    subprocess.run([IOSIG_GENERATE, template, "-o", source], check=True, capture_output=True)
    if shutil.which("mpifort.openmpi") is None:
        pytest.skip("needs gfortran")
    done = subprocess.run(["mpifort.openmpi", "-c", source], capture_output=True, text=True, cwd=tmp_path)
    at = {int(line) for line in re.findall(rf"^{template}:(\d+):\d+:", done.stderr, re.MULTILINE)}
    wanted = {n for n, line in enumerate(text.splitlines(), 1) if "rwos" in line or "wrnog" in line}
    assert at == wanted and len(wanted) == 2


def test_lines_after_a_block_keep_their_numbers(built: Built, tmp_path: Path) -> None:
    done = run(built(BLOCKS, "mpiio", "openmpi"), "openmpi", 1, "write", tmp_path / "f", 1, "0,1")
    assert done.stdout.rstrip().endswith(f"line {line_of('head[2], __LINE__')}")


@pytest.mark.parametrize("level", ["mpiio", "pnetcdf", "hdf5"])
def test_it_is_cxx_too_and_feature_macros_stay_first(tmp_path: Path, level: str) -> None:
    template, source = tmp_path / "t.cc", tmp_path / "out.cc"
    text = BLOCKS.read_text().replace(
        "#include <mpi.h>", "#define _GNU_SOURCE 1\n#include <mpi.h>\n#include <sched.h>", 1
    )
    text = text.replace(
        "int main(", "namespace { int cpu() { cpu_set_t set; CPU_ZERO(&set); return CPU_COUNT(&set); } }\nint main("
    )
    template.write_text(text.replace("int rank, failed = -1;", "int rank, failed = cpu() - 1;"))
    subprocess.run([IOSIG_GENERATE, template, "--level", level, "-o", source], check=True, capture_output=True)
    program = compiled(
        source, tmp_path / "t", level, "openmpi", *STRICT, "-Wno-cast-function-type", "-std=c++11", compiler="mpicxx"
    )  # Open MPI's own C++ header casts
    told = lines(run(program, "openmpi", 2, "write", tmp_path / "f", 5, "0,2", "2,3"))
    assert told == [f"{rank}: failed 0, wrong 0, changed 0, head 0.5 1.5 2.5" for rank in range(2)]


def test_words_of_a_signature_reach_the_open(iosig: Iosig, compiler: PluginCompiler, tmp_path: Path) -> None:
    template, source = tmp_path / "t.c", tmp_path / "out.c"
    template.write_text(BLOCKS.read_text().replace("file f path(path)", "file f persist totalsize(6GB) path(path)"))
    subprocess.run([IOSIG_GENERATE, template, "-o", source], check=True, capture_output=True)
    assert source.read_text().count("#pragma sig persist totalsize(6GB)\n") == 1  # not where it is read
    assert iosig.json("check", source)["findings"] == []


def test_a_template_that_is_compiled_as_it_is_warns(compiler: PluginCompiler) -> None:
    text = "void f(void) {\n#pragma sigio output ckpt\n#pragma sigio output\n}\n"
    for language in ("c", "c++"):
        told = compiler.compile(text, "-c", language=language, check=False).stderr
        assert "2:15: warning: '#pragma sigio output' does nothing in a template" in told
        assert "3:15: error: expected the name of a file" in told


SEVERAL = """\
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  int rank, numbers[2] = {7, 8};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  short t[2] = {(short)(2 * rank), (short)(2 * rank + 1)}, v[3] = {-1, (short)(10 + 2 * rank), (short)(11 + 2 * rank)};
#pragma sigio file a path(argv[1]) level(mpiio) comm(MPI_COMM_WORLD) decomp(rows)
#pragma sigio dims a z(4) n(2)
#pragma sigio file b path(argv[2]) level(mpiio) comm(MPI_COMM_WORLD) decomp(rows)
#pragma sigio dims b z(4)
#pragma sigio decomp rows block(z: 2 * rank, 2)
#pragma sigio dataset a type(int) dims(n) data(numbers)
#pragma sigio dataset a type(short) dims(z) data(t, u=v + 1)
#pragma sigio dataset b.t type(short) dims(z) data(t)
  if (argc > 3)
#pragma sigio output a b
  MPI_Finalize();
  return 0;
}
"""


def test_arrays_and_files_share_directives(built: Built, tmp_path: Path) -> None:
    template = tmp_path / "several.c"
    template.write_text(SEVERAL)
    program = built(template, "mpiio", "openmpi")
    run(program, "openmpi", 2, tmp_path / "a", tmp_path / "b")
    assert not (tmp_path / "a").exists() and not (tmp_path / "b").exists()  # an output is one statement
    run(program, "openmpi", 2, tmp_path / "a", tmp_path / "b", "write")
    t, u = (np.arange(start, start + 4, dtype="<i2").tobytes() for start in (0, 10))
    assert (tmp_path / "a").read_bytes() == np.array([7, 8], "<i4").tobytes() + t + u
    assert (tmp_path / "b").read_bytes() == t
