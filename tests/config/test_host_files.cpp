#include <doctest/doctest.h>

#include <algorithm>

#include "iosig/config/host_files.h"

using namespace iosig;

namespace {

/// Returns the name or pattern whose file describes `host`; "": none.
std::string file_of(const std::string& host, const std::vector<std::string>& names) {
  const auto found = file_for_host(names, host);
  return found ? found->hosts : "";
}

}  // namespace

TEST_CASE("host files: the host's full name goes before its short name, and both before every pattern") {
  const std::vector<std::string> names{"node0*.example.org.toml", "node07.toml", "node07.example.org.toml", "*.toml"};
  CHECK(file_of("node07.example.org", names) == "node07.example.org");
  CHECK(file_of("node07", names) == "node07");
  CHECK(file_of("node07.other.org", names) == "node07");
  CHECK(file_of("node08.example.org", names) == "node0*.example.org");
  CHECK(file_of("login", names) == "*");
  CHECK_FALSE(file_for_host(names, "node07")->is_pattern);
  CHECK(file_for_host(names, "login")->is_pattern);
}

TEST_CASE("host files: of several patterns the longest describes a host, of equally long ones the first by name") {
  std::vector<std::string> names{"n*.toml", "node*.toml", "nod[a-e]*.toml", "node?7.toml", "node0?.toml"};
  CHECK(file_of("node07", names) == "nod[a-e]*");
  std::erase(names, "nod[a-e]*.toml");
  CHECK(file_of("node07", names) == "node0?");
  std::ranges::reverse(names);
  CHECK(file_of("node07", names) == "node0?");
  CHECK(file_of("node1", names) == "node*");
  CHECK(file_of("nova", names) == "n*");
  CHECK(file_of("login", names).empty());
}

TEST_CASE("host files: what is no description of hosts is left out") {
  for (const char* name :
       {"node07", "node07.toml~", ".node07.toml", ".toml", "node07.txt", "node07.toml.orig", ".*.toml"})
    CHECK_MESSAGE(file_of("node07", {name}).empty(), name);
  CHECK(file_of("", {"*.toml"}).empty());
  CHECK(file_of("node07", {}).empty());
}

TEST_CASE("host files: a host with the name of a pattern is meant by that name") {
  CHECK_FALSE(file_for_host({"node*.toml"}, "node*")->is_pattern);
}

TEST_CASE("host files: a pattern covers a host by its full or its short name, and none has a slash") {
  CHECK(covers_host("node*", "node07.example.org"));
  CHECK(covers_host("*.example.org", "node07.example.org"));
  CHECK(covers_host("node0?", "node07.example.org"));
  CHECK_FALSE(covers_host("*.example.org", "node07"));
  CHECK_FALSE(covers_host("NODE07", "node07"));
  CHECK_FALSE(covers_host("[n/]*", "node07"));
  CHECK_FALSE(covers_host("", "node07"));
}
