"""`iosig repro list` and `iosig repro run ID...`: runs artefacts, writes what came out, and says what holds.

A result is a directory OUTPUT/ID with ID.png, ID.html, data.csv and result.json. It is made under a temporary name
and renamed when it is complete; an interrupted run leaves nothing.
"""

from __future__ import annotations

import difflib
import html
import importlib
import json
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from matplotlib.figure import Figure

from iosig import command, figures, panels
from iosig.command import CHECKOUT
from iosig.interruptions import interrupted_by_signals, scratch_in, undisturbed
from iosig.repro.artefact import COUNTED_AS, MEASURED, Artefact, Fact, Result, Setting, Source, Verdict
from iosig.repro.machine import busy_note

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="The papers' tables and figures, made again and held against what the papers say of them.",
)

INTERRUPTED = 130
PICTURED_LINES = 4  # of the setup; more would cover the picture
RESULT_NAMES = ("data.csv", "result.json")


def artefacts() -> dict[str, Artefact]:
    """Every artefact of the checkout's directory repro/, by ID."""
    if not (CHECKOUT / "repro" / "__init__.py").exists():
        raise OSError(f"{CHECKOUT}/repro: not found; iosig repro works in a checkout of IOSIG: run `make python` there")
    sys.path.insert(0, str(CHECKOUT))
    files = sorted((CHECKOUT / "repro").glob("[a-z]*_*.py"))
    found = [known for file in files for known in importlib.import_module(f"repro.{file.stem}").ARTEFACTS]
    return {known.id: known for known in sorted(found, key=lambda known: known.id)}


class Progress:
    """One line on stderr: drawn over on a terminal; elsewhere printed only when it changes before its first colon."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.word = ""

    def __call__(self, text: str) -> None:
        word = text.split(":")[0]
        if sys.stderr.isatty():
            print(f"\r\033[K{self.name}: {text}", end="", file=sys.stderr, flush=True)
        elif word != self.word:
            print(f"{self.name}: {word}", file=sys.stderr, flush=True)
        self.word = word

    def end(self) -> None:
        if sys.stderr.isatty() and self.word:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def shown(value: float | str, unit: str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.5g} {unit}".rstrip()


def aligned(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def facts_rows(facts: list[Fact]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("VERDICT", "PUBLISHED", "HERE", "WHERE", "WHAT")]
    for fact in facts:
        judged = f" ({fact.judged})" if fact.judged else ""
        numbers = (shown(fact.published, fact.unit), shown(fact.found, fact.unit))
        rows.append((fact.verdict, *numbers, fact.where, fact.claim + judged))
    return rows


def facts_html(artefact: Artefact, result: Result) -> str:
    header, *rows = facts_rows(result.facts)
    text = f"<p>{html.escape(outcome(artefact, result), quote=False)}</p>\n<table>\n"
    text += f"<tr>{''.join(f'<th>{cell.capitalize()}</th>' for cell in header)}</tr>\n"
    for row in rows:
        text += f"<tr>{''.join(f'<td>{html.escape(cell, quote=False)}</td>' for cell in row)}</tr>\n"
    return text + "</table>\n"


def outcome(artefact: Artefact, result: Result) -> str:
    counts = [f"{result.count(verdict)} {word}" for verdict, word in COUNTED_AS.items() if result.count(verdict)]
    return f"{artefact.id}: of {len(result.facts)} published facts {', '.join(counts)}"


def setup_text(setting: Setting, result: Result) -> str:
    measured = setting.source != Source.VIRTUAL
    return ("--quick: " if setting.quick and measured else "") + result.setup


def document(artefact: Artefact, setting: Setting, result: Result) -> dict[str, Any]:
    return {
        "id": artefact.id,
        "title": artefact.title,
        "where": artefact.where,
        "source": setting.source,
        "quick": setting.quick,
        "setup": setup_text(setting, result),
        "verdict": result.verdict,
        "facts": [asdict(fact) for fact in result.facts],
    }


def write_result(directory: Path, artefact: Artefact, setting: Setting, result: Result) -> None:
    records = json.loads(result.data.to_json(orient="records", double_precision=15))
    whole = {"schema": "iosig.repro/1", **document(artefact, setting, result), "data": records}
    (directory / "result.json").write_text(json.dumps(whole, indent=2) + "\n")
    result.data.to_csv(directory / "data.csv", index=False)
    rows = (len(result.panels) + 2) // 3
    width = 9 if len(result.panels) == 1 else 15
    setup = setup_text(setting, result)
    lines = textwrap.wrap(setup, 10 * width, max_lines=PICTURED_LINES, placeholder=" ... (more in result.json)")
    title = f"{artefact.id}: {artefact.title}\nsource: {artefact.source_text(setting.source)}\n"
    figure = Figure(figsize=(width, 1 + 4.5 * rows), layout="constrained")
    panels.plot_panels(figure, result.panels)
    interactive = panels.explore_panels(result.panels)
    below = facts_html(artefact, result)
    figures.write_picture(directory / f"{artefact.id}.png", figure, title + "\n".join(lines))
    figures.write_page(directory / f"{artefact.id}.html", interactive, title + setup, rows, below)


def names_of(artefact: Artefact) -> set[str]:
    return {f"{artefact.id}.png", f"{artefact.id}.html", *RESULT_NAMES}


def check_place(place: Path, known: set[str]) -> None:
    """An older result may be replaced; a directory with anything else in it is refused, before the experiment."""
    for each in (place.parent, place):
        if not each.exists():
            return
        if not each.is_dir():
            raise NotADirectoryError(f"{each} is no directory; move it away or give --output")
    foreign = sorted(entry.name for entry in place.iterdir() if entry.name not in known or not entry.is_file())
    if foreign:
        raise FileExistsError(f"{place} holds '{foreign[0]}', which is no result; move it away or give --output")


def run_one(artefact: Artefact, source: Source, quick: bool, output: Path) -> tuple[dict[str, Any], Result]:
    """Runs one artefact and puts its result into `output`; what it says as JSON, too."""
    progress = Progress(artefact.id)
    place = output / artefact.id
    check_place(place, names_of(artefact))
    with scratch_in(output) as scratch:
        made, work = scratch / "made", scratch / "work"
        made.mkdir()
        work.mkdir()
        setting = Setting(source, quick, work, progress)
        busy = busy_note() if source in MEASURED else ""
        if busy:
            progress(busy)
        result = artefact.run(setting)
        if busy:
            result = replace(result, setup=f"{result.setup}; {busy}")
        write_result(made, artefact, setting, result)
        progress.end()
        with undisturbed():
            place.mkdir(exist_ok=True)
            for file in made.iterdir():
                file.replace(place / file.name)
    files = [str(place / name) for name in sorted(names_of(artefact))]
    return document(artefact, setting, result) | {"files": files}, result


def chosen(ids: list[str], source: Source | None) -> list[tuple[Artefact, Source]]:
    """The artefacts with these IDs and what to run them on: `source`, else the first that they have. `all` means all
    that have the source, the virtual one if there is none."""
    known = artefacts()
    for id_ in ids:
        if id_ not in known and id_ != "all":
            near = difflib.get_close_matches(id_, known, 1)
            hint = f"; did you mean '{near[0]}'?" if near else "; see iosig repro list"
            raise typer.BadParameter(f"'{id_}' is no artefact{hint}", param_hint="ID")
        if id_ in known and source is not None and source not in known[id_].sources:
            only = ", ".join(known[id_].sources)
            raise typer.BadParameter(f"{id_} has no source '{source}', only {only}", param_hint="--source")
    every = [id_ for id_, artefact in known.items() if (source or Source.VIRTUAL) in artefact.sources]
    return [(known[id_], source or known[id_].sources[0]) for id_ in dict.fromkeys(every if "all" in ids else ids)]


@app.command("list", epilog="e.g. iosig repro list")
def list_(
    json_: Annotated[bool, typer.Option("--json", help="One JSON document, iosig.repro.list/1.")] = False,
) -> None:
    """Every table and figure that can be made again."""
    known = list(artefacts().values())
    if json_:
        listed = [{"id": a.id, "title": a.title, "where": a.where, "sources": a.sources} for a in known]
        print(json.dumps({"schema": "iosig.repro.list/1", "artefacts": listed}, indent=2))
        return
    rows = [("ID", "WHAT", "WHERE", "SOURCES")]
    print(aligned(rows + [(a.id, a.title, a.where, ", ".join(a.sources)) for a in known]))


@app.command(epilog="e.g. iosig repro run iosig-fig11b --quick")
def run(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="As `iosig repro list` has them, or: all.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Smaller sizes and fewer repetitions; the plot says so.")
    ] = False,
    output: Annotated[Path, typer.Option(help="A directory for each ID is made in this one.")] = Path("repro-results"),
    source: Annotated[
        Source | None, typer.Option(help="What to experiment on; the first that an ID has unless given.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="One JSON document, iosig.repro/1.")] = False,
) -> None:
    """Reproduces tables and figures, and reports for each published fact whether it holds.

    Exit status: 0 all hold that could be tested, 1 some differ (or none could be tested), 2 wrong usage, 3 bad input, 4
    the system refused.
    """
    wanted = chosen(ids, source)
    documents, all_hold = [], True
    try:
        with interrupted_by_signals():
            for artefact, on in wanted:
                told, result = run_one(artefact, on, quick, output)
                documents.append(told)
                all_hold &= result.verdict in (Verdict.HOLDS, Verdict.BY_CONSTRUCTION)
                if not json_:
                    print(f"{artefact.id}: {artefact.title} ({artefact.where})")
                    print(f"source: {artefact.source_text(on)}; {told['setup']}\n")
                    print(aligned(facts_rows(result.facts)))
                    print(f"\n{outcome(artefact, result)}; written: {output / artefact.id}\n")
    except KeyboardInterrupt:
        print("\niosig repro: interrupted; nothing of the unfinished result is kept", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    if json_:
        print(json.dumps({"schema": "iosig.repro/1", "runs": documents}, indent=2))
    raise typer.Exit(0 if all_hold else 1)


def main() -> None:
    command.run(app, "iosig repro")
