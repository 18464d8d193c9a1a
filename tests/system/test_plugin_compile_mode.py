"""The paper's mode: the destination is fixed while compiling, and a link leads there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from plugin_compiler import PluginCompiler

STORAGE = """
schema = "iosig.storage/1"
[[mount_point]]
path = "{fast}"
device = "memory"
filesystem = "tmpfs"
block_size = "4KB"
free = "2GB"
visibility = "local"
persistent = false
[[mount_point]]
path = "{safe}"
device = "disk"
filesystem = "ext4"
block_size = "4KB"
free = "2GB"
visibility = "local"
persistent = true
[[device]]
name = "memory"
kind = "ram"
read_bandwidth = "5GB/s"
write_bandwidth = "5GB/s"
operation_latency = "0.001ms"
seek_latency = "0s"
[[device]]
name = "disk"
kind = "hdd"
read_bandwidth = "100MB/s"
write_bandwidth = "100MB/s"
operation_latency = "5ms"
seek_latency = "8ms"
"""


class Machine(PluginCompiler):
    """A machine with a fast volatile and a safe mount point; programs run in `out`."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.fast, self.safe, self.out = directory / "fast", directory / "safe", directory / "out"
        for made in (self.fast, self.safe, self.out):
            made.mkdir()
        self.storage = directory / "storage.toml"
        self.storage.write_text(STORAGE.format(fast=self.fast, safe=self.safe))
        self.flags = ["-fplugin-arg-iosig-resolve=compile", f"-fplugin-arg-iosig-storage={self.storage}"]

    def start(self, *arguments: str, check: bool = True):
        return self.run(self.directory / "program", *arguments, check=check)

    def mount_of(self, name: str) -> str | None:
        """fast or safe, where `out/name` leads; None: it is no link."""
        path = self.out / name
        return path.readlink().parents[2].name if path.is_symlink() else None


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


EVERY_WAY = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static const int extra;
int main(int argc, char **argv) {
  int directory = open("out", O_DIRECTORY);
  int flags = argc > 1 ? atoi(argv[1]) : O_CREAT | O_WRONLY;  // known only when it runs
  errno = 77;
#pragma sig temp
  int fd = open("out/variable", flags, 0640);
  if (errno != 77 || write(fd, "data", 4) != 4) return 1;
#pragma sig persist
  FILE *f = fopen("out/fopen", "w");
  fputs("text", f);
  fclose(f);
#pragma sig temp
  fd = openat(directory, "openat", O_CREAT | O_RDWR, 0600);
#pragma sig temp
  fd = creat("out/creat", 0644);
#pragma sig temp
  fd = open("out/exclusive", O_CREAT | O_EXCL | O_RDWR, 0600);
#pragma sig temp
  fd = open("out/nofollow", O_CREAT | O_NOFOLLOW | O_RDWR, 0600);
#pragma sig temp
  fd = open("out/present", O_CREAT | O_RDWR, 0600);
#pragma sig temp
  fd = open("out/absent", O_RDWR);
#pragma sig temp
  f = fopen("out/fopen-exclusive", "wx");
#pragma sig temp
  f = fopen("out/fopen-read", "r");
#pragma sig temp
  f = fopen("out/no/directory", "w");
  return 0;
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_only_opens_that_create_a_file_are_led_to_the_chosen_mount_point(machine: Machine, level: str) -> None:
    machine.compile(EVERY_WAY, level, "-fopenmp", *machine.flags)
    (machine.out / "present").write_text("kept")
    machine.start()
    mounts = {name: machine.mount_of(name) for name in names_in(machine.out)}
    assert mounts == {
        "variable": "fast",
        "fopen": "safe",
        "openat": "fast",
        "creat": "fast",
        "exclusive": None,
        "nofollow": None,
        "present": None,
        "fopen-exclusive": None,
    }
    assert (machine.out / "variable").read_text() == "data"
    assert (machine.out / "fopen").read_text() == "text"
    assert (machine.out / "present").read_text() == "kept"
    assert stat.S_IMODE((machine.out / "variable").stat().st_mode) == 0o640
    destination = (machine.out / "variable").readlink()
    assert stat.S_IMODE(destination.parent.stat().st_mode) == 0o700
    assert len(names_in(destination.parents[1])) == 3, "a claim that led to no link was left behind"


def test_flags_that_turn_out_at_run_time_not_to_create_leave_no_link(machine: Machine) -> None:
    machine.compile(EVERY_WAY, *machine.flags)
    machine.start(str(os.O_RDWR), check=False)
    assert names_in(machine.out) == []
    machine.start(str(os.O_RDWR | os.O_CREAT | os.O_EXCL), check=False)
    assert machine.mount_of("variable") is None


STREAMS = r"""
#include <fstream>
#include <string>
int main() {
#pragma sig temp
  std::ofstream("out/default") << "x";
#pragma sig temp
  std::ofstream("out/binary", std::ios::binary | std::ios::trunc) << "x";
#pragma sig persist
  std::fstream(std::string("out/append"), std::ios::in | std::ios::app) << "x";
#pragma sig temp
  std::fstream("out/update");
#pragma sig temp
  std::ifstream("out/input");
#pragma sig temp
  std::ofstream("out/contradiction", std::ios::app | std::ios::trunc);
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_streams_are_redirected_when_their_openmode_creates(machine: Machine, level: str) -> None:
    machine.compile(STREAMS, level, *machine.flags, language="c++")
    machine.start()
    mounts = {name: machine.mount_of(name) for name in names_in(machine.out)}
    assert mounts == {"default": "fast", "binary": "fast", "append": "safe"}


ONE_SITE = r"""
#include <fcntl.h>
#include <unistd.h>
int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
#pragma sig temp
    int fd = open(argv[i], O_CREAT | O_WRONLY, 0600);
    if (write(fd, argv[i], 5) != 5) return 1;
  }
}
"""


def test_two_files_from_one_pragma_never_share_a_destination(machine: Machine) -> None:
    machine.compile(ONE_SITE, *machine.flags)
    machine.start("out/1", "out/2")
    machine.start("out/3")
    assert [machine.mount_of(name) for name in "123"] == ["fast", None, None]
    assert [(machine.out / name).read_text() for name in "123"] == ["out/1", "out/2", "out/3"]
    (machine.out / "1").resolve().unlink()  # the destination is free again
    machine.start("out/4")
    assert machine.mount_of("4") == "fast"


THREADS = r"""
#include <fcntl.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>
int main() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([path = "out/" + std::to_string(i)] {
#pragma sig temp
      int fd = open(path.c_str(), O_CREAT | O_WRONLY, 0600);
      if (write(fd, path.data(), path.size()) < 0) std::abort();
    });
  for (std::thread &thread : threads) thread.join();
}
"""


def test_threads_that_pass_one_pragma_together_do_not_share_a_destination(machine: Machine) -> None:
    machine.compile(THREADS, "-O2", "-pthread", *machine.flags, language="c++")
    for _ in range(10):
        machine.start()
        assert [machine.mount_of(name) for name in names_in(machine.out)].count("fast") == 1
        for path in machine.out.iterdir():
            assert path.read_text() == f"out/{path.name}"
            path.resolve().unlink()
            path.unlink(missing_ok=True)


def test_without_its_directory_a_program_writes_where_it_always_did(machine: Machine) -> None:
    machine.compile(ONE_SITE, *machine.flags)
    [directory] = machine.fast.iterdir()
    directory.rmdir()
    machine.start("out/1")
    assert machine.mount_of("1") is None
    assert (machine.out / "1").read_text() == "out/1"


def test_what_cannot_be_decided_while_compiling_is_said_and_left_alone(machine: Machine) -> None:
    source = r"""
    #include <stdio.h>
    int main(int argc, char **argv) {
    #pragma sig temp
      FILE *f = fopen("out/mode", argc > 1 ? argv[1] : "w");
    #pragma sig global
      f = fopen("out/nowhere", "w");
      return f == 0;
    }
    """
    mode, nowhere = machine.diagnostics(source, *machine.flags)
    assert mode["message"].startswith("the mode of 'fopen' is not constant: the file is not redirected")
    assert nowhere["message"] == "no mount point suits 'global': the file is not redirected"
    assert [note["message"].split(": ")[0] for note in nowhere["children"]] == [str(machine.fast), str(machine.safe)]
    machine.compile(source, "-w", *machine.flags)
    machine.start()
    assert names_in(machine.out) == ["mode", "nowhere"]


def test_streams_that_may_fill_their_mount_point_are_told_once(machine: Machine) -> None:
    source = r"""
    #include <stdio.h>
    int main(void) {
    #pragma sig temp
      FILE *f = fopen("out/one", "w");
    #pragma sig temp
      f = fopen("out/two", "w");
    #pragma sig temp totalsize(1MB)
      f = fopen("out/sized", "w");
      return f == 0;
    }
    """
    assert machine.diagnostics(source, *machine.flags) == []
    machine.storage.write_text(machine.storage.read_text().replace('"2GB"', '"2TB"').replace('"2TB"', '"2GB"', 1))
    [told] = machine.diagnostics(source, *machine.flags)
    assert told["kind"] == "warning" and "no totalsize is given: beyond 2 GB the program gets" in told["message"]
    assert f"although {machine.safe} has 2 TB; declare totalsize(...)" in told["message"]


def test_a_missing_or_broken_storage_description_is_told_once(machine: Machine) -> None:
    [found] = machine.diagnostics(EVERY_WAY, "-fplugin-arg-iosig-resolve=compile", "-fplugin-arg-iosig-storage=gone")
    assert (found["kind"], found["message"]) == ("error", "cannot open 'gone': No such file or directory")
    machine.storage.write_text('schema = "iosig.storage/1"\nspeed = 1\n')
    [found] = machine.diagnostics(EVERY_WAY, *machine.flags)
    assert found["kind"] == "error"
    assert str(machine.storage) in found["message"]


def test_a_planted_directory_on_the_mount_point_is_not_used(machine: Machine) -> None:
    (machine.fast / f".iosig-{os.geteuid()}").symlink_to(machine.safe)
    [found] = machine.diagnostics(ONE_SITE, *machine.flags)
    assert found["kind"] == "warning"
    assert "planted" in found["message"]


LIBRARY = r"""
#include <fcntl.h>
#include <unistd.h>
long H5Fcreate(const char *path, unsigned flags, long creation, long access) {
  return open(path, O_CREAT | O_RDWR | (flags & 4 ? O_EXCL : O_TRUNC), 0600) + creation + access;
}
#pragma sigopen traced(1)
int traced(const char *path) { return open(path, O_CREAT | O_WRONLY, 0600); }
int main(int argc, char **argv) {
#pragma sig temp
  H5Fcreate("out/constant", 2, 0, 0);
#pragma sig temp
  H5Fcreate("out/variable", argc + 1, 0, 0);
#pragma sig temp
  H5Fcreate("out/exclusive", 4, 0, 0);
#pragma sig temp
  traced("out/traced");
  return argv == 0;
}
"""


def test_libraries_and_functions_of_the_users_are_led_too(machine: Machine) -> None:
    machine.compile(LIBRARY, "-O2", *machine.flags)
    machine.start()
    mounts = {name: machine.mount_of(name) for name in names_in(machine.out)}
    assert mounts == {"constant": "fast", "variable": "fast", "exclusive": None, "traced": "fast"}
