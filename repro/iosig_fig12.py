"""Fig. 12 of the IOSIG paper: mean time to data loss over data size on RAID 5 and RAID 1 (section 7.4).

Three ways beside each other: Eq. 2, the Markov chain of the structure, and the Monte Carlo simulation of failing
devices and unreadable bits with its 95 % confidence intervals. The paper does not say how many disks its RAID 5 has;
its 15 months for 1 TB fit five (4 + 1).

The chain and the simulation know that a rebuilding fails at most once, so from about 1 TB on, where several unreadable
bits are to be expected in one rebuilding, Eq. 2 falls below them: it has h, their expected number, where they have the
probability of any, 1 - exp(-h).
"""

from __future__ import annotations

import math

import pandas as pd

import iosig
from iosig.figures import bytes_label
from iosig.panels import Curve, Look, Panel
from iosig.repro.artefact import Artefact, Fact, Result, Setting, Source, about, judge, more_than, same

KIB, GIB, TIB = 1 << 10, 1 << 30, 1 << 40
YEAR_S = 365 * 86400.0
BER, SECTOR_BITS, ECC_BITS = 1e-6, 512, 2
CODES = {"raid5": 5, "raid1": 2}  # devices
EQ2, CHAIN, SIMULATED = "Eq. 2", "Markov chain", "simulated"
LOOKS = {EQ2: Look.COMPUTED, CHAIN: Look.COMPUTED_TOO, SIMULATED: Look.MEASURED}
PUBLISHED_YEARS = {"raid5": 15 / 12, "raid1": 12.0}  # 1 TB
GOOD_PERCENT = 10
SIZES = [GIB << shift for shift in range(0, 21, 2)]  # 1 GB to 1 PB
QUICK_SIZES = [16 * GIB, TIB]
SEED = 12
ONCE = "a rebuilding fails once at most: 1 - exp(-h) where Eq. 2 has h"
WHERE = "section 7.4, Fig. 12"


def description() -> str:
    """Both arrays with section 7.4's numbers: MTTF 10 years, repair one day."""
    text = ['schema = "iosig.storage/1"']
    for code, count in CODES.items():
        members = [f"{code}-{i}" for i in range(count)]
        text.append(f'[[mount_point]]\npath = "/paper/{code}"\ndevice = "{code}"')
        for name in members:
            text.append(f'[[device]]\nname = "{name}"\nkind = "hdd"\nmttf = "10y"\nber = {BER}')
            text.append(f"sector_bits = {SECTOR_BITS}\necc_bits = {ECC_BITS}")
        text.append(f'[[device]]\nname = "{code}"\nkind = "composite"\nmttr = "1d"')
        text.append(f'[device.redundancy]\nscheme = "{code}"\nmembers = {members}')
    return "\n".join(text) + "\n"


def years_by_all_ways(setting: Setting) -> pd.DataFrame:
    """`mttdl_years` of each code, size and way (`by`); a simulation's with `low_years` and `high_years`."""
    path = setting.scratch / "storage.toml"
    path.write_text(description())
    storage = iosig.read_storage(str(path))
    rows: list[tuple[str | float, ...]] = []
    for code in CODES:
        mount = f"/paper/{code}"
        for size in SIZES:
            rows.append((code, EQ2, size, iosig.eq2_mttdl_s(storage, mount, size), math.nan, math.nan))
            rows.append((code, CHAIN, size, iosig.chain_mttdl_s(storage, mount, size), math.nan, math.nan))
        for size in QUICK_SIZES if setting.quick else SIZES:
            setting.progress(f"simulating: {code}, {bytes_label(size)}")
            told = iosig.simulate_mttdl(storage, mount, size, SEED)
            rows.append((code, SIMULATED, size, told["mttdl_s"], told["ci95_low_s"], told["ci95_high_s"]))
    columns = ["code", "by", "size_bytes", "mttdl_years", "low_years", "high_years"]
    data = pd.DataFrame(rows, columns=columns)
    data[columns[3:]] /= YEAR_S
    return data


def match_fact(data: pd.DataFrame, model: str, largest_bytes: int) -> Fact:
    """The paper's comparison of simulated and modelled values: the worst one of these sizes."""
    ways = data.pivot_table(values="mttdl_years", index=["code", "size_bytes"], columns="by").dropna()
    ways = ways[ways.index.get_level_values("size_bytes") <= largest_bytes]
    off = ways[SIMULATED] / ways[model] - 1
    worst = int(off.abs().argmax())
    code, size = ways.index[worst]
    claim = f"the simulation matches the model ({model}, sizes to {bytes_label(largest_bytes)})"
    percent = off.iloc[worst] * 100
    holds = judge(abs(percent) <= GOOD_PERCENT)
    judged = f"the worst size; {GOOD_PERCENT} % off holds"
    return Fact(WHERE, claim, "properly", f"{percent:+.1f} % ({code}, {bytes_label(size)})", "", holds, judged)


def within_ten(claim: str, published: float, found: float, unit: str) -> Fact:
    """What the paper gives as a power of ten."""
    off = found / published
    judged = f"{off:.2g} times; within a factor of 10 holds"
    return Fact("section 7.4", claim, published, found, unit, judge(0.1 < off < 10), judged)


def run(setting: Setting) -> Result:
    data = years_by_all_ways(setting)
    uber = iosig.uncorrectable_bit_error_rate(BER, SECTOR_BITS, ECC_BITS)
    years = data.set_index(["code", "by", "size_bytes"])["mttdl_years"]
    models = data[data["by"] != SIMULATED]  # a simulation only wavers where the chain hardly falls any more
    falls = all(values.is_monotonic_decreasing for _, values in models.groupby(["code", "by"])["mttdl_years"])
    facts = [
        about("section 7.4", "BER 1e-6 is one bit error per", 128, 1 / BER / 8 / KIB, "KB"),
        within_ten("UBER from BER 1e-6, 512-bit sectors, 2 bits corrected: about", 1e-14, uber, ""),
        within_ten("that is one uncorrectable bit error per", 10, 1 / uber / 8 / TIB, "TB"),
        about(WHERE, "1 TB on RAID 5 (4 + 1) lasts, by Eq. 2", 15, years["raid5", EQ2, TIB] * 12, "months"),
        about(WHERE, "1 TB on RAID 1 lasts, by Eq. 2", 12, years["raid1", EQ2, TIB], "years"),
        more_than("section 7.3", "1 GB on RAID 1 lasts more than", 100, years["raid1", EQ2, GIB], "years"),
        same(WHERE, "larger data have a lower MTTDL, by the models", "yes", "yes" if falls else "no"),
        match_fact(data, CHAIN, SIZES[-1]),
        match_fact(data, EQ2, 16 * GIB),
        match_fact(data, EQ2, TIB),
        about(
            WHERE,
            "1 TB on RAID 5 (4 + 1) lasts, simulated",
            15,
            years["raid5", SIMULATED, TIB] * 12,
            "months",
            note=ONCE,
        ),
        about(WHERE, "1 TB on RAID 1 lasts, simulated", 12, years["raid1", SIMULATED, TIB], "years", note=ONCE),
    ]
    curves = []
    for (code, by), points in data.groupby(["code", "by"], sort=False):
        bounds = [list(points[name].dropna()) for name in ("low_years", "high_years")]
        x, y = list(points["size_bytes"]), list(points["mttdl_years"])
        curves.append(Curve(f"{code}, {by}", x, y, LOOKS[str(by)], *bounds))
    curves += [Curve(f"{code}, published", [TIB], [y], Look.PUBLISHED) for code, y in PUBLISHED_YEARS.items()]
    panel = Panel("MTTF 10 y, repair 1 d, BER 1e-6", "data size", "MTTDL, years", curves)
    simulated = f"{data[data['by'] == SIMULATED]['size_bytes'].nunique()} sizes simulated, bars: 95 % confidence"
    setup = f"RAID 5 of 5 devices, RAID 1 of 2; {simulated}"
    return Result(data, facts, [panel], setup)


VIRTUAL = "virtual arrays with section 7.4's MTTF, repair and bit errors (computed and simulated)"
ARTEFACTS = [Artefact("iosig-fig12", "MTTDL over data size", WHERE, (Source.VIRTUAL,), run, VIRTUAL)]
