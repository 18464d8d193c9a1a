"""Writes containers for tests, by the program support/write_container.cpp."""

from __future__ import annotations

import subprocess
from pathlib import Path

from conftest import BUILD


class Writing:
    """The test program at work on a container: see its comment."""

    def __init__(self, container: Path) -> None:
        self.process = subprocess.Popen(
            [str(BUILD / "bin" / "write_container"), str(container)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *commands: str) -> None:
        assert self.process.stdin and self.process.stdout
        for command in commands:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
            assert self.process.stdout.readline() == "ok\n"

    def end(self, kill: bool) -> None:
        assert self.process.stdin and self.process.stdout
        if kill:
            self.process.kill()
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def forget_closed_writers(container: Path) -> None:
    """Deletes the records of closed writers (tests/cli/test_closed_writers.py): what the droppings alone tell."""
    for file in container.glob("closed.*"):
        file.unlink()
