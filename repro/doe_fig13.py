"""Fig. 13 of the DOE report: FLASH I/O, written in C, with I/O code by hand and as IOGenie generated it.

The report has a picture of average execution times and says that "the overhead of tool-generated code is negligible";
its numbers, the I/O library and the machine are not in the text. Here: an application with FLASH I/O's arrays
(examples/generate/flash.c) writes its checkpoint and two plot files by each I/O library that this machine has, with
I/O by hand and generated, in turns; both write the same bytes.

The report also says that FLASH I/O's pattern is noncontiguous, and that IOGenie generates code for data sieving.
"""

from __future__ import annotations

from iosig.repro.artefact import Artefact, Fact, Result, Setting, Source, by_construction, same
from iosig.repro.generated_against_hand import Application, decisions, overhead

WHERE = "section 3, Fig. 13"
FLASH = Application("FLASH I/O", "flash", "C", size=8, quick_size=4)


def pattern_facts() -> list[Fact]:
    """Of the 24 variables: whether they are contiguous, and how they are moved."""
    report = decisions(FLASH, "doe2014")[0]
    unk = next(each for each in report.contiguity if each.dataset == "dens")
    in_memory = "noncontiguous" if unk.memory == "strided" else "contiguous"
    in_file = "one piece" if unk.view == "contiguous" else "several pieces"
    claim = "the data access pattern is noncontiguous"
    facts = [same(WHERE, claim, "noncontiguous", in_memory, note=f"in memory; in the file a rank has {in_file}")]
    claim = "code for such a pattern is suitable for data sieving"
    facts.append(by_construction(same(WHERE, claim, "sieving", report.method), "--policy doe2014 is the report's rule"))
    ours = decisions(FLASH, "model")[0]
    why = "--policy model, the default: by predicted times; in the file each rank has one piece, nothing to sieve"
    facts.append(same(WHERE, f"{claim}: ours", "sieving", ours.method, note=why))
    return facts


def run(setting: Setting) -> Result:
    return overhead(FLASH, setting, WHERE, pattern_facts())


ARTEFACTS = [Artefact("doe-fig13", "FLASH I/O, generated against by hand", WHERE, (Source.MACHINE,), run)]
