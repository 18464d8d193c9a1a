"""What a data set is to the cost model of `iosig generate`, by arithmetic, and what is done by measured costs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iosig.generate.build import build
from iosig.generate.cli import measure_costs
from iosig.generate.costs import PACKAGED, SCHEMA, Costs, costs_text, read_costs
from iosig.generate.model import Site
from iosig.generate.optimise import AVAILABLE, decide
from iosig.generate.sizes import Sizes, balanced, constants, transfer_of
from iosig.generate.template import read_template

TEMPLATE = """\
#include "sizes.h"
#define NV 24
void f(void) {
#pragma sigio file ckpt path(path) level(mpiio) comm(MPI_COMM_WORLD)
#pragma sigio dims ckpt z(2 * N) y(N) x(2 * N) one(3)
#pragma sigio decomp rows block(z: first, N)
#pragma sigio decomp blocks block(z: first, N; x: second, N)
#pragma sigio dataset ckpt.rows type(double) dims(z, y, x) decomp(rows) data(a)
#pragma sigio dataset ckpt.blocks type(float) dims(z, y, x) decomp(blocks) data(b) ghost(z: 2, x: 2)
#pragma sigio dataset ckpt.component type(double) dims(z, y, x) decomp(rows) data(c) \\
  memory(z, y, x, v: NV) component(v: 3)
#pragma sigio dataset ckpt.alone type(int) dims(one) data(d)
#pragma sigio output ckpt
}
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "sizes.h").write_text("#define N 8\n")
    (tmp_path / "t.c").write_text(TEMPLATE)
    template = read_template(str(tmp_path / "t.c"), [], [])
    assert constants(template, []) == {"N": 8, "NV": 24}
    model, mistakes = build(template, "")
    assert not mistakes
    return model.sites[0]


def test_pieces_and_bytes_of_all_ranks_are_counted(site: Site) -> None:
    """Two ranks; the array has 16 x 8 x 16 elements."""
    rows, blocks, component, alone = (transfer_of(each, Sizes(2, {"N": 8}), True) for each in site.file.datasets)
    assert rows == (2, 2, 2, 16 * 8 * 16 * 8, 16 * 8 * 16 * 8)
    # ranks: 2 along z and 1 along x are assumed; a rank says that it has 8 x 8 x 8 elements, in lines of 8
    lines, span = 8 * 8, (7 * 8 * 16 + 7 * 16 + 8) * 4
    assert blocks == (2, 2 * lines, 2 * lines, 2 * 512 * 4, 2 * span)
    assert component == (2, 16 * 8 * 16, 2, 16 * 8 * 16 * 8, 16 * 8 * 16 * 8)  # every number is a piece of memory
    assert alone == (2, 1, 1, 12, 12)  # the first rank writes it


def test_what_is_not_known_is_assumed_and_told(site: Site) -> None:
    sizes = Sizes(4, {})
    rows = transfer_of(site.file.datasets[0], sizes, True)
    assert sizes.assumed == {"N": 32, "2 * N": 32}
    assert rows[3] == 4 * 32**3 * 8


def measured(two_phase: float, packed: float) -> Costs:
    """A byte costs that much with OMPIO; with ROMIO the other one's."""
    rows = {}
    for access in ("write", "read"):
        for library, of in ("ompio", (two_phase, packed)), ("romio", (packed, two_phase)):
            for method, cost in zip(("two-phase", "packed", "sieving"), (*of, 1.0), strict=True):
                rows["mpiio", library, access, method] = (0.0, 0.0, 0.0, 0.0, 0.0, cost)
    return Costs("a test", rows)


def test_the_model_takes_the_least_time_with_each_library(site: Site) -> None:
    decision = decide(site, "model", Sizes(2, {"N": 8}), measured(1e-9, 2e-9))
    assert {library: method.name for library, method in decision.methods.items()} == {
        "ompio": "two-phase",
        "romio": "packed",
    }
    seconds = (2 * 16 * 8 * 16 * 8 + 2 * 512 * 4 + 12) * 1e-9
    assert list(decision.predicted_s["ompio"]) == ["two-phase", "packed", "sieving"]
    assert decision.predicted_s["ompio"]["two-phase"] == pytest.approx(seconds)
    assert decision.predicted_s["romio"]["two-phase"] == pytest.approx(2 * seconds)


def test_costs_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = measured(1e-9, 2e-9).rows
    (tmp_path / "costs.toml").write_text(costs_text(rows, 4, "/scratch"))
    assert read_costs(tmp_path / "costs.toml").rows == rows


def test_the_package_has_costs_of_every_method_with_each_library() -> None:
    costs = read_costs(PACKAGED)
    for level in ("mpiio", "pnetcdf", "hdf5"):
        for method in AVAILABLE[level]:
            for library in ("ompio", "romio"):
                assert all(sum(costs.of(level, library, access, method.name)) > 0 for access in ("write", "read"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("iosig.collective/1", "iosig.collective/9"), "schema is 'iosig.collective/9'; expected 'iosig.collective/1'"),
        (('level = "mpiio"\n', ""), "[[cost]] 1 lacks level"),
        (("byte_s = 1", "byte_s = -1"), "[[cost]] 1: byte_s is -1.0; expected seconds, from 0 to 1e+06"),
        (("byte_s = 1.0000e+00", 'byte_s = "fast"'), "[[cost]] 1: byte_s is 'fast'; expected seconds, from 0 to 1e+06"),
        (("byte_s = 1.0000e+00", "byte_s = nan"), "byte_s is nan; expected seconds, from 0 to 1e+06"),
        (("byte_s = 1.0000e+00", "byte_s = 1e308"), "byte_s is 1e+308; expected seconds, from 0 to 1e+06"),
        (("byte_s = 1.0000e+00", "byte_s = true"), "byte_s is True; expected seconds, from 0 to 1e+06"),
        (("byte_s = 1.0000e+00", "byte_s = 1" + "0" * 5000), "Exceeds the limit"),
        (("[[cost]]", "[cost]"), "expected tables, [[cost]]"),
        (("[[cost]]", "cost = [3]\n[other]"), "cost is [3]; expected tables, [[cost]]"),
        (("[[cost]]", "\udcff"), "can't decode byte 0xff"),
        (('access = "write"', "access = 3"), "[[cost]] 1: access is 3; expected a text"),
        (("[[cost]]", "[[cost"), "line 6"),
    ],
)
def test_costs_that_are_not_such_are_refused(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    path = tmp_path / "costs.toml"
    text = costs_text({("mpiio", "ompio", "write", "packed"): (0.0, 0.0, 0.0, 0.0, 0.0, 1.0)}, 4, "/scratch")
    assert SCHEMA in text
    path.write_text(text.replace(*change, 1), encoding="utf-8", errors="surrogateescape")
    with pytest.raises(ValueError) as refused:
        read_costs(path)
    assert str(path) in str(refused.value) and said in str(refused.value)


def test_a_pipe_instead_of_costs_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe: expected a file"):
        read_costs(tmp_path / "pipe")


def test_ranks_are_shared_out_as_equally_as_possible() -> None:
    assert [balanced(12, 2), balanced(8, 3), balanced(7, 2), balanced(1, 2)] == [[4, 3], [2, 2, 2], [7, 1], [1, 1]]
    assert balanced(2**31 - 1, 2) == [2**31 - 1, 1]  # a prime; at once


def test_numbers_that_no_program_has_are_not_known(site: Site) -> None:
    sizes = Sizes(2, {"N": 10**400})
    assert transfer_of(site.file.datasets[0], sizes, True)[0] == 2
    assert sizes.assumed == {"N": 32, "2 * N": 32}


def test_measuring_replaces_nothing_but_costs(tmp_path: Path) -> None:
    source = tmp_path / "solver.c"
    source.write_text(TEMPLATE)
    with pytest.raises(ValueError, match=r"solver\.c: exists and holds no costs"):
        measure_costs(str(tmp_path), 1, source)
    assert source.read_text() == TEMPLATE
