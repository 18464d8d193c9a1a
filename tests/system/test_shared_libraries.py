"""Libraries that `iosig cc` links export nothing of IOSIG, so programs start with another build of them as well."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from conftest import BUILD, ROOT, Iosig
from plugin_compiler import PluginCompiler

# A library of three files, and a program that uses it. Each opens a file behind a pragma.
STORE = r"""
#include "store.h"
#include <fcntl.h>
#include <unistd.h>
int store_open(const char *path) {
#pragma sig temp
  return open(path, O_CREAT | O_WRONLY, 0600);
}
"""
LOG = r"""
#include "store.h"
#include <stdio.h>
int store_log(const char *path) {
#pragma sig persist
  FILE *file = fopen(path, "w");
  return file == NULL ? -1 : fputs("log\n", file), fclose(file);
}
"""
CALLED = r"""
#include "store.h"
#include <iosig/iosig.h>
int store_called(const char *path) { return IOSIG_OPEN("temp", path, O_CREAT | O_WRONLY, 0600); }
const char *store_error(void) { return iosig_last_error(); }
"""
HEADER = """
#ifdef __cplusplus
extern "C" {
#endif
int store_open(const char *path);
int store_log(const char *path);
int store_called(const char *path);
const char *store_error(void);
#ifdef __cplusplus
}
#endif
"""
PROGRAM = r"""
#include "store.h"
#include <fcntl.h>
int main(void) {
#pragma sig temp
  int fd = open("own", O_CREAT | O_WRONLY, 0600);
  return fd < 0 || store_open("opened") < 0 || store_log("logged") != 0 || store_called("called") < 0 || !store_error();
}
"""
FILES = ["store", "log", "called"]
ALL = ["own", "opened", "logged", "called"]


@pytest.fixture
def compiler(tmp_path: Path) -> PluginCompiler:
    found = PluginCompiler(tmp_path)
    for name, text in zip([*FILES, "program"], [STORE, LOG, CALLED, PROGRAM], strict=True):
        (tmp_path / f"{name}.c").write_text(text)
        (tmp_path / f"{name}.cc").write_text(text)
    (tmp_path / "store.h").write_text(HEADER)
    found.env |= {"LD_LIBRARY_PATH": str(tmp_path)}
    return found


def exports(compiler: PluginCompiler, file: object) -> set[str]:
    lines = compiler.run("nm", "-D", "--defined-only", file).stdout.splitlines()
    return {line.split()[2].partition("@")[0] for line in lines if line.split()[1] != "A"}


def mentions(compiler: PluginCompiler, file: str) -> list[str]:
    """What the dynamic linker sees of IOSIG in it, defined or not."""
    return [line for line in compiler.run("nm", "-D", file).stdout.splitlines() if "iosig" in line]


def told(compiler: PluginCompiler, program: str = "./program") -> list[str]:
    """The paths of the opens that reached libiosig, in order."""
    for left in ALL:
        (compiler.directory / left).unlink(missing_ok=True)
    done = compiler.run(program, env=compiler.env | {"IOSIG_VERBOSE": "1"})
    return re.findall(r"^iosig: '(\w+)'", done.stderr, re.MULTILINE)


def cc(iosig: Iosig, compiler: PluginCompiler, *command: object, check: int | None = 0) -> str:
    return iosig("cc", "--", *command, cwd=compiler.directory, check=check).stderr


def make_original(compiler: PluginCompiler) -> None:
    """The library as its maker distributes it: without IOSIG."""
    objects = ["gcc", "-w", "-shared", "-fPIC", f"-I{ROOT}/include", "store.c", "log.c"]
    (compiler.directory / "plain.c").write_text(
        "#include <fcntl.h>\n"
        "int store_called(const char *path) { return open(path, O_CREAT | O_WRONLY, 0600); }\n"
        'const char *store_error(void) { return ""; }\n'
    )
    compiler.run(*objects, "plain.c", "-o", "libstore.so")


def shared_at_once(iosig: Iosig, compiler: PluginCompiler, *flags: str) -> None:
    cc(iosig, compiler, "gcc", *flags, "-shared", "-fPIC", *[f"{name}.c" for name in FILES], "-o", "libstore.so")


def shared_from_objects(iosig: Iosig, compiler: PluginCompiler, *flags: str) -> None:
    for name in FILES:
        cc(iosig, compiler, "gcc", *flags, "-fPIC", "-c", f"{name}.c")
    cc(iosig, compiler, "gcc", *flags, "-shared", *[f"{name}.o" for name in FILES], "-o", "libstore.so")


def shared_from_archive(iosig: Iosig, compiler: PluginCompiler) -> None:
    for name in FILES:
        cc(iosig, compiler, "gcc", "-fPIC", "-c", f"{name}.c")
    compiler.run("ar", "rcs", "libparts.a", *[f"{name}.o" for name in FILES])
    whole = ["-Wl,--whole-archive", "libparts.a", "-Wl,--no-whole-archive"]
    cc(iosig, compiler, "gcc", "-shared", *whole, "-o", "libstore.so")


def shared_from_joined_objects(iosig: Iosig, compiler: PluginCompiler) -> None:
    cc(iosig, compiler, "gcc", "-fPIC", "-r", *[f"{name}.c" for name in FILES], "-o", "all.o")
    cc(iosig, compiler, "gcc", "-shared", "all.o", "-o", "libstore.so")


def shared_from_objects_with_copies(iosig: Iosig, compiler: PluginCompiler) -> None:
    """Each joined object has a copy of what `iosig cc` links in."""
    libraries = iosig("cc", "--libs").stdout.split()
    for name in FILES:
        cc(iosig, compiler, "gcc", "-fPIC", "-c", f"{name}.c")
        compiler.run("gcc", "-r", f"{name}.o", *libraries, "-o", f"{name}.joined.o")
    cc(iosig, compiler, "gcc", "-shared", *[f"{name}.joined.o" for name in FILES], "-o", "libstore.so")


def shared_of_cxx(iosig: Iosig, compiler: PluginCompiler) -> None:
    (compiler.directory / "called.cc").write_text(
        '#include "store.h"\n#include <fstream>\n#include <string>\n#include <iosig/iosig.h>\n'
        "int store_called(const char *path) {\n"
        '  std::ofstream out(IOSIG_PATH("temp", std::string(path)));\n  return out.is_open() ? 0 : -1;\n}\n'
        "const char *store_error(void) { return iosig_last_error(); }\n"
    )
    cc(iosig, compiler, "g++", "-O0", "-shared", "-fPIC", *[f"{name}.cc" for name in FILES], "-o", "libstore.so")


def shared_with_version_script(iosig: Iosig, compiler: PluginCompiler) -> None:
    (compiler.directory / "store.map").write_text("STORE_1 { global: *; };\n")
    shared_at_once(iosig, compiler, "-Wl,--version-script=store.map")


WAYS = {
    "at once": shared_at_once,
    "from objects": shared_from_objects,
    "from a static archive": shared_from_archive,
    "from objects joined by -r": shared_from_joined_objects,
    "from joined objects with copies": shared_from_objects_with_copies,
    "in C++": shared_of_cxx,
    "with a version script that exports all": shared_with_version_script,
    "with -flto": lambda *world: shared_from_objects(*world, "-O2", "-flto"),
    "with -fvisibility=default -O2": lambda *world: shared_at_once(*world, "-fvisibility=default", "-O2"),
    "with --gc-sections": lambda *world: shared_at_once(*world, "-ffunction-sections", "-Wl,--gc-sections"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_shared_library_exports_nothing_of_iosig_and_can_be_replaced(iosig, compiler: PluginCompiler, way) -> None:
    WAYS[way](iosig, compiler)
    assert mentions(compiler, "libstore.so") == []
    assert {"store_open", "store_log", "store_called", "store_error"} <= exports(compiler, "libstore.so")
    cc(iosig, compiler, "gcc", "program.c", "-o", "program", "-L.", "-lstore")
    assert mentions(compiler, "program") == []
    assert told(compiler) == ALL
    # the program needs nothing of the copy in the library, nor the other way round
    compiler.run("gcc", "-w", "program.c", "-o", "plain", "-L.", "-lstore")
    assert told(compiler, "./plain") == ALL[1:]
    make_original(compiler)
    assert told(compiler) == ["own"]


def test_a_program_that_exports_all_its_symbols_keeps_those_of_iosig(iosig, compiler: PluginCompiler) -> None:
    shared_at_once(iosig, compiler)
    cc(iosig, compiler, "gcc", "-rdynamic", "program.c", "-o", "program", "-L.", "-lstore")
    assert mentions(compiler, "program") == []
    assert told(compiler) == ALL


def test_a_library_that_exports_the_hints_gives_them_to_no_program(iosig, compiler: PluginCompiler) -> None:
    """As libraries of earlier builds do: the linker must take the program's own copy all the same."""
    (compiler.directory / "old.c").write_text(
        '#include "store.c"\n#include "log.c"\n'
        "void iosig_open_hint(int d, const char *p, int f, const char *s) { (void)d, (void)p, (void)f, (void)s; }\n"
        "int store_called(const char *path) { return store_open(path); }\n"
        'const char *store_error(void) { return ""; }\n'
    )
    compiler.run("gcc", "-w", "-shared", "-fPIC", "old.c", "-o", "libstore.so")
    cc(iosig, compiler, "gcc", "program.c", "-o", "program", "-L.", "-lstore")
    assert told(compiler) == ["own"]
    make_original(compiler)
    assert told(compiler) == ["own"]


PLUGIN_HOST = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
  for (int round = 0; round < 3; ++round) {
    void *one = dlopen("./libstore.so", RTLD_NOW | (round == 1 ? RTLD_GLOBAL : RTLD_LOCAL));
    void *two = dlopen("./libother.so", RTLD_NOW);
    if (one == NULL || two == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
    const char *of[] = {"opened", "logged"};
    void *libraries[] = {one, two};
    for (int i = 0; i < 2; ++i) {
      int (*call)(const char *) = (int (*)(const char *))dlsym(libraries[i], i == 0 ? "store_open" : "store_log");
      remove(of[i]);
      if (call == NULL || call(of[i]) < 0) return 2;
    }
    if (dlclose(one) != 0 || dlclose(two) != 0) return 3;
    if (dlopen("./libstore.so", RTLD_NOW | RTLD_NOLOAD) != NULL) return 4;  /* nothing holds it */
  }
  return 0;
}
"""


@pytest.mark.parametrize("host_is_linked_by_iosig", [False, True])
def test_two_libraries_with_copies_are_loaded_and_unloaded_again(iosig, compiler, host_is_linked_by_iosig) -> None:
    shared_at_once(iosig, compiler)
    shutil.copy(compiler.directory / "libstore.so", compiler.directory / "libother.so")
    (compiler.directory / "host.c").write_text(PLUGIN_HOST)
    command = ["gcc", "-rdynamic", "host.c", "-o", "program", "-ldl"]
    if host_is_linked_by_iosig:
        cc(iosig, compiler, *command)
    else:
        compiler.run(*command)
    assert told(compiler) == ["opened", "logged"] * 3


@pytest.mark.parametrize("flags", ["-static", "-static-pie", "-nostdlib -static", "-nostdlib -pie"])
def test_static_programs_and_those_without_libc_link_and_run_as_they_are(iosig, compiler, flags: str) -> None:
    """No dlopen there, and so no libiosig: the opens go on without."""
    source = PROGRAM.replace("int main", "int store_open(const char *p) { return !p; }\nint main")
    source = re.sub(r"return fd < 0.*;", "return fd < 0;", source)
    if "-nostdlib" in flags:
        source = 'void _start(void) { __asm__("mov $60, %eax; xor %edi, %edi; syscall"); }\n'
    (compiler.directory / "program.c").write_text(source)
    said = cc(iosig, compiler, "gcc", *flags.split(), "program.c", "-o", "program")
    assert ("linked statically cannot load libiosig" in said) == ("-static" in flags) and said.count("\n") <= 1
    compiler.run("./program")


def test_iosig_exports_what_its_header_declares(compiler: PluginCompiler) -> None:
    header = (ROOT / "include/iosig/iosig.h").read_text()
    declared = set(re.findall(r"^(?:\w+\*? )+(iosig_\w+)\(", header, re.MULTILINE))
    declared = {name for name in declared if not name.startswith(("iosig_linked_", "iosig_signed_", "iosig_trace_"))}
    assert len(declared) >= 15
    assert exports(compiler, BUILD / "lib/libiosig.so") == declared
    assert exports(compiler, compiler.plugin) == {"plugin_init", "plugin_is_GPL_compatible"}
