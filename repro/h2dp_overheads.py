"""Section 5.4 of the H2DP paper: what its tables and its searches cost."""

from __future__ import annotations

import pandas as pd

from iosig.panels import Curve, Panel
from iosig.repro import placements
from iosig.repro.artefact import Artefact, Fact, Result, Setting, judge, same, untested

WHERE = "section 5.4"
GB = 1e9
FILE_GB, REGION_MIB, ENTRY_BYTES = 100, 64, 128
PUBLISHED_REGIONS, PUBLISHED_TABLE_MB, PUBLISHED_SHARE_PERCENT = 1600, 0.4, 0.001
HALF_A_DIGIT = 0.05  # MB


def run(setting: Setting) -> Result:
    del setting
    sizes = [64, 128, 256, 512]
    rows = [(size, -(-FILE_GB * 1024 // size), -(-FILE_GB * 1024 // size) * ENTRY_BYTES) for size in sizes]
    data = pd.DataFrame(rows, columns=["region_mib", "regions", "table_bytes"])
    _, regions, table_bytes = rows[0]
    table_mb = table_bytes / 1e6
    share = table_bytes / (FILE_GB * GB) * 100
    facts = [
        same(WHERE, "regions of 64 MB in a file of 100 GB, up to", PUBLISHED_REGIONS, regions, "regions"),
        Fact(
            WHERE,
            "size of the region mapping table",
            PUBLISHED_TABLE_MB,
            table_mb,
            "MB",
            judge(abs(table_mb - PUBLISHED_TABLE_MB) <= HALF_A_DIGIT),
            "1600 entries of 128 bytes are 0.2 MB; 0.4 MB would be two such tables, or entries of 256 bytes",
        ),
        Fact(
            WHERE,
            "its share of the file's size",
            f"less than {PUBLISHED_SHARE_PERCENT:g} %",
            f"{share:.2g} %",
            "",
            judge(share < PUBLISHED_SHARE_PERCENT),
        ),
        untested(
            WHERE,
            "overhead of collecting traces, at most",
            6.0,
            "%",
            "measured with this recorder in docs/performance.md, not in a simulator",
        ),
    ]
    panels = [
        Panel(
            "128 bytes a region, 100 GB",
            "region size, MiB",
            "bytes",
            [Curve("region mapping table", list(data["region_mib"]), list(data["table_bytes"]))],
            counts_x=True,
        )
    ]
    return Result(data, facts, panels, f"a file of {FILE_GB} GB")


ARTEFACTS = [
    Artefact(
        "h2dp-overheads", "size of the region mapping table", WHERE, placements.SOURCES, run, "arithmetic (computed)"
    )
]
