"""`iosig run`: what a program's environment gets, and what is said where that is in vain."""

from __future__ import annotations

import subprocess
from pathlib import Path

from conftest import BUILD, Iosig
from redirecting import World

LIBRARY = BUILD / "lib" / "libiosig-preload.so"


def test_new_files_of_a_name_become_containers(iosig: Iosig, tmp_path: Path) -> None:
    script = "echo one > a.dat; echo two >> a.dat; cat a.dat; echo plain > b.txt"
    done = iosig("run", "--container", "*.dat", "--", "sh", "-c", script, cwd=tmp_path)
    assert done.stdout == "one\ntwo\n"
    assert (tmp_path / "a.dat" / ".iosig-container").is_file()
    assert (tmp_path / "b.txt").read_text() == "plain\n"
    assert iosig("run", "--", "cat", "a.dat", cwd=tmp_path).stdout == "one\ntwo\n"
    iosig("run", "--", "rm", "a.dat", cwd=tmp_path)
    assert not (tmp_path / "a.dat").exists()


def test_a_directory_with_the_name_of_a_pattern_is_itself(iosig: Iosig, tmp_path: Path) -> None:
    (tmp_path / "run[1]").mkdir()
    (tmp_path / "run1").mkdir()
    script = "echo data > a.dat; echo data > ../run1/a.dat; echo data > data.mdb"
    words = ("--container", "./*.dat", "--container", "./data.mdb", "--", "sh", "-c", script)
    iosig("run", *words, cwd=tmp_path / "run[1]")
    assert (tmp_path / "run[1]/a.dat/.iosig-container").is_file() and (tmp_path / "run1/a.dat").is_file()
    assert (tmp_path / "run[1]/data.mdb/.iosig-container").is_file()  # named, not matched by a pattern


def test_rules_say_which_and_where(world: World) -> None:
    rules = world.work / "rules.toml"
    rules.write_text(
        'schema = "iosig.rules/1"\n[[rule]]\npath = "out/*.h5"\nsig = "container random"\n'
        '[[rule]]\npath = "out/*"\nsig = "temp"\n'
    )
    (world.work / "out").mkdir()
    script = "echo data > out/a.h5; echo data > out/b; cat out/a.h5"
    command = ("--rules", rules, "--container=*", "--", "sh", "-c", script)
    assert world.iosig("run", *command, cwd=world.work, env=world.env).stdout == "data\n"
    assert (world.work / "out" / "b").is_file()  # a rule without `container` counts before the globs
    assert world.iosig.json("container", "ls", world.work / "out" / "a.h5")["size"] == 5
    assert len(list(world.user_directory.glob("*/d0/data.0"))) == 1  # on the best mount point


def test_more_mount_points_than_there_are_is_said(world: World) -> None:
    rules = world.work / "rules.toml"
    rules.write_text(
        'schema = "iosig.rules/1"\n[[rule]]\npath = "two.h5"\nsig = "container(2)"\n'
        '[[rule]]\npath = "nine*.h5"\nsig = "container(9)"\n'
    )
    own = world.root / world.user_directory.name
    for name, said in (("two.h5", False), ("nine.h5", True)):
        # A second program: a writer each, in turns over the targets.
        script = f"echo data > {name}; dd if=/dev/zero of={name} bs=1 count=1 seek=10 conv=notrunc status=none"
        done = world.iosig("run", "--rules", rules, "--", "sh", "-c", script, cwd=world.work, env=world.env)
        assert ("container(9): 2 mount points are for it; they have all its data" in done.stderr) == said, done.stderr
        container = world.work / name
        assert not list(container.rglob("data.*"))  # own is of the same file system, but not in the container
        assert [len(list(place.rglob("data.*"))) for place in (world.user_directory, own)] == [1, 1]
        world.iosig("container", "rm", container)
        assert not list(world.user_directory.iterdir()) and not list(own.iterdir())


def test_a_flat_file_has_the_permissions_that_the_umask_left(iosig: Iosig, tmp_path: Path) -> None:
    iosig("run", "--container=a", "--", "sh", "-c", "umask 027; echo data > a", cwd=tmp_path)
    iosig("container", "flatten", tmp_path / "a")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_the_exit_status_is_the_commands(iosig: Iosig) -> None:
    iosig("run", "--", "sh", "-c", "exit 7", check=7)
    assert "no-such-program" in iosig("run", "--", "no-such-program", check=127).stderr
    assert "expected a command" in iosig("run", check=2).stderr


def test_dry_run_prints_what_a_batch_script_can_set(iosig: Iosig, tmp_path: Path) -> None:
    line = iosig("run", "--dry-run", "--container=*.a", "--container=/x/*.b", "--", "prog", "-x").stdout
    program = f"LD_PRELOAD='{LIBRARY}' IOSIG_PROGRAM='{BUILD / 'bin' / 'iosig'}'"
    sanitizer = "ASAN_OPTIONS='verify_asan_link_order=0'"
    assert line == f"env {program} IOSIG_CONTAINERS='*.a:/x/*.b' {sanitizer} prog -x\n"
    assert (
        f"IOSIG_CONTAINERS='{tmp_path}/out/*.c'"
        in iosig("run", "--dry-run", "--container=out/*.c", "prog", cwd=tmp_path).stdout
    )
    environment = iosig.env | {"LD_PRELOAD": "libm.so.6"}
    assert f"{LIBRARY}:libm.so.6" in iosig("run", "--dry-run", "--", "prog", env=environment).stdout


def test_a_program_with_address_sanitizer_uses_containers(iosig: Iosig, tmp_path: Path) -> None:
    """The sanitizer would end it, because a library is before its own."""
    text = 'int main(void) { FILE* f = fopen("a", "w"); return fputs("text", f) < 0 || fclose(f) != 0; }'
    (tmp_path / "checked.c").write_text(f"#include <stdio.h>\n{text}\n")
    subprocess.run(["gcc", "-fsanitize=address", "-o", tmp_path / "checked", tmp_path / "checked.c"], check=True)
    iosig("run", "--container=a", "--", tmp_path / "checked", cwd=tmp_path)
    assert "4 bytes by 1 writer" in iosig("container", "ls", tmp_path / "a").stdout
    options = "exitcode=9:verify_asan_link_order=1"
    told = iosig.env | {"ASAN_OPTIONS": options}
    assert f"ASAN_OPTIONS='{options}'" in iosig("run", "--dry-run", "--", "prog", env=told).stdout


def test_bad_input_runs_nothing(iosig: Iosig, tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text("nonsense")
    touch = ("--", "touch", tmp_path / "made")
    assert "rules.toml:1" in iosig("run", "--rules", tmp_path / "rules.toml", *touch, check=3).stderr
    assert "absent" in iosig("run", "--rules", tmp_path / "absent", *touch, check=4).stderr
    assert "colons" in iosig("run", "--container", "a:b", *touch, check=2).stderr
    assert not (tmp_path / "made").exists()


def test_a_static_program_is_named(iosig: Iosig, tmp_path: Path) -> None:
    (tmp_path / "one.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-static", "-o", tmp_path / "one", tmp_path / "one.c"], check=True)
    assert "linked statically" in iosig("run", "--", tmp_path / "one").stderr
    assert iosig("run", "--", "true").stderr == ""
