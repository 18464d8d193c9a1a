"""`iosig choose`: the paper's choices, the explanation, exit statuses, directories."""

from __future__ import annotations

import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from conftest import DATA, Iosig

TABLE2 = DATA / "paper-table2.toml"


@pytest.fixture
def two_mounts(tmp_path: Path) -> Path:
    """A description of two real directories: one fast and volatile, one slow and persistent."""
    for name in ("fast", "slow"):
        (tmp_path / name).mkdir()
    file = tmp_path / "storage.toml"
    file.write_text(
        'schema = "iosig.storage/1"\n'
        f'[[mount_point]]\npath = "{tmp_path}/fast"\ndevice = "fast"\npersistent = false\n'
        f'[[mount_point]]\npath = "{tmp_path}/slow"\ndevice = "slow"\n'
        '[[device]]\nname = "fast"\nkind = "ram"\n'
        '[[device]]\nname = "slow"\nkind = "hdd"\n'
    )
    return file


@pytest.mark.parametrize(
    ("needs", "mount"), [("global", "nfs"), ("MTTDL(20y)", "raid1"), ("persist", "nvram"), ("", "ramdisk")]
)
def test_the_papers_parameter_sets_get_the_papers_devices(iosig: Iosig, needs: str, mount: str) -> None:
    answer = iosig.json(
        "choose", f"{needs} random totalsize(1GB) size-per-IO(512KB)", "--storage", TABLE2, "--policy", "paper"
    )
    assert answer["schema"] == "iosig.choice/2"
    assert answer["chosen"] == f"/paper/{mount}"
    assert len(answer["candidates"]) == 5
    assert answer["candidates"][0]["mount_point"] == answer["chosen"]
    for candidate in answer["candidates"]:
        assert candidate["reasons"]
        assert candidate["throughput_bytes_per_s"] == pytest.approx(512 * 1024 / candidate["operation_s"])


def test_the_table_names_every_mount_point_and_why(iosig: Iosig) -> None:
    text = iosig("choose", "persist random totalsize(3GB) size-per-IO(512KB)", "--storage", TABLE2).stdout
    assert "chosen: /paper/raid1" in text
    assert "no room: totalsize 3GB, free 2 GB" in text
    assert "not persistent: lost with power" in text
    assert "limited by" in text


def test_words_of_a_signature_may_come_as_one_argument_or_several(iosig: Iosig) -> None:
    one = iosig.json("choose", "persist random", "--storage", TABLE2)
    assert iosig.json("choose", "persist", "random", "--storage", TABLE2) == one


def test_nothing_admissible_is_a_sound_no(iosig: Iosig) -> None:
    answer = iosig.json("choose", "tamperproof", "--storage", TABLE2, check=1)
    assert answer["chosen"] is None
    assert not any(candidate["admissible"] for candidate in answer["candidates"])


def test_the_model_as_printed_ignores_reads(iosig: Iosig) -> None:
    signature = "read-share(100%) size-per-IO(5KB) sequential"
    mixed, paper = (
        iosig.json("choose", signature, "--storage", TABLE2, "--model", model)["candidates"][0]
        for model in ("mixed", "paper")
    )
    assert mixed["throughput_bytes_per_s"] > paper["throughput_bytes_per_s"]


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["randm"], 3, "signature:1:1: error: unknown parameter 'randm'; did you mean 'random'?"),
        (["global local"], 3, "'local' contradicts 'global'"),
        ([], 2, "SIGNATURE is required"),
        (["random", "--model", "guess"], 2, "--model"),
        (["random", "--josn"], 2, "unknown option '--josn'. Did you mean '--json'?"),
        (["random", "--storage", "/nonexistent/storage.toml"], 4, "No such file"),
    ],
)
def test_bad_calls_say_what_was_expected(iosig: Iosig, arguments: list[str], status: int, says: str) -> None:
    done = iosig("choose", *arguments, *([] if "--storage" in arguments else ["--storage", TABLE2]), check=status)
    assert says in done.stderr
    assert done.stdout == ""


def test_a_mistyped_verb_gets_the_nearest_one(iosig: Iosig) -> None:
    assert "unknown command 'chose'. Did you mean 'choose'?" in iosig("chose", "persist", check=2).stderr
    assert "Did you mean 'probe'?" in iosig("storage", "prob", check=2).stderr


def test_a_description_that_everyone_can_write_is_refused(iosig: Iosig, two_mounts: Path) -> None:
    two_mounts.chmod(0o666)
    assert "can be written by every user" in iosig("choose", "temp", "--storage", two_mounts, check=3).stderr


def test_the_order_of_descriptions_is_option_variable_user(iosig: Iosig, two_mounts: Path) -> None:
    user_file = iosig.home / ".config" / "iosig" / "storage.toml"
    user_file.parent.mkdir(parents=True)
    user_file.write_bytes(TABLE2.read_bytes())
    assert iosig.json("choose", "temp")["storage"] == str(user_file)
    iosig.env["IOSIG_STORAGE"] = str(two_mounts)
    assert iosig.json("choose", "temp")["storage"] == str(two_mounts)
    assert iosig.json("choose", "temp", "--storage", TABLE2)["storage"] == str(TABLE2)


def test_without_a_description_the_machine_is_looked_at_and_that_is_said(iosig: Iosig) -> None:
    done = iosig("choose", "temp sequential", check=None)
    assert done.returncode in (0, 1)
    assert "there is no storage description" in done.stderr
    assert "iosig storage probe" in done.stderr


def test_make_directory_prints_the_directory_alone(iosig: Iosig, two_mounts: Path) -> None:
    done = iosig("choose", "temp", "--make-folder", "--storage", two_mounts)
    directory = Path(done.stdout.rstrip("\n"))
    assert directory.is_relative_to(two_mounts.parent / "fast")
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert "chosen:" in done.stderr
    other = iosig.json("choose", "temp", "--make-folder", "--storage", two_mounts)["folder"]
    assert other != str(directory)


def test_make_directory_of_no_mount_point_prints_nothing(iosig: Iosig, two_mounts: Path) -> None:
    assert iosig("choose", "global", "--make-folder", "--storage", two_mounts, check=1).stdout == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_know_every_verb_and_parameter(iosig: Iosig, shell: str) -> None:
    script = iosig("completion", shell).stdout
    for word in ("storage", "probe", "choose", "finalize", "--make-folder", "size-per-IO(16MB)"):
        assert word in script


def test_bash_completes_what_fits(iosig: Iosig, tmp_path: Path) -> None:
    script = tmp_path / "completion"
    iosig("completion", "bash", "--output", script)
    asked = f'source {script}; COMP_WORDS=(iosig storage pr); COMP_CWORD=2; _iosig; echo "${{COMPREPLY[*]}}"'
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == "probe\n"


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_what_fits(iosig: Iosig, tmp_path: Path) -> None:
    script = tmp_path / "completion"
    iosig("completion", "fish", "--output", script)
    asked = f"source {script}; complete -C 'iosig choose size'; complete -C 'iosig completion zs'"
    done = subprocess.run(["fish", "-c", asked], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stderr == ""
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["size-per-IO(16MB)", "zsh"]


def test_every_verb_has_a_manual_page_and_an_example(iosig: Iosig, tmp_path: Path) -> None:
    iosig("man", tmp_path / "man1")
    pages = {page.name: page.read_text() for page in (tmp_path / "man1").iterdir()}
    for verb in ("storage", "cc", "choose", "prepare", "finalize", "status", "completion"):
        assert ".SH EXIT STATUS" in pages[f"iosig-{verb}.1"]
        assert "Example:" in iosig(verb, "--help").stdout
    assert "size\\-per\\-IO" in pages["iosig.1"]
