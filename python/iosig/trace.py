"""The accesses of traces (`iosig trace`, `iosig import`) as Arrow tables and lazy frames. Needs `iosig[trace]`.

>>> job = iosig.trace.open("job.trace")
>>> job.table(columns=["call", "length"]).group_by("call").aggregate([("length", "sum")])   # Arrow
>>> job.lazy().filter("layer = 'posix'").aggregate("path, count(*)", "path").df()            # DuckDB
>>> for batch in job.batches(): ...                                                          # 65536 rows at a time
>>> polars.DataFrame(job)                                  # any library that reads Arrow streams (PyCapsule interface)

The columns are the fields of the trace format (docs/formats/trace.md): `id`, `parent`, `rank`, `offset`, `length`,
`start_ns`, `end_ns`, `result` are int64; `pid`, `tid`, `fd` int32; `host`, `layer`, `call`, `path`,
`second_path` dictionary-encoded strings.
Fields that a call does not have are null; `parent` is 0 where there is none. In strings, control characters and bytes
that are not UTF-8 are written as \\xNN. Where several traces are opened, the column `trace` has the name of each.
Times are nanoseconds since `started_ns`, the earliest start of them all.

Rows are in the order of starts. They are read from the trace while they are asked for: memory is that of a batch, not
of the trace. What is missing in a trace is in `notes`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iosig import _core

if TYPE_CHECKING:
    import duckdb

__all__ = ["COLUMNS", "Trace", "open"]

COLUMNS: list[str] = _core.ACCESS_COLUMNS[:-1]
"""The fields of an access."""

BATCH_ROWS = 65536


class Trace:
    """One or several traces, read as one. Threads can read it at the same time."""

    def __init__(self, core: _core.Traces) -> None:
        self._core = core

    @property
    def directories(self) -> list[str]:
        """Of the traces, as they were given."""
        return self._core.directories

    @property
    def names(self) -> list[str]:
        """Of the traces, as in the column `trace`: last components of the directories; all of them if two agree."""
        return self._core.names

    @property
    def started_ns(self) -> int:
        """When the first call began: nanoseconds since 1970. All times count from it."""
        return self._core.started_ns

    @property
    def notes(self) -> list[str]:
        """What is missing in the traces, in sentences; of damaged blocks only those that a read has met so far."""
        return self._core.notes

    @property
    def processes(self) -> pa.Table:
        """A row for each process: `trace`, `host`, `pid`, `parent_pid`, `rank`, `ranks`, `program`, `directory`,
        `arguments`.
        """
        return pa.Table.from_pylist(self._core.processes, PROCESS_SCHEMA)

    @property
    def counters(self) -> pa.Table:
        """Sums over the reads and writes of which the trace has no single calls (a Darshan log without DXT), a row for
        each file, layer and process: `trace`, `path`, `layer`, `rank` (null: of all `processes`), `reads`,
        `read_bytes`, `writes`, `written_bytes`, `syncs`, `end` (behind the last byte; 0: not known).
        """
        return pa.Table.from_pylist(self._core.counters, COUNTER_SCHEMA)

    def stream(
        self,
        *,
        trace: int | None = None,
        layer: str | None = None,
        files: str | None = None,
        columns: Sequence[str] | None = None,
        rows: int = BATCH_ROWS,
    ) -> _core.AccessStream:
        """The accesses for any consumer of Arrow's PyCapsule interface; each reads the trace anew.

        trace: only those of this one, by its place in `names`. layer: `mpi-io`, `stdio` or `posix`. files: a glob as of
        `iosig export --files`. columns: in this order; all unless given. rows: of a batch, 1 to 2^24.
        """
        return self._core.stream(trace, layer, None if files is None else os.fsencode(files), columns, rows)

    def batches(self, **selection: Any) -> pa.RecordBatchReader:
        """The accesses batch by batch; the keywords are those of `stream`."""
        return pa.RecordBatchReader.from_stream(self.stream(**selection))

    def table(self, **selection: Any) -> pa.Table:
        """The accesses in memory, some 110 bytes each; the keywords are those of `stream`."""
        return self.batches(**selection).read_all().unify_dictionaries()

    def lazy(self, connection: duckdb.DuckDBPyConnection | None = None, **selection: Any) -> duckdb.DuckDBPyRelation:
        """The accesses as a DuckDB relation: nothing is read until a result is asked for, each of which is a pass.

        connection: where the relation lives; a new one unless given. The other keywords are those of `stream`.
        """
        import duckdb

        place = connection or duckdb.connect()
        stream = self.stream(**selection)
        name = f"accesses_{id(stream)}"
        place.register(name, stream)
        return place.table(name)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.stream().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"iosig.trace.open({', '.join(map(repr, self.directories))})"


PROCESS_SCHEMA = pa.schema(
    [
        ("trace", pa.string()),
        ("host", pa.string()),
        ("pid", pa.int32()),
        ("parent_pid", pa.int32()),
        ("rank", pa.int64()),
        ("ranks", pa.int64()),
        ("program", pa.string()),
        ("directory", pa.string()),
        ("arguments", pa.list_(pa.string())),
    ]
)


COUNTER_SCHEMA = pa.schema(
    [
        ("trace", pa.string()),
        ("path", pa.string()),
        ("layer", pa.string()),
        ("rank", pa.int64()),
        ("processes", pa.uint64()),
        ("reads", pa.uint64()),
        ("read_bytes", pa.uint64()),
        ("writes", pa.uint64()),
        ("written_bytes", pa.uint64()),
        ("syncs", pa.uint64()),
        ("end", pa.uint64()),
    ]
)


def open(*directories: str | os.PathLike[str]) -> Trace:
    """The traces in these directories, read as one.

    Raises ValueError if a directory is no trace, if all of it is damaged, or if two have a process in common; OSError
    if one cannot be read.
    """
    if not directories:
        raise ValueError("iosig.trace.open: expected one directory of a trace or more")
    return Trace(_core.Traces([os.fsencode(each) for each in directories]))
