// The user's own opening functions, as pragma and command line declare them.
#include <doctest/doctest.h>

#include "iosig/format/opener_text.h"

using namespace iosig;

TEST_CASE("opener: both spellings name a function and count its arguments from 1") {
  for (const char* text : {"io::open_output(2, 3)", " io :: open_output ( 2 , 3 ) ", "io::open_output:2:3"}) {
    const ParsedOpener parsed = parse_sigopen(text);
    REQUIRE(parsed.ok());
    CHECK(parsed.opener.name == "io::open_output");
    CHECK(parsed.opener.path == 1);
    CHECK(parsed.opener.mode == 2);
    CHECK(parsed.opener.interface == OpenInterface::unknown);
  }
  CHECK(parse_sigopen("my_open(1)").opener.mode == -1);
  CHECK(parse_sigopen("my_open:99").opener.path == 98);
}

TEST_CASE("opener: a mistake is underlined where it stands") {
  const struct {
    const char *text, *message;
    std::size_t begin, end;
  } cases[] = {
      {"", "expected a function and the number", 0, 1},
      {"(1)", "expected a function and the number", 0, 1},
      {"io::(1)", "expected a function and the number", 0, 4},
      {"my_open", "expected the number of the argument with the path, e.g. my_open(1)", 7, 8},
      {"my_open()", "expected the number of the argument with the path, e.g. my_open(1)", 8, 9},
      {"my_open(path)", "expected the number of the argument with the path", 8, 9},
      {"my_open(0)", "counted from 1 to 99", 8, 9},
      {"my_open:100", "counted from 1 to 99", 8, 11},
      {"my_open(99999999999)", "counted from 1 to 99", 8, 19},
      {"my_open(1,)", "the argument with the mode, e.g. my_open(1, 2)", 10, 11},
      {"my_open(1, 1)", "not the same argument", 11, 12},
      {"my_open(1", "'(' is not closed", 7, 8},
      {"my_open(1 2)", "expected ')'", 10, 11},
      {"my_open(1) x", "expected nothing more", 11, 12},
      {"my_open:1,2", "expected nothing more", 9, 10},
  };
  for (const auto& wrong : cases) {
    CAPTURE(wrong.text);
    const ParsedOpener parsed = parse_sigopen(wrong.text);
    REQUIRE(parsed.diagnostics.size() == 1);
    const Diagnostic& found = parsed.diagnostics.front();
    CHECK(found.message.find(wrong.message) != std::string::npos);
    CHECK(found.at.begin == wrong.begin);
    CHECK(found.at.end == wrong.end);
  }
  CHECK(parse_callee("my_open:0", "callee").error().kind == ErrorKind::usage);
  CHECK(parse_callee("my_open:1", "callee")->path == 0);
}
