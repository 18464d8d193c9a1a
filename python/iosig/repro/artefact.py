"""The words of `iosig repro`: an artefact (a table or figure of a paper) is run and gives a result, whose facts say for
each published sentence whether it holds here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import pandas as pd

from iosig.command import CHECKOUT
from iosig.panels import Panel

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
    """`by construction`: the comparison could not have come out otherwise, so that it agrees is no evidence."""

    HOLDS = "holds"
    DIFFERS = "differs"
    BY_CONSTRUCTION = "by construction"
    UNTESTED = "untested"


COUNTED_AS = {
    Verdict.HOLDS: "hold",
    Verdict.DIFFERS: "differ",
    Verdict.BY_CONSTRUCTION: "by construction",
    Verdict.UNTESTED: "untested",
}
CHANCE_LIMIT = 0.05  # what guessing would give more often than this is not called tested


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


def more_than(
    where: str, claim: str, published: float, found: float, unit: str, note: str = "", most: float = math.inf
) -> Fact:
    """What the paper bounds from below: holds when `found` is above `published`, and not above `most` times it. `note`
    is told when it does not hold."""
    factor = found / published
    holds = 1 < factor <= most
    judged = f"{factor:.3g} times the bound; " + ("more holds" if most == math.inf else f"1 to {most:g} times holds")
    return Fact(
        where, claim, published, found, unit, judge(holds), judged + (f"; {note}" if note and not holds else "")
    )


def part_of(where: str, claim: str, whole: float, found: float, unit: str, part: str) -> Fact:
    """`found` is the time of a `part` of what took `whole` in the paper: holds when it is not longer than that."""
    judged = f"{part} are {found / whole:.0%} of the published time of the whole program; at most 100 % holds"
    return Fact(where, claim, whole, found, unit, judge(found <= whole), judged)


def by_construction(fact: Fact, why: str) -> Fact:
    """A fact that can only hold. If it does not, something is broken, and it differs."""
    verdict = Verdict.BY_CONSTRUCTION if fact.verdict == Verdict.HOLDS else fact.verdict
    return replace(fact, verdict=verdict, judged=why)


def guessed(right: int, of: int, chance: float) -> float:
    """The probability that at least `right` of `of` guesses are right, each with probability `chance`."""
    return sum(math.comb(of, k) * chance**k * (1 - chance) ** (of - k) for k in range(right, of + 1))


def counted(where: str, claim: str, right: int, of: int, chance: float, least: float = 1, judged: str = "") -> Fact:
    """A statement on each of `of` cases, right in `right` of them: holds when the share `least` of them is right.
    `chance`: of one case to be right by accident. When as many would be by accident in more than one of 20 experiments
    (binomial distribution), it is untested."""
    words = [judged] if judged else []
    if of == 0:
        return Fact(where, claim, "all", "-", "", Verdict.UNTESTED, "; ".join([*words, "there is no such case here"]))
    numbers = (all_of(of, of), all_of(right, of))
    if right < least * of:
        return Fact(where, claim, *numbers, "", Verdict.DIFFERS, "; ".join(words))
    by_chance = guessed(right, of, chance)
    words.append(f"by chance in {by_chance:.2g} of such experiments")
    verdict = Verdict.HOLDS if by_chance <= CHANCE_LIMIT else Verdict.UNTESTED
    return Fact(where, claim, *numbers, "", verdict, "; ".join(words))


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
        """differs if any fact does; by construction, or untested, if nothing else could be tested."""
        ranked = (Verdict.DIFFERS, Verdict.HOLDS, Verdict.BY_CONSTRUCTION)
        return next((verdict for verdict in ranked if self.count(verdict)), Verdict.UNTESTED)


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
