"""`iosig plan`: what it reads, prints, writes and refuses."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from conftest import ROOT, Iosig

SERVERS = ROOT / "examples" / "hybrid-servers" / "servers.toml"
REGION = 64 << 20


def accesses(path: Path, count: int = 2000) -> Path:
    """Reads of 512 KB by 32 processes: 7 of 10 in region 3, from 600 s on in region 11, the others in any of 16."""
    rows = ["path,kind,offset,length,start_s,rank"]
    for n in range(2 * count):
        region = (3 if n < count else 11) if n % 10 < 7 else n * 7 % 16
        rows.append(
            f"/data/field,read,{region * REGION + n * (512 << 10) % REGION},{512 << 10},{600 * n / count},{n % 32}"
        )
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("algorithm", ["ours", "paper"])
def test_the_hot_region_is_on_the_fast_servers(iosig: Iosig, tmp_path: Path, algorithm: str) -> None:
    trace = accesses(tmp_path / "accesses.csv")
    plan = iosig.json("plan", "--trace", trace, "--storage", SERVERS, "--algorithm", algorithm)
    assert plan["schema"] == "iosig.plan/1" and plan["algorithm"] == algorithm
    assert [file["path"] for file in plan["files"]] == ["/data/field"]
    assert plan["servers"]["processes"] == 32 and plan["servers"]["processes_per_node"] == 1
    assert [len(window["placements"]) for window in plan["windows"]] == [16, 16]
    assert [sum(p["requests"] for p in window["placements"]) for window in plan["windows"]] == [2000, 2000]
    for window, hot in zip(plan["windows"], (3, 11), strict=True):
        assert window["placements"][hot]["stripe_bytes"][1] > 0
        assert window["seconds"] < window["home_s"]
    for move in plan["windows"][1]["moves"]:
        before, after = (window["placements"][move["region"]]["stripe_bytes"] for window in plan["windows"])
        assert (move["from"], move["to"]) == (before, after)
    said = iosig("plan", "--trace", trace, "--storage", SERVERS, "--algorithm", algorithm).stdout
    assert "  region 3: 7" in said and " of ssd; stripes of " in said


def test_a_plan_and_its_map_are_written_and_explained_again(iosig: Iosig, tmp_path: Path) -> None:
    trace, plan, table = accesses(tmp_path / "a.csv"), tmp_path / "a.plan", tmp_path / "a.map"
    first = iosig("plan", "--trace", trace, "--storage", SERVERS, "-o", plan, "--map", table, "--dry-run")
    assert "would write" in first.stderr and not plan.exists() and not table.exists()
    how = ["--map", table, "--application", "sim", "--simulate"]
    done = iosig("plan", "--trace", trace, "--storage", SERVERS, "-o", plan, *how)
    explained, simulated = done.stdout.split("simulated, and with ")
    assert done.stderr.count("wrote") == 2 and explained == first.stdout
    rows = [line.split("  ")[-1] for line in simulated.splitlines()[2:]]
    assert [float(gain.rstrip(" %")) > 100 for gain in rows] == [True, True, True]  # two windows, all
    assert iosig("plan", "--show", plan).stdout == explained
    assert "need --trace" in iosig("plan", "--show", plan, "--simulate", check=2).stderr
    assert len(iosig("plan", "--show", plan, "--plot").stdout.splitlines()) == 4
    assert "--window" in iosig("plan", "--show", plan, "--window", "1s", check=2).stderr

    document = json.loads(plan.read_text())
    with sqlite3.connect(table) as database:
        keys = database.execute("SELECT application, processes, file, windows FROM placement").fetchall()
        rows = database.execute("SELECT offset, target FROM region ORDER BY id").fetchall()
    assert keys == [(b"sim", 32, b"/data/field", 2)]
    assert [row[0] for row in rows] == 2 * [n * REGION for n in range(16)]
    moved = {move["region"] for move in document["windows"][1]["moves"]}
    assert {n for n in range(16) if rows[16 + n][1] == b"r%d-w1" % n} == moved

    again = iosig.json("plan", "--trace", trace, "--storage", SERVERS, "--current", plan, "--simulate")
    assert again["simulation"]["baseline"] == "current"
    before = document["windows"][1]["placements"]
    assert all(move["from"] == before[move["region"]]["stripe_bytes"] for move in again["windows"][0]["moves"])
    plan.write_text(plan.read_text().replace('"sim"', '"sin"'))
    assert "checksum: does not agree" in iosig("plan", "--show", plan, check=3).stderr
    table.write_bytes(table.read_bytes()[:5000])
    refused = iosig("plan", "--trace", trace, "--storage", SERVERS, "--map", table, check=3).stderr
    assert str(table) in refused


def windows_of(table: Path) -> list[dict[tuple[bytes, int], tuple[bytes, bytes]]]:
    """Stripes and target of each region, by file and number, for each window of a region map."""
    with sqlite3.connect(table) as database:
        rows = database.execute(
            "SELECT number, file, region.id & 0xffffffff, stripes, target "
            "FROM region JOIN span ON span.id = region.id >> 32 JOIN placement ON placement.id = span.placement"
        ).fetchall()
    windows: list[dict[tuple[bytes, int], tuple[bytes, bytes]]] = [{} for _ in range(1 + max(row[0] for row in rows))]
    for number, file, region, stripes, target in rows:
        windows[number][file, region] = (stripes, target)
    return windows


def test_a_map_goes_on_where_the_current_plan_ends(iosig: Iosig, tmp_path: Path) -> None:
    trace, first, second, table = (tmp_path / name for name in ("a.csv", "1.plan", "2.plan", "a.map"))
    accesses(trace)
    how = ["plan", "--trace", trace, "--storage", SERVERS, "--application", "sim"]
    continued = [*how, "--current", first, "-o", second, "--map", table]
    iosig(*how, "-o", first, "--map", table)
    untouched = table.read_bytes()
    with trace.open("a") as lines:  # another file comes into use
        lines.writelines(line.replace("/data/field", "/data/new") for line in trace.read_text().splitlines(True)[1:])
    assert "after the earlier ones" in iosig(*continued, "--dry-run").stderr
    assert table.read_bytes() == untouched and not second.exists()

    iosig(*continued)
    windows, plan = windows_of(table), json.loads(second.read_text())
    assert len(windows) == 4
    for number, window in enumerate(plan["windows"]):
        moved = {move["region"] for move in window["moves"]}
        for n, region in enumerate(plan["regions"]):
            key = (plan["files"][region["file"]]["path"].encode(), region["number"])
            before, after = windows[1 + number].get(key), windows[2 + number][key]
            is_moved = n in moved or before is None
            assert (after == before) is not is_moved
            if is_moved:
                assert after[1] == b"r%d-w%d" % (key[1], 2 + number)

    changed, untouched = second.read_bytes(), table.read_bytes()  # the map has left the first plan behind
    refused = iosig(*continued, check=3).stderr
    assert str(table) in refused and "than the current plan" in refused
    assert table.read_bytes() == untouched and second.read_bytes() == changed
    other = iosig(*continued, "--processes", "4", check=1).stderr
    assert "'sim' with 4 processes" in other and "'sim' with 32 processes" in other
    missing = [*continued[:-1], tmp_path / "none.map"]
    said = iosig(*missing, check=4).stderr
    assert not (tmp_path / "none.map").exists()
    iosig(*said.strip().rpartition("iosig ")[2].split())  # the plan has all that the map needs
    iosig(*missing)
    assert windows_of(tmp_path / "none.map") == windows


def test_a_map_keeps_what_the_current_plan_does_not_know(iosig: Iosig, tmp_path: Path) -> None:
    trace, first, other, table = (tmp_path / name for name in ("a.csv", "1.plan", "other.csv", "a.map"))
    accesses(trace)
    other.write_text(trace.read_text().replace("/data/field", "/data/new"))
    how = ["--storage", SERVERS, "--application", "sim", "--map", table]
    iosig("plan", "--trace", trace, "-o", first, *how)
    iosig("plan", "--trace", other, *how)
    stored = table.read_bytes()
    refused = iosig("plan", "--trace", other, "--current", first, *how, check=3).stderr
    assert str(table) in refused and "/data/new" in refused and table.read_bytes() == stored


def test_a_trace_and_its_csv_give_the_same_plan(iosig: Iosig, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys\n"
        "fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
        "for n in range(40): os.pwrite(fd, b'x' * 65536, n % 4 * 65536)\n"
        "for n in range(20): os.pread(fd, 65536, 196608)\n"
        "os.pread(fd, 10, 1 << 40)\n"  # nothing is there: no request
    )
    trace, data = tmp_path / "trace", tmp_path / "data"
    iosig("trace", "-o", trace, "--", "python3", program, data)
    how = ["--storage", SERVERS, "--files", str(data), "--region-size", "128KB"]
    plan = iosig.json("plan", "--trace", trace, *how)
    assert plan["application"].startswith("python3")
    assert plan["files"] == [{"path": str(data), "bytes": 4 * 65536}]
    assert [p["requests"] for p in plan["windows"][0]["placements"]] == [20, 40]
    assert plan["servers"]["processes"] == 1
    exported = tmp_path / "trace.csv"
    text = iosig("export", trace, "--format", "csv").stdout
    exported.write_text(text)
    assert any(row["path"] == str(data) for row in csv.DictReader(io.StringIO(text)))
    from_csv = iosig.json("plan", "--trace", exported, *how, "--reads")
    assert [p["requests"] for p in from_csv["windows"][0]["placements"]] == [0, 20]


def test_patterns_count_by_their_loops(iosig: Iosig, tmp_path: Path) -> None:
    numbers, pattern = tmp_path / "numbers", tmp_path / "pattern"
    numbers.write_text("".join(f"{n * 4096} 4096\n" for n in range(5000)))
    iosig("pattern", "detect", numbers, "--columns", "logical,length", "--output", pattern)
    how = ["--storage", SERVERS, "--region-size", "1MB", "--writes"]
    with pattern.open("rb") as piped:
        by_loops = iosig.json("plan", "--trace", "-", *how, stdin=piped)
    one_by_one = iosig.json("plan", "--trace", numbers, *how)
    requests = [[p["requests"] for p in plan["windows"][0]["placements"]] for plan in (by_loops, one_by_one)]
    assert requests[0] == requests[1] == 19 * [256] + [136]
    again = iosig.json("plan", "--trace", pattern, *how, "--simulate", "--regions", "adaptive")
    assert [region["length_bytes"] for region in again["regions"]] == 19 * [1 << 20] + [136 * 4096]
    simulation = again["simulation"]
    assert (simulation["requests"], simulation["baseline"]) == ("drawn", "default")
    assert simulation["windows"][0]["bytes"] == 5000 * 4096


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no request"),
        ("offset,length,kind\n", "no request"),
        ("offset,size,kind\n1,2,read\n", "1: expected a header with the column 'length'"),
        ("offset,length\n1,2\n", "1: expected a header with the column 'call' or 'kind'"),
        ("offset,length,kind\n1,2,copy\n", "2: kind 'copy': expected read or write"),
        ("offset,length,kind\n-1,2,read\n", "2: offset '-1': expected a whole number"),
        ("offset,length,kind\n1,2.5,read\n", "2: length '2.5': expected a whole number"),
        ("offset,length,kind,start_s\n1,2,read,soon\n", "2: start_s 'soon': expected a number"),
        ("offset,length,kind,start_s\n1,2,read,nan\n", "the start of a request is no number"),
        ('offset,length,kind,path\n1,2,read,"x\n', "2: a quote is not closed"),
        ("offset,length,kind\n9223372036854775807,1,read\n", "ends beyond 2^63 - 1"),
        ("offset,length,kind\n9223372036854775808,1,read\n", "ends beyond 2^63 - 1"),
        ("offset,length,kind,path\n1,2,read,/a\n1,9223372036854775807,read,/b\n", "a.csv:3: '/b': a request of"),
        ("0 1\n# of a sparse file\n9223372036854775807 1\n", "a.csv:3: 'a.csv': a request of"),
        ("1 2\n3\n", "2: expected offset and length"),
        ("0 1\n4611686018427387904 1\n", "use larger regions"),
    ],
)
def test_bad_requests_are_refused_with_their_place(iosig: Iosig, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    done = iosig("plan", "--trace", tmp_path / "a.csv", "--storage", SERVERS, check=None)
    assert done.returncode in (1, 2, 3)
    assert message in done.stderr and done.stdout == ""


def test_one_request_and_negative_times_are_planned(iosig: Iosig, tmp_path: Path) -> None:
    """Read once from a pipe. A launcher has no rank, and is no process of the run; system files are not planned for."""
    text = '\ufeffstart_s,length,offset,kind,path,rank\n-700,1,0,write,"a, b",0\n-50.5,1,0,write,"a, b",1\n'
    text += "-40,1,0,write,/out,\n-40,99,0,read,/etc/hosts,0\n"
    plan = iosig.json("plan", "--trace", "/dev/stdin", "--storage", SERVERS, input=text)
    assert plan["files"] == [{"path": "/out", "bytes": 1}, {"path": "a,%20b", "bytes": 1}]
    assert [window["start_s"] for window in plan["windows"]] == [-700, -100]
    assert plan["servers"]["processes"] == 2


def test_a_picture_replaces_no_other_file_and_is_not_drawn_by_a_dry_run(iosig: Iosig, tmp_path: Path) -> None:
    how: list[object] = ["plan", "--storage", SERVERS]
    trace, current, picture = tmp_path / "a.png", tmp_path / "b.html", tmp_path / "c.html"
    iosig(*how, "--trace", accesses(trace, 50), "-o", current)
    before = trace.read_bytes(), current.read_bytes()
    for inputs in (["--trace", trace], ["--show", current], ["--trace", trace, "--current", current]):
        for own in inputs[1::2]:
            assert "is the input too" in iosig("plan", *inputs, "--plot", own, check=2).stderr
    for option in ("--output", "--map"):
        done = iosig(*how, "--trace", trace, option, picture, "--plot", picture, check=2)
        assert "both name" in done.stderr and not picture.exists()
    assert (trace.read_bytes(), current.read_bytes()) == before

    done = iosig(*how, "--trace", trace, "--plot", picture, "--dry-run")
    assert "would write" in done.stderr and "window 0" in done.stdout and not picture.exists()
    drawn = iosig(*how, "--trace", trace, "--plot", picture, "--simulate", "--json")
    assert picture.exists() and "simulation" in json.loads(drawn.stdout)
    assert "BASELINE" in iosig(*how, "--trace", trace, "--plot", picture, "--simulate").stdout


NO_UTF8 = os.fsdecode(b"so\xfflver\n")


@pytest.mark.parametrize("how", [(), ("--application", NO_UTF8)])
def test_a_map_goes_on_whatever_the_name_of_the_program(iosig: Iosig, tmp_path: Path, how: tuple[str, ...]) -> None:
    """A plan is JSON, which holds no bytes that are no UTF-8: it came back with another name than the map's."""
    program = tmp_path / NO_UTF8
    shutil.copy("/bin/dd", program)
    iosig("trace", "-o", tmp_path / "t", "--", program, "if=/dev/zero", f"of={tmp_path / 'out'}", "bs=4096", "count=9",
          "status=none")  # fmt: skip
    plan, table = tmp_path / "a.plan", tmp_path / "a.map"
    given = ["plan", "--trace", tmp_path / "t", "--storage", SERVERS, "--map", table, *how]
    iosig(*given, "-o", plan)
    assert json.loads(plan.read_text())["application"] == "so\\xfflver\\x0a"
    iosig(*given, "--current", plan)
    assert len(windows_of(table)) == 2


def test_names_of_classes_do_not_reach_the_terminal_as_they_are(iosig: Iosig, tmp_path: Path) -> None:
    trace, storage, plan = accesses(tmp_path / "a.csv", 50), tmp_path / "s.toml", tmp_path / "a.plan"
    storage.write_text(SERVERS.read_text().replace('class = "hdd"', 'class = "\\u001b[31m"'))
    iosig("plan", "--trace", trace, "--storage", storage, "-o", plan)
    refused = iosig("plan", "--trace", trace, "--storage", SERVERS, "--current", plan, check=2).stderr
    assert "12 \\x1b[31m, 4 ssd" in refused and "\x1b" not in refused
    storage.write_text(SERVERS.read_text().replace('class = "hdd"', 'class = "\u00e9t\u00e9"'))
    picture = iosig("plan", "--trace", trace, "--storage", storage, "--plot").stdout
    assert "?" in picture.splitlines()[1] and picture.isascii()


def test_servers_that_cannot_be_planned_for_are_refused(iosig: Iosig, tmp_path: Path) -> None:
    trace, storage = accesses(tmp_path / "a.csv", 50), tmp_path / "s.toml"
    whole = SERVERS.read_text()
    storage.write_text(
        'schema = "iosig.storage/2"\n[[mount_point]]\npath = "/"\ndevice = "d"\n[[device]]\nname = "d"\nkind = "ssd"\n'
    )
    assert "has no [[server]]" in iosig("plan", "--trace", trace, "--storage", storage, check=1).stderr
    storage.write_text(whole.replace('read_startup = "8ms"', 'read_startup = "80ms"', 1))
    assert "class 'hdd': the read start-up" in iosig("plan", "--trace", trace, "--storage", storage, check=3).stderr
    storage.write_text(whole.replace('class = "ssd"', 'class = "hdd2"', 1))
    assert iosig("plan", "--trace", trace, "--storage", storage, "--algorithm", "paper", check=2).stderr
    storage.write_text(whole.replace('capacity = "17MB"', 'capacity = "0B"'))
    plan = iosig.json("plan", "--trace", trace, "--storage", storage)
    assert all(p["stripe_bytes"][1] == 0 for window in plan["windows"] for p in window["placements"])
    for wrong in (["--region-size", "0"], ["--window", "soon"], ["--algorithm", "best"], ["--horizon", "0"]):
        assert iosig("plan", "--trace", trace, "--storage", SERVERS, *wrong, check=2).stderr.startswith("iosig: --")
    before = trace.read_text()
    assert "is the input too" in iosig("plan", "--trace", trace, "--storage", SERVERS, "-o", trace, check=2).stderr
    assert trace.read_text() == before
    assert "--trace is required" in iosig("plan", check=2).stderr


def test_servers_are_listed_by_class_and_shown_one_by_one(iosig: Iosig, tmp_path: Path) -> None:
    rows = [line.split() for line in iosig("storage", "list", "--storage", SERVERS).stdout.splitlines()]
    assert rows[0][:2] == ["SERVERS", "CLASS"]  # no table of mount points, since there are none
    assert [row[:2] for row in rows[1:3]] == [["12", "hdd"], ["4", "ssd"]] and rows[3][0] == "network:"
    shown = iosig("storage", "show", "--storage", SERVERS).stdout
    assert shown.count("\nserver ") == 16 and shown.count("\nnetwork") == 1
    listed = iosig.json("storage", "list", "--storage", SERVERS)
    assert [each["class"] for each in listed["servers"]] == ["hdd"] * 12 + ["ssd"] * 4
    assert listed["servers"][0]["read_startup_s"] == 0.008 and listed["network"]["startup_s"] == 1e-4

    unlike = tmp_path / "unlike.toml"
    unlike.write_text(SERVERS.read_text().replace('read_startup = "8ms"', 'read_startup = "20ms"', 1))
    assert "class 'hdd': the read start-up" in iosig("storage", "list", "--storage", unlike, check=3).stderr


def test_servers_that_were_measured_on_a_busy_machine_are_noted(iosig: Iosig, tmp_path: Path) -> None:
    storage = tmp_path / "storage.toml"
    described = """schema = "iosig.storage/2"
[[device]]
name = "disk"
kind = "hdd"
busy_share = SHARE
"""
    times = "".join(f'{way}_startup = "1ms"\n{way}_bandwidth = "500MB/s"\n' for way in ("read", "write"))
    own = {
        "h0": 'class = "hdd"\ndevice = "disk"',
        "h1": 'class = "hdd"\ndevice = "disk"',
        "s0": f'class = "ssd"\n{times}',
    }
    described += "".join(f'[[server]]\nname = "{name}"\n{keys}\ncapacity = "1TB"\n' for name, keys in own.items())
    for share, notes in ((0.45, 1), (0.03, 0)):
        storage.write_text(described.replace("SHARE", str(share)))
        said = iosig("plan", "--trace", accesses(tmp_path / "a.csv"), "--storage", storage).stderr
        assert (
            said.count("device 'disk' of server 'h0' was measured while other programs kept the machine 45 %") == notes
        )
