"""The program with its I/O: code from the Jinja templates in place of the directives.

Lines that the scientist wrote, and expressions from directives, keep their places by `#line`, so that compilers and
debuggers point to the template; other lines of generated code have their places in the generated file. In the
templates, `@at N` stands for line N of the source, `@here` for the generated file's own. Fortran's shared part is a
module before everything else; its lines are kept within 132 characters.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import jinja2

from iosig.generate.declarations import ArrayExtents
from iosig.generate.elements import TYPES
from iosig.generate.model import Attribute, Axis, Dataset, Decomposition, File, MemoryAxis, Model, Share, Site, number
from iosig.generate.optimise import LIBRARIES, Decision
from iosig.generate.template import Place, Template

MARK = "Made by iosig generate"  # in the first line of each generated file
FORTRAN_COLUMNS = 132


class Flag:
    """Whether something is done: with every MPI library, with none, or with one. As a text it is an expression."""

    def __init__(self, libraries: set[str], is_fortran: bool) -> None:
        self.always = len(libraries) == len(LIBRARIES)
        self.never = not libraries
        self.is_fortran = is_fortran
        self.is_ompio = "ompio" in libraries

    def expression(self, negated: bool) -> str:
        truth = self.always if self.always or self.never else None
        if truth is not None:
            truth ^= negated
            return (".true." if truth else ".false.") if self.is_fortran else str(int(truth))
        if self.is_fortran:
            return "iosig_ompio()" if self.is_ompio != negated else ".not. iosig_ompio()"
        return "IOSIG_OMPIO" if self.is_ompio != negated else "!IOSIG_OMPIO"

    def __str__(self) -> str:
        return self.expression(False)

    @property
    def when(self) -> str:
        """What is put before a statement that is executed only then; nothing if it always is."""
        return "" if self.always else f"if ({self.expression(False)}) "

    @property
    def unless(self) -> str:
        return "" if self.never else f"if ({self.expression(True)}) "


def quoted(text: str) -> str:
    """As a string of C."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def quoted_fortran(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def folded(line: str) -> list[str]:
    """A statement of Fortran in lines of at most 132 characters; where a `&` begins a line, even a word goes on."""
    parts = []
    while len(line) > FORTRAN_COLUMNS:
        cut = line.rfind(", ", 60, FORTRAN_COLUMNS - 2) + 2
        cut = cut if cut > 1 else FORTRAN_COLUMNS - 2
        parts.append(line[:cut] + "&")
        line = "  &" + line[cut:]
    return [*parts, line]


def unique(things: list[Any]) -> list[Any]:
    return [each for n, each in enumerate(things) if each not in things[:n]]


class Renderer:
    """`decisions`: one for each site of the model. `arrays`: the extents of those whose size a compiler knows."""

    def __init__(
        self,
        template: Template,
        model: Model,
        decisions: list[Decision],
        arrays: dict[tuple[int, str, str], ArrayExtents] | None = None,
    ) -> None:
        loader = jinja2.PackageLoader("iosig.generate", "templates")
        # StrictUndefined: a name that a template misspells is an error, not an empty text
        self.jinja = jinja2.Environment(
            loader=loader,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        self.template = template
        self.model = model
        self.arrays = arrays or {}
        self.ending = "f90" if template.is_fortran else "c"
        stem = re.sub(r"\W", "_", Path(template.path).stem)
        self.decisions = {
            (site.place, site.file.name): decision for site, decision in zip(model.sites, decisions, strict=True)
        }
        self.buffers = any(self.packing(site, each) for site in model.sites for each in site.file.datasets)
        self.skips_views = any(site.file.level == "mpiio" and not self.has_view(site) for site in model.sites)
        self.opens_alone = any(self.alone(site) for site in model.sites)
        self.chunks = any(self.is_chunked(site, each) for site in model.sites for each in site.file.datasets)
        # Of Fortran; 63 characters are allowed. Templates of one name in several directories need modules of their own;
        # the same text gives the same name, wherever it is.
        number = hashlib.sha256("\n".join(template.lines).encode("utf-8", "surrogateescape")).hexdigest()[:8]
        self.module = f"iosig_io_{stem[:45]}_{number}".lower()

    def decision(self, site: Site) -> Decision:
        return self.decisions[site.place, site.file.name]

    def where(self, place: Place, what: str) -> str:
        """As a string of the program's language."""
        text = f"{place.file}:{place.line}: {what}"
        return quoted_fortran(text) if self.template.is_fortran else quoted(text)

    def packing(self, site: Site, dataset: Dataset) -> set[str]:
        """The libraries with which elements go through a buffer."""
        if is_packed(site.file, dataset):
            return set(LIBRARIES)
        decision = self.decision(site)
        contiguity = decision.contiguity[site.file.datasets.index(dataset)]
        pays = site.file.level in ("mpiio", "hdf5") and contiguity.memory == "strided" and not dataset.has_parts
        return decision.libraries(lambda method: method.packs) if pays else set()

    def alone(self, site: Site) -> set[str]:
        """The libraries with which each rank opens the file for itself.

        With ROMIO no call is collective then: where ranks wait by polling on fewer processors, each such call takes
        milliseconds. OMPIO's take microseconds.
        """
        independent = self.decision(site).libraries(lambda method: not method.is_collective)
        return independent & {"romio"} if site.file.level == "mpiio" else set()

    def blocks_in_pnetcdf(self, site: Site) -> bool:
        """Whether variables are moved by a call each."""
        joined = self.joined(site)
        return site.file.level == "pnetcdf" and not joined.always and not all(d.has_parts for d in site.file.datasets)

    def posts_in_pnetcdf(self, site: Site) -> bool:
        """Whether transfers are posted: all together, or elements that are several pieces of the variable."""
        joined = self.joined(site)
        return site.file.level == "pnetcdf" and (not joined.never or any(d.has_parts for d in site.file.datasets))

    def joined(self, site: Site) -> Flag:
        return Flag(self.decision(site).libraries(lambda method: method.is_joined), self.template.is_fortran)

    def is_chunked(self, site: Site, dataset: Dataset) -> bool:
        """Whether a rank's block, which is several pieces of the data set, is a chunk of the file."""
        decision = self.decision(site)
        contiguity = decision.contiguity[site.file.datasets.index(dataset)]
        chunks = decision.libraries(lambda method: method.chunks) and site.kind == "output"
        return bool(chunks) and contiguity.view == "strided" and not dataset.has_parts and not dataset.has_records

    def has_parts(self) -> bool:
        """Whether blocks may have several pieces of an axis, or code for them is used."""
        files = [site.file for site in self.model.sites]
        return any(
            file.level in ("posix", "netcdf4") or any(each.has_parts for each in file.datasets) for file in files
        )

    def prelude(self) -> str:
        sites = self.model.sites
        datasets = [dataset for site in sites for dataset in site.file.datasets]
        attributes = [a for site in sites if site.kind == "output" for a in all_attributes(site.file)]
        return self.jinja.get_template(f"prelude.{self.ending}.j2").render(
            levels={site.file.level for site in sites},
            types=TYPES,
            used_types=sorted({dataset.type for dataset in datasets}),
            writes=any(site.kind == "output" for site in sites),
            reads=any(site.kind == "input" for site in sites),
            checks_room=any(self.checks_room(site) for site in sites),
            checks_containers=any(self.checks_container(site) for site in sites),
            checks_space=any(site.kind == "output" and site.file.level != "posix" for site in sites),
            has_hints=any(site.file.hints or self.hints(site) for site in sites),
            by_library=self.opens_alone
            or any(site.file.level == "hdf5" or self.checks_room(site) for site in sites)
            or any(self.hints(site) or self.decision(site).depends_on_library for site in sites),
            opens_alone=self.opens_alone,
            has_records=any(dataset.has_records for dataset in datasets),
            has_attributes=bool(attributes),
            has_texts=any(not attribute.type for attribute in attributes),
            has_parts=self.has_parts(),
            share_kinds={share.kind for dataset in datasets for share in shares_of(dataset)},
            has_scalars=any(not dataset.record_shape for dataset in datasets),
            chunks=self.chunks,
            blocks_in_pnetcdf=any(self.blocks_in_pnetcdf(site) for site in sites),
            posts_in_pnetcdf=any(self.posts_in_pnetcdf(site) for site in sites),
            # gfortran warns of loops over the axes from the second on where there is one
            max_axes=max(1 + self.template.is_fortran, *(len(dataset.axes) for dataset in datasets)),
            max_memory=max(len(dataset.memory) for dataset in datasets),
            permutes=any(
                dataset.is_permuted and self.packing(site, dataset) != set(LIBRARIES)
                for site in sites
                for dataset in site.file.datasets
            ),
            buffers=self.buffers,
            module=self.module,
            conversions={each.type for each in attributes if each.type},
            skips_views=self.skips_views,
            checks_arrays=bool(self.arrays),
            is_cxx=self.template.is_cxx,
        )

    @staticmethod
    def checks_room(site: Site) -> bool:
        """Whether an output is refused where there is no room, or where ranks do not share the file.

        With a signature the place is not known before.
        """
        return site.kind == "output" and site.file.level != "posix" and not site.file.signature

    @staticmethod
    def checks_container(site: Site) -> bool:
        """As checks_room, of the level posix."""
        return site.kind == "output" and site.file.level == "posix" and not site.file.signature

    def has_view(self, site: Site) -> bool:
        """Whether MPI-IO must be shown a rank's elements in the file: they are several pieces of a data set."""
        return any(each.view != "contiguous" for each in self.decision(site).contiguity)

    def hints(self, site: Site) -> dict[str, str]:
        """Those that ROMIO is given, unless the template gives them.

        With HDF5, which hands it single pieces of data, ROMIO would sieve metadata alone, and fill the gaps between
        them, behind the end of the file, with what its buffer held before.
        """
        access = "write" if site.kind == "output" else "read"
        hints = self.decision(site).methods["romio"].hints(access)
        if site.file.level == "hdf5" and "romio_ds_write" in hints:
            hints["romio_ds_write"] = "disable"
        return {key: value for key, value in hints.items() if key not in site.file.hints}

    def block(self, site: Site) -> str:
        file, writes, fortran = site.file, site.kind == "output", self.template.is_fortran
        decision = self.decision(site)

        splits: list[Decomposition] = unique([d.decomposition for d in file.datasets if d.decomposition is not None])

        zero, one = ("0_MPI_OFFSET_KIND", "1_MPI_OFFSET_KIND") if fortran else ("0", "1")

        def shape_of(axis: Axis) -> str:
            """Of one record."""
            return one if axis.is_record else f"iosig_n_{axis.name}"

        def range_of(dataset: Dataset, axis: Axis, part: int, otherwise: str) -> str:
            split = dataset.decomposition
            if split is None or axis.name not in split.shares:
                return otherwise
            name = f"{splits.index(split) + 1}_{axis.name}"
            if split.shares[axis.name].kind != "block":
                return (f"iosig_c{name}%elements" if fortran else f"iosig_c{name}.elements") if part else zero
            return f"iosig_s{name}" + (f"({part + 1})" if fortran else f"[{part}]")

        def part_of(dataset: Dataset, axis: Axis) -> str:
            """The name of the variable with this rank's pieces of the axis, or empty."""
            split = dataset.decomposition
            if split is None or axis.name not in split.shares or split.shares[axis.name].kind == "block":
                return ""
            return f"iosig_c{splits.index(split) + 1}_{axis.name}"

        def start_of(dataset: Dataset, axis: Axis) -> str:
            return range_of(dataset, axis, 0, zero)

        def count_of(dataset: Dataset, axis: Axis) -> str:
            whole = shape_of(axis)
            if dataset.decomposition is None and writes:  # the first rank writes it
                return f"iosig_either({whole}, {zero}, iosig_rank == 0)" if fortran else f"iosig_writes ? {whole} : 0"
            return range_of(dataset, axis, 1, whole)

        def ghost_of(dataset: Dataset, axis: Axis) -> str:
            return f"iosig_g{file.datasets.index(dataset) + 1}_{axis.name}" if axis.name in dataset.ghost else zero

        def record_of(dataset: Dataset) -> str:
            """The record; -1 of a data set that has none."""
            return "iosig_record" if dataset.has_records else f"-{one}"

        def number_of(dataset: Dataset) -> int:
            return file.datasets.index(dataset) + 1

        def file_axis(dataset: Dataset, axis: MemoryAxis) -> int:
            """The number of the data set's axis, or -1: as C counts them, slowest first, or as Fortran does."""
            names = [each.name for each in dataset.axes]
            if axis.name not in names:
                return -1
            return len(names) - names.index(axis.name) if fortran else names.index(axis.name)

        def extent_of(dataset: Dataset, axis: MemoryAxis) -> str:
            none = "-1_MPI_OFFSET_KIND" if fortran else "-1"
            return none if axis.extent is None else f"iosig_m{number_of(dataset)}_{axis.name}"

        def index_of(dataset: Dataset, axis: MemoryAxis) -> str:
            none = "0_MPI_OFFSET_KIND" if fortran else "0"
            return none if axis.index is None else f"iosig_k{number_of(dataset)}_{axis.name}"

        def value_of(attribute: Attribute) -> str:
            """As an expression of Fortran. A number without a point is one of 64 bits, before it is converted."""
            value = attribute.value
            value += "_iosig_i8" if attribute.type and number(value) is not None else ""
            return f"iosig_to_{attribute.type}({value})" if attribute.type else value

        def array_of(dataset: Dataset) -> list[str]:
            """The extents of the array from the slowest axis on; empty if a compiler does not know them."""
            extents = self.arrays.get((site.place.line, file.name, dataset.name), ())
            rows = [f"({dataset.data}){'[0]' * n}" for n in range(len(extents) + 1)]
            return [
                "-1" if extent is None else f"(MPI_Offset)(sizeof({rows[n]}) / sizeof({rows[n + 1]}))"
                for n, extent in enumerate(extents)
            ]

        every = [dataset for each in self.model.sites for dataset in each.file.datasets]
        return self.jinja.get_template(f"block.{self.ending}.j2").render(
            has_records=any(dataset.has_records for dataset in every),
            site=site,
            file=file,
            writes=writes,
            checks_room=self.checks_room(site),
            checks_container=self.checks_container(site),
            used_axes=used_axes(file),
            splits=splits,
            lone=any(dataset.decomposition is None for dataset in file.datasets),
            count=len(file.datasets),
            types=TYPES,
            where=self.where,
            quoted=quoted,
            module=self.module,
            value_of=value_of,
            part_of=part_of,
            has_parts=self.has_parts(),
            shape_of=shape_of,
            start_of=start_of,
            count_of=count_of,
            ghost_of=ghost_of,
            record_of=record_of,
            file_axis=file_axis,
            extent_of=extent_of,
            index_of=index_of,
            array_of=array_of,
            is_cxx=self.template.is_cxx,
            buffers=self.buffers,
            chunks=self.chunks,
            is_chunked=lambda dataset: self.is_chunked(site, dataset),
            file_buffers=any(self.packing(site, dataset) for dataset in file.datasets),
            packing=lambda dataset: Flag(self.packing(site, dataset), fortran),
            collective=Flag(decision.libraries(lambda method: method.is_collective), fortran),
            joined=self.joined(site),
            posts=self.posts_in_pnetcdf(site),
            alone=Flag(self.alone(site), fortran),
            opens_alone=self.opens_alone,
            hints=self.hints(site),
            has_view=self.has_view(site),
            skips_views=self.skips_views,
        )

    def code(self, text: str) -> list[str]:
        lines = text.splitlines()
        return [part for line in lines for part in folded(line)] if self.template.is_fortran else lines

    def blocks(self, sites: list[Site]) -> list[str]:
        """Those of one directive, which are one statement."""
        lines = [line for site in sites for line in self.code(self.block(site))]
        return lines if len(sites) == 1 or self.template.is_fortran else ["{", *lines, "}"]

    def text(self, output: str) -> str:
        """The generated file, which is called `output`."""
        first = f"{MARK} from {self.template.path}; change that, not this."
        lines = [
            f"! {first}" if self.template.is_fortran else f"/* {first.replace('*/', '* /').replace('/*', '/ *')} */"
        ]
        sites: dict[int, list[Site]] = {}
        for site in self.model.sites:
            sites.setdefault(site.place.line, []).append(site)
        directives = {each.place.line: each for each in self.template.directives}
        number = 1
        if self.template.include_line == 0 and self.model.sites:
            lines += self.code(self.prelude())
        lines.append(f"@at {number}")
        while number <= len(self.template.lines):
            directive = directives.get(number)
            if directive is None:
                lines.append(self.template.lines[number - 1])
                number += 1
            else:
                number = directive.last_line + 1
                lines += self.as_comment(self.template.lines[directive.place.line - 1 : directive.last_line])
                if directive.place.line in sites:
                    lines += ["@here", *self.blocks(sites[directive.place.line]), f"@at {number}"]
            if number == self.template.include_line + 1 and self.model.sites and number > 1:
                lines += ["@here", *self.code(self.prelude()), f"@at {number}"]
        return "\n".join(self.placed(lines, output))

    def as_comment(self, lines: list[str]) -> list[str]:
        """Directives that no compiler and no check takes for such."""
        if self.template.is_fortran:
            return [line.replace("!$", "! $", 1) for line in lines]
        plain = [line.replace("/*", "/ *").replace("*/", "* /") for line in lines]
        plain[0] = f"/* {plain[0].lstrip()}"
        plain[-1] = f"{plain[-1]} */"
        return plain

    def placed(self, lines: list[str], output: str) -> list[str]:
        """With `#line` for the marks of places."""
        word = "#" if self.template.is_fortran else "#line"
        made: list[str] = []
        for line in lines:
            mark = re.fullmatch(r"@at (\d+)", line)
            if mark:
                made.append(f"{word} {mark[1]} {quoted(self.template.path)}")
            elif line == "@here":
                made.append(f"{word} {len(made) + 2} {quoted(output)}")
            else:
                made.append(line)
        return made


def all_attributes(file: File) -> list[Attribute]:
    return [*file.attributes, *(each for dataset in file.datasets for each in dataset.attributes)]


def shares_of(dataset: Dataset) -> list[Share]:
    return list(dataset.decomposition.shares.values()) if dataset.decomposition is not None else []


def is_packed(file: File, dataset: Dataset) -> bool:
    """Whether elements go through a buffer: MPI-IO converts no types; HDF5 neither changes the order of axes, nor
    converts types in collective transfers; PnetCDF refuses doubles that are no floats, and writes fill values."""
    return dataset.stored != dataset.type or (file.level == "hdf5" and dataset.is_permuted)


def used_axes(file: File) -> list[Axis]:
    """In the order of their declarations: those that a data set has."""
    used = {axis.name for dataset in file.datasets for axis in dataset.axes}
    return [axis for axis in file.axes.values() if axis.name in used]
