"""Compiles test programs with the plugin, and records the hints that they give.

The oracle is the program's own definition of the three hint functions: it writes each call to a file, so a test sees
exactly what the plugin injected, whatever libiosig would make of it.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from conftest import BUILD

ORACLE = r"""
#include <stdio.h>
#include <stdlib.h>
static FILE *hints(void) { return fopen(getenv("HINTS"), "a"); }
void iosig_open_hint(int dirfd, const char *path, int flags, const char *signature) {
  FILE *to = hints(); fprintf(to, "open\t%s\t%d\t%d\t%s\n", path, flags, dirfd, signature); fclose(to);
}
void iosig_fopen_hint(const char *path, const char *mode, const char *signature) {
  FILE *to = hints(); fprintf(to, "fopen\t%s\t%s\t-100\t%s\n", path, mode, signature); fclose(to);
}
void iosig_fstream_hint(const char *path, int openmode, const char *signature) {
  FILE *to = hints(); fprintf(to, "fstream\t%s\t%d\t-100\t%s\n", path, openmode, signature); fclose(to);
}
"""

AT_FDCWD = -100


class Hint(NamedTuple):
    """One call of a hint; `mode` is open's flags, fopen's mode or an openmode, as text."""

    interface: str
    path: str
    mode: str
    dirfd: int
    signature: str


class PluginCompiler:
    """gcc and g++ with the plugin of the build under test; everything happens in `folder`."""

    def __init__(self, directory: Path) -> None:
        version = subprocess.run(["gcc", "-dumpversion"], capture_output=True, text=True, check=True).stdout
        self.plugin = BUILD / "lib" / "iosig" / f"gcc-{version.split('.')[0].strip()}" / "iosig.so"
        if not self.plugin.exists():
            pytest.skip(f"the GCC plugin is not built: {self.plugin} is missing")
        self.directory = directory
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("IOSIG_", "XDG_", "CCACHE_"))}
        self.env |= {"HOME": str(directory), "LC_ALL": "C", "HINTS": str(directory / "hints")}

    def run(self, *command: object, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
        options.setdefault("env", self.env)
        done = subprocess.run(
            [str(word) for word in command], cwd=self.directory, capture_output=True, text=True, timeout=120, **options
        )
        assert not check or done.returncode == 0, f"{command} failed\n{done.stdout}\n{done.stderr}"
        return done

    def compile(
        self, source: str, *flags: str, language: str = "c", check: bool = True, output: str = "program"
    ) -> subprocess.CompletedProcess[str]:
        """Compiles (and links, unless `flags` say otherwise) `source` as program.c or program.cc."""
        file = self.directory / f"program.{'c' if language == 'c' else 'cc'}"
        file.write_text(source)
        driver = "gcc" if language == "c" else "g++"
        return self.run(driver, f"-fplugin={self.plugin}", file.name, "-o", output, *flags, check=check)

    def hints(self, source: str, *flags: str, language: str = "c") -> list[Hint]:
        """What `source` tells the runtime when it runs, in order."""
        oracle = self.directory / "oracle.o"
        if not oracle.exists():
            (self.directory / "oracle.c").write_text(ORACLE)
            self.run("gcc", "-c", "oracle.c")
        self.compile(source, "oracle.o", *flags, language=language)
        record = self.directory / "hints"
        record.write_text("")
        self.run("./program")
        fields = [line.split("\t") for line in record.read_text().splitlines()]
        return [Hint(kind, path, mode, int(dirfd), signature) for kind, path, mode, dirfd, signature in fields]

    def diagnostics(self, source: str, *flags: str, language: str = "c") -> list[dict[str, Any]]:
        """GCC's own JSON: kind, message, locations, fixits, and notes as children."""
        done = self.compile(
            source, "-c", "-fdiagnostics-format=json", *flags, language=language, check=False, output="program.o"
        )
        return [found for line in done.stderr.splitlines() if line.startswith("[") for found in json.loads(line)]


@pytest.fixture
def compiler(tmp_path: Path) -> PluginCompiler:
    return PluginCompiler(tmp_path)
