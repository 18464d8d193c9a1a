"""`iosig export`: Perfetto's protobuf, read by its own messages; the text of darshan-dxt-parser; whole files only."""

from __future__ import annotations

import resource
import shutil
import signal
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conftest import Iosig
from darshan_logs import DarshanLog, Segment
from tracing import Row, Tracing

COLUMNS = "id,parent,host,pid,tid,rank,layer,call,path,fd,offset,length,start_ns,end_ns,result"

# Rank 0 writes collectively, with POSIX calls below; a stream's write has an fsync beside it below; a second thread has
# overlapping requests, a third one on another host has the same pid and tid, and a call that never returned.
CALLS = """\
1,0,n1,7,7,0,,MPI_File_write_all,/d/a,,0,100,1000,9000,100
2,1,n1,7,7,0,,pwrite,/d/a,5,0,60,1000,3000,60
3,1,n1,7,7,0,,pwrite,/d/a,5,60,40,3000,9000,40
4,0,n1,7,7,0,,fwrite,/d/b,,0,10,9500,9900,10
5,4,n1,7,7,0,,write,/d/b,6,0,10,9500,9800,10
6,5,n1,7,7,0,,fsync,/d/b,6,,,9600,9700,0
1,0,n1,7,8,0,,pread,/d/a,5,0,8,2000,6000,8
2,0,n1,7,8,0,,pread,/d/a,5,8,8,3000,7000,-5
3,0,n1,7,8,0,,pread,/d/a,5,16,8,6500,6500,0
1,0,n2,7,7,1,,open,/d/c,9,,,4000,,
"""


def imported(iosig: Iosig, directory: Path, lines: str = CALLS) -> Path:
    (directory / "calls.csv").write_text(COLUMNS + "\n" + lines)
    iosig("import", directory / "calls.csv", "-o", directory / "job.trace")
    return directory / "job.trace"


@dataclass
class Slice:
    process: str
    thread: str
    track: str
    call: str
    start_ns: int
    end_ns: int | None
    arguments: dict[str, Any]
    arrows_from: list[int]
    arrows_to: list[int]


def slices_of(content: bytes) -> list[Slice]:
    """What Perfetto would show, with its rules: events by time, each track a stack, texts by their numbers."""
    trace_pb2 = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = trace_pb2.Trace()
    trace.ParseFromString(content)
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
    texts: dict[str, dict[int, str]] = defaultdict(dict)
    events = []
    for packet in trace.packet:
        assert packet.trusted_packet_sequence_id == 1
        for name, entries in packet.interned_data.ListFields():
            assert packet.sequence_flags in ((3,) if not texts else (2,))
            for entry in entries:
                text = entry.str.decode() if name.name == "debug_annotation_string_values" else entry.name
                texts[name.name][entry.iid] = text
        if packet.HasField("track_event"):
            assert packet.sequence_flags == 2
            events.append((packet.timestamp, packet.track_event))
    pids = [t.process.pid for t in tracks.values() if t.HasField("process")]
    tids = [t.thread.tid for t in tracks.values() if t.HasField("thread")]
    assert len(set(pids)) == len(pids) and len(set(tids)) == len(tids)
    open_on: dict[int, list[Slice]] = defaultdict(list)
    found = []
    for time, event in sorted(events, key=lambda each: each[0]):
        stack = open_on[event.track_uuid]
        if event.type == event.TYPE_SLICE_END:
            stack.pop().end_ns = time
            continue
        track = tracks[event.track_uuid]
        thread = tracks[track.parent_uuid]
        process = tracks[thread.parent_uuid]
        assert thread.thread.pid == process.process.pid
        arguments = {
            texts["debug_annotation_names"][a.name_iid]: texts["debug_annotation_string_values"][a.string_value_iid]
            if a.HasField("string_value_iid")
            else a.int_value
            for a in event.debug_annotations
        }
        made = Slice(
            process.process.process_name, thread.thread.thread_name, track.name, texts["event_names"][event.name_iid],
            time, None, arguments, list(event.flow_ids), list(event.terminating_flow_ids),
        )  # fmt: skip
        assert all(above.end_ns is None for above in stack)
        found.append(made)
        if event.type == event.TYPE_SLICE_BEGIN:
            stack.append(made)
    return found


def check_slices(rows: list[Row], slices: list[Slice]) -> None:
    def key(call: str, tid: int, start: int, end: int | None, arguments: dict[str, Any]) -> tuple[Any, ...]:
        return (call, tid, start, end or -1, tuple(sorted((k, str(v)) for k, v in arguments.items() if v is not None)))

    wanted = {
        row.id: key(row.call, row.tid, row.start_ns, row.end_ns, {
            "path": row.path or None, "second_path": row.second_path or None, "fd": row.fd, "offset": row.offset,
            "length": row.length, "result": row.result,
        })
        for row in rows
    }  # fmt: skip
    found = [key(s.call, int(s.thread.split()[1]), s.start_ns, s.end_ns, s.arguments) for s in slices]
    assert sorted(found) == sorted(wanted.values())
    by_id = {row.id: row for row in rows}
    arrows = {
        int(row.id)
        for row in rows
        if row.parent in by_id and by_id[row.parent].layer != row.layer
    }  # fmt: skip
    assert {each for s in slices for each in s.arrows_to} == arrows
    for s, made in zip(slices, found, strict=True):
        for each in s.arrows_to:
            assert wanted[str(each)] == made
        for each in s.arrows_from:
            assert each in arrows and wanted[by_id[str(each)].parent] == made


def test_perfetto_shows_each_call_with_its_arguments_on_a_track_of_its_rank_thread_and_layer(
    iosig: Iosig, tmp_path: Path
) -> None:
    tracing = Tracing(iosig, tmp_path / "directory")
    tracing.trace = imported(iosig, tmp_path)
    iosig("export", "--format", "perfetto", tracing.trace, "-o", tmp_path / "made")
    slices = slices_of((tmp_path / "made").read_bytes())
    check_slices(tracing.rows(), slices)
    assert [(s.process, s.thread, s.track) for s in slices if s.call == "open"] == [
        ("rank 1, n2", "thread 7", "posix")
    ]  # fmt: skip
    assert [s.track for s in slices if s.thread == "thread 8"] == ["posix", "posix 2", "posix"]
    assert {s.track for s in slices if s.process == "rank 0, n1" and s.thread == "thread 7"} == {
        "mpi-io", "stdio", "posix",
    }  # fmt: skip
    piped = subprocess.run(
        [iosig.binary, "export", "--format", "perfetto", tracing.trace], capture_output=True, env=iosig.env, check=True
    )
    assert piped.stdout == (tmp_path / "made").read_bytes()


def test_perfetto_has_what_a_traced_program_did(tracing: Tracing) -> None:
    tracing("sh", "-c", "cat /etc/passwd > a; cp a b; mv b 'c d'; cat a 'c d' > e; awk '{ print > \"f\" }' a")
    rows = tracing.rows()
    assert {row.layer for row in rows} == {"posix", "stdio"} or len(rows) > 20
    tracing.iosig("export", "--format", "perfetto", tracing.trace, "-o", tracing.directory / "made")
    check_slices(rows, slices_of((tracing.directory / "made").read_bytes()))


def dxt_line(module: str, rank: int, kind: str, number: int, segment: Segment) -> str:
    """As darshan-dxt-logutils.c prints it."""
    offset, length, start, end = segment
    return "%8s%8d%7s%9d%16d%16d%12.4f%12.4f" % (module, rank, kind, number, offset, length, start, end)  # noqa: UP031


WRITES: list[Segment] = [(4096 * n, 4096, 3.25 + n, 3.75 + n) for n in range(4)]
READS: list[Segment] = [(4096 * n, 100, 10.0 + n, 10.25 + n) for n in range(2)]


def dxt_log() -> DarshanLog:
    log = DarshanLog(processes=2, names={11: "/data/a", 22: "/data/b"})
    for rank in (0, 1):
        log.add_segments("DXT_MPIIO", 3, 11, rank, WRITES, READS, thread=5)
        log.add_segments("DXT_POSIX", 2, 22, rank, READS, WRITES[:1], thread=5)
    return log


def test_dxt_text_of_an_imported_log_has_the_lines_of_darshans_parser(iosig: Iosig, tmp_path: Path) -> None:
    (tmp_path / "job.darshan").write_bytes(dxt_log().encoded())
    iosig("import", tmp_path / "job.darshan", "-o", tmp_path / "job.trace")
    iosig("export", "--format", "dxt-text", tmp_path / "job.trace", "-o", tmp_path / "job.txt")
    lines = (tmp_path / "job.txt").read_text().splitlines()
    wanted = []
    for module, writes, reads in (("X_POSIX", READS, WRITES[:1]), ("X_MPIIO", WRITES, READS)):
        for rank in (0, 1):
            wanted += [dxt_line(module, rank, "write", n, segment) for n, segment in enumerate(writes)]
            wanted += [dxt_line(module, rank, "read", n, segment) for n, segment in enumerate(reads)]
    assert [line for line in lines if line and not line.startswith("#")] == wanted
    assert "# start_time: 1700000000" in lines and "# nprocs: 2" in lines
    assert lines.count("# DXT, rank: 1, hostname: node7") == 2
    assert (
        lines.count("# DXT, write_count: 4, read_count: 2") == lines.count("# DXT, write_count: 2, read_count: 1") == 2
    )
    if shutil.which("darshan-dxt-parser"):
        told = subprocess.run(
            ["darshan-dxt-parser", tmp_path / "job.darshan"], capture_output=True, text=True, check=True
        )
        assert sorted(wanted) == sorted(line for line in told.stdout.splitlines() if line[:3] == " X_")


def test_dxt_text_leaves_out_what_dxt_has_not_and_says_so(iosig: Iosig, tmp_path: Path) -> None:
    lines = CALLS + "2,0,n2,7,7,1,,pread,/d/c,9,,9,5000,6000,9\n3,0,n2,7,7,1,,pwrite,/d/c,9,0,9,7000,,\n"
    done = iosig("export", "--format", "dxt-text", imported(iosig, tmp_path, lines))
    found = [line.split() for line in done.stdout.splitlines() if line[:3] == " X_"]
    assert [(f[0], f[1], f[2], f[4], f[5]) for f in found] == [
        ("X_POSIX", "0", "write", "0", "60"),
        ("X_POSIX", "0", "write", "60", "40"),
        ("X_POSIX", "0", "read", "0", "8"),
        ("X_POSIX", "0", "read", "16", "0"),
        ("X_POSIX", "0", "write", "0", "10"),
        ("X_POSIX", "1", "read", "N/A", "9"),
        ("X_MPIIO", "0", "write", "0", "100"),
    ]
    assert "1 read or write left out: DXT has no stdio" in done.stderr
    assert "1 read or write left out: without an end" in done.stderr


@pytest.mark.parametrize("name", ["csv", "perfetto", "dxt-text"])
def test_a_file_is_complete_or_as_it_was(iosig: Iosig, tmp_path: Path, name: str) -> None:
    trace = imported(iosig, tmp_path)
    made = tmp_path / "out" / "made"
    made.parent.mkdir()
    command = [iosig.binary, "export", "--format", name, trace, "-o", made]

    def limit() -> None:  # as a disk that is full
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    full = subprocess.run(command, env=iosig.env, capture_output=True, text=True, preexec_fn=limit)
    assert full.returncode == 4 and str(made.parent) in full.stderr
    assert list(made.parent.iterdir()) == []
    made.write_text("old")
    made.chmod(0o640)
    if shutil.which("strace"):
        # The first write is the note on the hosts' clocks.
        killing = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=write", "-e", "inject=write:signal=SIGTERM:when=2"]
        killed = subprocess.run([*killing, *command], env=iosig.env, capture_output=True, text=True)
        assert killed.returncode == 128 + signal.SIGTERM, killed.stderr
        assert made.read_text() == "old" and list(made.parent.iterdir()) == [made]
    (tmp_path / "link").symlink_to(made)
    iosig("export", "--format", name, trace, "-o", tmp_path / "link")
    assert made.stat().st_size > 100 and made.stat().st_mode & 0o777 == 0o640 and (tmp_path / "link").is_symlink()
