"""What a program knows of its coming reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import iosig
import iosig.reads


def test_an_order_has_a_line_for_each_record(tmp_path: Path) -> None:
    order = tmp_path / "order"
    iosig.reads.write_order(order, np.array([3, 0, 2]), record_bytes=100, start_bytes=12)
    assert order.read_text() == "iosig.order/1\nrecords 100 at 12\n3\n0\n2\n"
    iosig.reads.write_order(order, [], record_bytes=1)
    assert order.read_text() == "iosig.order/1\nrecords 1 at 0\n"


def test_an_impossible_order_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    order = tmp_path / "order"
    with pytest.raises(ValueError, match="record_bytes must be at least 1, got 0"):
        iosig.reads.write_order(order, [1], record_bytes=0)
    with pytest.raises(ValueError, match="start_bytes must not be negative, got -1"):
        iosig.reads.write_order(order, [1], record_bytes=8, start_bytes=-1)
    with pytest.raises(ValueError, match="records must not be negative, got -3"):
        iosig.reads.write_order(order, [1, -3], record_bytes=8)
    assert not order.exists()


def test_without_prefetching_reads_are_announced_to_none() -> None:
    assert iosig.reads.expect("/data/train", "order(epoch.order)") is False
    with pytest.raises(ValueError, match="unknown parameter 'ordr'"):
        iosig.reads.expect("/data/train", "ordr(epoch.order)")
