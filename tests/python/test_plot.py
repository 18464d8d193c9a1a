"""Tables and figures: what `iosig-plot` draws is what the core predicts and the files say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import iosig
from conftest import DATA
from iosig import figures, tables

PAPER = DATA / "paper-table2.toml"
IOSIG_PLOT = Path(sys.executable).with_name("iosig-plot")


def plot(*args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in (IOSIG_PLOT, *args)], capture_output=True, text=True)


def is_png(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG")


def test_predictions_rise_with_the_chunk_and_stay_below_the_bandwidth() -> None:
    storage = iosig.read_storage(str(PAPER))
    table = tables.predicted_throughput(storage, tables.chunk_sizes(4096))
    assert len(table) == len(storage.mount_points) * len(tables.chunk_sizes(4096))
    for _, rows in table.groupby("mount_point"):
        assert rows["bytes_per_s"].is_monotonic_increasing
    assert table["bytes_per_s"].max() < 2.4 * 2**30  # the ramdisk's


def test_nfs_beats_the_hdd_below_88_mb_chunks_and_loses_above() -> None:
    table = tables.predicted_throughput(iosig.read_storage(str(PAPER)), [80 << 20, 96 << 20])
    rate = table.set_index(["mount_point", "chunk_bytes"])["bytes_per_s"]
    assert rate["/paper/nfs", 80 << 20] > rate["/paper/hdd", 80 << 20]
    assert rate["/paper/nfs", 96 << 20] < rate["/paper/hdd", 96 << 20]


@pytest.mark.parametrize("bad", [(0, 1), (8, 4)])
def test_an_empty_range_of_chunks_is_refused(bad: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="smallest_bytes"):
        tables.chunk_sizes(*bad)


def test_sizes_are_labelled_as_iosig_spells_them() -> None:
    assert [figures.bytes_label(size) for size in (512, 65536, 96 << 20, 1 << 30)] == ["512B", "64KB", "96MB", "1GB"]


def test_model_writes_a_picture_and_a_page_that_needs_no_network(tmp_path: Path) -> None:
    measured = tmp_path / "measured.csv"
    points = [("/paper/nfs", "write", "sequential", 65536, 5e7)]
    pd.DataFrame(points, columns=tables.MEASURED_COLUMNS).to_csv(measured, index=False)
    done = plot("model", "--storage", PAPER, "--measured", measured, "--output", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(tmp_path / "model.png"), str(tmp_path / "model.html")]
    assert is_png(tmp_path / "model.png")
    page = (tmp_path / "model.html").read_text()
    assert "<script src=" not in page
    assert "nfs, measured" in page


def test_of_a_measured_grid_the_cells_that_wait_and_were_measured_are_shown(tmp_path: Path) -> None:
    rows = [
        ("/m", "write", "random", 512, rate, sync) for rate, sync in ((1e6, "sync"), (1e9, "nosync"), (None, "sync"))
    ]
    pd.DataFrame(rows, columns=[*tables.MEASURED_COLUMNS, "sync"]).to_csv(tmp_path / "grid.csv", index=False)
    assert tables.read_measured(tmp_path / "grid.csv")["bytes_per_s"].tolist() == [1e6]


def test_demo_draws_every_run(tmp_path: Path) -> None:
    run = {"task": "divide", "why": "fastest", "mount_point": "/fast", "predicted_bytes_per_s": None}
    runs = [run | {"parameters": name, "bytes_per_s": rate} for name, rate in (("default", 1e8), ("ps4", 2e9))]
    (tmp_path / "demo.json").write_text(json.dumps({"schema": "iosig.demo/1", "runs": runs}))
    done = plot("demo", tmp_path / "demo.json", "--output", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert is_png(tmp_path / "out" / "demo.png")
    assert '"name":"ps4"' in (tmp_path / "out" / "demo.html").read_text()


def test_bad_input_ends_in_one_line_and_status_3(tmp_path: Path) -> None:
    (tmp_path / "demo.json").write_text('{"schema": "iosig.choice/1"}')
    done = plot("demo", tmp_path / "demo.json")
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "expected schema 'iosig.demo/1'" in done.stderr


def test_a_missing_file_is_the_systems_refusal(tmp_path: Path) -> None:
    assert plot("model", "--storage", tmp_path / "gone.toml").returncode == 4
