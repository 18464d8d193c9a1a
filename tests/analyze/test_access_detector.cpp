#include <doctest/doctest.h>

#include <vector>

#include "iosig/analyze/access_detector.h"
#include "iosig/format/pattern_binary.h"
#include "iosig/model/pattern_cursor.h"

namespace iosig {
namespace {

std::size_t bytes_of(const Pattern& pattern) { return pattern_bytes(pattern).size(); }

/// logical, length, physical of a log that writes `lengths` far from each other.
std::vector<std::int64_t> log_of(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> vectors;
  std::int64_t physical = 0, logical = 0;
  for (const std::int64_t length : lengths) {
    vectors.insert(vectors.end(), {logical, length, physical});
    physical += length;
    logical += 1 << 20;
  }
  return vectors;
}

Pattern pushed(AccessDetector& detector, const std::vector<std::int64_t>& vectors) {
  for (std::size_t at = 0; at < vectors.size(); at += 3) detector.push(std::span(vectors).subspan(at, 3));
  return detector.finish(bytes_of);
}

}  // namespace

TEST_CASE("access detector: lengths without a pattern are followed by the physical offset, even ones are not") {
  std::vector<std::int64_t> varying;
  std::uint64_t state = 1;
  for (int n = 0; n < 500; ++n)
    varying.push_back(static_cast<std::int64_t>((state = state * 69069 + 1) >> 40 & 0xffff));
  const std::vector<std::int64_t> even(500, 4096);
  const AccessColumns columns{.logical = 0, .length = 1, .physical = 2, .id = -1};
  AccessDetector detector({.columns = 3}, columns);
  for (int round = 0; round < 2; ++round) {  // as new after each
    const Pattern followed = pushed(detector, log_of(varying)), plain = pushed(detector, log_of(even));
    CHECK(followed.follows[2] == 1);
    CHECK_FALSE(plain.follows_any());
    CHECK(plain.terms.size() == 1);
    CHECK(*expanded(followed) == log_of(varying));
    CHECK(*expanded(plain) == log_of(even));
  }
  AccessDetector unnamed({.columns = 3}, access_columns({}));
  CHECK_FALSE(pushed(unnamed, log_of(varying)).follows_any());
}

TEST_CASE("access columns: a lookup needs logical, length and physical, in any order") {
  const std::vector<std::string> names = {"id", "physical", "length", "logical"};
  const auto places = lookup_columns(names, 4);
  REQUIRE(places);
  CHECK(places->logical == 3);
  CHECK(places->length == 2);
  CHECK(places->physical == 1);
  CHECK(places->id == 0);
  CHECK(lookup_columns({}, 3)->id == -1);
  CHECK(lookup_columns({}, 4)->id == 3);
  CHECK(lookup_columns(names, 3).error().message == "4 names for 3 columns");
  const std::vector<std::string> few = {"logical", "length"};
  CHECK(lookup_columns(few, 2).error().kind == ErrorKind::usage);
}

}  // namespace iosig
