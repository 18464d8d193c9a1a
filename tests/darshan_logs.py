"""Writes logs of Darshan as its runtime does: any version, byte order and compression, with a test's own content."""

from __future__ import annotations

import bz2
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

MAGIC = 6567223
COMPRESSIONS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "zlib": (0, zlib.compress),
    "bzip2": (1, bz2.compress),
    "none": (2, bytes),
}
COUNTERS = {"POSIX": {1: 680, 2: 648, 3: 664, 4: 704}, "MPI-IO": {1: 544, 2: 544, 3: 560}, "STDIO": {1: 240, 2: 248}}
"""Bytes of a record, by version of the module."""

Segment = tuple[int, int, float, float]
"""Offset, length, start and end in seconds since the job began."""


def module_number(name: str, version: str) -> int:
    """Where a module stands in the header. 3.20 and 3.41 put a module before the others."""
    number = {"POSIX": 1, "MPI-IO": 2, "STDIO": 7, "DXT_POSIX": 8, "DXT_MPIIO": 9}[name]
    return number if number <= 2 else number + (version >= "3.20") + (version >= "3.41")


@dataclass
class DarshanLog:
    version: str = "3.41"
    order: str = "<"
    compression: str = "zlib"
    processes: int = 1
    started_s: int = 1_700_000_000
    command: str = "/bin/solver input.txt"
    names: dict[int, str] = field(default_factory=dict)
    modules: dict[str, tuple[int, list[bytes]]] = field(default_factory=dict)
    """Version and records; each record is a stream of its own, as those of each rank are."""

    def pack(self, kinds: str, *values: object) -> bytes:
        return struct.pack(self.order + kinds, *values)

    def add_segments(
        self,
        name: str,
        version: int,
        record: int,
        rank: int,
        writes: list[Segment],
        reads: list[Segment],
        thread: int = 0,
    ) -> None:
        has_thread = version > (1 if name == "DXT_POSIX" else 2)
        made = self.pack("Qqq64sqq", record, rank, 0, b"node7", len(writes), len(reads))
        threads = [thread] if has_thread else []
        kinds = "qqddQ" if has_thread else "qqdd"
        made += b"".join(self.pack(kinds, *segment, *threads) for segment in [*writes, *reads])
        self.modules.setdefault(name, (version, []))[1].append(made)

    def add_counters(self, name: str, version: int, record: int, rank: int, counters: dict[int, int]) -> None:
        """`counters`: by their index in the record."""
        numbers = [counters.get(index, 0) for index in range(COUNTERS[name][version] // 8 - 2)]
        self.modules.setdefault(name, (version, []))[1].append(self.pack(f"Qq{len(numbers)}q", record, rank, *numbers))

    def job(self) -> bytes:
        nanoseconds = [0] if self.version >= "3.41" else []
        fields = [1000, self.started_s, *nanoseconds, self.started_s + 60, *nanoseconds, self.processes, 77]
        text = f"{self.command}\nnfs\t/home".encode()
        return self.pack(f"{len(fields)}q1024s", *fields, b"lib_ver = 3.5.0\n") + text

    def encoded(self) -> bytes:
        number, compress = COMPRESSIONS[self.compression]
        is_new = self.version >= "3.41"
        count = 64 if is_new else 16
        names = b""
        for record, name in self.names.items():
            text = name.encode()
            names += self.pack("Q", record) + (
                self.pack("I", len(text)) + text if self.version == "3.00" else text + b"\0"
            )
        header_bytes = 1328 if is_new else 360
        body = compress(self.job())
        maps = [(0, 0)] * (count + 1)
        versions = [0] * count
        maps[0] = (header_bytes + len(body), len(compress(names)))
        body += compress(names)
        for module, (version, records) in self.modules.items():
            data = b"".join(map(compress, records))
            place = module_number(module, self.version)
            maps[place + 1], versions[place] = (header_bytes + len(body), len(data)), version
            body += data
        header = self.pack("8sqB3x", self.version.encode(), MAGIC, number)
        header += self.pack("4xQ" if is_new else "I", 0)
        for region in maps:
            header += self.pack("QQ", *region)
        header += self.pack(f"{count}I", *versions)
        assert len(header) == header_bytes
        return header + body
