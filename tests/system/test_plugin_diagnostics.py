"""What the plugin says about pragmas that are wrong, and where its caret stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from plugin_compiler import PluginCompiler


@pytest.fixture
def compiler(iosig, tmp_path: Path) -> PluginCompiler:
    return PluginCompiler(iosig.binary.parent.parent, tmp_path)


def place(found: dict[str, Any]) -> tuple[int, int, int]:
    """Line, first and last column that are underlined."""
    at = found["locations"][0]
    return at["caret"]["line"], at["caret"]["column"], at.get("finish", at["caret"])["column"]


def in_main(text: str) -> str:
    return f"#include <fcntl.h>\n{text}\nint main() {{ return 0; }}\n"


@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_misspelt_parameter_is_underlined_and_its_correction_can_be_applied(
    compiler: PluginCompiler, language: str
) -> None:
    [found] = compiler.diagnostics(in_main("#pragma sig persist size-per-OI(16MB)"), language=language)
    assert found["kind"] == "error"
    assert found["message"] == "unknown parameter 'size-per-OI'; did you mean 'size-per-IO'?"
    assert place(found) == (2, 21, 31)
    [fixit] = found["fixits"]
    assert (fixit["start"]["column"], fixit["next"]["column"], fixit["string"]) == (21, 32, "size-per-IO")


@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_contradiction_points_at_both_parameters(compiler: PluginCompiler, language: str) -> None:
    [found] = compiler.diagnostics(in_main("#pragma sig global persist local"), language=language)
    assert found["kind"] == "error"
    assert "'local' contradicts 'global'" in found["message"]
    assert place(found) == (2, 28, 32)
    [note] = found["children"]
    assert (note["kind"], place(note)) == ("note", (2, 13, 18))


@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize(
    ("pragma", "kind", "message", "column"),
    [
        ("sig", "error", "expected a signature", 9),
        ("sig global(1)", "error", "'global' takes no value", 20),
        ("sig totalsize", "error", "'totalsize' needs a value, e.g. totalsize(6GB)", 13),
        ("sig totalsize()", "error", "'totalsize' needs a value", 22),
        ("sig totalsize(12parsecs)", "error", "totalsize:", 23),
        ("sig totalsize(1MB", "error", "is not closed", 22),
        ("sig temp temp", "warning", "'temp' is given twice", 18),
        ("sigdef random temp", "error", "'random' is a parameter", 16),
    ],
)
def test_each_mistake_gets_one_diagnostic_at_its_place(
    compiler: PluginCompiler, language: str, pragma: str, kind: str, message: str, column: int
) -> None:
    source = in_main("").replace("{ return", f'{{\n#pragma {pragma}\n int fd = open("x", O_RDONLY); return fd + ')
    [found] = [f for f in compiler.diagnostics(source, language=language) if "suffix" not in f["message"]]
    assert found["kind"] == kind
    assert message in found["message"]
    assert place(found)[:2] == (4, column)


def test_a_name_that_is_defined_twice_differently_shows_the_first_definition(compiler: PluginCompiler) -> None:
    again = "#pragma sigdef a temp\n#pragma sigdef a temp\n"
    assert compiler.diagnostics(in_main(again)) == []
    [found] = compiler.diagnostics(in_main(again + "#pragma sigdef a persist"))
    assert found["message"] == "signature 'a' is defined again, differently"
    assert found["children"][0]["message"] == "first defined here as 'temp'"
    assert place(found["children"][0])[0] == 2


def test_cxx_asks_to_quote_a_number_that_its_lexer_cannot_read(compiler: PluginCompiler) -> None:
    source = in_main("#pragma sig totalsize(1EB)")
    messages = [f["message"] for f in compiler.diagnostics(source, language="c++")]
    assert "C++ cannot read the number '1EB' in a pragma; write it in quotes: '\"1EB\"'" in messages
    assert [f["message"] for f in compiler.diagnostics(source)] == [
        "'#pragma sig' is not followed by a declaration that opens a file"
    ]


PLACES = r"""
#include <fcntl.h>
int main() {
#pragma sig temp
  int fd = 5;
#pragma sig temp
#pragma sig persist
  fd = open("x", O_RDONLY);
#pragma sig temp
  fd = open("x", O_RDONLY) + open("y", O_RDONLY);
  {
#pragma sig temp
  }
  return fd;
}
"""


@pytest.mark.parametrize("language", ["c", "c++"])
def test_no_open_and_several_opens_are_warned_about_once_each(compiler: PluginCompiler, language: str) -> None:
    found = compiler.diagnostics(PLACES, "-O2", language=language)
    assert {f["kind"] for f in found} == {"warning"}
    assert {f["option"] for f in found} == {"-Wpragmas"}
    none = "'#pragma sig' is not followed by a statement that opens a file"
    several = "the statement after '#pragma sig' opens 2 files; only the first gets the signature"
    assert sorted((place(f)[0], f["message"]) for f in found) == [(4, none), (6, none), (9, several), (12, none)]
    [two] = [f for f in found if f["message"] == several]
    assert [place(note)[0] for note in two["children"]] == [10, 10]
    assert [note["message"] for note in two["children"]] == ["this one gets it", "this one does not"]
    assert compiler.diagnostics(PLACES, "-Wno-pragmas", language=language) == []


def test_unknown_arguments_of_the_plugin_name_the_known_ones(compiler: PluginCompiler) -> None:
    done = compiler.compile(in_main(""), "-fplugin-arg-iosig-resolv=compile")
    assert "(known: resolve, storage, verbose); did you mean 'resolve'?" in done.stderr
    done = compiler.compile(in_main(""), "-fplugin-arg-iosig-resolve=later", check=False)
    assert done.returncode != 0
    assert "expected 'run' or 'compile'" in done.stderr


def test_verbose_tells_where_a_signature_went(compiler: PluginCompiler) -> None:
    source = '#include <fcntl.h>\nint main(void) {\n#pragma sig temp\n  return open("x", O_RDONLY);\n}\n'
    [found] = [f for f in compiler.diagnostics(source, "-fplugin-arg-iosig-verbose") if f["kind"] == "note"]
    assert found["message"] == "'open' gets the signature 'temp'"
    assert place(found)[0] == 4
