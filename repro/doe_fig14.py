"""Fig. 14 of the DOE report: S3D I/O, written in Fortran, with I/O code by hand and as IOGenie generated it.

As Fig. 13: the report's numbers are not in its text, which says that the overhead of generated code is negligible.
Here: an application with S3D I/O's arrays (examples/generate/s3d.f90). The program by hand is in C: the time is
spent in the same libraries, for the same bytes.

The report also says that S3D I/O's access is contiguous, and that IOGenie generates code for two-phase I/O.
"""

from __future__ import annotations

from iosig.repro.artefact import Artefact, Fact, Result, Setting, Source, same
from iosig.repro.generated_against_hand import Application, decisions, overhead

WHERE = "section 3, Fig. 14"
S3D = Application("S3D I/O", "s3d", "Fortran", size=25, quick_size=12)


def pattern_facts() -> list[Fact]:
    ours = decisions(S3D, "model")[0]
    found = {each.view for each in ours.contiguity}
    in_file = "contiguous" if found == {"contiguous"} else "noncontiguous"
    why = "blocks in three dimensions are lines of x in the file; what is contiguous is the file, across ranks"
    facts = [same(WHERE, "the data access is contiguous", "contiguous", in_file, note=why)]
    claim = "code for such access is appropriate to two-phase I/O"
    why = "--policy model, the default: by predicted times, with costs measured on a machine of two processors"
    facts.append(same(WHERE, claim, "two-phase", ours.method, note=why))
    return facts


def run(setting: Setting) -> Result:
    return overhead(S3D, setting, WHERE, pattern_facts())


ARTEFACTS = [Artefact("doe-fig14", "S3D I/O, generated against by hand", WHERE, (Source.MACHINE,), run)]
