"""Decisions for the whole job: what stays at home, what may rest elsewhere, and the two policies."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from conftest import DATA, Iosig
from redirecting import PROGRAM, World, compile_c

SMALL_SYNCED = "size-per-IO(4KB) totalsize(1MB)"
WRITTEN_ONCE = "size-per-IO(16MB) totalsize(64MB)"
TABLE2 = DATA / "paper-table2.toml"


@pytest.fixture
def job(world: World) -> World:
    """Home takes 10 ms for each operation and 100 MB/s, `fast` 1 ms and 1 GB/s; both keep data without power."""
    world.storage.write_text(
        'schema = "iosig.storage/2"\n'
        f'[[mount_point]]\npath = "{world.fast}"\ndevice = "fast"\n'
        f'[[mount_point]]\npath = "{world.root}"\ndevice = "slow"\n'
        '[[device]]\nname = "fast"\nkind = "ssd"\nwrite_bandwidth = "1GB/s"\nread_bandwidth = "1GB/s"\n'
        'operation_latency = "1ms"\n'
        '[[device]]\nname = "slow"\nkind = "ssd"\nwrite_bandwidth = "100MB/s"\nread_bandwidth = "100MB/s"\n'
        'operation_latency = "10ms"\n'
    )
    return world


def prepared(world: World, name: str, *words: str) -> dict[str, object]:
    redirects: list[dict[str, object]] = world.iosig.json("prepare", world.work / name, *words)["redirects"]
    return redirects[0]


def test_ordinary_output_stays_and_small_synced_writes_leave(job: World) -> None:
    stays = prepared(job, "out", WRITTEN_ONCE)
    assert stays["action"] == "stays" and not os.path.lexists(job.work / "out")
    choice = stays["choice"]
    assert isinstance(choice, dict)
    even = {each["mount_point"]: each for each in choice["break_even"]}[str(job.fast)]
    assert even["as_temp"] and even["passes"] > 1
    said = job.iosig("prepare", job.work / "out", WRITTEN_ONCE).stdout
    assert f"{job.fast} would win from {even['passes']} passes over the data, or if the data were temp" in said
    assert prepared(job, "out", WRITTEN_ONCE, f"passes({even['passes'] - 1})")["action"] == "stays"
    assert prepared(job, "many", WRITTEN_ONCE, f"passes({even['passes']})")["action"] == "linked"
    assert prepared(job, "log", SMALL_SYNCED)["action"] == "linked"


def test_home_must_lose_by_the_margin(job: World) -> None:
    times = {
        each["mount_point"]: each["job"]["total_s"]
        for each in job.iosig.json("choose", SMALL_SYNCED, "--home", job.work)["candidates"]
    }
    gain = 1 - times[str(job.fast)] / times[str(job.root)]
    assert 0 < gain < 1
    for margin, chosen in ((gain - 0.001, job.fast), (gain + 0.001, job.root)):
        told = job.iosig.json("choose", SMALL_SYNCED, "--home", job.work, "--min-gain", f"{margin}")
        assert told["chosen"] == str(chosen), margin
    assert "--min-gain: " in job.iosig("choose", "random", "--min-gain", "150%", check=2).stderr


def test_resting_data_stay_until_they_are_brought_home(job: World) -> None:
    prepared(job, "rests", WRITTEN_ONCE, "rest")
    prepared(job, "comes", SMALL_SYNCED)
    for name in ("rests", "comes"):
        (job.work / name).write_bytes(name.encode())
    settled = {Path(each["path"]).name: each for each in job.iosig.json("finalize", "--all")["settled"]}
    assert settled["rests"]["action"] == "rests" and settled["comes"]["action"] == "brought_home"
    assert (job.work / "rests").is_symlink() and (job.work / "rests").read_bytes() == b"rests"
    assert job.states() == {"rests": "linked"}
    assert "--home brings it home" in job.iosig("finalize", "--all").stdout
    job.iosig("finalize", "--all", "--home")
    assert not (job.work / "rests").is_symlink() and (job.work / "rests").read_bytes() == b"rests"
    assert job.is_settled()


def test_a_resting_file_that_is_named_comes_home(job: World) -> None:
    prepared(job, "rests", WRITTEN_ONCE, "rest")
    (job.work / "rests").write_bytes(b"data")
    job.iosig("finalize", job.work / "rests")
    assert (job.work / "rests").read_bytes() == b"data" and job.is_settled()


def test_a_link_to_rest_that_was_never_used_goes(job: World) -> None:
    prepared(job, "rests", WRITTEN_ONCE, "rest")
    job.iosig("finalize", "--all")
    assert job.is_settled() and not os.path.lexists(job.work / "rests")


def test_resting_temporary_data_are_dropped(job: World) -> None:
    prepared(job, "temp", WRITTEN_ONCE, "rest temp")
    (job.work / "temp").write_bytes(b"data")
    job.iosig("finalize", "--all")
    assert job.is_settled() and not os.path.lexists(job.work / "temp")


def test_data_of_a_program_with_hints_may_rest_and_those_of_prepare_come_home(job: World, tmp_path: Path) -> None:
    program = compile_c(PROGRAM, tmp_path, "hinted")
    create = os.O_CREAT | os.O_WRONLY
    job.run(program, "open", "hinted.out", str(create), WRITTEN_ONCE, input=b"data")
    job.run(program, "open", "home.out", str(create), WRITTEN_ONCE + " home", input=b"data")
    assert (job.work / "hinted.out").is_symlink() and not (job.work / "home.out").is_symlink()
    assert "rests" in {each["action"] for each in job.iosig.json("finalize", "--all")["settled"]}


def test_volatile_storage_is_for_data_that_may_be_lost(job: World) -> None:
    text = job.storage.read_text().replace('device = "fast"\n', 'device = "fast"\npersistent = false\n', 1)
    job.storage.write_text(text)
    assert prepared(job, "out", SMALL_SYNCED)["action"] == "stays"
    assert "neither temp nor volatile" in job.iosig("prepare", job.work / "out", SMALL_SYNCED).stdout
    assert prepared(job, "may", SMALL_SYNCED, "volatile", "rest")["action"] == "linked"
    assert prepared(job, "scratch", WRITTEN_ONCE, "temp")["action"] == "linked"
    (job.work / "may").write_bytes(b"data")
    job.iosig("finalize", "--all")  # whatever may rest, memory is no place for it
    assert not (job.work / "may").is_symlink() and (job.work / "may").read_bytes() == b"data"


def test_each_place_that_names_a_policy_counts_in_its_order(job: World) -> None:
    def action(name: str, *words: str, **environment: str) -> object:
        job.iosig.env.pop("IOSIG_POLICY", None)
        job.iosig.env |= environment
        return prepared(job, name, *words)["action"]

    paper = {"IOSIG_POLICY": "paper"}
    assert action("a", WRITTEN_ONCE) == "stays"
    assert action("b", WRITTEN_ONCE, "--policy", "paper") == "linked"
    assert action("c", WRITTEN_ONCE, **paper) == "linked"
    assert action("d", WRITTEN_ONCE, "policy(paper)") == "linked"
    assert action("e", WRITTEN_ONCE, "--policy", "job", **paper) == "stays"
    assert action("f", WRITTEN_ONCE, "policy(job)", **paper) == "linked"
    job.storage.write_text(job.storage.read_text().replace("/2", '/2"\npolicy = "paper', 1))
    assert action("g", WRITTEN_ONCE) == "linked"
    assert action("h", WRITTEN_ONCE, "policy(job)") == "stays"
    job.iosig.env["IOSIG_POLICY"] = "papers"
    refused = job.iosig("prepare", job.work / "i", "random", check=3).stderr
    assert "IOSIG_POLICY: 'papers': expected a policy, job or paper" in refused


def test_a_rules_file_names_a_policy_for_its_rules(job: World) -> None:
    rules = job.root / "rules.toml"
    rules.write_text(
        'schema = "iosig.rules/1"\npolicy = "paper"\n'
        f'[[rule]]\npath = "*.out"\nsig = "{WRITTEN_ONCE}"\n'
        f'[[rule]]\npath = "*.log"\nsig = "{WRITTEN_ONCE} policy(job)"\n'
    )
    redirects = job.iosig.json("prepare", "--rules", rules, job.root / "a.out", job.root / "a.log")["redirects"]
    assert [each["action"] for each in redirects] == ["linked", "stays"]
    rules.write_text('schema = "iosig.rules/1"\npolicy = 1\n[[rule]]\npath = "*"\nsig = "random"\n')
    assert "rules.toml:2:10: policy: expected" in job.iosig("prepare", "--rules", rules, "x", check=3).stderr


def test_nothing_is_redirected_whose_way_home_is_unknown(job: World) -> None:
    text = job.storage.read_text().replace(f'path = "{job.root}"', f'path = "{job.root}/elsewhere"', 1)
    job.storage.write_text(text)
    refused = job.iosig("prepare", job.work / "out", SMALL_SYNCED, check=1).stderr
    assert "does not have the file system of the path" in refused
    assert prepared(job, "scratch", SMALL_SYNCED, "temp")["action"] == "linked"
    assert prepared(job, "rests", SMALL_SYNCED, "rest")["action"] == "linked"


def test_the_policies_differ_where_the_paper_uses_memory(iosig: Iosig) -> None:
    signature = "random totalsize(1GB) size-per-IO(512KB)"
    for policy, mount in (("job", "nvram"), ("paper", "ramdisk")):
        told = iosig.json("choose", signature, "--storage", TABLE2, "--policy", policy)
        assert told["policy"] == policy and told["chosen"] == f"/paper/{mount}"


def test_absurd_passes_are_refused(iosig: Iosig) -> None:
    for passes in ("0", "1e12", "-1", "9999999999999999999999"):
        refused = iosig("choose", f"passes({passes})", "--storage", TABLE2, check=3).stderr
        assert "expected a number of passes, 1 to 1000000" in refused


def test_a_place_that_may_fill_up_before_home_is_told(job: World) -> None:
    free = {each["path"]: each["free_bytes"] for each in job.iosig.json("storage", "list")["mount_points"]}
    assert all(bytes_ > 1 << 20 for bytes_ in free.values())
    job.storage.write_text(job.storage.read_text().replace('device = "fast"\n', 'device = "fast"\nfree = "1.5GB"\n', 1))
    told = prepared(job, "out", "size-per-IO(4KB)")
    assert told["action"] == "linked" and "beyond 1.50 GB the program gets" in str(told["warning"])
    assert "warning" not in prepared(job, "sized", "size-per-IO(4KB) totalsize(256KB)")
    job.storage.write_text(job.storage.read_text().replace("1.5GB", "512MB", 1))
    refused = job.iosig("prepare", job.work / "open-ended", "size-per-IO(4KB)").stdout
    assert "no room: totalsize 1GB (assumed), free 512 MB" in refused and not os.path.lexists(job.work / "open-ended")


@pytest.mark.parametrize("verb", [("choose", "--home", "."), ("prepare", "out")])
def test_data_that_fit_nowhere_are_a_sound_no(job: World, verb: tuple[str, ...]) -> None:
    words = (*verb, "nosync totalsize(1EB)") if verb[0] == "choose" else ("prepare", "out", "nosync totalsize(1EB)")
    done = job.iosig(*words, cwd=job.work, check=1)
    assert "no room: totalsize 1EB" in done.stdout + done.stderr
    assert job.iosig.json(*words, cwd=job.work, check=1)


def test_a_place_from_which_the_data_could_not_come_home_is_refused(job: World) -> None:
    text = job.storage.read_text().replace('device = "slow"\n', 'device = "slow"\nfree = "1MB"\n', 1)
    job.storage.write_text(text)
    refused = job.iosig("prepare", job.work / "out", "size-per-IO(4KB) totalsize(2MB)", check=1).stderr
    assert f"the data could not come home: {job.root} has room for 1 MB" in refused
    assert prepared(job, "rests", "size-per-IO(4KB) totalsize(2MB) rest")["action"] == "linked"


def test_streams_that_come_home_share_the_room_there(job: World) -> None:
    job.storage.write_text(job.storage.read_text().replace('device = "slow"\n', 'device = "slow"\nfree = "3MB"\n', 1))
    signature = "size-per-IO(4KB) totalsize(1MB)"
    assert [prepared(job, name, signature)["action"] for name in "abc"] == ["linked"] * 3
    refused = job.iosig("prepare", job.work / "d", signature, check=1).stderr
    assert f"the data could not come home: {job.root} has 3 MB free, 3 MB of them for other streams" in refused
    assert "no room: totalsize 1MB, free 3 MB, 3 MB of them for other streams that will come home" in refused
    assert prepared(job, "scratch", signature, "temp")["action"] == "linked"
    job.iosig("finalize", job.work / "a")
    assert prepared(job, "d", signature)["action"] == "linked"


def test_the_paths_of_one_command_are_added_up_also_when_nothing_is_changed(job: World) -> None:
    job.storage.write_text(job.storage.read_text().replace('device = "slow"\n', 'device = "slow"\nfree = "3MB"\n', 1))
    rules = job.root / "rules.toml"
    rules.write_text('schema = "iosig.rules/1"\n[[rule]]\npath = "*"\nsig = "size-per-IO(4KB) totalsize(2MB)"\n')
    for dry_run in (["--dry-run"], []):
        paths = (job.root / "a", job.root / "b")
        told = job.iosig.json("prepare", "--rules", rules, *dry_run, *paths, check=1)["redirects"]
        assert [each["action"] for each in told] == ["linked", "refused"]


def test_what_is_reserved_is_not_room_for_a_stream_without_a_totalsize(job: World) -> None:
    job.storage.write_text(job.storage.read_text().replace('device = "fast"\n', 'device = "fast"\nfree = "2GB"\n', 1))
    assert prepared(job, "before", "size-per-IO(4KB)")["action"] == "linked"
    assert prepared(job, "sized", "size-per-IO(4KB) totalsize(1200MB)")["action"] == "linked"
    said = job.iosig("prepare", job.work / "after", "size-per-IO(4KB)").stdout
    assert "no room: totalsize 1GB (assumed), free 2 GB, 1.17 GB of them reserved" in said
    assert not os.path.lexists(job.work / "after")


def test_rules_ask_for_drains(job: World) -> None:
    rules = job.root / "rules.toml"
    rules.write_text(
        f'schema = "iosig.rules/1"\ndrain = true\n[[rule]]\npath = "*.out"\nsig = "{SMALL_SYNCED}"\n'
        f'[[rule]]\npath = "*.log"\nsig = "{SMALL_SYNCED}"\ndrain = false\n'
    )
    said = job.iosig("prepare", "--rules", rules, job.root / "a.out", job.root / "a.log").stdout
    pid = int(re.findall(r"process (\d+) settles it", said)[0])
    try:
        drained = {Path(each["path"]).name: each["drain"] for each in job.iosig.json("status")["redirects"]}
        assert drained["a.out"] is not None and drained["a.log"] is None
    finally:
        os.kill(pid, signal.SIGKILL)
    rules.write_text('schema = "iosig.rules/1"\ndrain = "yes"\n[[rule]]\npath = "*"\nsig = "random"\n')
    assert "rules.toml:2:9: error: drain: expected true or false" in job.iosig("check", rules, check=1).stdout


def test_temporary_data_cannot_be_promised_home(job: World) -> None:
    refused = job.iosig("prepare", job.work / "out", "temp random home", check=3).stderr
    assert "'home' contradicts 'temp'" in refused
    rules = job.root / "rules.toml"
    rules.write_text('schema = "iosig.rules/1"\n[sigdef]\nck = "temp"\n[[rule]]\npath = "*"\nsig = "ck home"\n')
    assert "'home' contradicts 'temp'" in job.iosig("prepare", "--rules", rules, "x", check=3).stderr


def test_the_paper_s_policy_is_named_where_it_decides(job: World) -> None:
    assert "policy     paper" in job.iosig("choose", WRITTEN_ONCE, "--policy", "paper").stdout
    assert "by the paper's policy" in job.iosig("prepare", job.work / "a", WRITTEN_ONCE, "--policy", "paper").stdout
    told = job.iosig.json("choose", WRITTEN_ONCE, "--policy", "paper", "--home", job.work)
    assert told["home"] == str(job.root) and [c["is_home"] for c in told["candidates"]] == [False, True]


def test_a_mixed_stream_is_not_limited_by_operations_that_nobody_limits(job: World) -> None:
    said = job.iosig("choose", "random read-share(50%) totalsize(1GB) size-per-IO(4KB)").stdout
    assert "IOPS" not in said
