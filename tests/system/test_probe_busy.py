"""A probe of a busy machine keeps the description of a quiet one: with other programs that really compute or write.

The machine may be busy with other tests as well; so no test needs it to be quiet.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import Iosig
from redirecting import needs_mounts


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    directory = tmp_path / "scratch"
    directory.mkdir()
    return directory


@pytest.fixture
def description(iosig: Iosig, scratch: Path, tmp_path: Path) -> Path:
    """What a probe found, without the record of how busy the machine was: it counts as quiet."""
    file = tmp_path / "storage.toml"
    iosig("storage", "probe", "--quick", "--force", "--mount", scratch, "--output", file)
    text = file.read_text()
    assert text.count("busy_share = ") == 2  # the value and its record
    file.write_text(re.sub(r"(?m)^busy_share = .*\n", "", text))
    return file


@contextmanager
def others(*commands: list[str]) -> Iterator[None]:
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in commands]
    try:
        yield
        assert all(each.poll() is None for each in running), "they were to go on"
    finally:
        for each in running:
            each.kill()
            each.wait()


def computing() -> list[list[str]]:
    """Keep every processor busy."""
    return [[sys.executable, "-c", "while True: pass"]] * len(os.sched_getaffinity(0))


def probe(scratch: Path, file: Path, *more: object) -> list[object]:
    return ["storage", "probe", "--quick", "--mount", scratch, "--output", file, *more]


def test_a_busy_machine_does_not_replace_a_good_description(iosig: Iosig, scratch: Path, description: Path) -> None:
    before = description.read_text()
    with others(*computing()):
        refused = iosig(*probe(scratch, description), check=1)
    found = re.search(r"other programs used (\d+) % of the processors' time", refused.stderr)
    assert found and int(found[1]) >= 20, refused.stderr
    assert "nothing was written" in refused.stderr and "--force" in refused.stderr
    assert "buffered writes" not in refused.stderr  # it does not measure first
    assert refused.stdout == "" and description.read_text() == before
    assert not Path(f"{description}~").exists() and list(scratch.iterdir()) == []


def test_force_replaces_it_and_the_description_records_how_busy_it_was(
    iosig: Iosig, scratch: Path, description: Path
) -> None:
    with others(*computing()):
        done = iosig(*probe(scratch, description, "--force", "--json"))
        assert "was busy while it was measured" in done.stderr
        share = iosig.json("storage", "list", "--storage", description)["devices"][0]["busy_share"]
        assert 0.2 <= share <= 1
        iosig(*probe(scratch, description))  # a description of a busy machine is not protected


def test_a_dry_run_and_a_machine_without_a_description_are_never_refused(
    iosig: Iosig, scratch: Path, description: Path, tmp_path: Path
) -> None:
    before = description.read_text()
    with others(*computing()):
        done = iosig(*probe(scratch, description, "--dry-run"))
        assert "was busy while it was measured" in done.stderr and description.read_text() == before
        iosig(*probe(scratch, tmp_path / "new.toml"))
        by_hand = tmp_path / "by-hand.toml"
        by_hand.write_text(
            f'schema = "iosig.storage/2"\n[[mount_point]]\npath = "{scratch}"\ndevice = "d"\n'
            '[[device]]\nname = "d"\nkind = "ssd"\nwrite_bandwidth = "1GB/s"\n'
        )
        iosig(*probe(scratch, by_hand))


def test_writes_of_another_program_make_the_device_busy(
    iosig: Iosig, scratch: Path, description: Path, tmp_path: Path
) -> None:
    device = scratch.stat().st_dev
    lines = Path("/proc/diskstats").read_text().splitlines()
    if not any(line.split()[:2] == [str(os.major(device)), str(os.minor(device))] for line in lines):
        pytest.skip("the file system of the tests is on no device of this machine")
    file = tmp_path / "written"
    writing = f"while :; do dd if=/dev/zero of={file}$0 bs=1M count=64 oflag=direct conv=notrunc; done"
    # Four, since each waits for a processor while others compute. A dd that outlives its shell ends by itself.
    with others(*(["bash", "-c", writing, str(n)] for n in range(4))):
        refused = iosig(*probe(scratch, description), check=1)
    found = re.search(r"(\d+) % of the device's time", refused.stderr)
    assert found and int(found[1]) >= 20, refused.stderr


@needs_mounts
def test_where_proc_does_not_tell_the_probe_says_so_and_goes_on(iosig: Iosig, scratch: Path, description: Path) -> None:
    script = """
        for name in stat diskstats pressure/io; do
          [ ! -e /proc/$name ] || mount --bind /dev/null /proc/$name || exit 77
        done
        exec "$@"
    """
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-c", script, "-", str(iosig.binary), *map(str, probe(scratch, description))],
        env=iosig.env, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip("cannot cover files of /proc")
    assert done.returncode == 0, done.stderr
    assert "does not tell what other programs do" in done.stderr
    assert "busy_share" not in description.read_text()


def test_a_description_of_another_machine_is_no_reason_to_refuse(iosig: Iosig, scratch: Path, tmp_path: Path) -> None:
    file = tmp_path / "storage.toml"
    file.write_text(
        'schema = "iosig.storage/2"\n[[mount_point]]\npath = "/far/away"\ndevice = "elsewhere"\n'
        '[[device]]\nname = "elsewhere"\nkind = "ssd"\nwrite_bandwidth = "1GB/s"\n'
        '[device.probed]\nwrite_bandwidth = { value = "1GB/s", by = "measured" }\n'
    )
    with others(*computing()):
        iosig(*probe(scratch, file))
    assert {mount["path"] for mount in iosig.json("storage", "list", "--storage", file)["mount_points"]} == {
        "/far/away",
        str(scratch),
    }
