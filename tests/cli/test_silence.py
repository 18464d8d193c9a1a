"""Calls that would do nothing, or not what they seem to do: each is refused or told, and none passes in silence."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import Iosig
from redirecting import World

SCHEMA = 'schema = "iosig.rules/1"\n'


def rules_file(directory: Path, *rules: tuple[str, str]) -> Path:
    file = directory / "rules.toml"
    file.write_text(SCHEMA + "".join(f'[[rule]]\npath = "{path}"\nsig = "{sig}"\n' for path, sig in rules))
    return file


# ---- rules


def test_run_says_which_rules_do_nothing_for_want_of_container(iosig: Iosig, tmp_path: Path) -> None:
    run = ("run", "--rules", rules_file(tmp_path, ("*.out", "persist"), ("*.h5", "container"), ("*.tmp", "temp")))
    said = iosig(*run, "--", "true", cwd=tmp_path).stderr
    assert "rules.toml:10: this rule does nothing here" in said and "'iosig prepare --rules' redirects" in said
    assert "rules.toml:4" not in said  # it exempts its files from the rule after it
    assert iosig(*run, "--container", "*", "--", "true", cwd=tmp_path).stderr == ""  # the last one from the glob


def test_a_rule_that_an_earlier_one_hides_is_told(world: World) -> None:
    rules = rules_file(world.work, ("*.out", "container"), ("step*.out", "container(2)"), ("[ab].h5", "container"),
                       ("a.h5", "container"), ("*.out", "container random"))  # fmt: skip
    for verb in (("run", "--rules", rules, "--", "true"), ("prepare", "--dry-run", "--rules", rules, "x.out")):
        said = world.iosig(*verb, cwd=world.work, env=world.env).stderr
        assert "rules.toml:7: this rule never counts" in said and "the rule of line 4 " in said
        assert "rules.toml:16: this rule never counts" in said and said.count("never counts") == 2


def test_a_rule_that_can_match_no_file_is_refused_and_dots_in_it_are_understood(world: World) -> None:
    rules = rules_file(world.work, ("results/", "random"))
    said = world.iosig("prepare", "--rules", rules, "x", check=3, cwd=world.work).stderr
    assert "rules.toml:3" in said and "names a directory" in said
    rules_file(world.work, ("./*.out", "random"), (f"{world.work}//sub/../*.tmp", "random"))
    world.iosig("prepare", "--rules", rules, "a.out", "b.tmp", cwd=world.work)
    assert (world.work / "a.out").is_symlink() and (world.work / "b.tmp").is_symlink()


# ---- prepare


@pytest.mark.parametrize(
    "words", [("--rules", "rules.toml", "step*.out"), ("step?.out", "random"), ("s[12]", "random")]
)
def test_a_pattern_that_the_shell_left_is_no_file_name(world: World, words: tuple[str, ...]) -> None:
    rules_file(world.work, ("step*.out", "random"))
    said = world.iosig("prepare", *words, check=2, cwd=world.work).stderr
    assert "is a pattern" in said and "--literal" in said
    assert not [path for path in world.work.iterdir() if path.is_symlink()] and not world.journal()
    world.iosig("prepare", "--literal", *words, cwd=world.work)
    assert len([path for path in world.work.iterdir() if path.is_symlink()]) == 1


def test_a_directory_is_refused_with_rules_too(world: World) -> None:
    rules = rules_file(world.work, ("*", "random"))
    for path in ("results/", ".", "sub/.."):
        said = world.iosig("prepare", "--rules", rules, "a", path, check=2, cwd=world.work).stderr
        assert "is the path of a directory" in said and f"'{path}'" in said
    assert (world.work / "a").is_symlink()  # a bad path stops no other


def test_a_path_without_a_rule_is_in_the_document(world: World) -> None:
    rules = rules_file(world.work, ("*.out", "random"))
    document = world.iosig.json("prepare", "--rules", rules, "b.log", "a.out", cwd=world.work)
    actions = {Path(redirect["path"]).name: redirect["action"] for redirect in document["redirects"]}
    assert actions == {"b.log": "stays", "a.out": "linked"}


def test_prepare_says_that_it_makes_no_container(world: World) -> None:
    assert "only 'iosig run' makes containers" in world.iosig("prepare", "a", "container", cwd=world.work).stderr


# ---- options


@pytest.mark.parametrize(
    ("option", "words"),
    [("--storage", ("storage", "list", "--storage", "")), ("--output", ("storage", "probe", "--output", "")),
     ("--storage", ("choose", "random", "--storage", "")), ("--rules", ("run", "--rules", "", "--", "true")),
     ("--rules", ("prepare", "--rules", "", "x")), ("--compiler", ("cc", "--cflags", "--compiler", ""))],
)  # fmt: skip
def test_an_option_without_its_value_is_refused(iosig: Iosig, option: str, words: tuple[str, ...]) -> None:
    assert f"{option} is empty" in iosig(*words, check=2).stderr


def test_empty_words_of_a_command_are_passed_on(iosig: Iosig) -> None:
    assert iosig("run", "--", "printf", "<%s>", "").stdout == "<>"


def test_a_glob_of_a_directory_matches_no_file(iosig: Iosig) -> None:
    assert "matches no file" in iosig("run", "--container", "out/", "--", "true", check=2).stderr


# ---- cc


@pytest.mark.parametrize(
    "words",
    [("--cflags", "--", "gcc", "-c", "x.c"), ("--compiler", "g++", "--", "gcc", "-c", "x.c"),
     ("--storage", "s.toml", "--", "gcc", "-c", "x.c"), ("--cflags", "--dry-run")],
)  # fmt: skip
def test_cc_refuses_options_without_effect(iosig: Iosig, words: tuple[str, ...]) -> None:
    said = iosig("cc", *words, check=2).stderr
    assert words[0] in said or words[1] in said


PROGRAM = """
#include <fcntl.h>
#include <unistd.h>
int main(void) {
#pragma sig random
  int fd = open("out", O_CREAT | O_WRONLY, 0666);
  return write(fd, "data", 4) != 4;
}
"""


def test_cc_says_what_a_static_program_and_fortran_cannot_have(iosig: Iosig, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(PROGRAM)
    said = iosig("cc", "--", "gcc", "-static", "-o", "a", "a.c", cwd=tmp_path).stderr
    assert "its hints do nothing" in said and subprocess.run([tmp_path / "a"], cwd=tmp_path).returncode == 0
    assert "for C and C++" in iosig("cc", "--dry-run", "--", "gcc", "-c", "a.f90", cwd=tmp_path).stderr
    assert iosig("cc", "--", "gcc", "-o", "a", "a.c", cwd=tmp_path).stderr == ""


@pytest.mark.parametrize("generator", ["Ninja", "Unix Makefiles"])
def test_cmake_with_iosig_as_launcher_of_compiler_and_linker(world: World, generator: str) -> None:
    if shutil.which("cmake") is None or shutil.which("ninja" if generator == "Ninja" else "make") is None:
        pytest.skip(f"needs cmake and what builds {generator}")
    source, build = world.root / "source", world.root / "cmake"
    (source / "deep").mkdir(parents=True)
    (source / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.21)\nproject(p C CXX)\nadd_library(part SHARED deep/part.cpp)\n"
        "add_executable(inc main.c)\ntarget_link_libraries(inc part)\n"
    )
    (source / "main.c").write_text(PROGRAM)
    (source / "deep" / "part.cpp").write_text("int part() { return 1; }\n")
    path = f"{world.iosig.binary.parent}:{os.environ['PATH']}"

    def built(*steps: str) -> str:
        launchers = [f"-DCMAKE_{lang}_{step}_LAUNCHER=iosig;cc;--" for lang in ("C", "CXX") for step in steps]
        shutil.rmtree(build, ignore_errors=True)
        said = ""
        for command in (["cmake", "-G", generator, "-S", source, "-B", build, *launchers], ["cmake", "--build", build]):
            done = subprocess.run(command, env=world.env | {"PATH": path}, capture_output=True, text=True)
            assert done.returncode == 0, (done.stdout, done.stderr)
            said += done.stdout + done.stderr
        assert world.run(build / "inc").returncode == 0
        assert (world.work / "out").read_bytes() == b"data"
        return said

    said = built("COMPILER")  # the hints are in, and the library is not: told at the file that has them
    assert said.count("CMAKE_C_LINKER_LAUNCHER='iosig;cc;--'") == 1 and "CXX_LINKER" not in said
    assert not (world.work / "out").is_symlink()
    (world.work / "out").unlink()
    assert "LAUNCHER" not in built("COMPILER", "LINKER")
    assert (world.work / "out").is_symlink()
    world.iosig("finalize", "--all")
