"""bench/grid.py: errors and regrets of small grids, worked by hand."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import iosig
from conftest import bench

grid = bench("grid")


def table(*cells: tuple[str, int, float, float]) -> pd.DataFrame:
    """Of (mount point, chunk, predicted, measured)."""
    rows = [(mount, "write", "random", "sync", "yes", *rest) for mount, *rest in cells]
    made = pd.DataFrame(rows, columns=["mount_point", *grid.WORKLOAD, "predicted_bytes_per_s", "bytes_per_s"])
    return made.assign(stored_bytes_per_s=made["predicted_bytes_per_s"])


def test_the_regret_is_what_the_choice_lost_of_the_best() -> None:
    made = grid.choices(
        table(("/a", 512, 9, 80), ("/b", 512, 8, 100), ("/a", 4096, 9, 80), ("/b", 4096, 10, 100)), ["/a", "/b"]
    )
    assert made["chosen"].tolist() == ["/a", "/b"]
    assert made["fastest"].tolist() == ["/b", "/b"]
    assert made["regret"].tolist() == pytest.approx([0.2, 0])
    assert grid.summary(made)["small_regret_share"] == grid.summary(made)["fastest_share"] == 0.5


def test_a_tie_goes_to_the_earlier_mount_point() -> None:
    cells = [("/b", 512, 9.0, 80.0), ("/a", 512, 9.0, 100.0)]
    assert grid.choices(table(*cells), ["/b", "/a"])["chosen"].tolist() == ["/b"]
    assert grid.choices(table(*cells), ["/a", "/b"])["chosen"].tolist() == ["/a"]


def test_of_equal_page_caches_the_one_before_the_faster_storage_is_chosen() -> None:
    cells = table(("/a", 512, 9, 80), ("/b", 512, 9, 100)).assign(stored_bytes_per_s=[1.0, 2.0])
    assert grid.choices(cells, ["/a", "/b"])["chosen"].tolist() == ["/b"]


def test_a_cell_that_only_one_mount_point_was_measured_with_is_no_choice() -> None:
    cells = [("/a", 512, 9.0, 80.0), ("/a", 4096, 9.0, 80.0), ("/b", 4096, 8.0, 70.0)]
    assert grid.choices(table(*cells), ["/a", "/b"])["chunk_bytes"].tolist() == [4096]
    assert grid.choices(table(*cells), ["/b"]).empty


def test_what_is_measured_is_the_median_of_its_rounds() -> None:
    rows = table(*[("/a", 512, 0.0, rate) for rate in (1.0, 9.0, 2.0)], ("/a", 4096, 0.0, float("nan")))
    assert grid.medians(rows)["bytes_per_s"].tolist() == [2.0]


def test_of_equal_tmpfs_only_the_first_is_a_choice(tmp_path: Path) -> None:
    text = 'schema = "iosig.storage/1"\n[[device]]\nname = "memory"\nkind = "ram"\n'
    for mount, filesystem in (("/a", "tmpfs"), ("/b", "tmpfs"), ("/c", "ext4")):
        text += f'[[mount_point]]\npath = "{mount}"\ndevice = "memory"\nfilesystem = "{filesystem}"\n'
    (tmp_path / "storage.toml").write_text(text)
    made = grid.judged(
        table(("/a", 512, 9, 80), ("/b", 512, 8, 100), ("/c", 512, 7, 60)),
        iosig.read_storage(str(tmp_path / "storage.toml")),
    )
    assert made["all"]["fastest"].tolist() == ["/a"]
    assert len(made["any two"]) == 1
