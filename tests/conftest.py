"""What the command-line and system tests share: the built command, and a home of their own for each test."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("IOSIG_BUILD", ROOT / "build"))
DATA = ROOT / "tests" / "data"
STARTED_S = time.time()

# Under nohup or with `&` in a script, SIGINT is ignored, and every program that a test starts and interrupts would
# inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What Open MPI takes anyway without a fast network. Left to choose, it waits a quarter of a second in each MPI_Init.
os.environ.setdefault("OMPI_MCA_pml", "ob1")

# A program of Open MPI 4 that runs without mpirun removes all jobs' files below this directory at its end, and MPI_Init
# then fails in jobs that other workers have just started. Any user may have jobs in it.
OPEN_MPI_JOBS = Path(tempfile.mkdtemp(prefix="iosig-ompi-"))
OPEN_MPI_JOBS.chmod(0o1777)
os.environ |= {"OMPI_MCA_orte_tmpdir_base": str(OPEN_MPI_JOBS)}

pytest_plugins = [
    "redirecting",
    "draining",
    "plugin_compiler",
    "mounting",
    "preloading",
    "tracing",
    "generated_programs",
]
# Their fixtures: world, hinted; drains; compiler; mount; run, small, compiled; built, full.


def bench(name: str) -> Any:
    """The module bench/NAME.py."""
    spec = importlib.util.spec_from_file_location(f"bench_{name}", ROOT / "bench" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Iosig:
    """The `iosig` command with a private HOME, so that no test sees the user's files or another test's."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.binary = BUILD / "bin" / "iosig"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("IOSIG_", "XDG_")) and k != "COLUMNS"}
        self.env["HOME"] = str(home)

    def __call__(self, *args: object, check: int | None = 0, **options: Any) -> subprocess.CompletedProcess[str]:
        """Runs `iosig args...`; `check`: the exit status that must come out, None for any."""
        options.setdefault("env", self.env)
        done = subprocess.run(
            [str(self.binary), *map(str, args)], capture_output=True, text=True, timeout=120, **options
        )
        if check is not None:
            assert done.returncode == check, f"exit {done.returncode}, wanted {check}\n{done.stdout}\n{done.stderr}"
        return done

    def json(self, *args: object, check: int | None = 0, **options: Any) -> Any:
        return json.loads(self(*args, "--json", check=check, **options).stdout)


@pytest.fixture
def iosig(tmp_path: Path) -> Iosig:
    home = tmp_path / "home"
    home.mkdir()
    return Iosig(home)


def shared_by_workers(factory: pytest.TempPathFactory, name: str) -> Path:
    """A directory of this run that all its processes have; what is made in it needs a lock."""
    base = factory.getbasetemp()
    directory = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / name
    directory.mkdir(exist_ok=True)
    return directory


def pytest_unconfigure() -> None:
    shutil.rmtree(OPEN_MPI_JOBS, ignore_errors=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the tables that tests of this run have written: reports/*.txt of the build directory."""
    for report in sorted((BUILD / "reports").glob("*.txt")):
        if report.stat().st_mtime >= STARTED_S:
            terminalreporter.section(report.stem)
            terminalreporter.write(report.read_text())
