"""`iosig-plot`: figures of what the `iosig` command and the benchmarks wrote. Each becomes a PNG and an HTML page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from matplotlib.figure import Figure

import iosig
from iosig import command, figures, panels, plan_picture, query_picture, tables
from iosig.access_panel import access_panel, sampled_accesses
from iosig.patterns import Pattern

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Figures of IOSIG's predictions and measurements.")

Output = Annotated[Path, typer.Option(help="Directory for the PNG and the HTML.")]


def new_figure() -> Figure:
    return Figure(figsize=(9, 5.5), layout="constrained")


def show(paths: list[Path]) -> None:
    for path in paths:
        print(path)


@app.command(epilog="e.g. iosig-plot demo demo/demo.json --output demo")
def demo(demo_json: Annotated[Path, typer.Argument(help="What `make demo` wrote.")], output: Output = Path()) -> None:
    """Throughput of every run of the demo, predicted and measured."""
    runs = tables.read_demo(demo_json)
    figure = new_figure()
    figures.plot_demo(figure.subplots(), runs)
    show(figures.write_figure(output / "demo", figure, figures.explore_demo(runs), "The same bytes on chosen storage"))


@app.command(epilog="e.g. iosig-plot model --access random --measured bench/results.csv")
def model(
    storage: Annotated[Path | None, typer.Option(help="Storage description; default: the one that iosig uses.")] = None,
    measured: Annotated[Path | None, typer.Option(help="CSV of bench/grid.py, drawn beside the curves.")] = None,
    access: Annotated[str, typer.Option(help="sequential or random")] = "sequential",
    operation: Annotated[str, typer.Option(help="write or read")] = "write",
    output: Output = Path(),
) -> None:
    """Predicted throughput over chunk sizes for every mount point, as the paper's Fig. 6."""
    path = str(storage) if storage else iosig.find_storage()
    if path is None:
        raise ValueError("there is no storage description; run `iosig storage probe` or give --storage")
    predicted = tables.predicted_throughput(iosig.read_storage(path), tables.chunk_sizes(), access, operation)
    points = None
    if measured:
        points = tables.read_measured(measured).query("access == @access and operation == @operation")
    figure = new_figure()
    figures.plot_model(figure.subplots(), predicted, points)
    title = f"{access} {operation}s"
    show(figures.write_figure(output / "model", figure, figures.explore_model(predicted, points), title))


def read_description(file: str) -> Pattern:
    """A pattern in either form; - is standard input."""
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    source = "standard input" if file == "-" else file
    if data.startswith(b"IOP"):
        return Pattern.from_bytes(data, source)
    return Pattern.from_json(data.decode(errors="replace"), source)


@app.command(epilog="e.g. iosig-plot pattern trace.pattern --output trace.png")
def pattern(
    description: Annotated[str, typer.Argument(help="What `iosig pattern detect` wrote, JSON or binary; - for stdin.")],
    columns: Annotated[str, typer.Option(help="Names, as of iosig pattern detect --columns.")] = "",
    output: Annotated[
        Path, typer.Option(help="Directory for the PNG and the HTML, or one of them, by its name.")
    ] = Path(),
) -> None:
    """Logical offset over position: the accesses that a pattern stands for, coloured by id."""
    told = read_description(description)
    if told.count == 0:
        raise ValueError("the pattern stands for no accesses")
    table = sampled_accesses(told, columns)
    panel = access_panel("", table, "position", "id", is_bytes=bool(columns or told.names) or told.columns > 2)
    title = f"{told.count} accesses as {told.terms} term{'s' if told.terms > 1 else ''}"
    if len(table) < told.count:
        title += f"; {len(table)} are drawn, at random places"
    is_named = output.suffix in (".png", ".html")
    picture = output if is_named else output / "pattern.png"
    page = output if is_named else output / "pattern.html"
    if not is_named:
        output.mkdir(parents=True, exist_ok=True)
    if picture.suffix == ".png":
        figure = new_figure()
        panels.plot_panel(figure.subplots(), panel)
        figures.write_picture(picture, figure, title)
        show([picture])
    if page.suffix == ".html":
        figures.write_page(page, panels.explore_panels([panel]), title)
        show([page])


@app.command(epilog="e.g. iosig query latency job.trace --plot latency.png")
def query(
    answer: Annotated[str, typer.Argument(help="An answer of `iosig query`; - for stdin.")],
    output: Annotated[Path, typer.Option(help="A .png or .html.")],
) -> None:
    """What `iosig query --plot FILE` draws."""
    told = query_picture.read_answer(sys.stdin.read() if answer == "-" else Path(answer).read_text())
    title = f"iosig query {told['question']}"
    if output.suffix == ".png":
        figure = new_figure()
        query_picture.plot_answer(figure.subplots(), told)
        figures.write_picture(output, figure, title)
    else:
        figures.write_page(output, query_picture.explore_answer(told), title)
    show([output])


@app.command(epilog="e.g. iosig plan --show job.plan --plot job.html")
def plan(
    answer: Annotated[str, typer.Argument(metavar="PLAN", help="A plan of `iosig plan`; - for stdin.")],
    output: Annotated[Path, typer.Option(help="A .png or .html.")],
) -> None:
    """What `iosig plan --plot FILE` draws."""
    told = plan_picture.read_plan(sys.stdin.read() if answer == "-" else Path(answer).read_text())
    title = "iosig plan: " + ", ".join(file["path"] for file in told["files"][:3])
    if output.suffix == ".png":
        figure = new_figure()
        plan_picture.plot_plan(figure.subplots(2, sharex=True), told)
        figures.write_picture(output, figure, title)
    else:
        figures.write_page(output, plan_picture.explore_plan(told), title)
    show([output])


def main() -> None:
    command.run(app, "iosig-plot")
