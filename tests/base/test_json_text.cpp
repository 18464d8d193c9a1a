#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "iosig/base/json_text.h"

using namespace iosig;

TEST_CASE("depth counts brackets outside strings") {
  CHECK(json_depth("1") == 0);
  CHECK(json_depth(R"({"a": [1, [2]], "b": {}})") == 3);
  CHECK(json_depth(R"(["]", "[[[", "\"[["])") == 1);
}

TEST_CASE("a document is parsed whole, up to its depth") {
  CHECK(parse_json(R"({"a": [1]})", 2)["a"][0] == 1);
  CHECK(parse_json(R"({"a": [1]})", 1).is_discarded());
  for (const char* text : {"", "{", "[1] 2", "nul", "{'a': 1}"}) CHECK(parse_json(text, 8).is_discarded());
  CHECK(parse_json(std::string(100'000, '['), 64).is_discarded());
}

TEST_CASE("bytes that are no UTF-8 are replaced, not thrown") {
  const nlohmann::ordered_json document = {{"b", "\xff"}, {"a", "\u00e4"}};
  CHECK(json_line(document) == "{\"b\":\"\uFFFD\",\"a\":\"\u00e4\"}");
  CHECK(json_ascii_line(document) == R"({"b":"\ufffd","a":"\u00e4"})");
  CHECK(json_page({{"a", 1}}) == "{\n  \"a\": 1\n}");
}
