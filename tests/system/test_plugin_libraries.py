"""Files that MPI-IO, HDF5, netCDF and PnetCDF make go through the redirect and come home unharmed.

Each program is compiled with the plugin against Debian's own library, writes a file through a link, reads it back, and
compares; then `iosig finalize` brings the file home, and the program that only reads finds it whole.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from conftest import BUILD, ROOT
from plugin_compiler import PluginCompiler
from redirecting import World

# PROGRAM PATH [read]: writes 100,000 numbers to PATH unless told to read only, then reads and checks them.
FRAME = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
%s
enum { COUNT = 100000 };
static int numbers[COUNT], back[COUNT];
#define CHECK(call) do { if (!(call)) { fprintf(stderr, "%%s failed\n", #call); exit(1); } } while (0)
%s
int main(int argc, char **argv) {
  const char *path = argv[1];
  for (int i = 0; i < COUNT; ++i) numbers[i] = i * 7919;
  START
  if (argc < 3) put(path);
  get(path);
  CHECK(memcmp(numbers, back, sizeof back) == 0);
  STOP
  return 0;
}
"""

MPI = """#include <mpi.h>
#define START MPI_Init(&argc, &argv);
#define STOP MPI_Finalize();
"""
SERIAL = """#define START
#define STOP
"""
MPI_IO = r"""
static void put(const char *path) {
  MPI_File file;
  int amode = MPI_MODE_CREATE | MPI_MODE_WRONLY;
#pragma sig random
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &file) == 0);
  CHECK(MPI_File_write_at_all(file, 0, numbers, COUNT, MPI_INT, MPI_STATUS_IGNORE) == 0);
  MPI_File_close(&file);
}
static void get(const char *path) {
  MPI_File file;
#pragma sig random
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file) == 0);
  CHECK(MPI_File_read_at_all(file, 0, back, COUNT, MPI_INT, MPI_STATUS_IGNORE) == 0);
  MPI_File_close(&file);
}
"""
HDF5 = r"""
#include <hdf5.h>
static hid_t access_list(void) {
  hid_t list = H5Pcreate(H5P_FILE_ACCESS);
#ifdef H5_HAVE_PARALLEL
  H5Pset_fapl_mpio(list, MPI_COMM_WORLD, MPI_INFO_NULL);
#endif
  return list;
}
static void put(const char *path) {
  hsize_t count = COUNT;
#pragma sig random
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access_list());
  CHECK(file >= 0);
  hid_t space = H5Screate_simple(1, &count, NULL);
  hid_t set = H5Dcreate(file, "n", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  CHECK(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
  H5Dclose(set), H5Sclose(space), H5Fclose(file);
}
static void get(const char *path) {
#pragma sig random
  hid_t file = H5Fopen(path, H5F_ACC_RDONLY, access_list());
  CHECK(file >= 0);
  hid_t set = H5Dopen(file, "n", H5P_DEFAULT);
  CHECK(H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0);
  H5Dclose(set), H5Fclose(file);
}
"""
NETCDF = r"""
#include <netcdf.h>
static void put(const char *path) {
  int file, dimension, variable;
#pragma sig random
  CHECK(nc_create(path, FORMAT, &file) == NC_NOERR);
  CHECK(nc_def_dim(file, "x", COUNT, &dimension) == 0 && nc_def_var(file, "n", NC_INT, 1, &dimension, &variable) == 0);
  CHECK(nc_enddef(file) == 0 && nc_put_var_int(file, variable, numbers) == 0 && nc_close(file) == 0);
}
static void get(const char *path) {
  int file;
#pragma sig random
  CHECK(nc_open(path, NC_NOWRITE, &file) == NC_NOERR);
  CHECK(nc_get_var_int(file, 0, back) == 0 && nc_close(file) == 0);
}
"""
PNETCDF = r"""
#include <pnetcdf.h>
static void put(const char *path) {
  int file, dimension, variable;
#pragma sig random
  CHECK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER, MPI_INFO_NULL, &file) == NC_NOERR);
  CHECK(ncmpi_def_dim(file, "x", COUNT, &dimension) == 0);
  CHECK(ncmpi_def_var(file, "n", NC_INT, 1, &dimension, &variable) == 0 && ncmpi_enddef(file) == 0);
  CHECK(ncmpi_put_var_int_all(file, variable, numbers) == 0 && ncmpi_close(file) == 0);
}
static void get(const char *path) {
  int file;
#pragma sig random
  CHECK(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &file) == NC_NOERR);
  CHECK(ncmpi_get_var_int_all(file, 0, back) == 0 && ncmpi_close(file) == 0);
}
"""


class Case(NamedTuple):
    """How one library is compiled for and linked with: the compiler, and pkg-config's name or the flags."""

    name: str
    head: str
    body: str
    compiler: str
    package: str = ""
    flags: tuple[str, ...] = ()


CASES = [
    Case("MPI-IO of Open MPI", MPI, MPI_IO, "openmpi"),
    Case("MPI-IO of MPICH", MPI, MPI_IO, "mpich"),
    Case("HDF5", SERIAL, HDF5, "", "hdf5-serial"),
    Case("parallel HDF5", MPI, HDF5, "openmpi", "hdf5-openmpi"),
    Case("netCDF-3", SERIAL, NETCDF, "", "netcdf", ("-DFORMAT=NC_CLOBBER",)),
    Case("netCDF-4", SERIAL, NETCDF, "", "netcdf", ("-DFORMAT=NC_CLOBBER|NC_NETCDF4",)),
    Case("PnetCDF", MPI, PNETCDF, "openmpi", "", ("-lpnetcdf",)),
]
MPI_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl": "self,vader",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "HYDRA_IFACE": "lo",
}


@pytest.fixture
def world(world: World) -> World:
    world.env |= MPI_ENVIRONMENT
    return world


def build(case: Case, iosig, world: World, language: str, *more: str) -> Path:
    """The program of one library, compiled with the plugin by the library's own recipe; skipped where it is missing."""
    driver = {"c": "gcc", "c++": "g++"}[language]
    if case.compiler:
        driver = f"{'mpicc' if language == 'c' else 'mpicxx'}.{case.compiler}"
    if shutil.which(driver) is None:
        pytest.skip(f"{driver} is not installed")
    flags = [*case.flags]
    if case.package:
        asked = subprocess.run(["pkg-config", "--cflags", "--libs", case.package], capture_output=True, text=True)
        if asked.returncode != 0:
            pytest.skip(f"pkg-config does not know {case.package}")
        flags += asked.stdout.split()
    source = world.root / f"program.{'c' if language == 'c' else 'cc'}"
    source.write_text(FRAME % (case.head, case.body))
    plugin = PluginCompiler(world.root).plugin
    library = BUILD / "lib"
    command = [driver, f"-fplugin={plugin}", f"-I{ROOT}/include", source, *more, "-o", world.root / "program", *flags,
               f"-L{library}", f"-Wl,-rpath,{library}", "-Wl,--no-as-needed", "-liosig"]  # fmt: skip
    if (done := world.run(*command)).returncode != 0:
        if b"No such file or directory" in done.stderr:
            pytest.skip(f"{case.name}: headers are not installed")
        pytest.fail(done.stderr.decode())
    return world.root / "program"


def check(done: subprocess.CompletedProcess[bytes]) -> None:
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_file_written_by_a_library_is_redirected_read_back_and_brought_home(case: Case, iosig, world: World) -> None:
    program = build(case, iosig, world, "c")
    check(world.run(program, "plain", env=world.env | {"IOSIG_DISABLE": "1"}))
    check(world.run(program, "data"))
    path = world.work / "data"
    assert path.is_symlink(), "the library's open was not redirected"
    assert path.readlink().is_relative_to(world.fast)
    content = path.read_bytes()
    if case.body is not HDF5:  # which stamps its files with the time
        assert content == (world.work / "plain").read_bytes()
    check(world.run(program, "data", "read"))
    iosig("finalize", path)
    assert not path.is_symlink()
    assert path.read_bytes() == content
    check(world.run(program, "data", "read"))
    check(world.run(program, "data"))  # a second run writes over the file where it is
    assert not path.is_symlink()


@pytest.mark.parametrize("case", [CASES[0], CASES[1], CASES[3], CASES[6]], ids=lambda case: case.name)
def test_ranks_that_open_one_file_together_write_it_whole(case: Case, iosig, world: World) -> None:
    program = build(case, iosig, world, "c", "-O2")
    runner = f"mpirun.{case.compiler}"
    if shutil.which(runner) is None:
        pytest.skip(f"{runner} is not installed")
    check(world.run(runner, "-n", "2", program, "data"))
    assert (world.work / "data").is_symlink()
    check(world.run(program, "data", "read"))
    assert len(world.journal()) == 1, "ranks made more than one destination"


@pytest.mark.parametrize("case", [CASES[0], CASES[2], CASES[4]], ids=lambda case: case.name)
def test_cxx_programs_reach_the_libraries_alike(case: Case, iosig, world: World) -> None:
    program = build(case, iosig, world, "c++", "-fpermissive", "-w")
    check(world.run(program, "data"))
    assert (world.work / "data").is_symlink()


def test_a_file_system_named_before_a_path_of_mpi_is_no_part_of_the_path(iosig, world: World) -> None:
    """MPICH takes ufs: and nfs: off; Open MPI usually takes them for a part of the name, so those are left alone."""
    program = build(CASES[1], iosig, world, "c")
    for prefix in ("ufs:", "nfs:"):
        check(world.run(program, f"{prefix}data-{prefix[0]}"))
        assert (world.work / f"data-{prefix[0]}").is_symlink()
    program = build(CASES[0], iosig, world, "c")
    check(world.run(program, "ufs:literal"))
    assert (world.work / "ufs:literal").is_file()
    assert not any(path.is_symlink() for path in world.work.iterdir() if "literal" in path.name)


TRANSLATED = r"""
#include <stdio.h>
typedef int MPI_Comm; typedef int MPI_Info; typedef struct file *MPI_File;
int MPI_File_open(MPI_Comm c, const char *p, int m, MPI_Info i, MPI_File *f) { return !p + m + c + i + !f; }
long H5Fcreate(const char *p, unsigned m, long c, long a) { return !p + m + c + a; }
long H5Fopen(const char *p, unsigned m, long a) { return !p + m + a; }
int nc_create(const char *p, int m, int *id) { return !p + m + !id; }
int nc_open(const char *p, int m, int *id) { return !p + m + !id; }
int ncmpi_create(MPI_Comm c, const char *p, int m, MPI_Info i, int *id) { return !p + m + c + i + !id; }
int ncmpi_open(MPI_Comm c, const char *p, int m, MPI_Info i, int *id) { return !p + m + c + i + !id; }
int main(int argc, char **argv) {
  int id, variable = argc - 1;  /* 0, known only when the program runs */
#define SIG _Pragma("sig temp")
  SIG MPI_File_open(0, "mpi create", 1 | 4, 0, 0);
  SIG MPI_File_open(0, "mpi create variable", variable + 5, 0, 0);
  SIG MPI_File_open(0, "mpi excl", 1 | 4 | 64, 0, 0);
  SIG MPI_File_open(0, "mpi excl variable", variable + 69, 0, 0);
  SIG MPI_File_open(0, "mpi read", 2, 0, 0);
  SIG MPI_File_open(0, "mpi read variable", variable + 2, 0, 0);
  SIG H5Fcreate("h5 trunc", 2, 0, 0);
  SIG H5Fcreate("h5 excl", 4, 0, 0);
  SIG H5Fcreate("h5 default", 0, 0, 0);
  SIG H5Fopen("h5 open", 1, 0);
  SIG nc_create("nc clobber", 0, &id);
  SIG nc_create("nc clobber variable", variable, &id);
  SIG nc_create("nc noclobber", 4, &id);
  SIG nc_create("nc diskless", 8, &id);
  SIG nc_open("nc open", 1, &id);
  SIG ncmpi_create(0, "ncmpi clobber", 0, 0, &id);
  SIG ncmpi_create(0, "ncmpi noclobber", 4, 0, &id);
  SIG ncmpi_open(0, "ncmpi open", 1, 0, &id);
  return argv == 0;
}
"""


@pytest.mark.parametrize("options", ["-O0", "-O2"])
def test_the_modes_of_libraries_are_translated_into_those_of_open(iosig, tmp_path: Path, options: str) -> None:
    creates, refuses = os.O_RDWR | os.O_CREAT, os.O_RDWR | os.O_CREAT | os.O_EXCL
    hints = PluginCompiler(tmp_path).hints(TRANSLATED, "-w", options)
    assert {h.path: int(h.mode) for h in hints} == {
        "mpi create": creates,
        "mpi create variable": creates,
        "mpi excl": refuses,
        "mpi excl variable": refuses,
        "mpi read": os.O_RDWR,
        "mpi read variable": os.O_RDWR,
        "h5 trunc": creates,
        "h5 excl": os.O_RDWR | os.O_EXCL,
        "h5 default": os.O_RDWR,
        "h5 open": os.O_RDWR,
        "nc clobber": creates,
        "nc clobber variable": creates,
        "nc noclobber": refuses,
        "nc diskless": refuses,
        "nc open": os.O_RDWR,
        "ncmpi clobber": creates,
        "ncmpi noclobber": refuses,
        "ncmpi open": os.O_RDWR,
    }
