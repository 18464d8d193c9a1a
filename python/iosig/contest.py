"""Placements of a file's regions over HDD and SSD servers, run in the simulator: how fast each is, and why.

>>> from iosig import contest
>>> hot = contest.HotRegions(request_bytes=512 * 1024)
>>> contest.run("ours", contest.PHYSICAL, hot).bytes_per_s / contest.run("def", contest.PHYSICAL, hot).bytes_per_s
7.2

The core places (core/iosig/decide/policies.h says how each policy does) and simulates (core/iosig/simulate).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from iosig import _core

KIB, MIB = 1 << 10, 1 << 20
PolicyName = Literal["def", "padp", "psa", "printed", "ours"]
POLICIES: tuple[PolicyName, ...] = ("def", "padp", "psa", "printed", "ours")
SSD_SHARE = 1 / 6  # of the data that the SServers can hold; H2DP, section 5.1
WINDOW_S = 600  # H2DP, section 3.3
MOVERS = 4  # processes that copy data between windows, each on a node of its own


@dataclass(frozen=True)
class Disk:
    """Start-ups are uniform from (1 - spread) to (1 + spread) times the mean; `near_share` of it within a region."""

    read_start_s: float
    read_bytes_per_s: float
    write_start_s: float
    write_bytes_per_s: float
    spread: float = 0
    near_share: float = 1


@dataclass(frozen=True)
class World:
    """`is_colliding`: processes go in rounds, and those of a round all want one block of one region."""

    hdd: Disk
    ssd: Disk
    hdds: int = 12
    ssds: int = 4
    connect_s: float = 1e-4
    link_bytes_per_s: float = 117e6
    processes: int = 32
    nodes: int = 32
    is_colliding: bool = False

    def described(self, ssd_bytes: float | None) -> dict[str, Any]:
        """As the core takes it. `ssd_bytes`: the room of all SServers together; None: enough."""
        if self.nodes < 1:
            raise ValueError(f"nodes: expected at least 1, got {self.nodes}")
        room = None if ssd_bytes is None else int(ssd_bytes / max(1, self.ssds))
        classes = [
            {"name": "hdd", "count": self.hdds, "capacity_bytes": None, **asdict(self.hdd)},
            {"name": "ssd", "count": self.ssds, "capacity_bytes": room, **asdict(self.ssd)},
        ]
        return {
            "classes": classes,
            "connect_s": self.connect_s,
            "link_bytes_per_s": self.link_bytes_per_s,
            "processes": self.processes,
            "processes_per_node": max(1, -(-self.processes // self.nodes)),
        }


PHYSICAL = World(
    Disk(8e-3, 100e6, 8e-3, 100e6, spread=0.5, near_share=5 / 8),
    Disk(0.1e-3, 250e6, 0.15e-3, 180e6),
)
COLLIDING = World(
    Disk(4e-3, 50e6, 4e-3, 50e6, spread=0.5),
    Disk(0.1e-3, 500e6, 0.15e-3, 500e6),
    is_colliding=True,
)


@dataclass(frozen=True)
class HotRegions:
    """A file of equal regions whose popularity follows Zipf's law; after each window the share `drift` of them change
    places. A window is simulated for `window_s` in place of WINDOW_S, and moves of data are cut down alike."""

    request_bytes: int
    is_write: bool = False
    regions: int = 512
    region_bytes: int = 64 * MIB
    skew: float = 0.8
    drift: float = 0
    windows: int = 4
    window_s: float = 20
    seed: int = 1


@dataclass(frozen=True)
class Placed:
    """stripes: bytes by window, region and class (HDD, SSD). order: by window, the regions that move."""

    stripes: npt.NDArray[np.uint64]
    order: list[list[int]] = field(default_factory=list)


@dataclass(frozen=True)
class Outcome:
    """servers: a row each with parts, bytes, disk_s, link_s. fast_share: of the bytes, what the SSD servers served."""

    bytes_per_s: float
    end_s: float
    requests: int
    latency_s: float
    moved_regions: int
    servers: list[dict[str, float]]
    hdds: int

    @property
    def fast_share(self) -> float:
        served = [server["bytes"] for server in self.servers]
        return sum(served[self.hdds :]) / sum(served)


def _workload(world: World, hot: HotRegions) -> dict[str, Any]:
    return {**asdict(hot), "processes": world.processes, "is_colliding": world.is_colliding}


def _options(
    world: World, seed: int, is_migrating: bool, copy_weight: float, is_together: bool = False
) -> dict[str, Any]:
    return {
        "is_together": is_together,
        "seed": seed,
        "is_migrating": is_migrating,
        "is_colliding": world.is_colliding,
        "copy_weight": copy_weight,
    }


def _ssd_bytes(hot: HotRegions) -> float:
    return SSD_SHARE * hot.regions * hot.region_bytes


@lru_cache(maxsize=256)
def traced_requests(world: World, hot: HotRegions) -> int:
    """The requests of a whole window in the first run of the application, which is traced: under DEF."""
    once = replace(hot, windows=1, drift=0)
    outcome = run("def", world, once, requests=0)
    return max(1, round(outcome.requests * WINDOW_S / hot.window_s))


def place(
    policy: PolicyName,
    world: World,
    hot: HotRegions,
    *,
    requests: int,
    is_migrating: bool = True,
    copy_weight: float = 1,
) -> Placed:
    """Places by what is known of `requests` requests in each window."""
    described = world.described(_ssd_bytes(hot))
    options = _options(world, hot.seed, is_migrating, copy_weight)
    return Placed(*_core.place_regions(policy, described, _workload(world, hot), requests, options))


def run(
    policy: PolicyName,
    world: World,
    hot: HotRegions,
    *,
    requests: int | None = None,
    is_migrating: bool = True,
    movers: int = MOVERS,
    copy_weight: float = 1,
) -> Outcome:
    """Places, and runs the workload. `requests`: of a traced window, as `traced_requests` unless given. `movers` 0:
    data move in no time."""
    known = traced_requests(world, hot) if requests is None else requests
    placed = place(policy, world, hot, requests=known, is_migrating=is_migrating, copy_weight=copy_weight)
    return simulate(world, hot, placed, movers=movers)


def simulate(world: World, hot: HotRegions, placed: Placed, *, movers: int = MOVERS) -> Outcome:
    described = world.described(_ssd_bytes(hot))
    share = min(1.0, hot.window_s / WINDOW_S)
    workload = _workload(world, hot)
    told = _core.simulate_regions(described, workload, placed.stripes, placed.order, movers, share, hot.seed)
    return _outcome(world, told)


def _outcome(world: World, told: dict[str, Any]) -> Outcome:
    return Outcome(
        bytes_per_s=told["bytes_per_s"],
        end_s=told["end_s"],
        requests=told["requests"],
        latency_s=told["latency_s"],
        moved_regions=told.get("moved_regions", 0),
        servers=told["servers"],
        hdds=world.hdds,
    )


@dataclass(frozen=True)
class Accesses:
    """Given accesses to a file: of which process, at which offset, how long; a process does its own in their order."""

    processes: npt.NDArray[np.uint64]
    offsets: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.uint64]
    is_write: bool = False
    region_bytes: int = 64 * MIB

    @property
    def file_bytes(self) -> int:
        return int((self.offsets + self.lengths).max())

    def is_together(self) -> bool:
        """Whether the processes sweep over the file together: their k-th accesses are in less than half as many regions
        as processes, on average."""
        order = np.argsort(self.processes, kind="stable")
        counts = np.bincount(self.processes.astype(np.int64))
        turn = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        regions = (self.offsets[order] // np.uint64(self.region_bytes)).astype(np.int64)
        used = len(np.unique(np.stack([turn, regions]), axis=1).T)
        return bool(used < len(order) / 2)


def run_accesses(
    policy: PolicyName, world: World, accesses: Accesses, *, seed: int = 1, ssd_share: float | None = SSD_SHARE
) -> Outcome:
    """Places and runs given accesses. `ssd_share`: of the file, what the SServers can hold; None: all of it."""
    described = world.described(None if ssd_share is None else ssd_share * accesses.file_bytes)
    numbers = (accesses.offsets, accesses.lengths, accesses.is_write)
    options = _options(world, seed, False, 1, accesses.is_together())
    stripes, _ = _core.place_accesses(policy, described, accesses.processes, *numbers, accesses.region_bytes, options)
    told = _core.simulate_accesses(described, accesses.processes, *numbers, stripes, accesses.region_bytes, seed)
    return _outcome(world, told)
