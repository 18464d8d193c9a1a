"""libiosig-preload.so: unmodified programs read and write containers, and get what a plain file gives them."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from preloading import LIBRARY, Preloaded, sample

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="built without libiosig-preload.so")


def test_tools_copy_compare_and_read(run: Preloaded) -> None:
    source = run.directory.parent / "source"
    for size in (0, 1, 4096, 1_234_567):
        source.write_bytes(sample(size, size))
        run("cp", source, "copy")
        assert run.is_container("copy") and run.content("copy") == source.read_bytes()
        run("cmp", source, "copy")
        run("cp", "copy", "again")
        run("cmp", "copy", "again")
        assert run("wc", "-c", "again").split()[0] == str(size)
        assert run("sh", "-c", "cat copy | cmp - again && cat again again | wc -c").strip() == str(2 * size)
        run("rm", "copy", "again")
    assert list(run.directory.iterdir()) == []


def test_dd_writes_blocks_in_any_order(run: Preloaded) -> None:
    source = run.directory.parent / "source"
    source.write_bytes(sample(1, 10 * 512))
    for block in (7, 0, 3, 9, 1, 8, 2, 6, 5, 4):
        run(
            *f"dd if={source} of=file bs=512 count=1 conv=notrunc status=none".split(), f"skip={block}", f"seek={block}"
        )
    assert run.content("file") == source.read_bytes()
    run(*["dd", "if=file", "of=tail", "bs=1000", "skip=2", "status=none"])
    assert run.content("tail") == source.read_bytes()[2000:]
    run(*f"dd if={source} of=file bs=512 count=1 seek=3 status=none".split())  # cuts what is behind
    assert run.content("file") == source.read_bytes()[: 3 * 512] + source.read_bytes()[:512]


def test_tar_goes_both_ways(run: Preloaded) -> None:
    plain = run.directory.parent / "plain"
    (plain / "below").mkdir(parents=True)
    for size in (0, 700, 100_000):
        (plain / "below" / f"{size}").write_bytes(sample(size, size))
    (plain / "link").symlink_to("below/700")
    run("tar", "-cf", "archive", "-C", plain, ".")
    assert run.is_container("archive")
    run("sh", "-c", "mkdir out && tar -xf archive -C out && tar -df archive -C out")
    assert (run.directory / "out/below").is_dir() and not (
        run.directory / "out/below/700"
    ).is_dir()  # the glob ends above it
    run(
        "sh",
        "-c",
        f"cd {plain}/below && cp 0 700 100000 {run.directory}/out"
        f" && tar -cf {plain}/again.tar -C {run.directory} out/700",
    )
    assert subprocess.run(["tar", "-xOf", plain / "again.tar"], capture_output=True, check=True).stdout == sample(
        700, 700
    )
    listed = run("ls", "-l", "out/100000")
    assert listed.startswith("-") and " 100000 " in listed


def test_tail_follows_a_container(run: Preloaded) -> None:
    """A watch of the container would report its pieces, so there is none, and tail polls."""
    script = "seq 3 > log; timeout 4 tail -s 0.2 -f log & sleep 1; echo 4 >> log; wait || :"
    assert run("sh", "-c", script, quiet=False).split() == ["1", "2", "3", "4"]


def test_sort_writes_over_what_it_reads(run: Preloaded) -> None:
    lines = [f"{number}\n" for number in random.Random(1).sample(range(100_000), 5000)]
    source = run.directory.parent / "source"
    source.write_text("".join(lines))
    run("cp", source, "file")
    run("sort", "-o", "file", "file")
    assert run.content("file").decode() == "".join(sorted(lines))


def test_shells_lead_programs_to_containers(run: Preloaded) -> None:
    run("sh", "-c", "echo one > file; echo two >> file; printf three >> file; { echo; seq 1000; } >> file")
    wanted = "one\ntwo\nthree\n" + "".join(f"{n}\n" for n in range(1, 1001))
    assert run.content("file").decode() == wanted
    assert run("sh", "-c", "wc -l < file; head -n 1 < file; read line < file; echo $line") == "1003\none\none\n"
    run("sh", "-c", "set -C; ! echo no > file") if False else None
    run("sh", "-c", "{ echo out; echo err >&2; sh -c 'echo inner'; } > both 2>&1")
    assert run.content("both") == b"out\nerr\ninner\n"
    run("sh", "-c", "exec 3<> file; echo ONE >&3; sed -n 1p <&3 >&4", quiet=False, status=2)  # 4 is not open
    assert run.content("file").startswith(b"ONE\ntwo\n")


def test_python_programs_work(run: Preloaded) -> None:
    run.python(
        """
import mmap, os
with open("file", "wb+", buffering=64) as file:
    for n in range(100):
        file.write(bytes([n]) * 50)
    file.seek(1000)
    assert file.read(60) == bytes([20]) * 50 + bytes([21]) * 10
    file.seek(500)
    file.write(b"x" * 10)
    assert file.tell() == 510 and os.fstat(file.fileno()).st_size == 5000
    file.truncate(4000)
    file.seek(0, os.SEEK_END)
    assert file.tell() == 4000
    file.truncate(6000)
with open("file", "ab") as file:
    assert file.tell() == 6000
    file.write(b"end")
with open("file", "rb") as file:
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as seen:
        assert len(seen) == 6003 and seen[500:511] == b"x" * 10 + bytes([10])
        assert seen[4000:6003] == bytes(2000) + b"end"
text = open("text", "w+")
print("line", 1, file=text)
text.flush()
assert open("text").read() == "line 1\\n" and os.path.getsize("text") == 7 and os.path.isfile("text")
assert [entry.is_file() for entry in os.scandir(".")] == [True, True] and sorted(os.listdir(".")) == ["file", "text"]
"""
    )
    assert run.is_container("file") and run.content("file")[6000:] == b"end"


def test_files_that_are_not_bound_stay_files(run: Preloaded) -> None:
    run(
        "sh",
        "-c",
        "echo text > ordinary.plain; cp ordinary.plain copy.plain; mkdir directory; echo x > directory/a.plain",
    )
    assert (run.directory / "copy.plain").read_text() == "text\n" and (
        run.directory / "directory/a.plain"
    ).read_text() == "x\n"
    (run.directory / "before").write_text("was there")
    run("sh", "-c", "echo more >> before")
    assert (run.directory / "before").read_text() == "was theremore\n"
    elsewhere = run.directory.parent / "elsewhere"
    run("sh", "-c", f"echo text > {elsewhere}")
    assert elsewhere.read_text() == "text\n"


def test_no_room_is_told_and_what_was_written_stays(small: Preloaded) -> None:
    said = small.python(
        """
import errno, os
fd = os.open("file", os.O_RDWR | os.O_CREAT)
done = 0
try:
    while True:
        done += os.pwrite(fd, bytes([1 + done // 4096 % 250]) * 4096, done)
except OSError as refusal:
    assert refusal.errno == errno.ENOSPC, refusal
assert os.pread(fd, 4096, done - 4096) == bytes([1 + (done // 4096 - 1) % 250]) * 4096
print(done)
""",
        quiet=False,
    )
    done = int(said)
    assert done >= 512 * 1024
    wanted = b"".join(bytes([1 + n % 250]) * 4096 for n in range(done // 4096 + 1))
    content = small.content("file")
    assert len(content) >= done and content[:done] == wanted[:done]
    small("rm", "file")
    assert list(small.directory.iterdir()) == []
    small("sh", "-c", "echo works > file")
    assert small.content("file") == b"works\n"


def test_messages_name_the_file_that_the_user_knows(run: Preloaded) -> None:
    run("sh", "-c", "mkdir below; echo text > below/cut; echo text > below/lost")
    (run.directory / "below/cut/.iosig-container").write_text("{")
    (run.directory / "below/lost/d0/data.0").unlink()
    for name in ("cut", "lost"):
        command = f"""
import os
os.read(os.open("{name}", os.O_RDONLY, dir_fd=os.open("below", os.O_RDONLY)), 9)
"""
        program = run.start(sys.executable, "-S", "-E", "-c", command)
        complained = program.communicate(timeout=60)[1].decode()
        assert f"{run.directory}/below/{name}/" in complained.splitlines()[0] and "/proc" not in complained
    refused = run.start("sh", "-c", "echo > none/file").communicate(timeout=60)[1]
    assert refused == b"sh: 1: cannot create none/file: Directory nonexistent\n"  # what errno says is not said again


def test_databases_in_wal_mode_work_in_several_processes(run: Preloaded) -> None:
    run.env["IOSIG_CONTAINERS"] = "*"
    program = """
import sqlite3, sys
database = sqlite3.connect("a.db", timeout=60, isolation_level=None)
assert database.execute("pragma journal_mode=wal").fetchall() == [("wal",)]
database.execute("create table if not exists t(writer, number, text)")
for number in range(60):
    database.execute("begin immediate")
    database.execute("insert into t values(?, ?, ?)", (int(sys.argv[1]), number, "x" * 500))
    database.execute("commit")
assert database.execute("select count(*) from t where writer = ?", (int(sys.argv[1]),)).fetchall() == [(60,)]
"""
    run(sys.executable, "-c", "import sqlite3; sqlite3.connect('a.db').execute('pragma journal_mode=wal')", quiet=False)
    writers = [run.start(sys.executable, "-c", program, number) for number in range(4)]
    for writer in writers:
        said = writer.communicate(timeout=60)
        assert writer.returncode == 0, said
    program = "import sqlite3; print(*sqlite3.connect('a.db').execute(*__import__('sys').argv[1:]).fetchall())"
    assert run(sys.executable, "-c", program, "pragma integrity_check", quiet=False) == "('ok',)\n"
    counted = "select writer, count(*), sum(number), sum(length(text)) from t group by writer"
    assert run(sys.executable, "-c", program, counted) == " ".join(f"({n}, 60, 1770, 30000)" for n in range(4)) + "\n"
    assert run.is_container("a.db")


def test_streams_tell_that_there_is_no_room(small: Preloaded) -> None:
    full = small.start("seq", "1000000", stdout=(small.directory / "file.plain").open("wb"))
    plain = full.communicate(timeout=60)[1]
    (small.directory / "file.plain").unlink()
    full = small.start("sh", "-c", "exec seq 1000000 > file")
    complained = full.communicate(timeout=60)[1].decode().splitlines()
    assert complained[-1].encode() == plain.strip() and b"No space left" in plain and full.returncode == 1
    assert [line.split(":")[0] for line in complained[:-1]] == ["iosig"] * (len(complained) - 1)
    content = small.content("file").decode()
    assert len(content) > 512 * 1024 and "".join(f"{n}\n" for n in range(1, 200_000)).startswith(content)
    small("rm", "file")
    small("sh", "-c", "seq 10000 > file")
    assert len(small.content("file")) == 48_894


def test_streams_are_opened_anew(run: Preloaded) -> None:
    program = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.fopen.restype = libc.freopen.restype = ctypes.c_void_p
libc.fputs.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
libc.freopen.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p]
libc.fclose.argtypes = libc.fileno.argtypes = [ctypes.c_void_p]
for number, (one, other) in enumerate([("a", "b"), ("a", "b.plain"), ("a.plain", "b"), ("a", "a")]):
    one, other = f"{number}{one}".encode(), f"{number}{other}".encode()
    stream = libc.fopen(one, b"w")
    before = libc.fileno(stream)
    assert libc.fputs(b"first", stream) >= 0
    stream = libc.freopen(other, b"a", stream)
    assert stream and libc.fileno(stream) == before
    assert libc.fputs(b"second", stream) >= 0 and libc.fclose(stream) == 0
    with open(one, "rb") as file, open(other, "rb") as file2:
        said = file.read(), file2.read()
    assert said == ((b"first", b"second") if one != other else (b"firstsecond",) * 2), said
    stream = libc.fopen(one, b"r")
    fds = len(os.listdir("/proc/self/fd"))
    assert libc.freopen(b"none/file", b"r", stream) is None and ctypes.get_errno() == 2
    assert len(os.listdir("/proc/self/fd")) < fds
"""
    run.python(program)
    subprocess.run([sys.executable, "-S", "-E", "-c", program], cwd=run.directory.parent, check=True)
