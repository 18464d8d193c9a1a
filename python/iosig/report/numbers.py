"""The numbers of a report: the core's summary of the traces, and what `iosig infer` and `iosig advise` say of them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from iosig._core import summarize_traces
from iosig.command import iosig_command

PLOTTED_FILES = 12
LISTED_FILES = 50


@dataclass(frozen=True)
class Said:
    """What another command said of the traces: its JSON document, or why there is none."""

    document: dict[str, Any] = field(default_factory=dict)
    failure: str = ""


@dataclass(frozen=True)
class Numbers:
    """Everything that a report shows. `summary`: of the core (python/bindings/trace_summary.cpp)."""

    traces: list[str]
    files: str
    summary: dict[str, Any]
    inferred: Said
    advice: Said

    @property
    def command(self) -> list[str]:
        """The words of the first traced command that is known; else those are empty."""
        for manifest in self.summary["manifests"]:
            try:
                words = json.loads(manifest).get("command", [])
            except (ValueError, AttributeError):
                continue
            if isinstance(words, list) and words:
                return [str(word) for word in words]
        return []


def gather(traces: Sequence[str], files: str = "") -> Numbers:
    """Reads the traces; `files`: a glob, only calls on such files count; "": all.

    Raises ValueError if a directory is no trace, OSError if it cannot be read. A failure of the other commands is in
    the result.
    """
    options = ["--files", files] if files else []
    asked = [start(verb, traces, options) for verb in ("infer", "advise")]
    try:
        summary = summarize_traces(
            [os.fsencode(trace) for trace in traces], os.fsencode(files), PLOTTED_FILES, LISTED_FILES
        )
        inferred, advice = (answer_of(process) for process in asked)
    finally:
        for process in asked:
            process.kill()
            process.wait()
    return Numbers(list(traces), files, summary, inferred, advice)


def start(verb: str, traces: Sequence[str], options: list[str]) -> subprocess.Popen[bytes]:
    words = [iosig_command(), verb, "--json", *options, "--", *traces]
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def answer_of(process: subprocess.Popen[bytes]) -> Said:
    """Waits for the command. Status 1 is a valid answer: there is nothing to say."""
    out, err = process.communicate()
    if process.returncode in (0, 1):
        try:
            document = json.loads(out)
        except ValueError:
            return Said(failure="its answer is no JSON")
        return Said(document) if isinstance(document, dict) else Said(failure="its answer is no JSON object")
    lines = err.decode(errors="backslashreplace").strip().splitlines()
    return Said(failure=lines[-1] if lines else f"it ended with status {process.returncode}")
