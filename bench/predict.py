"""Predicted against measured throughput on this machine's mount points (`make bench`).

Probes the storage, measures each mount point independently of the probe (bench_throughput), and says for each how far
the predictions are off, and how often the choice was truly the fastest. Writes build/bench/results.csv:
`iosig-plot model --measured` draws it beside the curves.
"""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pandas as pd

import iosig

BUILD = Path(__file__).resolve().parent.parent / "build"
BENCH = BUILD / "bench"
WORKLOAD = ["operation", "access", "aligned", "chunk_bytes"]


def measure(mount_point: str) -> pd.DataFrame:
    """A row per workload with its `bytes_per_s`."""
    command = [str(BUILD / "bin" / "bench_throughput"), mount_point]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return pd.read_csv(io.StringIO(printed)).assign(mount_point=mount_point)


def with_predictions(measured: pd.DataFrame, storage: iosig.Storage) -> pd.DataFrame:
    """Adds `predicted_bytes_per_s` and `error`, the distance from the measurement as a share of it."""

    def predicted(row: pd.Series) -> float:
        share = " read-share(1)" if row["operation"] == "read" else ""
        signature = f"{row['access']} size-per-IO({row['chunk_bytes']}){share}"
        return iosig.predict(signature, storage, row["mount_point"])["throughput_bytes_per_s"]

    table = measured.assign(predicted_bytes_per_s=measured.apply(predicted, axis=1))
    return table.assign(error=(table["predicted_bytes_per_s"] / table["bytes_per_s"] - 1).abs())


def choices(table: pd.DataFrame) -> pd.DataFrame:
    """By workload: `right` when the mount point predicted to be fastest was, and `kept`, its share of the best."""
    chosen = table.sort_values("predicted_bytes_per_s").groupby(WORKLOAD)["bytes_per_s"].last()
    best = table.groupby(WORKLOAD)["bytes_per_s"].max()
    return pd.DataFrame({"right": chosen == best, "kept": chosen / best})


def main() -> None:
    BENCH.mkdir(parents=True, exist_ok=True)
    description = BENCH / "storage.toml"
    description.unlink(missing_ok=True)
    subprocess.run([BUILD / "bin" / "iosig", "storage", "probe", "--output", description], check=True)
    storage = iosig.read_storage(str(description))
    measured = []
    for mount in storage.mount_points:
        print(f"measuring {mount.path}", file=sys.stderr, flush=True)
        measured.append(measure(mount.path))
    table = with_predictions(pd.concat(measured, ignore_index=True), storage)
    table.to_csv(BENCH / "results.csv", index=False)

    errors = table.pivot_table(
        values="error", index="mount_point", columns=["operation", "access"], aggfunc="median", margins=True
    )
    print("\nmedian error of the prediction, as a share of the measurement")
    print(errors.to_string(float_format="{:.0%}".format))
    chosen = choices(table)
    print(f"\nthe choice was the fastest in {chosen['right'].sum()} of {len(chosen)} workloads;", end=" ")
    print(f"it kept {chosen['kept'].median():.0%} of the best throughput (median), {chosen['kept'].min():.0%} at worst")
    print(f"\nwritten: {BENCH / 'results.csv'}; draw it with iosig-plot model --storage {description} --measured ...")


if __name__ == "__main__":
    main()
