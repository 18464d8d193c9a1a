"""The intermediate model: what the directives of a template describe, with their names resolved.

build.py makes it. Expressions stay texts of the program's language.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from typing import Any

from iosig.generate.template import Place

LEVELS = ("mpiio", "pnetcdf", "hdf5", "netcdf4", "posix")
UNLIMITED = "unlimited"
SHARE_KINDS = ("block", "cyclic", "list")


def number(expression: str) -> int | None:
    """The value of a whole number; of one with more than 40 digits, which is too large anywhere, its first 40."""
    return int(expression[:41]) if re.fullmatch(r"[+-]?[0-9]+", expression) else None


@dataclass(frozen=True)
class Axis:
    """`extent`: an expression, or `unlimited` of the axis along which records are added."""

    name: str
    extent: str
    place: Place

    @property
    def is_record(self) -> bool:
        return self.extent == UNLIMITED


@dataclass(frozen=True)
class Attribute:
    name: str
    type: str  # empty: a text
    value: str
    place: Place


@dataclass(frozen=True)
class Share:
    """This rank's elements of an axis.

    block: the first index, and their number. cyclic: the number of this rank, how many ranks share the axis, and how
    many elements are dealt at a time. list: their indices, and how many these are.
    """

    kind: str  # block | cyclic | list
    values: tuple[str, ...]

    def may_depend_on_rank(self, extents: Collection[str]) -> bool:
        """False where each rank certainly has the same elements; `extents`: of axes with the share's name.

        A block that begins at a number may be that of one rank, if only the program knows its number of elements.
        """
        if self.kind == "list" or number(self.values[0]) is None:
            return True
        return self.kind == "block" and number(self.values[1]) is None and self.values[1] not in extents


@dataclass(frozen=True)
class Decomposition:
    """How ranks share axes."""

    name: str
    shares: dict[str, Share]
    place: Place

    @property
    def has_parts(self) -> bool:
        """Whether a rank may have several pieces of an axis."""
        return any(share.kind != "block" for share in self.shares.values())


@dataclass(frozen=True)
class MemoryAxis:
    """An axis of an array in memory. Without an extent it has the rank's elements and their ghost cells.

    `index`: of an axis that the data set does not have, the one element along it that belongs to the data set.
    """

    name: str
    extent: str | None
    index: str | None = None


@dataclass(frozen=True)
class Dataset:
    """`axes`: slowest first. Without a decomposition every rank has all of it, and the first one writes it.

    `memory`: the axes of the array, slowest first; those of the data set unless it is given.
    """

    name: str
    type: str  # of the elements in memory
    stored: str  # of the elements in the file
    axes: list[Axis]
    data: str
    decomposition: Decomposition | None
    ghost: dict[str, str]
    attributes: list[Attribute]
    memory: list[MemoryAxis]
    place: Place
    data_place: Place  # of data(...)

    @property
    def has_records(self) -> bool:
        return self.axes[0].is_record

    @property
    def has_parts(self) -> bool:
        """Whether a rank may have several pieces of an axis."""
        return self.decomposition is not None and self.decomposition.has_parts

    @property
    def record_shape(self) -> list[Axis]:
        """Its axes, or those of one record."""
        return self.axes[1:] if self.has_records else self.axes

    @property
    def is_permuted(self) -> bool:
        """Whether the axes have another order in memory than in the file."""
        own = [axis.name for axis in self.axes]
        return [axis.name for axis in self.memory if axis.name in own] != own


@dataclass
class File:
    name: str
    path: str
    level: str
    comm: str
    access: str  # write, read, or empty: both
    hints: dict[str, str]
    decomposition: str  # the name of that of its data sets, or empty
    signature: str
    place: Place
    axes: dict[str, Axis] = field(default_factory=dict)
    attributes: list[Attribute] = field(default_factory=list)
    datasets: list[Dataset] = field(default_factory=list)

    @property
    def record_axis(self) -> Axis | None:
        return next((axis for axis in self.axes.values() if axis.is_record), None)


@dataclass(frozen=True)
class Site:
    """Where a file is written (`output`) or read (`input`). `record`: which one, of a file that has records."""

    kind: str
    file: File
    record: str | None
    status: str | None
    place: Place
    last_line: int


@dataclass
class Model:
    files: dict[str, File] = field(default_factory=dict)
    decompositions: dict[str, Decomposition] = field(default_factory=dict)
    sites: list[Site] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """For --json and --show-model."""
        return {
            "files": [file_document(file) for file in self.files.values()],
            "sites": [
                {"kind": s.kind, "file": s.file.name, "record": s.record, "line": s.place.line} for s in self.sites
            ],
        }


def file_document(file: File) -> dict[str, Any]:
    def attributes(listed: list[Attribute]) -> list[dict[str, str]]:
        return [{"name": each.name, "type": each.type or "text", "value": each.value} for each in listed]

    datasets = []
    for each in file.datasets:
        split = each.decomposition
        datasets.append(
            {
                "name": each.name,
                "type": each.type,
                "as": each.stored,
                "axes": [axis.name for axis in each.axes],
                "data": each.data,
                "decomposition": None if split is None else {"name": split.name, **shares_document(split)},
                "ghost": each.ghost,
                "memory": [asdict(axis) for axis in each.memory],
                "attributes": attributes(each.attributes),
                "line": each.place.line,
            }
        )
    words = {key: asdict(file)[key] for key in ("name", "path", "level", "comm", "access", "hints", "signature")}
    axes = {axis.name: axis.extent for axis in file.axes.values()}
    return words | {"axes": axes, "attributes": attributes(file.attributes), "datasets": datasets}


def shares_document(split: Decomposition) -> dict[str, dict[str, tuple[str, ...]]]:
    def of(kind: str) -> dict[str, tuple[str, ...]]:
        return {axis: share.values for axis, share in split.shares.items() if share.kind == kind}

    return {kind: of(kind) for kind in SHARE_KINDS}
