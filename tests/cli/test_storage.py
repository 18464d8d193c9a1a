"""`iosig storage` as a user calls it: on real mounts, interrupted, as another user, twice."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from redirecting import needs_mounts


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A directory on this machine's disk for `--mount`, so that a probe measures one place only."""
    directory = tmp_path / "scratch"
    directory.mkdir()
    return directory


def probe(iosig: Any, scratch: Path, *more: object) -> Any:
    """Other tests keep the machine busy, so without --force a second probe would be refused."""
    return iosig.json("storage", "probe", "--quick", "--force", "--mount", scratch, *more)


def user_file(iosig: Any) -> Path:
    return iosig.home / ".config" / "iosig" / "storage.toml"


def test_a_probe_writes_the_users_file_and_list_and_show_read_it(iosig: Any, scratch: Path) -> None:
    document = probe(iosig, scratch)
    assert document["schema"] == "iosig.storage/1"
    assert document["file"] == str(user_file(iosig))
    assert [m["path"] for m in document["mount_points"]] == [str(scratch)]
    device = document["devices"][0]
    assert device["write_bytes_per_s"] > 0 and device["operation_latency_s"] > 0
    assert device["max_iops"] >= 0.99 / device["operation_latency_s"]
    assert device["origins"]["write_bandwidth"] == "measured"
    assert device["origins"]["mttf"] == "default"
    listed = iosig.json("storage", "list")
    assert listed["devices"] == document["devices"]
    table = iosig("storage", "list").stdout
    assert str(scratch) in table and device["name"] in table
    shown = iosig("storage", "show", scratch)
    assert re.search(r"write_bandwidth +\S+B/s +measured +\S+ \.\. \S+", shown.stdout)
    assert device["busy_share"] is not None and device["origins"]["busy_share"] == "measured"
    spreads = iosig.json("storage", "show", scratch)["mount_points"][0]["spreads"]
    wide = {entry["key"] for entry in document["unsettled"]}
    assert {key for key, spread in spreads.items() if not spread["settled"]} == wide
    assert shown.stdout.count(", not settled") == len(wide)
    assert str(user_file(iosig)) in shown.stderr


def test_a_probe_leaves_no_files(iosig: Any, scratch: Path) -> None:
    probe(iosig, scratch)
    assert list(scratch.iterdir()) == []


def test_values_by_hand_survive_a_second_probe_and_win(iosig: Any, scratch: Path) -> None:
    probe(iosig, scratch)
    file = user_file(iosig)
    text = file.read_text()
    edited = re.sub(r"(?m)^write_bandwidth = .*$", 'write_bandwidth = "123MB/s"', text, count=1)
    edited = edited.replace("[device.probed]", 'mttf = "10y"\n[device.probed]', 1)
    edited = re.sub(r"(?m)^persistent = .*$", "persistent = true\narchive = true", edited, count=1)
    file.write_text(edited)
    probe(iosig, scratch)
    document = iosig.json("storage", "list")
    device, mount = document["devices"][0], document["mount_points"][0]
    assert device["write_bytes_per_s"] == 123 * 1024**2
    assert device["origins"]["write_bandwidth"] == "config"
    assert device["mttf_s"] == 10 * 365 * 86400
    assert device["origins"]["read_bandwidth"] == "measured"
    assert mount["archive"] and mount["origins"]["archive"] == "config"
    shown = iosig("storage", "show", scratch).stdout
    assert re.search(r"write_bandwidth +123MB/s +config +measured found", shown)
    assert Path(f"{file}~").read_text() == edited  # the former file is kept


def amount(text: str) -> float:
    """Seconds, or bytes per second."""
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "B/s": 1, "KB/s": 2**10, "MB/s": 2**20, "GB/s": 2**30}
    number, unit = re.fullmatch(r"([\d.]+)(\D+)", text).groups()  # type: ignore[union-attr]
    return float(number) * units[unit]


def test_a_directory_that_was_chosen_stays_the_mount_point_in_later_probes(iosig: Any, scratch: Path) -> None:
    probe(iosig, scratch)
    document = iosig.json("storage", "probe", "--quick", "--force")
    assert str(scratch) in [m["path"] for m in document["mount_points"]]
    # Values that depend on memory alone are pooled, and limited where pages return to a hypervisor.
    devices = tomllib.loads(user_file(iosig).read_text())["device"]
    records = [(key, record) for each in devices for key, record in each.get("probed", {}).items() if "low" in record]
    assert {"buffered_write_bandwidth", "cached_write_bandwidth", "cached_read_latency"} <= {key for key, _ in records}
    for key, record in records:
        low, value, high = (amount(record[name]) for name in ("low", "value", "high"))
        assert low <= 1.01 * value and value <= 1.01 * high, (key, record)


def test_a_dry_run_writes_nothing(iosig: Any, scratch: Path) -> None:
    assert probe(iosig, scratch, "--dry-run")["file"] is None
    assert not user_file(iosig).exists()


def started_probe(iosig: Any, scratch: Path) -> subprocess.Popen[str]:
    """A quick probe of about 2 s that measures now."""
    command = [iosig.binary, "storage", "probe", "--quick", "--mount", scratch]
    running = subprocess.Popen(command, env=iosig.env, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    assert "buffered writes" in running.stderr.readline()
    return running


@pytest.mark.parametrize(
    ("how", "after_s"), [(signal.SIGINT, s) for s in (0, 0.3, 0.8, 1.3)] + [(signal.SIGKILL, s) for s in (0.1, 1)]
)
def test_an_interrupted_probe_leaves_no_debris_and_the_former_description(
    iosig: Any, scratch: Path, how: signal.Signals, after_s: float
) -> None:
    former = (
        'schema = "iosig.storage/1"\n[[mount_point]]\npath = "/"\ndevice = "a"\n[[device]]\nname = "a"\nkind = "ssd"\n'
    )
    user_file(iosig).parent.mkdir(parents=True)
    user_file(iosig).write_text(former)
    running = started_probe(iosig, scratch)
    time.sleep(after_s)
    running.send_signal(how)
    running.communicate(timeout=20)
    assert running.returncode == -how
    assert list(scratch.iterdir()) == []
    assert user_file(iosig).read_text() == former
    assert list(user_file(iosig).parent.iterdir()) == [user_file(iosig)]


def test_what_another_probe_writes_while_this_one_measures_is_kept(iosig: Any, scratch: Path) -> None:
    running = started_probe(iosig, scratch)
    user_file(iosig).parent.mkdir(parents=True)
    user_file(iosig).write_text(
        'schema = "iosig.storage/1"\n[[mount_point]]\npath = "/far"\ndevice = "a"\n'
        '[[device]]\nname = "a"\nkind = "ssd"\n'
    )
    running.communicate(timeout=20)
    assert running.returncode == 0
    listed = iosig.json("storage", "list", "--storage", user_file(iosig))
    assert {mount["path"] for mount in listed["mount_points"]} == {"/far", str(scratch)}


def test_a_directory_that_is_removed_while_it_is_measured_is_told(iosig: Any, scratch: Path) -> None:
    running = started_probe(iosig, scratch)
    scratch.rmdir()
    _, said = running.communicate(timeout=60)
    assert running.returncode == 1
    assert f"'{scratch}' was removed or unmounted while it was measured" in said
    assert not user_file(iosig).exists()


def test_a_directory_named_twice_is_described_once(iosig: Any, scratch: Path) -> None:
    link = scratch.parent / "link"
    link.symlink_to(scratch)
    again = [word for path in (f"{scratch}/.", link) for word in ("--mount", path)]
    assert [m["path"] for m in probe(iosig, scratch, *again)["mount_points"]] == [str(scratch)]
    iosig("storage", "list")


def test_a_relative_directory_is_probed_and_a_missing_one_is_told(iosig: Any, scratch: Path) -> None:
    (scratch / "below").mkdir()
    document = iosig.json("storage", "probe", "--quick", "--force", "--dry-run", "--mount", "below", cwd=scratch)
    assert [m["path"] for m in document["mount_points"]] == [f"{scratch}/below"]
    done = iosig("storage", "probe", "--quick", "--mount", "absent", cwd=scratch, check=1)
    assert f"'{scratch}/absent' is not a destination: it does not exist" in done.stderr


def test_an_unwritable_output_is_refused_with_its_name(iosig: Any, scratch: Path) -> None:
    done = iosig("storage", "probe", "--quick", "--mount", scratch, "--output", "/proc/storage.toml", check=4)
    assert "/proc/storage.toml" in done.stderr


def test_a_broken_file_is_not_overwritten(iosig: Any, scratch: Path) -> None:
    file = user_file(iosig)
    file.parent.mkdir(parents=True)
    file.write_text('schema = "iosig.storage/1"\n[[device]]\nnmae = "x"\nkind = "ssd"\n')
    done = iosig("storage", "probe", "--quick", "--mount", scratch, check=3)
    assert f"{file}:3" in done.stderr and "name" in done.stderr
    assert "nmae" in file.read_text()


def test_show_of_an_unknown_mount_point_names_the_known_ones(iosig: Any) -> None:
    done = iosig("storage", "show", "/no/such/mount", check=2)
    assert "/no/such/mount" in done.stderr


def test_show_finds_a_mount_point_with_a_slash_behind_it(iosig: Any) -> None:
    file = Path(__file__).parents[1] / "data" / "paper-table2.toml"
    shown = [iosig("storage", "show", path, "--storage", file).stdout for path in ("/paper/nfs", "/paper/nfs/")]
    assert shown[0] == shown[1] and "/paper/nfs" in shown[0] and "/paper/hdd" not in shown[0]


def test_a_path_with_control_characters_does_not_reach_the_terminal(iosig: Any, tmp_path: Path) -> None:
    file = tmp_path / "storage.toml"
    file.write_text(
        'schema = "iosig.storage/1"\n[[mount_point]]\npath = "/a\\u001b[2J"\ndevice = "a"\n'
        '[[device]]\nname = "a"\nkind = "ssd"\n'
    )
    said = iosig("storage", "show", "/b", "--storage", file, check=2).stderr
    said += iosig("choose", "temp", "--storage", file, check=1).stdout
    assert said.count("/a\\x1b[2J") == 2 and "\x1b" not in said


def test_a_file_is_no_mount_point(iosig: Any, tmp_path: Path) -> None:
    file = tmp_path / "storage.toml"
    file.write_text(
        f'schema = "iosig.storage/1"\n[[mount_point]]\npath = "{file}"\ndevice = "a"\n[[device]]\nname = "a"\n'
        'kind = "ssd"\n'
    )
    assert "is no directory" in iosig("choose", "temp", "--storage", file, check=1).stdout


def test_without_a_description_list_inspects_and_says_so(iosig: Any) -> None:
    done = iosig("storage", "list")
    assert "probe" in done.stderr
    document = iosig.json("storage", "list")
    assert document["file"] is None
    assert all(d["origins"]["write_bandwidth"] == "default" for d in document["devices"])


def ranks(iosig: Any, size: int, started: list[int], *more: str) -> list[tuple[int, str, str]]:
    """Status, stdout and stderr of the ranks of a job that are started. No MPI library: only what a launcher says."""
    where = [] if "--rendezvous" in more else ["--rendezvous", str(iosig.home)]
    command = [str(iosig.binary), "storage", "probe", "--network", *where, *more]
    jobs = [
        subprocess.Popen(
            command,
            env=iosig.env | {"PMI_RANK": str(rank), "PMI_SIZE": str(size)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in started
    ]
    told = [job.communicate(timeout=60) for job in jobs]
    return [(job.returncode, *texts) for job, texts in zip(jobs, told, strict=True)]


def test_the_network_is_measured_between_the_processes_of_a_launcher(iosig: Any, tmp_path: Path) -> None:
    file = tmp_path / "servers.toml"
    file.write_text(
        'schema = "iosig.storage/2"\n[network]\nstartup = "3ms"\n'
        '[[server]]\nname = "a"\nclass = "x"\nread_startup = "1ms"\nwrite_startup = "1ms"\n'
        'read_bandwidth = "1MB/s"\nwrite_bandwidth = "1MB/s"\n'
    )
    how = ["--output", str(file), "--repeats", "40", "--json"]
    (status, out, err), (other, silence, _) = ranks(iosig, 2, [0, 1], *how)
    assert (status, other, silence) == (0, 0, "") and "all processes run on one node" in err
    told = json.loads(out)
    assert told["nodes"] == 1 and len(told["pairs"]) == 2
    assert told["network"]["origins"] == {"startup": "config", "bandwidth": "measured"}  # by hand: it wins
    assert told["network"]["startup_s"] == 3e-3 and told["network"]["bytes_per_s"] > 0
    text = file.read_text()
    assert "[network.probed]" in text and 'name = "a"' in text
    assert list(iosig.home.iterdir()) == []


def test_a_process_that_does_not_come_is_named_and_ends_the_others(iosig: Any, tmp_path: Path) -> None:
    how = ["--output", str(tmp_path / "x.toml"), "--timeout", "1s"]
    (lead, _, said), (other, _, heard) = ranks(iosig, 3, [0, 2], *how)
    assert (lead, other) == (4, 4) and "2 of 3 processes came within 1 s; missing: rank 1" in said
    assert "missing: rank 1" in heard or "rank 0 did not come" in heard
    assert not (tmp_path / "x.toml").exists() and list(iosig.home.iterdir()) == []
    assert "mpirun -n 2" in iosig("storage", "probe", "--network", check=2).stderr


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def started_rank(iosig: Any, rank: int, size: int, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(iosig.binary), "storage", "probe", "--network", "--rendezvous", str(iosig.home), "--dry-run", *more],
        env=iosig.env | {"PMI_RANK": str(rank), "PMI_SIZE": str(size)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("is_measuring", [False, True])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_job_leaves_no_file(iosig: Any, is_measuring: bool, number: signal.Signals) -> None:
    lead = started_rank(iosig, 0, 2, "--repeats", "1000000")
    wait_until(lambda: any(iosig.home.iterdir()))
    other = started_rank(iosig, 1, 2, "--repeats", "1000000") if is_measuring else None
    if is_measuring:
        time.sleep(0.5)  # most likely a pair is measured then; before that, the result is the same
    lead.send_signal(number)
    if other is not None:
        other.send_signal(number)  # as from a terminal
        other.communicate(timeout=60)
    _, said = lead.communicate(timeout=60)
    assert lead.returncode == 128 + number and "interrupted" in said
    assert list(iosig.home.iterdir()) == []


def test_a_killed_process_is_named_and_not_the_one_that_measured_it(iosig: Any) -> None:
    lead, other = (started_rank(iosig, rank, 2, "--repeats", "1000000", "--timeout", "10s") for rank in range(2))
    wait_until(lambda: any(iosig.home.iterdir()))
    time.sleep(0.5)
    other.kill()
    _, said = lead.communicate(timeout=60)
    other.communicate(timeout=60)
    assert lead.returncode == 4 and "rank 1" in said and "rank 0 on" not in said
    assert list(iosig.home.iterdir()) == []


def test_a_rendezvous_that_does_not_exist_is_refused_and_not_made(iosig: Any, tmp_path: Path) -> None:
    how = ["--dry-run", "--timeout", "100ms", "--rendezvous", str(tmp_path / "no")]
    (status, _, said), _ = ranks(iosig, 2, [0, 1], *how)
    assert status == 4 and "not a directory" in said
    assert not (tmp_path / "no").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a network namespace")
def test_a_node_without_an_address_is_named_as_the_reason(iosig: Any) -> None:
    command = [*("unshare", "--net", iosig.binary, "storage", "probe", "--network"), "--timeout", "100ms", "--dry-run"]
    env = iosig.env | {"PMI_RANK": "0", "PMI_SIZE": "2"}
    done = subprocess.run(command, env=env, cwd=iosig.home, capture_output=True, text=True, timeout=60)
    assert done.returncode == 4 and "no address except its loopback" in done.stderr


def test_help_ends_in_an_example(iosig: Any) -> None:
    for verb in ("probe", "list", "show"):
        assert "Example: iosig storage" in iosig("storage", verb, "--help").stdout.strip().splitlines()[-1]


def run_with_own_mounts(iosig: Any, *command: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        ["unshare", "--mount", *map(str, command)], env=iosig.env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done


def list_in_namespace(iosig: Any, directory: Path, script: str, command: str = "") -> list[str]:
    """Runs `script` in a mount namespace of its own, then `storage list` there: the paths of its mount points."""
    command = command or f"{iosig.binary} storage list --json"
    done = run_with_own_mounts(iosig, "sh", "-ec", f"cd {directory}\n{script}\n{command}")
    return [mount["path"] for mount in json.loads(done.stdout)["mount_points"]]


def mounts_under(iosig: Any, directory: Path, script: str, command: str = "") -> list[str]:
    """Those of list_in_namespace() below `folder`, without the home of the test."""
    paths = list_in_namespace(iosig, directory, script, command)
    return [path for path in paths if path.startswith(f"{directory}/") and path != str(iosig.home)]


@needs_mounts
def test_read_only_too_small_hidden_and_bound_mounts_are_no_destinations(iosig: Any, tmp_path: Path) -> None:
    script = """
    mkdir good bound readonly small over
    mount -t tmpfs -o size=128m good good;  mount --bind good bound
    mount -t tmpfs -o size=128m,ro ro readonly
    mount -t tmpfs -o size=32m small small
    mount -t tmpfs -o size=128m below over; mount -t tmpfs -o size=32m above over
    """
    assert mounts_under(iosig, tmp_path, script) == [f"{tmp_path}/good"]


@needs_mounts
def test_names_with_blanks_and_two_file_systems_of_one_name_are_kept_apart(iosig: Any, tmp_path: Path) -> None:
    script = """
    mkdir -p 'a/my disk' 'b/my disk'
    mount -t tmpfs -o size=128m x 'a/my disk'; mount -t tmpfs -o size=128m x 'b/my disk'
    """
    assert mounts_under(iosig, tmp_path, script) == [f"{tmp_path}/a/my disk", f"{tmp_path}/b/my disk"]


@needs_mounts
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_another_user_gets_only_what_it_can_write(iosig: Any) -> None:
    world = Path("/mnt")  # covered by a tmpfs of our own in the namespace; nobody may search it, unlike tmp_path
    script = f"""
    mount -t tmpfs -o size=512m,mode=0755 base {world}; cd {world}
    cp {iosig.binary} iosig; chmod 755 iosig
    mkdir open closed home; chown nobody home
    mount -t tmpfs -o size=128m,mode=1777 open open
    mount -t tmpfs -o size=128m,mode=0700 closed closed
    """
    as_nobody = f"HOME={world}/home setpriv --reuid=nobody --regid=nogroup --clear-groups ./iosig storage list --json"
    # /mnt itself is not writable, but nobody's home on it is.
    assert mounts_under(iosig, world, script, as_nobody) == [f"{world}/home", f"{world}/open"]


@needs_mounts
def test_in_a_chroot_the_root_is_found_though_no_mount_covers_it(iosig: Any, tmp_path: Path) -> None:
    script = f"""
    mkdir -p jail/proc jail/tmp; mount -t proc proc jail/proc
    for library in $(ldd {iosig.binary} | grep -o '/[^ ]*'); do
      mkdir -p jail/$(dirname $library); cp $library jail/$library
    done
    cp {iosig.binary} jail/iosig
    """
    command = "HOME=/nowhere chroot jail /iosig storage list --json"
    assert list_in_namespace(iosig, tmp_path, script, command) == ["/tmp"]


@needs_mounts
def test_without_proc_a_directory_is_described_by_its_own_type(iosig: Any, tmp_path: Path) -> None:
    mem = tmp_path / "mem"
    script = f"""cd {tmp_path}; mkdir mem empty; mount -t tmpfs -o size=128m x mem; mount --bind empty /proc
    SLURM_TMPDIR={mem} {iosig.binary} storage list --json"""
    document = json.loads(run_with_own_mounts(iosig, "sh", "-ec", script).stdout)
    [mount] = [mount for mount in document["mount_points"] if mount["path"] == str(mem)]
    assert (mount["filesystem"], mount["persistent"]) == ("tmpfs", False)
    assert [device["kind"] for device in document["devices"] if device["name"] == mount["device"]] == ["ram"]


@needs_mounts
def test_a_path_that_is_not_utf_8_is_skipped(iosig: Any, tmp_path: Path) -> None:
    script = f"""cd {tmp_path}; odd=$(printf 'odd\\377'); mkdir "$odd"; mount -t tmpfs -o size=128m x "$odd"
    ! {iosig.binary} storage probe --quick --mount "$odd" 2>&1"""
    assert "it has a path that is not UTF-8" in run_with_own_mounts(iosig, "sh", "-ec", script).stdout


@needs_mounts
def test_a_file_system_that_is_unmounted_while_it_is_measured_is_told(iosig: Any, tmp_path: Path) -> None:
    script = f"""
    mkdir gone; mount -t tmpfs -o size=256M gone gone
    (sleep 0.5; umount -l gone) & {iosig.binary} storage probe --quick --mount gone 2>said || echo exit $?
    cat said; wait
    """
    done = run_with_own_mounts(iosig, "sh", "-ec", f"cd {tmp_path}\n{script}")
    assert "exit 1" in done.stdout
    assert f"'{tmp_path}/gone' was removed or unmounted while it was measured" in done.stdout
    assert not user_file(iosig).exists()


@needs_mounts
@pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="needs /dev/fuse")
def test_a_dead_server_delays_a_command_by_seconds_and_is_named(iosig: Any, tmp_path: Path) -> None:
    # A FUSE mount whose daemon never answers behaves like a network file system whose server is gone.
    dead = tmp_path / "dead"
    dead.mkdir()
    described = tmp_path / "storage.toml"
    described.write_text(
        'schema = "iosig.storage/1"\n[[device]]\nname = "d"\nkind = "network"\n'
        f'[[mount_point]]\npath = "{dead}"\ndevice = "d"\n[[mount_point]]\npath = "{tmp_path}"\ndevice = "d"\n'
    )
    die_then_probe = f"""
import ctypes, os, subprocess, sys
fd = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={{fd}},rootmode=40000,user_id=0,group_id=0".encode()
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mount(b"dead", {str(dead)!r}.encode(), b"fuse.sshfs", 0, options) == 0, os.strerror(ctypes.get_errno())
def run(*words):
    subprocess.run([{str(iosig.binary)!r}, *words], stderr=subprocess.STDOUT)
    print("-" * 9, flush=True)
run("choose", "random", "--storage", {str(described)!r})
run("storage", "probe", "--quick", "--dry-run", "--mount", {str(dead)!r} + "/")
sys.exit(subprocess.run([{str(iosig.binary)!r}, "storage", "probe", "--quick", "--dry-run", "--json"]).returncode)
"""
    done = run_with_own_mounts(iosig, sys.executable, "-c", die_then_probe)
    chosen, named, everything = done.stdout.split("---------\n")
    assert f"chosen: {tmp_path}" in chosen
    assert "its file system does not answer" in chosen
    assert "is not a destination: it did not answer" in named
    skipped = {entry["path"]: entry["reason"] for entry in json.loads(everything)["skipped"]}
    assert "did not answer" in skipped[str(dead)]
    assert f"skipped {dead}" in done.stderr
