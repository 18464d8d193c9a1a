"""`iosig reliability`: Eq. 1 to the last digits, the chain beside Eq. 2, the simulation, and what is refused."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path

import pytest

from conftest import DATA, Iosig, bench

TABLE2 = DATA / "paper-table2.toml"
YEAR_S = 365 * 86400


def description(directory: Path, redundancy: str, **values: object) -> Path:
    """A description of /data on a composite whose devices have `values`."""
    device = {"mttf": '"10y"', "mttr": '"1d"', "ber": 1e-6, "sector_bits": 512, "ecc_bits": 2, **values}
    file = directory / "storage.toml"
    file.write_text(
        'schema = "iosig.storage/1"\n[[mount_point]]\npath = "/data"\ndevice = "array"\n'
        '[[device]]\nname = "array"\nkind = "composite"\n'
        + "".join(f"{key} = {value}\n" for key, value in device.items())
        + f"[device.redundancy]\n{redundancy}\n"
    )
    return file


def mttdl(iosig: Iosig, file: Path, size: str = "1GB", **options: object) -> dict[str, float]:
    answer: dict[str, float] = iosig.json(
        "reliability", "mttdl", "--storage", file, "--mount-point", "/data", "--size", size, **options
    )
    return answer


@pytest.mark.parametrize("sector_bits", [512, 4096, 32768, 2**20])
@pytest.mark.parametrize("ecc_bits", [0, 2, 40])
def test_eq_1_loses_no_digits(iosig: Iosig, tmp_path: Path, sector_bits: int, ecc_bits: int) -> None:
    for ber in (1e-20, 1e-13, 1e-6, 1e-4, 1e-2):
        file = description(
            tmp_path, 'scheme = "mds"\ndata = 1\nparity = 1', ber=ber, sector_bits=sector_bits, ecc_bits=ecc_bits
        )
        exact = bench("reliability").exact_uber(ber, sector_bits, ecc_bits)
        if exact > Decimal("1e-300"):  # what a double can hold
            assert abs(Decimal(mttdl(iosig, file)["uber"]) / exact - 1) < Decimal("1e-12")


def test_the_papers_sizes(iosig: Iosig, tmp_path: Path) -> None:
    """Section 7.4: UBER about 1e-14 (4.36e-14); 1 TB lasts 15 months on RAID 5 and 13 years on RAID 1, by Eq. 2."""
    raid1 = description(tmp_path, 'scheme = "mds"\ndata = 1\nparity = 1')
    answer = mttdl(iosig, raid1, "1TB")
    assert answer["schema"] == "iosig.mttdl/1"
    assert answer["uber"] == pytest.approx(4.36e-14, rel=1e-3)
    assert answer["mttdl_eq2_s"] == pytest.approx(13.0 * YEAR_S, rel=0.01)
    assert mttdl(iosig, raid1, "1GB")["mttdl_s"] > 100 * YEAR_S
    raid5 = description(tmp_path, 'scheme = "mds"\ndata = 4\nparity = 1')
    assert mttdl(iosig, raid5, "1TB")["mttdl_eq2_s"] == pytest.approx(15 / 12 * YEAR_S, rel=0.05)


def test_the_chain_is_eq_2_where_that_holds(iosig: Iosig, tmp_path: Path) -> None:
    for redundancy in ("data = 1\nparity = 1", "data = 4\nparity = 2", "data = 8\nparity = 3"):
        answer = mttdl(iosig, description(tmp_path, 'scheme = "mds"\n' + redundancy), "1GB")
        assert answer["mttdl_s"] == pytest.approx(answer["mttdl_eq2_s"], rel=0.01)


def test_the_probability_of_loss_follows_from_the_duration(iosig: Iosig) -> None:
    place = ("--storage", TABLE2, "--mount-point", "/paper/raid1", "--size", "1TB")
    answer = iosig.json("reliability", "mttdl", *place, "--duration", "30d")
    assert answer["loss_probability"] == pytest.approx(-math.expm1(-30 * 86400 / answer["mttdl_s"]))


def test_a_local_reconstruction_code_has_no_eq_2(iosig: Iosig, tmp_path: Path) -> None:
    answer = mttdl(iosig, description(tmp_path, 'scheme = "lrc"\ndata = 12\nlocal_groups = 2\nparity = 2', ber=0))
    assert answer["mttdl_eq2_s"] is None
    assert answer["mttdl_s"] == pytest.approx(1.316e8 * YEAR_S, rel=0.01)


def test_the_simulation_agrees_and_repeats(iosig: Iosig) -> None:
    place = ("--storage", TABLE2, "--mount-point", "/paper/raid1", "--size", "1TB")
    first = iosig.json("reliability", "simulate", *place, "--seed", 7)
    assert first["schema"] == "iosig.simulation/1"
    assert first["ci95_low_s"] < first["mttdl_s"] < first["ci95_high_s"]
    assert first["mttdl_s"] == pytest.approx(iosig.json("reliability", "mttdl", *place)["mttdl_s"], rel=0.05)
    assert first["losses"] > 100
    assert iosig.json("reliability", "simulate", *place, "--seed", 7, "--threads", 3) == first


def test_what_is_not_reliable_is_a_sound_no(iosig: Iosig) -> None:
    place = ("--storage", TABLE2, "--mount-point", "/paper/hdd", "--size", "1GB")
    assert "without redundancy" in iosig("reliability", "mttdl", *place, check=1).stderr
    assert iosig.json("reliability", "mttdl", *place, check=1)["mttdl_s"] is None
    assert "without redundancy" in iosig("reliability", "simulate", *place, check=1).stderr


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (("--size", "0"), "expected at least 1B"),
        (("--size", "9223372036854775808B"), "2^63 - 1"),
        (("--size", "-1GB"), "negative"),
        (("--mount-point", "/paper/raid"), "did you mean '/paper/raid1'"),
        (("--duration", "soon"), "--duration"),
        (("--duration", ""), "--duration"),
    ],
)
def test_wrong_usage_is_explained(iosig: Iosig, changed: tuple[str, str], message: str) -> None:
    options = {"--storage": str(TABLE2), "--mount-point": "/paper/raid1", "--size": "1GB", **dict([changed])}
    words = [word for option in options.items() for word in option]
    assert message in iosig("reliability", "mttdl", *words, check=2).stderr


@pytest.mark.parametrize("option", ["--seed", "--threads"])
@pytest.mark.parametrize("value", ["-1", str(2**64), "1.5", ""])
def test_a_seed_is_a_whole_number_that_fits(iosig: Iosig, option: str, value: str) -> None:
    place = ("--storage", TABLE2, "--mount-point", "/paper/raid1", "--size", "1TB")
    done = iosig("reliability", "simulate", *place, option, value, check=2)
    assert option in done.stderr
    assert "from 0 to" in done.stderr


def test_the_largest_seed_is_taken(iosig: Iosig) -> None:
    place = ("--storage", TABLE2, "--mount-point", "/paper/raid1", "--size", "1TB")
    assert iosig.json("reliability", "simulate", *place, "--seed", 2**64 - 1)["seed"] == 2**64 - 1


def test_the_largest_size_is_computed(iosig: Iosig) -> None:
    place = ("--storage", TABLE2, "--mount-point", "/paper/raid1", "--size", f"{2**63 - 1}B")
    # Every rebuilding meets an unreadable sector: the first of two failures counts.
    assert iosig.json("reliability", "mttdl", *place)["mttdl_s"] == pytest.approx(5 * YEAR_S, rel=1e-3)


@pytest.mark.parametrize(
    ("redundancy", "message"),
    [
        ('scheme = "mds"\ndata = 0\nparity = 1', "at least 1"),
        ('scheme = "mds"\nparity = 2\nmembers = ["array"]', "parit"),
        ('scheme = "raid5"\nmembers = ["a", "b", "c"]', "a"),
        ('scheme = "raid1"\nmembers = ["array", "array"]', "array"),
        ('scheme = "lrc"\ndata = 5\nlocal_groups = 2\nparity = 1', "equal groups"),
    ],
)
def test_structures_that_cannot_be_are_refused_with_their_place(
    iosig: Iosig, tmp_path: Path, redundancy: str, message: str
) -> None:
    file = description(tmp_path, redundancy)
    place = ("--storage", file, "--mount-point", "/data", "--size", "1GB")
    error = iosig("reliability", "mttdl", *place, check=3).stderr
    assert f"{file}:" in error
    assert message in error


@pytest.mark.parametrize(
    ("key", "value"), [("mttf", '"0s"'), ("mttr", '"0s"'), ("mttf", '"-1y"'), ("ber", 2), ("ecc_bits", 512)]
)
def test_rates_that_cannot_be_are_refused_with_their_place(
    iosig: Iosig, tmp_path: Path, key: str, value: object
) -> None:
    file = description(tmp_path, 'scheme = "mds"\ndata = 1\nparity = 1', **{key: value})
    place = ("--storage", file, "--mount-point", "/data", "--size", "1GB")
    assert f"{file}:" in iosig("reliability", "mttdl", *place, check=3).stderr


def test_storage_show_tells_the_mttdl_by_size(iosig: Iosig) -> None:
    shown = iosig.json("storage", "show", "/paper/raid1", "--storage", TABLE2)["mount_points"][0]["computed"]["mttdl"]
    assert [entry["size_bytes"] for entry in shown] == [2**30, 100 * 2**30, 2**40]
    assert shown[0]["mttdl_s"] > shown[1]["mttdl_s"] > shown[2]["mttdl_s"] > 12 * YEAR_S
