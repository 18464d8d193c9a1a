"""Directives to the model: names are resolved, and what does not fit together is refused at its place.

Expressions are compared where they are numbers, otherwise by the generated code at run time.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import replace

from iosig.generate.model import (
    LEVELS,
    Attribute,
    Axis,
    Dataset,
    Decomposition,
    File,
    MemoryAxis,
    Model,
    Share,
    Site,
    number,
)
from iosig.generate.template import Clause, Directive, Entry, Mistake, Place, Template

RAW_LEVELS = ("mpiio", "posix")  # their files have no header
RECORD_LEVELS = ("pnetcdf", "hdf5", "netcdf4")  # their files say how many records they have
MAX_INT = 2**31 - 1
MAX_FORTRAN_AXIS = 50
EACH = "each"  # stands for the index of each component
ALL = "none"  # decomp(none): each rank has all of the data set
# The values of each kind of share, and their least values.
SHARE_VALUES = {
    "block": (("first index", 0), ("number of elements", 0)),
    "cyclic": (("number of this rank", 0), ("number of ranks", 1), ("number of elements at a time", 1)),
    "list": (("list", None), ("number of elements", 0)),
}


def nearest(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean '{found[0]}'?" if found else ""


def listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"


def at_component(memory: list[MemoryAxis], index: str) -> list[MemoryAxis]:
    """The axes of one of the data sets that each(...) names."""
    return [replace(axis, index=index) if axis.index == EACH else axis for axis in memory]


class Builder:
    def __init__(self, template: Template, level: str) -> None:
        self.template = template
        self.level = level
        self.model = Model()
        self.mistakes: list[Mistake] = []
        self.used: set[str] = set()  # decompositions

    def refuse(self, place: Place, message: str, severity: str = "error") -> None:
        mistake = Mistake(place, message, severity)
        if mistake not in self.mistakes:  # of a file's decomp, say, for each of its data sets
            self.mistakes.append(mistake)

    def build(self) -> Model:
        for directive in self.template.directives:
            self.check_reserved(directive)
            getattr(self, f"add_{directive.kind}")(directive)
        if not self.mistakes:
            self.check_uses()
        return self.model

    def check_reserved(self, directive: Directive) -> None:
        for clause in directive.clauses.values():
            if any(re.search(r"\biosig_", value, re.IGNORECASE) for entry in clause.entries for value in entry.values):
                self.refuse(clause.place, "names that begin with 'iosig_' are those of the generated code")

    # -- declarations

    def add_file(self, directive: Directive) -> None:
        known = self.model.files.get(directive.name)
        if known is not None:
            return self.refuse(
                directive.place, f"file '{known.name}' is declared again; first in line {known.place.line}"
            )
        level = self.level or str(directive.get("level"))
        if level not in LEVELS:
            at = directive.clauses["level"].place
            return self.refuse(at, f"level '{level}' cannot be generated; expected {listed(LEVELS)}")
        if level == "netcdf4" and self.template.is_fortran:
            text = "level 'netcdf4' cannot be generated in Fortran, whose netCDF library is not parallel; expected"
            self.refuse(directive.place, f"{text} {listed(each for each in LEVELS if each != level)}")
        other = {"pnetcdf": "netcdf4", "netcdf4": "pnetcdf"}.get(level)
        for file in self.model.files.values():
            if file.level == other:
                text = f"level '{level}', and '{other}' of '{file.name}' in line {file.place.line}"
                self.refuse(directive.place, f"{text}: headers of both define the same names; expected one of them")
        hints = {e.key: e.values[0] for e in directive.clauses["hint"].entries} if "hint" in directive.clauses else {}
        if hints and level == "posix":
            text = f"level 'posix' does without MPI-IO; the hints of '{directive.name}' are left out"
            self.refuse(directive.clauses["hint"].place, text, "warning")
            hints = {}
        if "cb_nodes" in hints:
            text = "with Open MPI 4.1's own MPI-IO (OMPIO, component vulcan) the hint 'cb_nodes' can damage data"
            how = "leave it out there, or run with --mca fcoll dynamic or --mca io romio321"
            self.refuse(directive.clauses["hint"].place, f"{text}; {how}", "warning")
        self.model.files[directive.name] = File(
            directive.name,
            str(directive.get("path")),
            level,
            str(directive.get("comm")),
            directive.get("access") or "",
            hints,
            directive.get("decomp") or "",
            directive.signature,
            directive.place,
        )
        return None

    def refuse_undeclared(self, kind: str, name: str, user: Directive, place: Place, known: Iterable[str]) -> None:
        """Says that `user` names what is not declared before; of what was refused where it is declared, nothing."""
        declared = [each for each in self.template.directives if (each.kind, each.name) == (kind, name)]
        later = next((each.place.line for each in declared if each.place.line > user.place.line), 0)
        if declared and not later:
            return
        hint = f"; it is declared later, in line {later}" if later else nearest(name, known)
        hint = hint or f"; declare it: #pragma sigio {kind} {name} ..."
        self.refuse(place, f"no {kind} '{name}' is declared before{hint}")

    def file_of(self, directive: Directive) -> File | None:
        file = self.model.files.get(directive.name)
        if file is None:
            every = [each.name for each in self.template.directives if each.kind == "file"]
            self.refuse_undeclared("file", directive.name, directive, directive.place, every)
        elif directive.kind not in ("output", "input"):
            for site in self.model.sites:
                if site.file is file:
                    what = f"'{directive.kind}' after the {site.kind} of '{file.name}' in line {site.place.line}"
                    self.refuse(directive.place, f"{what}; put it before")
                    return None
        return file

    def add_dims(self, directive: Directive) -> None:
        file = self.file_of(directive)
        for clause in directive.clauses.values() if file is not None else ():
            assert file is not None
            if clause.name in file.axes:
                line = file.axes[clause.name].place.line
                self.refuse(
                    clause.place, f"axis '{clause.name}' of '{file.name}' is declared again; first in line {line}"
                )
                continue
            extent = number(clause.value)
            if self.template.is_fortran and len(clause.name) > MAX_FORTRAN_AXIS:
                text = f"the name of an axis has {len(clause.name)} characters; expected at most {MAX_FORTRAN_AXIS}"
                self.refuse(clause.place, f"{text}: names of the generated code are longer, and Fortran's have 63")
            if extent is not None and not 1 <= extent <= MAX_INT:
                self.refuse(clause.place, f"axis '{clause.name}' has {extent} elements; expected 1 to {MAX_INT}")
            axis = Axis(clause.name, clause.value, clause.place)
            if axis.is_record:
                self.check_record_axis(axis, file)
            file.axes[clause.name] = axis

    def check_record_axis(self, axis: Axis, file: File) -> None:
        known = file.record_axis
        if file.level not in RECORD_LEVELS:
            text = f"axis '{axis.name}' is unlimited, but level '{file.level}' has no place for the number of records"
            self.refuse(axis.place, f"{text}; expected the level {listed(RECORD_LEVELS)}, or an extent")
        elif known is not None:
            text = f"'{file.name}' has the unlimited axis '{known.name}' already, declared in line {known.place.line}"
            self.refuse(axis.place, f"{text}; expected one")

    def add_attr(self, directive: Directive) -> None:
        file = self.file_of(directive)
        if file is None:
            return
        for clause in directive.clauses.values():
            if any(each.name == clause.name for each in file.attributes):
                self.refuse(clause.place, f"attribute '{clause.name}' of '{file.name}' is given again")
            file.attributes.append(Attribute(clause.name, clause.entries[0].type, clause.value, clause.place))

    def add_decomp(self, directive: Directive) -> None:
        known = self.model.decompositions.get(directive.name)
        if directive.name == ALL:
            return self.refuse(
                directive.place, f"'{ALL}' is no decomp, but that each rank has all; give it another name"
            )
        if known is not None:
            return self.refuse(
                directive.place, f"decomp '{known.name}' is declared again; first in line {known.place.line}"
            )
        extents: dict[str, list[str]] = {}
        for file in self.model.files.values():
            for axis in file.axes.values():
                extents.setdefault(axis.name, []).append(axis.extent)
        shares: dict[str, Share] = {}
        for clause in directive.clauses.values():
            for entry in clause.entries:
                self.check_share(directive, clause, entry, set(extents))
                if entry.key in shares:
                    self.refuse(clause.place, f"decomp '{directive.name}' splits '{entry.key}' twice")
                values = (*entry.values, "1") if clause.name == "cyclic" and len(entry.values) == 2 else entry.values
                shares[entry.key] = Share(clause.name, tuple(values))
        if not any(share.may_depend_on_rank(extents.get(axis, ())) for axis, share in shares.items()):
            text = "every rank has the same block: they overlap; expected a first index that depends on the rank"
            self.refuse(directive.place, f"decomp '{directive.name}': {text}")
        self.model.decompositions[directive.name] = Decomposition(directive.name, shares, directive.place)
        return None

    def check_share(self, directive: Directive, clause: Clause, entry: Entry, axes: set[str]) -> None:
        axis = entry.key
        if axis not in axes:
            hint = nearest(axis, axes) or "; declare it with dims before"
            self.refuse(directive.place, f"decomp '{directive.name}' splits '{axis}', which is no axis{hint}")
        values = [number(value) for value in entry.values]
        for (what, least), value in zip(SHARE_VALUES[clause.name], values, strict=False):
            if value is not None and least is None:
                self.refuse(clause.place, f"the {what} of '{axis}' is the number {value}; expected an array of indices")
            elif value is not None and least is not None and value < least:
                self.refuse(clause.place, f"the {what} of '{axis}' is {value}; expected at least {least}")
        if clause.name == "cyclic" and values[0] is not None and values[1] is not None and values[0] >= values[1]:
            text = f"the number of this rank is {values[0]}, of {values[1]}; expected 0 to {values[1] - 1}"
            self.refuse(clause.place, f"{text} for '{axis}'")

    def add_dataset(self, directive: Directive) -> None:
        file = self.file_of(directive)
        if file is None:
            return None
        components = self.components_of(directive)
        arrays = {directive.dataset: str(directive.get("data"))}
        if not directive.dataset and not components:
            arrays = {entry.key: entry.values[0] for entry in directive.clauses["data"].entries}
        for each in components or arrays:
            known = next((one for one in file.datasets if one.name == each), None)
            if known is not None:
                text = f"data set '{file.name}.{each}' is declared again; first in line {known.place.line}"
                return self.refuse(directive.place, text)
        name = f"{file.name}.{next(iter(components or arrays))}"
        axes = self.axes_of(directive.clauses["dims"], file, name)
        if len(axes) < len(directive.clauses["dims"].entries):
            return None  # what else is wrong may follow from that
        slowest = axes[-1] if self.template.is_fortran else axes[0]
        for axis in axes:
            if axis.is_record and axis is not slowest:
                text = f"'{name}' has the unlimited axis '{axis.name}' inside; expected it as the slowest axis"
                self.refuse(
                    directive.clauses["dims"].place, f"{text}, the {'last' if self.template.is_fortran else 'first'}"
                )
                return None
        bounded = [axis.name for axis in axes if not axis.is_record]
        split = self.decomposition_of(directive, file, bounded, name)
        every = [axis for axis in bounded if split is None or axis in split.shares]
        ghost = self.ghost_of(directive.clauses.get("ghost"), bounded, every, name)
        memory = self.memory_of(directive, components, axes, name)
        for word in ("memory", "as"):
            if word in directive.clauses and split is not None and split.has_parts:
                text = f"'{word}' of '{name}', whose decomp '{split.name}' deals or lists elements; expected blocks"
                self.refuse(directive.clauses[word].place, text)
        attr = directive.clauses.get("attr")
        attributes = [Attribute(e.key, e.type, e.values[0], attr.place) for e in attr.entries] if attr else []
        if self.template.is_fortran:
            axes.reverse()  # Fortran names the fastest axis first
            memory.reverse()
            self.check_fortran(directive, [axis for axis in axes if axis.is_record])
        types = (str(directive.get("type")), self.stored_type(directive, file.level))
        data = str(directive.get("data"))
        places = (directive.place, directive.clauses["data"].place)
        one = Dataset(directive.dataset, *types, axes, data, split, ghost, attributes, memory, *places)
        file.datasets += [replace(one, name=each, memory=at_component(memory, at)) for each, at in components.items()]
        file.datasets += [] if components else [replace(one, name=each, data=array) for each, array in arrays.items()]
        return None

    def components_of(self, directive: Directive) -> dict[str, str]:
        """The index of each data set that each(...) names; without one it is that behind the one before."""
        clause = directive.clauses.get("each")
        found: dict[str, str] = {}
        given, offset = "", 0
        for entry in clause.entries if clause else []:
            assert clause is not None
            given, offset = (entry.values[1], 0) if len(entry.values) > 1 else (given, offset)
            base = number(given or "0")
            index = str(base + offset) if base is not None else f"({given}) + {offset}" if offset else given
            twin = next((name for name, known in found.items() if known == index), None)
            if twin is not None:
                text = f"'{twin}' and '{entry.key}' are both component {index} of '{entry.values[0]}'"
                self.refuse(clause.place, f"{text}; expected different ones")
            found[entry.key] = index
            offset += 1
        return found

    def stored_type(self, directive: Directive, level: str) -> str:
        """That of the elements in the file."""
        in_memory = str(directive.get("type"))
        stored = directive.get("as") or in_memory
        if stored != in_memory and in_memory not in ("double", "float"):
            text = (
                f"elements of type '{in_memory}' cannot be written as '{stored}'; expected type(double) or type(float)"
            )
            self.refuse(directive.clauses["as"].place, text)
        elif stored != in_memory and level in ("netcdf4", "posix"):
            text = f"level '{level}' writes elements as they are in memory; expected 'mpiio', 'pnetcdf' or 'hdf5'"
            self.refuse(directive.clauses["as"].place, text)
        return stored

    def memory_of(
        self, directive: Directive, components: dict[str, str], every: list[Axis], name: str
    ) -> list[MemoryAxis]:
        """The axes of the array as they are listed, which are `every` unless they are given. It has one record."""
        axes = [axis.name for axis in every if not axis.is_record]
        records = [MemoryAxis(axis.name, None) for axis in every if axis.is_record]
        clause = directive.clauses.get("memory")
        if clause is None:
            for word in ("component", "each"):
                if word in directive.clauses:
                    text = f"'{word}' needs memory(...) with the axis that it names, e.g. memory(z, y, x, v: NV)"
                    self.refuse(directive.clauses[word].place, text)
            return [MemoryAxis(axis.name, None) for axis in every]
        listed_axes = {entry.key: entry.values[0] if entry.values else None for entry in clause.entries}
        for axis in axes:
            if axis not in listed_axes:
                hint = nearest(axis, [each for each in listed_axes if each not in axes])
                self.refuse(clause.place, f"'{name}' has the axis '{axis}', which memory(...) lacks{hint}")
        further = {axis: extent for axis, extent in listed_axes.items() if axis not in axes}
        indices = self.component_of(directive, components, further, name)
        found = [MemoryAxis(axis, extent, indices.get(axis)) for axis, extent in listed_axes.items()]
        return [*found, *records] if self.template.is_fortran else [*records, *found]

    def component_of(
        self, directive: Directive, components: dict[str, str], further: dict[str, str | None], name: str
    ) -> dict[str, str]:
        """The index along each axis of `further`, which the data set does not have; EACH of that of each(...)."""
        memory = directive.clauses["memory"]
        indices: dict[str, str] = {}
        for word in ("component", "each"):
            clause = directive.clauses.get(word)
            if clause is None:
                continue
            pairs = [(entry.key, entry.values[0]) for entry in clause.entries]
            if word == "each":
                pairs = [(clause.value, index) for index in components.values()]
            for axis, index in pairs:
                self.check_component(clause, axis, index, further)
            for axis, index in dict(pairs).items():
                if axis in indices:
                    text = f"component({axis}: {indices[axis]}), and each({axis}: ...) of the same axis"
                    self.refuse(clause.place, f"{text}; expected one of them")
                indices[axis] = EACH if word == "each" else index
        for axis, extent in further.items():
            if extent is None:
                text = f"memory has the axis '{axis}', which '{name}' does not have: it needs an extent, {axis}: N"
                self.refuse(memory.place, text)
            elif axis not in indices:
                text = f"memory has the axis '{axis}', which '{name}' does not have; expected component({axis}: INDEX)"
                self.refuse(memory.place, text)
        return indices

    def check_component(self, clause: Clause, axis: str, index: str, further: dict[str, str | None]) -> None:
        if axis not in further:
            hint = nearest(axis, further) or f"; expected {listed(further)}"
            return self.refuse(clause.place, f"component of '{axis}', which is no axis that only memory has{hint}")
        at, elements = number(index), number(further[axis] or "")
        if at is not None and (at < 0 or (elements is not None and at >= elements)):
            most = f" to {elements - 1}" if elements is not None else " or more"
            self.refuse(clause.place, f"component {at} of '{axis}'; they are counted from 0: expected 0{most}")
        return None

    def check_fortran(self, directive: Directive, records: list[Axis]) -> None:
        """What Fortran does not have."""
        clause = directive.clauses["type"]
        if clause.value.startswith("uint"):
            self.refuse(clause.place, f"Fortran has no type '{clause.value}'; expected one with a sign")
        if "as" in directive.clauses and len(directive.clauses["dims"].entries) == len(records):
            self.refuse(
                directive.clauses["as"].place, "a single number is written as it is; convert it in an expression"
            )

    def axes_of(self, dims: Clause, file: File, name: str) -> list[Axis]:
        axes: list[Axis] = []
        for axis in (entry.values[0] for entry in dims.entries):
            if axis not in file.axes:
                hint = nearest(axis, file.axes) or f"; expected {listed(file.axes)}"
                self.refuse(dims.place, f"'{name}' has the axis '{axis}', which '{file.name}' does not have{hint}")
            elif file.axes[axis] in axes:
                self.refuse(
                    dims.place, f"'{name}' has the axis '{axis}' twice; declare a second one of the same extent"
                )
            else:
                axes.append(file.axes[axis])
        return axes

    def decomposition_of(self, directive: Directive, file: File, axes: list[str], name: str) -> Decomposition | None:
        """That of the data set, or of the file if the data set has one of its axes."""
        clause = directive.clauses.get("decomp")
        wanted, place = (clause.value, clause.place) if clause else (file.decomposition, directive.place)
        if wanted in ("", ALL):
            return None
        split = self.model.decompositions.get(wanted)
        if split is None:
            place = clause.place if clause else file.place
            self.refuse_undeclared("decomp", wanted, directive, place, self.model.decompositions)
            return None
        self.used.add(split.name)
        if clause is None and not any(axis in split.shares for axis in axes):
            return None
        for axis, share in split.shares.items():
            if axis in file.axes and file.axes[axis].is_record:
                text = f"decomp '{split.name}' splits the unlimited axis '{axis}'; expected others"
                self.refuse(place, f"{text}: all ranks write a record together")
                continue
            if axis not in axes:
                text = f"decomp '{split.name}' splits '{axis}', which is no axis of '{name}'"
                text += ": ranks would write the same elements"
                self.refuse(place, f"{text}; decomp({ALL}) of a data set: the first rank writes it")
                continue
            if share.kind == "cyclic":
                continue
            extent, first, elements = (number(each) for each in (file.axes[axis].extent, *share.values))
            if extent is not None and elements and (first or 0) + elements > extent:
                text = f"decomp '{split.name}' reaches element {(first or 0) + elements} of '{axis}'"
                self.refuse(place, f"{text}, which has {extent}")
        return split

    def ghost_of(self, clause: Clause | None, axes: list[str], all_axes: list[str], name: str) -> dict[str, str]:
        """`all_axes`: those that have them where none is named."""
        ghost: dict[str, str] = {}
        for entry in clause.entries if clause else []:
            assert clause is not None
            width = number(entry.values[0])
            if not entry.key and len(clause.entries) > 1:
                self.refuse(
                    clause.place, f"'{entry.values[0]}' has no axis; expected AXIS: WIDTH, or one width for all"
                )
            elif entry.key not in [*axes, ""]:
                hint = nearest(entry.key, axes) or f"; expected {listed(axes)}"
                self.refuse(
                    clause.place, f"'{name}' has ghost cells along '{entry.key}', which is none of its axes{hint}"
                )
            elif width is not None and width < 0:
                self.refuse(clause.place, f"the width of the ghost cells is {width}; expected at least 0")
            elif width != 0:
                ghost |= dict.fromkeys([entry.key] if entry.key else all_axes, entry.values[0])
        return ghost

    # -- places of code

    def add_output(self, directive: Directive) -> None:
        for name in (directive.name, *directive.further):
            self.add_site(replace(directive, name=name), "write")

    def add_input(self, directive: Directive) -> None:
        for name in (directive.name, *directive.further):
            self.add_site(replace(directive, name=name), "read")

    def add_site(self, directive: Directive, access: str) -> None:
        file = self.file_of(directive)
        if file is None:
            return
        kind = directive.kind
        if file.access not in ("", access):
            self.refuse(
                directive.place, f"{kind} of '{file.name}', which line {file.place.line} declares access({file.access})"
            )
        if all((each.kind, each.name) != ("dataset", file.name) for each in self.template.directives):
            self.refuse(directive.place, f"{kind} of '{file.name}', which has no data set; declare them before")
        record = directive.get("record")
        self.check_record(directive, file, record)
        before = self.model.sites[-1] if self.model.sites else None
        if (
            before is not None
            and before.file is file
            and before.kind == kind == "output"
            and before.record == record
            and self.adjoin(before, directive)
        ):
            self.refuse(
                directive.place, f"'{file.name}' is written twice at once; line {before.place.line} does it already"
            )
        status = directive.get("status")
        self.model.sites.append(Site(kind, file, record, status, directive.place, directive.last_line))

    def check_record(self, directive: Directive, file: File, record: str | None) -> None:
        axis = file.record_axis
        if record is None and axis is not None:
            text = f"'{file.name}' has the unlimited axis '{axis.name}'"
            self.refuse(directive.place, f"{text}: which record? expected record(...), from 0, e.g. record(step)")
        elif record is not None and axis is None:
            text = f"'{file.name}' has no records; expected an unlimited axis, e.g. dims {file.name} t(unlimited)"
            self.refuse(directive.clauses["record"].place, text)
        elif record is not None and (number(record) or 0) < 0:
            self.refuse(directive.clauses["record"].place, f"the record is {record}; expected at least 0")
        if axis is not None and file.datasets and not any(dataset.has_records for dataset in file.datasets):
            self.refuse(axis.place, f"no data set of '{file.name}' has the unlimited axis '{axis.name}'")

    def adjoin(self, before: Site, directive: Directive) -> bool:
        """Whether there is no code between the two."""
        own = {n for each in self.template.directives for n in range(each.place.line, each.last_line + 1)}
        between = range(before.last_line + 1, directive.place.line)
        return all(n in own or not self.template.lines[n - 1].strip() for n in between)

    def check_paths(self) -> None:
        """Two files with one path: of those in one output, the second one replaces the first."""
        written = [site for site in self.model.sites if site.kind == "output"]
        told: set[tuple[str, str]] = set()
        for n, site in enumerate(written):
            for before in written[:n]:
                names = (before.file.name, site.file.name)
                if before.file is site.file or before.file.path != site.file.path or names in told:
                    continue
                told |= {names, names[::-1]}
                text = f"'{site.file.name}' has the path of '{before.file.name}' in line {before.file.place.line}"
                if before.place.line == site.place.line:
                    self.refuse(
                        site.file.place, f"{text}: the output in line {site.place.line} would replace that file"
                    )
                else:
                    text += f", and replaces it, if the expression has the same value in lines {before.place.line}"
                    self.refuse(site.file.place, f"{text} and {site.place.line}", "warning")

    def check_uses(self) -> None:
        self.check_paths()
        for split in self.model.decompositions.values():
            if split.name not in self.used:
                self.refuse(split.place, f"decomp '{split.name}' is not used", "warning")
        for file in self.model.files.values():
            if all(site.file is not file for site in self.model.sites):
                self.refuse(file.place, f"file '{file.name}' has neither output nor input: no code is made", "warning")
            lost = [*file.attributes, *(each for dataset in file.datasets for each in dataset.attributes)]
            if lost and file.level in RAW_LEVELS:
                text = (
                    f"level '{file.level}' has no place for attributes; the {len(lost)} of '{file.name}' are left out"
                )
                self.refuse(lost[0].place, text, "warning")


def build(template: Template, level: str = "") -> tuple[Model, list[Mistake]]:
    """The model of the template, and mistakes in it. `level` replaces those of its files.

    Of a template with errors in its directives there is no model: names would seem to be missing.
    """
    builder = Builder(template, level)
    if any(mistake.severity == "error" for mistake in template.mistakes):
        return builder.model, []
    model = builder.build()
    if not template.directives and not template.mistakes:
        builder.refuse(Place(template.path, 1), "the source has no directive; expected #pragma sigio file ...")
    order = sorted(builder.mistakes, key=lambda each: (each.place.line, each.place.column))
    return model, order
