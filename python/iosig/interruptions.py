"""Work that a signal ends cleanly: what it made is removed, and a second signal does not cut that short."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def handled(
    numbers: Iterable[signal.Signals], handler: Callable[[int, object], None] | signal.Handlers
) -> Iterator[None]:
    """These signals have that handler, and theirs of before in the end."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt, as ^C does; its argument is the signal's number.

    One that is ignored, as SIGHUP is under nohup, stays ignored.
    """

    def interrupt(number: int, _: object) -> None:
        raise KeyboardInterrupt(number)

    heeded = [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    with handled(heeded, interrupt):
        yield


@contextmanager
def undisturbed() -> Iterator[None]:
    """A second ^C does not cut short what is being cleaned up."""
    with handled(ENDING, signal.SIG_IGN):
        yield


@contextmanager
def scratch_in(directory: Path, name: str = "iosig-repro") -> Iterator[Path]:
    """A hidden directory in `directory`, made with it, and gone at the end with what is in it."""
    directory.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=directory))
    try:
        yield scratch
    finally:
        with undisturbed():
            shutil.rmtree(scratch)
