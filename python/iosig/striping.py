"""Placement over servers of unlike speed, over NumPy arrays: what `iosig plan` decides, without files.

Twelve servers with disks and four with SSDs, as in the H2DP paper; 32 processes, one on each node:

>>> servers = Servers(
...     [
...         ServerClass("hdd", 12, read=(8e-3, 100e6), write=(8e-3, 100e6)),
...         ServerClass("ssd", 4, read=(0.1e-3, 250e6), write=(0.15e-3, 180e6), capacity_bytes=48 << 20),
...     ],
...     network=(0.1e-3, 117e6),
...     processes=32,
... )

The time of one request, if all processes send one like it, depends on its stripes. On the disks alone it is that of the
slowest disk:

>>> seconds = cost(servers, [64 << 10, 0], offsets=[0], lengths=[768 << 10])
>>> bool(np.isclose(seconds[0], 32 * (8e-3 + 65536 / 100e6) + 32 * 65536 / 117e6 + 32 * 0.1e-3))
True

Which stripes are best for many requests of 512 KB is a search:

>>> found = search(servers, offsets=np.arange(1000) * (512 << 10), lengths=512 << 10)
>>> found.stripe_bytes.shape, found.seconds > 0
((2,), True)

Of sixteen regions, one is used most, first region 3 and then region 11. Each is on the SSDs
while it is used; `moves` has what moves between the windows, if that pays for itself:

>>> n = np.arange(8000)
>>> hot = np.where(n < 4000, 3, 11)
>>> region = np.where(n % 10 < 7, hot, n * 7 % 16)
>>> offsets = region * (64 << 20) + n * (512 << 10) % (64 << 20)
>>> moved = migrate(servers, starts=n * 0.15, offsets=offsets, lengths=512 << 10)
>>> moved.stripe_bytes.shape  # windows, regions, classes
(2, 16, 2)
>>> bool(moved.stripe_bytes[0, 3, 1] > 0), bool(moved.stripe_bytes[1, 11, 1] > 0)
(True, True)
>>> bool((moved.seconds < moved.home_s).all())
True

A simulation sends the requests of the first window over servers, links and disks, by that placement and with stripes of
64 KB over all servers. The prediction is a bound: it does not count how processes wait for each other.

>>> first = n < 4000
>>> planned = simulate(servers, moved.stripe_bytes[0], offsets[first], 512 << 10)
>>> usual = simulate(servers, [64 << 10, 64 << 10], offsets[first], 512 << 10)
>>> bool(moved.seconds[0] < planned.seconds < 0.5 * usual.seconds)
True

`iosig plan` also tries such placements, and others, in a simulation, and takes the best
(docs/cli/plan.md#layouts-are-tried). `select` and `migrate` do not: their cost model knows where requests begin, but
not which are there at the same time. A simulation of what they answer tells how much that matters.

All functions are pure. Bad arguments raise ValueError, those of another type TypeError. Sizes are bytes, times seconds,
bandwidths bytes per second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from iosig import _core

__all__ = [
    "Found",
    "Placement",
    "ServerClass",
    "Servers",
    "Simulated",
    "cost",
    "migrate",
    "search",
    "select",
    "simulate",
]

Algorithm = Literal["ours", "paper"]
Contention = Literal["spread", "together"]

MOST_REGIONS = 1 << 24  # of one file, as in the core


@dataclass(frozen=True)
class ServerClass:
    """Equal servers. `read` and `write`: start-up in seconds, and bytes per second."""

    name: str
    count: int
    read: tuple[float, float]
    write: tuple[float, float]
    capacity_bytes: int | None = None
    """Of each server; None: room for all."""


class Servers:
    """Classes of servers, the network (start-up, bytes per second of each link) and the clients."""

    def __init__(
        self,
        classes: Sequence[ServerClass],
        network: tuple[float, float] = (0.1e-3, 117e6),
        processes: int = 1,
        processes_per_node: int = 1,
    ) -> None:
        self.classes = tuple(classes)
        self.processes = processes
        for each in self.classes:
            _at_least(0, f"class {each.name!r}: count", each.count)
            _at_least(0, f"class {each.name!r}: capacity_bytes", each.capacity_bytes or 0)
        _at_least(1, "processes", processes)
        _at_least(1, "processes_per_node", processes_per_node)
        rows = [(c.name, c.count, _times(c.read), _times(c.write), c.capacity_bytes) for c in self.classes]
        self._core = _core.StripeServers(rows, _times(network), processes, processes_per_node)


class Found(NamedTuple):
    """Stripes of one region. `seconds`: predicted; by "paper" the sum of Table 2, by "ours" of the busiest server."""

    stripe_bytes: npt.NDArray[np.uint64]
    seconds: float


class Placement(NamedTuple):
    """Where regions lie. The first index of two or more is the window, the next one the region, the last the class.

    `saved_s` is what each region's own requests gain over the home class, `home_s` the time of a window if all regions
    lay there. `moves`: rows of window and region, in order; those of a window come before it.
    """

    offset_bytes: npt.NDArray[np.uint64]
    length_bytes: npt.NDArray[np.uint64]
    stripe_bytes: npt.NDArray[np.uint64]
    requests: npt.NDArray[np.uint64]
    saved_s: npt.NDArray[np.float64]
    seconds: npt.NDArray[np.float64]
    home_s: npt.NDArray[np.float64]
    move_s: npt.NDArray[np.float64]
    moves: npt.NDArray[np.uint64]


class Simulated(NamedTuple):
    """A simulation of requests. `latency_s`: the mean of a request. `disk_s`, `link_s`: busy times of each server."""

    seconds: float
    bytes_per_s: float
    latency_s: float
    disk_s: npt.NDArray[np.float64]
    link_s: npt.NDArray[np.float64]


def _at_least(least: int, name: str, value: int) -> None:
    if value < least:
        raise ValueError(f"{name}: expected at least {least}, got {value}")


def _times(pair: tuple[float, float]) -> tuple[float, float]:
    """Start-up and bandwidth as start-up and time per byte."""
    startup_s, bytes_per_s = pair
    if not bytes_per_s > 0:
        raise ValueError(f"bandwidth: expected more than 0 bytes per second, got {bytes_per_s}")
    return float(startup_s), 1 / float(bytes_per_s)


def _sizes(name: str, values: npt.ArrayLike, count: int | None = None) -> npt.NDArray[np.uint64]:
    array = np.asarray(values)
    if array.size == 0:
        array = array.astype(np.uint64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name}: expected an array of whole numbers, got {array.dtype}")
    if array.size and int(array.min()) < 0:
        raise ValueError(f"{name}: expected 0 or more, got {array.min()}")
    if count is not None and array.ndim == 0:
        array = np.broadcast_to(array, (count,))
    return np.ascontiguousarray(array, dtype=np.uint64)


def _requests(
    offsets: npt.ArrayLike, lengths: npt.ArrayLike, writes: npt.ArrayLike
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    where = _sizes("offsets", offsets)
    if where.ndim != 1:
        raise ValueError(f"offsets: expected one dimension, got {where.ndim}")
    kinds = np.asarray(writes)
    if kinds.size and kinds.dtype.kind not in "biu":
        raise TypeError(f"writes: expected an array of bool, got {kinds.dtype}")
    kinds = kinds.astype(np.bool_)
    if kinds.ndim == 0:
        kinds = np.broadcast_to(kinds, where.shape)
    return where, _sizes("lengths", lengths, len(where)), np.ascontiguousarray(kinds)


def cost(
    servers: Servers,
    stripe_bytes: npt.ArrayLike,
    offsets: npt.ArrayLike,
    lengths: npt.ArrayLike,
    writes: npt.ArrayLike = False,
) -> npt.NDArray[np.float64]:
    """Seconds of each request by the general form of H2DP's Tables 2 and 3.

    stripe_bytes: one for each class. offsets: from the region's start. lengths, writes: one for all, or one for each.
    """
    stripes = _sizes("stripe_bytes", stripe_bytes)
    if stripes.ndim != 1:
        raise ValueError(f"stripe_bytes: expected one dimension, got {stripes.ndim}")
    return _core.request_costs(servers._core, stripes.tolist(), *_requests(offsets, lengths, writes))


def search(
    servers: Servers,
    offsets: npt.ArrayLike,
    lengths: npt.ArrayLike,
    writes: npt.ArrayLike = False,
    algorithm: Algorithm = "ours",
) -> Found:
    """The best stripes for the requests of one region; "paper": Algorithm 1."""
    return Found(*_core.search_stripes(servers._core, *_requests(offsets, lengths, writes), algorithm))


def migrate(
    servers: Servers,
    starts: npt.ArrayLike,
    offsets: npt.ArrayLike,
    lengths: npt.ArrayLike,
    writes: npt.ArrayLike = False,
    window_s: float = 600,
    region_bytes: int = 64 << 20,
    algorithm: Algorithm = "ours",
    contention: Contention = "spread",
) -> Placement:
    """The placement of a file's regions in each window, and what moves between; "paper": Algorithm 2.

    starts: seconds, in any order. Windows count from the first one.
    """
    if contention not in ("spread", "together"):
        raise ValueError(f"contention: expected spread or together, got {contention!r}")
    _at_least(1, "region_bytes", region_bytes)
    times = np.ascontiguousarray(starts, dtype=np.float64)
    if not np.isfinite(times).all():
        raise ValueError(f"starts: expected finite numbers, got {times[~np.isfinite(times)].flat[0]}")
    parts = _requests(offsets, lengths, writes)
    together = contention == "together"
    return Placement(**_core.plan_regions(servers._core, times, *parts, window_s, region_bytes, algorithm, together))


def select(
    servers: Servers,
    offsets: npt.ArrayLike,
    lengths: npt.ArrayLike,
    writes: npt.ArrayLike = False,
    region_bytes: int = 64 << 20,
    algorithm: Algorithm = "ours",
    contention: Contention = "spread",
) -> Placement:
    """The placement of a file's regions for all requests at once: which regions get the scarce servers."""
    starts = np.zeros(np.size(offsets))
    return migrate(servers, starts, offsets, lengths, writes, 1, region_bytes, algorithm, contention)


def simulate(
    servers: Servers,
    stripe_bytes: npt.ArrayLike,
    offsets: npt.ArrayLike,
    lengths: npt.ArrayLike,
    writes: npt.ArrayLike = False,
    processes: npt.ArrayLike | None = None,
    region_bytes: int = 64 << 20,
) -> Simulated:
    """Discrete events of the requests on disks and links; each process sends its requests one after the other.

    stripe_bytes: one for each class, for all regions; or rows of these, one for each region of the file.
    processes: of each request, from 0 on; None: the processes of `servers` in turn.
    """
    where, sizes, kinds = _requests(offsets, lengths, writes)
    _at_least(1, "region_bytes", region_bytes)
    stripes = _sizes("stripe_bytes", stripe_bytes)
    if stripes.ndim == 1:
        end = int((where + sizes).max()) if len(where) else 0
        regions = max(1, -(-end // region_bytes))
        if regions > MOST_REGIONS:
            raise ValueError(f"region_bytes: expected at most {MOST_REGIONS} regions, got {regions}: use larger ones")
        stripes = np.tile(stripes, (regions, 1))
    if stripes.ndim != 2:
        raise ValueError(f"stripe_bytes: expected one or two dimensions, got {stripes.ndim}")
    senders = _sizes("processes", np.arange(len(where)) % servers.processes if processes is None else processes)
    seconds, latency_s, disk_s, link_s = _core.simulate_requests(
        servers._core, stripes, senders, where, sizes, kinds, region_bytes
    )
    moved = float(sizes.sum())
    return Simulated(
        seconds, moved / seconds if seconds > 0 else 0.0, latency_s / max(1, int((sizes > 0).sum())), disk_s, link_s
    )
