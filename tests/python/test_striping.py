"""iosig.striping: the core's decisions over arrays."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

from iosig import striping
from iosig.striping import ServerClass, Servers

KB, MB = 1 << 10, 1 << 20


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


@pytest.mark.parametrize("count", [20, 4000])
def test_a_search_counts_requests_at_their_places(count: int) -> None:
    # All requests are for two blocks: whole ones on single disks would leave all other servers idle.
    offsets, length = np.arange(count) * 7919 % 13 % 2 * 512 * KB, 512 * KB
    found = striping.search(servers(), offsets, length)
    h, s = (int(size) for size in found.stripe_bytes)
    busy = np.zeros(16)
    for offset in offsets.tolist():
        parts = np.zeros(16)
        for at in range(offset, offset + length, 4 * KB):
            within = at % (12 * h + 4 * s)
            server = within // h if within < 12 * h else 12 + (within - 12 * h) // s
            parts[server] += 4 * KB
        busy[:12] += np.where(parts[:12] > 0, 8e-3 + parts[:12] / 100e6, 0)
        busy[12:] += np.maximum(np.where(parts[12:] > 0, 1e-4 + parts[12:] / 250e6, 0), parts[12:] / 117e6)
    # Quarters of each on the four SSDs, whose links are then busy: the least of all.
    assert busy.max() <= found.seconds * 1.001 <= 1.01 * count * length / 4 / 117e6


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
