"""The papers' tables and figures, one file each; `iosig repro` runs them (python/iosig/repro)."""
