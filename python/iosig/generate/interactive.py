"""`iosig generate --interactive`: asks for what the directives say, shows the template beside the code that is made of
it, and writes the directives into the template.

A template with directives is asked for the level and the hints of each file. One without is asked for a file, its axes,
how ranks share them, its data sets, and where it is written. An answer that the checks refuse is asked for again.
"""

from __future__ import annotations

import difflib
import errno
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.prompt import Confirm, Prompt
from rich.syntax import Syntax
from rich.table import Table

from iosig.drafts import replaced
from iosig.generate.build import build
from iosig.generate.model import LEVELS
from iosig.generate.template import Directive, Mistake, Place, Template, read_template

AROUND = 3  # lines of the template that are shown before and after a directive
COMMAND = "from iosig.generate.cli import main; main()"


def read_text(path: Path) -> str:
    """With the ends of lines as they are."""
    return path.read_bytes().decode("utf-8", "surrogateescape")


def offset_of(text: str, place: Place) -> int:
    """Where a place is in the text; columns count bytes."""
    lines = text.split("\n")
    before = lines[place.line - 1].encode("utf-8", "surrogateescape")[: place.column - 1]
    return sum(len(line) + 1 for line in lines[: place.line - 1]) + len(before.decode("utf-8", "surrogateescape"))


def end_of_clause(text: str, begin: int, has_escapes: bool) -> int:
    """Behind the `)` of the clause that begins there. `has_escapes`: quoted texts of C have them."""
    depth, quote, is_escaped = 0, "", False
    for at in range(begin, len(text)):
        if quote:
            ends = text[at] == quote and not is_escaped
            is_escaped = has_escapes and text[at] == "\\" and not is_escaped
            quote = "" if ends else quote
        elif text[at] in "\"'":
            quote = text[at]
        elif text[at] in "()":
            depth += 1 if text[at] == "(" else -1
            if depth == 0 and text[at] == ")":
                return at + 1
    return len(text)


def with_clause(text: str, directive: Directive, name: str, value: str, has_escapes: bool) -> str:
    """The text with `name(value)` in the directive of a file; without the clause if there is no value."""
    clause = directive.clauses.get(name)
    words = f"{name}({value})" if value else ""
    if clause is not None:
        begin = offset_of(text, clause.place)
        end = end_of_clause(text, begin, has_escapes)
        begin -= not words and text[begin - 1] == " "
        return text[:begin] + words + text[end:]
    end = end_of_clause(text, offset_of(text, directive.clauses["level"].place), has_escapes)
    return text[:end] + f" {words}" * bool(words) + text[end:]


def mistakes_in(template: Template) -> list[Mistake]:
    found = template.mistakes + build(template)[1]
    return [mistake for mistake in found if mistake.severity == "error"]


class Conversation:
    """`options`: of the command, for what it generates."""

    def __init__(self, path: str, includes: list[str], defines: list[str], options: list[str]) -> None:
        self.path = Path(path)
        self.includes = [str(self.path.resolve().parent), *includes]
        self.defines = defines
        self.options = [*options, *(word for each in self.includes for word in ("-I", each))]
        self.console = Console()
        self.before = read_text(self.path)
        self.text = self.before
        self.line_end = "\r\n" if "\r\n" in self.text else "\n"
        self.template = read_template(path, includes, defines)
        self.sentinel = "!$sigio" if self.template.is_fortran else "#pragma sigio"

    # -- drafts

    def read(self, text: str) -> Template:
        with TemporaryDirectory() as scratch:
            draft = Path(scratch) / self.path.name
            draft.write_text(text, encoding="utf-8", errors="surrogateescape", newline="")
            return read_template(str(draft), self.includes, self.defines)

    def generated(self) -> str:
        """What the command makes of the text; raises ValueError with its messages if it refuses."""
        with TemporaryDirectory() as scratch:
            draft, output = Path(scratch) / self.path.name, Path(scratch) / f"made{self.path.suffix}"
            draft.write_text(self.text, encoding="utf-8", errors="surrogateescape", newline="")
            command = [sys.executable, "-c", COMMAND, str(draft), "-o", str(output), *self.options]
            done = subprocess.run(command, capture_output=True, text=True, errors="surrogateescape")
            if done.returncode != 0:
                raise ValueError(done.stderr.replace(str(draft), str(self.path)).strip())
            made = output.read_text(encoding="utf-8", errors="surrogateescape")
            return made.replace(str(draft), str(self.path)).replace(str(output), f"the code made of {self.path}")

    # -- questions

    def ask(self, question: str, default: str, refusal: Callable[[str], str]) -> str:
        """An answer that is not refused."""
        while True:
            answer = Prompt.ask(question, console=self.console, default=default, show_default=bool(default)).strip()
            why = refusal(answer)
            if not why:
                return answer
            self.console.print(why, style="red", markup=False, highlight=False)

    def ask_level(self, default: str) -> str:
        return Prompt.ask("Level", console=self.console, choices=list(LEVELS), default=default)

    def refusal_of(self, made: Callable[[str], str]) -> Callable[[str], str]:
        """What is wrong with the text that `made` makes of an answer; empty if it is no worse than the present one."""
        known = {mistake.message for mistake in mistakes_in(self.read(self.text))}

        def refusal(answer: str) -> str:
            found = [each.message for each in mistakes_in(self.read(made(answer))) if each.message not in known]
            return found[0] if found else ""

        return refusal

    def change_level(self, name: str) -> None:
        self.console.print(f"file {name}", style="bold", markup=False)
        directive = self.file(name)
        level = self.ask_level(directive.get("level") or LEVELS[0])
        self.text = with_clause(self.text, directive, "level", level, not self.template.is_fortran)

    def change_hints(self, name: str) -> None:
        directive = self.file(name)
        hints = directive.clauses["hint"].entries if "hint" in directive.clauses else []
        default = ", ".join(f"{entry.key}={entry.values[0]}" for entry in hints)

        def with_hints(answer: str) -> str:
            value = "" if answer == "none" else answer
            return with_clause(self.text, directive, "hint", value, not self.template.is_fortran)

        question = 'Hints, e.g. striping_factor="4", striping_unit="1048576", or none'
        answer = self.ask(question, default or "none", self.refusal_of(with_hints))
        self.text = with_hints(answer)

    def file(self, name: str) -> Directive:
        found = self.read(self.text).directives
        return next(each for each in found if (each.kind, each.name) == ("file", name))

    def add_file(self) -> None:
        """Asks for a file, what is in it, and where it is written."""
        lines = self.text.split("\n")
        carriage = self.line_end.removesuffix("\n")

        def is_line(answer: str) -> str:
            fits = answer.isdecimal() and len(answer) < 10 and 1 <= int(answer) <= len(lines)
            return "" if fits else f"expected a number from 1 to {len(lines)}"

        self.console.print(Syntax(self.text, self.language(), line_numbers=True))
        at = int(self.ask("The arrays and the sizes are declared before line", "", is_line))
        output = int(self.ask("The file is written before line", str(at), is_line))
        added: list[str] = []

        def with_added(directives: list[str]) -> str:
            indent = re.match(r"[ \t]*", lines[at - 1])
            made = [f"{indent[0] if indent else ''}{self.sentinel} {each}{carriage}" for each in directives]
            return "\n".join([*lines[: at - 1], *made, *lines[at - 1 :]])

        def ask(question: str, default: str, made: Callable[[str], str], of_nothing: str = "") -> str:
            refusal = self.refusal_of(lambda answer: with_added([*added, made(answer)]))
            answer = self.ask(question, default, lambda answer: refusal(answer) if answer else of_nothing)
            added.extend([made(answer)] if answer else [])
            return answer

        level = self.ask_level("pnetcdf")
        comm = self.ask("Communicator", "MPI_COMM_WORLD", lambda _: "")
        name = self.ask("A name for the file", "ckpt", lambda each: "" if each.isidentifier() else "expected a name")
        head = f"file {name} level({level}) comm({comm})"
        ask("Its path, an expression of the program", '"checkpoint"', lambda answer: f"{head} path({answer})")
        ask("Axes and extents", "z(NZ) y(NY) x(NX)", lambda answer: f"dims {name} {answer}")
        question = "This rank's part of shared axes, e.g. z: first, count; y: 0, NY, or nothing"

        def split_of(answer: str) -> str:
            in_block = re.fullmatch(r"block\s*\((.*)\)", answer)  # as directives have it
            return f"decomp {name}_ranks block({in_block[1] if in_block else answer})"

        split = ask(question, "", split_of)

        def dataset(answer: str) -> str:
            return f"dataset {name}.{answer}" + f" decomp({name}_ranks)" * bool(split)

        question = "A data set, e.g. temp type(double) dims(z, y, x) data(temp); nothing: no more"
        of_nothing = "expected at least one"
        while ask(question, "", dataset, of_nothing):
            of_nothing = ""
        lines[output - 1 : output - 1] = [f"{self.sentinel} output {name}{carriage}"]
        self.text = with_added(added)
        self.change_hints(name)

    # -- the page

    def language(self) -> str:
        return "fortran" if self.template.is_fortran else "c"

    def show(self) -> None:
        """For each output and input the lines of the template around it, beside the code in their place."""
        made, lines = self.generated().split("\n"), self.text.replace("\r\n", "\n").split("\n")
        for site in (each for each in self.read(self.text).directives if each.kind in ("output", "input")):
            first, last = max(1, site.place.line - AROUND), min(len(lines), site.last_line + AROUND)
            begin = next(at for at, line in enumerate(made) if f"{site.kind} {site.name}: made by" in line)
            mark = f'{site.last_line + 1} "{self.path}"'
            end = next((at for at in range(begin, len(made)) if made[at].endswith(mark)), len(made))
            table = Table(str(self.path), f"generated, {end - begin} lines", expand=True)
            template = Syntax("\n".join(lines[first - 1 : last]), self.language(), line_numbers=True, start_line=first)
            table.add_row(template, Syntax("\n".join(made[begin:end]), self.language()))
            self.console.print(table)

    def hold(self) -> bool:
        """Asks, shows, and writes the template if that is wanted. Returns whether it was."""
        if not self.path.stat().st_mode & 0o222:  # root may write it, and anybody may replace it
            raise PermissionError(errno.EACCES, "the directives cannot be written: nobody may write it", str(self.path))
        files = [each.name for each in self.template.directives if each.kind == "file"]
        for name in files:
            self.change_level(name)
            self.change_hints(name)
        if not files:
            self.add_file()
        self.show()
        if not Confirm.ask(f"Write the directives into {self.path}?", console=self.console, default=True):
            return False
        if read_text(self.path) != self.before:
            before, after, name = self.before.splitlines(), self.text.splitlines(), str(self.path)
            print("\n".join(difflib.unified_diff(before, after, name, name, n=1, lineterm="")))
            text = "was changed meanwhile, and stays as it is; the directives are above, as a patch of what it was"
            raise ValueError(f"{self.path}: {text}")
        with replaced(self.path) as draft:
            draft.chmod(self.path.stat().st_mode)
            draft.write_text(self.text, encoding="utf-8", errors="surrogateescape", newline="")
        return True
