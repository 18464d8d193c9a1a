"""`iosig doctor`: which parts work on this machine, and what to do about the others."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import BUILD
from redirecting import World


def findings(world: World) -> dict[str, dict[str, Any]]:
    """By part; the exit status says whether one is broken, as FUSE may be where tests run."""
    done = world.iosig("doctor", "--json", check=None)
    document = json.loads(done.stdout)
    assert document["schema"] == "iosig.doctor/1"
    assert done.returncode == any(finding["state"] == "broken" for finding in document["findings"])
    return {finding["part"]: finding for finding in document["findings"]}


def test_what_the_other_tests_use_works(world: World) -> None:
    found = findings(world)
    assert found["libraries"]["detail"] == str(BUILD / "lib")
    assert found["iosig run"]["state"] == found["journal"]["state"] == found["description"]["state"] == "works"
    plugins = [part for part in found if part.startswith("pragmas") and found[part]["state"] == "works"]
    assert len(plugins) == len(list((BUILD / "lib/iosig").glob("gcc-*/iosig.so")))
    can_mount = os.access("/dev/fuse", os.R_OK | os.W_OK) and (BUILD / "libexec/iosig/iosig-fuse").exists()
    assert (found["iosig mount"]["state"] == "works") == can_mount
    assert not world.state.exists()  # it looks, and makes nothing


def test_the_table_is_followed_by_what_to_do(world: World) -> None:
    world.iosig.env["IOSIG_STORAGE"] = str(world.root / "none.toml")
    told = world.iosig("doctor", check=1)
    assert told.stdout.splitlines()[0].split() == ["PART", "STATE", "DETAIL"]
    assert (
        "  description: mend it or remove it; without it, 'iosig storage probe' writes another"
        in told.stdout.splitlines()
        and not told.stderr
    )


def test_an_old_description_and_mount_points_that_are_gone_or_others_are_told(world: World) -> None:
    file = Path(world.iosig.env["IOSIG_STORAGE"])
    os.utime(file, (1_700_000_000, 1_700_000_000))
    assert findings(world)["description"]["state"] == "limited"
    text = file.read_text()
    file.write_text(text.replace('filesystem = "tmpfs"', 'filesystem = "xfs"'))
    others = [finding for finding in findings(world).values() if "the description says xfs" in finding["detail"]]
    assert len(others) == text.count('filesystem = "tmpfs"')
    shutil.rmtree(world.fast)
    gone = findings(world)[f"mount point {world.fast}"]
    assert gone["state"] == "broken" and gone["detail"] == "No such file or directory" and "probe" in gone["remedy"]
    world.fast.mkdir()


def test_a_damaged_journal_is_broken(world: World) -> None:
    world.prepared("out", b"data")
    [entry] = (world.state / "journal").glob("*.json")
    whole = entry.read_bytes()
    entry.write_bytes(whole[:-9])
    assert findings(world)["journal"]["state"] == "broken"
    entry.write_bytes(whole)
    assert findings(world)["journal"]["detail"] == "1 redirected"


def test_without_compilers_and_mpi_nothing_is_broken(world: World, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for tool in ("env", "cat", "fusermount3"):
        if there := shutil.which(tool):
            (tmp_path / "bin" / tool).symlink_to(there)
    world.iosig.env["PATH"] = str(tmp_path / "bin")
    found = findings(world)
    assert found["pragmas"]["state"] == found["MPI"]["state"] == "absent"


def test_programs_that_fail_are_told(world: World, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("gcc-12", "mpirun"):
        program = tmp_path / "bin" / name
        program.write_text("#!/bin/sh\nread -r line || exit 7\n")  # there is nothing to read
        program.chmod(0o755)
    world.iosig.env["PATH"] = f"{tmp_path / 'bin'}:{world.iosig.env['PATH']}"
    found = findings(world)
    assert found["pragmas with gcc-12"]["state"] == found["MPI by mpirun"]["state"] == "broken"
    assert found["MPI by mpirun"]["detail"] == "'mpirun --version' failed"


def test_a_pid_namespace_sees_not_all_jobs(world: World) -> None:
    words = ["unshare", "--pid", "--fork", "--mount-proc", str(world.iosig.binary), "doctor"]
    done = subprocess.run(words, env=world.iosig.env, capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout:
        pytest.skip(f"needs a PID namespace: {done.stderr.strip()}")
    assert "processes: 'iosig gc' keeps what jobs outside of it have made" in done.stdout
