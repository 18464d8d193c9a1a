"""Fig. 11 of the IOSIG paper: the picture program's three transformations on chosen storage (sections 7.2, 7.3).

a: posterize, 6 GB in sequence, chunks of 16 MB to 2 GB, HDD against NFS. b, c: divide and shuffle, 1 GB with seeks,
chunks of 32 KB to 32 MB, the program's own choice (HDD) against the parameter sets ps1..ps4 of Fig. 10.

On the virtual device a run takes what Eq. 3 predicts for its writes; the paper's figures are the whole program's time,
with reading and computing. On real storage examples/pgm runs and syncs each chunk; what it writes is compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import pandas as pd

import iosig
from iosig import tables
from iosig.figures import MIB, bytes_label
from iosig.panels import Curve, Look, Panel
from iosig.repro.artefact import (
    CHANCE_LIMIT,
    TABLE2,
    Artefact,
    Fact,
    Result,
    Setting,
    Source,
    Verdict,
    all_of,
    by_construction,
    counted,
    judge,
    more_than,
    part_of,
    same,
    untested,
)
from iosig.repro.machine import Machine, Pictures, check_same, home_on, machine_of

KIB, GIB = 1 << 10, 1 << 30
POLICY: Literal["paper"] = (
    "paper"  # throughput alone decides, and data that are not declared persist may live in memory
)
Run = Callable[[Setting], Result]
OWN = "none"
PARAMETER_SETS = {"ps1": "global", "ps2": "MTTDL(20y)", "ps3": "persist", "ps4": ""}
PLACES = {OWN: "/paper/hdd", "ps1": "/paper/nfs", "ps2": "/paper/raid1", "ps3": "/paper/nvram", "ps4": "/paper/ramdisk"}
KINDS = {"ps1": "network", "ps2": "raid1", "ps3": "nvram", "ps4": "ram"}
PUBLISHED_MS = {"ps1": 14379, "ps2": 2519, "ps3": 1448, "ps4": 818}  # Fig. 11b, chunks of 512 KB
PUBLISHED_HDD_MS = 5 * 60 * 1000  # at least
PUBLISHED_CHUNK = 512 * KIB
CROSSING_BYTES = 100 * MIB  # about; Fig. 11a
POSTERIZED_CHUNKS = tables.chunk_sizes(16 * MIB, 2 * GIB)
JUMPING_CHUNKS = tables.chunk_sizes(32 * KIB, 32 * MIB)


def seconds(signature: str, storage: iosig.Storage, mount_point: str, total_bytes: int) -> float:
    """What Eq. 3 gives for writing `total_bytes`."""
    return total_bytes / iosig.predict(signature, storage, mount_point, "paper")["throughput_bytes_per_s"]


def curve_name(run: str, rows: pd.DataFrame) -> str:
    """The run, after a comma the mount points that it used, where they are told."""
    mounts: list[str] = list(rows["mount_point"].unique()) if "mount_point" in rows else []
    return f"{run}, on {' and '.join(mounts)}" if len(mounts) else run


def panel_of(title: str, data: pd.DataFrame, look: Look = Look.COMPUTED) -> Panel:
    curves = [
        Curve(curve_name(str(name), rows), list(rows["chunk_bytes"]), list(rows["run_s"]), look)
        for name, rows in data.groupby("run", sort=False)
    ]
    large = data["chunk_bytes"].max() >= CROSSING_BYTES
    marks = {"published: HDD = NFS": float(CROSSING_BYTES)} if title == "posterize" and large else {}
    return Panel(title, "chunk size", "run time, s", curves, marks=marks)


def run_posterize(setting: Setting) -> Result:
    storage = iosig.read_storage(str(TABLE2))
    total = 6 * GIB
    rows, admissible = [], set()
    for chunk in POSTERIZED_CHUNKS:
        signature = f"persist sequential size-per-IO({chunk}) totalsize({total})"
        choice = iosig.choose(signature, storage, "paper", POLICY)
        admissible.add(tuple(sorted(c["mount_point"] for c in choice["candidates"] if c["admissible"])))
        for mount in ("/paper/hdd", "/paper/nfs"):
            rows.append((mount, chunk, seconds(signature, storage, mount, total), choice["chosen"]))
        rows.append(("IOSIG's choice", chunk, seconds(signature, storage, choice["chosen"], total), choice["chosen"]))
    data = pd.DataFrame(rows, columns=["run", "chunk_bytes", "run_s", "chosen"])
    run_s = data.pivot_table(values="run_s", index="chunk_bytes", columns="run")
    right = int((run_s["IOSIG's choice"] == run_s[["/paper/hdd", "/paper/nfs"]].min(axis=1)).sum())
    chosen = data.drop_duplicates("chunk_bytes").set_index("chunk_bytes")["chosen"]
    small = list(chosen[chosen == "/paper/nfs"].index)
    where = "section 7.3, Fig. 11a"
    facts = [
        same(
            where,
            "mount points that can take 6 GB of persistent data",
            "/paper/hdd, /paper/nfs",
            " or ".join(", ".join(mounts) for mounts in sorted(admissible)),
        ),
        by_construction(
            same(
                where,
                "chunk sizes at which the faster device is chosen",
                all_of(len(run_s), len(run_s)),
                all_of(right, len(run_s)),
            ),
            "Eq. 3 gives both the times and the choice; --source machine or lab measures the times",
        ),
        same(
            where,
            "chunk sizes at which that is the NFS (below about 100 MB)",
            ", ".join(bytes_label(size) for size in POSTERIZED_CHUNKS if size < CROSSING_BYTES),
            ", ".join(bytes_label(size) for size in small),
        ),
    ]
    return Result(data, facts, [panel_of("posterize", data)], "6 GB, writes as Eq. 3 predicts them")


def jumping_times() -> pd.DataFrame:
    """Seconds and mount point of every parameter set at every chunk size; divide and shuffle are alike to Eq. 3."""
    storage = iosig.read_storage(str(TABLE2))
    rows = []
    for chunk in JUMPING_CHUNKS:
        rest = f"random size-per-IO({chunk}) totalsize({GIB})"
        for name in PLACES:
            signature = f"{PARAMETER_SETS.get(name, '')} {rest}"
            mount = PLACES[OWN] if name == OWN else iosig.choose(signature, storage, "paper", POLICY)["chosen"]
            rows.append((name, chunk, seconds(signature, storage, mount, GIB), mount))
    return pd.DataFrame(rows, columns=["run", "chunk_bytes", "run_s", "mount_point"])


def place_facts(data: pd.DataFrame, where: str) -> list[Fact]:
    facts = []
    for name, constraint in PARAMETER_SETS.items():
        mounts = data[data["run"] == name]["mount_point"]
        found = ", ".join(dict.fromkeys(mounts))
        claim = f"{name} ({constraint or 'no constraint'}) is put on, at every chunk size"
        facts.append(same(where, claim, PLACES[name], found))
    return facts


def order_facts(data: pd.DataFrame, where: str) -> list[Fact]:
    run_s = data.pivot_table(values="run_s", index="chunk_bytes", columns="run")
    slowest = int((run_s[OWN] == run_s.max(axis=1)).sum())
    ranked = data[data["chunk_bytes"] == PUBLISHED_CHUNK].sort_values("run_s", ascending=False)["run"]
    return [
        same(where, "from slow to fast at 512 KB", " ".join(PLACES), " ".join(ranked)),
        same(
            where,
            "chunk sizes at which the HDD is slowest",
            all_of(len(run_s), len(run_s)),
            all_of(slowest, len(run_s)),
        ),
    ]


def range_facts(data: pd.DataFrame) -> list[Fact]:
    where = "section 7.3, last paragraph"
    longest, shortest = float(data["run_s"].max()), float(data["run_s"].min())
    note = "the paper's own 818 ms at 512 KB is below that, too"
    slow = "Eq. 3 charges each of 32,768 writes of 32 KB the 150 ms and 20 ms of Table 2; 16 min would be 29 ms a write"
    return [
        more_than(where, "the longest run takes more than", 16, longest / 60, "min", slow, most=2),
        more_than(where, "every run takes at least", 6, shortest, "s", note),
    ]


def published_curves() -> list[Curve]:
    """A point for each parameter set; the program's own choice took more than its one."""
    at = [float(PUBLISHED_CHUNK)]
    least = Curve(f"{OWN}, published: more", at, [PUBLISHED_HDD_MS / 1000], Look.PUBLISHED_LEAST)
    return [least, *(Curve(f"{run}, published", at, [ms / 1000], Look.PUBLISHED) for run, ms in PUBLISHED_MS.items())]


def run_divide(setting: Setting) -> Result:
    data = jumping_times()
    at_512 = data[data["chunk_bytes"] == PUBLISHED_CHUNK].set_index("run")["run_s"]
    where = "section 7.3, Fig. 11b"
    facts = place_facts(data, where)
    facts.append(more_than(where, "512 KB chunks on the HDD take more than", 5, at_512[OWN] / 60, "min", most=2))
    for name, published in PUBLISHED_MS.items():
        claim = f"writing 512 KB chunks with {name} ({PLACES[name]}) takes no longer than the whole program"
        facts.append(part_of(where, claim, published, at_512[name] * 1000, "ms", "the writes"))
    facts += order_facts(data, where) + range_facts(data)
    panel = panel_of("divide", data)
    panel.curves.extend(published_curves())
    return Result(data, facts, [panel], "1 GB, writes as Eq. 3 predicts them")


def run_shuffle(setting: Setting) -> Result:
    data = jumping_times()
    where = "section 7.3, Fig. 11c"
    small, large = (
        data[(data["run"] == OWN) & (data["chunk_bytes"] == size)]["run_s"].item()
        for size in (JUMPING_CHUNKS[0], JUMPING_CHUNKS[-1])
    )
    facts = place_facts(data, where) + order_facts(data, where)
    facts.append(
        Fact(
            where,
            "32 KB chunks on the HDD are slower than 32 MB chunks, times",
            "dramatically",
            small / large,
            "",
            judge(small / large > 10),
            "more than 10 times holds",
        )
    )
    return Result(data, facts, [panel_of("shuffle", data)], "1 GB, writes as Eq. 3 predicts them")


def measured_posterize(setting: Setting) -> Result:
    """The two slowest persistent mount points beside each other, and the one that the core prefers of them."""
    machine = machine_of(setting)
    pair = machine.persistent()[:2]
    where = "section 7.3, Fig. 11a"
    pictures = Pictures(setting, machine, (64 * MIB if setting.quick else 6 * GIB), pair)
    sizes = tables.chunk_sizes(MIB, 16 * MIB) if setting.quick else POSTERIZED_CHUNKS
    sizes = [size for size in sizes if size <= pictures.bytes]
    rows = []
    for mount in pair:
        with home_on(mount, pictures) as home:
            for chunk in sizes:
                signature = f"persist sequential size-per-IO({chunk}) totalsize({pictures.bytes})"
                ranked = [
                    c["mount_point"] for c in iosig.choose(signature, machine.storage, policy=POLICY)["candidates"]
                ]
                preferred = min(pair, key=ranked.index)
                output = home / "out.pgm"
                rows.append((mount, chunk, pictures.run_s("posterize", chunk, output), preferred))
                output.unlink()
    data = pd.DataFrame(rows, columns=["run", "chunk_bytes", "run_s", "chosen"])
    claim = "chunk sizes at which the faster device is chosen, of those where one is 5 % faster"
    if len(pair) < 2:
        why = f"only {', '.join(pair)} is persistent here; the lab has more"
        fact = untested(where, claim, all_of(len(sizes), len(sizes)), "", why)
    else:
        unlike = [rows for _, rows in data.groupby("chunk_bytes") if rows["run_s"].max() > 1.05 * rows["run_s"].min()]
        right = sum(rows.sort_values("run_s")["run"].iloc[0] == rows["chosen"].iloc[0] for rows in unlike)
        fact = counted(where, claim, right, len(unlike), 1 / 2)
    setup = machine.noted(f"picture of {bytes_label(pictures.bytes)}, each chunk synced, one run a point")
    return Result(data, [fact], [panel_of("posterize", data, Look.MEASURED)], setup)


def measured_jumps(setting: Setting, task: str, where: str) -> Result:
    """The program on the slowest persistent mount point, as it is and after `iosig prepare` with each parameter set."""
    machine = machine_of(setting)
    own = machine.persistent()[0]
    pictures = Pictures(setting, machine, (16 * MIB if setting.quick else GIB), list(machine.kinds))
    sizes = [PUBLISHED_CHUNK, 4 * MIB] if setting.quick else JUMPING_CHUNKS
    sizes = [size for size in sizes if size <= pictures.bytes]
    rows = []
    with home_on(own, pictures) as home:
        for chunk in sizes:
            reference, output = home / "reference.pgm", home / "out.pgm"
            rows.append((OWN, chunk, pictures.run_s(task, chunk, reference), own))
            for name, constraint in PARAMETER_SETS.items():
                signature = f"{constraint} random size-per-IO({chunk}) totalsize({pictures.bytes})"
                if iosig.choose(signature, machine.storage, policy=POLICY)["chosen"] is None:
                    continue
                run_s, mount = pictures.run_prepared_s(task, chunk, output, signature)
                check_same(output, reference)
                pictures.drop(output)
                rows.append((name, chunk, run_s, mount or own))
            reference.unlink()
    data = pd.DataFrame(rows, columns=["run", "chunk_bytes", "run_s", "mount_point"])
    facts = [fact for name in PARAMETER_SETS for fact in redirection_facts(data, name, machine, own, where)]
    facts.append(measured_order_fact(data, machine, where))
    setup = machine.noted(
        f"picture of {bytes_label(pictures.bytes)}, each chunk synced, one run a point; the program's own choice: {own}"
    )
    return Result(data, facts, [panel_of(task, data, Look.MEASURED)], setup)


def redirection_facts(data: pd.DataFrame, name: str, machine: Machine, own: str, where: str) -> list[Fact]:
    """Where a parameter set went, by the kind of device, and whether it made the program faster."""
    kind = KINDS[name]
    put_on = f"{name} ({PARAMETER_SETS[name] or 'no constraint'}) is put on"
    mounts = list(dict.fromkeys(data[data["run"] == name]["mount_point"]))
    found = ", ".join(f"{machine.kinds[mount]} ({mount})" for mount in mounts)
    at_512 = data[data["chunk_bytes"] == PUBLISHED_CHUNK]
    run_s = dict(zip(at_512["run"], at_512["run_s"], strict=True))
    factor = f"the paper prints no factor; its times are more than {PUBLISHED_HDD_MS / PUBLISHED_MS[name]:.0f} to 1"
    claim = f"{name} makes 512 KB chunks faster than the program's own choice"
    if not mounts:
        why = f"no mount point here is admissible ({PARAMETER_SETS[name]})"
        return [untested(where, put_on, kind, "", why), untested(where, claim, "faster", "", why)]
    place = (
        Fact(where, put_on, kind, found, "", judge(all(machine.kinds[mount] == kind for mount in mounts)))
        if kind in machine.kinds.values()
        else untested(where, put_on, kind, "", f"there is no {kind} here; it is put on {found}")
    )
    if own in mounts:
        return [place, untested(where, claim, "faster", "", f"it stays where it is: {own} is the best")]
    gain = run_s[OWN] / run_s[name]
    return [
        place,
        Fact(where, claim, "faster", f"{gain:.3g} times", "", judge(gain > 1), f"faster holds; {factor}"),
    ]


def measured_order_fact(data: pd.DataFrame, machine: Machine, where: str) -> Fact:
    """The paper's order, of those sets that are on the kind of device that it put them on."""
    kinds = {OWN: "hdd", **KINDS}
    at_512 = data[data["chunk_bytes"] == PUBLISHED_CHUNK].sort_values("run_s", ascending=False)
    pairs = zip(at_512["run"], at_512["mount_point"], strict=True)
    ranked = [run for run, mount in pairs if machine.kinds[mount] == kinds[run]]
    published = " ".join(run for run in PLACES if run in ranked)
    claim = "from slow to fast at 512 KB, of those on the kind of device that the paper put them on"
    if len(ranked) < 2:
        return untested(where, claim, " ".join(PLACES), "", "fewer than two are")
    orders = math.factorial(len(ranked))
    fact = same(where, claim, published, " ".join(ranked), note=f"one order of {orders}")
    is_chance = fact.verdict == Verdict.HOLDS and 1 / orders > CHANCE_LIMIT
    return replace(fact, verdict=Verdict.UNTESTED) if is_chance else fact


def by_source(virtual: Run, on_devices: Run) -> Run:
    return lambda setting: (virtual if setting.source == Source.VIRTUAL else on_devices)(setting)


def measured_divide(setting: Setting) -> Result:
    return measured_jumps(setting, "divide", "section 7.3, Fig. 11b")


def measured_shuffle(setting: Setting) -> Result:
    return measured_jumps(setting, "shuffle", "section 7.3, Fig. 11c")


ARTEFACTS = [
    Artefact(id_, title, f"section 7.3, Fig. {figure}", tuple(Source), by_source(virtual, on_devices))
    for id_, title, figure, virtual, on_devices in (
        ("iosig-fig11a", "posterize: HDD or NFS", "11a", run_posterize, measured_posterize),
        ("iosig-fig11b", "divide with parameter sets ps1 to ps4", "11b", run_divide, measured_divide),
        ("iosig-fig11c", "shuffle with parameter sets ps1 to ps4", "11c", run_shuffle, measured_shuffle),
    )
]
