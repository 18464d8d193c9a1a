"""Patterns of accesses over NumPy arrays: what `iosig pattern` describes, expands and looks up, without files.

>>> offsets = 524288 * np.arange(100)[:, None] + 4096 * np.arange(16)
>>> pattern = patterns.detect(offsets.ravel())
>>> pattern.count, pattern.terms, pattern.bytes < 30
(1600, 1, True)
>>> print(pattern)
for i < 100
  for j < 16
    524288 i + 4096 j
>>> bool((pattern.expand() == offsets.ravel()).all())
True

A pattern is a sequence that is never expanded unless it is asked to be: `pattern[k]`, slices, lists and arrays of
positions and masks read it. Bad arguments raise ValueError, arrays of anything but integers TypeError. What takes long
lets other threads run; arrays that are being read must not be changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from iosig import _core
from iosig._core import Lookup, Pattern

if TYPE_CHECKING:
    from iosig._core import Algorithm, Columns

__all__ = ["Detector", "Lookup", "Merged", "Pattern", "detect", "merge"]

LARGEST = np.iinfo(np.int64).max


def as_vectors(values: npt.ArrayLike, columns: int | None = None) -> npt.NDArray[np.int64]:
    """`values` as a row for each vector, contiguous; the same memory where it is so already.

    columns: how many; unless given, one for an array of one dimension. One vector of several columns may be an array of
    one dimension, too.
    """
    array = np.asarray(values)
    if array.size == 0 and array.dtype == np.float64:
        array = array.astype(np.int64)  # NumPy has no better idea of []
    if array.dtype.kind not in "iu":
        raise TypeError(f"vectors: expected an array of integers from -2^63 to 2^63 - 1, got {array.dtype}")
    if array.dtype.kind == "u" and array.size and int(array.max()) > LARGEST:
        row, *_ = first = np.argwhere(array > LARGEST)[0] if array.ndim else (0,)
        value = array[tuple(first)] if array.ndim else array
        raise ValueError(f"vectors: row {row}: {value} does not fit 64 bits; expected at most 2^63 - 1")
    if array.ndim < 2:
        wide = 1 if columns is None else columns
        if array.size % wide or (wide > 1 and array.size != wide):
            raise ValueError(f"vectors: expected rows of {wide} columns, got an array of shape {array.shape}")
        array = array.reshape(-1, wide)
    if array.ndim != 2 or (columns is not None and array.shape[1] != columns):
        expected = f"{columns} columns" if columns is not None else "one or two dimensions"
        raise ValueError(f"vectors: expected {expected}, got an array of shape {array.shape}")
    return np.ascontiguousarray(array, dtype=np.int64)


def detect(
    vectors: npt.ArrayLike, columns: Columns = "", algorithm: Algorithm = "nest", window: int | None = None
) -> Pattern:
    """The pattern of integers (an array of one dimension), or of vectors of 1 to 8 columns (a row for each).

    columns: names as `iosig pattern detect --columns` takes them, "logical,length,physical,id", or a list of them:
    offsets and lengths are then checked, and a physical offset may be described as the running sum of the lengths.
    algorithm: nest, or the paper's Algorithm 1. window: the longest body of a loop, 1 to 1024; 32 (paper: 64) unless
    given.
    `detect(x).expand()` is x.
    """
    return _core.detect(as_vectors(vectors), columns, algorithm, window)


class Merged(NamedTuple):
    """interleaved: accesses that overlap at the same time, or are among such ones, and were put in order one by one."""

    pattern: Pattern
    interleaved: int


def merge(patterns: Iterable[Pattern], ids: Iterable[int] | None = None) -> Merged:
    """The patterns of many processes as one, of logical, length, physical and id.

    patterns: one for each process, of logical, length and physical; with a fourth column the number that says what came
    before what, on one scale for all. ids: who the processes are; 0, 1, 2, ... unless given. As `iosig pattern merge`.
    """
    return Merged(*_core.merge(list(patterns), [] if ids is None else list(ids)))


class Detector(_core.Detector):
    """Detection while the vectors come by: push them, ask what comes next and how sure that is, finish.

    columns: of a vector, 1 to 8; or their names, and accesses are checked as `detect` does. follows: for each
    column None, or the column whose running sum to describe it as. window: as of `detect`. allows_exceptions: whether
    single vectors may differ from what a nest says.

    `count`: vectors so far. `confidence`: 0 to 1 that the next vector is as `predict` says; 0 where no nest runs.
    `predict(count)`: what comes next, as far as that can be said. `finish()`: the pattern; the detector is as new.
    """

    def push(self, vectors: npt.ArrayLike) -> None:
        """One vector, or a row for each of many; all of them or none."""
        super().push(as_vectors(vectors, self.columns))
