"""IOSIG from Python: the same signatures, storage descriptions, predictions and choices as the `iosig` command.

>>> storage = iosig.read_storage("storage.toml")
>>> iosig.choose("persist random size-per-IO(64KB)", storage)["chosen"]
'/mnt/nvram'

The functions here are the native core's. Bad texts and files raise ValueError with the core's message (file, line,
column, what was expected); what the system refuses raises OSError. Patterns of accesses are in `iosig.patterns`; what
a program knows of its coming reads, in `iosig.reads`.
"""

try:
    from iosig._core import (
        MountPoint,
        Storage,
        chain_mttdl_s,
        choose,
        eq2_mttdl_s,
        find_storage,
        parse_signature,
        predict,
        read_storage,
        simulate_mttdl,
        uncorrectable_bit_error_rate,
    )
except ImportError as error:
    raise ImportError(f"{error}: iosig and its extension do not fit together; rebuild: make python") from error

__all__ = [
    "MountPoint",
    "Storage",
    "chain_mttdl_s",
    "choose",
    "eq2_mttdl_s",
    "find_storage",
    "parse_signature",
    "predict",
    "read_storage",
    "simulate_mttdl",
    "uncorrectable_bit_error_rate",
]
