"""Mistakes in directives: each is refused with its file and line, and with what was expected; nothing is written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Iosig
from iosig.generate.build import build
from iosig.generate.template import Mistake, read_template

IOSIG_GENERATE = Path(sys.executable).with_name("iosig-generate")

# Directives that fit together; each mistake replaces one line, or inserts one.
LINES = {
    "file": "#pragma sigio file ckpt path(p) level(pnetcdf) comm(MPI_COMM_WORLD)",
    "dims": "#pragma sigio dims ckpt z(8) y(NY)",
    "attr": '#pragma sigio attr ckpt title("t") n(1)',
    "decomp": "#pragma sigio decomp blk block(z: r * 4, 4)",
    "dataset": "#pragma sigio dataset ckpt.t type(int) dims(z, y) decomp(blk) data(t) ghost(y: 1)",
    "output": "#pragma sigio output ckpt",
}
FIRST = 4  # line of the first directive


def template(**changed: str) -> str:
    body = [line for name in LINES for line in changed.get(name, LINES[name]).split("\n")]
    return "\n".join(["#include <mpi.h>", "#define NY 3", "void f(const char *p, int r, int *t) {", *body, "}", ""])


def mistakes(path: Path, text: str) -> list[Mistake]:
    path.write_text(text)
    read = read_template(str(path), [], [])
    return read.mistakes + build(read)[1]


def clause(name: str, old: str, new: str) -> dict[str, str]:
    assert old in LINES[name]
    return {name: LINES[name].replace(old, new)}


def after(name: str, more: str) -> dict[str, str]:
    return {name: f"{LINES[name]}\n#pragma sigio {more}"}


# What is changed, the line of the mistake (the changed one unless given), what is said.
SEEDED: dict[str, tuple[dict[str, str], str, str]] = {
    "unknown directive": (clause("dims", "dims", "dim"), "dims", "unknown directive 'dim'"),
    "capital letters": (clause("dims", "sigio", "SIGIO"), "dims", "has small letters in C and C++"),
    "no directive": ({"dims": "#pragma sigio"}, "dims", "expected a directive"),
    "no name of the file": (clause("output", " ckpt", ""), "output", "expected the name of a file"),
    "no name of the data set": (
        {"dataset": "#pragma sigio dataset ckpt type(int) dims(z, y) decomp(blk) data(s->t)"},
        "dataset",
        "expected the data sets' names: data(temp, u=EXPR), or dataset ckpt.temp",
    ),
    "an array twice": (
        {"dataset": "#pragma sigio dataset ckpt type(int) dims(z, y) decomp(blk) data(t, u, t=v)"},
        "dataset",
        "'t' is given twice in data",
    ),
    "an array of another directive": (
        after("dataset", "dataset ckpt type(int) dims(y) data(u, t)"),
        "dataset+1",
        "data set 'ckpt.t' is declared again; first in line 8",
    ),
    "a decomp of the file that is not declared": (
        clause("file", "path(p)", "path(p) decomp(blkk)")
        | {"dataset": "#pragma sigio dataset ckpt type(int) dims(z, y) data(t, u)"},
        "file",
        "no decomp 'blkk' is declared before; did you mean 'blk'?",
    ),
    "a decomp of the file whose axes a data set has in part": (
        clause("file", "path(p)", "path(p) decomp(blk)")
        | clause("decomp", "z: r * 4, 4", "z: r * 4, 4; y: 0, 3")
        | {"dataset": "#pragma sigio dataset ckpt type(int) dims(z) data(t)"},
        "dataset",
        "decomp 'blk' splits 'y', which is no axis of 'ckpt.t'",
    ),
    "a decomp that is declared later": (
        {"decomp": "", "output": "#pragma sigio decomp blk block(z: r * 4, 4)\n#pragma sigio output ckpt"},
        "dataset",
        "no decomp 'blk' is declared before; it is declared later, in line",
    ),
    "a decomp with the name of having none": (clause("decomp", "blk", "none"), "decomp", "'none' is no decomp"),
    "several files with a status": (
        clause("output", "ckpt", "ckpt more status(*t)"),
        "output",
        "'status' of several files; expected an 'output' for each",
    ),
    "several files, one unknown": (clause("output", "ckpt", "ckpt more"), "output", "no file 'more' is declared"),
    "a file twice in an output": (clause("output", "ckpt", "ckpt ckpt"), "output", "file 'ckpt' is given twice"),
    "missing path": (clause("file", " path(p)", ""), "file", "needs path(...)"),
    "missing level": (clause("file", " level(pnetcdf)", ""), "file", "needs level(...)"),
    "missing communicator": (
        clause("file", " comm(MPI_COMM_WORLD)", ""),
        "file",
        "needs comm(...), e.g. comm(MPI_COMM_WORLD)",
    ),
    "empty communicator": (clause("file", "MPI_COMM_WORLD", " "), "file", "'comm' needs a value"),
    "unknown level": (clause("file", "pnetcdf", "pnetcfd"), "file", "did you mean 'pnetcdf'?"),
    "unknown access": (clause("file", "path(p)", "path(p) access(wrte)"), "file", "did you mean 'write'?"),
    "unknown clause": (clause("file", "comm", "com"), "file", "did you mean 'comm'?"),
    "wrong size in the signature": (clause("file", "path(p)", "totalsize(6XB) path(p)"), "file", "'XB' is not a unit"),
    "contradicting signature": (clause("file", "path(p)", "temp persist path(p)"), "file", "persist"),
    "hint without quotes": (clause("file", "path(p)", "path(p) hint(cb_nodes=4)"), "file", "in quotes"),
    "clause twice": (clause("file", "path(p)", "path(p) path(q)"), "file", "'path' is given twice"),
    "file twice": (
        after("file", "file ckpt path(p) level(mpiio) comm(c)"),
        "file+1",
        "is declared again; first in line 4",
    ),
    "unknown file": (clause("dims", "ckpt", "chpt"), "dims", "no file 'chpt' is declared before; did you mean 'ckpt'?"),
    "file declared later": (
        clause("file", "file ckpt", "output ckpt\n#pragma sigio file ckpt"),
        "file",
        "declared later, in line 5",
    ),
    "axis without extent": (clause("dims", "z(8)", "z"), "dims", "'z' needs a value"),
    "axis twice": (after("dims", "dims ckpt z(9)"), "dims+1", "axis 'z' of 'ckpt' is declared again"),
    "axis of no elements": (clause("dims", "z(8)", "z(0)"), "dims", "axis 'z' has 0 elements"),
    "axis of 5000 digits": (clause("dims", "z(8)", f"z({'9' * 5000})"), "dims", "expected 1 to 2147483647"),
    "attribute of 65 bits": (clause("attr", "n(1)", "n(9223372036854775808)"), "attr", "does not fit into 64 bits"),
    "attribute of a difference": (
        clause("attr", "n(1)", "n(1-2)"),
        "attr",
        "expected a text in double quotes, a number",
    ),
    "attribute in C's quotes of characters": (clause("attr", '"t"', "'t'"), "attr", "a text in double quotes"),
    "attribute of two texts": (clause("attr", '"t"', '"t, u", "v"'), "attr", "a text in double quotes"),
    "axis of 2^31 elements": (clause("dims", "z(8)", "z(2147483648)"), "dims", "expected 1 to 2147483647"),
    "attribute without type": (clause("attr", "n(1)", "n(NY)"), "attr", "a type and an expression"),
    "attribute of an unknown type": (clause("attr", "n(1)", "n(real: x)"), "attr", "unknown type 'real'"),
    "attribute twice": (after("attr", "attr ckpt n(2)"), "attr+1", "attribute 'n' of 'ckpt' is given again"),
    "block without count": (clause("decomp", "r * 4, 4", "r * 4"), "decomp", "expected the first index and the number"),
    "block with a third value": (
        clause("decomp", "r * 4, 4", "r, 4, 4"),
        "decomp",
        "expected the first index and the number",
    ),
    "block without axis": (clause("decomp", "z: r", "r"), "decomp", "expected a name and ':'"),
    "decomp twice": (after("decomp", "decomp blk block(z: r, 1)"), "decomp+1", "decomp 'blk' is declared again"),
    "decomp of no axis": (clause("decomp", "z:", "zz:"), "decomp", "splits 'zz', which is no axis"),
    "the same block on every rank": (clause("decomp", "r * 4, 4", "0, 8"), "decomp", "every rank has the same block"),
    "all of an axis on every rank": (
        clause("decomp", "z: r * 4, 4", "y: 0, NY"),
        "decomp",
        "every rank has the same block",
    ),
    "negative count": (clause("decomp", "4, 4", "4, -4"), "decomp", "number of elements of 'z' is -4"),
    "block larger than the axis": (
        clause("decomp", "4, 4", "4, 9"),
        "dataset",
        "reaches element 9 of 'z', which has 8",
    ),
    "unknown type": (clause("dataset", "(int)", "(integer)"), "dataset", "unknown type 'integer'"),
    "missing data": (clause("dataset", " data(t)", ""), "dataset", "needs data(...)"),
    "unknown axis": (clause("dataset", "z, y", "z, x"), "dataset", "has the axis 'x', which 'ckpt' does not have"),
    "one axis twice": (clause("dataset", "z, y", "z, z"), "dataset", "has the axis 'z' twice"),
    "rank without the split axis": (
        clause("dataset", "z, y", "y"),
        "dataset",
        "splits 'z', which is no axis of 'ckpt.t'",
    ),
    "unknown decomp": (
        clause("dataset", "blk", "bkl"),
        "dataset",
        "no decomp 'bkl' is declared before; did you mean 'blk'?",
    ),
    "data set twice": (after("dataset", "dataset ckpt.t type(int) dims(y) data(t)"), "dataset+1", "is declared again"),
    "ghost cells along no axis": (clause("dataset", "y: 1", "x: 1"), "dataset", "which is none of its axes"),
    "negative ghost cells": (clause("dataset", "y: 1", "y: -1"), "dataset", "the width of the ghost cells is -1"),
    "ghost cells of one axis and of all": (clause("dataset", "y: 1", "y: 1, 2"), "dataset", "'2' has no axis"),
    "ghost cells without width": (clause("dataset", "y: 1", "y:"), "dataset", "expected a value after 'y:'"),
    "memory without an axis of the data set": (
        clause("dataset", "data(t)", "data(t) memory(z, x: 4) component(x: 0)"),
        "dataset",
        "has the axis 'y', which memory(...) lacks",
    ),
    "memory with an axis twice": (clause("dataset", "data(t)", "data(t) memory(z, y, z)"), "dataset", "given twice"),
    "axis of memory without extent": (
        clause("dataset", "data(t)", "data(t) memory(z, y, v) component(v: 0)"),
        "dataset",
        "it needs an extent, v: N",
    ),
    "axis of memory without component": (
        clause("dataset", "data(t)", "data(t) memory(z, y, v: 3)"),
        "dataset",
        "expected component(v: INDEX)",
    ),
    "component beyond the extent": (
        clause("dataset", "data(t)", "data(t) memory(z, y, v: 3) component(v: 3)"),
        "dataset",
        "expected 0 to 2",
    ),
    "component of an axis of the data set": (
        clause("dataset", "data(t)", "data(t) memory(z, y: 9) component(y: 3)"),
        "dataset",
        "component of 'y', which is no axis that only memory has",
    ),
    "component without memory": (
        clause("dataset", "data(t)", "data(t) component(v: 1)"),
        "dataset",
        "'component' needs memory(...)",
    ),
    "each without memory": (
        clause("dataset", "ckpt.t type(int)", "ckpt each(v: a, b) type(int)"),
        "dataset",
        "'each' needs memory(...)",
    ),
    "each with the name of a data set": (
        clause("dataset", "data(t)", "data(t) memory(z, y, v: 3) each(v: a, b)"),
        "dataset",
        "'each' names the data sets; expected dataset ckpt",
    ),
    "each beyond the extent": (
        clause("dataset", "ckpt.t", "ckpt memory(z, y, v: 3) each(v: a, b=2, c)"),
        "dataset",
        "component 3 of 'v'; they are counted from 0: expected 0 to 2",
    ),
    "each with one component twice": (
        clause("dataset", "ckpt.t", "ckpt memory(z, y, v: 3) each(v: a, b, c=1)"),
        "dataset",
        "'b' and 'c' are both component 1 of 'v'",
    ),
    "each and a component of the same axis": (
        clause("dataset", "ckpt.t", "ckpt memory(z, y, v: 3) component(v: 0) each(v: a, b)"),
        "dataset",
        "component(v: 0), and each(v: ...) of the same axis",
    ),
    "each of a data set that is declared": (
        after("dataset", "dataset ckpt type(int) dims(z, y) decomp(blk) data(t) memory(z, y, v: 3) each(v: s, t)"),
        "dataset+1",
        "data set 'ckpt.t' is declared again",
    ),
    "integers as floats": (
        clause("dataset", "data(t)", "data(t) as(float)"),
        "dataset",
        "elements of type 'int' cannot be written as 'float'",
    ),
    "type in the file that is no floating-point type": (
        clause("dataset", "data(t)", "data(t) as(int)"),
        "dataset",
        "expected double, float",
    ),
    "data set after the output": (
        after("output", "dataset ckpt.u type(int) dims(y) data(t)"),
        "output+1",
        "after the output",
    ),
    "two outputs at once": (after("output", "output ckpt"), "output+1", "is written twice at once"),
    "output without data sets": ({"dataset": ""}, "output", "has no data set"),
    "output of a file to read": (clause("file", "path(p)", "path(p) access(read)"), "output", "declares access(read)"),
    "input of a file to write": (
        {**clause("file", "path(p)", "path(p) access(write)"), "output": "#pragma sigio input ckpt"},
        "output",
        "access(write)",
    ),
    "records without a place for their number": (
        {**clause("dims", "z(8)", "z(8) t(unlimited)"), **clause("file", "pnetcdf", "mpiio")},
        "dims",
        "level 'mpiio' has no place for the number of records; expected the level 'pnetcdf', 'hdf5'",
    ),
    "two unlimited axes": (
        clause("dims", "z(8)", "z(8) t(unlimited) s(unlimited)"),
        "dims",
        "has the unlimited axis 't' already",
    ),
    "decomp of nothing": (
        {"decomp": "#pragma sigio decomp blk"},
        "decomp",
        "needs block(...), cyclic(...) or list(...)",
    ),
    "one axis split twice": (clause("decomp", "4)", "4) cyclic(z: r, 2)"), "decomp", "splits 'z' twice"),
    "cyclic without ranks": (
        clause("decomp", "block(z: r * 4, 4)", "cyclic(z: r)"),
        "decomp",
        "the number of this rank",
    ),
    "cyclic of no ranks": (
        clause("decomp", "block(z: r * 4, 4)", "cyclic(z: r, 0)"),
        "decomp",
        "number of ranks of 'z' is 0",
    ),
    "cyclic with a rank too many": (
        clause("decomp", "block(z: r * 4, 4)", "cyclic(z: 2, 2)"),
        "decomp",
        "the number of this rank is 2, of 2; expected 0 to 1",
    ),
    "cyclic with the same rank everywhere": (
        clause("decomp", "block(z: r * 4, 4)", "cyclic(z: 1, 2)"),
        "decomp",
        "every rank has the same block",
    ),
    "nothing dealt at a time": (
        clause("decomp", "block(z: r * 4, 4)", "cyclic(z: r, 2, 0)"),
        "decomp",
        "number of elements at a time of 'z' is 0",
    ),
    "list that is a number": (
        clause("decomp", "block(z: r * 4, 4)", "list(z: 4, 4)"),
        "decomp",
        "is the number 4; expected an array of indices",
    ),
    "list longer than the axis": (
        clause("decomp", "block(z: r * 4, 4)", "list(z: ids, 9)"),
        "dataset",
        "reaches element 9 of 'z', which has 8",
    ),
    "an unlimited axis inside": (
        {**clause("dims", "z(8)", "z(8) t(unlimited)"), **clause("dataset", "z, y", "z, t, y")},
        "dataset",
        "expected it as the slowest axis, the first",
    ),
    "an unlimited axis that is split": (
        {**clause("dims", "z(8)", "z(unlimited)"), **clause("output", "ckpt", "ckpt record(r)")},
        "dataset",
        "splits the unlimited axis 'z'",
    ),
    "an unlimited axis with ghost cells": (
        {
            **clause("dims", "z(8)", "z(8) t(unlimited)"),
            **clause("dataset", "z, y) decomp(blk) data(t) ghost(y", "t, z, y) decomp(blk) data(t) ghost(t"),
        },
        "dataset",
        "ghost cells along 't'",
    ),
    "an output without its record": (
        {**clause("dims", "z(8)", "z(8) t(unlimited)"), **clause("dataset", "z, y", "t, z, y")},
        "output",
        "'ckpt' has the unlimited axis 't': which record? expected record(...)",
    ),
    "a record of a file that has none": (clause("output", "ckpt", "ckpt record(r)"), "output", "has no records"),
    "a negative record": (
        {
            **clause("dims", "z(8)", "z(8) t(unlimited)"),
            **clause("dataset", "z, y", "t, z, y"),
            **clause("output", "ckpt", "ckpt record(-1)"),
        },
        "output",
        "the record is -1; expected at least 0",
    ),
    "an unlimited axis that no data set has": (
        {**clause("dims", "z(8)", "z(8) t(unlimited)"), **clause("output", "ckpt", "ckpt record(r)")},
        "dims",
        "no data set of 'ckpt' has the unlimited axis 't'",
    ),
    "a parenthesis that is not closed": (
        clause("dataset", "data(t)", "data(t"),
        "dataset",
        "the '(' after 'data' is not closed",
    ),
    "a bracket that is not open": (clause("dataset", "data(t)", "data(t])"), "dataset", "']' closes nothing"),
    "a quote that is not closed": (clause("attr", '"t"', '"t'), "attr", "quoted text is not closed"),
    "a name of the generated code": (clause("dataset", "data(t)", "data(iosig_t)"), "dataset", "begin with 'iosig_'"),
    "a directive in a macro": ({"output": '_Pragma("sigio output ckpt")'}, "output", "cannot be replaced by code"),
    "an output outside of functions": (
        {"output": "}\n#pragma sigio output ckpt\nvoid g(void) {"},
        "output+1",
        "outside of functions",
    ),
}


def line_of(text: str, name: str, changed: dict[str, str]) -> int:
    name, _, further = name.partition("+")
    before = list(LINES)[: list(LINES).index(name)]
    return FIRST + sum(len(changed.get(each, LINES[each]).split("\n")) for each in before) + int(further or 0)


def test_directives_that_fit_together_have_no_mistake(tmp_path: Path) -> None:
    assert mistakes(tmp_path / "t.c", template()) == []


@pytest.mark.parametrize("what", SEEDED)
def test_a_mistake_is_refused_at_its_line_with_what_was_expected(tmp_path: Path, what: str) -> None:
    changed, place, said = SEEDED[what]
    path = tmp_path / "t.c"
    found = [each for each in mistakes(path, template(**changed)) if each.severity == "error"]
    line = line_of(template(**changed), place, changed)
    told = [(each.place.line, each.message) for each in found]
    assert any(at == line and said in message for at, message in told), (line, told)
    assert all(each.place.file == str(path) for each in found)


def test_the_command_underlines_mistakes_and_writes_nothing(tmp_path: Path, iosig: Iosig) -> None:
    path = tmp_path / "t.c"
    path.write_text(template(**clause("dataset", "z, y", "z, yy")))
    out = tmp_path / "out.c"
    done = subprocess.run([IOSIG_GENERATE, path, "-o", out], capture_output=True, text=True)
    assert (done.returncode, done.stdout, out.exists()) == (3, "", False)
    first, line, mark = done.stderr.splitlines()[:3]
    assert first.startswith(f"{path}:8:") and "did you mean 'y'?" in first
    assert line[mark.index("^") :].startswith("dims(z, yy)")
    done = subprocess.run([IOSIG_GENERATE, path, "--check", "--json"], capture_output=True, text=True)
    assert done.returncode == 1
    assert [each["line"] for each in json.loads(done.stdout)["findings"]] == [8]


def test_check_reports_what_is_wrong_within_a_directive(tmp_path: Path, iosig: Iosig) -> None:
    path = tmp_path / "t.c"
    path.write_text(template(**clause("file", "pnetcdf", "pnetcfd")))
    (finding,) = [each for each in iosig.json("check", path, check=1)["findings"] if each["rule"] == "directive"]
    assert (finding["line"], finding["replacement"]) == (4, "pnetcdf")
    path.write_text(template(output='  fopen(p, "w");\n#pragma sigio output ckpt'))
    (warning,) = iosig.json("check", path)["findings"]
    assert (warning["rule"], warning["line"]) == ("template", 9)


def test_directives_that_a_condition_leaves_out_are_warned_of_and_stay(tmp_path: Path) -> None:
    path = tmp_path / "t.c"
    path.write_text(template(output="#ifdef IO\n#pragma sigio output ckpt\n#endif"))
    done = subprocess.run([IOSIG_GENERATE, path], capture_output=True, text=True)
    assert done.returncode == 0
    assert f"{path}:10:1: warning: a condition or a comment leaves this directive out" in done.stderr
    assert "\n#pragma sigio output ckpt\n" in done.stdout
    with_io = subprocess.run([IOSIG_GENERATE, path, "-D", "IO"], capture_output=True, text=True)
    assert with_io.stderr == "" and "iosig_end(" in with_io.stdout


def test_an_output_that_cannot_be_written_is_named_with_the_reason(tmp_path: Path) -> None:
    path, output = tmp_path / "t.c", tmp_path / "missing/t_io.c"
    path.write_text(template())
    done = subprocess.run([IOSIG_GENERATE, path, "-o", output], capture_output=True, text=True)
    assert done.returncode == 4
    assert done.stderr == f"iosig generate: {output}: No such file or directory\n"


def test_a_mistake_in_a_continued_line_is_all_that_is_said(tmp_path: Path) -> None:
    c = template(**clause("decomp", " block", " \\\n  block"))
    for name, text in {
        "t.c": c.replace("block(z:", "blok(z:"),
        "t.f90": FORTRAN.replace("y(ny)", "y(ny"),
    }.items():
        (tmp_path / name).write_text(text)
        done = subprocess.run([IOSIG_GENERATE, "--check", tmp_path / name], capture_output=True, text=True)
        assert done.returncode == 1
        assert "error: " in done.stderr and "leaves this directive out" not in done.stderr


def test_conditions_in_fortran_leave_directives_out_too(tmp_path: Path) -> None:
    path = tmp_path / "t.F90"
    path.write_text(
        FORTRAN.replace("  !$sigio output f", "#ifdef IO\n  !$sigio output f &\n  !$sigio   status(e)\n#endif")
    )
    done = subprocess.run([IOSIG_GENERATE, path], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr.count("a condition or a comment leaves this directive out") == 1
    assert f"{path}:8:1: warning: a condition" in done.stderr
    assert "\n  !$sigio output f &\n" in done.stdout
    with_io = subprocess.run([IOSIG_GENERATE, path, "-D", "IO"], capture_output=True, text=True)
    assert with_io.stderr == "" and "call iosig_end(" in with_io.stdout


def test_a_hint_that_damages_data_on_one_mpi_library_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "t.c"
    (warning,) = mistakes(path, template(**clause("file", "path(p)", 'path(p) hint(cb_nodes="2")')))
    assert (warning.severity, warning.place.line) == ("warning", 4)
    assert "the hint 'cb_nodes' can damage data" in warning.message


def test_two_files_with_one_path_in_an_output_are_refused_and_in_two_are_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "t.c"
    other = [
        "file more path(%s) level(mpiio) comm(MPI_COMM_WORLD)",
        "dims more z(8)",
        "dataset more.t type(int) dims(z) data(t)",
    ]
    for own, outputs, severity in (
        ("p", "output ckpt more", "error"),
        ("p", "output ckpt\n  r++;\n#pragma sigio output more", "warning"),
        ("p", "output ckpt\n  r++;\n#pragma sigio input more", ""),
        ("p + 1", "output ckpt more", ""),
    ):
        lines = "\n".join(f"#pragma sigio {each}" for each in [*other, outputs])
        found = mistakes(path, template(output=lines.replace("%s", own)))
        assert [each.severity for each in found] == [severity] * bool(severity)
        assert all("'more' has the path of 'ckpt' in line 4" in each.message for each in found)


def test_only_a_generated_file_is_replaced(tmp_path: Path) -> None:
    path, out = tmp_path / "t.c", tmp_path / "out.c"
    path.write_text(template())
    out.write_text("int mine;\n")
    for target, said in ((out, "was not made by iosig generate"), (path, "this is the template")):
        before = target.read_text()
        done = subprocess.run([IOSIG_GENERATE, path, "-o", target], capture_output=True, text=True)
        assert done.returncode == 3 and said in done.stderr
        assert target.read_text() == before
    out.unlink()
    for _ in range(2):
        assert subprocess.run([IOSIG_GENERATE, path, "-o", out], capture_output=True).returncode == 0


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("t.f", 3, "Fortran in fixed form; expected free form"),
        ("t.py", 3, "expected a template in C"),
        ("none.c", 4, "none.c"),
    ],
)
def test_a_source_that_cannot_be_read_is_refused(tmp_path: Path, name: str, status: int, said: str) -> None:
    for unknown in ("t.f", "t.py"):
        (tmp_path / unknown).write_text("      end\n")
    done = subprocess.run([IOSIG_GENERATE, tmp_path / name], capture_output=True, text=True)
    assert done.returncode == status and said in done.stderr and "Traceback" not in done.stderr


def test_a_source_without_directives_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.c").write_text("int x;\n")
    done = subprocess.run([IOSIG_GENERATE, tmp_path / "t.c"], capture_output=True, text=True)
    assert done.returncode == 3 and "the source has no directive" in done.stderr


FORTRAN = """program p
  !$sigio file f path(path) level(mpiio) comm(MPI_COMM_WORLD)
  !$sigio dims f z(8) &
  !$sigio   y(ny)
  !$sigio decomp blk block(z: 4*rank, 4)
  !$sigio dataset f.t type(int) dims(y, z) decomp(blk) data(t)
  !$sigio output f
end program
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("y(ny)", "y(ny", 4, "the '(' after 'y' is not closed"),
        ("!$sigio   y", "y", 3, "the next line does not begin with '!$sigio'"),
        ("dims(y, z)", "dims(y, x)", 6, "has the axis 'x'"),
        ("type(int)", "type(uint8)", 6, "Fortran has no type 'uint8'"),
        ("level(mpiio)", "level(netcdf4)", 2, "level 'netcdf4' cannot be generated in Fortran"),
        (" comm(MPI_COMM_WORLD)", "", 2, "needs comm(...)"),
        ("data(t)", "data(IOSIG_T)", 6, "begin with 'iosig_'"),
        ("y(ny)", f"y(ny) {'a' * 51}(3)", 4, "the name of an axis has 51 characters; expected at most 50"),
    ],
)
def test_fortran_has_its_mistakes_at_their_lines(tmp_path: Path, old: str, new: str, line: int, said: str) -> None:
    assert mistakes(tmp_path / "t.f90", FORTRAN) == []
    assert FORTRAN.count(old) == 1
    found = mistakes(tmp_path / "t.f90", FORTRAN.replace(old, new))
    assert any(each.place.line == line and said in each.message for each in found), found


def test_one_rank_may_have_all_elements(tmp_path: Path) -> None:
    """The others' blocks are empty, wherever they begin."""
    for block in ("0, r == 0 ? 8 : 0", "9 * r, 0"):
        changed = clause("decomp", "r * 4, 4", block)
        assert mistakes(tmp_path / "t.c", template(**changed)) == []
