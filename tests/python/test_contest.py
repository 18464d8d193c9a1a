"""`iosig.contest`: placements in the simulator, in small worlds where it is known which one must win, and why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from iosig import contest
from iosig.contest import COLLIDING, KIB, MIB, PHYSICAL, Disk, HotRegions

SMALL = HotRegions(512 * KIB, regions=96, windows=1, window_s=4)


def test_a_single_process_takes_what_hand_arithmetic_says() -> None:
    disk = Disk(0.01, 100e6, 0.01, 100e6)
    world = contest.World(disk, disk, hdds=2, ssds=2, link_bytes_per_s=1e9, connect_s=0.001, processes=1, nodes=1)
    numbers = (np.arange(10, dtype=np.uint64) * np.uint64(64 * KIB), np.full(10, 64 * KIB, np.uint64))
    accesses = contest.Accesses(np.zeros(10, np.uint64), *numbers)
    outcome = contest.run_accesses("def", world, accesses, ssd_share=None)
    one_s = 0.001 + 0.01 + 64 * KIB / 100e6 + 64 * KIB / 1e9  # a stripe of 64 KB is one server's
    assert outcome.end_s == pytest.approx(10 * one_s)
    assert outcome.fast_share == pytest.approx(0.4)  # stripes 2, 3, 6 and 7 of 10


@pytest.mark.parametrize("is_write", [False, True])
@pytest.mark.parametrize("size", [64 * KIB, 512 * KIB])
@pytest.mark.parametrize("world", [PHYSICAL, COLLIDING], ids=["physical", "colliding"])
def test_ours_is_never_below_the_best(world: contest.World, size: int, is_write: bool) -> None:
    hot = replace(SMALL, request_bytes=size, is_write=is_write)
    if world is COLLIDING:  # a round is one draw for all processes
        hot = replace(hot, regions=512, window_s=40)
    rate = {policy: contest.run(policy, world, hot).bytes_per_s for policy in contest.POLICIES}
    assert rate["ours"] >= 0.98 * max(rate.values())
    if world is PHYSICAL and size == 512 * KIB:
        assert rate["ours"] >= 4 * rate["printed"]
    if world is PHYSICAL and size == 64 * KIB:
        assert rate["printed"] < 0.5 * rate["def"]  # 12 start-ups of 8 ms where DEF has one
    if world is COLLIDING:
        assert all(rate["printed"] > 1.5 * rate[rival] for rival in ("def", "padp", "psa"))


def test_the_links_of_the_ssd_servers_and_the_disks_bound_what_any_placement_reaches() -> None:
    outcome = contest.run("ours", PHYSICAL, SMALL)
    far_s = 0.008 * (1 + 0.0) + SMALL.request_bytes / 100e6
    bound = 4 * PHYSICAL.link_bytes_per_s + 12 * SMALL.request_bytes / far_s  # 468 + 475 MB/s
    assert 0.7 * bound < outcome.bytes_per_s < bound


def test_migration_pays_where_regions_drift() -> None:
    hot = replace(SMALL, request_bytes=64 * KIB, windows=3, drift=0.3)
    kept, moved = (contest.run("ours", PHYSICAL, hot, is_migrating=moves) for moves in (False, True))
    assert kept.moved_regions == 0 < moved.moved_regions
    assert moved.bytes_per_s > 1.05 * kept.bytes_per_s
    assert moved.fast_share > kept.fast_share
    free = contest.run("ours", PHYSICAL, hot, movers=0)
    assert free.bytes_per_s > 0.98 * moved.bytes_per_s


def test_bad_words_are_refused_with_their_names() -> None:
    with pytest.raises(ValueError, match="policy must be"):
        contest.place("best", PHYSICAL, SMALL, requests=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="requests of 134217728 bytes"):
        contest.run("def", PHYSICAL, replace(SMALL, request_bytes=128 * MIB))
    with pytest.raises(ValueError, match="10000000 regions in"):
        contest.run("ours", PHYSICAL, replace(SMALL, regions=10_000_000))
    with pytest.raises(ValueError, match="skew nan"):
        contest.place("ours", PHYSICAL, replace(SMALL, skew=float("nan")), requests=1)
    with pytest.raises(ValueError, match="windows x regions x 2 classes"):
        contest.simulate(PHYSICAL, SMALL, contest.Placed(np.zeros((1, 96, 3), np.uint64)))
    with pytest.raises(ValueError, match="class"):
        contest.run("def", replace(PHYSICAL, hdd=replace(PHYSICAL.hdd, read_start_s=-1)), SMALL)
    with pytest.raises(ValueError, match="'processes'"):
        contest.run("def", replace(PHYSICAL, processes=-1), SMALL)
