"""`iosig generate`: parallel I/O code from directives in a template (IOGenie, DOE report, section 3).

A template has the computation and no I/O; its directives (`#pragma sigio`, `!$sigio`) say what is in a file, and how
ranks share it.
Each stage of the pipeline is a file:

    template.py   the source, its directives and their mistakes, as the core reads them
    model.py      files, axes, decompositions, data sets
    build.py      the model from the directives; names and ranks are checked
    declarations.py  whether the arrays are what the directives say, by libclang (C and C++)
    analysis.py   which bytes are contiguous: in memory, in a rank's view of the file, across ranks
    sizes.py      how many pieces and bytes that is
    costs.py      what these cost with each I/O library; measure.py measures it, with probe.c and probe_runs.py
    optimise.py   how the data are moved, and why
    render.py     code from Jinja templates (templates/), put in place of the directives

cli.py is the command, interactive.py its conversation on a terminal.
"""
