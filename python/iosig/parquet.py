"""`iosig export --format parquet`: the accesses of traces as Parquet, a partition for each trace.

A data set is a directory: `trace=NAME/accesses.parquet` for each trace, with NAME percent-encoded, and
`_processes.arrow` (Arrow IPC). It appears at its path when it is complete. Engines that know Hive partitions (DuckDB,
Dask, Spark, Polars) read the column `trace` from the directories' names.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import typer
from pyarrow import feather

from iosig import command, trace
from iosig.drafts import writing
from iosig.trace import COLUMNS, Trace

GROUP_ROWS = 1 << 18
PROCESSES = "_processes.arrow"
SORTED = ["id", "parent", "start_ns", "end_ns", "offset"]
"""Columns of which the differences are stored."""


def partition(name: str) -> str:
    """The directory of the trace `name` in a data set."""
    return f"trace={quote(name, safe='')}"


def read_ahead(batches: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The batches, of which the next one is read while one is being used."""

    def next_batch() -> pa.RecordBatch | None:
        try:
            return batches.read_next_batch()
        except StopIteration:
            return None

    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next_batch)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next_batch)
            yield batch


def write_partition(of: Trace, number: int, file: Path, layer: str | None, files: str | None) -> int:
    """Writes the accesses of trace `number` to a new file; returns how many there are."""
    batches = of.batches(trace=number, layer=layer, files=files, columns=COLUMNS, rows=GROUP_ROWS)
    encoding = dict.fromkeys(SORTED, "DELTA_BINARY_PACKED")
    others = [name for name in COLUMNS if name not in SORTED]
    written = 0
    with pq.ParquetWriter(
        file, batches.schema, compression="zstd", compression_level=1, use_dictionary=others, column_encoding=encoding
    ) as writer:
        for batch in read_ahead(batches):
            writer.write_batch(batch)
            written += batch.num_rows
    return written


def write(of: Trace, directory: Path, layer: str | None = None, files: str | None = None) -> int:
    """Writes a data set, which must not exist yet; returns the number of accesses.

    layer, files: as of `Trace.stream`. Raises OSError if it exists or cannot be written; nothing is left then.
    """
    if directory.is_symlink() or (directory.exists() and not (directory.is_dir() and not any(directory.iterdir()))):
        raise FileExistsError(f"{directory}: exists; expected a new directory, or an empty one")
    directory = directory.absolute()
    try:
        draft = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name}."))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(directory)) from None
    try:
        mask = os.umask(0)
        os.umask(mask)
        draft.chmod(0o777 & ~mask)
        written = 0
        for number, name in enumerate(of.names):
            place = draft / partition(name)
            place.mkdir()
            with writing(str(directory)):
                written += write_partition(of, number, place / "accesses.parquet", layer, files)
        with writing(str(directory)):
            feather.write_feather(of.processes, str(draft / PROCESSES))
        draft.rename(directory)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return written


app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def export(
    traces: Annotated[list[str], typer.Argument(help="Traces.")],
    output: Annotated[Path, typer.Option(help="The directory to make.")],
    layer: Annotated[str | None, typer.Option(help="Only calls of this layer.")] = None,
    files: Annotated[str | None, typer.Option(help="Only calls on matching files.")] = None,
) -> None:
    """Writes the accesses of traces as Parquet. `iosig export --format parquet` calls this."""
    opened = trace.open(*traces)
    try:
        written = write(opened, output, layer, files)
    except FileExistsError as error:  # wrong usage, as where `iosig import` finds its output
        print(f"iosig export: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    command.say_notes(opened.notes)
    print(f"{output}: {written} accesses of {len(opened.names)} trace{'s' if len(opened.names) > 1 else ''}")


def main() -> None:
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # the draft is deleted on the way
    command.run(app, "iosig export")
