"""`iosig finalize`: data come home whole, whatever happened meanwhile and whenever it is killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

from redirecting import World, needs_mounts


def test_a_sorted_file_comes_home(world: World) -> None:
    numbers = b"".join(b"%d\n" % (n * 7919 % 20000) for n in range(20000))
    (world.work / "in").write_bytes(numbers)
    world.iosig("prepare", world.work / "out", "sequential")
    assert world.run("sort", "-n", "-S", "64k", "-o", "out", "in").returncode == 0
    assert (world.work / "out").is_symlink()
    said = world.iosig("finalize", "out", cwd=world.work).stdout
    assert "brought home (copied and verified" in said
    assert not (world.work / "out").is_symlink()
    assert (world.work / "out").read_bytes() == b"".join(sorted(numbers.splitlines(True), key=int))
    assert world.is_settled()


def test_mode_times_attributes_and_holes_are_kept(world: World) -> None:
    path, destination = world.prepared("out", b"")
    with destination.open("r+b") as file:
        file.seek(1 << 27)
        file.write(b"end")
    destination.chmod(0o604)
    os.utime(destination, ns=(10**18, 10**18 + 123))
    with contextlib.suppress(OSError):  # tmpfs has extended attributes only since Linux 6.6
        os.setxattr(destination, "user.origin", b"test")
    attributes = os.listxattr(destination)
    world.iosig("finalize", "--all")
    assert os.listxattr(path) == attributes
    status = path.lstat()
    assert stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o604
    assert status.st_mtime_ns == 10**18 + 123
    assert status.st_size == (1 << 27) + 3 and status.st_blocks * 512 < 1 << 20


def test_an_attribute_that_has_no_room_at_home_keeps_the_data_where_they_are(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    for size in (9000, 60000):  # more than a block of ext4
        try:
            os.setxattr(destination, "user.big", b"x" * size)
            os.setxattr(world.work, "user.big", b"x" * size)
        except OSError as error:
            if not destination.exists() or "user.big" not in os.listxattr(destination):
                pytest.skip(f"the mount point has no such attributes: {error}")
            refused = world.iosig("finalize", path, check=1).stderr
            assert "'user.big'" in refused and path.is_symlink() and destination.read_bytes() == b"data"
            os.removexattr(destination, "user.big")
            world.iosig("finalize", path)
            assert path.read_bytes() == b"data" and world.is_settled()
            return
    pytest.skip("home takes attributes of any size")


def test_a_second_time_there_is_nothing_to_do(world: World) -> None:
    path, _ = world.prepared("out", b"data")
    world.iosig("finalize", path)
    assert "nothing is redirected" in world.iosig("finalize", path).stdout
    assert "nothing is redirected" in world.iosig("finalize", "--all").stdout
    assert path.read_bytes() == b"data"


def test_temporary_data_are_dropped_unless_they_are_to_be_kept(world: World) -> None:
    path, _ = world.prepared("scratch", b"data", "temp")
    kept, _ = world.prepared("kept", b"data", "temp")
    world.iosig("finalize", kept, "--keep-temp")
    world.iosig("finalize", path)
    assert not os.path.lexists(path) and kept.read_bytes() == b"data"
    assert world.is_settled()


def test_a_file_that_was_never_written_leaves_no_trace(world: World) -> None:
    world.iosig("prepare", world.work / "out", "random")
    assert "nothing was written" in world.iosig("finalize", "--all").stdout
    assert not os.path.lexists(world.work / "out") and world.is_settled()


def test_dry_run_says_it_and_changes_nothing(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    dropped, _ = world.prepared("scratch", b"data", "temp")
    said = world.iosig("finalize", "--all", "--dry-run").stdout
    assert "would be brought home" in said and "would be dropped" in said
    assert path.is_symlink() and dropped.is_symlink() and destination.read_bytes() == b"data"
    assert len(world.journal()) == 2


def test_a_file_that_took_the_path_is_kept_and_so_are_the_data(world: World) -> None:
    path, destination = world.prepared("out", b"redirected")
    os.utime(destination, (2e9, 2e9))  # 2033-05-18 03:33:20 UTC
    path.unlink()
    path.write_bytes(b"new")
    refused = world.iosig("finalize", path, check=1, env=world.env | {"TZ": "UTC"}).stderr
    assert "now (3 B, written 20" in refused and "data (10 B, written 2033-05-18 03:33:20)" in refused
    assert f"rm '{destination}'" in refused and f"mv '{destination}' '{path}'" in refused
    assert path.read_bytes() == b"new" and destination.read_bytes() == b"redirected"
    shutil.move(destination, path)
    world.iosig("finalize", path)
    assert path.read_bytes() == b"redirected" and world.is_settled()


def test_the_link_is_found_under_the_name_that_the_program_gave_it(world: World) -> None:
    path, _ = world.prepared("out.tmp", b"data")
    path.rename(world.work / "out")
    assert "out'" in world.iosig("finalize", "--all").stdout
    assert (world.work / "out").read_bytes() == b"data" and not (world.work / "out").is_symlink()
    assert world.is_settled()


def test_a_link_that_moved_to_another_directory_is_settled_by_its_new_path(world: World) -> None:
    path, _ = world.prepared("out", b"data")
    (world.work / "results").mkdir()
    moved = path.rename(world.work / "results/out")
    assert "settle the link under its new path" in world.iosig("finalize", "--all", check=1).stderr
    world.iosig("finalize", moved)
    assert moved.read_bytes() == b"data" and not moved.is_symlink() and world.is_settled()


def test_data_without_a_link_are_kept_until_they_are_given_up(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    path.unlink()
    assert str(destination) in world.iosig("finalize", "--all", check=1).stderr
    assert destination.read_bytes() == b"data"
    world.iosig("finalize", "--all", "--drop-orphans")
    assert world.is_settled()


def test_data_whose_directory_of_origin_is_gone_are_kept(world: World) -> None:
    (world.work / "sub").mkdir()
    path, destination = world.prepared("sub/out", b"data")
    shutil.rmtree(path.parent)
    assert str(destination) in world.iosig("finalize", path, check=1).stderr
    assert destination.read_bytes() == b"data"


def test_a_mount_point_that_is_away_keeps_its_entries(world: World) -> None:
    path, _ = world.prepared("out", b"data")
    away = world.user_directory.rename(world.fast / "away")
    assert "cannot be reached" in world.iosig("finalize", "--all", check=1).stderr
    assert path.is_symlink() and len(world.journal()) == 1
    away.rename(world.user_directory)
    world.iosig("finalize", "--all")
    assert path.read_bytes() == b"data" and not path.is_symlink()


def test_data_that_went_with_the_power_can_be_given_up(world: World) -> None:
    path, _ = world.prepared("out", b"data")
    shutil.rmtree(world.user_directory)
    world.iosig("finalize", "--all", "--drop-orphans")
    assert not os.path.lexists(path) and not world.journal()


def test_a_file_that_is_still_open_is_not_touched(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    with subprocess.Popen(["sleep", "60"], stdout=path.open("ab")) as writer:
        refused = world.iosig("finalize", path, check=1).stderr
        assert f"process {writer.pid} still has its data open" in refused
        assert path.is_symlink() and destination.read_bytes() == b"data"
        world.iosig("finalize", path, "--force")
        writer.kill()
    assert path.read_bytes() == b"data" and not path.is_symlink()


def test_a_link_without_a_journal_entry_is_settled_too(world: World) -> None:
    path, _ = world.prepared("out", b"data")
    shutil.rmtree(world.state)
    world.iosig("finalize", path)
    assert path.read_bytes() == b"data" and not path.is_symlink() and not list(world.user_directory.iterdir())


def test_other_links_to_the_data_are_named_when_they_dangle(world: World) -> None:
    """`cp -a` and tar copy the link. Only the user knows whether a copy or a link was meant."""
    path, destination = world.prepared("out", b"data")
    for name in ("out2", "out3"):
        world.run("cp", "-a", path, world.work / name)
    (world.work / "by-name").symlink_to("out")
    (world.work / "elsewhere").symlink_to(world.root)
    would = world.iosig.json("finalize", path, "--dry-run")["settled"][0]
    assert would["dangling_links"] == [str(world.work / name) for name in ("out2", "out3")]
    assert "would dangle" in would["message"] and path.is_symlink()
    said = world.iosig("finalize", path).stdout
    assert f"dangle now: '{world.work}/out2', '{world.work}/out3' (ln -sfn '{path}' LINK leads one to them)" in said
    assert "by-name" not in said and "elsewhere" not in said and (world.work / "out2").readlink() == destination
    assert (world.work / "by-name").read_bytes() == path.read_bytes() == b"data" and world.is_settled()


def test_the_first_link_is_named_when_the_data_went_home_by_another(world: World) -> None:
    path, _ = world.prepared("out", b"data")
    (world.work / "directory").mkdir()
    world.run("cp", "-a", path, world.work / "directory")
    said = world.iosig.json("finalize", world.work / "directory" / "out")["settled"][0]
    assert said["dangling_links"] == [str(path)] and str(path) in said["message"]
    assert (world.work / "directory" / "out").read_bytes() == b"data" and world.is_settled()


def test_links_to_dropped_data_are_named(world: World) -> None:
    path, _ = world.prepared("out", b"data", "temp")
    world.run("cp", "-a", path, world.work / "out2")
    said = world.iosig("finalize", "--all").stdout
    assert f"dangle now: '{world.work}/out2'" in said and "ln -s" not in said and world.is_settled()


def test_a_link_to_data_that_were_settled_by_another_stays_and_says_so(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    other = world.work / "other"
    world.run("cp", "-a", path, other)
    world.iosig("finalize", path)
    for options in (["--dry-run"], []):
        refused = world.iosig("finalize", other, *options, check=1)
        assert f"leads to '{destination}', where no data are" in refused.stderr and f"rm '{other}'" in refused.stderr
        assert "settled by another link" in refused.stderr
    assert other.readlink() == destination and path.read_bytes() == b"data" and world.is_settled()


@pytest.mark.parametrize("mode", [0o600, 0o200])
def test_both_times_come_home(world: World, mode: int) -> None:
    """The access time is older than that of the last change: the kernel sets it at the next read."""
    path, destination = world.prepared("out", b"data")
    destination.chmod(mode)
    os.utime(destination, (10**9, 10**9 + 1))
    world.iosig("finalize", path)
    assert (path.stat().st_atime, path.stat().st_mtime) == (10**9, 10**9 + 1)


def test_of_several_links_to_the_data_the_one_in_the_journal_counts(world: World) -> None:
    """As `iosig finalize *` in a directory with a copy of the link: the data come home to the path asked for."""
    path, destination = world.prepared("out", b"data")
    copies = [world.work / "a", world.work / "b"]
    for copy in copies:
        copy.symlink_to(destination)
    done = world.iosig("finalize", "a", "b", "out", "./out", cwd=world.work)
    assert path.read_bytes() == b"data" and not path.is_symlink() and world.is_settled()
    assert "another run" not in done.stdout and "dangle now" in done.stdout
    for copy in copies:
        assert re.search(f"'{copy}' leads to the data of '.*', too", done.stderr) and copy.readlink() == destination


def test_a_link_without_a_journal_entry_into_an_empty_directory_stays_and_says_so(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    destination.unlink()
    shutil.rmtree(world.state)
    assert "where no data are" in world.iosig("finalize", path, check=1).stderr
    assert path.readlink() == destination and not world.journal()


def test_a_link_that_iosig_did_not_make_is_refused(world: World, tmp_path: Path) -> None:
    (tmp_path / "own").write_bytes(b"own")
    (world.work / "out").symlink_to(tmp_path / "own")
    assert "did not make" in world.iosig("finalize", world.work / "out", check=1).stderr
    trap = world.fast / ".iosig-4242"  # another user's directory
    trap.mkdir()
    (trap / "x").write_bytes(b"x")
    (world.work / "x").symlink_to(trap / "x")
    world.iosig("finalize", world.work / "x", check=1)
    assert (world.work / "out").is_symlink() and (world.work / "x").is_symlink() and (trap / "x").exists()


def test_data_in_a_directory_that_became_somebody_elses_are_not_trusted(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    world.user_directory.chmod(0o777)
    said = world.iosig("finalize", path, check=1).stderr
    assert "planted" in said and f"'{world.user_directory}' is open to others" in said
    assert "chmod 700 it if you trust" in said and "will make its own" not in said
    assert path.is_symlink() and destination.exists()
    world.user_directory.chmod(0o700)
    world.iosig("finalize", path)
    assert path.read_bytes() == b"data" and world.is_settled()


def test_one_bad_journal_entry_is_named_and_does_not_stop_the_others(world: World) -> None:
    path, _ = world.prepared("out", b"data")
    bad = world.state / "journal" / ("0" * 16 + ".json")
    bad.write_text('{"schema":"iosig.journal/1"')
    assert str(bad) in world.iosig("finalize", "--all", check=3).stderr
    assert path.read_bytes() == b"data" and not path.is_symlink()
    assert world.journal() == [bad]


def test_a_cut_entry_leaves_its_data_settled_by_the_link(world: World) -> None:
    path, _ = world.prepared("out", b"data")
    entry = world.journal()[0]
    entry.write_bytes(entry.read_bytes()[:100])
    assert "run 'iosig finalize' on the link" in world.iosig("finalize", "--all", check=3).stderr
    world.iosig("finalize", path)
    assert path.read_bytes() == b"data" and not path.is_symlink()


def test_a_job_directory_goes_once_it_is_empty_and_never_before(world: World) -> None:
    directory = Path(world.iosig("choose", "--make-folder", "temp").stdout.strip())
    assert directory.parent == world.user_directory
    (directory / "sortXYZ").write_bytes(b"data")
    assert "still holds files" in world.iosig("finalize", "--all", check=1).stderr
    assert (directory / "sortXYZ").read_bytes() == b"data"
    (directory / "sortXYZ").unlink()
    world.iosig("finalize", f"{directory}/")
    assert not directory.exists() and world.is_settled()


def test_a_killed_run_on_a_link_without_an_entry_leaves_no_draft_behind(world: World) -> None:
    path, _ = world.prepared("out", os.urandom(1 << 20) * 64)
    shutil.rmtree(world.state)
    run = subprocess.Popen([world.iosig.binary, "finalize", path], env=world.env, stdout=subprocess.DEVNULL)
    while run.poll() is None and not list(world.work.glob(".iosig-*")):
        pass
    run.kill()
    run.wait()
    world.iosig("finalize", path)
    assert not path.is_symlink() and world.is_settled()


def test_two_runs_at_once_settle_everything_between_them(world: World) -> None:
    """Each redirect is locked while it is settled, so the runs share the work, and neither refuses anything."""
    contents = {f"out{number}": os.urandom(200_000) for number in range(40)}
    for name, content in contents.items():
        world.prepared(name, content)
    runs = [
        subprocess.Popen(
            [world.iosig.binary, *verb], env=world.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for verb in (["finalize", "--all"], ["finalize", "--all"], ["recover", "all"], ["gc", "--older-than", "0s"])
    ]
    said = [run.communicate(timeout=100) for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0, 0], said
    for name, content in contents.items():
        assert (world.work / name).read_bytes() == content and not (world.work / name).is_symlink()
        assert sum(f"{name}': brought home" in out for out, _ in said) == 1
    assert world.is_settled()


def test_a_run_waits_for_a_redirect_that_another_run_settles(world: World) -> None:
    """The other run stands still with its lock held: the second settles the rest first, then waits for it, and says so
    once that has taken a while."""
    held, _ = world.prepared("held", b"held")
    other, _ = world.prepared("other", b"other")
    first = subprocess.Popen(
        ["strace", "-o", "/dev/null", "-e", "inject=renameat2:delay_enter=4000000:when=1",
         world.iosig.binary, "finalize", held],
        env=world.env, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    while first.poll() is None and not list(world.work.glob(".iosig-*.aside")):
        time.sleep(0.01)
    second = world.iosig("finalize", "--all")
    assert second.stderr == f"iosig: note: waiting for another run that settles '{held}'\n"
    assert f"'{other}': brought home" in second.stdout
    assert f"'{held}' was settled by another run" in second.stdout
    assert first.communicate()[0].startswith(f"'{held}': brought home") and first.returncode == 0
    assert held.read_bytes() == b"held" and other.read_bytes() == b"other" and world.is_settled()


def test_what_other_runs_settle_meanwhile_is_one_line(world: World) -> None:
    """The other run takes long over its first redirect; what it settles after that, this one finds settled."""
    names = [f"out{number}" for number in range(4)]
    for name in names:
        world.prepared(name, b"data")
    first = subprocess.Popen(
        ["strace", "-o", "/dev/null", "-e", "inject=renameat2:delay_enter=300000:when=1+2",
         world.iosig.binary, "finalize", "--all", "--jobs", "1"],
        env=world.env, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    while first.poll() is None and not list(world.work.glob(".iosig-*.aside")):
        time.sleep(0.01)
    others = [subprocess.Popen([world.iosig.binary, "finalize", "--all"], env=world.env, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True) for _ in range(3)]  # fmt: skip
    said = [other.communicate() for other in others]
    first.communicate()
    assert all(other.returncode == 0 for other in [first, *others])
    assert [errors for _, errors in said] == [""] * 3  # none has waited for a second
    # one that begins late finds only what is not settled by then
    line = re.compile(r"('.*/out\d' was|[234] redirects were) settled by another run\n")
    assert all(output.count("settled by another run\n") == 1 and line.search(output) for output, _ in said)
    assert all((world.work / name).read_bytes() == b"data" for name in names) and world.is_settled()


def test_an_early_version_at_work_is_waited_for_by_the_user(world: World) -> None:
    """Early versions lock the whole journal."""
    path, _ = world.prepared("out", b"data")
    directory = os.open(world.state / "journal", os.O_RDONLY)
    fcntl.flock(directory, fcntl.LOCK_EX)
    assert "another 'iosig finalize'" in world.iosig("finalize", "--all", check=4).stderr
    assert path.is_symlink()
    os.close(directory)
    world.iosig("finalize", "--all")


def test_it_wants_paths_or_all_but_not_both(world: World) -> None:
    world.iosig("finalize", check=2)
    world.iosig("finalize", "--all", "x", check=2)


def test_json_has_every_redirect(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    gone, _ = world.prepared("gone", b"data")
    gone.unlink()
    answer = world.iosig.json("finalize", "--all", check=1)
    assert answer["schema"] == "iosig.finalize/1"
    assert [(s["path"], s["destination"], s["action"], s["data_bytes"]) for s in answer["settled"]] == [
        (str(path), str(destination), "brought_home", 4)
    ]
    assert len(answer["refused"]) == 1
    assert world.iosig.json("finalize", path)["nothing_at"] == [str(path)]


def test_killed_at_any_moment_the_data_stay_reachable_and_a_second_run_completes(world: World) -> None:
    content = os.urandom(1 << 20) * 24
    completed = 0
    delay_s = 0.0
    for attempt in range(60):  # from far too early to just too late, on quick and slow machines
        path, _ = world.prepared(f"out{attempt}", content)
        run = subprocess.Popen(
            [world.iosig.binary, "finalize", path], env=world.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(delay_s)
        run.send_signal(signal.SIGKILL)
        run.wait()
        assert path.read_bytes() == content, f"killed after {delay_s} s"
        completed += run.returncode == 0
        world.iosig("finalize", "--all")
        assert path.read_bytes() == content and not path.is_symlink()
        assert world.is_settled()
        path.unlink()
        if completed == 2:
            return
        delay_s = delay_s * 1.1 + 0.001
    pytest.fail("the killed run never got to its end: every moment was too early")


def test_killed_between_any_two_steps_a_second_run_completes(world: World) -> None:
    """The states that a kill can leave, made by hand: the draft, the copy in place, the destination gone."""
    path, destination = world.prepared("out", b"data" * 1000)
    identity = world.journal()[0].stem
    draft = world.work / f".iosig-{identity}.draft"
    draft.write_bytes(b"half")
    world.iosig("finalize", "--all")
    assert path.read_bytes() == b"data" * 1000 and world.is_settled()

    path.unlink()
    path, destination = world.prepared("out", b"data" * 1000)
    path.unlink()
    shutil.copy(destination, path)  # renamed, not yet removed
    world.iosig("finalize", "--all")
    assert path.read_bytes() == b"data" * 1000 and not path.is_symlink() and world.is_settled()

    path.unlink()
    path, destination = world.prepared("out", b"data" * 1000)
    path.unlink()
    shutil.move(destination, path)  # only the entry is left
    world.iosig("finalize", "--all")
    assert path.read_bytes() == b"data" * 1000 and world.is_settled()


@needs_mounts
@pytest.mark.parametrize(
    ("size", "read_only", "status", "words"),
    [("1M", False, 1, "4 MB needed"), ("8M", True, 4, "Read-only")],
    ids=["no room", "no permission"],
)
def test_where_the_data_cannot_go_home_nothing_is_changed(
    world: World, size: str, read_only: bool, status: int, words: str
) -> None:
    content = os.urandom(4 << 20)
    path, destination = world.prepared("out", content)
    script = f"""
        mount -t tmpfs -o size={size} none {world.work} && ln -s {destination} {path} || exit
        {f"mount -o remount,ro {world.work}" if read_only else ""}
        {world.iosig.binary} finalize {path}
        echo status $?
        readlink {path}
        cmp {path} {destination} && ls -A {world.work}
    """
    done = world.run_with_own_mounts(script, cwd="/")
    assert words in done.stderr.decode()
    assert done.stdout.decode().splitlines() == [f"status {status}", str(destination), "out"]
    world.iosig("finalize", path)
    assert path.read_bytes() == content
