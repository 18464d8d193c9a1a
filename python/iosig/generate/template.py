"""The source that `iosig generate` reads: its text, its directives, and mistakes in them with their places."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iosig import _core

C_SUFFIXES = {".c"}
CXX_SUFFIXES = {".cc", ".cpp", ".cxx", ".C"}
FORTRAN_SUFFIXES = {".f90", ".f95", ".f03", ".f08"}  # in any case, as the core has them
FIXED_FORM_SUFFIXES = {".f", ".for", ".ftn"}
DIRECTIVE = re.compile(r"^\s*(#\s*pragma\s+|!\$)sigio\b", re.IGNORECASE)


@dataclass(frozen=True)
class Place:
    """A part of one line; lines and columns count from 1."""

    file: str
    line: int
    column: int = 1
    end_column: int = 1
    line_text: str = ""

    @staticmethod
    def of(found: dict[str, Any]) -> Place:
        return Place(found["file"], found["line"], found["column"], found["end_column"], found["line_text"])

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Mistake:
    place: Place
    message: str
    severity: str = "error"

    def text(self) -> str:
        """As compilers show it: the place, the message, the line, and a mark below."""
        at = self.place
        head = f"{at.file}:{at.line}:{at.column}: {self.severity}: {self.message}"
        if not at.line_text:
            return head
        marked = at.line_text.replace("\t", " ")
        width = max(1, min(at.end_column, len(marked) + 1) - at.column)
        return f"{head}\n  {marked}\n  {' ' * (at.column - 1)}^{'~' * (width - 1)}"


@dataclass(frozen=True)
class Entry:
    key: str
    type: str
    values: list[str]


@dataclass(frozen=True)
class Clause:
    name: str
    place: Place
    entries: list[Entry]

    @property
    def value(self) -> str:
        """Of a clause with one."""
        return self.entries[0].values[0]


@dataclass(frozen=True)
class Directive:
    """A correct directive; core/iosig/format/directive_text.h has the grammar."""

    kind: str
    name: str
    further: list[str]  # files of an output or input
    dataset: str
    signature: str
    place: Place
    last_line: int
    is_operator: bool
    clauses: dict[str, Clause]

    def get(self, clause: str) -> str | None:
        return self.clauses[clause].value if clause in self.clauses else None


@dataclass
class Template:
    path: str
    lines: list[str]  # without their ends
    include_line: int  # declarations go behind it
    is_fortran: bool
    directives: list[Directive]
    mistakes: list[Mistake] = field(default_factory=list)

    @property
    def is_cxx(self) -> bool:
        return Path(self.path).suffix in CXX_SUFFIXES


def directive_of(found: dict[str, Any]) -> Directive:
    clauses = {}
    for clause in found["clauses"]:
        entries = [Entry(key, type_, values) for key, type_, values in clause["entries"]]
        clauses[clause["name"]] = Clause(clause["name"], Place.of(clause), entries)
    words = (found["kind"], found["name"], found["further"], found["dataset"], found["signature"])
    return Directive(*words, Place.of(found), found["last_line"], found["is_operator"], clauses)


def read_template(path: str, includes: list[str], definitions: list[str]) -> Template:
    """Raises ValueError for a source in a language that is not supported, OSError if it cannot be read."""
    suffix = Path(path).suffix
    is_fortran = suffix.lower() in FORTRAN_SUFFIXES
    if suffix.lower() in FIXED_FORM_SUFFIXES:
        raise ValueError(f"{path}: Fortran in fixed form; expected free form, in a file with the suffix .f90")
    if not is_fortran and suffix not in C_SUFFIXES | CXX_SUFFIXES:
        known = " ".join(sorted(C_SUFFIXES | CXX_SUFFIXES | FORTRAN_SUFFIXES))
        raise ValueError(f"{path}: expected a template in C, C++ or Fortran, with one of the suffixes {known}")
    defined = [
        (name, value if equals else "1") for name, equals, value in (each.partition("=") for each in definitions)
    ]
    found = _core.read_template(path, suffix in CXX_SUFFIXES, includes, defined)
    lines = found["text"].removeprefix("\ufeff").split("\n")  # compilers accept the mark only at the begin of a file
    template = Template(path, lines, found["include_line"], is_fortran, [])
    for mistake in found["findings"]:
        # what else `iosig check` finds in a source is not about generated code
        if mistake["severity"] == "error" or mistake["rule"] == "template":
            template.mistakes.append(Mistake(Place.of(mistake), mistake["message"], mistake["severity"]))
    for directive in map(directive_of, found["directives"]):
        refusal = misplaced(directive, path)
        if refusal:
            template.mistakes.append(Mistake(directive.place, refusal))
        else:
            template.directives.append(directive)
    template.mistakes += inactive(template)
    return template


def misplaced(directive: Directive, path: str) -> str:
    if directive.is_operator:
        return "a directive in _Pragma or in a macro cannot be replaced by code; write #pragma sigio in the source"
    if directive.place.file != path:
        return "a directive in an included file; put it into the source, where the code is to be"
    return ""


def goes_on(template: Template, number: int) -> bool:
    """Whether the line continues the one before it, in Fortran if that is a directive's."""
    before = template.lines[number - 2].rstrip() if number > 1 else ""
    if not template.is_fortran:
        return before.endswith("\\")
    return before.endswith("&") and DIRECTIVE.match(before) is not None


def first_line(template: Template, number: int) -> int:
    """That of the directive which has the line."""
    while goes_on(template, number):
        number -= 1
    return number


def inactive(template: Template) -> list[Mistake]:
    """Directives that conditions or comments leave out stay as they are, which is said; so is one with capital letters,
    which is none in C.
    """
    seen = {line for each in template.directives for line in range(each.place.line, each.last_line + 1)}
    seen |= {first_line(template, mistake.place.line) for mistake in template.mistakes}
    left_out = "a condition or a comment leaves this directive out; -D NAME[=VALUE] defines what the compiler is given"
    capitals = "the word of a directive has small letters in C and C++: #pragma sigio"
    mistakes = []
    for number, line in enumerate(template.lines, 1):
        found = DIRECTIVE.match(line)
        if found is None or number in seen or goes_on(template, number):
            continue
        is_known = template.is_fortran or found[0].endswith("sigio")
        reason = (left_out, "warning") if is_known else (capitals, "error")
        mistakes.append(Mistake(Place(template.path, number, 1, len(line) + 1, line), *reason))
    return mistakes
