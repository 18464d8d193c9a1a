"""`iosig generate`: the command."""

from __future__ import annotations

import errno
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from iosig import command
from iosig.drafts import replaced, writing_to_stdout
from iosig.generate.build import MAX_INT, build
from iosig.generate.costs import SCHEMA, costs_text, read_costs, user_file
from iosig.generate.declarations import Declarations, check_declarations
from iosig.generate.interactive import Conversation
from iosig.generate.measure import TIME_LIMIT_S, measured_costs
from iosig.generate.model import LEVELS, MemoryAxis, Model
from iosig.generate.optimise import POLICIES, Decision, decide
from iosig.generate.render import MARK, Renderer
from iosig.generate.sizes import MOST, Sizes, constants
from iosig.generate.template import Mistake, Template, read_template
from iosig.interruptions import interrupted_by_signals

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

FINDINGS, BAD_INPUT = 1, 3
LOG_EVERY_S = 5.0
RANKS = 4  # for which policies are made unless the user says how many
SHARES = {
    "block": "{1} elements from {0}",
    "cyclic": "{2} elements at a time, dealt to {1} ranks, of which this is number {0}",
    "list": "the {1} elements in {0}",
}


def memory_axis_text(axis: MemoryAxis) -> str:
    if axis.index is not None:
        return f"{axis.name}: {axis.index} of {axis.extent}"
    return axis.name if axis.extent is None else f"{axis.name}: {axis.extent}"


def model_text(model: Model, decisions: list[Decision]) -> str:
    """One line for each thing."""
    lines = []
    for file in model.files.values():
        words = [f"file {file.name}: {file.path}, level {file.level}, comm {file.comm}"]
        words += [file.signature] if file.signature else []
        lines.append(", ".join(words))
        for axis in file.axes.values():
            lines.append(f"  axis {axis.name}: {'records' if axis.is_record else f'{axis.extent} elements'}")
        lines += [f"  attribute {each.name}: {each.type or 'text'} {each.value}" for each in file.attributes]
        for each in file.datasets:
            axes = ", ".join(axis.name for axis in each.axes)
            split = each.decomposition.name if each.decomposition else "none, rank 0 writes it"
            kind = each.type if each.stored == each.type else f"{each.type} as {each.stored}"
            ghost = ", ".join(f"{axis}: {width}" for axis, width in each.ghost.items())
            told = f"  data set {each.name}: {kind} ({axes}) from {each.data}, decomposition {split}"
            lines.append(told + (f", ghost cells {ghost}" if ghost else ""))
            if [axis.name for axis in each.memory] != [axis.name for axis in each.axes]:
                lines.append(f"    in memory ({', '.join(memory_axis_text(axis) for axis in each.memory)})")
    for known in model.decompositions.values():
        lines.append(f"decomposition {known.name}")
        lines += [f"  {axis}: {SHARES[share.kind].format(*share.values)}" for axis, share in known.shares.items()]
    for site, decision in zip(model.sites, decisions, strict=True):
        record = f", record {site.record}" if site.record else ""
        lines.append(f"{site.kind} {site.file.name}{record}: line {site.place.line}, {decision.method}")
    return "\n".join(lines)


def explanation(model: Model, decisions: list[Decision]) -> str:
    lines = []
    for site, decision in zip(model.sites, decisions, strict=True):
        lines.append(f"{site.place}: {site.kind} {site.file.name}, level {site.file.level}: {decision.method}")
        for each in decision.contiguity:
            lines.append(f"  {each.dataset}: memory {each.memory}, file {each.view}, ranks {each.ranks}")
            lines += [f"    {reason}" for reason in each.reasons]
        lines += [f"  {reason}" for reason in decision.reasons]
    return "\n".join(lines)


def check_output(output: str, template: str) -> None:
    """Only what was generated before is replaced."""
    path = Path(output)
    if not path.exists() or not path.is_file():
        return
    if path.samefile(template):
        raise ValueError(f"{output}: this is the template; give another name for what is made of it")
    with path.open(encoding="utf-8", errors="replace") as file:
        if MARK not in file.readline(100):
            raise ValueError(f"{output}: exists and was not made by iosig generate; move it away or give another name")


def converse(template: str, includes: list[str], defines: list[str], options: list[str]) -> None:
    if not sys.stdin.isatty():
        raise typer.BadParameter("needs a terminal", param_hint="--interactive")
    if not Conversation(template, includes, defines, options).hold():
        raise typer.Exit(FINDINGS)


def say(mistakes: list[Mistake]) -> None:
    for mistake in mistakes:
        print(mistake.text(), file=sys.stderr)


def decided(
    template: Template, model: Model, policy: str, ranks: int, assume: list[str], include: list[str], costs: Path | None
) -> list[Decision]:
    known = constants(template, include)
    for each in assume:
        name, _, value = each.partition("=")
        is_number = value.isdecimal() and len(value) <= len(str(MOST)) and int(value) <= MOST
        if not name.isidentifier() or not is_number:
            text = f"expected NAME=VALUE with a whole number below 2^63, got '{each}'"
            raise typer.BadParameter(text, param_hint="--assume")
        known[name] = int(value)
    measured = read_costs(costs)
    return [decide(site, policy, Sizes(ranks, known), measured) for site in model.sites]


class StandardError:
    """Of what is in progress, each line is shown on a terminal, and one every few seconds in a log."""

    last_s = -LOG_EVERY_S

    def say(self, line: str) -> None:
        print(f"iosig generate: {line}", file=sys.stderr, flush=True)
        self.last_s = time.monotonic()

    def progress(self, line: str) -> None:
        if sys.stderr.isatty() or time.monotonic() - self.last_s >= LOG_EVERY_S:
            self.say(line)


def measure_costs(directory: str, ranks: int, output: Path, time_limit_s: float = TIME_LIMIT_S) -> None:
    """Replaces only costs; what keeps it from being written is known before minutes of measuring."""
    if output.is_file() and SCHEMA not in output.read_text(encoding="utf-8", errors="replace"):
        raise ValueError(f"{output}: exists and holds no costs; move it away or give another name")
    output.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(output.parent, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(output))
    try:
        with interrupted_by_signals():
            found = measured_costs(ranks, Path(directory), time_limit_s, StandardError())
    except KeyboardInterrupt as interrupt:
        state = "is as it was" if output.exists() else "was not written"
        print(f"iosig generate: interrupted; {output} {state}. --time-limit makes it shorter", file=sys.stderr)
        raise typer.Exit(128 + interrupt.args[0]) from None
    with replaced(output) as draft:
        draft.write_text(costs_text(found, ranks, directory))
    print(f"wrote {output}", file=sys.stderr)


@app.command(epilog="e.g. iosig generate s3d.c -o s3d_io.c && mpicc s3d_io.c -lpnetcdf")
def generate(
    template: Annotated[str, typer.Argument(metavar="TEMPLATE", help="C, C++ or Fortran with directives.")] = "",
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Default: standard output.")] = "-",
    level: Annotated[str, typer.Option(help=f"Instead of the files' own: {', '.join(LEVELS)}.")] = "",
    policy: Annotated[str, typer.Option(help=f"How data are moved: {', '.join(POLICIES)}.")] = "model",
    ranks: Annotated[
        int, typer.Option(min=1, max=MAX_INT, help="For which number of ranks the policy is made.")
    ] = RANKS,
    assume: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="What a name of the program is then; repeatable.")
    ] = None,
    costs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What --measure found. Default: the user's, or the package's.")
    ] = None,
    measure: Annotated[
        str, typer.Option(metavar="DIR", help="Measure what I/O costs in DIR, into --output or the user's file.")
    ] = "",
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="How long --measure takes for an MPI library, about.")
    ] = TIME_LIMIT_S,
    include: Annotated[
        list[str] | None, typer.Option("--include", "-I", metavar="DIR", help="Where included files are; repeatable.")
    ] = None,
    define: Annotated[
        list[str] | None, typer.Option("--define", "-D", metavar="NAME[=VALUE]", help="As for compilers; repeatable.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Only report mistakes; status 1 if there are errors.")] = False,
    show_model: Annotated[bool, typer.Option("--show-model", help="Print what the directives describe.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Print how the data are moved, and why.")] = False,
    interactive: Annotated[
        bool, typer.Option("--interactive", help="Ask for what directives say, show the code, write the directives.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document, iosig.generate/1.")] = False,
) -> None:
    """Write the parallel I/O code that the directives of a template describe.

    Exit status: 0 done, 1 --check found errors, 2 wrong usage, 3 the template has errors, 4 the system refused.
    """
    if level and level not in LEVELS:
        raise typer.BadParameter(f"expected one of {', '.join(LEVELS)}", param_hint="--level")
    if policy not in POLICIES:
        raise typer.BadParameter(f"expected one of {', '.join(POLICIES)}", param_hint="--policy")
    if measure:
        measure_costs(measure, ranks, user_file() if output == "-" else Path(output), time_limit)
        return
    if not template:
        raise typer.BadParameter("TEMPLATE is required", param_hint="TEMPLATE")
    if interactive:
        chosen = [
            "--policy",
            policy,
            "--ranks",
            str(ranks),
            *(word for each in assume or [] for word in ("--assume", each)),
        ]
        chosen += ["--costs", str(costs)] if costs else []
        converse(template, include or [], define or [], chosen)
        if output == "-":
            return
    read = read_template(template, include or [], define or [])
    model, mistakes = build(read, level)
    mistakes += read.mistakes
    declarations = Declarations()
    if all(each.severity != "error" for each in mistakes):
        declarations = check_declarations(read, model, include or [], define or [])
        mistakes += declarations.mistakes
    mistakes = sorted(mistakes, key=lambda each: (each.place.line, each.place.column))
    errors = sum(each.severity == "error" for each in mistakes)
    decisions = [] if errors else decided(read, model, policy, ranks, assume or [], include or [], costs)
    only_shows = check or show_model or explain
    writes_file = not only_shows and not errors and output != "-"
    if not only_shows and not errors:
        check_output(output, template)
        made = Renderer(read, model, decisions, declarations.arrays).text("<stdout>" if output == "-" else output)
        if writes_file:
            with replaced(Path(output)) as draft:
                draft.write_text(made, encoding="utf-8", errors="surrogateescape")
        elif not json_:
            with writing_to_stdout():
                sys.stdout.buffer.write(made.encode("utf-8", "surrogateescape"))
    if json_:
        document: dict[str, Any] = {"schema": "iosig.generate/1", "template": template}
        document["output"] = output if writes_file else None
        document["findings"] = [{"severity": m.severity, "message": m.message, **asdict(m.place)} for m in mistakes]
        document |= model.document() if not errors else {}
        document["decisions"] = [decision.document() for decision in decisions]
        print(json.dumps(document, indent=2))
    else:
        say(mistakes)
        if show_model and not errors:
            print(model_text(model, decisions))
        if explain and not errors:
            print(explanation(model, decisions))
    if errors:
        raise typer.Exit(FINDINGS if check else BAD_INPUT)


def main() -> None:
    command.run(app, "iosig generate")
