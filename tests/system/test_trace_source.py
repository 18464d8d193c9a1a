"""`iosig trace --source`: calls from given lines of source code, and no others."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD
from tracing import Tracing

pytestmark = pytest.mark.skipif(not (BUILD / "libexec/iosig/iosig-lines").exists(), reason="built without libdw")

SUPPORT = Path(__file__).resolve().parent.parent / "support"


def built(tracing: Tracing, name: str, source: str, *flags: str, compiler: str = "gcc") -> Path:
    """Compiles a program (or a library: flag -shared) in the tracing's directory."""
    file = tracing.directory / name
    file.write_text(source)
    made = file.with_suffix(".so" if "-shared" in flags else "")
    subprocess.run([compiler, "-o", made, name, *flags], check=True, cwd=tracing.directory)
    return made


def line_of(source: str, text: str) -> int:
    """The number of the line with this text."""
    [found] = [number for number, line in enumerate(source.splitlines(), 1) if text in line]
    return found


def offsets(tracing: Tracing, name: str = "data") -> set[int | None]:
    return {row.offset for row in tracing.of_file(name) if row.call in ("pwrite", "write")}


@pytest.mark.parametrize(("seed", "optimization"), [(1, "-O0"), (2, "-O2")])
def test_just_the_calls_below_the_lines_are_there(tracing: Tracing, seed: int, optimization: str) -> None:
    text = (SUPPORT / "traced_lines.c").read_text()
    program = built(tracing, "traced_lines.c", text, "-g", optimization, "-pthread")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if "// SELECTED" in line]
    options = [word for line in lines for word in ("--source", f"traced_lines.c:{line}")]
    wanted = {int(offset) for offset in tracing(program, seed, 2000, options=tuple(options)).split()}
    assert len(lines) == 5 and 1000 < len(wanted) < 5000
    assert offsets(tracing) == wanted


PLUGIN = """#include <unistd.h>
void plugin(int fd) {
  if (write(fd, "plugin", 6) < 0) _exit(1);
}
"""
HOST = """#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  const int fd = open("data", O_CREAT | O_RDWR | O_TRUNC, 0666);
  if (write(fd, "host", 4) < 0) return 1;
  void (*plugin)(int) = dlsym(dlopen("./plugin.so", RTLD_NOW), "plugin");
  plugin(fd);
  if (write(fd, "host", 4) < 0) return 1;  // last
  FILE* const text = fopen("text", "w");
  fprintf(text, "%d", fd);  // puts
  fclose(text);             // closes
}
"""


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("plugin.c:3", {4}),
        ("plugin.c", {4}),
        ("host.c:9", {4}),
        ("host.c", {0, 4, 10}),
        ("c", set()),
        (f"host.c:{line_of(HOST, '// last')}-99", {10}),
    ],
)
def test_lines_of_a_library_that_is_loaded_later_are_found(tracing: Tracing, source: str, wanted: set[int]) -> None:
    built(tracing, "plugin.c", PLUGIN, "-g", "-shared", "-fPIC")
    host = built(tracing, "host.c", HOST, "-g")
    tracing(host, options=("--source", source))
    assert offsets(tracing) == wanted


def test_what_a_stream_buffered_is_from_the_line_that_flushes_it(tracing: Tracing) -> None:
    built(tracing, "plugin.c", PLUGIN, "-shared", "-fPIC")
    host = built(tracing, "host.c", HOST, "-g")
    tracing(host, options=("--source", f"host.c:{line_of(HOST, '// puts')}"))
    assert [row.call for row in tracing.of_file("text")] == ["inherited", "fprintf"]
    tracing(host, options=("--source", f"host.c:{line_of(HOST, '// closes')}"))
    assert [row.call for row in tracing.of_file("text")] == ["inherited", "fclose", "write", "close"]


def test_programs_that_a_shell_starts_are_searched_too(tracing: Tracing) -> None:
    built(tracing, "plugin.c", PLUGIN, "-g", "-shared", "-fPIC")
    built(tracing, "host.c", HOST, "-g")
    built(tracing, "bare.c", HOST)
    tracing("sh", "-c", "./bare; ./host", options=("--source", "plugin.c:2-4"))
    assert len(tracing.of_file("data", "write")) == 2  # the plugin's, of both programs
    report = tracing.iosig.json("trace", "info", tracing.trace)
    plugin = tracing.directory / "plugin.so"
    [source] = report["sources"]
    assert source["source"] == "plugin.c:2-4" and [code["object"] for code in source["code"]] == [str(plugin)]
    assert str(tracing.directory / "bare") in report["without_lines"]


@pytest.mark.parametrize(
    ("flags", "source", "message"),
    [
        ([], "host.c", "host' has no line information: --source records nothing of it; compile it with -g"),
        (["-g"], "hose.c", "host' is from 'hose.c', it is compiled from host.c"),
        (["-g"], "host.c:1-3", "is from lines 1-3 of 'host.c'; the nearest lines with code: 5"),
    ],
)
def test_lines_without_code_get_a_message(tracing: Tracing, flags: list[str], source: str, message: str) -> None:
    built(tracing, "plugin.c", PLUGIN, "-shared", "-fPIC")
    host = built(tracing, "host.c", HOST, *flags)
    command = tracing.command(host, options=("--source", source))
    done = subprocess.run(command, cwd=tracing.directory, env=tracing.iosig.env, capture_output=True, text=True)
    assert done.returncode == 0 and message in done.stderr
    said = tracing.iosig("trace", "info", tracing.trace).stdout
    assert f"source {source}: no traced program has code from it" in said


@pytest.mark.parametrize("source", ["a.c:0", "a.c:9-8", "a.c:x", ":3", "a,b.c", "../a.c"])
def test_what_names_no_lines_is_wrong_usage(tracing: Tracing, source: str) -> None:
    done = subprocess.run(tracing.command("true", options=("--source", source)), capture_output=True, text=True)
    assert done.returncode == 2 and "expected FILE, FILE:LINE or FILE:FIRST-LAST" in done.stderr
    assert not tracing.trace.exists()


CHILDREN = r"""#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int signals;
static void count(int number) { (void)number; ++signals; }
int main(int argc, char** argv) {
  signal(SIGCHLD, count);
  if (argc > 1) close(1), close(2);  // the helper's pipe may get these numbers
  const int fd = open("data", O_CREAT | O_RDWR, 0666);
  if (write(fd, "x", 1) < 0) return 1;
  FILE* const said = fopen("said", "w");
  const int waited = waitpid(-1, 0, 0), failure = errno;
  fprintf(said, "%d %d %d", signals, waited, failure == ECHILD);
  return argc > 1 && fd != 1;
}
"""


@pytest.mark.parametrize("arguments", [(), ("closed",)])
def test_the_program_does_not_notice_the_helper(tracing: Tracing, arguments: tuple[str, ...]) -> None:
    program = built(tracing, "children.c", CHILDREN, "-g")
    tracing(program, *arguments, options=("--source", "children.c"))
    assert (tracing.directory / "said").read_text() == "0 -1 1"
    assert len(tracing.of_file("data", "write")) == 1


COLLECTIVE = """#include <mpi.h>
int main(int argc, char** argv) {
  MPI_File file;
  MPI_Init(&argc, &argv);
  MPI_File_open(MPI_COMM_WORLD, "data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_write_at_all(file, 0, "12345678", 8, MPI_CHAR, MPI_STATUS_IGNORE);
  MPI_File_write_at_all(file, 100, "12345678", 8, MPI_CHAR, MPI_STATUS_IGNORE);  // selected
  MPI_File_close(&file);
  MPI_Finalize();
}
"""


def test_what_the_mpi_library_does_for_a_line_is_there(tracing: Tracing) -> None:
    if shutil.which("mpicc") is None:
        pytest.skip("needs an MPI compiler, mpicc")
    program = built(tracing, "collective.c", COLLECTIVE, "-g", compiler="mpicc")
    tracing(program, options=("--source", f"collective.c:{line_of(COLLECTIVE, '// selected')}"))
    [call] = tracing.rows(lambda row: row.layer == "mpi-io" and row.call != "inherited")
    assert (call.call, call.offset) == ("MPI_File_write_at_all", 100)
    [write] = tracing.rows(lambda row: row.call == "pwrite")
    assert (write.offset, write.parent) == (100, call.id)


PLAIN = """#include <fcntl.h>
#include <unistd.h>
int main(void) {
  const int fd = open("data", O_CREAT | O_RDWR | O_TRUNC, 0666);
  return write(fd, "x", 1) != 1;
}
"""


def test_a_program_that_runs_often_gets_its_message_once(tracing: Tracing) -> None:
    program = built(tracing, "plain.c", PLAIN)
    command = tracing.command("sh", "-c", f"for n in 1 2 3 4; do {program}; done", options=("--source", "plain.c:5"))
    done = subprocess.run(command, capture_output=True, text=True, env=tracing.iosig.env, cwd=tracing.directory)
    assert done.returncode == 0 and done.stderr.count("has no line information") == 1
    assert "compile with -g" in tracing.iosig("trace", "info", tracing.trace).stdout


@pytest.mark.parametrize("is_library", [False, True])
def test_code_that_was_replaced_on_disk(tracing: Tracing, is_library: bool) -> None:
    """The program's own file can be read all the same; that of a library has gone, and that is said."""
    before = "  int replaced(void);\n  replaced();\n" if is_library else ""
    name = "lib.so" if is_library else "main"
    text = PLAIN.replace("  const int", f'{before}  rename("other", "{name}");\n  const int').replace(
        "int main", "#include <stdio.h>\nint main"
    )
    line = line_of(text, "write(")
    (tracing.directory / "other").write_text("#!/bin/false\n")
    library = "int open_lib(void);\nint replaced(void) { return 1; }\n"
    flags = []
    if is_library:
        built(tracing, "lib.c", library, "-g", "-shared", "-fPIC")
        flags = [str(tracing.directory / "lib.so"), "-Wl,-rpath," + str(tracing.directory)]
    program = built(tracing, "main.c", text, "-g", *flags)
    source = "lib.c:2" if is_library else f"main.c:{line}"
    done = subprocess.run(
        tracing.command(program, options=("--source", source, "--ops", "open,write")),  # not rename
        capture_output=True, text=True, env=tracing.iosig.env, cwd=tracing.directory,
    )  # fmt: skip
    assert done.returncode == 0
    if is_library:
        assert "lib.so' could not be searched: another file was put in its place" in done.stderr
        assert tracing.iosig.json("trace", "info", tracing.trace)["replaced_code"] == [
            str(tracing.directory / "lib.so")
        ]
    else:
        assert offsets(tracing) == {0} and done.stderr.count("line") == 0
