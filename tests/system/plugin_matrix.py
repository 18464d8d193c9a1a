"""The flags under which the plugin must work: what is compiled with each, and what the programs must then have done.

The programs in matrix/ write their own names into their files, and each right path ends in the number of kilobytes that
its pragma says, so the sources are the expectation: nothing here repeats it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from plugin_compiler import PluginCompiler

SOURCES = Path(__file__).parent / "matrix"
PLACES, OPENMP = "places", "openmp"

STORAGE = """
schema = "iosig.storage/1"
[[mount_point]]
path = "{mount}"
device = "memory"
free = "2GB"
[[device]]
name = "memory"
kind = "ram"
"""


@dataclass(frozen=True)
class Row:
    """One set of flags. `languages` limits it to C or C++; `program` is the source in matrix/; `how` is the way to a
    program where one call of the compiler is not it."""

    flags: str
    languages: tuple[str, ...] = ("c", "c++")
    program: str = PLACES
    how: str = "build"


def _standards(names: str, language: str) -> list[Row]:
    return [Row(f"-std={name}", (language,)) for name in names.split()]


ROWS = [
    *[Row(level) for level in ("-O0", "-O1", "-O2", "-O3", "-Os", "-Ofast", "-Og -g", "-O2 -g3")],
    Row("-O2 -flto"),
    Row("-O2 -flto -ffat-lto-objects"),
    Row("-O2 -flto", how="lto objects"),
    Row("-O0 -fopenmp", program=OPENMP),
    Row("-O2 -fopenmp", program=OPENMP),
    Row("-O3 -fopenmp -flto", program=OPENMP),
    Row("-O1 -fopenmp -fsanitize=undefined", program=OPENMP),
    Row("-O1 -g -fsanitize=address"),
    Row("-O1 -g -fsanitize=undefined -fno-sanitize-recover=all"),
    Row("-O1 -g -fsanitize=thread"),
    Row("-O2 -D_FORTIFY_SOURCE=2"),
    Row("-O2 -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fcf-protection"),
    Row("-O1 -D_FILE_OFFSET_BITS=64"),
    Row("-O0 --coverage"),
    Row("-O2 -fprofile-generate -finstrument-functions"),
    Row("-O1 -fnon-call-exceptions -fexceptions"),
    Row("-O1 -pipe -static"),
    Row("-O1 -fno-pie -no-pie"),
    Row("-O1 -save-temps"),
    Row("-O1", how="-E, then compile"),
    Row("-O1 -w", how="-E -P, then compile"),  # without line markers the system's headers are warned of
    Row("-O1", how="-S, then assemble"),
    Row("-O1", how="ccache, from its cache"),
    *_standards("gnu90 c99 gnu99 c11 gnu11 c17 gnu17 c2x gnu2x", "c"),
    *_standards("c++11 gnu++11 c++14 c++17 c++20 gnu++20 c++23 gnu++23", "c++"),
]


def _source(row: Row, language: str) -> Path:
    suffix = ".cc" if language == "c++" and row.program == PLACES else ".c"
    return SOURCES / f"{row.program}{suffix}"


def _standard(row: Row, language: str) -> int:
    """The year of the language; GCC's default when the row does not say."""
    named = re.search(r"-std=\w+\+\+(\d\d)", row.flags)
    return int(named[1]) if named else 17


def right_paths(row: Row, language: str) -> dict[str, int]:
    """Every path that a pragma is meant for, with the kilobytes that it says."""
    text = _source(row, language).read_text()
    if language == "c++":
        for year, macro in ((14, "201402L"), (17, "201703L"), (20, "202002L")):
            if _standard(row, language) < year:
                text = re.sub(rf"#if __cplusplus >= {macro}.*?#endif", "", text, flags=re.DOTALL)
    paths = set(re.findall(r'"(ok-[a-z0-9]+-\d+)"', text)) | set(re.findall(r'put_name\(.*"(ok-\w+-\d+)"', text))
    return {path: int(path.rsplit("-")[-1]) for path in paths}


def build(compiler: PluginCompiler, row: Row, language: str, plugin: list[str], objects: list[str]) -> str:
    """Compiles and links `program` with the row's flags; returns what the compiler said."""
    driver = "gcc" if language == "c" else "g++"
    source = _source(row, language)
    select = ["-x", language, source, "-x", "none"]
    # The warnings say that the plugin adds none; __extension__ excuses what the older standards do not know.
    flags = [*plugin, *row.flags.split(), "-Wall", "-Wextra"]
    end = [*objects, "-o", "program"]
    preprocessed = f"program.{'i' if language == 'c' else 'ii'}"
    if row.how == "build":
        done = compiler.run(driver, *flags, *select, *end)
    elif row.how == "lto objects":
        done = compiler.run(driver, *flags, "-c", *select[:3], "-o", "program.o")
        compiler.run(driver, *flags, "program.o", *end)
    elif row.how.startswith("-E"):
        compiler.run(driver, *flags, *row.how.split(",")[0].split(), *select[:3], "-o", preprocessed)
        done = compiler.run(driver, *flags, preprocessed, *end)
    elif row.how.startswith("-S"):
        done = compiler.run(driver, *flags, "-S", *select[:3], "-o", "program.s")
        compiler.run(driver, "program.s", *end)
    else:
        for _ in range(2):
            done = compiler.run("ccache", driver, *flags, "-c", *select[:3], "-o", "program.o")
        compiler.run(driver, "program.o", *end)
    return done.stderr


def check_run_mode(compiler: PluginCompiler, row: Row, language: str) -> None:
    """The program tells exactly its right paths, each with its own pragma's signature, and opens them undisturbed."""
    said = build(compiler, row, language, [f"-fplugin={compiler.plugin}"], ["../oracle.o"])
    assert said == "", said
    (compiler.directory / "hints").write_text("")
    done = compiler.run("./program")
    assert done.stderr == "", done.stderr
    told = Counter()
    for line in (compiler.directory / "hints").read_text().splitlines():
        interface, path, mode, _, signature = line.split("\t")
        assert signature == f"temp totalsize({path.rsplit('-')[-1]}KB)", line
        assert mode in {"open": ("65", "577"), "fopen": ("w",), "fstream": ("16", "17", "20")}[interface], line
        told[path] += 1
    assert told == dict.fromkeys(right_paths(row, language), 1)
    check_contents(compiler, row, language)


def check_compile_mode(compiler: PluginCompiler, row: Row, language: str) -> None:
    """The program redirects the first file of each pragma, and no other."""
    mount = compiler.directory / "mount"
    mount.mkdir()
    storage = compiler.directory / "storage.toml"
    storage.write_text(STORAGE.format(mount=mount))
    arguments = [f"-fplugin={compiler.plugin}", "-fplugin-arg-iosig-resolve=compile"]
    said = build(compiler, row, language, [*arguments, f"-fplugin-arg-iosig-storage={storage}"], [])
    assert said == "", said
    done = compiler.run("./program")
    assert done.stderr == "", done.stderr
    links = {path.name: path.readlink() for path in compiler.directory.glob("[on][ko]-*") if path.is_symlink()}
    assert all(target.is_relative_to(mount) for target in links.values()), links
    assert len(set(links.values())) == len(links)
    led = Counter(int(name.rsplit("-")[-1]) for name in links)
    assert led == dict.fromkeys(right_paths(row, language).values(), 1)
    check_contents(compiler, row, language)


def check_contents(compiler: PluginCompiler, row: Row, language: str) -> None:
    files = {path.name: path.read_text() for path in compiler.directory.glob("[on][ko]-*")}
    assert set(right_paths(row, language)) <= set(files)
    assert {name for name, text in files.items() if text != name} == set()
