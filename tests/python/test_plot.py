"""Tables and figures: what `iosig-plot` draws is what the core predicts and the files say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import iosig
from conftest import DATA
from iosig import figures, panels, patterns, tables
from iosig.access_panel import access_panel, sampled_accesses
from iosig.panels import Look

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
    run |= {"total_bytes": 10**9, "run_s": 1, "finalize_s": 1}
    shown = (("default", "", 1e8), ("ps4", "paper", 2e9), ("ps4", "job", 1e8))
    runs = [run | {"parameters": name, "policy": policy, "bytes_per_s": rate} for name, policy, rate in shown]
    (tmp_path / "demo.json").write_text(json.dumps({"schema": "iosig.demo/2", "runs": runs}))
    done = plot("demo", tmp_path / "demo.json", "--output", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert is_png(tmp_path / "out" / "demo.png")
    assert '"name":"ps4, paper"' in (tmp_path / "out" / "demo.html").read_text()


def strided(ranks: int, writes: int, size: int) -> patterns.Pattern:
    n = np.arange(ranks * writes)
    vectors = np.stack([size * n, np.full(len(n), size), size * (n // ranks), n % ranks], axis=1)
    return patterns.detect(vectors, "logical,length,physical,id")


@pytest.mark.parametrize(("suffix", "form"), [("png", "pattern"), ("html", "json")])
def test_a_pattern_becomes_the_picture_that_is_named(tmp_path: Path, suffix: str, form: str) -> None:
    description, picture = tmp_path / f"trace.{form}", tmp_path / f"trace.{suffix}"
    told = strided(4, 30, 512)
    description.write_bytes(told.to_bytes() if form == "pattern" else told.to_json().encode())
    done = plot("pattern", description, "--output", picture)
    assert (done.returncode, done.stdout.split()) == (0, [str(picture)]), done.stderr
    if suffix == "png":
        assert is_png(picture)
    else:
        page = picture.read_text()
        assert "<script src=" not in page and "<title>120 accesses as 1 term</title>" in page
    assert {path.name for path in tmp_path.iterdir()} == {description.name, picture.name}


def test_a_pattern_becomes_a_picture_and_a_page_in_a_directory(tmp_path: Path) -> None:
    (tmp_path / "trace.pattern").write_bytes(strided(4, 30, 512).to_bytes())
    assert plot("pattern", tmp_path / "trace.pattern", "--output", tmp_path / "out").returncode == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"pattern.png", "pattern.html"}


def test_a_picture_has_every_access_with_its_bytes_and_its_id() -> None:
    table = sampled_accesses(strided(10, 20, 1024))
    panel = access_panel("", table, "position", "id")
    assert panel.y_label == "offset, KiB"
    assert [curve.name for curve in panel.curves] == [f"id {id_}" for id_ in range(10)]
    assert len(set(panel.colours())) == 10
    (shared, *_) = access_panel("", sampled_accesses(strided(18, 2, 8)), "position", "id").curves
    assert shared.name == "id 0, 16"
    drawn = {x: (y, end) for c in panel.curves for x, y, end in zip(c.x, c.y, c.high, strict=True)}
    assert drawn == {n: (n, n + 1) for n in range(200)}  # KB
    assert all(curve.look == Look.ACCESSES for curve in panel.curves)


def test_many_accesses_are_drawn_in_a_mixed_order_and_thin_so_that_none_hides_the_others() -> None:
    panel = access_panel("", sampled_accesses(strided(16, 4096, 64)), "position", "id")
    assert panels.opacity(panel) == pytest.approx(20_000 / 65536)
    figure = Figure()
    panels.plot_panel(figure.subplots(), panel)
    specks, _ = figure.axes[0].collections
    last = {tuple(colour) for colour in np.round(specks.get_facecolor()[-1000:, :3], 6)}
    assert len(last) == 16
    traces = panels.explore_panels([panel]).data
    keys, drawn = traces[:16], traces[16:]
    assert [(trace.name, trace.opacity) for trace in keys] == [(f"id {id_}", None) for id_ in range(16)]
    assert not any(trace.showlegend for trace in drawn)
    places = {x: (y, trace.name) for trace in drawn for x, y in zip(trace.x, trace.y, strict=True)}
    assert places == {n: (n / 16, f"id {n % 16}") for n in range(65536)}  # KiB
    last = {x * 200 // 65536: trace.name for trace in drawn for x in trace.x}
    assert len(last) == 200 and len(set(last.values())) == 16
    assert figure.axes[0].xaxis.get_major_formatter()(2_500_000) == "2.5M"


def test_of_many_accesses_a_part_is_drawn_that_shows_every_rank_and_every_place() -> None:
    table = sampled_accesses(strided(16, 65536, 64), most=1024)
    assert len(table) == 1024 and table["position"].is_monotonic_increasing
    assert (table["position"] // 1024 == np.arange(1024)).all()  # one of each stretch
    assert table["id"].value_counts().min() > 64 / 2  # of 64 that are to be expected
    assert (table["begin"] == 64 * table["position"]).all() and (table["end"] == table["begin"] + 64).all()


def test_columns_without_names_are_those_of_a_lookup_and_extremes_do_not_overflow() -> None:
    most = 2**63 - 1
    table = sampled_accesses(patterns.detect([[most, 5, 0], [0, most, 0], [-(2**63), 1, 0]]))
    assert table[["begin", "end"]].values.tolist() == [[most, most], [0, most], [-(2**63), -(2**63) + 1]]
    assert sampled_accesses(patterns.detect([[7, 3]])).to_dict("list") == {
        "position": [0],
        "begin": [7],
        "end": [8],
        "id": [0],
    }
    named = patterns.detect([[7, 3]], "id,logical")
    assert sampled_accesses(named)[["begin", "id"]].values.tolist() == [[3, 7]]
    for columns, message in (("logical", "1 names for 2 columns"), ("logical,lenght", "did you mean 'length'")):
        with pytest.raises(ValueError, match=message):
            sampled_accesses(patterns.detect([[7, 3]]), columns)


def test_a_damaged_description_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "cut").write_bytes(strided(4, 30, 512).to_bytes()[:-1])
    done = plot("pattern", tmp_path / "cut", "--output", tmp_path / "x.png")
    assert done.returncode == 3 and f"{tmp_path / 'cut'}: byte " in done.stderr
    assert not (tmp_path / "x.png").exists()


def test_bad_input_ends_in_one_line_and_status_3(tmp_path: Path) -> None:
    (tmp_path / "demo.json").write_text('{"schema": "iosig.choice/1"}')
    done = plot("demo", tmp_path / "demo.json")
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "expected schema 'iosig.demo/2'" in done.stderr


def test_a_missing_file_is_the_systems_refusal(tmp_path: Path) -> None:
    assert plot("model", "--storage", tmp_path / "gone.toml").returncode == 4
