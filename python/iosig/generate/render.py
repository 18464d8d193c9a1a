"""The program with its I/O: code from the Jinja templates in place of the directives.

Lines that the scientist wrote, and expressions from directives, keep their places by `#line`, so that compilers and
debuggers point to the template; other lines of generated code have their places in the generated file. In the
templates, `@at N` stands for line N of the source, `@here` for the generated file's own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import jinja2

from iosig.generate.model import Axis, Dataset, Decomposition, File, Model, Site
from iosig.generate.template import Place, Template

MARK = "/* Made by iosig generate"  # begins each generated file


@dataclass(frozen=True)
class ElementType:
    c: str
    mpi: str
    nc: str
    nc_call: str
    h5: str
    h5_file: str
    bytes: int


TYPES = {
    "double": ElementType("double", "MPI_DOUBLE", "NC_DOUBLE", "double", "H5T_NATIVE_DOUBLE", "H5T_IEEE_F64LE", 8),
    "float": ElementType("float", "MPI_FLOAT", "NC_FLOAT", "float", "H5T_NATIVE_FLOAT", "H5T_IEEE_F32LE", 4),
    "int": ElementType("int", "MPI_INT", "NC_INT", "int", "H5T_NATIVE_INT", "H5T_STD_I32LE", 4),
    "int64": ElementType("long long", "MPI_INT64_T", "NC_INT64", "longlong", "H5T_NATIVE_LLONG", "H5T_STD_I64LE", 8),
    "uint64": ElementType(
        "unsigned long long", "MPI_UINT64_T", "NC_UINT64", "ulonglong", "H5T_NATIVE_ULLONG", "H5T_STD_U64LE", 8
    ),
    "short": ElementType("short", "MPI_SHORT", "NC_SHORT", "short", "H5T_NATIVE_SHORT", "H5T_STD_I16LE", 2),
    "int8": ElementType("signed char", "MPI_SIGNED_CHAR", "NC_BYTE", "schar", "H5T_NATIVE_SCHAR", "H5T_STD_I8LE", 1),
    "uint8": ElementType(
        "unsigned char", "MPI_UNSIGNED_CHAR", "NC_UBYTE", "uchar", "H5T_NATIVE_UCHAR", "H5T_STD_U8LE", 1
    ),
}


def quoted(text: str) -> str:
    """As a string of C."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def where(place: Place, what: str) -> str:
    return quoted(f"{place.file}:{place.line}: {what}")


def unique(things: list[Any]) -> list[Any]:
    return [each for n, each in enumerate(things) if each not in things[:n]]


def as_comment(lines: list[str]) -> list[str]:
    plain = [line.replace("/*", "/ *").replace("*/", "* /") for line in lines]
    plain[0] = f"/* {plain[0].lstrip()}"
    plain[-1] = f"{plain[-1]} */"
    return plain


class Renderer:
    def __init__(self, template: Template, model: Model) -> None:
        loader = jinja2.PackageLoader("iosig.generate", "templates")
        # StrictUndefined: a name that a template misspells is an error, not an empty text
        self.jinja = jinja2.Environment(
            loader=loader, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
        )
        self.template = template
        self.model = model

    def prelude(self) -> str:
        sites = self.model.sites
        datasets = [dataset for site in sites for dataset in site.file.datasets]
        return self.jinja.get_template("prelude.c.j2").render(
            levels={site.file.level for site in sites},
            writes=any(site.kind == "output" for site in sites),
            reads=any(site.kind == "input" for site in sites),
            has_hints=any(site.file.hints for site in sites),
            max_axes=max(len(dataset.axes) for dataset in datasets),
        )

    def block(self, site: Site) -> str:
        file, writes = site.file, site.kind == "output"

        splits: list[Decomposition] = unique([d.decomposition for d in file.datasets if d.decomposition is not None])

        def range_of(dataset: Dataset, axis: str, part: int, otherwise: str) -> str:
            split = dataset.decomposition
            if split is None or axis not in split.ranges:
                return otherwise
            return f"iosig_s{splits.index(split) + 1}_{axis}[{part}]"

        def start_of(dataset: Dataset, axis: str) -> str:
            return range_of(dataset, axis, 0, "0")

        def count_of(dataset: Dataset, axis: str) -> str:
            is_lone = dataset.decomposition is None and writes
            return range_of(dataset, axis, 1, f"iosig_writes ? iosig_n_{axis} : 0" if is_lone else f"iosig_n_{axis}")

        def ghost_of(dataset: Dataset, axis: str) -> str:
            return f"iosig_g{file.datasets.index(dataset) + 1}_{axis}" if axis in dataset.ghost else "0"

        return self.jinja.get_template("block.c.j2").render(
            site=site,
            file=file,
            writes=writes,
            used_axes=used_axes(file),
            splits=splits,
            lone=any(dataset.decomposition is None for dataset in file.datasets),
            count=len(file.datasets),
            types=TYPES,
            where=where,
            start_of=start_of,
            count_of=count_of,
            ghost_of=ghost_of,
        )

    def text(self, output: str) -> str:
        """The generated file, which is called `output`."""
        lines = [f"{MARK} from {self.template.path}; change that, not this. */".replace("*/ ", "* / ")]
        sites = {site.place.line: site for site in self.model.sites}
        directives = {each.place.line: each for each in self.template.directives}
        number = 1
        if self.template.include_line == 0 and self.model.sites:
            lines += self.prelude().splitlines()
        lines.append(f"@at {number}")
        while number <= len(self.template.lines):
            directive = directives.get(number)
            if directive is None:
                lines.append(self.template.lines[number - 1])
                number += 1
            else:
                number = directive.last_line + 1
                lines += as_comment(self.template.lines[directive.place.line - 1 : directive.last_line])
                if directive.place.line in sites:
                    lines += ["@here", *self.block(sites[directive.place.line]).splitlines(), f"@at {number}"]
            if number == self.template.include_line + 1 and self.model.sites and number > 1:
                lines += ["@here", *self.prelude().splitlines(), f"@at {number}"]
        return "\n".join(self.placed(lines, output))

    def placed(self, lines: list[str], output: str) -> list[str]:
        """With `#line` for the marks of places."""
        made: list[str] = []
        for line in lines:
            mark = re.fullmatch(r"@at (\d+)", line)
            if mark:
                made.append(f"#line {mark[1]} {quoted(self.template.path)}")
            elif line == "@here":
                made.append(f"#line {len(made) + 2} {quoted(output)}")
            else:
                made.append(line)
        return made


def used_axes(file: File) -> list[Axis]:
    """In the order of their declarations: those that a data set has."""
    used = {axis.name for dataset in file.datasets for axis in dataset.axes}
    return [axis for axis in file.axes.values() if axis.name in used]
