// Fuzzes patterns. The first byte says what the rest is: the binary form, with and without the checksum that it ought
// to have; the JSON form; lines of text; or numbers for the detectors, which must come back.
#include "iosig/analyze/detect.h"
#include "iosig/analyze/detect_paper.h"
#include "iosig/base/crc32c.h"
#include "iosig/format/pattern_binary.h"
#include "iosig/format/pattern_json.h"
#include "iosig/format/pattern_text.h"
#include "iosig/format/vectors_text.h"
#include "iosig/model/pattern_cursor.h"
#include "property.h"

using namespace iosig;
using fuzz::hold;

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t walked = 200;

/// What was read is sound, and says the same whichever way it is asked.
void use(const Pattern& pattern) {
  hold(checked(pattern).has_value(), "what is read is sound");
  (void)pattern_text(pattern);
  (void)predicted(pattern, 3);
  const std::uint64_t count = pattern.count();
  PatternCursor cursor(pattern);
  const PatternIndex index(pattern);
  std::array<std::int64_t, max_columns> walk{}, random{};
  for (std::uint64_t n = 0; n < std::min(count, walked); ++n) {
    hold(cursor.next(walk), "the walk goes on to the end");
    index.element(n, random);
    hold(std::equal(walk.begin(), walk.begin() + pattern.columns, random.begin()), "random access is as the walk");
  }
  if (count > 0) index.element(count - 1, random);
  const auto again = pattern_from_bytes(pattern_bytes(pattern), "written");
  hold(again && *again == pattern, "what is written is read back");
}

void try_binary(Bytes bytes) {
  const auto check = [](const Bytes& tried) {
    const auto pattern = pattern_from_bytes(tried, "file");
    if (pattern) return use(*pattern);
    hold(pattern.error().kind == ErrorKind::bad_input, "a refusal is bad input");
    hold(pattern.error().message.starts_with("file: byte "), "a refusal names the place", pattern.error().message);
  };
  check(bytes);
  const std::uint32_t checksum = crc32c(bytes);
  for (int n = 0; n < 4; ++n) bytes.push_back(static_cast<std::uint8_t>(checksum >> (8 * n)));
  check(bytes);
}

void try_json(std::string_view text) {
  const auto pattern = pattern_from_json(text, "file");
  if (!pattern) {
    hold(pattern.error().kind == ErrorKind::bad_input, "a refusal is bad input");
    hold(pattern.error().message.starts_with("file:"), "a refusal names the file", pattern.error().message);
    return;
  }
  use(*pattern);
  nlohmann::ordered_json document = {{"schema", pattern_schema}};
  document.update(pattern_json(*pattern));
  const auto again = pattern_from_json(document.dump(), "printed");
  hold(again && *again == *pattern, "a printed document is read back");
}

void try_lines(std::string_view text) {
  VectorLines lines({"logical", "length", "physical"}, "file");
  std::array<std::int64_t, 3> vector{};
  for (const std::string_view line : split(text, '\n')) {
    const auto found = lines.read(line, vector);
    if (!found)
      hold(fuzz::names_a_line(found.error().message, "file"), "a refusal names a line", found.error().message);
  }
}

/// The bytes as small steps, some of them huge: what nests are made of.
void try_detectors(std::string_view text, std::uint32_t columns, bool follows) {
  std::vector<std::int64_t> vectors;
  std::uint64_t value = 0;
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (byte >= 0xf0)
      value += std::uint64_t{1} << ((byte & 15) * 4 + 3);
    else if (byte >= 0x80)
      value = byte & 7;
    else
      value += byte & 31;
    vectors.push_back(static_cast<std::int64_t>(value));
  }
  // Several times over: rows, and rows of rows.
  vectors.resize(vectors.size() / columns * columns);
  const std::size_t row = vectors.size();
  for (std::size_t n = 0; n < 3 * row; ++n)
    vectors.push_back(static_cast<std::int64_t>(static_cast<std::uint64_t>(vectors[n]) + 1000));
  DetectOptions options{.columns = columns};
  if (follows && columns > 1) options.follows[1] = 0;
  const Pattern nest = detect(vectors, options), paper = detect_paper(vectors, {.columns = columns, .window = 8});
  for (const Pattern* pattern : {&nest, &paper}) {
    const auto sound = checked(*pattern);
    hold(sound.has_value(), "what is detected is sound", sound ? "" : sound.error().message);
    const auto again = expanded(*pattern);
    hold(again && *again == vectors, "what is detected stands for what was pushed");
  }
}

}  // namespace

void try_one(std::string_view text) {
  if (text.empty()) return;
  const auto kind = static_cast<std::uint8_t>(text.front());
  text.remove_prefix(1);
  switch (kind & 3) {
    case 0: return try_binary({text.begin(), text.end()});
    case 1: return try_json(text);
    case 2: return try_lines(text);
    default: return try_detectors(text, 1 + (kind >> 2) % 3, (kind & 32) != 0);
  }
}
