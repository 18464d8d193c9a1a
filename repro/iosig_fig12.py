"""Fig. 12 of the IOSIG paper: mean time to data loss over data size on RAID 5 and RAID 1 (section 7.4).

Three ways beside each other: Eq. 2, the Markov chain of the structure (`iosig reliability mttdl`) and the Monte Carlo
simulation of failing devices (`iosig reliability simulate`). The paper does not say how many disks its RAID 5 has; its
15 months for 1 TB fit five (4 + 1).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

import iosig
from iosig.figures import bytes_label
from iosig.panels import Curve, Look, Panel
from iosig.repro.artefact import Artefact, Fact, Result, Setting, Source, about, judge, more_than, same, untested
from iosig.repro.machine import call, iosig_command

GIB, TIB = 1 << 30, 1 << 40
YEAR_S, DAY_S = 365 * 86400.0, 86400.0
MTTF_S, MTTR_S = 10 * YEAR_S, DAY_S
BER, SECTOR_BITS, ECC_BITS = 1e-6, 512, 2
CODES = {"raid5": (4, 1), "raid1": (1, 1)}  # data and parity devices
GOOD_PERCENT = 10
LOOKS = {"Eq. 2": Look.COMPUTED, "chain": Look.COMPUTED_TOO, "simulated": Look.MEASURED}
SIZES = [GIB << shift for shift in range(0, 21, 2)]  # 1 GB to 1 PB


def description() -> str:
    """Both arrays for `iosig reliability`, with section 7.4's numbers; the speeds are never looked at."""
    text = ['schema = "iosig.storage/1"']
    for code, (data, parity) in CODES.items():
        members = [f"{code}-{i}" for i in range(data + parity)]
        text.append(f'[[mount_point]]\npath = "/paper/{code}"\ndevice = "{code}"')
        for name in members:
            text.append(f'[[device]]\nname = "{name}"\nkind = "hdd"\nmttf = "10y"\nber = {BER}')
            text.append(f"sector_bits = {SECTOR_BITS}\necc_bits = {ECC_BITS}")
        text.append(f'[[device]]\nname = "{code}"\nkind = "composite"\nmttr = "1d"')
        text.append(f'[device.redundancy]\nscheme = "{code}"\nmembers = {members}')
    return "\n".join(text) + "\n"


def asked(storage: Path, verb: str, code: str, size: int) -> dict[str, Any] | None:
    """What `iosig reliability` says of a size; None where the command has no such verb."""
    words = [iosig_command(), "reliability", verb, "--storage", storage, "--mount-point", f"/paper/{code}"]
    printed = call(*words, "--size", bytes_label(size), "--json", accept=(0, 2))
    return json.loads(printed) if printed else None


def years_by(
    way: str, verb: str, storage: Path, sizes: list[int], setting: Setting
) -> list[tuple[str, str, int, float]]:
    rows = []
    for code in CODES:
        for size in sizes:
            setting.progress(f"{way}: {code}, {bytes_label(size)}")
            if (told := asked(storage, verb, code, size)) is None:
                return []
            rows.append((code, way, size, told["mttdl_s"] / YEAR_S))
    return rows


def match_fact(years: pd.Series) -> Fact:
    """The paper's comparison: simulated against modelled, at every simulated size."""
    where, claim = "section 7.4, Fig. 12", "simulation and model match"
    ways = years.unstack("by")
    if "simulated" not in ways:
        return untested(where, claim, "good", "", "this build has no `iosig reliability simulate`")
    both = ways.dropna()
    off = {way: (both["simulated"] / both[way] - 1).abs().max() * 100 for way in ("chain", "Eq. 2") if way in both}
    text = ", ".join(f"{percent:.0f} % off {way}" for way, percent in off.items())
    return Fact(
        where,
        claim,
        "good",
        text,
        "",
        judge(min(off.values()) <= GOOD_PERCENT),
        f"the worst size; {GOOD_PERCENT} % holds",
    )


def run(setting: Setting) -> Result:
    uber = iosig.uncorrectable_bit_error_rate(BER, SECTOR_BITS, ECC_BITS)
    storage = setting.scratch / "storage.toml"
    storage.write_text(description())
    rows = [
        (code, "Eq. 2", size, iosig.mds_mttdl_s(*devices, MTTF_S, MTTR_S, uber, size) / YEAR_S)
        for code, devices in CODES.items()
        for size in SIZES
    ]
    rows += years_by("chain", "mttdl", storage, SIZES, setting)
    simulated_sizes = [TIB] if setting.quick else SIZES[::5]  # 1 GB, 1 TB, 1 PB
    rows += years_by("simulated", "simulate", storage, simulated_sizes, setting)
    data = pd.DataFrame(rows, columns=["code", "by", "size_bytes", "mttdl_years"])
    years = data.set_index(["code", "size_bytes", "by"])["mttdl_years"]
    where = "section 7.4, Fig. 12"
    off = uber / 1e-14
    falls = all(
        values.is_monotonic_decreasing
        for _, values in data.sort_values("size_bytes").groupby(["code", "by"])["mttdl_years"]
    )
    facts = [
        Fact(
            "section 7.4",
            "UBER from BER 1e-6, 512-bit sectors, 2 bits corrected: about",
            1e-14,
            uber,
            "",
            judge(0.1 < off < 10),
            f"{off:.2g} times; within a factor of 10 holds",
        ),
        about(where, "1 TB on RAID 5 (4 + 1) lasts, by Eq. 2", 15, years["raid5", TIB, "Eq. 2"] * 12, "months"),
        about(where, "1 TB on RAID 1 lasts, by Eq. 2", 12, years["raid1", TIB, "Eq. 2"], "years"),
        more_than("section 7.3", "1 GB on RAID 1 lasts more than", 100, years["raid1", GIB, "Eq. 2"], "years"),
        same(where, "larger data have a lower MTTDL", "yes", "yes" if falls else "no"),
        match_fact(years),
    ]
    curves = [
        Curve(f"{code}, {way}", list(points["size_bytes"]), list(points["mttdl_years"]), LOOKS[str(way)])
        for (code, way), points in data.groupby(["code", "by"], sort=False)
    ]
    curves.append(Curve("published", [TIB, TIB], [15 / 12, 12.0], Look.PUBLISHED))
    panel = Panel("MTTF 10 y, repair 1 d, BER 1e-6", "data size", "MTTDL, years", curves)
    return Result(data, facts, [panel], "section 7.4's numbers; RAID 5 of 5 devices, RAID 1 of 2")


ARTEFACTS = [Artefact("iosig-fig12", "MTTDL over data size", "section 7.4, Fig. 12", (Source.VIRTUAL,), run)]
