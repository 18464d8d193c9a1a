"""`iosig repro`: what it holds against the papers is what hand arithmetic says, and it leaves only complete results."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pandas as pd
import pytest
import typer.core
import typer.main
from matplotlib.figure import Figure

from conftest import BUILD, Iosig
from iosig import plot
from iosig.generate import cli as generate
from iosig.panels import Curve, Look, Panel, explore_panels, plot_panels
from iosig.report import cli as report
from iosig.repro import artefact, cli, machine, slow_disk
from iosig.repro.artefact import Setting, Source

IOSIG_IDS = ["iosig-fig11a", "iosig-fig11b", "iosig-fig11c", "iosig-fig12", "iosig-fig6", "iosig-table2"]
PATTERN_IDS = ["pattern-fig1", "pattern-fig16", "pattern-fig20"]
DOE_IDS = ["doe-fig13", "doe-fig14", "doe-fig6", "doe-fig7"]  # on this machine, with MPI
REPLAYED_IDS = ["pattern-fig13", "pattern-fig14", "pattern-fig15"]  # on this machine
DISK_IDS = ["pattern-fig21"]  # on a slow disk of the lab, which needs root
H2DP_IDS = [f"h2dp-{name}" for name in ("fig10", "fig11", "fig2", "fig5", "fig6", "fig7", "fig8", "fig9", "overheads")]
IDS = H2DP_IDS + IOSIG_IDS + PATTERN_IDS
DIFFERING = ["iosig-fig11b", "iosig-fig12", "pattern-fig1", *(id_ for id_ in H2DP_IDS if id_ != "h2dp-fig2")]


class Told(NamedTuple):
    status: int
    out: str
    err: str


def repro(*words: object) -> Told:
    """`iosig repro WORDS...` in this process: starting Python anew takes longer than most artefacts."""
    out, err = io.StringIO(), io.StringIO()
    environment = {"IOSIG_COMMAND": str(BUILD / "bin" / "iosig")}
    signals = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    with (
        mock.patch.object(sys, "argv", ["iosig-repro", *map(str, words)]),
        mock.patch.dict(os.environ, environment),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        cli.main()
    for number, handler in signals.items():
        signal.signal(number, handler)
    assert isinstance(ended.value.code, int)
    return Told(ended.value.code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every artefact on the virtual device, made once."""
    directory = tmp_path_factory.mktemp("repro")
    told = repro("run", "all", "--quick", "--output", directory, "--json")
    assert told.status == 1, told.err
    (directory / "told.json").write_text(told.out)
    return directory


def facts_of(results: Path, id_: str) -> dict[str, Any]:
    document = json.loads((results / id_ / "result.json").read_text())
    return {fact["claim"]: fact for fact in document["facts"]}


def the_fact(results: Path, id_: str, words: str) -> Any:
    (found,) = [fact for claim, fact in facts_of(results, id_).items() if re.search(words, claim)]
    return found


def test_list_names_every_artefact_with_its_place_in_the_paper() -> None:
    listed = json.loads(repro("list", "--json").out)
    assert listed["schema"] == "iosig.repro.list/1"
    assert [artefact["id"] for artefact in listed["artefacts"]] == sorted(IDS + DOE_IDS + REPLAYED_IDS + DISK_IDS)
    assert all(re.match(r"section \d", artefact["where"]) for artefact in listed["artefacts"])


def test_one_document_tells_all_runs(results: Path) -> None:
    told = json.loads((results / "told.json").read_text())
    assert told["schema"] == "iosig.repro/1"
    verdicts = {run["id"]: run["verdict"] for run in told["runs"]}
    assert verdicts == {id_: "differs" if id_ in DIFFERING else "holds" for id_ in IDS}


@pytest.mark.parametrize("id_", IDS)
def test_a_result_is_a_picture_a_page_and_the_same_data_twice(results: Path, id_: str) -> None:
    directory = results / id_
    assert {path.name for path in directory.iterdir()} == {f"{id_}.png", f"{id_}.html", "data.csv", "result.json"}
    assert (directory / f"{id_}.png").read_bytes().startswith(b"\x89PNG")
    page = (directory / f"{id_}.html").read_text()
    assert "<script src=" not in page
    source = "virtual arrays with section 7.4's" if id_ == "iosig-fig12" else "a virtual device that obeys Table 2"
    source = "the accesses of bench/workloads" if id_ in PATTERN_IDS else source
    source = ("arithmetic" if id_ == "h2dp-overheads" else "the worlds") if id_ in H2DP_IDS else source
    assert f"<p>source: {source}" in page
    document = json.loads((directory / "result.json").read_text())
    assert f"<title>{id_}: {document['title']}</title>" in page
    assert re.findall(r"<tr><td>([\w ]+)</td>", page) == [f["verdict"] for f in document["facts"]]
    assert (document["schema"], document["id"], document["source"]) == ("iosig.repro/1", id_, "virtual")
    with (directory / "data.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(document["data"]) > 0
    assert list(rows[0]) == list(document["data"][0])


@pytest.mark.parametrize(
    ("name", "operation_s", "published_ms", "verdict"),
    [
        ("ps1", 0.0004 + 0.5 / 103, 14379, "holds"),  # 10761 ms
        ("ps2", 0.00011 + 0.5 / 415, 2519, "differs"),  # 2693 ms: writing alone is longer than the whole program
        ("ps3", 0.0001 + 0.5 / (1.7 * 1024), 1448, "holds"),  # 793 ms
        ("ps4", 0.000001 + 0.5 / (2.4 * 1024), 818, "holds"),  # 419 ms
    ],
)
def test_fig11b_holds_equation_3_against_the_published_milliseconds(
    results: Path, name: str, operation_s: float, published_ms: float, verdict: str
) -> None:
    fact = the_fact(results, "iosig-fig11b", f"writing 512 KB chunks with {name}")
    assert fact["found"] == pytest.approx(2048 * operation_s * 1000)
    assert (fact["published"], fact["verdict"], fact["unit"]) == (published_ms, verdict, "ms")


def test_fig11b_takes_more_than_five_minutes_on_the_hdd(results: Path) -> None:
    fact = the_fact(results, "iosig-fig11b", "512 KB chunks on the HDD")
    assert fact["found"] == pytest.approx(2048 * (0.17 + 0.5 / 125) / 60)
    assert fact["verdict"] == "holds"


def test_fig11b_says_that_the_paper_contradicts_its_own_shortest_run(results: Path) -> None:
    assert the_fact(results, "iosig-fig11b", "every run takes at least")["verdict"] == "differs"


def test_a_bound_of_16_minutes_is_not_met_by_93(results: Path) -> None:
    fact = the_fact(results, "iosig-fig11b", "the longest run takes more than")
    assert fact["found"] == pytest.approx(32768 * (0.17 + 1 / 32 / 125) / 60) and fact["verdict"] == "differs"
    assert "5.81 times the bound" in fact["judged"]


@pytest.mark.parametrize("id_", ["iosig-fig11b", "iosig-fig11c"])
def test_fig11_puts_each_parameter_set_where_the_paper_does(results: Path, id_: str) -> None:
    places = {"ps1": "/paper/nfs", "ps2": "/paper/raid1", "ps3": "/paper/nvram", "ps4": "/paper/ramdisk"}
    for name, place in places.items():
        fact = next(fact for claim, fact in facts_of(results, id_).items() if claim.startswith(f"{name} ("))
        assert (fact["published"], fact["found"], fact["verdict"]) == (place, place, "holds")


def test_fig11a_chooses_the_faster_device_at_all_eight_sizes(results: Path) -> None:
    fact = the_fact(results, "iosig-fig11a", "the faster device is chosen")
    assert (fact["found"], fact["verdict"]) == ("all 8", "by construction")
    rows = json.loads((results / "iosig-fig11a" / "result.json").read_text())["data"]
    six = 6 * 1024
    by_hand = {"/paper/hdd": six / 16 * (0.15 + 16 / 125), "/paper/nfs": six / 16 * (0.0004 + 16 / 103)}
    for mount, run_s in by_hand.items():
        (row,) = [row for row in rows if row["run"] == mount and row["chunk_bytes"] == 16 << 20]
        assert row["run_s"] == pytest.approx(run_s)
        assert row["chosen"] == "/paper/nfs"


def test_fig6_crosses_at_88_mb_and_has_teeth_at_the_block_sizes(results: Path) -> None:
    fact = the_fact(results, "iosig-fig6", "the HDD beats the NFS")
    # (0.15 + x / 125) = (0.0004 + x / 103): x = 87.6 MB
    assert fact["found"] == math.ceil((0.15 - 0.0004) / (1 / 103 - 1 / 125)) == 88
    teeth = {claim: fact["found"] for claim, fact in facts_of(results, "iosig-fig6").items() if "peaks" in claim}
    assert sorted(teeth.values()) == [4, 4, 4, 22]
    assert the_fact(results, "iosig-fig6", "matches the experiments")["verdict"] == "untested"


def test_fig12_is_equation_2_by_hand_and_the_simulation_knows_its_limit(results: Path) -> None:
    ber = 1e-6
    uber = sum(math.comb(512, n) * ber**n * (1 - ber) ** (512 - n) for n in range(3, 20)) / 510
    assert the_fact(results, "iosig-fig12", "UBER")["found"] == pytest.approx(uber, rel=1e-9)
    per_year, repair, unreadable = 1 / 10, 365, 8 * 2**40 * uber  # failures and repairs a year; bits in 1 TB
    for name, devices, a_year in (("RAID 5", 5, 12), ("RAID 1", 2, 1)):
        loss = per_year * (per_year + unreadable * repair)
        eq2 = the_fact(results, "iosig-fig12", rf"1 TB on {name}.* lasts, by Eq. 2")
        assert eq2["found"] == pytest.approx(repair / (devices * (devices - 1) * loss) * a_year)
        assert eq2["verdict"] == "holds"
        # One rebuilding reads devices - 1 times the size; the data are lost when it fails, or another device does.
        others = (devices - 1) * per_year / repair
        lost = (others + 1 - math.exp(-(devices - 1) * unreadable)) / (1 + others)
        simulated = the_fact(results, "iosig-fig12", rf"1 TB on {name}.* lasts, simulated")
        assert simulated["found"] == pytest.approx(a_year / (devices * per_year * lost), rel=0.02)
        assert simulated["verdict"] == "differs"
    matches = facts_of(results, "iosig-fig12")
    assert [f["verdict"] for claim, f in matches.items() if "Markov chain" in claim] == ["holds"]


def test_table2_is_the_printed_one(results: Path) -> None:
    verdicts = [fact["verdict"] for fact in facts_of(results, "iosig-table2").values()]
    assert verdicts == 8 * ["by construction"] + 5 * ["holds"]


def drawn(id_: str, directory: Path) -> list[Panel]:
    with mock.patch.dict(os.environ, {"IOSIG_COMMAND": str(BUILD / "bin" / "iosig")}):
        return cli.artefacts()[id_].run(Setting(Source.VIRTUAL, True, directory, print)).panels


def test_fig11b_draws_what_is_published_of_a_parameter_set_in_its_colour(tmp_path: Path) -> None:
    (panel,) = drawn("iosig-fig11b", tmp_path)
    colours = dict(zip([curve.name for curve in panel.curves], panel.colours(), strict=True))
    for name, place in (("ps1", "nfs"), ("ps2", "raid1"), ("ps3", "nvram"), ("ps4", "ramdisk")):
        assert colours[f"{name}, published"] == colours[f"{name}, on /paper/{place}"]
    assert len(set(colours.values())) == 5 and "black" not in colours.values()
    (least,) = [curve for curve in panel.curves if curve.look == Look.PUBLISHED_LEAST]
    assert (least.name, list(least.y)) == ("none, published: more", [300])


def test_table2_has_a_cross_for_every_dot(tmp_path: Path) -> None:
    for panel in drawn("iosig-table2", tmp_path):
        dots = {curve.name: list(curve.x) for curve in panel.curves if curve.look == Look.MEASURED}
        crosses = {curve.name: list(curve.x) for curve in panel.curves if curve.look == Look.PUBLISHED}
        assert crosses == {f"{name}, Table 2": ["ramdisk", "nvram", "raid1", "hdd", "nfs"] for name in dots}


def test_fig1_counts_56_bytes_for_an_access_and_compares_algorithm_1_with_itself(results: Path) -> None:
    rows = json.loads((results / "pattern-fig1" / "result.json").read_text())["data"]
    for row in rows:
        assert row["rate"] == pytest.approx(56 * row["entries"] / row["bytes"])
        # 16 x 16 x 16 x 32 sites on 2 x 2 x 1 x 4 ranks: rows of 8 sites in x; two buffers of 4096; and a header
        assert row["entries"] == {"MILC A": 16384, "MILC B": 32, "MILC C": 48}.get(row["name"], row["entries"])
    ours = {row["name"]: row["rate"] for row in rows if row["by"].startswith("Algorithm 1")}
    published = {"MILC A": 37.0, "MILC C": 3.6, "MILC B": 3.0, "Pagoda": 2.9}
    for name, rate in published.items():
        fact = the_fact(results, "pattern-fig1", f"{name}: rate of the index, each rank by Algorithm 1")
        near = abs(ours[name] / rate - 1) <= 0.1
        assert (fact["published"], fact["found"]) == (rate, pytest.approx(ours[name]))
        assert fact["verdict"] == ("holds" if near else "differs")
    order = the_fact(results, "pattern-fig1", "from the highest rate")
    assert order["published"] == ", ".join(published)
    assert order["found"] == ", ".join(sorted(published, key=lambda name: -ours[name]))
    assert order["verdict"] == "differs"


@pytest.mark.parametrize(
    ("name", "merged"), [("NERSC", "holds"), ("LANL 1", "holds"), ("LANL 3", "holds"), ("BTIO", "differs")]
)
def test_fig1_folds_the_ranks_own_patterns_and_says_what_their_accesses_in_turn_give(
    results: Path, name: str, merged: str
) -> None:
    fact = the_fact(results, "pattern-fig1", f"^{name}: patterns")
    assert (fact["published"], fact["verdict"]) == (1, merged)
    assert (fact["found"] == 1) == (merged == "holds") and fact["judged"].endswith("in turn: 1")


def test_what_is_published_stands_over_its_bar_and_bars_begin_at_1(tmp_path: Path) -> None:
    (panel,) = drawn("pattern-fig1", tmp_path)
    algorithm1, *_, published = panel.curves
    bars = dict(zip(algorithm1.x, panel.bar_places(algorithm1)[0], strict=True))
    assert panel.bar_places(published)[0] == [bars[word] for word in published.x]
    assert len(set(panel.colours())) == 4 and panel.colours()[-1] == "black"
    assert panel.least() == 1.0
    figure = Figure()
    plot_panels(figure, [panel])
    assert figure.axes[0].get_ylim()[0] == 1.0 and "56 bytes" in figure.axes[0].get_title()


def test_fig16_and_fig20_draw_every_access_from_its_first_to_its_last_byte(tmp_path: Path) -> None:
    a, _, b, c = drawn("pattern-fig16", tmp_path)
    assert [sum(len(curve.x) for curve in panel.curves) for panel in (a, b, c)] == [16384, 32, 48]
    assert [len(set(panel.colours())) for panel in (a, b, c)] == [16, 16, 16]
    places = [set(zip(curve.x, curve.y, strict=True)) for curve in a.curves]
    assert len(set.union(*places)) == 16384  # no rank's writes lie over another's
    lattice_mb = 16 * 16 * 16 * 32 * 288 / 2**20
    for panel, unit in ((a, 1024), (b, 1)):  # every byte once
        lengths = [end - begin for curve in panel.curves for begin, end in zip(curve.y, curve.high, strict=True)]
        assert sum(lengths) == pytest.approx(lattice_mb * unit)
    assert all(list(curve.y).count(0) == 1 for curve in c.curves)
    pagoda, _, strides, in_one = drawn("pattern-fig20", tmp_path)
    assert [len(set(panel.curves[0].y)) for panel in (strides, in_one)] == [11, 2]
    assert len(pagoda.curves) == 1 and not pagoda.sizes()


def test_an_older_result_is_replaced(results: Path) -> None:
    (results / "iosig-fig11a" / "data.csv").write_text("older")
    told = repro("run", "iosig-fig11a", "--output", results)
    assert told.status == 0 and "of 3 published facts 2 hold, 1 by construction" in told.out
    assert (results / "iosig-fig11a" / "data.csv").read_text() != "older"
    assert {path.name for path in results.iterdir()} == {*IDS, "told.json"}


def test_what_is_no_result_is_neither_replaced_nor_mixed_with_one(tmp_path: Path) -> None:
    mine = tmp_path / "iosig-table2" / "thesis.tex"
    mine.parent.mkdir()
    mine.write_text("mine")
    told = repro("run", "iosig-table2", "--output", tmp_path)
    assert told.status == 4 and "'thesis.tex', which is no result" in told.err
    assert [path.name for path in mine.parent.iterdir()] == ["thesis.tex"]
    assert mine.read_text() == "mine"


def test_a_directory_with_the_name_of_a_result_is_no_result(tmp_path: Path) -> None:
    mine = tmp_path / "iosig-fig11a" / "data.csv" / "mine"
    mine.mkdir(parents=True)
    told = repro("run", "iosig-fig11a", "--output", tmp_path)
    assert told.status == 4 and "'data.csv', which is no result" in told.err
    assert mine.is_dir()


def test_what_comes_into_the_directory_during_a_run_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "iosig-fig11a" / "notes.txt"
    write_result = cli.write_result

    def write_while_somebody_notes(*words: Any) -> None:
        mine.parent.mkdir()
        mine.write_text("mine")
        write_result(*words)

    monkeypatch.setattr(cli, "write_result", write_while_somebody_notes)
    cli.run_one(cli.artefacts()["iosig-fig11a"], Source.VIRTUAL, True, tmp_path)
    assert mine.read_text() == "mine"
    assert (mine.parent / "result.json").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["iosig-fig11"], "'iosig-fig11' is no artefact; did you mean 'iosig-fig11"),
        (["h"], "see iosig repro list"),
        (["iosig-fig12", "--source", "machine"], "iosig-fig12 has no source 'machine', only virtual"),
        (["iosig-fig6", "--source", "moon"], "moon"),
        ([], "ID"),
    ],
)
def test_wrong_usage_names_the_word_and_writes_nothing(tmp_path: Path, words: list[str], message: str) -> None:
    told = repro("run", *words, "--output", tmp_path / "out")
    assert told.status == 2 and message in told.err
    assert not (tmp_path / "out").exists()


def test_all_means_all_that_have_the_source() -> None:
    in_lab = [id_ for id_ in IOSIG_IDS if id_ != "iosig-fig12"]
    assert [artefact.id for artefact, _ in cli.chosen(["all"], Source.LAB)] == in_lab + DISK_IDS
    assert [artefact.id for artefact, _ in cli.chosen(["all"], None)] == IDS


def test_an_artefact_runs_on_the_first_source_that_it_has() -> None:
    chosen = cli.chosen(["iosig-fig6", "pattern-fig15"], None)
    assert [source for _, source in chosen] == [Source.VIRTUAL, Source.MACHINE]


def test_figs_13_to_15_are_replayed_on_this_machine(tmp_path: Path) -> None:
    told = repro("run", *REPLAYED_IDS, "--quick", "--output", tmp_path)
    assert told.status in (0, 1), told.err  # times may differ
    assert {path.name for path in tmp_path.iterdir()} == set(REPLAYED_IDS)
    for id_ in REPLAYED_IDS:
        assert (tmp_path / id_ / f"{id_}.png").read_bytes().startswith(b"\x89PNG")
        document = json.loads((tmp_path / id_ / "result.json").read_text())
        assert document["source"] == "machine" and "--quick" in document["setup"]
    writes = pd.read_csv(tmp_path / "pattern-fig13" / "data.csv")
    assert set(writes["form"]) == {"pattern", "traditional", "one shared file"}
    assert (writes["bytes_per_s"] > 0).all() and (writes["cpu_ns_per_write"] > 0).all()
    reads = pd.read_csv(tmp_path / "pattern-fig14" / "data.csv").set_index(["place", "form", "count"])
    for readers in ("uniform", "non-uniform"):
        memory = reads["memory_bytes"][readers]
        assert memory["traditional"].max() == 64 * 8 * 512  # a node of a map for each of 8 x 512 writes
        assert memory["pattern"].max() < 1000 * 8  # not for each
    index = pd.read_csv(tmp_path / "pattern-fig15" / "data.csv").set_index(["form", "count"])
    (bytes_of_one_nest,) = set(index["memory_bytes"]["patterns with ranks as ids"])  # whatever it stands for
    assert bytes_of_one_nest < 1000
    assert the_fact(tmp_path, "pattern-fig15", "an entry of the index")["found"] == pytest.approx(56, abs=0.01)
    assert the_fact(tmp_path, "pattern-fig15", "index of entries")["found"] == pytest.approx(7, abs=0.01)
    untested = the_fact(tmp_path, "pattern-fig15", "on disk, at most")
    assert (untested["verdict"], untested["found"]) == ("untested", "-")


def test_an_output_that_cannot_be_written_is_the_systems_refusal(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    told = repro("run", "iosig-table2", "--output", tmp_path / "file" / "out")
    assert told.status == 4 and str(tmp_path / "file") in told.err
    assert told.err.count("\n") == 1


# --- real storage -----------------------------------------------------------------------------------------------------


@pytest.fixture
def two_mounts(iosig: Iosig, tmp_path: Path) -> Iterator[list[Path]]:
    """A slow persistent mount point and a fast one in memory, as the description says."""
    slow = tmp_path / "slow"
    slow.mkdir()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as fast:
        text = 'schema = "iosig.storage/1"\n'
        for path, name, kind, rate in ((slow, "disk", "hdd", "100MB/s"), (fast, "memory", "ram", "2GB/s")):
            text += f'[[mount_point]]\npath = "{path}"\ndevice = "{name}"\npersistent = {str(kind == "hdd").lower()}\n'
            text += f'[[device]]\nname = "{name}"\nkind = "{kind}"\nwrite_bandwidth = "{rate}"\n'
        (tmp_path / "storage.toml").write_text(text)
        iosig.env["IOSIG_STORAGE"] = str(tmp_path / "storage.toml")
        yield [slow, Path(fast)]


def left_in(mount: Path) -> list[str]:
    return [str(path) for path in mount.rglob("*")]


def test_the_picture_program_runs_on_this_machine_and_leaves_nothing(
    iosig: Iosig, two_mounts: list[Path], tmp_path: Path
) -> None:
    words = ("iosig-fig11b", "--quick", "--source", "machine", "--output", tmp_path / "out")
    (run,) = iosig.json("repro", "run", *words, check=None)["runs"]
    facts = {fact["claim"].split(" is put on")[0]: fact for fact in run["facts"] if "is put on" in fact["claim"]}
    assert facts["ps4 (no constraint)"]["found"] == f"ram ({two_mounts[1]})"
    assert facts["ps4 (no constraint)"]["verdict"] == "holds"
    assert facts["ps1 (global)"]["verdict"] == "untested"
    assert run["setup"].startswith("--quick: picture of 16MB")
    rows = json.loads((tmp_path / "out" / "iosig-fig11b" / "result.json").read_text())["data"]
    assert {(row["run"], row["mount_point"]) for row in rows} == {
        ("none", str(two_mounts[0])),
        ("ps3", str(two_mounts[0])),
        ("ps4", str(two_mounts[1])),
    }
    assert all(row["run_s"] > 0 for row in rows)
    assert left_in(two_mounts[0]) + left_in(two_mounts[1]) == []


def test_an_interrupted_run_leaves_neither_scratch_data_nor_half_a_result(
    iosig: Iosig, two_mounts: list[Path], tmp_path: Path
) -> None:
    words = ["repro", "run", "iosig-fig11b", "--quick", "--source", "machine", "--output", str(tmp_path / "out")]
    command = [str(BUILD / "bin" / "iosig"), *words]
    process = subprocess.Popen(command, env=iosig.env, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stderr is not None
    assert any(line.startswith("iosig-fig11b: divide") for line in process.stderr)  # read up to there
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert process.wait(timeout=60) == 130
    assert "nothing of the unfinished result is kept" in process.stderr.read()
    assert list((tmp_path / "out").iterdir()) == []
    assert left_in(two_mounts[0]) + left_in(two_mounts[1]) == []


def test_what_the_probe_notes_of_a_measurement_is_told(tmp_path: Path) -> None:
    command, description = tmp_path / "iosig", tmp_path / "storage.toml"
    command.write_text(f"""#!/bin/sh
echo 'iosig: note: the machine was busy (load 9.0 on 2 processors)' >&2
echo 'iosig: note: wrote {description}; remove it to undo' >&2
""")
    command.chmod(0o755)
    lines: list[str] = []
    with mock.patch.dict(os.environ, {"IOSIG_COMMAND": str(command)}):
        notes = machine.probe(Setting(Source.LAB, True, tmp_path, lines.append), description, "--mount", "/a")
    assert notes == ["the machine was busy (load 9.0 on 2 processors)"]
    assert lines == ["measuring the storage: --mount /a", *notes]
    found = machine.Machine(description, mock.Mock(), {}, {}, notes)
    assert found.noted("1 GB") == f"1 GB; {notes[0]}"


def test_the_order_of_fig11_is_judged_among_the_kinds_that_are_here() -> None:
    cli.artefacts()
    from repro import iosig_fig11

    kinds = {"/disk": "hdd", "/net": "network", "/raid": "raid1", "/ssd": "ssd", "/shm": "ram"}
    known = machine.Machine(Path(), mock.Mock(), kinds, {}, [])

    def verdict(**run_s: float) -> tuple[str, object, object]:
        places = {"none": "/disk", "ps1": "/net", "ps2": "/raid", "ps3": "/ssd", "ps4": "/shm"}
        rows = [(run, 512 << 10, s, places[run]) for run, s in run_s.items()]
        data = pd.DataFrame(rows, columns=["run", "chunk_bytes", "run_s", "mount_point"])
        fact = iosig_fig11.measured_order_fact(data, known, "")
        return fact.verdict, fact.published, fact.found

    every = "none ps1 ps2 ps4"
    assert verdict(none=9, ps1=5, ps2=4, ps3=1, ps4=2) == ("holds", every, every)  # /ssd is no NVRAM
    assert verdict(none=9, ps1=5, ps4=2)[0] == "untested"  # one of six orders
    assert verdict(none=4, ps1=5, ps4=2) == ("differs", "none ps1 ps4", "ps1 none ps4")
    assert verdict(none=4, ps3=1)[0] == "untested"


def test_a_busy_machine_is_told_in_the_result(tmp_path: Path) -> None:
    with mock.patch.object(os, "getloadavg", return_value=(99.0, 1.0, 1.0)):
        told = repro("run", "pattern-fig14", "--quick", "--output", tmp_path)
    assert "the machine was busy (load 99.0" in told.err and "the machine was busy" in told.out
    assert "busy" in json.loads((tmp_path / "pattern-fig14" / "result.json").read_text())["setup"]


def test_a_note_on_several_mount_points_is_told_once_without_its_numbers() -> None:
    notes = ["memory is returned: so what", "/a: busy: 90 % of the time", "/b: busy: 80 % of the time", "/b: not known"]
    known = machine.Machine(Path(), mock.Mock(), {"/a": "hdd", "/b": "ssd"}, {}, notes)
    assert known.noted("8 runs") == "8 runs; memory is returned: so what; /a, /b: busy; /b: not known"


def test_a_long_setup_leaves_the_picture_room_and_is_whole_on_the_page(tmp_path: Path) -> None:
    picture, words = mock.Mock(), " ".join(f"word{n}" for n in range(400))
    result = artefact.Result(
        pd.DataFrame({"x": [1]}), [], [Panel("", "x", "y", [Curve("runs", [1], [1.0], Look.MEASURED)])], words
    )
    made = artefact.Artefact("fig0", "title", "section 0", (Source.VIRTUAL,), lambda _: result)
    with mock.patch.object(cli.figures, "write_picture", picture):
        cli.write_result(tmp_path, made, Setting(Source.VIRTUAL, False, tmp_path, print), result)
    assert picture.call_args.args[2].count("\n") == 5 and "word399" not in picture.call_args.args[2]
    assert "word399" in (tmp_path / "fig0.html").read_text()


def test_the_rate_of_writes_lies_within_its_spread(tmp_path: Path) -> None:
    rate = machine.write_rate(str(tmp_path), 4096, 0.05)
    assert 0 < rate.low <= rate.mean <= rate.high


def test_a_figure_has_one_colour_and_one_legend_entry_for_a_mount_point(tmp_path: Path) -> None:
    panels = drawn("iosig-fig6", tmp_path)
    figure = Figure()
    plot_panels(figure, panels)
    colours: dict[str, set[str]] = {}
    entries: list[str] = []
    for axes, panel in zip(figure.axes, panels, strict=True):
        for curve, line in zip(panel.curves, axes.lines, strict=False):
            colours.setdefault(curve.kind, set()).add(line.get_color())
        legend = axes.get_legend()
        entries += [text.get_text() for text in legend.get_texts()] if legend else []
    assert len(colours) == 6 and all(len(each) == 1 for each in colours.values())
    assert len({colour for (colour,) in colours.values()}) == 6
    assert len(entries) == len(set(entries)) == 7  # and the mark of the crossing
    shown = [trace.name for trace in explore_panels(panels).data if trace.showlegend]
    assert sorted(shown) == sorted(entries)


@pytest.mark.parametrize(
    ("right", "of", "chance", "verdict"),
    [
        (5, 5, 1 / 2, "holds"),  # 1 of 32
        (4, 4, 1 / 2, "untested"),  # 1 of 16
        (4, 5, 1 / 2, "differs"),
        (0, 0, 1 / 2, "untested"),
        (3, 3, 1 / 3, "holds"),  # 1 of 27
        (2, 2, 1 / 3, "untested"),  # 1 of 9
    ],
)
def test_what_guessing_gives_is_not_called_tested(right: int, of: int, chance: float, verdict: str) -> None:
    assert artefact.counted("", "", right, of, chance).verdict == verdict


def test_three_quarters_of_eight_by_chance() -> None:
    outcomes = [sum(tosses) for tosses in itertools.product((0, 1), repeat=8)]
    by_hand = sum(heads >= 6 for heads in outcomes) / len(outcomes)
    assert artefact.guessed(6, 8, 1 / 2) == pytest.approx(by_hand)
    assert artefact.counted("", "", 6, 8, 1 / 2, 0.75).verdict == "untested"  # 37 of 256


def test_what_can_only_hold_is_no_evidence_and_differs_when_it_does_not() -> None:
    true, false = artefact.same("", "", 1, 1), artefact.same("", "", 1, 2)
    assert artefact.by_construction(true, "why").verdict == "by construction"
    assert artefact.by_construction(false, "why").verdict == "differs"


# --- verbs that other programs provide --------------------------------------------------------------------------------


def script(directory: Path, name: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text('#!/bin/sh\necho "$IOSIG_COMMAND|$*"\nexit 7\n')
    (directory / name).chmod(0o755)


def test_a_verb_of_another_program_in_path_is_run_with_its_arguments(iosig: Iosig, tmp_path: Path) -> None:
    script(tmp_path / "bin", "iosig-hello")
    iosig.env["PATH"] = f"{tmp_path / 'bin'}:{iosig.env['PATH']}"
    done = iosig("hello", "--json", "two words", check=7)
    assert done.stdout == f"{(BUILD / 'bin' / 'iosig').resolve()}|--json two words\n"


def test_our_own_verbs_and_relative_directories_of_path_are_never_taken_from_others(
    iosig: Iosig, tmp_path: Path
) -> None:
    for name in ("iosig-status", "iosig-hello"):
        script(tmp_path / "bin", name)
    iosig.env["PATH"] = f"{tmp_path / 'bin'}:{iosig.env['PATH']}"
    iosig("status", check=0)
    iosig.env["PATH"] = "bin:"
    assert "unknown command 'hello'" in iosig("hello", check=2, cwd=tmp_path).stderr


def test_the_command_knows_the_words_of_the_python_packages_verbs(iosig: Iosig, tmp_path: Path) -> None:
    script = tmp_path / "completion"
    iosig("completion", "bash", "--output", script)
    for verb, app in (("repro", cli.app), ("plot", plot.app)):
        group = typer.main.get_command(app)
        assert isinstance(group, typer.core.TyperGroup)
        for name, command in group.commands.items():
            asked = (
                f'source {script}; COMP_WORDS=(iosig {verb} {name} ""); COMP_CWORD=3; _iosig; echo ${{COMPREPLY[*]}}'
            )
            told = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True).stdout.split()
            options = {word for parameter in command.params for word in parameter.opts if word.startswith("--")}
            assert {word for word in told if word.startswith("--")} - {"--help"} == options, (verb, name)
            ids = ["all", *sorted(IDS + DOE_IDS + REPLAYED_IDS + DISK_IDS)] if name == "run" else []
            assert [word for word in told if not word.startswith("-")] == ids
    for verb, app in (("report", report.app), ("generate", generate.app)):
        asked = f'source {script}; COMP_WORDS=(iosig {verb} ""); COMP_CWORD=2; _iosig; echo ${{COMPREPLY[*]}}'
        told = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True).stdout.split()
        parameters = typer.main.get_command(app).params
        options = {word for parameter in parameters for word in parameter.opts if word.startswith("--")}
        assert {word for word in told if word.startswith("--")} - {"--help"} == options
    iosig("man", tmp_path / "man1")
    assert "iosig repro run" in (tmp_path / "man1" / "iosig-repro.1").read_text().replace("\\-", "-")
    assert "iosig repro run" not in iosig("--help").stdout and "repro  " in iosig("--help").stdout


def test_a_mistyped_verb_is_offered_the_python_packages_verbs(iosig: Iosig) -> None:
    assert "Did you mean 'repro'" in iosig("repo", check=2).stderr


def test_without_the_python_package_its_verbs_say_how_to_get_it(iosig: Iosig, tmp_path: Path) -> None:
    alone = tmp_path / "iosig"
    try:
        alone.hardlink_to(iosig.binary)
    except OSError:
        shutil.copy2(iosig.binary, alone)
    done = subprocess.run([alone, "repro", "list"], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
    assert done.returncode == 2
    assert "comes with the Python package iosig" in done.stderr


@pytest.mark.parametrize("verb", ["export-parquet", "generate", "plot", "query-sql", "report", "repro"])
def test_an_interruption_while_packages_are_imported_ends_a_verb_without_a_word(tmp_path: Path, verb: str) -> None:
    for package in ("typer", "pyarrow", "pandas"):
        (tmp_path / f"{package}.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([BUILD / "bin" / f"iosig-{verb}", "--help"], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.fixture
def slow_disk_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory in which slow disks are made; nothing of them is left."""
    if why := slow_disk.refused():
        pytest.skip(why)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()
    assert list(tmp_path.iterdir()) == []


def test_a_slow_disk_is_removed_when_who_holds_it_has_ended(slow_disk_tools: Path) -> None:
    """As a replay that was killed a moment ago."""
    with slow_disk.slow_disk(16 << 20) as disk:
        holder = subprocess.Popen(["sleep", "1"], cwd=disk)
    assert holder.wait() == 0


def test_a_slow_disk_is_removed_when_an_interruption_comes_right_after_a_step(
    slow_disk_tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its loop device has a name only then."""
    for step in ("slowdisk", "losetup", "mkfs.ext4", "mount"):

        def interrupted(*words: object, step: str = step) -> str:
            said = machine.call(*words)
            if Path(str(words[0])).name == step:
                raise KeyboardInterrupt
            return said

        monkeypatch.setattr(slow_disk, "call", interrupted)
        with pytest.raises(KeyboardInterrupt), slow_disk.slow_disk(16 << 20):
            pass
        assert list(slow_disk_tools.iterdir()) == [], step


def test_a_file_as_output_is_named_with_what_to_do(tmp_path: Path) -> None:
    mine = tmp_path / "thesis.tex"
    mine.write_text("mine")
    told = repro("run", "iosig-table2", "--output", mine)
    assert told.status == 4 and f"{mine} is no directory; move it away or give --output" in told.err
    assert mine.read_text() == "mine"
