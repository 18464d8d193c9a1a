"""Table 2 of the IOSIG paper: what the storage of a machine can do.

On real storage these are the values that `iosig storage probe` finds, and what section 7 says of the table is held
against them.

The virtual device is a description of Table 2, read by the core: its columns must be the printed ones, for every other
artefact rests on them. Bandwidths are powers of 1024 here, so that 1 GB at 1 GB/s takes one second.
"""

from __future__ import annotations

import os
from typing import Any

import pandas as pd

from iosig.figures import MIB
from iosig.panels import Curve, Look, Panel
from iosig.repro.artefact import (
    TABLE2,
    Artefact,
    Fact,
    Result,
    Setting,
    Source,
    all_of,
    by_construction,
    same,
    untested,
)
from iosig.repro.machine import described, machine_of

GIB, TIB = 1 << 30, 1 << 40
WHERE = "section 7, Table 2"
DEVICES = ["ramdisk", "nvram", "raid1", "hdd", "nfs"]
KINDS = ["ram", "nvram", "raid1", "hdd", "network"]
# As printed, in the order of DEVICES. The HDD's IOPS are printed as '< 10'.
PRINTED: dict[str, tuple[str, list[Any]]] = {
    "read_bandwidth": ("MB/s", [2.3 * 1024, 1.7 * 1024, 430, 130, 105]),
    "write_bandwidth": ("MB/s", [2.4 * 1024, 1.7 * 1024, 415, 125, 103]),
    "operation_latency": ("ms", [0.001, 0.1, 0.11, 150, 0.4]),
    "seek_latency": ("s", [0, 0, 0, 0.02, 0]),
    "max_iops": ("", [800000, 9000, 6000, 10, 1000]),
    "free": ("GB", [1, 2, 4, 1536, 1024]),
    "visibility": ("", ["local", "local", "local", "local", "global"]),
    "persistent": ("", ["no", "yes", "yes", "yes", "yes"]),
}


def columns_of(description: dict[str, Any], kinds: dict[str, str]) -> pd.DataFrame:
    """Table 2's columns, in its units, of what `iosig storage list --json` told; `kinds` replace its own."""
    devices = {device["name"]: device for device in description["devices"]}
    rows = []
    for mount in description["mount_points"]:
        device = devices[mount["device"]]
        rows.append(
            {
                "device": device["name"],
                "mount_point": mount["path"],
                "kind": kinds.get(mount["path"], device["kind"]),
                "read_bandwidth": device["read_bytes_per_s"] / MIB,
                "write_bandwidth": device["write_bytes_per_s"] / MIB,
                "operation_latency": device["operation_latency_s"] * 1000,
                "seek_latency": device["seek_latency_s"],
                "max_iops": device["max_iops"],
                "free": mount["free_bytes"] / GIB,
                "visibility": mount["visibility"],
                "persistent": "yes" if mount["persistent"] else "no",
            }
        )
    return pd.DataFrame(rows)


def printed_text(values: list[Any], unit: str) -> str:
    text = ", ".join(value if isinstance(value, str) else f"{value:g}" for value in values)
    return f"{text} {unit}".rstrip()


def column_facts(table: pd.DataFrame) -> list[Fact]:
    by_device = table.set_index("device").loc[DEVICES]
    return [
        by_construction(
            same(
                WHERE,
                f"{column} of {', '.join(DEVICES)}",
                printed_text(printed, unit),
                printed_text(list(by_device[column]), unit),
            ),
            "the description was written from this table",
        )
        for column, (unit, printed) in PRINTED.items()
    ]


def panels_of(table: pd.DataFrame) -> list[Panel]:
    """Each column over the devices; beside them what Table 2 prints for a device of that kind.

    Mount points in one directory are named without it, which the axis tells.
    """
    names, label = list(table["mount_point"]), "mount point"
    directory = os.path.commonpath(names)
    if directory not in ("/", *names):
        names, label = [os.path.relpath(name, directory) for name in names], f"mount point in {directory}"
    printed = dict(zip(KINDS, range(len(DEVICES)), strict=True))
    alike = [(name, printed[kind]) for name, kind in zip(names, table["kind"], strict=True) if kind in printed]
    panels = []
    for title, unit, columns in (
        ("bandwidth", "MB/s", ["read_bandwidth", "write_bandwidth"]),
        ("latency of an operation", "ms", ["operation_latency"]),
        ("operations per second", "1/s", ["max_iops"]),
    ):
        curves = [Curve(column, names, list(table[column]), Look.MEASURED) for column in columns]
        for column in columns:
            y = [PRINTED[column][1][at] for _, at in alike]
            curves.append(Curve(f"{column}, Table 2", [name for name, _ in alike], y, Look.PUBLISHED))
        panels.append(Panel(title, label, unit, curves))
    return panels


def filled_fact(table: pd.DataFrame) -> Fact:
    known = sum(bool(table[column].notna().all()) for column in PRINTED)
    return same(
        WHERE,
        "columns that are known of every mount point",
        all_of(len(PRINTED), len(PRINTED)),
        all_of(known, len(PRINTED)),
    )


def order_facts(table: pd.DataFrame) -> list[Fact]:
    """What section 7 says about the table, by the kinds of the devices; only where there are such devices."""
    fastest = table.nlargest(1, "write_bandwidth")["kind"].item()
    persistent = table[table["persistent"] == "yes"]
    best_kept = persistent.nlargest(1, "write_bandwidth")["kind"].item()
    slow = sorted(table.nsmallest(2, "write_bandwidth")["kind"])
    large = sorted(table.nlargest(2, "free")["kind"])
    shared = list(table[table["visibility"] == "global"]["kind"])
    where = "section 7"
    told = [
        ("the fastest device is", "ram", fastest),
        ("the fastest persistent device is", "nvram", best_kept),
        ("the two slowest are", "hdd, network", ", ".join(slow)),
        ("the two largest are", "hdd, network", ", ".join(large)),
        ("the only global device is", "network", ", ".join(shared)),
    ]
    kinds = set(table["kind"])
    return [
        same(where, claim, published, found)
        if kinds.issuperset(published.split(", "))
        else untested(where, claim, published, "", f"there is no {published} here, only {', '.join(sorted(kinds))}")
        for claim, published, found in told
    ]


def run(setting: Setting) -> Result:
    if setting.source == Source.VIRTUAL:
        table = columns_of(described(TABLE2), {"/paper/raid1": "raid1"})
        setup = "Table 2 as a storage description, told by iosig storage list"
        return Result(table, column_facts(table) + order_facts(table), panels_of(table), setup)
    machine = machine_of(setting)
    table = columns_of(described(machine.description), machine.kinds)
    facts = [filled_fact(table), *order_facts(table)]
    setup = machine.noted("synchronised writes and cold reads, by iosig storage probe")
    return Result(table, facts, panels_of(table), setup)


ARTEFACTS = [Artefact("iosig-table2", "what the storage can do", "section 7, Table 2", tuple(Source), run)]
