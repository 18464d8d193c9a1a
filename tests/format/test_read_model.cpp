// A saved model comes back as it was, and nothing else is taken for one.
#include <doctest/doctest.h>

#include "iosig/base/crc32c.h"
#include "iosig/format/pattern_json.h"
#include "iosig/format/read_model.h"

using namespace iosig;

namespace {

using Bytes = std::vector<std::uint8_t>;

/// for i < 1000 { logical 262144 i, length 16384 }
Pattern strided() {
  auto pattern = pattern_from_json(
      R"({"schema": "iosig.pattern/1", "count": 1000, "columns": 2, "names": ["logical", "length"],
          "follows": [null, null], "exceptions": [],
          "description": [{"trips": [1000], "body": [{"vector": [[0, 262144], [16384, 0]]}]}]})",
      "test");
  REQUIRE_MESSAGE(pattern.has_value(), (pattern ? "" : pattern.error().message));
  return std::move(*pattern);
}

ReadModel two_files() {
  constexpr std::int64_t last = (INT64_MAX - 1) / 8192;  // the block of the last byte that a file can have
  return {{{"/a\n", BlockTransitions{8192, {{0, 1, 2}, {1, 0, 1}, {1, 8, UINT32_MAX}, {last, last, 1}}}},
           {"/data/field.nc", strided()}}};
}

Bytes with_checksum(Bytes bytes) {
  const std::uint32_t checksum = crc32c(bytes);
  for (int n = 0; n < 4; ++n) bytes.push_back(static_cast<std::uint8_t>(checksum >> (8 * n)));
  return bytes;
}

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

std::string model_refusal(const Bytes& bytes) {
  const auto model = read_model_from_bytes(bytes, "m");
  REQUIRE_FALSE(model.has_value());
  CHECK(model.error().kind == ErrorKind::bad_input);
  return model.error().message;
}

}  // namespace

TEST_CASE("read model: it comes back as it was written, and a regular pattern takes less than 1 KB") {
  const ReadModel model = two_files();
  const Bytes bytes = read_model_bytes(model);
  CHECK(read_model_from_bytes(bytes, "m") == model);
  CHECK(read_model_from_bytes(read_model_bytes({}), "m") == ReadModel{});
  CHECK(read_model_bytes({{{"/data/field.nc", strided()}}}).size() < 1024);
}

TEST_CASE("read model: every cut and every changed bit is noticed") {
  const Bytes bytes = read_model_bytes(two_files());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK(model_refusal({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}).starts_with("m: byte "));
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    Bytes changed = bytes;
    changed[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    CHECK(model_refusal(changed).starts_with("m: byte "));
  }
}

TEST_CASE("read model: a refusal says what is wrong and where") {
  CHECK(model_refusal(bytes_of("PNG")) == "m: byte 0: this is not a model of reads; expected it to begin with \"IOM\"");
  CHECK(model_refusal(with_checksum(bytes_of("IOM\2"))) == "m: byte 3: version 2 of the format; this program reads 1");
  using namespace std::string_view_literals;
  const auto after_header = [](std::string_view rest) {
    return model_refusal(with_checksum(bytes_of(std::string("IOM\1") += rest)));
  };
  CHECK(after_header("\0x"sv).find("more bytes than") != std::string::npos);
  CHECK(after_header("\1\0\1"sv).find("without a path") != std::string::npos);
  CHECK(after_header("\1\1a\2"sv).find("kind 2: expected 0 or 1") != std::string::npos);
  CHECK(after_header("\1\1a\1\0\0"sv).find("impossible size") != std::string::npos);
  CHECK(after_header("\2\1b\1\x8\0\1a\1\x8\0"sv).find("'a' after 'b': expected paths in order") != std::string::npos);
  // Blocks of 8 bytes; a step from block 0 to block -1, taken no time, and two that are the same.
  CHECK(after_header("\1\1a\1\x8\1\0\3\1"sv).find("no file can have") != std::string::npos);
  CHECK(after_header("\1\1a\1\x8\1\0\0\0"sv).find("taken 0 times") != std::string::npos);
  CHECK(after_header("\1\1a\1\x8\2\0\0\1\0\0\1"sv).find("out of order") != std::string::npos);
  // A declared size does not allocate: 2^56 files, and 2^56 steps.
  CHECK(after_header("\x80\x80\x80\x80\x80\x80\x80\x80\1"sv).find("is cut") != std::string::npos);
  CHECK(after_header("\1\1a\1\x8\x80\x80\x80\x80\x80\x80\x80\x80\1"sv).find("is cut") != std::string::npos);
}
