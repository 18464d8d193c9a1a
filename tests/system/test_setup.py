"""tools/setup on a machine that lacks packages: what a user without root is told, and what root runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """An environment where no package is installed and apt-get only writes down how it was called."""
    for name, body in {
        "dpkg-query": "exit 1",
        "apt-get": f'echo "$@" >> {tmp_path}/apt-calls',
        "id": 'echo "$FAKE_UID"',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    return os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}


def setup(environment: dict[str, str], uid: int) -> subprocess.CompletedProcess[str]:
    command = [ROOT / "tools/setup", "build", "bench"]
    return subprocess.run(command, env=environment | {"FAKE_UID": str(uid)}, capture_output=True, text=True)


def test_a_user_gets_the_line_for_the_administrator_and_status_4(bare: dict[str, str], tmp_path: Path) -> None:
    done = setup(bare, uid=1000)
    assert done.returncode == 4
    line = next(line.strip() for line in done.stderr.splitlines() if "apt-get" in line)
    assert line.startswith("apt-get install -y --no-install-recommends g++ gcc-")
    assert line.endswith("doctest-dev libbenchmark-dev")
    assert not (tmp_path / "apt-calls").exists()


def test_root_updates_the_lists_and_installs_just_what_is_missing(bare: dict[str, str], tmp_path: Path) -> None:
    setup(bare, uid=0)
    update, install = (tmp_path / "apt-calls").read_text().splitlines()
    assert update.startswith("update")
    assert "--no-install-recommends g++" in install


@pytest.mark.parametrize(
    ("manager", "install", "package", "query"),
    [
        ("rpm", "dnf install", r"cmake\(fmt\)", "-q --quiet --whatprovides cmake(fmt)"),
        ("pacman", "pacman -S --needed", "tl-expected", "-T tl-expected"),
    ],
)
def test_other_systems_get_their_own_names(
    tmp_path: Path, manager: str, install: str, package: str, query: str
) -> None:
    for tool in ("bash", "dirname", "env", "id"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    log = tmp_path / "queries"
    (tmp_path / manager).write_text(f'#!/bin/bash\necho "$@" >> {log}\nexit $ANSWER\n')
    (tmp_path / manager).chmod(0o755)
    command = [ROOT / "tools/setup", "build"]
    for answer, status in (("1", 4), ("0", 0)):
        environment = {"PATH": str(tmp_path), "ANSWER": answer}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == status, done.stderr
        assert query in log.read_text().splitlines()
        if status == 4:
            line = next(line.split() for line in done.stderr.splitlines() if install in line)
            assert package in line
