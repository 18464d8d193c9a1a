"""Models of reads as docs/formats/read-model.md describes them: an independent reader, the page's examples and iosig
agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import Iosig
from trace_reader import crc32c

PAGE = Path(__file__).parent.parent.parent / "docs" / "formats" / "read-model.md"
OFFSETS = {"Patterns": [(65536 * n, 4096) for n in range(16)], "Blocks": [(0, 10), (8192, 10), (65536, 10)] * 2}


def example(heading: str) -> bytes:
    """The bytes of a section's table."""
    section = PAGE.read_text().split(f"\n### {heading}\n")[1].split("\n#")[0]
    rows = re.findall(r"^\| `([0-9a-f ]+)` \|", section, re.MULTILINE)
    assert rows
    return b"".join(bytes.fromhex(row) for row in rows)


class Reader:
    """As the page says."""

    def __init__(self, data: bytes) -> None:
        assert data[:4] == b"IOM\1" and int.from_bytes(data[-4:], "little") == crc32c(data[:-4])
        self.data, self.at = data[:-4], 4

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def take(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def files(self) -> dict[str, bytes | dict[tuple[int, int], int]]:
        """By path: the bytes of a pattern, or how often one block followed another."""
        found: dict[str, bytes | dict[tuple[int, int], int]] = {}
        for _ in range(self.varint()):
            path = self.take(self.varint()).decode()
            if self.take(1) == b"\0":
                found[path] = self.take(self.varint())
                continue
            assert self.varint() == 8192
            steps, before = {}, 0
            for _ in range(self.varint()):
                before += self.varint()
                code = self.varint()
                to = before + 1 + ((code >> 1) ^ -(code & 1))
                steps[before, to] = self.varint()
            found[path] = steps
        assert self.at == len(self.data)
        return found


def trace_of(iosig: Iosig, tmp_path: Path, reads: list[tuple[int, int]]) -> Path:
    rows = [
        f"{n + 1},1,pread,/nowhere/rows,3,{offset},{length},{n * 1000},{n * 1000 + 500},{length}"
        for n, (offset, length) in enumerate(reads)
    ]
    table = tmp_path / "reads.csv"
    table.write_text("\n".join(["id,pid,call,path,fd,offset,length,start_ns,end_ns,result", *rows]) + "\n")
    iosig("import", table, "-o", tmp_path / "trace")
    return tmp_path / "trace"


@pytest.mark.parametrize("heading", ["Patterns", "Blocks"])
def test_the_page_has_what_iosig_writes(iosig: Iosig, tmp_path: Path, heading: str) -> None:
    trace, model = trace_of(iosig, tmp_path, OFFSETS[heading]), tmp_path / "rows.reads"
    told = iosig("pattern", "trace", trace, "--model", model, *(["--markov"] if heading == "Blocks" else [])).stderr
    assert f"a model of {len(OFFSETS[heading])} reads of 1 file, {model.stat().st_size} bytes" in told
    assert model.read_bytes() == example(heading)


def test_the_examples_say_what_was_read(iosig: Iosig, tmp_path: Path) -> None:
    ((path, pattern),) = Reader(example("Patterns")).files().items()
    (tmp_path / "rows.pattern").write_bytes(pattern)
    shown = iosig("pattern", "expand", tmp_path / "rows.pattern").stdout.split("\n")
    assert path == "/nowhere/rows"
    assert [tuple(map(int, line.split()[:2])) for line in shown if line] == OFFSETS["Patterns"]
    steps = {(0, 1): 2, (1, 8): 2, (8, 0): 1}
    assert Reader(example("Blocks")).files() == {"/nowhere/rows": steps}


def test_options_of_a_model(iosig: Iosig, tmp_path: Path) -> None:
    trace = trace_of(iosig, tmp_path, [(0, 10)])
    words = ("pattern", "trace", trace)
    assert "--markov needs --model" in iosig(*words, "--markov", check=2).stderr
    model = ("--model", tmp_path / "model")
    assert "512 B to 1 GiB" in iosig(*words, *model, "--markov=100", check=2).stderr
    assert "cannot be given together" in iosig(*words, *model, "--writes", check=2).stderr
    assert not (tmp_path / "model").exists()
