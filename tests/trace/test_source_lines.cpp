#include <doctest/doctest.h>

#include <cstdint>
#include <tuple>

#include "iosig/trace/source_lines.h"

using namespace iosig;
using namespace iosig::trace;

TEST_CASE("source lines: a text names all lines, one or several, and is printed in its plain form") {
  for (const auto& [text, file, first, last, plain] : {
           std::tuple("io.c", "io.c", 1u, UINT32_MAX, "io.c"),
           std::tuple("src/io.c:40", "src/io.c", 40u, 40u, "src/io.c:40"),
           std::tuple("./a/../io.c:30-500", "io.c", 30u, 500u, "io.c:30-500"),
           std::tuple("/home/u/a b.c:1-1", "/home/u/a b.c", 1u, 1u, "/home/u/a b.c:1"),
       }) {
    const auto lines = parse_source_lines(text);
    REQUIRE(lines);
    CHECK(lines->file == file);
    CHECK(lines->first == first);
    CHECK(lines->last == last);
    CHECK(source_lines_text(*lines) == plain);
  }
}

TEST_CASE("source lines: a file is named by the end of its path, from a component's begin on") {
  const SourceLines lines = *parse_source_lines("src/io.c");
  CHECK(is_source_file(lines, "src/io.c"));
  CHECK(is_source_file(lines, "/home/u/src/io.c"));
  CHECK(is_source_file(lines, "/home/u/build/../src/./io.c"));
  CHECK_FALSE(is_source_file(lines, "/home/u/mysrc/io.c"));
  CHECK_FALSE(is_source_file(lines, "io.c"));
  CHECK_FALSE(is_source_file(lines, "src/io.cc"));
  const SourceLines whole = *parse_source_lines("/home/u/io.c");
  CHECK(is_source_file(whole, "/home/u/io.c"));
  CHECK_FALSE(is_source_file(whole, "/other/home/u/io.c"));
}
