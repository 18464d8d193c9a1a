// The order of reads that a program declares: its lines are reads, and what breaks a rule is refused with its line.
#include <doctest/doctest.h>

#include <string>

#include "iosig/format/read_order.h"
#include "support/text.h"

using namespace iosig;
using iosig::testing::has;

namespace {

KnownReads reads(std::string_view lines) {
  const auto known = parse_read_order("iosig.order/1\n" + std::string(lines), "o");
  REQUIRE_MESSAGE(known.has_value(), known.error().message);
  return *known;
}

std::string order_refusal(std::string_view text) {
  const auto known = parse_read_order(text, "o");
  REQUIRE_FALSE_MESSAGE(known.has_value(), text);
  CHECK(known.error().kind == ErrorKind::bad_input);
  return known.error().message;
}

std::string order_refusal_of_lines(std::string_view lines) {
  return order_refusal("iosig.order/1\n" + std::string(lines));
}

}  // namespace

TEST_CASE("order: a record's place is its number times the size of a record, from the start of the records") {
  CHECK(reads("records 100\n3\n0\n7") == KnownReads{{{300, 100}, {0, 100}, {700, 100}}});
  CHECK(reads("records 100 at 12\n3\n0\n") == KnownReads{{{312, 100}, {12, 100}}});
}

TEST_CASE("order: without records a line is an offset and a length") {
  CHECK(reads("4096 10\n0 1\n") == KnownReads{{{4096, 10}, {0, 1}}});
  CHECK(reads("") == KnownReads{});
}

TEST_CASE("order: streams end where the next begins, blank lines and comments are skipped, lines may end with CR") {
  CHECK(reads("# epoch 1\r\n\r\nrecords 10\r\nstream\r\n1\r\n2\r\nstream\r\n \t\n0\r\nstream\n") ==
        KnownReads{{{10, 10}, {20, 10}, {0, 10}}, {2}});
}

TEST_CASE("order: another version, and what is no order, is refused in line 1") {
  CHECK(has(order_refusal("iosig.order/2\n1 1\n"), "o:1: version 'iosig.order/2' of the format; this program reads"));
  for (const char* text : {"", "\n", "IOM\1", "1 1\n", "iosig.orde"})
    CHECK(has(order_refusal(text), "o:1: this is not an"));
}

TEST_CASE("order: a line that breaks a rule is named") {
  for (const char* line : {"x", "-1 5", "5", "5 0", "1 2 3", "1e3 5", "99999999999999999999 1", "stream 1"})
    CHECK(has(order_refusal_of_lines("0 1\n" + std::string(line)),
              "o:3: '" + std::string(line) + "': expected an offset"));
  for (const char* line : {"x", "-1", "1 2", "1.5"})
    CHECK(has(order_refusal_of_lines("records 8\n" + std::string(line)),
              "o:3: '" + std::string(line) + "': expected the number"));
  for (const char* line :
       {"records", "records 0", "records 8 9", "records 8 at", "records 8 at -1", "records 8 at 1 2"})
    CHECK(has(order_refusal_of_lines(line), "o:2: expected \"records SIZE\""));
  CHECK(has(order_refusal_of_lines("0 1\nrecords 8"), "o:3: \"records\" is given before the first read, and once"));
  CHECK(has(order_refusal_of_lines("records 8\nrecords 8"), "o:3: \"records\" is given before"));
}

TEST_CASE("order: no read goes beyond 2^63 - 1 bytes") {
  CHECK(reads("9223372036854775806 1").reads.back().offset == INT64_MAX - 1);
  CHECK(has(order_refusal_of_lines("9223372036854775807 1"), "o:2: a read beyond"));
  CHECK(reads("records 4611686018427387903\n1").reads.back().offset == (INT64_MAX >> 1));
  for (const char* last : {"records 4611686018427387904\n1", "records 1\n9223372036854775807",
                           "records 2 at 9223372036854775800\n3", "records 4611686018427387904\n4"})
    CHECK(has(order_refusal_of_lines(last), "o:3: a record beyond"));
}

TEST_CASE("order: 4,194,304 reads are the most") {
  std::string text = "iosig.order/1\nrecords 1\n";
  for (std::uint64_t n = 0; n < max_known_reads; ++n) text += "0\n";
  CHECK(parse_read_order(text, "o")->reads.size() == max_known_reads);
  CHECK(has(order_refusal(text + "0"), "o:4194307: more than 4194304 reads"));
}
