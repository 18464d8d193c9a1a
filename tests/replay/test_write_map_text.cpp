#include <doctest/doctest.h>

#include "iosig/replay/write_map_text.h"

using namespace iosig;

namespace {

std::string refusal(std::string_view line, WriteMapLines lines = WriteMapLines("job.map")) {
  MappedWrite write;
  const auto read = lines.read(line, write);
  REQUIRE(!read);
  CHECK(read.error().kind == ErrorKind::bad_input);
  return read.error().message;
}

}  // namespace

TEST_CASE("write map: a line is rank, offset and length; comments and empty lines are passed over") {
  WriteMapLines lines("job.map");
  MappedWrite write;
  CHECK(lines.read("# rank offset length", write) == false);
  CHECK(lines.read("  \t\r", write) == false);
  CHECK(lines.read(" 3\t4096 100\r", write) == true);
  CHECK(write == MappedWrite{3, 4096, 100, 0});
  CHECK(lines.read("0 9223372036854775806 1", write) == true);  // ends at the last byte there is
  CHECK(!lines.is_plfs());
  CHECK(lines.read("0 9223372036854775807 1", write).error().message ==
        "job.map:5: 1 bytes at offset 9223372036854775807 end after byte 2^63 - 1");
}

TEST_CASE("write map: what plfs_map prints is read with the time of each write") {
  WriteMapLines lines("out");
  MappedWrite write;
  CHECK(lines.read("# Entry Count: 2", write) == false);
  CHECK(lines.read("    1 w             4096     1024 1366041230.2500000000000000 1366041230.5000000000000000 "
                   "            5119  [1.         0]",
                   write) == true);
  CHECK(write == MappedWrite{1, 4096, 1024, 1366041230.25});
  CHECK(lines.is_plfs());
  CHECK(!lines.read("1 4096 1024", write));  // a file has one form
  CHECK(!lines.read("1 w 4096 1024 nan 0", write));
}

TEST_CASE("write map: a refusal says the line, the word and what a line is") {
  CHECK(refusal("1 2") == "job.map:1: '1 2' is not a write; expected rank offset length, integers from 0 to 2^63 - 1");
  CHECK(refusal("rank offset length")
            .ends_with("is not an integer; expected rank offset length, integers from 0 to 2^63 - 1"));
  CHECK(refusal("id off len kind").ends_with("is this a header? put # before it"));
  CHECK(refusal("0 -1 5").find("offset -1 is negative") != std::string::npos);
  CHECK(refusal("0 1 9223372036854775808").find("length '9223372036854775808' does not fit") != std::string::npos);
  CHECK(refusal("0 1 5x").find("'5x' is not an integer") != std::string::npos);
  CHECK(refusal("0 1 \x1b[2J").find('\x1b') == std::string::npos);
}
