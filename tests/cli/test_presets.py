"""Signatures that are known by name: on the command line, in rules files, and in the shell's completion."""

from __future__ import annotations

from pathlib import Path

from conftest import DATA, Iosig

TABLE2 = DATA / "paper-table2.toml"


def test_choose_lists_the_presets_and_understands_each(iosig: Iosig) -> None:
    document = iosig.json("choose", "--presets")
    assert document["schema"] == "iosig.presets/1"
    names = [preset["name"] for preset in document["presets"]]
    assert {"hot-data", "warm-data", "cold-data", "checkpoint", "scratch", "long-term-archive"} <= set(names)
    for preset in document["presets"]:
        assert preset["name"] in iosig("choose", "--presets").stdout
        chosen = iosig.json("choose", preset["name"], "--storage", TABLE2, check=None)
        assert chosen["signature"] == preset["signature"]
        # the paper's machine has no archive: what asks for one finds none
        assert (chosen["chosen"] is None) == ("archive" in preset["signature"].split())


def test_a_preset_is_overridden_by_what_follows_it(iosig: Iosig) -> None:
    document = iosig.json("choose", "checkpoint", "totalsize(1GB)", "random", "--storage", TABLE2)
    assert document["signature"] == "random persist size-per-IO(16MB) totalsize(1GB)"


def test_presets_and_a_signature_exclude_each_other(iosig: Iosig) -> None:
    assert "cannot be given together" in iosig("choose", "--presets", "random", check=2).stderr
    assert "a name that --presets lists" in iosig("choose", check=2).stderr


def test_a_rules_file_knows_presets_and_its_own_definition_wins(iosig: Iosig, tmp_path: Path) -> None:
    rules, storage = tmp_path / "rules.toml", tmp_path / "storage.toml"
    storage.write_text(
        f'schema = "iosig.storage/1"\n[[mount_point]]\npath = "{tmp_path}"\ndevice = "a"\n'
        '[[device]]\nname = "a"\nkind = "ssd"\n'
    )
    rule = '[[rule]]\npath = "*.out"\nsig = "checkpoint totalsize(1MB)"\n'
    described = [tmp_path / "a.out", "--rules", rules, "--storage", storage, "--dry-run"]
    rules.write_text(f'schema = "iosig.rules/1"\n{rule}')
    assert "sequential persist size-per-IO(16MB) totalsize(1MB)" in str(iosig.json("prepare", *described, check=None))
    rules.write_text(f'schema = "iosig.rules/1"\n[sigdef]\ncheckpoint = "persist random"\n{rule}')
    assert "random persist totalsize(1MB)" in str(iosig.json("prepare", *described, check=None))


def test_completion_offers_the_presets(iosig: Iosig) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "transaction-log" in iosig("completion", shell).stdout
