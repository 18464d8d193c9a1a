"""`iosig query --plot`: on the terminal, and as files of the Python package."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Iosig

COLUMNS = "id,parent,host,pid,tid,rank,layer,call,path,fd,offset,length,start_ns,end_ns,result"


@pytest.fixture
def trace(iosig: Iosig, tmp_path: Path) -> Path:
    """Writes of 1000 ns; of 10 reads 9 take 2000 ns and one takes a second."""
    lines = [f"{n},0,n,7,7,,,pwrite,/d/a,5,0,8,{n * 10_000},{n * 10_000 + 1000},8" for n in range(1, 5)]
    lines += [f"{n},0,n,7,7,,,pread,/d/a,5,0,8,{n * 10_000},{n * 10_000 + 2000},8" for n in range(5, 14)]
    lines += ["14,0,n,7,7,,,pread,/d/a,5,0,8,150000,1000150000,8"]
    (tmp_path / "calls.csv").write_text("\n".join([COLUMNS, *lines, ""]))
    iosig("import", tmp_path / "calls.csv", "-o", tmp_path / "job.trace")
    return tmp_path / "job.trace"


def test_a_histogram_has_a_line_for_each_row_and_a_column_for_each_power_of_two(iosig: Iosig, trace: Path) -> None:
    plain = {"LC_ALL": "C", "COLUMNS": "60"}
    lines = iosig("query", "latency", trace, "--plot", env=iosig.env | plain).stdout.splitlines()
    assert len(lines) == 3
    # 1000 ns are below 2^10, 2000 ns below 2^11, and 1 s below 2^30: 21 columns, the last one with 1 of 10 calls.
    assert lines[0] == "posix pread  | @" + " " * 18 + ".| 10"
    assert lines[1] == "posix pwrite |@" + " " * 20 + "| 4"
    assert lines[2].split() == ["512", "ns", "1.07", "s"]


def test_bars_are_as_long_as_their_numbers(iosig: Iosig, trace: Path) -> None:
    plain = {"LC_ALL": "C", "COLUMNS": "60"}
    lines = iosig("query", "calls", trace, "--plot", env=iosig.env | plain).stdout.splitlines()
    bars = {line.split(" |")[0].split()[1]: line.count("#") for line in lines}
    assert bars["pread"] == 60 - len("posix pwrite") - 14 and bars["pwrite"] == round(bars["pread"] * 0.4)
    over_time = iosig("query", "throughput", trace, "--plot", env=iosig.env | plain).stdout.splitlines()
    assert 2 <= len(over_time) <= 51 and all(line.startswith("posix") for line in over_time)


def test_files_are_drawn_by_the_python_package(iosig: Iosig, trace: Path, tmp_path: Path) -> None:
    assert iosig("query", "latency", trace, "--plot", tmp_path / "a.png").stdout == f"{tmp_path / 'a.png'}\n"
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    iosig("query", "throughput", trace, "--by", "window=0.1", "--plot", tmp_path / "a.html")
    assert "plotly" in (tmp_path / "a.html").read_text()


def test_what_cannot_be_drawn_is_refused(iosig: Iosig, trace: Path) -> None:
    assert ".png or .html" in iosig("query", "calls", trace, "--plot", "a.pdf", check=2).stderr
    assert "--stat list" in iosig("query", "calls", trace, "--stat", "list", "--plot", check=2).stderr
    assert "name a file" in iosig("query", "calls", trace, "--json", "--plot", check=2).stderr
    iosig("query", "touched", trace, "--plot", check=2)
