"""docs/threats.md, line by line: what other users of a machine can try, and that it gains them nothing.

Root plays everybody: a victim who uses IOSIG, and an attacker, each with a real user id. Races are run in loops.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from conftest import BUILD, ROOT
from redirecting import with_checksum

VICTIM, ATTACKER, PROJECT = 61001, 61002, 61003
NEW = os.O_CREAT | os.O_WRONLY
SECRET = b"the victim's data"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as several users")


class Stage:
    """Directories that several users can reach. Only the victim can enter `home`; all users can write in `shared` and
    in `mount`, which is on another file system, the one that IOSIG finds best."""

    def __init__(self, root: Path, mount: Path) -> None:
        self.root, self.mount = root, mount
        self.bin, self.home, self.shared = root / "bin", root / "home", root / "shared"
        for directory, user, mode in ((self.bin, 0, 0o755), (self.home, VICTIM, 0o700), (self.shared, 0, 0o1777)):
            directory.mkdir()
            give(directory, user, mode)
        give(root, 0, 0o755)
        give(mount, 0, 0o1777)
        shutil.copy(BUILD / "bin" / "iosig", self.bin)
        for library in (BUILD / "lib").glob("libiosig.so*"):
            shutil.copy(library, self.bin)
        self.work, self.config = self.home / "work", self.home / "storage.toml"
        self.own_directory = mount / f".iosig-{VICTIM}"
        self.env = {"HOME": str(self.home), "PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(self.bin)}
        self.env |= {"IOSIG_STORAGE": str(self.config), "IOSIG_STATE": str(self.home / "state")}
        self.work.mkdir()
        give(self.work, VICTIM, 0o755)
        self.describe(self.config, mount)

    def describe(self, file: Path, mount: Path, owner: int = VICTIM) -> None:
        file.write_text(
            'schema = "iosig.storage/2"\npolicy = "paper"\n'
            f'[[mount_point]]\npath = "{mount}"\ndevice = "fast"\n'
            f'[[mount_point]]\npath = "{self.root}"\ndevice = "slow"\n'
            '[[device]]\nname = "fast"\nkind = "ram"\n[[device]]\nname = "slow"\nkind = "hdd"\n'
        )
        give(file, owner, 0o644)

    def run(self, *command: object, user: int = VICTIM, **options: Any) -> subprocess.CompletedProcess[bytes]:
        options.setdefault("cwd", self.work)
        options.setdefault("env", self.env)
        words = [os.fsencode(str(word)) for word in command]
        return subprocess.run(
            words, user=user, group=user, extra_groups=[PROJECT], capture_output=True, timeout=60, **options
        )

    def iosig(self, *words: object, **options: Any) -> subprocess.CompletedProcess[bytes]:
        return self.run(self.bin / "iosig", *words, **options)

    def program(self, path: object, data: bytes = SECRET, **options: Any) -> subprocess.CompletedProcess[bytes]:
        """The victim's program, with a hint before its open."""
        return self.run(self.bin / "hinted", "open", path, NEW, "random", input=data, **options)

    def prepared(self, path: Path, signature: str = "persist random") -> Path:
        """Where the victim's data are that a program wrote to `path`, a link now."""
        done = self.iosig("prepare", path, signature)
        assert done.returncode == 0, done.stderr
        assert self.program(path).stdout.startswith(b"0 ")
        return path.readlink()

    @contextmanager
    def attack(self, python: str) -> Iterator[None]:
        """The attacker repeats these lines as fast as possible; what fails is tried again."""
        body = "".join(f"        {line}\n" for line in python.strip().splitlines())
        source = (
            "import ctypes, os, shutil\n"
            "exchange = lambda a, b: ctypes.CDLL(None).renameat2(-100, os.fsencode(a), -100, os.fsencode(b), 2)\n"
            f"print(flush=True)\nwhile True:\n    try:\n{body}    except OSError: pass\n"
        )
        attacker = subprocess.Popen(
            [sys.executable, "-c", source], user=ATTACKER, group=ATTACKER, extra_groups=[], stdout=subprocess.PIPE
        )
        try:
            assert attacker.stdout and attacker.stdout.readline() == b"\n"
            yield
            assert attacker.poll() is None, "the attacker gave up"
        finally:
            attacker.kill()
            attacker.wait()

    def loot(self) -> list[Path]:
        """Files outside the victim's closed directories that hold its data. An attacker may be at work meanwhile."""
        found = []
        for top in (self.shared, self.mount):
            for directory, _, names in os.walk(top):
                for path in (Path(directory) / name for name in names):
                    with suppress(FileNotFoundError):
                        if path.is_file() and not path.is_symlink() and SECRET in path.read_bytes():
                            inside = path.is_relative_to(self.own_directory)
                            if not inside or self.own_directory.stat().st_uid != VICTIM:
                                found.append(path)
        return found


def give(path: Path, user: int, mode: int, group: int | None = None) -> None:
    os.chown(path, user, user if group is None else group)
    path.chmod(mode)


@pytest.fixture
def stage(hinted: Path) -> Iterator[Stage]:
    root, mount = (Path(tempfile.mkdtemp(prefix="iosig-test-", dir=place)) for place in ("/tmp", "/dev/shm"))
    try:
        if root.stat().st_dev == mount.stat().st_dev:
            pytest.skip("/tmp lies on /dev/shm: there is no second file system to redirect to")
        made = Stage(root, mount)
        shutil.copy(hinted, made.bin)
        if made.run(made.bin / "iosig", "--version").returncode != 0:
            pytest.skip("other users cannot run programs in /tmp")
        yield made
    finally:
        shutil.rmtree(root, ignore_errors=True)
        shutil.rmtree(mount, ignore_errors=True)


def stays_home(stage: Stage, done: subprocess.CompletedProcess[bytes], path: Path, says: bytes) -> None:
    """The program did what it would have done without IOSIG, and its user heard why, once."""
    assert done.returncode == 0 and done.stdout.startswith(b"0 ")
    assert not path.is_symlink() and path.read_bytes() == SECRET
    assert done.stderr.count(b"iosig: ") == 1 and says in done.stderr, done.stderr
    assert not stage.loot()


def test_every_line_of_the_page_names_a_test_that_exists() -> None:
    lines = (ROOT / "docs" / "threats.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| threat |")]
    assert len(rows) >= 20
    for row in rows:
        named = re.findall(r"`(tests/\S+?)::([^`]+)`", row)
        assert named, f"no test: {row}"
        for file, test in named:
            text = (ROOT / file).read_text()
            assert f"def {test}(" in text or f'"{test}"' in text, f"{file} has no {test}"


# ---- the mount point ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["link", "file", "pipe", "open directory", "closed directory"])
def test_what_another_user_planted_under_the_name_of_ones_directory_is_not_used(stage: Stage, what: str) -> None:
    trap = stage.shared / "trap"
    trap.mkdir()
    give(trap, ATTACKER, 0o777)
    planted = stage.own_directory
    match what:
        case "link":
            planted.symlink_to(trap)
        case "file":
            planted.write_bytes(b"")
        case "pipe":
            os.mkfifo(planted)
        case "open directory" | "closed directory":
            planted.mkdir(0o777 if what == "open directory" else 0o700)
            give(planted, ATTACKER, 0o777 if what == "open directory" else 0o700)
    os.lchown(planted, ATTACKER, ATTACKER)
    stays_home(stage, stage.program("out"), stage.work / "out", b"have it removed")
    refused = stage.iosig("prepare", "new", "random")
    assert refused.returncode == 4 and b"planted" in refused.stderr


def test_a_race_for_the_name_of_ones_directory_never_leads_data_to_another_user(stage: Stage) -> None:
    trap = stage.shared / "trap"
    trap.mkdir()
    give(trap, ATTACKER, 0o777)
    plant = f"os.symlink({str(trap)!r}, mine)\nos.unlink(mine)\nos.mkdir(mine)\nos.chmod(mine, 0o777)\nos.rmdir(mine)"
    redirected = 0
    with stage.attack(f"mine = {str(stage.own_directory)!r}\n{plant}"):
        for turn in range(60):
            path = stage.work / f"out{turn}"
            assert stage.program(path).returncode == 0
            assert path.read_bytes() == SECRET
            assert not stage.loot()
            if path.is_symlink():
                redirected += 1
                assert path.readlink().stat().st_uid == stage.own_directory.stat().st_uid == VICTIM
                shutil.rmtree(stage.own_directory)
    print(f"{redirected} of 60 were redirected, none to the attacker")


def test_a_mount_point_that_every_user_can_write_needs_the_sticky_bit(stage: Stage) -> None:
    stage.mount.chmod(0o777)
    stays_home(stage, stage.program("out"), stage.work / "out", b"sticky bit")
    assert stage.iosig("prepare", "new", "random").returncode == 4
    assert stage.iosig("choose", "random", "--make-folder").returncode == 4
    assert not stage.own_directory.exists()
    stage.mount.chmod(0o1777)
    assert stage.iosig("prepare", "new", "random").returncode == 0


def test_a_mount_point_below_a_directory_that_could_be_swapped_is_not_used(stage: Stage) -> None:
    inner = stage.mount / "inner"
    inner.mkdir()
    give(inner, VICTIM, 0o700)
    stage.describe(stage.config, inner)
    stage.mount.chmod(0o777)
    stays_home(stage, stage.program("out"), stage.work / "out", b"sticky bit")
    stage.mount.chmod(0o1777)
    assert stage.program("out2").returncode == 0 and (stage.work / "out2").is_symlink()


def test_a_mount_point_that_another_user_planted_is_not_used(stage: Stage) -> None:
    planted = stage.mount / "fast"  # what the description names went with a reboot
    planted.mkdir()
    give(planted, ATTACKER, 0o1777)
    stage.describe(stage.config, planted)
    stays_home(stage, stage.program("out"), stage.work / "out", b"planted")


def test_a_projects_directory_that_its_group_can_write_serves_its_members(stage: Stage) -> None:
    project = stage.mount / "project"  # led by somebody else, below a directory for everybody
    project.mkdir()
    give(project, ATTACKER, 0o2770, PROJECT)
    stage.describe(stage.config, project)
    give(stage.config, VICTIM, 0o664, PROJECT)
    assert stage.program("out").stderr == b""
    assert (stage.work / "out").readlink().parent.parent == project / f".iosig-{VICTIM}"
    assert stage.iosig("finalize", "--all").returncode == 0
    assert (stage.work / "out").read_bytes() == SECRET


def test_a_probe_passes_over_what_others_could_swap(stage: Stage) -> None:
    stage.mount.chmod(0o777)
    probe = ("storage", "probe", "--quick", "--dry-run", "--json", "--mount", stage.mount)
    del stage.env["IOSIG_STORAGE"]
    found = stage.iosig(*probe)
    assert found.returncode == 1 and b"sticky bit" in found.stderr, found.stderr
    stage.mount.chmod(0o1777)
    assert [mount["path"] for mount in json.loads(stage.iosig(*probe).stdout)["mount_points"]] == [str(stage.mount)]


def test_data_on_a_mount_point_that_became_unsafe_still_come_home(stage: Stage) -> None:
    path = stage.work / "out"
    stage.prepared(path)
    stage.mount.chmod(0o777)
    assert stage.iosig("finalize", "--all").returncode == 0
    assert not path.is_symlink() and path.read_bytes() == SECRET


def test_data_are_not_taken_for_gone_where_somebody_could_have_swapped_the_directory(stage: Stage) -> None:
    path = stage.work / "out"
    destination = stage.prepared(path)
    stage.mount.chmod(0o777)
    hidden = stage.own_directory.rename(stage.mount / "hidden")
    stage.own_directory.mkdir()
    give(stage.own_directory, VICTIM, 0o700)  # another closed directory of the victim's, moved there
    refused = stage.iosig("finalize", "--all")
    assert refused.returncode == 1 and b"sticky bit" in refused.stderr
    stage.own_directory.rmdir()
    hidden.rename(stage.own_directory)
    assert path.readlink() == destination and path.read_bytes() == SECRET


# ---- the directory where the program works ---------------------------------------------------------------------------


def test_names_planted_beside_the_link_are_not_followed_and_cost_no_data(stage: Stage) -> None:
    precious = stage.home / "precious"
    precious.write_bytes(b"precious")
    give(precious, VICTIM, 0o600)
    for number, planted in enumerate(("draft", "aside", "both", "companions")):
        path = stage.shared / f"out{number}"
        destination = stage.prepared(path)
        (entry,) = (
            json.loads(file.read_text())
            for file in (stage.home / "state/journal").glob("*.json")
            if json.loads(file.read_text())["path"] == str(path)
        )
        for name in ("draft", "aside") if planted == "both" else (planted,):
            trap = stage.shared / f".iosig-{entry['id']}.{name}"
            trap.symlink_to(precious)
            os.lchown(trap, ATTACKER, ATTACKER)
        stage.iosig("finalize", path)
        assert path.read_bytes() == SECRET
        assert path.is_symlink() == destination.exists()
        assert precious.read_bytes() == b"precious"


def test_a_copy_that_is_swapped_while_it_comes_home_costs_no_data(stage: Stage) -> None:
    stage.shared.chmod(0o777)  # here others can rename and remove all names, but not read what is closed to them
    fake = stage.shared / "fake"
    steal = (
        f"for name in os.listdir({str(stage.shared)!r}):\n"
        "    if name.endswith(('.draft', '.aside')):\n"
        f"        open({str(fake)!r}, 'w').write('fake')\n"
        f"        os.rename({str(fake)!r}, os.path.join({str(stage.shared)!r}, name))"
    )
    with stage.attack(steal):
        for turn in range(25):
            path = stage.shared / f"out{turn}"
            destination = stage.prepared(path)
            stage.iosig("finalize", path)
            standing = path.read_bytes() if path.exists() else b""
            assert destination.exists() or standing == SECRET


def test_a_working_directory_that_is_swapped_meanwhile_leads_finalize_nowhere_else(stage: Stage) -> None:
    stage.shared.chmod(0o777)
    run, other = stage.shared / "run", stage.shared / "other"
    run.mkdir()
    give(run, VICTIM, 0o755)
    other.symlink_to(stage.home)
    os.lchown(other, ATTACKER, ATTACKER)
    precious = stage.home / "out"
    precious.write_bytes(b"precious")
    give(precious, VICTIM, 0o600)
    for _ in range(15):
        destination = stage.prepared(run / "out")
        with stage.attack(f"exchange({str(run)!r}, {str(other)!r})"):
            for _ in range(3):
                stage.iosig("finalize", "--all")
        assert precious.read_bytes() == b"precious"
        if run.is_symlink():
            run.rename(stage.shared / "link"), other.rename(run), (stage.shared / "link").rename(other)
        assert (run / "out").read_bytes() == SECRET
        assert stage.iosig("finalize", "--all").returncode in (0, 1)
        assert not destination.exists()
        (run / "out").unlink()


@pytest.mark.parametrize("trick", ["symbolic link", "hard link"])
def test_another_users_link_to_ones_data_does_not_bring_them_there(stage: Stage, trick: str) -> None:
    path = stage.work / "out"
    destination = stage.prepared(path)
    planted = stage.shared / "results"
    if trick == "symbolic link":
        planted.symlink_to(destination)
        os.lchown(planted, ATTACKER, ATTACKER)
    else:
        # Root does what protected_hardlinks = 0 lets the attacker do: it links through a directory both can reach.
        shared_path = stage.shared / "out"
        destination = stage.prepared(shared_path)
        os.link(shared_path, planted, follow_symlinks=False)
    refused = stage.iosig("finalize", planted)
    assert refused.returncode == 1 and b"did not make" in refused.stderr, refused.stderr
    assert destination.read_bytes() == SECRET and planted.is_symlink()


# ---- the journal and the configuration ---------------------------------------------------------------------------


def forged(entry: str) -> str:
    """The victim's own entry, but for one word: the data are temporary, so settling deletes them."""
    body = entry.rpartition(',"checksum"')[0]
    return with_checksum(body.replace('"signature":"', '"signature":"temp ').replace("temp persist", "temp"))


@pytest.mark.parametrize("place", ["planted state directory", "open journal", "journal that can be swapped"])
def test_what_others_could_have_written_into_the_journal_is_not_done(stage: Stage, place: str) -> None:
    path = stage.work / "out"
    destination = stage.prepared(path)
    (entry,) = (stage.home / "state/journal").glob("*.json")
    state = stage.shared / "state"
    (state / "journal").mkdir(parents=True)
    (state / "journal" / entry.name).write_text(forged(entry.read_text()))
    owner = ATTACKER if place == "planted state directory" else VICTIM
    give(state, owner, 0o755)
    give(state / "journal", owner, 0o777 if place == "open journal" else 0o700 if owner == VICTIM else 0o755)
    give(state / "journal" / entry.name, owner, 0o644)
    if place == "journal that can be swapped":
        stage.shared.chmod(0o777)
    stage.env["IOSIG_STATE"] = str(state)
    for verb in (("finalize", "--all"), ("status",)):
        refused = stage.iosig(*verb)
        assert refused.returncode == 4, refused.stderr
        assert b"chmod" in refused.stderr or b"planted" in refused.stderr
    assert destination.read_bytes() == SECRET
    # Without the attack the very same entry does delete them: it is a real one.
    stage.shared.chmod(0o1777)
    give(state, VICTIM, 0o700)
    give(state / "journal", VICTIM, 0o700)
    give(state / "journal" / entry.name, VICTIM, 0o600)
    assert stage.iosig("finalize", "--all").returncode == 0
    assert not destination.exists()


def test_a_journal_is_not_made_where_others_could_swap_it(stage: Stage) -> None:
    stage.shared.chmod(0o777)
    stage.env["IOSIG_STATE"] = str(stage.shared / "state")
    stays_home(stage, stage.program("out"), stage.work / "out", b"sticky bit")
    assert not (stage.shared / "state").exists()


def test_what_is_no_entry_in_the_journal_neither_holds_up_nor_hides_the_others(stage: Stage) -> None:
    path = stage.work / "out"
    stage.prepared(path)
    journal = stage.home / "state/journal"
    os.mkfifo(journal / "pipe.json")
    (journal / "directory.json").mkdir()
    (journal / "link.json").symlink_to("/dev/zero")
    with (journal / "huge.json").open("w") as huge:
        huge.truncate(1 << 40)
    begin = time.monotonic()
    done = stage.iosig("finalize", "--all")
    assert time.monotonic() - begin < 30
    assert not path.is_symlink() and path.read_bytes() == SECRET
    for name in (b"pipe.json", b"directory.json", b"link.json", b"huge.json"):
        assert name in done.stderr + stage.iosig("status").stderr


@pytest.mark.parametrize("what", ["pipe", "device", "huge file", "nested for ever"])
def test_a_storage_description_that_is_none_does_not_hold_up_a_program(stage: Stage, what: str) -> None:
    stage.config.unlink()
    match what:
        case "pipe":
            os.mkfifo(stage.config)
        case "device":
            stage.env["IOSIG_STORAGE"] = "/dev/zero"
        case "huge file":
            with stage.config.open("w") as huge:
                huge.truncate(1 << 40)
        case "nested for ever":
            stage.config.write_text("a = " + "[" * 1_000_000)
    if stage.config.exists():
        give(stage.config, VICTIM, 0o600)
    stays_home(stage, stage.program("out"), stage.work / "out", b"")


@pytest.mark.parametrize("weak", ["open file", "planted file", "open directory"])
def test_a_configuration_that_others_could_have_written_is_not_used(stage: Stage, weak: str) -> None:
    rules, config = stage.shared / "rules.toml", stage.shared / "storage.toml"
    stage.describe(config, stage.mount)
    rules.write_text('schema = "iosig.rules/1"\n[[rule]]\npath = "*"\nsig = "random"\n')
    give(rules, VICTIM, 0o644)
    stage.env["IOSIG_STORAGE"] = str(config)
    assert stage.iosig("prepare", "--rules", rules, stage.shared / "fine").returncode == 0
    if weak == "open directory":
        stage.shared.chmod(0o777)
    for file in (config, rules):
        give(config, VICTIM, 0o644)
        give(rules, VICTIM, 0o644)
        if weak != "open directory":
            give(file, ATTACKER if weak == "planted file" else VICTIM, 0o666 if weak == "open file" else 0o644)
        refused = stage.iosig("prepare", "--rules", rules, stage.shared / "new")
        assert refused.returncode in (3, 4) and b"not used" in refused.stderr, refused.stderr
        assert not os.path.lexists(stage.shared / "new")
        if file == config:
            stays_home(stage, stage.program("out"), stage.work / "out", b"not used")


# ---- root ------------------------------------------------------------------------------------------------------------


def test_root_takes_no_orders_from_another_users_home(stage: Stage) -> None:
    del stage.env["IOSIG_STORAGE"], stage.env["IOSIG_STATE"]  # as `sudo -E` leaves them
    config = stage.home / ".config/iosig"
    config.mkdir(parents=True)
    stage.describe(config / "storage.toml", stage.mount)
    refused = stage.iosig("prepare", stage.root / "out", "random", user=0)
    assert refused.returncode in (3, 4) and b"root" in refused.stderr
    refused = stage.iosig("storage", "probe", "--quick", "--mount", stage.mount, user=0)
    assert refused.returncode in (3, 4) and b"root" in refused.stderr
    # With a description of its own it still keeps no journal there.
    trusted = stage.root / "storage.toml"
    stage.describe(trusted, stage.mount, owner=0)
    stage.env["IOSIG_STORAGE"] = str(trusted)
    done = stage.program(stage.root / "out", user=0)
    assert done.returncode == 0 and b"root" in done.stderr
    assert not (stage.root / "out").is_symlink()
    assert not (stage.home / ".local").exists()


def test_root_puts_nothing_where_another_user_or_group_could_swap_it(stage: Stage) -> None:
    config = stage.root / "storage.toml"
    stage.env |= {"IOSIG_STORAGE": str(config), "IOSIG_STATE": str(stage.root / "state")}
    inner = stage.mount / "inner"
    inner.mkdir()
    stage.describe(config, inner, owner=0)
    for owner, group, mode in ((VICTIM, 0, 0o755), (0, PROJECT, 0o775), (VICTIM, 0, 0o1777)):
        give(inner, owner, mode, group)
        refused = stage.iosig("prepare", stage.root / "out", "random", user=0)
        assert refused.returncode == 4 and str(inner).encode() in refused.stderr
        assert not list(inner.iterdir())
    give(inner, 0, 0o1777)
    assert stage.iosig("prepare", stage.root / "out", "random", user=0).returncode == 0


def test_root_of_a_user_namespace_is_a_user_like_others(stage: Stage) -> None:
    inside = ("unshare", "--user", "--map-root-user")
    if stage.run(*inside, "true").returncode != 0:
        pytest.skip("this kernel makes no user namespaces for ordinary users")
    give(stage.mount, VICTIM, 0o700)
    done = stage.run(*inside, stage.bin / "iosig", "prepare", "out", "random")
    assert done.returncode == 0, done.stderr
    assert stat.S_ISLNK((stage.work / "out").lstat().st_mode)
