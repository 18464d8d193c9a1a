"""`iosig query sql`: SQL over the accesses of traces, or of their Parquet data sets (`iosig export --format parquet`).

The engine is DuckDB, in memory. A statement is one SELECT over the views (docs/cli/query.md#sql). It reaches nothing
else: no files, no network, no extensions, no Python variables; the configuration is locked, and memory is limited.
"""

from __future__ import annotations

import csv
import json
import math
import re
import signal
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import typer
from pyarrow import feather

from iosig import _core, command, parquet, trace
from iosig.drafts import writing_to_stdout

TABLE_ROWS = 40
CALL_SCHEMA = pa.schema([("call", pa.string()), ("layer", pa.string()), ("moves", pa.string())])

VIEWS = {
    "files": """
        SELECT trace, layer, path, count(*) AS accesses,
          CAST(coalesce(sum(result) FILTER (moves = 'reads' AND result > 0), 0) AS BIGINT) AS read_bytes,
          CAST(coalesce(sum(result) FILTER (moves = 'writes' AND result > 0), 0) AS BIGINT) AS written_bytes,
          min(start_ns) AS first_start_ns, max(end_ns) AS last_end_ns,
          CAST(coalesce(sum(end_ns - start_ns), 0) AS BIGINT) AS time_ns
        FROM accesses LEFT JOIN calls USING (call, layer)
        WHERE path IS NOT NULL AND call <> 'inherited' GROUP BY ALL""",
    "durations": """
        WITH below AS (
          SELECT trace, parent AS id, list({'ns': start_ns, 'until': end_ns} ORDER BY start_ns) AS calls_below
          FROM accesses WHERE parent <> 0 AND end_ns IS NOT NULL GROUP BY ALL)
        SELECT trace, id, layer, call, host, pid, tid, rank, path, end_ns - start_ns AS inclusive_ns,
          end_ns - start_ns - coalesce(list_reduce(
            list_prepend({'ns': 0::BIGINT, 'until': start_ns}, calls_below),
            lambda so_far, below_it: {
              'ns': so_far.ns + greatest(0, least(below_it.until, end_ns) - greatest(below_it.ns, so_far.until)),
              'until': greatest(so_far.until, below_it.until)}
          ).ns, 0) AS exclusive_ns
        FROM accesses LEFT JOIN below USING (trace, id) WHERE end_ns IS NOT NULL AND call <> 'inherited'""",
}
"""What is derived from the tables `accesses`, `processes` and `calls`. Calls below may overlap: asynchronous ones, and
those of rounded times. As in `iosig query`, a nanosecond in which several are in flight is subtracted once.
"""


def is_data_set(directory: str) -> bool:
    return any(Path(directory).glob("trace=*/accesses.parquet"))


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class Door:
    """A closed DuckDB: `ask` answers one SELECT over the views, and nothing that it is asked reaches anything else.

    sources: directories, all of traces or all of Parquet data sets. memory_bytes: the most that DuckDB takes.
    """

    def __init__(self, sources: list[str], memory_bytes: int = 1 << 30) -> None:
        are_data_sets = [is_data_set(each) for each in sources]
        if any(are_data_sets) and not all(are_data_sets):
            is_trace = sources[are_data_sets.index(False)]
            raise ValueError(f"{is_trace}: expected a Parquet data set, as the others are, or traces only")
        self.opened = None if any(are_data_sets) else trace.open(*sources)
        parts = [str(file) for each in sources for file in sorted(Path(each).glob("trace=*/accesses.parquet"))]
        self.connection = duckdb.connect(
            ":memory:",
            config={
                "allow_community_extensions": False,
                "allow_unsigned_extensions": False,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "max_temp_directory_size": "0B",
                "memory_limit": f"{memory_bytes // 1024}KiB",
                "python_enable_replacements": False,
            },
        )
        self.connection.execute("SET enable_progress_bar = false")  # it goes to stdout
        if not self.opened:
            self.connection.execute(f"SET allowed_paths = [{', '.join(map(quoted, parts))}]")
        self.connection.execute("SET enable_external_access = false")
        if self.opened:
            self.connection.register("accesses", self.opened.stream(columns=_core.ACCESS_COLUMNS))
            processes = self.opened.processes
        else:
            self.add_data_sets(parts)
            processes = pa.concat_tables([feather.read_table(Path(each) / parquet.PROCESSES) for each in sources])
        self.connection.register("processes", processes)
        known = [dict(zip(CALL_SCHEMA.names, call, strict=True)) for call in _core.CALLS]
        self.connection.register("calls", pa.Table.from_pylist(known, CALL_SCHEMA))
        for name, select in VIEWS.items():
            self.connection.execute(f"CREATE VIEW {name} AS {select}")
        self.connection.execute("SET lock_configuration = true")

    def add_data_sets(self, parts: list[str]) -> None:
        names = [unquote(Path(file).parent.name.removeprefix("trace=")) for file in parts]
        if len(set(names)) < len(names):
            raise ValueError("two of the data sets have a trace of the same name; expected each trace once")
        files = ", ".join(map(quoted, parts))
        self.connection.execute(
            f"CREATE VIEW accesses AS SELECT * FROM read_parquet([{files}], hive_partitioning = true,"
            " hive_types = {'trace': VARCHAR})"
        )

    def ask(self, sql: str) -> duckdb.DuckDBPyConnection:
        """Runs one SELECT; the result's rows are fetched from what is returned. Raises ValueError if it is no SELECT or
        fails, OSError if memory does not suffice.
        """
        try:
            statements = self.connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise ValueError("SQL: expected one SELECT (or FROM, WITH, VALUES, DESCRIBE, SUMMARIZE, SHOW)")
            return self.connection.execute(statements[0])
        except duckdb.Error as error:
            raise told(error) from error

    def rows(self, sql: str) -> tuple[list[tuple[str, str]], Iterator[tuple[Any, ...]]]:
        """Name and type of each column, and the rows, which come while the query runs."""
        result = self.ask(sql)
        columns = [(name, str(kind)) for name, kind, *_ in result.description or []]

        def fetched() -> Iterator[tuple[Any, ...]]:
            try:
                while batch := result.fetchmany(1000):
                    yield from batch
            except duckdb.Error as error:
                raise told(error) from error

        return columns, fetched()


def told(error: duckdb.Error) -> Exception:
    """What the command says of it."""
    if isinstance(error, duckdb.OutOfMemoryException):
        return OSError(f"SQL: not enough memory: {str(error).splitlines()[0]}; --memory allows more")
    return ValueError(f"SQL: {error}")


# ---- output --------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """`value` as JSON has it: no NaN, no infinity; what JSON does not know becomes text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def print_json(columns: list[tuple[str, str]], rows: Iterator[tuple[Any, ...]]) -> None:
    names = [name for name, _ in columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"SQL: two columns are called '{twice}'; rename one with AS")
    listed = json.dumps([{"name": name, "type": kind} for name, kind in columns])
    print(f'{{\n  "schema": "iosig.sql/1",\n  "columns": {listed},\n  "rows": [', end="")
    comma = ""
    for row in rows:
        print(f"{comma}\n    {json.dumps(dict(zip(names, map(plain, row), strict=True)))}", end="")
        comma = ","
    print("\n  ]\n}" if comma else "]\n}")


def print_csv(columns: list[tuple[str, str]], rows: Iterator[tuple[Any, ...]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([name for name, _ in columns])
    writer.writerows(rows)


def cell(value: Any) -> str:
    if value is None:
        return "-"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda found: f"\\x{ord(found[0]):02x}", text)


def print_table(columns: list[tuple[str, str]], rows: Iterator[tuple[Any, ...]]) -> None:
    shown = [row for row, _ in zip(rows, range(TABLE_ROWS), strict=False)]
    has_more = next(rows, None) is not None
    lines = [[name.upper() for name, _ in columns], *([cell(value) for value in row] for row in shown)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    numeric = [all(isinstance(v, int | float | Decimal | None) for v in column) for column in zip(*shown, strict=True)]
    for line in lines:
        cells = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric or [False] * len(widths), strict=True)
        ]
        print("  ".join(cells).rstrip())
    if has_more:
        command.say_notes([f"the first {TABLE_ROWS} rows; --csv and --json print all"])


def bytes_of(size: str) -> int:
    """A size as IOSIG spells it: 64MB is 64 * 2^20."""
    found = re.fullmatch(r"(\d+)(KB|MB|GB|TB)", size)
    value = int(found[1]) * 1024 ** (1 + ["KB", "MB", "GB", "TB"].index(found[2])) if found else 0
    if value < 16 << 20:
        raise ValueError(f"--memory: '{size}': expected a size of 16MB or more, such as 512MB or 4GB")
    return value


app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command(epilog="e.g. iosig query sql 'SELECT call, count(*) FROM accesses GROUP BY call' job.trace")
def sql(
    statement: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT over the views.")],
    traces: Annotated[list[str], typer.Argument(metavar="TRACE", help="Traces, or Parquet data sets of them.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document, iosig.sql/1.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    memory: Annotated[str, typer.Option(help="The most memory that the query takes.")] = "1GB",
) -> None:
    """Asks in SQL: accesses, files, durations, processes, calls."""
    if as_json and as_csv:
        raise typer.BadParameter("--json excludes --csv")
    try:
        memory_bytes = bytes_of(memory)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    door = Door(traces, memory_bytes)
    columns, rows = door.rows(statement)
    with writing_to_stdout():
        (print_json if as_json else print_csv if as_csv else print_table)(columns, rows)
    if door.opened:
        command.say_notes(door.opened.notes)


def main() -> None:
    # DuckDB does not always look; there is nothing to clean up.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as the native verbs end when the reader has enough
    command.run(app, "iosig query sql")
