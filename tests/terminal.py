"""A command on a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import tempfile
import termios
from collections.abc import Sequence


def run_on_terminal(
    words: Sequence[object], env: dict[str, str], columns: int = 80, text: str = "", typed: str = ""
) -> str:
    """All that the command writes to a terminal of so many columns, stdout and stderr as they come; `text` is its
    standard input, unless something is `typed` on the terminal, which ends then."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
    with tempfile.TemporaryFile() as given:
        given.write(text.encode())
        given.seek(0)
        with subprocess.Popen(
            [str(word) for word in words], stdin=slave if typed else given, stdout=slave, stderr=slave, env=env
        ):
            os.close(slave)
            os.write(master, typed.encode() + b"\x04" * bool(typed))  # and the end of the input
            shown = b""
            while True:  # one read returns what is there, at most a page: not all that comes
                try:
                    piece = os.read(master, 1 << 16)
                except OSError:  # EIO: the other end is closed
                    break
                if not piece:
                    break
                shown += piece
    os.close(master)
    return shown.decode().replace("\r\n", "\n")
