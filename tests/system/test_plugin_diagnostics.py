"""What the plugin says about pragmas that are wrong, and where its caret stands."""

from __future__ import annotations

from typing import Any

import pytest

from plugin_compiler import PluginCompiler


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
        ("sig temp)", "error", "", 17),
        ("sigdef random temp", "error", "'random' is a parameter", 16),
        ("sigdef", "error", "", 9),
        ("sigopen", "error", "expected a function and the number of its argument with the path", 9),
        ("sigopen my_open", "error", "expected the number of the argument with the path, e.g. my_open(1)", 17),
        ("sigopen my_open(0)", "error", "arguments are counted from 1", 25),
        ("sigopen my_open(1", "error", "'(' is not closed", 24),
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


LONE = r"""
void only(void) {
#pragma sig temp
}
int in_blocks(int number) {
  if (number) {
#pragma sig temp
  } else {
#pragma sig temp
  }
  return number;
}
"""

UNEVALUATED = r"""
#include <fcntl.h>
#define SIGNED _Pragma("sig temp") open("x", O_RDONLY);
int main(void) {
  int size = sizeof(({ SIGNED }));
  __typeof__(({ SIGNED })) type = 0;
  int aligned = __alignof__(({ SIGNED }));
  return size + type + aligned;
}
"""


@pytest.mark.parametrize("options", ["-O0", "-O2 -fdump-tree-all -fdump-ipa-all -fdump-rtl-all"])
@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_pragma_alone_in_a_block_is_warned_about(compiler: PluginCompiler, language: str, options: str) -> None:
    found = compiler.diagnostics(LONE, *options.split(), language=language)
    none = "'#pragma sig' is not followed by a statement that opens a file"
    assert sorted((place(f)[0], f["message"]) for f in found) == [(3, none), (7, none), (9, none)]


@pytest.mark.parametrize("options", ["-O0", "-O2 -fdump-tree-all -fdump-ipa-all -fdump-rtl-all"])
@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_pragma_in_code_that_is_never_compiled_is_warned_about(
    compiler: PluginCompiler, language: str, options: str
) -> None:
    found = compiler.diagnostics(UNEVALUATED, *options.split(), language=language)
    dropped = "'#pragma sig' has no effect: GCC compiles no code for this statement"
    assert [(f["kind"], f["option"], f["message"]) for f in found] == [("warning", "-Wpragmas", dropped)] * 3


UNUSED = r"""
#include <fcntl.h>
template <class T> int never(T path) {
#pragma sig temp
  return open(path, O_RDONLY);
}
template <class T> struct Unused {
  int member(T path) {
#pragma sig temp
    return open(path, O_RDONLY) + [=](auto inner) {
#pragma sig temp
      return open(inner, O_RDONLY);
    }(path);
  }
};
template <class T> int elsewhere(T path) {
#pragma sig temp
  return open(path, O_RDONLY);
}
extern template int elsewhere<const char *>(const char *);
inline int inline_function() {
#pragma sig temp
  return open("x", O_RDONLY);
}
template <bool B> int one_branch() {
  if constexpr (B) {
    return 1;
  } else {
#pragma sig temp
    return open("x", O_RDONLY);
  }
}
auto generic = [](auto path) {
#pragma sig temp
  return open(path, O_RDONLY);
};
int main() { return elsewhere("x") + one_branch<true>(); }
"""


@pytest.mark.parametrize("options", ["-O0", "-O2 -fdump-tree-all", "-O2 -flto", "-fsyntax-only"])
def test_nothing_is_said_of_functions_that_this_unit_does_not_need(compiler: PluginCompiler, options: str) -> None:
    assert compiler.diagnostics(UNUSED, "-std=c++20", *options.split(), language="c++") == []


def test_unknown_arguments_of_the_plugin_name_the_known_ones(compiler: PluginCompiler) -> None:
    done = compiler.compile(in_main(""), "-fplugin-arg-iosig-resolv=compile")
    assert "(known: resolve, storage, policy, callee, verbose); did you mean 'resolve'?" in done.stderr
    done = compiler.compile(in_main(""), "-fplugin-arg-iosig-resolve=later", check=False)
    assert done.returncode != 0
    assert "expected 'run' or 'compile'" in done.stderr


def test_verbose_tells_where_a_signature_went(compiler: PluginCompiler) -> None:
    source = '#include <fcntl.h>\nint main(void) {\n#pragma sig temp\n  return open("x", O_RDONLY);\n}\n'
    [found] = [f for f in compiler.diagnostics(source, "-fplugin-arg-iosig-verbose") if f["kind"] == "note"]
    assert found["message"] == "'open' gets the signature 'temp'"
    assert place(found)[0] == 4


@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_macro_that_takes_a_parameter_away_is_pointed_at_also_when_nothing_is_left(
    compiler: PluginCompiler, language: str
) -> None:
    macros = "#define global\n#define temp tmp_file\n#define CHUNK 16\n"
    [found] = compiler.diagnostics(in_main(macros + "#pragma sig persist global"), language=language)
    assert found["message"] == "a macro rewrote the parameter 'global'; '#undef' it before the pragma, or rename it"
    assert (found["kind"], place(found)) == ("error", (5, 21, 26))
    [found] = compiler.diagnostics(in_main(macros + "#pragma sigdef volatile_data temp"), language=language)
    assert (found["kind"], place(found)) == ("error", (5, 30, 33))
    fine = macros + "#pragma sigdef fine size-per-IO(CHUNK MB) random  // global\n"
    assert compiler.diagnostics(in_main(fine), language=language) == []


def test_two_arguments_of_a_wrapper_that_are_one_are_both_shown(compiler: PluginCompiler) -> None:
    [found] = compiler.diagnostics(in_main("#pragma sigopen my_open(1, 1)"))
    assert found["message"] == "path and mode are not the same argument"
    assert place(found)[:2] == (2, 28)
    assert [(note["message"], place(note)[1]) for note in found["children"]] == [("the path", 25)]


MISFITS = r"""
#pragma sigopen by_number(1)
#pragma sigopen by_double(1, 2)
#pragma sigopen too_few(3)
int by_number(int path); int by_double(const char *path, double mode); int too_few(const char *path);
int main() {
#pragma sig temp
  by_number(1);
#pragma sig temp
  by_double("path", 1.0);
#pragma sig temp
  too_few("path");
  return 0;
}
"""


@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_wrapper_that_is_not_as_declared_is_told_at_its_call(compiler: PluginCompiler, language: str) -> None:
    number, double, few = compiler.diagnostics(MISFITS, language=language)
    assert number["message"].startswith("argument 1 of 'by_number' is of type 'int': the file is not redirected")
    assert double["message"].startswith("argument 2 of 'by_double' is of type 'double': the file is not redirected")
    assert few["message"].startswith("'too_few' has no argument 3: the file is not redirected")
    assert [place(found)[0] for found in (number, double, few)] == [8, 10, 12]


@pytest.mark.parametrize("argument", ["my_open", "my_open:0", "my_open:1:x", ":1"])
def test_a_wrong_callee_on_the_command_line_is_an_error(compiler: PluginCompiler, argument: str) -> None:
    done = compiler.compile(in_main(""), f"-fplugin-arg-iosig-callee={argument}", check=False)
    assert done.returncode != 0
    assert f"error: '-fplugin-arg-iosig-callee={argument}': " in done.stderr


@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("pragma", ["sig temp", "sigdef scratch temp", "sigopen my_open(1)"])
def test_a_pragma_in_a_precompiled_header_is_warned_about(compiler: PluginCompiler, language: str, pragma: str) -> None:
    header = f'#include <fcntl.h>\nstatic inline int f(void) {{\n#pragma {pragma}\n return open("x", 0); }}\n'
    (compiler.directory / "all.h").write_text(header)
    driver = "gcc" if language == "c" else "g++"
    done = compiler.run(driver, f"-fplugin={compiler.plugin}", "-x", f"{language}-header", "all.h")
    word = pragma.split()[0]
    assert f"all.h:3:{10 + len(word)}: warning: a precompiled header does not keep '#pragma {word}'" in done.stderr
    # and nothing of it reaches a pragma of the unit that includes the header
    source = (
        '#include "all.h"\nint main(void) {\n int fd = f();\n#pragma sig persist\n fd = open("y", 0); return fd > 99; }'
    )
    assert [(h.path, h.signature) for h in compiler.hints(source, "-Winvalid-pch", language=language)] == [
        ("y", "persist")
    ]


NOWHERE = r"""
#include <fcntl.h>
#include <fstream>
struct Members {
#pragma sig temp
  int number = 5;
#pragma sig temp
  void function() { std::ofstream("x"); }
  int fd = open("x", O_RDONLY);
};
#pragma sig temp
struct Later { int fd = open("x", O_RDONLY); };
#pragma sig temp
int function();
int after = open("x", O_RDONLY);
#pragma sig temp
std::ofstream one("x"), two("y");
struct Plain {
#pragma sig temp
  std::ofstream stream = std::ofstream("x");
};
struct Unused {
#pragma sig temp
  std::ofstream stream{"x"};
};
template <class T> struct UnusedTemplate {
#pragma sig temp
  std::ofstream stream{"x"};
#pragma sig temp
  int fd = open("x", O_RDONLY);
};
Plain plain{};
int main() {
#pragma sig temp
  int a = open("x", O_RDONLY), b = open("y", O_RDONLY);
#pragma sig temp
  std::ofstream c("x"), d("y");
  return a + b;
}
"""


@pytest.mark.parametrize("options", ["-O0", "-O2 -flto"])
def test_what_cannot_have_a_signature_is_told_for_members_and_variables_too(
    compiler: PluginCompiler, options: str
) -> None:
    found = compiler.diagnostics(NOWHERE, "-std=c++17", *options.split(), language="c++")
    none = "'#pragma sig' is not followed by a declaration that opens a file"
    several = "the statement after '#pragma sig' opens 2 files; only the first gets the signature"
    aggregate = (
        "'#pragma sig' has no effect where 'Plain::stream' is initialised without a constructor; give its class one"
    )
    assert sorted((place(f)[0], f["message"]) for f in found) == [
        (5, none), (7, none), (11, none), (13, none), (16, several), (19, aggregate), (34, several), (36, several),
    ]  # fmt: skip


@pytest.mark.parametrize("language", ["c", "c++"])
def test_calls_that_cannot_be_told_apart_are_warned_about(compiler: PluginCompiler, language: str) -> None:
    opens = " ".join(f'x += open("{name}", O_CREAT | O_WRONLY, 0600);' for name in "ab")
    source = f"#include <fcntl.h>\nint f(void) {{ int x = 0;\n#pragma sig random\n{' ' * 5000}{opens} return x; }}\n"
    found = compiler.diagnostics(source, "-fplugin-arg-iosig-verbose", language=language)
    assert ["gets the signature" in d["message"] for d in found].count(True) == 2  # the note, and the warning
    assert [d["kind"] for d in found if "cannot be told apart" in d["message"]] == ["warning"]


def test_opens_of_a_macro_whose_places_are_not_tracked_get_no_signature(compiler: PluginCompiler) -> None:
    source = """#include <fcntl.h>
#define BOTH _Pragma("sig temp") a = open("x", O_RDONLY); _Pragma("sig persist") b = open("y", O_RDONLY);
int main(void) {
  int a, b;
  BOTH
  return a + b > 99;
}
"""
    flags = ["-ftrack-macro-expansion=0"]
    assert [h.signature for h in compiler.hints(source)] == ["temp", "persist"]
    assert compiler.hints(source, *flags) == []
    for found in compiler.diagnostics(source, *flags):
        assert (found["kind"], place(found)[0]) == ("warning", 5)
        assert found["message"].startswith("this macro opens several files, which cannot be told apart")
    assert found


def test_the_instances_of_a_variable_template_are_not_told_as_several_opens(compiler: PluginCompiler) -> None:
    source = """#include <fcntl.h>
#pragma sig temp
template <int N> int fd = open("x", O_RDONLY);
int main() { return fd<1> + fd<2> > 99; }
"""
    assert compiler.diagnostics(source, language="c++") == []
    assert [h.signature for h in compiler.hints(source, language="c++")] == ["temp", "temp"]
