"""iosig.striping: the core's decisions over arrays."""

from __future__ import annotations

import doctest

import numpy as np
import numpy.typing as npt
import pytest

from iosig import striping
from iosig.striping import ServerClass, Servers

KB, MB = 1 << 10, 1 << 20
Ints = npt.NDArray[np.int64]


def servers(capacity: int | None = None, processes: int = 32) -> Servers:
    disks = ServerClass("hdd", 12, read=(8e-3, 100e6), write=(9e-3, 90e6))
    flash = ServerClass("ssd", 4, read=(1e-4, 250e6), write=(1.5e-4, 180e6), capacity_bytes=capacity)
    return Servers([disks, flash], network=(1e-4, 117e6), processes=processes)


def test_the_worked_example_is_what_comes_out() -> None:
    names = {name: getattr(striping, name) for name in striping.__all__} | {"np": np}
    example = doctest.DocTestParser().get_doctest(striping.__doc__ or "", names, "iosig.striping", None, 0)
    assert len(example.examples) > 8
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.parametrize("write", [False, True])
def test_the_cost_of_an_aligned_request_is_table_2(write: bool) -> None:
    p, m, n, h, s = 32, 12, 4, 16 * KB, 80 * KB
    r = m * h + n * s
    disk, flash = ((9e-3, 90e6), (1.5e-4, 180e6)) if write else ((8e-3, 100e6), (1e-4, 250e6))
    storage = max(disk[0] + h / disk[1], flash[0] + s / flash[1])
    wanted = p * 1e-4 + max(r, p * s) / 117e6 + p * storage  # p > c (m + n), c = 1
    assert striping.cost(servers(), [h, s], [0, r], r, write) == pytest.approx([wanted, wanted], rel=1e-9)


def test_both_searches_answer_with_stripes_that_hold_the_request() -> None:
    offsets, length = np.arange(256) * 64 * KB, 64 * KB
    found = striping.search(servers(), offsets, length)
    assert found.stripe_bytes.tolist() != [0, 0]
    paper = striping.search(servers(), offsets, length, algorithm="paper")
    h, s = (int(size) for size in paper.stripe_bytes)
    assert h < s and 12 * h + 4 * s >= length
    assert paper.seconds == pytest.approx(striping.cost(servers(), [h, s], offsets, length).sum())


def busy_times(offsets: Ints, lengths: Ints, region: Ints, stripes: dict[int, tuple[int, int]]) -> tuple[float, float]:
    """The longest busy time of a disk or a link, and the sum of latencies; counted in blocks of 4 KB."""
    request = np.repeat(np.arange(len(offsets)), lengths // (4 * KB))
    first = np.cumsum(lengths) - lengths
    at = offsets[request] + np.arange(len(request)) * 4 * KB - first[request]
    h, s = (np.array([stripes[r][k] for r in region.tolist()])[request] for k in (0, 1))
    within = at % (64 * MB) % (12 * h + 4 * s)
    is_disk = within < 12 * h
    disk = (within // np.maximum(h, 1) + region[request]) % 12
    flash = 12 + ((within - 12 * h) // np.maximum(s, 1) + region[request]) % 4
    server = np.where(is_disk, disk, flash)
    parts = np.bincount(request * 16 + server, minlength=16 * len(offsets)).reshape(-1, 16) * 4.0 * KB
    storage = np.where(parts > 0, np.where(np.arange(16) < 12, 8e-3 + parts / 100e6, 1e-4 + parts / 250e6), 0)
    latency = (parts > 0).sum(axis=1) * 1e-4 + lengths / 117e6 + storage.max(axis=1)
    return float(max(storage.sum(axis=0).max(), parts.sum(axis=0).max() / 117e6)), float(latency.sum())


def seconds_of(offsets: Ints, lengths: Ints, stripes: dict[int, tuple[int, int]]) -> float:
    """The time of 32 processes in a closed loop, for requests of all regions at once."""
    busy, latency = busy_times(offsets, lengths, offsets // (64 * MB), stripes)
    count = len(offsets)
    active = min(32, count)
    busy = max(busy, float(lengths.sum()) / 117e6 / active)
    return max(busy, (1 - 1 / active) * busy + latency / count, latency / active)


@pytest.mark.parametrize("count", [20, 4000])
def test_a_search_counts_requests_at_their_places(count: int) -> None:
    # All requests are for two blocks: whole ones on single disks would leave all other servers idle.
    offsets, lengths = np.arange(count) * 7919 % 13 % 2 * 512 * KB, np.full(count, 512 * KB)
    found = striping.search(servers(), offsets, lengths)
    h, s = (int(size) for size in found.stripe_bytes)
    busy, _ = busy_times(offsets, lengths, offsets // (64 * MB), {0: (h, s)})
    # Quarters of each on the four SSDs, whose links are then busy: the least of all.
    assert busy <= 1.01 * count * 512 * KB / 4 / 117e6
    assert found.seconds == pytest.approx(seconds_of(offsets, lengths, {0: (h, s)}))


def spots(spot: int, length: int, share: float, regions: int, count: int = 600) -> tuple[Ints, Ints]:
    """Requests for a part of region 1, or of each region; the others are anywhere."""
    random = np.random.default_rng(spot + length + regions)
    region = 1 if share < 1 else random.integers(0, regions, count)
    hot = region * 64 * MB + 7 * MB + random.integers(0, spot // length, count) * length
    cold = random.integers(0, regions * 64 * MB // length, count) * length
    return np.where(random.random(count) < share, hot, cold), np.full(count, length)


def few(each: int, length: int, regions: int) -> tuple[Ints, Ints]:
    """So many requests anywhere in each region."""
    random = np.random.default_rng(each + length + regions)
    region = np.repeat(np.arange(regions), each)
    return region * 64 * MB + random.integers(0, 64 * MB // length, len(region)) * length, np.full(len(region), length)


def mixed(spot: int) -> tuple[Ints, Ints]:
    random = np.random.default_rng(spot)
    lengths = random.choice([16 * KB, 64 * KB, 512 * KB, MB], 600)
    return 64 * MB + random.integers(0, spot // MB, 600) * MB, lengths


GRID = [0, *(unit << n for n in range(0, 11, 2) for unit in (4 * KB, 8 * KB, 12 * KB) if unit << n <= 4 * MB)]


@pytest.mark.parametrize(
    ("requests", "simulated"),
    [
        (spots(64 * KB, 64 * KB, 1, 1), 1.1),
        (spots(256 * KB, 64 * KB, 1, 1), 1.1),
        (spots(MB, 64 * KB, 1, 1), 1.1),
        (spots(512 * KB, 512 * KB, 0.9, 16), 1.1),
        (spots(MB, 512 * KB, 0.9, 16), 1.1),
        (spots(4 * MB, 512 * KB, 0.9, 16), 1.1),
        (spots(MB, 512 * KB, 1, 16), 1.1),
        (few(1, 64 * KB, 16), 1.3),
        (few(1, 512 * KB, 16), 1.3),
        (few(2, 512 * KB, 16), 1.3),
        (few(2, 4 * MB, 16), 1.3),
        (few(1, 4 * MB, 64), 1.3),
        (mixed(4 * MB), 1.1),
        (mixed(64 * MB), 1.1),
    ],
)
def test_a_selection_is_as_good_as_the_best_stripes_of_all(requests: tuple[Ints, Ints], simulated: float) -> None:
    # Hot spots, few requests, mixed lengths: by the bytes that each server really gets, within 1 % of the best stripes
    # for all regions, and near the best in a simulation, which knows in which order the requests come.
    offsets, lengths = requests
    chosen = striping.select(servers(), offsets, lengths)
    regions = np.unique(offsets // (64 * MB)).tolist()
    pairs = [(h, s) for h in GRID for s in GRID if h + s > 0]
    best = min(seconds_of(offsets, lengths, dict.fromkeys(regions, pair)) for pair in pairs)
    ours = seconds_of(offsets, lengths, {r: tuple(map(int, chosen.stripe_bytes[0, r])) for r in regions})
    assert ours <= 1.01 * best
    assert chosen.seconds[0] == pytest.approx(ours, rel=0.05)
    fastest = min(striping.simulate(servers(), pair, offsets, lengths).seconds for pair in pairs)
    assert striping.simulate(servers(), chosen.stripe_bytes[0], offsets, lengths).seconds <= simulated * fastest


def test_the_selection_keeps_the_capacity_and_takes_what_is_used_most() -> None:
    n = np.arange(2000)
    offsets = np.where(n % 2 == 0, 5, n % 16) * (64 * MB) + n * 64 * KB % (64 * MB)
    for algorithm in ("ours", "paper"):
        chosen = striping.select(servers(17 * MB), offsets, 64 * KB, algorithm=algorithm)  # type: ignore[arg-type]
        assert chosen.stripe_bytes.shape == (1, 16, 2)
        assert int(chosen.requests.sum()) == 2000
        flash = chosen.stripe_bytes[0, :, 1]
        assert flash[5] == flash.max()
        assert chosen.seconds[0] <= chosen.home_s[0]
        assert len(chosen.moves) == 0


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="bandwidth: expected more than 0"):
        Servers([ServerClass("x", 1, (0, 0), (0, 1))])
    with pytest.raises(ValueError):
        Servers([])
    with pytest.raises(ValueError, match="class 'x': count: expected at least 0, got -1"):
        Servers([ServerClass("x", -1, (0, 1), (0, 1))])
    with pytest.raises(ValueError, match="class 'ssd': capacity_bytes: expected at least 0, got -1"):
        servers(capacity=-1)
    with pytest.raises(ValueError, match="processes: expected at least 1, got -1"):
        servers(processes=-1)
    with pytest.raises(ValueError, match="region_bytes: expected at least 1, got -1"):
        striping.migrate(servers(), [0], [0], 1, region_bytes=-1)
    with pytest.raises(ValueError, match="stripe_bytes: expected one dimension, got 2"):
        striping.cost(servers(), [[0, KB]], [0], 1)
    with pytest.raises(ValueError, match="offsets: expected 0 or more, got -1"):
        striping.cost(servers(), [0, KB], [-1], 1)
    with pytest.raises(ValueError, match="equal length"):
        striping.cost(servers(), [0, KB], [0, 1], [1])
    with pytest.raises(TypeError, match="lengths: expected an array of whole numbers, got float64"):
        striping.cost(servers(), [0, KB], [0], [1.5])
    with pytest.raises(TypeError, match="writes: expected an array of bool, got <U4"):
        striping.cost(servers(), [0, KB], [0], 1, ["read"])
    with pytest.raises(ValueError, match="request 0: ends beyond"):
        striping.search(servers(), [(1 << 63) - 1], 1)
    with pytest.raises(ValueError):
        striping.cost(servers(), [0, 0], [0], 1)
    with pytest.raises(ValueError, match="best"):
        striping.search(servers(), [0], 1, algorithm="best")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="starts: expected finite numbers, got nan"):
        striping.migrate(servers(), [0, np.nan], [0, 0], 1)
    with pytest.raises(ValueError, match="window_s"):
        striping.migrate(servers(), [0], [0], 1, window_s=0)
    with pytest.raises(ValueError, match="offsets: expected one dimension, got 2"):
        striping.select(servers(), [[0]], 1)
    with pytest.raises(ValueError, match="use larger ones"):
        striping.simulate(servers(), [0, KB], [1 << 62], 1)
    with pytest.raises(ValueError, match="no request"):
        striping.select(servers(), [], 1)


def test_a_simulation_is_the_closed_form_of_one_request_and_refuses_what_does_not_fit() -> None:
    one = striping.simulate(servers(), [64 * KB, 0], [0], 64 * KB)
    assert np.isclose(one.seconds, 1e-4 + 8e-3 + 64 * KB / 100e6 + 64 * KB / 117e6)
    assert (
        one.latency_s == one.seconds and np.isclose(one.disk_s[0], 8e-3 + 64 * KB / 100e6) and one.disk_s.shape == (16,)
    )
    rows = [[64 * KB, 0], [0, 64 * KB]]  # the second region is on the SSDs
    two = striping.simulate(servers(), rows, [64 * MB], 64 * KB, writes=True)
    assert np.isclose(two.seconds, 1e-4 + 1.5e-4 + 64 * KB / 180e6 + 64 * KB / 117e6)
    with pytest.raises(ValueError, match="in the 2 regions"):
        striping.simulate(servers(), rows, [128 * MB], 1)
    with pytest.raises(ValueError, match="expected 2 and 1"):
        striping.simulate(servers(), [64 * KB], [0], 1)
