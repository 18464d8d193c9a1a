"""`iosig generate --interactive` on a terminal: answers stand in the template, and code is made of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from generated_programs import IOSIG_GENERATE
from iosig.generate.interactive import Conversation
from terminal import run_on_terminal

PLAIN = """#include <mpi.h>
#define N 4
static double temp[N][N];
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  temp[0][0] = rank;
  MPI_Finalize();
}
"""


def talk(template: Path, *answers: str, words: tuple[object, ...] = ()) -> str:
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "200"}
    command = [IOSIG_GENERATE, "--interactive", template, *words]
    return run_on_terminal(command, environment, 200, typed="".join(f"{answer}\n" for answer in answers))


def directives(template: Path) -> list[str]:
    return [line.strip() for line in template.read_text().splitlines() if "sigio" in line]


def test_a_program_without_directives_gets_those_that_are_answered(tmp_path: Path) -> None:
    template, output = tmp_path / "t.c", tmp_path / "t_io.c"
    template.write_text(PLAIN)
    split = "z: rank * N, N"
    dataset = "temp type(double) dims(z, x) data(temp)"
    told = talk(
        template, "9", "10", "mpiio", "", "ckpt", '"out"', "z(N * ranks) x(N)", split, dataset, "", "none", "y",
        words=("-o", output),
    )  # fmt: skip
    assert directives(template) == [
        '#pragma sigio file ckpt level(mpiio) comm(MPI_COMM_WORLD) path("out")',
        "#pragma sigio dims ckpt z(N * ranks) x(N)",
        "#pragma sigio decomp ckpt_ranks block(z: rank * N, N)",
        "#pragma sigio dataset ckpt.temp type(double) dims(z, x) data(temp) decomp(ckpt_ranks)",
        "#pragma sigio output ckpt",
    ], told
    lines = template.read_text().splitlines()
    assert lines.index("#pragma sigio output ckpt") == lines.index("  MPI_Finalize();") - 1
    assert "MPI_File_open" in told  # the code is shown
    assert output.read_text().startswith("/* Made by iosig generate")
    rest = [line for line in lines if "sigio" not in line]
    assert rest == PLAIN.splitlines()


def test_level_and_hints_of_a_template_are_changed_and_all_else_stays(tmp_path: Path) -> None:
    template = tmp_path / "t.c"
    before = PLAIN.replace(
        "  MPI_Finalize",
        """#pragma sigio file c path(f(")", 1)) level(hdf5) \\
  comm(MPI_COMM_WORLD) hint(a="1)")
#pragma sigio dims c z(N) x(N)
#pragma sigio dataset c.t type(double) dims(z, x) data(temp)
#pragma sigio output c
  MPI_Finalize""",
    ).replace("static double", "const char *f(const char *text, int n);\nstatic double")
    template.write_text(before)
    talk(template, "mpiio", 'striping_unit="1048576", b="2"', "y")
    changed = before.replace("level(hdf5)", "level(mpiio)").replace('a="1)"', 'striping_unit="1048576", b="2"')
    assert template.read_text() == changed
    talk(template, "mpiio", "none", "y")
    assert template.read_text() == changed.replace(' hint(striping_unit="1048576", b="2")', "")
    talk(template, "pnetcdf", "", "n")
    assert "level(mpiio)" in template.read_text()


def test_the_ends_of_lines_stay(tmp_path: Path) -> None:
    template = tmp_path / "t.c"
    template.write_bytes(PLAIN.replace("\n", "\r\n").encode())
    dataset = "temp type(double) dims(z, x) data(temp)"
    talk(template, "9", "10", "mpiio", "", "ckpt", '"out"', "z(N) x(N)", "", dataset, "", "none", "y")
    talk(template, "hdf5", 'a="\\")"', "y")
    talk(template, "hdf5", 'b="1"', "y")
    lines = template.read_bytes().decode().split("\r\n")
    assert not any("\n" in line or "\r" in line for line in lines)
    assert '  #pragma sigio file ckpt level(hdf5) hint(b="1") comm(MPI_COMM_WORLD) path("out")' in lines
    assert [line for line in lines if "sigio" not in line] == PLAIN.split("\n")


def test_a_template_that_is_changed_meanwhile_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    template = tmp_path / "t.c"
    directives = """#pragma sigio file c path("f") level(hdf5) comm(MPI_COMM_WORLD)
#pragma sigio dims c z(N) x(N)
#pragma sigio dataset c.t type(double) dims(z, x) data(temp)
#pragma sigio output c
"""
    template.write_text(PLAIN.replace("  MPI_Finalize", f"{directives}  MPI_Finalize"))
    conversation = Conversation(str(template), [], [], [])
    monkeypatch.setattr(conversation, "ask_level", lambda default: "mpiio")
    monkeypatch.setattr(conversation, "ask", lambda question, default, refusal: default)
    monkeypatch.setattr(conversation, "show", lambda: template.write_text("int edited;\n"))
    monkeypatch.setattr("rich.prompt.Confirm.ask", lambda *words, **more: True)
    with pytest.raises(ValueError, match="changed meanwhile"):
        conversation.hold()
    assert template.read_text() == "int edited;\n"
    assert '\n+#pragma sigio file c path("f") level(mpiio) comm(MPI_COMM_WORLD)\n' in capsys.readouterr().out


def test_a_refused_answer_is_asked_for_again(tmp_path: Path) -> None:
    template = tmp_path / "t.c"
    template.write_text(PLAIN)
    told = talk(
        template, "99", "9", "10", "mpi", "mpiio", "", "2", "ckpt", '"out"', "z N", "z(N)", "y: 0, N", "", "",
        "t type(doubel) dims(z) data(temp[0])", "t type(double) dims(z) data(temp[0])", "", "none", "y",
    )  # fmt: skip
    for said in (
        "expected a number from 1 to 12",
        "expected a name",
        "'z' needs a value",
        "splits 'y', which is no axis",
        "expected at least one",
    ):
        assert said in told, told
    assert "unknown type 'doubel'" in told
    assert "#pragma sigio dataset ckpt.t type(double) dims(z) data(temp[0])" in directives(template)


def test_a_ranks_part_may_be_answered_as_directives_say_it(tmp_path: Path) -> None:
    template = tmp_path / "t.c"
    template.write_text(PLAIN)
    dataset = "temp type(double) dims(z, x) data(temp)"
    talk(
        template, "9", "10", "mpiio", "", "ckpt", '"out"', "z(N * ranks) x(N)", "block(z: (rank) * N, (N))", dataset,
        "", "none", "y",
    )  # fmt: skip
    assert "#pragma sigio decomp ckpt_ranks block(z: (rank) * N, (N))" in directives(template)


def test_without_a_terminal_nothing_is_asked(tmp_path: Path) -> None:
    template = tmp_path / "t.c"
    template.write_text(PLAIN)
    command = [IOSIG_GENERATE, "--interactive", template]
    done = subprocess.run(command, input="9\n", capture_output=True, text=True)
    assert done.returncode == 2 and "needs a terminal" in done.stderr
    assert template.read_text() == PLAIN


def test_a_template_that_nobody_may_write_is_refused_before_any_question(tmp_path: Path) -> None:
    template = tmp_path / "t.c"
    template.write_text(PLAIN)
    template.chmod(0o444)
    told = talk(template, "1")
    assert "the directives cannot be written" in told and str(template) in told and "Level" not in told
    assert template.read_text() == PLAIN
