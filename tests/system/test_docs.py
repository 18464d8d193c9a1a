"""The pages' shell examples are what the command really does.

A ```console block is a transcript: `$ command`, then its output. It is run in a scratch directory with its own home,
and compared loosely: numbers are not, blanks count once, a line `...` stands for any lines. The pages of TRANSCRIPTS
are run; on every page the options of each `iosig` call must exist.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from conftest import BUILD, ROOT, Iosig

TRANSCRIPTS = [
    "README.md",
    "docs/cli/advise.md",
    "docs/cli/choose.md",
    "docs/cli/generate.md",
    "docs/cli/infer.md",
    "docs/cli/pattern.md",
    "docs/cli/query.md",
    "docs/cli/reliability.md",
    "docs/cli/replay.md",
    "docs/cli/repro.md",
    "docs/formats/presets.md",
    "docs/formats/signature.md",
    "docs/howto/hybrid-servers.md",
    "docs/howto/mpi-io.md",
]
NEEDS = {"docs/howto/mpi-io.md": ["mpicc.openmpi", "mpirun.openmpi"]}
PAGES = sorted(str(path.relative_to(ROOT)) for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(console|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def transcripts(page: str) -> list[tuple[str, list[str]]]:
    """Each command of the page's console blocks with the lines that follow it."""
    found: list[tuple[str, list[str]]] = []
    for kind, text in BLOCK.findall((ROOT / page).read_text()):
        if kind != "console":
            continue
        for line in text.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def loosely(text: str) -> str:
    """Numbers with their units become #, runs of blanks one blank."""
    text = re.sub(r"\d+(\.\d+)?( ?([KMGT]?B(/s)?|[mun]?s|y)\b)?", "#", text)
    return re.sub(r"[ \t]+", " ", text).strip()


def matches(expected: list[str], printed: str) -> bool:
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(loosely(line)) + r" *\n" for line in expected)
    return re.fullmatch(pattern, "".join(f"{loosely(line)}\n" for line in printed.splitlines())) is not None


@pytest.mark.parametrize("page", TRANSCRIPTS)
def test_a_page_shows_what_its_commands_print(page: str, iosig: Iosig, tmp_path: Path) -> None:
    for program in NEEDS.get(page, []):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    for name in ("examples", "tests"):
        (scratch / name).symlink_to(ROOT / name)
    environment = iosig.env | {"PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}", "LC_ALL": "C"}
    environment |= {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    for command, expected in transcripts(page):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=scratch,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        wanted_status = 3 if "error:" in "".join(expected) else 0
        assert done.returncode == wanted_status, f"{command}\n{done.stdout}"
        if any("MOUNT POINT" in line for line in expected):  # rows are another machine's
            assert loosely(next(line for line in expected if "MOUNT POINT" in line)) in loosely(done.stdout)
        else:
            assert matches(expected, done.stdout), f"{command}\nprinted:\n{done.stdout}"


def iosig_calls(page: str) -> list[tuple[str, ...]]:
    """Verb and options of every `iosig ...` in the page's shell blocks; what follows `--` is another program's."""
    calls = []
    for _, text in BLOCK.findall((ROOT / page).read_text()):
        for call in re.findall(r"(?<![\w./-])iosig ((?:[a-z-]|--).*)", text.replace("\\\n", " ")):
            call = re.split(r"[|;&)]|\s#|\s--\s", call)[0]
            words = call.replace('"', "").replace("'", "").split()
            verb = words[:2] if words[0] in ("storage", "reliability", "pattern", "repro", "query") else words[:1]
            calls.append((*verb, *(word for word in words if word.startswith("--"))))
    return calls


@cache
def help_of(binary: Path, *verb: str) -> str:
    return subprocess.run([binary, *verb, "--help"], capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.parametrize("page", [page for page in PAGES if iosig_calls(page)])
def test_every_option_on_a_page_exists(page: str, iosig: Iosig) -> None:
    for call in iosig_calls(page):
        if call[0].startswith("-"):
            continue
        verb = [word for word in call if not word.startswith("--")]
        known = help_of(iosig.binary, *verb)
        for option in call[len(verb) :]:
            name = option.split("=")[0]
            assert re.search(rf"{re.escape(name)}\b", known), f"{page}: {shlex.join(call)}: no {name}"
