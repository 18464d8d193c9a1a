"""What a program knows of its coming reads, said to `iosig run --prefetch`.

A loader that shuffles its records by a seed knows their order before it reads the first one:

>>> order = numpy.random.default_rng(seed).permutation(records)
>>> iosig.reads.write_order("epoch.order", order, record_bytes=16384)
>>> iosig.reads.expect("train.bin", "order(epoch.order)")
True
>>> fd = os.open("train.bin", os.O_RDONLY)

The format is docs/formats/read-order.md.
"""

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

AT_FDCWD = -100


def write_order(
    file: str | os.PathLike[str], records: Iterable[int], *, record_bytes: int, start_bytes: int = 0
) -> None:
    """Writes the order in which records will be read, as `order(FILE)` in a signature takes it.

    records: numbers of records, from 0, in the order of the reads. Record n is `record_bytes` bytes from
    `start_bytes + n * record_bytes` on.
    """
    if record_bytes < 1:
        raise ValueError(f"record_bytes must be at least 1, got {record_bytes}")
    if start_bytes < 0:
        raise ValueError(f"start_bytes must not be negative, got {start_bytes}")
    numbers = [int(number) for number in records]
    if numbers and min(numbers) < 0:
        raise ValueError(f"records must not be negative, got {min(numbers)}")
    with Path(file).open("w", encoding="ascii") as lines:
        lines.write(f"iosig.order/1\nrecords {record_bytes} at {start_bytes}\n")
        lines.writelines(f"{number}\n" for number in numbers)


def expect(path: str | os.PathLike[str], signature: str) -> bool:
    """Announces that `path` will be read as `signature` says (`pattern(FILE)`, `order(FILE)`), and returns whether this
    process prefetches.

    Call it before `path` is opened. FILE is read when the reads of `path` begin; a file that cannot be used is noted on
    stderr. Raises ValueError, as `parse_signature`, for a signature that is wrong.
    """
    from iosig import parse_signature

    parse_signature(signature)
    try:
        announce = ctypes.CDLL(None).iosig_expect_reads
    except AttributeError:  # not under `iosig run`
        return False
    announce.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p]
    announce.restype = ctypes.c_bool
    return bool(announce(AT_FDCWD, os.fsencode(path), signature.encode()))
