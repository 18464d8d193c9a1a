"""`iosig gc`: what dead jobs left goes, and nothing that somebody may still want."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from redirecting import World, needs_mounts

NEW = str(os.O_CREAT | os.O_WRONLY)
ALL = ("--older-than", "0s")


def in_a_dead_job(world: World, *command: object, **options: object) -> str:
    """Runs the command in a session of its own, which ends with it."""
    return world.run(*command, start_new_session=True, **options).stdout.decode().strip()


def job_directory(world: World) -> Path:
    directory = Path(in_a_dead_job(world, world.iosig.binary, "choose", "--make-folder", "temp"))
    assert directory.parent == world.user_directory
    (directory / "sub").mkdir()
    (directory / "sub" / "data").write_bytes(b"x" * 1000)
    return directory


def reasons(world: World, *arguments: object) -> dict[str, tuple[str, str]]:
    """Name -> ("removed" or "kept", why)."""
    answer = world.iosig.json("gc", *arguments)
    assert answer["schema"] == "iosig.gc/1" and answer["refused"] == []
    return {Path(item["path"]).name: (what, item["why"]) for what in ("removed", "kept") for item in answer[what]}


def test_temporary_data_and_directories_of_dead_jobs_go(world: World, hinted: Path) -> None:
    directory = job_directory(world)
    (directory / "link").symlink_to(world.work)
    (world.work / "mine").write_bytes(b"mine")
    in_a_dead_job(world, hinted, "open", "scratch", NEW, "temp random", input=b"data")
    data = (world.work / "scratch").readlink()
    would = reasons(world, *ALL, "--dry-run")
    assert {what for what, _ in would.values()} == {"removed"} and directory.exists() and data.exists()
    assert reasons(world, *ALL) == would and set(would) == {directory.name, data.name}
    assert not list(world.user_directory.iterdir()) and not world.journal()
    assert not os.path.lexists(world.work / "scratch") and (world.work / "mine").read_bytes() == b"mine"
    assert world.iosig("gc").stdout == "nothing was left behind\n"


def test_what_rests_for_less_than_a_day_is_kept_unless_told_otherwise(world: World) -> None:
    directory = job_directory(world)
    what, why = reasons(world)[directory.name]
    assert what == "kept" and "its job is dead, but it changed" in why
    long_ago = 1_000_000_000
    for path in (directory / "sub" / "data", directory / "sub", directory):
        os.utime(path, (long_ago, long_ago))
    assert reasons(world)[directory.name][0] == "kept"  # made just now
    assert (directory / "sub" / "data").exists()


def test_what_seems_to_be_made_in_the_future_counts_as_young(world: World) -> None:
    directory = job_directory(world)
    os.utime(directory, (4102444800, 4102444800))
    assert reasons(world, "--older-than", "1s")[directory.name][0] == "kept"
    assert reasons(world, *ALL)[directory.name][0] == "removed"


def test_a_live_job_keeps_what_is_its(world: World, hinted: Path) -> None:
    job = subprocess.Popen(
        ["bash", "-c", '"$0" choose --make-folder temp; "$1" open scratch "$2" temp <<< data; read -r x',
         world.iosig.binary, hinted, NEW],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=world.work, env=world.env, start_new_session=True,
    )  # fmt: skip
    assert job.stdout is not None
    directory = Path(job.stdout.readline().decode().strip())
    assert job.stdout.readline() == b"0 77\n"
    kept = reasons(world, *ALL)
    assert len(kept) == 2 and all(what == "kept" and "still runs" in why for what, why in kept.values())
    for path in (directory, world.work / "scratch"):
        refused = world.iosig("gc", "--unknown", path, check=1).stderr
        assert f"'{path}': kept, its job (session {job.pid}) still runs" in refused and "unknown" not in refused
    assert directory.exists() and (world.work / "scratch").exists()
    job.communicate(b"\n")
    assert {what for what, _ in reasons(world, *ALL).values()} == {"removed"}


def test_a_process_that_left_its_session_keeps_what_it_uses(world: World) -> None:
    directory = job_directory(world)
    sleep = ["sleep", "60"]
    with (directory / "sub" / "data").open("ab") as file:
        writer = subprocess.Popen(sleep, start_new_session=True, stdout=file)
    worker = subprocess.Popen(sleep, start_new_session=True, cwd=directory)
    for user in (writer, worker):
        assert "has it open" in reasons(world, *ALL)[directory.name][1] and directory.exists()
        user.kill()
        user.wait()
    assert reasons(world, *ALL)[directory.name][0] == "removed"


def test_persistent_data_prepared_links_and_unknown_files_are_kept(world: World) -> None:
    env = {"env": world.env}
    for name, signature in (("out", "random"), ("orphan", "random"), ("scratch", "temp random")):
        in_a_dead_job(world, world.iosig.binary, "prepare", world.work / name, signature, **env)
        (world.work / name).write_bytes(b"data")
    orphan = (world.work / "orphan").readlink()
    (world.work / "orphan").unlink()
    unknown = world.user_directory / "compiled.out"
    unknown.write_bytes(b"data")
    kept = reasons(world, *ALL)
    assert {what for what, _ in kept.values()} == {"kept"} and len(kept) == 3
    assert "no link leads" in kept[orphan.name][1] and "no journal entry" in kept[unknown.name][1]
    assert "prepared" in kept[(world.work / "scratch").readlink().name][1]
    assert (world.work / "out").read_bytes() == (world.work / "scratch").read_bytes() == b"data"
    assert orphan.exists() and unknown.exists() and len(world.journal()) == 3


def test_what_another_machine_left_is_not_judged(world: World) -> None:
    in_a_dead_job(world, "unshare", "--uts", "sh", "-c", 'hostname elsewhere && exec "$0" choose --make-folder temp',
                  world.iosig.binary)  # fmt: skip
    if not world.user_directory.exists():
        pytest.skip("cannot have another host name here")
    [(what, why)] = reasons(world, *ALL).values()
    assert what == "kept" and "elsewhere" in why


@needs_mounts
def test_what_is_mounted_in_a_job_directory_is_not_emptied(world: World) -> None:
    directory = job_directory(world)
    (world.work / "mine").write_bytes(b"mine")
    script = f"""
        mkdir {directory}/inside && mount --bind {world.work} {directory}/inside || exit
        {world.iosig.binary} gc --older-than 0s
        [ $? = 1 ] && cat {directory}/inside/mine
    """
    done = world.run_with_own_mounts(script, cwd="/")
    assert done.stdout == b"mine" and b"is mounted there" in done.stderr
    assert (world.work / "mine").read_bytes() == b"mine"


def test_a_time_without_a_unit_is_wrong_usage(world: World) -> None:
    assert "--older-than" in world.iosig("gc", "--older-than", "5", check=2).stderr


def container_on_targets(world: World, name: str) -> tuple[Path, list[Path]]:
    """(the container, its data's directories) on the fast mount point and the slow one, with 4 bytes on each."""
    rules = world.work / "rules.toml"
    rules.write_text('schema = "iosig.rules/1"\n[[rule]]\npath = "**"\nsig = "container(2)"\n')
    for byte in (0, 4):
        script = f"printf four | dd of={name} bs=4 seek={byte // 4} conv=notrunc status=none"
        world.iosig("run", "--rules", rules, "--", "sh", "-c", script, cwd=world.work)
    rules.unlink()
    path = world.work / name
    directories = [
        Path(directory) for directory in world.iosig.json("container", "rm", "--dry-run", path)["removed"][0]["folders"]
    ]
    assert len(directories) == 3 and directories[1].parent == world.user_directory
    return path, directories[1:]


def test_data_of_a_container_that_is_there_are_not_listed(world: World) -> None:
    path, directories = container_on_targets(world, "file.dat")
    assert world.iosig("gc", *ALL, "--containers").stdout == "nothing was left behind\n"
    path.rename(path.with_name("renamed"))
    assert world.iosig("gc", *ALL, "--containers").stdout == "nothing was left behind\n"
    assert world.iosig.json("container", "check", path.with_name("renamed"))["sound"] and all(
        map(Path.exists, directories)
    )


def test_data_of_a_container_that_is_gone_go_when_that_is_asked_for(world: World) -> None:
    path, directories = container_on_targets(world, "file.dat")
    kept_path, kept_directories = container_on_targets(world, "other.dat")
    shutil.rmtree(path)
    found = reasons(world, *ALL)
    assert set(found) == {directories[0].name}
    what, why = found[directories[0].name]
    assert what == "kept" and str(path) in why and "--containers" in why
    assert "changed" in reasons(world, "--containers")[directories[0].name][1]  # just now
    data = [next(directory.rglob("data.*")) for directory in directories]
    with data[0].open("rb"), data[1].open("rb"):
        assert f"process {os.getpid()} has them open" in reasons(world, *ALL, "--containers")[directories[0].name][1]
    would = reasons(world, *ALL, "--containers", "--dry-run")
    assert would[directories[0].name][0] == "removed" and all(map(Path.exists, directories))
    assert reasons(world, *ALL, "--containers") == would and not any(map(Path.exists, directories))
    assert world.iosig.json("container", "check", kept_path)["sound"] and all(map(Path.exists, kept_directories))


def test_data_of_a_container_whose_directory_cannot_be_seen_are_kept(world: World) -> None:
    _, directories = container_on_targets(world, "file.dat")
    world.work.rename(world.root / "elsewhere")
    for what, why in reasons(world, *ALL, "--containers").values():
        assert what == "kept" and "cannot be looked into now" in why
    assert all(map(Path.exists, directories))
