"""Whether the arrays of a C or C++ template are what its directives say: known, of the type, of the rank.

libclang parses the template with a `typedef __typeof__((EXPR)) ...` in place of each output and input, so that the
compiler itself says what an expression is there. Directives and their lines stay where they are.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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

from iosig.generate.model import Dataset, Model, Site
from iosig.generate.template import CXX_SUFFIXES, Mistake, Place, Template

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
NUMBERS = set().union(*KINDS.values()) | {TypeKind.UINT, TypeKind.USHORT, TypeKind.BOOL, TypeKind.LONGDOUBLE}


@dataclass(frozen=True)
class Probe:
    """Stands in a line of the source, from a column to another, for the array of a data set."""

    dataset: Dataset
    line: int
    begin: int
    end: int
    name: str


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


def probed(template: Template, sites: list[Site]) -> tuple[str, list[Probe]]:
    """The source with a probe for each data set in place of each output and input, all in one line."""
    lines = list(template.lines)
    probes: list[Probe] = []
    starts: dict[int, str] = {}  # an output may be of several files
    for site in sites:
        text = starts.get(site.place.line, "{ ")
        for dataset in site.file.datasets:
            name = f"{PROBE}{len(probes)}"
            made = f"typedef __typeof__(({dataset.data})) {name}; "
            probes.append(Probe(dataset, site.place.line, len(text) + 1, len(text) + len(made), name))
            text += made
        starts[site.place.line] = text
        lines[site.place.line - 1] = text + "}"
        for number in range(site.place.line, site.last_line):
            lines[number] = ""
    return "\n".join(lines), probes


def typedefs(cursor: Cursor) -> Iterator[Cursor]:
    for child in cursor.get_children():
        if child.kind == CursorKind.TYPEDEF_DECL and child.spelling.startswith(PROBE):
            yield child
        if child.location.file is None or child.location.file.name == cursor.translation_unit.spelling:
            yield from typedefs(child)


def element_of(type_: Type) -> tuple[Type, int]:
    """What an array or a pointer has, and its rank: 0 of a single value; a pointer counts as one axis."""
    rank = 0
    found = type_.get_canonical()
    while found.kind in ARRAYS or (found.kind == TypeKind.POINTER and rank == 0):
        found = (found.get_pointee() if found.kind == TypeKind.POINTER else found.element_type).get_canonical()
        rank += 1
    return found, rank


def refusal(dataset: Dataset, type_: Type) -> str:
    """Why the expression cannot be the data set's array; empty if it can, or if nothing is known of it."""
    element, rank = element_of(type_)
    wanted, axes = f"{dataset.type} *", len(dataset.memory) - dataset.has_records
    told = f"'{dataset.data}' is '{type_.get_canonical().spelling}'; expected "
    if rank == 0:
        return f"{told}an array or a pointer, e.g. '{wanted}'" if element.kind in NUMBERS | {TypeKind.RECORD} else ""
    if element.kind == TypeKind.POINTER:
        return f"{told}'{wanted}' or an array: rows that are pointers do not lie side by side"
    if element.kind not in NUMBERS | {TypeKind.RECORD, TypeKind.ENUM}:
        return ""
    if element.kind not in KINDS[dataset.type]:
        return f"{told}elements of the type '{dataset.type}'"
    if rank > 1 and rank != axes:
        return f"{told}{axes} axes, as in dims(...), not {rank}; or a pointer"
    return ""


def mistakes_in(unit: TranslationUnit, probes: list[Probe]) -> Iterator[Mistake]:
    by_name = {cursor.spelling: cursor.underlying_typedef_type for cursor in typedefs(unit.cursor)}
    errors = [each for each in unit.diagnostics if each.severity >= Diagnostic.Error]
    for probe in probes:
        place = probe.dataset.data_place
        at = [
            each.spelling
            for each in errors
            if each.location.line == probe.line and probe.begin <= each.location.column <= probe.end
        ]
        if at:
            yield Mistake(place, f"data({probe.dataset.data}): {at[0]}; expected an array that is declared here")
        elif probe.name in by_name:
            why = refusal(probe.dataset, by_name[probe.name])
            if why:
                yield Mistake(place, f"data set '{probe.dataset.name}': {why}")


def check_declarations(template: Template, model: Model, includes: list[str], defines: list[str]) -> list[Mistake]:
    """Mistakes, each at the data(...) of its data set, once however often the file is written. Nothing for Fortran.

    If a header is missing, types may be unknown: then nothing is checked, which is a warning.
    """
    sites = [site for site in model.sites if site.file.datasets]
    if template.is_fortran or not sites:
        return []
    text, probes = probed(template, sites)
    language = "c++" if Path(template.path).suffix in CXX_SUFFIXES else "c"
    flags = [f"-x{language}", "-w", *(f"-I{each}" for each in includes), *(f"-D{each}" for each in defines)]
    try:
        unit = Index.create().parse(template.path, [*flags, *include_flags()], [(template.path, text)])
    except TranslationUnitLoadError:
        return [
            Mistake(Place(template.path, 1), "libclang cannot parse it; names and types are not checked", "warning")
        ]
    fatal = next((each for each in unit.diagnostics if each.severity == Diagnostic.Fatal), None)
    if fatal is not None:
        line = fatal.location.line if fatal.location.file and fatal.location.file.name == template.path else 1
        why = f"{fatal.spelling}: names and types of arrays are not checked; -I DIR says where headers are"
        return [Mistake(Place(template.path, line), why, "warning")]
    return list(dict.fromkeys(mistakes_in(unit, probes)))
