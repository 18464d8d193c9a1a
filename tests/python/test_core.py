"""iosig._core: the same answers as the core's own, as plain Python values."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

import iosig
import iosig.command
from conftest import DATA, Iosig

PAPER = str(DATA / "paper-table2.toml")


@pytest.fixture
def command(iosig: Iosig) -> Iosig:
    """The command, under a name that is not the package's."""
    return iosig


@pytest.fixture(scope="module")
def storage() -> iosig.Storage:
    return iosig.read_storage(PAPER)


def test_a_signature_is_printed_in_its_canonical_order() -> None:
    assert iosig.parse_signature("size-per-IO(65536) random,persist") == "random persist size-per-IO(64KB)"


@given(
    flags=st.sets(st.sampled_from(["archive", "tamperproof", "random", "persist", "global"])),
    bytes_per_io=st.none() | st.integers(1, 2**62),
    share=st.none() | st.floats(0, 1),
)
def test_parsing_what_was_printed_changes_nothing(
    flags: set[str], bytes_per_io: int | None, share: float | None
) -> None:
    words = sorted(flags)
    words += [f"size-per-IO({bytes_per_io})"] if bytes_per_io is not None else []
    words += [f"read-share({share!r})"] if share is not None else []
    once = iosig.parse_signature(" ".join(words))
    assert iosig.parse_signature(once) == once


@given(st.text(max_size=40))
def test_any_text_is_a_signature_or_a_value_error_with_its_place(text: str) -> None:
    try:
        iosig.parse_signature(text)
    except ValueError as error:
        assert str(error).startswith("signature:")


def test_a_misspelt_parameter_is_named_with_its_place_and_the_nearest_one() -> None:
    with pytest.raises(ValueError, match=r"signature:1:8: error: unknown parameter 'rndom'; did you mean 'random'"):
        iosig.parse_signature("global rndom")


def test_equation_3_by_hand(storage: iosig.Storage) -> None:
    # 103 MB/s, 0.4 ms, 64 KiB: 65536 / (0.0004 + 65536 / (103 * 2^20)) = 64.9 MB/s, above no other limit
    by_hand = 65536 / (0.0004 + 65536 / (103 * 2**20))
    predicted = iosig.predict("random size-per-IO(64KB)", storage, "/paper/nfs", "paper")
    assert predicted["throughput_bytes_per_s"] == pytest.approx(by_hand)
    assert predicted["operation_s"] == pytest.approx(65536 / by_hand)


def test_choose_says_what_the_command_says(storage: iosig.Storage, command: Iosig) -> None:
    for signature in ("global random totalsize(1GB)", "persist size-per-IO(512KB)", "archive"):
        told = command.json("choose", signature, "--storage", PAPER, check=None)
        chosen = iosig.choose(signature, storage)
        assert chosen == {key: told[key] for key in chosen}
    told = command.json("choose", "random totalsize(1GB)", "--storage", PAPER, "--policy", "paper")
    chosen = iosig.choose("random totalsize(1GB)", storage, policy="paper")
    assert chosen == {key: told[key] for key in chosen}
    assert chosen["chosen"] == "/paper/ramdisk"
    assert iosig.choose("random totalsize(1GB)", storage)["chosen"] == "/paper/nvram"


def test_unknown_mount_points_and_models_are_refused_by_name(storage: iosig.Storage) -> None:
    with pytest.raises(ValueError, match="mount_point '/nowhere'"):
        iosig.predict("random", storage, "/nowhere")
    with pytest.raises(ValueError, match="got 'guess'"):
        iosig.choose("random", storage, "guess")  # type: ignore[arg-type]


def test_a_broken_description_is_a_value_error_that_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "storage.toml"
    path.write_text('schema = "iosig.storage/1"\n[[device]]\nname = "x"\nkind = "ssd"\nmtff = "1y"\n')
    with pytest.raises(ValueError, match=r"storage\.toml:5:"):
        iosig.read_storage(str(path))


def test_a_description_that_cannot_be_read_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="gone"):
        iosig.read_storage(str(tmp_path / "gone.toml"))


def test_the_stub_declares_exactly_what_the_extension_has() -> None:
    import ast

    from iosig import _core

    stub = ast.parse((Path(iosig.__file__).parent / "_core.pyi").read_text())
    declared = {node.name for node in stub.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    declared |= {ast.unparse(node.target) for node in stub.body if isinstance(node, ast.AnnAssign)}
    assert declared - {"Prediction", "Simulation"} == {name for name in dir(_core) if not name.startswith("_")}


def test_an_extension_of_another_build_is_told_in_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = typer.Typer()

    @app.command()
    def old() -> None:
        iosig._core.detect("no vectors", 1, 2, 3, 4, 5)  # type: ignore[call-arg, arg-type]

    monkeypatch.setattr(sys, "argv", ["iosig-plot"])
    with pytest.raises(SystemExit) as status:
        iosig.command.run(app, "iosig-plot")
    told = capsys.readouterr().err
    assert status.value.code == 4 and told.count("\n") == 1 and "rebuild: make python" in told
