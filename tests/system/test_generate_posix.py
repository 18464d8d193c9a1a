"""The level posix: each rank writes to a container through iosig.h, without MPI-IO.

What `iosig container export` makes of it is the file of the level mpiio, byte for byte."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from conftest import Iosig
from generated_programs import EXAMPLES, IOSIG_GENERATE, TEMPLATES, Built, run

BOTH = [".c", ".f90"]
PARTS = ["2,1", "2,2", "5,3,0", "5,3,0", "4,1,2", "1,2,4"]


def exported(iosig: Iosig, container: Path, file: Path) -> bytes:
    file.unlink(missing_ok=True)
    iosig("container", "export", container, file)
    return file.read_bytes()


def failures(done: subprocess.CompletedProcess[str]) -> list[str]:
    return sorted(line.partition(",")[0] for line in done.stdout.splitlines())


@pytest.mark.parametrize("suffix", BOTH)
def test_the_exported_container_is_the_raw_file_whatever_the_ranks(
    built: Built, tmp_path: Path, iosig: Iosig, suffix: str
) -> None:
    for name, ranks, words in (
        ("s3d", 4, [6]),
        ("blocks", 3, [7, "4,3", "0,0", "0,4"]),
        ("parts", 4, PARTS),
    ):
        template = (EXAMPLES if name == "s3d" else TEMPLATES) / (name + suffix)
        container, raw = tmp_path / "container", tmp_path / "raw"
        for level, path in (("posix", container), ("mpiio", raw)):
            run(built(template, level, "openmpi"), "openmpi", ranks, "write", path, *words)
        assert (
            exported(iosig, container, tmp_path / "exported") == raw.read_bytes()
        )  # the container was written before, by another program


@pytest.mark.parametrize("suffix", BOTH)
def test_a_container_is_read_by_any_number_of_ranks(built: Built, tmp_path: Path, suffix: str) -> None:
    program, path = built(TEMPLATES / f"parts{suffix}", "posix", "openmpi"), tmp_path / "container"
    run(program, "openmpi", 4, "write", path, *PARTS)
    for words in (["1,1", "2,1", "5,3,0,1,2,4"], ["2,2", "1,1", "5,3,0", "1,2", "-", "4,5,1,0"]):
        ranks = len(words) - 2
        done = run(built(TEMPLATES / "parts.c", "posix", "openmpi"), "openmpi", ranks, "read", path, *words)
        assert sorted(done.stdout.splitlines()) == [f"{rank}: failed 0, wrong 0" for rank in range(ranks)]


@pytest.mark.parametrize("suffix", BOTH)
def test_what_cannot_be_opened_or_ends_too_early_is_every_ranks_failure(
    built: Built, tmp_path: Path, suffix: str
) -> None:
    program = built(TEMPLATES / f"blocks{suffix}", "posix", "openmpi")
    plain = tmp_path / "plain"
    plain.write_text("an ordinary file")
    for verb, path, rows, said in (
        ("write", tmp_path / "none/f", 7, "file 'f': cannot make"),
        ("read", tmp_path / "none/f", 7, "file 'f': cannot open"),
        ("write", plain, 7, "plain' is not a container"),
        ("write", tmp_path / "f", 7, ""),
        ("read", tmp_path / "f", 9, "data set 'grid': the file ends before the data set does"),
    ):
        done = run(program, "openmpi", 2, verb, path, rows, "0,3", f"3,{rows - 3}")
        assert failures(done) == [f"{rank}: failed {1 if said else 0}" for rank in range(2)]
        assert said in done.stderr
    assert plain.read_text() == "an ordinary file"


@pytest.mark.parametrize("suffix", BOTH)
def test_on_a_full_disk_the_old_container_stays(
    built: Built, full: Path, tmp_path: Path, iosig: Iosig, suffix: str
) -> None:
    program = built(TEMPLATES / f"blocks{suffix}", "posix", "openmpi")

    def written(rows: int) -> subprocess.CompletedProcess[str]:
        third = rows // 3
        blocks = [f"{rank * third},{third}" for rank in range(3)]
        return run(program, "openmpi", 3, "write", full / "f", rows, *blocks)

    def content() -> bytes:
        return exported(iosig, full / "f", tmp_path / "exported")

    subprocess.run(["mount", "-o", "remount,size=1m", full], check=True)
    done = written(90000)  # 12 bytes each; 24 of head; 8192 of each rank for the container itself
    assert failures(done) == [f"{rank}: failed 1" for rank in range(3)]
    assert f"file 'f': the file system has no room for {90000 * 12 + 24 + 3 * 8192} bytes" in done.stderr
    assert not (full / "f").exists()
    for _ in range(2):  # the second one needs what the first one has
        assert failures(written(60000)) == [f"{rank}: failed 0" for rank in range(3)]
    before = content()
    assert failures(written(90000)) == [f"{rank}: failed 1" for rank in range(3)]
    assert content() == before


def test_words_of_a_signature_reach_the_container(tmp_path: Path) -> None:
    template, source = tmp_path / "t.c", tmp_path / "out.c"
    text = (TEMPLATES / "blocks.c").read_text()
    template.write_text(text.replace("file f path(path)", "file f persist totalsize(6GB) path(path)"))
    done = subprocess.run([IOSIG_GENERATE, template, "--level", "posix", "-o", source], capture_output=True, text=True)
    assert done.returncode == 0 and "the hints of 'f' are left out" in done.stderr
    assert source.read_text().count('1, "persist totalsize(6GB)",') == 1  # where it is written
