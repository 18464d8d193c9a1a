"""What the package's commands share."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

CHECKOUT = Path(__file__).resolve().parents[2]  # meaningless where the package is installed elsewhere


def iosig_command() -> str:
    """The command that started us, else the checkout's, else the one in $PATH."""
    built = CHECKOUT / "build" / "bin" / "iosig"
    found = os.environ.get("IOSIG_COMMAND") or (str(built) if built.exists() else shutil.which("iosig"))
    if found is None:
        raise OSError("iosig: the command is neither built in this checkout nor in $PATH; run make build")
    return found


def is_of_another_build(error: Exception) -> bool:
    """Whether it says that the package and its extension do not know each other's functions."""
    words = ("incompatible function arguments", "iosig._core") if isinstance(error, TypeError) else ("iosig._core",)
    return all(word in str(error) for word in words)


def say_notes(notes: Iterable[str]) -> None:
    """As the native verbs say on stderr what is missing."""
    for note in notes:
        print(f"iosig: note: {note}", file=sys.stderr)


def run(app: typer.Typer, name: str) -> None:
    """Runs `app` as the command `name`; bad input and what the system refuses end in one line and iosig's statuses."""
    try:
        app(prog_name=name)
    except KeyboardInterrupt:
        sys.exit(130)
    except ValueError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(3)
    except OSError as error:
        told = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else error
        print(f"{name}: {told}", file=sys.stderr)
        sys.exit(4)
    except (AttributeError, ImportError, TypeError) as error:
        if not is_of_another_build(error):
            raise
        told = str(error).splitlines()[0]
        print(
            f"{name}: the Python package and its extension do not fit together; rebuild: make python ({told})",
            file=sys.stderr,
        )
        sys.exit(4)


def main_of(module: str) -> Callable[[], None]:
    """`main` of a module, whose imports take a moment in which ^C may come."""
    try:
        main: Callable[[], None] = importlib.import_module(module).main
    except KeyboardInterrupt:
        sys.exit(130)
    return main


def run_extra(module: str) -> None:
    """Runs `main` of a module that needs packages of an extra, or says which."""
    try:
        main = main_of(module)
    except ModuleNotFoundError as error:
        print(f"iosig: the Python package {error.name} is missing; pip install 'iosig[trace]'", file=sys.stderr)
        sys.exit(2)
    main()


def generate() -> None:
    """`iosig generate`"""
    main_of("iosig.generate.cli")()


def plot() -> None:
    """`iosig plot`"""
    main_of("iosig.plot")()


def report() -> None:
    """`iosig report`"""
    main_of("iosig.report.cli")()


def repro() -> None:
    """`iosig repro`"""
    main_of("iosig.repro.cli")()


def query_sql() -> None:
    """`iosig query sql`"""
    run_extra("iosig.sql")


def export_parquet() -> None:
    """`iosig export --format parquet`"""
    run_extra("iosig.parquet")
