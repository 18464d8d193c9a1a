"""Another user swaps whatever it may, in tight loops, while the victim's program opens with hints and its `prepare`,
`finalize` and `gc` run: no byte of the victim's becomes readable, nothing outside is written or removed, none is lost.

`make test` runs each for a moment; IOSIG_CRASH_STEPS=all makes at least 50,000 attempts and prints the counts.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from test_threats import ATTACKER, SECRET, VICTIM, Stage, give, stage

from redirecting import compile_c

assert stage  # the fixture
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as several users")

EVERYTHING = os.environ.get("IOSIG_CRASH_STEPS") == "all"
ATTEMPTS = 17_000 if EVERYTHING else 400  # of the victim's in each scene; the attacker's come on top

# The victim's program: opens DIRECTORY/n with a hint, COUNT times, writes the secret, and removes the file. Prints how
# many opens were redirected, and how many failed: because of the attacker, not of IOSIG.
OPENER = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <iosig/iosig.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int redirected = 0, failed = 0, foreign = 0, count = atoi(argv[2]);
  (void)argc;
  for (int n = 0; n < count; ++n) {
    char path[4096], target[4096];
    struct stat file;
    snprintf(path, sizeof path, "%s/opened%d", argv[1], n);
    iosig_open_hint(AT_FDCWD, path, O_CREAT | O_WRONLY, "temp random");
    int fd = open(path, O_CREAT | O_WRONLY | O_NOCTTY, 0600);
    if (fd < 0) { ++failed; continue; }
    if (fstat(fd, &file) == 0 && file.st_uid != geteuid()) ++foreign;
    else if (write(fd, argv[3], strlen(argv[3])) < 0) ++failed;
    close(fd);
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length > 0) { target[length] = 0; ++redirected; unlink(target); }
    unlink(path);
  }
  printf("%d %d %d\n", redirected, failed, foreign);
  return 0;
}
"""


@pytest.fixture(scope="session")
def opener(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(OPENER, tmp_path_factory.mktemp("opener"), "opener")


class Attack:
    """What the attacker did: swaps that the kernel let through, and all that were tried."""

    done = tried = 0


@contextmanager
def attacked(*lines: str) -> Iterator[Attack]:
    """The attacker repeats `lines`, each on its own: one that fails does not keep it from the next."""
    source = (
        "import ctypes, os, shutil, signal, sys\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "def exchange(a, b):\n"
        "    if libc.renameat2(-100, os.fsencode(a), -100, os.fsencode(b), 2): raise OSError\n"
        "stop = []\nsignal.signal(signal.SIGTERM, lambda *_: stop.append(1))\n"
        "done = tried = 0\nprint(flush=True)\nwhile not stop:\n"
    )
    for line in lines:
        body = "".join(f"        {each}\n" for each in line.splitlines())
        source += f"    tried += 1\n    try:\n{body}        done += 1\n    except OSError: pass\n"
    source += "print(done, tried, flush=True)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", source],
        user=ATTACKER,
        group=ATTACKER,
        extra_groups=[],
        stdout=subprocess.PIPE,
        text=True,
    )
    attack = Attack()
    try:
        assert process.stdout and process.stdout.readline() == "\n"
        yield attack
        assert process.poll() is None, "the attacker gave up"
        process.send_signal(signal.SIGTERM)
        attack.done, attack.tried = map(int, process.stdout.read().split())
    finally:
        process.kill()
        process.wait()


class Victim:
    """A closed home with things that must stay as they are, beside what the attacker may swap."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.precious = stage.home / "precious"
        self.precious.mkdir()
        give(self.precious, VICTIM, 0o755)
        for number in range(3):
            self.put(self.precious / f"file{number}", b"precious %d" % number)
        self.was = self.kept()

    def put(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        give(path, VICTIM, 0o644)

    def kept(self, directory: Path | None = None) -> dict[str, tuple[bytes, int]]:
        directory = directory or self.precious
        kept = {p.name: (p.read_bytes(), p.stat().st_mode) for p in directory.iterdir() if p.exists()}
        return kept | {".": (b"", directory.stat().st_mode)}

    def readable(self) -> list[Path]:
        """What the attacker can read that holds the secret. It must not own a way into the user's directory either."""
        script = (
            "import os, sys\nfor top in sys.argv[2:]:\n  for directory, _, names in os.walk(top, followlinks=False):\n"
            "    for name in names:\n      path = os.path.join(directory, name)\n      try:\n"
            "        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)\n"
            "        if sys.argv[1].encode() in os.read(fd, 1 << 20): print(path)\n"
            "        os.close(fd)\n      except OSError: pass\n"
        )
        words = [sys.executable, "-c", script, SECRET.decode(), str(self.stage.shared), str(self.stage.mount)]
        done = subprocess.run(words, user=ATTACKER, group=ATTACKER, extra_groups=[], capture_output=True, check=True)
        return [Path(os.fsdecode(line)) for line in done.stdout.splitlines()]


def victim_opens(stage: Stage, opener: Path, directory: Path, count: int) -> tuple[int, int, int]:
    if not (stage.bin / "opener").exists():
        shutil.copy(opener, stage.bin)
    done = subprocess.run(
        [stage.bin / "opener", directory, str(count), SECRET.decode()],
        user=VICTIM, group=VICTIM, extra_groups=[], capture_output=True, env=stage.env, cwd=stage.work, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    redirected, failed, foreign = map(int, done.stdout.split())
    return redirected, failed, foreign


def tell(scene: str, victims: int, attack: Attack, more: str) -> None:
    print(f"{scene}: {victims} attempts of the victim, {attack.done} of {attack.tried} swaps, {more}, let through 0")


def test_swaps_of_the_name_of_the_users_directory(stage: Stage, opener: Path) -> None:
    victim = Victim(stage)
    trap = stage.shared / "trap"
    trap.mkdir()
    give(trap, ATTACKER, 0o777)
    mine, other = str(stage.own_directory), str(stage.mount / "attackers")
    redirected = 0
    with attacked(
        f"os.symlink({str(trap)!r}, {mine!r})",
        f"os.unlink({mine!r})",
        f"os.mkdir({mine!r}, 0o777)",
        f"os.rmdir({mine!r})",
        f"os.mkdir({other!r}, 0o777)",
        f"exchange({mine!r}, {other!r})",
        f"os.symlink({str(victim.precious)!r}, {mine!r})",
        f"os.unlink({mine!r})",
    ) as attack:
        for _ in range(20):
            redirected += victim_opens(stage, opener, stage.work, ATTEMPTS // 20)[0]
            stage.iosig("gc", "--older-than", "0s")
            with suppress(FileNotFoundError):
                if (
                    stage.own_directory.lstat().st_uid == VICTIM
                ):  # no link: the kernel would not let the attacker take it
                    shutil.rmtree(stage.own_directory)
    assert not victim.readable() and list(trap.iterdir()) == [] and victim.kept() == victim.was
    tell("the user's directory", ATTEMPTS, attack, f"{redirected} redirected")


def test_swaps_of_the_path_and_of_its_directories(stage: Stage, opener: Path) -> None:
    """The working directory lies in one that all can write: its name leads to it, or to another of the victim's."""
    victim = Victim(stage)
    stage.shared.chmod(0o777)
    run, other, planted = stage.shared / "run", stage.shared / "other", stage.shared / "planted"
    run.mkdir()
    give(run, VICTIM, 0o755)
    other.symlink_to(victim.precious)
    os.lchown(other, ATTACKER, ATTACKER)
    with attacked(
        f"exchange({str(run)!r}, {str(other)!r})",
        f"os.symlink({str(victim.precious / 'file0')!r}, {str(planted)!r})",
        f"os.unlink({str(planted)!r})",
        f"exchange({str(run)!r}, {str(other)!r})",
    ) as attack:
        redirected, failed, foreign = victim_opens(stage, opener, run, ATTEMPTS)
    assert not victim.readable() and foreign == 0
    left = {name: kept for name, kept in victim.kept().items() if not name.startswith("opened")}
    assert left == victim.was
    tell("directories of the path", ATTEMPTS, attack, f"{redirected} redirected, {failed} opens failed")


@pytest.mark.parametrize("sticky", [True, False])
def test_links_planted_at_the_path(stage: Stage, opener: Path, sticky: bool) -> None:
    victim = Victim(stage)
    stage.shared.chmod(0o1777 if sticky else 0o777)
    directory = str(stage.shared)
    count = ATTEMPTS // 2
    with attacked(
        f"for n in range(0, {count}, 7):\n"
        f"    os.symlink({str(victim.precious / 'file0')!r}, {directory!r} + f'/opened{{n}}')",
        f"for name in os.listdir({directory!r}):\n    os.unlink({directory!r} + '/' + name)",
        f"os.symlink({str(stage.own_directory)!r} + '/0123456789abcdef/x', {directory!r} + '/opened{count // 2}')",
    ) as attack:
        redirected, failed, foreign = victim_opens(stage, opener, stage.shared, count)
    assert not victim.readable() and foreign == 0
    # Without a sticky directory the kernel follows the attacker's link, with IOSIG and without: into the victim's file.
    names = set(victim.kept()) - {"file0"}
    assert {n: victim.kept()[n] for n in names} == {n: victim.was[n] for n in names}
    if sticky:
        assert victim.kept() == victim.was or not Path("/proc/sys/fs/protected_symlinks").read_text().startswith("1")
    tell(f"links at the path, sticky {sticky}", count, attack, f"{redirected} redirected, {failed} opens failed")


@pytest.mark.parametrize("sticky", [True, False])
def test_swaps_of_the_names_beside_the_link(stage: Stage, sticky: bool) -> None:
    """Settling in a directory where the attacker can rename: names of finalize are its own, or those of the victim's
    other directories there. Data may then be refused; they are never lost, and never read."""
    victim = Victim(stage)
    stage.shared.chmod(0o1777 if sticky else 0o777)
    near = stage.shared / "near"  # of the victim's, beside the link
    near.mkdir()
    give(near, VICTIM, 0o755)
    victim.put(near / "file", b"near")
    was = victim.kept(near)
    directory = str(stage.shared)
    names = f"[n for n in os.listdir({directory!r}) if n.startswith('.iosig-')]"
    plant = (
        f"for link in [n for n in os.listdir({directory!r}) if n.startswith('out')]:\n"
        f"    entry = os.readlink({directory!r} + '/' + link).split('/')[-2]\n"
    )
    prefix = f"{directory!r} + '/.iosig-' + entry"
    begun, settled, runs = time.monotonic(), 0, 0
    with attacked(
        plant + f"    os.rename({str(near)!r}, {prefix} + '.companions')",
        f"for n in {names}:\n    os.rename({directory!r} + '/' + n, {str(near)!r})",
        plant + f"    os.symlink({str(victim.precious)!r}, {prefix} + '.companions')",
        plant + f"    os.symlink({str(victim.precious / 'file1')!r}, {prefix} + '.draft')",
        f"for n in {names}:\n    os.unlink({directory!r} + '/' + n)",
        plant + f"    os.mkdir({prefix} + '.companions', 0o777)",
        f"for n in {names}:\n    os.rmdir({directory!r} + '/' + n)",
        f"for n in {names}:\n    exchange({directory!r} + '/' + n, {str(near)!r})",
    ) as attack:
        while time.monotonic() - begun < (30 if EVERYTHING else 1.5):
            path = stage.shared / f"out{runs}"
            try:
                destination = stage.prepared(path)
            except (AssertionError, OSError):
                continue  # the attacker had removed the link
            companion = destination.parent / f"{path.name}-wal"
            victim.put(companion, SECRET)
            companion.chmod(0o600)
            with suppress(FileNotFoundError):
                destination.chmod(0o600)
            for _ in range(3):
                runs += 1
                stage.iosig("finalize", path)
            stage.iosig("gc", "--older-than", "0s")
            held = [p for p in (path, destination) if p.is_file() and p.read_bytes() == SECRET]
            assert held, f"{path}: {list(stage.shared.iterdir())}"
            settled += not destination.exists()
    assert not victim.readable() and victim.kept() == victim.was
    standing = [p for p in stage.shared.iterdir() if p.is_dir() and not p.is_symlink() and (p / "file").exists()]
    assert len(standing) == 1
    kept = {name: each for name, each in victim.kept(standing[0]).items() if not name.startswith(".iosig-")}
    assert kept == was, (kept, was)
    tell(f"names beside the link, sticky {sticky}", runs, attack, f"{settled} settled")
