"""`iosig infer`: the signatures that it finds against what programs do by construction."""

from __future__ import annotations

import shutil
import statistics
import sys
from collections import Counter
from typing import Any

import pytest
from test_workloads import PROGRAM, SMALL, workloads

from tracing import Tracing

MB = 1 << 20
PYTHON = (sys.executable, "-S", "-E", "-c")


def inferred(tracing: Tracing, *options: object) -> dict[str, dict[str, Any]]:
    """The streams of the last trace, by glob relative to the program's directory."""
    found = tracing.iosig.json("infer", tracing.trace, *options)["streams"]
    return {each["glob"].removeprefix(f"{tracing.directory}/"): each for each in found}


# What each workload's accesses are by its definition in bench/workloads.
ORDERS = {
    "n1-strided": "strided", "n1-segmented": "sequential", "n-n": "sequential", "nersc": "strided",
    "lanl-1": "sequential", "lanl-2": "strided", "lanl-3": "strided", "milc-a": "strided", "milc-b": "sequential",
    "milc-c": "sequential", "btio": "strided", "flash": "strided", "flash-fuse": "sequential", "pagoda": "strided",
    "zipf": "random", "random": "random",
}  # fmt: skip


@pytest.mark.skipif(not PROGRAM.exists(), reason="bench/workloads is not built (IOSIG_TESTS=ON)")
@pytest.mark.parametrize("name", ORDERS)
def test_the_workloads_are_recognised(tracing: Tracing, name: str) -> None:
    parameters = SMALL[name][0].replace("--buffer 64", "--buffer 24").split()  # more than one buffer each
    printed = workloads("print", name, *parameters, "--columns", "logical,length").stdout
    rows = [tuple(map(int, line.split())) for line in printed.splitlines() if line[:1].isdigit()]
    sizes = Counter(length for _, length in rows)
    tracing(PROGRAM, "run", name, "file", *parameters, "--write")
    [stream] = inferred(tracing).values()
    words = stream["signature"].split()
    end = max(offset + length for offset, length in rows)
    assert (stream["writes"], stream["written_bytes"]) == (len(rows), sum(length for _, length in rows))
    assert "nosync" in words and words[0] == "persist" and not any(word.startswith("read-share") for word in words)
    assert f"totalsize({text_of(end)})" in words
    assert stream["order"] == ORDERS[name]
    typical = max(sizes, key=lambda size: (sizes[size], size))
    if sizes[typical] >= len(rows) / 2:
        assert f"size-per-IO({text_of(typical)})" in words
    for word in stream["words"]:
        assert word["confidence"] < 0.9 or is_true(word["word"], rows, name), word


def text_of(size: int) -> str:
    for unit, bytes_of in (("MB", MB), ("KB", 1 << 10)):
        if size % bytes_of == 0:
            return f"{size // bytes_of}{unit}"
    return f"{size}B"


def is_true(word: str, rows: list[tuple[int, ...]], name: str) -> bool:
    end = max(offset + length for offset, length in rows)
    median = statistics.median_low([length for _, length in rows])
    if word.startswith("size-per-IO"):
        return any(
            word == f"size-per-IO({text_of(length)})" and median / 2 <= length <= median * 2 for _, length in rows
        )
    return word in (
        "persist", "nosync", f"totalsize({text_of(end)})", "random" if ORDERS[name] == "random" else "sequential",
        f"passes({round(sum(length for _, length in rows) / end)})",
    )  # fmt: skip


# Programs of Debian; the words that are true of a file, as a set, whatever else is said.
PROGRAMS = {
    "dd": (["dd", "if=in", "of=out", "bs=64K"],
           {"out": "persist sequential nosync size-per-IO(64KB) totalsize(3MB)",
            "in": "sequential nosync size-per-IO(64KB) totalsize(3MB) read-share(1)"}),
    "dd with O_DSYNC": (["dd", "if=in", "of=out", "bs=128K", "oflag=dsync"],
                        {"out": "persist sequential sync size-per-IO(128KB) totalsize(3MB)"}),
    "dd in place": (["dd", "if=in", "of=out", "bs=4K", "count=100", "conv=notrunc"],
                    {"out": "persist sequential nosync size-per-IO(4KB) totalsize(400KB)"}),
    "cat": (["sh", "-c", "cat in in > out"],
            {"out": "persist sequential nosync totalsize(6MB)"}),
    "sort": (["sort", "-S", "1M", "-T", ".", "--parallel=1", "-o", "out", "lines"],
             {"out": "persist sequential nosync", f"sort{'[A-Za-z0-9_]' * 6}": "sequential nosync passes(2)"}),
    "tar": (["tar", "cf", "out", "in"], {"out": "persist sequential nosync size-per-IO(10KB)"}),
    "gzip": (["gzip", "-1", "-k", "in"], {"in.gz": "persist sequential nosync"}),
    "split": (["split", "-b", "1M", "-d", "in", "piece"], {"piece[0-9][0-9]": "persist sequential totalsize(1MB)"}),
    "sed": (["sh", "-c", "for n in $(seq 20); do echo 1 > l$n; done; sed -i s/1/2/ l*"],
            {f"sed{'[A-Za-z0-9_]' * 6}": "persist sequential nosync"}),
    "a database": ([*PYTHON, "import sqlite3\nbase = sqlite3.connect('base')\nbase.execute('create table t (a)')\n"
                    "for n in range(20):\n  base.execute('insert into t values (?)', (n,))\n  base.commit()\n"],
                   {"base-journal": "sync"}),
    "random updates": ([*PYTHON, "import os, random\nfd = os.open('out', os.O_RDWR | os.O_CREAT)\n"
                        "places = list(range(300))\n"
                        "random.shuffle(places)\nfor n in places: os.pwrite(fd, bytes(8192), n * 8192)\n"],
                       {"out": "persist random nosync size-per-IO(8KB) totalsize(2400KB)"}),
    "a file for each process": (
        [*PYTHON, "import os\nfor n in range(4):\n  if os.fork() == 0:\n"
         "    with open(f'log.{os.getpid()}', 'wb', 0) as log:\n"
         "      for n in range(50): log.write(bytes(100))\n    os._exit(0)\nfor n in range(4): os.wait()\n"],
        {"log.[0-9]*": "persist sequential nosync size-per-IO(100B) totalsize(5000B)"}),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_recognised(tracing: Tracing, name: str) -> None:
    command, truth = PROGRAMS[name]
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")
    (tracing.directory / "in").write_bytes(bytes(range(256)) * (3 * MB // 256))
    if "lines" in command:
        (tracing.directory / "lines").write_text("".join(f"{n * 7919 % 100003}\n" for n in range(600_000)))
    tracing(*command)
    streams = inferred(tracing)
    for glob, words in truth.items():
        assert glob in streams, (glob, list(streams))
        missing = set(words.split()) - set(streams[glob]["signature"].split())
        assert not missing, (glob, missing, streams[glob])


def test_the_rules_serve_prepare_and_the_pragmas_are_signatures(tracing: Tracing) -> None:
    tracing(*PYTHON, "for n in range(3):\n  with open(f'step{n}.out', 'wb') as out: out.write(bytes(100000))\n"
            "with open('odd [name] \"x\"', 'wb') as out: out.write(bytes(10))\n")  # fmt: skip
    rules = tracing.directory / "rules.toml"
    tracing.iosig("infer", tracing.trace, "--why", "-o", rules)
    told = tracing.iosig("run", "--rules", rules, "--", "true").stderr
    assert told.count("this rule does nothing here: its signature has no `container`") == 2  # it is read, all of it
    text = rules.read_text()
    assert "step[0-9]*.out" in text and "# path: the number varies in 3 names" in text
    for line in tracing.iosig("infer", tracing.trace, "--pragmas").stdout.splitlines():
        if line.startswith("#pragma sig "):
            tracing.iosig.json("choose", line.removeprefix("#pragma sig "))


def test_two_runs_tell_what_differs(tracing: Tracing) -> None:
    for size in (1000, 3000):
        tracing(*PYTHON, f"with open('out.{size}', 'wb', 0) as out: out.write(bytes({size}))")
    first = tracing.trace.with_name(f"trace.{int(tracing.trace.suffix[1:]) - 1}")
    [stream] = tracing.iosig.json("infer", first, tracing.trace)["streams"]
    assert stream["glob"] == f"{tracing.directory}/out.[0-9]*"
    [total] = [word for word in stream["words"] if word["word"].startswith("totalsize")]
    assert total["word"] == "totalsize(3000B)" and total["confidence"] < 0.9 and "runs differ: " in total["why"]
    assert "are traces of one run" in tracing.iosig("infer", first, first, check=2).stderr


def test_a_killed_run_is_less_sure(tracing: Tracing) -> None:
    program = tracing.start(*PYTHON, "import os\nopen('out', 'wb', 0).write(bytes(100))\nos.unlink('out')\n"
                            "with open('kept', 'wb', 0) as out:\n  for n in range(100): out.write(bytes(100))\n"
                            "os.kill(os.getpid(), 9)\n")  # fmt: skip
    program.communicate()
    streams = inferred(tracing)
    assert all(word["confidence"] < 0.9 for stream in streams.values() for word in stream["words"])
    assert "the run was killed" in streams["kept"]["remarks"]
    assert "sequential nosync size-per-IO(100B)" in streams["kept"]["signature"]
    assert "temp" not in streams["out"]["signature"]


def test_of_selected_calls_no_life_is_told(tracing: Tracing) -> None:
    tracing("sh", "-c", "dd if=/dev/zero of=out bs=64K count=40; rm out", options=("--ops", "open,write"))
    assert inferred(tracing)["out"]["signature"] == "sequential size-per-IO(64KB) totalsize(2560KB)"


def test_files_without_a_name_have_no_rule(tracing: Tracing) -> None:
    tracing(*PYTHON, "import os\nfd = os.open('.', os.O_RDWR | os.O_TMPFILE)\nos.write(fd, bytes(5000))\n"
            "fd = os.open('gone', os.O_RDWR | os.O_CREAT)\nos.unlink('gone')\nos.write(fd, bytes(5000))\n")  # fmt: skip
    done = tracing.iosig("infer", tracing.trace, check=None)
    assert set(inferred(tracing)) == {"gone"}, done.stdout


def test_a_name_that_no_rule_can_have_is_told_where_its_rule_would_be(tracing: Tracing) -> None:
    tracing(sys.executable, "-S", "-E", "-c", """if True:
        for name in ("a", "odd\\n[[rule]]", "z"):
            with open(name, "wb") as file: file.write(b"x" * 5000)
    """)  # fmt: skip
    done = tracing.iosig("infer", tracing.trace)
    blocks = done.stdout.split("\n\n")
    odd = [block for block in blocks if "odd" in block]
    assert len(blocks) == 4 and len(odd) == 1  # the head, and one for each file
    assert all(line.startswith("# ") for line in odd[0].splitlines())
    assert "odd\\x0a" in odd[0] and "its name has control characters" in odd[0]


def test_an_output_is_not_replaced_by_accident(tracing: Tracing) -> None:
    tracing(*PYTHON, "open('out', 'wb').write(bytes(100))")
    rules = tracing.directory / "rules.toml"
    rules.write_text("edited")
    assert "--force" in tracing.iosig("infer", tracing.trace, "-o", rules, check=2).stderr
    assert rules.read_text() == "edited"
    tracing.iosig("infer", tracing.trace, "--force", "-o", rules)
    assert "[[rule]]" in rules.read_text()
    assert "no read or write" in tracing.iosig("infer", tracing.trace, "--files", "none", check=1).stderr


def test_a_selection_of_files_sees_what_becomes_of_them(tracing: Tracing) -> None:
    tracing(*PYTHON, "import os\nos.mkdir('a')\nopen('a/out', 'wb').write(bytes(100))\nos.rename('a', 'b')\n"
            "os.mkdir('a')\nopen('a/out', 'wb').write(bytes(100))\nos.unlink('a/out')\n")  # fmt: skip
    [stream] = inferred(tracing, "--files", "out").values()
    assert "temp" not in stream["signature"].split()  # b/out is still there


def test_bad_input_is_refused(tracing: Tracing) -> None:
    assert tracing.iosig("infer", tracing.directory, check=3).stderr
    assert tracing.iosig("infer", tracing.directory / "none", check=4).stderr
    assert tracing.iosig("infer", "--min-confidence", "2", "x", check=2).stderr
    assert tracing.iosig("infer", "--min-bytes", "many", "x", check=2).stderr
