"""File systems on which a symbolic link leads nowhere: nothing is redirected there, and the reason is told once."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_failing_storage import failing

from redirecting import World, compile_c, needs_mounts

# Opens each PATH with a hint, and writes "data" to it. The next program is the same with IOSIG_OPEN.
HINTED = r"""
#include <fcntl.h>
#include <iosig/iosig.h>
#include <unistd.h>

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    iosig_open_hint(AT_FDCWD, argv[i], O_CREAT | O_WRONLY, "random");
    int fd = open(argv[i], O_CREAT | O_WRONLY, 0666);
    if (fd < 0 || write(fd, "data", 4) != 4) return 5;
    close(fd);
  }
  return 0;
}
"""
MACRO = r"""
#include <fcntl.h>
#include <iosig/iosig.h>
#include <unistd.h>

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    int fd = IOSIG_OPEN("random", argv[i], O_CREAT | O_WRONLY, 0666);
    if (fd < 0 || write(fd, "data", 4) != 4) return 5;
    close(fd);
  }
  return 0;
}
"""
REFUSALS = [
    ("readlink EPERM", "does not follow a symbolic link"),  # sshfs with contain_symlinks
    ("transform EIO", "leads to"),  # sshfs with transform_symlinks
    ("symlink EPERM", "may have no symbolic links"),  # FAT
    ("symlink ENOSYS", "may have no symbolic links"),  # a FUSE file system without them
]


@pytest.fixture(scope="module", params=[HINTED, MACRO], ids=["hint", "macro"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(request.param, tmp_path_factory.mktemp("opens"), "opens", "-Wl,--no-as-needed", "-liosig")


def is_untouched(world: World) -> bool:
    """No link, no journal entry, no reservation and no file at a destination."""
    found = world.user_directory.rglob("*") if world.user_directory.exists() else ()
    left = [path for path in found if not path.is_dir() and path.name != ".promises"]  # an empty table
    links = [path for path in world.work.iterdir() if path.is_symlink()]
    assert (left, world.journal(), links) == ([], [], [])
    assert all(mount["promised_bytes"] == 0 for mount in world.iosig.json("storage", "list")["mount_points"])
    return True


@pytest.mark.parametrize(("fault", "reason"), REFUSALS)
def test_prepare_undoes_a_link_that_leads_nowhere_and_says_why(world: World, fault: str, reason: str) -> None:
    with failing(world.work, world) as faults:
        faults.write_text(fault)
        said = world.iosig("prepare", world.work / "out", "random", "totalsize(1MB)", check=4).stderr
        assert reason in said and "stays where it is" in said and str(world.work / "out") in said
        assert is_untouched(world)
        assert world.run("sh", "-c", "echo data > out").returncode == 0
        assert (world.work / "out").read_text() == "data\n"


@pytest.mark.parametrize(("fault", "reason"), REFUSALS)
def test_a_program_with_hints_writes_where_its_links_lead_nowhere_and_is_told_once(
    world: World, program: Path, fault: str, reason: str
) -> None:
    with failing(world.work, world) as faults:
        faults.write_text(fault)
        done = world.run(program, "a", "b", "c")
        assert done.returncode == 0
        assert done.stderr.decode().count("stays where it is") == 1 and reason in done.stderr.decode()
        assert is_untouched(world)
        assert [(world.work / name).read_text() for name in "abc"] == ["data"] * 3


def test_a_relative_link_that_is_followed_is_no_proof_and_a_sound_file_system_still_gets_links(world: World) -> None:
    with failing(world.work, world) as faults:
        path, destination = world.prepared("out", b"data")
        assert path.is_symlink() and destination.read_bytes() == b"data"
        world.iosig("finalize", path)
        faults.write_text("readlink EPERM")
        (world.work / "inside").symlink_to("out")
        assert (world.work / "inside").read_bytes() == b"data"
        world.iosig("prepare", world.work / "other", "random", check=4)


def test_the_probe_writes_it_down_and_later_no_link_is_tried(world: World, program: Path) -> None:
    with failing(world.work, world) as faults:
        faults.write_text("readlink EPERM")
        before = sorted(world.work.iterdir())
        command = ("storage", "probe", "--quick", "--mount", world.work, "--output", world.storage)
        found = {m["path"]: m for m in world.iosig.json(*command)["mount_points"]}
        assert sorted(world.work.iterdir()) == before
        mine = found[str(world.work)]
        assert mine["follows_links"] is False and mine["origins"]["follows_links"] == "inspected"
        assert found[str(world.fast)]["follows_links"] is True
        assert "follows_links = false" in world.storage.read_text()
        assert "follows_links" in world.iosig("storage", "show", world.work).stdout

        faults.write_text("symlink EIO")  # an attempt would end in another message
        said = world.iosig("prepare", world.work / "out", "random", check=4).stderr
        assert "follows_links = false" in said
        said = world.iosig("prepare", "--dry-run", world.work / "out", "random", check=4).stderr
        assert "follows_links = false" in said
        done = world.run(program, "a", "b")
        assert done.returncode == 0 and done.stderr.decode().count("follows_links = false") == 1
        assert is_untouched(world)

        faults.write_text("")  # what a user writes wins over the probe
        world.storage.write_text(world.storage.read_text().replace("follows_links = false", "follows_links = true", 1))
        world.iosig("prepare", world.work / "out", "random")
        assert (world.work / "out").is_symlink()


@needs_mounts
def test_a_mount_that_follows_no_links_gets_none(world: World, program: Path) -> None:
    script = """
        mount -t tmpfs none "$1" && mount -o remount,nosymfollow "$1" || exit 77
        cd "$1"
        "$2" prepare out random; echo "status $?"
        "$3" a b && cat a b && ls -A
        "$2" storage probe --quick --mount "$1" --output "$1/s.toml" >/dev/null && grep -w follows_links "$1/s.toml"
    """
    done = world.run_with_own_mounts(script, world.work, world.iosig.binary, program)
    if done.returncode == 77:
        pytest.skip(f"cannot mount with nosymfollow: {done.stderr.decode()}")
    out = done.stdout.decode()
    assert "status 4\ndatadataa\nb\n" in out and "follows_links = false" in out, (out, done.stderr)
    assert done.stderr.decode().count("does not follow a symbolic link") == 2  # prepare, and the program once
    assert not world.journal()


@needs_mounts
def test_links_that_one_mount_follows_say_nothing_of_another_mount_of_the_directory(
    world: World, program: Path
) -> None:
    script = """
        cd "$1"; mkdir plain closed
        mount --bind plain closed && mount -o remount,bind,nosymfollow closed || exit 77
        "$2" "$1/plain/a" "$1/closed/b"; echo "status $?"
        test -L plain/a && test ! -L plain/b && cat plain/a closed/b
    """
    done = world.run_with_own_mounts(script, world.work, program)
    if done.returncode == 77:
        pytest.skip(f"cannot mount with nosymfollow: {done.stderr.decode()}")
    assert done.returncode == 0 and done.stdout.startswith(b"status 0\n"), (done.stdout, done.stderr)
    assert len(world.journal()) == 1


def test_links_to_short_names_say_nothing_of_a_long_one(world: World, program: Path) -> None:
    with failing(world.fast, world) as faults:
        faults.write_text("long ENAMETOOLONG")
        name = "n" * 200
        done = world.run(program, "a", name)
        assert done.returncode == 0 and b"File name too long" in done.stderr, done.stderr
        assert (world.work / "a").is_symlink() and not (world.work / name).is_symlink()
        assert [(world.work / each).read_text() for each in ("a", name)] == ["data"] * 2
        assert len(world.journal()) == 1
