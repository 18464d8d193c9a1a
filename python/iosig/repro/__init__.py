"""`iosig repro`: a paper's tables and figures made again, each held against what the paper says of it.

artefact.py has the words (artefact, fact, verdict), cli.py the command, machine.py the experiments on real storage.
What a table or a figure is made of stands in the checkout's directory repro/, one file for each.
"""
