"""`iosig recover`: what was cut short is finished or undone, what lives or waits is left."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from redirecting import World, compile_c, needs_mounts, with_checksum

NEW = str(os.O_CREAT | os.O_WRONLY)


def names(world: World, path: Path) -> tuple[Path, Path]:
    """The draft's and the aside's name for the one redirect there is."""
    identity = world.journal()[0].stem
    return path.parent / f".iosig-{identity}.draft", path.parent / f".iosig-{identity}.aside"


def outcomes(world: World, *arguments: object) -> dict[str, str]:
    answer = world.iosig.json("recover", *arguments)
    assert answer["schema"] == "iosig.recover/1" and answer["refused"] == []
    return {Path(r["path"]).name: r["outcome"] for r in answer["recovered"]}


def test_what_is_complete_or_waits_is_left_with_the_reason(world: World) -> None:
    path, _ = world.prepared("out", b"data")
    world.iosig("prepare", world.work / "waiting", "random")
    lost, _ = world.prepared("lost", b"data")
    lost.unlink()
    directory = Path(world.iosig("choose", "--make-folder", "temp").stdout.strip())
    said = world.iosig("recover").stdout
    for word in (
        "data are redirected",
        "waits for its run",
        "link is gone",
        "waits for its job",
        "0 finished, 0 undone, 4 left",
    ):
        assert word in said
    assert (
        path.is_symlink() and (world.work / "waiting").is_symlink() and directory.exists() and len(world.journal()) == 4
    )


def test_a_copy_that_was_cut_short_is_undone(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    draft, _ = names(world, path)
    draft.write_bytes(b"da")
    assert world.iosig.json("status")["redirects"][0]["cut_short"]
    assert "recover" in world.iosig("status").stderr
    assert outcomes(world, "--dry-run") == {"out": "undone"} and draft.exists()
    assert outcomes(world) == {"out": "undone"}
    assert path.is_symlink() and destination.read_bytes() == b"data" and not draft.exists()
    assert outcomes(world) == {"out": "left"}


def test_a_copy_that_is_in_place_is_finished(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    path.unlink()
    path.write_bytes(b"data")
    assert outcomes(world, path) == {"out": "finished"}
    assert path.read_bytes() == b"data" and not destination.exists() and not world.journal()


def put_in_place(world: World, path: Path) -> tuple[Path, Path]:
    """The copy of `path`'s data stands in the link's place, as a run leaves it that is killed there: draft, aside."""
    draft, aside = names(world, path)
    draft.write_bytes(path.read_bytes())
    os.utime(draft, (0, 0))  # as finalize leaves it: its data are older
    path.rename(aside)
    os.link(draft, path)
    return draft, aside


@pytest.mark.parametrize("verb", [["recover"], ["finalize", "--all"]])
def test_what_a_program_wrote_to_a_copy_that_a_killed_run_had_put_in_place_is_kept(
    world: World, verb: list[str]
) -> None:
    path, destination = world.prepared("out", b"data")
    draft, aside = put_in_place(world, path)
    with path.open("ab") as appending:
        appending.write(b", and more")
    world.iosig(*verb, check=None)
    assert path.read_bytes() == b"data, and more" and destination.read_bytes() == b"data"
    assert not draft.exists() and not os.path.lexists(aside)


def test_a_copy_in_place_that_nobody_used_is_undone(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    draft, aside = put_in_place(world, path)
    outcomes(world)
    assert not draft.exists() and not os.path.lexists(aside)
    if path.is_symlink():  # a file system that does not tell when a file was made keeps the copy
        assert path.readlink() == destination
    assert path.read_bytes() == b"data"


def test_a_foreign_file_that_a_killed_run_had_taken_out_goes_back(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    draft, aside = put_in_place(world, path)
    aside.unlink()
    aside.write_bytes(b"foreign")
    outcomes(world)
    assert path.read_bytes() == b"foreign" and destination.read_bytes() == b"data"
    assert not draft.exists() and not aside.exists()


def test_a_foreign_file_whose_place_is_taken_stays_aside_and_is_named(world: World) -> None:
    path, destination = world.prepared("out", b"data")
    _, aside = names(world, path)
    aside.write_bytes(b"foreign")
    [left] = world.iosig.json("recover")["recovered"]
    assert left["outcome"] == "left" and str(aside) in left["why"]
    assert str(aside) in world.iosig("finalize", path, check=1).stderr
    assert aside.read_bytes() == b"foreign" and path.read_bytes() == destination.read_bytes() == b"data"
    aside.unlink()
    world.iosig("finalize", path)
    assert path.read_bytes() == b"data" and not world.journal()


def test_a_program_that_died_before_it_wrote_leaves_no_link(world: World, hinted: Path) -> None:
    world.run(hinted, "redirect", "out", NEW, "random")
    assert (world.work / "out").is_symlink()
    assert outcomes(world) == {"out": "undone"}
    assert not os.path.lexists(world.work / "out") and not world.journal()


def test_what_a_live_process_has_begun_is_left(world: World, tmp_path: Path) -> None:
    program = compile_c(
        "#include <iosig/iosig.h>\n#include <unistd.h>\n"
        'int main(void) { char c; iosig_redirect("out", "random"); iosig_redirect("gone", "random");'
        ' unlink("gone"); if (write(1, ".", 1) != 1) return 1; return (int)read(0, &c, 1); }\n',
        tmp_path, "waits",
    )  # fmt: skip
    maker = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=world.work, env=world.env)
    assert maker.stdout is not None and maker.stdout.read(1) == b"."
    assert outcomes(world) == {"out": "left", "gone": "left"}
    assert f"process {maker.pid}" in world.iosig("finalize", "--all", check=1).stderr
    assert (world.work / "out").is_symlink() and len(world.journal()) == 2
    maker.kill()  # at its end it would drop what it deleted by itself
    maker.communicate()
    assert outcomes(world) == {"out": "undone", "gone": "undone"}
    assert not world.journal()


@pytest.mark.parametrize("created", [0, 4102444800], ids=["in 1970", "in 2100"])
def test_a_clock_that_jumped_changes_no_verdict(world: World, hinted: Path, created: int) -> None:
    """What the entry says of the date is changed, as if the clock had been: only the checksum knows."""
    world.run(hinted, "redirect", "out", NEW, "random")
    [entry] = world.journal()
    text = entry.read_text()
    before = text.split('"created_unix_s":')[1].split(",")[0]
    body = text.replace(f'"created_unix_s":{before}', f'"created_unix_s":{created}').split(',"checksum"')[0]
    entry.write_text(with_checksum(body))
    assert "out" in world.iosig("status").stdout
    assert outcomes(world) == {"out": "undone"} and not world.journal()


@pytest.mark.parametrize(
    "text", [b"", b'{"schema":"iosig.journal/1","id":"', bytes(300)], ids=["empty", "cut", "zeros"]
)
def test_an_entry_whose_writer_died_goes_unless_it_has_data(world: World, text: bytes) -> None:
    cut = world.state / "journal" / ("0123456789abcdef.json")
    cut.parent.mkdir(parents=True)
    cut.write_bytes(text)
    world.user_directory.mkdir(mode=0o700)
    data = world.user_directory / "0123456789abcdef.out"
    data.write_bytes(b"data")
    [left] = world.iosig.json("recover")["recovered"]
    assert left["outcome"] == "left" and str(data) in left["why"] and cut.exists()
    (world.work / "out").symlink_to(data)
    world.iosig("finalize", world.work / "out")
    assert (world.work / "out").read_bytes() == b"data"
    assert outcomes(world, "all") == {} and not world.journal()  # finalize replaced the entry and removed it


def test_an_entry_that_is_being_written_is_left(world: World) -> None:
    cut = world.state / "journal" / ("0" * 16 + ".json")
    cut.parent.mkdir(parents=True)
    with cut.open("wb"):
        assert outcomes(world) == {cut.name: "left"}
    assert outcomes(world) == {cut.name: "undone"}


def test_entries_of_other_versions_and_renamed_ones_are_left(world: World) -> None:
    world.prepared("out", b"data")
    good = world.journal()[0]
    (good.parent / ("1" * 16 + ".json")).write_bytes(good.read_bytes())
    (good.parent / ("2" * 16 + ".json")).write_bytes(good.read_bytes().replace(b"journal/1", b"journal/2"))
    assert set(outcomes(world).values()) == {"left"}
    assert len(world.journal()) == 3


@needs_mounts
def test_a_complete_copy_is_saved_when_its_data_went_with_the_power(world: World) -> None:
    script = f"""
        mount -t tmpfs none {world.fast} || exit
        i={world.iosig.binary}
        $i prepare out random && printf data > out
        id=$(basename {world.state}/journal/*.json .json)
        printf data > .iosig-$id.draft && ln .iosig-$id.draft .iosig-$id.aside
        umount {world.fast} && mount -t tmpfs none {world.fast} && install -d -m 700 {world.user_directory}
        $i recover all && $i finalize --all; echo $?
        $i finalize --drop-orphans out && cat out && ls -A
    """
    done = world.run_with_own_mounts(script)
    assert b"0 finished, 0 undone, 1 left\n1\n" in done.stdout, done.stdout + done.stderr
    assert done.stdout.endswith(b"dataout\n"), done.stdout + done.stderr
    assert not world.journal() and not (world.work / "out").is_symlink()


def test_nothing_to_recover_is_said_and_a_path_that_is_not_redirected_too(world: World) -> None:
    assert world.iosig("recover").stdout == "0 finished, 0 undone, 0 left\n"
    assert "nothing is redirected there" in world.iosig("recover", world.work / "x").stdout
