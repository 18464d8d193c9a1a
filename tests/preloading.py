"""`iosig run` without the command, for tests: programs under libiosig-preload.so, and plain files to compare with."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import BUILD, Iosig

LIBRARY = BUILD / "lib" / "libiosig-preload.so"


class Preloaded:
    """Runs programs in `directory`, where every new file but those that end in .plain becomes a container."""

    def __init__(self, iosig: Iosig, directory: Path) -> None:
        self.iosig = iosig
        self.directory = directory
        self.numbers = itertools.count()
        directory.mkdir()
        self.env = {
            **iosig.env,
            "LD_PRELOAD": str(LIBRARY),
            "IOSIG_CONTAINERS": f"{directory}/*[!n]:{directory}/*/*[!n]",
            "LC_ALL": "C",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def start(self, *command: object, **options: Any) -> subprocess.Popen[bytes]:
        options = {
            "cwd": self.directory,
            "env": self.env,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            **options,
        }
        return subprocess.Popen([*map(str, command)], **options)

    def __call__(self, *command: object, status: int = 0, quiet: bool = True, **options: Any) -> str:
        """What the program says on stdout; `quiet`: and nothing on stderr."""
        program = self.start(*command, **options)
        said, complained = program.communicate(timeout=60)
        assert program.returncode == status, f"{command}: {program.returncode} {complained.decode()}"
        assert not (quiet and complained), f"{command}: {complained.decode()}"
        return said.decode(errors="replace")

    def python(self, text: str, *arguments: object, **options: Any) -> str:
        return self(sys.executable, "-S", "-E", "-c", text, *arguments, **options)

    def is_container(self, name: str) -> bool:
        return (self.directory / name).is_dir()

    def content(self, name: str) -> bytes:
        """As `iosig container export` gives it."""
        to = self.directory.parent / f"exported.{next(self.numbers)}"
        self.iosig("container", "export", self.directory / name, to)
        return to.read_bytes()

    def is_sound(self, name: str) -> bool:
        return bool(self.iosig.json("container", "check", self.directory / name, check=None)["sound"])


@pytest.fixture
def run(iosig: Iosig, tmp_path: Path) -> Preloaded:
    return Preloaded(iosig, tmp_path / "directory")


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Compiles a C program, once."""
    made: dict[Path, Path] = {}

    def program(source: Path) -> Path:
        if source not in made:
            made[source] = tmp_path_factory.mktemp("compiled") / source.stem
            subprocess.run(["gcc", "-O1", "-o", str(made[source]), str(source), "-pthread"], check=True)
        return made[source]

    return program


def assert_same_as_plain(run: Preloaded, program: Path, least: int, *arguments: str) -> None:
    """The program says the same on containers as on plain files: more than `least` characters."""
    command = [str(program), *arguments]
    plain = run.directory.parent / "plain"
    plain.mkdir()
    wanted = subprocess.run(command, cwd=plain, capture_output=True, text=True, check=True).stdout
    assert run(*command).splitlines() == wanted.splitlines() and len(wanted) > least


def sample(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.fixture
def small(run: Preloaded) -> Iterator[Preloaded]:
    """The directory is a file system of 1 MB."""
    if os.geteuid() != 0:
        pytest.skip("mounts a tmpfs: needs root")
    try:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(run.directory)], check=True, capture_output=True
        )
    except subprocess.CalledProcessError as refusal:
        pytest.skip(f"tmpfs cannot be mounted: {refusal.stderr.decode().strip()}")
    try:
        yield run
    finally:
        subprocess.run(["umount", "-l", str(run.directory)], check=True)
