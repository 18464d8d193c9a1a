"""examples/pgm without IOSIG: the picture program itself, held against a NumPy oracle."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from conftest import ROOT

Pixels = NDArray[np.uint8]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    binary = tmp_path_factory.mktemp("pgm") / "pgm"
    flags = ["-std=c17", "-O1", "-Wall", "-Wextra", "-Wno-unknown-pragmas", "-Werror", "-DCHUNK=64KB"]
    subprocess.run(["/usr/bin/gcc", *flags, str(ROOT / "examples/pgm/pgm.c"), "-o", str(binary)], check=True)
    return binary


def run(program: Path, *args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in (program, *args)], capture_output=True, text=True)


def picture(width: int, height: int, seed: int = 0) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, width * height, dtype=np.uint8)


def transformed(program: Path, directory: Path, what: str, header: bytes, pixels: Pixels, *options: object) -> Pixels:
    (directory / "in.pgm").write_bytes(header + pixels.tobytes())
    done = run(program, what, directory / "in.pgm", directory / "out.pgm", *options)
    assert done.returncode == 0, done.stderr
    written = (directory / "out.pgm").read_bytes()
    assert written.startswith(header)
    return np.frombuffer(written[len(header) :], dtype=np.uint8)


def chunks_of(pixels: Pixels, chunk_bytes: int) -> list[bytes]:
    return [pixels[i : i + chunk_bytes].tobytes() for i in range(0, len(pixels), chunk_bytes)]


SIZES = st.integers(1, 40)


@given(width=SIZES, height=SIZES, chunk_bytes=st.integers(1, 700))
@settings(max_examples=25, deadline=None)
def test_divide_puts_even_chunks_before_odd_ones(
    program: Path, tmp_path_factory: pytest.TempPathFactory, width: int, height: int, chunk_bytes: int
) -> None:
    pixels = picture(width, height)
    header = b"P5\n%d %d\n255\n" % (width, height)
    options = ("--chunk", chunk_bytes, "--no-sync")
    out = transformed(program, tmp_path_factory.mktemp("d"), "divide", header, pixels, *options)
    chunks = chunks_of(pixels, chunk_bytes)
    assert out.tobytes() == b"".join(chunks[0::2] + chunks[1::2])


@given(width=SIZES, height=SIZES, chunk_bytes=st.integers(1, 700), seed=st.integers(1, 2**40))
@settings(max_examples=25, deadline=None)
def test_shuffle_permutes_whole_chunks_and_leaves_a_shorter_last_one(
    program: Path, tmp_path_factory: pytest.TempPathFactory, width: int, height: int, chunk_bytes: int, seed: int
) -> None:
    pixels = picture(width, height)
    header = b"P5\n%d %d\n255\n" % (width, height)
    options = ("--chunk", chunk_bytes, "--no-sync", "--seed", seed)
    out = transformed(program, tmp_path_factory.mktemp("s"), "shuffle", header, pixels, *options)
    whole = len(pixels) // chunk_bytes * chunk_bytes
    assert sorted(chunks_of(out[:whole], chunk_bytes)) == sorted(chunks_of(pixels[:whole], chunk_bytes))
    assert out[whole:].tobytes() == pixels[whole:].tobytes()


def test_another_seed_is_another_shuffle_and_the_same_seed_the_same(program: Path, tmp_path: Path) -> None:
    pixels, header = picture(64, 64), b"P5\n64 64\n255\n"

    def shuffled(seed: int) -> bytes:
        return transformed(program, tmp_path, "shuffle", header, pixels, "--chunk", 16, "--seed", seed).tobytes()

    assert shuffled(1) == shuffled(1)
    assert shuffled(1) != shuffled(2)


def test_posterize_leaves_four_levels_evenly_spaced_up_to_white(program: Path, tmp_path: Path) -> None:
    pixels = np.arange(200, dtype=np.uint8)
    out = transformed(program, tmp_path, "posterize", b"P5 # greys\n# up to\n200 1 # wide\n199 ", pixels)
    levels = pixels.astype(int) * 4 // 200
    assert out.tolist() == (levels * 199 // 3).tolist()


def test_a_generated_picture_has_aligned_pixels_and_can_be_read_again(program: Path, tmp_path: Path) -> None:
    assert run(program, "generate", 37, 11, tmp_path / "in.pgm").returncode == 0
    assert (tmp_path / "in.pgm").stat().st_size == 4096 + 37 * 11
    assert run(program, "divide", tmp_path / "in.pgm", tmp_path / "out.pgm").returncode == 0


def test_json_tells_bytes_chunks_and_seconds(program: Path, tmp_path: Path) -> None:
    run(program, "generate", 100, 100, tmp_path / "in.pgm")
    done = run(program, "divide", tmp_path / "in.pgm", tmp_path / "out.pgm", "--chunk", "4KB", "--json")
    told = json.loads(done.stdout)
    assert (told["bytes"], told["chunks"]) == (10000, 3)
    assert 0 < told["writing_s"] <= told["total_s"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "does not begin with P5"),
        (b"P2\n1 1\n255\n0", "does not begin with P5"),
        (b"P5\n0 1\n255\n", "width is no number from 1"),
        (b"P5\n1 -1\n255\n", "height is no number from 1"),
        (b"P5\n1 99999999999999999999\n255\n", "height is no number from 1"),
        (b"P5\n1 1\n65535\n\0\0", "maximum value of 65535"),
        (b"P5\n10 10\n255\n12345", "10 x 10 pixels need 113"),
        (b"P5\n# never ends", "width is no number"),
    ],
)
def test_malformed_pictures_are_refused_before_anything_is_written(
    program: Path, tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "bad.pgm").write_bytes(content)
    done = run(program, "posterize", tmp_path / "bad.pgm", tmp_path / "out.pgm")
    assert done.returncode == 1
    assert message in done.stderr
    assert not (tmp_path / "out.pgm").exists()


def test_the_input_is_never_its_own_output(program: Path, tmp_path: Path) -> None:
    run(program, "generate", 9, 9, tmp_path / "in.pgm")
    before = (tmp_path / "in.pgm").read_bytes()
    (tmp_path / "same.pgm").symlink_to("in.pgm")
    done = run(program, "divide", tmp_path / "in.pgm", tmp_path / "same.pgm")
    assert done.returncode == 1
    assert "is the input itself" in done.stderr
    assert (tmp_path / "in.pgm").read_bytes() == before


def test_a_full_device_is_reported(program: Path, tmp_path: Path) -> None:
    run(program, "generate", 9, 9, tmp_path / "in.pgm")
    done = run(program, "divide", tmp_path / "in.pgm", "/dev/full", "--no-sync")
    assert done.returncode == 1
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize("chunk", ["0", "-1", "4kb", "9999999999GB", ""])
def test_a_chunk_that_is_no_size_is_wrong_usage(program: Path, tmp_path: Path, chunk: str) -> None:
    assert run(program, "divide", tmp_path / "in.pgm", tmp_path / "out.pgm", "--chunk", chunk).returncode == 2
