"""Hosts that share a home directory: which storage description applies on this one."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from redirecting import World

HOST = socket.gethostname()
SHORT = HOST.split(".")[0]


def description(path: object, device: str = "a", kind: str = "ssd") -> str:
    return (
        f'schema = "iosig.storage/2"\n[[mount_point]]\npath = "{path}"\ndevice = "{device}"\n'
        f'[[device]]\nname = "{device}"\nkind = "{kind}"\n'
    )


@pytest.fixture
def config(iosig: Any) -> Path:
    """The user's configuration directory, with a plain description."""
    directory: Path = iosig.home / ".config" / "iosig"
    (directory / "storage.d").mkdir(parents=True)
    (directory / "storage.toml").write_text(description("/plain"))
    return directory


def applied(iosig: Any) -> tuple[str, str, str]:
    """The file that applies, the reason, and its mount point; what list says beside the table is the same."""
    document = iosig.json("storage", "list")
    said = iosig("storage", "list").stderr
    assert f"storage description: {document['file']} (" in said
    return document["file"], document["applies"], document["mount_points"][0]["path"]


def test_the_file_of_this_host_applies_and_others_serve_the_other_hosts(iosig: Any, config: Path) -> None:
    hosts = config / "storage.d"
    (hosts / "no-such-host.toml").write_text("broken")  # another host's problem
    assert applied(iosig) == (str(config / "storage.toml"), "user", "/plain")
    (hosts / f"{SHORT[:1]}*.toml").write_text(description("/pattern"))
    assert applied(iosig) == (str(hosts / f"{SHORT[:1]}*.toml"), "hosts", "/pattern")
    (hosts / f"{SHORT}.toml").write_text(description("/host"))
    assert applied(iosig) == (str(hosts / f"{SHORT}.toml"), "host", "/host")
    shown = iosig("storage", "show")
    assert "/host" in shown.stdout and f"{SHORT}.toml (for the host '{SHORT}')" in shown.stderr
    doctor = iosig.json("doctor", check=None)
    details = [found["detail"] for found in doctor["findings"] if found["part"] == "description"]
    assert details[0].startswith(f"{hosts}/{SHORT}.toml (for the host '{SHORT}'), ")
    iosig.env["IOSIG_STORAGE"] = str(config / "storage.toml")
    assert applied(iosig)[1:] == ("environment", "/plain")


def test_a_broken_file_of_this_host_is_named_and_no_other_takes_its_place(iosig: Any, config: Path) -> None:
    file = config / "storage.d" / f"{SHORT}.toml"
    file.write_text("schema = 1\n")
    assert f"{file}:1" in iosig("storage", "list", check=3).stderr
    file.write_text(description("/host"))
    file.chmod(0o666)
    assert f"{file} " in iosig("storage", "list", check=3).stderr


def test_a_probe_writes_the_file_of_this_host_and_later_probes_renew_it(
    iosig: Any, config: Path, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = ("storage", "probe", "--quick", "--force", "--mount", scratch)
    plain = (config / "storage.toml").read_text()
    pattern, own = config / "storage.d" / f"{HOST[:1]}*.toml", config / "storage.d" / f"{HOST}.toml"
    assert iosig.json(*words, "--hosts", f"{HOST[:1]}*")["file"] == str(pattern)
    assert iosig.json(*words, "--this-host")["file"] == str(own)
    assert applied(iosig) == (str(own), "host", str(scratch))
    said = iosig(*words, "--hosts", f"{HOST[:1]}*").stderr
    assert f"on this host, {own} applies instead (for the host '{HOST}')" in said
    own.write_text(own.read_text().replace('\nname = "', '\nmttf = "7y"\nname = "', 1))
    assert iosig.json(*words)["file"] == str(own)
    assert 'mttf = "7y"' in own.read_text()
    assert (config / "storage.toml").read_text() == plain


def test_a_probe_does_not_describe_hosts_that_it_cannot_measure(iosig: Any, config: Path) -> None:
    refused = iosig("storage", "probe", "--quick", "--hosts", "no-such-host*", check=2).stderr
    assert "'no-such-host*' does not cover this host" in refused and f"'{HOST}'" in refused
    assert list((config / "storage.d").iterdir()) == []
    for both in (["--this-host", "--hosts", "*"], ["--this-host", "--output", "x"], ["--hosts", "*", "--output", "x"]):
        iosig("storage", "probe", *both, check=2)


def test_a_hint_in_a_program_follows_the_file_of_this_host(world: World, hinted: Path) -> None:
    text = world.storage.read_text()
    del world.env["IOSIG_STORAGE"]
    config = world.iosig.home / ".config" / "iosig"
    (config / "storage.d").mkdir(parents=True)
    (config / "storage.toml").write_text("broken")
    (config / "storage.d" / f"{SHORT[:1]}*.toml").write_text(text)
    flags = str(os.O_CREAT | os.O_WRONLY)
    done = world.run(hinted, "open", "out", flags, "random", input=b"data")
    assert done.stdout == b"0 77\n" and done.stderr == b""
    assert (world.work / "out").readlink().is_relative_to(world.fast)
