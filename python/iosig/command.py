"""What the package's commands share."""

from __future__ import annotations

import sys

import typer


def run(app: typer.Typer, name: str) -> None:
    """Runs `app` as the command `name`; bad input and what the system refuses end in one line and iosig's statuses."""
    try:
        app(prog_name=name)
    except ValueError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(3)
    except OSError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(4)
