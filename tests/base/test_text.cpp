// What is shown to people: whole lines of valid UTF-8, whatever bytes a path has.
#include <doctest/doctest.h>

#include "iosig/base/text.h"

using namespace iosig;

TEST_CASE("printable: characters of every length stay as they are") {
  for (const char* text :
       {"", "plain", "\u00e4", "\u65e5\u672c", "\U0001f600", "a\u00a0b", "\U0010ffff", "\ud7ff\ue000"})
    CHECK(printable(text) == text);
}

TEST_CASE("printable: control characters of both sets are escaped") {
  using namespace std::string_view_literals;
  CHECK(printable("a\nb\x1b[31m\x7f") == "a\\x0ab\\x1b[31m\\x7f");
  CHECK(printable("nul\0!"sv) == "nul\\x00!");
  CHECK(printable("\u009b") == "\\xc2\\x9b");
}

TEST_CASE("printable: what would show a name as another one is escaped") {
  CHECK(printable("a\u202etxt.exe") == "a\\xe2\\x80\\xaetxt.exe");
  CHECK(printable("\u2028\u2066\u2069") == "\\xe2\\x80\\xa8\\xe2\\x81\\xa6\\xe2\\x81\\xa9");
  for (const char* text : {"\u200e\u200f", "\u2027", "\u202f", "\u2065", "\u206a", "\u05d0\u05d1"})
    CHECK(printable(text) == text);
}

TEST_CASE("printable: a byte that is no UTF-8 is escaped, and its neighbours are not") {
  CHECK(printable("a\xff"
                  "b") == "a\\xffb");
  CHECK(printable("\xe4\xb8") == "\\xe4\\xb8");  // cut off
  CHECK(printable("\xe4"
                  "a") ==
        "\\xe4"
        "a");                                                      // not continued
  CHECK(printable("\x80\u00e4") == "\\x80\u00e4");                 // a continuation alone
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");                    // overlong
  CHECK(printable("\xe0\x80\xaf") == "\\xe0\\x80\\xaf");           // overlong
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // a surrogate
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
  CHECK(printable("\xf8\x88\x80\x80\x80") == "\\xf8\\x88\\x80\\x80\\x80");
}

TEST_CASE("split: there is one part more than separators; words have no blanks, and none is empty") {
  using Parts = std::vector<std::string_view>;
  CHECK(split("a,,b,", ',') == Parts{"a", "", "b", ""});
  CHECK(split("", ',') == Parts{""});
  CHECK(words_of(" a\tb  c\n") == Parts{"a", "b", "c"});
  CHECK(words_of(" \n").empty());
}

TEST_CASE("parse_count: a number is digits alone that fit") {
  CHECK(parse_count("0042") == 42u);
  CHECK(parse_count("4294967295") == 4294967295u);
  CHECK(parse_count<std::uint64_t>("4294967296") == 4294967296u);
  for (const char* text : {"", " 1", "1 ", "-1", "+1", "0x1", "4294967296"}) CHECK_FALSE(parse_count(text).has_value());
}

TEST_CASE("text: of names that end a path, whole components count, and the longest is found") {
  const std::vector<std::string> names = {"a", "b/a", "c/b/a", "ba"};
  const auto found = [&](std::string_view path) -> std::string {
    const auto at = longest_path_end(names.begin(), names.end(), path,
                                     [](const std::string& name) -> std::string_view { return name; });
    return at == names.end() ? "" : *at;
  };
  CHECK(found("/x/a") == "a");
  CHECK(found("/x/b/a") == "b/a");
  CHECK(found("/c/b/a") == "c/b/a");
  CHECK(found("c/b/a") == "c/b/a");
  CHECK(found("/x/ba") == "ba");  // not "a", whose letters end it
  CHECK(found("/x/cba").empty());
  CHECK(found("").empty());
}

TEST_CASE("text: the slashes behind a directory's name go, the root stays") {
  CHECK(without_trailing_slashes("/a/b//") == "/a/b");
  CHECK(without_trailing_slashes("/a") == "/a");
  CHECK(without_trailing_slashes("///") == "/");
  CHECK(without_trailing_slashes("").empty());
}
