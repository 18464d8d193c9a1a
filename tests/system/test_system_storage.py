"""/etc/iosig/storage.toml beside other descriptions: its mount points, its limits, and its mistakes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from redirecting import World, needs_mounts

pytestmark = needs_mounts

NEW = str(os.O_CREAT | os.O_WRONLY)

# $1: the text of /etc/iosig/storage.toml; $2: a directory; then the command. /etc is replaced by links to what it has.
WITH_ETC = """
set -e
text=$1 root=$2; shift 2
mkdir -p "$root/etc"; mount --bind /etc "$root/etc"
mount -t tmpfs -o mode=755 none /etc
for entry in "$root"/etc/*; do ln -s "$entry" /etc/; done
rm -f /etc/iosig; mkdir /etc/iosig; printf '%s' "$text" > /etc/iosig/storage.toml
exec "$@"
"""


def mount_point(path: object, device: str, *more: str) -> str:
    return "\n".join(["[[mount_point]]", f'path = "{path}"', f'device = "{device}"', *more, ""])


def device(name: str, kind: str, *more: str) -> str:
    return "\n".join(["[[device]]", f'name = "{name}"', f'kind = "{kind}"', *more, ""])


def description(*parts: str) -> str:
    return "\n".join(['schema = "iosig.storage/2"', *parts])


class Machine:
    """A world whose user has the description of `world` at home, under another /etc/iosig/storage.toml."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.user_file = world.iosig.home / ".config" / "iosig" / "storage.toml"
        self.user_file.parent.mkdir(parents=True)
        self.user_file.write_text(world.storage.read_text())
        del world.env["IOSIG_STORAGE"]

    def __call__(self, system: str, *command: object) -> tuple[int, str, str]:
        done = self.world.run_with_own_mounts(WITH_ETC, system, self.world.root, *command, input=b"data")
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def json(self, system: str, *words: object) -> Any:
        _, out, said = self(system, self.world.iosig.binary, *words, "--json")
        assert out, said
        return json.loads(out)


@pytest.fixture
def machine(world: World) -> Machine:
    return Machine(world)


def test_mount_points_that_only_the_machine_describes_are_added_with_their_devices(machine: Machine) -> None:
    world = machine.world
    added = world.root / "added"
    added.mkdir()
    # "slow" is another device than the user's, and the user's `fast` stays the user's.
    system = description(
        mount_point(added, "slow"), mount_point(world.fast, "x"), device("slow", "ssd"), device("x", "hdd")
    )
    listed = machine.json(system, "storage", "list")
    kinds = {made["name"]: made["kind"] for made in listed["devices"]}
    assert [(m["path"], kinds[m["device"]]) for m in listed["mount_points"]] == [
        (str(world.fast), "ram"),
        (str(world.root), "hdd"),
        (str(added), "ssd"),
    ]
    assert listed["file"] == str(machine.user_file) and listed["applies"] == "user"
    _, _, said = machine(system, world.iosig.binary, "storage", "list")
    assert f"{machine.user_file} (this user's, for all hosts without their own), and /etc/iosig/storage.toml" in said
    named = machine.json(system, "storage", "list", "--storage", machine.user_file)
    assert [m["path"] for m in named["mount_points"]] == [str(world.fast), str(world.root)]


def test_a_forbidden_mount_point_takes_no_data_whatever_the_user_names(machine: Machine, hinted: Path) -> None:
    world = machine.world
    forbidding = description(mount_point(world.fast, "x", "forbidden = true"), device("x", "ram"))
    allowing = description(mount_point(world.fast, "x"), device("x", "ram"))
    machine.user_file.write_text(world.storage.read_text().replace("persistent", "forbidden = false\npersistent", 1))
    for named in ([], ["--storage", world.storage]):
        choice = machine.json(forbidding, "choose", "random", *named)
        reasons = {candidate["mount_point"]: candidate["reasons"] for candidate in choice["candidates"]}
        assert choice["chosen"] == str(world.root)
        assert reasons[str(world.fast)] == ["forbidden by the administrator"]
    _, shown, _ = machine(forbidding, world.iosig.binary, "storage", "show", world.fast)
    assert ["forbidden", "true", "administrator"] in [line.split() for line in shown.splitlines()]
    _, listed, _ = machine(forbidding, world.iosig.binary, "storage", "list")
    assert any(line.startswith(str(world.fast)) and " forbidden " in line for line in listed.splitlines())

    assert machine(forbidding, hinted, "open", "kept", NEW, "random") == (0, "0 77\n", "")
    assert (world.work / "kept").read_bytes() == b"data" and not (world.work / "kept").is_symlink()
    world.env["IOSIG_STORAGE"] = str(world.storage)
    assert machine(forbidding, hinted, "open", "kept too", NEW, "random") == (0, "0 77\n", "")
    assert not (world.work / "kept too").is_symlink()
    assert machine(allowing, hinted, "open", "moved", NEW, "random") == (0, "0 77\n", "")
    assert (world.work / "moved").is_symlink()


def test_a_link_to_a_forbidden_place_is_as_forbidden(machine: Machine, hinted: Path) -> None:
    world = machine.world
    alias = world.root / "alias"
    alias.symlink_to(world.fast)
    machine.user_file.write_text(machine.user_file.read_text().replace(str(world.fast), str(alias)))
    forbidding = description(mount_point(world.fast, "x", "forbidden = true"), device("x", "ram"))
    listed = {m["path"]: m for m in machine.json(forbidding, "storage", "list")["mount_points"]}
    assert listed[str(alias)]["forbidden"] and listed[str(alias)]["origins"]["forbidden"] == "administrator"
    assert machine(forbidding, hinted, "open", "kept", NEW, "random") == (0, "0 77\n", "")
    assert not (world.work / "kept").is_symlink()

    through = world.root / "through"  # the administrator's path is the link
    through.symlink_to(world.fast)
    machine.user_file.write_text(machine.user_file.read_text().replace(str(alias), str(world.fast)))
    forbidding = description(mount_point(through, "x", "forbidden = true"), device("x", "ram"))
    assert machine(forbidding, hinted, "open", "kept too", NEW, "random") == (0, "0 77\n", "")
    assert not (world.work / "kept too").is_symlink()


def test_a_probe_leaves_alone_what_the_administrator_forbids(machine: Machine) -> None:
    world = machine.world
    forbidding = description(mount_point(world.fast, "x", "forbidden = true"), device("x", "ram"))
    probe = (world.iosig.binary, "storage", "probe", "--quick", "--dry-run", "--mount", world.fast)
    status, out, said = machine(forbidding, *probe)
    assert status == 1 and out == ""
    assert f"'{world.fast}' is not a destination: it is forbidden by the administrator" in said
    assert "buffered writes" not in said


def test_a_share_caps_what_a_choice_and_the_list_count_as_room(machine: Machine, hinted: Path) -> None:
    world = machine.world
    disk = world.root / "disk"
    disk.mkdir()
    text = description('policy = "paper"', mount_point(disk, "d"), mount_point(world.root, "s"))
    machine.user_file.write_text(text + device("d", "ram") + device("s", "hdd"))
    system = description(mount_point(disk, "x", "max_share = 0.25"), device("x", "ram"))
    steps = f"""
mount -t tmpfs -o size=100m disk '{disk}'
[ -z "$1" ] || head -c "$1" /dev/zero > '{disk}/used'
shift; "$@"
"""

    def with_used(used: str, *command: object) -> tuple[int, str, str]:
        return machine(system, "bash", "-ec", steps, "-", used, *command)

    status, out, said = with_used("", world.iosig.binary, "storage", "list", "--json")
    assert status == 0, said
    listed = {m["path"]: m for m in json.loads(out)["mount_points"]}[str(disk)]
    assert listed["free_bytes"] == 25 << 20 and listed["max_share"] == 0.25 and listed["withheld_bytes"] > 70 << 20
    assert listed["origins"]["max_share"] == "administrator"
    _, table, _ = with_used("", world.iosig.binary, "storage", "list")
    assert "25 MB, 73 MB withheld" in table

    for used, size, chosen in (
        ("", "25MB", disk),
        ("", "26MB", world.root),
        ("20M", "5MB", disk),
        ("20M", "6MB", world.root),
    ):
        _, out, said = with_used(used, world.iosig.binary, "choose", f"temp totalsize({size})", "--json")
        choice = json.loads(out)
        assert choice["chosen"] == str(chosen), (used, size, said)
    [why] = [c["reasons"] for c in choice["candidates"] if c["mount_point"] == str(disk)]
    assert "withheld (max_share 0.25)" in why[0]

    assert with_used("", hinted, "open", "moved", NEW, "temp totalsize(25MB)")[0] == 0
    assert (world.work / "moved").is_symlink()
    assert with_used("", hinted, "open", "kept", NEW, "temp totalsize(26MB)") == (0, "0 77\n", "")
    assert not (world.work / "kept").is_symlink()


def test_a_bad_machines_description_is_named_by_commands_and_silent_in_programs(machine: Machine, hinted: Path) -> None:
    world = machine.world
    bad = description(mount_point(world.fast, "x", "max_share = 50"), device("x", "ram"))
    status, out, said = machine(bad, world.iosig.binary, "choose", "random", "--json")
    assert status == 0 and json.loads(out)["chosen"] == str(world.fast)
    assert "/etc/iosig/storage.toml:5" in said and "above 0, up to 1" in said and "do not count" in said
    found = {f["part"]: f for f in machine.json(bad, "doctor")["findings"]}
    assert found["description"]["state"] == "works" and found["machine's description"]["state"] == "broken"
    assert "/etc/iosig/storage.toml:5" in found["machine's description"]["detail"]
    assert machine(bad, hinted, "open", "moved", NEW, "random") == (0, "0 77\n", "")
    assert (world.work / "moved").is_symlink()

    machine.user_file.unlink()  # now the bad one is the only one
    status, _, said = machine(bad, world.iosig.binary, "choose", "random")
    assert status == 3 and "/etc/iosig/storage.toml:5" in said
    _, _, said = machine(bad, hinted, "open", "kept", NEW, "random")
    assert "/etc/iosig/storage.toml:5" in said and not (world.work / "kept").is_symlink()


def test_the_machines_description_alone_serves_with_its_limits(machine: Machine) -> None:
    world = machine.world
    machine.user_file.unlink()
    system = description(
        mount_point(world.fast, "x", "forbidden = true"),
        mount_point(world.root, "y"),
        device("x", "ram"),
        device("y", "hdd"),
    )
    choice = machine.json(system, "choose", "random")
    assert choice["chosen"] == str(world.root) and choice["storage"] == "/etc/iosig/storage.toml"
    listed = machine.json(system, "storage", "list")
    assert listed["applies"] == "system"
    assert listed["mount_points"][0]["origins"]["forbidden"] == "administrator"
