"""tools/check_layers: the table in docs/architecture.md is what the code does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

TABLE = """```layers
base:
model: base
plugin/common: model base
plugin/gcc: plugin/common
```"""


def check(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(ROOT / "tools/check_layers"), str(root)], capture_output=True, text=True)


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """Three layers, a plugin room that stands for another, and nothing wrong."""
    for name, text in {
        "docs/architecture.md": TABLE,
        "core/iosig/base/text.h": "#include <string>\n",
        "core/iosig/model/signature.h": '#include "iosig/base/text.h"\n',
        "plugin/common/destination.h": '#include "iosig/model/signature.h"\n',
        "plugin/gcc/plugin.cc": '#include "tree.h"\n#include "plugin/common/destination.h"\n',
        "CMakeLists.txt": "iosig_layer(base)\niosig_layer(model base)\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_this_project_keeps_to_its_table() -> None:
    done = check(ROOT)
    assert done.returncode == 0, done.stdout


def test_a_house_in_order_passes(house: Path) -> None:
    assert check(house).returncode == 0


@pytest.mark.parametrize(
    ("file", "line", "complaint"),
    [
        ("core/iosig/base/text.h", '#include "iosig/model/signature.h"', "'base' may not use 'model'"),
        ("core/iosig/base/text.h", "#  include <iosig/model/signature.h>", "'base' may not use 'model'"),
        ("core/iosig/model/signature.h", '#include "plugin/common/destination.h"', "may not use 'plugin/common'"),
        ("plugin/common/destination.h", '#include "../gcc/plugin.cc"', "may not use 'plugin/gcc'"),
        ("CMakeLists.txt", "iosig_layer(base model)", "'base' may not link 'model'"),
        ("plugin/gcc/CMakeLists.txt", "target_link_libraries(x PRIVATE iosig_model)", ""),
        ("core/iosig/attic/old.h", "", "lies in no layer"),
    ],
)
def test_a_planted_violation_is_found(house: Path, file: str, line: str, complaint: str) -> None:
    path = house / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((path.read_text() if path.exists() else "") + line + "\n")
    done = check(house)
    assert done.returncode == (1 if complaint else 0), done.stdout
    assert complaint in done.stdout
    assert not complaint or file in done.stdout
