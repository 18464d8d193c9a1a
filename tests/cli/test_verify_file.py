"""Data declared tamperproof or archive: `finalize` seals them where they are, `verify-file` holds them against that."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD
from redirecting import World


@pytest.fixture
def world(world: World) -> World:
    text = world.storage.read_text()
    world.storage.write_text(text.replace("persistent = false\n", "archive = true\ntamperproof = true\n", 1))
    return world


def sealed(world: World, name: str, content: bytes, signature: str) -> tuple[Path, Path, Path]:
    """A file that was redirected, written and finalized: (the link, the data, their manifest)."""
    path, data = world.prepared(name, content, signature)
    done = world.iosig.json("finalize", path)["settled"][0]
    assert done["action"] == "sealed" and done["destination"] == str(data)
    return path, data, Path(world.iosig.json("verify-file", path)["files"][0]["manifest"])


def open_up(file: Path) -> None:
    """What an attacker with the owner's and the administrator's rights would do first."""
    subprocess.run(["chattr", "-i", file], stderr=subprocess.DEVNULL)
    file.chmod(0o644)


def is_immutable(file: Path) -> bool:
    listed = subprocess.run(["lsattr", "-d", file], capture_output=True, text=True).stdout
    return "i" in listed.split(" ")[0]


def can_make_immutable(directory: Path) -> bool:
    probe = directory / "probe"
    probe.touch()
    done = subprocess.run(["chattr", "+i", probe], capture_output=True)
    subprocess.run(["chattr", "-i", probe], capture_output=True)
    probe.unlink()
    return done.returncode == 0


def test_tamperproof_data_stay_on_the_mount_point_and_are_intact(world: World) -> None:
    content = os.urandom(300_000)
    path, data, manifest = sealed(world, "ledger", content, "tamperproof")
    assert path.readlink() == data and path.read_bytes() == content
    assert hashlib.sha256(content).hexdigest() in manifest.read_text()
    assert world.journal() == []
    assert world.iosig("verify-file", path).stdout.startswith(f"'{path}': intact (")
    assert world.iosig("verify-file", data).stdout.startswith(f"'{data}': intact (")


def test_sha256sum_reads_the_manifest_whatever_the_name_has(world: World) -> None:
    for name in ("plain", "two\nlines", "back\\slash", "ret\rurn", "n" * 255):
        _, data, manifest = sealed(world, name, name.encode(), "archive")
        assert manifest.parent == data.parent
        done = subprocess.run(["sha256sum", "-c", manifest.name], cwd=manifest.parent, capture_output=True, text=True)
        assert done.returncode == 0 and "OK" in done.stdout, (name, done.stderr)


def test_tamperproof_data_are_read_only_and_immutable_where_rights_allow(world: World) -> None:
    _, data, manifest = sealed(world, "ledger", b"sealed", "tamperproof")
    assert data.stat().st_mode & 0o222 == 0
    closed = world.iosig.json("verify-file", data)["files"][0]["closed_by"]
    assert "read-only" in closed
    if not can_make_immutable(world.user_directory):
        pytest.skip(f"no immutable flag for this user on {world.user_directory}")
    assert "immutable" in closed and is_immutable(data) and is_immutable(manifest)
    for change in (lambda: data.write_bytes(b"x"), data.unlink, lambda: data.rename(data.with_name("y"))):
        with pytest.raises(PermissionError):
            change()


@pytest.mark.parametrize("signature", ["tamperproof", "archive"])
def test_one_changed_byte_is_found(world: World, signature: str) -> None:
    path, data, _ = sealed(world, "out", b"0123456789", signature)
    open_up(data)
    times = data.stat()
    data.write_bytes(b"01234x6789")
    os.utime(data, ns=(times.st_atime_ns, times.st_mtime_ns))  # the time tells nothing
    done = world.iosig("verify-file", path, check=1)
    assert "ALTERED" in done.stdout and hashlib.sha256(b"01234x6789").hexdigest() in done.stdout
    data.write_bytes(b"0123456789+")
    assert "11 bytes, sealed with 10" in world.iosig("verify-file", path, check=1).stdout
    answer = world.iosig.json("verify-file", path, check=1)
    assert answer["schema"] == "iosig.verify-file/1" and answer["files"][0]["intact"] is False


def test_data_and_manifest_that_were_changed_together_do_not_fit_a_copy_kept_elsewhere(world: World) -> None:
    path, data, manifest = sealed(world, "out", b"true", "archive")
    copy = world.root / "kept.sha256"
    copy.write_bytes(manifest.read_bytes())
    data.write_bytes(b"lies")
    world.iosig("finalize", path)  # archived anew, with a manifest that fits
    world.iosig("verify-file", path)
    world.iosig("verify-file", path, "--manifest", copy, check=1)


def test_gone_data_a_damaged_manifest_and_none_at_all_are_told_apart(world: World) -> None:
    path, data, manifest = sealed(world, "out", b"data", "archive")
    text = manifest.read_text()
    manifest.chmod(0o644)
    manifest.write_text(text.replace("size_bytes 4", "size_bytes 5"))
    assert "changed after it was written" in world.iosig("verify-file", path, check=3).stderr
    manifest.write_text(text[:-40])
    assert str(manifest) in world.iosig("verify-file", path, check=3).stderr
    manifest.unlink()
    assert "has no manifest" in world.iosig("verify-file", path, check=3).stderr
    data.unlink()
    assert "are gone" in world.iosig("verify-file", path, check=1).stderr
    assert world.iosig("verify-file", world.work / "nothing", check=4).stderr


def test_finalizing_sealed_data_again_changes_nothing(world: World) -> None:
    path, data, manifest = sealed(world, "ledger", b"sealed", "tamperproof")
    before = manifest.read_bytes()
    assert world.iosig.json("finalize", path)["settled"][0]["action"] == "sealed"
    assert path.readlink() == data and manifest.read_bytes() == before and world.journal() == []


def test_tamperproof_data_that_were_altered_are_not_sealed_anew(world: World) -> None:
    path, data, manifest = sealed(world, "ledger", b"sealed", "tamperproof")
    before = manifest.read_bytes()
    open_up(data)
    data.write_bytes(b"forged")
    assert "altered after it was sealed" in world.iosig("finalize", path, check=1).stderr
    assert manifest.read_bytes() == before and world.journal() == []
    world.iosig("verify-file", path, check=1)


def test_archived_data_that_a_later_run_wrote_get_a_new_manifest(world: World) -> None:
    path, _, _ = sealed(world, "out", b"first run", "archive")
    path.write_bytes(b"second run")
    world.iosig("verify-file", path, check=1)
    world.iosig("finalize", path)
    world.iosig("verify-file", path)
    assert path.is_symlink() and path.read_bytes() == b"second run"


def test_data_that_a_program_still_writes_are_not_sealed(world: World) -> None:
    path, data = world.prepared("out", b"data", "tamperproof")
    with data.open("ab"):
        assert world.iosig("finalize", "--force", path, check=1).stderr
    assert not list(world.user_directory.glob("*.sha256")) and data.stat().st_mode & 0o200
    world.iosig("finalize", path)
    world.iosig("verify-file", path)


def test_a_dry_run_seals_nothing(world: World) -> None:
    path, data = world.prepared("out", b"data", "tamperproof")
    assert "would be sealed" in world.iosig("finalize", "--dry-run", path).stdout
    assert data.stat().st_mode & 0o200 and not list(world.user_directory.glob("*.sha256"))


def test_archived_data_are_kept_even_if_declared_temporary(world: World) -> None:
    path, data, _ = sealed(world, "out", b"data", "temp archive")
    assert path.readlink() == data and data.read_bytes() == b"data"


def test_gc_spares_sealed_data_and_says_what_they_are(world: World) -> None:
    path, data, manifest = sealed(world, "out", b"data", "archive")
    temporary, other = world.prepared("scratch", b"data", "temp archive")
    done = world.iosig("gc", "--older-than", "0s")
    assert f"{data.parent}" in done.stdout and "sealed" in done.stdout and str(manifest) not in done.stdout
    assert path.read_bytes() == data.read_bytes() == temporary.read_bytes() == other.read_bytes() == b"data"


def test_neither_libiosig_nor_the_plugin_brings_nettle_along() -> None:
    libraries = [BUILD / "lib" / "libiosig.so", *(BUILD / "lib" / "iosig").glob("gcc-*/iosig.so")]
    for library in libraries:
        needed = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
        assert "NEEDED" in needed and "nettle" not in needed, library
