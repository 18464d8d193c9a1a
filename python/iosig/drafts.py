"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile


@contextmanager
def writing(name: str) -> Iterator[None]:
    """An error of a write in it names `name`, unless it names a file already: that of write(2) does not."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), name) from None


@contextmanager
def writing_to_stdout() -> Iterator[None]:
    """Standard output, which is flushed at the end; an error names it."""
    with writing("standard output"):
        yield
        sys.stdout.flush()


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A draft beside `path` that becomes it, unless what writes it fails; links lead to what is replaced.

    A pipe or a device is not replaced: what the draft has is written to it.
    """
    if path.exists() and not path.is_file():  # before resolve(): /dev/stdout leads to no name that a pipe could have
        with NamedTemporaryFile() as elsewhere:
            yield Path(elsewhere.name)
            with writing(str(path)):
                path.write_bytes(Path(elsewhere.name).read_bytes())
        return
    path = path.resolve()
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.draft")  # another run may write the same file
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        yield draft
        draft.replace(path)
    except OSError as error:
        if error.filename not in (None, draft, str(draft)):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None  # a full disk names no file
    finally:
        draft.unlink(missing_ok=True)
