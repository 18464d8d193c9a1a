"""`iosig container`: what many writers wrote is one file; damage is named, kept apart, and costs nothing sound."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import BUILD, Iosig
from container_writing import forget_closed_writers

ROWS = ("open a", "open b", "times a 100 0 128 64 a", "times b 100 64 128 64 b")
CONTENT = (b"a" * 64 + b"b" * 64) * 100


def write(container: Path, *commands: str) -> None:
    """Has the test program write, as its comment says; the writers it leaves open are closed when it ends."""
    done = subprocess.run(
        [str(BUILD / "bin" / "write_container"), str(container)],
        input="\n".join(commands),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split("\n")[:-1] == ["ok"] * len(commands), done.stdout + done.stderr


@pytest.fixture
def container(iosig: Iosig, tmp_path: Path) -> Path:
    path = tmp_path / "file"
    iosig("container", "create", path)
    write(path, *ROWS)
    return path


def content(iosig: Iosig, container: Path) -> bytes:
    copy = container.with_name("copy")
    copy.unlink(missing_ok=True)
    iosig("container", "export", container, copy)
    return copy.read_bytes()


def dropping(container: Path, name: str) -> Path:
    return next(container.glob(f"d*/{name}"))


def test_its_writers_and_its_index_are_shown(iosig: Iosig, container: Path) -> None:
    answer = iosig.json("container", "ls", container)
    assert answer["schema"] == "iosig.container-list/1" and answer["size"] == len(CONTENT)
    assert [writer["data_bytes"] for writer in answer["writers"]] == [6400, 6400]
    assert all(writer["is_closed"] for writer in answer["writers"])
    assert "2 writers" in iosig("container", "ls", container).stdout
    index = iosig.json("container", "index", container)
    assert index["schema"] == "iosig.pattern/1" and index["count"] == 200
    assert "logical" in iosig("container", "index", container).stdout
    assert iosig.json("container", "check", container)["sound"] is True


def test_export_copies_and_flatten_replaces(iosig: Iosig, container: Path) -> None:
    assert content(iosig, container) == CONTENT
    assert "exists already" in iosig("container", "export", container, container.with_name("copy"), check=2).stderr
    assert "would be an ordinary file now" in iosig("container", "flatten", "--dry-run", container).stdout
    assert container.is_dir()
    absent = container.with_name("absent")
    planned = iosig.json("container", "export", "--dry-run", container, absent)
    assert planned["dry_run"]
    assert planned["size"] == len(CONTENT)
    assert not absent.exists()
    iosig("container", "flatten", container)
    assert container.is_file() and container.read_bytes() == CONTENT
    assert sorted(path.name for path in container.parent.iterdir()) == ["copy", "file", "home"]
    assert "ordinary file" in iosig("container", "flatten", container, check=3).stderr


def test_flatten_keeps_mode_and_times(iosig: Iosig, container: Path) -> None:
    iosig("run", "--", "sh", "-c", 'chmod 6754 "$1"; touch -d 2001-02-03T04:05:06Z "$1"', "-", container)
    iosig("container", "flatten", container)
    status = container.stat()
    assert stat.S_IMODE(status.st_mode) == 0o6754 and status.st_mtime == 981173106


def test_flatten_deletes_data_on_a_target_only_when_the_file_is_stored(iosig: Iosig, tmp_path: Path) -> None:
    """A power failure may undo a rename that was not flushed, and keep a later deletion on another file system."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    target, path, calls = tmp_path / "target", tmp_path / "file", tmp_path / "calls"
    target.mkdir()
    iosig("container", "create", "--target", target, path)
    write(path, *ROWS)
    strace = ["strace", "-o", calls, "-y", "-e", "trace=renameat2,fsync,unlinkat,unlink"]
    subprocess.run([*strace, iosig.binary, "container", "flatten", path], check=True, env=iosig.env)
    lines = calls.read_text().splitlines()
    exchanged = next(number for number, line in enumerate(lines) if "RENAME_EXCHANGE" in line)
    deleted = next(n for n, line in enumerate(lines) if n > exchanged and "unlink" in line and "data." in line)
    assert any(line.startswith("fsync(") and f"<{tmp_path}>" in line for line in lines[exchanged:deleted]), lines


def test_holes_stay_holes(iosig: Iosig, tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    iosig("container", "create", path)
    write(path, "open a", "write a 0 3 x", f"write a {1 << 40} 1 y", "close a")
    copy = tmp_path / "copy"
    iosig("container", "export", path, copy)
    assert copy.stat().st_size == (1 << 40) + 1 and copy.stat().st_blocks * 512 < 1 << 20
    with copy.open("rb") as file:
        assert file.read(4) == b"xxx\0" and file.seek(-1, 2) and file.read() == b"y"


def test_a_traditional_index_holds_an_entry_for_each_write(iosig: Iosig, tmp_path: Path) -> None:
    path = tmp_path / "old"
    iosig("container", "create", "--index", "traditional", path)
    write(path, *ROWS)
    assert content(iosig, path) == CONTENT
    assert all(writer["index_bytes"] > 100 * 56 for writer in iosig.json("container", "ls", path)["writers"])
    assert "entry for each write" in iosig("container", "index", path, check=1).stderr


def test_data_lie_on_their_targets_and_go_with_the_container(iosig: Iosig, tmp_path: Path) -> None:
    targets = [tmp_path / "one", tmp_path / "two"]
    for target in targets:
        target.mkdir()
    path = tmp_path / "file"
    iosig("container", "create", "--target", targets[0], "--target", targets[1], path)
    write(path, *ROWS)
    assert content(iosig, path) == CONTENT
    assert [len(list(target.rglob("data.*"))) for target in targets] == [1, 1] and not list(path.rglob("data.*"))
    gone = tmp_path / "gone"
    targets[1].rename(gone)
    answer = iosig.json("container", "check", path, check=1)
    assert answer["lost_bytes"] == 6400 and answer["lost"][0] == {"offset": 64, "length": 64}
    said = iosig("container", "export", path, tmp_path / "c2", check=4).stderr
    assert str(targets[1]) in said and "its target is missing" in said
    said = iosig("container", "flatten", path, check=3).stderr
    assert str(targets[1]) in said and "cannot be recovered once" in said and "repair" not in said
    gone.rename(targets[1])
    iosig("container", "flatten", path)
    assert path.read_bytes() == CONTENT and not any(list(target.iterdir()) for target in targets)


def test_a_copy_of_one_with_targets_reads_them_and_cannot_harm_the_original(iosig: Iosig, tmp_path: Path) -> None:
    target = tmp_path / "one"
    target.mkdir()
    path, copy = tmp_path / "file", tmp_path / "copied"
    iosig("container", "create", "--target", target, path)
    write(path, *ROWS)
    path.rename(tmp_path / "renamed")
    (tmp_path / "renamed").rename(path)  # it is the same one by any name
    subprocess.run(["cp", "-a", path, copy], check=True)
    assert content(iosig, copy) == CONTENT
    problems = iosig.json("container", "check", copy, check=1)["problems"]
    assert [problem["kind"] for problem in problems] == ["foreign"] and str(path) in problems[0]["message"]
    refused = iosig("run", "--", "sh", "-c", f"echo more >> {copy}", check=None)
    assert refused.returncode != 0 and "is a copy" in refused.stderr and "--claim" in refused.stderr
    assert "is a copy" in iosig("container", "repair", copy, check=1).stderr
    assert str(path) in iosig("container", "repair", "--claim", copy, check=1).stderr  # which is there
    assert "Read-only file system" in iosig("run", "--", "mv", copy, path, check=1).stderr
    iosig("container", "rm", copy)
    assert content(iosig, path) == CONTENT
    subprocess.run(["cp", "-a", path, copy], check=True)
    iosig("container", "flatten", copy)
    assert copy.read_bytes() == CONTENT == content(iosig, path)
    copy.unlink()
    subprocess.run(["cp", "-a", path, copy], check=True)
    shutil.rmtree(path)  # as if it had been moved to another file system
    assert "would have claimed the data" in iosig("container", "repair", "--claim", "--dry-run", copy).stdout
    iosig("container", "repair", "--claim", copy)
    write(copy, "open c", "write c 0 2 Z")
    assert content(iosig, copy) == b"ZZ" + CONTENT[2:]
    assert iosig.json("container", "check", copy)["sound"]
    iosig("container", "rm", copy)
    assert list(target.iterdir()) == []


def cut_data(container: Path) -> None:
    with dropping(container, "data.1").open("r+b") as file:
        file.truncate(6400 - 100)


def drop_data(container: Path) -> None:
    dropping(container, "data.1").unlink()


@pytest.mark.parametrize(("damage", "lost"), [(cut_data, 100), (drop_data, 6400)])
def test_what_is_lost_is_named_and_the_rest_is_read(
    iosig: Iosig, container: Path, damage: Callable[[Path], None], lost: int
) -> None:
    damage(container)
    answer = iosig.json("container", "check", container, check=1)
    assert answer["sound"] is False and answer["lost_bytes"] == lost
    assert "data.1" in answer["problems"][0]["message"]
    assert sum(part["length"] for part in answer["lost"]) <= lost
    assert "data.1" in iosig("container", "export", container, container.with_name("copy"), check=3).stderr
    assert not container.with_name("copy").exists()
    assert "data.1" in iosig("container", "flatten", container, check=3).stderr
    assert container.is_dir()


def flip_every_byte(iosig: Iosig, container: Path, name: str) -> None:
    """No changed byte of an index is taken for another index: it is refused, or says what is lost."""
    path = dropping(container, name)
    sound = path.read_bytes()
    for place in range(0, len(sound), 3):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 0x10]) + sound[place + 1 :])
        answer = iosig.json("container", "check", container, check=None)
        assert answer["problems"], f"byte {place}"
    path.write_bytes(sound)


def test_flipped_and_cut_indices_are_noticed(iosig: Iosig, container: Path) -> None:
    flip_every_byte(iosig, container, "index.1")
    path = dropping(container, "index.1")
    sound = path.read_bytes()
    for size in range(0, len(sound), 7):
        path.write_bytes(sound[:size])
        assert iosig.json("container", "check", container, check=None)["problems"], f"cut to {size}"


def test_duplicates_and_strangers_are_quarantined_and_nothing_sound_with_them(iosig: Iosig, container: Path) -> None:
    (container / "d7").mkdir()
    shutil.copy(dropping(container, "index.0"), container / "d7" / "index.7")
    shutil.copy(dropping(container, "data.0"), container / "d7" / "data.7")
    (container / "notes.txt").write_text("mine")
    kinds = {problem["kind"] for problem in iosig.json("container", "check", container, check=1)["problems"]}
    assert kinds == {"foreign", "absent"}  # 2 to 6
    assert content(iosig, container) == CONTENT  # they do no harm
    dry = iosig.json("container", "repair", "--dry-run", container)
    assert dry["dry_run"] and len(dry["steps"]) == 3 and (container / "notes.txt").exists()
    assert len(iosig.json("container", "repair", container)["steps"]) == 3
    problems = iosig.json("container", "check", container, check=1)["problems"]
    assert [problem["bytes"] for problem in problems if problem["kind"] == "lost"] == [6400]  # quarantined
    quarantine = next(container.glob(".iosig-aside-*"))
    assert sorted(path.name for path in quarantine.iterdir()) == ["data.7", "index.7", "notes.txt"]
    assert content(iosig, container) == CONTENT
    assert iosig("container", "repair", container).stdout == "nothing to repair\n"


def test_what_an_nfs_client_keeps_of_deleted_files_is_not_foreign(iosig: Iosig, container: Path) -> None:
    kept = container / "d0" / ".nfs000000000123abcd00000001"
    kept.write_bytes(b"")
    assert iosig.json("container", "check", container)["sound"]
    iosig("container", "repair", container)
    assert kept.exists()


def test_quarantine_keeps_every_foreign_file(iosig: Iosig, container: Path) -> None:
    names = ("d1/x", "d1.x", "data.0")  # a data.0 that is not in a subdirectory is no dropping
    for name in names:
        (container / name).write_text(name)
    iosig("container", "repair", container)
    quarantined = [path.read_text() for path in next(container.glob(".iosig-aside-*")).iterdir()]
    assert sorted(quarantined) == sorted(names)
    assert content(iosig, container) == CONTENT


def test_a_torn_index_is_rewritten_and_kept(iosig: Iosig, container: Path) -> None:
    forget_closed_writers(container)
    path = dropping(container, "index.1")
    torn = path.read_bytes() + b"IOX\xf1\x09"
    path.write_bytes(torn)
    for _ in range(2):  # what the frame told of stays lost
        assert [problem["kind"] for problem in iosig.json("container", "check", container, check=1)["problems"]] == [
            "lost"
        ]
        iosig("container", "repair", container)
    assert next(container.glob(".iosig-aside-*/index.1")).read_bytes() == torn
    assert content(iosig, container) == CONTENT


def test_planted_links_are_not_followed(iosig: Iosig, container: Path, tmp_path: Path) -> None:
    data = dropping(container, "data.1")
    data.rename(tmp_path / "elsewhere")
    data.symlink_to(tmp_path / "elsewhere")
    assert "data.1" in iosig("container", "export", container, tmp_path / "c", check=None).stderr
    assert not (tmp_path / "c").exists()
    assert iosig.json("container", "check", container, check=1)["lost_bytes"] == 6400


def test_what_is_no_container_is_refused(iosig: Iosig, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    (tmp_path / "directory").mkdir()
    assert "ordinary file, not a container" in iosig("container", "ls", tmp_path / "plain", check=3).stderr
    assert "not a container" in iosig("container", "check", tmp_path / "directory", check=3).stderr
    iosig("container", "ls", tmp_path / "nothing", check=4)
    iosig("container", "create", tmp_path / "directory", check=2)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [("schema", "iosig.container/3", "this program reads"), ("subfolders", 7, "checksum"), ("id", "x", "checksum")],
)
def test_a_changed_manifest_is_refused(iosig: Iosig, container: Path, key: str, value: object, message: str) -> None:
    path = container / ".iosig-container"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {key: value}))
    assert message in iosig("container", "ls", container, check=3).stderr


def test_flatten_waits_for_nobody(iosig: Iosig, container: Path) -> None:
    writer = subprocess.Popen(
        [str(BUILD / "bin" / "write_container"), str(container)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdin and writer.stdout
    writer.stdin.write("open c\nwrite c 0 2 Z\n")
    writer.stdin.flush()
    assert [writer.stdout.readline() for _ in range(2)] == ["ok\n"] * 2
    assert "is being written" in iosig("container", "flatten", container, check=1).stderr
    assert content(iosig, container) == b"ZZ" + CONTENT[2:]  # readers need not wait
    assert iosig.json("container", "repair", container)["steps"] == []
    writer.kill()
    writer.wait()
    assert len(iosig.json("container", "repair", container)["steps"]) == 1
    iosig("container", "flatten", container)
    assert container.read_bytes() == b"ZZ" + CONTENT[2:]


def test_truncations_and_holes_are_no_writes(iosig: Iosig, tmp_path: Path) -> None:
    path = tmp_path / "file"
    iosig("container", "create", path)
    write(path, "open a", "times a 100 0 64 64 a", "truncate a 640", "write a 6400 3 b", "close a")
    said = iosig("container", "index", path).stdout.splitlines()
    assert said[0].startswith("101 writes and 1 truncation or hole as ")
    assert [line for line in said if "truncation" in line][1:] == [
        f"logical 640, length {(1 << 63) - 1 - 640}: not a write, but a truncation or a hole"
    ]
    assert "id -1" not in "\n".join(said)


def test_ls_of_a_damaged_container_says_so(iosig: Iosig, container: Path) -> None:
    assert iosig.json("container", "ls", container)["damaged"] is False
    dropping(container, "data.1").unlink()
    done = iosig("container", "ls", container, check=1)
    assert "damaged" in done.stdout.splitlines()[0] and "1 problem, which iosig container check" in done.stderr
    assert iosig.json("container", "ls", container, check=1)["damaged"] is True


def test_rm_takes_the_data_on_targets_and_nothing_but_containers(iosig: Iosig, tmp_path: Path) -> None:
    targets = [tmp_path / "a", tmp_path / "b"]
    for target in targets:
        target.mkdir()
    paths = [tmp_path / "one", tmp_path / "two"]
    iosig("container", "create", *[f"--target={target}" for target in targets], paths[0])
    iosig("container", "create", paths[1])
    for path in paths:
        write(path, *ROWS)
    (tmp_path / "plain").write_text("mine")
    (tmp_path / "directory").mkdir()
    (tmp_path / "link").symlink_to("two")
    others = [tmp_path / name for name in ("plain", "directory", "link", "none")]
    before = sorted(tmp_path.rglob("*"))
    planned = iosig.json("container", "rm", "--dry-run", paths[0], *others, paths[1], check=4)
    assert planned["schema"] == "iosig.container-removal/1" and planned["dry_run"]
    assert [item["path"] for item in planned["refused"]] == list(map(str, others))
    assert [item["data_bytes"] for item in planned["removed"]] == [12800, 12800]
    assert [Path(directory).parent for directory in planned["removed"][0]["folders"]] == [tmp_path, *targets]
    assert sorted(tmp_path.rglob("*")) == before
    iosig("container", "rm", others[0], check=3)
    iosig("container", "rm", others[2], check=2)
    assert iosig("container", "rm", *paths).stdout == (
        f"'{paths[0]}': removed (12.5 KB, on 2 targets)\n'{paths[1]}': removed (12.5 KB)\n"
    )
    gone = {path for path in before for each in (*targets, *paths) if path.is_relative_to(each) and path not in targets}
    assert set(tmp_path.rglob("*")) == set(before) - gone


def test_flatten_takes_no_link_and_nothing_that_is_open_or_was_quarantined(iosig: Iosig, container: Path) -> None:
    link = container.with_name("link")
    link.symlink_to(container)
    assert "is a symbolic link" in iosig("container", "flatten", link, check=2).stderr
    assert link.is_symlink() and container.is_dir()
    reader = iosig(
        "run", "--", "sh", "-c", f"exec 3< {container}; {iosig.binary} container flatten {container} 2>&1", check=None
    )
    assert reader.returncode != 0 and container.is_dir()
    (container / "notes.txt").write_text("mine")
    iosig("container", "repair", container)
    assert "quarantined" in iosig("container", "flatten", container, check=1).stderr
    assert next(container.glob(".iosig-aside-*/notes.txt")).read_text() == "mine"


def test_check_names_what_an_interrupted_removal_left(iosig: Iosig, container: Path) -> None:
    left = container.with_name(f".{container.name}.iosig-removed-0123456789abcdef")
    left.mkdir()
    done = iosig("container", "check", container)
    assert done.stdout == "sound\n"
    assert str(left) in done.stderr


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_a_lost_manifest_is_made_anew(iosig: Iosig, container: Path, damage: str) -> None:
    manifest = container / ".iosig-container"
    before = json.loads(manifest.read_text())
    if damage == "missing":
        manifest.unlink()
    else:
        manifest.write_text("{}")
    iosig("container", "check", container, check=3)
    assert "would have rebuilt its manifest from 2 index" in iosig("container", "repair", "--dry-run", container).stdout
    iosig("container", "check", container, check=3)
    assert iosig.json("container", "repair", container)["steps"][0].startswith("rebuilt its manifest")
    assert json.loads(manifest.read_text()) == before
    assert content(iosig, container) == CONTENT
    assert iosig("container", "repair", container).stdout == "nothing to repair\n"


def test_the_manifest_of_another_container_is_replaced(iosig: Iosig, container: Path, tmp_path: Path) -> None:
    manifest = container / ".iosig-container"
    own = manifest.read_text()
    other = tmp_path / "other"
    iosig("container", "create", other)
    shutil.copy(other / ".iosig-container", manifest)
    assert iosig.json("container", "check", container, check=1)["problems"]
    assert "would have rebuilt its manifest" in iosig("container", "repair", "--dry-run", container).stdout
    assert manifest.read_text() != own
    iosig("container", "repair", container)
    assert json.loads(manifest.read_text()) == json.loads(own)
    assert iosig.json("container", "check", "--data", container)["sound"] and content(iosig, container) == CONTENT
    assert iosig("container", "repair", container).stdout == "nothing to repair\n"


def test_droppings_of_another_container_do_not_replace_the_manifest(
    iosig: Iosig, container: Path, tmp_path: Path
) -> None:
    """Its own index or, without that, its record speaks for it."""
    other = tmp_path / "other"
    iosig("container", "create", other)
    write(other, "open a", "write a 0 5 z", "close a")
    before = (other / ".iosig-container").read_text()
    shutil.copytree(container / "d1", other / "d1")
    iosig("container", "repair", other)
    shutil.copytree(container / "d1", other / "d1", dirs_exist_ok=True)
    (other / "d0" / "index.0").unlink()
    iosig("container", "repair", other)
    assert content(iosig, other) == b"z" * 5
    assert (other / ".iosig-container").read_text() == before


def test_a_lost_manifest_of_a_container_with_targets(iosig: Iosig, tmp_path: Path) -> None:
    targets = [tmp_path / "a", tmp_path / "b"]
    for target in targets:
        target.mkdir()
    path = tmp_path / "file"
    iosig("container", "create", *[f"--target={target}" for target in targets], path)
    write(path, *ROWS)
    (path / ".iosig-container").unlink()
    assert "name one of these directories with --target" in iosig("container", "repair", path, check=3).stderr
    assert "the copy in" in iosig("container", "repair", "--target", targets[1], path).stdout
    assert content(iosig, path) == CONTENT


def test_a_newer_versions_manifest_is_not_made_anew(iosig: Iosig, container: Path) -> None:
    path = container / ".iosig-container"
    newer = json.dumps(json.loads(path.read_text()) | {"schema": "iosig.container/3"})
    path.write_text(newer)
    for arguments in (["--dry-run"], []):
        said = iosig("container", "repair", *arguments, container, check=3).stderr
        assert "iosig.container/3" in said and "newer IOSIG" in said
    assert path.read_text() == newer
    path.write_text(newer.replace("iosig.container/3", "iosig.container/0"))  # no version ever was
    iosig("container", "repair", container)
    assert content(iosig, container) == CONTENT


def test_what_is_no_container_is_not_repaired(iosig: Iosig, tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    assert "not a container" in iosig("container", "repair", tmp_path / "directory", check=3).stderr
    assert list((tmp_path / "directory").iterdir()) == []


@pytest.mark.parametrize("damage", ["changed", "cut"])
def test_damage_in_the_only_frame_of_a_closed_writer_is_a_loss(iosig: Iosig, container: Path, damage: str) -> None:
    forget_closed_writers(container)
    path = dropping(container, "index.1")
    frames = path.read_bytes()
    path.write_bytes(frames[:-20] if damage == "cut" else frames[:-20] + bytes([frames[-20] ^ 4]) + frames[-19:])
    problems = iosig.json("container", "check", container, check=1)["problems"]
    assert {problem["kind"] for problem in problems} == {"lost"}
    assert "index.1" in iosig("container", "flatten", container, check=3).stderr
    assert container.is_dir()
