"""`iosig query power`: energy from the storage description, by hand's numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conftest import Iosig

COLUMNS = "id,parent,host,pid,tid,rank,layer,call,path,fd,offset,length,start_ns,end_ns,result"
SECOND = 10**9

# Rank 0 writes on /a in [0, 2) and [5, 6), rank 1 in [1, 3); rank 1 reads on /old in [3, 4) and on no mount point.
CALLS = [
    (0, 1, "pwrite", "/a/x", 0, 2),
    (0, 2, "pwrite", "/a/x", 5, 6),
    (1, 1, "pwrite", "/a/y", 1, 3),
    (1, 2, "pread", "/old/z", 3, 4),
    (1, 3, "pread", "/else", 4, 5),
]

STORAGE = """\
schema = "iosig.storage/2"
[[mount_point]]
path = "/a"
device = "sda"
[[mount_point]]
path = "/old"
device = "sdb"
[[device]]
name = "sda"
kind = "ssd"
idle_power = "2W"
active_power = "6W"
[[device]]
name = "sdb"
kind = "hdd"
"""


@pytest.fixture
def asked(iosig: Iosig, tmp_path: Path) -> Path:
    lines = [
        f"{number},0,n{rank},7,7,{rank},,{call},{path},5,0,8,{start * SECOND},{end * SECOND},8"
        for rank, number, call, path, start, end in CALLS
    ]
    (tmp_path / "calls.csv").write_text("\n".join([COLUMNS, *lines, ""]))
    (tmp_path / "storage.toml").write_text(STORAGE)
    iosig("import", tmp_path / "calls.csv", "-o", tmp_path / "job.trace")
    return tmp_path


def test_energy_is_that_of_the_devices_while_busy_and_idle(iosig: Iosig, asked: Path) -> None:
    def ask(*arguments: object) -> dict[str, Any]:
        options = ("--storage", asked / "storage.toml", *arguments)
        return iosig.json("query", "power", asked / "job.trace", *options)

    # Each node has an sda of its own. n0: busy for 3 s, idle for 3 of 6; n1: busy for 2 s, idle for 4.
    (row,) = ask("--stat", "min,mean,p50,max")["rows"]
    assert (row["layer"], row["calls"], row["unknown_calls"]) == ("posix", 5, 2)
    assert (row["active_j"], row["idle_j"], row["energy_j"]) == pytest.approx((30, 14, 44))
    assert (row["wall_s"], row["mean_w"]) == pytest.approx((6, 44 / 6))
    assert [row[name] for name in ("min_j", "mean_j", "p50_j", "max_j")] == pytest.approx([6, 10, 12, 12], rel=0.008)
    assert [(each["devices"], each["host"], each["busy_s"]) for each in row["devices"]] == [
        (["sda"], "n0", 3.0),
        (["sda"], "n1", 2.0),
    ]
    by_rank = {row["rank"]: row for row in ask("--by", "rank")["rows"]}
    assert by_rank[0]["energy_j"] == pytest.approx(6 * 3 + 2 * 3)
    assert by_rank[1]["energy_j"] == pytest.approx(6 * 2)  # its wall is [1, 3)
    by_file = {row["file"]: row for row in ask("--by", "file")["rows"]}
    assert by_file["/old/z"]["energy_j"] is None and by_file["/old/z"]["unknown_calls"] == 1
    listed = ask("--stat", "list", "--top", 2)["list"]
    assert [call["active_j"] for call in listed] == [12, 12] and [call["start_s"] for call in listed] == [0, 1]


def test_unknown_energy_is_said_and_never_zero(iosig: Iosig, asked: Path) -> None:
    told = iosig("query", "power", asked / "job.trace", "--storage", asked / "storage.toml", "--by", "file")
    assert "device 'sdb' has no idle_power and active_power: the energy of 1 call is unknown" in told.stderr
    assert "no mount point of the description: the energy of 1 call is unknown" in told.stderr
    (line,) = (line for line in told.stdout.splitlines() if "/old/z" in line)
    assert line.split().count("unknown") == 3
    nothing = iosig("query", "power", asked / "job.trace", check=2)
    assert "there is no storage description" in nothing.stderr and "--storage" in nothing.stderr
    shown = iosig.json("storage", "show", "/a", "--storage", asked / "storage.toml")["mount_points"][0]["device"]
    assert (shown["idle_power_w"], shown["active_power_w"]) == (2, 6)


def test_times_of_several_nodes_are_said_to_be_of_several_clocks(iosig: Iosig, asked: Path) -> None:
    for arguments in (("--by", "window"), ("--from", "1"), ("--stat", "list")):
        assert "clocks" in iosig("query", "latency", asked / "job.trace", *arguments).stderr
        assert "clocks" not in iosig("query", "latency", asked / "job.trace", *arguments, "--host", "n0").stderr
    assert "clocks" not in iosig("query", "latency", asked / "job.trace").stderr
    assert "--by node" in iosig("query", "power", asked / "job.trace", "--storage", asked / "storage.toml").stderr
