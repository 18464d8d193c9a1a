"""`iosig.trace`, `iosig query sql` and `iosig export --format parquet`: the same calls, in every form."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import iosig.trace
from conftest import BUILD, ROOT, Iosig
from iosig import parquet
from iosig.sql import Door
from iosig.trace import Trace
from iosig.trace import open as open_traces

HEADER = "id,parent,host,pid,tid,rank,layer,call,path,fd,offset,length,start_ns,end_ns,result\n"
# Two ranks, written by hand; times from 5000 on. Rank 0: MPI_File_write_at of 100 bytes takes 1000 ns, 700 of them in a
# pwrite; then two preads, the second at the end of the file, and an open that had not returned. Rank 1 begins 50 ns
# later, on the same file.
RANK0 = HEADER + (
    "1,0,n0,10,10,0,mpi-io,MPI_File_write_at,/d/a,,0,100,5000,6000,0\n"
    "2,1,n0,10,10,0,posix,pwrite,/d/a,3,0,100,5200,5900,100\n"
    "3,0,n0,10,10,0,posix,pread,/d/a,3,0,64,6100,6400,64\n"
    "4,0,n0,10,10,0,posix,pread,/d/a,3,64,64,6500,6600,36\n"
    '5,0,n0,10,10,0,posix,open,"/d/odd,""name",,,577,6700,,\n'
)
RANK1 = HEADER + (
    "1,0,n1,10,10,1,mpi-io,MPI_File_write_at,/d/a,,100,200,5050,7050,0\n"
    "2,1,n1,10,10,1,posix,pwrite,/d/a,4,100,200,5060,6960,200\n"
)
ATTACKS = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT * FROM read_json('/etc/passwd')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM parquet_metadata('/etc/passwd')",
    "SELECT * FROM read_parquet('https://127.0.0.1/x.parquet')",
    "SELECT * FROM query('SELECT * FROM read_csv(''/etc/passwd'')')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM secret",  # a Python variable
    "SELECT getenv('HOME')",
    "SELECT * FROM arrow_scan(1, 2, 3)",
    "SELECT * FROM arrow_scan(NULL, NULL, NULL)",
    "SELECT * FROM pandas_scan(1)",
    "SELECT * FROM accesses; SELECT * FROM calls",
    "COPY (SELECT 1) TO '{directory}/made'",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{directory}/made'",
    "COPY (SELECT 1) TO '{part}'",
    "EXPORT DATABASE '{directory}/made'",
    "ATTACH '{directory}/made'",
    "ATTACH ':memory:' AS other",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{directory}/made.duckdb_extension'",
    "PRAGMA database_list",
    "SET enable_external_access = true",
    "SET memory_limit = '100GB'",
    "RESET ALL",
    "CREATE TABLE t AS SELECT 1",
    "CREATE SECRET (TYPE s3)",
    "CALL pragma_version()",
    "DROP VIEW accesses",
    "",
]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The two ranks, each a trace of its own."""
    place = tmp_path_factory.mktemp("traces")
    (place / "home").mkdir()
    iosig_command = Iosig(place / "home")
    made = []
    for name, text in (("rank0.trace", RANK0), ("rank1.trace", RANK1)):
        (place / "calls.csv").write_text(text)
        iosig_command("import", place / "calls.csv", "-o", place / name)
        made.append(place / name)
    return made


@pytest.fixture(scope="module")
def data_set(traces: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("parquet") / "job.parquet"
    assert parquet.write(iosig.trace.open(*traces), directory) == 7
    return directory


def texts(row: dict[str, Any]) -> dict[str, str]:
    return {name: "" if value is None else str(value) for name, value in row.items()}


def test_a_table_has_the_fields_of_an_export_with_their_types(iosig: Iosig, traces: list[Path]) -> None:
    exported = list(csv.DictReader(io.StringIO(iosig("export", traces[0]).stdout)))
    job = iosig_open(traces[0])
    assert [texts(row) for row in job.table().to_pylist()] == exported
    assert [(row["path"], row["length"]) for row in exported][-1] == ('/d/odd,"name', "577")
    schema = job.table().schema
    for name in ("id", "parent", "rank", "offset", "length", "start_ns", "end_ns", "result"):
        assert schema.field(name).type == pa.int64(), name
    for name in ("pid", "tid", "fd"):
        assert schema.field(name).type == pa.int32(), name
    for name in ("host", "layer", "call", "path", "second_path"):
        assert schema.field(name).type == pa.dictionary(pa.int32(), pa.string()), name
    assert job.notes == [] and job.processes.column("rank").to_pylist() == [0]


def iosig_open(*directories: Path) -> Trace:
    return iosig.trace.open(*directories)


def test_batches_are_as_small_as_wanted_and_hold_what_the_table_holds(traces: list[Path]) -> None:
    job = iosig_open(*traces)
    batches = list(job.batches(rows=2))
    assert [batch.num_rows for batch in batches] == [2, 2, 2, 1]
    whole = job.table()
    assert [row for batch in batches for row in batch.to_pylist()] == whole.to_pylist()
    assert whole.column_names == [*iosig.trace.COLUMNS, "trace"]
    starts = whole.column("start_ns").to_pylist()
    assert starts == sorted(starts) and len(starts) == 7
    assert pa.table(job).equals(pa.table(job.stream()))  # any consumer of Arrow streams
    only = job.table(trace=1, layer="posix", files="a", columns=["call", "trace", "result"])
    assert only.to_pylist() == [{"call": "pwrite", "trace": "rank1.trace", "result": 200}]


def test_wrong_arguments_are_named(traces: list[Path], tmp_path: Path) -> None:
    job = iosig_open(traces[0])
    for wrong, message in (
        ({"layer": "nfs"}, "'nfs': expected one of mpi-io, stdio, posix"),
        ({"columns": ["duration"]}, "'duration': expected some of id, parent"),
        ({"rows": 0}, "rows: expected 1 to"),
        ({"trace": 1}, "trace: expected 0 to 0, got 1"),
    ):
        with pytest.raises(ValueError, match=message):
            job.stream(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is in two of the traces"):
        iosig_open(traces[0], traces[0])
    with pytest.raises(ValueError, match="expected one directory"):
        iosig.trace.open()
    with pytest.raises(OSError, match="nothing-here"):
        iosig_open(tmp_path / "nothing-here")


def test_a_lazy_frame_is_read_when_it_is_asked_and_again(traces: list[Path]) -> None:
    lazy = iosig_open(*traces).lazy(layer="posix")
    moved = lazy.filter("call = 'pwrite'").aggregate("sum(result)")
    assert moved.fetchall() == moved.fetchall() == [(300,)]


@pytest.mark.parametrize("kind", ["traces", "parquet"])
def test_views_say_what_was_worked_out_by_hand(traces: list[Path], data_set: Path, kind: str) -> None:
    door = Door([str(data_set)] if kind == "parquet" else [str(each) for each in traces])

    def ask(sql: str) -> list[tuple[Any, ...]]:
        return list(door.rows(sql)[1])

    assert ask("SELECT trace, count(*) FROM accesses GROUP BY ALL ORDER BY trace") == [
        ("rank0.trace", 5),
        ("rank1.trace", 2),
    ]
    assert ask(
        "SELECT layer, path, accesses, read_bytes, written_bytes, time_ns FROM files WHERE trace = 'rank0.trace'"
        " ORDER BY ALL"
    ) == [
        ("mpi-io", "/d/a", 1, 0, 0, 1000),
        ("posix", "/d/a", 3, 100, 100, 1100),
        ("posix", '/d/odd,"name', 1, 0, 0, 0),
    ]
    assert ask(
        "SELECT layer, sum(inclusive_ns)::BIGINT, sum(exclusive_ns)::BIGINT FROM durations GROUP BY layer ORDER BY 1"
    ) == [("mpi-io", 1000 + 2000, 300 + 100), ("posix", 1100 + 1900, 1100 + 1900)]
    assert ask("SELECT host, rank FROM processes ORDER BY rank") == [("n0", 0), ("n1", 1)]
    assert ask("SELECT layer, moves FROM calls WHERE call = 'pread'") == [("posix", "reads")]


def test_own_times_in_sql_subtract_calls_below_that_overlap_once(iosig: Iosig, tmp_path: Path) -> None:
    calls, trace = tmp_path / "calls.csv", tmp_path / "calls.trace"
    calls.write_text(
        "id,parent,pid,tid,layer,call,path,start_ns,end_ns,result\n"
        "1,0,7,7,stdio,fwrite,/a,1000,5000,1\n"
        "2,1,7,7,posix,write,/a,1000,4000,1\n"
        "3,1,7,7,posix,write,/a,2000,3000,1\n"  # during the one before it
        "4,1,7,7,posix,write,/a,3000,4500,1\n"  # 500 ns of it are its own
        "5,1,7,7,posix,write,/a,4500,,\n"
        "6,0,7,7,stdio,fread,/a,6000,7000,1\n"
        "7,6,7,7,posix,read,/a,6500,9000,1\n"  # ends after its parent
    )
    iosig("import", calls, "-o", trace)
    sql = "SELECT call, sum(exclusive_ns)::BIGINT FROM durations GROUP BY call ORDER BY call"
    expected = [("fread", 500), ("fwrite", 500), ("read", 2500), ("write", 3000 + 1000 + 1500)]
    assert list(Door([str(trace)]).rows(sql)[1]) == expected
    rows = json.loads(iosig("query", "latency", trace, "--json").stdout)["rows"]
    assert sorted((row["call"], round(row["exclusive_s"] * 1e9)) for row in rows) == expected


@pytest.mark.parametrize("kind", ["traces", "parquet"])
def test_nothing_is_reached_through_the_sql(traces: list[Path], data_set: Path, tmp_path: Path, kind: str) -> None:
    secret = pa.table({"word": ["secret"]})
    assert secret.num_rows == 1
    door = Door([str(data_set)] if kind == "parquet" else [str(traces[0])])
    part = next(data_set.rglob("accesses.parquet"))
    before = part.read_bytes()
    for attack in ATTACKS:
        with pytest.raises(ValueError, match=r"^SQL: "):
            list(door.rows(attack.format(directory=tmp_path, part=part))[1])
    assert part.read_bytes() == before and list(tmp_path.iterdir()) == []
    assert list(door.rows("SELECT count(*) > 0 FROM accesses")[1]) == [(True,)]  # still answers
    progress = "SELECT current_setting('enable_progress_bar')"  # which would be drawn into the answer
    assert list(door.rows(progress)[1]) == [(False,)]


def test_a_query_takes_no_more_memory_than_it_may(traces: list[Path]) -> None:
    door = Door([str(traces[0])], memory_bytes=32 << 20)
    with pytest.raises(OSError, match=r"not enough memory.*--memory"):
        list(door.rows("SELECT n FROM range(2000000) r(n) ORDER BY md5(n::VARCHAR) || repeat('x', 100)")[1])


@pytest.mark.parametrize("size", ["1", "15MB", "-1GB", "much"])
def test_a_memory_that_is_no_size_is_wrong_usage(iosig: Iosig, traces: list[Path], size: str) -> None:
    assert (
        f"'{size}': expected a size" in iosig("query", "sql", "SELECT 1", traces[0], "--memory", size, check=2).stderr
    )


def test_a_data_set_is_complete_or_not_there(traces: list[Path], data_set: Path, tmp_path: Path) -> None:
    table = ds.dataset(data_set, partitioning="hive").to_table()
    assert table.num_rows == 7 and set(table.column("trace").to_pylist()) == {"rank0.trace", "rank1.trace"}
    job = iosig_open(*traces)
    first = table.filter(ds.field("trace") == "rank1.trace").drop_columns("trace")
    assert first.to_pylist() == job.table(trace=1, columns=iosig.trace.COLUMNS).to_pylist()
    with pytest.raises(FileExistsError, match="exists"):
        parquet.write(job, data_set)
    with pytest.raises(ValueError, match="layer"):
        parquet.write(job, tmp_path / "new.parquet", layer="nfs")
    assert list(tmp_path.iterdir()) == []


def test_a_trace_and_a_glob_need_not_be_utf_8(iosig: Iosig, traces: list[Path], tmp_path: Path) -> None:
    odd, made = Path(os.fsdecode(bytes(tmp_path) + b"/odd\n\xff.trace")), tmp_path / "made.parquet"
    shutil.copytree(traces[0], odd)
    sql = ("query", "sql", "SELECT trace, count(*) AS calls FROM accesses GROUP BY trace")
    expected = [{"trace": "odd\\x0a\\xff.trace", "calls": 5}]
    assert iosig.json(*sql, odd)["rows"] == expected
    iosig("export", "--format", "parquet", odd, "-o", made)
    assert iosig.json(*sql, made)["rows"] == expected
    job = open_traces(odd)
    assert job.directories == [str(odd)] and job.names == ["odd\\x0a\\xff.trace"]
    assert repr(job) == f"iosig.trace.open({str(odd)!r})"
    assert [job.table(files=os.fsdecode(glob)).num_rows for glob in (b"a", b"\xff*")] == [4, 0]


def test_an_output_that_cannot_be_written_is_named(iosig: Iosig, traces: list[Path], tmp_path: Path) -> None:
    sql = ("query", "sql", "SELECT * FROM accesses", *traces)
    with Path("/dev/full").open("w") as full:
        for words in (sql, (*sql, "--json"), (*sql, "--csv"), ("report", *traces, "-o", "-")):
            done = subprocess.run(
                [BUILD / "bin" / "iosig", *words], stdout=full, stderr=subprocess.PIPE, text=True, env=iosig.env
            )
            assert (done.returncode, done.stderr.count("\n")) == (4, 1)
            assert done.stderr.endswith(": standard output: No space left on device\n")
    assert "/dev/full: No space left" in iosig("report", *traces, "-o", "/dev/full", check=4).stderr
    absent = tmp_path / "absent" / "out"
    said = iosig("export", "--format", "parquet", *traces, "-o", absent, check=4).stderr
    assert said == f"iosig export: {absent}: No such file or directory\n"


def test_a_data_set_that_does_not_fit_is_named(
    traces: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: object) -> int:
        raise OSError(errno.ENOSPC, "as pyarrow raises it, without the file")

    monkeypatch.setattr(parquet, "write_partition", no_space)
    with pytest.raises(OSError, match="No space left on device") as raised:
        parquet.write(iosig.trace.open(*traces), tmp_path / "out")
    assert raised.value.filename == str(tmp_path / "out")


def test_a_reader_that_has_enough_ends_the_command_as_it_does_the_native_ones(iosig: Iosig, traces: list[Path]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    words = [BUILD / "bin" / "iosig", "query", "sql", "SELECT 1", traces[0]]
    done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, text=True, env=iosig.env)
    os.close(writer)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, "")


def test_the_command_answers_as_table_json_and_csv(iosig: Iosig, traces: list[Path], tmp_path: Path) -> None:
    sql = "SELECT call, count(*) AS calls, max(rank) AS rank FROM accesses GROUP BY call ORDER BY call"
    told = iosig.json("query", "sql", sql, *traces)
    assert told["schema"] == "iosig.sql/1"
    assert told["columns"][1] == {"name": "calls", "type": "BIGINT"}
    assert [tuple(row.values()) for row in told["rows"]] == [
        ("MPI_File_write_at", 2, 1),
        ("open", 1, 0),
        ("pread", 2, 0),
        ("pwrite", 2, 1),
    ]
    out = tmp_path / "out"
    said = iosig("export", "--format", "parquet", *traces, "-o", out, "--layer", "posix").stdout
    assert said == f"{out}: 5 accesses of 2 traces\n"
    assert iosig("query", "sql", sql, out, "--csv").stdout == "call,calls,rank\nopen,1,0\npread,2,0\npwrite,2,1\n"
    assert iosig("query", "sql", "SELECT 1 AS one, NULL AS none", out).stdout == "ONE  NONE\n  1     -\n"
    assert "exists" in iosig("export", "--format", "parquet", traces[0], "-o", out, check=2).stderr
    assert "-o is required" in iosig("export", "--format", "parquet", traces[0], check=2).stderr
    assert "Permission Error" in iosig("query", "sql", ATTACKS[0], out, check=3).stderr


def test_the_notebook_shows_the_same_of_duckdb_and_of_a_dask_cluster(iosig: Iosig, tmp_path: Path) -> None:
    cells = json.loads((ROOT / "examples" / "trace.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert sum("assert" in cell for cell in code) == 1  # its end, where the engines' answers are compared
    script = tmp_path / "notebook.py"  # Dask's workers import it
    script.write_text(f"if __name__ == '__main__':\n    for cell in {code!r}:\n        exec(cell, globals())\n")
    environment = iosig.env | {"PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
