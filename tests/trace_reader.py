"""Reads traces as docs/formats/trace.md describes them, independently of the C++ (core/iosig/trace), for tests."""

from __future__ import annotations

import re
import struct
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

NONE = -(1 << 63)
WORD = (1 << 64) - 1
LSEEK = 11
ABANDONED = 2
KNOWN = {
    int(number): (layer, {"read": "reads", "write": "writes"}.get(kind, "nothing"))
    for number, layer, kind in re.findall(
        r"IOSIG_CALL\((\d+), \w+, (\w+), (\w+), \w+\)",
        (Path(__file__).parent.parent / "core" / "iosig" / "trace" / "calls.inc").read_text(),
    )
}
LAYERS = ("mpi_io", "stdio", "posix")
MOST_KINDS, LEAST_SUMMED = 8, 64


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def signed(value: int, bits: int = 64) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


@dataclass
class Call:
    call: int = 0
    flags: int = 0
    fd: int = 0
    file: int = 0
    path: int = 0
    id: int = 0
    parent: int = 0
    start: int = 0
    end: int = 0
    length: int = 0
    result: int = 0
    offset: int = 0
    tid: int = 0


class Bytes:
    """A cursor."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        taken = self.data[self.at : self.at + count]
        assert len(taken) == count, "cut"
        self.at += count
        return taken

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed_number(self) -> int:
        value = self.number()
        return value >> 1 if value % 2 == 0 else -(value + 1) // 2

    def packed(self, count: int) -> list[int]:
        bits = self.take(1)[0]
        granule, base = self.number(), self.signed_number()
        word = int.from_bytes(self.take((count * bits + 7) // 8), "little")
        values = [base + granule * (word >> n * bits & ((1 << bits) - 1)) for n in range(count)]
        at = 0
        for _ in range(self.number()):
            place, number = self.number(), self.signed_number()
            at += place // 2
            values[at] = base + number * (granule if place % 2 else 1)
            at += 1
        return values

    def column(self, count: int) -> tuple[int, list[int]]:
        first = self.take(1)[0]
        kind, mode = first & 15, first >> 4
        if kind == 0:
            return mode, [0] * count
        if kind == 1:
            return mode, [self.signed_number()] * count
        if kind == 2:
            return mode, self.packed(count)
        assert kind == 3
        mask = int.from_bytes(self.take((count + 7) // 8), "little")
        some = iter(self.packed(mask.bit_count()))
        return mode, [next(some) if mask >> n & 1 else 0 for n in range(count)]


@dataclass
class Kind:
    """A kind of calls, and what predictions keep of it."""

    fields: tuple[int, ...]
    first: int = -1
    like: Kind | None = None
    next: int = 0
    kept: dict[str, int] = field(default_factory=dict)


def read_block(payload: bytes) -> list[Call]:
    count, tid, first_id, _last_id, least_start, greatest_end = struct.unpack_from("<IiQQQQ", payload)
    rest = Bytes(payload[72:])
    number = rest.number()
    columns = []
    for bits, is_signed in ((16, False), (16, False), (32, True), (32, False), (32, False)):
        total, values = 0, []
        for difference in rest.column(number)[1]:
            total += difference
            values.append(signed(total, bits) if is_signed else total & ((1 << bits) - 1))
        columns.append(values)
    kinds = [Kind(fields) for fields in zip(*columns, strict=True)]

    of: list[Kind] = []
    seen, before = 0, -1
    by_call: dict[int, Kind] = {}
    for n, code in enumerate(rest.column(count)[1]):
        if code == 1 or n == 0:
            now = seen
            seen += 1
            kind = kinds[now]
            kind.first, kind.next = n, now
            kind.like = by_call.get(kind.fields[0] % 512)
            by_call[kind.fields[0] % 512] = kind
        else:
            now = kinds[before].next if code == 0 else code - 2
        if before >= 0:
            kinds[before].next = now
        before = now
        of.append(kinds[now])
    assert seen == number
    calls = [Call(*kind.fields) for kind in of]
    for call in calls:
        call.tid = tid

    def kept(n: int, name: str, default: int) -> int:
        """What the latest call of the kind, or of its like, keeps."""
        kind = of[n]
        if n == kind.first:
            return default if kind.like is None else kind.like.kept.get(name, default)
        return kind.kept[name]

    _, values = rest.column(count)
    latest = first_id - 1
    for n, call in enumerate(calls):
        call.id = (latest + kept(n, "step", 1) + values[n]) & 0xFFFFFFFF
        of[n].kept["step"] = call.id - latest
        latest = call.id

    mode, values = rest.column(count)
    for n, call in enumerate(calls):
        parent = kept(n, "parent", 0)
        if mode == 0 and parent != 0:
            parent = call.id - kept(n, "distance", 0)
        call.parent = (parent + values[n]) & 0xFFFFFFFF
        of[n].kept |= {"parent": call.parent, "distance": call.id - call.parent}

    starts, ends = rest.column(count)[1], rest.column(count)[1]
    by_id: dict[int, Call] = {}
    greatest = least_start
    for n, call in enumerate(calls):
        child = by_id.get((call.id + 1) % 1024)
        previous = calls[n - 1] if n else Call()
        if child and child.id == (call.id + 1) & 0xFFFFFFFF and child.parent == call.id:
            call.start, call.end = child.start - starts[n], previous.end + ends[n]
        elif n and call.parent and previous.id == call.parent:
            call.start, call.end = previous.start + starts[n], previous.end - ends[n]
        else:
            is_sibling = n and call.parent and previous.parent == call.parent
            call.start = (previous.end if is_sibling else greatest) + starts[n]
            call.end = call.start + ends[n]
        call.start &= WORD
        call.end &= WORD
        greatest = max(greatest, call.end)
        by_id[call.id % 1024] = call
    assert greatest == greatest_end

    mode, values = rest.column(count)
    for n, call in enumerate(calls):
        length = kept(n, "length", 0)
        call.length = signed((length if mode == 0 or length == NONE else 0) + values[n])
        of[n].kept["length"] = call.length

    _, values = rest.column(count)
    for n, call in enumerate(calls):
        is_length = kept(n, "is_length", call.length != NONE)
        call.result = signed((call.length if is_length else kept(n, "result", 0)) + values[n])
        of[n].kept |= {"result": call.result, "is_length": call.result == call.length}

    mode, values = rest.column(count)
    position: dict[int, int] = defaultdict(int)
    for n, call in enumerate(calls):
        kind = of[n]
        if n == kind.first:
            last = calls[kind.like.first].offset if kind.like else 0
            step = 0
        else:
            last, step = kind.kept["offset"], kind.kept["stride"]
        predicted = NONE if last == NONE else (last + step, 0, position[call.file])[mode]
        call.offset = signed(predicted + values[n])
        kind.kept["stride"] = call.result if n == kind.first else call.offset - last
        kind.kept["offset"] = call.offset
        if call.offset != NONE:
            position[call.file] = call.result if call.call == LSEEK else call.offset + call.result
    assert rest.at == len(rest.data)
    return calls


def checked_flags(words: tuple[int, ...], flags: int) -> int:
    """The flags of a slot with these eight words (the last one without flags), with their check."""
    total = 0
    for n, word in enumerate((*words[:7], words[7] | flags << 48)):
        turn = 9 * n if n < 7 else 0
        total ^= (word << turn | word >> (64 - turn)) & WORD
    total ^= total >> 56
    total ^= total >> 28
    total ^= total >> 14
    return ((total & 0x3FFF) or 1) << 2 | flags


def duration_bin(ticks: int) -> int:
    """Eight bins for each power of two, one for each number below 16."""
    shift = max(ticks.bit_length() - 4, 0)
    return ticks if ticks < 16 else shift * 8 + (ticks >> shift)


Sums = tuple[int, list[tuple[int, ...]], list[tuple[int, ...]]]


def sums_of(calls: list[Call]) -> Sums | None:
    """What the calls of a block add up to, computed from them; None: it has no sums."""
    if len(calls) < LEAST_SUMMED or any(call.call not in KNOWN or call.end < call.start for call in calls):
        return None
    kinds: dict[tuple[int, int, int], list[Call]] = defaultdict(list)
    streams: dict[tuple[str, str, int], list[Call]] = defaultdict(list)
    is_ordered = all(a.start <= b.start for a, b in pairwise(calls))
    for call in calls:
        kinds[call.call, call.file, call.path].append(call)
        layer, moves = KNOWN[call.call]
        if moves != "nothing" and is_ordered and (call.flags & ABANDONED or call.result >= 0):
            if call.path:
                return None
            streams[layer, moves, call.file].append(call)
    if len(kinds) > MOST_KINDS or len(streams) > MOST_KINDS:
        return None
    flags = (1 if any(call.parent for call in calls) else 0) + (2 if is_ordered else 0)
    return flags, [kind_sums(*item) for item in kinds.items()], [stream_sums(*item) for item in streams.items()]


def moved(call: Call) -> int:
    return call.result if KNOWN[call.call][1] != "nothing" and call.result > 0 and not call.flags & ABANDONED else 0


def kind_sums(key: tuple[int, int, int], calls: list[Call]) -> tuple[int, ...]:
    ended = [call for call in calls if not call.flags & ABANDONED]
    failed = sum(call.result < 0 for call in ended)
    head = (*key, len(calls), len(calls) - len(ended), failed, sum(map(moved, calls)))
    if not ended:
        return head
    ticks = [call.end - call.start for call in ended]
    bins = sorted(Counter(map(duration_bin, ticks)).items())
    return *head, sum(ticks), min(ticks), max(ticks), *(number for each in bins for number in each)


def stream_sums(key: tuple[str, str, int], calls: list[Call]) -> tuple[int, ...]:
    layer, moves, file = key
    placed = [call for call in calls if call.offset >= 0]
    head = (LAYERS.index(layer) * 2 + (moves == "writes"), file, len(calls) - len(placed), int(bool(placed)))
    if not placed:
        return head
    jumps = [b.offset - (a.offset + moved(a)) for a, b in pairwise(placed)]
    order = (sum(jump == 0 for jump in jumps), sum(jump > 0 for jump in jumps), sum(jump < 0 for jump in jumps))
    return *head, *order, placed[0].offset, placed[-1].offset + moved(placed[-1])


def read_sums(payload: bytes) -> Sums:
    rest = Bytes(payload)
    flags = rest.number()
    kinds = []
    for _ in range(rest.number()):
        kind = [rest.number() for _ in range(7)]
        left = kind[3] - kind[4]
        if left:
            kind += [rest.number(), rest.number(), rest.number()]
            kind[9] += kind[8]
            place = duration_bin(kind[8])
        while left:
            place += rest.number()
            count = rest.number()
            left -= count
            kind += [place, count]
        kinds.append(tuple(kind))
    streams = []
    for _ in range(rest.number()):
        stream = [rest.number() for _ in range(4)]
        streams.append(tuple(stream + [rest.number() for _ in range(5 if stream[3] else 0)]))
    assert rest.at == len(rest.data)
    return flags, kinds, streams


def read_slots(data: bytes, capacity: int, tid: int) -> list[Call]:
    calls = []
    for n in range(capacity):
        slot = data[4096 + 64 * n : 4160 + 64 * n]
        if len(slot) < 64 or slot[:8] == bytes(8):
            continue
        start, end, offset, length, result, id_, parent, file, fd, path, call, flags = struct.unpack(
            "<QQqqqIIIiIHH", slot
        )
        if end and flags > 3:
            words = struct.unpack("<8Q", slot)
            assert flags == checked_flags((*words[:7], words[7] & (1 << 48) - 1), flags & 3)
        flags &= 3
        calls.append(Call(call, flags, fd, file, path, id_, parent, start, end, length, result, offset, tid))
    return calls


@dataclass
class Part:
    pid: int
    process: int
    calls: list[Call]
    names: dict[int, bytes]
    facts: list[bytes]


def read_part(path: Path) -> Part:
    """A part that is not damaged."""
    data = path.read_bytes()
    assert data[:8] == b"IOSIGTR1"
    version, _clock, process, pid, _parent = struct.unpack_from("<IIQii", data, 8)
    assert version in (1, 2)
    (checksum, capacity, tid) = struct.unpack_from("<IIi", data, 132)
    assert checksum == crc32c(data[:132])
    part = Part(pid, process, [], {}, [])
    for at, end in ((40960, len(data)), (512, 4096)):
        while at + 16 <= end and data[at : at + 4] == b"CHNK":
            kind, zero, size, checksum = struct.unpack_from("<HHII", data, at + 4)
            payload = data[at + 16 : at + 16 + size]
            assert zero == 0
            assert checksum == crc32c(data[at : at + 12] + payload)
            at += 16 + (size + 7) // 8 * 8
            if kind == 1:
                part.facts = payload.split(b"\0")[:-1]
            elif kind == 2:
                part.names[int.from_bytes(payload[:4], "little")] = payload[4:]
            elif kind == 3:
                block = read_block(payload)
                part.calls += block
            else:
                assert kind == 4
                assert read_sums(payload) == sums_of(block)
    packed = {call.id for call in part.calls}
    part.calls += [call for call in read_slots(data, capacity, tid) if call.id not in packed]
    return part
