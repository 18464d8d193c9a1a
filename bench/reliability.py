"""Reliability by closed form, chain and simulation, and the time of each (`make bench`, its last tables).

Eq. 1 against 60-digit arithmetic; then for the sizes of the IOSIG paper's Fig. 12 and some structures beyond Eq. 2 the
MTTDL by Eq. 2, by the Markov chain and by simulation. Times are those of whole commands, an empty one taking 5 ms.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

IOSIG = Path(__file__).resolve().parent.parent / "build" / "bin" / "iosig"
YEAR_S = 365 * 86400
STRUCTURES = {  # name: redundancy, sizes
    "RAID 1": ('scheme = "mds"\ndata = 1\nparity = 1', ["1GB", "1TB"]),
    "RAID 5, 4 + 1": ('scheme = "mds"\ndata = 4\nparity = 1', ["1GB", "1TB"]),
    "RAID 6, 4 + 2": ('scheme = "mds"\ndata = 4\nparity = 2', ["1GB", "1TB"]),
    "4 + 3": ('scheme = "mds"\ndata = 4\nparity = 3', ["1GB"]),
    "RAID 10, 10 pairs": ('scheme = "raid10"\ndata = 10\nparity = 10', ["1TB"]),
    "LRC 12, 2, 2": ('scheme = "lrc"\ndata = 12\nlocal_groups = 2\nparity = 2', ["1GB"]),
}


def description(directory: Path, redundancy: str, ber: float = 1e-6, sector_bits: int = 512, ecc_bits: int = 2) -> Path:
    """One mount point on a composite of the paper's devices: MTTF 10 years, MTTR 1 day."""
    file = directory / "storage.toml"
    file.write_text(
        'schema = "iosig.storage/1"\n[[mount_point]]\npath = "/data"\ndevice = "array"\n'
        '[[device]]\nname = "array"\nkind = "composite"\nmttf = "10y"\nmttr = "1d"\n'
        f"ber = {ber}\nsector_bits = {sector_bits}\necc_bits = {ecc_bits}\n[device.redundancy]\n{redundancy}\n"
    )
    return file


def ask(verb: str, file: Path, size: str) -> tuple[dict[str, Any], float]:
    """The command's answer and its seconds."""
    start = time.perf_counter()
    command = [str(IOSIG), "reliability", verb, "--storage", str(file), "--mount-point", "/data", "--size", size]
    printed = subprocess.run([*command, "--json"], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return json.loads(printed), time.perf_counter() - start


def exact_uber(ber: float, sector_bits: int, ecc_bits: int) -> Decimal:
    """Eq. 1 with 60 digits."""
    with localcontext() as context:
        context.prec = 60
        p, total = Decimal(ber), Decimal(0)
        k = ecc_bits + 1
        term = math.comb(sector_bits, k) * p**k * (1 - p) ** (sector_bits - k)
        while k <= sector_bits and (k <= sector_bits * p or term > total * Decimal("1e-30")):
            total += term
            term *= Decimal(sector_bits - k) / (k + 1) * p / (1 - p)
            k += 1
        return total / (sector_bits - ecc_bits)


def worst_uber_error(directory: Path) -> float:
    """Over BER 1e-20 .. 1e-2, sectors of 512 bit .. 1 Mbit, 0 .. 40 bits corrected."""
    worst = 0.0
    for sector_bits in (512, 4096, 32768, 2**20):
        for ecc_bits in (0, 2, 8, 40):
            for exponent in range(-20, -1, 2):
                exact = exact_uber(10.0**exponent, sector_bits, ecc_bits)
                if exact > Decimal("1e-300"):
                    file = description(directory, STRUCTURES["RAID 1"][0], 10.0**exponent, sector_bits, ecc_bits)
                    uber = Decimal(ask("mttdl", file, "1GB")[0]["uber"])
                    worst = max(worst, float(abs(uber / exact - 1)))
    return worst


def years(seconds: float) -> str:
    return f"{seconds / YEAR_S:,.4g} y"


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        print(f"\nEq. 1: off by at most {worst_uber_error(directory):.1g}\n")
        print(
            f"{'structure':20}{'size':>6}{'Eq. 2':>14}{'chain':>14}{'simulated':>14}{'95 %':>8}{'time':>9}{'time':>11}"
        )
        for structure, (redundancy, sizes) in STRUCTURES.items():
            for size in sizes:
                file = description(directory, redundancy)
                computed, computed_s = ask("mttdl", file, size)
                simulated, simulated_s = ask("simulate", file, size)
                eq2 = "-" if computed["mttdl_eq2_s"] is None else years(computed["mttdl_eq2_s"])
                half = (simulated["ci95_high_s"] - simulated["ci95_low_s"]) / 2 / simulated["mttdl_s"]
                print(
                    f"{structure:20}{size:>6}{eq2:>14}{years(computed['mttdl_s']):>14}{years(simulated['mttdl_s']):>14}"
                    f"{f'+-{100 * half:.1f} %':>8}{1000 * computed_s:>6.0f} ms{simulated_s:>9.2f} s"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
