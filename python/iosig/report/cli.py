"""`iosig-report`: the command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from iosig import command
from iosig.drafts import replaced, writing_to_stdout
from iosig.report.numbers import gather
from iosig.report.page import page

app = typer.Typer(add_completion=False)


@app.command(epilog="e.g. iosig-report job.trace -o job.html")
def report(
    traces: Annotated[list[str], typer.Argument(metavar="TRACE", help="Directories that `iosig trace -o` made.")],
    output: Annotated[str, typer.Option("--output", "-o", help="The page; - for standard output.")] = "",
    files: Annotated[str, typer.Option(help="Only calls on files whose name (or path, with a slash) matches.")] = "",
) -> None:
    """Show what traces have in one HTML page that needs no other file and no network."""
    made = page(gather(traces, files))
    if output == "-":
        with writing_to_stdout():
            sys.stdout.buffer.write(made.encode())
        return
    path = Path(output or f"{Path(traces[0]).resolve().name}.html")
    with replaced(path) as draft:
        draft.write_text(made, encoding="utf-8")
    print(path)


def main() -> None:
    command.run(app, "iosig-report")
