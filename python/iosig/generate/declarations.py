"""Whether the arrays of a C or C++ template are what its directives say: known, of the type, of the rank, of the size.

libclang parses the template with a `typedef __typeof__((EXPR)) ...` in place of each output and input, so that the
compiler itself says what an expression is there. Directives and their lines stay where they are. Where only the program
knows the size of an array or of its block, the generated code compares them.
"""

from __future__ import annotations

import math
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field

from clang.cindex import (
    Cursor,
    CursorKind,
    Diagnostic,
    Index,
    TranslationUnit,
    TranslationUnitLoadError,
    Type,
    TypeKind,
)

from iosig.generate.model import Dataset, MemoryAxis, Model, Site
from iosig.generate.template import Mistake, Place, Template

PROBE = "iosig_probe_"
# The types of C that a data set of a type may have, by their kinds; 64-bit integers also by their size.
KINDS = {
    "double": {TypeKind.DOUBLE},
    "float": {TypeKind.FLOAT},
    "int": {TypeKind.INT},
    "int64": {TypeKind.LONG, TypeKind.LONGLONG},
    "uint64": {TypeKind.ULONG, TypeKind.ULONGLONG},
    "short": {TypeKind.SHORT},
    "int8": {TypeKind.SCHAR, TypeKind.CHAR_S},
    "uint8": {TypeKind.UCHAR, TypeKind.CHAR_U},
}
ARRAYS = {TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY, TypeKind.VARIABLEARRAY, TypeKind.DEPENDENTSIZEDARRAY}
# Nothing is known of these: a template's parameter is DEPENDENT or, in C++, UNEXPOSED.
UNKNOWN = {TypeKind.VOID, TypeKind.INVALID, TypeKind.DEPENDENT}
AT_RUN_TIME = -1  # an extent of an array that the program knows
ArrayExtents = tuple[int | None, ...]  # of each axis, slowest first; None: of a pointer, or of an array without a size


@dataclass(frozen=True)
class Probe:
    """Stands in a line of the source, from a column to another, for the array of a data set. `extents` are the names of
    arrays with the elements that the array must have along each of its axes."""

    site: Site
    dataset: Dataset
    line: int
    begin: int
    end: int
    name: str
    extents: list[str]


@dataclass
class Declarations:
    """`arrays`: of those whose size is known to a compiler, by the line of the output or input, file and data set."""

    mistakes: list[Mistake] = field(default_factory=list)
    arrays: dict[tuple[int, str, str], ArrayExtents] = field(default_factory=dict)


def include_flags() -> list[str]:
    """Where the compiler and the MPI library have their headers; libclang has none of its own."""
    flags = []
    compiler, mpi = (shutil.which(name) for name in ("cc", "mpicc"))
    if compiler:
        found = subprocess.run([compiler, "-print-file-name=include"], capture_output=True, text=True)
        flags += ["-isystem", found.stdout.strip()] if found.returncode == 0 else []
    if mpi:
        found = subprocess.run([mpi, "-show"], capture_output=True, text=True)
        flags += [word for word in shlex.split(found.stdout) if word.startswith("-I")]
    return flags


def extent_in_memory(dataset: Dataset, axis: MemoryAxis) -> str:
    """An expression of the elements that an array must have along the axis; empty if only the program can say it."""
    if axis.extent is not None:
        return f"(long long)({axis.extent})"
    shares = dataset.decomposition.shares if dataset.decomposition is not None else {}
    share = shares.get(axis.name)
    if share is not None and share.kind == "cyclic":
        return ""
    whole = next(each.extent for each in dataset.axes if each.name == axis.name)
    count = whole if share is None else share.values[1]
    return f"(long long)({count}) + 2 * (long long)({dataset.ghost.get(axis.name, '0')})"


def probed(template: Template, sites: list[Site]) -> tuple[str, list[Probe]]:
    """The source with a probe for each data set in place of each output and input, all in one line.

    Extents come after all arrays, so that a mistake in one spoils none of them.
    """
    lines = list(template.lines)
    probes: list[Probe] = []
    starts: dict[int, str] = {}  # an output may be of several files
    ends: dict[int, str] = {}
    for site in sites:
        text = starts.get(site.place.line, "{ ")
        for dataset in site.file.datasets:
            name = f"{PROBE}{len(probes)}"
            made = f"typedef __typeof__(({dataset.data})) {name}; "
            names = []
            for number, axis in enumerate(memory_axes(dataset)):
                extent = extent_in_memory(dataset, axis)
                names.append(f"{name}_{number}" if extent else "")
                made_of = f"typedef char {names[-1]}[{extent}]; " if extent else ""
                ends[site.place.line] = ends.get(site.place.line, "") + made_of
            probes.append(Probe(site, dataset, site.place.line, len(text) + 1, len(text) + len(made), name, names))
            text += made
        starts[site.place.line] = text
        for number in range(site.place.line, site.last_line):
            lines[number] = ""
    for line, text in starts.items():
        lines[line - 1] = f"{text}{ends.get(line, '')}}}"
    return "\n".join(lines), probes


def typedefs(cursor: Cursor) -> Iterator[Cursor]:
    for child in cursor.get_children():
        if child.kind == CursorKind.TYPEDEF_DECL and child.spelling.startswith(PROBE):
            yield child
        if child.location.file is None or child.location.file.name == cursor.translation_unit.spelling:
            yield from typedefs(child)


def memory_axes(dataset: Dataset) -> list[MemoryAxis]:
    """Those of the array, which has one record."""
    return dataset.memory[dataset.has_records :]


def kind_of(type_: Type) -> TypeKind | None:
    try:
        return type_.kind
    except ValueError:  # one that these bindings do not know, e.g. _Float16
        return None


def element_of(type_: Type) -> tuple[Type, ArrayExtents]:
    """What an array or a pointer has, and its extents: none of a single value; a pointer counts as one axis."""
    extents: list[int | None] = []
    found = type_.get_canonical()
    while kind_of(found) in ARRAYS or (kind_of(found) == TypeKind.POINTER and not extents):
        if found.kind in (TypeKind.POINTER, TypeKind.INCOMPLETEARRAY):
            extents.append(None)
        else:
            extents.append(found.get_array_size() if found.kind == TypeKind.CONSTANTARRAY else AT_RUN_TIME)
        inner = found.get_pointee() if found.kind == TypeKind.POINTER else found.get_array_element_type()
        found = inner.get_canonical()
    return found, tuple(extents)


def has_const_elements(type_: Type) -> bool:
    """The const of elements may be found at their array."""
    found = type_.get_canonical()
    if kind_of(found) == TypeKind.POINTER:
        found = found.get_pointee().get_canonical()
    while kind_of(found) in ARRAYS and not found.is_const_qualified():
        found = found.get_array_element_type().get_canonical()
    return bool(found.is_const_qualified())


def refusal(dataset: Dataset, type_: Type, is_input: bool, is_cxx: bool) -> str:
    """Why the expression cannot be the data set's array; empty if it can, or if nothing is known of it."""
    element, extents = element_of(type_)
    kind, rank = kind_of(element), len(extents)
    wanted, axes = f"{dataset.type} *", len(memory_axes(dataset))
    told = f"'{dataset.data}' is '{type_.get_canonical().spelling}'; expected "
    is_unknown = kind in UNKNOWN or (is_cxx and kind == TypeKind.UNEXPOSED)
    if rank == 0:
        return "" if is_unknown and kind != TypeKind.VOID else f"{told}an array or a pointer, e.g. '{wanted}'"
    if kind == TypeKind.POINTER:
        return f"{told}'{wanted}' or an array: rows that are pointers do not lie side by side"
    if not is_unknown and kind not in KINDS[dataset.type]:
        return f"{told}elements of the type '{dataset.type}'"
    if is_input and has_const_elements(type_):
        return f"{told}elements that an input can change, not const ones"
    if rank > 1 and rank != axes:
        return f"{told}{axes} axes, as in dims(...), not {rank}; or a pointer"
    return ""


def misfit(dataset: Dataset, array: ArrayExtents, block: list[int | None]) -> str:
    """Why the array cannot have the block, as far as their extents are known; iosig_check_array() in the generated code
    does the same. Along the slowest axis an array may have more than the block has.
    """
    axes = memory_axes(dataset)
    if 0 in block:
        return ""
    if len(array) == 1:
        known = [each for each in block if each is not None]
        elements = array[0]
        if len(known) < len(block) or elements in (None, AT_RUN_TIME) or elements >= math.prod(known):
            return ""
        return f"'{dataset.data}' has {elements} elements; the block with its ghost cells has {math.prod(known)}"
    for number, (has, needs) in enumerate(zip(array, block, strict=True)):
        if has in (None, AT_RUN_TIME) or needs is None or has == needs or (number == 0 and has > needs):
            continue
        names = ", ".join(f"{axis.name}: {has}" if axis is axes[number] else axis.name for axis in axes)
        what = f"'{dataset.data}' has {has} elements along its axis {number + 1}, '{axes[number].name}'"
        hint = f"; if the array has more than the rank's elements: memory({names})" if has > needs else ""
        return f"{what}; the block with its ghost cells has {needs}{hint}"
    return ""


def constant_of(type_: Type | None) -> int | None:
    """The elements of an array, if its size is a constant."""
    found = type_.get_canonical() if type_ is not None else None
    return found.get_array_size() if found is not None and kind_of(found) == TypeKind.CONSTANTARRAY else None


def compare(unit: TranslationUnit, probes: list[Probe], is_cxx: bool) -> Declarations:
    by_name = {cursor.spelling: cursor.underlying_typedef_type for cursor in typedefs(unit.cursor)}
    errors = [each for each in unit.diagnostics if each.severity >= Diagnostic.Error]
    made = Declarations()
    for probe in probes:
        dataset, place = probe.dataset, probe.dataset.data_place
        at = [
            each.spelling
            for each in errors
            if each.location.line == probe.line and probe.begin <= each.location.column <= probe.end
        ]
        if at:
            why = f"data({dataset.data}): {at[0]}; expected an array that is declared here"
            made.mistakes.append(Mistake(place, why))
        elif probe.name in by_name:
            type_ = by_name[probe.name]
            _, array = element_of(type_)
            why = refusal(dataset, type_, probe.site.kind == "input", is_cxx)
            why = why or misfit(dataset, array, [constant_of(by_name.get(name)) for name in probe.extents])
            if why:
                made.mistakes.append(Mistake(place, f"data set '{dataset.name}': {why}"))
            if any(extent is not None for extent in array):
                made.arrays[probe.site.place.line, probe.site.file.name, dataset.name] = array
    made.mistakes = list(dict.fromkeys(made.mistakes))
    return made


def check_declarations(template: Template, model: Model, includes: list[str], defines: list[str]) -> Declarations:
    """Mistakes, each at the data(...) of its data set, once however often the file is written. Nothing for Fortran.

    If a header is missing, types may be unknown: then nothing is checked, which is a warning.
    """
    sites = [site for site in model.sites if site.file.datasets]
    if template.is_fortran or not sites:
        return Declarations()
    text, probes = probed(template, sites)
    is_cxx = template.is_cxx
    flags = [f"-x{'c++' if is_cxx else 'c'}", "-w", "-ferror-limit=0"]
    flags += [*(f"-I{each}" for each in includes), *(f"-D{each}" for each in defines)]
    try:
        unit = Index.create().parse(template.path, [*flags, *include_flags()], [(template.path, text)])
    except TranslationUnitLoadError:
        why = "libclang cannot parse it; names and types are not checked"
        return Declarations([Mistake(Place(template.path, 1), why, "warning")])
    fatal = next((each for each in unit.diagnostics if each.severity == Diagnostic.Fatal), None)
    if fatal is not None:
        line = fatal.location.line if fatal.location.file and fatal.location.file.name == template.path else 1
        why = f"{fatal.spelling}: names and types of arrays are not checked; -I DIR says where headers are"
        return Declarations([Mistake(Place(template.path, line), why, "warning")])
    return compare(unit, probes, is_cxx)
