"""Which open gets the signature of a `#pragma sig`: the one directly after it, wherever that stands, and no other."""

from __future__ import annotations

import re

import pytest

from plugin_compiler import PluginCompiler

# Every open of "right" stands directly after a pragma; no open of "wrong" may get its signature.
C_PLACES = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
struct Pair { int before, fd; };
static void closed(int *descriptor) { close(*descriptor); }
static int old_style(path) char *path; {
#pragma sig global
  return open(path ? "right old style" : "wrong", O_RDONLY);
}
static int outer(int run) {
  int nested(const char *path) {
#pragma sig global
    return open(path, O_RDONLY) + run;
  }
  int with_inner(int size, int array[nested("right nested twice") > 0 ? size : ({
#pragma sig global
      open("right parameter of a nested function", O_RDONLY);
    })]) {
    int inner(void) {
#pragma sig global
      int fd = open("right nested in nested", O_RDONLY);
      return fd + array[0];
    }
    return inner() + nested("right nested twice");
  }
  int array[] = {0};
  return with_inner(1, array);
}
#define SIGNED _Pragma("sig temp totalsize(16MB)")
#define CHECK(call) check(call, __LINE__)
static int check(int result, int line) { return result < 0 ? line : result; }
#define OPEN_TWICE(path) do { fd = open(path, O_RDONLY); } while (0)
static int fd;
static int in_return(void) {
#pragma sig global
  return open("right return", O_RDONLY);
}
int main(int argc, char **argv) {
#pragma sig global
  if ((fd = open("right if", O_RDONLY)) > 1000) fd = open("wrong", O_RDONLY);
  if (argc)
#pragma sig global
    fd = open("right body", O_RDONLY);
  else
#pragma sig global
    fd = open("wrong", O_RDONLY);
#pragma sig global
  while ((fd = open("right while", O_RDONLY)) > 1000) fd = open("wrong", O_RDONLY);
#pragma sig global
  for (fd = open("right for", O_RDONLY); fd > 1000;) fd = open("wrong", O_RDONLY);
#pragma sig global
  switch (open("right switch", O_RDONLY)) { case 1000: fd = open("wrong", O_RDONLY); }
#pragma sig global
  OPEN_TWICE("right macro");
  SIGNED fd = open("right _Pragma", O_RDONLY);
#pragma sig global
label:
  fd = open("right label", O_RDONLY);
  fd = open("wrong", O_RDONLY);
#pragma sig global
  fd = open("right one", O_RDONLY), fd = open("wrong", O_RDONLY);
#pragma omp parallel for num_threads(2)
  for (int i = 0; i < 2; ++i) {
#pragma sig global
    int mine = open(i ? "right omp 1" : "right omp 0", O_RDONLY);
  }
  if (argc > 1000) goto label;
#pragma sig global
  do {
    fd = open("wrong", O_RDONLY);
  } while ((fd = open("right do", O_RDONLY)) > 1000);
#pragma sig global
  do
    fd = open("right do body", O_RDONLY);
  while (fd > 1000);
  switch (argc) {
#pragma sig global
    case 1:
      fd = open("right case", O_RDONLY);
      break;
    default:
#pragma sig global
      fd = open("wrong", O_RDONLY);
  }
#pragma sig global
  fd = argc ? open("right ternary", O_RDONLY) : -1;
#pragma sig global
  fd = TEMP_FAILURE_RETRY(open("right retry", O_RDONLY));
#pragma sig global
  int number = 0, second = open("right declarator", O_RDONLY);
#pragma sig global
  int third = 0; int fourth = open("wrong", O_RDONLY);
#pragma sig global
  close(open("right argument", O_RDONLY));
#pragma sig global
  int checked = CHECK(check(open("right inner argument", O_RDONLY), 1));
#pragma sig global
  if (CHECK(open("right condition's argument", O_RDONLY)) > 1000) close(open("wrong", O_RDONLY));
#pragma sig global
  check(open("right first argument", O_RDONLY), open("wrong", O_RDONLY));
#pragma sig global
  FILE *stream = fdopen(open("right descriptor", O_RDONLY), "r");
#pragma sig global
  for (third = 0; third < 1; ++third) close(open("right for body", O_RDONLY));
#pragma sig global
  third = 0;
  for (; third < 1; ++third) fd = open("wrong", O_RDONLY);
#pragma sig local
  if (argc) {
#pragma sig global
    fd = open("right inner", O_RDONLY);
  }
#pragma sig global
  struct Pair pair = {1, open("right part of a structure", O_RDONLY)};
#pragma sig global
  struct Pair *literal = &(struct Pair){1, open("right compound literal", O_RDONLY)};
#pragma sig global
  struct Pair constant = {1, 2};
  constant.fd = open("wrong", O_RDONLY);
#pragma sig global
  __attribute__((cleanup(closed))) int cleaned = open("right cleanup", O_RDONLY);
  int sized[check(({
#pragma sig global
    open("right size of an array", O_RDONLY);
  }), 1) > 0];
  fd = ({
#pragma sig global
    int inner = open("right statement expression", O_RDONLY);
    inner;
  });
#include "opens.h"
#pragma sig global
  if (0) fd = open("wrong", O_RDONLY);
  fd = open("wrong", O_RDONLY);
  number += old_style("") + outer(argc) + pair.fd + literal->fd + constant.fd + cleaned + (int)sizeof sized;
  return in_return() + number + second + third + fourth + checked + (stream == NULL) > 1000;
}
"""
HEADER = '#pragma sig global\n  fd = open("right header", O_RDONLY);\n'

CXX_PLACES = r"""
#include <coroutine>
#include <fcntl.h>
#include <fstream>
#include <memory>
#pragma sig global
static std::ifstream early("right namespace");
#pragma sig global
int namespace_fd = open("right namespace open", O_RDONLY), other_fd = 0;
#pragma sig global
static int before_function;
int in_between() { return 1; }
int later = open("wrong", O_RDONLY);
#pragma sig global
thread_local int thread_fd = open("right thread_local", O_RDONLY);
struct Members {
#pragma sig global
  int fd = open("right member", O_RDONLY);
  int plain = open("wrong", O_RDONLY);
#pragma sig global
  std::ifstream stream{"right member stream"};
#pragma sig global
  inline static int shared = open("right static member", O_RDONLY);
  Members() {}
  explicit Members(int) : fd(open("wrong", O_RDONLY)), stream("wrong") {}
  explicit Members(long) : Members() {}
};
template <class T>
struct InTemplate {
  T before = T();
#pragma sig global
  int fd = open("right member of a template", O_RDONLY);
};
struct Aggregate {
  int before;
#pragma sig global
  int fd = open("right member of an aggregate", O_RDONLY);
};
template <class T>
constexpr T constant_template(T run) {
#pragma sig global
  return run ? open("right constant template", O_RDONLY) : 0;
}
struct Task {
  struct promise_type {
    Task get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
};
Task coroutine(int times) {
#pragma sig global
  int fd = open("right coroutine", O_RDONLY);
  co_await std::suspend_never{};
  if (times > 0) fd = open("wrong", O_RDONLY);
#pragma sig global
  std::ifstream stream("right coroutine stream");
}
struct Pair { int before, fd; };
struct Parts { int before; std::ifstream stream; int after; };
#pragma sig global
Pair shared_pair = {1, open("right part of a variable", O_RDONLY)};
#pragma sig global
Parts shared_parts = {1, std::ifstream("right stream in a variable"), 2};
#pragma sig global
std::ifstream shared_array[2] = {std::ifstream("right element of a variable"), std::ifstream()};
#pragma sig global
auto shared_lambda = [before = 1, fd = open("right capture of a variable", O_RDONLY)] { return fd + before; };
template <class Path> int captured(Path path) {
#pragma sig global
  auto lambda = [before = 1, fd = open("right capture in a template", O_RDONLY), path] { return fd + before; };
#pragma sig global
  Pair pair = {1, open(path, O_RDONLY)};
  auto generic = [&](auto inner) {
#pragma sig global
    auto deeper = [before = 1, fd = open(inner, O_RDONLY)] { return fd + before; };
    return deeper();
  };
  return lambda() + pair.fd + generic("right capture in a generic lambda");
}
void take(const std::ifstream &, const char *) {}
int check(int result) { return result; }
template <class Path> void in_template(Path path) {
#pragma sig global
  check(open("right checked in a template", O_RDONLY));
#pragma sig global
  std::ifstream file(path);
}
constexpr int in_constexpr(bool run) {
  if (!run) return 0;
#pragma sig global
  return open("right constexpr", O_RDONLY);
}
struct Derived : std::ifstream {
  void again() {
#pragma sig global
    open("right inherited");
  }
};
struct Own { int open(const char *, int) { return 0; } };
namespace other { int open(const char *path, int flags) { return ::open(path, flags); } }
int main() {
#pragma sig global
  if (std::ifstream file("right if"); file) std::ifstream("wrong");
#pragma sig global
  if (int fd = open("right declaration", O_RDONLY); fd > 1000) open("wrong", O_RDONLY);
  const auto lambda = [] {
#pragma sig global
    return open("right lambda", O_RDONLY);
  };
  lambda();
  in_template("right template");
  in_template(std::string("right template"));
  in_constexpr(true);
  Derived().again();
  try {
#pragma sig global
    int fd = open("right try", O_RDONLY);
  } catch (...) {
  }
#pragma sig global
  std::ifstream first, second("right second declarator");
#pragma sig global
  auto owned = std::make_unique<int>(open("right argument", O_RDONLY));
#pragma sig global
  check(check(open("right checked", O_RDONLY)));
#pragma sig global
  std::unique_ptr<FILE, int (*)(FILE *)> closed(fopen("right closed", "r"), [](FILE *) { return 0; });
#pragma sig global
  take(std::ifstream("right temporary"), "wrong");
#pragma sig global
  auto copied = std::ifstream("right elided");
#pragma sig global
  auto *heap = new std::ifstream("right new");
#pragma sig global
  auto capture = [fd = open("right capture", O_RDONLY)] { return fd; };
#pragma sig global
  auto captures = [before = 1, fd = open("right second capture", O_RDONLY), after = 2](auto inner) {
#pragma sig global
    int own = open("right in a lambda with captures", O_RDONLY);
    return before + fd + after + inner + own;
  };
#pragma sig global
  auto stream_capture = [before = 1, stream = std::ifstream("right captured stream")] { return before; };
#pragma sig global
  auto outer_capture = [inner = [fd = open("right capture in a capture", O_RDONLY)] { return fd; }] { return inner(); };
#pragma sig global
  int called = [before = 1, fd = open("right capture of a call", O_RDONLY)] { return fd + before; }();
#pragma sig global
  Pair pair = {1, open("right part of a structure", O_RDONLY)};
#pragma sig global
  Parts parts{1, std::ifstream("right stream in a structure"), 2};
#pragma sig global
  int numbers[] = {1, open("right element", O_RDONLY)};
#pragma sig global
  std::ifstream streams[2] = {std::ifstream("right element of class type"), std::ifstream()};
#pragma sig global
  static Pair kept = {1, open("right part of a static variable", O_RDONLY)};
#pragma sig global
  auto [bound, other] = std::pair(open("right structured binding", O_RDONLY), 1);
#pragma sig global
  const Pair &reference = Pair{1, open("right part of a temporary", O_RDONLY)};
#pragma sig global
  Pair constant = {1, 2};
  constant.fd = open("wrong", O_RDONLY);
#pragma sig global
  Parts not_open{1, {}, 2};
  not_open.stream.open("wrong");
#pragma sig global
  std::ifstream none[2];
  for (auto &each : none) each.open("wrong");
  captured("right part in a template") + shared_lambda() + capture() + captures(1) + outer_capture();
  Members(), Members(1), Members(1L);
  InTemplate<long>();
  (void)Aggregate{1};
  (void)Aggregate{1, open("wrong", O_RDONLY)};
  static_assert(in_constexpr(false) == 0);
  constant_template(1), constant_template(1L);
  coroutine(1);
  thread_fd += 1;
#pragma sig global
  Own().open("wrong", O_RDONLY);
#pragma sig global
  other::open("wrong", O_RDONLY);
}
"""


# GCC has no case for what it does not know in these.
DUMPS = "-fdump-tree-all -fdump-ipa-all -fdump-rtl-all"


@pytest.mark.parametrize("options", ["-O0", "-O2 -fopenmp", f"-O0 {DUMPS}", f"-O2 {DUMPS}", "-O2 -flto", "-Og -g"])
def test_the_open_directly_after_a_pragma_gets_its_signature_and_no_other(
    compiler: PluginCompiler, options: str
) -> None:
    (compiler.directory / "opens.h").write_text(HEADER)
    hints = compiler.hints(C_PLACES, "-w", *options.split())
    assert {h.signature for h in hints} == {"global", "temp totalsize(16MB)"}
    # in the order of the source, which is not that of the run
    expected = re.findall(r'"(right [^"]*)"', C_PLACES + HEADER)
    assert sorted(h.path for h in hints) == sorted(expected)


@pytest.mark.parametrize("options", ["-O0", "-O2 -fopenmp", f"-O1 -g {DUMPS}", "-O2 -flto"])
def test_in_cxx_too_and_before_members_coroutines_and_constant_functions(
    compiler: PluginCompiler, options: str
) -> None:
    hints = compiler.hints(CXX_PLACES, "-w", *options.split(), "-std=c++20", language="c++")
    assert {h.signature for h in hints} == {"global"}
    # in the order of the source, which is not that of the run; a place that runs twice stands twice
    expected = re.findall(r"\"(right [^\"]*)\"", CXX_PLACES)
    twice = ["right checked in a template", "right constant template", "right member", "right member stream"]
    assert sorted(h.path for h in hints) == sorted(expected + twice)


MODULE = r"""
module;
#include <fcntl.h>
export module opening;
export inline int in_line() {
#pragma sig temp
  return open("in the module", O_RDONLY);
}
export template <class Path> int in_template(Path path) {
#pragma sig temp
  return open(path, O_RDONLY);
}
"""
IMPORTER = r"""
import opening;
#include <fcntl.h>
int main() {
#pragma sig persist
  int fd = open("right", O_RDONLY);
  return in_line() + in_template("in the module's template") + fd > 1000;
}
"""


def test_a_pragma_of_an_imported_module_is_not_taken_for_one_of_the_unit(compiler: PluginCompiler) -> None:
    (compiler.directory / "opening.cc").write_text(MODULE)
    compiler.run("g++", f"-fplugin={compiler.plugin}", "-std=c++20", "-fmodules-ts", "-c", "opening.cc")
    hints = compiler.hints(IMPORTER, "opening.o", "-std=c++20", "-fmodules-ts", language="c++")
    assert [(hint.path, hint.signature) for hint in hints] == [("right", "persist")]
