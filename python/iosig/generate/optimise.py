"""How the data of an output or input are moved, and why.

A method is a way through the I/O library: by all ranks together or each for itself, straight from the array or through
a buffer, data set by data set or all at once. Its hints are those of ROMIO (MPICH and its relatives), which alone gets
them: Open MPI's own MPI-IO, OMPIO, has others, of which `cb_nodes` lets it write wrong bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from iosig._core import transfer_seconds, transfer_work
from iosig.generate.analysis import Contiguity, contiguity
from iosig.generate.costs import Costs
from iosig.generate.model import File, Site
from iosig.generate.sizes import Sizes, transfer_of

if TYPE_CHECKING:
    from iosig._core import SharedTransfer

LIBRARIES = ("ompio", "romio")  # below MPI-IO: Open MPI's own, and that of the others


@dataclass(frozen=True)
class Method:
    name: str
    meaning: str
    is_collective: bool = False
    is_joined: bool = False  # all data sets by one call
    sieves: bool = False  # ROMIO moves ranges of the file with their gaps
    packs: bool = False  # strided memory goes through a buffer
    chunks: bool = False  # a rank's block is a chunk of the file, which has another layout then
    uses_mpi_io: bool = True

    def hints(self, access: str) -> dict[str, str]:
        """Those of ROMIO; `access` is write or read."""
        states = {f"romio_cb_{access}": self.is_collective, f"romio_ds_{access}": self.sieves}
        return {key: "enable" if state else "disable" for key, state in states.items()} if self.uses_mpi_io else {}


METHODS = {
    each.name: each
    for each in (
        Method(
            "two-phase",
            "a collective call for each data set: ranks exchange elements, few access the file in large pieces",
            is_collective=True,
        ),
        Method(
            "nonblocking",
            "data sets are posted, and moved by one collective call",
            is_collective=True,
            is_joined=True,
        ),
        Method(
            "sieving",
            "each rank for itself: the library moves ranges of the file, gaps included, where pieces are small",
            sieves=True,
        ),
        Method(
            "packed",
            "each rank for itself: elements go through a buffer that has them in the order of the file",
            packs=True,
        ),
        Method(
            "chunked",
            "packed, and a block that is several pieces of a data set is one piece of the file, a chunk",
            packs=True,
            chunks=True,
        ),
    )
}
CONTAINER = Method(
    "independent",
    "each rank for itself: it writes its pieces to its own part of the container, without MPI-IO",
    packs=True,
    uses_mpi_io=False,
)
# By level; the first one is taken by policies that have no say. HDF5 1.10 moves one data set in a call.
AVAILABLE = {
    "mpiio": [METHODS["two-phase"], METHODS["sieving"], METHODS["packed"]],
    "pnetcdf": [METHODS["nonblocking"], METHODS["two-phase"], METHODS["sieving"], METHODS["packed"]],
    "hdf5": [METHODS["two-phase"], METHODS["sieving"], METHODS["packed"], METHODS["chunked"]],
    "netcdf4": [METHODS["two-phase"]],
    "posix": [CONTAINER],
}
POLICIES = ("model", "doe2014", *METHODS)


@dataclass(frozen=True)
class Decision:
    """`methods`: by library. `predicted_s`: by library and method, the least time first. `reasons`: why these."""

    methods: dict[str, Method]
    predicted_s: dict[str, dict[str, float]]
    contiguity: list[Contiguity]
    reasons: list[str]

    def document(self) -> dict[str, Any]:
        """For --json."""
        names = {library: method.name for library, method in self.methods.items()}
        found = [asdict(each) for each in self.contiguity]
        return {"methods": names, "predicted_s": self.predicted_s, "contiguity": found, "reasons": self.reasons}

    def libraries(self, holds: Callable[[Method], bool]) -> set[str]:
        """Those whose method is such."""
        return {library for library, method in self.methods.items() if holds(method)}

    @property
    def depends_on_library(self) -> bool:
        return self.methods["ompio"] != self.methods["romio"]

    @property
    def method(self) -> str:
        """Its name, or one for each library."""
        names = {library: method.name for library, method in self.methods.items()}
        if not self.depends_on_library:
            return names["romio"]
        return ", ".join(f"{name} with {library.upper()}" for library, name in names.items())


def core_method(method: Method, library: str, level: str) -> str:
    """As the cost model names what the method does. Only ROMIO sieves, and HDF5 hands it single pieces."""
    if method.name in ("two-phase", "nonblocking"):
        return method.name
    return "sieving" if method.name == "sieving" and library == "romio" and level != "hdf5" else "requests"


def as_moved(method: Method, transfers: list[SharedTransfer]) -> list[SharedTransfer]:
    """Chunks make the elements of a rank one piece of the file."""
    if not method.chunks:
        return transfers
    return [(ranks, memory, min(file, ranks), size, size) for ranks, memory, file, size, _ in transfers]


def predicted(site: Site, sizes: Sizes, costs: Costs) -> dict[str, dict[str, float]]:
    """The seconds of each method by library, the least first; of a level with one method, nothing."""
    level, access = site.file.level, "write" if site.kind == "output" else "read"
    if len(AVAILABLE[level]) == 1:
        return {}
    transfers = [transfer_of(dataset, sizes, access == "write") for dataset in site.file.datasets]
    seconds = {}
    for library in LIBRARIES:
        times = {}
        for method in AVAILABLE[level]:
            work = transfer_work(core_method(method, library, level), as_moved(method, transfers))
            times[method.name] = transfer_seconds(work, costs.of(level, library, access, method.name))
        seconds[library] = dict(sorted(times.items(), key=lambda each: each[1]))
    return seconds


def decide(site: Site, policy: str, sizes: Sizes, costs: Costs) -> Decision:
    """Fails with ValueError if the policy is a method that the level of the file lacks."""
    found = [contiguity(dataset) for dataset in site.file.datasets]
    seconds = predicted(site, sizes, costs)
    methods, reasons = chosen(site.file, found, policy, seconds)
    reasons += [f"{method.name}: {method.meaning}" for method in METHODS.values() if method in methods.values()]
    for library, times in seconds.items():
        told = ", ".join(f"{name} {1000 * each:.3g} ms" for name, each in times.items())
        reasons.append(f"predicted with {library.upper()}, {sizes.ranks} ranks: {told}")
    if seconds:
        reasons.append(f"costs are {costs.origin}")
    if seconds and sizes.assumed:
        told = ", ".join(f"{expression} = {value}" for expression, value in sizes.assumed.items())
        reasons.append(f"assumed: {told}; --assume NAME=VALUE says what is true")
    return Decision(methods, seconds, found, [*reasons, *hint_reasons(site.file)])


def forced(site: Site, method: Method) -> Decision:
    """That method, whatever it costs."""
    return Decision(on_all(method), {}, [contiguity(dataset) for dataset in site.file.datasets], [])


def chosen(
    file: File, found: list[Contiguity], policy: str, seconds: dict[str, dict[str, float]]
) -> tuple[dict[str, Method], list[str]]:
    available = AVAILABLE[file.level]
    if len(available) == 1 and policy not in METHODS:
        return on_all(available[0]), [f"level {file.level} has one method, {available[0].name}: {available[0].meaning}"]
    if policy == "model":
        keeping = {library: [each for each in times if not METHODS[each].chunks] for library, times in seconds.items()}
        passed_over = any(next(iter(times)) == "chunked" for times in seconds.values())
        why = ["chunked is only taken on request: it changes the layout of the file"] if passed_over else []
        return {library: METHODS[names[0]] for library, names in keeping.items()}, why
    if policy == "doe2014":
        return by_report(found)
    if METHODS[policy] not in available:
        names = ", ".join(each.name for each in available if each.name in METHODS) or "'model'"
        raise ValueError(f"level '{file.level}' has no method '{policy}'; expected {names}")
    return on_all(METHODS[policy]), [f"policy {policy}"]


def on_all(method: Method) -> dict[str, Method]:
    return dict.fromkeys(LIBRARIES, method)


def by_report(found: list[Contiguity]) -> tuple[dict[str, Method], list[str]]:
    """As IOGenie (DOE report, section 3): sieving for FLASH I/O (not contiguous), two-phase for S3D I/O (contiguous).

    Both share axes by blocks, and S3D's are pieces of the file: it is in memory that they differ.
    """
    strided = [each.dataset for each in found if each.memory == "strided"]
    if strided:
        return on_all(METHODS["sieving"]), [f"policy doe2014: memory of {', '.join(strided)} is not contiguous"]
    return on_all(METHODS["two-phase"]), ["policy doe2014: memory is contiguous"]


def hint_reasons(file: File) -> list[str]:
    return [f"hint {key}={value}: given in line {file.place.line}" for key, value in file.hints.items()]
