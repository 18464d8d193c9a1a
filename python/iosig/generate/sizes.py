"""How many calls, pieces and bytes a data set is: what the cost model wants to know of it.

Extents are expressions of the program, most of which only it can evaluate. Known are numbers, constants of the template
and of the files that it includes by `"..."`, and what the user says; the rest is assumed.
"""

from __future__ import annotations

import ast
import operator
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from iosig.generate.elements import TYPES
from iosig.generate.model import Dataset, Share
from iosig.generate.template import Template

if TYPE_CHECKING:
    from iosig._core import SharedTransfer

MOST = 2**63 - 1  # no program has a larger number
ASSUMED = {"elements": 32, "extent": 8, "ghost": 2}  # of a rank along an axis; of an axis that only memory has
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
}


@dataclass
class Sizes:
    """`known`: values of names. `assumed` becomes what had to be assumed, by expression."""

    ranks: int
    known: dict[str, int]
    assumed: dict[str, int] = field(default_factory=dict)

    def value(self, expression: str) -> int | None:
        try:
            value = evaluated(ast.parse(expression.strip(), mode="eval").body, self.known)
        except (SyntaxError, KeyError, ZeroDivisionError, ValueError, RecursionError):
            return None
        return value if abs(value) <= MOST else None

    def or_assumed(self, expression: str, kind: str) -> int:
        value = self.value(expression)
        if value is None:
            value = self.assumed[expression] = ASSUMED[kind]
        return max(value, 0)


def evaluated(node: ast.expr, known: dict[str, int]) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name):
        return known[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return int(OPERATORS[type(node.op)](evaluated(node.left, known), evaluated(node.right, known)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -evaluated(node.operand, known)
    raise ValueError


def constants(template: Template, include: list[str]) -> dict[str, int]:
    """Of `#define NAME NUMBER`, or Fortran's `parameter :: NAME = NUMBER`, in the template and files beside it."""
    texts = ["\n".join(template.lines)]
    for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', texts[0], re.MULTILINE):
        found = [Path(each) / name for each in [str(Path(template.path).parent), *include]]
        texts += [each.read_text(errors="replace") for each in found if each.is_file()][:1]
    found = [each for text in texts for each in re.findall(r"^\s*#\s*define\s+(\w+)\s+(\d+)\b", text, re.MULTILINE)]
    for line in re.findall(r"parameter\s*::\s*(.*)", texts[0], re.IGNORECASE) if template.is_fortran else []:
        found += re.findall(r"(\w+)\s*=\s*(\d+)\s*(?:,|$|!)", line)
    return {name: int(value) for name, value in found if len(value) <= len(str(MOST))}


def balanced(ranks: int, axes: int) -> list[int]:
    """The ranks along each axis, as equal as possible, like MPI_Dims_create."""
    parts = [1] * axes
    prime, factors = 2, []
    while prime * prime <= ranks:
        while ranks % prime == 0:
            factors.append(prime)
            ranks //= prime
        prime += 1
    factors += [ranks] * (ranks > 1)
    for factor in reversed(factors):
        parts[parts.index(min(parts))] *= factor
    return sorted(parts, reverse=True)


@dataclass(frozen=True)
class Along:
    """An axis of a data set: its elements, those of a rank, and how many of these lie side by side in the file."""

    extent: int
    count: int
    side_by_side: int


def along_axes(dataset: Dataset, sizes: Sizes) -> dict[str, Along]:
    """Axes from the slowest on, by name; of one record."""
    shares = dataset.decomposition.shares if dataset.decomposition is not None else {}
    names = [axis.name for axis in dataset.record_shape if axis.name in shares]
    parts = dict(zip(names, balanced(sizes.ranks, len(names)), strict=True)) if names else {}
    found = {}
    for axis in dataset.record_shape:
        share = shares.get(axis.name)
        if share is None:
            extent = sizes.or_assumed(axis.extent, "elements")
            found[axis.name] = Along(extent, extent, extent)
            continue
        whole = sizes.value(axis.extent)
        own = None if share.kind == "cyclic" else sizes.value(share.values[1])
        if own is not None:
            count = max(own, 0)
        elif whole is not None:
            count = max(1, whole // parts[axis.name])
        else:
            count = sizes.or_assumed(axis.extent if share.kind == "cyclic" else share.values[1], "elements")
        extent = count * parts[axis.name] if whole is None else whole
        found[axis.name] = Along(extent, count, side_by_side(share, count, sizes))
    return found


def side_by_side(share: Share, count: int, sizes: Sizes) -> int:
    if share.kind == "list":
        return 1
    return min(count, sizes.or_assumed(share.values[2], "elements")) if share.kind == "cyclic" else count


def memory_run(dataset: Dataset, axes: dict[str, Along], sizes: Sizes) -> int:
    """Elements that lie side by side in memory, in the order of the file."""
    run = 1
    order = list(reversed(axes))
    for axis in reversed([each for each in dataset.memory if each.name in axes or each.index is not None]):
        if axis.index is not None:
            if sizes.or_assumed(axis.extent or "", "extent") > 1:
                break
            continue
        if not order or axis.name != order.pop(0):
            break
        count = axes[axis.name].count
        ghost = sizes.or_assumed(dataset.ghost[axis.name], "ghost") if axis.name in dataset.ghost else 0
        extent = sizes.value(axis.extent) if axis.extent is not None else count + 2 * ghost
        run *= count
        if extent != count:
            break
    return max(run, 1)


def file_run(axes: dict[str, Along]) -> int:
    """Elements of a rank that lie side by side in the file."""
    run = 1
    for axis in reversed(axes.values()):
        run *= axis.side_by_side
        if axis.side_by_side < axis.extent:
            break
    return max(run, 1)


def transfer_of(dataset: Dataset, sizes: Sizes, writes: bool) -> SharedTransfer:
    """Of all ranks. Without a decomposition the first rank writes, and each rank reads."""
    axes = along_axes(dataset, sizes)
    elements, stride, spanned = 1, 1, 1
    for axis in reversed(axes.values()):
        elements *= axis.count
        spanned += ((axis.count if axis.side_by_side == axis.count else axis.extent) - 1) * stride
        stride *= axis.extent
    movers = 1 if dataset.decomposition is None and writes else sizes.ranks
    element_bytes = TYPES[dataset.stored].bytes
    return (
        float(sizes.ranks),
        float(movers * max(1, elements // memory_run(dataset, axes, sizes))),
        float(movers * max(1, elements // file_run(axes))),
        float(movers * elements * element_bytes),
        float(movers * max(spanned, elements) * element_bytes),
    )
