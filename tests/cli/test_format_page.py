"""The example in docs/formats/container.md is a container: an independent decoder and iosig agree with the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import Iosig

PAGE = Path(__file__).parent.parent.parent / "docs" / "formats" / "container.md"
ROW = re.compile(r"^\| (\d+) \| `([0-9a-f ]+)` \| (.*) \|$")
MAGIC = bytes.fromhex("494f58f1")
ID = "1567f5172ac9acb0e822377126bdba41"


def rows(heading: str) -> list[tuple[int, bytes, str]]:
    """Place, bytes and text of each row of a section's table."""
    section = PAGE.read_text().split(f"\n{heading}\n")[1].split("\n#")[0]
    found = [ROW.match(line) for line in section.splitlines()]
    return [(int(row[1]), bytes.fromhex(row[2]), row[3]) for row in found if row]


def index_rows() -> list[tuple[int, bytes, str]]:
    return rows("### Example")


def record_rows() -> list[tuple[int, bytes, str]]:
    return rows("## Record of closed writers")


def joined(table: list[tuple[int, bytes, str]]) -> bytes:
    whole = b""
    for at, part, _ in table:
        assert at == len(whole)
        whole += part
    return whole


def crc32c(data: bytes, before: int = 0) -> int:
    rest = before ^ 0xFFFFFFFF
    for byte in data:
        rest ^= byte
        for _ in range(8):
            rest = (rest >> 1) ^ (0x82F63B78 if rest & 1 else 0)
    return rest ^ 0xFFFFFFFF


def number(data: bytes, *, zigzag: bool = True) -> int:
    code = sum((byte & 0x7F) << (7 * n) for n, byte in enumerate(data))
    assert data[-1] < 0x80 and all(byte >= 0x80 for byte in data[:-1])
    return (code >> 1) ^ -(code & 1) if zigzag else code


def frames(data: bytes, *, is_index: bool) -> list[bytes]:
    """The payloads."""
    found, at = [], 0
    while at < len(data):
        assert data[at : at + 4] == MAGIC
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        payload = data[at + 12 : at + 12 + size]
        seed = crc32c(ID.encode() + bytes(8) + at.to_bytes(8, "little")) if is_index and at > 0 else 0
        assert crc32c(payload, seed) == int.from_bytes(data[at + 8 : at + 12], "little")
        found.append(payload)
        at += 12 + size
    return found


def test_the_frames_are_complete_and_their_checksums_match() -> None:
    index = joined(index_rows())
    assert [payload[0] for payload in frames(index, is_index=True)] == [0, 3, 1]
    record = joined(record_rows()) + index
    assert [payload[0] for payload in frames(record, is_index=False)] == [6]


@pytest.mark.parametrize(("at", "part", "text"), [*index_rows(), *record_rows()])
def test_a_row_says_what_its_bytes_are(at: int, part: bytes, text: str) -> None:
    last = re.search(r"-?\d+$", text)
    if text == "the id":
        assert part.decode() == ID
    elif text.endswith("bytes of payload"):
        assert text.startswith(f"{int.from_bytes(part, 'little')} bytes")
    elif "bytes of" in text or "bytes of data have" in text:
        length = int(text.split()[0])
        is_size = "the container's id" in text or "host" in text or "not zigzag" in text
        assert number(part, zigzag=not is_size) == length
    elif text.startswith("CRC-32C of `aaaaaa`"):
        assert int.from_bytes(part, "little") == crc32c(b"aaaaaa")
    elif text.startswith("CRC-32C of the index"):
        assert number(part) == crc32c(joined(index_rows())) == int(text.split()[-1])
    elif last and "nanoseconds" not in text:
        assert number(part) == int(last.group())


def test_iosig_reads_it(iosig: Iosig, tmp_path: Path) -> None:
    container = tmp_path / "file"
    (container / "d0").mkdir(parents=True)
    index = joined(index_rows())
    (container / "d0" / "data.0").write_bytes(b"aaaaaa")
    (container / "d0" / "index.0").write_bytes(index)
    (container / "closed.0000000000000000").write_bytes(joined(record_rows()) + index)
    iosig("container", "repair", container)  # makes the manifest
    found = iosig.json("container", "check", "--data", container)
    assert found["sound"] and found["data"] == {"verified_bytes": 6, "unverified_bytes": 0}
    iosig("container", "export", container, tmp_path / "copy")
    content = bytearray(20)
    for at in (0, 8, 16):
        content[at : at + 2] = b"aa"
    assert (tmp_path / "copy").read_bytes() == bytes(content)
