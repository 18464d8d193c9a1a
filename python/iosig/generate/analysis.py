"""Which bytes of a data set are contiguous: in memory, in a rank's view of the file, across ranks."""

from __future__ import annotations

from dataclasses import dataclass

from iosig.generate.model import Dataset

SCATTERED = {
    "cyclic": "its elements along {} are dealt in turn",
    "list": "its elements along {} are those of a list; memory is in the order of that",
}


@dataclass(frozen=True)
class Contiguity:
    dataset: str
    memory: str  # contiguous | strided
    view: str  # contiguous | strided: the elements of one rank in the file
    ranks: str  # side by side | interleaved | one rank
    reasons: list[str]


def contiguity(dataset: Dataset) -> Contiguity:
    """From the axes that are split and those with ghost cells; the extents need not be known.

    Elements of a rank are one piece of the file if it has all of every axis but the slowest. Ghost cells along the
    slowest axis lie before and behind the elements in memory, along any other axis between them. Of a data set with
    records, all of it is said of one record.
    """
    names = [axis.name for axis in dataset.record_shape]
    shares = dataset.decomposition.shares if dataset.decomposition is not None else {}
    split = [name for name in names if name in shares]
    dealt = [name for name in split if shares[name].kind != "block"]
    padded = [name for name in names if name in dataset.ghost]
    between = [name for name in padded if name != names[0]]
    further = [axis.name for axis in dataset.memory[1:] if axis.index is not None or axis.extent is not None]
    inner = [name for name in split if name != names[0]]
    reasons = []
    innermost = dataset.memory[-1]
    if dataset.is_permuted:
        order = ", ".join(axis.name for axis in dataset.memory)
        reasons.append(f"memory is strided: its axes are {order}, in another order than the file's")
    elif innermost.index is not None:
        reasons.append(
            f"memory is strided: the elements of {innermost.name} lie side by side, and one of them is moved"
        )
    elif between:
        reasons.append(f"memory is strided: ghost cells along {', '.join(between)} lie between the elements")
    elif further:
        reasons.append(f"memory is strided: the array has more along {', '.join(further)} than is moved")
    else:
        reasons.append("memory is contiguous: no ghost cells lie between the elements")
    if not split:
        reasons.append("one rank writes all of it: it has no decomposition")
    elif dealt:
        reasons += [f"a rank has pieces of the file: {SCATTERED[shares[name].kind].format(name)}" for name in dealt]
    elif inner:
        told = ", ".join(split)
        reasons.append(f"a rank has pieces of the file: {told} are shared, not only the slowest axis {names[0]}")
    else:
        reasons.append(f"a rank has one piece of the file: only the slowest axis {names[0]} is shared")
    if dataset.has_records:
        reasons.append(f"one record of {dataset.axes[0].name} is moved at a time")
    ranks = "one rank" if not split else "interleaved" if inner or dealt else "side by side"
    scattered = bool(between or further or dataset.is_permuted)
    memory, view = ("strided" if parts else "contiguous" for parts in (scattered, inner or dealt))
    return Contiguity(dataset.name, memory, view, ranks, reasons)
