"""Fig. 6 of the IOSIG paper: throughput over chunk size by Eq. 3, and as measured on real storage (section 7.1).

a, b: 512 B to 1 GB, doubling. c: 2 to 256 KB in equal steps, where the shared NFS shows teeth at its block size
of 22 KB. d-f: 512 B to 32 KB, teeth at the page size of 4 KB; the text does not name their devices, so they are the
three fast ones of Table 2 here.

On real storage a is the two slowest mount points, b the others, c the slowest, d-f the three fastest; each point is a
few synchronised writes, and the predictions are Eq. 3 with the probed values.
"""

from __future__ import annotations

import pandas as pd

import iosig
from iosig import tables
from iosig.figures import MIB, bytes_label
from iosig.panels import Curve, Look, Panel
from iosig.repro.artefact import (
    TABLE2,
    Artefact,
    Fact,
    Result,
    Setting,
    Source,
    about,
    all_of,
    counted,
    judge,
    same,
    untested,
)
from iosig.repro.machine import Machine, free_bytes, machine_of, write_rate

KIB, GIB = 1 << 10, 1 << 30
NFS_BLOCK = """
[[mount_point]]
path = "/paper/nfs-22KB"
device = "nfs"
filesystem = "nfs4"
block_size = "22KB"
visibility = "global"
persistent = true
"""
DOUBLING = tables.chunk_sizes(512, GIB)
TO_256_KB = list(range(2 * KIB, 256 * KIB + 1, 2 * KIB))
TO_32_KB = list(range(512, 32 * KIB + 1, 512))
CROSSING_BYTES = 100 * MIB  # about
GOOD_PERCENT = 25
AXES = ("chunk size", "throughput, MB/s")


def predicted(storage: iosig.Storage, layout: dict[str, tuple[list[str], list[int]]]) -> pd.DataFrame:
    """Eq. 3 for each panel's mount points and chunk sizes."""
    parts = []
    for panel, (mounts, sizes) in layout.items():
        table = tables.predicted_throughput(storage, sizes, model="paper")
        parts.append(table[table["mount_point"].isin(mounts)].assign(panel=panel, kind="predicted"))
    return pd.concat(parts, ignore_index=True)


def peaks(rows: pd.DataFrame) -> list[int]:
    """The chunk sizes whose throughput is above both neighbours'."""
    rate = rows["bytes_per_s"].to_numpy()
    inner = (rate[1:-1] > rate[:-2]) & (rate[1:-1] > rate[2:])
    return [int(size) for size in rows["chunk_bytes"].to_numpy()[1:-1][inner]]


def distance_of(sizes: list[int]) -> int:
    """The distance of equally spaced sizes, of the first from 0 too; 0 when they are not."""
    distances = {after - before for before, after in zip([0, *sizes], sizes, strict=False)}
    return distances.pop() if len(distances) == 1 else 0


def crossing_bytes(storage: iosig.Storage, slow_start: str, slow_end: str) -> int:
    """The smallest chunk, in whole MB, from which on `slow_start` is the faster of the two."""
    sizes = [mb * MIB for mb in range(1, 1025)]
    rate = tables.predicted_throughput(storage, sizes, model="paper").pivot_table(
        values="bytes_per_s", index="chunk_bytes", columns="mount_point"
    )
    behind = rate.index[rate[slow_start] < rate[slow_end]]
    return int(behind.max()) + MIB


def panels_of(data: pd.DataFrame, c_tick_bytes: int = 32 * KIB) -> list[Panel]:
    looks = {"predicted": Look.COMPUTED, "measured": Look.MEASURED}
    panels = []
    for panel, rows in data.groupby("panel"):
        curves = []
        for (mount, kind), points in rows.groupby(["mount_point", "kind"], sort=False):
            ends = [f"{end}_bytes_per_s" for end in ("low", "high") if kind == "measured"]
            bounds = [list(points[end] / MIB) for end in ends]
            x, y = list(points["chunk_bytes"]), list(points["bytes_per_s"] / MIB)
            curves.append(Curve(f"{mount}, {kind}", x, y, looks[str(kind)], *bounds))
        doubling = panel in ("a", "b")
        is_wide = panel == "c" and rows["chunk_bytes"].max() > 4 * c_tick_bytes
        ticks = 0 if doubling else (c_tick_bytes if is_wide else 4 * KIB)
        has_crossing = panel == "a" and rows["chunk_bytes"].max() >= CROSSING_BYTES
        marks = {"published: HDD = NFS": float(CROSSING_BYTES)} if has_crossing else {}
        mounts = rows["mount_point"].unique()
        title = f"Fig. 6{panel}" + (f": {mounts[0]}" if len(mounts) == 1 else "")
        panels.append(Panel(title, *AXES, curves, doubling, doubling, ticks, marks))
    return panels


def run_virtual(setting: Setting) -> Result:
    description = setting.scratch / "storage.toml"
    description.write_text(TABLE2.read_text() + NFS_BLOCK)
    storage = iosig.read_storage(str(description))
    fast = ["/paper/ramdisk", "/paper/nvram", "/paper/raid1"]
    layout = {
        "a": (["/paper/hdd", "/paper/nfs"], DOUBLING),
        "b": (fast, DOUBLING),
        "c": (["/paper/nfs-22KB"], TO_256_KB),
        **{panel: ([mount], TO_32_KB) for panel, mount in zip("def", fast, strict=True)},
    }
    data = predicted(storage, layout)
    rate = data[data["panel"] == "a"].pivot_table(values="bytes_per_s", index="chunk_bytes", columns="mount_point")
    below = rate[rate.index <= 64 * MIB]
    above = rate[rate.index >= 128 * MIB]
    crossing = crossing_bytes(storage, "/paper/hdd", "/paper/nfs")
    where = "section 7.1, Fig. 6a"
    facts = [
        about(
            where,
            "from this chunk size on the HDD beats the NFS",
            CROSSING_BYTES / MIB,
            crossing / MIB,
            "MB",
            within=0.2,
        ),
        same(
            where,
            "chunk sizes up to 64 MB at which the NFS is faster",
            all_of(len(below), len(below)),
            all_of(int((below["/paper/nfs"] > below["/paper/hdd"]).sum()), len(below)),
        ),
        same(
            where,
            "chunk sizes from 128 MB on at which the HDD is faster",
            all_of(len(above), len(above)),
            all_of(int((above["/paper/hdd"] > above["/paper/nfs"]).sum()), len(above)),
        ),
    ]
    for panel, step, name in (
        ("c", 22, "NFS, block size 22 KB"),
        ("d", 4, fast[0]),
        ("e", 4, fast[1]),
        ("f", 4, fast[2]),
    ):
        found = distance_of(peaks(data[data["panel"] == panel])) / KIB
        facts.append(same(f"section 7.1, Fig. 6{panel}", f"distance of the peaks ({name})", step, found, "KB"))
    why = "a computed curve is not an experiment; --source machine or lab has both"
    facts.append(untested("section 7.1, Fig. 6", "the model matches the experiments in all devices", "good", "", why))
    return Result(data, facts, panels_of(data, 22 * KIB), "Eq. 3 with the printed values, sequential writes")


def layout_of(machine: Machine, quick: bool) -> dict[str, tuple[list[str], list[int]]]:
    """The panels of a real machine. Chunks are at most a quarter of what is free."""
    mounts = machine.by_speed()
    largest = 4 * MIB if quick else GIB
    most = min(largest, *(free_bytes(mount) // 4 for mount in mounts))
    to_256, to_32 = (TO_256_KB[:16], TO_32_KB[:16]) if quick else (TO_256_KB, TO_32_KB)
    layout = {"a": (mounts[:2], tables.chunk_sizes(512, most)), "b": (mounts[2:], tables.chunk_sizes(512, most))}
    layout["c"] = (mounts[:1], to_256)
    layout |= {panel: ([mount], to_32) for panel, mount in zip("def", reversed(mounts), strict=False)}
    return {panel: place for panel, place in layout.items() if place[0]}


def measured(data: pd.DataFrame, setting: Setting) -> pd.DataFrame:
    """Measurements for the rows of predictions whose writes take less than 10 s."""
    budget_s = 0.03 if setting.quick else 0.3
    rows = data[data["chunk_bytes"] / data["bytes_per_s"] < 10].assign(kind="measured")
    rates = []
    for panel, mount, size in zip(rows["panel"], rows["mount_point"], rows["chunk_bytes"], strict=True):
        setting.progress(f"{panel}, {mount}: chunks of {bytes_label(size)}")
        rates.append(write_rate(mount, size, budget_s))
    return rows.assign(
        bytes_per_s=[rate.mean for rate in rates],
        low_bytes_per_s=[rate.low for rate in rates],
        high_bytes_per_s=[rate.high for rate in rates],
    )


def match_facts(data: pd.DataFrame) -> list[Fact]:
    """Per mount point the median error of Eq. 3; of the two slowest, how often it tells which one is faster."""
    keys = ["panel", "mount_point", "chunk_bytes"]
    both = data.pivot_table(values="bytes_per_s", index=keys, columns="kind").dropna()
    error = (both["predicted"] / both["measured"] - 1).abs().groupby("mount_point").median() * 100
    where = "section 7.1, Fig. 6"
    facts = [
        Fact(
            where,
            f"the model matches the experiment: {mount}",
            "good",
            f"{percent:.0f} %",
            "",
            judge(percent <= GOOD_PERCENT),
            f"median error; {GOOD_PERCENT} % is our limit for 'good'",
        )
        for mount, percent in error.items()
    ]
    panel_a = both.reset_index().query("panel == 'a'")
    pairs = [rows for _, rows in panel_a.groupby("chunk_bytes") if len(rows) == 2]
    unlike = [rows for rows in pairs if rows["measured"].max() > 1.05 * rows["measured"].min()]
    right = sum(rows["predicted"].idxmax() == rows["measured"].idxmax() for rows in unlike)
    if pairs:
        claim = (
            "chunk sizes at which the device that is the faster one by Eq. 3 is it, of those where one is 5 % faster"
        )
        facts.append(counted("section 7.1, Fig. 6a", claim, right, len(unlike), 1 / 2))
    return facts


def teeth_facts(data: pd.DataFrame, blocks: dict[str, int]) -> list[Fact]:
    facts = []
    for (panel, mount), rows in data[data["panel"].isin(list("cdef"))].groupby(["panel", "mount_point"]):
        block = max(4 * KIB, blocks[str(mount)])
        whole = [size for size in list(rows["chunk_bytes"])[1:-1] if size % block == 0]
        found = len(set(whole) & set(peaks(rows)))
        claim = f"whole blocks ({bytes_label(block)}) are faster than their neighbours: {mount}"
        judged = "three quarters hold; one of three neighbours is the fastest without any blocks"
        facts.append(counted(f"section 7.1, Fig. 6{panel}", claim, found, len(whole), 1 / 3, 0.75, judged))
    return facts


def run_measured(setting: Setting) -> Result:
    machine = machine_of(setting)
    curves = predicted(machine.storage, layout_of(machine, setting.quick))
    points = measured(curves, setting)
    data = pd.concat([curves, points], ignore_index=True)
    blocks = {mount.path: mount.block_bytes for mount in machine.storage.mount_points}
    where = "section 7.1, Fig. 6a"
    facts = [*match_facts(data), *teeth_facts(points, blocks)]
    why = "a number of the paper's two devices"
    facts.append(untested(where, "from this chunk size on the HDD beats the NFS", CROSSING_BYTES / MIB, "MB", why))
    largest = bytes_label(points["chunk_bytes"].max())
    setup = machine.noted(f"sequential writes, each with fdatasync, up to {largest}; bars: 10 to 90 % of single writes")
    return Result(data, facts, panels_of(data), setup)


def run(setting: Setting) -> Result:
    return run_virtual(setting) if setting.source == Source.VIRTUAL else run_measured(setting)


ARTEFACTS = [Artefact("iosig-fig6", "throughput over chunk size", "section 7.1, Fig. 6", tuple(Source), run)]
