// The forms of a pattern come back equal, and nothing that was cut or changed is read.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "iosig/base/crc32c.h"
#include "iosig/format/pattern_binary.h"
#include "iosig/format/pattern_json.h"
#include "iosig/format/pattern_text.h"
#include "iosig/format/vectors_text.h"
#include "iosig/model/literals.h"
#include "iosig/model/pattern_builder.h"
#include "iosig/model/pattern_cursor.h"
#include "support/nests.h"

using namespace iosig;
using namespace iosig::testing;

namespace {

/// A nest between literals, with exceptions and a column that follows.
Pattern generated_pattern(Random& random) {
  for (;;) {
    const GeneratedNest nest = generated_nest(random);
    if (nest.count == 0 || nest.count > 1000) continue;
    std::array<std::int8_t, max_columns> follows = follows_none;
    if (nest.columns > 1 && random.chance(50)) follows[1] = 0;
    PatternBuilder builder(nest.columns, follows);
    std::vector<std::int64_t> vector(nest.columns);
    const auto literals = [&](std::int64_t count) {
      for (std::int64_t n = 0; n < count; ++n) {
        for (std::int64_t& value : vector) value = random.chance(50) ? n : random.below(INT64_MAX) - INT64_MAX / 2;
        builder.add_literal(vector.data());
      }
    };
    literals(random.below(3));
    const std::uint64_t first = builder.count();
    builder.add_nest(nest.nodes, nest.numbers, nest.count);
    literals(random.below(600));
    if (random.chance(50)) builder.add_exception(first + nest.count / 2, vector.data());
    Pattern pattern = builder.finish();
    if (checked(pattern)) return pattern;
  }
}

Pattern strided(std::int64_t trips, std::int64_t stride) {
  PatternBuilder builder(1, follows_none);
  builder.add_nest(std::array{Node{true, 2, 0}, Node{false, 2, 1}}, std::array<std::int64_t, 3>{trips, 0, stride},
                   static_cast<std::uint64_t>(trips));
  return builder.finish();
}

std::string json_text(const Pattern& pattern) {
  nlohmann::ordered_json document = {{"schema", "iosig.pattern/1"}};
  document.update(pattern_json(pattern));
  return document.dump();
}

std::string pattern_refusal(const std::vector<std::uint8_t>& bytes) {
  const auto read = pattern_from_bytes(bytes, "file");
  return read ? "" : read.error().message;
}

}  // namespace

TEST_CASE("crc32c: RFC 3720's values") {
  const std::string digits = "123456789";
  CHECK(crc32c({reinterpret_cast<const std::uint8_t*>(digits.data()), digits.size()}) == 0xe3069283);
  CHECK(crc32c(std::vector<std::uint8_t>(32, 0)) == 0x8a9136aa);
  // In two parts, of every length and alignment.
  std::vector<std::uint8_t> bytes(40);
  for (std::size_t n = 0; n < bytes.size(); ++n) bytes[n] = static_cast<std::uint8_t>(37 * n + 11);
  const std::span<const std::uint8_t> all(bytes);
  for (std::size_t end = 0; end <= all.size(); ++end)
    for (std::size_t middle = 0; middle <= end; ++middle) {
      std::uint32_t by_bits = ~0u;
      for (const std::uint8_t byte : all.subspan(middle, end - middle)) {
        by_bits ^= byte;
        for (int bit = 0; bit < 8; ++bit) by_bits = (by_bits >> 1) ^ ((by_bits & 1) != 0 ? 0x82f63b78u : 0u);
      }
      CHECK(crc32c(all.subspan(middle, end - middle)) == ~by_bits);
      CHECK(crc32c(all.subspan(middle, end - middle), crc32c(all.first(middle))) == crc32c(all.first(end)));
    }
}

TEST_CASE("literals: blocks of any values come back, and take what they must") {
  Random random(6);
  std::vector<std::int64_t> out;
  for (int n = 0; n < 500; ++n) {
    const auto columns = static_cast<std::uint32_t>(1 + random.below(8));
    std::vector<std::int64_t> vectors;
    const std::int64_t bound = std::int64_t{1} << random.below(63), count = 1 + random.below(256);
    for (std::int64_t v = 0; v < count * columns; ++v)
      vectors.push_back(random.chance(2) ? INT64_MIN : random.below(bound) - bound / 2);
    std::vector<std::uint8_t> bytes;
    append_block(vectors, columns, bytes);
    REQUIRE(read_block(bytes, columns, out) == bytes.size());
    REQUIRE(out == vectors);
  }
  // Random logical (40 bits) and length (17 bits), their physical offset, an id: 57 bits = 7.1 B and the heads.
  std::vector<std::int64_t> accesses;
  std::int64_t physical = 0;
  for (int n = 0; n < 256; ++n) {
    const std::int64_t length = random.below(1 << 17);
    accesses.insert(accesses.end(), {random.below(std::int64_t{1} << 40), length, physical, 5});
    physical += length;
  }
  std::vector<std::uint8_t> bytes;
  append_block(accesses, 4, bytes);
  CHECK(bytes.size() < 256 * 7.4);
}

TEST_CASE("pattern binary, json: generated patterns come back equal") {
  Random random(7);
  for (int n = 0; n < 200; ++n) {
    const Pattern pattern = generated_pattern(random);
    const auto again = pattern_from_bytes(pattern_bytes(pattern), "bytes");
    REQUIRE(again);
    REQUIRE(*again == pattern);
    const auto parsed = pattern_from_json(json_text(pattern), "json");
    REQUIRE_MESSAGE(parsed, parsed.error().message);
    REQUIRE(*parsed == pattern);
  }
}

TEST_CASE("pattern binary: ten strides of 4 KB take nine bytes and the checksum") {
  // A nest 1, by itself 1; a body of one 010; 10 = 5 * 2^1 trips: 1 0, 1 + 1 as 010, 3 bits as 011, the middle one 0; a
  // vector 1, n0 0, n1 1, not expected 0, + 0, 4096 = 1 * 2^12: 12 + 1 as 0001101, 1 bit as 1.
  const std::vector<std::uint8_t> bytes = pattern_bytes(strided(10, 4096));
  REQUIRE(bytes.size() == 13);
  CHECK(std::vector<std::uint8_t>(bytes.begin(), bytes.end() - 4) ==
        std::vector<std::uint8_t>{'I', 'O', 'P', 1, 1, 0x2b, 0x59, 0xc1, 0x06});
}

TEST_CASE("pattern binary: strides that follow from lengths and trip counts take two bits") {
  const auto rows = [](std::int64_t outer) {
    PatternBuilder builder(4, follows_none);
    builder.add_nest(std::array{Node{true, 3, 0}, Node{true, 3, 1}, Node{false, 3, 3}},
                     std::array<std::int64_t, 15>{62500, 16, 0, 0, 524288, 4096, 1024, 0, 0, 0, outer, 1024, 3, 0, 0},
                     1'000'000);
    return builder.finish();
  };
  CHECK(pattern_bytes(rows(16384)).size() <= 21);      // 16 writes of 1024: what is expected
  CHECK(pattern_bytes(rows(16384 + 1)).size() <= 25);  // 15 bits
}

TEST_CASE("pattern binary: nests that differ in few numbers are told by each other, across others and up to 32 back") {
  Random random(14);
  for (const std::size_t others : {0, 1, 31, 32, 40}) {
    PatternBuilder builder(1, follows_none);
    for (std::int64_t n = 0; n < 20; ++n) {
      const std::int64_t start = n % 3 == 0   ? INT64_MIN + n
                                 : n % 3 == 1 ? INT64_MAX - 8190
                                              : random.below(INT64_MAX / 2);
      builder.add_nest(std::array{Node{true, 2, 0}, Node{false, 2, 1}}, std::array<std::int64_t, 3>{3, start, 4095}, 3);
      for (std::size_t other = 0; other < others; ++other)
        builder.add_nest(std::array{Node{true, 3, 0}, Node{false, 2, 1}, Node{false, 3, 3}},
                         std::array<std::int64_t, 5>{5, random.below(1000), random.below(10), 1, 1}, 10);
      builder.add_literal(&n);
    }
    const Pattern pattern = builder.finish();
    REQUIRE(checked(pattern));
    const auto again = pattern_from_bytes(pattern_bytes(pattern), "file");
    REQUIRE(again);
    CHECK(*again == pattern);
  }
  const auto cells = [](std::int64_t count) {
    PatternBuilder builder(2, follows_none);
    for (std::int64_t n = 0; n < count; ++n)
      builder.add_nest(std::array{Node{true, 3, 0}, Node{true, 3, 1}, Node{false, 3, 3}},
                       std::array<std::int64_t, 9>{16, 16, 0, n * n * 640, 163840, 2560, 640, 0, 0}, 256);
    return pattern_bytes(builder.finish()).size();
  };
  CHECK(cells(16) - cells(1) <=
        15 * 5);  // a start each: 9 numbers that are the same and one of up to 12 bits and its head
}

TEST_CASE("pattern binary: the ends of 64 bits come back") {
  for (const std::int64_t value : {INT64_MIN, INT64_MIN + 1, std::int64_t{-1}, INT64_MAX - 1, INT64_MAX}) {
    PatternBuilder builder(2, follows_none);
    builder.add_nest(std::array{Node{true, 2, 0}, Node{false, 2, 1}},
                     std::array<std::int64_t, 5>{2, 0, value, value, value > 0 ? INT64_MIN : 1}, 2);
    const Pattern pattern = builder.finish();
    const auto again = pattern_from_bytes(pattern_bytes(pattern), "file");
    REQUIRE(checked(pattern).has_value() == again.has_value());
    if (again) CHECK(*again == pattern);
  }
}

TEST_CASE("pattern binary: every cut and every changed byte is refused") {
  Random random(8);
  for (const Pattern& pattern : {strided(1000, 4096), generated_pattern(random)}) {
    const std::vector<std::uint8_t> bytes = pattern_bytes(pattern);
    for (std::size_t size = 0; size < bytes.size(); ++size)
      REQUIRE_FALSE(pattern_refusal({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}).empty());
    for (std::size_t at = 0; at < bytes.size(); ++at)
      for (int flip = 1; flip < 256; flip += bytes.size() < 100 ? 1 : 37) {
        std::vector<std::uint8_t> changed = bytes;
        changed[at] = static_cast<std::uint8_t>(changed[at] ^ flip);
        REQUIRE_FALSE(pattern_refusal(changed).empty());
      }
    std::vector<std::uint8_t> longer = bytes;
    longer.push_back(0);
    CHECK_FALSE(pattern_refusal(longer).empty());
  }
  std::vector<std::uint8_t> newer = pattern_bytes(strided(10, 1));
  newer[3] = 2;
  CHECK(pattern_refusal(newer).starts_with("file: byte 3: version 2"));
}

TEST_CASE("pattern binary: few bytes may stand for 2^62 vectors, and nothing is made as large as they say") {
  const std::vector<std::uint8_t> bytes = pattern_bytes(strided(std::int64_t{1} << 62, 2 - 1));
  CHECK(bytes.size() < 30);
  const auto large = pattern_from_bytes(bytes, "file");
  REQUIRE(large);
  std::int64_t value = 0;
  PatternIndex(*large).element((std::uint64_t{1} << 62) - 1, std::span(&value, 1));
  CHECK(value == (std::int64_t{1} << 62) - 1);
}

TEST_CASE("pattern json: what is wrong is told with its place") {
  const auto refused = [](std::string_view from, std::string_view to) {
    std::string text = json_text(strided(10, 8));
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    const auto read = pattern_from_json(text, "file");
    return read ? "" : read.error().message;
  };
  CHECK(refused("pattern/1", "pattern/2").starts_with("file: /schema: expected \"iosig.pattern/1\""));
  CHECK(refused("\"count\":10", "\"count\":11").starts_with("file: /count: expected 10"));
  CHECK(refused("\"columns\":1", "\"columns\":9").starts_with("file: /columns:"));
  CHECK(refused("\"columns\":1", "\"columns\":2").starts_with("file: /follows:"));
  CHECK(refused("\"trips\":[10]", "\"trips\":[0]").find("never turns") != std::string::npos);
  CHECK(refused("\"trips\":[10]", "\"trips\":[1.5]").find("/description/0/trips") != std::string::npos);
  CHECK(refused("[0,8]", "[0,9223372036854775807]").find("64 bits") != std::string::npos);
  CHECK(refused("[0,8]", "[0,9223372036854775808]").find("2^63 - 1") != std::string::npos);
  CHECK(refused("\"exceptions\":[]", "\"exceptions\":[{\"position\":10,\"vector\":[1]}]").find("outside") !=
        std::string::npos);
  CHECK_FALSE(pattern_from_json("{", "file"));
  CHECK_FALSE(pattern_from_json(std::string(1000000, '['), "file"));
}

TEST_CASE("pattern text: loops, strides and counts") {
  PatternBuilder builder(2, follows_none);
  builder.add_nest(std::array{Node{true, 3, 0}, Node{true, 3, 1}, Node{false, 3, 3}},
                   std::array<std::int64_t, 9>{3, 2, -1, 100, -8, 1, 4, 0, 0}, 3);
  builder.add_literal(std::array<std::int64_t, 2>{7, -9}.data());
  const Pattern pattern = builder.finish();
  CHECK(pattern_text(pattern, std::array<std::string, 2>{"logical", "length"}) ==
        "for i < 3\n  for j < 2 - i\n    logical 100 - 8 i + j, length 4\nlogical 7, length -9");
}

TEST_CASE("vectors: a line is as many integers as there are columns") {
  VectorLines lines(*parse_columns("logical,length"), "trace.txt");
  std::array<std::int64_t, 2> vector{};
  const auto refused = [&](std::string_view line) {
    const auto read = lines.read(line, vector);
    return read ? "" : read.error().message;
  };
  REQUIRE(*lines.read(" 9223372036854775807\t0\r", vector));
  CHECK(vector == std::array<std::int64_t, 2>{INT64_MAX, 0});
  CHECK_FALSE(*lines.read("   ", vector));
  CHECK(refused("1").starts_with("trace.txt:3: 1 integer; expected 2 (logical, length)"));
  CHECK(refused("1 2 3").starts_with("trace.txt:4: 3 integers"));
  CHECK(refused("1 2x").starts_with("trace.txt:5: '2x' is not an integer"));
  CHECK(refused("1 +2").find("'+2' is not an integer") != std::string::npos);
  CHECK(refused("1 9223372036854775808").find("does not fit 64 bits") != std::string::npos);
  CHECK(refused("1 -2").find("length -2 is negative") != std::string::npos);
  CHECK(refused("9223372036854775807 1").find("end past 2^63 - 1") != std::string::npos);
  CHECK(parse_columns("logical,offset").error().kind == ErrorKind::usage);
  CHECK_FALSE(parse_columns("id,id"));
  CHECK_FALSE(parse_columns(""));
}

TEST_CASE("pattern: what the columns are comes back in both forms, and costs nothing where it is usual") {
  Random random(8);
  const auto same = [](const Pattern& pattern) {
    CHECK(*pattern_from_bytes(pattern_bytes(pattern), "bytes") == pattern);
    nlohmann::ordered_json document = pattern_json(pattern);
    document["schema"] = pattern_schema;
    CHECK(*pattern_from_json(document.dump(), "json") == pattern);
  };
  for (int round = 0; round < 300; ++round) {
    Pattern pattern;
    pattern.columns = 1 + static_cast<std::uint32_t>(random.below(8));
    std::array<bool, column_kinds> is_taken{};
    for (std::uint32_t column = 0; column < pattern.columns; ++column) {
      const auto kind = static_cast<std::size_t>(random.below(column_kinds));
      if (!is_taken[kind]) pattern.kinds[column] = static_cast<Column>(kind);
      is_taken[kind] = true;
    }
    REQUIRE(checked(pattern));
    same(pattern);
  }
  Pattern usual;
  usual.columns = 4;
  const std::size_t nameless = pattern_bytes(usual).size();
  usual.kinds = {Column::logical, Column::length, Column::physical, Column::id};
  same(usual);
  CHECK(pattern_bytes(usual).size() == nameless);
  usual.kinds[3] = Column::length;
  CHECK_FALSE(checked(usual));
}
