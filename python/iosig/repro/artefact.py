"""The words of `iosig repro`: an artefact (a table or figure of a paper) is run and gives a result, whose facts say for
each published sentence whether it holds here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pandas as pd

from iosig.panels import Panel

CHECKOUT = Path(__file__).resolve().parents[3]
TABLE2 = CHECKOUT / "tests" / "data" / "paper-table2.toml"


class Source(StrEnum):
    """What was experimented on."""

    VIRTUAL = "virtual"
    MACHINE = "machine"
    LAB = "lab"


MEASURED = (Source.MACHINE, Source.LAB)
SOURCE_TEXT = {
    Source.VIRTUAL: "a virtual device that obeys Table 2 (computed)",
    Source.MACHINE: "this machine's devices (measured)",
    Source.LAB: "the lab's devices (measured; lives and bit errors as section 7.4 assumes them)",
}


class Verdict(StrEnum):
    HOLDS = "holds"
    DIFFERS = "differs"
    UNTESTED = "untested"


@dataclass(frozen=True)
class Fact:
    """One published sentence and what came out here.

    published, found: numbers in `unit`, or words with theirs. judged: by which measure it holds, why it differs, or why
    this source cannot say.
    """

    where: str
    claim: str
    published: float | str
    found: float | str
    unit: str
    verdict: Verdict
    judged: str = ""


def judge(holds: bool) -> Verdict:
    return Verdict.HOLDS if holds else Verdict.DIFFERS


def about(
    where: str, claim: str, published: float, found: float, unit: str, within: float = 0.1, note: str = ""
) -> Fact:
    """Holds when `found` is within the share `within` of `published`; `note` is told when it does not."""
    off = found / published - 1
    holds = abs(off) <= within
    judged = f"{off:+.0%}; at most {within:.0%} off holds" + (f"; {note}" if note and not holds else "")
    return Fact(where, claim, published, found, unit, judge(holds), judged)


def more_than(where: str, claim: str, published: float, found: float, unit: str, note: str = "") -> Fact:
    holds = found > published
    return Fact(where, claim, published, found, unit, judge(holds), "more holds" if holds else note)


def same(where: str, claim: str, published: float | str, found: float | str, unit: str = "", note: str = "") -> Fact:
    return Fact(where, claim, published, found, unit, judge(published == found), note)


def all_of(count: int, of: int) -> str:
    """A count as both columns of a fact spell it: 'all 8', '7 of 8'."""
    return f"all {of}" if count == of else f"{count} of {of}"


def untested(where: str, claim: str, published: float | str, unit: str, why: str) -> Fact:
    return Fact(where, claim, published, "-", unit, Verdict.UNTESTED, why)


@dataclass(frozen=True)
class Setting:
    """How an artefact is run. `scratch`: an empty directory, removed afterwards. `progress` takes a line; a log should
    keep only the part before the first colon."""

    source: Source
    quick: bool
    scratch: Path
    progress: Callable[[str], None]


@dataclass(frozen=True)
class Result:
    """data: a row per point that is drawn. setup: sizes and numbers of this run, in a line."""

    data: pd.DataFrame
    facts: list[Fact]
    panels: list[Panel]
    setup: str

    def count(self, verdict: Verdict) -> int:
        return sum(fact.verdict == verdict for fact in self.facts)

    @property
    def verdict(self) -> Verdict:
        """differs if any fact does; untested if none could be tested."""
        if self.count(Verdict.DIFFERS):
            return Verdict.DIFFERS
        return Verdict.HOLDS if self.count(Verdict.HOLDS) else Verdict.UNTESTED


@dataclass(frozen=True)
class Artefact:
    """A table or figure: `where` in the paper, `sources` that it can be run on, `run`. `virtual`: what its virtual
    source is, when that is not a device of Table 2."""

    id: str
    title: str
    where: str
    sources: tuple[Source, ...]
    run: Callable[[Setting], Result]
    virtual: str = ""

    def source_text(self, source: Source) -> str:
        return self.virtual if source == Source.VIRTUAL and self.virtual else SOURCE_TEXT[source]
