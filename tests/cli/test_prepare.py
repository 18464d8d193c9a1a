"""`iosig prepare`: links for programs without source, and what real programs make of them."""

from __future__ import annotations

import os

import pytest

from redirecting import World


def test_the_link_leads_to_the_chosen_mount_point_and_every_mount_point_is_explained(world: World) -> None:
    said = world.iosig("prepare", "out", "random", "size-per-IO(64KB)", cwd=world.work).stdout
    destination = (world.work / "out").readlink()
    assert destination.parent.parent == world.user_directory and destination.name == "out" and str(destination) in said
    assert f"* {world.fast}: " in said and f"  {world.root}: " in said
    assert len(world.journal()) == 1


def test_it_is_safe_to_repeat(world: World) -> None:
    world.iosig("prepare", world.work / "out", "random")
    target = (world.work / "out").readlink()
    assert "already" in world.iosig("prepare", world.work / "out", "random").stdout
    assert (world.work / "out").readlink() == target and len(world.journal()) == 1


def test_dry_run_says_it_and_changes_nothing(world: World) -> None:
    assert "would lead to" in world.iosig("prepare", world.work / "out", "random", "--dry-run").stdout
    assert not os.path.lexists(world.work / "out") and not world.journal() and not world.user_directory.exists()


def test_finalize_undoes_it(world: World) -> None:
    world.iosig("prepare", world.work / "out", "random")
    world.iosig("finalize", world.work / "out")
    assert not os.path.lexists(world.work / "out") and not world.journal()


def test_a_link_to_settled_data_is_refused_with_what_to_do(world: World) -> None:
    """No program could create its file by it: the directory is gone."""
    path, _ = world.prepared("out", b"data")
    other = world.work / "other"
    world.run("cp", "-a", path, other)
    assert "already" in world.iosig("prepare", other, "random").stdout
    world.iosig("finalize", path)
    assert f"rm '{other}', then prepare" in world.iosig("prepare", other, "random", check=1).stderr
    other.unlink()
    world.iosig("prepare", other, "random")
    assert other.is_symlink() and other.readlink().parent.is_dir()


def test_what_exists_is_refused_with_what_to_do(world: World) -> None:
    (world.work / "file").write_bytes(b"old")
    (world.work / "link").symlink_to("/nowhere")
    assert "move it away" in world.iosig("prepare", world.work / "file", "random", check=1).stderr
    assert "did not make" in world.iosig("prepare", world.work / "link", "random", check=1).stderr
    assert (world.work / "file").read_bytes() == b"old" and not world.journal()


def test_nothing_admissible_is_a_sound_no_with_the_reasons(world: World) -> None:
    refused = world.iosig("prepare", world.work / "out", "tamperproof", check=1).stderr
    assert "no mount point admits 'tamperproof'" in refused and str(world.fast) in refused
    assert not os.path.lexists(world.work / "out")


def test_a_file_that_is_best_where_it_is_stays(world: World) -> None:
    answer = world.iosig.json("prepare", world.work / "out", "persist")
    assert answer["schema"] == "iosig.prepare/1"
    assert [r["action"] for r in answer["redirects"]] == ["stays"]
    assert not os.path.lexists(world.work / "out") and not world.journal()


def test_json_has_the_choice_behind_each_path(world: World) -> None:
    (redirect,) = world.iosig.json("prepare", world.work / "out", "random")["redirects"]
    assert redirect["action"] == "linked" and redirect["mount_point"] == str(world.fast)
    assert redirect["destination"] == str((world.work / "out").readlink())
    assert redirect["choice"]["chosen"] == str(world.fast) and len(redirect["choice"]["candidates"]) == 2


def test_rules_give_each_path_its_signature(world: World) -> None:
    rules = world.root / "rules.toml"
    rules.write_text(
        'schema = "iosig.rules/1"\n[sigdef]\nscratch = "temp random"\n'
        f'[[rule]]\npath = "{world.work}/*.tmp"\nsig = "scratch"\n'
        f'[[rule]]\npath = "{world.work}/*.out"\nsig = "persist"\n'
    )
    done = world.iosig("prepare", "--rules", rules, "a.tmp", "b.out", "c.log", cwd=world.work)
    assert (world.work / "a.tmp").is_symlink() and not os.path.lexists(world.work / "b.out")
    assert "no rule matches 'c.log'" in done.stderr


def test_rules_prepare_the_other_paths_when_one_is_a_pattern_or_a_directory(world: World) -> None:
    (world.work / "rules.toml").write_text('schema = "iosig.rules/1"\n[[rule]]\npath = "*"\nsig = "temp"\n')
    done = world.iosig("prepare", "--rules", "rules.toml", "a*", "b", "directory/", "c", cwd=world.work, check=2)
    assert "'a*' is a pattern" in done.stderr and "'directory/' is the path of a directory" in done.stderr
    assert all((world.work / name).is_symlink() and f"{world.work}/{name}: leads to" in done.stdout for name in "bc")
    told = world.iosig.json("prepare", "--rules", "rules.toml", "a*", "b", cwd=world.work, check=2)["redirects"]
    assert [(each["path"], each["action"]) for each in told] == [("a*", "refused"), (f"{world.work}/b", "already")]


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ([], 2, "prepare needs PATH and SIGNATURE"),
        (["--rules", "rules.toml"], 2, "prepare needs PATH and SIGNATURE"),
        (["a1", "a2", "random"], 3, "'a2' is not a word of a signature; several paths need --rules FILE"),
        (["a1", "randon", "temp"], 3, "did you mean 'random'?"),
        (["a1", "random", "temp persist"], 3, "persist"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(world: World, words: list[str], status: int, message: str) -> None:
    refused = world.iosig("prepare", *words, check=status, cwd=world.work).stderr
    assert message in refused and "words" not in refused and not world.journal()


def test_globs_start_at_the_rules_file_however_it_is_named_and_links_do_not_matter(world: World) -> None:
    (world.work / "rules.toml").write_text(
        f'schema = "iosig.rules/1"\n[[rule]]\npath = "*.tmp"\nsig = "temp"\n'
        f'[[rule]]\npath = "{world.root}/alias/*.out"\nsig = "temp"\n'
    )
    (world.root / "alias").symlink_to(world.work)
    world.iosig("prepare", "--rules", "rules.toml", "a.tmp", cwd=world.work)
    world.iosig("prepare", "--rules", world.root / "alias" / "rules.toml", "b.tmp", cwd=world.work)
    world.iosig("prepare", "--rules", "rules.toml", world.root / "alias" / "c.out", cwd=world.work)
    assert all((world.work / name).is_symlink() for name in ("a.tmp", "b.tmp", "c.out"))


@pytest.mark.parametrize(
    ("words", "status"),
    [(["out"], 2), (["out", "randon"], 3), (["missing/out", "random"], 4), (["directory/", "random"], 2)],
)
def test_a_wrong_call_has_its_exit_status(world: World, words: list[str], status: int) -> None:
    assert world.iosig("prepare", *words, check=status, cwd=world.work).stderr
    assert not list(world.work.iterdir()) and not world.journal()


def test_programs_write_through_the_link(world: World) -> None:
    (world.work / "in").write_bytes(b"b\na\n")
    for name, command in {
        "sorted": ["sort", "-o", "sorted", "in"],
        "dd": ["dd", "if=in", "of=dd", "status=none"],
        "tee": ["sh", "-c", "tee tee < in > /dev/null"],
        "shell": ["sh", "-c", "cat in > shell"],
    }.items():
        world.iosig("prepare", world.work / name, "random")
        assert world.run(*command).returncode == 0
        assert (world.work / name).is_symlink() and (world.work / name).stat().st_size == 4, name
    world.iosig("finalize", "--all")
    assert (world.work / "sorted").read_bytes() == b"a\nb\n" and not (world.work / "sorted").is_symlink()


def test_programs_that_refuse_or_replace_a_link_lose_nothing(world: World) -> None:
    """docs/howto/binaries.md tells which programs these are; here is that nothing is lost with them."""
    (world.work / "in").write_bytes(b"data")
    for name in ("cp", "excl", "mv"):
        world.iosig("prepare", world.work / name, "random")
    assert b"dangling" in world.run("cp", "in", "cp").stderr
    assert world.run("dd", "if=in", "of=excl", "conv=excl", "status=none").returncode == 1
    assert world.run("mv", "in", "mv").returncode == 0
    assert not (world.work / "mv").is_symlink()
    world.iosig("finalize", "--all")
    assert [(p.name, p.read_bytes()) for p in world.work.iterdir()] == [("mv", b"data")]
    assert not world.journal()
