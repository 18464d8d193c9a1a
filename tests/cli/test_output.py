"""What a person has named as output, and stdout: written to for what it is, and told when that fails."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD, Iosig

NUMBERS = "".join(f"{8 * n}\n" for n in range(100))


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "trace.txt"
    file.write_text(NUMBERS)
    return file


def test_a_pipe_is_written_to_and_stays(iosig: Iosig, trace: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        iosig("pattern", "detect", "--output", pipe, trace)
        assert reader.stdout is not None
        written = reader.stdout.read()
    assert pipe.is_fifo()
    again = tmp_path / "again"
    iosig("pattern", "detect", "--output", again, trace)
    assert written == again.read_bytes()


def test_a_device_is_written_to_and_stays(iosig: Iosig, trace: Path) -> None:
    if not os.access("/dev/full", os.W_OK):
        pytest.skip("needs /dev/full")
    done = iosig("pattern", "detect", "--output", "/dev/full", trace, check=4)
    assert "cannot write '/dev/full'" in done.stderr and done.stdout == ""
    assert Path("/dev/full").is_char_device()
    shown = iosig("pattern", "detect", "--output", "/dev/stdout", trace, errors="replace").stdout
    assert shown.startswith("IOP") and "100 vectors" in shown


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_stays_and_what_it_leads_to_is_written(
    iosig: Iosig, trace: Path, tmp_path: Path, is_there: bool
) -> None:
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "target", tmp_path / "link"
    link.symlink_to(Path("far") / "target")
    if is_there:
        target.write_text("old")
    iosig("pattern", "detect", "--output", link, trace)
    assert link.is_symlink()
    assert iosig("pattern", "expand", target).stdout == NUMBERS
    assert [path.name for path in (tmp_path / "far").iterdir()] == ["target"]


def test_an_output_that_is_an_input_is_refused_unread(iosig: Iosig, trace: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(trace)
    assert "is the input too" in iosig("pattern", "detect", "--output", link, trace, check=2).stderr
    with trace.open() as opened:
        iosig("pattern", "detect", "--output", trace, "-", stdin=opened, check=2)
    assert "is the input too" in iosig("pattern", "merge", "--output", trace, link, trace, check=2).stderr
    assert trace.read_text() == NUMBERS


@pytest.mark.parametrize(
    "words",
    [
        ("iosig", "pattern", "detect"),
        ("iosig", "pattern", "detect", "--json"),
        ("iosig", "pattern", "detect", "--plot"),
        ("iosig", "--help"),
        ("iosig", "completion", "bash"),
        ("workloads", "list"),
        ("workloads", "print", "btio"),
    ],
    ids=" ".join,
)
def test_a_failed_write_to_stdout_is_told_once(iosig: Iosig, trace: Path, words: tuple[str, ...]) -> None:
    if not (BUILD / "bin" / words[0]).exists():
        pytest.skip("bench/workloads is not built")
    command = " ".join([str(BUILD / "bin" / words[0]), *words[1:], *([str(trace)] if "detect" in words else [])])
    for to, why in ((">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")):
        done = subprocess.run(f"{command} {to}", shell=True, stderr=subprocess.PIPE, text=True, env=iosig.env)
        assert done.returncode == 4
        assert why in done.stderr and done.stderr.count("\n") == 1
