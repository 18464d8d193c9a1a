"""Predicted against measured throughput over a grid of workloads (`make bench` runs the quick form).

Probes the storage, has bench_grid measure each mount point independently of the probe, and says for each mount point
and class of workload how far the predictions are off; and how often the mount point predicted to be fastest was, and
what it costs when it was not: the regret, 1 - its throughput / the best. Because memory is fastest nearly always, a
choice is also made among the mount points that outlast a loss of power, and between any two. Both cost models are
judged; no parameter comes from the grid. What noise alone costs is said beside: the choice by the measurements of every
other round, judged by those of the rounds between. Of several tmpfs the first counts, since which of two equals was
faster is noise alone. Writes storage.toml, results.csv and report.json to build/bench.
After ^C run it again: it goes on where it was.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

import iosig

if TYPE_CHECKING:
    from iosig._core import Model

BUILD = Path(__file__).resolve().parent.parent / "build"
WORKLOAD = ["operation", "access", "sync", "aligned", "chunk_bytes"]
CLASS = ["operation", "access", "sync"]
MODELS: tuple[Model, ...] = ("mixed", "paper")
SMALL_REGRET = 0.05


def signature(workload: Mapping[Hashable, Any]) -> str:
    # Random writes overwrite what is there: nearly all of so many passes do.
    more = " read-share(1)" if workload["operation"] == "read" else " passes(1000000)"
    return f"{workload['access']} {workload['sync']} size-per-IO({workload['chunk_bytes']}){more}"


def medians(rows: pd.DataFrame) -> pd.DataFrame:
    """`bytes_per_s` of each mount point and workload, the median of its rounds. Those left out are not there."""
    measured = rows.dropna(subset=["bytes_per_s"])
    return measured.groupby(["mount_point", *WORKLOAD], sort=False)["bytes_per_s"].median().reset_index()


def with_predictions(measured: pd.DataFrame, storage: iosig.Storage, model: Model) -> pd.DataFrame:
    """Adds `predicted_bytes_per_s`, `stored_bytes_per_s`, the same for who waits, and `error`, the distance from the
    measurement as a share of it."""

    def predicted(row: Mapping[Hashable, Any]) -> float:
        rate: float = iosig.predict(signature(row), storage, row["mount_point"], model)["throughput_bytes_per_s"]
        return rate

    rows = measured.to_dict("records")
    table = measured.assign(
        predicted_bytes_per_s=[predicted(row) for row in rows],
        stored_bytes_per_s=[predicted({**row, "sync": "sync"}) for row in rows],
    )
    return table.assign(error=(table["predicted_bytes_per_s"] / table["bytes_per_s"] - 1).abs())


def with_other_rounds(rows: pd.DataFrame) -> pd.DataFrame:
    """Medians of the even rounds as `bytes_per_s`, of the odd ones as predicted."""
    even, odd = (medians(rows[rows["round"] % 2 == rest]) for rest in (0, 1))
    odd["stored_bytes_per_s"] = odd["bytes_per_s"]
    return even.merge(odd.rename(columns={"bytes_per_s": "predicted_bytes_per_s"}), on=["mount_point", *WORKLOAD])


def errors(table: pd.DataFrame) -> pd.DataFrame:
    """A row per mount point and class, and one for everything: cells, median and p90 of `error`."""

    def row(group: pd.DataFrame) -> pd.Series:
        return pd.Series({"cells": len(group), "median": group["error"].median(), "p90": group["error"].quantile(0.9)})

    parts = [
        table.groupby(["mount_point", *CLASS])[["error"]].apply(row).reset_index(),
        table.groupby("mount_point")[["error"]].apply(row).reset_index(),
        row(table).to_frame().T.assign(mount_point="all"),
    ]
    found = pd.concat(parts, ignore_index=True)
    found[CLASS] = found[CLASS].fillna("all")
    return found.astype({"cells": int})


def choices(table: pd.DataFrame, mount_points: list[str]) -> pd.DataFrame:
    """A row per workload that at least two of `mount_points` were measured with: the one predicted to be fastest (on a
    tie the one with the faster storage, then the earlier, like `iosig choose`), the fastest, and the `regret`."""
    among = table[table["mount_point"].isin(mount_points)]
    several = among[among.groupby(WORKLOAD)["mount_point"].transform("count") > 1]
    places = several["mount_point"].map(mount_points.index).astype(int)  # also of no rows

    def best(*keys: str) -> pd.DataFrame:
        ranked = several.assign(earlier=-places).sort_values([*keys, "earlier"], ascending=False)
        return ranked.drop_duplicates(WORKLOAD).set_index(WORKLOAD).sort_index()

    chosen, fastest = best("predicted_bytes_per_s", "stored_bytes_per_s"), best("bytes_per_s")
    regret = 1 - chosen["bytes_per_s"] / fastest["bytes_per_s"]
    made = {"chosen": chosen["mount_point"], "fastest": fastest["mount_point"], "regret": regret}
    return pd.DataFrame(made).reset_index()


def judged(table: pd.DataFrame, storage: iosig.Storage) -> dict[str, pd.DataFrame]:
    """The choices among each set of mount points."""
    tmpfs = [mount.path for mount in storage.mount_points if mount.filesystem == "tmpfs"]
    unlike = [mount for mount in storage.mount_points if mount.path not in tmpfs[1:]]
    paths = [mount.path for mount in unlike]
    lasting = [mount.path for mount in unlike if mount.persistent]
    pairs = [choices(table, list(pair)) for pair in itertools.combinations(paths, 2)]
    found = {"all": choices(table, paths), "persistent": choices(table, lasting)}
    if pairs:
        found["any two"] = pd.concat(pairs, ignore_index=True)
    return {name: made for name, made in found.items() if len(made)}


def summary(made: pd.DataFrame) -> dict[str, float]:
    regret = made["regret"]
    return {
        "cells": len(made),
        "fastest_share": (made["chosen"] == made["fastest"]).mean(),
        "small_regret_share": (regret < SMALL_REGRET).mean(),
        "p95_regret": regret.quantile(0.95),
        "largest_regret": regret.max(),
    }


def worst(made: pd.DataFrame, table: pd.DataFrame, count: int) -> list[str]:
    """The cells of the largest regret, with both mount points' predicted and measured MB/s: which one was wrong."""
    known = table.set_index(["mount_point", *WORKLOAD])

    def rates(mount: str, workload: tuple[Any, ...]) -> str:
        row = known.loc[(mount, *workload)]
        return f"{mount} {row['predicted_bytes_per_s'] / 1e6:.4g} ({row['bytes_per_s'] / 1e6:.4g})"

    lines = []
    for row in made[made["regret"] >= SMALL_REGRET].nlargest(count, "regret").to_dict("records"):
        workload = tuple(row[key] for key in WORKLOAD)
        aligned = "aligned" if row["aligned"] == "yes" else "unaligned"
        lines.append(
            f"{row['regret']:4.0%}  {row['sync']} {row['access']} {row['operation']} {row['chunk_bytes']} B {aligned}: "
            f"chose {rates(row['chosen'], workload)} over {rates(row['fastest'], workload)}"
        )
    return lines


def run(*command: str | Path) -> None:
    """Quits with the exit status of what failed, or was interrupted; it has told why."""
    try:
        subprocess.run(command, check=True, stdout=sys.stderr)
    except subprocess.CalledProcessError as failed:
        sys.exit(failed.returncode if failed.returncode > 0 else 130)
    except KeyboardInterrupt:
        sys.exit(130)


def main() -> None:
    parser = argparse.ArgumentParser(description="Predicted against measured throughput over a grid of workloads.")
    parser.add_argument("--quick", action="store_true", help="two rounds, chunks up to 16 MB, a quick probe")
    parser.add_argument("--mount", action="append", default=[], metavar="PATH", help="only this directory (repeatable)")
    parser.add_argument(
        "--directory", type=Path, default=BUILD / "bench", help="for results; what is there is gone on with"
    )
    parser.add_argument("--fresh", action="store_true", help="probe and measure anew")
    parser.add_argument("--json", action="store_true", help="print report.json instead of tables")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    description, results = options.directory / "storage.toml", options.directory / "results.csv"
    if options.fresh:
        for file in (description, results):
            file.unlink(missing_ok=True)
    quick = ["--quick"] if options.quick else []
    if not description.exists():
        mounts = [word for path in options.mount for word in ("--mount", path)]
        run(BUILD / "bin" / "iosig", "storage", "probe", *quick, *mounts, "--output", description)
    described = {mount.path for mount in iosig.read_storage(str(description)).mount_points}
    if other := [path for path in options.mount if str(Path(path).resolve()) not in described]:
        sys.exit(f"grid.py: {description} describes other mount points than {', '.join(other)}; --fresh probes them")
    run(BUILD / "bin" / "bench_grid", *quick, description, results)

    storage, rows = iosig.read_storage(str(description)), pd.read_csv(results)
    left_out = rows.groupby(["mount_point", "left_out"]).size().reset_index(name="cells")
    report: dict[str, Any] = {
        "schema": "iosig.grid/1",
        "left_out": left_out.to_dict("records"),
        "models": {},
    }
    lines = [f"left out on {row['mount_point']}: {row['cells']} cells, {row['left_out']}" for row in report["left_out"]]
    for model in MODELS:
        table = with_predictions(medians(rows), storage, model)
        sets = judged(table, storage)
        found = errors(table)
        kept = pd.DataFrame({name: summary(made) for name, made in sets.items()}).T
        report["models"][model] = {"errors": found.to_dict("records"), "choices": kept.to_dict("index")}
        wide = found.assign(error=[f"{m:.0%} / {p:.0%}" for m, p in zip(found["median"], found["p90"], strict=True)])
        lines += [
            f"\nmodel {model}: error of the prediction, median / p90",
            wide.pivot(index="mount_point", columns=CLASS, values="error").fillna("").to_string(),
            f"\nmodel {model}: choice among sets of mount points",
            kept.astype({"cells": int}).to_string(float_format="{:.1%}".format),
        ]
        for name, made in sets.items():
            shown = worst(made, table, 8)
            report["models"][model]["choices"][name]["worst"] = shown
            if shown and model == MODELS[0]:
                lines += [f"\nlargest regrets, {name}: predicted (measured) MB/s", *shown]
    floor = {name: summary(made) for name, made in judged(with_other_rounds(rows), storage).items()}
    report["noise"] = floor
    if floor:
        table_text = pd.DataFrame(floor).T.astype({"cells": int}).to_string(float_format="{:.1%}".format)
        lines += ["\nno model, the choice by every other round's measurements: what noise costs", table_text]
    (options.directory / "report.json").write_text(json.dumps(report, indent=1, allow_nan=False))
    print(json.dumps(report) if options.json else "\n".join(lines))


if __name__ == "__main__":
    main()
