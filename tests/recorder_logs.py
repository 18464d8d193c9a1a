"""Writes logs of Recorder 3 as its library does: in several files or in one, with a test's own calls."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

FUNCTIONS = ["open", "close", "read", "write", "pwrite", "lseek", "umask", "fwrite"]
FUNCTIONS += ["MPI_File_open", "MPI_File_close", "MPI_File_write_at_all"]

Rule = list[tuple[int, int]]
"""Symbol (from 0 on: a signature; below: a rule), and how often."""


@dataclass
class Rank:
    """The calls of a rank: what they were, in which order, and when they began and ended, in ticks."""

    signatures: list[tuple[str, int, str]]
    """Function, depth, and arguments, each followed by a blank."""
    rules: dict[int, Rule]
    times: list[tuple[int, int]]


def compressed(data: bytes) -> bytes:
    packed = zlib.compress(data)
    return struct.pack("<QQ", len(packed), len(data)) + packed


@dataclass
class RecorderLog:
    ranks: list[Rank] = field(default_factory=list)
    started_s: float = 1_700_000_000.0
    tick_s: float = 1e-6
    has_compressed_times: bool = False
    is_shared: bool = False
    """One set of signatures and grammars for all ranks, which are those of the first one."""
    function_bytes: int = 1

    def signatures(self, rank: Rank) -> bytes:
        made = struct.pack("<i", len(rank.signatures))
        for number, (function, depth, arguments) in enumerate(rank.signatures):
            key = struct.pack("<Q" + {1: "B", 4: "i"}[self.function_bytes], 0, FUNCTIONS.index(function))
            key += struct.pack("<BBi", depth, arguments.count(" "), len(arguments)) + arguments.encode()
            made += struct.pack("<iiiI", number, 0, len(key), 1) + key
        return compressed(made)

    def grammar(self, rank: Rank) -> bytes:
        made = struct.pack("<i", len(rank.rules))
        for rule, symbols in rank.rules.items():
            made += struct.pack("<ii", rule, len(symbols)) + b"".join(struct.pack("<ii", *each) for each in symbols)
        return compressed(made)

    def times(self) -> bytes:
        """As differences from the start of the call before."""
        all_ranks = []
        for rank in self.ranks:
            made, before = b"", 0
            for start, end in rank.times:
                made += struct.pack("<II", (start - before) % 2**32, (end - before) % 2**32)
                before = start
            all_ranks.append(compressed(made) if self.has_compressed_times else made)
        return struct.pack(f"<{len(all_ranks)}Q", *map(len, all_ranks)) + b"".join(all_ranks)

    def flags(self) -> bytes:
        return struct.pack("<i????", 0, self.has_compressed_times, self.is_shared, False, False)

    def sections(self) -> dict[tuple[int, int], bytes]:
        """By their number in recorder.dat, and rank."""
        made = {(1, -1): self.times()}
        if self.is_shared:
            made[2, -1] = self.signatures(self.ranks[0])
            made[3, -1] = self.grammar(self.ranks[0])
            made[4, -1] = struct.pack(f"<{len(self.ranks) + 1}i", *[0] * len(self.ranks), 1)
        else:
            for number, rank in enumerate(self.ranks):
                made[5, number], made[6, number] = self.signatures(rank), self.grammar(rank)
        return made

    def write(self, directory: Path) -> Path:
        """In several files, with a file VERSION."""
        directory.mkdir()
        metadata = struct.pack("<i8?4xdd", len(self.ranks), *[True] * 8, self.started_s, self.tick_s) + self.flags()
        names = {1: "recorder.ts", 2: "recorder.cst", 3: "ug.cfg", 4: "ug.mt", 5: "{}.cst", 6: "{}.cfg"}
        for (section, rank), data in self.sections().items():
            (directory / names[section].format(rank)).write_bytes(data)
        (directory / "recorder.mt").write_bytes(
            metadata.ljust(1024, b"\0") + "".join(f"{f}\n" for f in FUNCTIONS).encode()
        )
        (directory / "VERSION").write_text("3.0.0")
        return directory

    def encoded(self) -> bytes:
        """As the file recorder.dat."""
        metadata = struct.pack("<iiiii8?4x", 3, 0, 0, len(self.ranks), len(FUNCTIONS), *[True] * 8)
        metadata += struct.pack("<dd", self.started_s, self.tick_s) + self.flags()
        metadata += b"".join(name.encode().ljust(64, b"\0") for name in FUNCTIONS)
        sections = {(0, -1): metadata} | self.sections()
        head, body = struct.pack("<8sII", b"RECORDER", 1, len(sections)), b""
        for (section, rank), data in sections.items():
            head += struct.pack("<IiQQ", section, rank, 16 + 24 * len(sections) + len(body), len(data))
            body += data
        return head + body
