"""How the data of an output or input are moved, and why.

All ranks take part in each transfer (collective I/O), so that the MPI library can exchange data between them and access
the file in large pieces. With PnetCDF the variables are joined in one transfer. Hints are those of the template.
"""

from __future__ import annotations

from dataclasses import dataclass

from iosig.generate.analysis import Contiguity, contiguity
from iosig.generate.model import File, Site


@dataclass(frozen=True)
class Decision:
    method: str
    contiguity: list[Contiguity]
    reasons: list[str]


def decide(site: Site) -> Decision:
    found = [contiguity(dataset) for dataset in site.file.datasets]
    return Decision("collective", found, [*method_reasons(site.file, found), *hint_reasons(site.file)])


def method_reasons(file: File, found: list[Contiguity]) -> list[str]:
    interleaved = [each.dataset for each in found if each.ranks == "interleaved"]
    reasons = []
    if interleaved:
        told = ", ".join(interleaved)
        reasons.append(
            f"collective: ranks have interleaved pieces of {told}; the library exchanges them, then writes large ones"
        )
    else:
        reasons.append("collective: each rank has one piece of each data set; the library may write it as it is")
    if file.level == "pnetcdf" and len(file.datasets) > 1:
        reasons.append(f"joined: the {len(file.datasets)} variables are posted and moved by one collective call")
    return reasons


def hint_reasons(file: File) -> list[str]:
    return [f"hint {key}={value}: given in line {file.place.line}" for key, value in file.hints.items()]
